r"""One pass over the steps for every theorem with weights: from sequences to the sums in its bound.

Each of those theorems has the same skeleton (Theorem W's proof, steps (a) to (e)). A direction :math:`u_t`
inherits a part of the one before it, :math:`u_t \approx r_t u_{t-1} - f_t\,g_t/D_t`; unrolled, weighted and
summed this leaves the noise of the new gradient f, what momentum inherits wrongly m, and the drift A, each times the
growth of a logarithm (`logarithms`):

.. math::

    R_t &= r_t R_{t-1} + f_t, \\
    M_t &= \rho_t^2 M_{t-1} + (1-\beta_t)^2/q_t, \\
    Q_i &= w_i + r_{i+1} Q_{i+1} \\
    H_i &= R_i U_i + r_{i+1} H_{i+1}, \\
    A_i &= L (p_i H_i + V_i)/q_i \\
    f_i &= \bar N \pi_i/\sqrt{q_i}, \\
    m_i &= \tfrac12 G_k Q_i d_i \sqrt{M_{i-1}}, \\
    \Psi &= \text{gap} + \sum_{k,t} \widehat{(A+f)}_{t,k} (S_{t,k} - S_{t-1,k}) \\
    &\quad + \sum_{k,t} \hat m_{t,k} (S'_{t,k} - S'_{t-1,k}).

A theorem says what r, f, w, U, V, p, d and the weights :math:`\pi` are (`Terms`); this module does the rest, in blocks,
so that the memory stays flat. `adam_terms` says it for Theorems W, E, N, H, D and M_E, by what the sequences carry.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import (
    LEMMA_N,
    LEMMA_N_ANY_EPS,
    Array,
    Block,
    Recursion,
    Sequences,
    divisor_growth,
    eps_factor,
    log_growth,
    majorant,
    rounding,
    total,
)

KEPT = 1 << 20
"""The number of steps up to which the blocks are kept for a second look."""

# A piece keeps the logarithms of so many ratios; hundreds of different G_k would be gigabytes.
_RATIOS = 4
ROUNDING = 2.0**-49
"""How far rounding may carry e_t's share of growth, a difference: past its bounds, and below what it is."""
# Every term is >= 0: one that a double cannot hold, 1/q_t where 1 - theta_t underflows, makes the sum infinite.
_beyond_doubles = np.errstate(divide="ignore", over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False)
class State:
    r"""A theorem's terms in the recursions that go forwards.

    Args:
      keep: r, the share of the direction that the next one inherits.
      gain: f, the weight of the new gradient in R.
      squares: :math:`(\rho_t^2, (1-\beta_t)^2/q_t)` of M; None where it has none.
    """

    keep: Array
    gain: Array
    squares: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class Terms:
    r"""A theorem's terms in the recursions that go backwards; None is zero throughout.

    Args:
      own: w, the weight of a step's own direction in Q.
      spread: p of :math:`A_i = (p_i H_i + L V_i)/q_i`.
      rest_u: the coefficient of :math:`Q - w` in U.
      own_u: the rest of U.
      rest_g: the coefficient of :math:`Q - w` in V.
      own_g: the rest of V.
      second: d, the share of the inherited direction in the noise; it multiplies :math:`\sqrt{M_{i-1}}`.
      weight: what multiplies Q in the weight :math:`\pi_i`.
      weight_own: the rest of :math:`\pi_i`.
      tally: further sums over the steps, as a function of (R, Q); they are added up over the blocks.
    """

    own: Array
    spread: Array
    rest_u: Array
    own_u: Array
    weight: Array
    rest_g: Array | None = None
    own_g: Array | None = None
    second: Array | None = None
    weight_own: Array | None = None
    tally: Callable[[Array, Array], Sequence[Array]] | None = None


@dataclass(frozen=True)
class Recursions:
    """A theorem's part in the recursions at a block of the sequences.

    Args:
      state: what goes forwards.
      terms: what goes backwards, given also the state.
      noisy: whether the new gradient has noise.
    """

    state: Callable[[Sequences, Block], State]
    terms: Callable[[Sequences, Block, State], Terms]
    noisy: bool = True


def adam_state(x: Sequences, block: Block) -> State:
    r"""Return :math:`\rho_t` or, with a running maximum, :math:`\beta_t`; :math:`\mu` of a heavy ball."""
    if x.heavy_ball is not None:
        return State(np.array([float(x.heavy_ball.factor)]), np.ones(1))
    rho = block.rho
    return State(block.beta if x.running_maximum else rho, block.gain, (rho**2, block.gain**2 / block.q))


def adam_terms(x: Sequences, block: Block, state: State) -> Terms:
    r"""Return the terms of Theorems W, E, N, H, D and :math:`M_E`.

    With a running maximum :math:`\beta_t` stands for :math:`\rho_t` everywhere but in M. A step that decays
    is longer, :math:`\tfrac32\alpha(Q-\alpha) + \alpha^2` in place of :math:`\alpha(Q-\alpha/2)`; its tally
    is what it costs at the ends of the steps. Heavy-ball momentum comes after the division: :math:`\mu` is kept.
    """
    alpha, nu, keep, gain = block.alpha, block.decay, state.keep, state.gain
    if x.heavy_ball is not None:
        own, inside = np.ones(1), alpha
        if not x.heavy_ball.rate_inside:
            own, inside = inside, own
        return Terms(
            own=own,
            spread=inside**2,
            rest_u=own,
            own_u=own**2 / 2,
            weight=inside,
        )
    a, b = block.momentum_weight, block.gradient_weight
    looks, decays = x.looks_ahead, nu > 0

    def tally(_: Array, Q: Array) -> tuple[Array]:
        # Where nothing decays there is nothing to pay; a decay without a step is paid for with infinity.
        moved = np.where(alpha > 0, nu**2 * (0.5 + Q / (2 * alpha)), np.inf)
        return (np.where(decays, moved, 0.0),)

    longer, twice = (np.where(decays, 1.5, 1.0), np.where(decays, 2.0, 1.0)) if decays.any() else (1.0, 1.0)
    return Terms(
        own=alpha * a,
        spread=gain,
        rest_u=alpha * ((a + b / 2) * longer),
        own_u=alpha * alpha * ((a + b) * a / 2 * twice),
        rest_g=alpha * b / 2 if looks else None,
        own_g=alpha**2 * (a + b) * b / 2 if looks else None,
        second=keep if keep.any() else None,
        weight=gain,
        weight_own=alpha * b if looks else None,
        tally=tally if decays.any() else None,
    )


ADAM = Recursions(adam_state, adam_terms)


def _share_of_eps(x: Sequences, block: Block, before: Array) -> Array:
    r"""Return :math:`s_t` rounded up, checked against the hypothesis on :math:`e_t`; 0 at t = 1.

    Raises:
      TheoremError: the hypothesis fails, with the step at which it does.
    """
    theta, q = (np.ones(1), np.zeros(1)) if x.running_maximum else (block.theta, block.q)
    # With r = e'/e, 1 - sqrt(theta) r as (1 - theta r^2)/(1 + sqrt(theta) r), where a small q is not lost.
    ratio = np.where((block.eps == 0) & (before == 0), 1.0, before / block.eps)
    share = ((1 - ratio) * (1 + ratio) + q * ratio**2) / (1 + np.sqrt(theta) * ratio)
    if block.start == 1:  # nothing is inherited by the first step
        share = np.broadcast_to(share, block.length).copy()
        share[0] = 0.0
    inside = share >= -ROUNDING
    if not inside.all():
        root = "" if x.running_maximum else "sqrt(theta_t) "
        at = block.start + int(np.argmin(inside))
        raise TheoremError(f"eps: expected {root}e_(t-1) <= e_t, which fails at t = {at}")
    return np.maximum(share, 0.0) + ROUNDING


@dataclass(frozen=True, eq=False)
class Piece:
    r"""Noise and drift of a block before they are majorised: unit G, unit L.

    Args:
      start: its first step.
      length: the number of its steps.
      weight: :math:`\pi_t`.
      first: :math:`\pi_t/\sqrt{q_t}`.
      second: twice the momentum's noise, :math:`Q_t d_t\sqrt{M_{t-1}}`; None for none.
      drift: A.
      growth: :math:`q_t/\theta_t`.
      lambda_before: the logarithm of W at the step before.
      q: :math:`1-\theta_t`.
      eps: :math:`e_t`.
      eps_before: :math:`e_{t-1}`, with :math:`e_0 = e_1`.
      share: the share of :math:`e_t` that is new; None where it does not matter.
      decay: :math:`\nu_t`, None for none.
    """

    start: int
    length: int
    weight: Array
    first: Array
    second: Array | None
    drift: Array
    growth: Array
    lambda_before: float
    q: Array
    eps: Array
    eps_before: Array
    share: Array | None
    decay: Array | None
    increments: dict[float, Array] = field(default_factory=dict[float, Array])


@dataclass(frozen=True)
class Coordinates:
    r"""Coordinates with the same constants.

    Args:
      count: how many there are.
      gradient: :math:`G_k`, which bounds :math:`|\nabla_k f|` and the root of :math:`\mathbb{E}_t g_{t,k}^2`.
      noise: what stands for :math:`G_k` beside the new gradient's noise: the smaller of :math:`G_k` and the
        standard deviation.
      second_moment: the mean over the coordinates of :math:`\mathbb{E}_t g_{t,k}^2`, in the logarithm.
      scale: :math:`\kappa_k`, the factor of these coordinates' learning rate.
      certain: what :math:`|g_{t,k}|` never exceeds, which a running maximum asks for.
    """

    count: float
    gradient: float
    noise: float
    second_moment: float
    scale: float = 1.0
    certain: float = math.inf


Taken = Mapping[str | float, float]
"""Factors of a piece's arrays by their names; a number G stands for `first` as Lemma N has it for that G."""


@dataclass(frozen=True)
class Majorised:
    """A coefficient whose least non-increasing majorant is summed with the increments of a logarithm.

    Args:
      take: the factors of a piece's arrays.
      by_divisor: whether S' pays, the growth of the divisor; else S.
    """

    take: Callable[[Coordinates], Taken]
    by_divisor: bool = False


@dataclass(frozen=True)
class Plain:
    """Terms that are summed as they are.

    Args:
      terms: a sweep, a piece and a part -> one number for each step.
      parts: the coordinates; None for those of the other series.
    """

    terms: Callable[[Sweep, Piece, Coordinates], Array | float]
    parts: Sequence[Coordinates] | None = None


Series = Majorised | Plain
"""A sum over the steps and the coordinates."""


@dataclass(frozen=True)
class NoiseAndDrift:
    """The part of a bound's numerator that noise and drift make.

    Args:
      total: both, under one majorant where one logarithm pays for both.
      new: what the noise of the new gradient makes, alone.
      momentum: what the noise that is inherited makes, alone.
      drift: what the length of the steps makes, alone.
    """

    total: float
    new: float
    momentum: float
    drift: float


_Carry = tuple[float, float, float, float]  # R, M, lambda and e of the step before a block


class Sweep:
    """The pass: forwards once for R and M at the blocks' ends, then backwards for everything else.

    The weights and tallies are those of the backward pass: they are there once `sums` has been asked.

    Args:
      x: the steps 1..T.
      form: the theorem's terms.

    Examples:
      Two steps of 0.1 with beta = 0.5 and theta = 0.9: rho = 0.5/sqrt(0.9) = 0.527, Q_2 = 0.1, Q_1 = 0.1 + 0.527 * 0.1
      = 0.1527, and the weights of the steps are pi = (1 - beta) Q.

      >>> sweep = Sweep(Sequences.of([0.1, 0.1], 0.5, 0.9, initial_v=0.01))
      >>> [piece] = sweep.pieces()
      >>> piece.weight.round(4).tolist(), round(sweep.weight, 4)
      ([0.0764, 0.05], 0.1264)
    """

    def __init__(self, x: Sequences, form: Recursions = ADAM) -> None:
        self.x = x
        self.form = form
        self._kept: list[Piece] | None = None
        self._go_forwards()

    @_beyond_doubles
    def _go_forwards(self) -> None:
        growth = squares = decreased = 0.0  # R, M and lambda
        last_eps = -1.0
        self._carries: list[_Carry] = []
        self.largest_eps, self.smallest_eps, self.largest_eps_ratio = 0.0, np.inf, 0.0
        self.has_momentum = False
        self.eps_falls_at = 0  # the first step at which e_t falls, 0 for none
        eps_falls = inherits = False
        for block in self.x.blocks():
            _check_range(block, ("beta", "theta", "eps"))
            if block.start == 1:
                self.first_eps = last_eps = float(block.eps[0])
                self.first_theta = float(block.theta[0])
            carry = (growth, squares, decreased, last_eps)
            self._carries.append(carry)
            before = _shifted(block.eps, last_eps, block.length)
            eps_falls |= bool((block.eps < np.sqrt(block.theta) * before * (1 - ROUNDING)).any())
            falls = np.broadcast_to(block.eps < before * (1 - ROUNDING), block.length)
            if not self.eps_falls_at and falls.any():
                self.eps_falls_at = block.start + int(np.argmax(falls))
            state, R, M = self._states(block, carry)
            growth, squares = float(R[-1]), float(M[-1])
            self.has_momentum |= bool(state.keep.any())
            inherits |= bool(state.squares and state.keep.any())
            decreased += block.total(np.log1p(block.growth))
            last_eps = float(block.eps[-1])
            self.largest_eps = max(self.largest_eps, float(block.eps.max()))
            self.largest_eps_ratio = max(self.largest_eps_ratio, float((block.eps / np.sqrt(block.q)).max()))
            self.smallest_eps = min(self.smallest_eps, float(block.eps.min()))
        if self.first_theta == 0 and self.smallest_eps <= 0:
            raise TheoremError("theta_1 = 0 wipes v_0 out and nothing is added: a step may divide by 0")
        if self.x.initial_v == 0 and self.smallest_eps <= 0:
            raise TheoremError("v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive")
        self.has_share = inherits and self.largest_eps > 0
        # Where e_t falls behind, the smallest stands for the first in the logarithm.
        eps = self.smallest_eps if eps_falls else self.first_eps
        # theta_1 = 0 wipes v_0 out: W starts at t = 2, from v_1 >= 0.
        kept = (self.x.initial_v, 1 / self.first_theta) if self.first_theta else (0.0, 1.0)
        self._start = float(kept[0] + np.float64(eps) ** (1 / self.x.power) * kept[1])
        if not 1e-290 < self._start < 1e290:
            raise TheoremError("v_0 and eps: expected one of them to have a square that a double holds")

    def _states(self, block: Block, carry: _Carry) -> tuple[State, Array, Array]:
        """Return the state, R and M of a block."""
        state = self.form.state(self.x, block)
        growth = Recursion(state.keep, block.length)(state.gain, carry[0])
        if state.squares is None:
            return state, growth, np.zeros(1)
        return state, growth, Recursion(state.squares[0], block.length)(state.squares[1], carry[1])

    def pieces(self) -> Iterator[Piece]:
        """Yield the blocks from the last to the first; short sequences are computed once and kept."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Piece] = []
        for piece in self._go_backwards():
            if self.x.steps <= KEPT:
                kept.append(piece)
            yield piece
        self._kept = kept or None

    def _go_backwards(self) -> Iterator[Piece]:
        keep = Q_after = H_after = 0.0  # r, Q and H of the step after the block
        self.weight = self.largest_Q = 0.0
        self.tally = np.zeros(1)
        for (start, stop), carry in zip(reversed(self.x.edges), reversed(self._carries), strict=True):
            block, length = self.x.block(start, stop), stop - start
            _check_range(block, ("alpha", "momentum_weight", "gradient_weight", "decay"))
            state, R, M = self._states(block, carry)
            eps_before = _shifted(block.eps, carry[3], length)
            terms = self.form.terms(self.x, block, state)
            factors = _advanced(state.keep, keep, length)
            back = Recursion(factors, length, backwards=True)
            Q = back(terms.own, Q_after)
            rest = factors * _advanced(Q, Q_after, length)  # Q - w, without the difference
            weight = terms.weight * Q if terms.weight_own is None else terms.weight * Q + terms.weight_own
            self.weight += block.total(weight)
            self.largest_Q = max(self.largest_Q, float(Q.max()))
            if terms.tally is not None:
                self.tally += [block.total(values) for values in terms.tally(R, Q)]
            steps = back(R * (terms.rest_u * rest + terms.own_u), H_after)
            drift = terms.spread * steps
            if terms.rest_g is not None and terms.own_g is not None:
                drift = drift + terms.rest_g * rest + terms.own_g
            before = _shifted(M, carry[1], length)
            yield Piece(
                start=start,
                length=length,
                weight=weight,
                first=weight / np.sqrt(block.q),
                second=None if terms.second is None else Q * terms.second * np.sqrt(before),
                drift=drift / block.q,
                growth=block.growth,
                lambda_before=carry[2],
                q=block.q,
                eps=block.eps,
                eps_before=eps_before,
                share=_share_of_eps(self.x, block, eps_before) if self.has_share else None,
                decay=block.decay if self.x.decays else None,
            )
            keep, Q_after, H_after = float(state.keep[0]), float(Q[0]), float(steps[0])

    def ratio(self, part: Coordinates) -> float:
        r"""Return r of :math:`S_t = \log(1 + r (W_t - 1))`: what the second moment may grow by."""
        return part.second_moment / self._start

    def rounding(self, parts: Sequence[Coordinates]) -> float:
        """How far doubles may carry a bound on these coordinates, relatively."""
        return rounding(self.x.steps, min(self.ratio(part) for part in parts))

    def increments(self, piece: Piece, ratio: float) -> Array:
        r"""Return :math:`S_t - S_{t-1}`; if :math:`\theta_1 = 0`, :math:`S_1 = 1` and W starts at t = 2."""
        found = piece.increments.get(ratio)
        if found is None:
            found = log_growth(piece.growth, ratio, piece.lambda_before, piece.length)
            if piece.start == 1 and self.first_theta == 0:
                found[0] = 1.0
            if len(piece.increments) < _RATIOS:
                piece.increments[ratio] = found
        return found

    def second_moment(self, piece: Piece, part: Coordinates) -> tuple[Array, Array]:
        r"""Return what :math:`\mathbb{E} v_{t-1}` and :math:`\mathbb{E} v_t` are at most.

        It is :math:`v_0/W_t + G^2 (1 - 1/W_t)`; if :math:`\theta_1 = 0`, W starts at t = 2 and v_1 is left out.
        """
        v_0, g_squared = (self.x.initial_v if self.first_theta else 0.0), part.second_moment
        # From here on the start is below the last digit.
        if piece.lambda_before > 40 + max(0.0, math.log(v_0 / g_squared) if v_0 else 0.0):
            return np.array([g_squared]), np.array([g_squared])
        lambdas = piece.lambda_before + np.cumsum(np.broadcast_to(np.log1p(piece.growth), piece.length))
        earlier = np.concatenate([[piece.lambda_before], lambdas[:-1]])
        before, after = (v_0 * np.exp(-one) - g_squared * np.expm1(-one) for one in (earlier, lambdas))
        return before, after

    def divisor_increments(self, piece: Piece, part: Coordinates) -> Array:
        r"""Return :math:`S'_t - S'_{t-1}`; nothing at t = 1 if :math:`\theta_1 = 0`."""
        if self.x.running_maximum:
            return self._maximum_increments(piece, part)
        if not self.has_share:  # nothing is added, so that the two logarithms are one; or nothing is inherited
            return self.increments(piece, self.ratio(part))
        eps_before, share = piece.eps_before, 0.0 if piece.share is None else piece.share
        if piece.start == 1:
            eps_before = np.array(np.broadcast_to(eps_before, piece.length))
            eps_before[0] *= math.sqrt(1 + piece.growth[0])
        new_eps = piece.eps * share * np.sqrt(1 + piece.growth)
        before, _ = self.second_moment(piece, part)
        moments = (before, part.second_moment, eps_before, new_eps)
        return divisor_growth(piece.growth, *moments, under_root=self.x.under_root)

    def _maximum_increments(self, piece: Piece, part: Coordinates) -> Array:
        r"""Return the same for a running maximum, which no gradient carries beyond its almost sure bound.

        :math:`D_t/D_{t-1}` telescopes from :math:`\sqrt{v_0} + e_1` up to :math:`\max(G, \sqrt{v_0}) + e_t`.
        """
        added = np.array(np.broadcast_to(0.0 if piece.share is None else piece.eps * piece.share, piece.length))
        before, start = piece.eps_before, self.x.initial_v
        most = max(start, part.certain**2)
        if self.x.under_root:
            found = np.log1p(added * (before + piece.eps) / (most + before**2))
            first = math.log((most + self.first_eps**2) / (start + self.first_eps**2))
        else:
            found = 2 * np.log1p(added / (math.sqrt(most) + before))
            first = 2 * math.log((math.sqrt(most) + self.first_eps) / (math.sqrt(start) + self.first_eps))
        if piece.start == 1:
            found[0] = first
        return found

    def lemma_n(self, part: Coordinates) -> Taken:
        """Return the noise of the new gradient by Lemma N, as a factor of what stands for it."""
        factor = part.scale * LEMMA_N * part.gradient
        # No step's eps is large enough to matter.
        if self.x.under_root or LEMMA_N_ANY_EPS * self.largest_eps_ratio <= LEMMA_N * part.gradient:
            return {"first": factor}
        return {part.gradient: factor}

    def _values(self, piece: Piece, name: str | float) -> Array | None:
        if isinstance(name, str):
            return getattr(piece, name)
        factor = eps_factor(piece.eps, piece.q, name)
        if piece.start == 1 and self.first_theta == 0:
            factor = np.array(np.broadcast_to(factor, piece.length))
            factor[0] = 1.0
        return factor * piece.first

    def mean_divisor(self, piece: Piece, part: Coordinates, *, symmetric: bool = False) -> Array:
        r"""Return what :math:`\mathbb{E}\hat D_t` is at most; symmetric noise has 2 q_t second moments more in it."""
        _, moment = self.second_moment(piece, part)
        if self.first_theta == 0:
            moment = np.array([part.second_moment])
        if symmetric:
            moment = moment + 2 * piece.q * part.second_moment
        return np.sqrt(moment + piece.eps**2) if self.x.under_root else np.sqrt(moment) + piece.eps

    def cost(
        self, parts: Sequence[Coordinates], smoothness: float, first: Callable[[Coordinates], Taken], *further: Plain
    ) -> tuple[NoiseAndDrift, list[float]]:
        r"""Return noise and drift, and further sums of the same pass.

        Momentum is paid by the growth of the divisor, S'. Or by S, and then the growth of eps is paid for step by step:
        the part :math:`\rho_t |u_{t-1}| s_t e_t/D_t` is at most :math:`\rho_t\sqrt{M_{t-1}}\,s_t \varphi` with
        :math:`\varphi = \sqrt v/(\sqrt v + e)` at t - 1, which is concave in v. That is less where eps is large
        against the gradients. With a running maximum it is S' alone.

        Args:
          parts: the coordinates.
          smoothness: L.
          first: the noise of the new gradient, by its factors.
          *further: other sums.
        """

        def momentum(part: Coordinates) -> Taken:
            return {"second": part.scale * part.gradient / 2}

        def lengths(part: Coordinates) -> Taken:
            return {"drift": part.scale**2 * smoothness}

        def both(part: Coordinates) -> Taken:
            return {**first(part), **lengths(part)}

        def everything(part: Coordinates) -> Taken:
            return {**both(part), **momentum(part)}

        alone = Majorised(first), Majorised(lengths)
        by_moments, by_divisor = Majorised(momentum), Majorised(momentum, by_divisor=True)
        if self.x.running_maximum:
            new, drift, grown, apart, *others = self.sums(parts, *alone, by_divisor, Majorised(both), *further)
            return NoiseAndDrift(apart + grown, new, grown, drift), others
        together = Majorised(everything)
        if not self.has_share:  # the two logarithms are one
            new, drift, inherited, total, *others = self.sums(parts, *alone, by_moments, together, *further)
            return NoiseAndDrift(total, new, inherited, drift), others
        asked = *alone, by_moments, by_divisor, Majorised(both), together, Plain(_new_eps)
        # Under the root S' pays for everything too; if theta_1 = 0, not for the first step.
        by_one = replace(together, by_divisor=self.x.under_root and self.first_theta > 0)
        new, drift, inherited, grown, apart, joint, eps, at_once, *others = self.sums(parts, *asked, by_one, *further)
        total = min(apart + grown, joint + eps, at_once if by_one.by_divisor else math.inf)
        return NoiseAndDrift(total, new, min(grown, inherited + eps), drift), others

    @_beyond_doubles
    def sums(self, parts: Sequence[Coordinates], *series: Series) -> list[float]:
        r"""Return :math:`\sum_{k,t} \hat c_{t,k} (S_{t,k} - S_{t-1,k})` for each series c, or the plain sum.

        Coordinates whose c differ by a factor have one majorant.
        """
        alike: dict[tuple[int, tuple[tuple[str | float, float], ...]], list[tuple[int, float]]] = defaultdict(list)
        by_divisor = [isinstance(one, Majorised) and one.by_divisor for one in series]
        plain = {index: one for index, one in enumerate(series) if isinstance(one, Plain)}
        for k, part in enumerate(parts):
            for index, one in enumerate(series):
                if isinstance(one, Plain):
                    continue
                taken = {name: factor for name, factor in one.take(part).items() if factor}
                largest = max(taken.values(), default=0.0)
                mixture = tuple((name, factor / largest) for name, factor in taken.items())
                alike[index, mixture].append((k, part.count * largest))
        after, totals = dict.fromkeys(alike, 0.0), [0.0] * len(series)
        for piece in self.pieces():
            changes = [self.increments(piece, self.ratio(part)) for part in parts]
            grown = [self.divisor_increments(piece, part) for part in parts] if any(by_divisor) else []
            for (index, mixture), weights in alike.items():
                arrays = [(factor, self._values(piece, name)) for name, factor in mixture]
                terms = [factor * values for factor, values in arrays if values is not None]
                if terms:
                    hat = majorant(sum(terms, np.zeros(1)), after[index, mixture])
                    after[index, mixture] = float(hat[0])
                    paid = grown if by_divisor[index] else changes
                    change = sum((weight * paid[k] for k, weight in weights), np.zeros(1))
                    totals[index] += total(hat * change, piece.length)
            for index, one in plain.items():
                for part in parts if one.parts is None else one.parts:
                    totals[index] += part.count * total(np.atleast_1d(one.terms(self, piece, part)), piece.length)
        return [math.inf if math.isnan(found) else found for found in totals]


def _new_eps(sweep: Sweep, piece: Piece, part: Coordinates) -> Array | float:
    """Return the cost of the growth of eps where S pays for the rest of the momentum."""
    if piece.second is None or piece.share is None:
        return 0.0
    before, _ = sweep.second_moment(piece, part)
    if sweep.first_theta == 0:
        before = np.array([part.second_moment])
    eps = piece.eps_before
    inherited = np.sqrt(before / (before + eps**2)) if sweep.x.under_root else np.sqrt(before) / (np.sqrt(before) + eps)
    return part.scale * part.gradient * piece.second * piece.share * inherited


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


_LETTERS = {"momentum_weight": "a", "gradient_weight": "b", "decay": "nu"}


def _check_range(block: Block, names: Sequence[str]) -> None:
    """Check what every theorem with weights asks of the steps: beta_t in [0, 1), theta_t in (0, 1), nothing negative.

    theta_1 = 0 may be: the first step inherits nothing.

    Raises:
      TheoremError: a value is outside, with its step.
    """
    for name in names:
        values: Array = getattr(block, name)
        inside, claim = values >= 0, f"{_LETTERS.get(name, name)}_t >= 0"
        if name == "beta":
            inside, claim = inside & (block.gain > 0), "0 <= beta_t < 1"
        elif name == "theta":
            inside = np.broadcast_to((values > 0) & (block.q > 0), block.length).copy()
            inside[0] |= block.start == 1 and values[0] == 0
            claim = "0 < theta_t < 1"
        if not inside.all():
            at = int(np.argmin(inside))
            found = values[min(at, len(values) - 1)]
            raise TheoremError(f"expected {claim}, got {found:g} at t = {block.start + at}")
