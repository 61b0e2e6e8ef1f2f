r"""Theorems M, M_E and O: divisors that are known before the gradient they divide.

M is AMSGrad (p = 1/2) and Padam, :math:`D_t = \bar v_t^p + e_t` with the running maximum of v: any theta, at the cost
of 1/eps. M_E is Theorem E's bound with :math:`\beta_t` for :math:`\rho_t`: no 1/eps, but a floor for constant theta.
O is ADOPT, and AdaShift without momentum, :math:`\hat D_t = \max(\sqrt{v_{t-1}}, e)`: any theta, at :math:`1/e^2`.
Statements and proofs are on the pages docs/theorems/amsgrad.md and docs/theorems/delayed.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import corrects_bias
from generic_adam.theorems.sequences import Array, Block, Sequences
from generic_adam.theorems.sweep import Recursions, State, Sweep, Terms
from generic_adam.theorems.theorem import (
    BOUNDED_GRADIENTS,
    STARTS_FROM_NOTHING,
    VANISHING_STEPS,
    WITHOUT_NOISE,
    Offer,
    Theorem,
    momentum_below_one,
)
from generic_adam.theorems.weighted import (
    Norms,
    Weighted,
    WeightedBound,
    certain_parts,
    concluded,
    weighted_bound,
)


def _plain(terms: Callable[[Sequences, Block, State], Terms]) -> Recursions:
    """Return a form where beta_t is kept and there is no noise (M, O)."""
    return Recursions(lambda _, block: State(block.beta, block.gain), terms, noisy=False)


def _plain_terms(alpha: Array, gain: Array) -> Terms:
    return Terms(own=alpha, spread=gain, rest_u=alpha, own_u=alpha**2 / 2, weight=gain)


def _monotone_terms(_: Sequences, block: Block, state: State) -> Terms:
    """Return the terms of Theorem M."""
    return _plain_terms(block.alpha, state.gain)


def amsgrad_bound(x: Sequences, problem: Constants) -> WeightedBound:
    r"""Evaluate Theorem M after T steps, for AMSGrad or Padam; :math:`\mathbb{E}\|\nabla f(x_\tau)\|^2 \le` `l2`.

    Args:
      x: alpha, beta, theta and a non-decreasing eps, with v_0 (which the maximum starts from), and the power
        p of Padam; below 1/2 eps has to be constant.
      problem: L, d, the gap and `gradient_sup`.

    Raises:
      TheoremError: there is no bound on the gradients, eps falls, or the first divisor may be 0.
    """
    if not 0 < x.power <= 0.5:
        raise TheoremError(f"power is {x.power!r}, expected a number in (0, 1/2]")
    parts, sweep = certain_parts(problem), Sweep(x, _plain(_monotone_terms))
    if sweep.eps_falls_at:
        raise TheoremError(f"eps: expected a sequence that never falls, and it does at t = {sweep.eps_falls_at}")
    if x.power < 0.5 and sweep.largest_eps > sweep.first_eps:
        raise TheoremError("eps: expected a constant one below the power 1/2")
    floor = sweep.first_eps ** (1 / x.power)
    # (G^2 + eps^(1/p))^(1 - 2p), which is 1 for AMSGrad, multiplies the drift as the square of a scale does.
    scales = [(max(part.second_moment, x.initial_v) + floor) ** (0.5 - x.power) for part in parts]
    scaled = [replace(part, scale=scale) for part, scale in zip(parts, scales, strict=True)]
    first = x.initial_v**x.power + sweep.first_eps
    if x.under_root:
        first = math.hypot(math.sqrt(x.initial_v), sweep.first_eps)
    squares = sum(part.count * part.gradient**2 for part in parts) / first
    return concluded("M", sweep, problem, scaled, jump=squares, norms=Norms.certain(parts, sweep))


def _eps_never_falls(x: Algorithm, _: Setting) -> Decision:
    """e_t never falls; below the power 1/2 it is constant."""
    if x.power.denominator != 2:
        told = f"Below the power 1/2 it is proved for a constant eps; eps_t = {x.eps}."
        return Decision(Status.HOLDS if x.eps.is_constant else Status.UNDECIDED, told)
    if x.eps.is_constant or corrects_bias(x.eps, x.method.theta):
        return Decision(Status.HOLDS, "eps_t never falls.")
    return Decision(Status.UNDECIDED, "Whether eps_t never falls is open.")


class RunningMaximum(Theorem):
    """Theorem M: AMSGrad and Padam with steps that vanish."""

    name: ClassVar = "M"
    statement: ClassVar = "E |grad f(x_tau)|^2 tends to 0, tau drawn in proportion to alpha_t"
    covered: ClassVar = "AMSGrad and Padam with eps > 0, any theta that stays away from 0"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "(A4s)")
    source: ClassVar = "docs/theorems/amsgrad.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum", "power"})
    excludes: ClassVar = {
        "v_t is not replaced by its running maximum": lambda x: not x.running_maximum,
        "eps under the root, and a power other than 1/2": lambda x: x.eps_under_root and x.power.denominator != 2,
        **STARTS_FROM_NOTHING,
    }
    needs: ClassVar = (BOUNDED_GRADIENTS,)
    hypotheses: ClassVar = (*WITHOUT_NOISE, momentum_below_one, _eps_never_falls)

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Return the smaller of M and M_E after T steps."""
        sequences = Sequences.of_algorithm(x, steps)
        found = [amsgrad_bound(sequences, problem).offer()]
        if x.power.denominator == 2:
            with suppress(TheoremError):  # its hypothesis on eps is M's own, and more
                found.append(weighted_bound(sequences, problem).offer())
        return min(found, key=lambda offer: offer.expectation)


def _delayed_terms(_: Sequences, block: Block, state: State) -> Terms:
    def tally(R: Array, Q: Array) -> tuple[Array]:
        return (R**2 * block.alpha * (Q - block.alpha / 2),)

    # No logarithm: the drift is bounded by 1/e^2, step by step.
    return replace(_plain_terms(block.alpha, state.gain), spread=np.zeros(1), tally=tally)


def delayed_bound(x: Sequences, problem: Constants, *, added: bool = False) -> WeightedBound:
    r"""Evaluate Theorem O after T steps.

    Args:
      x: alpha, beta and eps; theta does not matter.
      problem: L, G, d and the gap.
      added: whether :math:`\hat D = \sqrt{v_{t-1}} + e` in place of the larger of the two.

    Raises:
      TheoremError: eps is not positive.
    """
    sweep = Sweep(x, _plain(_delayed_terms))
    if sweep.smallest_eps <= 0:
        raise TheoremError("a delayed preconditioner: expected eps > 0, the divisor may be 0 without it")
    under, beside = (x.initial_v, sweep.largest_eps) if added else (x.initial_v + sweep.largest_eps**2, 0.0)
    s1 = sum(part.count * (math.sqrt(part.second_moment + under) + beside) for part in problem.parts)
    norms = Norms(s1, math.sqrt(problem.total_gradient_bound**2 + under) + beside)
    found = concluded("O", sweep, problem, problem.parts, norms=norms)
    largest = problem.total_gradient_bound / sweep.smallest_eps
    return replace(found, drift=problem.smoothness * largest**2 * float(sweep.tally[0]))


class Delayed(Theorem):
    """Theorem O: a preconditioner that does not see the gradient it divides."""

    name: ClassVar = "O"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = "ADOPT without clipping; AdaShift without momentum; any theta"
    source: ClassVar = "docs/theorems/delayed.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "delayed"})
    excludes: ClassVar = {
        "the divisor contains the gradient that it divides": lambda x: not x.delayed,
        "no constant eps > 0 bounds the divisor below": lambda x: not (x.eps.is_constant and x.eps(1) > 0),
    }
    hypotheses: ClassVar = (*VANISHING_STEPS, momentum_below_one)

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Theorem O after T steps, eps beside the root: where it is a lower bound of the root, that is more."""
        return delayed_bound(Sequences.of_algorithm(x, steps), problem, added=True).offer()
