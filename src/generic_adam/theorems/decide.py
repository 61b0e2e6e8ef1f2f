r"""Hypotheses about sequences, decided in one place: for every t, or on the steps 1..T.

Every theorem asks here, and gets one of three answers: holds, fails with a witness, or undecided with what
was tried. A witness is typed (a step, a growth, a limit): nobody reads a sentence to find a number in it.
What is proved about single sequences is proved in `schedules.prove` and `schedules.rise`, with balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from generic_adam.errors import ScheduleError
from generic_adam.methods import Method
from generic_adam.schedules import Growth, Opaque, Periodic, Schedule, join, sqrt
from generic_adam.schedules import t as time
from generic_adam.schedules.balls import Number, Precision, ball, decided, nearest, rounded_up, sign, sign_of, value
from generic_adam.schedules.enclosure import enclose, extremes, factors, resolved
from generic_adam.schedules.expansion import direction
from generic_adam.schedules.growth import CONSTANT, LINEAR
from generic_adam.schedules.prove import Inequality, Proof, every, least_rise
from generic_adam.schedules.sums import SumError, late_value, partial_sum, whole_steps

_LOOKED_AT = 10_000
# Steps from which on a tail is asked for its direction.
_TAILS = (64, 4096, 1 << 20)
_COMPARED = (2, 3, *(2**k for k in range(2, 13)))


class Status(StrEnum):
    """The answer to one condition. `FAILS` means "not met"; it never means that the method diverges."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True, order=True)
class Rate:
    r"""T^power (log T)^log (log log T)^loglog up to a constant: the order of a bound; a faster one is less."""

    power: Fraction
    log: Fraction = Fraction(0)
    loglog: Fraction = Fraction(0)

    def __str__(self) -> str:
        return Growth.of(1, power=self.power, log=self.log, loglog=self.loglog).scale.text("T")


def rate_of(order: Growth | None) -> Rate | None:
    """Return the rate that an order stands for; None off the polynomial scale."""
    return None if order is None or order.rho.sign_of_log else Rate(order.power, order.log, order.loglog)


@dataclass(frozen=True)
class StepWitness:
    """A step at which the hypothesis is violated, and the value there, as near as a float is."""

    t: int
    value: float | None = None

    def __str__(self) -> str:
        return f"t = {self.t}"


@dataclass(frozen=True)
class GrowthWitness:
    """A sequence, such as "chi_t", whose order of growth violates the hypothesis; sums are up to "T"."""

    sequence: str
    growth: Growth
    variable: str = "t"

    def __str__(self) -> str:
        if self.growth.is_zero:
            return f"{self.sequence} = 0 from some step on"
        return f"{self.sequence} ~ {self.growth.scale.text(self.variable)}"


@dataclass(frozen=True)
class LimitWitness:
    """A sequence whose limit violates the hypothesis."""

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
        order: the order of a ratio or a bound that was asked to tend to 0, whether it does or not.
        rise: C0 of an almost non-increasing sequence, or the sequence: finding it costs more than the answer does.
        asks: the name of the hypothesis, set by the theorem that asks.
    """

    status: Status
    reason: str
    witness: Witness | None = None
    order: Growth | None = None
    rise: float | Schedule | None = field(default=None, compare=False, repr=False)
    asks: str = field(default="", compare=False)

    @property
    def constant(self) -> float | None:
        """C0, where an almost non-increasing sequence was asked for: never below the true one; None if unknown."""
        return constant_of(self.rise)

    @property
    def holds(self) -> bool:
        """True if the answer is "holds"."""
        return self.status is Status.HOLDS

    @property
    def rate(self) -> Rate | None:
        """The order as a rate, where the answer is "holds"."""
        return rate_of(self.order) if self.holds else None


def constant(schedule: Schedule, told: str, asked: str) -> Decision:
    """u_t is constant: by its form; a value that differs from the first for certain refutes it; else it is open."""
    if schedule.is_constant:
        return Decision(Status.HOLDS, told)
    first = _number(schedule, 1)
    for t in _COMPARED:
        other = _number(schedule, t)
        if first is not None and other is not None and sign_of(ball(other) - ball(first)):
            return Decision(Status.FAILS, f"{asked}; it moves at t = {t}.", _step(schedule, t))
    return Decision(Status.UNDECIDED, f"{asked}; by its form it is not.")


def positive(schedule: Schedule, horizon: int | None = None, *, name: str = "u_t") -> Decision:
    """u_t > 0 for every t (or every t <= horizon)."""
    return _in_range(schedule, name, f"{name} > 0", (schedule, Inequality.POSITIVE, _last(horizon)))


def not_negative(schedule: Schedule, horizon: int | None = None, *, name: str = "u_t") -> Decision:
    """u_t >= 0 for every t (or every t <= horizon)."""
    return _in_range(schedule, name, f"{name} >= 0", (schedule, Inequality.NOT_NEGATIVE, _last(horizon)))


def in_unit_interval(schedule: Schedule, *, name: str = "u_t", from_zero: bool = False) -> Decision:
    """0 < u_t < 1 for every t; u_1 = 0 is allowed where it says so."""
    if from_zero and sign(schedule, 1) == 0:  # 1/2 in place of the 0 leaves the rest as it is
        schedule = join(Fraction(1, 2), 2, schedule)
    claims = ((schedule, Inequality.POSITIVE, math.inf), (1 - schedule, Inequality.POSITIVE, math.inf))
    return _in_range(schedule, name, f"0 < {name} < 1", *claims)


def never_rises(schedule: Schedule, *, name: str = "u_t") -> Decision:
    """u_t <= u_{t-1} for every t >= 2."""
    return _answered(
        schedule,
        _proved((schedule, Inequality.FALLING, math.inf)),
        refuted=lambda t: f"{name} rises at t = {t}, to {_shown(schedule, t)}.",
        held=f"{name} never rises.",
        question=f"{name} never rises",
    )


def bounded_below_one(beta: Schedule, horizon: int | None = None) -> Decision:
    """0 <= beta_t <= beta for every t, with a number beta < 1: (R1)."""
    complement, last = 1 - beta, _last(horizon)
    growth = complement.growth
    if horizon is None and growth is not None and growth.trend < 0 and growth.sign > 0:
        order = growth.scale.text("t")
        reason = f"beta_t tends to 1, as 1 - beta_t is of order {order}: no beta < 1 bounds it (R1)."
        return Decision(Status.FAILS, reason, GrowthWitness("1 - beta_t", growth))
    proof = _proved((beta, Inequality.NOT_NEGATIVE, last), (complement, Inequality.POSITIVE, last))
    if proof.holds and not (horizon is not None or _stays_away_from_zero(complement, growth)):
        proof = replace(proof, holds=None)
    return _answered(
        beta,
        proof,
        refuted=lambda t: f"beta_t = {_shown(beta, t)} at t = {t} is outside [0, 1) (R1).",
        held=f"beta_t stays in [0, beta] with beta < 1 (R1): {_how(beta, proof, last)}.",
        question="beta_t stays below some beta < 1 (R1)",
    )


def _stays_away_from_zero(complement: Schedule, growth: Growth | None) -> bool:
    """Return whether a positive sequence has a positive lower bound: where its tail does, the rest is finite."""
    if growth is not None:
        return growth.sign > 0 and growth.trend >= 0
    return any(enclose(complement, start).range.low > 0 for start in (1, 1024))


def non_decreasing(theta: Schedule, horizon: int | None = None) -> Decision:
    """0 < theta_t < 1 for every t, and never falling: (R2)."""
    last, complement = _last(horizon), 1 - theta
    # Where it never falls, theta_1 > 0 says it for every t.
    claims = (theta, Inequality.POSITIVE, 1), (complement, Inequality.POSITIVE, last)
    # Of a callable the values are exact, and 1 less them are not; elsewhere theta's own form may tell more.
    proof = Proof(None) if isinstance(theta, Opaque) else _proved(*claims, (complement, Inequality.FALLING, last))
    if proof.holds is None:
        proof = _proved(*claims, (-theta, Inequality.FALLING, last))
    return _answered(
        theta,
        proof,
        refuted=lambda t: _refuted_theta(theta, t),
        held=f"0 < theta_t < 1 and non-decreasing (R2): {_how(theta, proof, last)}.",
        question="theta_t stays in (0, 1) and never decreases (R2)",
    )


def _refuted_theta(theta: Schedule, t: int) -> str:
    if theta.constant_value == 0:
        return "theta_t = 0 for every t; (R2) needs theta_t > 0."
    here = _shown(theta, t)
    for side, needed in ((theta, "theta_t > 0"), (1 - theta, "theta_t < 1")):
        if every(side, Inequality.POSITIVE, t).t == t:
            return f"theta_t = {here} at t = {t}; (R2) needs {needed}."
    before = _shown(theta, t - 1)
    change = f"falls from {before} to {here} at t = {t}"
    if before == here:
        _, fall = decided(lambda: value(1 - theta, t) - value(1 - theta, t - 1))
        change = f"falls by {ball(fall).str(4, radius=False)} from {before} at t = {t}"
    return f"theta_t {change}; (R2) needs it non-decreasing."


def step_sizes(method: Method, horizon: int | None = None) -> Decision:
    """(R3): chi_t = alpha_t / sqrt(1 - theta_t) > 0 and chi_t <= C0 min_{i<=t} chi_i for every t, with C0."""
    chi, name = chi_of(method), "chi_t = alpha_t/sqrt(1-theta_t)"
    for part, sequence in (("alpha_t", method.alpha), ("1 - theta_t", 1 - method.theta)):
        found = positive(sequence, horizon, name=part)
        if isinstance(found.witness, StepWitness):
            t = found.witness.t
            reason = f"{part} = {_shown(sequence, t)} at t = {t}; (R3) needs chi_t > 0."
            return replace(found, reason=reason)
        if not found.holds:
            return found if horizon is not None else _open_rise(chi)
    growth = chi.growth
    if horizon is None and growth is not None and growth.trend > 0:
        reason = f"{name} grows like {growth}: not almost non-increasing (R3)."
        return Decision(Status.FAILS, reason, GrowthWitness("chi_t", growth))
    if horizon is None and growth is not None:  # the answer is the growth's; how large C0 is only some ask
        order = f"is of order {growth}" if growth.trend else "stays between two positive constants"
        told = f"{name} {order}: almost non-increasing (R3)."
        return Decision(Status.HOLDS, told, rise=chi)
    rise = least_rise(chi, _last(horizon))
    if math.isfinite(rise.constant):
        cost = f"C0 = {rise.constant:.6g}" if rise.exact else f"C0 <= {rounded_up(rise.constant, 6)}"
        reason = f"{name} is almost non-increasing by its form (R3), {cost}."
        if horizon is not None:
            reason = f"chi_t <= C0 min chi_i up to t = {horizon} (R3), {cost}."
        return Decision(Status.HOLDS, reason, rise=rise.constant)
    if horizon is None:
        return _open_rise(chi, f"{rise.note}, ")
    reason = f"C0 of chi_t up to t = {horizon} (R3) is not known: {rise.note}."
    return Decision(Status.UNDECIDED, reason)


def constant_of(rise: float | Schedule | None) -> float | None:
    """C0 as a number, found now where only the sequence is known; None if no form bounds it."""
    if not isinstance(rise, Schedule):
        return rise
    found = least_rise(rise).constant
    return found if math.isfinite(found) else None


def _open_rise(chi: Schedule, why: str = "") -> Decision:
    seen = least_rise(chi, _LOOKED_AT)
    told = seen.note or f"C0 = {seen.constant:.4g} on the first {_LOOKED_AT:,} steps, which proves nothing"
    reason = f"Whether chi_t is almost non-increasing (R3) is open: {why}{told}."
    return Decision(Status.UNDECIDED, reason)


def chi_of(method: Method) -> Schedule:
    """chi_t = alpha_t / sqrt(1 - theta_t), the sequence of (R3); kept, with what is found out about it."""
    known = method.alpha.known_facts
    if ("chi", method.theta) not in known:
        known["chi", method.theta] = method.alpha / sqrt(1 - method.theta)
    return known["chi", method.theta]


def regular(alpha: Schedule, name: str = "alpha_t") -> Decision:
    """(V): from some step on u_t > 0 never rises, and t (u_t - u_{t+1}) <= C u_t for some C.

    The second holds where u_t t^C never falls, for some C: u_{t+1}/u_t >= (1 + 1/t)^-C >= 1 - C/t.
    """
    growth = alpha.growth
    if growth is not None and growth.sign > 0 and growth.trend <= 0 and not growth.rho.sign_of_log:
        power = math.ceil(-growth.power) + 1
        for start, late in _late(alpha):
            if direction(late, start, math.inf) in {0, -1} and direction(late * time**power, start, math.inf) in {0, 1}:
                told = f"From t = {start:,} on {name} falls, and {name} t^{power} does not (V)."
                return Decision(Status.HOLDS, told)
    return Decision(Status.UNDECIDED, f"Whether {name} falls evenly, no faster than a power of t (V), is open.")


def _late(schedule: Schedule) -> Iterator[tuple[int, Schedule]]:
    """Yield steps behind all joins, each with the form of the schedule from there on."""
    first = max([1, *schedule.joins])
    for start in (first, *(one + first for one in _TAILS)):
        yield start, resolved(schedule, start)


def late_constant(schedule: Schedule) -> bool:
    """Return whether u_t is constant from some step on, by its form."""
    return any(late.is_constant for _, late in _late(schedule))


def late_falls(schedule: Schedule) -> bool:
    """Return whether u_t never rises from some step on, where a form says so."""
    return any(direction(late, start, math.inf) in {0, -1} for start, late in _late(schedule))


def limit_is_one(theta: Schedule) -> Decision:
    """theta_t tends to 1."""
    growth = (1 - theta).growth
    if growth is None:
        return Decision(Status.UNDECIDED, "The order of 1 - theta_t is not known.")
    if growth.is_zero or growth.trend < 0:
        return Decision(Status.HOLDS, f"1 - theta_t is of order {growth}: theta_t tends to 1.")
    reason = "theta_t does not tend to 1: 1 - theta_t stays above a positive number."
    if theta.is_constant:
        reason = f"theta_t is constant ({theta}); the guarantee needs it to approach 1."
    limit = growth.limit
    witness = GrowthWitness("1 - theta_t", growth) if limit is None else LimitWitness("theta_t", 1 - limit)
    return Decision(Status.FAILS, reason, witness)


def sum_diverges(schedule: Schedule, name: str = "u") -> Decision:
    """Decide whether the sum of u_t >= 0 is infinite; exact on the scale, 1/(t log t log log t) included."""
    growth = two_sided(schedule)
    if growth is None or growth.sign < 0:
        return Decision(Status.UNDECIDED, f"The order of {name}_t is not known.")
    told = f"The sum of {name}_t is {{}}: its terms are of order {growth}."
    if growth.sum_diverges:
        return Decision(Status.HOLDS, told.format("infinite"))
    return Decision(Status.FAILS, told.format("finite"), GrowthWitness(f"{name}_t", growth))


def two_sided(schedule: Schedule) -> Growth | None:
    """Return the g with c1 g(t) <= u_t + ... + u_{t+P-1} and u_t <= c2 g(t) for all late t and some P, or None.

    P = 1 is a growth proper. P > 1 are sequences that come back to 0 with a period (restarts to 0): a factor
    that repeats, is never negative and not always 0 counts as a constant.
    """
    growth = schedule.growth
    if growth is not None:
        return growth if growth.sign > 0 or growth.is_zero else None
    result, repeats = CONSTANT, False
    for base, exponent in factors(schedule).items():
        part = base.growth
        # Of two that come back to 0 the product may be 0 throughout.
        if part is None and isinstance(base, Periodic) and exponent > 0 and not repeats:
            repeats = True
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
    total = whole_steps(steps)
    last = late_value(method.alpha, total)
    if not last > 0:
        raise SumError(f"alpha_T is {last} at T = {steps}, expected a positive number")
    return partial_sum(weighted_steps(method), total) / (total * last)


def ratio_growth(method: Method) -> Growth | None:
    r"""Return the growth of sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) (condition 4), or None if unknown."""
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
    text, limit = order.scale.text("T"), order.limit
    if order.trend < 0:
        reason = f"{name} is of order {text}, which tends to 0 (Corollary SC)."
        return Decision(Status.HOLDS, reason, order=order)
    witness: Witness = GrowthWitness("ratio", order, "T") if limit is None else LimitWitness("ratio", limit)
    if order.trend > 0:
        ends = f"grows like {text} and does not tend to 0 (Corollary SC)"
    elif limit is None:
        ends = "stays between two positive constants and does not tend to 0 (Corollary SC)"
    else:
        ends = f"tends to {limit:.4g}, not to 0 (Corollary SC): the bound has a floor"
    return Decision(Status.FAILS, f"{name} {ends}.", witness, order=order)


def weighted(method: Method, *, noisy: bool = True) -> Decision:
    r"""Decide whether Theorem W's bound tends to 0 (W-infinity: SC' and SC''), decided on the growth scale.

    Asked where beta_t <= beta < 1, theta_t -> 1 and sum alpha_t = infinity; 1 - theta_t is of exact order g_q for all
    late t, alpha_t of order g_a (see `two_sided`).

    - chi = g_a / sqrt(g_q) does not grow: it does, and the rate is max(1, sum alpha_t sqrt(q_t)) / sum alpha_t.
    - chi grows: the rate is chi_T^2 max(1, sum q_t) / sum alpha_t, where that tends to 0.

    Without noise (Theorems M and B) alpha_t^2 stands for alpha_t sqrt(q_t), and theta_t -> 1 is not asked for.
    """
    alpha, q = two_sided(method.alpha), (1 - method.theta).growth
    root, inverse = (None, None) if q is None or q.sign <= 0 else (q.raised_to(Fraction(1, 2)), q.inverse())
    if alpha is None or root is None or inverse is None:
        return Decision(Status.UNDECIDED, "The exact order of alpha_t or of 1 - theta_t is not known.")
    squared = alpha * alpha * inverse  # chi_t^2
    terms = alpha * (root if noisy else alpha)
    order = over_sums(terms if squared.trend <= 0 else q, alpha)
    if order is None:
        return Decision(Status.UNDECIDED, "A sum of alpha_t or 1 - theta_t is off the scale of growths.")
    order = order if squared.trend <= 0 else squared * order
    return vanishes(order, "Theorem W's bound" if noisy else "the drift")


def vanishes(order: Growth | None, name: str, variable: str = "T") -> Decision:
    """Decide whether something of that order tends to 0."""
    if order is None:
        return Decision(Status.UNDECIDED, f"The order of {name} is not known.")
    told = f"{name} is of order {order.scale.text(variable)}, which"
    if order.is_zero or order.trend < 0:
        return Decision(Status.HOLDS, f"{told} tends to 0.", order=order)
    return Decision(Status.FAILS, f"{told} does not tend to 0.", GrowthWitness(name, order, variable), order)


def over_sums(terms: Growth | None, divisor: Growth | None) -> Growth | None:
    """max(1, sum_{t<=T} u_t) / sum_{t<=T} w_t from the growths of u and w; None off the scale."""
    sums, total = (one and one.partial_sums() for one in (terms, divisor))
    inverse = total and total.inverse()
    return sums and inverse and CONSTANT.largest(sums) * inverse


def _last(horizon: int | None) -> float:
    return math.inf if horizon is None else horizon


def _proved(*claims: tuple[Schedule, Inequality, float]) -> Proof:
    """Several claims together: the earliest refutation, else what is open, else a proof of all."""
    proofs = [every(schedule, claim, last) for schedule, claim, last in claims]
    refuted = [proof for proof in proofs if proof.t is not None]
    if refuted:
        return min(refuted, key=lambda proof: proof.t or 0)
    left_open = next((proof for proof in proofs if proof.holds is None), None)
    return left_open or max(proofs, key=lambda proof: proof.by_form_from)


def _answered(schedule: Schedule, proof: Proof, *, refuted: Callable[[int], str], held: str, question: str) -> Decision:
    if proof.t is not None:
        return Decision(Status.FAILS, refuted(proof.t), _step(schedule, proof.t))
    if proof.holds:
        return Decision(Status.HOLDS, held)
    tried = proof.note or f"no violation up to t = {proof.checked_to:,}, which proves nothing about later t"
    return Decision(Status.UNDECIDED, f"Whether {question} is open: {tried}.")


def _in_range(schedule: Schedule, name: str, claim: str, *claims: tuple[Schedule, Inequality, float]) -> Decision:
    return _answered(
        schedule,
        _proved(*claims),
        refuted=lambda t: f"{name} = {_shown(schedule, t)} at t = {t}; expected {claim}.",
        held=f"{claim} for every t asked about.",
        question=claim,
    )


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
    """Return a value for a sentence; a number too small for a float is not 0."""
    found = _number(schedule, t)
    if found is None:
        return "undefined"
    short = f"{nearest(found):.10g}"
    return ball(found).str(6, radius=False) if short in {"0", "-0"} and found != 0 else short


def _how(schedule: Schedule, proof: Proof, last: float) -> str:
    if schedule.constant_value is not None:
        return f"it is {schedule.constant_value:g} for every t"
    if math.isfinite(last):
        return f"shown for every t up to {last:.0f}"
    if proof.by_form_from <= 1:
        return "by its form, for every t"
    return f"checked step by step to t = {proof.by_form_from}, by its form from there on"
