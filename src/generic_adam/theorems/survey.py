r"""What the hypotheses (R1) to (R3) come to on the steps 1..T.

Short horizons, and sequences given by callables, are looked at step by step. On a long horizon the form of
the sequences answers where it can, so that T = 10^15 costs no more than T = 10^5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from generic_adam.schedules import FloatArray, ScheduleError
from generic_adam.schedules.enclosure import enclose
from generic_adam.theorems.conditions import momentum_condition, second_moment_condition, step_size_condition
from generic_adam.theorems.pieces import late_value
from generic_adam.theorems.sums import DIRECT_LIMIT, SumError, checked_horizon, partial_sum, weighted_steps
from generic_adam.theorems.verdicts import Status

if TYPE_CHECKING:
    from generic_adam.methods import Method

BoolArray = npt.NDArray[np.bool_]

_BLOCK = 1 << 16
_SHORT = 100_000
# Two values of 1 - theta_t that should be equal may differ by rounding; a fall of theta_t below this is none.
_ROUNDING = 1e-12


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
      SumError: the number of steps is no such whole number.
    """
    total = checked_horizon(steps, "the number of steps")
    if total <= _SHORT:
        return survey_step_by_step(method, total)
    found = survey_by_form(method, total)
    if found is not None:
        return found
    if total > DIRECT_LIMIT:
        raise SumError(
            f"the form of the sequences does not settle (R1) to (R3) up to T = {total:.3g}, "
            "and step by step they are looked at up to T = 1e8"
        )
    return survey_step_by_step(method, total)


def survey_by_form(method: Method, steps: int) -> Survey | None:
    """Survey the steps by the form of the sequences; None where that leaves a hypothesis open."""
    third, constant = step_size_condition(method, steps)
    conditions = (momentum_condition(method.beta, steps), second_moment_condition(method.theta, steps), third)
    if any(condition.status is Status.UNDECIDED for condition in conditions):
        return None
    complement = 1 - method.theta
    try:
        total = partial_sum(weighted_steps(method), steps)
        alpha_last, complement_last = late_value(method.alpha, steps), late_value(complement, steps)
    except (SumError, ScheduleError):
        return None
    complement_first = complement(1)
    beta = method.beta.constant_value
    return Survey(
        steps=steps,
        beta=enclose(method.beta, 1, steps).range.high if beta is None else beta,
        theta_first=1 - complement_first,
        theta_last=1 - complement_last,
        chi_first=method.alpha(1) / math.sqrt(complement_first),
        C0=constant.constant,
        alpha_last=alpha_last,
        total=total,
        missing=tuple(
            Missing(f"(R{condition.number})", condition.reason.rstrip("."), _step(condition.witness))
            for condition in conditions
            if condition.status is Status.FAILS
        ),
    )


def _step(witness: int | str | None) -> int | None:
    return witness if isinstance(witness, int) else None


def survey_step_by_step(method: Method, total: int) -> Survey:
    """Survey the steps by looking at every one of them, in blocks that fit a cache."""
    complement = 1 - method.theta
    walk = _Walk(*(enclose(sequence, 1, total).positive for sequence in (method.alpha, complement)))
    for start in range(1, total + 1, _BLOCK):
        stop = min(start + _BLOCK, total + 1)
        walk.take(
            start,
            method.alpha.values(start, stop),
            method.beta.values(start, stop),
            complement.values(start, stop),
        )
    return walk.result(total)


class _Walk:
    """The state carried from block to block.

    Args:
      alpha_positive: whether alpha_t > 0 by its form; a value that rounds to 0 refutes nothing then.
      complement_positive: the same of 1 - theta_t.
    """

    def __init__(self, alpha_positive: bool, complement_positive: bool) -> None:
        self.alpha_positive, self.complement_positive = alpha_positive, complement_positive
        self.beta = 0.0
        self.sums: list[float] = []
        self.least_chi = math.inf
        self.worst = 1.0
        self.missing: dict[str, Missing] = {}
        self.complement_first = self.complement_last = math.nan
        self.chi_first = self.alpha_last = math.nan

    def take(self, start: int, alpha: FloatArray, beta: FloatArray, complement: FloatArray) -> None:
        with np.errstate(all="ignore"):
            root = np.sqrt(complement)
            chi = alpha / root
            self.sums.append(float(np.sum(alpha * root)))
        self._look_for_violations(start, alpha, beta, complement)
        self.beta = max(self.beta, float(np.max(beta)))
        if start == 1:
            self.complement_first, self.chi_first = float(complement[0]), float(chi[0])
        self._follow_chi(chi)
        self.complement_last, self.alpha_last = float(complement[-1]), float(alpha[-1])

    def _follow_chi(self, chi: FloatArray) -> None:
        with np.errstate(all="ignore"):
            least = np.minimum(np.minimum.accumulate(chi), self.least_chi)
            growth = np.where(least > 0, chi / least, math.inf)
        self.worst = max(self.worst, float(np.max(growth)))
        self.least_chi = float(least[-1])

    def _look_for_violations(
        self, start: int, alpha: FloatArray, beta: FloatArray, complement: FloatArray
    ) -> None:
        self._note(
            "(R1)", start, ~((beta >= 0) & (beta < 1)), beta, "beta_{t} = {value:.6g} is not in [0, 1)"
        )
        one = (complement <= 0) & (not self.complement_positive)
        self._note("(R2)", start, one, 1 - complement, "theta_{t} = {value:.6g} is not below 1")
        self._note(
            "(R2)", start, ~(complement < 1), 1 - complement, "theta_{t} = {value:.6g} is not positive"
        )
        before = self.complement_last if start > 1 else complement[0]
        earlier = np.concatenate([[before], complement[:-1]])
        falls = complement > earlier * (1 + _ROUNDING)
        self._note("(R2)", start, falls, 1 - complement, "theta_t falls to {value:.6g} at t = {t}")
        no_step = ~((alpha > 0) & np.isfinite(alpha)) & ~((alpha == 0) & self.alpha_positive)
        self._note("(R3)", start, no_step, alpha, "alpha_{t} = {value:.6g} is not positive and finite")

    def _note(self, hypothesis: str, start: int, wrong: BoolArray, values: FloatArray, sentence: str) -> None:
        if hypothesis not in self.missing and wrong.any():
            index = int(np.argmax(wrong))
            t = start + index
            text = sentence.format(t=t, value=float(values[index]))
            self.missing[hypothesis] = Missing(hypothesis, text, t)

    def result(self, steps: int) -> Survey:
        return Survey(
            steps=steps,
            beta=self.beta,
            theta_first=1 - self.complement_first,
            theta_last=1 - self.complement_last,
            chi_first=self.chi_first,
            C0=self.worst,
            alpha_last=self.alpha_last,
            total=math.fsum(self.sums),
            missing=tuple(self.missing[name] for name in sorted(self.missing)),
        )
