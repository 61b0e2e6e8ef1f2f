r"""Hypotheses about sequences, decided in one place: for every t, or on the steps 1..T.

Every theorem asks here, and gets one of three answers: holds, fails with a witness, or undecided with what
was tried. A witness is typed (a step, a growth, a limit): nobody reads a sentence to find a number in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from generic_adam.methods import Method
from generic_adam.schedules import Growth, Periodic, Schedule, ScheduleError
from generic_adam.schedules.factors import factors
from generic_adam.schedules.growth import scale_text
from generic_adam.theorems.almost_monotone import almost_monotone
from generic_adam.theorems.conditions import (
    examine_positive,
    examine_unit,
    momentum_condition,
    ratio_condition,
    second_moment_condition,
)
from generic_adam.theorems.examination import Finding
from generic_adam.theorems.rate import Rate, rate_of, ratio_growth
from generic_adam.theorems.verdicts import Condition, Status


@dataclass(frozen=True)
class StepWitness:
    """A step at which the hypothesis is violated.

    Attributes:
        t: the step.
        value: the value of the sequence there, as near as a float is.
    """

    t: int
    value: float | None = None

    def __str__(self) -> str:
        return f"t = {self.t}"


@dataclass(frozen=True)
class GrowthWitness:
    """A sequence whose order of growth violates the hypothesis.

    Attributes:
        sequence: which sequence, such as "chi_t".
        growth: its order.
        variable: "t" for a sequence, "T" for sums up to T.
    """

    sequence: str
    growth: Growth
    variable: str = "t"

    def __str__(self) -> str:
        return f"{self.sequence} ~ {scale_text(self.growth, self.variable)}"


@dataclass(frozen=True)
class LimitWitness:
    """A sequence whose limit violates the hypothesis.

    Attributes:
        sequence: which sequence.
        limit: its limit.
    """

    sequence: str
    limit: float

    def __str__(self) -> str:
        return f"{self.sequence} -> {self.limit:.4g}"


Witness = StepWitness | GrowthWitness | LimitWitness


@dataclass(frozen=True)
class Decision:
    """The answer to one question about sequences.

    Attributes:
        status: holds, fails or undecided.
        reason: one sentence.
        witness: what violates it, where it fails.
        constant: C0, where an almost non-increasing sequence was asked for: never below the true one.
        exact: whether that constant is attained.
        rate: the rate, where one was asked for and the answer is "holds".
        growths: the orders that the answer rests on, by name.
    """

    status: Status
    reason: str
    witness: Witness | None = None
    constant: float | None = None
    exact: bool = False
    rate: Rate | None = None
    growths: Mapping[str, Growth] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def holds(self) -> bool:
        """Whether the answer is "holds"."""
        return self.status is Status.HOLDS


def positive(schedule: Schedule, horizon: int | None = None) -> Decision:
    """u_t > 0 for every t (or every t <= horizon)."""
    return _from_finding(schedule, examine_positive(schedule, _last(horizon)), "u_t > 0")


def in_unit_interval(schedule: Schedule, horizon: int | None = None, *, zero: bool = True) -> Decision:
    """0 <= u_t < 1 for every t (or every t <= horizon); with zero=False, 0 < u_t < 1."""
    claim = "0 <= u_t < 1" if zero else "0 < u_t < 1"
    return _from_finding(schedule, examine_unit(schedule, _last(horizon), zero), claim)


def bounded_below_one(beta: Schedule, horizon: int | None = None) -> Decision:
    """0 <= beta_t <= beta for every t, with a number beta < 1: (R1)."""
    return _from_condition(momentum_condition(beta, _last(horizon)), beta)


def non_decreasing(theta: Schedule, horizon: int | None = None) -> Decision:
    """0 < theta_t < 1 for every t, and never falling: (R2)."""
    return _from_condition(second_moment_condition(theta, _last(horizon)), theta)


def almost_non_increasing(chi: Schedule, horizon: int | None = None) -> Decision:
    """u_t > 0 and u_t <= C0 min_{i<=t} u_i for every t, with C0: (R3) asks it of chi_t."""
    last, growth = _last(horizon), chi.growth
    growths = MappingProxyType({} if growth is None else {"chi": growth})
    inside = positive(chi, horizon)
    if not inside.holds:
        return replace(inside, growths=growths)
    if horizon is None and growth is not None and growth.trend > 0:
        reason = f"chi_t grows like {growth}: not almost non-increasing."
        return Decision(Status.FAILS, reason, GrowthWitness("chi_t", growth), growths=growths)
    try:
        found = almost_monotone(chi, last)
    except ScheduleError as error:
        return Decision(Status.UNDECIDED, f"Whether chi_t is almost non-increasing is open: {error}.")
    known = found.constant if math.isfinite(found.constant) else None
    if known is None and (growth is None or horizon is not None):
        return Decision(Status.UNDECIDED, "C0 of chi_t is not known: no form bounds it.", growths=growths)
    cost = "" if known is None else f", C0 {'=' if found.exact else '<='} {known:.6g}"
    reason = f"chi_t is almost non-increasing{cost}."
    return Decision(Status.HOLDS, reason, None, known, found.exact, growths=growths)


def limit_is_one(theta: Schedule) -> Decision:
    """theta_t tends to 1."""
    growth = (1 - theta).growth
    if growth is None:
        return Decision(Status.UNDECIDED, "The order of 1 - theta_t is not known.")
    growths = MappingProxyType({"1 - theta": growth})
    if growth.is_zero or growth.trend < 0:
        return Decision(
            Status.HOLDS, f"1 - theta_t is of order {growth}: theta_t tends to 1.", growths=growths
        )
    reason = "theta_t does not tend to 1: 1 - theta_t stays above a positive number."
    return Decision(Status.FAILS, reason, GrowthWitness("1 - theta_t", growth), growths=growths)


def sum_diverges(schedule: Schedule, name: str = "u") -> Decision:
    """The sum of u_t >= 0 over all t is infinite; exact on the scale, 1/(t log t log log t) included."""
    growth = two_sided(schedule)
    if growth is None or growth.sign < 0:
        return Decision(Status.UNDECIDED, f"The order of {name}_t is not known.")
    growths = MappingProxyType({name: growth})
    if growth_sum_diverges(growth):
        return Decision(
            Status.HOLDS,
            f"The sum of {name}_t is infinite: its terms are of order {growth}.",
            growths=growths,
        )
    reason = f"The sum of {name}_t is finite: its terms are of order {growth}."
    return Decision(Status.FAILS, reason, GrowthWitness(f"{name}_t", growth), growths=growths)


def growth_sum_diverges(growth: Growth) -> bool:
    """Whether the sum of terms of this order is infinite."""
    if growth.is_zero:
        return False
    for part, border in ((growth.rho.sign_of_log, 0), (growth.power, -1), (growth.log, -1)):
        if part != border:
            return part > border
    return growth.loglog >= -1


def two_sided(schedule: Schedule) -> Growth | None:
    """The g with c1 g(t) <= u_t + ... + u_{t+P-1} and u_t <= c2 g(t) for all late t and some P, or None.

    P = 1 is a growth proper. P > 1 are sequences that come back to 0 with a period (restarts to 0): a factor
    that repeats, is never negative and not always 0 counts as a constant.
    """
    growth = schedule.growth
    if growth is not None:
        return growth if growth.sign > 0 or growth.is_zero else None
    result = Growth(1.0, 1.0)
    for base, exponent in factors(schedule).items():
        part = base.growth
        if part is None and isinstance(base, Periodic) and exponent > 0:
            low, high = base.extremes
            part = Growth(high, high) if low == 0 < high else None
        raised = None if part is None else part.raised_to(exponent)
        if raised is None:
            return None
        result = result * raised
    return result


def paper_ratio(method: Method) -> Decision:
    r"""Condition 4: sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) tends to 0; its order is the rate."""
    order = ratio_growth(method.alpha, method.theta)
    condition = ratio_condition(method, order)
    if order is None:
        return Decision(condition.status, condition.reason)
    growths = MappingProxyType({"ratio": order})
    if condition.status is Status.HOLDS:
        return Decision(condition.status, condition.reason, rate=rate_of(order), growths=growths)
    witness = (
        LimitWitness("ratio", order.low)
        if order.trend == 0 and order.high <= order.low * (1 + 1e-6)
        else GrowthWitness("ratio", order, "T")
    )
    return Decision(condition.status, condition.reason, witness, growths=growths)


def weighted(method: Method, *, first_theta_may_be_zero: bool = False) -> Decision:
    r"""Whether Theorem W's bound tends to 0 (W-infinity: SC' and SC''), decided on the growth scale.

    1. For all late t: beta_t <= beta < 1, 1 - theta_t is of exact order g_q with g_q -> 0, alpha_t of order
       g_a (see `two_sided`). Before, alpha_t >= 0, 0 <= beta_t < 1 and 0 < theta_t < 1 are enough.
    2. chi = g_a / sqrt(g_q) does not grow: certified iff sum alpha_t is infinite; the rate is
       max(1, sum alpha_t sqrt(q_t)) / sum alpha_t.
    3. chi grows: the rate is chi_T^2 max(1, sum q_t) / sum alpha_t; certified iff it tends to 0.

    Args:
        method: the three sequences.
        first_theta_may_be_zero: theta_1 = 0 is allowed (where an epsilon keeps the denominator positive).
    """
    for step in (
        bounded_below_one(method.beta),
        _theta_inside(method.theta, first_theta_may_be_zero),
        limit_is_one(method.theta),
    ):
        if not step.holds:
            return step
    alpha, q = two_sided(method.alpha), (1 - method.theta).growth
    if alpha is None or q is None or q.sign <= 0:
        return Decision(Status.UNDECIDED, "The exact order of alpha_t or of 1 - theta_t is not known.")
    beginning = _not_negative(method.alpha)
    if not beginning.holds:
        return beginning
    return _on_the_scale(alpha, q)


def _on_the_scale(alpha: Growth, q: Growth) -> Decision:
    if not growth_sum_diverges(alpha):
        reason = f"The sum of alpha_t is finite: its terms are of order {alpha}."
        return Decision(Status.FAILS, reason, GrowthWitness("alpha_t", alpha))
    root = q.raised_to(Fraction(1, 2))
    inverse = None if root is None else root.inverse()
    total, squares, noise = alpha.partial_sums(), q.partial_sums(), None
    if root is not None:
        noise = (alpha * root).partial_sums()
    divisor = None if total is None else total.inverse()
    if root is None or inverse is None or divisor is None or squares is None or noise is None:
        return Decision(Status.UNDECIDED, "A sum of alpha_t or 1 - theta_t is off the scale of growths.")
    step = alpha * inverse
    one = Growth(1.0, 1.0)
    order = (one.largest(noise) if step.trend <= 0 else step * step * one.largest(squares)) * divisor
    growths = MappingProxyType({"alpha": alpha, "1 - theta": q, "chi": step, "rate": order})
    if order.trend < 0:
        reason = f"Theorem W's bound is of order {scale_text(order, 'T')}, which tends to 0."
        return Decision(Status.HOLDS, reason, rate=rate_of(order), growths=growths)
    reason = f"Theorem W's bound is of order {scale_text(order, 'T')}, which does not tend to 0."
    return Decision(Status.FAILS, reason, GrowthWitness("bound", order, "T"), growths=growths)


def _theta_inside(theta: Schedule, first_may_be_zero: bool) -> Decision:
    inside = in_unit_interval(theta, zero=False)
    if first_may_be_zero and isinstance(inside.witness, StepWitness) and inside.witness.t == 1:
        return in_unit_interval(theta, zero=True)
    return inside


def _not_negative(alpha: Schedule) -> Decision:
    found = positive(alpha)
    if isinstance(found.witness, StepWitness) and found.witness.value == 0:
        return Decision(
            Status.HOLDS, "alpha_t >= 0."
        )  # a zero is no obstacle; `Method` refuses negative values
    return found


def _last(horizon: int | None) -> float:
    return math.inf if horizon is None else horizon


def _from_finding(schedule: Schedule, finding: Finding, claim: str) -> Decision:
    if finding.status is Status.HOLDS:
        return Decision(finding.status, f"{claim} for every t asked about.")
    if finding.witness is not None:
        return Decision(
            finding.status, f"{claim} is violated at t = {finding.witness}.", _step(schedule, finding.witness)
        )
    note = (
        finding.note or f"no violation up to t = {finding.checked_to:,}, which proves nothing about later t"
    )
    return Decision(finding.status, f"Whether {claim} is open: {note}.")


def _from_condition(condition: Condition, schedule: Schedule) -> Decision:
    if condition.status is not Status.FAILS:
        return Decision(condition.status, condition.reason)
    if isinstance(condition.witness, int):
        return Decision(condition.status, condition.reason, _step(schedule, condition.witness))
    growth = (1 - schedule).growth
    witness = None if growth is None else GrowthWitness("1 - beta_t", growth)
    return Decision(condition.status, condition.reason, witness)


def _step(schedule: Schedule, t: int) -> StepWitness:
    try:
        return StepWitness(t, schedule(t))
    except ScheduleError:
        return StepWitness(t)
