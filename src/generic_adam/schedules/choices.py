"""Nodes that choose between two schedules: the larger, the smaller, or one before a step and one after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.growth import Growth
from generic_adam.schedules.nodes import Binary, bracketed, compose


@final
@dataclass(frozen=True, repr=False)
class Maximum(Binary):
    """u_t = max(left_t, right_t)."""

    def _compile(self) -> ScalarFunction:
        return compose(max, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return np.maximum(self.left._evaluate(times), self.right._evaluate(times))

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        return left.largest(right) if left is not None and right is not None else None

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        from generic_adam.schedules import simplify

        return simplify.minimum(1 - self.left, 1 - self.right)

    def __str__(self) -> str:
        return f"max({self.left}, {self.right})"


@final
@dataclass(frozen=True, repr=False)
class Minimum(Binary):
    """u_t = min(left_t, right_t)."""

    def _compile(self) -> ScalarFunction:
        return compose(min, self.left, self.right)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return np.minimum(self.left._evaluate(times), self.right._evaluate(times))

    def _growth(self) -> Growth | None:
        left, right = self.left.order, self.right.order
        return -((-left).largest(-right)) if left is not None and right is not None else None

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        from generic_adam.schedules import simplify

        return simplify.maximum(1 - self.left, 1 - self.right)

    def __str__(self) -> str:
        return f"min({self.left}, {self.right})"


@final
@dataclass(frozen=True, repr=False)
class Join(Schedule):
    """u_t = before_t for t < threshold, after_t from then on: a finite beginning and a tail."""

    threshold: int
    before: Schedule
    after: Schedule
    binding = 0

    def _compile(self) -> ScalarFunction:
        threshold, before, after = self.threshold, self.before._function, self.after._function
        return lambda t: before(t) if t < threshold else after(t)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        early = times < self.threshold
        if not early.any():
            return self.after._evaluate(times)
        if early.all():
            return self.before._evaluate(times)
        result = np.empty_like(times)
        result[early] = self.before._evaluate(times[early])
        result[~early] = self.after._evaluate(times[~early])
        return result

    def _growth(self) -> Growth | None:
        return self.after.order

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        from generic_adam.schedules import simplify

        return simplify.join(self.threshold, 1 - self.before, 1 - self.after)

    def __str__(self) -> str:
        return f"{bracketed(self.before, 1)} if t < {self.threshold} else {self.after}"
