"""LambdaLR: opaque, unless its function carries a schedule or is one that transformers made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from generic_adam.adapters.clock import Clock
from generic_adam.adapters.curves import scaled
from generic_adam.adapters.follow import follow
from generic_adam.adapters.warmup_shapes import SHAPES_BY_FUNCTION
from generic_adam.schedules import Opaque, Schedule


def lambda_rate(function: Callable[[int], float], base: float, clock: Clock) -> Schedule:
    """Base * function(k): in closed form where the function's is known, else opaque.

    A function carries a schedule u when it has an attribute `schedule` and function(k) = u(k + 1), as
    `generic_adam.torch.ScheduleFactor` has.
    """
    carried = getattr(function, "schedule", None)
    if isinstance(carried, Schedule):
        followed = follow(carried, clock)
        if followed is not None:
            return scaled(base, followed)
    if isinstance(function, partial) and function.func.__module__ == "transformers.optimization":
        shape = SHAPES_BY_FUNCTION.get(function.func.__name__)
        factor = shape(clock, function.keywords) if shape is not None and not function.args else None
        if factor is not None:
            return scaled(base, factor)
    return Opaque(_Scaled(function, base, clock), f"LambdaLR {getattr(function, '__qualname__', 'function')}")


class _Scaled:
    """base * function(k) as a callable of the optimizer's step t."""

    def __init__(self, function: Callable[[int], Any], base: float, clock: Clock) -> None:
        self.function, self.base, self.clock = function, base, clock

    def __call__(self, t: int) -> float:
        return self.base * float(self.function((int(t) - 1) // self.clock.every - self.clock.start))
