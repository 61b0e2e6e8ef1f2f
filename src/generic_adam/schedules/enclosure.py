"""Proofs by form about a schedule on start <= t <= stop, stop possibly infinite: range, sign, direction.

The argument is by form: ranges with exact ends for the values, and the elasticity t u'/u for the direction.
The elasticity of t^p is p, exactly; it adds under products, so that chi_t = t^-0.4 / sqrt(t^-0.8) has
elasticity exactly 0. Everything here is one-sided: an answer is a proof, and "unknown" is always allowed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import (
    INFINITY,
    Number,
    Precision,
    apply,
    ball,
    closed_sum,
    number,
    sign_of_step,
    smaller,
    value,
)
from generic_adam.schedules.normal import as_exponential, as_linear, factored
from generic_adam.schedules.ranges import EVERYTHING, ONE, POSITIVE, Range, is_finite, point
from generic_adam.schedules.rounding import BLOCK, filtered
from generic_adam.schedules.tree import Schedule, Table, exact, rebuild, remembered, walk
from generic_adam.schedules.work import poll

Last = TypeVar("Last", bound=float)

# The direction of a running sum needs its value where a stretch begins.
_FARTHEST_BEGINNING = 1 << 16
# So many candidates for the least value of a period are compared in balls.
_CLOSE = 64
# From a running sum at this step the later ones are bounded by integrals.
_FAR = 1 << 14
FLAT = Range(fmpq(0), fmpq(0))
"""The elasticity of a constant."""
_SHARE = Range(fmpq(0), fmpq(1), True)
_ZERO = tree.operand(0)


@dataclass(frozen=True)
class Enclosure:
    """Facts about u_t on a stretch of t.

    Attributes:
        range: every u_t lies in it.
        direction: 1 non-decreasing, -1 non-increasing, 0 constant, None unknown.
        elasticity: where t u'/u lies, if u has one sign and is smooth between kinks, else None.
    """

    range: Range = EVERYTHING
    direction: int | None = None
    elasticity: Range | None = None

    @property
    def sign(self) -> int:
        """1 or -1 where u_t > 0 or u_t < 0 for every t (the range may still touch 0 in the limit), else 0."""
        return self.range.sign

    @property
    def positive(self) -> bool:
        """Return whether u_t > 0 at every t of the stretch."""
        return self.range.sign > 0

    def times_elasticity(self, factor: Range) -> Range | None:
        """The elasticity times a range."""
        return None if self.elasticity is None else self.elasticity * factor

    def __neg__(self) -> Enclosure:
        # The elasticity does not see the sign of u.
        return Enclosure(-self.range, _turned(self.direction, -1), self.elasticity)

    def __add__(self, other: Enclosure) -> Enclosure:
        direction = _agreeing(self.direction, other.direction)
        return Enclosure(self.range + other.range, direction, _elasticity_of_sum(self, other))

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + (-other)

    def __mul__(self, other: Enclosure) -> Enclosure:
        direction = None
        if self.positive and other.positive:
            direction = _agreeing(self.direction, other.direction)
        for one, two in ((self, other), (other, self)):
            # A constant of known sign times anything monotone is monotone.
            if direction is None and one.direction == 0 and one.sign:
                direction = _turned(two.direction, one.sign)
        elasticity = None
        if self.elasticity is not None and other.elasticity is not None:
            elasticity = self.elasticity + other.elasticity
        return Enclosure(self.range * other.range, direction, elasticity)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        return self * other ** fmpq(-1)

    def __pow__(self, exponent: fmpq) -> Enclosure:
        bounds = self.range**exponent
        if self.positive:
            direction = _turned(self.direction, 1 if exponent > 0 else -1)
            return Enclosure(bounds, direction, self.times_elasticity(point(exponent)))
        if self.sign < 0 and exponent.q == 1:
            facts = (-self) ** exponent
            return facts if exponent.p % 2 == 0 else -facts
        if exponent < 0:
            return Enclosure()
        return Enclosure(bounds, self.direction if self.range.low >= 0 else None)

    def largest(self, other: Enclosure) -> Enclosure:
        """Facts about max(u, v)."""
        if self.range.low >= other.range.high:
            return self
        if other.range.low >= self.range.high:
            return other
        elasticity = None
        if self.elasticity is not None and other.elasticity is not None and self.sign == other.sign != 0:
            elasticity = self.elasticity.hull(other.elasticity)
        direction = _agreeing(self.direction, other.direction)
        return Enclosure(self.range.largest(other.range), direction, elasticity)

    def smallest(self, other: Enclosure) -> Enclosure:
        """Facts about min(u, v)."""
        return -(-self).largest(-other)


def _turned(direction: int | None, sign: int) -> int | None:
    return None if direction is None else sign * direction


def _agreeing(first: int | None, second: int | None) -> int | None:
    """The direction of a sum from those of its parts."""
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def _elasticity_of_sum(left: Enclosure, right: Enclosure) -> Range | None:
    """(l e_l + r e_r)/(l + r): the mean of the two with weights l/(l + r) and r/(l + r)."""
    if left.elasticity is None or right.elasticity is None:
        return None
    together = left.positive and right.positive
    if together and left.elasticity == right.elasticity:
        return left.elasticity
    for main, other in ((left, right), (right, left)):
        # With one part constant, only the moving part contributes.
        if other.elasticity == FLAT and main.sign:
            ratio = ONE + other.range / main.range
            if ratio.sign:
                share = ONE / ratio
                return main.times_elasticity(share.meet(_SHARE) if together else share)
    return left.elasticity.hull(right.elasticity) if together else None


def stretches(first: int, last: Last, cuts: Iterable[int]) -> list[tuple[int, int | Last]]:
    """The steps first..last parted at cuts; a cut is the first step of a new stretch."""
    inner = sorted({cut for cut in cuts if first < cut <= last})
    return list(zip([first, *inner], [*(cut - 1 for cut in inner), last], strict=True))


@remembered
def enclose(schedule: Schedule, start: int, stop: float = math.inf) -> Enclosure:
    """Facts that hold for u_t at every t with start <= t <= stop."""
    if start == stop:
        here = point(value(schedule, start))
        if here.is_finite:
            return Enclosure(here, 0)
    found = enclosure_of[type(schedule)](schedule, start, stop)
    direction, bounds = found.direction, found.range
    if direction is None and found.elasticity is not None and found.sign:
        direction = _turned(found.elasticity.trend, found.sign)
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
    if math.isinf(stop) and growth is not None and growth.trend < 0 and growth.sign == first.sign != 0:
        # It falls (or rises) to 0, keeps its sign for ever, and never gets there.
        return Range(bounds.low, bounds.high, True)
    return bounds


def _limit(schedule: Schedule) -> Range | None:
    growth = schedule.order
    if growth is None or growth.trend > 0:
        return None
    return FLAT if growth.trend < 0 or growth.is_zero else growth.coefficient


def exponential(exponent: Enclosure, log_base: Range = ONE) -> Enclosure:
    """b^x = e^{x log b}: t u'/u = (x log b) e_x."""
    scaled = exponent.range * log_base
    direction = None if log_base.trend is None else _turned(exponent.direction, log_base.trend)
    return Enclosure(scaled.image("exp").meet(POSITIVE), direction, exponent.times_elasticity(scaled))


def applied(name: str, inner: Enclosure) -> Enclosure:
    """Facts about a named function of u."""
    if name in {"sqrt", "exp"}:
        return exponential(inner) if name == "exp" else inner ** fmpq(1, 2)
    bounds, image, direction = inner.range, inner.range.image(name), inner.direction
    known = bool(inner.sign)
    match name:
        case "expm1":
            factor = bounds.mapped(_expm1_factor)
        case "log1p" if bounds.low > -1:
            factor = (-bounds).mapped(_log1p_factor)
        case "log" if inner.positive:
            factor, known = ONE / image, bool(image.sign)
        case "abs":
            return inner if bounds.low >= 0 else -inner if bounds.high <= 0 else Enclosure(image)
        case "cos" if bounds.low >= 0 and bounds.high <= arb.pi():
            falling = (-bounds).mapped(lambda x: apply("cos", x))
            return Enclosure(falling, _turned(direction, -1))
        case "sin" | "cos":
            return Enclosure(image)
        case _:
            return Enclosure()
    return Enclosure(image, direction, inner.times_elasticity(factor) if known else None)


def _expm1_factor(x: Number) -> Number:
    """x e^x / (e^x - 1), increasing from 0 to infinity, 1 at 0."""
    if not is_finite(x):
        return fmpq(0) if x < 0 else INFINITY
    return fmpq(1) if x == 0 else x / -apply("expm1", -x)


def _log1p_factor(negative: Number) -> Number:
    """x / ((1 + x) log(1 + x)) at x = -negative: falling in x from infinity to 0, 1 at 0."""
    x = -negative
    if not is_finite(x):
        return fmpq(0)
    return fmpq(1) if x == 0 else x / ((1 + x) * apply("log1p", x))


enclosure_of: Table[Callable[[Any, int, float], Enclosure]] = Table("enclosures")
"""Node, start, stop -> facts from the form of the node."""


def _of_two(
    operation: Callable[[Enclosure, Enclosure], Enclosure],
) -> Callable[[tree.Binary, int, float], Enclosure]:
    return lambda node, start, stop: operation(enclose(node.left, start, stop), enclose(node.right, start, stop))


def _time(_node: tree.Time, start: int, stop: float) -> Enclosure:
    last = INFINITY if math.isinf(stop) else fmpq(int(stop))
    return Enclosure(Range(fmpq(start), last), 1, ONE)


def _difference(node: tree.Subtract, start: int, stop: float) -> Enclosure:
    found = enclose(node.left, start, stop) - enclose(node.right, start, stop)
    match node:
        case tree.Subtract(tree.Constant(Fraction(numerator=1, denominator=1)), tree.BiasCorrection(factor)) if enclose(
            factor, 1
        ).positive:  # 1 - (1 - prod): a product of positive numbers
            return replace(found, range=found.range.meet(POSITIVE))
        case _:
            return found


def _power(node: tree.Power, start: int, stop: float) -> Enclosure:
    base, exponent = node.left, node.right
    if isinstance(exponent, tree.Constant):
        return enclose(base, start, stop) ** number(exponent.value)
    if base.is_constant and value(base, 1) > 0:
        return exponential(enclose(exponent, start, stop), point(apply("log", value(base, 1))))
    facts = enclose(base, start, stop)
    return exponential(enclose(exponent, start, stop) * applied("log", facts)) if facts.positive else Enclosure()


def _join(node: tree.Join, start: int, stop: float) -> Enclosure:
    if start >= node.threshold:
        return enclose(node.after, start, stop)
    if stop < node.threshold:
        return enclose(node.before, start, stop)
    before, after = enclose(node.before, start, node.threshold - 1), enclose(node.after, node.threshold, stop)
    # Across the jump the direction needs the two values there; callers split at joins, so it stays unknown.
    return Enclosure(before.range.hull(after.range))


@remembered
def extremes(node: tree.Periodic) -> tuple[Number, Number]:
    """The least and the largest value of a period: by form, or floats find candidates and balls decide."""
    body, period = node.body, node.period
    if enclose(body, 1, period).direction is not None and is_defined(body, 1, period):
        ends = value(body, 1), value(body, period)
        return reduce(smaller, ends), -reduce(smaller, (-end for end in ends))
    least = {1: math.inf, -1: math.inf}
    # For u and for -u: the steps that may have the least value, and below which number it is not there.
    kept = {side: (np.empty(0), np.empty(0)) for side in least}
    for begin in range(1, period + 1, BLOCK):
        poll()
        times = np.arange(begin, min(begin + BLOCK, period + 1), dtype=np.float64)
        values, errors = filtered(body, times)
        if not np.isfinite(errors).all():
            raise ScheduleError(f"{node} is not a number everywhere in its period")
        for side in kept:
            least[side] = min(least[side], float((side * values + errors).min()))
            steps = np.concatenate([kept[side][0], times])
            lowest = np.concatenate([kept[side][1], side * values - errors])
            near = lowest <= least[side]
            kept[side] = steps[near], lowest[near]
    found: list[Number] = []
    for side, (steps, lowest) in kept.items():
        if len(steps) > _CLOSE:
            found.append(side * arb(float(lowest.min())))
        else:
            found.append(side * reduce(smaller, [side * value(body, int(t)) for t in steps]))
    return found[0], found[1]


def _periodic(node: tree.Periodic, _start: int, _stop: float) -> Enclosure:
    low, high = extremes(node)
    return Enclosure(Range(point(low).low, point(high).high))


def _share(node: tree.WeightShare, start: int, stop: float) -> Enclosure:
    # w_t/W_t falls where w does; once it falls, it does so for ever while w is log-concave.
    bounds = _SHARE
    if not enclose(node.weights, 1).positive:
        return Enclosure()
    if start > _FAR and math.isfinite(stop) and (scaled := share_times_t(node, _FAR)) is not None:
        bounds = bounds.meet(scaled / Range(fmpq(start), fmpq(int(stop))))
    weights = enclose(node.weights, max(start - 1, 1), stop)
    falls = weights.direction is not None and weights.direction <= 0
    near = start <= _FARTHEST_BEGINNING or closed_sum(node.weights, start) is not None
    if not falls and near and _is_log_concave(node.weights):
        step = sign_of_step(node, start + 1)
        falls = step is not None and step <= 0
    return Enclosure(bounds, -1 if falls else None)


def _theta(node: tree.WeightedTheta, start: int, stop: float) -> Enclosure:
    share = enclose(node.complement, start, stop)
    found = Enclosure(ONE, 0, FLAT) - share
    # W_{t-1}/W_t > 0: W_0 is.
    return replace(found, range=found.range.meet(_SHARE)) if share.positive else found


def _correction(node: tree.BiasCorrection, start: int, stop: float) -> Enclosure:
    # It rises to at most 1; for a constant factor t u'/u = y/(e^y - 1) with y = -t log(factor), which falls.
    if not (enclose(node.factor, 1).range.low >= 0 and enclose(node.factor.complement, 1).positive):
        return Enclosure()
    elasticity = None
    if node.factor.is_constant and value(node.factor, 1) > 0:
        rate = ball(apply("log", value(node.factor, 1)))
        times = Range(-INFINITY if math.isinf(stop) else fmpq(-int(stop)), fmpq(-start))
        falling = times.mapped(lambda t: rate * t / (rate * t).expm1() if is_finite(t) else fmpq(0))
        elasticity = falling.meet(POSITIVE)
    return Enclosure(_SHARE, 1, elasticity)


enclosure_of.update(
    {
        tree.Constant: lambda node, start, _stop: Enclosure(point(value(node, start)), 0, FLAT),
        tree.Time: _time,
        tree.Add: _of_two(operator.add),
        tree.Subtract: _difference,
        tree.Multiply: _of_two(operator.mul),
        tree.Divide: _of_two(Enclosure.__truediv__),
        tree.Power: _power,
        tree.Maximum: _of_two(Enclosure.largest),
        tree.Minimum: _of_two(Enclosure.smallest),
        tree.Negate: lambda node, start, stop: -enclose(node.operand, start, stop),
        tree.Function: lambda node, start, stop: applied(node.name, enclose(node.argument, start, stop)),
        tree.Join: _join,
        tree.Periodic: _periodic,
        # A bound 0.1 is 1/10 where it was written, and the float where it was computed: the wider of the two.
        tree.Bounded: lambda node, _start, _stop: Enclosure(
            Range(
                number(min(exact(node.low), Fraction(node.low))),
                number(max(exact(node.high), Fraction(node.high))),
            )
        ),
        tree.WeightShare: _share,
        tree.WeightedTheta: _theta,
        tree.BiasCorrection: _correction,
        tree.Opaque: lambda _node, _start, _stop: Enclosure(),
    }
)


@remembered
def is_defined(node: Schedule, start: int, stop: float = math.inf) -> bool:
    """Return whether the form tells that u_t is a number at every t with start <= t <= stop.

    A range does not tell: sin(1/(t - 7)) lies in [-1, 1], and has no value at t = 7.
    """
    if isinstance(node, tree.Opaque):  # nobody knows before it is called
        return False
    if isinstance(node, tree.Periodic | tree.Bounded):  # looked at, vouched for
        return True
    if isinstance(node, tree.OfWeights | tree.BiasCorrection):
        start = 1
    if isinstance(node, tree.Join):
        cut = node.threshold
        return (start >= cut or is_defined(node.before, start, min(stop, cut - 1))) and (
            stop < cut or is_defined(node.after, max(start, cut), stop)
        )
    if not all(is_defined(child, start, stop) for child in node.children):
        return False
    match node:
        case tree.Divide(_, base):
            needed = Fraction(-1)
        case tree.Power(base, tree.Constant(exponent)):
            needed = exponent
        case tree.Function("sqrt", base):
            needed = Fraction(1, 2)
        case tree.Function("log", inner) | tree.Power(inner, _) | tree.OfWeights(inner):
            return enclose(inner, start, stop).positive
        case tree.Function("log1p", inner):
            return bool(enclose(inner, start, stop).range.low > -1)
        case _:
            return node.total or isinstance(node, tree.BiasCorrection)
    facts = enclose(base, start, stop)
    if needed < 0 and not facts.sign:
        return False
    return needed.denominator == 1 or bool(facts.range.low >= 0)


def resolved(
    node: Schedule,
    start: int,
    stop: float = math.inf,
    ahead: Callable[[Schedule, Schedule], int | None] = lambda _left, _right: None,
) -> Schedule:
    """The expression that a schedule is on a stretch: joins past, the side of a maximum or of abs(u) chosen.

    What runs from t = 1 on (sums, products, periods) stays whole. `ahead` tells 1 or 0 where its first argument
    is nowhere below the second, -1 where it is nowhere above it, None where that is open: then both stay.
    """
    if isinstance(node, tree.Join) and (stop < node.threshold or start >= node.threshold):
        return resolved(node.before if stop < node.threshold else node.after, start, stop, ahead)
    if not (node.pointwise or isinstance(node, tree.Join)):
        return node
    node = rebuild(node, lambda child: resolved(child, start, stop, ahead))
    two = sides(node)
    order = None if two is None else ahead(*two)
    if two is None or order is None:
        return node
    left, right = two
    if isinstance(node, tree.Function):
        return left if order >= 0 else -left
    return left if (order >= 0) == isinstance(node, tree.Maximum) else right


def settled(node: Schedule, start: int, stop: float) -> Schedule:
    """The same sequence on a stretch, with every maximum and minimum replaced of which the side is proved."""

    def ahead(left: Schedule, right: Schedule) -> int | None:
        if not (is_defined(left, start, stop) and is_defined(right, start, stop)):
            return None  # of what has no value neither is ahead
        one, other = enclose(left, start, stop), enclose(right, start, stop)
        apart = one.range - other.range
        if apart.trend is None and one.positive and other.positive:  # two that move together
            apart = enclose(left / right, start, stop).range - ONE
        return apart.trend

    return resolved(node, start, stop, ahead)


def sides(node: Schedule) -> tuple[Schedule, Schedule] | None:
    """Return the two branches of a maximum, a minimum or (but for its sign) an absolute value, or None."""
    match node:
        case tree.Maximum(left, right) | tree.Minimum(left, right):
            return left, right
        case tree.Function("abs", argument):
            return argument, _ZERO
        case _:
            return None


def has_kinks(schedule: Schedule) -> bool:
    """Return whether a join, a maximum, a minimum or an absolute value is part of the schedule."""
    return any(isinstance(node, tree.Join) or sides(node) is not None for node in walk(schedule))


def share_times_t(node: tree.WeightShare, start: int) -> Range | None:
    """Bounds on t w_t / W_t for t >= start where w_t = c t^p with p > -1; None for other weights.

    With y = (start/t)^{p+1}, W_t/(t w_t) lies between a y + (1 - y)/(p + 1) and that plus 1/start, a being
    W_{start-1}/(start w_start): the sum of i^p is compared with its integral. It is linear in y, so its ends
    are at y = 0 and y = 1.
    """
    facts = enclose(node.weights, start)
    slope = facts.elasticity
    exponent = None if slope is None else slope.number
    if not facts.positive or exponent is None or exponent <= -1:
        return None
    with Precision():
        share = ball(value(node, start))
        first, limit = (1 / share - 1) / start, 1 / arb(exponent + 1)
        inverse = point(first).hull(point(limit)) + Range(fmpq(0), fmpq(1, start))
        return ONE / inverse if inverse.low > 0 else None


def _is_log_concave(node: Schedule) -> bool:
    """Return whether log u_t is concave by form: constants, rho^t, (a t + b)^p, log(a t + b)^p, p >= 0, multiplied."""
    for base, exponent in factored(node).items():
        if as_exponential(base) is not None:
            continue
        # A positive concave function has a concave logarithm.
        least = Fraction(0)
        match base:
            case tree.Function("log", line):
                least = Fraction(1)
            case tree.Function("log1p", line):
                pass
            case line:
                pass
        slope, offset = as_linear(line) or (Fraction(-1), Fraction(0))
        if slope < 0 or slope + offset <= least or (slope and exponent < 0):
            return False
    return True


def factors(schedule: Schedule, start: int = 1, stop: float = math.inf) -> dict[Schedule, Fraction]:
    """u = prod base_i ^ exponent_i on a stretch, equal bases collected; a number exactly where u_t is one."""

    def positive(part: Schedule) -> bool:
        return enclose(part, start, stop).positive and is_defined(part, start, stop)

    return factored(schedule, positive)


def collected(schedule: Schedule, start: int = 1, stop: float = math.inf) -> Schedule:
    """The same sequence on a stretch with equal factors merged."""
    result: Schedule = tree.Constant(Fraction(1))
    for base, exponent in factors(schedule, start, stop).items():
        result = result * (base ** tree.Constant(exponent))
    return result
