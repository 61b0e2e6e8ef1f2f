"""timm's schedulers and optimizers, read without it: against the real ones where timm is installed."""

import numpy as np
import pytest
import torch

import generic_adam as ga
from generic_adam.adapters import read
from generic_adam.errors import OptimizerError
from tests import steps
from tests.adapters import timm_package
from tests.steps import START, gradient

STEPS = 240


def sgd(groups=1):
    parts = [{"params": [torch.zeros(1, requires_grad=True)], "lr": 0.1 / (n + 1)} for n in range(groups)]
    return torch.optim.SGD(parts, lr=0.1)


# The class and its arguments.
SCHEDULERS = {
    "cosine": ("CosineLRScheduler", {"t_initial": 100, "lr_min": 1e-3}),
    "cosine, warm-up": ("CosineLRScheduler", {"t_initial": 100, "warmup_t": 7, "warmup_lr_init": 1e-4}),
    "cosine, warm-up before it": (
        "CosineLRScheduler",
        {"t_initial": 90, "warmup_t": 7, "warmup_lr_init": 1e-4, "warmup_prefix": True},
    ),
    "cosine, cycles": (
        "CosineLRScheduler",
        {"t_initial": 30, "cycle_limit": 4, "cycle_decay": 0.5, "warmup_t": 40, "lr_min": 1e-3},
    ),
    "cosine, growing cycles": (
        "CosineLRScheduler",
        {"t_initial": 20, "cycle_mul": 2.0, "cycle_limit": 3, "lr_min": 1e-3},
    ),
    "cosine, k-decay": ("CosineLRScheduler", {"t_initial": 100, "k_decay": 1.5}),
    "cosine, noise late": ("CosineLRScheduler", {"t_initial": 100, "noise_range_t": 150}),
    "tanh": ("TanhLRScheduler", {"t_initial": 100, "lr_min": 1e-4, "warmup_t": 5}),
    "tanh, warm-up before it": (
        "TanhLRScheduler",
        {"t_initial": 50, "cycle_limit": 3, "warmup_t": 5, "warmup_prefix": True},
    ),
    "poly": ("PolyLRScheduler", {"t_initial": 100, "power": 0.9, "lr_min": 1e-5, "warmup_t": 3}),
    "step": ("StepLRScheduler", {"decay_t": 30, "decay_rate": 0.3, "warmup_t": 4}),
    "step, not before it": (
        "StepLRScheduler",
        {"decay_t": 30, "decay_rate": 0.3, "warmup_t": 4, "warmup_prefix": False},
    ),
    "step, fractional": ("StepLRScheduler", {"decay_t": 2.4, "decay_rate": 0.9}),
    "multi-step": ("MultiStepLRScheduler", {"decay_t": [20, 50, 51], "decay_rate": 0.3, "warmup_t": 6}),
    "multi-step at once": ("MultiStepLRScheduler", {"decay_t": [1, 9], "decay_rate": 0.5}),
}


def real_rates(optimizer, scheduler, every):
    """What timm's training loop does: a count at the end of each epoch, or after each update."""
    rates = []
    for t in range(1, STEPS + 1):
        rates.append([group["lr"] for group in optimizer.param_groups])
        if t % every == 0:
            (scheduler.step if scheduler.t_in_epochs else scheduler.step_update)(t // every)
    return np.array(rates)


@pytest.mark.parametrize("every", [None, 2])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_rates_are_those_of_timm(name, every):
    kind, arguments = SCHEDULERS[name]
    optimizer = sgd(groups=2)
    optimizer.param_groups[1]["lr_scale"] = 0.5
    scheduler = getattr(timm_package.part("scheduler"), kind)(optimizer, **arguments, t_in_epochs=every is not None)
    before = [dict(group) for group in optimizer.param_groups]
    algorithm = read(optimizer, scheduler, steps_per_scheduler_step=every)
    assert [dict(group) for group in optimizer.param_groups] == before
    real = real_rates(optimizer, scheduler, every or 1)
    for part in algorithm.parts:
        for group in part.groups:
            np.testing.assert_allclose(part.method.alpha.values(1, STEPS + 1), real[:, group], rtol=1e-9, atol=1e-12)
    # A scheduler that has run is read from the beginning of the run.
    again = read(optimizer, scheduler, steps_per_scheduler_step=every)
    assert again.method.alpha(3) == pytest.approx(algorithm.method.alpha(3), rel=1e-12)


def test_an_epoch_has_to_be_told_and_an_update_not():
    scheduler = timm_package.part("scheduler").CosineLRScheduler(sgd(), 10)
    with pytest.raises(OptimizerError, match=r"counts epochs .* the optimizer steps of an epoch"):
        ga.certify(scheduler.optimizer, scheduler)
    updates = timm_package.part("scheduler").CosineLRScheduler(sgd(), 10, t_in_epochs=False)
    with pytest.raises(OptimizerError, match="counts updates"):
        ga.certify(updates.optimizer, updates, steps_per_scheduler_step=5)


def test_a_plateau_depends_on_the_data():
    scheduler = timm_package.part("scheduler").PlateauLRScheduler(sgd())
    with pytest.raises(OptimizerError, match="PlateauLRScheduler depends on the data"):
        read(scheduler.optimizer, scheduler, steps_per_scheduler_step=5)


# Optimizers.

OPTIMIZERS = {
    "adam": {},
    "adamw": {"weight_decay": 0.3},
    "adamwlegacy": {"weight_decay": 0.3},
    "adamc": {"weight_decay": 0.3},
    "nadam": {},
    "nadamw": {"weight_decay": 0.2},
    "rmsprop": {"momentum": 0.5},
    "rmsproptf": {"momentum": 0.5, "weight_decay": 0.1},
    "momentum": {"momentum": 0.5},
}


def made(name, **arguments):
    x = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    return x, timm_package.part("optim").create_optimizer_v2([x], opt=name, lr=0.05, **arguments)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_algorithm_read_takes_timm_s_steps(name):
    x, optimizer = made(name, **OPTIMIZERS[name])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    algorithm = read(optimizer, scheduler)
    assert algorithm.outside == ()
    points = steps.torch_path(x, optimizer, scheduler)
    np.testing.assert_allclose(points, steps.path(algorithm, gradient, START, 60), rtol=1e-7, atol=1e-8)


def test_what_no_field_says_is_outside_and_other_algorithms_are_refused():
    assert "caution" in read(made("cadamw")[1]).outside[0]
    assert read(made("adafactor")[1]).label == "Adafactor"
    for name in ("lion", "lamb", "radam", "adabelief", "lars", "adamp", "adopt", "nadamlegacy"):
        with pytest.raises(OptimizerError) as refusal:
            read(made(name)[1])
        assert "\n" not in str(refusal.value)


def test_every_name_of_timm_s_is_read_or_refused_in_one_line():
    answers = set()
    for name in timm_package.part("optim").list_optimizers():
        try:
            optimizer = made(name)[1]
        except Exception:  # noqa: BLE001 - timm's own: another package, other arguments
            continue
        try:
            answers.add(type(read(optimizer)).__name__)
        except OptimizerError as refusal:
            answers.add("refused")
            assert "\n" not in str(refusal)  # noqa: PT017 - it may be read as well
    assert answers == {"Algorithm", "refused"}
