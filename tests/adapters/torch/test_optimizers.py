"""What is read off torch's optimizers is what they do: the same steps as Algorithm 1 with that method."""

import functools
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as torch_lr

from generic_adam.adapters import AdapterError
from generic_adam.adapters.torch import read
from generic_adam.reference import generic_adam
from generic_adam.schedules import parse
from generic_adam.torch import GenericAdam
from generic_adam.torch.schedule_lr import ScheduleLR

STEPS = 120

AS_THE_PAPER = {"initial_v": 1e-8, "eps": 0.0, "bias_correction": False}


def gradient(x, t):
    return 0.3 * x + np.sin(np.array([1.0, 2.0, 3.0]) * t) + 0.05


def torch_path(build, schedule=None, steps=STEPS):
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = build([x])
    scheduler = schedule(optimizer) if schedule is not None else None
    (reading,) = read(optimizer, scheduler)
    path = []
    for t in range(1, steps + 1):
        x.grad = torch.from_numpy(gradient(x.detach().numpy(), t))
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        path.append(x.detach().numpy().copy())
    return reading, np.array(path)


def method_path(method, initial_v=0.0, steps=STEPS):
    trajectory = generic_adam(method, gradient, np.array([0.5, -1.0, 2.0]), steps, epsilon=initial_v)
    return trajectory.points[1:]


OPTIMIZERS = {
    "Adam": (lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=0), 0.0),
    "AdamW without decay": (lambda p: torch.optim.AdamW(p, lr=0.05, eps=0, weight_decay=0), 0.0),
    "RMSprop": (lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, eps=0), 0.0),
    "Adagrad": (
        lambda p: torch.optim.Adagrad(p, lr=0.3, lr_decay=0.01, eps=0, initial_accumulator_value=0.2),
        0.2,
    ),
    "GenericAdam": (
        lambda p: GenericAdam(p, lr="0.1/sqrt(t)", beta=0.8, theta="1 - 0.9/t", **AS_THE_PAPER),
        1e-8,
    ),
    "GenericAdam, corrected": (
        lambda p: GenericAdam(p, lr=0.05, eps=0, initial_v=0, bias_correction=True),
        0.0,
    ),
}
SCHEDULERS = {
    "none": None,
    "cosine": lambda o: torch_lr.CosineAnnealingLR(o, 40, 1e-3),
    "schedule": lambda o: ScheduleLR(o, "0.2 / sqrt(t)"),
    "one cycle": lambda o: torch_lr.OneCycleLR(o, 0.2, 150),
}


# OneCycleLR cycles a momentum that RMSprop and Adagrad do not have.
PAIRS = [
    (name, scheduler)
    for name in OPTIMIZERS
    for scheduler in SCHEDULERS
    if scheduler != "one cycle" or name not in {"RMSprop", "Adagrad"}
]


@pytest.mark.parametrize(("name", "scheduler"), PAIRS)
def test_the_method_read_takes_the_same_steps(name, scheduler):
    build, initial_v = OPTIMIZERS[name]
    if scheduler != "none" and name == "GenericAdam":
        build = lambda p: GenericAdam(p, lr=0.1, beta=0.8, theta="1 - 0.9/t", **AS_THE_PAPER)  # noqa: E731
    reading, path = torch_path(build, SCHEDULERS[scheduler])
    np.testing.assert_allclose(path, method_path(reading.method, initial_v), rtol=1e-9, atol=1e-12)


def test_adafactor_on_vectors_is_the_method_times_the_parameter_scale():
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adafactor([x], lr=0.05, d=1e9)  # never clips
    (reading,) = read(optimizer)
    v = np.zeros(3)
    for t in range(1, 400):
        before, g = x.detach().numpy().copy(), gradient(x.detach().numpy(), t)
        x.grad = torch.from_numpy(g)
        optimizer.step()
        alpha, beta, theta = reading.method.at(t)
        v = theta * v + (1 - theta) * g**2
        step = max(1e-3, np.sqrt(np.mean(before**2))) * alpha * g / np.sqrt(v)
        np.testing.assert_allclose(x.detach().numpy(), before - step, rtol=1e-12)
        assert beta == 0
    assert not any("factored" in sentence for sentence in reading.outside)
    (matrix,) = read(torch.optim.Adafactor([torch.zeros(2, 2, requires_grad=True)]))
    assert "factored" in matrix.outside[0]
    assert matrix.method.theta == parse("1 - t^-0.8")


def weights(*shape):
    return [torch.zeros(*shape or (2,), requires_grad=True)]


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: torch.optim.NAdam(weights()), "Nesterov"),
        (lambda: torch.optim.Adamax(weights()), "maximum"),
        (lambda: torch.optim.RAdam(weights()), "first steps"),
        (lambda: torch.optim.SGD(weights(), lr=0.1), "no second moment"),
        (lambda: torch.optim.RMSprop(weights(), momentum=0.9), "momentum 0.9"),
        (lambda: torch.optim.RMSprop(weights(), centered=True), "centered"),
    ],
)
def test_other_algorithms_are_refused_with_the_reason(build, reason):
    with pytest.raises(AdapterError, match=reason) as caught:
        read(build())
    assert "\n" not in str(caught.value)


def test_radam_divides_from_the_sixth_step_on():
    # What the refusal says of RAdam: its first five steps at theta = 0.999 are not scaled by sqrt(v_t).
    for scale in (1.0, 100.0):
        x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.RAdam([x], lr=1.0)
        moves = []
        for _ in range(7):
            before = x.item()
            x.grad = torch.full((1,), scale, dtype=torch.float64)
            optimizer.step()
            moves.append(before - x.item())
        np.testing.assert_allclose(moves[:5], scale)
        assert max(moves[5:]) < 1


def test_what_the_theorem_does_not_cover_is_said():
    (plain,) = read(torch.optim.Adam(weights(), weight_decay=0.1, amsgrad=True))
    for word, sentence in zip(["eps", "amsgrad", "0.05 ||x||^2"], plain.outside, strict=True):
        assert word in sentence
    (decoupled,) = read(torch.optim.AdamW(weights()))
    assert "decoupled weight decay of 0.01" in decoupled.outside[1]
    assert "v_0 = 0 and eps = 1e-10" in read(torch.optim.Adagrad(weights()))[0].outside[0]
    # an eps that rounding swallows is a remark; one that it does not is outside
    (ours,) = read(GenericAdam(weights(), initial_v=1e-8, eps=1e-16))
    assert ours.outside == ()
    assert "rounding" in ours.notes[0]
    assert read(GenericAdam(weights(), initial_v=1e-8, eps=0))[0].notes == ()
    assert "eps = 1e-06" in read(GenericAdam(weights(), initial_v=1e-8, eps=1e-6))[0].outside[0]
    assert "v_0 = 0" in read(GenericAdam(weights(), initial_v=0))[0].outside[0]


def test_groups_that_agree_are_one_reading():
    parameters = [weights()[0] for _ in range(4)]
    optimizer = torch.optim.AdamW(
        [
            {"params": parameters[:1]},
            {"params": parameters[1:2], "lr": 0.1},
            {"params": parameters[2:3]},
            {"params": parameters[3:], "weight_decay": 0.0},
        ],
        lr=0.01,
    )
    readings = read(optimizer, torch_lr.CosineAnnealingLR(optimizer, 10, 1e-3))
    assert [reading.groups for reading in readings] == [(0, 2), (1,), (3,)]
    assert readings[0].method == readings[2].method
    assert readings[0].method != readings[1].method


def test_a_subclass_counts_only_with_its_parents_step():
    class Renamed(torch.optim.AdamW):
        pass

    class Clipped(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    assert read(Renamed(weights()))[0].method.beta(1) == 0.9
    with pytest.raises(AdapterError, match="Clipped is not an optimizer that can be read"):
        read(Clipped(weights()))


def test_a_subclass_is_read_also_where_torch_met_it_before_its_parent():
    # torch wraps the step of each class at its first instance; a new process has seen no Adam.
    code = (
        "import torch\n"
        "from generic_adam.adapters.torch import read\n"
        "class Renamed(torch.optim.Adam): pass\n"
        "print(read(Renamed([torch.zeros(1, requires_grad=True)]))[0].method.beta(1))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0.9"


def test_a_wrapper_around_the_parents_step_is_not_the_parents_step():
    class Halved(torch.optim.Adam):
        @functools.wraps(torch.optim.Adam.step)
        def step(self, closure=None):
            return super().step(closure)

    with pytest.raises(AdapterError, match="Halved is not an optimizer that can be read"):
        read(Halved(weights()))


def test_a_schedule_of_its_own_and_a_scheduler_contradict_each_other():
    optimizer = GenericAdam(weights(), lr="0.1/sqrt(t)")
    with pytest.raises(AdapterError, match="lr follows the optimizer's own schedule"):
        read(optimizer, torch_lr.ExponentialLR(optimizer, 0.9))
    optimizer = GenericAdam(weights(), beta="0.9 * 0.99^t")
    with pytest.raises(AdapterError, match="beta follows the optimizer's own schedule"):
        read(optimizer, torch_lr.OneCycleLR(optimizer, 0.1, 100))
    assert read(optimizer, torch_lr.ExponentialLR(optimizer, 0.9))[0].method.beta == parse("0.9 * 0.99^t")


def test_wrong_objects_are_one_line():
    optimizer, other = torch.optim.Adam(weights()), torch.optim.SGD(weights(), lr=0.1)
    cases = [
        ((3,), "expected a torch optimizer, got int"),
        ((optimizer, 3), "expected a torch learning-rate scheduler, got int"),
        ((optimizer, torch_lr.ExponentialLR(other, 0.9)), "ExponentialLR belongs to another optimizer"),
    ]
    for arguments, message in cases:
        with pytest.raises(AdapterError, match=message) as caught:
            read(*arguments)
        assert "\n" not in str(caught.value)


def test_tensor_rates_and_forgotten_schedulers():
    optimizer = torch.optim.Adam(weights(), lr=torch.tensor(0.5))
    assert read(optimizer)[0].method.alpha(10**6) == pytest.approx(0.5)
    torch_lr.StepLR(optimizer, 10)
    assert "a scheduler has touched" in read(optimizer)[0].notes[-1]
