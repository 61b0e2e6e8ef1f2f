r"""One pass over the steps for every theorem with weights: from sequences to the sums in its bound.

Each of those theorems has the same skeleton (Theorem W's proof, steps (a) to (e)). A direction :math:`u_t`
inherits a part of the one before it, :math:`u_t \approx r_t u_{t-1} - f_t\,g_t/D_t`; unrolled, weighted and
summed this leaves two kinds of terms, the noise :math:`B_i` and the drift :math:`A_i`, each times
:math:`\omega_i = q_i g_i^2/D_i^2`, whose sums a logarithm bounds:

.. math::

    R_t &= r_t R_{t-1} + f_t, \qquad M_t = \rho_t^2 M_{t-1} + (1-\beta_t)^2/q_t, \qquad
    Q_i = w_i + r_{i+1} Q_{i+1} \\
    H_i &= R_i (L\,U_i + Q_{i+1}\,y_{i+1}) + r_{i+1} H_{i+1}, \qquad A_i = (p_i H_i + L\,V_i)/q_i \\
    B_i &= (Q_i\,c_i + c'_i)/s + Q_i\,d_i \sqrt{M_{i-1}}, \qquad
    \Psi = \text{gap} + \sum_{k,t} (\hat A_{t,k} + G_k \hat B_t)(S_{t,k} - S_{t-1,k}).

A theorem says what r, f, w, U, V, p, c, d, y are (`Terms`); this module does the rest, in blocks, so that the
memory stays flat. The noise depends on s alone and the drift on zeta alone, nearly as a/s + b and a/zeta + b
(exactly but for the majorant of a sum), from which `weighted.least_ratio` finds the best of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import (
    BLOCK,
    Array,
    Block,
    Recursion,
    Sequences,
    log_growth,
    majorant,
    minus_log,
)

KEPT = 1 << 20
"""The number of steps up to which the blocks are kept for a second look."""

# Every term is >= 0: one that a double cannot hold, 1/q_t where 1 - theta_t underflows, makes the sum infinite.
_beyond_doubles = np.errstate(divide="ignore", over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False)
class Terms:
    r"""What a theorem puts into the recursions at the steps of a block; None is zero throughout.

    Args:
      keep: r, the share of the direction that the next one inherits.
      gain: f, the weight of the new gradient in R.
      own: w, the weight of a step's own direction in Q.
      spread: p of :math:`A_i = (p_i H_i + L V_i)/q_i`.
      rest_u: the coefficient of :math:`Q - w` in U.
      own_u: the rest of U.
      rest_g: the coefficient of :math:`Q - w` in V.
      own_g: the rest of V.
      first: c, the noise of the new gradient.
      first_own: c'.
      second: d, the noise of the inherited direction; it multiplies :math:`\sqrt{M_{i-1}}`.
      share_e: the part of :math:`\zeta y_t` that is free of G.
      share_g: the part of :math:`\zeta y_t` that G multiplies.
      weight: what multiplies Q in the weight :math:`\pi_i`.
      weight_own: the part of :math:`\pi_i` that zeta does not reduce.
      squares: :math:`(\rho_t^2, (1-\beta_t)^2/q_t)` of M.
      tally: further sums over the steps, as a function of (R, Q); they are added up over the blocks.
    """

    keep: Array
    gain: Array
    own: Array
    spread: Array
    rest_u: Array
    own_u: Array
    weight: Array
    rest_g: Array | None = None
    own_g: Array | None = None
    first: Array | None = None
    first_own: Array | None = None
    second: Array | None = None
    share_e: Array | None = None
    share_g: Array | None = None
    weight_own: Array | None = None
    squares: tuple[Array, Array] | None = None
    tally: Callable[[Array, Array], Sequence[Array]] | None = None


Form = Callable[[Block, Array], Terms]
"""A theorem's terms at a block, given also :math:`e_{t-1}` (:math:`e_0 := e_1`)."""


@dataclass(frozen=True, eq=False)
class Piece:
    """The noise and the drift of a block, before they are majorised: unit G, unit L, unit 1/s and 1/zeta."""

    length: int
    first: Array | None
    second: Array | None
    drift: Array
    share_e: Array | None
    share_g: Array | None
    decrease: Array
    q: Array
    lambda_before: float
    starts: bool
    increments: dict[float, Array] = field(default_factory=dict[float, Array])

    def shares(self, gradient: float) -> Array | None:
        r"""What :math:`1/\zeta` multiplies in A, for one :math:`G_k`."""
        return _added(self.share_e, None if self.share_g is None else gradient * self.share_g)


@dataclass(frozen=True)
class Part:
    r"""Coordinates with the same constants.

    Args:
      count: how many there are.
      gradient: :math:`G_k`, which bounds :math:`|\nabla_k f|` and the root of :math:`\mathbb{E}_t g_{t,k}^2`.
      noise: what stands for :math:`G_k` beside the new gradient's noise: the smaller of :math:`G_k` and the
        standard deviation.
      second_moment: the mean over the coordinates of :math:`\mathbb{E}_t g_{t,k}^2`, in the logarithm.
      scale: :math:`\kappa_k`, the factor of these coordinates' learning rate.
    """

    count: float
    gradient: float
    noise: float
    second_moment: float
    scale: float = 1.0


class Sweep:
    """The pass: forwards once for R and M at the blocks' ends, then backwards for everything else.

    Args:
      sequences: the steps 1..T.
      form: the theorem's terms.
      power: p of D = v^p + e; 1/2 but for Padam.
    """

    def __init__(self, sequences: Sequences, form: Form, power: float = 0.5) -> None:
        self._sequences = sequences
        self._form = form
        self._power = power
        edges = range(1, sequences.steps + 1, BLOCK)
        self._bounds = [(start, min(start + BLOCK, sequences.steps + 1)) for start in edges]
        self._kept: list[Piece] | None = None
        self.weight = self.weight_own = self.largest_Q = 0.0
        self.tally: Array = np.zeros(1)
        self._go_forwards()

    @property
    def steps(self) -> int:
        """T."""
        return self._sequences.steps

    def beginning(self) -> Sweep:
        """The same over the steps that would be kept: what the shares of a long run are guessed from."""
        return Sweep(replace(self._sequences, steps=min(self.steps, KEPT)), self._form, self._power)

    @property
    def initial_v(self) -> float:
        """v_0."""
        return self._sequences.initial_v

    @_beyond_doubles
    def _go_forwards(self) -> None:
        growth = squares = decreased = 0.0  # R, M and lambda
        last_eps: float | None = None
        self._carries: list[tuple[float, float, float, float]] = []
        self.first_theta = self.first_eps = self.largest_eps = 0.0
        self.smallest_eps = np.inf
        self.has_momentum = self.has_gradient_weight = self._eps_falls = False
        for start, stop in self._bounds:
            block = self._sequences.block(start, stop)
            _check_range(block)
            if last_eps is None:
                last_eps = float(block.eps[0])
                self.first_eps, self.first_theta = last_eps, float(block.theta[0])
            self._carries.append((growth, squares, decreased, last_eps))
            before = _shifted(block.eps, last_eps, stop - start)
            if len(before) > 1:
                self._eps_falls |= bool((block.eps < np.sqrt(block.theta) * before * (1 - 1e-12)).any())
            terms, *states = self._states(block, start, stop)
            growth, squares = (float(state[-1]) for state in states)
            self.has_momentum |= bool(terms.keep.any())
            self.has_gradient_weight |= bool(block.gradient_weight.any())
            decrease = minus_log(block.theta, block.q) if start > 1 else _from_second(block)
            decreased += float(decrease.sum()) * ((stop - start) / len(decrease))
            last_eps = float(block.eps[-1])
            self.largest_eps = max(self.largest_eps, float(block.eps.max()))
            self.smallest_eps = min(self.smallest_eps, float(block.eps.min()))
        if self.first_theta == 0 and self.smallest_eps <= 0:
            raise TheoremError("theta_1 = 0 wipes v_0 out and nothing is added: a step may divide by 0")

    def _states(self, block: Block, start: int, stop: int) -> tuple[Terms, Array, Array]:
        """Return the terms, R and M of a block."""
        R, M, _, last_eps = self._carries[(start - 1) // BLOCK]
        length = stop - start
        terms = self._form(block, _shifted(block.eps, last_eps, length))
        growth = Recursion(terms.keep, length)(terms.gain, R)
        if terms.squares is None:
            return terms, growth, np.zeros(1)
        return terms, growth, Recursion(terms.squares[0], length)(terms.squares[1], M)

    def pieces(self) -> Iterator[Piece]:
        """Yield the blocks from the last to the first; short sequences are computed once and kept."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Piece] = []
        for piece in self._go_backwards():
            if self._sequences.steps <= KEPT:
                kept.append(piece)
            yield piece
        self._kept = kept or None

    def _go_backwards(self) -> Iterator[Piece]:
        # Of the step after the block: r, Q, H for each kind of term, y for each kind.
        keep, Q_after, H_after = 0.0, 0.0, np.zeros(3)
        shares_after = np.zeros(2)
        self.weight = self.weight_own = self.largest_Q = 0.0
        self.tally = np.zeros(1)
        for index in reversed(range(len(self._bounds))):
            start, stop = self._bounds[index]
            length = stop - start
            block = self._sequences.block(start, stop)
            terms, R, M = self._states(block, start, stop)
            back = Recursion(_advanced(terms.keep, keep, length), length, backwards=True)
            Q = back(terms.own, Q_after)
            self._add_weights(terms, R, Q, length)
            rest = Q - terms.own
            steps = back(R * (terms.rest_u * rest + terms.own_u), float(H_after[0]))
            later_Q = _advanced(Q, Q_after, length)
            shares: list[Array | None] = []
            for kind, share in enumerate((terms.share_e, terms.share_g)):
                if share is None:
                    shares.append(None)
                    continue
                later = _advanced(share, float(shares_after[kind]), length)
                summed = back(R * later_Q * later, float(H_after[kind + 1]))
                shares.append(terms.spread * summed / block.q)
                shares_after[kind], H_after[kind + 1] = share[0], summed[0]
            drift = terms.spread * steps
            if terms.rest_g is not None and terms.own_g is not None:
                drift = drift + terms.rest_g * rest + terms.own_g
            before = _shifted(M, self._carries[index][1], length)
            yield Piece(
                length=length,
                first=_added(None if terms.first is None else Q * terms.first, terms.first_own),
                second=None if terms.second is None else Q * terms.second * np.sqrt(before),
                drift=drift / block.q,
                share_e=shares[0],
                share_g=shares[1],
                decrease=minus_log(block.theta, block.q) if start > 1 else _from_second(block),
                q=block.q,
                lambda_before=self._carries[index][2],
                starts=start == 1,
            )
            keep, Q_after, H_after[0] = float(terms.keep[0]), float(Q[0]), steps[0]

    def _add_weights(self, terms: Terms, R: Array, Q: Array, length: int) -> None:
        self.weight += total(terms.weight * Q, length)
        if terms.weight_own is not None:
            self.weight_own += total(terms.weight_own, length)
        self.largest_Q = max(self.largest_Q, float(Q.max()))
        if terms.tally is not None:
            self.tally = self.tally + np.array([total(values, length) for values in terms.tally(R, Q)])

    def ratio(self, part: Part) -> float:
        r"""Return r of :math:`S_t = \log(1 + r (W_t - 1))`: what the second moment may grow by."""
        eps = self.smallest_eps if self._eps_falls else self.first_eps
        start = eps ** (1 / self._power) / (self.first_theta or 1.0)
        return part.second_moment / (self._sequences.initial_v + start)

    def increments(self, piece: Piece, ratio: float) -> Array:
        r"""Return :math:`S_t - S_{t-1}`; if :math:`\theta_1 = 0`, :math:`S_1 = 1` and W starts at t = 2."""
        known = piece.increments.get(ratio)
        if known is not None:
            return known
        if piece.starts and self.first_theta == 0:
            later = np.where(piece.decrease > 0, piece.q, 0.0)
            growth = log_growth(piece.decrease, later, ratio, 0.0, piece.length)
            growth[0] = 1.0
        else:
            growth = log_growth(piece.decrease, piece.q, ratio, piece.lambda_before, piece.length)
        piece.increments[ratio] = growth
        return growth

    @_beyond_doubles
    def sums(self, parts: Sequence[Part], *series: Series) -> list[float]:
        r"""Return :math:`\sum_{k,t} \hat c_{t,k} (S_{t,k} - S_{t-1,k})` for each series c."""
        groups = [_grouped(parts, one) for one in series]
        after = [dict.fromkeys(group, 0.0) for group in groups]
        totals = [0.0] * len(series)
        for piece in self.pieces():
            for index, one in enumerate(series):
                for key, members in groups[index].items():
                    values = one.values(piece, key)
                    if values is None:
                        continue
                    hat = majorant(values, after[index][key])
                    after[index][key] = float(hat[0])
                    for part in members:
                        change = self.increments(piece, self.ratio(part))
                        totals[index] += part.count * one.factor(part) * _dot(hat, change, piece.length)
        return [math.inf if math.isnan(found) else found for found in totals]


@dataclass(frozen=True)
class Series:
    """A coefficient of omega, which is majorised and summed.

    Args:
      values: the coefficient at the steps of a piece, up to a factor, as a function of the piece and the key.
      factor: that factor, as a function of the coordinate's constants.
      key: what else of the coordinate's constants the coefficient depends on.
    """

    values: Callable[[Piece, tuple[float, ...]], Array | None]
    factor: Callable[[Part], float]
    key: Callable[[Part], tuple[float, ...]] = lambda _: ()

    @staticmethod
    def noise(s: float) -> Series:
        r""":math:`G_k B_i`; in its first part the standard deviation for :math:`G_k`, if it is known."""

        def values(piece: Piece, key: tuple[float, ...]) -> Array | None:
            (share,) = key
            return _added(None if piece.first is None else (share / s) * piece.first, piece.second)

        return Series(
            values, lambda part: part.scale * part.gradient, lambda part: (part.noise / part.gradient,)
        )

    @staticmethod
    def drift(smoothness: float, zeta: float) -> Series:
        """A_i for the smoothness L."""

        def values(piece: Piece, key: tuple[float, ...]) -> Array:
            gradient, scale = key
            steps = (scale**2 * smoothness) * piece.drift
            shares = piece.shares(gradient)
            return steps if shares is None else steps + (scale / zeta) * shares

        return Series(values, lambda _: 1.0, lambda part: (part.gradient, part.scale))


# The summands of noise and drift each with its own majorant: the part that 1/s multiplies, the part that it
# does not; the part that L multiplies, the part that 1/zeta does.
FIRST: Final = Series(lambda piece, _: piece.first, lambda part: part.scale * part.noise)
SECOND: Final = Series(lambda piece, _: piece.second, lambda part: part.scale * part.gradient)
STEPS: Final = Series(lambda piece, _: piece.drift, lambda part: part.scale**2)
SHARES: Final = Series(
    lambda piece, key: piece.shares(key[0]), lambda part: part.scale, lambda part: (part.gradient,)
)


def _grouped(parts: Sequence[Part], series: Series) -> dict[tuple[float, ...], list[Part]]:
    groups: dict[tuple[float, ...], list[Part]] = {}
    for part in parts:
        groups.setdefault(series.key(part), []).append(part)
    return groups


def total(values: Array, length: int) -> float:
    """Return the sum over a block of `length` steps, on which an array of length 1 is constant."""
    return float(values.sum()) * (length / len(values))


def _dot(hat: Array, change: Array, length: int) -> float:
    if len(hat) == len(change) > 1:
        return float(hat @ change)
    return total(hat * change, length)


def _added(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _shifted(values: Array, before: float, length: int) -> Array:
    """Return the values one step earlier, `before` first."""
    if len(values) == 1 and values[0] == before:
        return values
    return np.concatenate([[before], np.broadcast_to(values, length)[:-1]])


def _advanced(values: Array, after: float, length: int) -> Array:
    """Return the values one step later, `after` last."""
    if len(values) == 1 and values[0] == after:
        return values
    return np.concatenate([np.broadcast_to(values, length)[1:], [after]])


def _check_range(block: Block) -> None:
    """What every theorem with weights asks of the steps: alpha_t >= 0, beta_t in [0, 1), theta_t in (0, 1).

    theta_1 = 0 may be: the first step inherits nothing.

    Raises:
      TheoremError: a value is outside, with its step.
    """
    theta = block.theta
    if block.start == 1 and theta[0] == 0 and (len(theta) > 1 or block.stop == 2):
        theta = theta[1:]
    for claim, values, inside in (
        ("alpha_t >= 0", block.alpha, block.alpha >= 0),
        ("0 <= beta_t < 1", block.beta, (block.beta >= 0) & (block.beta < 1)),
        ("theta_t > 0", theta, theta > 0),
        ("theta_t < 1", block.theta, block.q > 0),
    ):
        if not inside.all():
            at = int(np.argmin(inside))
            late = block.stop - len(inside) if len(inside) > 1 else max(block.start, 2)
            raise TheoremError(
                f"expected {claim}, got {values[min(at, len(values) - 1)]:g} at t = {late + at}"
            )


def _from_second(block: Block) -> Array:
    """Return -log theta_t of the first block, 0 in place of the infinity where theta_1 = 0."""
    if block.theta[0] > 0:
        return minus_log(block.theta, block.q)
    tail = minus_log(block.theta[1:], block.q[1:])
    return np.concatenate([[0.0], tail])
