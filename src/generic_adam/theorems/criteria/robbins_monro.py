r"""Robbins and Monro's conditions on the step sizes of plain SGD.

.. math:: x_{t+1} = x_t - \eta_t g_t, \qquad \sum_t \eta_t = \infty, \qquad \sum_t \eta_t^2 < \infty

They are read off :math:`\alpha_t`, as if it were SGD's step size; they say nothing about adaptive steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from generic_adam.schedules import Growth, Schedule
from generic_adam.theorems.criteria.criterion import Criterion
from generic_adam.theorems.sums import SumError, partial_sum
from generic_adam.theorems.verdicts import Condition, Status, Verdict, verdict_of

if TYPE_CHECKING:
    from generic_adam.methods import Method

_CITATION = 'Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951'
_EVIDENCE = 100_000


def robbins_monro(method: Method) -> Criterion:
    """Check the two conditions on alpha_t, exactly on the growth scale."""
    steps = method.alpha
    first = _condition(1, steps, "the sum of alpha_t", should_diverge=True)
    second = _condition(2, steps * steps, "the sum of alpha_t^2", should_diverge=False)
    conditions = (first, second)
    outcome = {
        Verdict.CERTIFIED: "as step sizes of plain SGD, alpha_t satisfies both conditions",
        Verdict.NOT_CERTIFIED: "as step sizes of plain SGD, alpha_t is outside the theorem",
        Verdict.UNDECIDED: "the form of alpha_t does not tell",
    }
    return Criterion(
        name="Robbins-Monro",
        citation=_CITATION,
        about="plain SGD with step size alpha_t",
        conditions=conditions,
        conclusion=outcome[verdict_of(conditions)],
    )


def sum_diverges(growth: Growth) -> bool:
    """Whether the sum of u_t with this growth is infinite; exact, 1/(t log t log log t) included."""
    if growth.is_zero:
        return False
    for part, border in ((growth.rho.sign_of_log, 0), (growth.power, -1), (growth.log, -1)):
        if part != border:
            return part > border
    return growth.loglog >= -1


def _condition(number: int, terms: Schedule, name: str, *, should_diverge: bool) -> Condition:
    wanted = "infinite" if should_diverge else "finite"
    growth = terms.growth
    if growth is None or growth.sign < 0:
        return Condition(number, Status.UNDECIDED, f"{name} must be {wanted}; {_evidence(terms)}")
    diverges = sum_diverges(growth)
    found = "infinite" if diverges else "finite"
    reason = f"{name} must be {wanted} and is {found}: its terms are of order {growth}"
    if diverges is should_diverge:
        return Condition(number, Status.HOLDS, reason)
    return Condition(number, Status.FAILS, reason, str(growth))


def _evidence(terms: Schedule) -> str:
    try:
        total = partial_sum(terms, _EVIDENCE)
    except (SumError, ValueError) as error:
        return f"its terms could not be added: {error}"
    return f"its first {_EVIDENCE:,} terms add up to {total:.6g}, which decides nothing"
