"""Learning rates in closed form, tail included: one declaration for each scheduler, whoever hands it over.

A form takes the scheduler's settings for one parameter group under the scheduler's own names, and a `Clock`; a
live scheduler, a configuration file and a closure fill in the same names. `FACTORS` multiply the base rate,
`RATES` write a rate of their own, `MOMENTA` the beta that goes with it; a form raises where there is none. They
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
from generic_adam.methods.shapes import Shape, between, curve, half_cosine, power
from generic_adam.schedules import Schedule, as_schedule, exp, maximum, minimum, sqrt, tree

Form = Callable[[Any, Clock], Schedule]
Nested = tuple[str, Any]
"""A scheduler inside another: its name in the tables, and its settings."""

_OF_GROUP = ("base_lrs", "max_lrs", "min_lrs", "org_lrs", "base_values", "warmup_steps", "base_momentums")
_OF_GROUP += ("max_momentums", "lr_lambdas", "schedules")


def settings_of(scheduler: Any, group: int, replayed: Schedule | None = None) -> Nested:
    """The name of a live scheduler and its settings for one parameter group: the group's options and the attributes.

    What transformers makes is a LambdaLR of a function with arguments. `replayed` is lr_t by replay, for a beginning
    without a closed form before a tail that has one.
    """
    name = name_of(type(scheduler))
    found = {**scheduler.optimizer.param_groups[group], **vars(scheduler), "replayed": replayed}
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
    """The steps of the scheduler in the run, where its settings name them; torch's T_max is half a period."""
    names = ("num_training_steps", "total_num_steps", "total_steps")
    return next((one for name in names if (one := getattr(settings, name, None))), None)


def parameters(optimizer: Any) -> dict[int, Any]:
    """What a deep copy leaves as it is: a method of a model would bring all its weights with it."""
    return {id(one): one for group in optimizer.param_groups for one in group["params"]}


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A tensor or an array of one number is its number."""
    return {name: one.item() if hasattr(one, "item") else one for name, one in settings.items()}


def closed_form(name: str, settings: Any, clock: Clock) -> Schedule:
    """lr_t of a scheduler by its name in the tables; anything may be raised where it has no closed form."""
    if name in RATES:
        return RATES[name](settings, clock)
    return scaled(settings.base_lrs, _factor(name, settings, clock))


def _factor(name: str, settings: Any, clock: Clock) -> Schedule:
    if name not in FACTORS:
        raise ScheduleError(f"{name.partition('.')[2]} has no closed form here")
    return FACTORS[name](settings, clock)


def drops(clock: Clock, first: float, factors: Iterable[tuple[int, float]]) -> Schedule:
    """`first`, and from each count on times its factor."""
    value, parts = as_schedule(first), []
    for count, factor in factors:
        parts.append((count, value))
        value = value * as_schedule(factor)
    return stages(clock, parts, value)


# Torch.


def _averaging(s: Any, clock: Clock) -> Schedule:
    """SWALR: one ramp to its own rate. Older releases of torch keep the ramp as a function, newer by name."""
    shape = getattr(s, "_anneal_strategy", None) or s.anneal_func.__name__
    ramped = ramp(s.base_lrs, s.swa_lr, s.anneal_epochs, "linear" if "linear" in shape else "cos")
    return stages(clock, [(s.anneal_epochs, ramped)], s.swa_lr)


def _multi_step(s: Any, clock: Clock) -> Schedule:
    counts = sorted(s.milestones.elements())
    if counts and counts[0] < 0:  # never met alone, and counted where a sequence enters it
        raise ScheduleError("milestones below 0 have no closed form")
    return drops(clock, 1, [(count, s.gamma) for count in counts])


def _warm_restarts(s: Any, clock: Clock) -> Schedule:
    """Cosine from the base rate to eta_min, in cycles of T_0, T_0 T_mult, ..."""
    if s.T_mult == 1:
        return clock.repeating(s.T_0, lambda k: between(s.eta_min, s.base_lrs, half_cosine(k, s.T_0)))

    def height(k: int) -> float:
        length = s.T_0
        while k >= length:
            k, length = k - length, length * s.T_mult
        return (1 + math.cos(math.pi * k / length)) / 2

    cycles = tree.Opaque(Called(lambda counts: list(map(height, counts.tolist())), clock))
    return between(s.eta_min, s.base_lrs, tree.Bounded(cycles, 0.0, 1.0))


def _one_cycle(what: str) -> Form:
    """OneCycleLR's rate or momentum: two or three phases; after total_steps, where torch ends, the last is held."""

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


def _triangle(s: Any, clock: Clock) -> Schedule:
    """CyclicLR's height: a triangle, constant, halved each cycle, or geometric."""
    period, rise = round(s.total_size), round(s.step_ratio * s.total_size)
    exact = period == s.total_size and abs(s.step_ratio * s.total_size - rise) <= 1e-6
    if getattr(s, "_scale_fn_custom", None) is not None or not exact or not 0 < rise < period:
        raise ScheduleError("CyclicLR has a closed form for whole steps and a mode of torch's")
    triangle = clock.repeating(period, lambda k: minimum(k / rise, (period - k) / (period - rise)))
    if s.mode == "triangular2":
        return triangle * clock.staircase(0.5, period)
    return triangle * clock.staircase(s.gamma) if s.mode == "exp_range" else triangle


@dataclass(frozen=True)
class _Factor:
    """base * function(k) for each k."""

    function: Callable[[int], Any]
    base: float

    def __call__(self, counts: npt.NDArray[np.int64]) -> list[float]:
        return [self.base * float(self.function(count)) for count in counts.tolist()]


def _lambda(s: Any, clock: Clock) -> Schedule:
    """LambdaLR: base * function(k), opaque unless the function carries a schedule.

    A function carries a schedule u when it has an attribute `schedule` and function(k) = u(k + 1), as
    `generic_adam.torch.ScheduleFactor` has.
    """
    # An object of the user's may change when it is called.
    function = copy.deepcopy(s.lr_lambdas, parameters(s.optimizer))
    carried = getattr(function, "schedule", None)
    if isinstance(carried, Schedule):
        return scaled(s.base_lrs, follow(carried, clock))
    label = f"LambdaLR {getattr(function, '__qualname__', 'function')}"
    return tree.Opaque(Called(_Factor(function, s.base_lrs), clock), label)


def sequence(parts: Sequence[Nested], ends: Sequence[int], clock: Clock, replayed: Schedule | None = None) -> Schedule:
    """Each scheduler from the end of the one before on, counting from 0 again whatever came before."""
    starts = [0, *ends]
    if list(ends) != sorted(ends):
        raise ScheduleError(f"the milestones {list(ends)} do not rise")
    *forms, tail = [_phase(*part, clock.later(start)) for part, start in zip(parts, starts, strict=True)]
    known = [replayed if form is None else form for form in forms]
    if tail is None or None in known:
        raise ScheduleError("a part of the sequence has no closed form inside it")
    return stages(clock, zip(ends, known, strict=True), tail)  # pyright: ignore[reportArgumentType]


def _sequential(s: Any, clock: Clock) -> Schedule:
    """SequentialLR, whose present part may have been stepped apart from it."""
    count = getattr(s, "last_epoch", 0)
    begun = [0, *(end for end in s._milestones if end <= count)]
    _, part = s._schedulers[len(begun) - 1]
    # One that is composed itself has no form in here, whatever it counts.
    if not hasattr(part, "_schedulers") and getattr(part, "last_epoch", count - begun[-1]) != count - begun[-1]:
        raise ScheduleError("a part that has not been stepped with its sequence has no closed form")
    return sequence(s._schedulers, s._milestones, clock, s.replayed)


def _phase(name: str, s: Any, clock: Clock) -> Schedule | None:
    """One part of a sequence, or None where its beginning inside the sequence is another than alone."""
    # Nested compositions count differently from one torch version to the next, SWALR starts from the rate it
    # finds, OneCycleLR ends, and a phase that moves beta leaves it where it was afterwards.
    other = name in {"torch.SWALR", "torch.OneCycleLR", "torch.SequentialLR", "torch.ChainedScheduler"}
    if other or getattr(s, "cycle_momentum", False) or getattr(s, "total_iters", 1) < 1:
        return None
    try:
        return closed_form(name, s, clock)
    except (ValueError, LookupError, AttributeError):
        return None


def _chained(s: Any, clock: Clock) -> Schedule:
    """ChainedScheduler: the product, where every part multiplies the rate it finds."""
    cosines = [own for name, own in s._schedulers if name == "torch.CosineAnnealingLR"]
    others = [(name, own) for name, own in s._schedulers if name != "torch.CosineAnnealingLR"]
    if len({getattr(own, "last_epoch", 0) for _, own in s._schedulers}) > 1:
        raise ScheduleError("schedulers that have not been stepped together have no closed form")
    product = as_schedule(s._schedulers[0][1].base_lrs)
    for name, own in others:
        product = product * _factor(name, own, clock)
    if not cosines:
        return product
    if len(cosines) > 1:
        raise ScheduleError("cosines chained to one another have no closed form")
    annealing, length = cosines[0], cosines[0].T_max
    # A cosine to 0 multiplies too, until it starts again from 0 after T_max by adding: from there on the
    # product is right only where all other parts have come back to a factor of 1.
    if annealing.eta_min == 0 and all(_returns(*other, length) for other in others):
        return product * clock.repeating(2 * length, lambda k: half_cosine(k, length))
    # Before one to eta_min > 0 has been there, each step of a warm-up scales eta_min too, and the cosine
    # carries on from there: a recursion.
    if s.replayed is None or not all(_returns(*other, length - 1) for other in others):
        raise ScheduleError("a cosine chained to what does not end before it has no closed form")
    return stages(clock, [(length, s.replayed)], closed_form("torch.CosineAnnealingLR", annealing, clock))


def _returns(name: str, s: Any, steps: int) -> bool:
    """Whether the scheduler's factor is 1 from some step before `steps` on."""
    returns = name == "torch.ConstantLR" or (name == "torch.LinearLR" and s.end_factor == 1)
    return returns and 1 <= s.total_iters <= steps


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


# timm.


def _timm(body: Form) -> Form:
    """A line from warmup_lr_init over warmup_t steps, then the body: over the clock, or counting from there."""

    def form(s: Any, clock: Clock) -> Schedule:
        if s.noise_range_t is not None:
            raise ScheduleError("noise has no closed form")
        steps = s.warmup_t
        # Without a warm-up the first rate is the constructor's, whatever the shape says of k = 0.
        rise = s.warmup_lr_init + s.warmup_steps * clock.count if steps else s.base_values
        then = body(s, clock.later(steps) if s.warmup_prefix else clock)
        return stages(clock, [(steps or 1, rise)], then) * getattr(s, "lr_scale", 1.0)

    return form


def _timm_cycles(shape: Callable[[Any], str | Shape]) -> Form:
    """cycle_limit cycles of t_initial steps, each lower by cycle_decay, then lr_min."""

    def body(s: Any, clock: Clock) -> Schedule:
        length, low = s.t_initial, s.lr_min
        if s.cycle_mul != 1 or getattr(s, "k_decay", 1) != 1:
            raise ScheduleError("cycles that grow and k-decay have no closed form")
        falls = (
            (length * (n + 1), ramp(s.base_values * s.cycle_decay**n, low, length, shape(s)))
            for n in range(s.cycle_limit)
        )
        return stages(clock, falls, low)

    return _timm(body)


def _tanh(s: Any) -> Shape:
    """(1 - tanh y) / 2 = 1 / (1 + e^(2y)), with y from lb to ub in a line."""
    return lambda k, length: 1 / (1 + exp(2 * between(s.lb, s.ub, k / length)))


def _timm_step(s: Any, clock: Clock) -> Schedule:
    if s.decay_t < 1 or s.decay_t % 1:
        raise ScheduleError("stairs of a length that is not whole have no closed form")
    return s.base_values * clock.staircase(s.decay_rate, int(s.decay_t))


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
    "torch.CyclicLR": lambda s, c: between(s.base_lrs, s.max_lrs, _triangle(s, c)),
    "torch.LambdaLR": _lambda,
    "torch.SWALR": _averaging,
    "torch.SequentialLR": _sequential,
    "torch.ChainedScheduler": _chained,
    "generic_adam.ScheduleLR": lambda s, c: follow(s.schedules, c),
    "deepspeed.WarmupLR": lambda s, c: _deepspeed(s, c, s.min_lrs, s.max_lrs, s.min_lrs, s.max_lrs),
    "deepspeed.WarmupDecayLR": _deepspeed_decay,
    "deepspeed.WarmupCosineLR": _deepspeed_cosine,
    "timm.CosineLRScheduler": _timm_cycles(lambda _s: "cos"),
    "timm.TanhLRScheduler": _timm_cycles(_tanh),
    "timm.PolyLRScheduler": _timm_cycles(lambda s: power(s.power)),
    "timm.StepLRScheduler": _timm(_timm_step),
    "timm.MultiStepLRScheduler": _timm(
        lambda s, c: drops(c, s.base_values, [(k - 1, s.decay_rate) for k in sorted(s.decay_t)])
    ),
    "optax.constant": lambda s, _c: as_schedule(s.value),
    "optax.polynomial_schedule": _optax_polynomial,
    "optax.cosine_decay_schedule": _optax_cosine,
    "optax.exponential_decay": _optax_exponential,
    "optax.piecewise_constant_schedule": lambda s, c: drops(
        c, s.init_value, [(int(k), float(one)) for k, one in sorted((s.boundaries_and_scales or {}).items())]
    ),
    "optax.join_schedules": lambda s, c: sequence(s.schedules, list(map(int, s.boundaries)), c),
}
MOMENTA: dict[str, Form] = {
    "torch.OneCycleLR": _one_cycle("momentum"),
    "torch.CyclicLR": lambda s, c: between(s.max_momentums, s.base_momentums, _triangle(s, c)),
}
"""The momentum that goes with a rate where `cycle_momentum` is set: high where the rate is low."""
