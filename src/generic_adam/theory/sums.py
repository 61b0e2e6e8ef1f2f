r"""Partial sums :math:`\sum_{t\le T} u_t` and the ratio of condition 4, for any T.

Up to 10^5 terms are added one by one, in blocks. Longer sums of smooth schedules go through the midpoint form
of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots,

piece by piece between kinks, with the first and last thousand terms of each piece added directly, so that the
terms left out are below 1e-9 of the sum. Callables and oscillating tails are always added term by term.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import Schedule, sqrt
from generic_adam.theory.pieces import Piece, is_piecewise_smooth, late_value, smooth_pieces
from generic_adam.theory.quadrature import QuadratureError, integral

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
    total = checked_horizon(steps)
    constant = schedule.constant_value
    if constant is not None:
        return total * constant
    if total <= _SHORT:
        return direct_sum(schedule, 1, total)
    if is_piecewise_smooth(schedule):
        try:
            return smooth_sum(schedule, 1, total)
        except QuadratureError:
            pass  # smooth in form, but on this range rounding noise or a wild exponent spoils the integral
    if total > DIRECT_LIMIT:
        raise SumError(
            f"the sum of {schedule} to T = {total:.3g} must be added term by term, which stops at T = 1e8"
        )
    return direct_sum(schedule, 1, total)


def ratio(method: Method, steps: int) -> float:
    r"""Return :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}\,/\,(T\alpha_T)`; condition 4: it tends to 0."""
    total = checked_horizon(steps)
    last = late_value(method.alpha, total)
    if not last > 0:
        raise SumError(f"alpha_T is {last} at T = {total}, expected a positive number")
    return partial_sum(weighted_steps(method), total) / (total * last)


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


def smooth_sum(schedule: Schedule, first: int, last: int) -> float:
    """Add u_t over t = first..last by Euler and Maclaurin's formula; see the module.

    Raises:
      QuadratureError: the schedule is not smooth on the range, or the terms left out are not negligible.
    """
    head = min(last, first + _EDGE - 1)
    parts = [direct_sum(schedule, first, head)]
    missing = 0.0
    for piece in smooth_pieces(schedule, head + 1, last) if head < last else []:
        total, neglected = _piece_sum(piece)
        parts.append(total)
        missing += neglected
    result = math.fsum(parts)
    if missing > _TOLERANCE * math.fsum(map(abs, parts)):
        raise QuadratureError("the terms of higher order are not negligible")
    return result


def _piece_sum(piece: Piece) -> tuple[float, float]:
    """Return the sum over one smooth piece, and the size of the first neglected term of the formula."""
    u, first, last = piece.expression, piece.first, piece.last
    if last - first < 4 * _EDGE:
        return direct_sum(u, first, last), 0.0
    # A piece may begin or end with a singularity nearby (a decay that restarts, a cosine's end).
    edges = direct_sum(u, first, first + _EDGE - 1), direct_sum(u, last - _EDGE + 1, last)
    lower, upper = first + _EDGE - 0.5, last - _EDGE + 0.5
    offsets = np.array([-0.75, -0.25, 0.25, 0.75])
    at_lower, at_upper = u.at(lower + offsets), u.at(upper + offsets)
    if math.inf in at_upper:
        return math.inf, 0.0
    if not np.isfinite([at_lower, at_upper]).all():
        raise QuadratureError("the schedule is not finite")
    slope = (at_upper[2] - at_upper[1] - at_lower[2] + at_lower[1]) / 0.5
    third = sum(abs(float(x[3] - 3 * x[2] + 3 * x[1] - x[0])) / 0.125 for x in (at_lower, at_upper))
    middle = integral(u.at, lower, upper) - slope / 24
    return math.fsum([*edges, float(middle)]), 7 / 5760 * third
