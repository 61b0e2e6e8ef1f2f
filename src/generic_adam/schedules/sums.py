r"""Partial sums :math:`\sum_{t\le T} u_t` for any T.

Up to 10^5 terms are added one by one, in blocks. Longer sums of smooth schedules are an integral and a
correction at its ends, by the midpoint form of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots

on panels that grow with t: powers, logarithms and iterated logarithms vary by a bounded factor over each, so
that a few of them reach the rounding error for any upper limit. Samples alone could miss a narrow bump, so each
stretch is first proved by its form to have no kink and to be monotone or to vary slowly, after it was halved as
often as that takes. What resists, a kink or a singularity close to an end of a stretch, is halved until it is
short, and added term by term. Callables and oscillating tails are always added term by term.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from generic_adam.errors import ScheduleError, shown
from generic_adam.schedules import tree
from generic_adam.schedules.balls import LONGEST_SUM, ball, below, nearest, value
from generic_adam.schedules.enclosure import enclose, has_kinks, settled, sides, stretches
from generic_adam.schedules.quadrature import FIRST_SMOOTH, end_correction, has_smooth_share, panel_integrals
from generic_adam.schedules.tree import FloatArray, Schedule, contains

DIRECT_LIMIT = 100_000_000
"""Longest sum that is added term by term; it takes a few seconds for an expression."""
LONGEST_HORIZON = 10**15
"""Largest T: whole numbers up to here are exact in a double, halves included."""

_BLOCK = 1 << 16
_SHORT = 100_000
# Panels shorter than this are added term by term.
_SHORT_PANEL = 2048
# The relative error that two rules may differ by, and the terms left out may have, over all panels.
_TOLERANCE = 1e-12
_OFFSETS = np.array([-0.75, -0.25, 0.25, 0.75])
_LATE = 1_000_000
# A value with more bits than a double has.
_DOUBLE = 60
_STEEPEST = 50
_MOST_PROOFS = 200
_DEEPEST = 48
_MOST_PANELS = 2_000


class SumError(ScheduleError):
    """A sum that cannot be computed as asked; the message is one line."""


class QuadratureError(ArithmeticError):
    """The integrand is not smooth enough for the wanted accuracy, or not finite."""


def whole_steps(steps: float, name: str = "horizon") -> int:
    """A number of steps as an int; people also write 1e6.

    Raises:
        SumError: it is no whole number from 1 to 10^15.
    """
    with suppress(TypeError, ValueError, OverflowError, RuntimeError):  # the last is torch's
        if not isinstance(steps, bool) and int(steps) == steps and 1 <= steps <= LONGEST_HORIZON:
            return int(steps)
    raise SumError(f"{name}: expected a whole number of steps from 1 to 10^15, got {shown(steps)}")


def partial_sum(schedule: Schedule, steps: int) -> float:
    """The sum of u_t over t = 1..T, T up to 10^15 for smooth schedules, up to 10^8 for all others.

    Infinite where it is too large for a double; the relative error is below 1e-9 if no terms cancel.

    Raises:
      SumError: a term is undefined, or the sum is too long to be added term by term.
    """
    return next(partial_sums(schedule, [steps]))


def partial_sums(schedule: Schedule, stops: Iterable[int]) -> Iterator[float]:
    """The sums of u_t over t = 1..T for several T, from the smallest up, for the price of the longest.

    Raises:
      SumError: as for `partial_sum`, when the first T is reached whose sum cannot be had.
    """
    ends = sorted({whole_steps(stop) for stop in stops})
    constant = schedule.constant_value
    if constant is not None:
        yield from (end * constant for end in ends)
        return
    smooth: list[float] = []
    if ends[-1] > _SHORT and is_piecewise_smooth(schedule):
        # Smooth in form; but on this range rounding noise or a wild exponent may spoil the integral.
        with suppress(QuadratureError):
            smooth = smooth_sums(schedule, ends)
    yield from smooth or _direct_sums(schedule, ends)


def _direct_sums(schedule: Schedule, ends: Sequence[int]) -> Iterator[float]:
    total, added = 0.0, 0
    for end in ends:
        if end > DIRECT_LIMIT:
            raise SumError(f"the sum of {schedule} to T = {end:.3g} must be added term by term, which stops at T = 1e8")
        total += direct_sum(schedule, added + 1, end)
        added = end
        yield total


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


def smooth_sums(schedule: Schedule, ends: Sequence[int], first: int = 1) -> list[float]:
    """Add u_t over t = first..T for each T of `ends`, which rise, by Euler and Maclaurin's formula.

    Raises:
      QuadratureError: the form of the schedule does not show that it is smooth on the range.
    """
    late = max(first, min(ends[-1], FIRST_SMOOTH) + 1)
    sums: list[float] = []
    parts: list[float] = []
    cuts = {end + 1 for end in ends}
    beginning = [(first, late - 1, schedule)] if first < late else []
    for start, stop, smooth in [*beginning, *_smooth_stretches(schedule, late, ends[-1])]:
        for begin, last in stretches(start, stop, cuts):
            parts.append(_smooth_sum(smooth, begin, last))
            if last == ends[len(sums)]:
                sums.append(_total(parts))
    return sums


def _smooth_stretches(schedule: Schedule, first: int, last: int) -> Iterator[tuple[int, int, Schedule]]:
    """The steps first..last in stretches that are short, or on which the schedule is a smooth expression."""
    pending = stretches(first, last, schedule.joins)[::-1]
    for _ in range(_MOST_PROOFS):
        if not pending:
            return
        start, stop = pending.pop()
        expression = None if stop - start < _SHORT_PANEL else _slow_expression(schedule, start, stop)
        if expression is None and stop - start >= _SHORT_PANEL:
            middle = math.isqrt(start * stop)
            pending += [(middle + 1, stop), (start, middle)]
        else:
            yield start, stop, expression or schedule
    raise QuadratureError("the form does not show how the schedule bends")


def _slow_expression(schedule: Schedule, start: int, stop: int) -> Schedule | None:
    """Return the form of the schedule on a stretch; None where a kink or room for a bump is not ruled out.

    A bump needs room in which the schedule both rises and falls, or in which t u'/u is large.
    """
    # For ever no late value of a running sum is needed; a very late one is a closed form or not to be had.
    horizons = (stop,) if schedule.accepts_real_times else (math.inf, stop) if stop > LONGEST_SUM else (math.inf,)
    for last in horizons:
        expression = settled(schedule, start, last)
        facts = enclose(expression, start, last)
        slow = facts.elasticity is not None and facts.elasticity.size <= _STEEPEST
        if (slow or facts.direction is not None) and not has_kinks(expression):
            return expression
    return None


def _smooth_sum(u: Schedule, first: int, last: int) -> float:
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


def _midpoint_sums(u: Schedule, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sums over panels by the formula, and the sizes of the first term that it leaves out.

    That is 7/5760 of the third derivatives, by differences over half a step.
    """
    around = u.at(np.stack([lower, upper])[:, :, None] + _OFFSETS)
    with np.errstate(all="ignore"):  # the difference of two infinities
        thirds = np.abs(around[..., 3] - 3 * around[..., 2] + 3 * around[..., 1] - around[..., 0]) / 0.125
        sums = panel_integrals(u.at, lower, upper) - end_correction(u.at, lower, upper)
    return sums, 7 / 5760 * thirds.sum(axis=0)


def is_piecewise_smooth(schedule: Schedule) -> bool:
    """Return whether the schedule holds no callable and does not oscillate."""
    match schedule:
        case tree.OfWeights(weights):
            return has_smooth_share(weights)
        case tree.BiasCorrection():
            return schedule.accepts_real_times
        case _:
            bends = isinstance(schedule, tree.Join) or sides(schedule) is not None
            return (schedule.smooth or bends) and all(map(is_piecewise_smooth, schedule.children))


def late_value(schedule: Schedule, t: int) -> float:
    """Return u_t without running a sum of t terms, where a closed form of the sum is known."""
    if t < _LATE or schedule.accepts_real_times or contains(schedule, tree.Opaque):
        return schedule(t)
    late = ball(value(schedule, t))
    return nearest(late) if late.is_finite() and late.rel_accuracy_bits() > _DOUBLE else schedule(t)
