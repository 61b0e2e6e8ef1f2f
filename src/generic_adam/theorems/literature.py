"""Published theorems that need little.

Robbins and Monro on plain SGD; Mukkamala and Hein, and Reddi, Kale and Kumar, on regret; the latter's warning; Defossez
et al.'s bound on Adam with constants. They are stated on the page docs/theorems/published.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.growth import CONSTANT, LINEAR, Growth
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, GrowthWitness, Rate, Status, StepWitness
from generic_adam.theorems.regret import MONOTONE, Regret
from generic_adam.theorems.theorem import (
    NOTHING,
    About,
    Confidence,
    Hypothesis,
    Offer,
    Theorem,
    demand,
    infinite_sum,
    not_negative,
)
from generic_adam.theorems.weighted import certain_parts


def _constant(name: str) -> Hypothesis:
    """A sequence of the method is constant."""

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


def _no_momentum(x: Algorithm, _: Setting) -> Decision:
    if x.method.beta == NOTHING:
        return Decision(Status.HOLDS, "beta_t = 0: RMSProp has no momentum.")
    found = decide.not_negative(-x.method.beta)
    return replace(found, reason="RMSProp has no momentum: beta_t = 0 is asked for.")


def _falls_as_root(name: str, schedule: Schedule) -> Decision:
    scaled, asked = collected(schedule * sqrt(t)), f"{name} is asked to be a positive number over sqrt(t)"
    if scaled.is_constant and not scaled(1) > 0:
        return Decision(Status.FAILS, f"{asked}; it is {scaled(1):.6g}/sqrt(t).", StepWitness(1, schedule(1)))
    return decide.constant(scaled, f"{name} = {scaled(1):.6g}/sqrt(t).", asked)


def _root_steps(x: Algorithm, _: Setting) -> Decision:
    return _falls_as_root("alpha_t", x.method.alpha)


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


def _window(x: Algorithm, _: Setting) -> Decision:
    """c <= t (1 - theta_t) <= 1 for every t, with some c > 0."""
    asked = "some 0 < c <= 1 must satisfy c <= t (1 - theta_t) <= 1 for every t"
    scaled = collected((1 - x.method.theta) * t)
    growth = scaled.growth
    if growth is not None and growth.trend != 0:
        witness = GrowthWitness("t (1 - theta_t)", growth)
        return Decision(Status.FAILS, f"{asked}; t (1 - theta_t) is of order {growth}.", witness)
    for decision in (decide.not_negative(1 - scaled), decide.positive(scaled)):
        if not decision.holds:
            return replace(decision, reason=f"{asked}: {decision.reason}")
    if growth is None or growth.sign <= 0:
        return Decision(Status.UNDECIDED, f"{asked}; the order of t (1 - theta_t) is not known.")
    return Decision(Status.HOLDS, f"{asked}: it does.")


class MukkamalaHein(Theorem):
    """Average regret O(1/sqrt T) of RMSProp with theta_t between 1 - 1/t and 1 - c/t."""

    name: ClassVar = "mukkamala_hein2017"
    title: ClassVar = "Mukkamala-Hein 2017"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret O(1/sqrt T) on convex problems with bounded domain and gradients"
    covered: ClassVar = "RMSProp, delta/sqrt(t) added to the root"
    assumptions: ClassVar = Regret.assumptions
    source: ClassVar = (
        'Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017; '
        "a case of Theorem R"
    )
    allows: ClassVar = frozenset({"initial_v", "eps"})
    takes: ClassVar = ("convex",)
    needs: ClassVar = Regret.needs
    excludes: ClassVar = {"it adds eps to the root, not under it": lambda x: x.eps_under_root}
    hypotheses: ClassVar = (_no_momentum, _root_steps, _window, lambda x, _: _falls_as_root("eps_t", x.eps))
    rate: ClassVar = Rate(Fraction(-1, 2))


def _never_above_the_first(x: Algorithm, _: Setting) -> Decision:
    """0 <= beta_t <= beta_1 < 1, shown where beta_t never rises."""
    inside = decide.bounded_below_one(x.method.beta)
    if not inside.holds or decide.never_rises(x.method.beta).holds:
        return inside
    return Decision(Status.UNDECIDED, "Whether beta_t <= beta_1 for every t is open: it does not only fall.")


def _middle_term(x: Algorithm, _: Setting) -> Decision:
    """sum_{t<=T} beta_t/alpha_t = o(T)."""
    growth = (x.method.beta / x.method.alpha).growth
    finitely_many = growth is not None and growth.is_zero
    order = LINEAR.inverse() if finitely_many else decide.over_sums(growth, CONSTANT)
    return decide.vanishes(order, "sum beta_t/alpha_t over T")


def _rooted_regret(x: Algorithm, setting: Setting) -> Decision:
    """alpha_t = alpha/sqrt(t): the first and last term over T are of the order 1/sqrt T, with AMSGrad's logarithm."""
    order = Growth.of(1, Fraction(-1, 2), Fraction(1, 2) if x.running_maximum else Fraction(0))
    return replace(_root_steps(x, setting), order=order)


class Reddi2018Regret(Theorem):
    """Their Theorems 4 (with the running maximum) and 5, with momentum that fades and the corrections known."""

    name: ClassVar = "reddi2018_regret"
    title: ClassVar = "Reddi-Kale-Kumar on regret"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret tends to 0 on convex problems with bounded domain and gradients"
    covered: ClassVar = "AMSGrad with constant theta, AdamNC; alpha/sqrt(t) and beta_t that fades"
    assumptions: ClassVar = Regret.assumptions
    source: ClassVar = 'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018, corrected'
    confidence: ClassVar = Confidence.FORMALISED
    allows: ClassVar = frozenset({"initial_v", "running_maximum"})
    takes: ClassVar = ("convex",)
    needs: ClassVar = Regret.needs
    hypotheses: ClassVar = (_rooted_regret, _never_above_the_first, _middle_term, *MONOTONE)


def _their_steps(x: Algorithm, _: Setting) -> Decision:
    asked = "alpha_t must be alpha sqrt(1 - theta^t), the second moment's correction and no other"
    theta = x.method.theta
    if theta(1) == 0:
        return Decision(Status.FAILS, f"{asked}, and theta_1 = 0.", decide.StepWitness(1, 0.0))
    quotient = collected(x.method.alpha / sqrt(bias_correction(theta)))
    return decide.constant(quotient, f"alpha_t = {quotient(1):.6g} sqrt(1 - theta^t) for every t.", asked)


def _momentum_below(x: Algorithm, _: Setting) -> Decision:
    order = decide.positive(x.method.theta - x.method.beta)
    return replace(order, reason=f"beta_t < theta_t: {order.reason}")


def _long_enough(x: Algorithm, _: Setting) -> Decision:
    asked = "the number of steps N must exceed beta/(1 - beta)"
    if x.horizon is None or not x.method.beta.is_constant:
        missing = "none is given" if x.horizon is None else "beta_t is not constant by its form"
        return Decision(Status.UNDECIDED, f"{asked}; {missing}.")
    order = decide.positive(as_schedule(x.horizon) * (1 - x.method.beta) - x.method.beta)
    return replace(order, reason=f"{asked}; N = {x.horizon:,}.")


class Defossez(Theorem):
    """Defossez et al.'s Theorem 4: Adam with constants for N steps."""

    name: ClassVar = "defossez2020"
    title: ClassVar = "Defossez et al. 2020"
    about: ClassVar = About.BOUND
    statement: ClassVar = (
        "an explicit bound on E |grad f(x_tau)|^2 after N steps, O(d log N/sqrt N) for alpha = 1/sqrt(N) and "
        "theta = 1 - 1/N"
    )
    covered: ClassVar = "Adam with constants, v_0 = 0, eps under the root and the second moment's correction alone"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "(A4s)")
    source: ClassVar = (
        'Defossez, Bottou, Bach, Usunier, "A Simple Convergence Proof of Adam and Adagrad", TMLR 2022, Theorem 4'
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "eps"})
    excludes: ClassVar = {
        "it asks for v_0 = 0 and a constant eps > 0 under the root": lambda x: (
            x.initial_v != 0 or not (x.eps_under_root and x.eps.is_constant and x.eps(1) > 0)
        )
    }
    hypotheses: ClassVar = (_constant("beta"), _constant("theta"), _momentum_below, _their_steps, _long_enough)

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        r"""Theorem 4 after N steps, with epsilon = eps^2/(1 - theta) on the scale of their sums.

        .. math::

            \mathbb{E}\|\nabla F(x_\tau)\|^2 &\le \frac{2R\,\text{gap}}{\alpha\tilde N} \\
            &\quad + \frac{E}{\tilde N}\Big[\log\Big(1 + \frac{R^2}{(1-\theta)\epsilon}\Big) - N\log\theta\Big] \\
            \tilde N &= N - \frac{\beta}{1-\beta}, \qquad R = \max_k G_k + \sqrt\epsilon

        with their constant E, which the answer's `constants` hold.
        """
        demand(*self.decide(replace(x, horizon=steps), Setting()))
        beta, theta = x.method.beta(1), x.method.theta(1)
        share, rest, effective = 1 - beta / theta, 1 - theta, steps - beta / (1 - beta)
        alpha, epsilon = x.method.alpha(1) / math.sqrt(rest), x.eps(1) ** 2 / rest
        R = max(part.gradient for part in certain_parts(problem)) + math.sqrt(epsilon)
        L, d = problem.smoothness, problem.dimension
        E = (
            alpha * d * R * L * (1 - beta) / (share * rest)
            + 12 * d * R**2 * math.sqrt(1 - beta) / (share**1.5 * math.sqrt(rest))
            + 2 * alpha**2 * d * L**2 * beta / (share * rest**1.5)
        )
        start = 2 * R * problem.gap / (alpha * effective)
        noise = E / effective * (math.log1p(R**2 / (rest * epsilon)) - steps * math.log(theta))
        told = {"start": start, "noise": noise, "E": E, "effective_steps": effective}
        return Offer(start + noise, math.sqrt(d * (start + noise)), told)
