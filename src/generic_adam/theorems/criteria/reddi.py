r"""Reddi, Kale and Kumar's warning about constant parameters.

For any constants :math:`0 \le \beta < \sqrt\theta < 1` there is a stochastic convex problem on which Adam
does not converge to the optimum. The problem depends on the constants: for any fixed problem, constants close
enough to 1 may do well. So this is a reason why no theorem certifies such a method for every problem, and no
prediction about yours.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from generic_adam.schedules import Schedule
from generic_adam.theorems.criteria.constancy import constancy
from generic_adam.theorems.criteria.criterion import Criterion
from generic_adam.theorems.verdicts import Condition, Status, Verdict, verdict_of

if TYPE_CHECKING:
    from generic_adam.methods import Method


def reddi(method: Method) -> Criterion:
    """Say whether the warning applies: constant beta_t, constant theta_t, beta < sqrt(theta)."""
    conditions = (
        constancy(1, "beta_t", method.beta),
        constancy(2, "theta_t", method.theta),
        _order(method.beta, method.theta),
    )
    outcome = {
        Verdict.CERTIFIED: "some problem defeats it: a stochastic convex one, built for these constants, on "
        "which it does not reach the optimum; nothing is said about any other problem",
        Verdict.NOT_CERTIFIED: "the warning does not apply",
        Verdict.UNDECIDED: "whether the warning applies could not be decided",
    }
    return Criterion(
        name="Reddi-Kale-Kumar",
        citation='Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018, Theorem 3',
        about="Adam with constant beta and theta, a warning",
        conditions=conditions,
        conclusion=outcome[verdict_of(conditions)],
        warning=True,
    )


def _order(beta: Schedule, theta: Schedule) -> Condition:
    first, second = beta(1), theta(1)
    root = math.sqrt(second)
    text = f"beta = {first:.6g}, sqrt(theta) = {root:.6g}"
    if first < root:
        return Condition(3, Status.HOLDS, f"beta < sqrt(theta): {text}")
    return Condition(3, Status.FAILS, f"beta is not below sqrt(theta): {text}", 1)
