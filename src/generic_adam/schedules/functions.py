"""Functions of one argument: sqrt, log, exp, abs, sin, cos, and the accurate pair expm1, log1p."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.growth import ZERO, Growth
from generic_adam.schedules.nodes import Add, Constant, Subtract
from generic_adam.schedules.powers import growth_of_exp
from generic_adam.schedules.ratebase import GeometricBase
from generic_adam.schedules.simplify import as_linear


def _log1p(value: float) -> float:
    # 1 - (1 - 1/t)^p at t = 1 passes through log1p(-1) = -infinity, as in arrays; math.log1p would refuse it.
    return -math.inf if value == -1 else math.log1p(value)


# name -> (scalar function, array function)
FUNCTIONS: dict[str, tuple[ScalarFunction, Callable[[FloatArray], FloatArray]]] = {
    "sqrt": (math.sqrt, np.sqrt),
    "log": (math.log, np.log),
    "exp": (math.exp, np.exp),
    "abs": (abs, np.abs),
    "sin": (math.sin, np.sin),
    "cos": (math.cos, np.cos),
    "expm1": (math.expm1, np.expm1),
    "log1p": (_log1p, np.log1p),
}


@final
@dataclass(frozen=True, repr=False)
class Function(Schedule):
    """u_t = name(argument_t), with name one of sqrt, log, exp, abs, sin, cos, expm1, log1p."""

    name: str
    argument: Schedule

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            raise ScheduleError(f"unknown function {self.name!r}; expected one of {', '.join(FUNCTIONS)}")

    @property
    def constant_value(self) -> float | None:
        """The number that u_t is for every t, or None."""
        return self(1) if self.argument.is_constant else None

    def _compile(self) -> ScalarFunction:
        function, inner = FUNCTIONS[self.name][0], self.argument._function
        if str(self.argument) == "t":
            return function
        return lambda t: function(inner(t))

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return FUNCTIONS[self.name][1](self.argument._evaluate(times))  # type: ignore[arg-type]

    def _growth(self) -> Growth | None:
        inner = self.argument.order
        if self.name in {"sin", "cos"}:
            return Growth(-1.0, 1.0)
        if self.name == "exp":
            return _growth_of_exp(self.argument)
        if inner is None:
            return None
        if self.name == "sqrt":
            return inner.raised_to(Fraction(1, 2))
        if self.name == "abs":
            return _growth_of_abs(inner)
        if self.name == "expm1":
            return _near_zero_or(inner, lambda: _growth_of_exp(self.argument), -1.0)
        if self.name == "log1p":
            return _near_zero_or(inner, (Growth(1.0, 1.0) + inner).logarithm, 0.0)
        return self._growth_of_log(inner)

    def _growth_of_log(self, inner: Growth) -> Growth | None:
        # log(1 + x) with x -> 0 is of the order of x; the general rule would only see log 1 = 0.
        if isinstance(self.argument, Add):
            for one, rest in (
                (self.argument.left, self.argument.right),
                (self.argument.right, self.argument.left),
            ):
                if one == Constant(Fraction(1)) and rest.order is not None and rest.order.trend < 0:
                    return rest.order
        return inner.logarithm()

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        if self.name == "exp":
            return -Function("expm1", self.argument)
        if self.name == "sqrt":
            return one_minus_power(self.argument, Constant(Fraction(1, 2))) or super().one_minus()
        return super().one_minus()

    def __str__(self) -> str:
        return f"{self.name}({self.argument})"


def one_minus_power(base: Schedule, exponent: Schedule) -> Schedule | None:
    """1 - (1 - c)^p = -expm1(p log1p(-c)), accurate however small c is; None for another base."""
    if isinstance(base, Subtract) and base.left == Constant(Fraction(1)):
        return -Function("expm1", exponent * Function("log1p", -base.right))
    return None


def _growth_of_abs(inner: Growth) -> Growth:
    if inner.sign:
        return inner if inner.sign > 0 else -inner
    return replace(inner, low=0.0, high=max(-inner.low, inner.high))


def _growth_of_exp(argument: Schedule) -> Growth | None:
    linear = as_linear(argument)
    if linear is not None:
        slope, offset = linear
        return growth_of_exp(float(offset), float(offset)) * Growth(
            1.0, 1.0, GeometricBase.from_exponential(slope)
        )
    inner = argument.order
    if inner is None or inner.trend > 0:
        return None
    return growth_of_exp(inner.low, inner.high) if inner.trend == 0 else growth_of_exp(0.0, 0.0)


def _near_zero_or(inner: Growth, otherwise: Callable[[], Growth | None], shift: float) -> Growth | None:
    """expm1(x) and log1p(x) are of the order of x where x -> 0; elsewhere the general rule holds."""
    if inner.is_zero:
        return ZERO
    if inner.trend < 0:
        return inner
    general = otherwise()
    return general if general is None or shift == 0 else general + Growth(shift, shift)
