"""The learning-rate shapes that recipes are made of."""

from __future__ import annotations

import math
from fractions import Fraction

from generic_adam.errors import MethodError
from generic_adam.schedules import Function, Schedule, as_linear, as_schedule, join, sqrt, t


def warm_up(peak: float, steps: Fraction, then: Schedule) -> Schedule:
    """The share t / steps of the peak for t < steps, and what follows."""
    return join(as_schedule(peak) * t / steps, math.ceil(steps), then)


def half_cosine(position: Schedule, length: float) -> Schedule:
    """(1 + cos(pi position / length)) / 2: from 1 at the beginning to 0 after `length`."""
    speed, line = math.pi / length, as_linear(position)
    if line is None:
        angle = as_schedule(speed) * position
    else:  # exact products of decimals would fill a line each, and pi is rounded anyway
        angle = as_schedule(speed * float(line[0])) * t + speed * float(line[1])
    return (1 + Function("cos", angle)) / 2


def cosine_fall(peak: float, lowest: float, start: Fraction, end: Fraction) -> Schedule:
    """Half a cosine from the peak at t = start to the lowest rate at t = end, which is then held."""
    curve = as_schedule(lowest) + (as_schedule(peak) - lowest) * half_cosine(t - start, float(end - start))
    return join(curve, math.ceil(end), lowest)


def linear_fall(peak: float, lowest: float, start: Fraction | int, end: Fraction | int) -> Schedule:
    """A line from the peak at t = start to the lowest rate at t = end, which is then held."""
    line = as_schedule(lowest) + (as_schedule(peak) - lowest) * (end - t) / (end - start)
    return join(line, math.ceil(end), lowest)


def training_rate(
    peak: float, *, warmup: int = 0, decay: str = "constant", lowest: float = 0.0, steps: int | None = None
) -> Schedule:
    """A learning rate as training scripts have it: linear warm-up, then a fall over the run.

    Args:
        peak: the largest rate.
        warmup: steps of warm-up; t / warmup of the peak.
        decay: "constant", "cosine", "linear" or "inverse-sqrt".
        lowest: where a cosine or a line ends; it is held from then on.
        steps: the number of steps of the run, which a cosine or a line needs.

    Raises:
        MethodError: an unknown shape, or no number of steps where one is needed.
    """
    start = Fraction(max(warmup, 1))
    if decay in {"cosine", "linear"}:
        if steps is None or steps <= warmup:
            raise MethodError(f"--decay {decay}: expected a number of steps above the warm-up (--steps)")
        fall = cosine_fall if decay == "cosine" else linear_fall
        tail = fall(peak, lowest, start, Fraction(steps))
    elif decay == "inverse-sqrt":
        tail = as_schedule(peak) * sqrt(start / t)
    elif decay == "constant":
        tail = as_schedule(peak)
    else:
        raise MethodError(f"--decay: expected constant, cosine, linear or inverse-sqrt, got {decay!r}")
    return warm_up(peak, start, tail) if warmup else tail
