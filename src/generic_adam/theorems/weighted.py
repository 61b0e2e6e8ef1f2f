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

Theorem E with :math:`e_t = 0` is this theorem, so `epsilon.adam_terms` holds the recursions of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generic_adam.errors import TheoremError
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sweep import FIRST, SECOND, SHARES, STEPS, Part, Series, Sweep
from generic_adam.theorems.theorem import Offer


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
        paid = sum(share.paid / size for share, size in zip(shares, chosen, strict=True) if size)
        taken = sum(share.weight * size for share, size in zip(shares, chosen, strict=True))
        ratio = (constant + paid) / (divisor - taken)
        if not 0 < ratio < price * (1 - 1e-14):
            break
        price = ratio
        # A share that pays for nothing is 0 in the limit; a number so small changes no digit.
        chosen = [max(share.best(price), 1e-18) if share.fixed is None else share.fixed for share in shares]
    return chosen


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

    The shares are the best ones for the majorants of the summands one by one, a few percent from the best;
    the value is the theorem's for these shares.

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
    if s is None or zeta is None or phi is None:
        first, second, lengths, growth = sweep.sums(parts, FIRST, SECOND, STEPS, SHARES)
        fixed, paid = (0.0, 0.0) if further is None else further(sweep)
        both, whole = sweep.weight, sweep.weight + sweep.weight_own
        constant = problem.gap + second + problem.smoothness * lengths + fixed
        taken = (Share(first, whole, s), Share(growth, both, zeta), Share(paid, both, phi))
        s, zeta, phi = least_ratio(constant, taken, keep * both + sweep.weight_own)
    noise, drift = sweep.sums(parts, Series.noise(s or 1.0), Series.drift(problem.smoothness, zeta or 1.0))
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
