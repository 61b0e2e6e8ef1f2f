r"""Is (alpha, beta, theta) a method at all: alpha_t finite and >= 0, 0 <= beta_t < 1, 0 <= theta_t < 1.

The paper has alpha_t > 0. A learning rate that is 0 at some t, but not for every t, is let through all the
same: warm-ups of real schedulers start there and linear decays end there, and the answer they deserve is the
certificate's (condition 3 fails at that t), not a refusal to look.

A sequence is refused where it is proved to leave its range, with the step; what is open is let through.
"""

import math

import numpy as np

from generic_adam.errors import MethodError, ScheduleError
from generic_adam.schedules import Schedule, has_callable
from generic_adam.schedules.balls import Precision, ball, nearest, sign, value
from generic_adam.schedules.prove import Claim, every
from generic_adam.schedules.scan import Budget

_BEGINNING = 256
# A callable may be a table that ends with the training run, or slow: it is asked for its beginning only.
_BEGINNING_OF_CALLABLE = 16
_SECONDS = 0.25


def check_alpha(alpha: Schedule) -> None:
    """Raise MethodError unless 0 <= alpha_t < infinity at every t; a constant has to be > 0."""
    expected = f"a finite number {'>' if alpha.is_constant else '>='} 0 at every t"
    _check_defined(alpha, "alpha", expected)
    if alpha.is_constant and sign(alpha, 1) == 0:
        raise _out_of_range(alpha, "alpha", expected, 1)
    _check(alpha, alpha, Claim.NOT_NEGATIVE, "alpha", expected)


def check_beta(beta: Schedule) -> None:
    """Raise MethodError unless 0 <= beta_t < 1 at every t."""
    _check_unit_interval(beta, "beta")


def check_theta(theta: Schedule) -> None:
    """Raise MethodError unless 0 <= theta_t < 1 at every t."""
    _check_unit_interval(theta, "theta")


def _check_unit_interval(schedule: Schedule, name: str) -> None:
    expected = f"0 <= {name}_t < 1 at every t"
    _check_defined(schedule, name, expected)
    _check(schedule, schedule, Claim.NOT_NEGATIVE, name, expected)
    _check(schedule, 1 - schedule, Claim.POSITIVE, name, expected)


def _check(schedule: Schedule, sequence: Schedule, claim: Claim, name: str, expected: str) -> None:
    if has_callable(schedule):
        wrong = (-1,) if claim is Claim.NOT_NEGATIVE else (-1, 0)
        steps = range(1, _BEGINNING_OF_CALLABLE + 1)
        refuted = next((t for t in steps if sign(sequence, t) in wrong), None)
    else:
        refuted = every(sequence, claim, math.inf, Budget(_SECONDS)).t
    if refuted is not None:
        raise _out_of_range(schedule, name, expected, refuted)


def _check_defined(schedule: Schedule, name: str, expected: str) -> None:
    """Every value of a beginning is a number, however large or small: overflows on the way do not count."""
    last = 1 if schedule.is_constant else _BEGINNING_OF_CALLABLE if has_callable(schedule) else _BEGINNING
    try:
        values = np.array([schedule(t) for t in range(1, last + 1)]) if has_callable(schedule) else None
        values = schedule.values(1, last + 1) if values is None else values
        for t in (np.flatnonzero(~np.isfinite(values)) + 1).tolist():
            with Precision():
                if not ball(value(schedule, t)).is_finite():
                    raise MethodError(f"{name}: expected {expected}, got {values[t - 1]:g} at t = {t}")
    except ScheduleError as error:
        raise MethodError(f"{name}: {error}") from error


def _out_of_range(schedule: Schedule, name: str, expected: str, t: int) -> MethodError:
    with Precision():
        found = nearest(value(schedule, t))
    return MethodError(f"{name}: expected {expected}, got {found:g} at t = {t}")
