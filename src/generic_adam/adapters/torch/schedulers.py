"""The learning rates of torch's schedulers in closed form, tail included: one small function each.

Every function takes the scheduler, the index of a parameter group and a `Clock`, and returns lr as a schedule
of the optimizer's step t, or None where there is no closed form. They describe what repeated
`scheduler.step()` does, which for some arguments is not what torch's own `_get_closed_form_lr` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from torch.optim import lr_scheduler as torch_lr

from generic_adam.adapters.clock import Clock, between, follow, scaled
from generic_adam.adapters.warmup_shapes import SHAPES_BY_FUNCTION
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Bounded, Opaque, Schedule, as_schedule, minimum
from generic_adam.torch import ScheduleLR

LearningRate = Callable[[Any, int, Clock], Schedule | None]
Factor = Callable[[Any, Clock], Schedule | None]


def base_rate(scheduler: Any, group: int) -> float:
    """The learning rate that the scheduler's factors multiply."""
    return float(scheduler.base_lrs[group])


def constant(scheduler: Any, clock: Clock) -> Schedule | None:
    """ConstantLR: `factor` for the first total_iters steps, then 1."""
    if scheduler.total_iters < 1:
        return as_schedule(float(scheduler.factor))  # the step that would restore the rate is never met
    return clock.switch(float(scheduler.factor), scheduler.total_iters, 1)


def linear(scheduler: Any, clock: Clock) -> Schedule | None:
    """LinearLR: from start_factor to end_factor in equal steps, then held."""
    start, end, total = float(scheduler.start_factor), float(scheduler.end_factor), scheduler.total_iters
    if total < 1:
        return as_schedule(start)
    ramp = as_schedule(start) + (as_schedule(end) - start) * clock.count / total
    return clock.switch(ramp, total, end)


def exponential(scheduler: Any, clock: Clock) -> Schedule | None:
    """ExponentialLR: gamma^k."""
    return clock.staircase(float(scheduler.gamma)) if scheduler.gamma > 0 else None


def step(scheduler: Any, clock: Clock) -> Schedule | None:
    """StepLR: gamma^floor(k / step_size)."""
    return clock.staircase(float(scheduler.gamma), scheduler.step_size) if scheduler.gamma > 0 else None


def multi_step(scheduler: Any, clock: Clock) -> Schedule | None:
    """MultiStepLR: a factor gamma at each milestone."""
    gamma, passed = as_schedule(float(scheduler.gamma)), scheduler.milestones.total()
    factor = gamma**passed
    for milestone, times in sorted(scheduler.milestones.items(), reverse=True):
        passed -= times
        factor = clock.switch(gamma**passed, milestone, factor)
    return factor


def polynomial(scheduler: Any, clock: Clock) -> Schedule | None:
    """PolynomialLR: (1 - k/total_iters)^power, then 0 for ever."""
    total = scheduler.total_iters
    return clock.switch((1 - clock.count / total) ** as_schedule(float(scheduler.power)), total, 0)


# Schedulers whose step multiplies the rate it finds, so that several of them multiply each other.
FACTORS: dict[type, Factor] = {
    torch_lr.ConstantLR: constant,
    torch_lr.LinearLR: linear,
    torch_lr.ExponentialLR: exponential,
    torch_lr.StepLR: step,
    torch_lr.MultiStepLR: multi_step,
    torch_lr.PolynomialLR: polynomial,
}


def cosine(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """CosineAnnealingLR: down to eta_min at T_max, up again, with period 2 T_max."""
    low, high = float(scheduler.eta_min), base_rate(scheduler, group)
    return clock.repeating(2 * scheduler.T_max, lambda k: between(low, high, half_cosine(k, scheduler.T_max)))


def warm_restarts(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """CosineAnnealingWarmRestarts: cosine from the base rate to eta_min, in cycles of T_0, T_0 T_mult, ..."""
    low, high, first = float(scheduler.eta_min), base_rate(scheduler, group), scheduler.T_0
    if scheduler.T_mult == 1:
        return clock.repeating(first, lambda k: between(low, high, half_cosine(k, first)))
    return between(low, high, Bounded(Opaque(GrowingCycles(first, scheduler.T_mult, clock)), 0.0, 1.0))


class GrowingCycles:
    """(1 + cos(pi x)) / 2, with x the position in cycles that grow by a whole factor."""

    def __init__(self, first: int, factor: int, clock: Clock) -> None:
        self.first, self.factor, self.clock = first, factor, clock

    def __call__(self, t: int) -> float:
        """The value at optimizer step t."""
        position, length = (t - 1) // self.clock.every - self.clock.start, self.first
        while position >= length:
            position, length = position - length, length * self.factor
        return (1 + math.cos(math.pi * position / length)) / 2


def one_cycle(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """OneCycleLR: two or three phases; after total_steps, where torch leaves its curve, the last is held."""
    values = scheduler.optimizer.param_groups[group]
    return _phases(scheduler, clock, values, "lr")


def one_cycle_beta(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """The momentum that OneCycleLR writes: high where the rate is low."""
    values = scheduler.optimizer.param_groups[group]
    return _phases(scheduler, clock, values, "momentum") if scheduler.cycle_momentum else None


def _phases(scheduler: Any, clock: Clock, values: Any, what: str) -> Schedule:
    phases = scheduler._schedule_phases
    ends = [0.0, *(float(phase["end_step"]) for phase in phases)]
    result = as_schedule(float(values[phases[-1][f"end_{what}"]]))
    threshold = scheduler.total_steps
    for (start, end), phase in reversed(list(zip(pairwise(ends), phases, strict=True))):
        first, last = float(values[phase[f"start_{what}"]]), float(values[phase[f"end_{what}"]])
        position, length = clock.count - start, max(end - start, 1)  # a phase of no length is never entered
        if scheduler._anneal_func_type == "linear":
            curve = between(first, last, position / length)
        else:
            curve = between(last, first, half_cosine(position, length))
        result = clock.switch(curve, threshold, result)
        threshold = math.floor(start) + 1
    return result


def cyclic(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """CyclicLR: a triangle from base_lr to max_lr, its height constant, halved each cycle, or geometric."""
    height = _triangle(scheduler, clock)
    if height is None:
        return None
    low, high = base_rate(scheduler, group), float(scheduler.max_lrs[group])
    return between(low, high, height)


def cyclic_beta(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """The momentum that CyclicLR writes: max_momentum minus the same triangle."""
    height = _triangle(scheduler, clock)
    if not scheduler.cycle_momentum or height is None:
        return None
    low, high = float(scheduler.base_momentums[group]), float(scheduler.max_momentums[group])
    return between(high, low, height)


def _triangle(scheduler: Any, clock: Clock) -> Schedule | None:
    length = scheduler.total_size
    up = scheduler.step_ratio * length
    if scheduler._scale_fn_custom is not None or length != round(length):
        return None
    period, rise = round(length), round(up)
    if not 0 < rise < period or abs(up - rise) > 1e-6:
        return None
    triangle = clock.repeating(period, lambda k: minimum(k / rise, (period - k) / (period - rise)))
    if scheduler.mode == "triangular2":
        return triangle * clock.staircase(0.5, period)
    if scheduler.mode == "exp_range":
        return triangle * clock.staircase(float(scheduler.gamma)) if scheduler.gamma > 0 else None
    return triangle


def lambda_rate(scheduler: Any, group: int, clock: Clock) -> Schedule:
    """LambdaLR: base * function(k), opaque unless the function carries a schedule or is one of transformers'.

    A function carries a schedule u when it has an attribute `schedule` and function(k) = u(k + 1), as
    `generic_adam.torch.ScheduleFactor` has.
    """
    function, base = scheduler.lr_lambdas[group], base_rate(scheduler, group)
    carried = getattr(function, "schedule", None)
    if isinstance(carried, Schedule):
        followed = follow(carried, clock)
        if followed is not None:
            return scaled(base, followed)
    if isinstance(function, partial) and function.func.__module__ == "transformers.optimization":
        shape = SHAPES_BY_FUNCTION.get(function.func.__name__)
        factor = shape(clock, function.keywords) if shape is not None and not function.args else None
        if factor is not None:
            return scaled(base, factor)

    def of_step(t: int) -> float:
        return base * float(function((int(t) - 1) // clock.every - clock.start))

    return Opaque(of_step, f"LambdaLR {getattr(function, '__qualname__', 'function')}")


def own_schedule(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """ScheduleLR: the schedule it was made of."""
    return follow(scheduler.schedules[group], clock)


# Schedulers that write a rate of their own, whatever they find; and the momenta that two of them write.
RATES: dict[type, LearningRate] = {
    torch_lr.CosineAnnealingLR: cosine,
    torch_lr.CosineAnnealingWarmRestarts: warm_restarts,
    torch_lr.OneCycleLR: one_cycle,
    torch_lr.CyclicLR: cyclic,
    torch_lr.LambdaLR: lambda_rate,
    ScheduleLR: own_schedule,
}
MOMENTA: dict[type, LearningRate] = {torch_lr.OneCycleLR: one_cycle_beta, torch_lr.CyclicLR: cyclic_beta}
