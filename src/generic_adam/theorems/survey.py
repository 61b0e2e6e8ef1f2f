r"""What the hypotheses (R1) to (R3) come to on the steps 1..T: the decider's answers and the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import Schedule, ScheduleError
from generic_adam.schedules.balls import above
from generic_adam.schedules.enclosure import enclose
from generic_adam.schedules.scan import Budget, Undecided, blocks, filtered
from generic_adam.theorems.conditions import decisions
from generic_adam.theorems.decide import StepWitness
from generic_adam.theorems.pieces import late_value
from generic_adam.theorems.sums import SumError, checked_horizon, partial_sum, weighted_steps
from generic_adam.theorems.verdicts import Status

if TYPE_CHECKING:
    from generic_adam.methods import Method

_SHORT = 100_000


@dataclass(frozen=True)
class Missing:
    """A hypothesis of Theorem 1 that does not hold on the steps looked at.

    Args:
      hypothesis: "(R1)", "(R2)" or "(R3)".
      sentence: what is wrong, with the first t at which it is.
      t: that t, or None where it is about a limit.
    """

    hypothesis: str
    sentence: str
    t: int | None

    def __str__(self) -> str:
        return f"{self.hypothesis}: {self.sentence}"


@dataclass(frozen=True)
class Survey:
    r"""The quantities of Theorem 1 on the steps 1..T.

    Args:
      steps: T.
      beta: the largest :math:`\beta_t`, or an upper bound for it that the form gives.
      theta_first: :math:`\theta_1`.
      theta_last: :math:`\theta_T`.
      chi_first: :math:`\chi_1`.
      C0: :math:`\max_t \chi_t / \min_{i \le t} \chi_i`, or an upper bound for it that the form gives.
      alpha_last: :math:`\alpha_T`; 0 where it is positive by its form and too small for a double.
      total: :math:`\sum_t \alpha_t\sqrt{1-\theta_t}`.
      missing: the hypotheses that fail on these steps, each with its first t.
    """

    steps: int
    beta: float
    theta_first: float
    theta_last: float
    chi_first: float
    C0: float
    alpha_last: float
    total: float
    missing: tuple[Missing, ...]


def survey(method: Method, steps: int) -> Survey:
    """Survey the steps 1..steps.

    Args:
      method: the three sequences.
      steps: T, at most 10^15, or 10^8 where the form does not tell.

    Raises:
      SumError: the number of steps is no such whole number, or a hypothesis is undecided on them.
    """
    last = checked_horizon(steps, "the number of steps")
    found = decisions(method, last)
    for one in found:
        if one.status is Status.UNDECIDED:
            raise SumError(f"a hypothesis is undecided up to T = {last:.3g}: {one.reason}")
    missing = tuple(
        Missing(f"(R{number})", one.reason.rstrip("."), _step(one.witness))
        for number, one in enumerate(found, start=1)
        if one.status is Status.FAILS
    )
    complement = 1 - method.theta
    complement_first = complement(1)
    return Survey(
        steps=last,
        beta=_largest(method.beta, last),
        theta_first=1 - complement_first,
        theta_last=1 - late_value(complement, last),
        chi_first=method.alpha(1) / math.sqrt(complement_first) if complement_first > 0 else math.inf,
        C0=found[2].constant or math.inf,
        alpha_last=late_value(method.alpha, last),
        total=_total(method, last),
        missing=missing,
    )


def _total(method: Method, last: int) -> float:
    """The sum of the weighted steps; nan where a term is no number."""
    try:
        return partial_sum(weighted_steps(method), last)
    except (SumError, ScheduleError):
        return math.nan


def _largest(beta: Schedule, last: int) -> float:
    """The largest beta_t up to a step, or the bound that the form gives."""
    constant = beta.constant_value
    if constant is not None:
        return constant
    if last <= _SHORT:
        try:
            tops = [np.add(*filtered(beta, times)).max() for _, times in blocks(1, last, Budget())]
            return float(max(tops))
        except Undecided:
            pass
    return above(enclose(beta, 1, last).range.high)


def _step(witness: object) -> int | None:
    return witness.t if isinstance(witness, StepWitness) else None
