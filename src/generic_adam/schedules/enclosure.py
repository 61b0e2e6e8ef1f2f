"""What can be proved about a schedule on start <= t <= stop, stop possibly infinite: range, sign, direction.

The argument is by form: interval arithmetic for the range, and the elasticity t u'/u for the direction.
Everything here is one-sided: an answer is a proof, and "unknown" is always allowed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from generic_adam.errors import ScheduleError
from generic_adam.schedules.elasticity import Elasticity, of_power
from generic_adam.schedules.enclosure_rules import (
    FLAT,
    Enclosure,
    applied,
    exponential,
    inverted,
    larger,
    multiplied,
    negated,
    raised,
    summed,
)
from generic_adam.schedules.evaluate import decay_of, log_of
from generic_adam.schedules.intervals import EVERYTHING, Interval, around, point
from generic_adam.schedules.normal import as_linear
from generic_adam.schedules.tree import (
    Add,
    BiasCorrection,
    Bounded,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Periodic,
    Power,
    Schedule,
    Subtract,
    Time,
    WeightedTheta,
    WeightShare,
)

# A running sum has to be walked to its t; beyond this the form has to do without the value.
_FARTHEST_WALK = 100_000
# The direction of a running sum or product needs its value where a stretch begins: seconds away at most.
_FARTHEST_BEGINNING = 1 << 24


def enclose(schedule: Schedule, start: int, stop: float = math.inf) -> Enclosure:
    """Facts that hold for u_t at every t with start <= t <= stop."""
    stretch = (start, stop)
    known = schedule.known_facts
    if stretch not in known:
        known[stretch] = _found(schedule, start, stop)
    return known[stretch]


def _found(schedule: Schedule, start: int, stop: float) -> Enclosure:
    found = _by_form(schedule, start, stop)
    direction = found.direction
    sign = found.sign or found.range.sign
    if direction is None and found.elasticity is not None and sign:
        slope = found.elasticity.sign
        direction = None if slope is None else slope * sign
    bounds = found.range
    if direction is not None and start < stop:
        bounds = bounds.meet(_range_of_monotone(schedule, direction, start, stop))
    return Enclosure(bounds, sign or bounds.sign, direction, found.elasticity)


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
    """u_t with all its rounding: one step, by interval arithmetic; None where it would take long to reach."""
    if t > _FARTHEST_WALK and not schedule.accepts_real_times:
        return None
    try:
        bounds = _by_form(schedule, t, t).range
    except ScheduleError:
        return None
    return bounds if math.isfinite(bounds.low) and math.isfinite(bounds.high) else None


def _limit(schedule: Schedule) -> Interval | None:
    growth = schedule.order
    if growth is None or growth.trend > 0:
        return None
    if growth.trend < 0 or growth.is_zero:
        return point(0.0)
    return Interval(growth.low, growth.high)


@singledispatch
def _by_form(_node: Schedule, _start: int, _stop: float) -> Enclosure:
    """Facts from the form of a node; nothing is known of a callable."""
    return Enclosure()


@_by_form.register
def _(node: Constant, _start: int, _stop: float) -> Enclosure:
    number = float(node.value)
    bounds = point(number) if Fraction(number) == node.value else around(number)
    return Enclosure(bounds, (number > 0) - (number < 0), 0, FLAT)


@_by_form.register
def _(_node: Time, start: int, stop: float) -> Enclosure:
    return Enclosure(Interval(float(start), float(stop)), 1, 1, of_power(Fraction(1)))


@_by_form.register
def _(node: Negate, start: int, stop: float) -> Enclosure:
    return negated(enclose(node.operand, start, stop))


@_by_form.register
def _(node: Add, start: int, stop: float) -> Enclosure:
    return summed(enclose(node.left, start, stop), enclose(node.right, start, stop))


@_by_form.register
def _(node: Subtract, start: int, stop: float) -> Enclosure:
    return summed(enclose(node.left, start, stop), negated(enclose(node.right, start, stop)))


@_by_form.register
def _(node: Multiply, start: int, stop: float) -> Enclosure:
    return multiplied(enclose(node.left, start, stop), enclose(node.right, start, stop))


@_by_form.register
def _(node: Divide, start: int, stop: float) -> Enclosure:
    return multiplied(enclose(node.left, start, stop), inverted(enclose(node.right, start, stop)))


@_by_form.register
def _(node: Power, start: int, stop: float) -> Enclosure:
    match node:
        case Power(base, Constant(exponent)):
            return raised(enclose(base, start, stop), exponent)
        case Power(Constant(base), exponent) if base > 0:
            return exponential(enclose(exponent, start, stop), log_of(base))
        case Power(base, exponent) if (facts := enclose(base, start, stop)).positive:
            return applied("exp", multiplied(enclose(exponent, start, stop), applied("log", facts)))
        case _:
            return Enclosure()


@_by_form.register
def _(node: Function, start: int, stop: float) -> Enclosure:
    inner = enclose(node.argument, start, stop)
    return raised(inner, Fraction(1, 2)) if node.name == "sqrt" else applied(node.name, inner)


@_by_form.register
def _(node: Maximum, start: int, stop: float) -> Enclosure:
    return larger(enclose(node.left, start, stop), enclose(node.right, start, stop))


@_by_form.register
def _(node: Minimum, start: int, stop: float) -> Enclosure:
    left, right = enclose(node.left, start, stop), enclose(node.right, start, stop)
    return negated(larger(negated(left), negated(right)))


@_by_form.register
def _(node: Periodic, _start: int, _stop: float) -> Enclosure:
    low, high = node.extremes
    return Enclosure(around(low).hull(around(high)), (low > 0) - (high < 0), 0 if low == high else None)


@_by_form.register
def _(node: Bounded, _start: int, _stop: float) -> Enclosure:
    return Enclosure(Interval(node.low, node.high))


@_by_form.register
def _(node: Join, start: int, stop: float) -> Enclosure:
    if start >= node.threshold:
        return enclose(node.after, start, stop)
    if stop < node.threshold:
        return enclose(node.before, start, stop)
    before, after = enclose(node.before, start, node.threshold - 1), enclose(node.after, node.threshold, stop)
    # Across the jump the direction needs the two values there; callers split at joins, so it stays unknown.
    return Enclosure(before.range.hull(after.range), before.sign if before.sign == after.sign else 0)


@_by_form.register
def _(node: WeightShare, start: int, stop: float) -> Enclosure:
    if start == stop:
        # One step: the running sums are accurate to far better than this.
        value = node(start)
        return Enclosure(Interval(value * (1 - 1e-13), value * (1 + 1e-13)), 1, 0)
    # w_t/W_t falls where w does; once it falls, it does so for ever while w is log-concave.
    weights = enclose(node.weights, max(start - 1, 1))
    if not weights.positive:
        return Enclosure(Interval(0.0, 1.0))
    falls = weights.direction is not None and weights.direction <= 0
    if not falls and start <= _FARTHEST_BEGINNING and _is_log_concave(node.weights):
        now, after = node(start), node(start + 1)
        falls = after <= now
    return Enclosure(Interval(0.0, 1.0), 1, -1 if falls else None)


@_by_form.register
def _(node: WeightedTheta, start: int, stop: float) -> Enclosure:
    share = enclose(node.complement, start, stop)
    return summed(Enclosure(point(1.0), 1, 0, FLAT), negated(share))


@_by_form.register
def _(node: BiasCorrection, start: int, stop: float) -> Enclosure:
    # It rises to at most 1; for a constant factor t u'/u = y/(e^y - 1) with y = -t log(factor).
    factor = enclose(node.factor, 1)
    if not (factor.range.low >= 0 and enclose(node.factor.complement, 1).positive):
        return Enclosure()
    rate = decay_of(node)
    if rate is None and start > _FARTHEST_BEGINNING:
        return Enclosure(Interval(0.0, 1.0), 1, 1)
    first = node(start)
    bounds = Interval(first * (1 - 1e-13), 1.0 if start < stop else min(1.0, first * (1 + 1e-13)))
    elasticity = None
    if rate is not None and math.isfinite(rate):
        ends = [_correction_factor(rate * stop), _correction_factor(rate * start)]
        elasticity = Elasticity(Fraction(max(0.0, ends[0] * (1 - 1e-12))), Fraction(ends[1] * (1 + 1e-12)))
    return Enclosure(bounds, 1, 1, elasticity)


def share_times_t(node: WeightShare, start: int) -> Interval | None:
    """Bounds on t w_t / W_t for t >= start where w_t = c t^p with p > -1; None for other weights.

    With y = (start/t)^{p+1}, W_t/(t w_t) lies between a y + (1 - y)/(p + 1) and that plus 1/start, a being
    W_{start-1}/(start w_start): the sum of i^p is compared with its integral. It is linear in y, so its ends
    are at y = 0 and y = 1.
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
    """Whether log u_t is concave by form: a product of constants, rho^t and (a t + b)^p with p >= 0."""
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


def _correction_factor(y: float) -> float:
    return y / math.expm1(y) if y < 700 else 0.0
