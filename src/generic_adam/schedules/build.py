"""Ways to make a schedule from numbers, text, callables and other schedules."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Rational, Real

from generic_adam.schedules import simplify
from generic_adam.schedules.base import Schedule
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.functions import Function
from generic_adam.schedules.nodes import Constant, Time
from generic_adam.schedules.opaque import Opaque
from generic_adam.schedules.periodic import Periodic
from generic_adam.schedules.recursions import BiasCorrection, WeightedTheta

t = Time()
"""The time itself, t = 1, 2, 3, ...: expressions are built from it, as in `0.5 / sqrt(t)`."""


def as_schedule(value: object) -> Schedule:
    """A schedule from a number, a text (see `parse`), a schedule (as it is) or a callable of t (opaque)."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, bool):
        raise ScheduleError(f"expected a number, a text, a schedule or a callable of t, got {value!r}")
    if isinstance(value, str):
        from generic_adam.schedules.parser import parse

        return parse(value)
    if isinstance(value, Real):
        return Constant(exact(value))
    if callable(value):
        return Opaque(value)
    raise ScheduleError(
        f"expected a number, a text, a schedule or a callable of t, got {type(value).__name__}"
    )


def exact(value: Real | float) -> Fraction:
    """The rational number that a person means by a float: the shortest decimal that prints as it."""
    if isinstance(value, Rational):
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise ScheduleError(f"expected a finite number, got {number}")
    return Fraction(repr(number))


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
    result = Function(name, as_schedule(argument))
    if result.is_constant:
        result(1)  # log(-1) or exp(1e9) is an error now, not at step 1
    return result


def maximum(first: object, *others: object) -> Schedule:
    """The largest of several schedules at each t."""
    result = as_schedule(first)
    for other in others:
        result = simplify.maximum(result, as_schedule(other))
    return result


def minimum(first: object, *others: object) -> Schedule:
    """The smallest of several schedules at each t."""
    result = as_schedule(first)
    for other in others:
        result = simplify.minimum(result, as_schedule(other))
    return result


def clip(argument: object, low: object, high: object) -> Schedule:
    """min(max(argument, low), high)."""
    return minimum(maximum(argument, low), high)


def join(before: object, threshold: int, after: object) -> Schedule:
    """Before for t < threshold, after from then on."""
    if isinstance(threshold, bool) or not isinstance(threshold, Integral):
        raise ScheduleError(f"a join needs a whole number as its threshold, got {threshold!r}")
    return simplify.join(int(threshold), as_schedule(before), as_schedule(after))


def periodic(body: object, period: int) -> Schedule:
    """The first `period` values again and again: u_t = body_s with s = 1 + (t - 1) mod period."""
    if isinstance(period, bool) or not isinstance(period, Integral):
        raise ScheduleError(f"a period must be a whole number, got {period!r}")
    repeated = as_schedule(body)
    return repeated if repeated.is_constant else Periodic(repeated, int(period))


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
    return WeightedTheta(as_schedule(weights), exact(initial))


def bias_correction(factor: object) -> Schedule:
    """1 - prod_{i<=t} factor_i: Kingma and Ba's correction with the exact product."""
    return BiasCorrection(as_schedule(factor))
