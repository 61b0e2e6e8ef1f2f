r"""Theorem D: decoupled weight decay (AdamW), the box that its iterates stay in, and what it cannot promise.

**Iteration**: :math:`x_{t+1} = (1-\nu_t) x_t - \alpha_t m_t/D_t`; torch's AdamW has
:math:`\nu_t = \text{lr}_t\lambda`.

**Theorem D.** Under the hypotheses of W or E and :math:`|x_t|_\infty \le X`, for any phi in
:math:`(0, 1-s-\zeta)`,

.. math::

    X_w \le \frac{\Psi' + L d X^2 \sum_t \big(\nu_t^2 + (Q_t - \alpha_t)\frac{\nu_t^2}{2\alpha_t}\big)
    + \frac{X^2 s_1}{4\phi} \sum_t \frac{\nu_t^2}{\pi_t}}{(1-s-\zeta-\phi)\,\Pi},

where :math:`\Psi'` has :math:`\tfrac32\alpha_j(Q_j - \alpha_j) + \alpha_j^2` for
:math:`\alpha_j(Q_j - \alpha_j/2)`.

**Box lemma.** If :math:`0 \le \nu_t \le 1`, then :math:`|x_t|_\infty \le \max(|x_1|_\infty, \sup_t
(\alpha_t/\nu_t)\sqrt{M_t})` for all t, whatever the gradients are.

**No theorem says** that the gradient of f tends to 0 under a constant decay: AdamW solves its own equation,
:math:`\nabla f + \lambda D x = 0`, with D the size of the noise (`own_equation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Growth
from generic_adam.schedules.growth import CONSTANT
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.epsilon import Epsilon, weighted_conditions
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import BLOCK, Array, Block, Recursion, Sequences
from generic_adam.theorems.sweep import Sweep, Terms
from generic_adam.theorems.theorem import NOTHING, Assumptions, Finding, Offer, Theorem, as_condition
from generic_adam.theorems.verdicts import Condition, Rate, Status, rate_of
from generic_adam.theorems.weighted import Norms, WeightedBound, adam_terms, concluded, offered, swept


def decay_terms(block: Block, eps_before: Array, *, under_root: bool = False) -> Terms:
    """Return the terms of Theorem D: those of E with a longer step, and the sums over nu_t."""
    plain = adam_terms(block, eps_before, under_root=under_root)
    alpha, nu = block.alpha, block.decay

    def tally(_: Array, Q: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = nu**2 * (1 + (Q - alpha) / (2 * alpha))
            turned = nu**2 / ((1 - block.beta) * Q)
        # Where nothing decays there is nothing to pay; a decay without a step is paid for with infinity.
        still = np.where(alpha > 0, moved, np.inf)
        return np.where(nu > 0, still, 0.0), np.where(nu > 0, turned, 0.0)

    return replace(plain, rest_u=1.5 * alpha, own_u=alpha**2, tally=tally)


def decay_bound(
    sequences: Sequences,
    problem: Problem,
    *,
    s: float | None = None,
    zeta: float | None = None,
    phi: float | None = None,
    under_root: bool = False,
) -> WeightedBound:
    """Evaluate Theorem D after T steps.

    Args:
      sequences: alpha, beta, theta, eps and the decay nu_t, with v_0.
      problem: L, G, d, the gap and the box X.
      s: a number in (0, 1); None takes the best one.
      zeta: likewise, for eps.
      phi: likewise, for the decay.
      under_root: whether eps^2 is added under the root.

    Raises:
      TheoremError: the problem has no box, Nesterov's step is asked for, or eps and v_0 are both 0.
    """
    if problem.box is None:
        raise TheoremError(
            "decoupled weight decay: expected a bound |x|_inf <= X (`box`), or that of box_bound"
        )
    sweep = swept(sequences, partial(decay_terms, under_root=under_root))
    if sweep.has_gradient_weight:
        raise TheoremError("Theorem D has no Nesterov step")
    norms = Norms.of(problem.parts, sequences.initial_v, sweep.largest_eps, under_root=under_root)
    squared = problem.box**2

    def further(done: Sweep) -> tuple[float, float]:
        moved, turned = (float(one) for one in done.tally)
        return problem.smoothness * problem.dimension * squared * moved, squared * norms.s1 / 4 * turned

    with_share = sweep.largest_eps > 0 and sweep.has_momentum
    return concluded(
        "D",
        sweep,
        problem.parts,
        problem,
        norms,
        s=s,
        zeta=zeta if with_share else 0.0,
        phi=phi,
        further=further,
    )


def box_bound(sequences: Sequences, start: float) -> float:
    r"""Return X of the box lemma on the steps 1..T.

    .. math:: X = \max\Big(|x_1|_\infty, \max_{t} \frac{\alpha_t}{\nu_t}\sqrt{M_t}\Big), \qquad 0/0 := 0.

    With Nesterov's step, :math:`a_t\sqrt{M_t} + b_t/\sqrt{q_t}` stands for the root.

    Args:
      sequences: the steps 1..T.
      start: :math:`|x_1|_\infty`.

    Raises:
      TheoremError: some :math:`\nu_t` is above 1, so that x may overshoot 0.
    """
    box, squares = start, 0.0
    for first in range(1, sequences.steps + 1, BLOCK):
        stop = min(first + BLOCK, sequences.steps + 1)
        block = sequences.block(first, stop)
        if block.decay.max() > 1:
            raise TheoremError(f"box lemma: expected nu_t <= 1, got {block.decay.max():g}")
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = np.where(block.theta > 0, block.beta / np.sqrt(block.theta), 0.0)
            M = Recursion(rho**2, stop - first)((1 - block.beta) ** 2 / block.q, squares)
            largest = block.momentum_weight * np.sqrt(M) + block.gradient_weight / np.sqrt(block.q)
            reach = np.where(block.alpha > 0, block.alpha * largest / block.decay, 0.0)
        squares = float(M[-1])
        box = max(box, float(reach.max()))
    return box


def largest_update(beta: float, theta: float) -> float:
    r"""Return U, with :math:`|\hat m_t|/\sqrt{\hat v_t} \le U` for Adam with both bias corrections, every t.

    .. math:: U = \frac{1-\beta}{\sqrt{(1-\beta^2/\theta)(1-\theta)}} \quad (\beta^2 < \theta),

    so that AdamW has :math:`|x_t|_\infty \le \max(|x_1|_\infty, U/\lambda)` for all t. It is attained in the
    limit by :math:`g_t = (\theta/\beta)^t`. The corrected quantity only grows towards U, by
    :math:`(1-a^t)(1-b^t) \le (1-(ab)^{t/2})^2` with :math:`a = \beta^2/\theta`, :math:`b = \theta`.

    Args:
      beta: in [0, 1).
      theta: in (beta^2, 1); below that U is infinite.

    Examples:
      >>> round(largest_update(0.9, 0.999), 7)
      7.2702918
    """
    if theta <= beta**2:
        return math.inf
    return (1 - beta) / math.sqrt((1 - beta**2 / theta) * (1 - theta))


def coupled(problem: Problem, l2: float) -> Problem:
    r"""Return the problem of :math:`f + \tfrac{\lambda}{2}\|x\|^2`: what decay inside the gradient minimises.

    The gap is that of the sum: the given one is kept for f, and the start adds at most
    :math:`\lambda d X^2/2`.

    Args:
      problem: that of f, with a box X.
      l2: lambda.

    Raises:
      TheoremError: the problem has no box, and lambda is not 0.
    """
    if l2 == 0:
        return problem
    if problem.box is None:
        raise TheoremError("weight decay inside the gradient: expected a bound |x|_inf <= X (`box`)")
    added = l2 * problem.box
    # A number bounds the whole gradient's norm, or (gradient_sup) every coordinate alike.
    norm = added * math.sqrt(problem.dimension)
    return replace(
        problem,
        smoothness=problem.smoothness + l2,
        gradient_bound=_raised(problem.gradient_bound, norm, added),
        gap=problem.gap + added * problem.box * problem.dimension / 2,
        gradient_sup=None if problem.gradient_sup is None else _raised(problem.gradient_sup, added, added),
    )


def _raised(bounds: float | Sequence[float], whole: float, each: float) -> float | tuple[float, ...]:
    return tuple(one + each for one in bounds) if isinstance(bounds, Sequence) else bounds + whole


def own_equation(center: float, noise: float, decay: float) -> float:
    r"""Return the x that AdamW tends to on :math:`(x-c)^2/2` with noise :math:`\pm\sigma`: not a minimiser.

    It is the root of :math:`(x - c) + \lambda D x = 0` with :math:`D^2 = \sigma^2 + (x-c)^2`, between 0 and
    c. Without noise D is :math:`|x - c|`, and x is the nearer of c and the corner :math:`\pm1/\lambda`.

    Args:
      center: c.
      noise: sigma.
      decay: lambda > 0.
    """
    near, far = 0.0, abs(center)
    for _ in range(200):
        x = (near + far) / 2
        pull = (x - abs(center)) + decay * math.hypot(noise, x - abs(center)) * x
        near, far = (x, far) if pull < 0 else (near, x)
    return math.copysign((near + far) / 2, center)


class Decay(Theorem):
    """Theorem D: decoupled weight decay beside W or E."""

    name: ClassVar = "D"
    title: ClassVar = "Theorem D"
    statement: ClassVar = Epsilon.statement
    covered: ClassVar = "AdamW: decoupled decay beside what Theorems W and E cover"
    source: ClassVar = "docs/theorems/decay.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "decay"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and decay is what it is about."""
        missing = (
            ()
            if x.decay != NOTHING
            else ("there is no decoupled decay: Theorems W and E are the ones to ask",)
        )
        bare = x.initial_v == 0 and x.eps == NOTHING
        return (*super().outside(x, assume), *missing, *(("v_0 = 0 and nothing added",) if bare else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """E's hypotheses, weights that stay bounded, and decay that vanishes beside alpha_t."""
        conditions, rate = weighted_conditions(x)
        number = len(conditions) + 1
        bounded = assume.weights_bound is not None
        told = (
            f"|x_t|_inf <= {assume.weights_bound:g} is asserted"
            if bounded
            else "no bound on the weights is asserted"
        )
        conditions.append(
            Condition(
                number, Status.HOLDS if bounded else Status.UNDECIDED, f"The weights stay bounded: {told}."
            )
        )
        vanishing, share = _decay_vanishes(x)
        conditions.append(as_condition(number + 1, vanishing))
        slower = rate if share is None or rate is None else _slower(rate, share)
        needs = ("the weights stay bounded, |x_t|_inf <= X",) if bounded else ()
        return self.finding(conditions, slower, needs=needs)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem D after T steps; the problem's box is X."""
        found = decay_bound(Sequences.of_algorithm(x, steps), problem, under_root=x.eps_under_root)
        return offered(found)


def _decay_vanishes(x: Algorithm) -> tuple[Decision, Growth | None]:
    """The alpha-weighted mean of lambda_t^2, lambda_t = nu_t / alpha_t, tends to 0: then decay leaves no floor."""
    # The order of alpha_t itself, step by step: a decay where alpha_t = 0 has no bound.
    alpha, decay = x.method.alpha.growth, x.decay.growth
    if alpha is None or decay is None:
        return Decision(Status.UNDECIDED, "The order of the decay or of alpha_t is not known."), None
    inverse, total = alpha.inverse(), alpha.partial_sums()
    terms = None if inverse is None else (decay * decay * inverse).partial_sums()
    divisor = None if total is None else total.inverse()
    if terms is None or divisor is None:
        return Decision(Status.UNDECIDED, "A sum of the decay is off the scale of growths."), None
    order = CONSTANT.largest(terms) * divisor
    if order.trend < 0:
        return Decision(Status.HOLDS, "The weighted mean of lambda_t^2 tends to 0."), order
    reason = (
        "The decay does not vanish beside alpha_t: grad f = 0 is then not what it solves (Proposition 9.2), and the "
        "bound has the floor (lambda X)^2."
    )
    return Decision(Status.FAILS, reason, decide.GrowthWitness("mean of lambda_t^2", order, "T")), None


def _slower(rate: Rate, share: Growth) -> Rate:
    """The slower of two rates."""
    mine = Growth.of(1, power=rate.power, log=rate.log, loglog=rate.loglog)
    return rate_of(mine.largest(share)) if share.rho.sign_of_log == 0 else rate
