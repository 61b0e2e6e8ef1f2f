"""Cuts a schedule into pieces on which it is one smooth expression that provably has no hidden bump.

A join, a maximum, a minimum and an absolute value change their expression at a whole t that can be found;
between such t the schedule is analytic, and a sum over a piece can be had from an integral. Samples alone
could miss a narrow bump, so each piece is proved by its form to be monotone or to vary slowly, after it was
halved as often as that takes; short stretches that resist are left to be added term by term.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from generic_adam.schedules import (
    Add,
    BiasCorrection,
    Constant,
    Divide,
    FloatArray,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Schedule,
    ScheduleError,
    Subtract,
    Time,
    WeightedTheta,
    WeightShare,
    as_schedule,
    rebuild,
)
from generic_adam.schedules.enclosure import enclose
from generic_adam.theorems.quadrature import QuadratureError
from generic_adam.theorems.smooth_share import SmoothShare

_LATE = 1_000_000
_SHORT = 2048
_STEEPEST = 50
_MOST_PROOFS = 80
_OSCILLATING = frozenset({"sin", "cos"})
_SMOOTH_PARTS = (
    Constant,
    Time,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Negate,
    Function,
    Maximum,
    Minimum,
    Join,
)


@dataclass(frozen=True)
class Piece:
    """On t = first..last the schedule is `expression`, which has no kink there."""

    first: int
    last: int
    expression: Schedule


def is_piecewise_smooth(schedule: Schedule) -> bool:
    """Whether `smooth_pieces` can take the schedule apart: it holds no callable and does not oscillate."""
    if isinstance(schedule, Function) and schedule.name in _OSCILLATING:
        return False
    if isinstance(schedule, WeightedTheta | WeightShare):
        return SmoothShare.serves(schedule.weights)
    if isinstance(schedule, BiasCorrection):
        return schedule.accepts_real_times
    return isinstance(schedule, _SMOOTH_PARTS) and all(map(is_piecewise_smooth, schedule.children))


def smooth_pieces(schedule: Schedule, first: int, last: int) -> list[Piece]:
    """Cut the steps first..last at every kink of the schedule, and around short stretches that may bend fast.

    Args:
      schedule: for which `is_piecewise_smooth` is true.
      first: the first step, t >= 1.
      last: the last step.

    Raises:
      QuadratureError: the form of the schedule does not show where its kinks are, or that it bends slowly.
    """
    pieces: list[Piece] = []
    for start, stop in _intervals(first, last, _cuts(schedule, first, last)):
        expression = _resolved(schedule, start, stop)
        smooth = _with_smooth_shares(expression)
        fast = _fast_stretches(expression, start, stop)
        pieces += [Piece(a, b, smooth) for a, b in _intervals(start, stop, fast)]
    return pieces


def kinks(schedule: Schedule, first: int, last: int) -> list[int]:
    """The steps of first..last at which the schedule becomes another expression; none if that is unclear."""
    try:
        return sorted(_cuts(schedule, first, last))
    except QuadratureError:
        return []


def _intervals(first: int, last: int, cuts: set[int]) -> list[tuple[int, int]]:
    """The stretches of first..last between cuts; a cut is the first step of a new stretch."""
    inner = sorted(cut for cut in cuts if first < cut <= last)
    return list(zip([first, *inner], [*(cut - 1 for cut in inner), last], strict=True))


def late_value(schedule: Schedule, t: int) -> float:
    """Return u_t without running a sum of t terms, where the schedule is smooth."""
    if t < _LATE or schedule.accepts_real_times or not is_piecewise_smooth(schedule):
        return schedule(t)
    return _with_smooth_shares(schedule)(t)


def _with_smooth_shares(node: Schedule) -> Schedule:
    if isinstance(node, WeightShare):
        return SmoothShare(node.weights, node.initial)
    if isinstance(node, WeightedTheta):
        return Subtract(as_schedule(1), SmoothShare(node.weights, node.initial))
    return rebuild(node, _with_smooth_shares)


def _cuts(node: Schedule, first: int, last: int) -> set[int]:
    """Every step of first..last from which on the node is another expression than before."""
    if first >= last:
        return set()
    if isinstance(node, Join):
        cuts = {node.threshold} if first < node.threshold <= last else set[int]()
        early = _cuts(node.before, first, min(last, node.threshold - 1))
        return cuts | early | _cuts(node.after, max(first, node.threshold), last)
    cuts = {cut for child in node.children for cut in _cuts(child, first, last)}
    if isinstance(node, Maximum | Minimum):
        left, right = node.left, node.right
    elif isinstance(node, Function) and node.name == "abs":
        left, right = node.argument, as_schedule(0)
    else:
        return cuts
    for start, stop in _intervals(first, last, cuts):
        cuts = cuts | _crossings(_resolved(left, start, stop), _resolved(right, start, stop), start, stop)
    return cuts


def _crossings(left: Schedule, right: Schedule, first: int, last: int) -> set[int]:
    """The steps at which the larger of two kink-free expressions changes; none is overlooked."""
    smooth_left, smooth_right = _with_smooth_shares(left), _with_smooth_shares(right)

    def larger(times: FloatArray) -> npt.NDArray[np.bool_]:
        return smooth_left.at(times) > smooth_right.at(times)

    def ahead(t: int) -> bool:
        try:
            return smooth_left(t) > smooth_right(t)
        except ScheduleError:  # a part leaves the range of floats; arrays have infinity there
            return bool(larger(np.array([float(t)]))[0])

    found: set[int] = set()
    for start, stop, proved in _proved_stretches(
        lambda a, b: _compare_monotonically(left, right, a, b), first, last
    ):
        if not proved:
            values = larger(np.arange(start, stop + 1, dtype=np.float64))
            found.update((start + 1 + np.flatnonzero(values[1:] != values[:-1])).tolist())
            continue
        end = ahead(stop)
        if ahead(start) != end:
            steps = range(start, stop + 1)
            at = bisect.bisect_left(steps, True, key=lambda t: ahead(t) == end)
            found.add(steps[at])
    return found


def _compare_monotonically(left: Schedule, right: Schedule, first: int, last: int) -> bool:
    """Whether it is proved that left > right changes at most once on first..last."""
    stop = _horizon_of_proof(left, right, last=last)
    one, other = enclose(left, first, stop), enclose(right, first, stop)
    if one.range.low >= other.range.high or other.range.low >= one.range.high:
        return True
    difference = left / right if one.positive and other.positive else left - right
    return enclose(difference, first, stop).direction is not None


def _fast_stretches(expression: Schedule, first: int, last: int) -> set[int]:
    """Cuts around the short stretches on which a kink-free expression is not proved to bend slowly."""
    found: set[int] = set()
    if last - first <= _SHORT:
        return found
    for start, stop, proved in _proved_stretches(lambda a, b: _bends_slowly(expression, a, b), first, last):
        if not proved:
            found.update((start, stop + 1))
    return found


def _bends_slowly(expression: Schedule, first: int, last: int) -> bool:
    """Whether it is proved monotone, or that t u'/u stays within bounds: neither leaves room for a bump."""
    facts = enclose(expression, first, _horizon_of_proof(expression, last=last))
    if facts.direction is not None:
        return True
    slope = facts.elasticity
    if slope is None or slope.low is None or slope.high is None:
        return False
    return slope.low >= -_STEEPEST and slope.high <= _STEEPEST


def _horizon_of_proof(*expressions: Schedule, last: int) -> float:
    """Up to `last`, or for ever where a running sum would have to be run to `last` for its value there."""
    return float(last) if all(one.accepts_real_times for one in expressions) else math.inf


def _proved_stretches(
    proof: Callable[[int, int], bool], first: int, last: int
) -> Iterator[tuple[int, int, bool]]:
    """Halve first..last (in logarithm) until each stretch is proved or short; say which it is."""
    pending = [(first, last)]
    for _ in range(_MOST_PROOFS):
        if not pending:
            return
        start, stop = pending.pop()
        if stop - start <= _SHORT:
            yield start, stop, False
        elif proof(start, stop):
            yield start, stop, True
        else:
            middle = math.isqrt(start * stop)
            pending += [(start, middle), (middle, stop)]
    raise QuadratureError("the form does not show how the schedule bends")


def _resolved(node: Schedule, first: int, last: int) -> Schedule:
    """The expression that the node is on first..last, with every join and kink replaced by its branch."""
    if isinstance(node, Join):
        return _resolved(node.before if last < node.threshold else node.after, first, last)
    middle = np.array([float((first + last) // 2)])
    if isinstance(node, Maximum | Minimum):
        left, right = (_with_smooth_shares(side).at(middle)[0] for side in (node.left, node.right))
        chosen = node.left if bool(left > right) == isinstance(node, Maximum) else node.right
        return _resolved(chosen, first, last)
    if isinstance(node, Function) and node.name == "abs":
        inner = _resolved(node.argument, first, last)
        return inner if _with_smooth_shares(inner).at(middle)[0] > 0 else -inner
    return rebuild(node, lambda child: _resolved(child, first, last))
