r"""The four conditions of the sufficient condition, each decided for every t or up to a horizon.

For Generic Adam with alpha_t, beta_t, theta_t and chi_t = alpha_t / sqrt(1 - theta_t):

1. 0 <= beta_t <= beta < 1 for every t (R1);
2. 0 < theta_t < 1 for every t, non-decreasing (R2);
3. chi_t is almost non-increasing: chi_t <= C0 min_{i<=t} chi_i (R3);
4. sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) tends to 0.
"""

from __future__ import annotations

from dataclasses import replace

from generic_adam.methods import Method
from generic_adam.schedules import ScheduleError
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, StepWitness
from generic_adam.theorems.sums import SumError, ratio
from generic_adam.theorems.verdicts import Condition, Status

_EVIDENCE = (1_000, 10_000, 100_000)


def decisions(method: Method, horizon: int | None = None) -> tuple[Decision, ...]:
    """Conditions 1 to 3 up to a horizon, or all four for every t."""
    first_three = (
        decide.bounded_below_one(method.beta, horizon),
        decide.non_decreasing(method.theta, horizon),
        decide.step_sizes(method, horizon),
    )
    if horizon is not None:
        return first_three
    fourth = decide.paper_ratio(method)
    if fourth.status is Status.UNDECIDED:
        fourth = replace(fourth, reason=fourth.reason.rstrip(".") + _evidence(method))
    return (*first_three, fourth)


def as_condition(number: int, decision: Decision) -> Condition:
    """A decision as a numbered condition; the witness is a step or a text."""
    witness = decision.witness
    plain = witness.t if isinstance(witness, StepWitness) else None if witness is None else str(witness)
    return Condition(number, decision.status, decision.reason, plain)


def _evidence(method: Method) -> str:
    try:
        numbers = ", ".join(f"{ratio(method, steps):.4g} at T = {steps:,}" for steps in _EVIDENCE)
    except (SumError, ScheduleError):
        return "."
    return f"; it is {numbers}, which proves nothing."
