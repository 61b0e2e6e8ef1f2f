"""Powers u^v, with the digits that a float loses of a constant exponent or base."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.cached import cached_attribute
from generic_adam.schedules.growth import Growth
from generic_adam.schedules.nodes import Binary, Constant, compose, growth_of_number
from generic_adam.schedules.ratebase import GeometricBase, log_of

# From this exponent on, the digits that a float loses of a base such as 0.9 show in the power.
_LONG = 64
# From this base on, the digits that a float loses of an exponent show in the power.
_FAR = 1e6


@final
@dataclass(frozen=True, repr=False)
class Power(Binary):
    """u_t = left_t ^ right_t (base and exponent)."""

    binding = 4

    @cached_attribute
    def _lost_exponent(self) -> float:
        """What a float loses of an exponent such as 0.8; t^0.8 at t = 10^12 would be off by 1.2e-15."""
        exponent = self.right
        return (
            float(exponent.value - Fraction(float(exponent.value))) if isinstance(exponent, Constant) else 0.0
        )

    @cached_attribute
    def _lost_rate(self) -> float:
        """What a float loses of log(base), base a number: 0.999999999^t at t = 10^9 would be off by 3e-8."""
        base = self.left
        if not isinstance(base, Constant) or base.value <= 0 or isinstance(self.right, Constant):
            return 0.0
        rounded = Fraction(float(base.value))
        return float((base.value - rounded) / rounded) if rounded else 0.0

    def _compile(self) -> ScalarFunction:
        if self._lost_rate:
            return self._compile_exponential()
        lost = self._lost_exponent
        if not lost:
            return compose(math.pow, self.left, self.right)
        inner, exponent = self.left._function, self.right(1)

        def power(t: float) -> float:
            base = inner(t)
            result = math.pow(base, exponent)
            return result if base < _FAR else result + result * (lost * math.log(base))

        return power

    def _compile_exponential(self) -> ScalarFunction:
        base, rate, exponent = self.left(1), self._lost_rate, self.right._function

        def power(t: float) -> float:
            x = exponent(t)
            result = math.pow(base, x)
            if abs(x) < _LONG or not 0 < result < math.inf:
                return result
            return result * math.exp(rate * x)

        return power

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        base, exponent = self.left._evaluate(times), self.right._evaluate(times)
        if not isinstance(base, np.ndarray):
            return self._exponential(base, exponent)
        # The operator knows the fast exponents 2, 0.5 and -1 of arrays, but not the commonest one of all.
        result = 1 / np.sqrt(base) if np.ndim(exponent) == 0 and exponent == -0.5 else base**exponent
        lost = self._lost_exponent
        if lost and base.size and float(base.max()) >= _FAR:
            result = np.where(base < _FAR, result, result + result * (lost * np.log(base)))
        return result

    def _exponential(
        self, base: float, exponent: FloatArray | np.float64 | float
    ) -> FloatArray | np.float64 | float:
        result, rate = np.power(base, exponent), self._lost_rate
        if rate and np.size(exponent) and float(np.max(np.abs(exponent))) >= _LONG:
            done = (np.abs(exponent) < _LONG) | (result == 0) | np.isinf(result)
            result = np.where(done, result, result * np.exp(rate * exponent))
        return result

    def _growth(self) -> Growth | None:
        base, exponent = self.left, self.right
        if isinstance(exponent, Constant):
            return base.order.raised_to(exponent.value) if base.order is not None else None
        if isinstance(base, Constant) and base.value > 0:
            return _exponential_growth(base.value, exponent)
        return None

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        from generic_adam.schedules.functions import one_minus_power

        return one_minus_power(self.left, self.right) or super().one_minus()

    def __str__(self) -> str:
        left, right = self._texts(5, 4)
        return f"{left}^{right}"


def _exponential_growth(base: Fraction, exponent: Schedule) -> Growth | None:
    """The growth of base^exponent for a number base: geometric where the exponent is a t + b."""
    from generic_adam.schedules.simplify import as_linear

    linear = as_linear(exponent)
    if linear is not None:
        slope, offset = linear
        start = growth_of_number(base).raised_to(offset)
        rho = GeometricBase.from_rational(base) ** slope
        return start * Growth(1.0, 1.0, rho) if start is not None else None
    limits = exponent.order
    if limits is None or limits.trend > 0:
        return None
    low, high = (limits.low, limits.high) if limits.trend == 0 else (0.0, 0.0)
    rate = log_of(base)
    return growth_of_exp(*sorted((rate * low, rate * high)))


def growth_of_exp(low: float, high: float) -> Growth:
    """e^x with the limit points of x in [low, high], which may be off by a few ulp."""
    low = min(low, 700.0)
    low, high = low - 8 * math.ulp(low), high + 8 * math.ulp(high)
    bottom = math.exp(low) * (1 - 1e-15) if low > -700 else 0.0
    top = math.exp(high) * (1 + 1e-15) if high < 700 else math.inf
    return Growth(max(bottom, math.ulp(0.0)), max(top, math.ulp(0.0)))
