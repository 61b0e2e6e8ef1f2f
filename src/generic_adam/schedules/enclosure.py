"""Proofs by form about a schedule on start <= t <= stop, stop possibly infinite: range, sign, direction.

Ranges have exact ends, and directions combine as signs do: a sum of two that fall falls, so does a product of two that
are positive and fall. Everything here is one-sided: an answer is a proof, and "unknown" is always allowed. What moves
in two directions at once, such as log(t)/t, is left to the expansions.
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
    EVERYTHING,
    INFINITY,
    ONE,
    POSITIVE,
    Number,
    Range,
    apply,
    number,
    point,
    sign_of_step,
    smaller,
    value,
)
from generic_adam.schedules.normal import as_exponential, as_linear, factored
from generic_adam.schedules.rounding import filtered
from generic_adam.schedules.tree import Schedule, Table, exact, rebuild, remembered

Last = TypeVar("Last", bound=float)

# The direction of a running sum needs its value where a stretch begins.
_FARTHEST_BEGINNING = 1 << 16
# So many candidates for the least value of a period are compared in balls.
_CLOSE = 64
NOTHING = Range(fmpq(0), fmpq(0))
"""The range of the number 0."""
_SHARE = Range(fmpq(0), fmpq(1), True)
_ZERO = tree.operand(0)


@dataclass(frozen=True)
class Enclosure:
    """Facts about u_t on a stretch of t.

    Attributes:
        range: every u_t lies in it.
        direction: 1 non-decreasing, -1 non-increasing, 0 constant, None unknown.
    """

    range: Range = EVERYTHING
    direction: int | None = None

    @property
    def sign(self) -> int:
        """1 or -1 where u_t > 0 or u_t < 0 for every t (the range may still touch 0 in the limit), else 0."""
        return self.range.sign

    @property
    def positive(self) -> bool:
        """Return whether u_t > 0 at every t of the stretch."""
        return self.range.sign > 0

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.range, _turned(self.direction, -1))

    def __add__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.range + other.range, _agreeing(self.direction, other.direction))

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
        return Enclosure(self.range * other.range, direction)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        return self * other ** fmpq(-1)

    def __pow__(self, exponent: fmpq) -> Enclosure:
        bounds = self.range**exponent
        if self.positive:
            return Enclosure(bounds, _turned(self.direction, 1 if exponent > 0 else -1))
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
        return Enclosure(self.range.largest(other.range), _agreeing(self.direction, other.direction))

    def smallest(self, other: Enclosure) -> Enclosure:
        """Facts about min(u, v)."""
        return -(-self).largest(-other)


def _turned(direction: int | None, sign: int) -> int | None:
    return None if direction is None else sign * direction


def _agreeing(first: int | None, second: int | None) -> int | None:
    """Return the direction of a sum from those of its parts."""
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def stretches(first: int, last: Last, cuts: Iterable[int]) -> list[tuple[int, int | Last]]:
    """Return the steps first..last parted at cuts; a cut is the first step of a new stretch."""
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
    # Of one moving part the form has the range already; of several it forgets that they move together.
    moving = sum(not child.is_constant for child in schedule.children)
    if direction is not None and (moving > 1 or isinstance(schedule, tree.OfWeights | tree.BiasCorrection)):
        bounds = bounds.meet(_range_of_monotone(schedule, direction, start, stop))
    return Enclosure(bounds, direction)


def _range_of_monotone(schedule: Schedule, direction: int, start: int, stop: float) -> Range:
    """Return the range between the first value of a monotone sequence and its last value or limit."""
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
    return NOTHING if growth.trend < 0 or growth.is_zero else growth.coefficient


def exponential(exponent: Enclosure, log_base: Range = ONE) -> Enclosure:
    """Facts about b^x = e^{x log b}."""
    direction = None if log_base.trend is None else _turned(exponent.direction, log_base.trend)
    return Enclosure((exponent.range * log_base).image("exp").meet(POSITIVE), direction)


def applied(name: str, inner: Enclosure) -> Enclosure:
    """Facts about a named function of u."""
    if name in {"sqrt", "exp"}:
        return exponential(inner) if name == "exp" else inner ** fmpq(1, 2)
    bounds, image = inner.range, inner.range.image(name)
    if name == "abs":
        return inner if bounds.low >= 0 else -inner if bounds.high <= 0 else Enclosure(image)
    if name == "cos" and bounds.low >= 0 and bounds.high <= arb.pi():
        return Enclosure((-bounds).mapped(lambda x: apply("cos", x)), _turned(inner.direction, -1))
    if name in {"sin", "cos"}:
        return Enclosure(image)
    defined = name == "expm1" or (inner.positive if name == "log" else bounds.low > -1)
    return Enclosure(image, inner.direction) if defined else Enclosure()


enclosure_of: Table[Callable[[Any, int, float], Enclosure]] = Table("enclosures")
"""Node, start, stop -> facts from the form of the node."""


def _of_two(
    operation: Callable[[Enclosure, Enclosure], Enclosure],
) -> Callable[[tree.Binary, int, float], Enclosure]:
    return lambda node, start, stop: operation(enclose(node.left, start, stop), enclose(node.right, start, stop))


def _time(_node: tree.Time, start: int, stop: float) -> Enclosure:
    last = INFINITY if math.isinf(stop) else fmpq(int(stop))
    return Enclosure(Range(fmpq(start), last), 1)


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
    """Return the least and the largest value of a period: floats find candidates and balls decide."""
    times = np.arange(1.0, node.period + 1)
    values, errors = filtered(node.body, times)
    if not np.isfinite(errors).all():
        raise ScheduleError(f"{node} is not a number everywhere in its period")
    found: list[Number] = []
    for side in (1, -1):
        lowest = side * values - errors
        near = times[lowest <= (side * values + errors).min()]
        if len(near) > _CLOSE:
            found.append(side * arb(float(lowest.min())))
        else:
            found.append(side * reduce(smaller, [side * value(node.body, int(t)) for t in near]))
    return found[0], found[1]


def _periodic(node: tree.Periodic, _start: int, _stop: float) -> Enclosure:
    low, high = extremes(node)
    return Enclosure(Range(point(low).low, point(high).high))


def _share(node: tree.WeightShare, start: int, stop: float) -> Enclosure:
    # w_t/W_t falls where w does; once it falls, it does so for ever while w is log-concave.
    if not enclose(node.weights, 1).positive:
        return Enclosure()
    weights = enclose(node.weights, max(start - 1, 1), stop)
    falls = weights.direction is not None and weights.direction <= 0
    if not falls and start <= _FARTHEST_BEGINNING and _is_log_concave(node.weights):
        step = sign_of_step(node, start + 1)
        falls = step is not None and step <= 0
    return Enclosure(_SHARE, -1 if falls else None)


def _theta(node: tree.WeightedTheta, start: int, stop: float) -> Enclosure:
    share = enclose(node.complement, start, stop)
    found = Enclosure(ONE, 0) - share
    # W_{t-1}/W_t > 0: W_0 is.
    return replace(found, range=found.range.meet(_SHARE)) if share.positive else found


def _correction(node: tree.BiasCorrection, _start: int, _stop: float) -> Enclosure:
    # It rises, to at most 1.
    inside = enclose(node.factor, 1).range.low >= 0 and enclose(node.factor.complement, 1).positive
    return Enclosure(_SHARE, 1) if inside else Enclosure()


enclosure_of.update(
    {
        tree.Constant: lambda node, start, _stop: Enclosure(point(value(node, start)), 0),
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
    """Return the expression of a schedule on a stretch: joins past, the side of a maximum or of abs(u) chosen.

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


def sides(node: Schedule) -> tuple[Schedule, Schedule] | None:
    """Return the two branches of a maximum, a minimum or (but for its sign) an absolute value, or None."""
    match node:
        case tree.Maximum(left, right) | tree.Minimum(left, right):
            return left, right
        case tree.Function("abs", argument):
            return argument, _ZERO
        case _:
            return None


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
    """Return the same sequence on a stretch with equal factors merged."""
    result: Schedule = tree.Constant(Fraction(1))
    for base, exponent in factors(schedule, start, stop).items():
        result = result * (base ** tree.Constant(exponent))
    return result
