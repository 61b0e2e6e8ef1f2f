"""Theorem W: a bound for any finite sequences, at an iterate drawn by the steps' weights; and its kin.

Statement and proof are on the page docs/theorems/weighted.md. E, N, H, D and :math:`M_E` are the same recursion with
other coefficients (`sweep.ADAM`), so `weighted_bound` evaluates all six, by what the sequences carry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.sequences import Array, Sequences
from generic_adam.theorems.sweep import KEPT, SUMMANDS, Part, Piece, Plain, Series, Sweep, drift_of, noise_of
from generic_adam.theorems.theorem import (
    Hypothesis,
    Offer,
    Theorem,
    momentum_below_one,
    not_negative,
    theta_in_range,
)

_TOLD = ("gap", "noise", "drift", "decay", "jump", "weight", "divisor", "s", "zeta", "phi", "s1", "s2")


@dataclass(frozen=True)
class WeightedBound:
    r"""What a theorem with weights says after T steps: :math:`X_w` is at most the sum of the parts / divisor.

    Args:
      theorem: its letter.
      steps: T.
      gap: :math:`f(x_1) - f^*`.
      noise: the part of :math:`\Psi` that the gradients' noise makes.
      drift: the part that the length of the steps makes.
      decay: the part that decoupled weight decay, or a bias, makes.
      jump: the part that a preconditioner makes which is compared with the one before it (M).
      weight: :math:`\Pi`, the sum of the weights :math:`\pi_t` of the drawn iterate.
      divisor: :math:`(1-s-\zeta-\phi)\,\Pi`.
      s: the share of the descent that is spent on the noise.
      zeta: the share spent on the growth of :math:`e_t`.
      phi: the share spent on weight decay or on a bias.
      s1: what :math:`\sup_t \mathbb{E}\sum_k \hat D_{t,k}` is at most.
      s2: what the root of :math:`\mathbb{E}\max_k \hat D_{t,k}^2` is at most.
      rounding: how far doubles may have carried the numbers, relatively (`sequences.rounding`).
    """

    theorem: str
    steps: int
    gap: float
    noise: float
    drift: float
    weight: float
    divisor: float
    s: float
    zeta: float
    s1: float
    s2: float
    decay: float = 0.0
    jump: float = 0.0
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
        """The bound in the measure that all theorems share, rounded up.

        Raises:
          TheoremError: no step has a weight, so that there is none.
        """
        if self.divisor <= 0:
            raise TheoremError("every learning rate up to the horizon is 0")
        numbers = {name: float(getattr(self, name)) for name in _TOLD}
        up = 1 + self.rounding
        return Offer(up * self.l2, up * self.l1, {**numbers, "X_w": self.value})


@dataclass(frozen=True)
class Share:
    """A share of the divisor that is given up, and what of the numerator it makes smaller: paid/share.

    Args:
      paid: what the reciprocal of the share multiplies in the numerator.
      weight: what the share takes away from the divisor, per unit of it.
      fixed: the share, where it is given; 0 where the theorem has none.
    """

    paid: float
    weight: float
    fixed: float | None = None


def least_ratio(constant: float, shares: Sequence[Share], divisor: float) -> list[float]:
    r"""Return the shares that make (constant + sum of paid/share)/(divisor - sum of weight * share) least.

    Dinkelbach's iteration: with the ratio as the price of the divisor the problem falls apart into one for
    each share. The ratio is quasiconvex in the reciprocals of the shares, so this is its one minimum.

    Args:
      constant: the part of the numerator that depends on none of them.
      shares: what is given up for what.
      divisor: the divisor while nothing is given up.
    """
    if divisor <= 0:  # no step has a weight: no bound, whatever is given up
        return [0.25 if share.fixed is None else share.fixed for share in shares]
    # One that pays for nothing is too small to change a digit.
    chosen = [1e-18 if share.fixed is None else share.fixed for share in shares]
    free = [index for index, share in enumerate(shares) if share.fixed is None and share.paid]
    given = sum(share.weight * share.fixed for share in shares if share.fixed)
    for index in free:  # a start inside: half of the divisor that is left, in equal parts
        chosen[index] = (divisor - given) / (2 * len(free) * shares[index].weight)
    price = math.inf
    for _ in range(100):
        paid = sum(share.paid / size for share, size in zip(shares, chosen, strict=True) if size)
        left = divisor - sum(share.weight * size for share, size in zip(shares, chosen, strict=True))
        ratio = (constant + paid) / left if left > 0 else math.inf
        if not 0 < ratio < price * (1 - 1e-14):
            break
        price = ratio
        for index in free:  # paid/share + price * weight * share is least at the root
            chosen[index] = max(math.sqrt(shares[index].paid / (price * shares[index].weight)), 1e-18)
    return chosen


def over(paid: float, share: float) -> float:
    """Return paid/share; a share of 0 has nothing to pay for."""
    return paid / share if share else 0.0


def parts_of(problem: Constants, scales: Sequence[tuple[int, float]] | None) -> tuple[Part, ...]:
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
    return tuple(Part(n, part.gradient, part.noise, part.second_moment, kappa) for n, kappa in scales)


@dataclass(frozen=True)
class Norms:
    r"""What turns :math:`X_w` into norms of the gradient.

    Args:
      s1: bounds :math:`\mathbb{E}\sum_k \hat D_{t,k}`.
      s2: bounds the root of :math:`\mathbb{E}\max_k \hat D_{t,k}^2`.
    """

    s1: float
    s2: float

    @classmethod
    def of(cls, parts: Sequence[Part], initial_v: float, eps: float, *, under_root: bool = False) -> Norms:
        r"""Return both, for :math:`\hat D = \sqrt{\hat v} + e` or :math:`\sqrt{\hat v + e^2}`."""
        inside, outside = (initial_v + eps * eps, 0.0) if under_root else (initial_v, eps)
        s1 = sum(p.count * (math.sqrt(p.second_moment + inside) + outside) / p.scale for p in parts)
        total = sum(p.count * p.second_moment for p in parts)
        return cls(s1, (math.sqrt(total + inside) + outside) / min(p.scale for p in parts))

    @classmethod
    def certain(cls, parts: Sequence[Part], sweep: Sweep) -> Norms:
        """Return both for D = v^p + e when no gradient ever exceeds its bound."""
        largest = [
            (p.count, max(p.second_moment, sweep.x.initial_v) ** sweep.x.power + sweep.largest_eps) for p in parts
        ]
        return cls(sum(count * size for count, size in largest), max(size for _, size in largest))


def certain_parts(problem: Constants) -> tuple[Part, ...]:
    """Return the coordinates by their almost sure bounds.

    Raises:
      TheoremError: there are none.
    """
    if not problem.sup_parts:
        raise TheoremError("expected a bound |g_k| <= G_k that always holds (`gradient_sup`)")
    return problem.sup_parts


Further = Callable[[Sweep], tuple[float, float]]
"""Two sums over the steps of a sweep that is done: a part of the numerator, and one that 1/phi multiplies."""


def concluded(
    theorem: str,
    sweep: Sweep,
    problem: Constants,
    parts: Sequence[Part],
    norms: Norms,
    *,
    s: float | None = None,
    zeta: float | None = None,
    phi: float | None = None,
    keep: float = 1.0,
    jump: float = 0.0,
    further: Further | None = None,
) -> WeightedBound:
    r"""Put a bound together, the shares chosen so as to make it least where they are not given.

    The shares are the best ones for the majorants of the summands one by one, a few percent from the best;
    the value is the theorem's for these shares. Beyond 2^20 steps, where a second pass costs as much as the
    first, those of the beginning are taken if they are as good.

    Args:
      theorem: its letter.
      sweep: the recursions of the theorem.
      problem: the smoothness and the gap.
      parts: the coordinates.
      norms: s1 and s2.
      s: a number in (0, 1), None for the best one; 0 is taken where the theorem has no such part.
      zeta: likewise.
      phi: likewise.
      keep: what 1 stands for in :math:`1 - s - \zeta - \phi`; less where clipping shortens the gradient.
      jump: what multiplies the largest Q in the numerator.
      further: a part of the numerator that is (fixed + paid/phi).

    Raises:
      TheoremError: a share is outside (0, 1).
    """
    has = {"s": sweep.form.noisy, "zeta": sweep.has_share, "phi": further is not None}
    fixed = [given if there else 0.0 for given, there in zip((s, zeta, phi), has.values(), strict=True)]
    for name, given in zip(has, fixed, strict=True):
        # A share of 0 pays for nothing: it is for theorems without that part.
        if given is not None and not (0 < given < 1 or (given == 0 and not has[name])):
            raise TheoremError(f"{name} is {given!r}, expected a number between 0 and 1")

    def best(done: Sweep, totals: Sequence[float]) -> list[float]:
        first, second, lengths, growth = totals
        steady, paid = further(done) if further else (0.0, 0.0)
        weights = (done.weight + done.weight_own, done.weight, done.weight)
        shares = [Share(*one) for one in zip((first, growth, paid), weights, fixed, strict=True)]
        constant = problem.gap + second + problem.smoothness * lengths + steady
        return least_ratio(constant, shares, keep * done.weight + done.weight_own)

    def at(shares: Sequence[float]) -> tuple[Series, Series]:
        return noise_of(shares[0] or 1.0), drift_of(problem.smoothness, shares[1] or 1.0)

    def result(shares: Sequence[float], noise: float, drift: float) -> WeightedBound:
        (s, zeta, phi), (steady, paid) = shares, further(sweep) if further else (0.0, 0.0)
        return WeightedBound(
            theorem=theorem,
            steps=sweep.x.steps,
            gap=problem.gap,
            noise=noise,
            drift=drift,
            decay=steady + over(paid, phi),
            jump=jump * sweep.largest_Q,
            weight=sweep.weight + sweep.weight_own,
            divisor=(keep - s - zeta - phi) * sweep.weight + (1 - s) * sweep.weight_own,
            s=s,
            zeta=zeta,
            phi=phi,
            s1=norms.s1,
            s2=norms.s2,
            rounding=sweep.rounding(parts),
        )

    chosen = [share for share in fixed if share is not None]
    if len(chosen) < len(fixed):
        early = sweep if sweep.x.steps <= KEPT else Sweep(replace(sweep.x, steps=KEPT), sweep.form)
        chosen = best(early, early.sums(parts, *SUMMANDS))
        if early is not sweep:
            *totals, noise, drift = sweep.sums(parts, *SUMMANDS, *at(chosen))
            better = best(sweep, totals)
            # The bound is flat about its best shares: a tenth of one costs less than half a percent.
            if all(abs(one - other) <= other / 10 for one, other in zip(chosen, better, strict=True)):
                return result(chosen, noise, drift)
            chosen = better
    return result(chosen, *sweep.sums(parts, *at(chosen)))


def sharp_bound(theorem: str, sweep: Sweep, problem: Constants, parts: Sequence[Part]) -> WeightedBound:
    r"""Put a bound of the sharp form together: all of the descent is kept, unless decoupled decay takes a share.

    Args:
      theorem: its letter.
      sweep: the recursions; a form that is not noisy has symmetric noise, and then no noise of the new gradient.
      problem: the smoothness and the gap; decay asks for the box.
      parts: the coordinates.
    """
    symmetric = not sweep.form.noisy

    def size(done: Sweep, piece: Piece, part: Part) -> Array:
        return piece.weight * done.mean_divisor(piece, part, symmetric=symmetric)

    def square(done: Sweep, piece: Piece, part: Part) -> Array:
        return piece.weight * done.mean_divisor(piece, part, symmetric=symmetric) ** 2

    def turned(done: Sweep, piece: Piece, part: Part) -> Array | float:
        # E Dhat nu^2/pi: a decay without a step is paid for with infinity.
        if piece.decay is None:
            return 0.0
        divisor = done.mean_divisor(piece, part, symmetric=symmetric)
        return np.where(piece.decay > 0, divisor * piece.decay**2 / piece.weight, 0.0) / part.scale

    whole = Part(1, problem.total_gradient_bound, 0.0, sum(part.count * part.second_moment for part in parts))
    by_size = Plain(lambda done, piece, part: size(done, piece, part) / part.scale)
    first = (lambda _: {}) if symmetric else sweep.lemma_n
    plain = (by_size, Plain(square, (whole,)), Plain(turned))
    cost, (s1, s2, shrunk) = sweep.cost(parts, problem.smoothness, first, *plain)
    weight, least_scale = sweep.weight + sweep.weight_own, min(part.scale for part in parts)
    moved = share = paid = 0.0
    if sweep.x.decays:
        if problem.weights_bound is None:
            raise TheoremError("decoupled weight decay: expected a bound |x|_inf <= X (`box`), or that of box_bound")
        if sweep.x.looks_ahead or sweep.x.heavy_ball is not None:
            raise TheoremError("Theorem D has no Nesterov step and no heavy ball")
        moved = problem.smoothness * problem.dimension * problem.weights_bound**2 * float(sweep.tally[0])
        paid = problem.weights_bound**2 * shrunk / 4
        share = best_share(problem.gap + cost.total + moved, paid)
    return WeightedBound(
        theorem=theorem,
        steps=sweep.x.steps,
        gap=problem.gap,
        noise=cost.total - cost.drift,
        drift=cost.drift,
        decay=moved + over(paid, share),
        weight=weight,
        divisor=(1 - share) * weight,
        s=0.0,
        zeta=0.0,
        phi=share,
        s1=s1 / weight if weight else 0.0,
        s2=math.sqrt(s2 / weight) / least_scale if weight else 0.0,
        rounding=sweep.rounding(parts),
    )


def best_share(constant: float, paid: float) -> float:
    r"""Return the share :math:`\phi` that makes (constant + paid/:math:`\phi`)/((1 - :math:`\phi`)) least.

    The least value is :math:`(\sqrt{\text{constant} + \text{paid}} + \sqrt{\text{paid}})^2` over the weight.
    """
    return math.sqrt(paid) / (math.sqrt(paid) + math.sqrt(constant + paid)) if paid else 0.0


def letter_of(sweep: Sweep) -> str:
    """The letter of the theorem that `weighted_bound` evaluates."""
    x = sweep.x
    kinds = {"H": x.heavy_ball is not None, "D": x.decays, "M_E": x.running_maximum}
    kinds |= {"N": x.looks_ahead, "W": sweep.largest_eps == 0}
    return next((letter for letter, is_so in kinds.items() if is_so), "E")


def _costs_of_decay(sweep: Sweep, problem: Constants, norms: Norms) -> Further:
    if problem.weights_bound is None:
        raise TheoremError("decoupled weight decay: expected a bound on the weights (`weights_bound`)")
    if sweep.x.looks_ahead or sweep.x.heavy_ball is not None or sweep.x.running_maximum:
        raise TheoremError("Theorem D has no Nesterov step, heavy ball or running maximum")
    squared = problem.weights_bound**2
    moved, turned = problem.smoothness * problem.dimension * squared, squared * norms.s1 / 4
    return lambda done: (moved * float(done.tally[0]), turned * float(done.tally[1]))


def weighted_bound(
    x: Sequences,
    problem: Constants,
    *,
    s: float | None = None,
    zeta: float | None = None,
    phi: float | None = None,
    scales: Sequence[tuple[int, float]] | None = None,
) -> WeightedBound:
    r"""Evaluate Theorem W, E, N, H, D or :math:`M_E` after T steps.

    For :math:`M_E`, :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`.

    Args:
      x: the sequences, and the form of the step.
      problem: L, G, d and the gap; where a variance is given, the noise of a mini-batch counts (W.3). Decay
        asks for `weights_bound`, a running maximum for `gradient_sup`.
      s: a number in (0, 1); None takes the best one.
      zeta: likewise, for eps.
      phi: likewise, for the decay.
      scales: groups of coordinates with proportional learning rates (W.4).

    Raises:
      TheoremError: eps and v_0 are both 0, the hypothesis on e_t fails, a bound of the problem is missing, or v_t is
        raised to another power than 1/2.
    """
    if x.power != 0.5:
        raise TheoremError(f"power is {x.power:g}: Theorem M is the one for powers below 1/2")
    sweep, parts = Sweep(x), parts_of(problem, scales)
    # For M_E the almost sure bounds are for the divisor alone; the rest of the proof takes second moments.
    norms = (
        Norms.certain(certain_parts(problem), sweep)
        if x.running_maximum
        else Norms.of(parts, x.initial_v, sweep.largest_eps, under_root=x.under_root)
    )
    further = _costs_of_decay(sweep, problem, norms) if sweep.x.decays else None
    return concluded(letter_of(sweep), sweep, problem, parts, norms, s=s, zeta=zeta, phi=phi, further=further)


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
        """The theorem's recursion after T steps."""
        return weighted_bound(Sequences.of_algorithm(x, steps), problem).offer()
