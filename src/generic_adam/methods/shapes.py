"""The learning-rate shapes that recipes and schedulers are made of: warm-ups, and curves from one rate to another."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from generic_adam.errors import MethodError
from generic_adam.schedules import Function, Schedule, as_linear, as_schedule, join, log, sqrt, t


def warm_up(peak: float, steps: Fraction, then: Schedule) -> Schedule:
    """Return t / steps of the peak for t < steps, and then what follows."""
    return join(as_schedule(peak) * t / steps, math.ceil(steps), then)


def half_cosine(position: Schedule, length: float | Fraction) -> Schedule:
    """(1 + cos(pi position / length)) / 2: from 1 at the beginning to 0 after `length`."""
    speed, line = math.pi / length, as_linear(position)
    if line is None:
        angle = as_schedule(speed) * position
    else:  # exact products of decimals would fill a line each, and pi is rounded anyway
        angle = as_schedule(speed * float(line[0])) * t + speed * float(line[1])
    return (1 + Function("cos", angle)) / 2


Shape = Callable[[Schedule, float | Fraction], Schedule]
_DONE: dict[str, Shape] = {
    "linear": lambda k, length: k / length,
    "sqrt": lambda k, length: sqrt(k / length),
    "1-sqrt": lambda k, length: sqrt(k / length),
    "log": lambda k, length: log(k + 1) / log(as_schedule(length)),
}
"""The share of the way that is done after k of `length` counts."""
_LEFT: dict[str, Shape] = {"cos": half_cosine, "cosine": half_cosine}
"""The share that is left."""


def power(exponent: float) -> Shape:
    """Return the shape of which the share (1 - k / length)^exponent is left."""
    return lambda k, length: (1 - k / length) ** as_schedule(exponent)


def curve(first: float, last: float, k: Schedule, length: float | Fraction, shape: str | Shape) -> Schedule:
    """From `first` at k = 0 to `last` at k = length, by a name or by the share that is left."""
    if not callable(shape) and shape in _DONE:
        return between(first, last, _DONE[shape](k, length))
    left = shape if callable(shape) else _LEFT.get(shape)
    if left is None:
        raise MethodError(f"the shape is {shape!r}; expected one of {', '.join(_DONE | _LEFT)}")
    return between(last, first, left(k, length))


def between(start: float, end: float, x: Schedule) -> Schedule:
    """`start` where x = 0, `end` where x = 1, in a straight line."""
    first, last = as_schedule(start), as_schedule(end)
    return first + (last - first) * x if start <= end else first - (first - last) * x


def fall(shape: str, peak: float, lowest: float, start: Fraction | int, end: Fraction | int) -> Schedule:
    """From the peak at t = start to the lowest rate at t = end by a curve's shape, and held there."""
    return join(curve(peak, lowest, t - start, end - start, shape), math.ceil(end), lowest)


DECAYS = ("constant", "cosine", "linear", "inverse-sqrt", "wsd", "1-sqrt")
"""The shapes of `training_rate` by name."""
_COOLDOWNS = {"wsd": "linear", "1-sqrt": "1-sqrt"}


def training_rate(
    peak: float,
    *,
    warmup: int = 0,
    decay: str = "constant",
    lowest: float = 0.0,
    steps: int | None = None,
    cooldown: int | None = None,
) -> Schedule:
    """Return a learning rate as training scripts have it: linear warm-up, then a fall over the run.

    Args:
        peak: the largest rate.
        warmup: steps of warm-up; t / warmup of the peak.
        decay: "constant", "cosine", "linear", "inverse-sqrt", or constant until a cool-down: "wsd" (a straight line),
            "1-sqrt".
        lowest: the rate at the end; it is held from then on.
        steps: the number of steps of the run, which all but two need.
        cooldown: the steps of the cool-down; None means a fifth of the run.

    Raises:
        MethodError: an unknown shape, or no number of steps where one is needed.
    """
    start = Fraction(max(warmup, 1))
    if decay not in {"constant", "inverse-sqrt"} and decay in DECAYS and (steps is None or steps <= warmup):
        raise MethodError(f"--decay {decay}: expected a number of steps above the warm-up (--steps)")
    if cooldown is not None and decay not in _COOLDOWNS:
        raise MethodError(f"--cooldown goes with --decay {' or '.join(_COOLDOWNS)}")
    if decay in _COOLDOWNS and steps is not None:
        last = max(1, steps // 5) if cooldown is None else cooldown
        if last > steps - warmup:
            raise MethodError(
                f"--cooldown: expected at most the {steps - warmup:,} steps after the warm-up, got {last:,}"
            )
        tail = join(as_schedule(peak), steps - last, fall(_COOLDOWNS[decay], peak, lowest, steps - last, steps))
    elif decay in {"cosine", "linear"} and steps is not None:
        tail = fall(decay, peak, lowest, start, steps)
    elif decay == "inverse-sqrt":
        tail = as_schedule(peak) * sqrt(start / t)
    elif decay == "constant":
        tail = as_schedule(peak)
    else:
        raise MethodError(f"--decay: expected one of {', '.join(DECAYS)}, got {decay!r}")
    return warm_up(peak, start, tail) if warmup else tail
