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
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import ScheduleError, bias_correction, sqrt
from generic_adam.schedules.factors import collected
from generic_adam.theorems.criteria.constancy import constancy
from generic_adam.theorems.criteria.criterion import Criterion
from generic_adam.theorems.sums import checked_horizon
from generic_adam.theorems.verdicts import Condition, Status, Verdict, verdict_of

if TYPE_CHECKING:
    from generic_adam.methods import Method
    from generic_adam.theorems.problem import Problem

_CITATION = (
    'Defossez, Bottou, Bach, Usunier, "A Simple Convergence Proof of Adam and Adagrad", TMLR 2022, Theorem 4'
)
_LOOKED_AT = 1_000_000
_ROUNDING = 1e-9


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


def defossez(method: Method, horizon: int | None = None) -> Criterion:
    """Check the hypotheses on the sequences; the theorem speaks of a finite number of steps N."""
    steps = None if horizon is None else checked_horizon(horizon)
    conditions = (
        constancy(1, "beta_t", method.beta),
        constancy(2, "theta_t", method.theta),
        _order(method),
        _step_size(method, steps),
        _long_enough(method, steps),
    )
    outcome = {
        Verdict.CERTIFIED: "an explicit bound on E|grad F|^2 after N steps, for gradients bounded in every "
        "coordinate; alpha = 1/sqrt(N) and theta = 1 - 1/N make it O(d log N/sqrt N)",
        Verdict.NOT_CERTIFIED: "the theorem does not apply",
        Verdict.UNDECIDED: "the theorem needs a horizon: give the number of steps"
        if steps is None
        else "whether the theorem applies could not be decided",
    }
    return Criterion(
        name="Defossez et al.",
        citation=_CITATION,
        about="Adam with constants for N steps and epsilon added at every one, bounded gradients",
        conditions=conditions,
        conclusion=outcome[verdict_of(conditions)],
    )


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
      ValueError: the constants are out of order or N is too small.
    """
    if not (alpha > 0 and 0 <= beta < theta < 1):
        raise ValueError(f"expected alpha > 0 and 0 <= beta < theta < 1, got {alpha}, {beta}, {theta}")
    effective = checked_horizon(steps) - beta / (1 - beta)
    if effective <= 0:
        raise ValueError(f"expected more than beta/(1 - beta) = {beta / (1 - beta):.6g} steps, got {steps}")
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
    beta, theta = method.beta(1), method.theta(1)
    text = f"beta = {beta:.6g}, theta = {theta:.6g}"
    if beta < theta:
        return Condition(3, Status.HOLDS, f"beta < theta: {text}")
    return Condition(3, Status.FAILS, f"beta is not below theta: {text}", 1)


def _step_size(method: Method, steps: int | None) -> Condition:
    asked = "alpha_t must be alpha sqrt(1 - theta^t), the second moment's correction and no other"
    if method.theta(1) == 0:
        return Condition(4, Status.FAILS, f"{asked}, and theta_1 = 0", 1)
    quotient = collected(method.alpha / sqrt(bias_correction(method.theta)))
    constant = quotient.constant_value
    if constant is not None:
        return Condition(4, Status.HOLDS, f"alpha_t = {constant:.6g} sqrt(1 - theta^t) for every t")
    last = min(steps or _LOOKED_AT, _LOOKED_AT)
    try:
        scale = quotient.values(1, last + 1)
    except ScheduleError as error:
        return Condition(4, Status.UNDECIDED, f"{asked}: {error}")
    off = ~(np.abs(scale - scale[0]) <= _ROUNDING * abs(scale[0]))
    if off.any():
        witness = int(np.argmax(off)) + 1
        values = f"{scale[0]:.6g} at t = 1 and {scale[witness - 1]:.6g} at t = {witness}"
        return Condition(4, Status.FAILS, f"{asked}; alpha_t/sqrt(1 - theta^t) is {values}", witness)
    if steps is None or steps > last:
        return Condition(4, Status.UNDECIDED, f"{asked}; it is on t = 1..{last:,}")
    return Condition(
        4, Status.HOLDS, f"alpha_t = {scale[0]:.6g} sqrt(1 - theta^t) for every t up to {last:,}"
    )


def _long_enough(method: Method, steps: int | None) -> Condition:
    beta = method.beta.constant_value
    asked = "the number of steps N must exceed beta/(1 - beta)"
    if steps is None:
        return Condition(5, Status.UNDECIDED, f"{asked}; none is given")
    if beta is None:
        return Condition(5, Status.UNDECIDED, f"{asked}; beta_t is not constant by its form")
    least = beta / (1 - beta)
    if steps > least:
        return Condition(5, Status.HOLDS, f"N = {steps:,} exceeds beta/(1 - beta) = {least:.6g}")
    return Condition(5, Status.FAILS, f"N = {steps:,} does not exceed beta/(1 - beta) = {least:.6g}", steps)
