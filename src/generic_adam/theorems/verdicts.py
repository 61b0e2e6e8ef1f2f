"""The typed answers: three statuses for a condition, three verdicts for a method, the rate of a certified one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from generic_adam.schedules import Growth


def plain(value: Any) -> Any:
    """A value in the types that JSON has: what has a `to_dict` by it, infinity as None, else text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    if hasattr(value, "items"):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return str(value) if isinstance(value, str) or not hasattr(value, "__iter__") else list(map(plain, value))


def plain_fields(thing: object, *names: str) -> dict[str, Any]:
    """Some attributes of a thing by their names, in plain types."""
    return {name: plain(getattr(thing, name)) for name in names}


class Status(StrEnum):
    """What is known of one condition. `FAILS` means "not met"; it never means that the method diverges."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


class Verdict(StrEnum):
    """What is known of a method: the sufficient condition is met, not met, or could not be decided."""

    CERTIFIED = "certified"
    NOT_CERTIFIED = "not certified"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Condition:
    """One condition with its answer.

    Attributes:
        number: which condition.
        status: holds, fails or undecided.
        reason: one sentence that cites the statement it rests on.
        witness: where it fails, a step t (an int) or a growth (a text); else None.
    """

    number: int
    status: Status
    reason: str
    witness: int | str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as `check --json` prints it."""
        return plain_fields(self, "number", "status", "reason", "witness")


def verdict_of(conditions: tuple[Condition, ...]) -> Verdict:
    """Certified when all hold; not certified when one fails; else undecided."""
    statuses = {condition.status for condition in conditions}
    if Status.FAILS in statuses:
        return Verdict.NOT_CERTIFIED
    return Verdict.UNDECIDED if Status.UNDECIDED in statuses else Verdict.CERTIFIED


@dataclass(frozen=True, order=True)
class Rate:
    r"""T^power (log T)^log (log log T)^loglog up to a constant: the order of a bound; a faster one is less."""

    power: Fraction
    log: Fraction
    loglog: Fraction

    def __str__(self) -> str:
        return Growth.of(1, power=self.power, log=self.log, loglog=self.loglog).scale.text("T")


def rate_of(ratio: Growth) -> Rate:
    """The rate that a ratio tending to 0 on the polynomial scale stands for."""
    return Rate(ratio.power, ratio.log, ratio.loglog)
