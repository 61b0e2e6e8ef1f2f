"""Ways to make a schedule from numbers, text, callables and other schedules."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from numbers import Integral

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.text import as_schedule
from generic_adam.schedules.tree import Schedule, exact, normal_form

t = tree.Time()
"""The time itself, t = 1, 2, 3, ...: expressions are built from it, as in `0.5 / sqrt(t)`."""


def sqrt(argument: object) -> Schedule:
    """The square root of a schedule."""
    return function("sqrt", argument)


def log(argument: object) -> Schedule:
    """The natural logarithm of a schedule."""
    return function("log", argument)


def exp(argument: object) -> Schedule:
    """The exponential of a schedule."""
    return function("exp", argument)


def function(name: str, argument: object) -> Schedule:
    """One of the named functions (sqrt, log, exp, abs, sin, cos, expm1, log1p) of a schedule."""
    return normal_form[tree.Function](name, as_schedule(argument))


def maximum(first: object, *others: object) -> Schedule:
    """The largest of several schedules at each t."""
    return reduce(normal_form[tree.Maximum], map(as_schedule, (first, *others)))


def minimum(first: object, *others: object) -> Schedule:
    """The smallest of several schedules at each t."""
    return reduce(normal_form[tree.Minimum], map(as_schedule, (first, *others)))


def clip(argument: object, low: object, high: object) -> Schedule:
    """min(max(argument, low), high)."""
    return minimum(maximum(argument, low), high)


def join(before: object, threshold: int, after: object) -> Schedule:
    """`before` for t < threshold, `after` from then on."""
    if isinstance(threshold, bool) or not isinstance(threshold, Integral):
        raise ScheduleError(f"a join needs a whole number as its threshold, got {threshold!r}")
    return normal_form[tree.Join](int(threshold), as_schedule(before), as_schedule(after))


def periodic(body: object, period: int) -> Schedule:
    """The first `period` values again and again: u_t = body_s with s = 1 + (t - 1) mod period."""
    if isinstance(period, bool) or not isinstance(period, Integral):
        raise ScheduleError(f"a period must be a whole number, got {period!r}")
    return normal_form[tree.Periodic](as_schedule(body), int(period))


def power_law(coefficient: float, exponent: float, shift: float = 0) -> Schedule:
    """Coefficient / (t + shift)^exponent."""
    return as_schedule(coefficient) / (t + shift) ** as_schedule(exponent)


def geometric(start: float, ratio: float) -> Schedule:
    """Start * ratio^t."""
    return as_schedule(start) * as_schedule(ratio) ** t


def linear_warmup(steps: int, then: object) -> Schedule:
    """T / steps times the schedule for t < steps, the schedule itself from then on."""
    tail = as_schedule(then)
    return join(tail * t / steps, steps, tail)


def theta_from_weights(weights: object, initial: float | Fraction = 1) -> Schedule:
    """theta_t = W_{t-1} / W_t with W_t = W_{t-1} + w_t and W_0 = initial (Weighted AdaEMA, Algorithm 2)."""
    return normal_form[tree.WeightedTheta](as_schedule(weights), exact(initial))


def bias_correction(factor: object) -> Schedule:
    """1 - prod_{i<=t} factor_i: Kingma and Ba's correction with the exact product."""
    return normal_form[tree.BiasCorrection](as_schedule(factor))
