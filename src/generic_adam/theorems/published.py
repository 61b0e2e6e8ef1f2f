"""Published theorems that need little: Robbins and Monro on plain SGD, Reddi, Kale and Kumar's warning."""

from __future__ import annotations

from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.theorems import decide
from generic_adam.theorems.theorem import (
    About,
    Assumptions,
    Confidence,
    Finding,
    Theorem,
    as_condition,
    vanishing_steps,
)
from generic_adam.theorems.verdicts import Condition, Status


class RobbinsMonro(Theorem):
    r"""Robbins and Monro's conditions on plain SGD: sum eta_t = infinity, sum eta_t^2 < infinity."""

    name: ClassVar = "robbins_monro"
    title: ClassVar = "Robbins-Monro"
    statement: ClassVar = "the gradient at an iterate drawn in proportion to the steps tends to 0"
    covered: ClassVar = "stochastic gradient descent, x_{t+1} = x_t - alpha_t g_t"
    source: ClassVar = (
        'Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951'
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"preconditioned"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """Plain SGD alone."""
        return (*super().outside(x, assume), *(() if not x.preconditioned else ("it is about plain SGD",)))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """The two sums."""
        del assume
        return self.finding(robbins_monro_conditions(x.method.alpha), vanishing_steps(x.method.alpha)[1])


def robbins_monro_conditions(alpha: Schedule) -> list[Condition]:
    """The sum of alpha_t is infinite and that of alpha_t^2 finite; exact on the scale of growths."""
    infinite = decide.sum_diverges(alpha, "alpha")
    squares = decide.sum_diverges(alpha * alpha, "alpha^2")
    turned = {Status.HOLDS: Status.FAILS, Status.FAILS: Status.HOLDS}
    finite = Condition(2, turned.get(squares.status, Status.UNDECIDED), squares.reason)
    return [as_condition(1, infinite), finite]


class Reddi2018(Theorem):
    r"""Reddi, Kale and Kumar's warning: for any constants beta < sqrt(theta) some convex problem defeats Adam.

    The problem depends on the constants: for any fixed problem, constants close enough to 1 may do well.
    """

    name: ClassVar = "reddi2018"
    title: ClassVar = "Reddi-Kale-Kumar"
    about: ClassVar = About.WARNING
    statement: ClassVar = (
        "a stochastic convex problem, built for these constants, on which it does not reach the optimum"
    )
    covered: ClassVar = "Adam with constant beta and theta"
    source: ClassVar = 'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018, Theorem 3'
    confidence: ClassVar = Confidence.FORMALISED
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Beta and theta constant, beta < sqrt(theta), compared as exact numbers where they are rational."""
        del assume
        beta, theta = x.method.beta, x.method.theta
        first = [
            Condition(
                number,
                Status.HOLDS if one.is_constant else Status.FAILS,
                f"{name} is {'' if one.is_constant else 'not '}constant.",
            )
            for number, name, one in ((1, "beta_t", beta), (2, "theta_t", theta))
        ]
        if beta.is_constant and theta.is_constant:
            order = decide.positive(theta - beta * beta)
            told = "beta < sqrt(theta)." if order.holds else f"beta < sqrt(theta) {order.status}."
            first.append(Condition(3, order.status, told))
        return self.finding(first)
