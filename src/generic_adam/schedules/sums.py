r"""Partial sums :math:`\sum_{t\le T} u_t` for any T.

Up to 10^5 terms are added one by one, in blocks. Longer sums of smooth schedules go through Euler and
Maclaurin's formula (`integrals`), piece by piece. A join, a maximum, a minimum and an absolute value change
their expression at a whole t that can be found; between such t the schedule is analytic. Samples alone could
miss a narrow bump, so each piece is proved by its form to be monotone or to vary slowly, after it was halved
as often as that takes; short stretches that resist are added term by term. Where an end of a piece is close
to a singularity, the first and last thousand terms are added directly, so that the terms left out are below
1e-9 of the sum. Callables and oscillating tails are always added term by term.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.enclosure import enclose, resolved
from generic_adam.schedules.integrals import (
    NarrowPanelError,
    QuadratureError,
    SmoothShare,
    end_correction,
    integral,
)
from generic_adam.schedules.tree import FloatArray, Schedule

DIRECT_LIMIT = 100_000_000
"""Longest sum that is added term by term; it takes a few seconds for an expression."""
LONGEST_HORIZON = 10**15
"""Largest T: whole numbers up to here are exact in a double, halves included."""

_BLOCK = 1 << 16
_SHORT = 100_000
_EDGE = 1024
_TOLERANCE = 1e-10
_NEGLIGIBLE = 1e-13
# A function that sixteen nodes cannot follow over this many steps may move between two of them.
_NARROWEST = 32.0
_OFFSETS = np.array([-0.75, -0.25, 0.25, 0.75])
_LATE = 1_000_000
_SHORT_PIECE = 2048
_STEEPEST = 50
_MOST_PROOFS = 80
_OSCILLATING = frozenset({"sin", "cos"})
_SMOOTH_PARTS = (
    tree.Constant,
    tree.Time,
    tree.Add,
    tree.Subtract,
    tree.Multiply,
    tree.Divide,
    tree.Power,
    tree.Negate,
    tree.Function,
    tree.Maximum,
    tree.Minimum,
    tree.Join,
)


class SumError(ScheduleError):
    """A sum that cannot be computed as asked; the message is one line."""


def checked_horizon(steps: int, name: str = "the horizon") -> int:
    """Return a number of steps as an int from 1 to 10^15, or say what is wrong with it."""
    expected = "expected a whole number from 1 to 10^15"
    try:
        whole = int(steps)
    except (TypeError, ValueError, OverflowError) as error:
        raise SumError(f"{name} is {steps!r}, {expected}") from error
    if isinstance(steps, bool) or whole != steps or not 1 <= whole <= LONGEST_HORIZON:
        raise SumError(f"{name} is {steps!r}, {expected}")
    return whole


def partial_sum(schedule: Schedule, steps: int) -> float:
    """Return the sum of u_t over t = 1..steps.

    Args:
      schedule: u.
      steps: T, up to 10^15 for smooth schedules, up to 10^8 for callables and oscillating ones.

    Returns:
      The sum; infinite where it is too large for a double. Relative error below 1e-9 if no terms cancel.

    Raises:
      SumError: a term is undefined, or the sum is too long to be added term by term.
    """
    return next(partial_sums(schedule, [steps]))


def partial_sums(schedule: Schedule, stops: Iterable[int]) -> Iterator[float]:
    """The sums of u_t over t = 1..T for several T, from the smallest up, for the price of the longest.

    Raises:
      SumError: as for `partial_sum`, when the first T is reached whose sum cannot be had.
    """
    ends = sorted({checked_horizon(stop) for stop in stops})
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
            raise SumError(
                f"the sum of {schedule} to T = {end:.3g} must be added term by term, which stops at T = 1e8"
            )
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
    try:
        return math.fsum(sums)
    except OverflowError:
        return math.inf


def smooth_sums(schedule: Schedule, ends: Sequence[int]) -> list[float]:
    """Add u_t over t = 1..T for each T of `ends`, which rise, by Euler and Maclaurin's formula.

    Raises:
      QuadratureError: the schedule is not smooth on the range, or the terms left out are not negligible.
    """
    beginning = min(ends[-1], _EDGE)  # running sums are integrals only later
    pieces = [Piece(1, beginning, schedule)]
    if beginning < ends[-1]:
        pieces += smooth_pieces(schedule, beginning + 1, ends[-1])
    sums: list[float] = []
    parts: list[float] = []
    missing = 0.0
    for piece in (part for whole in pieces for part in _cut_after(whole, ends)):
        total, neglected = _piece_sum(piece)
        parts.append(total)
        missing += neglected
        if piece.last == ends[len(sums)]:
            if missing > _TOLERANCE * math.fsum(map(abs, parts)):
                raise QuadratureError("the terms of higher order are not negligible")
            sums.append(math.fsum(parts))
    return sums


def _cut_after(piece: Piece, ends: Sequence[int]) -> Iterator[Piece]:
    first = piece.first
    for last in (*(end for end in ends if piece.first <= end < piece.last), piece.last):
        yield Piece(first, last, piece.expression)
        first = last + 1


def _piece_sum(piece: Piece) -> tuple[float, float]:
    """Return the sum over one smooth piece, and the size of the first neglected term of the formula.

    A smooth piece may still have a step in it, as 1/(1 + exp(t - K)) has: it is taken out and added directly.
    """
    try:
        return _smooth_piece_sum(piece)
    except NarrowPanelError as step:
        first = max(piece.first, int(step.lower) - _EDGE)
        last = min(piece.last, int(step.upper) + _EDGE)
    parts = [(direct_sum(piece.expression, first, last), 0.0)]
    if piece.first < first:
        parts.append(_piece_sum(Piece(piece.first, first - 1, piece.expression)))
    if last < piece.last:
        parts.append(_piece_sum(Piece(last + 1, piece.last, piece.expression)))
    sums, neglected = zip(*parts, strict=True)
    return math.fsum(sums), math.fsum(neglected)


def _smooth_piece_sum(piece: Piece) -> tuple[float, float]:
    u, first, last = piece.expression, piece.first, piece.last
    if last - first < 4 * _EDGE:
        return direct_sum(u, first, last), 0.0
    smaller, neglected = _at_ends(u, first - 0.5, last + 0.5)
    if neglected <= _NEGLIGIBLE * (last - first) * smaller:
        return _midpoint_sum(u, first - 0.5, last + 0.5), neglected
    # A piece may begin or end with a singularity nearby (a decay that restarts, a cosine's end).
    edges = direct_sum(u, first, first + _EDGE - 1), direct_sum(u, last - _EDGE + 1, last)
    lower, upper = first + _EDGE - 0.5, last - _EDGE + 0.5
    if math.inf in u.at(upper + _OFFSETS):
        return math.inf, 0.0
    neglected = _at_ends(u, lower, upper)[1]
    if not math.isfinite(neglected):
        raise QuadratureError("the schedule is not finite")
    return math.fsum([*edges, _midpoint_sum(u, lower, upper)]), neglected


def _midpoint_sum(u: Schedule, lower: float, upper: float) -> float:
    whole = integral(u.at, lower, upper, narrowest=_NARROWEST)
    return whole - float(end_correction(u.at, lower, upper))


def _at_ends(u: Schedule, lower: float, upper: float) -> tuple[float, float]:
    """The smaller abs(u) of the two ends, and the first term of the formula that is left out.

    That is 7/5760 of the third derivatives, by differences over half a step; not finite where u is not.
    """
    around = u.at(np.array([[lower], [upper]]) + _OFFSETS)
    with np.errstate(all="ignore"):  # the difference of two infinities
        thirds = np.abs(around[:, 3] - 3 * around[:, 2] + 3 * around[:, 1] - around[:, 0])
    return float(np.abs(around[:, 1]).min()), 7 / 5760 * float(thirds.sum()) / 0.125


@dataclass(frozen=True)
class Piece:
    """On t = first..last the schedule is `expression`, which has no kink there."""

    first: int
    last: int
    expression: Schedule


def is_piecewise_smooth(schedule: Schedule) -> bool:
    """Whether `smooth_pieces` can take the schedule apart: it holds no callable and does not oscillate."""
    if isinstance(schedule, tree.Function) and schedule.name in _OSCILLATING:
        return False
    if isinstance(schedule, tree.WeightedTheta | tree.WeightShare):
        return SmoothShare.serves(schedule.weights)
    if isinstance(schedule, tree.BiasCorrection):
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
    if isinstance(node, tree.WeightShare):
        return SmoothShare(node.weights, node.initial)
    if isinstance(node, tree.WeightedTheta):
        return tree.Subtract(tree.operand(1), SmoothShare(node.weights, node.initial))
    return tree.rebuild(node, _with_smooth_shares)


def _cuts(node: Schedule, first: int, last: int) -> set[int]:
    """Every step of first..last from which on the node is another expression than before."""
    if first >= last:
        return set()
    if isinstance(node, tree.Join):
        cuts = {node.threshold} if first < node.threshold <= last else set[int]()
        early = _cuts(node.before, first, min(last, node.threshold - 1))
        return cuts | early | _cuts(node.after, max(first, node.threshold), last)
    cuts = {cut for child in node.children for cut in _cuts(child, first, last)}
    if isinstance(node, tree.Maximum | tree.Minimum):
        left, right = node.left, node.right
    elif isinstance(node, tree.Function) and node.name == "abs":
        left, right = node.argument, tree.operand(0)
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
    if last - first <= _SHORT_PIECE:
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
    return facts.elasticity is not None and facts.elasticity.size <= _STEEPEST


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
        if stop - start <= _SHORT_PIECE:
            yield start, stop, False
        elif proof(start, stop):
            yield start, stop, True
        else:
            middle = math.isqrt(start * stop)
            pending += [(start, middle), (middle, stop)]
    raise QuadratureError("the form does not show how the schedule bends")


def _resolved(node: Schedule, first: int, last: int) -> Schedule:
    """The expression that the node is on first..last, between two kinks."""
    middle = np.array([float((first + last) // 2)])

    def ahead(left: Schedule, right: Schedule) -> int:
        one, other = (_with_smooth_shares(side).at(middle)[0] for side in (left, right))
        return 1 if one > other else -1

    return resolved(node, first, last, ahead)


class BelowThetaPrime:
    r"""The logarithm of :math:`C_1` for any :math:`\theta'`, for a non-decreasing :math:`\theta_t` on 1..T.

    As :math:`\theta_t` does not fall, the :math:`\theta_j < \theta'` are the first N; N is found by bisection
    and :math:`\log C_1 = \sum_{j\le N}\log\theta_j - N\log\theta'` by summation.

    Args:
      theta: :math:`\theta_t`.
      steps: T.
    """

    def __init__(self, theta: Schedule, steps: int) -> None:
        self._complement = 1 - theta
        self._steps = steps

    @cached_property
    def _logarithm(self) -> Schedule:
        # From 1 - theta_t: near theta_t = 1 the logarithm of a rounded theta_t has no digits left.
        return tree.Function("log1p", -self._complement)

    def count(self, theta_prime: float) -> int:
        """Return N, how many theta_j with j <= T are smaller than theta_prime."""
        missing = 1 - theta_prime

        def reached(t: int) -> bool:
            return late_value(self._complement, t) <= missing

        # N is nearly always small, and a late theta_t may be costly: double first, then halve.
        last = 1
        while last < self._steps and not reached(last):
            last = min(2 * last, self._steps)
        return bisect.bisect_left(range(1, last + 1), True, key=reached)

    def logarithm_and_count(self, theta_prime: float) -> tuple[float, int]:
        """Return log C1 and N."""
        below = self.count(theta_prime)
        if below == 0:
            return 0.0, 0
        # Rounding at theta_N = theta_prime could leave a product a hair above 1.
        return min(0.0, partial_sum(self._logarithm, below) - below * math.log(theta_prime)), below
