"""What can be proved about a schedule on start <= t <= stop, stop possibly infinite: range, sign, direction.

The argument is by form: ranges with exact ends for the values, and the elasticity t u'/u for the direction.
Everything here is one-sided: an answer is a proof, and "unknown" is always allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import (
    EVERYTHING,
    INFINITY,
    NOT_NEGATIVE,
    POSITIVE,
    Number,
    Precision,
    Range,
    apply,
    ball,
    closed_sum,
    number,
    point,
    sign_of_step,
    value,
)
from generic_adam.schedules.growth import positive_power
from generic_adam.schedules.normal import as_linear
from generic_adam.schedules.scan import filtered
from generic_adam.schedules.tree import Schedule, Table, rebuild

# The direction of a running sum needs its value where a stretch begins.
_FARTHEST_BEGINNING = 1 << 16
_CLOSE = 64
# From a running sum at this step the later ones are bounded by integrals.
_FAR = 1 << 14
# An elasticity beyond 2^4096 says no more than an infinite one.
_LARGEST = arb(2) ** 4096
_UNIT_RANGE = Range(arb(0), arb(1))
_ZERO = tree.operand(0)

# None stands for an infinite end.
End = fmpq | None


@dataclass(frozen=True)
class Elasticity:
    r"""t u'(t)/u(t), the local exponent of u, lies in [low, high]; None is minus or plus infinity.

    The elasticity of t^p is p, exactly; it adds under products, so that chi_t = t^-0.4 / sqrt(t^-0.8) has
    elasticity exactly 0.
    """

    low: End
    high: End

    @property
    def sign(self) -> int | None:
        """1, -1 or 0 where the elasticity is >= 0, <= 0 or = 0 throughout; None where it may change sign."""
        if self.low == 0 == self.high:
            return 0
        if self.low is not None and self.low >= 0:
            return 1
        return -1 if self.high is not None and self.high <= 0 else None

    def __add__(self, other: Elasticity) -> Elasticity:
        low = None if self.low is None or other.low is None else self.low + other.low
        return Elasticity(low, None if self.high is None or other.high is None else self.high + other.high)

    def scaled(self, factor: fmpq) -> Elasticity:
        """The elasticity of u^factor."""
        if factor == 0:
            return FLAT
        low, high = (self.low, self.high) if factor > 0 else (self.high, self.low)
        return Elasticity(None if low is None else low * factor, None if high is None else high * factor)

    def times(self, factor: Range) -> Elasticity:
        """The product with a range."""
        if self == FLAT:
            return self
        low = -INFINITY if self.low is None else arb(self.low)
        high = INFINITY if self.high is None else arb(self.high)
        # 0 is an end that must stay exact: the sign of the product is what matters.
        product = Range(point(low).low, point(high).high) * factor
        if self.low == 0 and factor.low >= 0:
            product = product.meet(NOT_NEGATIVE)
        if self.high == 0 and factor.low >= 0:
            product = -((-product).meet(NOT_NEGATIVE))
        return Elasticity(_as_end(product.low, -1), _as_end(product.high, 1))

    def hull(self, other: Elasticity) -> Elasticity:
        """The smallest interval that holds both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Elasticity(low, high)


FLAT = Elasticity(fmpq(0), fmpq(0))


def _as_end(value: arb, side: int) -> End:
    """An exact end as a fraction, moved outward where its exponent is out of all proportion."""
    if not value.is_finite():
        return None
    if value == 0:
        return fmpq(0)
    size, outward = abs(value), (value > 0) == (side > 0)
    if size > _LARGEST:
        return None if outward else fmpq(0)
    if size < 1 / _LARGEST:
        return side * (1 / _LARGEST).fmpq() if outward else fmpq(0)
    return value.fmpq()


@dataclass(frozen=True)
class Enclosure:
    """Facts about u_t on a stretch of t.

    Attributes:
        range: every u_t lies in it.
        direction: 1 non-decreasing, -1 non-increasing, 0 constant, None unknown.
        elasticity: an interval for t u'/u where u has one sign and is smooth between kinks, else None.
    """

    range: Range = EVERYTHING
    direction: int | None = None
    elasticity: Elasticity | None = None

    @property
    def sign(self) -> int:
        """1 or -1 where u_t > 0 or u_t < 0 for every t (the range may still touch 0 in the limit), else 0."""
        return self.range.sign

    @property
    def positive(self) -> bool:
        """Whether u_t > 0 at every t of the stretch."""
        return self.range.sign > 0


def enclose(schedule: Schedule, start: int, stop: float = math.inf) -> Enclosure:
    """Facts that hold for u_t at every t with start <= t <= stop."""
    stretch = (start, stop)
    known = schedule.known_facts
    if stretch not in known:
        with Precision():
            known[stretch] = _found(schedule, start, stop)
    return known[stretch]


def _found(schedule: Schedule, start: int, stop: float) -> Enclosure:
    if start == stop:
        here = point(value(schedule, start))
        if here.is_finite:
            return Enclosure(here, 0)
    found = enclosure_of[type(schedule)](schedule, start, stop)
    direction, bounds = found.direction, found.range
    if direction is None and found.elasticity is not None and found.sign:
        slope = found.elasticity.sign
        direction = None if slope is None else slope * found.sign
    # Of one moving part the form has the range already; of several it forgets that they move together.
    moving = sum(not child.is_constant for child in schedule.children)
    if direction is not None and (moving > 1 or isinstance(schedule, tree.OfWeights | tree.BiasCorrection)):
        bounds = bounds.meet(_range_of_monotone(schedule, direction, start, stop))
    return Enclosure(bounds, direction, found.elasticity)


def _range_of_monotone(schedule: Schedule, direction: int, start: int, stop: float) -> Range:
    """A monotone sequence lies between its first value and its last value or limit."""
    try:
        first = point(value(schedule, start))
        last = point(value(schedule, int(stop))) if math.isfinite(stop) else _limit(schedule)
    except ScheduleError:
        return EVERYTHING
    if last is None:
        return Range(first.low, INFINITY) if direction >= 0 else Range(-INFINITY, first.high)
    bounds = first.hull(last)
    growth = schedule.order
    if math.isinf(stop) and growth is not None and growth.trend < 0 and growth.sign == first.sign:
        # It falls (or rises) to 0, keeps its sign for ever, and never gets there.
        return Range(bounds.low, bounds.high, True)
    return bounds


def _limit(schedule: Schedule) -> Range | None:
    growth = schedule.order
    if growth is None or growth.trend > 0:
        return None
    return point(arb(0)) if growth.trend < 0 or growth.is_zero else growth.coefficient


enclosure_of: Table[Callable[[Any, int, float], Enclosure]] = Table("enclosures")
"""Node, start, stop -> facts from the form of the node."""


@enclosure_of.rule(tree.Constant)
def _(node: tree.Constant, start: int, _stop: float) -> Enclosure:
    return Enclosure(point(value(node, start)), 0, FLAT)


@enclosure_of.rule(tree.Time)
def _(_node: tree.Time, start: int, stop: float) -> Enclosure:
    last = INFINITY if math.isinf(stop) else point(arb(int(stop))).high
    return Enclosure(Range(point(arb(start)).low, last), 1, Elasticity(fmpq(1), fmpq(1)))


@enclosure_of.rule(tree.Opaque)
def _(_node: tree.Opaque, _start: int, _stop: float) -> Enclosure:
    return Enclosure()


@enclosure_of.rule(tree.Negate)
def _(node: tree.Negate, start: int, stop: float) -> Enclosure:
    return negated(enclose(node.operand, start, stop))


@enclosure_of.rule(tree.Power)
def _(node: tree.Power, start: int, stop: float) -> Enclosure:
    match node:
        case tree.Power(base, tree.Constant(exponent)):
            return raised(enclose(base, start, stop), number(exponent))
        case tree.Power(base, exponent) if base.is_constant and value(base, 1) > 0:
            return exponential(enclose(exponent, start, stop), point(apply("log", value(base, 1))))
        case tree.Power(base, exponent) if (facts := enclose(base, start, stop)).positive:
            product = multiplied(enclose(exponent, start, stop), applied("log", facts))
            return exponential(product, point(arb(1)))
        case _:
            return Enclosure()


@enclosure_of.rule(tree.Function)
def _(node: tree.Function, start: int, stop: float) -> Enclosure:
    inner = enclose(node.argument, start, stop)
    return raised(inner, fmpq(1, 2)) if node.name == "sqrt" else applied(node.name, inner)


@enclosure_of.rule(tree.Join)
def _(node: tree.Join, start: int, stop: float) -> Enclosure:
    if start >= node.threshold:
        return enclose(node.after, start, stop)
    if stop < node.threshold:
        return enclose(node.before, start, stop)
    before, after = enclose(node.before, start, node.threshold - 1), enclose(node.after, node.threshold, stop)
    # Across the jump the direction needs the two values there; callers split at joins, so it stays unknown.
    return Enclosure(before.range.hull(after.range))


@enclosure_of.rule(tree.Bounded)
def _(node: tree.Bounded, _start: int, _stop: float) -> Enclosure:
    return Enclosure(Range(arb(node.low), arb(node.high)))


@enclosure_of.rule(tree.Periodic)
def _(node: tree.Periodic, _start: int, _stop: float) -> Enclosure:
    low, high = extremes(node)
    return Enclosure(Range(point(low).low, point(high).high))


def extremes(node: tree.Periodic) -> tuple[Number, Number]:
    """The least and the largest value of a period: floats find the candidates, balls decide between them."""
    values, errors = filtered(node.body, np.arange(1.0, node.period + 1))
    if not np.isfinite(errors).all():
        raise ScheduleError(f"{node} is not a number everywhere in its period")
    found: list[Number] = []
    for ends, others in ((values - errors, values + errors), (-(values + errors), errors - values)):
        candidates = np.flatnonzero(ends <= others.min())
        if len(candidates) <= _CLOSE:
            numbers = [value(node.body, int(index) + 1) for index in candidates]
            sign = 1 if not found else -1
            least = numbers[0]
            for one in numbers[1:]:
                least = (
                    one
                    if sign * one <= sign * least
                    else least
                    if sign * least <= sign * one
                    else _nearer(one, least, sign)
                )
            found.append(least)
        else:
            found.append(arb(float(ends.min())) * (1 if not found else -1))
    return found[0], found[1]


def _nearer(one: Number, other: Number, sign: int) -> arb:
    return ball(one).min(ball(other)) if sign > 0 else ball(one).max(ball(other))


@enclosure_of.rule(tree.WeightShare)
def _(node: tree.WeightShare, start: int, stop: float) -> Enclosure:
    # w_t/W_t falls where w does; once it falls, it does so for ever while w is log-concave.
    bounds = Range(arb(0), arb(1), True)
    if not enclose(node.weights, 1).positive:
        return Enclosure()
    if start > _FAR and math.isfinite(stop) and (scaled := share_times_t(node, _FAR)) is not None:
        bounds = bounds.meet(scaled / Range(point(arb(start)).low, point(arb(int(stop))).high))
    weights = enclose(node.weights, max(start - 1, 1), stop)
    falls = weights.direction is not None and weights.direction <= 0
    near = start <= _FARTHEST_BEGINNING or closed_sum(node.weights, start) is not None
    if not falls and near and _is_log_concave(node.weights):
        step = sign_of_step(node, start + 1)
        falls = step is not None and step <= 0
    return Enclosure(bounds, -1 if falls else None)


@enclosure_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta, start: int, stop: float) -> Enclosure:
    share = enclose(node.complement, start, stop)
    found = summed(Enclosure(point(arb(1)), 0, FLAT), negated(share))
    if share.positive and (node.initial > 0 or start > 1):  # W_{t-1}/W_t > 0: some weight came before
        return replace(found, range=found.range.meet(Range(arb(0), arb(1), True)))
    return found


@enclosure_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection, start: int, stop: float) -> Enclosure:
    # It rises to at most 1; for a constant factor t u'/u = y/(e^y - 1) with y = -t log(factor).
    if not (enclose(node.factor, 1).range.low >= 0 and enclose(node.factor.complement, 1).positive):
        return Enclosure()
    elasticity = None
    if node.factor.is_constant and value(node.factor, 1) > 0:
        rate = -ball(apply("log", value(node.factor, 1)))
        ends = [_correction_factor(rate * arb(int(t))) if math.isfinite(t) else arb(0) for t in (stop, start)]
        elasticity = Elasticity(
            max(_as_end(ends[0].lower(), -1) or fmpq(0), fmpq(0)), _as_end(ends[1].upper(), 1)
        )
    return Enclosure(Range(arb(0), arb(1), True), 1, elasticity)


def _correction_factor(y: arb) -> arb:
    return y / y.expm1()


def negated(inner: Enclosure) -> Enclosure:
    """Facts about -u."""
    # The elasticity t u'/u does not see the sign of u.
    return Enclosure(-inner.range, None if inner.direction is None else -inner.direction, inner.elasticity)


def summed(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about u + v."""
    direction = _agreeing(left.direction, right.direction)
    return Enclosure(left.range + right.range, direction, _elasticity_of_sum(left, right))


def _elasticity_of_sum(left: Enclosure, right: Enclosure) -> Elasticity | None:
    """(l e_l + r e_r)/(l + r): the mean of the two with weights l/(l + r) and r/(l + r)."""
    if left.elasticity is None or right.elasticity is None:
        return None
    one = point(arb(1))
    pairs = ((left, left.elasticity, right), (right, right.elasticity, left))
    if left.positive and right.positive:
        if left.elasticity == right.elasticity:
            return left.elasticity
        for main, slope, other in pairs:
            if other.elasticity == FLAT and main.range.low > 0:
                share = one / (one + other.range / main.range)
                return slope.times(share.meet(_UNIT_RANGE))
        return left.elasticity.hull(right.elasticity)
    for main, slope, other in pairs:
        # a - b with one part constant: only the moving part contributes.
        if other.elasticity == FLAT and main.range.sign != 0:
            ratio = one + other.range / main.range
            if ratio.sign != 0:
                return slope.times(one / ratio)
    return None


def _agreeing(first: int | None, second: int | None) -> int | None:
    """The direction of a sum from those of its parts."""
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def multiplied(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about u v."""
    direction = _agreeing(left.direction, right.direction) if left.positive and right.positive else None
    if direction is None:
        direction = _scaled_direction(left, right)
    elasticity = None
    if left.elasticity is not None and right.elasticity is not None:
        elasticity = left.elasticity + right.elasticity
    return Enclosure(left.range * right.range, direction, elasticity)


def _scaled_direction(left: Enclosure, right: Enclosure) -> int | None:
    """A constant of known sign times anything monotone is monotone."""
    for one, other in ((left, right), (right, left)):
        if one.direction == 0 and other.direction is not None and one.sign:
            return one.sign * other.direction
    return None


def inverted(inner: Enclosure) -> Enclosure:
    """Facts about 1/u."""
    if not inner.sign:
        return Enclosure()
    if inner.sign < 0:
        return negated(inverted(negated(inner)))
    direction = None if inner.direction is None else -inner.direction
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(fmpq(-1))
    return Enclosure(point(arb(1)) / inner.range, direction, elasticity)


def raised(inner: Enclosure, exponent: fmpq) -> Enclosure:
    """Facts about u^exponent."""
    if not inner.positive:
        if exponent > 0 and exponent.q == 1 and exponent.p % 2 == 0:
            size = Range(arb(0), max(-inner.range.low, inner.range.high), bool(inner.sign))
            return Enclosure(positive_power(size, exponent))
        if exponent > 0 and inner.range.low >= 0:
            return Enclosure(positive_power(inner.range, exponent), inner.direction)
        if exponent.q == 1 and inner.sign < 0:
            facts = raised(negated(inner), exponent)
            return facts if exponent.p % 2 == 0 else negated(facts)
        return Enclosure()
    direction = None if inner.direction is None else inner.direction * (1 if exponent > 0 else -1)
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(exponent)
    return Enclosure(positive_power(inner.range, exponent), direction, elasticity)


def exponential(exponent: Enclosure, log_base: Range) -> Enclosure:
    """b^x = e^{x log b}: t u'/u = (x log b) e_x."""
    scaled = exponent.range * log_base
    bounds = scaled.mapped(arb.exp, True).meet(POSITIVE)
    rising = log_base.sign
    known = exponent.direction is not None and (rising or bool(log_base.low == 0 == log_base.high))
    direction = exponent.direction * rising if known and exponent.direction is not None else None
    elasticity = None if exponent.elasticity is None else exponent.elasticity.times(scaled)
    return Enclosure(bounds, direction, elasticity)


def applied(name: str, inner: Enclosure) -> Enclosure:
    """Facts about a named function of u."""
    bounds, direction = inner.range, inner.direction
    match name:
        case "exp":
            return exponential(inner, point(arb(1)))
        case "expm1":
            image = bounds.mapped(arb.expm1, bool(bounds.sign))
            return Enclosure(image, direction, _times(inner, _expm1_factor))
        case "log1p" if bounds.low > -1:
            image = bounds.mapped(arb.log1p, bool(bounds.sign))
            return Enclosure(image, direction, _times(inner, _log1p_factor))
        case "log" if inner.positive:
            image = bounds.mapped(lambda x: x.log() if x > 0 else -INFINITY)
            known = inner.elasticity is not None and image.sign
            elasticity = inner.elasticity.times(point(arb(1)) / image) if known and inner.elasticity else None
            return Enclosure(image, direction, elasticity)
        case "abs" if bounds.low >= 0 or bounds.high <= 0:
            return inner if bounds.low >= 0 else negated(inner)
        case "abs":
            return Enclosure(Range(arb(0), max(-bounds.low, bounds.high)))
        case "cos" if bounds.low >= 0 and bounds.high <= arb.pi():
            image = Range(bounds.high.cos().lower(), bounds.low.cos().upper())
            return Enclosure(image, None if direction is None else -direction)
        case "sin" | "cos":
            return Enclosure(oscillation(name, bounds))
        case _:
            return Enclosure()


def _times(inner: Enclosure, factor: Callable[[arb], arb]) -> Elasticity | None:
    """Elasticity times a positive monotone factor of the argument (expm1 and log1p)."""
    if inner.elasticity is None or not inner.sign:
        return None
    return inner.elasticity.times(point(factor(inner.range.low)).hull(point(factor(inner.range.high))))


def oscillation(name: str, argument: Range) -> Range:
    """Sin and cos move by no more than their argument does, and stay in [-1, 1]."""
    everywhere = Range(arb(-1), arb(1))
    if not argument.is_finite:
        return everywhere
    middle, half = (argument.low + argument.high) / 2, (argument.high - argument.low) / 2
    image = getattr(middle, name)()
    return Range((image - half).lower(), (image + half).upper()).meet(everywhere)


def _expm1_factor(x: arb) -> arb:
    """X e^x / (e^x - 1), increasing from 0 to infinity, 1 at 0."""
    if not x.is_finite():
        return arb(0) if x < 0 else INFINITY
    return arb(1) if x == 0 else x / -(-x).expm1()


def _log1p_factor(x: arb) -> arb:
    """X / ((1 + x) log(1 + x)), decreasing from infinity to 0, 1 at 0."""
    if not x.is_finite():
        return arb(0)
    return arb(1) if x == 0 else x / ((1 + x) * x.log1p())


def larger(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about max(u, v)."""
    if left.range.low >= right.range.high:
        return left
    if right.range.low >= left.range.high:
        return right
    low, high = max(left.range.low, right.range.low), max(left.range.high, right.range.high)
    positive = 1 in {left.sign, right.sign}
    bounds = Range(low, high, positive or left.sign == right.sign == -1)
    elasticity = None
    if left.elasticity is not None and right.elasticity is not None and left.sign == right.sign != 0:
        elasticity = left.elasticity.hull(right.elasticity)
    return Enclosure(bounds, _agreeing(left.direction, right.direction), elasticity)


_OF_TWO: dict[type[Schedule], Callable[[Enclosure, Enclosure], Enclosure]] = {
    tree.Add: summed,
    tree.Subtract: lambda u, v: summed(u, negated(v)),
    tree.Multiply: multiplied,
    tree.Divide: lambda u, v: multiplied(u, inverted(v)),
    tree.Maximum: larger,
    tree.Minimum: lambda u, v: negated(larger(negated(u), negated(v))),
}


@enclosure_of.rule(*_OF_TWO)
def _(node: tree.Binary, start: int, stop: float) -> Enclosure:
    return _OF_TWO[type(node)](enclose(node.left, start, stop), enclose(node.right, start, stop))


def resolved(
    node: Schedule,
    start: int,
    stop: float = math.inf,
    ahead: Callable[[Schedule, Schedule], int | None] = lambda _left, _right: None,
) -> Schedule:
    """The expression that a schedule is on a stretch: joins past, the side of a maximum or of abs(u) chosen.

    What runs from t = 1 on (sums, products, periods) stays whole.

    Args:
        node: the schedule.
        start: the first step.
        stop: the last step.
        ahead: 1 or 0 where its first argument is nowhere below the second, -1 where it is nowhere above it,
            None where that is open: then both sides stay.
    """
    if isinstance(node, tree.Constant | tree.Time | tree.OfWeights | tree.BiasCorrection | tree.Periodic):
        return node
    if isinstance(node, tree.Join) and (stop < node.threshold or start >= node.threshold):
        return resolved(node.before if stop < node.threshold else node.after, start, stop, ahead)
    node = rebuild(node, lambda child: resolved(child, start, stop, ahead))
    match node:
        case tree.Maximum(left, right) | tree.Minimum(left, right):
            order = ahead(left, right)
            if order is not None:
                return left if (order >= 0) == isinstance(node, tree.Maximum) else right
        case tree.Function("abs", argument):
            order = ahead(argument, _ZERO)
            if order is not None:
                return argument if order >= 0 else -argument
        case _:
            pass
    return node


def settled(node: Schedule, start: int, stop: float) -> Schedule:
    """The same sequence on a stretch, with every maximum and minimum replaced whose ranges tell the side."""

    def ahead(left: Schedule, right: Schedule) -> int | None:
        one, other = enclose(left, start, stop).range, enclose(right, start, stop).range
        return 1 if one.low >= other.high else -1 if other.low >= one.high else None

    return resolved(node, start, stop, ahead)


def share_times_t(node: tree.WeightShare, start: int) -> Range | None:
    """Bounds on t w_t / W_t for t >= start where w_t = c t^p with p > -1; None for other weights.

    With y = (start/t)^{p+1}, W_t/(t w_t) lies between a y + (1 - y)/(p + 1) and that plus 1/start, a being
    W_{start-1}/(start w_start): the sum of i^p is compared with its integral. It is linear in y, so its ends
    are at y = 0 and y = 1.
    """
    facts = enclose(node.weights, start)
    slope = facts.elasticity
    if not facts.positive or slope is None or slope.low is None or slope.low != slope.high or slope.low <= -1:
        return None
    with Precision():
        share = ball(value(node, start))
        first, limit = (1 / share - 1) / start, 1 / arb(slope.low + 1)
        low, high = point(first).hull(point(limit)).ends
        high = (high + arb(1) / start).upper()
        return Range((1 / high).lower(), (1 / low).upper()) if low > 0 else None


def _is_log_concave(node: Schedule) -> bool:
    """Whether log u_t is concave by form: a product of constants, rho^t and (a t + b)^p with p >= 0."""
    match node:
        case tree.Constant(value):
            return value > 0
        case tree.Multiply(left, right):
            return _is_log_concave(left) and _is_log_concave(right)
        case tree.Divide(left, tree.Constant(value)):
            return value > 0 and _is_log_concave(left)
        case tree.Power(tree.Constant(base), exponent):
            return base > 0 and as_linear(exponent) is not None
        case tree.Power(base, tree.Constant(exponent)):
            return exponent >= 0 and _is_log_concave(base)
        case tree.Function("sqrt", argument):
            return _is_log_concave(argument)
        case tree.Function("exp", argument):
            return as_linear(argument) is not None
        case _:
            line = as_linear(node)
            return line is not None and line[0] + line[1] > 0 and line[0] >= 0


def factors(schedule: Schedule) -> dict[Schedule, Fraction]:
    """U = prod base_i ^ exponent_i, equal bases collected; (t+1)^-0.5 / sqrt(1/(t+1)) has none left."""
    found: dict[Schedule, Fraction] = {}
    for base, exponent in _flattened(schedule, Fraction(1)):
        total = found.pop(base, Fraction(0)) + exponent
        if total:
            found[base] = total
    return found


def collected(schedule: Schedule) -> Schedule:
    """The same positive sequence with equal factors merged."""
    result: Schedule = tree.Constant(Fraction(1))
    for base, exponent in factors(schedule).items():
        result = result * (base ** tree.Constant(exponent))
    return result


def _flattened(node: Schedule, exponent: Fraction) -> list[tuple[Schedule, Fraction]]:
    whole = exponent.denominator == 1
    match node:
        # sqrt(x y) is sqrt(x) sqrt(y), and sqrt(x^2) is x, only where x and y are positive.
        case tree.Multiply(left, right) if whole or _are_positive(left, right):
            return _flattened(left, exponent) + _flattened(right, exponent)
        case tree.Divide(left, right) if whole or _are_positive(left, right):
            return _flattened(left, exponent) + _flattened(right, -exponent)
        case tree.Power(base, tree.Constant(value)) if whole or _are_positive(base):
            return _flattened(base, exponent * value)
        case tree.Function("sqrt", argument):
            return _flattened(argument, exponent / 2)
        case tree.Constant(value) if value == 1:
            return []
        case _:
            return [(node, exponent)]


def _are_positive(*parts: Schedule) -> bool:
    return all(enclose(part, 1).positive for part in parts)
