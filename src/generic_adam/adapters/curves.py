"""The curves that learning rates follow, written so that they read well."""

import math

from generic_adam.schedules import Join, Schedule, as_linear, as_schedule, function, join, t


def half_cosine(position: Schedule, length: float) -> Schedule:
    """(1 + cos(pi position / length)) / 2: from 1 at the beginning to 0 after `length`."""
    speed, line = math.pi / length, as_linear(position)
    if line is None:
        angle = as_schedule(speed) * position
    else:  # exact products of decimals would fill a line each, and pi is rounded anyway
        angle = as_schedule(speed * float(line[0])) * t + speed * float(line[1])
    return (1 + function("cos", angle)) / 2


def between(start: float, end: float, x: Schedule) -> Schedule:
    """`start` where x = 0, `end` where x = 1, in a straight line."""
    first, last = as_schedule(start), as_schedule(end)
    return first + (last - first) * x if start <= end else first - (first - last) * x


def scaled(base: float, factor: Schedule) -> Schedule:
    """Base * factor, multiplied out over the phases of the factor."""
    if isinstance(factor, Join):
        return join(scaled(base, factor.before), factor.threshold, scaled(base, factor.after))
    return base * factor
