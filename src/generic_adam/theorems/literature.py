r"""Published theorems that need little, and statements that are cited and never certify.

**Robbins and Monro** on plain SGD; **Reddi, Kale and Kumar**'s warning; **Mukkamala and Hein** on RMSProp for
convex problems: with :math:`\beta_t = 0`, :math:`\alpha_t = \eta/\sqrt t`, :math:`\epsilon_t = \delta/\sqrt t`
added to the root and :math:`1 - 1/t \le \theta_t \le 1 - c/t` for some :math:`0 < c \le 1`, the regret in online
convex optimisation (bounded domain, bounded gradients) is :math:`O(\sqrt T)`, so that the average regret is
:math:`O(1/\sqrt T)`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Add, Constant, Divide, Maximum, Schedule, Time, as_schedule, join, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.prove import Claim, every
from generic_adam.theorems import decide
from generic_adam.theorems.theorem import (
    About,
    Assumptions,
    Confidence,
    Finding,
    Reported,
    Theorem,
    as_condition,
    vanishing_steps,
)
from generic_adam.theorems.verdicts import Condition, Rate, Status


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


class MukkamalaHein(Theorem):
    """Average regret O(1/sqrt T) of RMSProp with theta_t between 1 - 1/t and 1 - c/t."""

    name: ClassVar = "mukkamala_hein2017"
    title: ClassVar = "Mukkamala-Hein 2017"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret O(1/sqrt T) on convex problems with bounded domain and gradients"
    covered: ClassVar = "RMSProp, delta/sqrt(t) added to the root"
    assumptions: ClassVar = ("convex losses", "a bounded domain with projection", "bounded gradients")
    source: ClassVar = (
        'Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017'
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and convexity is needed."""
        convex = () if assume.convex else ("it is about convex losses on a bounded domain, with projection",)
        return (*super().outside(x, assume), *convex)

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """The hypotheses on beta_t, alpha_t, theta_t and eps_t."""
        del assume
        conditions = (
            _is_zero(x.method.beta),
            _falls_as_root(2, "alpha_t", x.method.alpha),
            _window(1 - x.method.theta),
            _falls_as_root(4, "eps_t", x.eps),
        )
        return self.finding(conditions, Rate(Fraction(-1, 2), Fraction(0), Fraction(0)))


def _is_zero(beta: Schedule) -> Condition:
    if beta == as_schedule(0):
        return Condition(1, Status.HOLDS, "beta_t = 0: RMSProp has no momentum.")
    return Condition(1, Status.FAILS, "RMSProp has no momentum, and beta_t is not 0 by its form.")


def _falls_as_root(number: int, name: str, schedule: Schedule) -> Condition:
    scaled = collected(schedule * sqrt(t))
    if scaled.is_constant and scaled(1) > 0:
        return Condition(number, Status.HOLDS, f"{name} = {scaled(1):.6g}/sqrt(t).")
    return Condition(number, Status.FAILS, f"{name} is not a positive number over sqrt(t) by its form.")


def _window(complement: Schedule) -> Condition:
    """C <= t (1 - theta_t) <= 1 for every t, with some c > 0."""
    asked = "some 0 < c <= 1 must satisfy c <= t (1 - theta_t) <= 1 for every t"
    scaled = collected(complement * t)
    if scaled.is_constant:
        inside = decide.positive(join(1, 2, 1 - scaled)).holds or scaled == as_schedule(1)
        status = Status.HOLDS if inside and scaled(1) > 0 else Status.FAILS
        return Condition(3, status, f"{asked}; it is {scaled(1):.6g} throughout.")
    match complement:
        # t/max(t, K) and t/(t + k) lie in (0, 1]: the numerator decides.
        case Divide(Constant(c), Maximum(Time(), Constant()) | Add(Time(), Constant())) if 0 < c <= 1:
            return Condition(3, Status.HOLDS, f"{asked}: 1 - theta_t = {complement}.")
        case _:
            pass
    growth = scaled.growth
    if growth is not None and growth.trend != 0:
        return Condition(3, Status.FAILS, f"{asked}; t (1 - theta_t) is of order {growth}.", str(growth))
    below, above = decide.positive(1 - scaled), decide.positive(scaled)
    for decision in (below, above):
        if not decision.holds:
            witness = decision.witness.t if isinstance(decision.witness, decide.StepWitness) else None
            return Condition(3, decision.status, f"{asked}: {decision.reason}", witness)
    if growth is None or growth.sign <= 0:
        return Condition(3, Status.UNDECIDED, f"{asked}; the order of t (1 - theta_t) is not known.")
    return Condition(3, Status.HOLDS, f"{asked}: it does.")


def _steady(x: Algorithm) -> dict[str, bool]:
    return {
        "a constant beta": not x.method.beta.is_constant,
        "a constant theta": not x.method.theta.is_constant,
    }


def _rooted(x: Algorithm) -> dict[str, bool]:
    return {
        "learning rates eta/sqrt(t), not bias-corrected": _falls_as_root(1, "alpha_t", x.method.alpha).status
        is not Status.HOLDS
    }


class Zhang2022(Reported):
    """Adam as it is, for a second moment slower than a threshold that nobody knows."""

    name: ClassVar = "zhang2022"
    title: ClassVar = "Zhang et al. 2022"
    source: ClassVar = (
        'Zhang, Chen, Shi, Sun, Luo, "Adam Can Converge Without Any Modification on Update Rules", '
        "NeurIPS 2022"
    )
    covered: ClassVar = "Adam with constant beta and theta, eta/sqrt t, n mini-batches sampled uniformly"
    statement: ClassVar = (
        "a neighbourhood is reached if theta exceeds a threshold of order 1 - 1/n^5 that depends on your data; "
        "of n = 1,000 batches it is 1 - 1e-15 up to a constant"
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """Constants with beta^2 < theta, and eta/sqrt(t)."""
        del assume
        method = x.method
        above = decide.positive(method.theta - method.beta * method.beta).status is Status.FAILS
        return {**_steady(x), "beta < sqrt(theta)": above, **_rooted(x)}


class Shi2021(Reported):
    """RMSProp likewise."""

    name: ClassVar = "shi2021"
    title: ClassVar = "Shi et al. 2021"
    source: ClassVar = 'Shi, Li, Hong, Sun, "RMSprop Converges with Proper Hyper-parameter", ICLR 2021'
    covered: ClassVar = "RMSProp with constant theta, eta/sqrt t, shuffled mini-batches"
    statement: ClassVar = (
        "a neighbourhood is reached if theta exceeds a threshold that depends on the number of batches"
    )
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """No momentum, constant theta, and eta/sqrt(t)."""
        del assume
        return {"RMSProp, beta = 0": x.method.beta != as_schedule(0), **_steady(x), **_rooted(x)}


class Li2023(Reported):
    """Adam under relaxed smoothness, with steps as small as the accuracy's square."""

    name: ClassVar = "li2023"
    title: ClassVar = "Li et al. 2023"
    source: ClassVar = 'Li, Rakhlin, Jadbabaie, "Convergence of Adam Under Relaxed Assumptions", NeurIPS 2023'
    covered: ClassVar = (
        "Adam with bias correction, learning rate and 1 - beta of the order of the squared accuracy"
    )
    statement: ClassVar = (
        "a small gradient is reached under relaxed smoothness; the numerical constants are not given"
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """Constants, and something added to the root."""
        del assume
        return {**_steady(x), "an eps beside the root": x.eps == as_schedule(0) or x.eps_under_root}


class Wang2023(Reported):
    """Adam with constants tuned to the horizon, affine noise."""

    name: ClassVar = "wang2023"
    title: ClassVar = "Wang et al. 2023"
    source: ClassVar = (
        'Wang, Fu, Zhang, Zheng, Chen, "Closing the Gap Between the Upper Bound and Lower Bound of Adam", '
        "NeurIPS 2023"
    )
    covered: ClassVar = "Adam with constants tuned to the horizon, affine noise"
    statement: ClassVar = (
        "the order T^(-1/4) up to logarithms for the first power of the gradient; constants not at hand"
    )
    allows: ClassVar = frozenset({"initial_v", "eps"})

    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """Constants."""
        del assume
        return {**_steady(x), "a constant learning rate": not x.method.alpha.is_constant}


class XieLi2024(Reported):
    """AdamW's limit, if there is one: a KKT point of the loss over a box."""

    name: ClassVar = "xie_li2024"
    title: ClassVar = "Xie-Li 2024"
    source: ClassVar = (
        'Xie, Li, "Implicit Bias of AdamW: l_inf Norm Constrained Optimization", ICML 2024, Theorem 1.1'
    )
    covered: ClassVar = (
        "AdamW with exact gradients, beta <= theta, learning rates that never rise and sum to infinity"
    )
    statement: ClassVar = (
        "if the iterates converge, their limit is a KKT point of the loss over |x|_inf <= 1/lambda"
    )
    confidence: ClassVar = Confidence.PUBLISHED
    allows: ClassVar = frozenset({"initial_v", "decay"})

    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """Exact gradients, decay, beta <= theta < 1, and learning rates that sum to infinity; decay is lr_t lambda."""
        decayed = x.decay != as_schedule(0)
        order = decide.not_negative(x.method.theta - x.method.beta)
        return {
            "exact gradients (a full batch)": not assume.full_batch,
            "decoupled weight decay": not decayed,
            **_steady(x),
            "beta <= theta": order.status is Status.FAILS,
            "learning rates with an infinite sum": decayed
            and decide.sum_diverges(x.decay, "lr").status is Status.FAILS,
        }

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Whether the learning rate ever rises; that the iterates converge nobody says."""
        plain = super().decide(x, assume)
        never = every(x.decay, Claim.FALLING)
        rises = {True: "the learning rate never rises", None: "whether the learning rate rises is open"}.get(
            never.holds, f"it asks for learning rates that never rise, and this one does at t = {never.t}"
        )
        decay = collected(x.decay / x.method.alpha)
        box = f", {1 / decay(1):g} here" if decay.is_constant else ""
        return replace(
            plain, conditions=(replace(plain.conditions[0], reason=f"{self.statement}{box}; {rises}."),)
        )


REPORTED: tuple[Reported, ...] = (Zhang2022(), Shi2021(), Li2023(), Wang2023(), XieLi2024())
"""Published statements that are cited and never certify: constants or the text itself are not at hand."""
