"""The certified methods nearest to a given one: what to change, from which step on, and the rate it buys."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from generic_adam.methods import Method, MethodError
from generic_adam.schedules import Schedule, ScheduleError, as_schedule, has_callable, sqrt
from generic_adam.theorems.certificate import Certificate, certify
from generic_adam.theorems.pieces import late_value
from generic_adam.theorems.rate import Rate
from generic_adam.theorems.repairs import STAGES, Candidate, applied
from generic_adam.theorems.sums import checked_horizon
from generic_adam.theorems.verdicts import Status, Verdict

BoolArray = npt.NDArray[np.bool_]

_COMPARED = 1 << 13
_SAME = 1e-12
_MOST_ADVICE = 3


@dataclass(frozen=True)
class Advice:
    """One certified method near the given one.

    Args:
      method: the method to use instead.
      changes: what changes, in words.
      first_step: the first t at which a sequence differs.
      last_step: the last t at which one differs; None where they differ for ever.
      certificate: what certifies it.
      horizon: the number of steps for which it is meant; None for ever.
    """

    method: Method
    changes: str
    first_step: int
    last_step: int | None
    certificate: Certificate
    horizon: int | None = None

    @property
    def rate(self) -> Rate | None:
        """The rate of the changed method; None for constants tuned to a horizon, which are not for ever."""
        return self.certificate.rate

    @property
    def differs(self) -> str:
        """Where it differs from the given method, in words."""
        if self.last_step is None:
            return "from the first step" if self.first_step == 1 else f"from t = {self.first_step:,} on"
        if self.first_step == self.last_step:
            return f"at t = {self.first_step:,} only"
        return f"for t = {self.first_step:,} to {self.last_step:,} only"

    def to_dict(self) -> dict[str, object]:
        """Return plain types."""
        return {
            "changes": self.changes,
            "differs": self.differs,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "horizon": self.horizon,
            "rate": None if self.rate is None else str(self.rate),
            "verdict": str(self.certificate.verdict),
            "C0": self.certificate.C0,
            "method": {name: str(getattr(self.method, name)) for name in ("alpha", "beta", "theta")},
        }


def advise(method: Method, horizon: int | None = None) -> tuple[Advice, ...]:
    """Find certified methods near a method that is not certified, nearest first.

    Nearest is: differs on the fewest steps, else differs from the latest step on, else changes the fewest
    sequences, else has the fastest rate. Every method returned is certified by `certify`, the constants tuned
    to a horizon excepted.

    Args:
      method: the method to change.
      horizon: a number of steps T: adds the constants tuned to T, meant for T steps and not for ever.

    Returns:
      The advice; empty if the method is certified already (and no horizon is given), or if nothing helps.

    Raises:
      MethodError: not a Method.
      SumError: the horizon is not a whole number from 1 to 10^15.
    """
    if not isinstance(method, Method):  # pyright: ignore[reportUnnecessaryIsInstance] - people pass optimizers
        raise MethodError(
            f"expected a Method, got {type(method).__name__}; "
            "of an optimizer, certify(optimizer)[0].reading.method is the Method that it runs"
        )
    steps = None if horizon is None else checked_horizon(horizon)
    found: list[Advice] = []
    by_form = not any(map(has_callable, (method.alpha, method.beta, method.theta)))
    if by_form and certify(method).verdict is not Verdict.CERTIFIED:
        found = sorted(_certified(method), key=_distance)
    kept: list[Advice] = []
    for advice in found:
        if all(advice.method != other.method for other in kept):
            kept.append(advice)
    return (*kept[:_MOST_ADVICE], *(_tuned(method, steps) if steps is not None else ()))


def _certified(method: Method) -> Iterator[Advice]:
    for candidate, certificate in _mended(Candidate(method), 0):
        first = first_difference(method, candidate.method)
        if first is not None:
            changes = "; ".join(candidate.changes)
            last = _last_difference(method, candidate)
            yield Advice(candidate.method, changes, first, last, certificate)


def _mended(candidate: Candidate, stage: int) -> Iterator[tuple[Candidate, Certificate]]:
    """Certified candidates that need every one of their changes.

    What is certified is changed no further, so no advice holds another one and more.
    """
    certificate = certify(candidate.method)
    if certificate.verdict is Verdict.CERTIFIED:
        if candidate.changes:
            yield candidate, certificate
        return
    open_conditions = {one.number for one in certificate.conditions if one.status is not Status.HOLDS}
    for later in range(stage, len(STAGES)):
        for repair in (repair for number, repair in STAGES[later] if number in open_conditions):
            for changed in applied(repair, candidate):
                found = list(_mended(changed, later + 1))
                yield from found
                if found:
                    break  # a longer hold or a later start would only be further away


def _distance(advice: Advice) -> tuple[float, int, int, tuple[Fraction, Fraction, Fraction]]:
    length = math.inf if advice.last_step is None else advice.last_step
    rate = advice.rate
    none = Fraction(0)
    order = (none, none, none) if rate is None else (rate.power, rate.log, rate.loglog)
    return length, -advice.first_step, advice.changes.count(";"), order


def _tuned(method: Method, steps: int) -> Iterator[Advice]:
    r"""Constants for T steps: theta = 1 - 1/T and alpha = chi/sqrt T, with chi the largest chi_t up to T.

    For constants that is the chi they had, so that the two are the same method at T = 1/(1 - theta). The
    bound at T is then O(1/sqrt T). There are none where theta = 1 - 1/T is not above beta^2, as (R2) asks.
    """
    beta, theta = method.beta.constant_value, 1 - Fraction(1, steps)
    if beta is None or theta <= beta**2:
        return
    largest = _largest(method.alpha / sqrt(1 - method.theta), steps)
    if not 0 < largest < math.inf:
        return
    scale = float(f"{largest / math.sqrt(steps):.12g}")
    tuned = Method(scale, method.beta, as_schedule(theta))
    certificate = certify(tuned, horizon=steps)
    reading = certificate.horizon
    first = first_difference(method, tuned)
    if reading is not None and reading.bound_applies and first is not None:
        changes = f"constants for {steps:,} steps: alpha = {scale:.6g}, theta = 1 - 1/{steps}"
        yield Advice(tuned, changes, first, None, certificate, steps)


def _largest(schedule: Schedule, steps: int) -> float:
    """Return the largest u_t with t <= steps: all of the first ones, then some on a logarithmic scale."""
    with np.errstate(all="ignore"):
        found = float(schedule.values(1, min(steps, _COMPARED) + 1).max())
        if steps > _COMPARED and not has_callable(schedule):
            found = max(found, *(late_value(schedule, late) for late in _spread(steps)))
    return found


def _spread(last: int) -> list[int]:
    """Steps from the last of those that are all compared on, spread evenly on a logarithmic scale."""
    return np.geomspace(_COMPARED, last, 200).astype(np.int64).tolist()


def _last_difference(method: Method, candidate: Candidate) -> int | None:
    """Return the last t at which a candidate differs, where its change ends; None if it may not."""
    if candidate.last_step is None:
        return None
    sequences = (
        (getattr(method, name), getattr(candidate.method, name)) for name in ("alpha", "beta", "theta")
    )
    apart = np.any([_apart(one, other, candidate.last_step) for one, other in sequences], axis=0)
    return int(np.flatnonzero(apart)[-1]) + 1


def first_difference(one: Method, other: Method) -> int | None:
    """Return the first t at which two methods differ by more than rounding; None if none is found."""
    found = [
        _first_difference(getattr(one, name), getattr(other, name))
        for name in ("alpha", "beta", "theta")
        if getattr(one, name) != getattr(other, name)
    ]
    steps = [step for step in found if step is not None]
    return min(steps) if steps else None


def _first_difference(one: Schedule, other: Schedule) -> int | None:
    apart = _apart(one, other, _COMPARED)
    if apart.any():
        return int(np.argmax(apart)) + 1
    known = _COMPARED
    for late in _spread(10**15):
        if _differ(one, other, late):
            steps = range(known + 1, late + 1)
            return steps[bisect.bisect_left(steps, True, key=lambda step: _differ(one, other, step))]
        known = late
    return None


def _apart(one: Schedule, other: Schedule, last: int) -> BoolArray:
    """Return at which t = 1..last two sequences differ by more than rounding."""
    first, second = one.values(1, last + 1), other.values(1, last + 1)
    return ~(np.abs(first - second) <= _SAME * np.maximum(np.abs(first), np.abs(second)))


def _differ(one: Schedule, other: Schedule, step: int) -> bool:
    try:
        first, second = late_value(one, step), late_value(other, step)
    except ScheduleError:
        return False
    return abs(first - second) > _SAME * max(abs(first), abs(second))
