"""How facts about parts become facts about their sum, product, power, function or maximum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from generic_adam.schedules.elasticity import Elasticity, of_power
from generic_adam.schedules.intervals import EVERYTHING, Interval, around, point

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


def negated(inner: Enclosure) -> Enclosure:
    """Facts about -u."""
    # The elasticity t u'/u does not see the sign of u.
    direction = None if inner.direction is None else -inner.direction
    return Enclosure(-inner.range, -inner.sign, direction, inner.elasticity)


def summed(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about u + v."""
    total = left.range + right.range
    direction = _agreeing(left.direction, right.direction)
    positive = (left.positive and right.range.low >= 0) or (right.positive and left.range.low >= 0)
    negative = (left.sign < 0 and right.range.high <= 0) or (right.sign < 0 and left.range.high <= 0)
    return Enclosure(total, int(positive) - int(negative), direction, _elasticity_of_sum(left, right))


def _elasticity_of_sum(left: Enclosure, right: Enclosure) -> Elasticity | None:
    """(l e_l + r e_r)/(l + r): the mean of the two with weights l/(l + r) and r/(l + r)."""
    if left.elasticity is None or right.elasticity is None:
        return None
    pairs = ((left, left.elasticity, right), (right, right.elasticity, left))
    if left.positive and right.positive:
        if left.elasticity == right.elasticity == FLAT:
            return FLAT
        for main, slope, other in pairs:
            if other.elasticity == FLAT and main.range.low > 0:
                share = point(1.0) / (point(1.0) + other.range / main.range)
                return slope.times(share.meet(Interval(0.0, 1.0)))
        return left.elasticity.hull(right.elasticity)
    for main, slope, other in pairs:
        # a - b with one part constant: only the moving part contributes.
        if other.elasticity == FLAT and main.range.sign != 0:
            ratio = point(1.0) + other.range / main.range
            if ratio.sign != 0:
                return slope.times(point(1.0) / ratio)
    return None


def _agreeing(first: int | None, second: int | None) -> int | None:
    """The direction of a sum from those of its parts."""
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def multiplied(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about u v."""
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


def inverted(inner: Enclosure) -> Enclosure:
    """Facts about 1/u."""
    if not inner.sign:
        return Enclosure()
    if inner.sign < 0:
        return negated(inverted(negated(inner)))
    bounds = point(1.0) / inner.range.meet(Interval(0.0, math.inf))
    direction = None if inner.direction is None else -inner.direction
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(Fraction(-1))
    return Enclosure(bounds, 1, direction, elasticity)


def raised(inner: Enclosure, exponent: Fraction) -> Enclosure:
    """Facts about u^exponent."""
    if not inner.positive:
        if exponent > 0 and exponent.denominator == 1 and exponent.numerator % 2 == 0:
            largest = max(-inner.range.low, inner.range.high)
            return Enclosure(_range_of_power(Interval(0.0, largest), exponent))
        if exponent > 0 and inner.range.low >= 0:
            return Enclosure(_range_of_power(inner.range, exponent), 0, inner.direction, None)
        return Enclosure()
    bounds = inner.range.meet(Interval(0.0, math.inf))
    if exponent < 0:
        bounds = point(1.0) / bounds
    bounds = _range_of_power(bounds, abs(exponent))
    direction = None if inner.direction is None else inner.direction * (1 if exponent > 0 else -1)
    elasticity = None if inner.elasticity is None else inner.elasticity.scaled(exponent)
    return Enclosure(bounds, 1, direction, elasticity)


def _range_of_power(bounds: Interval, exponent: Fraction) -> Interval:
    """x^exponent for x >= 0 in the bounds and exponent > 0."""
    image = bounds.mapped(lambda x: _pow(max(x, 0.0), float(exponent))).meet(Interval(0.0, math.inf))
    lost = _lost_exponent(exponent)
    if lost:
        # x^0.8 with the float nearest to 0.8 is off by lost * log x, which counts from x = 10^4 on.
        farthest = max((abs(math.log(x)) for x in bounds.ends if 0 < x < math.inf), default=0.0)
        image = image * Interval(1 - 1.01 * lost * farthest, 1 + 1.01 * lost * farthest)
    return image


@cache
def _lost_exponent(exponent: Fraction) -> float:
    return abs(float(exponent - Fraction(float(exponent))))


def exponential(exponent: Enclosure, log_base: float) -> Enclosure:
    """b^x = e^{x log b}: t u'/u = (x log b) e_x."""
    scaled = exponent.range * around(log_base)
    bounds = scaled.mapped(_exp).meet(Interval(0.0, math.inf))
    rising = (log_base > 0) - (log_base < 0)
    direction = None if exponent.direction is None else exponent.direction * rising
    elasticity = None if exponent.elasticity is None else exponent.elasticity.times(scaled)
    return Enclosure(bounds, 1, direction, elasticity)


def applied(name: str, inner: Enclosure) -> Enclosure:
    """Facts about a named function of u."""
    bounds = inner.range
    if name == "exp":
        return exponential(inner, 1.0)
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
        if bounds.low >= 0 or bounds.high <= 0:
            return inner if bounds.low >= 0 else negated(inner)
        return Enclosure(Interval(0.0, max(-bounds.low, bounds.high)))
    if name == "cos" and bounds.low >= 0 and bounds.high <= math.pi:
        direction = None if inner.direction is None else -inner.direction
        return Enclosure(-(bounds.mapped(lambda x: -math.cos(x))), 0, direction)
    if name in {"sin", "cos"}:
        return Enclosure(_oscillation(math.sin if name == "sin" else math.cos, bounds))
    return Enclosure()


def _times(inner: Enclosure, bounds: Interval, factor: Callable[[float], float]) -> Elasticity | None:
    """Elasticity times a positive monotone factor of the argument (expm1 and log1p)."""
    if inner.elasticity is None or not inner.sign:
        return None
    ends = sorted(factor(end) for end in bounds.ends)
    # The factor is exactly 1 where the argument is 0; elsewhere its rounding counts.
    low, high = (
        end if end == 1 and 0 in bounds.ends else end * slack
        for end, slack in zip(ends, (1 - 1e-14, 1 + 1e-14), strict=True)
    )
    return inner.elasticity.times(Interval(low, high))


def _oscillation(function: Callable[[float], float], argument: Interval) -> Interval:
    """Sin and cos move by no more than their argument does, and stay in [-1, 1]."""
    width = argument.high - argument.low
    if not width < 1:
        return Interval(-1.0, 1.0)
    # The middle of two neighbouring floats is one of them: a whole width away from the other.
    middle, reach = function((argument.low + argument.high) / 2), width + 1e-15
    return Interval(max(-1.0, middle - reach), min(1.0, middle + reach))


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


def larger(left: Enclosure, right: Enclosure) -> Enclosure:
    """Facts about max(u, v)."""
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
