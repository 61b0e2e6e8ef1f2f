"""A sequence of unknown form whose bounds are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.growth import Growth


@final
@dataclass(frozen=True, repr=False)
class Bounded(Schedule):
    """u_t = operand_t, of which it is known (by a proof elsewhere) that low <= u_t <= high for every t.

    Bounds of one sign settle the order of growth, whatever happens between them. A value outside the
    bounds is an error when it is met: the claim was wrong.
    """

    operand: Schedule
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ScheduleError(f"bounds must be two numbers low <= high, got {self.low} and {self.high}")

    @property
    def accepts_real_times(self) -> bool:
        """False: the values between whole t are not known."""
        return False

    def _compile(self) -> ScalarFunction:
        inner, low, high = self.operand._function, self.low, self.high

        def evaluate(t: float) -> float:
            value = inner(t)
            if not low <= value <= high:
                raise ScheduleError(f"{self} is {value} at t = {t}, outside its bounds {low} and {high}")
            return value

        return evaluate

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        values = np.asarray(self.operand._evaluate(times), dtype=np.float64)
        outside = np.flatnonzero(~((values >= self.low) & (values <= self.high)))
        if outside.size:
            where = np.broadcast_to(times, values.shape).ravel()[outside[0]]
            raise ScheduleError(f"{self} leaves its bounds {self.low} and {self.high} at t = {where:.0f}")
        return values

    def _growth(self) -> Growth:
        return Growth(self.low, self.high)

    def __str__(self) -> str:
        return f"bounded({self.operand}, {self.low!r}, {self.high!r})"
