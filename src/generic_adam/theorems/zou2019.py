r"""The paper's sufficient condition for Generic Adam, decided; its bound is `zou2019_bound`.

    v_t = theta_t v_{t-1} + (1 - theta_t) g_t^2,  m_t = beta_t m_{t-1} + (1 - beta_t) g_t,
    x_{t+1} = x_t - alpha_t m_t / sqrt(v_t),      v_0 = epsilon > 0.

**The sufficient condition** (Corollary SC), with :math:`\chi_t = \alpha_t/\sqrt{1-\theta_t}`:

1. 0 <= beta_t <= beta < 1 for every t (R1).
2. 0 < theta_t < 1 for every t, non-decreasing (R2).
3. chi_t is almost non-increasing: chi_t <= C0 min_{i<=t} chi_i (R3).
4. sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) -> 0, which is also the rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import ScheduleError
from generic_adam.theorems import decide
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.theorem import Assumptions, Confidence, Finding, Offer, Theorem
from generic_adam.theorems.verdicts import Rate, Status, plain_fields, rate_of
from generic_adam.theorems.zou2019_bound import bound, hypotheses

_EVIDENCE = (1_000, 10_000, 100_000)


def _evidence(method: Method) -> str:
    try:
        numbers = ", ".join(f"{decide.ratio(method, steps):.4g} at T = {steps:,}" for steps in _EVIDENCE)
    except ScheduleError:
        return "."
    return f"; it is {numbers}, which proves nothing."


@dataclass(frozen=True)
class PaperFinding(Finding):
    r"""What the sufficient condition says about a method.

    Attributes:
        C0: an upper bound on the constant of (R3); None where condition 3 does not hold.
        ratio_order: the order of the ratio of condition 4, certified or not; None off the polynomial scale.
    """

    C0: float | None = None
    ratio_order: Rate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain types only."""
        return super().to_dict() | plain_fields(self, "C0", "ratio_order")


class Zou2019(Theorem):
    """Zou, Shen, Jie, Zhang and Liu's Theorem 1 with Corollary SC."""

    name: ClassVar = "zou2019"
    title: ClassVar = "Zou et al. 2019"
    statement: ClassVar = "(E |grad f(x_tau)|^(4/3))^(3/2) tends to 0, tau uniform on 1..T"
    covered: ClassVar = "Generic Adam with v_0 > 0 and nothing added to sqrt(v_t)"
    source: ClassVar = (
        'Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019'
    )
    confidence: ClassVar = Confidence.PUBLISHED

    def decide(self, x: Algorithm, assume: Assumptions) -> PaperFinding:
        """The four conditions, for every t."""
        del assume
        return examine_method(x.method)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem 1 after T steps, or at an iterate drawn by alpha_t (Corollary 7.0), which is never larger."""
        found = bound(x.method, replace(problem, epsilon=x.initial_v), steps)
        if found.constants is None:
            raise TheoremError(found.reasons)
        numbers = {"sum": found.total, "alpha_last": found.alpha_last, "uniform": found.expectation}
        return Offer(min(found.expectation, found.weighted), None, vars(found.constants) | numbers)


def examine_method(method: Method) -> PaperFinding:
    r"""The four conditions for three sequences, with the rate and the constant C0.

    Examples:
        >>> found = examine_method(Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)"))
        >>> print(found.verdict, found.rate)
        certified T^(-1/2) log T
    """
    fourth = decide.paper_ratio(method)
    if fourth.status is Status.UNDECIDED:
        fourth = replace(fourth, reason=fourth.reason.rstrip(".") + _evidence(method))
    found, order = (*hypotheses(method), fourth), fourth.order
    rate = rate_of(order) if order is not None and order.rho.sign_of_log == 0 else None
    return PaperFinding(**vars(Zou2019().finding(found, rate)), C0=found[2].constant, ratio_order=rate)
