"""Readers of what users give: numbers in a range, and sequences in any of their forms."""

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Real

from generic_adam.errors import MethodError
from generic_adam.schedules import Schedule, ScheduleError, as_schedule, exact

ScheduleLike = Schedule | float | str | Callable[[int], float]
"""What a sequence can be given as: a schedule, a number, a text such as "0.5/sqrt(t)", or a callable of t."""


def read_schedule(name: str, value: ScheduleLike) -> Schedule:
    """The schedule that is meant by ``value``; an error that names the argument if there is none."""
    try:
        return as_schedule(value)
    except ScheduleError as error:
        raise MethodError(f"{name}: {error}") from error


def exact_number(
    name: str,
    value: float | Fraction,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Fraction:
    """The rational number that is meant by ``value``, inside its range.

    Args:
        name: the argument, for the message.
        value: what the user gave.
        above: strict lower limit.
        below: strict upper limit.
        at_least: lower limit.
        at_most: upper limit.

    Returns:
        The exact value (0.999 is 999/1000).

    Raises:
        MethodError: not a finite number, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise MethodError(f"{name}: expected a finite number, got {value!r}")
    if not (above < value < below and at_least <= value <= at_most):
        limits = [
            f"{sign} {limit:g}"
            for sign, limit in ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
            if math.isfinite(limit)
        ]
        raise MethodError(f"{name}: expected a number {' and '.join(limits)}, got {value!r}")
    return exact(value)
