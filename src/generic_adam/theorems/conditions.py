r"""The four conditions of the sufficient condition, each decided for every t or up to a horizon.

For Generic Adam with alpha_t, beta_t, theta_t and chi_t = alpha_t / sqrt(1 - theta_t):

1. 0 <= beta_t <= beta < 1 for every t (R1);
2. 0 < theta_t < 1 for every t, non-decreasing (R2);
3. chi_t is almost non-increasing: chi_t <= C0 min_{i<=t} chi_i (R3);
4. sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) tends to 0.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from generic_adam.methods import Method
from generic_adam.schedules import FloatArray, Growth, Schedule, ScheduleError, sqrt
from generic_adam.schedules.enclosure import Enclosure
from generic_adam.schedules.growth import scale_text
from generic_adam.theorems.almost_monotone import AlmostMonotone, almost_monotone
from generic_adam.theorems.examination import Claim, Finding, examine
from generic_adam.theorems.sums import SumError, ratio
from generic_adam.theorems.verdicts import Condition, Status

_ROUNDING = 4 * float(np.finfo(np.float64).eps)
_EVIDENCE = (1_000, 10_000, 100_000)


def _first(refuting: np.ndarray) -> int | None:
    return int(np.argmax(refuting)) if bool(refuting.any()) else None


def _negative(values: FloatArray, _before: float | None, _facts: Enclosure) -> int | None:
    return _first(~(values >= 0))


def _not_positive(values: FloatArray, _before: float | None, facts: Enclosure) -> int | None:
    # A value that is positive by its form and rounds to 0 (0.5^t at t = 1100) or overflows refutes nothing.
    return _first(np.isnan(values) if facts.positive else ~((values > 0) & np.isfinite(values)))


def _not_falling_in_unit(values: FloatArray, before: float | None, facts: Enclosure) -> int | None:
    earlier = np.concatenate([[math.inf if before is None else before], values[:-1]])
    least = np.minimum.accumulate(earlier)
    outside = np.isnan(values) | (values >= 1) | ((values <= 0) & (not facts.positive))
    return _first(outside | (values > least * (1 + _ROUNDING)))


_NOT_NEGATIVE = Claim(lambda facts: facts.range.low >= 0, _negative)
_BOUNDED_BELOW = Claim(lambda facts: facts.range.low > 0, _not_positive)
_POSITIVE = Claim(lambda facts: facts.positive, _not_positive)
_FALLING_IN_UNIT = Claim(
    lambda facts: (
        facts.positive and facts.direction is not None and facts.direction <= 0 and facts.range.high < 1
    ),
    _not_falling_in_unit,
)


def examine_positive(schedule: Schedule, last: float = math.inf) -> Finding:
    """u_t > 0 for every t up to last."""
    return examine(schedule, _POSITIVE, last)


def examine_unit(schedule: Schedule, last: float, zero: bool) -> Finding:
    """0 <= u_t < 1 for every t up to last; without zero, 0 < u_t."""
    return _both(
        examine(schedule, _NOT_NEGATIVE if zero else _POSITIVE, last), examine(1 - schedule, _POSITIVE, last)
    )


def momentum_condition(beta: Schedule, last: float = math.inf) -> Condition:
    """Condition 1 (R1): beta_t stays below a number beta < 1."""
    value = beta.constant_value
    if value is not None:
        return Condition(1, Status.HOLDS, f"beta_t = {value:g} for every t, below 1 (R1).")
    complement = (1 - beta).growth
    if math.isinf(last) and complement is not None and complement.sign > 0 and complement.trend < 0:
        order = scale_text(complement, "t")
        reason = f"beta_t tends to 1, as 1 - beta_t is of order {order}: no beta < 1 bounds it (R1)."
        return Condition(1, Status.FAILS, reason, f"1 - beta_t ~ {order}")
    finding = _both(
        examine(beta, _NOT_NEGATIVE, last),
        # Asked of 1 - beta_t, which keeps its digits: 1 - 0.9^t rounds to 1 long before it is 1.
        examine(1 - beta, _BOUNDED_BELOW, last),
    )
    if finding.status is Status.FAILS and finding.witness is not None:
        at = f"beta_t = {beta(finding.witness):g} at t = {finding.witness}"
        return Condition(1, Status.FAILS, f"{at} is outside [0, 1) (R1).", finding.witness)
    if finding.status is Status.HOLDS:
        return Condition(
            1, Status.HOLDS, f"beta_t stays in [0, beta] with beta < 1 (R1): {_how(finding, last)}."
        )
    return Condition(
        1, Status.UNDECIDED, f"Whether beta_t stays below some beta < 1 (R1) is open: {_open(finding)}."
    )


def _both(one: Finding, other: Finding) -> Finding:
    """What is known of two claims together: the earlier refutation, else what is open, else a proof."""
    refuted = [finding for finding in (one, other) if finding.status is Status.FAILS]
    if refuted:
        return min(refuted, key=lambda finding: finding.witness or 0)
    if one.status is not other.status:
        return one if one.status is Status.UNDECIDED else other
    return replace(one, by_form_from=max(one.by_form_from, other.by_form_from))


def second_moment_condition(theta: Schedule, last: float = math.inf) -> Condition:
    """Condition 2 (R2): 0 < theta_t < 1, non-decreasing; asked of 1 - theta_t, which keeps its digits."""
    value = theta.constant_value
    if value is not None:
        if value > 0:
            return Condition(
                2, Status.HOLDS, f"theta_t = {value:g} for every t: in (0, 1) and non-decreasing (R2)."
            )
        return Condition(2, Status.FAILS, "theta_t = 0 for every t; (R2) needs theta_t > 0.", 1)
    finding = examine(1 - theta, _FALLING_IN_UNIT, last)
    if finding.witness is not None and theta(finding.witness) > 0 and (1 - theta)(finding.witness) == 1:
        at = f"theta_t = {theta(finding.witness):g} at t = {finding.witness}"
        note = f"{at} is lost in the rounding of 1 - theta_t"
        finding = Finding(Status.UNDECIDED, note=note)
    if finding.status is Status.FAILS and finding.witness is not None:
        return Condition(2, Status.FAILS, _refuted_theta(theta, finding.witness), finding.witness)
    if finding.status is Status.HOLDS:
        return Condition(2, Status.HOLDS, f"0 < theta_t < 1 and non-decreasing (R2): {_how(finding, last)}.")
    reason = f"Whether theta_t stays in (0, 1) and never decreases (R2) is open: {_open(finding)}."
    return Condition(2, Status.UNDECIDED, reason)


def _refuted_theta(theta: Schedule, witness: int) -> str:
    value = theta(witness)
    if value <= 0:
        return f"theta_t = {value:g} at t = {witness}; (R2) needs theta_t > 0."
    if (1 - theta)(witness) <= 0:
        return f"theta_t = {value:g} at t = {witness}; (R2) needs theta_t < 1."
    fall = f"theta_t falls from {theta(witness - 1):.10g} to {value:.10g} at t = {witness}"
    return f"{fall}; (R2) needs it non-decreasing."


def chi(method: Method) -> Schedule:
    """chi_t = alpha_t / sqrt(1 - theta_t), the sequence of (R3)."""
    return method.alpha / sqrt(1 - method.theta)


def ratio_condition(method: Method, order: Growth | None) -> Condition:
    """Condition 4, from the growth of its ratio."""
    name = "sum alpha_t sqrt(1-theta_t) / (T alpha_T)"
    if order is None and method.alpha.growth is not None and method.alpha.growth.is_zero:
        reason = f"alpha_t is 0 from some t on, where {name} is infinite (Corollary SC)."
        return Condition(4, Status.FAILS, reason, "alpha_t = 0 for ever")
    if order is None:
        return Condition(4, Status.UNDECIDED, f"Whether {name} tends to 0 is open{_ratio_evidence(method)}.")
    text = scale_text(order, "T")
    if order.trend < 0:
        return Condition(4, Status.HOLDS, f"{name} is of order {text}, which tends to 0 (Corollary SC).")
    if order.trend > 0:
        reason = f"{name} grows like {text} and does not tend to 0 (Corollary SC)."
        return Condition(4, Status.FAILS, reason, f"ratio ~ {text}")
    if order.high <= order.low * (1 + 1e-6):
        reason = f"{name} tends to {order.low:.4g}, not to 0 (Corollary SC): the bound has a floor."
        return Condition(4, Status.FAILS, reason, f"ratio -> {order.low:.4g}")
    reason = f"{name} stays between two positive constants and does not tend to 0 (Corollary SC)."
    return Condition(4, Status.FAILS, reason, "ratio ~ 1")


def _ratio_evidence(method: Method) -> str:
    try:
        numbers = ", ".join(f"{ratio(method, steps):.4g} at T = {steps:,}" for steps in _EVIDENCE)
    except (SumError, ScheduleError):
        return ": the growth of alpha_t or theta_t is not known"
    return f": the growth of alpha_t or theta_t is not known; it is {numbers}, which proves nothing"


def step_size_condition(method: Method, last: float = math.inf) -> tuple[Condition, AlmostMonotone]:
    """Condition 3 (R3): chi_t > 0 is almost non-increasing, with the constant C0 that costs."""
    unknown = AlmostMonotone(math.inf, False)
    for name, sequence in (("alpha_t", method.alpha), ("1 - theta_t", 1 - method.theta)):
        finding = examine(sequence, _POSITIVE, last)
        if finding.status is Status.FAILS and finding.witness is not None:
            reason = f"{name} = {sequence(finding.witness):g} at t = {finding.witness}; (R3) needs chi_t > 0."
            return Condition(3, Status.FAILS, reason, finding.witness), unknown
        if finding.status is Status.UNDECIDED and math.isfinite(last):
            return Condition(3, Status.UNDECIDED, f"Whether {name} > 0 is open: {_open(finding)}."), unknown
        if finding.status is Status.UNDECIDED:
            return _undecided_step_size(method, finding), unknown
    return _almost_non_increasing(method, last)


def _almost_non_increasing(method: Method, last: float) -> tuple[Condition, AlmostMonotone]:
    sequence = chi(method)
    growth = sequence.growth
    if math.isinf(last) and growth is not None and growth.trend > 0:
        order = scale_text(growth, "t")
        reason = f"chi_t = alpha_t/sqrt(1-theta_t) grows like {order}: not almost non-increasing (R3)."
        return Condition(3, Status.FAILS, reason, f"chi_t ~ {order}"), AlmostMonotone(math.inf, False)
    try:
        constant = almost_monotone(sequence, last)
    except ScheduleError as error:
        finding = Finding(Status.UNDECIDED, note=str(error))
        return _undecided_step_size(method, finding), AlmostMonotone(math.inf, False)
    relation = "=" if constant.exact else "<="
    cost = f", C0 {relation} {constant.constant:.6g}" if math.isfinite(constant.constant) else ""
    if math.isfinite(last):
        if math.isfinite(constant.constant):
            return Condition(
                3, Status.HOLDS, f"chi_t <= C0 min chi_i up to t = {last:.0f} (R3){cost}."
            ), constant
        reason = f"C0 of chi_t up to t = {last:.0f} (R3) is not known: no form bounds it, and T is too long."
        return Condition(3, Status.UNDECIDED, reason), constant
    if growth is not None:
        shape = (
            f"is of order {scale_text(growth, 't')}"
            if growth.trend
            else "stays between two positive constants"
        )
        reason = f"chi_t = alpha_t/sqrt(1-theta_t) {shape}: almost non-increasing (R3){cost}."
        return Condition(3, Status.HOLDS, reason), constant
    if math.isfinite(constant.constant):
        return Condition(3, Status.HOLDS, f"chi_t is almost non-increasing by its form (R3){cost}."), constant
    return _undecided_step_size(method, Finding(Status.UNDECIDED)), constant


def _undecided_step_size(method: Method, finding: Finding) -> Condition:
    evidence = finding.note
    if not evidence:
        steps = _EVIDENCE[1]
        try:
            seen = almost_monotone(chi(method), steps).constant
            evidence = f"C0 = {seen:.4g} on the first {steps:,} steps, which proves nothing"
        except ScheduleError as error:
            evidence = str(error)
    return Condition(3, Status.UNDECIDED, f"Whether chi_t is almost non-increasing (R3) is open: {evidence}.")


def _how(finding: Finding, last: float) -> str:
    if math.isfinite(last):
        return f"shown for every t up to {last:.0f}"
    if finding.by_form_from <= 1:
        return "by its form, for every t"
    return f"checked step by step to t = {finding.by_form_from}, by its form from there on"


def _open(finding: Finding) -> str:
    if finding.note:
        return finding.note
    return f"no violation up to t = {finding.checked_to:,}, which proves nothing about later t"
