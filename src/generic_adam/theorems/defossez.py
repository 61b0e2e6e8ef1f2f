r"""Defossez, Bottou, Bach and Usunier's bound for Adam with constants on a finite horizon (their Theorem 4).

Their Adam has :math:`m_n = \beta m_{n-1} + g_n`, :math:`v_n = \theta v_{n-1} + g_n^2` and
:math:`x_n = x_{n-1} - \alpha_n m_n/\sqrt{\epsilon + v_n}`, with
:math:`\alpha_n = \alpha(1-\beta)\sqrt{(1-\theta^n)/(1-\theta)}`; in the averages of Generic Adam that is
:math:`\alpha_t = \alpha\sqrt{1-\theta^t}`: the correction of the second moment, and none of the first. (They
add :math:`\epsilon` to :math:`v_n` at every step, :math:`(1-\theta)\epsilon` on the scale of an average;
Generic Adam starts from it.) With
:math:`\|g\|_\infty \le R - \sqrt\epsilon`, :math:`\tilde N = N - \beta/(1-\beta) > 0` and :math:`\tau = j`
with probability proportional to :math:`1-\beta^{N-j}`,

.. math::

    \mathbb{E}\|\nabla F(x_\tau)\|^2 \le \frac{2R\,(F(x_0)-F^*)}{\alpha\tilde N}
    + \frac{E}{\tilde N}\Big(\log\Big(1+\frac{R^2}{(1-\theta)\epsilon}\Big) - N\log\theta\Big),

.. math::

    E = \frac{\alpha d R L(1-\beta)}{(1-\beta/\theta)(1-\theta)}
    + \frac{12 d R^2\sqrt{1-\beta}}{(1-\beta/\theta)^{3/2}\sqrt{1-\theta}}
    + \frac{2\alpha^2 d L^2\beta}{(1-\beta/\theta)(1-\theta)^{3/2}}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.sums import checked_horizon
from generic_adam.theorems import decide
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.theorem import About, Assumptions, Confidence, Finding, Theorem
from generic_adam.theorems.verdicts import Condition, Status


@dataclass(frozen=True)
class DefossezBound:
    """The right side of Theorem 4 with its parts.

    Args:
      value: what E |grad F(x_tau)|^2 is at most.
      start: the part that the gap at the start contributes.
      noise: the part that E contributes.
      E: the constant E.
      effective_steps: N - beta/(1 - beta).
    """

    value: float
    start: float
    noise: float
    E: float
    effective_steps: float


class Defossez(Theorem):
    """Their Theorem 4: Adam with constants for N steps."""

    name: ClassVar = "defossez2020"
    title: ClassVar = "Defossez et al. 2020"
    about: ClassVar = About.BOUND
    statement: ClassVar = (
        "an explicit bound on E |grad f(x_tau)|^2 after N steps, O(d log N/sqrt N) for alpha = 1/sqrt(N) and "
        "theta = 1 - 1/N"
    )
    covered: ClassVar = "Adam with constants, epsilon under the root and the second moment's correction alone"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "|g_{t,k}| <= R - sqrt(epsilon)")
    source: ClassVar = (
        'Defossez, Bottou, Bach, Usunier, "A Simple Convergence Proof of Adam and Adagrad", TMLR 2022, '
        "Theorem 4"
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Constants, beta < theta, alpha_t = alpha sqrt(1 - theta^t), N > beta/(1 - beta)."""
        del assume
        return self.finding(defossez_conditions(x.method, x.horizon))


def defossez_conditions(method: Method, steps: int | None) -> tuple[Condition, ...]:
    """The hypotheses on the sequences; the theorem speaks of a finite number of steps N."""
    return (
        constancy(1, "beta_t", method.beta),
        constancy(2, "theta_t", method.theta),
        _order(method),
        _step_size(method),
        _long_enough(method, steps),
    )


def constancy(number: int, name: str, schedule: Schedule) -> Condition:
    """Whether a sequence is constant by its form."""
    if schedule.is_constant:
        return Condition(number, Status.HOLDS, f"{name} is constant, {schedule(1):.6g}.")
    return Condition(number, Status.FAILS, f"{name} is not constant by its form.")


def defossez_bound(alpha: float, beta: float, theta: float, problem: Problem, steps: int) -> DefossezBound:
    r"""Evaluate Theorem 4.

    Args:
      alpha: :math:`\alpha`, with alpha_t = alpha sqrt(1 - theta^t).
      beta: the momentum constant, below theta.
      theta: the second-moment constant.
      problem: its `gradient_bound` is read here as a bound on every coordinate of every stochastic gradient,
        so that :math:`R = G + \sqrt\epsilon`, and its `epsilon` as the one added to their :math:`v_n`.
      steps: N, more than beta/(1 - beta).

    Raises:
      TheoremError: the constants are out of order or N is too small.
    """
    if not (alpha > 0 and 0 <= beta < theta < 1):
        raise TheoremError(f"expected alpha > 0 and 0 <= beta < theta < 1, got {alpha}, {beta}, {theta}")
    effective = checked_horizon(steps) - beta / (1 - beta)
    if effective <= 0:
        raise TheoremError(f"expected more than beta/(1 - beta) = {beta / (1 - beta):.6g} steps, got {steps}")
    R = problem.coordinate_bound + math.sqrt(problem.epsilon)
    L, d = problem.smoothness, problem.dimension
    share, rest = 1 - beta / theta, 1 - theta
    E = (
        alpha * d * R * L * (1 - beta) / (share * rest)
        + 12 * d * R**2 * math.sqrt(1 - beta) / (share**1.5 * math.sqrt(rest))
        + 2 * alpha**2 * d * L**2 * beta / (share * rest**1.5)
    )
    start = 2 * R * problem.gap / (alpha * effective)
    noise = E / effective * (math.log1p(R**2 / (rest * problem.epsilon)) - steps * math.log(theta))
    return DefossezBound(start + noise, start, noise, E, effective)


def _order(method: Method) -> Condition:
    decision = decide.positive(method.theta - method.beta)
    told = f"beta_t < theta_t: {decision.reason}"
    return Condition(3, decision.status, told, 1 if decision.status is Status.FAILS else None)


def _step_size(method: Method) -> Condition:
    asked = "alpha_t must be alpha sqrt(1 - theta^t), the second moment's correction and no other"
    if method.theta(1) == 0:
        return Condition(4, Status.FAILS, f"{asked}, and theta_1 = 0.", 1)
    quotient = collected(method.alpha / sqrt(bias_correction(method.theta)))
    if quotient.is_constant:
        return Condition(4, Status.HOLDS, f"alpha_t = {quotient(1):.6g} sqrt(1 - theta^t) for every t.")
    return Condition(4, Status.FAILS, f"{asked}; by its form it is not.")


def _long_enough(method: Method, steps: int | None) -> Condition:
    asked = "the number of steps N must exceed beta/(1 - beta)"
    if steps is None:
        return Condition(5, Status.UNDECIDED, f"{asked}; none is given.")
    if not method.beta.is_constant:
        return Condition(5, Status.UNDECIDED, f"{asked}; beta_t is not constant by its form.")
    decision = decide.positive(as_schedule(steps) * (1 - method.beta) - method.beta)
    told = "exceeds" if decision.holds else "does not exceed"
    return Condition(5, decision.status, f"N = {steps:,} {told} beta/(1 - beta).")
