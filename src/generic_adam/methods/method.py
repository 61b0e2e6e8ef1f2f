r"""A method is three sequences: the base learning rate, the momentum and the second-moment parameter.

Sequences are read in any of their forms and checked: alpha_t finite and >= 0, 0 <= beta_t < 1, 0 <= theta_t < 1.
The paper has alpha_t > 0; a rate that is 0 at some t, as in real warm-ups and decays, is let through for the
certificate to judge. When a method is made its first values are looked at, and nothing is proved. What uses it
(`certify`, an optimizer) asks `Method.checked` first, which refuses a sequence that is proved to leave its range.

The two algorithms of the paper are one: theta_t = W_{t-1} / W_t, and w_t = W_0 (1 - theta_t) / prod_{i<=t} theta_i.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Generic, Self, TypeVar, cast

import numpy as np

from generic_adam.errors import MethodError, ScheduleError, shown
from generic_adam.schedules import Schedule, as_schedule, exact, has_callable, theta_from_weights
from generic_adam.schedules.balls import Precision, ball, nearest, sign, value
from generic_adam.schedules.prove import Inequality, every, first_violation
from generic_adam.schedules.work import Undecided

_BEGINNING = 256
# A callable may be a table that ends with the training run, or slow: it is asked for its beginning only.
_BEGINNING_OF_CALLABLE = 16

# The signs that refute a claim.
_BROKEN = {Inequality.POSITIVE: (-1, 0), Inequality.NOT_NEGATIVE: (-1,)}

_Given = TypeVar("_Given")
_Kept = TypeVar("_Kept")
ScheduleLike = Schedule | float | str | Callable[[int], float]
"""The forms of a sequence that are taken: a schedule, a number, a text such as "0.5/sqrt(t)", or a callable of t."""


def read_schedule(name: str, value: ScheduleLike) -> Schedule:
    """Return the schedule that is meant by ``value``; an error that names the argument if there is none."""
    try:
        return as_schedule(value)
    except ScheduleError as error:
        raise MethodError(f"{name}: {error}") from error


def exact_number(
    name: str,
    value: float | Fraction,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Fraction:
    """Return the rational number that is meant by ``value`` (0.999 is 999/1000), between its limits.

    Raises:
        MethodError: not a finite number, or out of range; the message names the argument.
    """
    if isinstance(value, np.generic):  # a float32 has no comparison with the largest double
        value = cast("float", value.item())
    if isinstance(value, bool) or not isinstance(value, Real) or not abs(value) <= sys.float_info.max:
        raise MethodError(f"{name}: expected a finite number, got {shown(value)}")
    if not (above < value < below and at_least <= value <= at_most):
        limits = [
            f"{sign} {limit:g}"
            for sign, limit in ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
            if math.isfinite(limit)
        ]
        raise MethodError(f"{name}: expected a number {' and '.join(limits)}, got {value!r}")
    return exact(value)


def read_sequence(name: str, given: ScheduleLike) -> Schedule:
    """Return the schedule of "alpha", "beta" or "theta" that is meant, in its range where that is seen at once.

    Numbers, and the first 256 values of anything else, are looked at; `check_sequence` decides about every t.

    Raises:
        MethodError: 0 <= alpha_t < infinity (a constant: > 0), 0 <= beta_t < 1 or 0 <= theta_t < 1 fails there.
    """
    schedule = read_schedule(name, given)
    if schedule.is_constant or has_callable(schedule):
        check_sequence(name, schedule)
        return schedule
    expected, claims = _range_of(name, schedule)
    _check_defined(schedule, f"{name}: expected {expected}")
    for sequence, claim in claims:
        with suppress(Undecided):
            refuted = first_violation(sequence, claim, 1, _BEGINNING)
            if refuted is not None:
                raise _outside(name, expected, schedule, refuted)
    return schedule


def check_sequence(name: str, schedule: Schedule) -> None:
    """Decide whether a sequence stays in its range at every t; what is open is let through, and what is known is kept.

    Raises:
        MethodError: it is proved to leave it, with the step.
    """
    if schedule.known_facts.get(("is", name)):
        return
    expected, claims = _range_of(name, schedule)
    _check_defined(schedule, f"{name}: expected {expected}")
    for sequence, claim in claims:
        if has_callable(schedule):
            steps = range(1, _BEGINNING_OF_CALLABLE + 1)
            refuted = next((t for t in steps if sign(sequence, t) in _BROKEN[claim]), None)
        else:
            refuted = every(sequence, claim).t
        if refuted is not None:
            raise _outside(name, expected, schedule, refuted)
    schedule.known_facts["is", name] = True


def _range_of(name: str, schedule: Schedule) -> tuple[str, list[tuple[Schedule, Inequality]]]:
    """Return the range of a sequence in words and as claims."""
    if name == "alpha":
        constant = schedule.is_constant
        claims = [(schedule, Inequality.POSITIVE if constant else Inequality.NOT_NEGATIVE)]
        return f"a finite number {'>' if constant else '>='} 0 at every t", claims
    claims = [(schedule, Inequality.NOT_NEGATIVE), (schedule.complement, Inequality.POSITIVE)]
    return f"0 <= {name}_t < 1 at every t", claims


def _outside(name: str, expected: str, schedule: Schedule, t: int) -> MethodError:
    with Precision():
        found = nearest(value(schedule, t))
    return MethodError(f"{name}: expected {expected}, got {found:g} at t = {t}")


def _check_defined(schedule: Schedule, expected: str) -> None:
    """Raise unless every value at the start is a number, however large or small; overflows on the way do not count."""
    opaque = has_callable(schedule)
    last = 1 if schedule.is_constant else _BEGINNING_OF_CALLABLE if opaque else _BEGINNING
    try:
        steps = range(1, last + 1)
        values = np.array([schedule(t) for t in steps]) if opaque else schedule.values(1, last + 1)
        for t in (np.flatnonzero(~np.isfinite(values)) + 1).tolist():
            with Precision():
                if not ball(value(schedule, t)).is_finite():
                    raise MethodError(f"{expected}, got {values[t - 1]:g} at t = {t}")
    except ScheduleError as error:
        raise MethodError(f"{expected.partition(':')[0]}: {error}") from error


class Read(Generic[_Given, _Kept]):
    """A field of a dataclass that is read when it is set: Read[ScheduleLike, Schedule] keeps a text as a schedule.

    Args:
        reader: the field's name and what was given -> what is kept; it raises where that cannot be.
        default: what counts as given where nothing is; a field without one has to be given.
    """

    def __init__(self, reader: Callable[[str, _Given], _Kept], *default: _Given) -> None:
        self._reader, self._default = reader, default

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, _owner: type) -> _Kept:
        if instance is not None:
            return instance.__dict__[self._name]
        if not self._default:  # how a dataclass asks whether there is a default
            raise AttributeError(self._name)
        return self._default[0]  # pyright: ignore[reportReturnType] - what a dataclass sets by default

    def __set__(self, instance: object, value: _Given) -> None:
        instance.__dict__[self._name] = self._reader(self._name, value)


@dataclass(frozen=True, repr=False)
class Method:
    r"""One member of Generic Adam (Algorithm 1): the sequences alpha_t, beta_t and theta_t.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2 \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t \\
        x_{t+1} &= x_t - \alpha_t m_t / \sqrt{v_t}

    Two methods are equal when their sequences are the same expressions. theta_1 = 0 is allowed here (AdaEMA
    and AdamNC have it); whether the method converges is for :func:`generic_adam.certify` to say.

    Attributes:
        alpha: the base learning rate, finite and > 0; a schedule may touch 0, which no certificate survives.
        beta: the momentum parameter, 0 <= beta_t < 1.
        theta: the second-moment parameter, 0 <= theta_t < 1.

    Raises:
        MethodError: a sequence cannot be read, or is seen to leave its range; the message names it, the t, the value.

    Examples:
        >>> Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
        Method(alpha_t = 0.5 / sqrt(t), beta_t = 0.9, theta_t = 1 - 1 / max(t, 2))
    """

    alpha: Read[ScheduleLike, Schedule] = Read(read_sequence)
    beta: Read[ScheduleLike, Schedule] = Read(read_sequence)
    theta: Read[ScheduleLike, Schedule] = Read(read_sequence)

    @classmethod
    def from_weights(
        cls, alpha: ScheduleLike, beta: ScheduleLike, weights: ScheduleLike, initial: float = 1.0
    ) -> Method:
        """Weighted AdaEMA (Algorithm 2): theta_t = W_{t-1} / W_t, W_t = W_{t-1} + w_t, w_t > 0, W_0 initial."""
        try:
            theta = theta_from_weights(as_schedule(weights), initial)
        except ScheduleError as error:
            raise MethodError(f"weights: {error}") from error
        return cls(alpha, beta, theta)

    def checked(self) -> Self:
        """Return the method itself, once its sequences are known not to be proved out of range at any t.

        Raises:
            MethodError: one is; the message names it, the t, the value.
        """
        for name in ("alpha", "beta", "theta"):
            check_sequence(name, getattr(self, name))
        return self

    def at(self, t: int) -> tuple[float, float, float]:
        """(alpha_t, beta_t, theta_t) at one t = 1, 2, 3, ...; cheap enough for every step of an optimizer."""
        return self.alpha(t), self.beta(t), self.theta(t)

    def __repr__(self) -> str:
        return f"Method(alpha_t = {self.alpha}, beta_t = {self.beta}, theta_t = {self.theta})"
