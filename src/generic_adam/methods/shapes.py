"""The learning-rate shapes that recipes are made of."""

from __future__ import annotations

import math
from fractions import Fraction

from generic_adam.schedules import Function, Schedule, as_schedule, join, t


def warm_up(peak: float, steps: Fraction, then: Schedule) -> Schedule:
    """The share t / steps of the peak for t < steps, and what follows."""
    return join(as_schedule(peak) * t / steps, math.ceil(steps), then)


def cosine_fall(peak: float, lowest: float, start: Fraction, end: Fraction) -> Schedule:
    """Half a cosine from the peak at t = start to the lowest rate at t = end, which is then held."""
    # The angle is rounded as a whole, so that its text stays short.
    speed = math.pi / float(end - start)
    angle = as_schedule(speed) * t - speed * float(start)
    curve = as_schedule(lowest) + (as_schedule(peak) - lowest) * ((1 + Function("cos", angle)) / 2)
    return join(curve, math.ceil(end), lowest)


def linear_fall(peak: float, lowest: float, start: int, end: int) -> Schedule:
    """A line from the peak at t = start to the lowest rate at t = end, which is then held."""
    line = as_schedule(lowest) + (as_schedule(peak) - lowest) * (end - t) / (end - start)
    return join(line, end, lowest)
