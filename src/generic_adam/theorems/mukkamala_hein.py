r"""Mukkamala and Hein's theorem on RMSProp for convex problems.

With :math:`\beta_t = 0`, :math:`\alpha_t = \eta/\sqrt t`, :math:`\epsilon_t = \delta/\sqrt t` added to the
root and :math:`1 - 1/t \le \theta_t \le 1 - c/t` for some :math:`0 < c \le 1`, the regret of RMSProp in online
convex optimisation (bounded domain, bounded gradients) is :math:`O(\sqrt T)`, so that the average regret is
:math:`O(1/\sqrt T)`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Add, Constant, Divide, Maximum, Schedule, Time, as_schedule, join, sqrt, t
from generic_adam.schedules.enclosure import collected
from generic_adam.theorems import decide
from generic_adam.theorems.rate import Rate
from generic_adam.theorems.theorem import About, Assumptions, Confidence, Finding, Theorem
from generic_adam.theorems.verdicts import Condition, Status


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
