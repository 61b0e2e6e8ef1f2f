"""Learning rates in closed form, tail included: one declaration for each scheduler, whoever hands it over.

A form takes the scheduler's settings for one parameter group under the scheduler's own names, and a `Clock`; a
live scheduler, a configuration file and a closure fill in the same names. `FACTORS` multiply the base rate,
`RATES` write a rate of their own; a form raises where there is none, and the scheduler is then replayed. They
describe what repeated `scheduler.step()` does, which for some arguments is not what torch's own
`_get_closed_form_lr` says. Classes are named by their package, so that nothing is imported for them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.adapters.clock import Called, Clock, Part, follow, ramp, scaled, stages
from generic_adam.adapters.updates import name_of
from generic_adam.errors import OptimizerError, ScheduleError, shown
from generic_adam.methods.shapes import between, curve, half_cosine, power
from generic_adam.schedules import Schedule, as_schedule, maximum, minimum, sqrt, tree

Form = Callable[[Any, Clock], Schedule]
Nested = tuple[str, Any]
"""A scheduler inside another: its name in the tables, and its settings."""

_OF_GROUP = ("base_lrs", "max_lrs", "min_lrs", "org_lrs", "lr_lambdas", "schedules")


def settings_of(scheduler: Any, group: int) -> Nested:
    """Return a live scheduler's name and its settings for one parameter group: the group's options, its attributes.

    What transformers makes is a LambdaLR of a function with arguments.
    """
    name = name_of(type(scheduler))
    found = {**scheduler.optimizer.param_groups[group], **vars(scheduler)}
    found |= {one: found[one][group] for one in _OF_GROUP if one in found}
    if "_schedulers" in found:
        found["_schedulers"] = [settings_of(one, group) for one in scheduler._schedulers]
    function = found.get("lr_lambdas")
    inner, given = (function.func, function.keywords) if isinstance(function, partial) else (function, {})
    theirs = getattr(inner, "__module__", "") == "transformers.optimization" and not getattr(function, "args", ())
    kind = _TRANSFORMERS_FUNCTIONS.get(getattr(inner, "__name__", "")) if theirs and name == "torch.LambdaLR" else None
    if kind is not None:
        name, found = f"transformers.{kind}", TRANSFORMERS[kind][1] | found | given
    return name, SimpleNamespace(**plain(found))


def steps_of_run(settings: Any) -> int | None:
    """Return the scheduler's steps in the run, where its settings name them; torch's T_max is half a period."""
    names = ("num_training_steps", "total_num_steps", "total_steps")
    return next((one for name in names if (one := getattr(settings, name, None))), None)


def parameters(optimizer: Any) -> dict[int, Any]:
    """Return the parameters by identity, for a deep copy to leave: a model's method would bring all its weights."""
    return {id(one): one for group in optimizer.param_groups for one in group["params"]}


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with a tensor or an array of one number as that number."""
    return {name: one.item() if hasattr(one, "item") else one for name, one in settings.items()}


def closed_form(name: str, settings: Any, clock: Clock) -> Schedule:
    """Return lr_t of a scheduler by its name in the tables; anything may be raised where it has no closed form."""
    if name in RATES:
        return RATES[name](settings, clock)
    return scaled(settings.base_lrs, _factor(name, settings, clock))


def _factor(name: str, settings: Any, clock: Clock) -> Schedule:
    if name not in FACTORS:
        raise ScheduleError(f"{name.partition('.')[2]} has no closed form here")
    return FACTORS[name](settings, clock)


def drops(clock: Clock, first: float, factors: Iterable[tuple[int, float]]) -> Schedule:
    """Return `first`, and from each count on times its factor."""
    value, parts = as_schedule(first), []
    for count, factor in factors:
        parts.append((count, value))
        value = value * as_schedule(factor)
    return stages(clock, parts, value)


# Torch.


def _multi_step(s: Any, clock: Clock) -> Schedule:
    counts = sorted(s.milestones.elements())
    if counts and counts[0] < 0:  # never met alone, and counted where a sequence enters it
        raise ScheduleError("milestones below 0 have no closed form")
    return drops(clock, 1, [(count, s.gamma) for count in counts])


def _warm_restarts(s: Any, clock: Clock) -> Schedule:
    """Return a cosine from the base rate to eta_min, again and again."""
    if s.T_mult != 1:
        raise ScheduleError("cycles that grow have no closed form")
    return clock.repeating(s.T_0, lambda k: between(s.eta_min, s.base_lrs, half_cosine(k, s.T_0)))


def _one_cycle(what: str) -> Form:
    """Return OneCycleLR's rate or momentum, in two or three phases; after the end the last value is held."""

    def form(s: Any, clock: Clock) -> Schedule:
        ends = [0.0, *(float(phase["end_step"]) for phase in s._schedule_phases)]
        low, high, last = (
            (s.initial_lr, s.max_lr, s.min_lr) if what == "lr" else (s.max_momentum, s.base_momentum, s.max_momentum)
        )
        levels = [low, high, last] if len(ends) == 3 else [low, high, low, last]
        # A phase may begin between two counts; one of no length is never entered.
        curves = [
            curve(first, last, clock.count - start, end - start if end > start else 1, s._anneal_func_type)
            for (start, end), (first, last) in zip(pairwise(ends), pairwise(levels), strict=True)
        ]
        switches = [*(math.floor(end) + 1 for end in ends[1:-1]), s.total_steps]
        return stages(clock, zip(switches, curves, strict=True), levels[-1])

    return form


@dataclass(frozen=True)
class _Factor:
    """base * function(k) for each k."""

    function: Callable[[int], Any]
    base: float

    def __call__(self, counts: npt.NDArray[np.int64]) -> list[float]:
        return [self.base * float(self.function(count)) for count in counts.tolist()]


def _lambda(s: Any, clock: Clock) -> Schedule:
    """Return base * function(k) as an opaque schedule."""
    # An object of the user's may change when it is called.
    function = copy.deepcopy(s.lr_lambdas, parameters(s.optimizer))
    label = f"LambdaLR {getattr(function, '__qualname__', 'function')}"
    return tree.Opaque(Called(_Factor(function, s.base_lrs), clock), label)


def sequence(parts: Sequence[Nested], ends: Sequence[int], clock: Clock) -> Schedule:
    """Return each scheduler from the end of the one before on, counting from 0 again whatever came before."""
    if list(ends) != sorted(ends):
        raise ScheduleError(f"the milestones {list(ends)} do not rise")
    *forms, tail = [_phase(*part, clock.later(start)) for part, start in zip(parts, [0, *ends], strict=True)]
    return stages(clock, zip(ends, forms, strict=True), tail)


def _sequential(s: Any, clock: Clock) -> Schedule:
    """SequentialLR, whose present part may have been stepped apart from it."""
    count = getattr(s, "last_epoch", 0)
    begun = [0, *(end for end in s._milestones if end <= count)]
    _, part = s._schedulers[len(begun) - 1]
    if getattr(part, "last_epoch", count - begun[-1]) != count - begun[-1]:
        raise ScheduleError("a part that has not been stepped with its sequence has no closed form")
    return sequence(s._schedulers, s._milestones, clock)


def _phase(name: str, s: Any, clock: Clock) -> Schedule:
    """Return one part of a sequence; raise where its beginning inside the sequence is another than alone."""
    # Nested compositions count differently from one torch version to the next, and OneCycleLR ends.
    apart = name in {"torch.OneCycleLR", "torch.SequentialLR", "torch.ChainedScheduler"}
    if apart or getattr(s, "total_iters", 1) < 1:
        raise ScheduleError(f"{name} inside a sequence has no closed form")
    return closed_form(name, s, clock)


def _chained(s: Any, clock: Clock) -> Schedule:
    """ChainedScheduler: the product, where every part multiplies the rate it finds."""
    if len({getattr(own, "last_epoch", 0) for _, own in s._schedulers}) > 1:
        raise ScheduleError("schedulers that have not been stepped together have no closed form")
    product = as_schedule(s._schedulers[0][1].base_lrs)
    for name, own in s._schedulers:
        product = product * _factor(name, own, clock)
    return product


# Transformers: factors on the base rate, after a warm-up from 0 in a line.


def _rise(s: Any) -> tuple[int, Part]:
    return s.num_warmup_steps, ramp(0, 1, max(1, s.num_warmup_steps))


def _length(s: Any) -> int:
    return max(1, s.num_training_steps - s.num_warmup_steps)


def _wave(s: Any, ahead: int = 0) -> Part:
    """num_cycles waves down to the least rate over the rest of the run, going on beyond its end."""
    lowest, length = float(getattr(s, "min_lr_rate", None) or 0.0), _length(s)

    def shape(k: Schedule) -> Schedule:
        return between(lowest, 1.0, half_cosine(k + ahead, length / (2 * s.num_cycles)))

    period = length / s.num_cycles
    return lambda clock: clock.repeating(round(period), shape) if period % 1 == 0 else shape(clock.count)


def _wave_from_first_step(s: Any, clock: Clock) -> Schedule:
    """As cosine, but the warm-up starts above 0 and all is one step earlier."""
    steps, start = s.num_warmup_steps, s.warmup_lr_rate
    rise = ramp(0, 1, max(1, steps), ahead=1) if start is None else ramp(start, 1, max(1, steps - 1))
    return stages(clock, [(steps, rise)], _wave(s, 1))


def _restarts(s: Any, clock: Clock) -> Schedule:
    """num_cycles half waves, each from where rounding puts its beginning, then 0."""
    start, length, cycles = s.num_warmup_steps, _length(s), int(s.num_cycles)

    def first(cycle: int) -> int:
        k = max(0, cycle * length // cycles - 1)
        while float(cycles) * (k / length) < cycle:
            k += 1
        return k

    after = clock.later(start).count
    waves = (
        (start + first(n + 1), half_cosine(after - as_schedule(length) * n / cycles, length / cycles))
        for n in range(cycles)
    )
    return stages(clock, chain([_rise(s)], waves), 0)


def _inverse_sqrt(s: Any, clock: Clock) -> Schedule:
    warm = s.num_warmup_steps
    timescale = s.timescale or warm or 10_000
    return stages(clock, [_rise(s)], 1 / sqrt((clock.count + (timescale - warm)) / timescale))


def _warmup_stable_decay(s: Any, clock: Clock) -> Schedule:
    """Up, flat, down to min_lr_ratio, where it stays."""
    warm, decay, low = s.num_warmup_steps, s.num_decay_steps, s.min_lr_ratio
    fall = s.num_training_steps - decay if s.num_stable_steps is None else warm + s.num_stable_steps
    up = power(0.5) if s.warmup_type == "1-sqrt" else s.warmup_type
    wave = decay / (2 * s.num_cycles) if s.decay_type == "cosine" else decay
    begun = max(0, warm - fall)  # a decay that is longer than what the warm-up leaves is entered in its middle
    down = ramp(1, low, wave, s.decay_type, ahead=begun)
    return stages(clock, [(warm, ramp(low, 1, max(1, warm), up)), (fall, 1), (fall + decay, down)], low)


_LEAST = {"num_cycles": 0.5, "min_lr": None, "min_lr_rate": None}
TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "constant": ("constant_schedule", {}),
    "constant_with_warmup": ("constant_schedule_with_warmup", {}),
    "linear": ("linear_schedule_with_warmup", {}),
    "cosine": ("cosine_schedule_with_warmup", {"num_cycles": 0.5}),
    "cosine_with_restarts": ("cosine_with_hard_restarts_schedule_with_warmup", {"num_cycles": 1}),
    "cosine_with_min_lr": ("cosine_with_min_lr_schedule_with_warmup", _LEAST),
    "cosine_warmup_with_min_lr": ("cosine_with_min_lr_schedule_with_warmup_lr_rate", _LEAST | {"warmup_lr_rate": None}),
    "polynomial": ("polynomial_decay_schedule_with_warmup", {"lr_end": 1e-7, "power": 1.0}),
    "inverse_sqrt": ("inverse_sqrt_schedule", {"timescale": None}),
    "warmup_stable_decay": (
        "wsd_schedule",
        {"num_decay_steps": int, "num_stable_steps": None, "warmup_type": "linear", "decay_type": "cosine"}
        | {"min_lr_ratio": 0.0, "num_cycles": 0.5},
    ),
}
"""The names of `transformers.get_scheduler`: what follows get_ in each one's function, and its arguments beside the
numbers of steps with their defaults; a type for what has to be given."""

# The functions inside the LambdaLR that those build.
_TRANSFORMERS_FUNCTIONS = {f"_get_{getter}_lr_lambda": name for name, (getter, _) in TRANSFORMERS.items()} | {
    "_get_constant_lambda": "constant",
    "_get_cosine_with_min_lr_schedule_with_warmup_lr_rate_lambda": "cosine_warmup_with_min_lr",
    "_get_wsd_scheduler_lambda": "warmup_stable_decay",
}


def transformers_rate(kind: str, base: float, given: Mapping[str, Any], clock: Clock | None = None) -> Schedule:
    """lr_t of `transformers.get_scheduler`: its name, the base rate, and its arguments."""
    if kind in {"reduce_lr_on_plateau", "greedy"}:
        raise OptimizerError(f"lr_scheduler_type {kind!r} depends on the data: there is no sequence to read")
    if kind not in TRANSFORMERS:
        said = f"has no known closed form; expected one of {', '.join(TRANSFORMERS)}"
        raise OptimizerError(f"lr_scheduler_type {kind!r} {said}")
    _, declared = TRANSFORMERS[kind]
    unknown = given.keys() - declared.keys() - {"num_warmup_steps", "num_training_steps"}
    settings = {name: one for name, one in declared.items() if not isinstance(one, type)}
    settings |= {"base_lrs": base, "lr_init": base, **given}
    try:
        if unknown and not kind.startswith("constant"):  # to those, transformers hands on nothing
            raise OptimizerError(f"it takes no {', '.join(sorted(unknown))}")
        least, share = settings.get("min_lr"), settings.get("min_lr_rate")
        if kind.endswith("with_min_lr") and (least is None) is (share is None):
            raise OptimizerError("expected min_lr or min_lr_rate, one of the two")
        settings["min_lr_rate"] = share if least is None else float(least) / base
        return closed_form(f"transformers.{kind}", SimpleNamespace(**settings), clock or Clock())
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        lacks = f"{error.name} is missing" if isinstance(error, AttributeError) else error
        raise OptimizerError(f"lr_scheduler_kwargs {shown(given)} do not fit {kind!r}: {lacks}") from error


# DeepSpeed, whose count is -1 before the first step of the scheduler: k - 1.


def _deepspeed(s: Any, clock: Clock, low: float, high: float, first: float, *rest: Any) -> Schedule:
    """`first` at k = 0, then from low to high in a logarithm or a line, then the rest: parts and a tail."""
    rise = ramp(low, high, s.warmup_num_steps, s.warmup_type)
    return stages(clock, [(1, first), (s.warmup_num_steps + 1, rise), *rest[:-1]], rest[-1])


def _deepspeed_decay(s: Any, clock: Clock) -> Schedule:
    low, high, total = s.min_lrs, s.max_lrs, s.total_num_steps
    fall = (total + 1, ramp(high, low, total - s.warmup_num_steps))
    return _deepspeed(s, clock, low, high, low, fall, low)


def _deepspeed_cosine(s: Any, clock: Clock) -> Schedule:
    base, last, total = s.org_lrs, s.cos_min_ratio * s.org_lrs, s.total_num_steps
    fall = (total, ramp(base, last, max(1, total - s.warmup_num_steps), "cos", ahead=1))
    return _deepspeed(s, clock, s.warmup_min_ratio * base, base, 0.0, fall, last)


# Optax.


def _optax_polynomial(s: Any, clock: Clock) -> Schedule:
    """linear_schedule and polynomial_schedule: held before and after."""
    begin, length = int(s.transition_begin), int(s.transition_steps)
    fall = ramp(s.init_value, s.end_value, length, power(s.power))
    return stages(clock, [(begin, s.init_value), (begin + length, fall)], s.end_value)


def _optax_cosine(s: Any, clock: Clock) -> Schedule:
    if s.exponent != 1:
        raise ScheduleError("a power of a cosine has no closed form here")
    length, last = int(s.decay_steps), s.init_value * s.alpha
    return stages(clock, [(length, ramp(s.init_value, last, length, "cos"))], last)


def _optax_exponential(s: Any, clock: Clock) -> Schedule:
    """In stairs or not, cut off at end_value."""
    begin, length, rate = int(s.transition_begin), int(s.transition_steps), s.decay_rate

    def fall(later: Clock) -> Schedule:
        stairs = later.staircase(rate, length) if s.staircase else as_schedule(rate) ** (later.count / length)
        return s.init_value * stairs

    result = stages(clock, [(begin, s.init_value)], fall)
    if s.end_value is None:
        return result
    return (maximum if rate < 1 else minimum)(result, s.end_value)


FACTORS: dict[str, Form] = {
    # The step that would end a ConstantLR or a LinearLR of no length is never met.
    "torch.ConstantLR": lambda s, c: stages(c, [(s.total_iters, s.factor)], 1 if s.total_iters > 0 else s.factor),
    "torch.LinearLR": lambda s, c: stages(
        c,
        [(s.total_iters, ramp(s.start_factor, s.end_factor, s.total_iters))],
        s.end_factor if s.total_iters > 0 else s.start_factor,
    ),
    "torch.ExponentialLR": lambda s, c: c.staircase(s.gamma),
    "torch.StepLR": lambda s, c: c.staircase(s.gamma, s.step_size),
    "torch.MultiStepLR": _multi_step,
    # A power of 0 never falls: Python's 0**0 is 1.
    "torch.PolynomialLR": lambda s, c: stages(
        c, [(s.total_iters, ramp(1, 0, s.total_iters, power(s.power)))], 0**s.power
    ),
    "transformers.constant": lambda _s, _c: as_schedule(1),
    "transformers.constant_with_warmup": lambda s, c: stages(c, [_rise(s)], 1),
    "transformers.linear": lambda s, c: stages(c, [_rise(s), (s.num_training_steps, ramp(1, 0, _length(s)))], 0),
    "transformers.cosine": lambda s, c: stages(c, [_rise(s)], _wave(s)),
    "transformers.cosine_with_restarts": _restarts,
    "transformers.cosine_with_min_lr": lambda s, c: stages(c, [_rise(s)], _wave(s)),
    "transformers.cosine_warmup_with_min_lr": _wave_from_first_step,
    "transformers.polynomial": lambda s, c: stages(
        c,
        [_rise(s), (s.num_training_steps + 1, ramp(1, s.lr_end / s.lr_init, _length(s), power(s.power)))],
        s.lr_end / s.lr_init,
    ),
    "transformers.inverse_sqrt": _inverse_sqrt,
    "transformers.warmup_stable_decay": _warmup_stable_decay,
}
RATES: dict[str, Form] = {
    "torch.CosineAnnealingLR": lambda s, c: c.repeating(
        2 * s.T_max, lambda k: between(s.eta_min, s.base_lrs, half_cosine(k, s.T_max))
    ),
    "torch.CosineAnnealingWarmRestarts": _warm_restarts,
    "torch.OneCycleLR": _one_cycle("lr"),
    "torch.LambdaLR": _lambda,
    "torch.SequentialLR": _sequential,
    "torch.ChainedScheduler": _chained,
    "generic_adam.ScheduleLR": lambda s, c: follow(s.schedules, c),
    "deepspeed.WarmupLR": lambda s, c: _deepspeed(s, c, s.min_lrs, s.max_lrs, s.min_lrs, s.max_lrs),
    "deepspeed.WarmupDecayLR": _deepspeed_decay,
    "deepspeed.WarmupCosineLR": _deepspeed_cosine,
    "optax.constant": lambda s, _c: as_schedule(s.value),
    "optax.polynomial_schedule": _optax_polynomial,
    "optax.cosine_decay_schedule": _optax_cosine,
    "optax.exponential_decay": _optax_exponential,
    "optax.piecewise_constant_schedule": lambda s, c: drops(
        c, s.init_value, [(int(k), float(one)) for k, one in sorted((s.boundaries_and_scales or {}).items())]
    ),
    "optax.join_schedules": lambda s, c: sequence(s.schedules, list(map(int, s.boundaries)), c),
}
one_cycle_momentum = _one_cycle("momentum")
"""The momentum that goes with OneCycleLR's rate where `cycle_momentum` is set: high where the rate is low."""
