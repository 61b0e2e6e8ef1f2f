r"""Partial sums :math:`\sum_{t\le T} u_t` for any T, and integrals over many orders of magnitude.

Up to 10^5 terms are added one by one, in blocks. Longer sums of smooth schedules are an integral and a
correction at its ends, by the midpoint form of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots

piece by piece. With :math:`t = e^u` powers, logarithms and iterated logarithms are analytic and vary by a
bounded factor over each panel, so that a few Gauss-Legendre panels reach the rounding error for any upper
limit. A join, a maximum, a minimum and an absolute value change their expression at a whole t that can be
found; between such t the schedule is analytic. Samples alone could miss a narrow bump, so each piece is proved
by its form to be monotone or to vary slowly, after it was halved as often as that takes; short stretches that
resist are added term by term. Where an end of a piece is close to a singularity, the first and last thousand
terms are added directly, so that the terms left out are below 1e-9 of the sum. Callables and oscillating tails
are always added term by term.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from generic_adam.errors import ScheduleError, shown
from generic_adam.schedules import tree
from generic_adam.schedules.enclosure import enclose, resolved, stretches
from generic_adam.schedules.tree import FloatArray, Schedule, cached_attribute

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
_PANEL_WIDTH = 2.0
_NODES = 16
_DEEPEST = 48
_MOST_PANELS = 20_000
# From this t on a running sum is an integral with an end correction.
FIRST_SMOOTH = 1024
_SHARE_PANEL_WIDTH = 0.25

Integrand = Callable[[FloatArray], FloatArray]


class SumError(ScheduleError):
    """A sum that cannot be computed as asked; the message is one line."""


class QuadratureError(ArithmeticError):
    """The integrand is not smooth enough for the wanted accuracy, or not finite."""


class NarrowPanelError(QuadratureError):
    """The integrand moves within a few steps of [lower, upper]: an integral is no sum there."""

    def __init__(self, lower: float, upper: float) -> None:
        super().__init__(f"the integrand bends within a few steps near t = {lower:.6g}")
        self.lower = lower
        self.upper = upper


@cache
def gauss_legendre(nodes: int) -> tuple[FloatArray, FloatArray]:
    """The nodes and the weights of the rule on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


def panel_integrals(integrand: Integrand, lower: FloatArray, upper: FloatArray, nodes: int = _NODES) -> FloatArray:
    """Integrate over each panel from e^lower to e^upper with one Gauss-Legendre rule."""
    points, weights = gauss_legendre(nodes)
    half = (upper - lower) / 2
    times = np.exp((upper + lower)[:, None] / 2 + half[:, None] * points)
    with np.errstate(over="ignore", invalid="ignore"):
        return half * ((integrand(times.ravel()).reshape(times.shape) * times) @ weights)


def integral(
    integrand: Integrand, lower: float, upper: float, tolerance: float = 1e-12, narrowest: float = 0.0
) -> float:
    """Integrate over [lower, upper], 0 < lower <= upper, halving every panel on which two rules disagree.

    Raises:
      NarrowPanelError: panels had to be made narrower than `narrowest`; where the first of them are.
      QuadratureError: the integrand is not finite, or panels had to be halved without end.
    """
    if upper <= lower:
        return 0.0
    start, stop = float(np.log(lower)), float(np.log(upper))
    edges: FloatArray = np.linspace(start, stop, max(2, int(np.ceil((stop - start) / _PANEL_WIDTH)) + 1))
    left, right = edges[:-1], edges[1:]
    whole = panel_integrals(integrand, left, right)
    settled: list[float] = []
    for _ in range(_DEEPEST):
        middle = (left + right) / 2
        halves = panel_integrals(integrand, np.append(left, middle), np.append(middle, right))
        first, second = np.split(halves, 2)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise QuadratureError("the integrand is not finite")
        size = np.abs(first).sum() + np.abs(second).sum() + sum(map(abs, settled))
        done = np.abs(first + second - whole) <= tolerance * size / len(edges)
        narrow = np.flatnonzero(~done & (np.exp(right) - np.exp(left) < narrowest))
        if narrow.size:
            raise NarrowPanelError(float(np.exp(left[narrow].min())), float(np.exp(right[narrow].min())))
        settled.append(float((first + second)[done].sum()))
        if done.all():
            return float(np.sum(settled))
        todo = ~done
        left, right = np.append(left[todo], middle[todo]), np.append(middle[todo], right[todo])
        whole = np.append(first[todo], second[todo])
        if len(left) > _MOST_PANELS:
            break
    raise QuadratureError("the integrand is not smooth")


def end_correction(u: Callable[[Any], Any], lower: Any, upper: Any) -> Any:
    """What an integral of u from lower to upper is more than the sum: [u'] / 24.

    The derivatives are central differences over half a step: exact to about 1e-16 of the value.
    """
    slopes = [(u(end + 0.25) - u(end - 0.25)) / 0.5 for end in (lower, upper)]
    return (slopes[1] - slopes[0]) / 24


@final
@dataclass(frozen=True, repr=False)
class SmoothShare(Schedule):
    r"""w_t / W_t for real t, for integrals over long ranges: W_t is W_1024 and the formula from there on.

    On whole t it agrees with the recursion to about 1e-13; it serves only weights of one smooth expression
    that grow or fall no faster than a power.
    """

    weights: Schedule
    initial: Fraction
    pointwise = False

    @staticmethod
    def serves(weights: Schedule) -> bool:
        """Whether weights are smooth (no kinks, no callables) and not geometric."""
        growth = weights.growth
        kinks = any(_sides(node) or _swings(node) or isinstance(node, tree.Join) for node in tree.walk(weights))
        smooth = weights.accepts_real_times and not kinks
        return smooth and growth is not None and growth.sign > 0 and growth.rho.sign_of_log == 0

    @cached_attribute
    def beginning(self) -> float:
        """W_n."""
        return math.fsum([float(self.initial), *self.weights.values(1, FIRST_SMOOTH + 1).tolist()])

    def continued(self, times: FloatArray) -> FloatArray:
        """The share at real t >= 1024."""
        # Narrower panels for steep weights: t^p moves by e^{p width} over a panel.
        growth = self.weights.growth
        width = _SHARE_PANEL_WIDTH / max(1.0, 0.0 if growth is None else abs(float(growth.power)) / 8)
        flat = np.asarray(times, dtype=np.float64).ravel()
        order = np.argsort(flat)
        ends = np.log(flat[order] + 0.5)
        start = math.log(FIRST_SMOOTH + 0.5)
        panels = np.arange(start, max(start, float(ends[-1])), width)
        edges = np.union1d(np.append(panels, start), ends[ends > start])
        pieces = panel_integrals(self.weights.at, edges[:-1], edges[1:], nodes=6)
        running = np.concatenate([[0.0], np.cumsum(pieces)])[np.searchsorted(edges, np.maximum(ends, start))]
        correction = end_correction(self.weights.at, FIRST_SMOOTH + 0.5, np.exp(ends))
        shares = np.empty_like(flat)
        shares[order] = self.weights.at(flat[order]) / (self.beginning + running - correction)
        return shares.reshape(np.shape(times))


tree.compiled[SmoothShare] = lambda node: lambda t: float(node.continued(np.array([float(t)]))[0])
tree.block_of[SmoothShare] = lambda node, times: node.continued(times)
tree.order_of[SmoothShare] = lambda node: tree.WeightShare(node.weights, node.initial).growth
tree.text_of[SmoothShare] = lambda node: (f"smooth share of {node.weights}", 5)


def _sides(node: Schedule) -> tuple[Schedule, Schedule] | None:
    """The two of which a maximum, a minimum or an absolute value is one or the other."""
    match node:
        case tree.Maximum(left, right) | tree.Minimum(left, right):
            return left, right
        case tree.Function("abs", argument):
            return argument, tree.operand(0)
        case _:
            return None


def _swings(node: Schedule) -> bool:
    return isinstance(node, tree.Function) and node.name in {"sin", "cos"}


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
    cuts = {end + 1 for end in ends}
    for piece in (
        Piece(*part, whole.expression) for whole in pieces for part in stretches(whole.first, whole.last, cuts)
    ):
        total, neglected = _piece_sum(piece)
        parts.append(total)
        missing += neglected
        if piece.last == ends[len(sums)]:
            if missing > _TOLERANCE * math.fsum(map(abs, parts)):
                raise QuadratureError("the terms of higher order are not negligible")
            sums.append(math.fsum(parts))
    return sums


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


class Piece(NamedTuple):
    """On t = first..last the schedule is `expression`, which has no kink there."""

    first: int
    last: int
    expression: Schedule


def is_piecewise_smooth(schedule: Schedule) -> bool:
    """Whether `smooth_pieces` can take the schedule apart: it holds no callable and does not oscillate."""
    match schedule:
        case tree.WeightedTheta() | tree.WeightShare():
            return SmoothShare.serves(schedule.weights)
        case tree.BiasCorrection():
            return schedule.accepts_real_times
        case tree.Opaque() | tree.Periodic() | tree.Bounded():
            return False
        case _:
            return not _swings(schedule) and all(map(is_piecewise_smooth, schedule.children))


def smooth_pieces(schedule: Schedule, first: int, last: int) -> list[Piece]:
    """Cut the steps first..last at every kink of the schedule, and around short stretches that may bend fast.

    Raises:
      QuadratureError: the form of the schedule does not show where its kinks are, or that it bends slowly.
    """
    pieces: list[Piece] = []
    for start, stop in stretches(first, last, _cuts(schedule, first, last)):
        expression = _resolved(schedule, start, stop)
        smooth = _with_smooth_shares(expression)
        fast: set[int] = set()
        if stop - start > _SHORT_PIECE:
            for a, b, proved in _proved_stretches(partial(_bends_slowly, expression), start, stop):
                fast.update(() if proved else (a, b + 1))
        pieces += [Piece(a, b, smooth) for a, b in stretches(start, stop, fast)]
    return pieces


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
    sides = _sides(node)
    if sides is not None:
        for start, stop in stretches(first, last, cuts):
            left, right = (_resolved(side, start, stop) for side in sides)
            cuts = cuts | _crossings(left, right, start, stop)
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
    for start, stop, proved in _proved_stretches(partial(_compare_monotonically, left, right), first, last):
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


def _bends_slowly(expression: Schedule, first: int, last: int) -> bool:
    """Whether it is proved monotone, or that t u'/u stays within bounds: neither leaves room for a bump."""
    facts = enclose(expression, first, _horizon_of_proof(expression, last=last))
    if facts.direction is not None:
        return True
    return facts.elasticity is not None and facts.elasticity.size <= _STEEPEST


def _horizon_of_proof(*expressions: Schedule, last: int) -> float:
    """Up to `last`, or for ever where a running sum would have to be run to `last` for its value there."""
    return float(last) if all(one.accepts_real_times for one in expressions) else math.inf


def _proved_stretches(proof: Callable[[int, int], bool], first: int, last: int) -> Iterator[tuple[int, int, bool]]:
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
    """

    def __init__(self, theta: Schedule, steps: int) -> None:
        self._complement, self._steps = 1 - theta, steps
        # Near 1 the logarithm of a rounded theta_t has no digits left, near 0 that of a rounded complement.
        logarithm, small = tree.Function("log", theta), self.count(0.5)
        if small < steps:
            after = tree.Function("log1p", -self._complement)
            logarithm = tree.Join(small + 1, logarithm, after) if small else after
        self._logarithm = logarithm

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
