r"""Partial sums :math:`\sum_{t\le T} u_t` and the ratio of condition 4, for any T.

Up to 10^5 terms are added one by one, in blocks. Longer sums of smooth schedules go through the midpoint form
of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots,

piece by piece between kinks. Where an end of a piece is close to a singularity, the first and last thousand
terms are added directly, so that the terms left out are below 1e-9 of the sum. Callables and oscillating
tails are always added term by term.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import FloatArray, Schedule, ScheduleError, sqrt
from generic_adam.theorems.pieces import Piece, is_piecewise_smooth, late_value, smooth_pieces
from generic_adam.theorems.quadrature import NarrowPanelError, QuadratureError, integral

if TYPE_CHECKING:
    from generic_adam.methods import Method

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


class SumError(ValueError):
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


def ratio(method: Method, steps: int) -> float:
    r"""Return :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}\,/\,(T\alpha_T)`; condition 4: it tends to 0.

    Raises:
      SumError: alpha_T is not positive, or the sum cannot be computed.
    """
    total = checked_horizon(steps)
    last = _positive_step(method, total)
    return partial_sum(weighted_steps(method), total) / (total * last)


def ratios(method: Method, horizons: Iterable[int]) -> Iterator[tuple[int, float]]:
    """The ratio of condition 4 at several T, from the smallest up, left out where it cannot be computed."""
    ends = sorted(set(horizons))
    with suppress(SumError, ScheduleError):
        for end, total in zip(ends, partial_sums(weighted_steps(method), ends), strict=True):
            with suppress(SumError, ScheduleError):
                yield end, total / (end * _positive_step(method, end))


def _positive_step(method: Method, steps: int) -> float:
    last = late_value(method.alpha, steps)
    if not last > 0:
        raise SumError(f"alpha_T is {last} at T = {steps}, expected a positive number")
    return last


def weighted_steps(method: Method) -> Schedule:
    r"""Return the schedule :math:`\alpha_t\sqrt{1-\theta_t}`."""
    return method.alpha * sqrt(1 - method.theta)


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
    ends = _Ends.of(u, first - 0.5, last + 0.5)
    if ends.neglected <= _NEGLIGIBLE * (last - first) * ends.smaller:
        return ends.midpoint_sum(u), ends.neglected
    # A piece may begin or end with a singularity nearby (a decay that restarts, a cosine's end).
    edges = direct_sum(u, first, first + _EDGE - 1), direct_sum(u, last - _EDGE + 1, last)
    ends = _Ends.of(u, first + _EDGE - 0.5, last - _EDGE + 0.5)
    if math.inf in ends.at_upper:
        return math.inf, 0.0
    if not math.isfinite(ends.neglected):
        raise QuadratureError("the schedule is not finite")
    return math.fsum([*edges, ends.midpoint_sum(u)]), ends.neglected


@dataclass(frozen=True)
class _Ends:
    """u around the two limits of the integral of Euler and Maclaurin's formula.

    Attributes:
      lower: the lower limit.
      upper: the upper limit.
      at_lower: u at distances -3/4, -1/4, 1/4 and 3/4 from the lower limit.
      at_upper: the same around the upper limit.
    """

    lower: float
    upper: float
    at_lower: FloatArray
    at_upper: FloatArray

    @classmethod
    def of(cls, u: Schedule, lower: float, upper: float) -> _Ends:
        around = u.at(np.concatenate([lower + _OFFSETS, upper + _OFFSETS]))
        return cls(lower, upper, around[:4], around[4:])

    @property
    def smaller(self) -> float:
        """The smaller abs(u) of the two ends."""
        return float(min(abs(self.at_lower[1]), abs(self.at_upper[1])))

    @property
    def neglected(self) -> float:
        """The first term left out, 7/5760 of the third derivatives; not finite where u is not."""
        with np.errstate(all="ignore"):  # the difference of two infinities
            thirds = np.abs([x[3] - 3 * x[2] + 3 * x[1] - x[0] for x in (self.at_lower, self.at_upper)])
            return 7 / 5760 * float(thirds.sum()) / 0.125

    def midpoint_sum(self, u: Schedule) -> float:
        """The integral and the slopes at its limits."""
        slopes = (self.at_upper[2] - self.at_upper[1] - self.at_lower[2] + self.at_lower[1]) / 0.5
        return integral(u.at, self.lower, self.upper, narrowest=_NARROWEST) - float(slopes) / 24
