"""A hypothesis that several theorems share: a sequence that never moves."""

from __future__ import annotations

import numpy as np

from generic_adam.schedules import Schedule
from generic_adam.theorems.verdicts import Condition, Status

_LOOKED_AT = 4096


def constancy(number: int, name: str, schedule: Schedule) -> Condition:
    """Say whether a sequence is constant: by its form, or refuted by the first step at which it moves."""
    value = schedule.constant_value
    if value is not None:
        return Condition(number, Status.HOLDS, f"{name} is constant, {value:.6g}")
    values = schedule.values(1, _LOOKED_AT + 1)
    moved = np.flatnonzero(values != values[0])
    if moved.size:
        witness = int(moved[0]) + 1
        return Condition(
            number, Status.FAILS, f"{name} is not constant: it changes at t = {witness}", witness
        )
    reason = f"{name} is constant on t = 1..{_LOOKED_AT:,}, but not by its form"
    return Condition(number, Status.UNDECIDED, reason)
