"""What can be proved about a schedule on start <= t <= stop, stop possibly infinite: range, sign, direction.

The argument is by form: interval arithmetic for the range, and the elasticity t u'/u for the direction. Everything here
is one-sided: an answer is a proof, and "unknown" is always allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from generic_adam.schedules.base import Schedule
from generic_adam.schedules.bounded import Bounded
from generic_adam.schedules.elasticity import Elasticity, of_power
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.functions import Function
from generic_adam.schedules.intervals import EVERYTHING, Interval, around, point
from generic_adam.schedules.nodes import (
    Add,
    Constant,
    Divide,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Subtract,
    Time,
)
from generic_adam.schedules.periodic import Periodic
from generic_adam.schedules.recursions import BiasCorrection, WeightedTheta, WeightShare

FLAT = of_power(Fraction(0))


@dataclass(frozen=True)
class Enclosure:
    """Facts about u_t on an interval of t.

    Attributes:
        range: every u_t lies in it.
        sign: 1 or -1 where u_t > 0 or u_t < 0 for every t (the range may still touch 0 in the limit), else 0.
        direction: 1 non-decreasing, -1 non-increasing, 0 constant, None unknown.
        elasticity: an interval for t u'/u where u has one sign and is smooth between kinks, else None.
    """

    range: Interval = EVERYTHING
    sign: int = 0
    direction: int | None = None
    elasticity: Elasticity | None = None

    @property
    def positive(self) -> bool:
        """Whether u_t > 0 at every t of the interval."""
        return self.sign > 0


def enclose(schedule: Schedule, start: int, stop: float = math.inf) -> Enclosure:
    """Facts that hold for u_t at every t with start <= t <= stop."""
    found = _by_form(schedule, start, stop)
    direction = found.direction
    sign = found.sign or found.range.sign
    if direction is None and found.elasticity is not None and sign:
        slope = found.elasticity.sign
        direction = None if slope is None else slope * sign
    bounds = found.range
    if direction is not None:
        bounds = bounds.meet(_range_of_monotone(schedule, direction, start, stop))
    return replace(found, range=bounds, direction=direction, sign=sign or bounds.sign)


def _range_of_monotone(schedule: Schedule, direction: int, start: int, stop: float) -> Interval:
    """A monotone sequence lies between its first value and its last value or limit."""
    first = _value(schedule, start)
    last = _value(schedule, int(stop)) if math.isfinite(stop) else _limit(schedule)
    if first is None:
        return EVERYTHING
    if last is None:
        return Interval(first.low, math.inf) if direction >= 0 else Interval(-math.inf, first.high)
    return first.hull(last)


def _value(schedule: Schedule, t: int) -> Interval | None:
    try:
        value = schedule(t)
    except ScheduleError:
        return None
    return around(value) if math.isfinite(value) else None


def _limit(schedule: Schedule) -> Interval | None:
    growth = schedule.order
    if growth is None or growth.trend > 0:
        return None
    if growth.trend < 0 or growth.is_zero:
        return point(0.0)
    return Interval(growth.low, growth.high)


def _by_form(node: Schedule, start: int, stop: float) -> Enclosure:
    match node:
        case Constant():
            number = float(node.value)
            bounds = point(number) if Fraction(number) == node.value else around(number)
            return Enclosure(bounds, (number > 0) - (number < 0), 0, FLAT)
        case Time():
            return Enclosure(Interval(float(start), float(stop)), 1, 1, of_power(Fraction(1)))
        case Negate(operand):
            return _negated(enclose(operand, start, stop))
        case Add(left, right):
            return _sum(enclose(left, start, stop), enclose(right, start, stop))
        case Subtract(left, right):
            return _sum(enclose(left, start, stop), _negated(enclose(right, start, stop)))
        case Multiply(left, right):
            return _product(enclose(left, start, stop), enclose(right, start, stop))
        case Divide(left, right):
            return _product(enclose(left, start, stop), _inverted(enclose(right, start, stop)))
        case Power(base, Constant(exponent)):
            return _raised(enclose(base, start, stop), exponent)
        case Power(Constant(base), exponent) if base > 0:
            return _exponential(enclose(exponent, start, stop), math.log(base))
        case Function("sqrt", argument):
            return _raised(enclose(argument, start, stop), Fraction(1, 2))
        case Function(name, argument):
            return _function(name, enclose(argument, start, stop))
        case Maximum(left, right):
            return _larger(enclose(left, start, stop), enclose(right, start, stop))
        case Minimum(left, right):
            pair = _negated(enclose(left, start, stop)), _negated(enclose(right, start, stop))
            return _negated(_larger(*pair))
        case Join():
            return _joined(node, start, stop)
        case WeightShare():
            return _weight_share(node, start)
        case WeightedTheta():
            share = enclose(node.one_minus(), start, stop)
            return _sum(Enclosure(point(1.0), 1, 0, FLAT), _negated(share))
        case Periodic():
            low, high = node.extremes
            return Enclosure(
                around(low).hull(around(high)), (low > 0) - (high < 0), 0 if low == high else None
            )
        case Bounded():
            return Enclosure(Interval(node.low, node.high))
        case BiasCorrection():
            return _bias_correction(node, start, stop)
        case _:
            return Enclosure()


def _negated(inner: Enclosure) -> Enclosure:
    # The elasticity t u'/u does not see the sign of u.
    direction = None if inner.direction is None else -inner.direction
    return Enclosure(-inner.range, -inner.sign, direction, inner.elasticity)


def _sum(left: Enclosure, right: Enclosure) -> Enclosure:
    total = left.range + right.range
    direction = _agreeing(left.direction, right.direction)
    positive = (left.positive and right.range.low >= 0) or (right.positive and left.range.low >= 0)
    negative = (left.sign < 0 and right.range.high <= 0) or (right.sign < 0 and left.range.high <= 0)
    return Enclosure(total, int(positive) - int(negative), direction, _elasticity_of_sum(left, right))


def _elasticity_of_sum(left: Enclosure, right: Enclosure) -> Elasticity | None:
    """(l e_l + r e_r)/(l + r): the mean of the two with weights l/(l + r) and r/(l + r)."""
    if left.elasticity is None or right.elasticity is None:
        return None
    if left.positive and right.positive:
        if left.elasticity == right.elasticity == FLAT:
            return FLAT
        for main, other in ((left, right), (right, left)):
            if other.elasticity == FLAT and main.range.low > 0:
                share = point(1.0) / (point(1.0) + other.range / main.range)
                return main.elasticity.times(share.meet(Interval(0.0, 1.0)))
        return left.elasticity.hull(right.elasticity)
    for main, other in ((left, right), (right, left)):
        # a - b with one part constant: only the moving part contributes.
        if other.elasticity == FLAT and main.range.sign != 0:
            ratio = point(1.0) + other.range / main.range
            if ratio.sign != 0:
                return main.elasticity.times(point(1.0) / ratio) if main.elasticity is not None else None
    return None


def _agreeing(first: int | None, second: int | None) -> int | None:
    """The direction of a sum from those of its parts."""
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def _product(left: Enclosure, right: Enclosure) -> Enclosure:
    sign = left.sign * right.sign
    bounds = left.range * right.range
    if sign > 0:
        bounds = bounds.meet(Interval(0.0, math.inf))
    direction = _agreeing(left.direction, right.direction) if left.positive and right.positive else None
    if direction is None:
        direction = _scaled_direction(left, right)
    elasticity = None
    if left.elasticity is not None and right.elasticity is not None:
        elasticity = left.elasticity + right.elasticity
    return Enclosure(bounds, sign, direction, elasticity)


def _scaled_direction(left: Enclosure, right: Enclosure) -> int | None:
    """A constant of known sign times anything monotone is monotone."""
    for one, other in ((left, right), (right, left)):
        if one.direction == 0 and other.direction is not None and one.sign:
            return one.sign * other.direction
    return None


def _inverted(inner: Enclosure) -> Enclosure:
    if not inner.sign:
        return Enclosure()
    if inner.sign < 0:
        return _negated(_inverted(_negated(inner)))
    bounds = point(1.0) / inner.range.meet(Interval(0.0, math.inf))
    direction = None if inner.direction is None else -inner.direction
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(Fraction(-1))
    return Enclosure(bounds, 1, direction, elasticity)


def _raised(inner: Enclosure, exponent: Fraction) -> Enclosure:
    if not inner.positive:
        if exponent > 0 and inner.range.low >= 0:
            direction = inner.direction
            return Enclosure(inner.range.mapped(lambda x: _pow(x, float(exponent))), 0, direction, None)
        return Enclosure()
    bounds = inner.range.meet(Interval(0.0, math.inf))
    if exponent < 0:
        bounds = point(1.0) / bounds
    bounds = bounds.mapped(lambda x: _pow(max(x, 0.0), abs(float(exponent)))).meet(Interval(0.0, math.inf))
    direction = None if inner.direction is None else inner.direction * (1 if exponent > 0 else -1)
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(exponent)
    return Enclosure(bounds, 1, direction, elasticity)


def _exponential(exponent: Enclosure, log_base: float) -> Enclosure:
    """b^x = e^{x log b}: t u'/u = (x log b) e_x."""
    scaled = exponent.range * around(log_base)
    bounds = scaled.mapped(_exp).meet(Interval(0.0, math.inf))
    rising = (log_base > 0) - (log_base < 0)
    direction = None if exponent.direction is None else exponent.direction * rising
    elasticity = None if exponent.elasticity is None else exponent.elasticity.times(scaled)
    return Enclosure(bounds, 1, direction, elasticity)


def _function(name: str, inner: Enclosure) -> Enclosure:
    bounds = inner.range
    if name == "exp":
        return _exponential(inner, 1.0)
    if name == "expm1":
        return Enclosure(
            bounds.mapped(_expm1), inner.sign, inner.direction, _times(inner, bounds, _expm1_factor)
        )
    if name == "log1p" and bounds.low > -1:
        return Enclosure(
            bounds.mapped(math.log1p), inner.sign, inner.direction, _times(inner, bounds, _log1p_factor)
        )
    if name == "log" and inner.positive:
        image = bounds.meet(Interval(0.0, math.inf)).mapped(lambda x: math.log(x) if x > 0 else -math.inf)
        elasticity = (
            inner.elasticity.times(point(1.0) / image)
            if inner.elasticity is not None and image.sign
            else None
        )
        return Enclosure(image, image.sign, inner.direction, elasticity)
    if name == "abs":
        if inner.positive or bounds.low >= 0:
            return inner
        return Enclosure(Interval(0.0, max(-bounds.low, bounds.high)))
    if name == "cos" and bounds.low >= 0 and bounds.high <= math.pi:
        direction = None if inner.direction is None else -inner.direction
        return Enclosure(-(bounds.mapped(lambda x: -math.cos(x))), 0, direction)
    if name in {"sin", "cos"}:
        return Enclosure(Interval(-1.0, 1.0))
    return Enclosure()


def _times(inner: Enclosure, bounds: Interval, factor: Callable[[float], float]) -> Elasticity | None:
    """Elasticity times a positive monotone factor of the argument (expm1 and log1p)."""
    if inner.elasticity is None or not inner.sign:
        return None
    ends = sorted(factor(end) for end in bounds.ends)
    return inner.elasticity.times(Interval(ends[0] * (1 - 1e-14), ends[1] * (1 + 1e-14)))


def _expm1_factor(x: float) -> float:
    """X e^x / (e^x - 1), increasing from 0 to infinity, 1 at 0."""
    if math.isinf(x):
        return 0.0 if x < 0 else math.inf
    return 1.0 if x == 0 else x / -math.expm1(-x) if x > -700 else 0.0


def _log1p_factor(x: float) -> float:
    """X / ((1 + x) log(1 + x)), decreasing from infinity to 0, 1 at 0."""
    if math.isinf(x):
        return 0.0
    return 1.0 if x == 0 else x / ((1 + x) * math.log1p(x))


def _larger(left: Enclosure, right: Enclosure) -> Enclosure:
    if left.range.low >= right.range.high:
        return left
    if right.range.low >= left.range.high:
        return right
    bounds = Interval(max(left.range.low, right.range.low), max(left.range.high, right.range.high))
    sign = 1 if 1 in {left.sign, right.sign} else -1 if left.sign == right.sign == -1 else 0
    elasticity = None
    if left.elasticity is not None and right.elasticity is not None and left.sign == right.sign != 0:
        elasticity = left.elasticity.hull(right.elasticity)
    return Enclosure(bounds, sign, _agreeing(left.direction, right.direction), elasticity)


def _joined(node: Join, start: int, stop: float) -> Enclosure:
    if start >= node.threshold:
        return enclose(node.after, start, stop)
    if stop < node.threshold:
        return enclose(node.before, start, stop)
    before, after = enclose(node.before, start, node.threshold - 1), enclose(node.after, node.threshold, stop)
    # Across the jump the direction needs the two values there; the callers split at joins, so it is left unknown.
    return Enclosure(before.range.hull(after.range), before.sign if before.sign == after.sign else 0)


def _weight_share(node: WeightShare, start: int) -> Enclosure:
    """w_t/W_t falls where w does; and, once it falls, for ever while w is log-concave (w_{t+1}/w_t non-increasing)."""
    weights = enclose(node.weights, max(start - 1, 1))
    if not weights.positive:
        return Enclosure(Interval(0.0, 1.0))
    falls = weights.direction is not None and weights.direction <= 0
    if not falls and _is_log_concave(node.weights):
        now, after = node(start), node(start + 1)
        falls = after <= now
    return Enclosure(Interval(0.0, 1.0), 1, -1 if falls else None)


def share_times_t(node: WeightShare, start: int) -> Interval | None:
    """Bounds on t w_t / W_t for t >= start where w_t = c t^p with p > -1; None for other weights.

    With y = (start/t)^{p+1}, W_t/(t w_t) lies between a y + (1 - y)/(p + 1) and that plus 1/start, a being
    W_{start-1}/(start w_start): comparison of the sum of i^p with its integral. It is linear in y, so its ends are at
    y = 0 and y = 1.
    """
    facts = enclose(node.weights, start)
    if not facts.positive or facts.elasticity is None or facts.elasticity.low != facts.elasticity.high:
        return None
    exponent = facts.elasticity.low
    if exponent is None or exponent <= -1:
        return None
    first, limit = (1 / node(start) - 1) / start, 1 / float(exponent + 1)
    low, high = min(first, limit) * (1 - 1e-12), (max(first, limit) + 1 / start) * (1 + 1e-12)
    return Interval(1 / high, 1 / low) if low > 0 else None


def _is_log_concave(node: Schedule) -> bool:
    """Whether log u_t is concave by form: products of constants, rho^t, and non-negative powers of a t + b > 0."""
    from generic_adam.schedules.simplify import as_linear

    match node:
        case Constant(value):
            return value > 0
        case Multiply(left, right):
            return _is_log_concave(left) and _is_log_concave(right)
        case Divide(left, Constant(value)):
            return value > 0 and _is_log_concave(left)
        case Power(Constant(base), exponent):
            return base > 0 and as_linear(exponent) is not None
        case Power(base, Constant(exponent)):
            return exponent >= 0 and _is_log_concave(base)
        case Function("sqrt", argument):
            return _is_log_concave(argument)
        case Function("exp", argument):
            return as_linear(argument) is not None
        case _:
            line = as_linear(node)
            return line is not None and line[0] + line[1] > 0 and line[0] >= 0


def _bias_correction(node: BiasCorrection, start: int, stop: float) -> Enclosure:
    """1 - prod factor_i rises to at most 1; for a constant factor its elasticity is y/(e^y - 1), y = -t log factor."""
    factor = enclose(node.factor, 1)
    if not (factor.range.low >= 0 and enclose(node.factor.one_minus(), 1).positive):
        return Enclosure()
    first = _value(node, start)
    bounds = Interval(first.low, 1.0) if first is not None else Interval(0.0, 1.0)
    value = node.factor.constant_value
    elasticity = None
    if value:
        rate = -math.log(value)
        ends = [_correction_factor(rate * stop), _correction_factor(rate * start)]
        elasticity = Elasticity(Fraction(max(0.0, ends[0] * (1 - 1e-12))), Fraction(ends[1] * (1 + 1e-12)))
    return Enclosure(bounds, 1, 1, elasticity)


def _correction_factor(y: float) -> float:
    return y / math.expm1(y) if y < 700 else 0.0


def _pow(x: float, exponent: float) -> float:
    if math.isinf(x):
        return math.inf
    try:
        return math.pow(x, exponent)
    except OverflowError:
        return math.inf


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 709 else math.inf
