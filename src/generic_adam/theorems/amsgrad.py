r"""Theorems M and M_E: AMSGrad and Padam, and any preconditioner that never falls.

**Iteration**: :math:`\bar v_t = \max(\bar v_{t-1}, v_t)`, :math:`D_t = \bar v_t^p + e_t` with non-decreasing
:math:`e_t`, :math:`x_{t+1} = x_t - \alpha_t m_t/D_t`. AMSGrad has p = 1/2, Padam :math:`0 < p \le 1/2`.
Assumptions (A1) to (A3) and :math:`|g_{t,k}| \le G_k` almost surely (`Problem.gradient_sup`).

**M.** With :math:`Q_i = \alpha_i + \beta_{i+1} Q_{i+1}`, :math:`R_t = \beta_t R_{t-1} + 1-\beta_t`,
:math:`A_i = L(1-\beta_i) H_i/q_i` and :math:`D_0 = \bar v_0^p + e_1`,

.. math::

    \sum_t \frac{\pi_t}{\Pi}\,\mathbb{E}\sum_k \frac{(\nabla_k f(x_t))^2}{D_{t-1,k}} \le
    \frac{1}{\Pi}\Big[\text{gap} + \max_i Q_i \sum_k \frac{G_k^2}{D_0} + \sum_{k,t} \hat A_t
    (S_{t,k}-S_{t-1,k})\Big],

because :math:`u_t - \beta_t u_{t-1} = -(1-\beta_t) g_t/D_{t-1} + m_t (1/D_{t-1} - 1/D_t)` exactly, and the
jumps telescope. It holds for any theta, and costs 1/eps.

**M_E.** The bound of Theorem E with :math:`\beta_t` for :math:`\rho_t`: no 1/eps, but a floor for constant
theta.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import bias_correction, sqrt
from generic_adam.schedules.enclosure import collected
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision
from generic_adam.theorems.epsilon import corrects_constant
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Array, Block, Sequences
from generic_adam.theorems.sweep import Part, Series, Sweep, Terms
from generic_adam.theorems.theorem import (
    NOTHING,
    Assumptions,
    Finding,
    Offer,
    Theorem,
    as_condition,
    vanishing_steps,
)
from generic_adam.theorems.verdicts import Condition, Status
from generic_adam.theorems.weighted import Norms, WeightedBound, adam_terms, concluded, offered, swept

_ONE = np.ones(1)


def monotone_terms(block: Block, *, rates_in_divisor: bool = False) -> Terms:
    r"""Return the terms of Theorem M.

    Args:
      block: the sequences.
      rates_in_divisor: whether the divisor that does not fall is :math:`D_t/\alpha_t` and not :math:`D_t`.
    """
    gain = 1 - block.beta
    alpha = _ONE if rates_in_divisor else block.alpha
    spread = gain * block.alpha**2 if rates_in_divisor else gain
    return Terms(
        keep=block.beta, gain=gain, own=alpha, spread=spread, rest_u=alpha, own_u=alpha**2 / 2, weight=gain
    )


def _amsgrad_terms(block: Block, eps_before: Array) -> Terms:
    if (block.eps < eps_before * (1 - 1e-12)).any():
        raise TheoremError(
            f"eps: expected a sequence that never falls, and it does from step {block.start} on"
        )
    return monotone_terms(block)


def _certain(problem: Problem) -> tuple[Part, ...]:
    if not problem.sup_parts:
        raise TheoremError("AMSGrad: expected a bound |g_k| <= G_k that always holds (`gradient_sup`)")
    return problem.sup_parts


def _largest(parts: tuple[Part, ...], initial_v: float, power: float, eps: float) -> Norms:
    """Return s1 and s2 for D = v^p + e when no gradient ever exceeds its bound."""
    sizes = [(part.count, max(part.second_moment, initial_v) ** power + eps) for part in parts]
    return Norms(sum(count * size for count, size in sizes), max(size for _, size in sizes))


def amsgrad_bound(sequences: Sequences, problem: Problem, *, power: float = 0.5) -> WeightedBound:
    r"""Evaluate Theorem M after T steps, for AMSGrad or Padam.

    Here :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`.

    Args:
      sequences: alpha, beta, theta and a non-decreasing eps, with v_0 (which the maximum starts from).
      problem: L, d, the gap and `gradient_sup`.
      power: p of Padam; below 1/2 eps has to be constant.

    Raises:
      TheoremError: there is no bound on the gradients, eps falls, or the first divisor may be 0.
    """
    if not 0 < power <= 0.5:
        raise TheoremError(f"power is {power!r}, expected a number in (0, 1/2]")
    parts = _certain(problem)
    sweep = Sweep(sequences, _amsgrad_terms, power)
    first = sequences.initial_v**power + sweep.first_eps
    if first <= 0:
        raise TheoremError(
            "v_0 = 0 and eps = 0: the first step may divide by 0; expected one of them positive"
        )
    if sweep.smallest_eps < sweep.first_eps or (power < 0.5 and sweep.largest_eps > sweep.first_eps):
        raise TheoremError(
            "eps: expected a sequence that never falls, and a constant one below the power 1/2"
        )
    floor = sweep.first_eps ** (1 / power)

    def factor(part: Part) -> float:
        """(G^2 + eps^(1/p))^(1 - 2p), which is 1 for AMSGrad."""
        return (max(part.second_moment, sequences.initial_v) + floor) ** (1 - 2 * power)

    (lengths,) = sweep.sums(parts, Series(lambda piece, _: piece.drift, factor))
    jump = sweep.largest_Q * sum(part.count * part.gradient**2 for part in parts) / first
    norms = _largest(parts, sequences.initial_v, power, sweep.largest_eps)
    return _without_shares("M", sweep, parts, problem, norms, lengths, jump)


def monotone_bound(sequences: Sequences, problem: Problem) -> WeightedBound:
    r"""Evaluate Theorem M for :math:`D_t/\alpha_t` that never falls (AdaGrad, AdamNC, AdaFom).

    Asks for :math:`\alpha_t^2 \le \theta_t\alpha_{t-1}^2` (`regret.gamma_witness`) and
    :math:`e_t/\alpha_t` non-decreasing; here :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`, with weights
    :math:`\pi_t` that do not contain :math:`\alpha_t`.

    Args:
      sequences: alpha, beta, theta and eps, with v_0.
      problem: L, d, the gap and `gradient_sup`.

    Raises:
      TheoremError: there is no bound on the gradients, or the first divisor may be 0.
    """
    parts = _certain(problem)
    sweep = Sweep(sequences, lambda block, _: monotone_terms(block, rates_in_divisor=True))
    first_rate = float(sequences.block(1, 2).alpha[0])
    last_rate = float(sequences.block(sequences.steps, sequences.steps + 1).alpha[-1])
    first = math.sqrt(sweep.first_theta * sequences.initial_v) + sweep.first_eps
    if first <= 0 or last_rate <= 0:
        raise TheoremError("D_t/alpha_t: expected a positive eps or v_0, and rates that stay positive")
    (lengths,) = sweep.sums(parts, Series(lambda piece, _: piece.drift, lambda _: 1.0))
    jump = sweep.largest_Q * sum(part.count * part.gradient**2 for part in parts) * first_rate / first
    norms = _largest(parts, sequences.initial_v, 0.5, sweep.largest_eps)
    scaled = Norms(norms.s1 / last_rate, norms.s2 / last_rate)
    return _without_shares("M", sweep, parts, problem, scaled, lengths, jump)


def _without_shares(
    theorem: str,
    sweep: Sweep,
    parts: tuple[Part, ...],
    problem: Problem,
    norms: Norms,
    lengths: float,
    jump: float,
) -> WeightedBound:
    certain_l1 = sum(part.count * part.gradient for part in parts)
    certain_l2 = sum(part.count * part.gradient**2 for part in parts)
    return WeightedBound(
        theorem=theorem,
        steps=sweep.steps,
        gap=problem.gap,
        noise=0.0,
        drift=problem.smoothness * lengths,
        jump=jump,
        weight=sweep.weight,
        divisor=sweep.weight,
        s=0.0,
        zeta=0.0,
        s1=norms.s1,
        s2=norms.s2,
        trivial_l1=min(problem.gradient_sum_bound, certain_l1),
        trivial_l2=min(problem.total_gradient_bound**2, certain_l2),
    )


def amsgrad_epsilon_bound(
    sequences: Sequences, problem: Problem, *, s: float | None = None, zeta: float | None = None
) -> WeightedBound:
    r"""Evaluate Theorem :math:`M_E` after T steps; here :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`.

    Args:
      sequences: alpha, beta, theta and eps with :math:`e_{t-1} \le e_t \le 2 e_{t-1}`, and v_0.
      problem: L, G, d, the gap and `gradient_sup`.
      s: a number in (0, 1); None takes the best one.
      zeta: likewise, for eps.

    Raises:
      TheoremError: there is no bound on the gradients, the hypothesis on eps fails, or D may be 0.
    """
    certain = _certain(problem)
    sweep = swept(sequences, partial(adam_terms, running_maximum=True))
    # The almost sure bounds are for the divisor alone; the rest of the proof takes second moments.
    norms = _largest(certain, sequences.initial_v, 0.5, sweep.largest_eps)
    share = zeta if sweep.largest_eps > 0 and sweep.has_momentum else 0.0
    bound = concluded("M_E", sweep, problem.parts, problem, norms, s=s, zeta=share)
    trivial = min(bound.trivial_l2, sum(part.count * part.gradient**2 for part in certain))
    return replace(bound, trivial_l2=trivial)


BOUNDED_GRADIENTS = "every stochastic gradient is bounded, |g_t| <= G (A4s)"


class RunningMaximum(Theorem):
    """Theorem M: AMSGrad and Padam with constant theta and steps that vanish."""

    name: ClassVar = "M"
    title: ClassVar = "Theorem M"
    statement: ClassVar = "E |grad f(x_tau)|^2 tends to 0, tau drawn in proportion to alpha_t"
    covered: ClassVar = "AMSGrad and Padam with eps > 0 and constant theta"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "(A4s)")
    source: ClassVar = "docs/theorems/amsgrad.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum", "power"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; the running maximum and something above 0 to start from are needed."""
        missing = () if x.running_maximum else ("v_t is not replaced by its running maximum",)
        bare = x.initial_v == 0 and x.eps == NOTHING
        return (*super().outside(x, assume), *missing, *(("v_0 = 0 and nothing added",) if bare else ()))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """alpha_t -> 0 with an infinite sum, momentum below 1, theta constant, eps_t never falling."""
        del assume
        conditions, rate = vanishing_steps(x.method.alpha)
        conditions.append(as_condition(len(conditions) + 1, decide.bounded_below_one(x.method.beta)))
        theta = x.method.theta
        constant = (
            Decision(Status.HOLDS, f"theta_t = {theta} is constant.")
            if theta.is_constant and 0 < theta(1) < 1
            else Decision(
                Status.UNDECIDED, "theta_t is not a constant in (0, 1), which is what is proved for ever."
            )
        )
        conditions.append(as_condition(len(conditions) + 1, constant))
        steady = (
            x.eps.is_constant
            or corrects_constant(x.eps, theta)
            or collected(x.eps / sqrt(bias_correction(theta))).is_constant
        )
        told = "eps_t never falls." if steady else "Whether eps_t never falls is open."
        conditions.append(Condition(len(conditions) + 1, Status.HOLDS if steady else Status.UNDECIDED, told))
        return self.finding(conditions, rate, needs=(BOUNDED_GRADIENTS,))

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """The smaller of M and M_E after T steps."""
        sequences = Sequences.of_algorithm(x, steps)
        found = [offered(amsgrad_bound(sequences, problem, power=float(x.power)))]
        if x.power.denominator == 2:
            with suppress(TheoremError):  # its hypothesis on eps is M's own, and more
                found.append(offered(amsgrad_epsilon_bound(sequences, problem)))
        return min(found, key=lambda offer: offer.expectation)
