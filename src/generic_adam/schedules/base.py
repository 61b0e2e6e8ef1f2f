"""The vocabulary: a schedule is a pure function of t = 1, 2, 3, ..."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.schedules.cached import cached_attribute
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.growth import Growth

FloatArray = npt.NDArray[np.float64]
"""A NumPy array of float64, what blocks of values are."""
ScalarFunction = Callable[[float], float]

# Blocks of this many t stay in the first-level caches: a chain of array operations does not wait for memory.
BLOCK = 8192


class Schedule(ABC):
    r"""A sequence u_1, u_2, u_3, ... given by an expression in t.

    Subclasses are the final, frozen nodes of the expression; equal expressions are equal schedules.

    Examples:
        >>> from generic_adam.schedules import parse
        >>> a = parse("0.5 / sqrt(t)")
        >>> a(4)
        0.25
        >>> str(a.growth)
        't^(-1/2)'
    """

    # How tightly the text of the node binds: 0 join, 1 sum, 2 product, 3 sign, 4 power, 5 atom.
    binding: int = 5

    def __call__(self, t: float) -> float:
        """u_t for one t >= 1."""
        if t < 1:
            raise ScheduleError(f"a schedule starts at t = 1, got t = {t}")
        try:
            return self._function(t)
        except (ZeroDivisionError, OverflowError) as error:
            raise ScheduleError(f"{self} cannot be evaluated at t = {t}: {error}") from error
        except ScheduleError:
            raise
        except ValueError as error:
            raise ScheduleError(f"{self} is not defined at t = {t}: {error}") from error

    def values(self, start: int, stop: int) -> FloatArray:
        """u_t for t = start, ..., stop - 1 as float64; nan or inf where u_t is undefined."""
        if start < 1 or stop < start:
            raise ScheduleError(
                f"values(start, stop) needs 1 <= start <= stop, got start = {start}, stop = {stop}"
            )
        result = np.empty(stop - start)
        with np.errstate(all="ignore"):
            for begin in range(start, stop, BLOCK):
                end = min(begin + BLOCK, stop)
                result[begin - start : end - start] = self._evaluate(np.arange(begin, end, dtype=np.float64))
        return result

    def at(self, times: npt.ArrayLike) -> FloatArray:
        """u_t at the given t >= 1, in any order; real t are allowed where `accepts_real_times` is true."""
        array = np.asarray(times, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(self._evaluate(array), array.shape), dtype=np.float64)

    @cached_attribute
    def growth(self) -> Growth | None:
        """The order of u_t as t tends to infinity, or None where it is not known."""
        growth = self.order
        if growth is None or not (growth.sign or growth.is_zero):
            return None
        return growth

    @cached_attribute
    def order(self) -> Growth | None:
        """As `growth`, but possibly only an upper bound on abs(u_t): what sums are computed from."""
        return self._growth()

    @property
    def is_constant(self) -> bool:
        """Whether u_t is the same number for every t, by its form."""
        return self.constant_value is not None

    @property
    def constant_value(self) -> float | None:
        """The number that u_t is for every t, or None."""
        return None

    @cached_attribute
    def children(self) -> tuple[Schedule, ...]:
        """The sub-expressions, in the order of the text."""
        return tuple(value for value in self._field_values() if isinstance(value, Schedule))

    @property
    def accepts_real_times(self) -> bool:
        """Whether `at` is defined for real t: not with recursions or callables inside."""
        return all(child.accepts_real_times for child in self.children)

    def _field_values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the fields travel: the compiled function and the caches are made anew.
        return type(self), self._field_values()

    def __repr__(self) -> str:
        return f"Schedule({str(self)!r})"

    @cached_attribute
    def _function(self) -> ScalarFunction:
        return self._compile()

    @abstractmethod
    def _compile(self) -> ScalarFunction:
        """A plain function of t, composed once, so that one evaluation costs a few nested calls."""

    @abstractmethod
    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        """The values at an array of t; a constant may come back as one number."""

    @abstractmethod
    def _growth(self) -> Growth | None:
        """The order of growth from those of the parts."""

    @cached_attribute
    def complement(self) -> Schedule:
        """1 - u, made once: theta carries its complement and what is known of it."""
        return self.one_minus()

    @cached_attribute
    def known_facts(self) -> dict[tuple[int, float], Any]:
        """What `enclose` has found out about u_t on stretches of t; empty at first."""
        return {}

    def one_minus(self) -> Schedule:
        """1 - u, rearranged so that no digits cancel where the form allows it."""
        from generic_adam.schedules.nodes import Constant, Subtract

        return Subtract(Constant(Fraction(1)), self)

    def _operand(self, other: object) -> Schedule:
        from generic_adam.schedules.build import as_schedule

        return as_schedule(other)

    def __add__(self, other: object) -> Schedule:
        from generic_adam.schedules.simplify import add

        return add(self, self._operand(other))

    def __radd__(self, other: object) -> Schedule:
        return self._operand(other) + self

    def __sub__(self, other: object) -> Schedule:
        from generic_adam.schedules.simplify import subtract

        return subtract(self, self._operand(other))

    def __rsub__(self, other: object) -> Schedule:
        return self._operand(other) - self

    def __mul__(self, other: object) -> Schedule:
        from generic_adam.schedules.simplify import multiply

        return multiply(self, self._operand(other))

    def __rmul__(self, other: object) -> Schedule:
        return self._operand(other) * self

    def __truediv__(self, other: object) -> Schedule:
        from generic_adam.schedules.simplify import divide

        return divide(self, self._operand(other))

    def __rtruediv__(self, other: object) -> Schedule:
        return self._operand(other) / self

    def __pow__(self, other: object) -> Schedule:
        from generic_adam.schedules.simplify import power

        return power(self, self._operand(other))

    def __rpow__(self, other: object) -> Schedule:
        return self._operand(other) ** self

    def __neg__(self) -> Schedule:
        from generic_adam.schedules.simplify import negate

        return negate(self)


def finite_float(value: Fraction) -> float:
    """The float nearest to an exact number; an error where it is too large for one."""
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ScheduleError("a number of this expression is too large for a float64 (above 1.8e308)")
    return result
