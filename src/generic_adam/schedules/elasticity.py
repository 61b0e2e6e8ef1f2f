"""Exact intervals for the elasticity t u'(t) / u(t): the local exponent of a positive sequence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from generic_adam.schedules.intervals import Interval

# None stands for an infinite end.
End = Fraction | None


@dataclass(frozen=True)
class Elasticity:
    r"""t u'(t)/u(t) lies in [low, high]; None is minus or plus infinity.

    The elasticity of t^p is p, exactly; it adds under products, so that chi_t = t^-0.4 / sqrt(t^-0.8) has
    elasticity exactly 0 where floats would leave a doubtful 5e-17.
    """

    low: End
    high: End

    @property
    def is_exact(self) -> bool:
        """Whether both ends are one and the same number: powers of t, whose exponents are computed once."""
        return self.low is self.high and self.low is not None

    @property
    def sign(self) -> int | None:
        """1, -1 or 0 where the elasticity is >= 0, <= 0 or = 0 throughout; None where it may change sign."""
        if self.low == 0 == self.high:
            return 0
        if self.low is not None and self.low >= 0:
            return 1
        if self.high is not None and self.high <= 0:
            return -1
        return None

    def __add__(self, other: Elasticity) -> Elasticity:
        low = _plus(self.low, other.low)
        return Elasticity(low, low if self.is_exact and other.is_exact else _plus(self.high, other.high))

    def scaled(self, factor: Fraction) -> Elasticity:
        """The elasticity of u^factor."""
        if factor == 0:
            return Elasticity(Fraction(0), Fraction(0))
        low, high = (self.low, self.high) if factor > 0 else (self.high, self.low)
        scaled = _scaled(low, factor)
        return Elasticity(scaled, scaled if self.is_exact else _scaled(high, factor))

    def times(self, factor: Interval) -> Elasticity:
        """The product with an interval."""
        if self.low == 0 == self.high:
            return self
        corners = [_corner(a, b, which) for a, which in ((self.low, -1), (self.high, 1)) for b in factor.ends]
        # A nan corner is 0 times infinity: the other corners bound the product, and 0 is among its limits.
        finite = [0.0 if isinstance(c, float) and math.isnan(c) else c for c in corners]
        low, high = min(finite), max(finite)
        return Elasticity(_end(low), _end(high))

    def hull(self, other: Elasticity) -> Elasticity:
        """The smallest interval that holds both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Elasticity(low, high)


def of_power(exponent: Fraction) -> Elasticity:
    """The elasticity of t^exponent."""
    return Elasticity(exponent, exponent)


def _plus(a: End, b: End) -> End:
    return None if a is None or b is None else a + b


def _scaled(end: End, factor: Fraction) -> End:
    return None if end is None else end * factor


def _corner(a: End, b: float, which: int) -> Fraction | float:
    if a is None:
        return math.nan if b == 0 else which * math.copysign(math.inf, b)
    if math.isinf(b):
        return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a * Fraction(b)


def _end(value: Fraction | float) -> End:
    return None if isinstance(value, float) and math.isinf(value) else Fraction(value)
