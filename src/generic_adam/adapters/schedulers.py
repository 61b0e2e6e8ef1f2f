"""The learning rates of schedulers in closed form, tail included: one small function each.

Every function takes the scheduler (or anything with its attributes), the index of a parameter group and a
`Clock`, and returns lr as a schedule of the optimizer's step t, or None where there is no closed form. They
describe what repeated `scheduler.step()` does, which for some arguments is not what torch's own
`_get_closed_form_lr` says. The tables name classes by their package, so that nothing is imported for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from generic_adam.adapters import shapes
from generic_adam.adapters.clock import Clock, between, follow, scaled
from generic_adam.adapters.updates import name_of
from generic_adam.methods.shapes import half_cosine
from generic_adam.schedules import Schedule, as_schedule, minimum, tree

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
    if len(scheduler.milestones) > 64:
        return None  # joins in joins
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
FACTORS: dict[str, Factor] = {
    "torch.ConstantLR": constant,
    "torch.LinearLR": linear,
    "torch.ExponentialLR": exponential,
    "torch.StepLR": step,
    "torch.MultiStepLR": multi_step,
    "torch.PolynomialLR": polynomial,
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
    return between(
        low, high, tree.Bounded(tree.Opaque(GrowingCycles(first, scheduler.T_mult, clock)), 0.0, 1.0)
    )


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
    inner, given = (function.func, function.keywords) if isinstance(function, partial) else (function, {})
    if getattr(inner, "__module__", "") == "transformers.optimization":
        shape = shapes.SHAPES_BY_FUNCTION.get(inner.__name__)
        if shape is not None and not getattr(function, "args", ()):
            return scaled(base, shape(clock, given))

    def of_step(t: int) -> float:
        return base * float(function((int(t) - 1) // clock.every - clock.start))

    return tree.Opaque(of_step, f"LambdaLR {getattr(function, '__qualname__', 'function')}")


def own_schedule(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """ScheduleLR: the schedule it was made of."""
    return follow(scheduler.schedules[group], clock)


def averaging(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """SWALR: from the base rate to swa_lr in anneal_epochs steps, then held."""
    first, length = base_rate(scheduler, group), scheduler.anneal_epochs
    last = float(scheduler.optimizer.param_groups[group]["swa_lr"])
    if length < 1:
        return as_schedule(last)
    if scheduler._anneal_strategy == "linear":
        return clock.switch(between(first, last, clock.count / length), length, last)
    return clock.switch(between(last, first, half_cosine(clock.count, length)), length, last)


# Schedulers that write a rate of their own, whatever they find; and the momenta that two of them write.
RATES: dict[str, LearningRate] = {
    "torch.CosineAnnealingLR": cosine,
    "torch.CosineAnnealingWarmRestarts": warm_restarts,
    "torch.OneCycleLR": one_cycle,
    "torch.CyclicLR": cyclic,
    "torch.LambdaLR": lambda_rate,
    "torch.SWALR": averaging,
    "generic_adam.ScheduleLR": own_schedule,
    "deepspeed.WarmupLR": shapes.deepspeed_warmup,
    "deepspeed.WarmupDecayLR": shapes.deepspeed_warmup_decay,
    "deepspeed.WarmupCosineLR": shapes.deepspeed_warmup_cosine,
    "timm.CosineLRScheduler": shapes.timm_cosine,
    "timm.TanhLRScheduler": shapes.timm_tanh,
    "timm.PolyLRScheduler": shapes.timm_polynomial,
    "timm.StepLRScheduler": shapes.timm_step,
    "timm.MultiStepLRScheduler": shapes.timm_multi_step,
}
MOMENTA: dict[str, LearningRate] = {"torch.OneCycleLR": one_cycle_beta, "torch.CyclicLR": cyclic_beta}


def closed_form(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None = None
) -> Schedule | None:
    """lr_t of one parameter group, or None where no closed form is known.

    Args:
        scheduler: the scheduler.
        group: the index of the parameter group.
        clock: the scheduler's time.
        replayed: lr_t by replay, for a beginning without a closed form before a tail that has one.
    """
    name = name_of(type(scheduler))
    if name in FACTORS:
        factor = FACTORS[name](scheduler, clock)
        return None if factor is None else scaled(base_rate(scheduler, group), factor)
    if name in RATES:
        return RATES[name](scheduler, group, clock)
    if name == "torch.SequentialLR":
        return _sequential(scheduler, group, clock, replayed)
    if name == "torch.ChainedScheduler":
        product = _chained(scheduler, group, clock)
        return _chained_from_cosine_on(scheduler, group, clock, replayed) if product is None else product
    return None


def _sequential(scheduler: Any, group: int, clock: Clock, replayed: Schedule | None) -> Schedule | None:
    """SequentialLR: each scheduler from its milestone on, counting from 0 again whatever came before."""
    children, milestones = scheduler._schedulers, scheduler._milestones
    phases = [
        _phase(child, group, clock.later(start))
        for child, start in zip(children, [0, *milestones], strict=True)
    ]
    result = phases[-1]
    for phase, end in zip(reversed(phases[:-1]), reversed(milestones), strict=True):
        known = replayed if phase is None else phase
        result = None if known is None or result is None else clock.switch(known, end, result)
    return result


def _phase(child: Any, group: int, clock: Clock) -> Schedule | None:
    """One part of a SequentialLR, or None where its beginning inside the sequence is another than alone."""
    # Nested compositions count differently from one torch version to the next, SWALR starts from the rate it
    # finds, and a phase that moves beta leaves it where it was afterwards.
    plain = name_of(type(child)) in {*FACTORS, *RATES} - {"torch.SWALR"}
    moves_beta, never_restored = getattr(child, "cycle_momentum", False), getattr(child, "total_iters", 1) < 1
    return closed_form(child, group, clock) if plain and not moves_beta and not never_restored else None


def _chained(scheduler: Any, group: int, clock: Clock) -> Schedule | None:
    """ChainedScheduler: the product, where every part multiplies the rate it finds."""
    children = scheduler._schedulers
    result = as_schedule(float(children[0].optimizer.param_groups[group]["initial_lr"]))
    for child in children:
        factor = _factor_in_chain(child, children, clock)
        if factor is None:
            return None
        result = result * factor
    return result


def _factor_in_chain(child: Any, children: Sequence[Any], clock: Clock) -> Schedule | None:
    if name_of(type(child)) in FACTORS:
        return FACTORS[name_of(type(child))](child, clock)
    # A cosine to 0 multiplies too, until it starts again from 0 after T_max by adding: from there on the
    # product is right only where all other parts have come back to a factor of 1.
    others = [other for other in children if other is not child]
    if (
        name_of(type(child)) == "torch.CosineAnnealingLR"
        and child.eta_min == 0
        and all(_is_warm_up(other, child.T_max) for other in others)
    ):
        return clock.repeating(2 * child.T_max, lambda k: half_cosine(k, child.T_max))
    return None


def _chained_from_cosine_on(
    scheduler: Any, group: int, clock: Clock, replayed: Schedule | None
) -> Schedule | None:
    """ChainedScheduler of a cosine to eta_min > 0 and warm-ups: the cosine alone, once it was at eta_min.

    Before, each step of a warm-up scales eta_min too, and the cosine carries on from there: a recursion.
    """
    cosines = [child for child in scheduler._schedulers if name_of(type(child)) == "torch.CosineAnnealingLR"]
    if replayed is None or len(cosines) != 1:
        return None
    (annealing,) = cosines
    others = [child for child in scheduler._schedulers if child is not annealing]
    if not all(_is_warm_up(other, annealing.T_max - 1) for other in others):
        return None
    return clock.switch(replayed, annealing.T_max, cosine(annealing, group, clock))


def _is_warm_up(scheduler: Any, steps: int) -> bool:
    """Whether the scheduler's factor is 1 from some step before `steps` on."""
    name = name_of(type(scheduler))
    returns = name == "torch.ConstantLR" or (name == "torch.LinearLR" and scheduler.end_factor == 1)
    return returns and 1 <= scheduler.total_iters <= steps
