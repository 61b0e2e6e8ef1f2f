r"""Changes to one sequence of a method, each of which mends one way to miss the sufficient condition.

None of them is trusted: `advise` certifies every method built from them and drops those that are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction

from generic_adam.methods import Method, MethodError
from generic_adam.schedules import (
    Constant,
    Join,
    Schedule,
    ScheduleError,
    Time,
    WeightedTheta,
    as_power_of_t,
    as_schedule,
    join,
    maximum,
    minimum,
    sqrt,
    t,
)

_MOMENTUM_CAP = Fraction(999, 1000)
_RATE_FLOOR = Fraction(1, 100)
_HOLDS = (2, 3, 5, 10, 100)
_LATEST_START = 8


@dataclass(frozen=True)
class Candidate:
    """A changed method, not yet certified.

    Args:
      method: the method after the change.
      changes: what was changed, one phrase a sequence.
      last_step: the last t at which it differs from the original, where the change ends; None if it may not.
    """

    method: Method
    changes: tuple[str, ...] = ()
    last_step: int | None = 0

    def changed(self, phrase: str, last_step: int | None = None, **sequences: Schedule) -> Candidate:
        """Return the candidate with some sequences replaced."""
        old = self.method
        method = Method(
            sequences.get("alpha", old.alpha),
            sequences.get("beta", old.beta),
            sequences.get("theta", old.theta),
        )
        both_end = last_step is not None and self.last_step is not None
        last = max(last_step or 0, self.last_step or 0) if both_end else None
        return Candidate(method, (*self.changes, phrase), last)


Repair = Callable[[Candidate], Iterator[Candidate]]


def capped_momentum(candidate: Candidate) -> Iterator[Candidate]:
    """Keep beta_t below 0.999, where it tends to 1 (condition 1)."""
    if not candidate.method.beta.is_constant:
        beta = minimum(candidate.method.beta, _MOMENTUM_CAP)
        yield candidate.changed(f"beta_t capped at {float(_MOMENTUM_CAP):g}", beta=beta)


def held_beginning(candidate: Candidate) -> Iterator[Candidate]:
    """Hold theta_t at theta_K for t < K: mends theta_1 = 0 and a beginning that falls (condition 2)."""
    theta = candidate.method.theta
    if theta.is_constant:
        return
    for hold in _HOLDS:
        held = at_time(theta, maximum(t, hold))
        if held is None:
            held = join(theta(hold), hold, theta)
        yield candidate.changed(
            f"theta_t held at theta_{hold} = {theta(hold):.6g} for t < {hold}", hold - 1, theta=held
        )


def shifted_time(candidate: Candidate) -> Iterator[Candidate]:
    """Read theta_t one step later, theta_{t+1}: the other way to mend theta_1 = 0."""
    theta = candidate.method.theta
    shifted = None if theta.is_constant else at_time(theta, t + 1)
    if shifted is not None:
        yield candidate.changed(f"theta_t = {shifted}, one step ahead", theta=shifted)


def later_weights(candidate: Candidate) -> Iterator[Candidate]:
    """Start the weights of Weighted AdaEMA later, with W_0 the sum so far: theta_t becomes theta_{t+k}."""
    theta = candidate.method.theta
    if not isinstance(theta, WeightedTheta):
        return
    total = theta.initial
    for start in range(1, _LATEST_START + 1):
        shifted = at_time(theta.weights, t + start)
        if shifted is None:
            return
        total += Fraction(theta.weights(start)).limit_denominator(10**12)
        later = WeightedTheta(shifted, total)
        phrase = f"the weights start at w_{start + 1}, with W_0 = {float(total):g} the sum so far"
        yield candidate.changed(phrase, theta=later)


def rising_theta(candidate: Candidate) -> Iterator[Candidate]:
    """Let theta_t rise to 1 as 1 - 1/t once that exceeds it: mends a limit below 1 (condition 4)."""
    theta = candidate.method.theta
    complement = (1 - theta).growth
    if complement is None or complement.trend < 0:
        return
    yield candidate.changed(f"theta_t = max({theta}, 1 - 1/t)", theta=maximum(theta, 1 - 1 / t))


def slower_theta(candidate: Candidate) -> Iterator[Candidate]:
    r"""Let 1 - theta_t fall no faster than alpha_t^2: mends chi_t -> infinity (condition 3).

    For alpha_t = eta/t^s and 1 - theta_t = c/t^r with r > 2s, this is the largest certified r, r = 2s.
    """
    alpha, theta = candidate.method.alpha, candidate.method.theta
    steps, rest = as_power_of_t(alpha), _power_of_time(1 - theta)
    if steps is not None and rest is not None:
        scale, time, exponent = rest
        largest = -2 * steps[1]
        if 0 < largest < exponent:
            slower = 1 - as_schedule(scale) / time ** as_schedule(largest)
            phrase = f"r = {_number(largest)} in place of {_number(exponent)}: theta_t = {slower}"
            yield candidate.changed(phrase, theta=slower)
        return
    reference = (1 - theta)(1) / alpha(1) ** 2
    slower = minimum(theta, 1 - as_schedule(reference) * alpha**2)
    yield candidate.changed(f"1 - theta_t no smaller than {reference:.6g} alpha_t^2", theta=slower)


def root_decay(candidate: Candidate) -> Iterator[Candidate]:
    r"""Let alpha_t decay as sqrt(K/t) from K = 1/(1-theta) on: the repair of a constant learning rate.

    With theta_t = max(theta, 1 - 1/t) the product alpha_t / sqrt(1 - theta_t) is then constant from t = K on.
    """
    hold = _memory(candidate.method.theta)
    if hold is None:
        return
    alpha = candidate.method.alpha * minimum(1, sqrt(as_schedule(hold) / t))
    yield candidate.changed(f"alpha_t times min(1, sqrt({_number(hold)}/t))", alpha=alpha)


def capped_chi(candidate: Candidate) -> Iterator[Candidate]:
    """Let alpha_t be no larger than chi_1 sqrt(1 - theta_t), so that chi_t stays bounded (condition 3)."""
    method = candidate.method
    complement = 1 - method.theta
    if complement.is_constant or _memory(method.theta) is not None:
        return  # with constant theta nothing is gained, and a theta made to rise has its own repair
    # Rounded up, so that alpha_1 itself is not touched.
    reference = method.alpha(1) / math.sqrt(complement(1))
    cap = as_schedule(float(f"{reference * (1 + 1e-8):.9g}")) * sqrt(complement)
    yield candidate.changed(
        f"alpha_t no larger than {reference:.6g} sqrt(1 - theta_t)", alpha=minimum(method.alpha, cap)
    )


def raised_rate(candidate: Candidate) -> Iterator[Candidate]:
    """Let alpha_t be no smaller than alpha_1/(100 sqrt(t)): mends a T alpha_T that stays bounded."""
    alpha = candidate.method.alpha
    first = alpha(1)
    growth = alpha.growth
    vanishes = growth is not None and growth.is_zero
    slow = growth is not None and growth.rho.sign_of_log == 0 and growth.power > -1
    if first <= 0 or (slow and not vanishes):
        return
    floor = as_schedule(float(f"{first * float(_RATE_FLOOR):.12g}")) / sqrt(t)
    yield candidate.changed(f"alpha_t no smaller than {floor}", alpha=maximum(alpha, floor))


STAGES: tuple[tuple[tuple[int, Repair], ...], ...] = (
    ((1, capped_momentum),),
    ((2, held_beginning), (2, shifted_time), (2, later_weights)),
    ((4, rising_theta), (3, slower_theta)),
    ((3, root_decay), (3, capped_chi), (4, raised_rate)),
)
"""The repairs with the condition each is for, in the order in which they are tried: beta, theta, alpha."""


def applied(repair: Repair, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidates of a repair; one that makes no method (a value out of range) is no candidate."""
    try:
        yield from repair(candidate)
    except (MethodError, ScheduleError, ZeroDivisionError, OverflowError):
        return


def at_time(schedule: Schedule, time: Schedule) -> Schedule | None:
    """Return the schedule with t replaced by another time, or None where it has more than t inside."""
    if isinstance(schedule, Time):
        return time
    # The threshold of a join is a time of its own, which would stay where it is.
    if isinstance(schedule, Join) or not schedule.accepts_real_times:
        return None
    parts: list[object] = []
    for field in fields(schedule):  # type: ignore[arg-type]
        value = getattr(schedule, field.name)
        part = at_time(value, time) if isinstance(value, Schedule) else value
        if part is None:
            return None
        parts.append(part)
    return type(schedule)(*parts)


def _power_of_time(complement: Schedule) -> tuple[Fraction, Schedule, Fraction] | None:
    """Return (c, time, r) if the schedule is c/time^r by its form, with time t or max(t, K)."""
    from generic_adam.schedules import Divide, Maximum, Power

    match complement:
        case Divide(Constant(scale), Power(Time() | Maximum() as time, Constant(exponent))):
            return scale, time, exponent
        case Divide(Constant(scale), Time() | Maximum() as time):
            return scale, time, Fraction(1)
        case _:
            return None


def _memory(theta: Schedule) -> Fraction | None:
    """Return 1/(1 - theta) for the constant that theta_t is, or was before it was made to rise."""
    from generic_adam.schedules import Maximum

    constant = theta.left if isinstance(theta, Maximum) else theta
    if not isinstance(constant, Constant) or not 0 < constant.value < 1:
        return None
    return 1 / (1 - constant.value)


def _number(value: Fraction) -> str:
    return f"{float(value):g}"
