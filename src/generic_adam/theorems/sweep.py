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
memory stays flat. `adam_terms` says it for Theorems W, E, N, H, D and M_E, by what the sequences carry.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import (
    Array,
    Block,
    Recursion,
    Sequences,
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
    r"""What a theorem puts into the recursions that go forwards.

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
    r"""What a theorem puts into the recursions that go backwards; None is zero throughout.

    Args:
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
      tally: further sums over the steps, as a function of (R, Q); they are added up over the blocks.
    """

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
    tally: Callable[[Array, Array], Sequence[Array]] | None = None


@dataclass(frozen=True)
class Form:
    """A theorem's part in the recursions at a block of the sequences.

    Args:
      state: what goes forwards.
      terms: what goes backwards, given also :math:`e_{t-1}` (:math:`e_0 := e_1`) and the state.
      noisy: whether the new gradient has noise.
    """

    state: Callable[[Sequences, Block], State]
    terms: Callable[[Sequences, Block, Array, State], Terms]
    noisy: bool = True


def adam_state(x: Sequences, block: Block) -> State:
    r"""Return :math:`\rho_t` or, with a running maximum, :math:`\beta_t`; :math:`\mu` of a heavy ball."""
    if x.heavy_ball is not None:
        return State(np.array([float(x.heavy_ball.factor)]), np.ones(1))
    rho = block.rho
    return State(block.beta if x.running_maximum else rho, block.gain, (rho**2, block.gain**2 / block.q))


def adam_terms(x: Sequences, block: Block, eps_before: Array, state: State) -> Terms:
    r"""Return the terms of Theorems W, E, N, H, D and :math:`M_E`.

    With a running maximum :math:`\beta_t` stands for :math:`\rho_t` everywhere but in M. A step that decays
    is longer, :math:`\tfrac32\alpha(Q-\alpha) + \alpha^2` in place of :math:`\alpha(Q-\alpha/2)`; its tally
    has the two sums over :math:`\nu_t`. Heavy-ball momentum comes after the division: :math:`\mu` is kept.
    """
    alpha, q, nu, keep, gain = block.alpha, block.q, block.decay, state.keep, state.gain
    if x.heavy_ball is not None:
        own, inside = np.ones(1), alpha
        if not x.heavy_ball.rate_inside:
            own, inside = inside, own
        return Terms(
            own=own,
            spread=inside**2,
            rest_u=own,
            own_u=own**2 / 2,
            first=inside / np.sqrt(q),
            weight=inside,
        )
    a, b, root_q = block.momentum_weight, block.gradient_weight, np.sqrt(q)
    share_e = share_g = None
    if block.eps.any() and keep.any():
        common = (_share(x, block, eps_before) * keep) ** 2 * (0.5 / gain)
        share_e, share_g = common * block.eps, common * root_q
    looks, decays = x.looks_ahead, nu > 0

    def tally(_: Array, Q: Array) -> tuple[Array, Array]:
        # Where nothing decays there is nothing to pay; a decay without a step is paid for with infinity.
        moved = np.where(alpha > 0, nu**2 * (0.5 + Q / (2 * alpha)), np.inf)
        return np.where(decays, moved, 0.0), np.where(decays, nu**2 / (gain * Q), 0.0)

    longer, twice = (np.where(decays, 1.5, 1.0), np.where(decays, 2.0, 1.0)) if decays.any() else (1.0, 1.0)
    return Terms(
        own=alpha * a,
        spread=gain,
        rest_u=alpha * ((a + b / 2) * longer),
        own_u=alpha * alpha * ((a + b) * a / 2 * twice),
        rest_g=alpha * b / 2 if looks else None,
        own_g=alpha**2 * (a + b) * b / 2 if looks else None,
        first=gain / root_q,
        first_own=alpha * b / root_q if looks else None,
        second=keep if keep.any() else None,
        share_e=share_e,
        share_g=share_g,
        weight=gain,
        weight_own=alpha * b if looks else None,
        tally=tally if decays.any() else None,
    )


ADAM = Form(adam_state, adam_terms)


def _share(x: Sequences, block: Block, before: Array) -> Array:
    r"""Return :math:`s_t` rounded up, checked against the hypothesis on :math:`e_t`; 0 at t = 1.

    Raises:
      TheoremError: the hypothesis fails, with the step at which it does.
    """
    theta, q = (np.ones(1), np.zeros(1)) if x.running_maximum else (block.theta, block.q)
    # With r = e'/e, 1 - sqrt(theta) r as (1 - theta r^2)/(1 + sqrt(theta) r), where a small q is not lost.
    ratio = before / block.eps
    share = ((1 - ratio) * (1 + ratio) + q * ratio**2) / (1 + np.sqrt(theta) * ratio)
    if block.start == 1:  # nothing is inherited by the first step
        share = np.broadcast_to(share, block.length).copy()
        share[0] = 0.0
    inside = (share >= -ROUNDING) & (share <= (np.inf if x.under_root else 0.5 + ROUNDING))
    if not inside.all():
        root = "" if x.running_maximum else "sqrt(theta_t) "
        bound = "" if x.under_root else f" <= 2 {root}e_(t-1)"
        at = block.start + int(np.argmin(inside))
        raise TheoremError(f"eps: expected {root}e_(t-1) <= e_t{bound}, which fails at t = {at}")
    return np.maximum(share, 0.0) + ROUNDING


@dataclass(frozen=True, eq=False)
class Piece:
    """The noise and the drift of a block, before they are majorised: unit G, unit L, unit 1/s and 1/zeta."""

    start: int
    length: int
    first: Array | None
    second: Array | None
    drift: Array
    share_e: Array | None
    share_g: Array | None
    growth: Array
    lambda_before: float
    increments: dict[float, Array] = field(default_factory=dict[float, Array])


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


Series = Callable[[Part], Mapping[str, float]]
"""A coefficient of omega that is majorised and summed: what it takes of a piece's arrays, by their names."""


def noise_of(s: float) -> Series:
    r""":math:`G_k B_i`; in its first part the standard deviation for :math:`G_k`, if it is known."""
    return lambda part: {"first": part.scale * part.noise / s, "second": part.scale * part.gradient}


def drift_of(smoothness: float, zeta: float) -> Series:
    """A_i for the smoothness L."""
    return lambda part: {"drift": part.scale**2 * smoothness, **_shares(part, zeta)}


def _shares(part: Part, zeta: float = 1.0) -> dict[str, float]:
    return {"share_e": part.scale / zeta, "share_g": part.scale / zeta * part.gradient}


SUMMANDS: tuple[Series, ...] = (
    lambda part: {"first": part.scale * part.noise},
    lambda part: {"second": part.scale * part.gradient},
    lambda part: {"drift": part.scale**2},
    _shares,
)
"""Noise and drift in parts, each with its own majorant: what 1/s multiplies and what it does not, L and 1/zeta."""


def added(factor: float, one: Array | None, weight: float = 0.0, other: Array | None = None) -> Array | None:
    """Return factor * one + weight * other, None for 0."""
    if one is None or other is None:
        return (None if other is None else weight * other) if one is None else factor * one
    return factor * one + weight * other


_Carry = tuple[float, float, float, float]  # R, M, lambda and e of the step before a block


class Sweep:
    """The pass: forwards once for R and M at the blocks' ends, then backwards for everything else.

    The weights and tallies are those of the backward pass: they are there once `sums` has been asked.

    Args:
      x: the steps 1..T.
      form: the theorem's terms.
    """

    def __init__(self, x: Sequences, form: Form = ADAM) -> None:
        self.x = x
        self.form = form
        self._kept: list[Piece] | None = None
        self._go_forwards()

    @_beyond_doubles
    def _go_forwards(self) -> None:
        growth = squares = decreased = 0.0  # R, M and lambda
        last_eps = -1.0
        self._carries: list[_Carry] = []
        self.largest_eps, self.smallest_eps = 0.0, np.inf
        self.has_momentum = self.has_share = False
        eps_falls = False
        for block in self.x.blocks():
            _check_range(block, ("beta", "theta", "eps"))
            if block.start == 1:
                self.first_eps = last_eps = float(block.eps[0])
                self.first_theta = float(block.theta[0])
            carry = (growth, squares, decreased, last_eps)
            self._carries.append(carry)
            before = _shifted(block.eps, last_eps, block.length)
            eps_falls |= bool((block.eps < np.sqrt(block.theta) * before * (1 - ROUNDING)).any())
            state, R, M = self._states(block, carry)
            growth, squares = float(R[-1]), float(M[-1])
            self.has_momentum |= bool(state.keep.any())
            self.has_share |= bool(state.squares and block.eps.any() and state.keep.any())
            decreased += block.total(np.log1p(block.growth))
            last_eps = float(block.eps[-1])
            self.largest_eps = max(self.largest_eps, float(block.eps.max()))
            self.smallest_eps = min(self.smallest_eps, float(block.eps.min()))
        if self.first_theta == 0 and self.smallest_eps <= 0:
            raise TheoremError("theta_1 = 0 wipes v_0 out and nothing is added: a step may divide by 0")
        if self.x.initial_v == 0 and self.smallest_eps <= 0:
            raise TheoremError("v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive")
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
        # Of the step after the block: r, Q, H for each kind of term, y for each kind.
        keep, Q_after, H_after, y_after = 0.0, 0.0, [0.0] * 3, [0.0] * 2
        self.weight = self.weight_own = self.largest_Q = 0.0
        self.tally = np.zeros(2)
        for (start, stop), carry in zip(reversed(self.x.edges), reversed(self._carries), strict=True):
            block, length = self.x.block(start, stop), stop - start
            _check_range(block, ("alpha", "momentum_weight", "gradient_weight", "decay"))
            state, R, M = self._states(block, carry)
            terms = self.form.terms(self.x, block, _shifted(block.eps, carry[3], length), state)
            factors = _advanced(state.keep, keep, length)
            back = Recursion(factors, length, backwards=True)
            Q = back(terms.own, Q_after)
            later_Q = _advanced(Q, Q_after, length)
            rest = factors * later_Q  # Q - w, without the difference
            self._add_weights(block, terms, R, Q)
            steps = back(R * (terms.rest_u * rest + terms.own_u), H_after[0])
            inherited: list[Array | None] = []
            for kind, y in enumerate((terms.share_e, terms.share_g)):
                if y is None:
                    inherited.append(None)
                    continue
                summed = back(R * later_Q * _advanced(y, y_after[kind], length), H_after[kind + 1])
                inherited.append(terms.spread * summed / block.q)
                y_after[kind], H_after[kind + 1] = float(y[0]), float(summed[0])
            drift = terms.spread * steps
            if terms.rest_g is not None and terms.own_g is not None:
                drift = drift + terms.rest_g * rest + terms.own_g
            first = None if terms.first is None else Q * terms.first
            before = _shifted(M, carry[1], length)
            yield Piece(
                start=start,
                length=length,
                first=added(1.0, first, 1.0, terms.first_own),
                second=None if terms.second is None else Q * terms.second * np.sqrt(before),
                drift=drift / block.q,
                share_e=inherited[0],
                share_g=inherited[1],
                growth=block.growth,
                lambda_before=carry[2],
            )
            keep, Q_after, H_after[0] = float(state.keep[0]), float(Q[0]), float(steps[0])

    def _add_weights(self, block: Block, terms: Terms, R: Array, Q: Array) -> None:
        self.weight += block.total(terms.weight * Q)
        if terms.weight_own is not None:
            self.weight_own += block.total(terms.weight_own)
        self.largest_Q = max(self.largest_Q, float(Q.max()))
        if terms.tally is not None:
            for index, values in enumerate(terms.tally(R, Q)):
                self.tally[index] += block.total(values)

    def ratio(self, part: Part) -> float:
        r"""Return r of :math:`S_t = \log(1 + r (W_t - 1))`: what the second moment may grow by."""
        return part.second_moment / self._start

    def rounding(self, parts: Sequence[Part]) -> float:
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

    @_beyond_doubles
    def sums(self, parts: Sequence[Part], *series: Series) -> list[float]:
        r"""Return :math:`\sum_{k,t} \hat c_{t,k} (S_{t,k} - S_{t-1,k})` for each series c.

        Coordinates whose c differ by a factor have one majorant.
        """
        alike: dict[tuple[int, tuple[tuple[str, float], ...]], list[tuple[int, float]]] = defaultdict(list)
        for k, part in enumerate(parts):
            for index, one in enumerate(series):
                taken = {name: factor for name, factor in one(part).items() if factor}
                largest = max(taken.values(), default=0.0)
                mixture = tuple((name, factor / largest) for name, factor in taken.items())
                alike[index, mixture].append((k, part.count * largest))
        after, totals = dict.fromkeys(alike, 0.0), [0.0] * len(series)
        for piece in self.pieces():
            changes = [self.increments(piece, self.ratio(part)) for part in parts]
            for (index, mixture), weights in alike.items():
                terms = [factor * values for name, factor in mixture if (values := getattr(piece, name)) is not None]
                if terms:
                    hat = majorant(sum(terms, np.zeros(1)), after[index, mixture])
                    after[index, mixture] = float(hat[0])
                    change = sum((weight * changes[k] for k, weight in weights), np.zeros(1))
                    totals[index] += total(hat * change, piece.length)
        return [math.inf if math.isnan(found) else found for found in totals]


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
    """What every theorem with weights asks of the steps: beta_t in [0, 1), theta_t in (0, 1), nothing negative.

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
