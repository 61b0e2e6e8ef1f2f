"""A schedule given by a Python callable: it can be evaluated, and nothing is known of its tail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.growth import Growth


@final
@dataclass(frozen=True, repr=False)
class Opaque(Schedule):
    """u_t = function(t). Only finite evidence can be had about it.

    A function that takes an array of t and returns the array of u_t is used as such, after a comparison with
    single calls on each block; any other is called once for each t.
    """

    function: Callable[[Any], Any]
    name: str = field(default="", compare=False)

    @property
    def accepts_real_times(self) -> bool:
        """Whether `at` is defined for real t."""
        return False

    def _compile(self) -> ScalarFunction:
        function = self.function

        def evaluate(t: float) -> float:
            try:
                value = function(t)
            except Exception as error:
                detail = f"{type(error).__name__}: {error}".splitlines()[0]
                raise ScheduleError(f"the callable {self} raised at t = {t}: {detail}") from error
            if np.ndim(value) != 0:
                raise ScheduleError(f"the callable {self} returned an array at t = {t}; expected one number")
            try:
                return float(value)
            except (TypeError, ValueError) as error:
                raise ScheduleError(
                    f"the callable {self} returned {value!r} at t = {t}; expected one number"
                ) from error

        return evaluate

    def _evaluate(self, times: FloatArray) -> FloatArray:
        whole = times.size > 1 and bool(np.all(times == np.floor(times)))
        block = self._on_block(times) if whole else None
        if block is not None:
            return block
        return np.array(
            [self._function(int(t) if t == math.floor(t) else float(t)) for t in times.ravel()]
        ).reshape(times.shape)

    def _on_block(self, times: FloatArray) -> FloatArray | None:
        """The function applied to the whole block, or None where it is not a function of arrays."""
        try:
            block = np.asarray(self.function(times.copy()), dtype=np.float64)
        except Exception:  # noqa: BLE001  (any failure means "not for arrays"; single calls report their own errors)
            return None
        if block.shape != times.shape:
            return None
        for index in (0, times.size // 3, times.size - 1):
            single = self._function(int(times[index]))
            if not (block[index] == single or math.isclose(block[index], single, rel_tol=1e-12)):
                return None
        return block

    def _growth(self) -> Growth | None:
        return None

    def __str__(self) -> str:
        name = self.name or getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"<callable {name}>"
