"""The certificate: the verdict on a method, condition by condition, with its rate and its constant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from generic_adam.methods import Method
from generic_adam.theorems.conditions import (
    momentum_condition,
    ratio_condition,
    second_moment_condition,
    step_size_condition,
)
from generic_adam.theorems.horizon import HorizonReading, read_horizon
from generic_adam.theorems.rate import Rate, rate_of, ratio_growth
from generic_adam.theorems.verdicts import (
    Condition,
    Status,
    Verdict,
    condition_from_dict,
    condition_to_dict,
    verdict_of,
)

if TYPE_CHECKING:
    from generic_adam.theorems.problem import Problem

_MEANING = {
    Verdict.CERTIFIED: "Generic Adam with these sequences converges: Theorem 1's bound tends to 0 as {rate}.",
    Verdict.NOT_CERTIFIED: "The sufficient condition is not met; this does not mean that it diverges.",
    Verdict.UNDECIDED: "The sufficient condition could not be decided from the form of the sequences.",
}


@dataclass(frozen=True)
class Certificate:
    r"""What the sufficient condition says about a method.

    Attributes:
        method: the three sequences.
        conditions: the four conditions, in order.
        C0: an upper bound on the constant of (R3), None where condition 3 does not hold.
        ratio_order: the order of the ratio of condition 4, certified or not; None off the polynomial scale.
        horizon: the finite-horizon reading, where one was asked for.
    """

    method: Method
    conditions: tuple[Condition, ...]
    C0: float | None
    ratio_order: Rate | None
    horizon: HorizonReading | None = None

    @property
    def verdict(self) -> Verdict:
        """Certified, not certified, or undecided: for every t, whatever the horizon."""
        return verdict_of(self.conditions)

    @property
    def rate(self) -> Rate | None:
        """The order of Theorem 1's bound in T; None if not certified."""
        return self.ratio_order if self.verdict is Verdict.CERTIFIED else None

    @property
    def first_failing(self) -> Condition | None:
        """The first condition that fails, else the first that is undecided, else None."""
        for status in (Status.FAILS, Status.UNDECIDED):
            for condition in self.conditions:
                if condition.status is status:
                    return condition
        return None

    def explain(self) -> str:
        """The whole argument, one line a condition, ready to print."""
        lines = [
            f"alpha_t = {self.method.alpha}",
            f"beta_t  = {self.method.beta}",
            f"theta_t = {self.method.theta}",
            f"verdict: {self.verdict}",
            _MEANING[self.verdict].format(rate=self.rate),
        ]
        lines += [f"  condition {c.number} {c.status}: {c.reason}" for c in self.conditions]
        if self.horizon is not None:
            lines += self.horizon.lines()
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only; `Certificate.from_dict` reads it back."""
        rate = self.rate
        result: dict[str, Any] = {
            "verdict": str(self.verdict),
            "rate": None if rate is None else str(rate),
            "rate_exponents": None if rate is None else _exponents(rate),
            "ratio_order": None if self.ratio_order is None else _exponents(self.ratio_order),
            "C0": self.C0,
            "conditions": [condition_to_dict(condition) for condition in self.conditions],
            "method": {name: str(getattr(self.method, name)) for name in ("alpha", "beta", "theta")},
        }
        if self.horizon is not None:
            result["horizon"] = self.horizon.to_dict()
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """The certificate that `to_dict` wrote; a method made of callables has no text to come back from."""
        order, horizon = data["ratio_order"], data.get("horizon")
        return cls(
            method=Method(**data["method"]),
            conditions=tuple(condition_from_dict(entry) for entry in data["conditions"]),
            C0=data["C0"],
            ratio_order=None
            if order is None
            else Rate(**{name: Fraction(text) for name, text in order.items()}),
            horizon=None if horizon is None else HorizonReading.from_dict(horizon),
        )


def certify(method: Method, horizon: int | None = None, problem: Problem | None = None) -> Certificate:
    r"""Decide the sufficient condition (Corollary SC) for a method.

    Args:
        method: the sequences alpha_t, beta_t, theta_t.
        horizon: a number of steps T: adds the finite-horizon reading, for schedules that end at T.
        problem: with a horizon, the constants of a problem: adds the bound of Theorem 1 at T.

    Returns:
        The certificate. Its verdict is about every t; "not certified" never means "diverges".

    Raises:
        MethodError: the method or the horizon cannot be read.

    Examples:
        >>> from generic_adam.methods import Method
        >>> certificate = certify(Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)"))
        >>> print(certificate.verdict, certificate.rate)
        certified T^(-1/2) log T
    """
    order = ratio_growth(method.alpha, method.theta)
    third, constant = step_size_condition(method)
    conditions = (
        momentum_condition(method.beta),
        second_moment_condition(method.theta),
        third,
        ratio_condition(method, order),
    )
    bounded = third.status is Status.HOLDS and math.isfinite(constant.constant)
    polynomial = order is not None and order.rho.sign_of_log == 0
    return Certificate(
        method=method,
        conditions=conditions,
        C0=constant.constant if bounded else None,
        ratio_order=rate_of(order) if order is not None and polynomial else None,
        horizon=None if horizon is None else read_horizon(method, horizon, problem),
    )


def _exponents(rate: Rate) -> dict[str, str]:
    return {"power": str(rate.power), "log": str(rate.log), "loglog": str(rate.loglog)}
