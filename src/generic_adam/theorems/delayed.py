r"""Theorem O: a preconditioner that does not contain the newest gradient (ADOPT; AdaShift without momentum).

**Iteration**: :math:`m_t = \beta_t m_{t-1} + (1-\beta_t)\,g_t/\hat D_t`,
:math:`\hat D_t = \max(\sqrt{v_{t-1}}, e)`, :math:`x_{t+1} = x_t - \alpha_t m_t`, with :math:`v_0 = g_0^2`
from a gradient that is spent on it. **Any theta.**

.. math::

    X_w \le \frac{1}{\Pi}\Big[\text{gap} + \frac{L G^2}{e^2} \sum_t R_t^2 \alpha_t (Q_t - \alpha_t/2)\Big],
    \qquad Q_i = \alpha_i + \beta_{i+1} Q_{i+1}, \quad R_t = \beta_t R_{t-1} + 1-\beta_t,

because :math:`\mathbb{E}_t[g_t/\hat D_t] = \nabla f(x_t)/\hat D_t` exactly and
:math:`\mathbb{E}\|m_t\|^2 \le R_t^2 G^2/e^2`. The constant is :math:`1/e^2`: true for ever, silent at a
practical T with ADOPT's :math:`e = 10^{-6}`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.theorems import decide
from generic_adam.theorems.amsgrad import plain_terms
from generic_adam.theorems.epsilon import Epsilon
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Array, Block, Sequences
from generic_adam.theorems.sweep import Sweep, Terms
from generic_adam.theorems.theorem import Assumptions, Finding, Offer, Theorem, as_condition, vanishing_steps
from generic_adam.theorems.weighted import Norms, WeightedBound, concluded, phrases


def _delayed_terms(_: Sequences, block: Block, __: Array) -> Terms:
    def tally(R: Array, Q: Array) -> tuple[Array]:
        return (R**2 * block.alpha * (Q - block.alpha / 2),)

    # No logarithm: the drift is bounded by 1/e^2, step by step.
    return replace(plain_terms(block), spread=np.zeros(1), tally=tally)


def delayed_bound(x: Sequences, problem: Problem, *, added: bool = False) -> WeightedBound:
    r"""Evaluate Theorem O after T steps.

    Args:
      x: alpha, beta and eps; theta does not matter.
      problem: L, G, d and the gap.
      added: whether :math:`\hat D = \sqrt{v_{t-1}} + e` in place of the larger of the two.

    Raises:
      TheoremError: eps is not positive.
    """
    sweep = Sweep(x, _delayed_terms)
    if sweep.smallest_eps <= 0:
        raise TheoremError("a delayed preconditioner: expected eps > 0, the divisor may be 0 without it")
    norms = Norms.of(problem.parts, x.initial_v, sweep.largest_eps, under_root=not added)
    found = concluded("O", sweep, problem, problem.parts, norms)
    largest = problem.total_gradient_bound / sweep.smallest_eps
    return replace(found, drift=problem.smoothness * largest**2 * float(sweep.tally[0]))


class Delayed(Theorem):
    """Theorem O: a preconditioner that does not see the gradient it divides."""

    name: ClassVar = "O"
    title: ClassVar = "Theorem O"
    statement: ClassVar = Epsilon.statement
    covered: ClassVar = "ADOPT without clipping; AdaShift without momentum; any theta"
    source: ClassVar = "docs/theorems/delayed.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "delayed"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; the delay and eps > 0 are needed."""
        said = {
            "the divisor contains the gradient that it divides": not x.delayed,
            "no constant eps > 0 bounds the divisor below": not (x.eps.is_constant and x.eps(1) > 0),
        }
        return (*super().outside(x, assume), *phrases(said))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """alpha_t -> 0 with an infinite sum, and momentum below 1."""
        del assume
        conditions, rate = vanishing_steps(x.method.alpha)
        conditions.append(as_condition(len(conditions) + 1, decide.bounded_below_one(x.method.beta)))
        return self.finding(conditions, rate)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem O after T steps, eps beside the root: where it is a lower bound of the root, that is more."""
        return delayed_bound(Sequences.of_algorithm(x, steps), problem, added=True).offer()
