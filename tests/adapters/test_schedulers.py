"""Every scheduler's closed form against the numbers that the real scheduler produces."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import torch
import transformers
from torch.optim import lr_scheduler as torch_lr

import generic_adam as ga
from generic_adam.adapters.clock import Clock, follow
from generic_adam.adapters.schedulers import closed_form, settings_of
from generic_adam.adapters.torch import read as read_optimizer
from generic_adam.adapters.torch import scheduled_rates
from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.schedules import Opaque, has_callable, parse
from generic_adam.torch.schedule_lr import ScheduleLR

STEPS = 2_000


def form_of(scheduler, clock):
    return closed_form(*settings_of(scheduler, 0), clock)


def adam(lr=0.1, groups=1):
    parameters = [{"params": [torch.zeros(1, requires_grad=True)], "lr": lr * (1 + i)} for i in range(groups)]
    return torch.optim.Adam(parameters, betas=(0.9, 0.999))


def real_run(optimizer, scheduler, steps, every=1):
    """lr and beta at t = 1, ..., steps of a training loop that steps the scheduler every so many steps."""
    rates, betas = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in range(1, steps + 1):
            rates.append([float(group["lr"]) for group in optimizer.param_groups])
            betas.append([float(group["betas"][0]) for group in optimizer.param_groups])
            if t % every == 0 and t < steps:
                scheduler.step()
    return np.array(rates), np.array(betas)


CLOSED = {
    "ConstantLR": lambda o: torch_lr.ConstantLR(o, 0.3, 7),
    "ConstantLR, never restored": lambda o: torch_lr.ConstantLR(o, 0.3, 0),
    "LinearLR": lambda o: torch_lr.LinearLR(o, 0.1, 0.9, 13),
    "LinearLR to 0": lambda o: torch_lr.LinearLR(o, 1.0, 0.0, 500),
    "ExponentialLR": lambda o: torch_lr.ExponentialLR(o, 0.99),
    "StepLR": lambda o: torch_lr.StepLR(o, 30, 0.5),
    "MultiStepLR": lambda o: torch_lr.MultiStepLR(o, [5, 5, 100, 300], 0.3),
    "PolynomialLR": lambda o: torch_lr.PolynomialLR(o, 600, 2.5),
    "CosineAnnealingLR": lambda o: torch_lr.CosineAnnealingLR(o, 300, 0.001),
    "CosineAnnealingLR to 0": lambda o: torch_lr.CosineAnnealingLR(o, 300),
    "CosineAnnealingWarmRestarts": lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 50, 1, 0.001),
    "OneCycleLR": lambda o: torch_lr.OneCycleLR(o, 0.5, STEPS),
    "OneCycleLR, three phases": lambda o: torch_lr.OneCycleLR(
        o, 0.5, STEPS, three_phase=True, anneal_strategy="linear", pct_start=0.2
    ),
    "SequentialLR": lambda o: torch_lr.SequentialLR(
        o,
        [
            torch_lr.LinearLR(o, 0.1, 1.0, 37),
            torch_lr.CosineAnnealingLR(o, 120, 1e-3),
            torch_lr.StepLR(o, 90, 0.5),
        ],
        [37, 400],
    ),
    "SequentialLR of a schedule": lambda o: torch_lr.SequentialLR(
        o,
        [torch_lr.ConstantLR(o, 0.5, 10_000), ScheduleLR(o, "0.2 / sqrt(t) if t < 90 else 0.01 + 1/t")],
        [100],
    ),
    "ChainedScheduler": lambda o: torch_lr.ChainedScheduler(
        [
            torch_lr.LinearLR(o, 0.1, 1.0, 50),
            torch_lr.ExponentialLR(o, 0.998),
            torch_lr.MultiStepLR(o, [500], 0.1),
        ]
    ),
    "ScheduleLR": lambda o: ScheduleLR(o, "0.5 / sqrt(t) if t < 300 else max(0.001, 1/t)"),
}


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_form_is_what_the_scheduler_does(name, every):
    steps = STEPS if every == 1 else STEPS // 2
    optimizer = adam(groups=2)
    scheduler = CLOSED[name](optimizer)
    rates = scheduled_rates(scheduler, optimizer, every)
    real, betas = real_run(optimizer, scheduler, steps, every)
    for group, read in enumerate(rates):
        assert not isinstance(read.rate, Opaque)
        ours = read.rate.values(1, steps + 1)
        # Recursions in torch end a decay to 0 at rounding errors of either sign instead of 0.
        np.testing.assert_allclose(ours, real[:, group], rtol=1e-11, atol=1e-13 * real.max())
        if read.beta is not None:
            np.testing.assert_allclose(read.beta.values(1, steps + 1), betas[:, group], rtol=1e-12)
        else:
            assert set(betas[:, group]) == {0.9}


def test_one_cycle_moves_beta_and_ends():
    optimizer = adam()
    (read,) = scheduled_rates(torch_lr.OneCycleLR(optimizer, 0.5, 100), optimizer, 3)
    assert read.horizon == 300
    assert read.beta is not None
    assert read.beta(10_000) == 0.95
    assert read.rate(10_000) == pytest.approx(0.5 / 25 / 1e4)


LENGTHS = {
    "cosine": (lambda o: transformers.get_scheduler("cosine", o, 10, 100), 100),
    "linear": (lambda o: transformers.get_scheduler("linear", o, 10, 100), 100),
    "constant": (lambda o: transformers.get_scheduler("constant", o, 10, 100), None),
    "CosineAnnealingLR": (lambda o: torch_lr.CosineAnnealingLR(o, 70), None),
    "a function of one's own": (lambda o: torch_lr.LambdaLR(o, partial(pow, 0.9)), None),
}


@pytest.mark.parametrize("stepped", [0, 7])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", LENGTHS)
def test_the_run_is_as_long_as_the_scheduler_says(name, every, stepped):
    (build, length), optimizer = LENGTHS[name], adam()
    scheduler = build(optimizer)
    for _ in range(stepped):
        optimizer.step()
        scheduler.step()
    algorithm = read_optimizer(optimizer, scheduler, steps_per_scheduler_step=every)
    assert algorithm.horizon == (None if length is None else length * every)


def test_what_counts_under_another_name_is_replayed():
    class Halved:
        """As pytorch_optimizer's schedulers: no last_epoch."""

        def __init__(self, optimizer):
            self.optimizer, self.step_t = optimizer, 0

        def step(self):
            self.step_t += 1
            self.optimizer.param_groups[0]["lr"] = 0.1 / (1 + self.step_t)

    optimizer = adam()
    scheduler = Halved(optimizer)
    (read,) = scheduled_rates(scheduler, optimizer)
    assert read.rate.values(1, 4) == pytest.approx([0.1, 0.05, 0.1 / 3])
    scheduler.step()
    with pytest.raises(OptimizerError, match="stepped 1 times"):
        scheduled_rates(scheduler, optimizer)


@pytest.mark.parametrize("strategy", ["linear", "cos"])
@pytest.mark.parametrize("total", [2, 3, 10, 37, 100, 477, 1000])
def test_one_cycle_of_every_size(strategy, total):
    """torch itself leaves the line below 0 one step after the last: that step is none of the run."""
    optimizer = adam()
    scheduler = torch_lr.OneCycleLR(optimizer, 0.5, total, anneal_strategy=strategy, final_div_factor=1e9)
    algorithm = read_optimizer(optimizer, scheduler)
    assert algorithm.horizon == total
    (rates,) = scheduled_rates(scheduler, optimizer)
    real, betas = real_run(optimizer, scheduler, total)
    np.testing.assert_allclose(rates.rate.values(1, total + 1), real[:, 0], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(rates.beta.values(1, total + 1), betas[:, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "log_rho"),
    [("StepLR", np.log(0.5) / 30), ("ExponentialLR", np.log(0.99))],
)
def test_stairs_decay_geometrically(name, log_rho):
    optimizer = adam()
    growth = form_of(CLOSED[name](optimizer), Clock(2)).growth
    assert growth.rho.log == pytest.approx(log_rho / 2, rel=1e-12)


def test_cosine_never_settles_and_touches_zero():
    optimizer = adam()
    above = form_of(CLOSED["CosineAnnealingLR"](optimizer), Clock())
    assert (above.growth.low, above.growth.high) == (pytest.approx(0.001), pytest.approx(0.1))
    touching = form_of(torch_lr.CosineAnnealingLR(adam(), 300), Clock())
    # pi is rounded in its angle: what is 0 in floats is about 5e-33 by the form.
    assert touching.growth is None or 0 < touching.growth.low < 1e-30
    assert touching(301) == touching(901) == 0


class Zigzag(torch_lr.LRScheduler):
    def get_lr(self):
        return [base * (2 + (-1) ** self.last_epoch) for base in self.base_lrs]


OPAQUE = {
    "a period that is not whole": lambda o: torch_lr.CosineAnnealingLR(o, 7.5, 0.01),
    "a period too long": lambda o: torch_lr.StepLR(o, 10**9),
    "MultiplicativeLR": lambda o: torch_lr.MultiplicativeLR(o, lambda k: 0.99 if k % 2 else 1.0),
    "CyclicLR with a function": lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, 100, scale_fn=lambda x: 1 / x),
    "chained with a cosine": lambda o: torch_lr.ChainedScheduler(
        [torch_lr.ConstantLR(o, 0.5, 400), torch_lr.CosineAnnealingLR(o, 150)]
    ),
    "a sequence that ends in a class of one's own": lambda o: torch_lr.SequentialLR(
        o, [torch_lr.ConstantLR(o, 0.5, 90), Zigzag(o)], [50]
    ),
    "milestones that fall": lambda o: torch_lr.SequentialLR(
        o,
        [torch_lr.LinearLR(o, 0.1, 1, 700), torch_lr.ConstantLR(o), torch_lr.ExponentialLR(o, 0.99)],
        [900, 600],
    ),
    "a momentum that moves late": lambda o: torch_lr.SequentialLR(
        o, [torch_lr.ConstantLR(o, 0.5, 90), torch_lr.CyclicLR(o, 0.01, 0.1, 20)], [700]
    ),
    "a class of one's own": Zigzag,
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.02, 40),
    "SWALR, linear": lambda o: torch.optim.swa_utils.SWALR(o, 0.02, 40, "linear"),
    "SWALR at once": lambda o: torch.optim.swa_utils.SWALR(o, 0.02, 0),
    "CosineAnnealingWarmRestarts, growing": lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 50, 2, 0.001),
    "CyclicLR": lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, 100, 50),
    "CyclicLR, triangular2": lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, 100, mode="triangular2"),
    "CyclicLR, exp_range": lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, 100, mode="exp_range", gamma=0.999),
    "warm-up and a cosine above 0": lambda o: torch_lr.ChainedScheduler(
        [torch_lr.LinearLR(o, 0.1, 1.0, 50), torch_lr.CosineAnnealingLR(o, 140, 0.002)]
    ),
    "a nested sequence": lambda o: torch_lr.SequentialLR(
        o,
        [
            torch_lr.SequentialLR(o, [torch_lr.ConstantLR(o, 0.5, 90), torch_lr.ExponentialLR(o, 0.99)], [50]),
            torch_lr.ExponentialLR(o, 0.9),
        ],
        [600],
    ),
    "a momentum that moves first": lambda o: torch_lr.SequentialLR(
        o, [torch_lr.CyclicLR(o, 0.01, 0.1, 20), torch_lr.StepLR(o, 30)], [300]
    ),
}


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("name", OPAQUE)
def test_no_closed_form_means_the_scheduler_itself(name, every):
    optimizer = adam()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own SequentialLR steps the nested one as it is built
        scheduler = OPAQUE[name](optimizer)
    before = [dict(group) for group in optimizer.param_groups]
    (read,) = scheduled_rates(scheduler, optimizer, every)
    assert isinstance(read.rate, Opaque)
    assert read.rate.growth is None
    assert "no known closed form" in read.notes[0]
    ours = read.rate.values(1, 801)
    assert [dict(group) for group in optimizer.param_groups] == before
    real, betas = real_run(optimizer, scheduler, 800, every)
    np.testing.assert_array_equal(ours, real[:, 0])
    if read.beta is None:
        assert len(set(betas[:, 0])) == 1
    else:
        np.testing.assert_array_equal(read.beta.values(1, 801), betas[:, 0])


def test_a_group_that_the_scheduler_has_not_seen_is_replayed():
    for name in ("ExponentialLR", "CosineAnnealingLR", "OneCycleLR"):
        optimizer = adam()
        scheduler = CLOSED[name](optimizer)
        optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)], "lr": 0.3})
        _, late = scheduled_rates(scheduler, optimizer)
        assert late.rate(1) == 0.3
        if name == "ExponentialLR":
            assert late.rate(3) == pytest.approx(0.3 * 0.99**2)


def test_lambda_is_opaque_with_the_right_numbers():
    optimizer = adam()
    scheduler = torch_lr.LambdaLR(optimizer, lambda k: 1 / (1 + k))
    (read,) = scheduled_rates(scheduler, optimizer, 2)
    assert isinstance(read.rate, Opaque)
    real, _ = real_run(optimizer, scheduler, 100, 2)
    np.testing.assert_allclose(read.rate.values(1, 101), real[:, 0], rtol=1e-15)


GIVEN = {
    "cosine_with_min_lr": {"min_lr_rate": 0.1},
    "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1},
    "warmup_stable_decay": {"num_decay_steps": 30},
}


@pytest.mark.parametrize("name", [kind.value for kind in transformers.SchedulerType])
@pytest.mark.filterwarnings("ignore")
def test_every_name_of_transformers_get_scheduler(name):
    optimizer = adam()
    scheduler = transformers.get_scheduler(
        name,
        optimizer,
        num_warmup_steps=10,
        num_training_steps=100,
        scheduler_specific_kwargs=GIVEN.get(name, {}),
    )
    if name in {"greedy", "reduce_lr_on_plateau"}:
        with pytest.raises(OptimizerError, match="depends on the data") as caught:
            read_optimizer(optimizer, scheduler)
        assert "\n" not in str(caught.value)
        return
    (read,) = scheduled_rates(scheduler, optimizer)
    assert not has_callable(read.rate)
    real, _ = real_run(optimizer, scheduler, 130)
    np.testing.assert_allclose(read.rate.values(1, 131), real[:, 0], rtol=1e-10, atol=1e-15)


def test_a_closure_such_as_nanogpt_s_is_answered_for_the_run():
    warm, total, low = 20, 400, 0.1

    def factor(k):  # as nanoGPT's get_lr
        if k < warm:
            return (k + 1) / (warm + 1)
        if k > total:
            return low
        return low + 0.5 * (1 + math.cos(math.pi * (k - warm) / (total - warm))) * (1 - low)

    optimizer = adam()
    scheduler = torch_lr.LambdaLR(optimizer, factor)
    certificate = ga.certify(optimizer, scheduler, horizon=total)
    assert certificate.horizon.steps == total
    assert certificate.horizon.noise is not None
    written = certificate.algorithm.method.alpha.values(1, 401)
    assert written[:3] / written[0] == pytest.approx(
        [factor(k) / factor(0) * adam_correction(k + 1) / adam_correction(1) for k in range(3)]
    )


def adam_correction(t):
    return math.sqrt(1 - 0.999**t) / (1 - 0.9**t)


@pytest.mark.parametrize("name", [n for n in CLOSED if not n.startswith("ConstantLR, never")])
def test_a_scheduler_that_has_stepped_is_read_from_its_beginning(name):
    fresh, stepped = adam(), adam()
    expected = scheduled_rates(CLOSED[name](fresh), fresh)
    scheduler = CLOSED[name](stepped)
    real_run(stepped, scheduler, 124)
    (read,) = scheduled_rates(scheduler, stepped)
    np.testing.assert_allclose(read.rate.values(1, 500), expected[0].rate.values(1, 500), rtol=1e-12)


def test_what_cannot_be_told_after_stepping_is_refused():
    optimizer = adam()
    scheduler = Zigzag(optimizer)
    real_run(optimizer, scheduler, 10)
    with pytest.raises(OptimizerError, match="has been stepped 9 times"):
        scheduled_rates(scheduler, optimizer)


def test_a_rate_written_from_outside_is_noticed():
    optimizer = adam()
    scheduler = torch_lr.ExponentialLR(optimizer, 0.9)
    optimizer.param_groups[0]["lr"] = 0.7
    (read,) = scheduled_rates(scheduler, optimizer)
    assert isinstance(read.rate, Opaque)
    assert read.rate(2) == pytest.approx(0.63)


def test_a_subclass_is_not_taken_for_its_parent():
    class Doubled(torch_lr.ExponentialLR):
        def get_lr(self):
            return [2 * lr for lr in super().get_lr()]

    optimizer = adam()
    (read,) = scheduled_rates(Doubled(optimizer, 0.4), optimizer)
    assert isinstance(read.rate, Opaque)


def test_steps_per_scheduler_step_must_be_a_positive_whole_number():
    for bad in (0, -1, 2.5, True):
        with pytest.raises(OptimizerError, match="steps_per_scheduler_step"):
            Clock(bad)


def test_clock_follows_a_schedule():
    schedule = parse("min(1 / sqrt(t), 0.4) * exp(-t / 50) + (0.1 if t < 7 else t^-2) - abs(sin(t))")
    clock = Clock(3, start=2)
    moved = follow(schedule, clock)
    for t in range(clock.first_step(0), 200):
        assert moved(t) == pytest.approx(schedule((t - 1) // 3 - 2 + 1), rel=1e-12)
    with pytest.raises(ScheduleError, match="another clock"):
        follow(parse("bias_correction(0.9)"), clock)
    assert follow(parse("bias_correction(0.9)"), Clock()) is not None
