r"""Partial sums :math:`\sum_{t\le T} u_t` for any T.

Up to 10^5 terms are added one by one, in blocks. Of a longer sum the beginning is added and the tail is an integral and
a correction at its ends, by the midpoint form of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots

on panels that grow with t: powers, logarithms and iterated logarithms vary by a bounded factor over each, so
that a few of them reach the rounding error for any upper limit. Samples alone could miss a narrow bump, so the tail is
first proved to rise or to fall throughout. Everything else is added term by term: callables, oscillating tails, running
sums.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from generic_adam.errors import ScheduleError, shown
from generic_adam.schedules import tree
from generic_adam.schedules.balls import ball, below, nearest, value
from generic_adam.schedules.enclosure import resolved
from generic_adam.schedules.expansion import tail_direction
from generic_adam.schedules.tree import FloatArray, Schedule, contains

DIRECT_LIMIT = 100_000_000
"""Longest sum that is added term by term; it takes a few seconds for an expression."""
LONGEST_HORIZON = 10**15
"""Largest T: whole numbers up to here are exact in a double, halves included."""

_BLOCK = 1 << 16
# Of Gauss and Legendre's rule, for each panel.
_NODES = 16
_SHORT = 100_000
# From one of these steps on the tail has to be monotone.
_BEGINNINGS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
# Panels shorter than this are added term by term.
_SHORT_PANEL = 2048
# The relative error that two rules may differ by, and the terms left out may have, over all panels.
_TOLERANCE = 1e-12
_OFFSETS = np.array([-0.75, -0.25, 0.25, 0.75])
_LATE = 1_000_000
# A value with more bits than a double has.
_DOUBLE = 60
_DEEPEST = 48
_MOST_PANELS = 2_000


class SumError(ScheduleError):
    """A sum that cannot be computed as asked; the message is one line."""


class QuadratureError(ArithmeticError):
    """The integrand is not smooth enough for the wanted accuracy, or not finite."""


def whole_steps(steps: float, name: str = "horizon") -> int:
    """Return a number of steps as an int; 1e6 is one too.

    Raises:
        SumError: it is no whole number from 1 to 10^15.
    """
    with suppress(TypeError, ValueError, OverflowError, RuntimeError):  # the last is torch's
        if not isinstance(steps, bool) and int(steps) == steps and 1 <= steps <= LONGEST_HORIZON:
            return int(steps)
    raise SumError(f"{name}: expected a whole number of steps from 1 to 10^15, got {shown(steps)}")


def partial_sum(schedule: Schedule, steps: int) -> float:
    """Return the sum of u_t over t = 1..T: to 10^15 where the tail is monotone by its form, to 10^8 elsewhere.

    Infinite where it is too large for a double; the relative error is below 1e-9 if no terms cancel.

    Raises:
      SumError: a term is undefined, or the sum is too long to be added term by term.
    """
    last = whole_steps(steps)
    if schedule.constant_value is not None:
        return last * schedule.constant_value
    if last > _SHORT:
        # Monotone by form; but on this range rounding noise or a wild exponent may spoil the integral.
        with suppress(QuadratureError):
            return smooth_sum(schedule, last)
    if last > DIRECT_LIMIT:
        raise SumError(f"the sum of {schedule} to T = {last:.3g} must be added term by term, which stops at T = 1e8")
    return direct_sum(schedule, 1, last)


def direct_sum(schedule: Schedule, first: int, last: int) -> float:
    """Add u_t over t = first..last in blocks that fit a cache."""
    sums: list[float] = []
    for start in range(first, last + 1, _BLOCK):
        block = schedule.values(start, min(start + _BLOCK, last + 1))
        total = float(block.sum())
        if math.isnan(total):
            where = start + int(np.argmax(np.isnan(block)))
            raise SumError(f"{schedule} is not a number at t = {where}")
        sums.append(total)
    return _total(sums)


def _total(parts: Iterable[float]) -> float:
    try:
        return math.fsum(parts)
    except OverflowError:
        return math.inf


def smooth_sum(schedule: Schedule, last: int) -> float:
    """Add u_t over t = 1..T, the tail by Euler and Maclaurin's formula.

    Raises:
      QuadratureError: no tail within reach is proved to be monotone between whole t too.
    """
    joined = max((cut for cut in schedule.joins if cut <= last), default=1)
    for first in (max(joined, one) for one in _BEGINNINGS):
        if first > min(last, DIRECT_LIMIT):
            break
        piece = resolved(schedule, first, last)
        if piece.accepts_real_times and tail_direction(piece, first) is not None:
            return _total([direct_sum(schedule, 1, first - 1), _integrated(piece, first, last)])
    raise QuadratureError("no tail is proved to be monotone")


def _integrated(u: Schedule, first: int, last: int) -> float:
    """Add u_t over t = first..last: each panel as an integral, halved while that differs from its halves."""
    count = max(1, math.ceil(math.log((last + 1) / first) / 2))
    edges = np.unique(np.floor(np.geomspace(first, last + 1, count + 1))) - 0.5
    left, right, whole = edges[:-1], edges[1:], np.full(len(edges) - 1, np.nan)
    done: list[float] = []
    for _ in range(_DEEPEST):
        short = right - left < _SHORT_PANEL
        done += [direct_sum(u, int(a + 0.5), int(b - 0.5)) for a, b in zip(left[short], right[short], strict=True)]
        left, right, whole = left[~short], right[~short], whole[~short]
        if not left.size:
            return _total(done)
        if len(left) > _MOST_PANELS:
            break
        middle = np.floor(np.sqrt(left * right)) + 0.5
        halves, left_out = _midpoint_sums(u, np.append(left, middle), np.append(middle, right))
        if not np.isfinite(halves).all():
            with suppress(ScheduleError):
                if below(value(u, int(right[-1]))) == sys.float_info.max:  # not a float's overflow inside it alone
                    return math.inf
            raise QuadratureError("the schedule is not finite")
        both = halves.reshape(2, -1).sum(axis=0)
        size = np.abs(halves).sum() + sum(map(abs, done))
        error = np.abs(both - whole) + left_out.reshape(2, -1).sum(axis=0)
        good = error <= _TOLERANCE * size / len(edges)
        done += both[good].tolist()
        todo = np.tile(~good, 2)
        left, right, whole = np.append(left, middle)[todo], np.append(middle, right)[todo], halves[todo]
    raise QuadratureError("the schedule is not smooth")


def panel_integrals(u: Schedule, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Integrate over each panel with one Gauss-Legendre rule."""
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (upper - lower) / 2
    times = (upper + lower)[:, None] / 2 + half[:, None] * points
    with np.errstate(over="ignore", invalid="ignore"):
        # The width first: a value near the least float has no digits left after a weight.
        return (u.at(times.ravel()).reshape(times.shape) * half[:, None]) @ weights


def _midpoint_sums(u: Schedule, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sums over panels by the formula, and the sizes of the first term left out.

    The correction is 1/24 of the change of the slope, the term left out 7/5760 of the third derivatives, each by
    differences over half a step: exact to about 1e-16 of the value.
    """
    around = u.at(np.stack([lower, upper])[:, :, None] + _OFFSETS)
    with np.errstate(all="ignore"):  # the difference of two infinities
        slopes = (around[..., 2] - around[..., 1]) / 0.5
        thirds = np.abs(around[..., 3] - 3 * around[..., 2] + 3 * around[..., 1] - around[..., 0]) / 0.125
        sums = panel_integrals(u, lower, upper) - (slopes[1] - slopes[0]) / 24
    return sums, 7 / 5760 * thirds.sum(axis=0)


def late_value(schedule: Schedule, t: int) -> float:
    """Return u_t without running a sum of t terms, where a closed form of the sum is known."""
    if t < _LATE or schedule.accepts_real_times or contains(schedule, tree.Opaque):
        return schedule(t)
    late = ball(value(schedule, t))
    return nearest(late) if late.is_finite() and late.rel_accuracy_bits() > _DOUBLE else schedule(t)
