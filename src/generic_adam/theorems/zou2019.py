r"""The paper's Theorem 1 and its sufficient condition (Corollary SC), for Generic Adam.

    v_t = theta_t v_{t-1} + (1 - theta_t) g_t^2,  m_t = beta_t m_{t-1} + (1 - beta_t) g_t,
    x_{t+1} = x_t - alpha_t m_t / sqrt(v_t),      v_0 = epsilon > 0.

1. 0 <= beta_t <= beta < 1 (R1). 2. 0 < theta_t < 1, non-decreasing (R2). 3. chi_t = alpha_t / sqrt(1 - theta_t) is
almost non-increasing (R3). 4. sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) -> 0, which is also the rate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.theorems.bound import bound as paper_bound
from generic_adam.theorems.conditions import as_condition, decisions
from generic_adam.theorems.paper_horizon import HorizonReading, read_horizon
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.rate import Rate, rate_of
from generic_adam.theorems.theorem import Assumptions, Confidence, Finding, Offer, Theorem


@dataclass(frozen=True)
class PaperFinding(Finding):
    r"""What the sufficient condition says about a method.

    Attributes:
        C0: an upper bound on the constant of (R3); None where condition 3 does not hold.
        ratio_order: the order of the ratio of condition 4, certified or not; None off the polynomial scale.
        horizon: conditions 1 to 3 and the ratio on the steps 1..T, where a horizon was given.
    """

    C0: float | None = None
    ratio_order: Rate | None = None
    horizon: HorizonReading | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain types only."""
        result = super().to_dict() | {
            "C0": self.C0,
            "ratio_order": None if self.ratio_order is None else str(self.ratio_order),
        }
        if self.horizon is not None:
            result["horizon"] = self.horizon.to_dict()
        return result


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
        found = paper_bound(x.method, replace(problem, epsilon=x.initial_v), steps)
        if found.missing:
            raise TheoremError("; ".join(map(str, found.missing)))
        known = {} if found.constants is None else found.constants.to_dict()
        numbers = {**known, "sum": found.total, "alpha_last": found.alpha_last, "uniform": found.expectation}
        return Offer(min(found.expectation, found.weighted), None, numbers)


def examine_method(
    method: Method, horizon: int | None = None, problem: Problem | None = None
) -> PaperFinding:
    r"""The four conditions for three sequences, with the rate and the constant C0.

    Args:
        method: the sequences alpha_t, beta_t, theta_t.
        horizon: a number of steps T: adds conditions 1 to 3 and the ratio on 1..T.
        problem: with a horizon, adds the bound of Theorem 1 at T.

    Examples:
        >>> found = examine_method(Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)"))
        >>> print(found.verdict, found.rate)
        certified T^(-1/2) log T
    """
    found = decisions(method)
    conditions = tuple(as_condition(number, one) for number, one in enumerate(found, start=1))
    order = found[3].growths.get("ratio")
    polynomial = order is not None and order.rho.sign_of_log == 0
    rate = rate_of(order) if order is not None and polynomial else None
    plain = Zou2019().finding(conditions, rate)
    return PaperFinding(
        **{one.name: getattr(plain, one.name) for one in fields(plain)},
        C0=found[2].constant,
        ratio_order=rate,
        horizon=None if horizon is None else read_horizon(method, horizon, problem),
    )
