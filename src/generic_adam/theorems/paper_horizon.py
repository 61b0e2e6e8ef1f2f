"""The finite-horizon reading: what Theorem 1 needs and gives on the steps 1..T only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from generic_adam.methods import Method, MethodError
from generic_adam.theorems.bound import bound
from generic_adam.theorems.conditions import as_condition, decisions
from generic_adam.theorems.sums import LONGEST_HORIZON, ratios
from generic_adam.theorems.verdicts import Condition, Status, condition_from_dict, condition_to_dict

if TYPE_CHECKING:
    from generic_adam.theorems.problem import Problem


@dataclass(frozen=True)
class HorizonReading:
    r"""Conditions 1 to 3 on 1..T, and the ratio of condition 4 on the way there.

    Attributes:
        steps: T.
        conditions: conditions 1, 2 and 3, read for t = 1..T only.
        C0: the constant of (R3) over 1..T; None where condition 3 does not hold there.
        ratios: (t, ratio at t) for t = T/100, T/10, T; the last is what T alone says about condition 4.
        expectation: B(T) of Theorem 1, where a problem was given and the bound exists.
    """

    steps: int
    conditions: tuple[Condition, ...]
    C0: float | None
    ratios: tuple[tuple[int, float], ...]
    expectation: float | None = None

    @property
    def bound_applies(self) -> bool:
        """Whether Theorem 1 gives a finite bound at T: conditions 1 to 3 hold on 1..T."""
        return all(condition.status is Status.HOLDS for condition in self.conditions)

    def lines(self) -> list[str]:
        """The reading in words, one line each."""
        applies = "applies" if self.bound_applies else "does not apply"
        result = [f"up to T = {self.steps:,}: Theorem 1 {applies}"]
        result += [f"  condition {c.number} {c.status} on 1..T: {c.reason}" for c in self.conditions]
        values = ", ".join(f"{value:.4g} at T = {t:,}" for t, value in self.ratios)
        result.append(f"  ratio of condition 4: {values or 'not computed'}")
        if self.expectation is not None:
            result.append(f"  bound of Theorem 1 at T: {self.expectation:.4g}")
        return result

    def to_dict(self) -> dict[str, Any]:
        """Plain types only."""
        return {
            "steps": self.steps,
            "conditions": [condition_to_dict(c) for c in self.conditions],
            "C0": self.C0,
            "ratios": [[t, value] for t, value in self.ratios],
            "expectation": self.expectation,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HorizonReading:
        """The reading that `to_dict` wrote."""
        conditions = tuple(condition_from_dict(entry) for entry in data["conditions"])
        ratios = tuple((int(t), float(value)) for t, value in data["ratios"])
        return cls(data["steps"], conditions, data["C0"], ratios, data["expectation"])


def read_horizon(method: Method, steps: int, problem: Problem | None = None) -> HorizonReading:
    """Read conditions 1 to 3 exactly on the steps 1..T, and the ratio of condition 4 at T/100, T/10 and T.

    Raises:
        MethodError: the horizon is not a whole number from 1 to 10^15.
    """
    if isinstance(steps, bool) or not 1 <= steps <= LONGEST_HORIZON or steps != math.floor(steps):
        raise MethodError(
            f"horizon: expected a whole number of steps from 1 to {LONGEST_HORIZON:.0e}, got {steps}"
        )
    last = int(steps)
    stops = (max(1, last // 100), max(1, last // 10), last)
    found = decisions(method, last)
    conditions = tuple(as_condition(number, one) for number, one in enumerate(found, start=1))
    reading = HorizonReading(
        steps=last,
        conditions=conditions,
        C0=found[2].constant,
        ratios=tuple((at, value) for at, value in ratios(method, stops) if math.isfinite(value)),
    )
    if problem is None or not reading.bound_applies:
        return reading
    expectation = bound(method, problem, steps=last).expectation
    if not math.isfinite(expectation):  # too large for a double: as good as none, and JSON could not hold it
        return reading
    return HorizonReading(last, conditions, reading.C0, reading.ratios, expectation)
