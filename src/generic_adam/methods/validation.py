r"""Is (alpha, beta, theta) a method at all: alpha_t finite and >= 0, 0 <= beta_t < 1, 0 <= theta_t < 1.

The paper has alpha_t > 0. A learning rate that is 0 at some t, but not for every t, is let through all the
same: warm-ups of real schedulers start there and linear decays end there, and the answer they deserve is the
certificate's (condition 3 fails at that t), not a refusal to look.

A schedule cannot be evaluated at every t, so it is at a beginning and at a few later t, spread evenly on a
logarithmic scale. What the *form* of a schedule says about every t is the certificate's business.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from generic_adam.errors import MethodError
from generic_adam.schedules import FloatArray, Schedule, ScheduleError, has_callable

_BEGINNING = 256
_LATE = np.rint(np.geomspace(_BEGINNING, 1e12, 60))
# A callable may be a table that ends with the training run, or slow: it is asked for its beginning only.
_BEGINNING_OF_CALLABLE = 16


@dataclass(frozen=True)
class _Requirement:
    """What one sequence of a method has to satisfy at every t."""

    sequence: str
    expected: str

    def check(self, t: float, value: float, ok: bool) -> None:
        if not ok:
            raise MethodError(f"{self.sequence}: expected {self.expected}, got {value:g} at t = {t:.0f}")


_ALPHA = _Requirement("alpha", "a finite number > 0 at every t")
_ALPHA_SCHEDULED = _Requirement("alpha", "a finite number >= 0 at every t")
_BETA = _Requirement("beta", "0 <= beta_t < 1 at every t")
_THETA = _Requirement("theta", "0 <= theta_t < 1 at every t")


def check_alpha(alpha: Schedule) -> None:
    """Raise MethodError unless 0 <= alpha_t < infinity at every t looked at; a constant has to be > 0."""
    requirement = _ALPHA if alpha.is_constant else _ALPHA_SCHEDULED
    for t, value in _samples(alpha, requirement):
        positive = value > 0 or (value == 0 and not alpha.is_constant)
        finite = math.isfinite(value) or (value == math.inf and _overflows(alpha))
        requirement.check(t, value, positive and finite)


def check_beta(beta: Schedule) -> None:
    """Raise MethodError unless 0 <= beta_t < 1 at every t that is looked at."""
    _check_unit_interval(beta, _BETA)


def check_theta(theta: Schedule) -> None:
    """Raise MethodError unless 0 <= theta_t < 1 at every t that is looked at."""
    _check_unit_interval(theta, _THETA)


def _check_unit_interval(schedule: Schedule, requirement: _Requirement) -> None:
    # "< 1" is asked of the complement: 1 - 0.9^t rounds to 1 at t = 400, and 0.9^t is still far from 0.
    complement = 1 - schedule
    rounds_to_one = _underflows(complement)
    samples = _samples(schedule, requirement)
    for (t, value), (_, rest) in zip(samples, _samples(complement, requirement), strict=True):
        below_one = rest > 0 or (rest == 0 and rounds_to_one)
        requirement.check(t, value, value >= 0 and below_one)


def _samples(schedule: Schedule, requirement: _Requirement) -> Iterator[tuple[float, float]]:
    """(t, u_t) for the t that are looked at: one t tells all of a constant."""
    if schedule.is_constant:
        yield 1, schedule(1)
        return
    try:
        if has_callable(schedule):
            yield from ((t, schedule(t)) for t in range(1, _BEGINNING_OF_CALLABLE + 1))
        else:
            yield from _pairs(np.arange(1.0, _BEGINNING), schedule.values(1, _BEGINNING))
            if schedule.accepts_real_times:  # a recursion would have to walk to each t
                yield from _pairs(_LATE, schedule.at(_LATE))
    except ScheduleError as error:
        raise MethodError(f"{requirement.sequence}: {error}") from error


def _pairs(times: FloatArray, values: FloatArray) -> Iterator[tuple[float, float]]:
    return zip(times.tolist(), values.tolist(), strict=True)


def _underflows(schedule: Schedule) -> bool:
    """Whether a value of 0 is a positive number too small for a float, as of 0.99^t at t = 10^6."""
    growth = schedule.growth
    return growth is not None and growth.sign > 0 and growth.trend < 0


def _overflows(schedule: Schedule) -> bool:
    """Whether an infinite value is a number too large for a float, as of 1.01^t at t = 10^6."""
    growth = schedule.growth
    return growth is not None and growth.sign > 0 and growth.trend > 0
