r"""Theorem W: a bound for any finite sequences, at an iterate drawn by the steps' weights.

**Iteration**: :math:`v_t = \theta_t v_{t-1} + q_t g_t^2`, :math:`m_t = \beta_t m_{t-1} + (1-\beta_t) g_t`,
:math:`x_{t+1} = x_t - \alpha_t m_t/\sqrt{v_t}`, from :math:`v_0 = \epsilon > 0` and :math:`m_0 = 0`.

**Hypotheses**: :math:`\alpha_t \ge 0`, not all 0; :math:`0 \le \beta_t < 1`; :math:`0 < \theta_t < 1`.
Nothing else: warm-up from 0, cosine to 0, restarts and moving betas are inside. Of the problem (A1) to (A4),
conditional second moments.

**Conclusion**, with :math:`P(\tau = t) = \pi_t/\Pi` and any s in (0, 1):

.. math::

    X_w := \sum_t \frac{\pi_t}{\Pi}\,\mathbb{E}\sum_k \frac{(\nabla_k f(x_t))^2}{\hat D_{t,k}}
    \le \frac{\Psi}{(1-s)\,\Pi}, \qquad
    \big(\mathbb{E}\|\nabla f(x_\tau)\|_2^{4/3}\big)^{3/2} \le s_2 X_w, \qquad
    \mathbb{E}\|\nabla f(x_\tau)\|_1 \le \sqrt{s_1 X_w}.

Theorem E with :math:`e_t = 0` is this theorem, so `adam_terms` holds the recursions of both, and of N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.theorems import decide
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Array, Block, Sequences
from generic_adam.theorems.sweep import FIRST, KEPT, SECOND, SHARES, STEPS, Form, Part, Series, Sweep, Terms
from generic_adam.theorems.theorem import Assumptions, Finding, Offer, Theorem, as_condition

# How far rounding may carry a share past its bounds.
_ROUNDING = 1e-9
# A long run takes the shares of its beginning where they make its bound no more than this much larger.
_GOOD_ENOUGH = 1.002


@dataclass(frozen=True)
class WeightedBound:
    r"""What a theorem with weights says after T steps: :math:`X_w` is at most the sum of the parts / divisor.

    Args:
      theorem: its letter.
      steps: T.
      gap: :math:`f(x_1) - f^*`.
      noise: the part of :math:`\Psi` that the gradients' noise makes.
      drift: the part that the length of the steps makes.
      decay: the part that decoupled weight decay makes.
      jump: the part that a preconditioner makes which is compared with the one before it (M).
      weight: :math:`\Pi`, the sum of the weights :math:`\pi_t` of the drawn iterate.
      divisor: :math:`(1-s-\zeta-\phi)\,\Pi`.
      s: the share of the descent that is spent on the noise.
      zeta: the share spent on the growth of :math:`e_t`.
      phi: the share spent on weight decay or on a bias.
      s1: what :math:`\sup_t \mathbb{E}\sum_k \hat D_{t,k}` is at most.
      s2: what the root of :math:`\mathbb{E}\max_k \hat D_{t,k}^2` is at most.
      trivial_l1: what :math:`\mathbb{E}\|\nabla f(x_\tau)\|_1` is at most with no theorem at all.
      trivial_l2: what :math:`(\mathbb{E}\|\nabla f(x_\tau)\|_2^{4/3})^{3/2}` is at most with none.
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
    trivial_l1: float
    trivial_l2: float
    decay: float = 0.0
    jump: float = 0.0
    phi: float = 0.0

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

    @property
    def informative(self) -> bool:
        """Whether one of the bounds is below its trivial one; else the theorem is silent."""
        return self.l1 < self.trivial_l1 or self.l2 < self.trivial_l2


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

    def best(self, price: float) -> float:
        """Return the share that makes paid/share + price * weight * share least; a given one stays."""
        if self.fixed is not None:
            return self.fixed
        return math.sqrt(self.paid / (price * self.weight))


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
        return [share.fixed or 0.0 for share in shares]
    free = sum(1 for share in shares if share.fixed is None)
    given = sum(share.weight * share.fixed for share in shares if share.fixed)
    # A start inside: half of the divisor that is left, in equal parts.
    chosen = [
        (divisor - given) / (2 * free * share.weight) if share.fixed is None else share.fixed
        for share in shares
    ]
    price = math.inf
    for _ in range(100):
        ratio = _ratio(constant, shares, chosen, divisor)
        if not 0 < ratio < price * (1 - 1e-14):
            break
        price = ratio
        # A share that pays for nothing is 0 in the limit; a number so small changes no digit.
        chosen = [max(share.best(price), 1e-18) if share.fixed is None else share.fixed for share in shares]
    return chosen


def _ratio(constant: float, shares: Sequence[Share], chosen: Sequence[float], divisor: float) -> float:
    """(constant + sum of paid/share)/(divisor - sum of weight * share); infinite where nothing is left to divide by."""
    paid = sum(share.paid / size for share, size in zip(shares, chosen, strict=True) if size)
    left = divisor - sum(share.weight * size for share, size in zip(shares, chosen, strict=True))
    return (constant + paid) / left if left > 0 else math.inf


def checked_share(name: str, given: float | None) -> float | None:
    """Return a given share in (0, 1), or None for the best one.

    Raises:
      TheoremError: the number is outside.
    """
    if given is not None and not 0 <= given < 1:
        raise TheoremError(f"{name} is {given!r}, expected a number between 0 and 1")
    return given


def parts_of(problem: Problem, scales: Sequence[tuple[int, float]] | None) -> tuple[Part, ...]:
    r"""Return the problem's coordinates, in groups with proportional learning rates where `scales` says so.

    Args:
      problem: its `parts` hold for every coordinate.
      scales: (number of coordinates, :math:`\kappa`) of each group,
        :math:`\alpha^{(k)}_t = \kappa_k \alpha_t` (W.4).

    Raises:
      TheoremError: the groups do not add up to the dimension, or the coordinates differ within a group.
    """
    if scales is None:
        return problem.parts
    if sum(count for count, _ in scales) != problem.dimension or min(scale for _, scale in scales) <= 0:
        raise TheoremError(
            f"groups: expected positive scales of {problem.dimension} coordinates in all, got {scales}"
        )
    if len(problem.parts) != 1:
        raise TheoremError(
            "groups with proportional rates: expected the same gradient bound in all coordinates"
        )
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
        inside, outside = (initial_v + eps**2, 0.0) if under_root else (initial_v, eps)
        s1 = sum(p.count * (math.sqrt(p.second_moment + inside) + outside) / p.scale for p in parts)
        total = sum(p.count * p.second_moment for p in parts)
        return cls(s1, (math.sqrt(total + inside) + outside) / min(p.scale for p in parts))


def swept(sequences: Sequences, form: Form, power: float = 0.5) -> Sweep:
    """The recursions of a theorem whose first divisor is positive.

    Raises:
      TheoremError: v_0 and eps are both 0.
    """
    sweep = Sweep(sequences, form, power)
    if sequences.initial_v == 0 and sweep.smallest_eps <= 0:
        raise TheoremError(
            "v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive"
        )
    return sweep


def concluded(
    theorem: str,
    sweep: Sweep,
    parts: Sequence[Part],
    problem: Problem,
    norms: Norms,
    *,
    s: float | None,
    zeta: float | None,
    phi: float | None = 0.0,
    keep: float = 1.0,
    further: Callable[[Sweep], tuple[float, float]] | None = None,
) -> WeightedBound:
    r"""Put a bound together, the shares chosen so as to make it least where they are not given.

    The shares are the best ones for the majorants of the summands one by one, a few percent from the best
    (beyond 2^20 steps those of the beginning, where they are as good); the value is the theorem's for these shares.

    Args:
      theorem: its letter.
      sweep: the recursions of the theorem.
      parts: the coordinates.
      problem: the smoothness and the gap.
      norms: s1 and s2.
      s: a number in (0, 1), None for the best one; 0 where the theorem has no such part.
      zeta: likewise.
      phi: likewise.
      keep: what 1 stands for in :math:`1 - s - \zeta - \phi`; less where clipping shortens the gradient.
      further: a part of the numerator that is (fixed + paid/phi), once the sweep has its tally.
    """
    s, zeta, phi = (checked_share(name, x) for name, x in (("s", s), ("zeta", zeta), ("phi", phi)))
    given = (s, zeta, phi)

    def best(
        done: Sweep, totals: Sequence[float], guess: Sequence[float] | None = None
    ) -> tuple[Sequence[float], float]:
        """The best shares, and how much larger the model's ratio is with the guessed ones."""
        first, second, lengths, growth = totals
        fixed, paid = (0.0, 0.0) if further is None else further(done)
        both = done.weight
        constant = problem.gap + second + problem.smoothness * lengths + fixed
        taken = [
            Share(*one)
            for one in ((first, both + done.weight_own, s), (growth, both, zeta), (paid, both, phi))
        ]
        divisor = keep * both + done.weight_own
        chosen = least_ratio(constant, taken, divisor)
        if guess is None or divisor <= 0:
            return chosen, 1.0
        return chosen, _ratio(constant, taken, guess, divisor) / _ratio(constant, taken, chosen, divisor)

    def at(chosen: Sequence[float]) -> tuple[Series, Series]:
        return Series.noise(chosen[0] or 1.0), Series.drift(problem.smoothness, chosen[1] or 1.0)

    summands = (FIRST, SECOND, STEPS, SHARES)
    if None not in given:
        chosen = [share or 0.0 for share in given]
        noise, drift = sweep.sums(parts, *at(chosen))
    elif sweep.steps <= KEPT:
        chosen, _ = best(sweep, sweep.sums(parts, *summands))
        noise, drift = sweep.sums(parts, *at(chosen))
    else:  # one pass over a long run, where the shares of its beginning are as good as the best ones
        beginning = sweep.beginning()
        chosen, _ = best(beginning, beginning.sums(parts, *summands))
        *totals, noise, drift = sweep.sums(parts, *summands, *at(chosen))
        better, excess = best(sweep, totals, chosen)
        if not excess <= _GOOD_ENOUGH:
            chosen = better
            noise, drift = sweep.sums(parts, *at(chosen))
    s, zeta, phi = chosen
    fixed, paid = (0.0, 0.0) if further is None else further(sweep)
    both, own = sweep.weight, sweep.weight_own
    return WeightedBound(
        theorem=theorem,
        steps=sweep.steps,
        gap=problem.gap,
        noise=noise,
        drift=drift,
        decay=fixed + (paid / phi if phi else 0.0),
        weight=both + own,
        divisor=(keep - s - zeta - phi) * both + (1 - s) * own,
        s=s,
        zeta=zeta,
        phi=phi,
        s1=norms.s1,
        s2=norms.s2,
        trivial_l1=problem.gradient_sum_bound,
        trivial_l2=problem.total_gradient_bound**2,
    )


def offered(found: WeightedBound) -> Offer:
    """A bound with weights in the common measure.

    Raises:
      TheoremError: no step has a weight, so that there is none.
    """
    if found.divisor <= 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    names = ("gap", "noise", "drift", "decay", "jump", "weight", "divisor", "s", "zeta", "phi", "s1", "s2")
    numbers = {name: float(getattr(found, name)) for name in names}
    return Offer(found.l2, found.l1, {**numbers, "X_w": found.value})


def adam_terms(
    block: Block, eps_before: Array, *, under_root: bool = False, running_maximum: bool = False
) -> Terms:
    r"""Return the terms of Theorems W, E and N, or of :math:`M_E` with a running maximum.

    Args:
      block: the sequences.
      eps_before: :math:`e_{t-1}`.
      under_root: whether :math:`D_t = \sqrt{v_t + e_t^2}`.
      running_maximum: whether :math:`D_t = \sqrt{\max_{i\le t} v_i} + e_t`; then :math:`\beta_t` stands for
        :math:`\rho_t` everywhere but in M.
    """
    alpha, gain, q = block.alpha, 1 - block.beta, block.q
    a, b = block.momentum_weight, block.gradient_weight
    if block.theta[0] > 0:
        rho = block.beta / np.sqrt(block.theta)
    else:  # theta_1 = 0: nothing is inherited by the first step
        rho = np.where(
            block.theta > 0, block.beta / np.sqrt(np.where(block.theta > 0, block.theta, 1.0)), 0.0
        )
    keep = block.beta if running_maximum else rho
    root_q = np.sqrt(q)
    share_e = share_g = None
    if block.eps.any() and keep.any():
        share = _share(block, eps_before, under_root=under_root, running_maximum=running_maximum)
        common = (share * keep) ** 2 * (0.5 / gain)
        share_e, share_g = common * block.eps, common * root_q
    has_gradient = bool(b.any())
    return Terms(
        keep=keep,
        gain=gain,
        own=alpha * a,
        spread=gain,
        rest_u=alpha * (a + b / 2),
        own_u=alpha**2 * ((a + b) * a / 2),
        rest_g=alpha * b / 2 if has_gradient else None,
        own_g=alpha**2 * (a + b) * b / 2 if has_gradient else None,
        first=gain / root_q,
        first_own=alpha * b / root_q if has_gradient else None,
        second=keep if keep.any() else None,
        share_e=share_e,
        share_g=share_g,
        weight=gain,
        weight_own=alpha * b if has_gradient else None,
        squares=(rho**2, gain**2 / q),
    )


def _share(block: Block, eps_before: Array, *, under_root: bool, running_maximum: bool) -> Array:
    r"""Return :math:`s_t`, checked against the hypothesis on :math:`e_t`; 0 at t = 1.

    Raises:
      TheoremError: the hypothesis fails, with the step at which it does.
    """
    eps, before = block.eps, eps_before
    theta, q = (np.ones(1), np.zeros(1)) if running_maximum else (block.theta, block.q)
    # e^2 - theta e'^2 without cancellation.
    surplus = (eps - before) * (eps + before) + q * before**2
    share = surplus / eps**2 if under_root else surplus / (eps * (eps + np.sqrt(theta) * before))
    if block.start == 1:  # nothing is inherited by the first step
        share = np.broadcast_to(share, block.stop - 1).copy()
        share[0] = 0.0
    upper = np.inf if under_root else 0.5
    least, most = float(share.min()), float(share.max())
    if not (least >= -_ROUNDING and most <= upper + _ROUNDING):
        inside = (share >= -_ROUNDING) & (share <= upper + _ROUNDING)
        at = block.start + int(np.argmin(inside))
        root = "" if running_maximum else "sqrt(theta_t) "
        bound = "" if under_root else f" <= 2 {root}e_(t-1)"
        raise TheoremError(f"eps: expected {root}e_(t-1) <= e_t{bound}, which fails at t = {at}")
    return share if least >= 0 else np.maximum(share, 0.0)


def epsilon_bound(
    sequences: Sequences,
    problem: Problem,
    *,
    s: float | None = None,
    zeta: float | None = None,
    under_root: bool = False,
    scales: Sequence[tuple[int, float]] | None = None,
) -> WeightedBound:
    """Evaluate Theorem E after T steps; it is W where eps is 0, N where the gradient has its own weight.

    Args:
      sequences: alpha, beta, theta, eps and Nesterov's weights, with v_0.
      problem: L, G, d and the gap; where a variance is given, the noise of a mini-batch counts (W.3).
      s: a number in (0, 1); None takes the best one.
      zeta: likewise, for eps.
      under_root: whether eps^2 is added under the root.
      scales: groups of coordinates with proportional learning rates (W.4).

    Raises:
      TheoremError: eps and v_0 are both 0, or the hypothesis on e_t fails.
    """
    sweep = swept(sequences, lambda block, before: adam_terms(block, before, under_root=under_root))
    parts = parts_of(problem, scales)
    norms = Norms.of(parts, sequences.initial_v, sweep.largest_eps, under_root=under_root)
    letter = "W" if sweep.largest_eps == 0 else "N" if sweep.has_gradient_weight else "E"
    with_share = sweep.largest_eps > 0 and sweep.has_momentum
    return concluded(letter, sweep, parts, problem, norms, s=s, zeta=zeta if with_share else 0.0)


class Weighted(Theorem):
    """Theorem W and W-infinity (SC', SC''): any schedule, an iterate drawn by the steps' weights."""

    name: ClassVar = "W"
    title: ClassVar = "Theorem W"
    statement: ClassVar = (
        "the gradient in the preconditioned norm tends to 0, tau drawn in proportion to alpha_t"
    )
    covered: ClassVar = "Generic Adam with v_0 > 0 and nothing added, on any schedule"
    source: ClassVar = "docs/theorems/weighted.md"

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """W-infinity on the scale of growths."""
        del assume
        decision = decide.weighted(x.method)
        return self.finding([as_condition(1, decision)], decision.rate)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem W after T steps."""
        return offered(epsilon_bound(Sequences.of_algorithm(x, steps), problem))
