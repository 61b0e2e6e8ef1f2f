r"""Hypotheses about sequences, decided in one place: for every t, or on the steps 1..T.

Every theorem asks here, and gets one of three answers: holds, fails with a witness, or undecided with what
was tried. A witness is typed (a step, a growth, a limit): nobody reads a sentence to find a number in it.
What is proved about single sequences is proved in `schedules.prove` and `schedules.rise`, with balls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from generic_adam.errors import ScheduleError
from generic_adam.methods import Method
from generic_adam.schedules import Growth, Opaque, Periodic, Schedule, join, sqrt
from generic_adam.schedules.balls import Number, Precision, ball, nearest, value
from generic_adam.schedules.budget import SECONDS, Budget
from generic_adam.schedules.enclosure import enclose, extremes, factors
from generic_adam.schedules.growth import CONSTANT, LINEAR, scale_text
from generic_adam.schedules.prove import Claim, Proof, every
from generic_adam.schedules.rise import least_rise
from generic_adam.schedules.sums import SumError, checked_horizon, late_value, partial_sum, partial_sums
from generic_adam.theorems.verdicts import Rate, Status, rate_of


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
        if self.growth.is_zero:
            return f"{self.sequence} = 0 for ever"
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


def positive(schedule: Schedule, horizon: int | None = None, *, name: str = "u_t") -> Decision:
    """u_t > 0 for every t (or every t <= horizon)."""
    proof = every(schedule, Claim.POSITIVE, _last(horizon), Budget())
    return _from_proof(schedule, proof, f"{name} > 0", name)


def not_negative(schedule: Schedule, horizon: int | None = None, *, name: str = "u_t") -> Decision:
    """u_t >= 0 for every t (or every t <= horizon)."""
    proof = every(schedule, Claim.NOT_NEGATIVE, _last(horizon), Budget())
    return _from_proof(schedule, proof, f"{name} >= 0", name)


def in_unit_interval(
    schedule: Schedule,
    horizon: int | None = None,
    *,
    zero: bool = True,
    name: str = "u_t",
) -> Decision:
    """0 <= u_t < 1 for every t (or every t <= horizon); with zero=False, 0 < u_t < 1."""
    last, budget = _last(horizon), Budget()
    claim = f"0 {'<=' if zero else '<'} {name} < 1"
    proof = _worst(
        every(schedule, Claim.NOT_NEGATIVE if zero else Claim.POSITIVE, last, budget),
        every(1 - schedule, Claim.POSITIVE, last, budget),
    )
    return _from_proof(schedule, proof, claim, name)


def bounded_below_one(beta: Schedule, horizon: int | None = None) -> Decision:
    """0 <= beta_t <= beta for every t, with a number beta < 1: (R1)."""
    complement = 1 - beta
    growth = complement.growth
    if horizon is None and growth is not None and growth.trend < 0 and growth.sign > 0:
        order = scale_text(growth, "t")
        reason = f"beta_t tends to 1, as 1 - beta_t is of order {order}: no beta < 1 bounds it (R1)."
        return Decision(Status.FAILS, reason, GrowthWitness("1 - beta_t", growth))
    last, budget = _last(horizon), Budget()
    proof = _worst(
        every(beta, Claim.NOT_NEGATIVE, last, budget), every(complement, Claim.POSITIVE, last, budget)
    )
    if proof.t is not None:
        witness = _step(beta, proof.t)
        reason = f"beta_t = {_shown(beta, proof.t)} at t = {proof.t} is outside [0, 1) (R1)."
        return Decision(Status.FAILS, reason, witness)
    if proof.holds and (horizon is not None or _stays_away_from_zero(complement, growth)):
        constant = beta.constant_value
        if constant is not None:
            return Decision(Status.HOLDS, f"beta_t = {constant:g} for every t, below 1 (R1).")
        reason = f"beta_t stays in [0, beta] with beta < 1 (R1): {_how(proof, last)}."
        return Decision(Status.HOLDS, reason)
    return Decision(
        Status.UNDECIDED, f"Whether beta_t stays below some beta < 1 (R1) is open: {_open(proof)}."
    )


def _stays_away_from_zero(complement: Schedule, growth: Growth | None) -> bool:
    """Whether a positive sequence has a positive lower bound: where its tail does, the rest is finite."""
    if growth is not None:
        return growth.sign > 0 and growth.trend >= 0
    return any(enclose(complement, start).range.low > 0 for start in (1, 1024))


def non_decreasing(theta: Schedule, horizon: int | None = None) -> Decision:
    """0 < theta_t < 1 for every t, and never falling: (R2)."""
    last, budget, complement = _last(horizon), Budget(), 1 - theta
    # Of a callable the values are exact, and 1 less them are not.
    falling = -theta if isinstance(theta, Opaque) else complement
    # Where it never falls, theta_1 > 0 says it for every t.
    first = every(theta, Claim.POSITIVE, 1, budget)
    proof = _worst(
        first, every(complement, Claim.POSITIVE, last, budget), every(falling, Claim.FALLING, last, budget)
    )
    if proof.t is not None:
        return Decision(Status.FAILS, _refuted_theta(theta, proof.t), _step(theta, proof.t))
    if proof.holds:
        constant = theta.constant_value
        if constant is not None:
            reason = f"theta_t = {constant:g} for every t: in (0, 1) and non-decreasing (R2)."
        else:
            reason = f"0 < theta_t < 1 and non-decreasing (R2): {_how(proof, last)}."
        return Decision(Status.HOLDS, reason)
    reason = f"Whether theta_t stays in (0, 1) and never decreases (R2) is open: {_open(proof)}."
    return Decision(Status.UNDECIDED, reason)


def _refuted_theta(theta: Schedule, t: int) -> str:
    if theta.constant_value == 0:
        return "theta_t = 0 for every t; (R2) needs theta_t > 0."
    here = _shown(theta, t)
    if every(theta, Claim.POSITIVE, t).t == t:
        return f"theta_t = {here} at t = {t}; (R2) needs theta_t > 0."
    if every(1 - theta, Claim.POSITIVE, t).t == t:
        return f"theta_t = {here} at t = {t}; (R2) needs theta_t < 1."
    before = _shown(theta, t - 1)
    if before == here:
        with Precision():
            fall = ball(value(1 - theta, t)) - ball(value(1 - theta, t - 1))
        change = f"theta_t falls by {fall.str(4, radius=False)} from {before} at t = {t}"
    else:
        change = f"theta_t falls from {before} to {here} at t = {t}"
    return f"{change}; (R2) needs it non-decreasing."


def almost_non_increasing(chi: Schedule, horizon: int | None = None, *, name: str = "chi_t") -> Decision:
    """u_t > 0 and u_t <= C0 min_{i<=t} u_i for every t, with C0: (R3) asks it of chi_t."""
    inside = positive(chi, horizon, name=name)
    if not inside.holds:
        return inside
    return _almost_non_increasing(chi, horizon, name)


def _almost_non_increasing(chi: Schedule, horizon: int | None, name: str) -> Decision:
    growth = chi.growth
    growths = MappingProxyType({} if growth is None else {"chi": growth})
    if horizon is None and growth is not None and growth.trend > 0:
        reason = f"{name} grows like {growth}: not almost non-increasing (R3)."
        return Decision(Status.FAILS, reason, GrowthWitness("chi_t", growth), growths=growths)
    # For ever the answer is the growth's; how large C0 is is worth a part of the time.
    rise = least_rise(chi, _last(horizon), Budget(SECONDS / 4 if horizon is None else SECONDS))
    known = rise.constant if math.isfinite(rise.constant) else None
    cost = "" if known is None else f", C0 {'=' if rise.exact else '<='} {known:.6g}"
    if known is not None and horizon is not None:
        reason = f"chi_t <= C0 min chi_i up to t = {horizon} (R3){cost}."
    elif horizon is not None:
        reason = f"C0 of chi_t up to t = {horizon} (R3) is not known: no form bounds it, and T is too long."
        return Decision(Status.UNDECIDED, reason, growths=growths)
    elif growth is not None:
        order = f"is of order {growth}" if growth.trend else "stays between two positive constants"
        reason = f"{name} {order}: almost non-increasing (R3){cost}."
    elif known is not None:
        reason = f"{name} is almost non-increasing by its form (R3){cost}."
    else:
        return _open_rise(chi, "")
    return Decision(Status.HOLDS, reason, None, known, rise.exact, growths=growths)


def _open_rise(chi: Schedule, note: str) -> Decision:
    steps = 10_000
    if not note:
        seen = least_rise(chi, steps).constant
        note = f"C0 = {seen:.4g} on the first {steps:,} steps, which proves nothing"
    return Decision(Status.UNDECIDED, f"Whether chi_t is almost non-increasing (R3) is open: {note}.")


def step_sizes(method: Method, horizon: int | None = None) -> Decision:
    """(R3): chi_t = alpha_t / sqrt(1 - theta_t) > 0 is almost non-increasing, with C0."""
    parts = (("alpha_t", method.alpha), ("1 - theta_t", 1 - method.theta))
    for name, sequence in parts:
        found = positive(sequence, horizon, name=name)
        if isinstance(found.witness, StepWitness):
            t = found.witness.t
            reason = f"{name} = {_shown(sequence, t)} at t = {t}; (R3) needs chi_t > 0."
            return replace(found, reason=reason)
        if not found.holds:
            return found if horizon is not None else _open_rise(chi_of(method), "")
    return _almost_non_increasing(chi_of(method), horizon, "chi_t = alpha_t/sqrt(1-theta_t)")


def chi_of(method: Method) -> Schedule:
    """chi_t = alpha_t / sqrt(1 - theta_t), the sequence of (R3); kept, with what is found out about it."""
    known = method.alpha.known_facts
    if ("chi", method.theta) not in known:
        known["chi", method.theta] = method.alpha / sqrt(1 - method.theta)
    return known["chi", method.theta]


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
    if theta.is_constant:
        reason = f"theta_t stays at {theta} and would have to tend to 1."
    limit = growth.limit
    witness = GrowthWitness("1 - theta_t", growth) if limit is None else LimitWitness("theta_t", 1 - limit)
    return Decision(Status.FAILS, reason, witness, growths=growths)


def sum_diverges(schedule: Schedule, name: str = "u") -> Decision:
    """The sum of u_t >= 0 over all t is infinite; exact on the scale, 1/(t log t log log t) included."""
    growth = two_sided(schedule)
    if growth is None or growth.sign < 0:
        return Decision(Status.UNDECIDED, f"The order of {name}_t is not known.")
    growths = MappingProxyType({name: growth})
    if growth.sum_diverges:
        reason = f"The sum of {name}_t is infinite: its terms are of order {growth}."
        return Decision(Status.HOLDS, reason, growths=growths)
    reason = f"The sum of {name}_t is finite: its terms are of order {growth}."
    return Decision(Status.FAILS, reason, GrowthWitness(f"{name}_t", growth), growths=growths)


def two_sided(schedule: Schedule) -> Growth | None:
    """The g with c1 g(t) <= u_t + ... + u_{t+P-1} and u_t <= c2 g(t) for all late t and some P, or None.

    P = 1 is a growth proper. P > 1 are sequences that come back to 0 with a period (restarts to 0): a factor
    that repeats, is never negative and not always 0 counts as a constant.
    """
    growth = schedule.growth
    if growth is not None:
        return growth if growth.sign > 0 or growth.is_zero else None
    result = CONSTANT
    for base, exponent in factors(schedule).items():
        part = base.growth
        if part is None and isinstance(base, Periodic) and exponent > 0:
            try:
                low, high = extremes(base)
            except ScheduleError:
                return None
            part = CONSTANT if low >= 0 and high > 0 else None
        raised = None if part is None else part.raised_to(exponent)
        if raised is None:
            return None
        result = result * raised
    return result


def weighted_steps(method: Method) -> Schedule:
    r"""Return the schedule :math:`\alpha_t\sqrt{1-\theta_t}`."""
    return method.alpha * sqrt(1 - method.theta)


def ratio(method: Method, steps: int) -> float:
    r"""Return :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}\,/\,(T\alpha_T)`; condition 4: it tends to 0.

    Raises:
      SumError: alpha_T is not positive, or the sum cannot be computed.
    """
    total = checked_horizon(steps)
    last = _positive_step(method, total)
    return partial_sum(weighted_steps(method), total) / (total * last)


def ratios(method: Method, horizons: Iterable[int]) -> Iterator[tuple[int, float]]:
    """The ratio of condition 4 at several T, from the smallest up, left out where it cannot be computed."""
    ends = sorted(set(horizons))
    with suppress(ScheduleError):
        for end, total in zip(ends, partial_sums(weighted_steps(method), ends), strict=True):
            with suppress(ScheduleError):
                yield end, total / (end * _positive_step(method, end))


def _positive_step(method: Method, steps: int) -> float:
    last = late_value(method.alpha, steps)
    if not last > 0:
        raise SumError(f"alpha_T is {last} at T = {steps}, expected a positive number")
    return last


def ratio_growth(method: Method) -> Growth | None:
    r"""The growth of sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) (condition 4), or None if unknown."""
    terms, steps = weighted_steps(method).growth, method.alpha.growth
    if terms is None or steps is None or steps.sign <= 0:
        return None
    sums, inverse = terms.partial_sums(), (steps * LINEAR).inverse()
    return None if sums is None or inverse is None else sums * inverse


def paper_ratio(method: Method) -> Decision:
    r"""Condition 4: sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) tends to 0; its order is the rate."""
    name = "sum alpha_t sqrt(1-theta_t) / (T alpha_T)"
    alpha, order = method.alpha.growth, ratio_growth(method)
    if order is None:
        if alpha is not None and alpha.is_zero:
            reason = f"alpha_t is 0 from some t on, where {name} is infinite (Corollary SC)."
            return Decision(Status.FAILS, reason, GrowthWitness("alpha_t", alpha))
        reason = f"Whether {name} tends to 0 is open: the growth of alpha_t or theta_t is not known."
        return Decision(Status.UNDECIDED, reason)
    text, growths = scale_text(order, "T"), MappingProxyType({"ratio": order})
    if order.trend < 0:
        reason = f"{name} is of order {text}, which tends to 0 (Corollary SC)."
        return Decision(Status.HOLDS, reason, rate=rate_of(order), growths=growths)
    limit = order.limit
    witness: Witness = GrowthWitness("ratio", order, "T") if limit is None else LimitWitness("ratio", limit)
    if order.trend > 0:
        reason = f"{name} grows like {text} and does not tend to 0 (Corollary SC)."
    elif limit is None:
        reason = f"{name} stays between two positive constants and does not tend to 0 (Corollary SC)."
    else:
        reason = f"{name} tends to {limit:.4g}, not to 0 (Corollary SC): the bound has a floor."
    return Decision(Status.FAILS, reason, witness, growths=growths)


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
        not_negative(method.alpha, name="alpha_t"),
    ):
        if not step.holds:
            return step
    alpha, q = two_sided(method.alpha), (1 - method.theta).growth
    if alpha is None or q is None or q.sign <= 0:
        return Decision(Status.UNDECIDED, "The exact order of alpha_t or of 1 - theta_t is not known.")
    return _on_the_scale(alpha, q)


def _theta_inside(theta: Schedule, first_may_be_zero: bool) -> Decision:
    inside = in_unit_interval(theta, zero=False, name="theta_t")
    zero_at_first = isinstance(inside.witness, StepWitness) and inside.witness == StepWitness(1, 0.0)
    if not (first_may_be_zero and zero_at_first):
        return inside
    # From t = 2 on as before: a beginning of 1/2 in place of the 0 leaves the rest as it is.
    return in_unit_interval(_with_first(theta), zero=False, name="theta_t")


def _with_first(theta: Schedule) -> Schedule:
    return join(Fraction(1, 2), 2, theta)


def _on_the_scale(alpha: Growth, q: Growth) -> Decision:
    if not alpha.sum_diverges:
        reason = f"The sum of alpha_t is finite: its terms are of order {alpha}."
        return Decision(Status.FAILS, reason, GrowthWitness("alpha_t", alpha))
    root = q.raised_to(Fraction(1, 2))
    inverse = None if root is None else root.inverse()
    total, squares = alpha.partial_sums(), q.partial_sums()
    noise = None if root is None else (alpha * root).partial_sums()
    divisor = None if total is None else total.inverse()
    if inverse is None or divisor is None or squares is None or noise is None:
        return Decision(Status.UNDECIDED, "A sum of alpha_t or 1 - theta_t is off the scale of growths.")
    step = alpha * inverse
    order = (
        CONSTANT.largest(noise) if step.trend <= 0 else step * step * CONSTANT.largest(squares)
    ) * divisor
    growths = MappingProxyType({"alpha": alpha, "1 - theta": q, "chi": step, "rate": order})
    if order.trend < 0:
        reason = f"Theorem W's bound is of order {scale_text(order, 'T')}, which tends to 0."
        return Decision(Status.HOLDS, reason, rate=rate_of(order), growths=growths)
    reason = f"Theorem W's bound is of order {scale_text(order, 'T')}, which does not tend to 0."
    return Decision(Status.FAILS, reason, GrowthWitness("bound", order, "T"), growths=growths)


def _last(horizon: int | None) -> float:
    return math.inf if horizon is None else horizon


def _worst(*proofs: Proof) -> Proof:
    """Several claims together: the earliest refutation, else what is open, else a proof of all."""
    refuted = [proof for proof in proofs if proof.t is not None]
    if refuted:
        return min(refuted, key=lambda proof: proof.t or 0)
    for proof in proofs:
        if proof.holds is None:
            return proof
    return max(proofs, key=lambda proof: proof.by_form_from)


def _from_proof(schedule: Schedule, proof: Proof, claim: str, name: str) -> Decision:
    if proof.holds:
        return Decision(Status.HOLDS, f"{claim} for every t asked about.")
    if proof.t is not None:
        reason = f"{name} = {_shown(schedule, proof.t)} at t = {proof.t}; expected {claim}."
        return Decision(Status.FAILS, reason, _step(schedule, proof.t))
    return Decision(Status.UNDECIDED, f"Whether {claim} is open: {_open(proof)}.")


def _number(schedule: Schedule, t: int) -> Number | None:
    try:
        with Precision():
            return value(schedule, t)
    except ScheduleError:
        return None


def _step(schedule: Schedule, t: int) -> StepWitness:
    found = _number(schedule, t)
    return StepWitness(t, None if found is None else nearest(found))


def _shown(schedule: Schedule, t: int) -> str:
    """A value in a sentence; a number too small for a float is not 0."""
    found = _number(schedule, t)
    if found is None:
        return "undefined"
    short = f"{nearest(found):.10g}"
    return ball(found).str(6, radius=False) if short in {"0", "-0"} and found != 0 else short


def _how(proof: Proof, last: float) -> str:
    if math.isfinite(last):
        return f"shown for every t up to {last:.0f}"
    if proof.by_form_from <= 1:
        return "by its form, for every t"
    return f"checked step by step to t = {proof.by_form_from}, by its form from there on"


def _open(proof: Proof) -> str:
    if proof.note:
        return proof.note
    return f"no violation up to t = {proof.checked_to:,}, which proves nothing about later t"
