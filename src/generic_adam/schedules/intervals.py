"""Interval arithmetic with outward rounding: what a tail can be shown to stay within."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

# A lower end that overflows is above this number; as "infinity" it would become nan one step later.
_LARGEST_LOW = 8e307


@dataclass(frozen=True)
class Interval:
    """All real numbers from low to high; the ends may be infinite. Every operation rounds outward."""

    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 where every element is positive, -1 where every element is negative, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum_down(self.low, other.low), -_sum_down(-self.high, -other.high))

    def __sub__(self, other: Interval) -> Interval:
        return self + (-other)

    def __mul__(self, other: Interval) -> Interval:
        corners = [_times(a, b) for a in self.ends for b in other.ends]
        return Interval(_down(min(corners)), _up(max(corners)))

    def __truediv__(self, other: Interval) -> Interval:
        if other.sign == 0:
            return self._over_touching_zero(other)
        corners = [_quotient(a, b) for a in self.ends for b in other.ends]
        return Interval(_down(min(corners)), _up(max(corners)))

    def _over_touching_zero(self, other: Interval) -> Interval:
        """Dividing by [0, b]: still one-sided where the numerator keeps its sign."""
        if other.low == 0 < other.high and self.low >= 0:
            return Interval(_down(_quotient(self.low, other.high)), math.inf)
        return EVERYTHING

    @property
    def ends(self) -> tuple[float, float]:
        """The two end points."""
        return self.low, self.high

    def meet(self, other: Interval) -> Interval:
        """The numbers in both: two enclosures of one thing. Should they miss by rounding, the first."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else self

    def hull(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def mapped(self, increasing: Callable[[float], float]) -> Interval:
        """The image under an increasing function whose float version is accurate to a few ulp."""
        low, high = min(increasing(self.low), _LARGEST_LOW), increasing(self.high)
        return Interval(_down(low - math.ulp(low)), _up(high + math.ulp(high)))


EVERYTHING = Interval(-math.inf, math.inf)


def point(value: float) -> Interval:
    """One number."""
    return Interval(value, value)


def around(value: float) -> Interval:
    """A computed number and the few ulp its computation may be off."""
    slack = 8 * math.ulp(value)
    return Interval(value - slack, value + slack)


def _sum_down(a: float, b: float) -> float:
    total = a + b
    if math.isnan(total):
        return -math.inf
    exact = total == -math.inf or (total - a == b and total - b == a)
    return total if exact else _down(total)


def _times(a: float, b: float) -> float:
    if a == 0 or b == 0:
        return 0.0
    # An underflow is no exact zero.
    return a * b or math.copysign(math.ulp(0.0), a) * math.copysign(1.0, b)


def _quotient(a: float, b: float) -> float:
    if math.isinf(b):
        # A bounded numerator tends to 0; of infinity over infinity the other corners hold the extremes.
        return 0.0 if not math.isinf(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    if b == 0:
        return math.copysign(math.inf, a)
    return a / b or (math.copysign(math.ulp(0.0), a) * math.copysign(1.0, b) if a else 0.0)


def _down(value: float) -> float:
    # Zeros here are exact: a factor 0, or the limit 1/infinity. A low end that overflowed is finite again.
    return value if value == 0 else math.nextafter(value, -math.inf)


def _up(value: float) -> float:
    return value if value == 0 else math.nextafter(value, math.inf)
