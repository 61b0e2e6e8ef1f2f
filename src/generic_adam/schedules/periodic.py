"""A sequence that repeats: what cyclic learning rates and schedules moved once an epoch are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.cached import cached_attribute
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.growth import Growth

# One period is evaluated whole to know the extremes; beyond this many steps that would take seconds.
LONGEST_PERIOD = 50_000_000


@final
@dataclass(frozen=True, repr=False)
class Periodic(Schedule):
    """u_t = body_s with s = 1 + (t - 1) mod period, so that u_1, ..., u_period come again and again.

    One period has finitely many values, so its least and its largest are known, and with them everything the
    conditions ask about the tail. A floor is a period too: floor((t - 1) / n) = (t - periodic(t, n)) / n.
    """

    body: Schedule
    period: int

    def __post_init__(self) -> None:
        if not 1 <= self.period <= LONGEST_PERIOD:
            raise ScheduleError(
                f"a period must be a whole number from 1 to {LONGEST_PERIOD}, got {self.period}"
            )

    @property
    def accepts_real_times(self) -> bool:
        """False: at real t it would jump wherever a period ends."""
        return False

    @cached_attribute
    def extremes(self) -> tuple[float, float]:
        """The least and the largest of u_t over all t (nan where one of them is undefined)."""
        one_period = self.body.values(1, self.period + 1)
        return float(one_period.min()), float(one_period.max())

    def _compile(self) -> ScalarFunction:
        period, body = self.period, self.body._function
        return lambda t: body((t - 1) % period + 1)

    def _evaluate(self, times: FloatArray) -> FloatArray | np.float64 | float:
        return self.body._evaluate(np.mod(times - 1, self.period) + 1)

    def _growth(self) -> Growth | None:
        low, high = self.extremes
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        return Growth(low, high)

    def one_minus(self) -> Schedule:
        """1 - u, with the complement that the body carries."""
        return Periodic(1 - self.body, self.period)

    def __str__(self) -> str:
        return f"periodic({self.body}, {self.period})"
