r"""Mukkamala and Hein's theorem on RMSProp for convex problems.

With :math:`\beta_t = 0`, :math:`\alpha_t = \eta/\sqrt t` and
:math:`1 - 1/t \le \theta_t \le 1 - c/t` for some :math:`0 < c \le 1`, the regret of RMSProp in online convex
optimisation (bounded domain, bounded gradients) is :math:`O(\sqrt T)`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import Growth, Schedule, ScheduleError, as_power_of_t, t
from generic_adam.schedules.enclosure import enclose
from generic_adam.theorems.criteria.criterion import Criterion
from generic_adam.theorems.verdicts import Condition, Status, Verdict, verdict_of

if TYPE_CHECKING:
    from generic_adam.methods import Method

_CITATION = 'Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017'
_EVIDENCE = 100_000
_ROUNDING = 1e-12


def mukkamala_hein(method: Method) -> Criterion:
    """Check the hypotheses on beta_t, alpha_t and theta_t."""
    conditions = (_no_momentum(method.beta), _root_decay(method.alpha), _window(1 - method.theta))
    outcome = {
        Verdict.CERTIFIED: "average regret O(1/sqrt T) on convex problems with bounded domain and gradients",
        Verdict.NOT_CERTIFIED: "the theorem does not apply",
        Verdict.UNDECIDED: "whether the theorem applies could not be decided",
    }
    return Criterion(
        name="Mukkamala-Hein",
        citation=_CITATION,
        about="RMSProp on online convex problems",
        conditions=conditions,
        conclusion=outcome[verdict_of(conditions)],
    )


def _no_momentum(beta: Schedule) -> Condition:
    if beta.constant_value == 0:
        return Condition(1, Status.HOLDS, "beta_t = 0: RMSProp has no momentum")
    values = beta.values(1, 1025)
    if np.any(values != 0):
        witness = int(np.argmax(values != 0)) + 1
        reason = f"RMSProp has no momentum, but beta_{witness} = {values[witness - 1]:.6g}"
        return Condition(1, Status.FAILS, reason, witness)
    return Condition(1, Status.UNDECIDED, "beta_t is 0 on t = 1..1024, but not by its form")


def _root_decay(alpha: Schedule) -> Condition:
    power = as_power_of_t(alpha)
    if power is not None and power[1] == Fraction(-1, 2):
        return Condition(2, Status.HOLDS, f"alpha_t = {float(power[0]):.6g}/sqrt(t)")
    scaled = (alpha * t ** Fraction(1, 2)).values(1, 1025)
    off = np.abs(scaled - scaled[0]) > _ROUNDING * abs(scaled[0])
    if off.any():
        witness = int(np.argmax(off)) + 1
        values = f"{scaled[0]:.6g} at t = 1 and {scaled[witness - 1]:.6g} at t = {witness}"
        reason = f"alpha_t must be eta/sqrt(t); alpha_t sqrt(t) is {values}"
        return Condition(2, Status.FAILS, reason, witness)
    return Condition(2, Status.UNDECIDED, "alpha_t sqrt(t) is constant on t = 1..1024, but not by its form")


def _window(complement: Schedule) -> Condition:
    """Whether c <= t (1 - theta_t) <= 1 for every t, with some c > 0."""
    asked = "some 0 < c <= 1 must satisfy c <= t (1 - theta_t) <= 1 for every t"
    power = as_power_of_t(complement)
    if power is not None and power[1] == -1 and 0 < power[0] <= 1:
        return Condition(3, Status.HOLDS, f"theta_t = 1 - c/t with c = {float(power[0]):.6g}")
    scaled = complement * t
    try:
        values = scaled.values(1, _EVIDENCE + 1)
    except ScheduleError as error:
        return Condition(3, Status.UNDECIDED, f"{asked}: {error}")
    outside = ~((values > 0) & (values <= 1 + _ROUNDING))
    if outside.any():
        witness = int(np.argmax(outside)) + 1
        return Condition(
            3, Status.FAILS, f"{asked}; it is {values[witness - 1]:.6g} at t = {witness}", witness
        )
    growth = scaled.growth
    if growth is not None and growth.trend != 0:
        return Condition(3, Status.FAILS, f"{asked}; t (1 - theta_t) is of order {growth}", str(growth))
    if growth is not None and _stays_below_one(scaled, growth):
        return Condition(
            3, Status.HOLDS, f"{asked}: it does, with c near {min(values.min(), growth.low):.6g}"
        )
    return Condition(3, Status.UNDECIDED, f"{asked}; it does on t = 1..{_EVIDENCE:,}")


def _stays_below_one(scaled: Schedule, growth: Growth) -> bool:
    facts = enclose(scaled, _EVIDENCE)
    rises_to_its_limit = facts.direction in {0, 1} and growth.high <= 1 + _ROUNDING
    return facts.positive and (
        facts.range.high <= 1 + _ROUNDING or facts.direction == -1 or rises_to_its_limit
    )
