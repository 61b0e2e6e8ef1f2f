"""Published theorems that need little: Robbins and Monro's on plain SGD, Reddi, Kale and Kumar's warning.

They are stated on the page docs/theorems/published.md, beside those that are cited and never asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.theorem import (
    NOTHING,
    About,
    Confidence,
    Hypothesis,
    Theorem,
    infinite_sum,
    not_negative,
)


def _constant(name: str) -> Hypothesis:
    """Return the hypothesis that a sequence of the method is constant."""

    def hypothesis(x: Algorithm, _: Setting) -> Decision:
        one: Schedule = getattr(x.method, name)
        return decide.constant(one, f"{name}_t is constant, {one(1):.6g}.", f"{name}_t is asked to be constant")

    return hypothesis


def _below_root(x: Algorithm, _: Setting) -> Decision:
    """beta < sqrt(theta), compared as exact numbers where they are rational."""
    beta, theta = x.method.beta, x.method.theta
    if not (beta.is_constant and theta.is_constant):
        return Decision(Status.UNDECIDED, "beta < sqrt(theta) is asked of constants.")
    order = decide.positive(theta - beta * beta)
    return replace(order, reason=f"beta < sqrt(theta){'' if order.holds else f' {order.status}'}.")


def _squares_have_a_sum(x: Algorithm, _: Setting) -> Decision:
    """sum alpha_t^2 < infinity."""
    squares = decide.sum_diverges(x.method.alpha * x.method.alpha, "alpha^2")
    turned = {Status.HOLDS: Status.FAILS, Status.FAILS: Status.HOLDS}
    return Decision(turned.get(squares.status, Status.UNDECIDED), squares.reason)


class RobbinsMonro(Theorem):
    r"""Robbins and Monro's conditions on plain SGD: sum eta_t = infinity, sum eta_t^2 < infinity."""

    name: ClassVar = "robbins_monro"
    title: ClassVar = "Robbins-Monro"
    statement: ClassVar = "the gradient at an iterate drawn in proportion to the steps tends to 0"
    covered: ClassVar = "stochastic gradient descent, x_{t+1} = x_t - alpha_t g_t"
    source: ClassVar = (
        'Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951; '
        "proof: docs/theorems/published.md"
    )
    allows: ClassVar = frozenset({"preconditioned"})
    excludes: ClassVar = {"it is about plain SGD": lambda x: x.preconditioned or x.method.beta != NOTHING}
    hypotheses: ClassVar = (infinite_sum, _squares_have_a_sum, not_negative)


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
    hypotheses: ClassVar = (_constant("beta"), _constant("theta"), _below_root)
