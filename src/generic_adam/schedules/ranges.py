"""Ranges of numbers with exact ends, and their arithmetic: what values, slopes and coefficients lie in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from flint import fmpq

from generic_adam.schedules.balls import INFINITY, Number, apply, larger, power, smaller


@dataclass(frozen=True)
class Range:
    """All real numbers from low to high.

    Attributes:
        low: the lower end, exact: a fraction, a ball without radius, or minus infinity.
        high: the upper end, likewise.
        nonzero: whether 0 is left out where it is an end: a positive sequence that tends to 0.
    """

    low: Number
    high: Number
    nonzero: bool = False

    @property
    def sign(self) -> int:
        """1 where every element is positive, -1 where every element is negative, else 0."""
        if self.low > 0 or (self.nonzero and self.low >= 0):
            return 1
        return -1 if self.high < 0 or (self.nonzero and self.high <= 0) else 0

    @property
    def trend(self) -> int | None:
        """0 where it is {0}, 1 or -1 where no element is negative or positive, None where both may be."""
        if self.low >= 0:
            return 1 if self.high > 0 else 0
        return -1 if self.high <= 0 else None

    @property
    def is_zero(self) -> bool:
        """Return whether it is {0}."""
        return self.low == 0 == self.high

    @property
    def number(self) -> fmpq | None:
        """The fraction that it is, if it is one."""
        return self.low if isinstance(self.low, fmpq) and self.low == self.high else None

    @property
    def size(self) -> Number:
        """The largest absolute value."""
        return larger(-self.low, self.high)

    @property
    def is_finite(self) -> bool:
        """Return whether both ends are numbers."""
        return is_finite(self.low) and is_finite(self.high)

    def __neg__(self) -> Range:
        low = -self.high
        return Range(low, low if self.low is self.high else -self.low, self.nonzero)

    def __add__(self, other: Range) -> Range:
        if self.low is self.high and other.low is other.high:  # two fractions
            return point(self.low + other.low)
        low, high = _down(self.low + other.low), _up(self.high + other.high)
        # Two parts that may touch 0 from one side touch it together, if they do.
        positive = low == 0 == self.low and 1 in {self.sign, other.sign}
        return Range(low, high, positive or (high == 0 == self.high and -1 in {self.sign, other.sign}))

    def __sub__(self, other: Range) -> Range:
        return self + (-other)

    def __mul__(self, other: Range) -> Range:
        if other.low is other.high:  # a fraction
            if self.low is self.high:
                return point(self.low * other.low)
            ends = _times(self.low, other.low), _times(self.high, other.low)
            low, high = ends if other.low >= 0 else ends[::-1]
            return Range(_down(low), _up(high), self.nonzero and other.low != 0)
        if self.low is self.high:
            return other * self
        nonzero = bool(self.sign and other.sign)
        if self.low >= 0 and other.low >= 0:
            return Range(_down(_times(self.low, other.low)), _up(_times(self.high, other.high)), nonzero)
        return _hull([_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)], nonzero)

    def __truediv__(self, other: Range) -> Range:
        if not other.sign:
            if other.low == 0 and self.low >= 0:  # dividing by [0, b] is still one-sided
                return Range(_down(_over(self.low, other.high)), INFINITY)
            return EVERYTHING
        if other.sign < 0:
            return (-self) / (-other)
        if self.low >= 0:
            low, high = _over(self.low, other.high), _over(self.high, other.low)
            return Range(_down(low), _up(high), self.sign > 0)
        corners = [_over(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return _hull(corners, bool(self.sign))

    def __pow__(self, exponent: fmpq) -> Range:
        """x^exponent; where that is not defined for every x, everything."""
        if self.low is self.high and (self.low > 0 or (exponent.q == 1 and self.low < 0)):
            return point(power(self.low, exponent))
        even = exponent.q == 1 and exponent.p % 2 == 0
        if self.sign < 0:
            positive = (-self) ** exponent
            return positive if even else -positive if exponent.q == 1 else EVERYTHING
        if self.low < 0:
            return Range(fmpq(0), self.size) ** exponent if even and exponent > 0 else EVERYTHING
        if exponent < 0:
            return (ONE / self) ** -exponent
        return self.mapped(lambda x: power(x, exponent) if is_finite(x) else x, self.sign > 0)

    def meet(self, other: Range) -> Range:
        """The numbers in both: two enclosures of one thing."""
        return Range(
            _down(larger(self.low, other.low)),
            _up(smaller(self.high, other.high)),
            self.nonzero or other.nonzero,
        )

    def hull(self, other: Range) -> Range:
        """The smallest range that holds both."""
        low, high = smaller(self.low, other.low), larger(self.high, other.high)
        return Range(_down(low), _up(high), bool(self.sign) and self.sign == other.sign)

    def largest(self, other: Range) -> Range:
        """max(x, y) for the elements of the two."""
        low, high = larger(self.low, other.low), larger(self.high, other.high)
        signs = {self.sign, other.sign}
        return Range(_down(low), _up(high), 1 in signs or signs == {-1})

    def mapped(self, increasing: Callable[[Number], Number], nonzero: bool = False) -> Range:
        """The image under an increasing function."""
        low = increasing(self.low)
        high = low if self.high is self.low else increasing(self.high)
        return Range(_down(low), _up(high), nonzero)

    def image(self, name: str) -> Range:
        """The image under a named function."""
        if name == "abs":
            return self if self.low >= 0 else -self if self.high <= 0 else Range(fmpq(0), self.size)
        if name not in {"sin", "cos"}:  # they increase
            return self.mapped(lambda x: apply(name, x), name == "exp" or (name != "log" and bool(self.sign)))
        if not self.is_finite:
            return SWING
        # They move by no more than their argument does.
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        image = apply(name, middle)
        return Range(_down(image - half), _up(image + half)).meet(SWING)


def is_finite(value: Number) -> bool:
    """Return whether it is a number, not an infinity."""
    return isinstance(value, fmpq) or value.is_finite()


def point(value: Number) -> Range:
    """The range of one number: a fraction, or as wide as its ball."""
    return Range(value, value) if isinstance(value, fmpq) else Range(_down(value), _up(value))


def _down(value: Number) -> Number:
    if isinstance(value, fmpq):
        return value
    low = value.lower()
    return -INFINITY if low.is_nan() else low


def _up(value: Number) -> Number:
    if isinstance(value, fmpq):
        return value
    high = value.upper()
    return INFINITY if high.is_nan() else high


def _times(a: Number, b: Number) -> Number:
    # An end 0 is exact: times an infinite end it is the limit of zeros.
    return fmpq(0) if a == 0 or b == 0 else a * b


def _over(a: Number, b: Number) -> Number:
    """a / b for an end b >= 0; of 0/0 and infinity over infinity the other corners hold the extremes."""
    if a == 0:
        return fmpq(0)
    if not is_finite(b):
        return fmpq(0) if is_finite(a) else a
    return a / b if b > 0 else INFINITY if a > 0 else -INFINITY


def _hull(corners: list[Number], nonzero: bool) -> Range:
    return Range(_down(reduce(smaller, corners)), _up(reduce(larger, corners)), nonzero)


EVERYTHING = Range(-INFINITY, INFINITY)
POSITIVE = Range(fmpq(0), INFINITY, True)
ONE, SWING = Range(fmpq(1), fmpq(1)), Range(fmpq(-1), fmpq(1))
"""The ranges of the number 1, and of sin and cos."""
