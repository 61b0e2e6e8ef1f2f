"""The arithmetic nodes of a schedule's expression: numbers, t, + - * / ^, max, min and joins."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule, finite_float
from generic_adam.schedules.growth import ZERO, Growth
from generic_adam.schedules.ratebase import ONE, GeometricBase, log_of

# From this exponent on, the digits that a float loses of a base such as 0.9 show in the power.
_LONG = 64
# From this base on, the digits that a float loses of an exponent show in the power.
_FAR = 1e6

BinaryOperation = Callable[[float, float], float]


@final
@dataclass(frozen=True, repr=False)
class Constant(Schedule):
    """u_t = value, an exact rational number: 0.999 is 999/1000, so 1 - 0.999 is 1/1000 to the last bit."""

    value: Fraction

    def __post_init__(self) -> None:
        finite_float(self.value)

    @property
    def constant_value(self) -> float:
        """The number that u_t is for every t, or None."""
        return float(self.value)

    @property
    def binding(self) -> int:  # type: ignore[override]
        """How tightly the text of the number binds."""
        text = str(self)
        return 2 if "/" in text else 3 if text.startswith("-") else 5

    def _compile(self) -> ScalarFunction:
        number = float(self.value)
        return lambda _t: number

    def _evaluate(self, times: FloatArray) -> float:  # noqa: ARG002
        return float(self.value)

    def _growth(self) -> Growth:
        return _growth_of_number(self.value)

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return Constant(1 - self.value)

    def __str__(self) -> str:
        number = float(self.value)
        text = repr(number)
        if Fraction(text) != self.value:
            return f"{self.value.numerator}/{self.value.denominator}"
        return text.removesuffix(".0")


def _growth_of_number(value: Fraction) -> Growth:
    number = float(value)
    if number == 0:
        return ZERO
    if Fraction(number) == value:
        return Growth(number, number)
    return Growth(math.nextafter(number, -math.inf), math.nextafter(number, math.inf))


@final
@dataclass(frozen=True, repr=False)
class Time(Schedule):
    """u_t = t."""

    def _compile(self) -> ScalarFunction:
        return float

    def _evaluate(self, times: FloatArray) -> FloatArray:
        return times

    def _growth(self) -> Growth:
        return Growth(1.0, 1.0, ONE, Fraction(1))

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return Subtract(Constant(Fraction(1)), self)

    def __str__(self) -> str:
        return "t"


def compose(operation: BinaryOperation, left: Schedule, right: Schedule) -> ScalarFunction:
    """The function t -> operation(left_t, right_t), with constants taken out of the inner call."""
    f, g = left._function, right._function  # pyright: ignore[reportPrivateUsage]
    a, b = left.constant_value, right.constant_value
    if a is not None:
        return lambda t: operation(a, g(t))
    if b is not None:
        return lambda t: operation(f(t), b)
    return lambda t: operation(f(t), g(t))


@dataclass(frozen=True, repr=False)
class Binary(Schedule):
    """What the nodes with two operands share."""

    left: Schedule
    right: Schedule

    @property
    def constant_value(self) -> float | None:
        """The number that u_t is for every t, or None."""
        if self.left.is_constant and self.right.is_constant:
            return self(1)
        return None

    def _texts(self, left_binding: int, right_binding: int) -> tuple[str, str]:
        return bracketed(self.left, left_binding), bracketed(self.right, right_binding)


@final
@dataclass(frozen=True, repr=False)
class Add(Binary):
    """u_t = left_t + right_t."""

    binding = 1

    def _compile(self) -> ScalarFunction:
        return compose(operator.add, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return self.left._evaluate(times) + self.right._evaluate(times)

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        return left + right if left is not None and right is not None else None

    def __str__(self) -> str:
        left, right = self._texts(1, 2)
        return f"{left} + {right}"


@final
@dataclass(frozen=True, repr=False)
class Subtract(Binary):
    """u_t = left_t - right_t."""

    binding = 1

    def _compile(self) -> ScalarFunction:
        return compose(operator.sub, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return self.left._evaluate(times) - self.right._evaluate(times)

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        return left + (-right) if left is not None and right is not None else None

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return self.right if self.left == Constant(Fraction(1)) else super().one_minus()

    def __str__(self) -> str:
        left, right = self._texts(1, 2)
        return f"{left} - {right}"


@final
@dataclass(frozen=True, repr=False)
class Multiply(Binary):
    """u_t = left_t * right_t."""

    binding = 2

    def _compile(self) -> ScalarFunction:
        return compose(operator.mul, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return self.left._evaluate(times) * self.right._evaluate(times)

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        return left * right if left is not None and right is not None else None

    def __str__(self) -> str:
        left, right = self._texts(2, 3)
        return f"{left} * {right}"


@final
@dataclass(frozen=True, repr=False)
class Divide(Binary):
    """u_t = left_t / right_t."""

    binding = 2

    def _compile(self) -> ScalarFunction:
        return compose(lambda a, b: a / b, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return np.true_divide(self.left._evaluate(times), self.right._evaluate(times))

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        inverse = right.inverse() if right is not None else None
        return left * inverse if left is not None and inverse is not None else None

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        # 1 - a/b = (b - a)/b: for t/(t+1) the numerator collapses to 1 and nothing cancels.
        difference = self.right - self.left
        return difference / self.right if difference.is_constant else super().one_minus()

    def __str__(self) -> str:
        left, right = self._texts(2, 3)
        return f"{left} / {right}"


@final
@dataclass(frozen=True, repr=False)
class Power(Binary):
    """u_t = left_t ^ right_t (base and exponent)."""

    binding = 4

    @cached_property
    def _lost_exponent(self) -> float:
        """What a float loses of an exponent such as 0.8; t^0.8 at t = 10^12 would be off by 1.2e-15."""
        exponent = self.right
        return (
            float(exponent.value - Fraction(float(exponent.value))) if isinstance(exponent, Constant) else 0.0
        )

    @cached_property
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
        start = _growth_of_number(base).raised_to(offset)
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


@final
@dataclass(frozen=True, repr=False)
class Negate(Schedule):
    """u_t = -operand_t."""

    operand: Schedule
    binding = 3

    @property
    def constant_value(self) -> float | None:
        """The number that u_t is for every t, or None."""
        inner = self.operand.constant_value
        return None if inner is None else -inner

    def _compile(self) -> ScalarFunction:
        f = self.operand._function
        return lambda t: -f(t)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return -self.operand._evaluate(times)

    def _growth(self) -> Growth | None:
        return -self.operand.order if self.operand.order is not None else None

    def __str__(self) -> str:
        return f"-{bracketed(self.operand, 4)}"


def bracketed(node: Schedule, binding: int) -> str:
    """The text of a part, in parentheses where it binds less tightly than its place asks for."""
    return str(node) if node.binding >= binding else f"({node})"
