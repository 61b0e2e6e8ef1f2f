"""The arithmetic nodes of a schedule's expression: numbers, t, + - * and /."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule, finite_float
from generic_adam.schedules.growth import ZERO, Growth
from generic_adam.schedules.ratebase import ONE

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
        return growth_of_number(self.value)

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return Constant(1 - self.value)

    def __str__(self) -> str:
        number = float(self.value)
        text = repr(number)
        if Fraction(text) != self.value:
            return f"{self.value.numerator}/{self.value.denominator}"
        return text.removesuffix(".0")


def growth_of_number(value: Fraction) -> Growth:
    """The growth of a constant sequence, with an enclosure of what a float loses of the number."""
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
