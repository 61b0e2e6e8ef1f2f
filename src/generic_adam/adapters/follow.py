"""A schedule of the scheduler's steps as a schedule of the optimizer's."""

from __future__ import annotations

import operator
from collections.abc import Callable

from generic_adam.adapters.clock import Clock
from generic_adam.schedules import (
    Add,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Schedule,
    Subtract,
    Time,
    function,
    maximum,
    minimum,
)

_OPERATIONS: dict[type[Schedule], Callable[[Schedule, Schedule], Schedule]] = {
    Add: operator.add,
    Subtract: operator.sub,
    Multiply: operator.mul,
    Divide: operator.truediv,
    Power: operator.pow,
    Maximum: maximum,
    Minimum: minimum,
}


def follow(schedule: Schedule, clock: Clock) -> Schedule | None:
    """The schedule whose value at optimizer step t is schedule(k_t + 1): its first before any scheduler step.

    None where the form does not allow it: running sums, periods and callables, once the clock is not t
    itself.
    """
    return schedule if clock == Clock() else _moved(schedule, clock)


def _moved(node: Schedule, clock: Clock) -> Schedule | None:
    if isinstance(node, Constant):
        return node
    if isinstance(node, Time):
        return clock.count + 1
    parts = [_moved(child, clock) for child in node.children]
    if not parts or any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    if type(node) in _OPERATIONS:
        return _OPERATIONS[type(node)](*known)
    match node:
        case Function(name, _):
            return function(name, known[0])
        case Negate():
            return -known[0]
        case Join(threshold, _, _):
            return clock.switch(known[0], threshold - 1, known[1])
        case _:
            return None
