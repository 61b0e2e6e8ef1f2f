r"""Theorem W: a bound for any finite sequences, at an iterate drawn by the steps' weights; and its kin.

Statement and proof are on the page docs/theorems/weighted.md. E, N, H, D and :math:`M_E` are the same recursion with
other coefficients (`sweep.ADAM`), so `weighted_bound` evaluates all six, by what the sequences carry.

Two ways lead from a divisor that contains the new gradient to a bound. Lemma N costs :math:`\bar N` of the noise and
nothing of the descent (W, E, N, H, D). Young's inequality spends a share s of the descent, and costs
:math:`\min(G_k, \tau_k)/(2 s)` with the standard deviation :math:`\tau_k`: the smaller one where batches are large, and
the only one where gradients are clipped (C3) or v_t is replaced by its maximum (:math:`M_E`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import MissingError, Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.sequences import Array, Sequences
from generic_adam.theorems.sweep import Coordinates, Piece, Plain, Sweep, Taken
from generic_adam.theorems.theorem import (
    Hypothesis,
    Offer,
    Theorem,
    momentum_below_one,
    not_negative,
    theta_in_range,
)

_TOLD = ("gap", "noise", "drift", "decay", "jump", "weight", "divisor", "s", "phi", "s1", "s2")


@dataclass(frozen=True)
class WeightedBound:
    r"""The bound of a theorem with weights after T steps: :math:`X_w` is at most the sum of the parts / divisor.

    Args:
      theorem: its letter.
      steps: T.
      gap: :math:`f(x_1) - f^*`.
      noise: the part of :math:`\Psi` that the gradients' noise adds to the drift.
      drift: the part that the length of the steps makes.
      decay: the part that decoupled weight decay, or a bias, makes.
      jump: the part that a preconditioner makes which is compared with the one before it (M).
      weight: :math:`\Pi`, the sum of the weights :math:`\pi_t` of the drawn iterate.
      divisor: :math:`(1-s-\phi)\,\Pi`.
      s1: what the weighted mean of :math:`\mathbb{E}\sum_k \hat D_{t,k}` is at most.
      s2: what the root of the weighted mean of :math:`\mathbb{E}\max_k \hat D_{t,k}^2` is at most.
      s: the share of the descent that is spent on the noise; 0 by Lemma N.
      phi: the share spent on weight decay or on a bias.
      rounding: how far doubles may have carried the numbers, relatively (`sequences.rounding`).
    """

    theorem: str
    steps: int
    gap: float
    noise: float
    drift: float
    weight: float
    divisor: float
    s1: float
    s2: float
    decay: float = 0.0
    jump: float = 0.0
    s: float = 0.0
    phi: float = 0.0
    rounding: float = 0.0

    @property
    def psi(self) -> float:
        r""":math:`\Psi`, the sum of the parts."""
        return self.gap + self.noise + self.drift + self.decay + self.jump

    @property
    def value(self) -> float:
        r"""The bound on :math:`X_w`; infinite where :math:`\Pi = 0` or the numbers exceed a double."""
        if self.divisor <= 0 or not math.isfinite(self.psi):
            return math.inf
        return self.psi / self.divisor

    @property
    def l2(self) -> float:
        r"""The bound on :math:`(\mathbb{E}\|\nabla f(x_\tau)\|_2^{4/3})^{3/2}`."""
        return self.s2 * self.value

    @property
    def l1(self) -> float:
        r"""The bound on :math:`\mathbb{E}\|\nabla f(x_\tau)\|_1`."""
        return math.sqrt(self.s1 * self.value)

    def offer(self) -> Offer:
        """Return the bound in the measure that all theorems share, rounded up.

        Raises:
          TheoremError: no step has a weight, so that there is none.
        """
        if self.divisor <= 0:
            raise TheoremError("every learning rate up to the horizon is 0")
        numbers = {name: float(getattr(self, name)) for name in _TOLD}
        up = 1 + self.rounding
        return Offer(up * self.l2, up * self.l1, {**numbers, "X_w": self.value})


def best_shares(constant: float, paid: Sequence[float], keep: float = 1.0) -> list[float]:
    r"""Return the shares that make (constant + sum of paid/share)/(keep - sum of the shares) least.

    Each share is in proportion to the root of what it pays for. With r the sum of the roots and keep = 1, the least
    value is :math:`(\sqrt{\text{constant} + r^2} + r)^2`.

    Examples:
      >>> best_shares(0, [1, 9])
      [0.125, 0.375]
    """
    roots = [math.sqrt(one) for one in paid]
    whole = sum(roots)
    if not 0 < whole < math.inf:  # nothing to pay; or infinity, whatever is spent
        return [keep / (2 * len(roots)) if one else 0.0 for one in roots]
    return [keep * one / (whole + math.sqrt(whole**2 + constant * keep)) for one in roots]


def over(paid: float, share: float) -> float:
    """Return paid/share; a share of 0 has nothing to pay for."""
    return paid / share if share else 0.0


def parts_of(problem: Constants, scales: Sequence[tuple[int, float]] | None) -> tuple[Coordinates, ...]:
    r"""Return the problem's coordinates, in groups with proportional learning rates where `scales` says so.

    Args:
      problem: with scales, the same bound :math:`G_k` for each coordinate: one for the whole gradient does not say
        how much of it is in which group.
      scales: (number of coordinates, :math:`\kappa`) of each group,
        :math:`\alpha^{(k)}_t = \kappa_k \alpha_t` (W.4).

    Raises:
      TheoremError: the groups do not add up to the dimension, or the coordinates have no bound in common.
    """
    if scales is None:
        return problem.parts
    if sum(count for count, _ in scales) != problem.dimension or min(scale for _, scale in scales) <= 0:
        raise TheoremError(f"groups: expected positive scales of {problem.dimension} coordinates in all, got {scales}")
    if len(problem.parts) != 1 or not isinstance(problem.gradient_bound, Sequence):
        raise TheoremError("groups with proportional rates: expected the same gradient bound for each coordinate")
    part = problem.parts[0]
    return tuple(Coordinates(n, part.gradient, part.noise, part.second_moment, kappa) for n, kappa in scales)


@dataclass(frozen=True)
class Norms:
    r"""Two factors that turn :math:`X_w` into norms of the gradient.

    Args:
      s1: bounds the weighted mean of :math:`\mathbb{E}\sum_k \hat D_{t,k}`.
      s2: bounds the root of the weighted mean of :math:`\mathbb{E}\max_k \hat D_{t,k}^2`.
    """

    s1: float
    s2: float

    @classmethod
    def certain(cls, parts: Sequence[Coordinates], sweep: Sweep) -> Norms:
        """Return both for D = v^p + e when no gradient ever exceeds its bound."""
        largest = [
            (p.count, max(p.second_moment, sweep.x.initial_v) ** sweep.x.power + sweep.largest_eps) for p in parts
        ]
        return cls(sum(count * size for count, size in largest), max(size for _, size in largest))


def certain_parts(problem: Constants) -> tuple[Coordinates, ...]:
    """Return the coordinates by their almost sure bounds.

    Raises:
      MissingError: there are none.
    """
    if not problem.sup_parts:
        raise MissingError("gradient_sup")
    return problem.sup_parts


class MeanDivisors:
    r"""The plain sums beside noise and drift: the mean divisors, and the cost of decay where the weights turn.

    Args:
      parts: the coordinates.
      total: :math:`G_2^2`.
      symmetric: whether the noise is symmetric, which has a larger :math:`\hat D`.
    """

    def __init__(self, parts: Sequence[Coordinates], total: float, *, symmetric: bool) -> None:
        self._symmetric = symmetric
        self._least_scale = min(part.scale for part in parts)
        self.series = (Plain(self._size), Plain(self._square, (Coordinates(1, 1.0, 0.0, total),)), Plain(self._turned))

    def _divisor(self, sweep: Sweep, piece: Piece, part: Coordinates) -> Array:
        return sweep.mean_divisor(piece, part, symmetric=self._symmetric) / part.scale

    def _size(self, sweep: Sweep, piece: Piece, part: Coordinates) -> Array:
        return piece.weight * self._divisor(sweep, piece, part)

    def _square(self, sweep: Sweep, piece: Piece, part: Coordinates) -> Array:
        return piece.weight * self._divisor(sweep, piece, part) ** 2

    def _turned(self, sweep: Sweep, piece: Piece, part: Coordinates) -> Array | float:
        if piece.decay is None:
            return 0.0
        # A decay without a step is paid for with infinity.
        return np.where(piece.decay > 0, self._divisor(sweep, piece, part) * piece.decay**2 / piece.weight, 0.0)

    def norms(self, size: float, square: float, weight: float) -> Norms:
        """Return what turns the bound into norms, from the sums."""
        if not weight > 0:
            return Norms(0.0, 0.0)
        return Norms(size / weight, math.sqrt(square / weight) / self._least_scale)


Further = Callable[[Sweep], float]
"""A sum over the steps of a sweep that is done, which 1/phi multiplies in the numerator."""


def concluded(
    theorem: str,
    sweep: Sweep,
    problem: Constants,
    parts: Sequence[Coordinates],
    *,
    by_share: bool = False,
    symmetric: bool = False,
    keep: float = 1.0,
    jump: float = 0.0,
    norms: Norms | None = None,
    further: Further | None = None,
) -> WeightedBound:
    r"""Put a bound together, the shares chosen so as to make it least.

    The shares are the best ones for the majorants of the summands one by one, a few percent from the best;
    the value is the theorem's for these shares.

    Args:
      theorem: its letter.
      sweep: the recursions of the theorem.
      problem: the smoothness and the gap; decay asks for a bound on the weights.
      parts: the coordinates.
      by_share: whether a share of the descent pays for the noise of the new gradient, in place of Lemma N.
      symmetric: whether the noise is symmetric with one peak, so that the new gradient has none (Theorem Y).
      keep: what 1 stands for in :math:`1 - s - \phi`; less where clipping shortens the gradient.
      jump: what multiplies the largest Q in the numerator.
      norms: s1 and s2, where they are not the mean divisors.
      further: the cost of a bias.
    """
    noisy, x = sweep.form.noisy and not symmetric, sweep.x
    plain = MeanDivisors(parts, sum(part.count * part.second_moment for part in parts), symmetric=symmetric)

    def first(part: Coordinates) -> Taken:
        if not noisy:
            return {}
        return {"first": part.scale * part.noise / (2 * s)} if by_share else sweep.lemma_n(part)

    s, spends = 1.0, by_share and noisy
    cost, sums = sweep.cost(parts, problem.smoothness, first, *(plain.series if norms is None else ()))
    steady = jump * sweep.largest_Q
    decay = paid = 0.0
    if x.decays:
        X = problem.weights_bound or 0.0
        decay, paid = problem.smoothness * problem.dimension * X**2 * float(sweep.tally[0]), X**2 * sums[2] / 4
    elif further is not None:
        paid = further(sweep)
    constant = problem.gap + steady + decay + (cost.momentum + cost.drift if spends else cost.total)
    s, phi = best_shares(constant, (cost.new if spends else 0.0, paid), keep)
    if s:
        cost, _ = sweep.cost(parts, problem.smoothness, first)
    norms = plain.norms(sums[0], sums[1], sweep.weight) if norms is None else norms
    return WeightedBound(
        theorem=theorem,
        steps=x.steps,
        gap=problem.gap,
        noise=max(cost.total - cost.drift, 0.0) if math.isfinite(cost.total) else math.inf,
        drift=cost.drift,
        decay=decay + over(paid, phi),
        jump=steady,
        weight=sweep.weight,
        divisor=(keep - s - phi) * sweep.weight,
        s=s,
        phi=phi,
        s1=norms.s1,
        s2=norms.s2,
        rounding=sweep.rounding(parts),
    )


def letter_of(sweep: Sweep) -> str:
    """Return the letter of the theorem that `weighted_bound` evaluates."""
    x = sweep.x
    kinds = {"H": x.heavy_ball is not None, "D": x.decays, "M_E": x.running_maximum}
    kinds |= {"N": x.looks_ahead, "W": sweep.largest_eps == 0}
    return next((letter for letter, is_so in kinds.items() if is_so), "E")


def weighted_bound(
    x: Sequences,
    problem: Constants,
    *,
    scales: Sequence[tuple[int, float]] | None = None,
    symmetric: bool = False,
    clipped: tuple[Sequence[Coordinates], float] | None = None,
) -> WeightedBound:
    r"""Evaluate Theorem W, E, N, H, D or :math:`M_E` after T steps, or Theorem Y where the noise is symmetric.

    For :math:`M_E`, :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`.

    Args:
      x: the sequences, and the form of the step.
      problem: L, G, d and the gap; where a variance is given, the noise of a mini-batch counts (W.3). Decay
        asks for `weights_bound`, a running maximum for `gradient_sup`.
      scales: groups of coordinates with proportional learning rates (W.4).
      symmetric: whether the noise of every coordinate is symmetric and has one peak.
      clipped: beside symmetric noise, the coordinates with their clipped second moments, and what clipping leaves of
        the descent (CS).

    Raises:
      TheoremError: eps and v_0 are both 0, the hypothesis on e_t fails, a bound of the problem is missing, v_t is
        raised to another power than 1/2, or decay stands beside another momentum or a running maximum.
    """
    if x.power != 0.5:
        raise TheoremError(f"power is {x.power:g}: Theorem M is the one for powers below 1/2")
    if x.decays:
        if problem.weights_bound is None:
            raise TheoremError("decoupled weight decay: expected a bound on the weights (`weights_bound`)")
        if x.looks_ahead or x.heavy_ball is not None or x.running_maximum:
            raise TheoremError("Theorem D has no Nesterov step, heavy ball or running maximum")
    sweep, (parts, keep) = Sweep(x), clipped or (parts_of(problem, scales), 1.0)
    if x.running_maximum:
        if symmetric:
            raise TheoremError("Theorem Y has no running maximum")
        # The almost sure bounds are for the divisor alone; the rest of the proof takes second moments.
        certain = certain_parts(problem)
        largest = math.sqrt(max(part.second_moment for part in certain))
        parts = tuple(replace(part, certain=largest) for part in parts)
        return concluded("M_E", sweep, problem, parts, by_share=True, norms=Norms.certain(certain, sweep))
    letter = "Y" if symmetric else letter_of(sweep)
    found = concluded(letter, sweep, problem, parts, symmetric=symmetric, keep=keep)
    if symmetric or all(part.noise == part.gradient for part in parts):
        return found
    return min(found, concluded(letter, sweep, problem, parts, by_share=True), key=lambda one: one.value)


def _momentum(x: Algorithm, setting: Setting) -> Decision | None:
    """(1) beta_t <= beta < 1; of a heavy ball, which comes after the division, beta has no part."""
    return None if x.heavy_ball is not None else momentum_below_one(x, setting)


def _theta_to_one(x: Algorithm, _: Setting) -> Decision:
    return decide.limit_is_one(x.method.theta)


def _endless(x: Algorithm, _: Setting) -> Decision:
    """(4') sum alpha_t = infinity."""
    return decide.sum_diverges(x.method.alpha, "alpha")


_BEFORE: tuple[Hypothesis, ...] = (_momentum, theta_in_range, _theta_to_one, not_negative, _endless)


def _bound_vanishes(x: Algorithm, setting: Setting) -> Decision | None:
    """SC' or SC''; the bound has an order where what comes before holds."""
    before = (one(x, setting) for one in _BEFORE)
    return decide.weighted(x.method) if all(one is None or one.holds for one in before) else None


W_INFINITY: tuple[Hypothesis, ...] = (*_BEFORE, _bound_vanishes)


class Weighted(Theorem):
    """Theorem W and W-infinity (SC', SC''): any schedule, an iterate drawn by the steps' weights."""

    name: ClassVar = "W"
    statement: ClassVar = "the gradient in the preconditioned norm tends to 0, tau drawn in proportion to alpha_t"
    covered: ClassVar = "Generic Adam with v_0 > 0 and nothing added, on any schedule"
    source: ClassVar = "docs/theorems/weighted.md"
    hypotheses: ClassVar = W_INFINITY

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Evaluate the theorem's recursion after T steps."""
        return weighted_bound(Sequences.of_algorithm(x, steps), problem).offer()
