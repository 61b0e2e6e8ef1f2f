"""Step by step, every optimizer is its update rule on paper."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from generic_adam import methods, reference
from generic_adam.methods import Method
from generic_adam.methods.algorithm import as_algorithm
from generic_adam.torch import AMSGrad, GenericAdam, OptimizerError, Padam
from tests.conformance.optimizers import OPTIMIZERS, OptimizerInfo
from tests.conformance.problems import DIMENSION, START, distance, noisy_quadratic, run
from tests.conformance.references import REFERENCES

CASES = [
    pytest.param(info, arguments, id=f"{info.name}-{index}")
    for info in OPTIMIZERS
    for index, arguments in enumerate(info.valid)
]
STEPS = 10_000
PATHS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}


def parameter() -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.tensor(START))


@pytest.mark.parametrize(("info", "arguments"), CASES)
def test_every_valid_input_follows_its_rule(info: OptimizerInfo, arguments: Mapping[str, Any]) -> None:
    x = parameter()
    points = run(info.constructor([x], **arguments), x, 300)
    expected = REFERENCES[info.name](noisy_quadratic, START, 300, **arguments)
    assert distance(points, expected) < 1e-12


@pytest.mark.parametrize("path", PATHS)
def test_every_method_of_the_catalogue_for_ten_thousand_steps(path: str) -> None:
    # One group a method, so that one run covers them all, and groups with schedules of their own as well.
    catalogue = methods_of_the_catalogue()
    rows = [parameter() for _ in catalogue]
    groups = [
        {"params": [x], "lr": method.alpha, "beta": method.beta, "theta": method.theta}
        for x, method in zip(rows, catalogue.values(), strict=True)
    ]
    optimizer = GenericAdam(groups, initial_v=1e-8, eps=0.0, bias_correction=False, **PATHS[path])
    worst = np.zeros(len(rows))
    largest = np.abs(catalogue_iterates()).max(axis=(0, 2))
    for t in range(1, STEPS + 1):
        points = np.stack([x.detach().numpy() for x in rows])
        for x, g in zip(rows, torch.from_numpy(noisy_quadratic(points, t)), strict=True):
            x.grad = g
        optimizer.step()
        points = np.stack([x.detach().numpy() for x in rows])
        worst = np.maximum(worst, np.abs(points - catalogue_iterates()[t]).max(axis=1))
    off = {name: error for name, error in zip(catalogue, worst / largest, strict=True) if not error < 1e-12}
    assert not off


def methods_of_the_catalogue() -> dict[str, Method]:
    """What the catalogue has by its three sequences alone."""
    built = {name: methods.build(name) for name in methods.names()}
    return {name: method for name, method in built.items() if isinstance(method, Method)}


@cache
def catalogue_iterates() -> np.ndarray:
    """x_1, ..., x_{T+1} of every method by the reference: (T + 1, method, coordinate)."""
    trajectories = [
        reference.generic_adam(method, noisy_quadratic, START, STEPS) for method in methods_of_the_catalogue().values()
    ]
    return np.stack([trajectory.points for trajectory in trajectories], axis=1)


@pytest.mark.parametrize("path", PATHS)
def test_a_late_theta_is_exact_where_one_minus_theta_would_cancel(path: str) -> None:
    # theta = 1 - 1e-9/t: formed as 1 - theta in float64, the complement would have an error of 1e-7 and more.
    method = Method(alpha=0.01, beta=0.9, theta="1 - 1e-9/t")
    x = parameter()
    points = run(GenericAdam.from_method([x], method, eps=0.0, initial_v=1e-4, **PATHS[path]), x, 2_000)
    expected = reference.generic_adam(method, noisy_quadratic, START, 2_000, epsilon=1e-4).points
    assert distance(points, expected) < 1e-10


NOT_RUN = ("sgd", "adopt", "adafactor")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [name for name in methods.names() if name not in NOT_RUN])
def test_every_algorithm_of_the_catalogue(path: str, name: str) -> None:
    algorithm = as_algorithm(methods.build(name))
    x = parameter()
    on = "foreach" if name == "nadam" and path == "fused" else path  # whose look-ahead torch's kernel does not have
    points = run(GenericAdam.from_method([x], algorithm, **PATHS[on]), x, 300)
    three = algorithm.method
    expected = REFERENCES["GenericAdam"](
        noisy_quadratic,
        START,
        300,
        lr=three.alpha,
        beta=three.beta,
        theta=three.theta,
        eps=algorithm.eps,
        initial_v=algorithm.initial_v,
        amsgrad=algorithm.running_maximum,
        bias_correction=False,
        weight_decay=algorithm.decay / three.alpha,
        momentum_weight=algorithm.nesterov.momentum_weight if algorithm.nesterov else 1,
        gradient_weight=algorithm.nesterov.gradient_weight if algorithm.nesterov else 0,
    )
    assert distance(points, expected) < 1e-12


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_it_does_not_run_is_refused(name: str) -> None:
    with pytest.raises(OptimizerError, match="does not run this algorithm"):
        GenericAdam.from_method([parameter()], methods.build(name))


@pytest.mark.parametrize("arguments", OPTIMIZERS[0].valid, ids="-".join)
def test_the_algorithm_it_names_is_the_one_it_runs(arguments: Mapping[str, Any]) -> None:
    x, y = parameter(), parameter()
    optimizer = GenericAdam([x], **arguments)
    algorithm = optimizer.algorithm_of(optimizer.param_groups[0])
    again = GenericAdam.from_method([y], algorithm)
    assert distance(run(again, y, 100), run(optimizer, x, 100)) < 1e-12


def test_the_wrong_answer_of_a_per_step_power_is_not_ours() -> None:
    # theta_t = 1 - 1/t, g = 1, beta = 0: the exact product corrects to v = 1, so x = -10 after 1,000 steps of
    # 0.01.
    x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = GenericAdam([x], lr=0.01, beta=0.0, theta="1 - 1/t", eps=0.0)
    points = run(optimizer, x, 1_000, lambda _, __: np.ones(1))
    assert points[-1, 0] == pytest.approx(-10.0, rel=1e-12)


def test_padam_with_a_half_is_amsgrad() -> None:
    x, y = parameter(), parameter()
    points = run(Padam([x], lr=0.01, partial=0.5), x, 200)
    assert distance(points, run(AMSGrad([y], lr=0.01), y, 200)) < 1e-14


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize(("torch_class", "weight_decay"), [(torch.optim.Adam, 0.0), (torch.optim.AdamW, 0.05)])
def test_with_constants_it_is_torchs_adam(path: str, *, amsgrad: bool, torch_class: type, weight_decay: float) -> None:
    ours, theirs = parameter(), parameter()
    optimizer = GenericAdam(
        [ours],
        0.01,
        (0.9, 0.999),
        1e-8,
        weight_decay,
        amsgrad,
        **PATHS[path],
    )
    points = run(optimizer, ours, 1_000)
    peer = torch_class([theirs], lr=0.01, eps=1e-8, amsgrad=amsgrad, weight_decay=weight_decay)
    assert distance(points, run(peer, theirs, 1_000)) < 1e-13


@pytest.mark.parametrize("path", PATHS)
def test_float32_is_torchs_adam_to_rounding(path: str) -> None:
    ours = torch.nn.Parameter(torch.tensor(START, dtype=torch.float32))
    theirs = torch.nn.Parameter(torch.tensor(START, dtype=torch.float32))

    def gradient(x: np.ndarray, t: int) -> np.ndarray:
        return noisy_quadratic(x, t).astype(np.float32)

    optimizer = GenericAdam([ours], lr=0.01, **PATHS[path])
    points = run(optimizer, ours, 1_000, gradient)
    assert distance(points, run(torch.optim.Adam([theirs], lr=0.01), theirs, 1_000, gradient)) < 1e-5


def test_shapes_and_paths_do_not_matter() -> None:
    # Many tensors of many shapes, one of them empty, are the one vector they are cut from.
    whole = torch.nn.Parameter(torch.tensor(START))
    pieces = [torch.nn.Parameter(torch.tensor(START[a:b])) for a, b in ((0, 1), (1, 4), (4, 4), (4, 7))]
    pieces[1] = torch.nn.Parameter(pieces[1].detach().reshape(3, 1, 1))
    schedule = {"lr": "0.1/sqrt(t)", "theta": "1 - 1/max(t, 2)"}
    one, many = GenericAdam([whole], **schedule), GenericAdam(pieces, **schedule)
    for t in range(1, 50):
        g = torch.from_numpy(noisy_quadratic(whole.detach().numpy(), t))
        whole.grad = g
        for piece, part in zip(pieces, g.split([1, 3, 0, 3]), strict=True):
            piece.grad = part.reshape(piece.shape)
        one.step()
        many.step()
    joined = torch.cat([piece.detach().ravel() for piece in pieces])
    torch.testing.assert_close(joined, whole.detach(), rtol=1e-14, atol=0)
    assert joined.numel() == DIMENSION
