"""What torch's optimizers do beside Adam's step, run here: L2 decay, look-ahead, heavy ball, its own correction."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, CyclicLR, LRScheduler, OneCycleLR

import generic_adam as ga
from generic_adam import methods
from generic_adam.adapters import read
from generic_adam.methods import Algorithm, HeavyBall, Method, Nesterov
from generic_adam.torch import AMSGrad, GenericAdam, OptimizerError, Padam

PATHS: dict[str, dict[str, bool]] = {"default": {}, "foreach": {"foreach": True}, "single": {"foreach": False}}
Params = list[torch.nn.Parameter]
THEIRS: dict[str, Callable[[Params], torch.optim.Optimizer]] = {
    "Adam, L2": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.3),
    "Adam, L2, AMSGrad, climbing": lambda p: torch.optim.Adam(
        p, lr=0.05, weight_decay=0.3, amsgrad=True, maximize=True
    ),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.05),
    "NAdam, L2": lambda p: torch.optim.NAdam(p, lr=0.05, weight_decay=0.1),
    "NAdam, decoupled": lambda p: torch.optim.NAdam(p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "RMSprop, heavy ball": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9),
    "RMSprop, heavy ball, L2": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.5, weight_decay=0.1),
}


def parameters() -> Params:
    shapes = ((3, 4), (5,), ())
    return [torch.nn.Parameter(torch.linspace(-1, 1, 12, dtype=torch.float64)[:size].reshape(shape))
            for shape, size in zip(shapes, (12, 5, 1), strict=True)]  # fmt: skip


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    """With float32 as the default, torch's NAdam would keep its product of momenta in it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def walk(optimizer: Any, params: Params, scheduler: LRScheduler | None = None, first: int = 1) -> None:
    for t in range(first, first + 60):
        for x in params:
            x.grad = torch.sin(x.detach() + t) + 0.2 * x.detach()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def assert_same(ours: Params, theirs: Params) -> None:
    for x, y in zip(ours, theirs, strict=True):
        torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", THEIRS)
def test_what_is_read_of_torch_s_optimizer_runs_as_it(name: str, path: str) -> None:
    ours, theirs = parameters(), parameters()
    optimizer = THEIRS[name](theirs)
    again = GenericAdam.from_method(ours, read(optimizer), **PATHS[path])
    walk(again, ours)
    walk(optimizer, theirs)
    assert_same(ours, theirs)
    # and what it says of itself is that algorithm again
    once_more = parameters()
    walk(GenericAdam.from_method(once_more, again.algorithm_of(again.param_groups[0])), once_more)
    assert_same(once_more, ours)


def test_decay_inside_the_gradient_is_torch_s_fused_kernel_s() -> None:
    ours, theirs = parameters(), parameters()
    options: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.3, "fused": True, "maximize": True}
    one, other = GenericAdam(ours, decoupled_weight_decay=False, **options), torch.optim.Adam(theirs, **options)
    walk(one, ours)
    walk(other, theirs)
    assert_same(ours, theirs)
    (bucket,) = one._plans[id(one.param_groups[0])].kept
    assert bucket.is_fused
    # and a state of torch's Adam with L2 goes on here, as ours there
    one.load_state_dict(copy.deepcopy(other.state_dict()))
    assert one.param_groups[0]["decoupled_weight_decay"] is False
    walk(one, ours, first=61)
    walk(other, theirs, first=61)
    assert_same(ours, theirs)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    walk(one, ours, first=121)
    walk(other, theirs, first=121)
    assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["Adam, L2", "NAdam", "RMSprop, heavy ball"])
def test_what_advice_gives_is_run(name: str) -> None:
    params = parameters()
    change = ga.advise(THEIRS[name](params))[0]
    optimizer = GenericAdam.from_method(params, change.algorithm)
    walk(optimizer, params)
    found = optimizer.algorithm_of(optimizer.param_groups[0])
    assert (found.l2, found.nesterov is None, found.heavy_ball) == (
        change.algorithm.l2,
        change.algorithm.nesterov is None,
        change.algorithm.heavy_ball,
    )


SCHEDULERS: dict[str, Callable[[Any], LRScheduler]] = {
    "one cycle": lambda o: OneCycleLR(o, 0.1, total_steps=70),
    "cyclic": lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=15, cycle_momentum=True),
    "cosine": lambda o: CosineAnnealingLR(o, 50),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_torch_s_own_correction_under_a_scheduler_that_cycles_the_momentum(name: str, path: str, decay: float) -> None:
    ours, theirs, exact = parameters(), parameters(), parameters()
    optimizer = GenericAdam(ours, lr=0.05, weight_decay=decay, bias_correction="torch", **PATHS[path])
    plain = GenericAdam(exact, lr=0.05, weight_decay=decay, **PATHS[path])
    peer = torch.optim.AdamW(theirs, lr=0.05, weight_decay=decay)
    schedulers = [SCHEDULERS[name](one) for one in (optimizer, plain, peer)]
    found, own, other = (read(one, its) for one, its in zip((optimizer, plain, peer), schedulers, strict=True))
    for sequence in ("alpha", "beta", "theta"):  # read step by step where they are cyclic
        one, two = getattr(found.method, sequence), getattr(other.method, sequence)
        assert one.values(1, 71).tolist() == two.values(1, 71).tolist()
    assert found.eps == other.eps
    assert found.decay.values(1, 71).tolist() == other.decay.values(1, 71).tolist()
    assert any("exact product" in note for note in own.notes) == (name != "cosine")
    for one, params, its in zip((optimizer, plain, peer), (ours, exact, theirs), schedulers, strict=True):
        walk(one, params, its)
    assert_same(ours, theirs)
    apart = max((x - y).abs().max().item() for x, y in zip(exact, theirs, strict=True))
    assert (apart > 1e-4) == (name != "cosine")  # what the product makes of a momentum that moves


@pytest.mark.parametrize(
    ("algorithm", "word"),
    [
        (Algorithm(Method(0.1, 0.9, 0.9), l2=0.1, decay=0.1), "two places"),
        (Algorithm(Method(0.1, 0.9, 0.9), heavy_ball=HeavyBall(0.9)), "before the division and after"),
        (Algorithm(Method(0.1, 0, 0.9), heavy_ball=HeavyBall(0.9), nesterov=Nesterov(1, 1)), "before the division"),
        (Algorithm(Method(0.1, 0.9, 0.9), centered=True), "mean gradient"),
        (Algorithm(Method(0.1, 0.9, 0.9), eps=1, eps_under_root=True), "under the root"),
    ],
)
def test_what_no_option_says_is_refused(algorithm: Algorithm, word: str) -> None:
    with pytest.raises(OptimizerError, match=word):
        GenericAdam.from_method(parameters(), algorithm)


def test_a_moving_decay_inside_the_gradient_is_run_and_not_covered() -> None:
    params = parameters()
    optimizer = GenericAdam(params, weight_decay="0.1/t", decoupled_weight_decay=False)
    walk(optimizer, params)
    assert "moves" in optimizer.algorithm_of(optimizer.param_groups[0]).outside[0]


@pytest.mark.parametrize("kind", [AMSGrad, Padam])
def test_the_peers_have_the_forms_too(kind: type[GenericAdam]) -> None:
    one, other = parameters(), parameters()
    for params, path in ((one, {"foreach": True}), (other, {"foreach": False})):
        walk(kind(params, weight_decay=0.1, decoupled_weight_decay=False, gradient_weight=0.1, **path), params)
    assert_same(one, other)
    algorithm = methods.nadam()
    assert kind.from_method(one, algorithm, amsgrad=True).param_groups[0]["momentum_weight_schedule"]
