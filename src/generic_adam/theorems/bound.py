r"""Theorems 1 and 2 with every constant: a number that the gradient's norm stays below.

.. math::

    \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2} \le B(T)
    := \frac{C + C' \sum_{t\le T} \alpha_t\sqrt{1-\theta_t}}{T\alpha_T}

with :math:`\tau` uniform on 1..T, and :math:`\|\nabla f(x_\tau)\|^2 \le B(T)/\delta` with probability at
least :math:`1 - \delta^{2/3}`. Only the first T steps matter, so the hypotheses are asked of them alone, and
:math:`C_1` is the product over the :math:`\theta_j < \theta'` with :math:`j \le T`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generic_adam.schedules import Constant
from generic_adam.theorems.constants import Constants, Sequences, constants, log_C3
from generic_adam.theorems.corollary import Estimate, at_weighted_iterate, constant_theta_estimate
from generic_adam.theorems.product import BelowThetaPrime
from generic_adam.theorems.survey import Missing, Survey, survey

if TYPE_CHECKING:
    from generic_adam.methods import Method
    from generic_adam.theorems.problem import Problem

_GOLDEN = (math.sqrt(5) - 1) / 2
_ITERATIONS = 60


class BoundError(ValueError):
    """An argument of `bound` that is out of range; the message is one line."""


@dataclass(frozen=True)
class Bound:
    r"""What Theorems 1 and 2 say after T steps.

    Args:
      value: :math:`B(T)/\delta` (Theorem 2); infinite where a hypothesis is missing or the number overflows.
      expectation: :math:`B(T)` (Theorem 1).
      delta: :math:`\delta`.
      probability: :math:`1 - \delta^{2/3}`, with which `value` holds.
      steps: T.
      total: :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}`.
      alpha_last: :math:`\alpha_T`.
      constants: every constant by its letter; None where a hypothesis is missing.
      missing: the hypotheses that do not hold on 1..T; empty for a valid bound.
      estimate: the two-sided estimate of the constant-theta corollary, where it applies.
      weighted: :math:`B_w(T)`, the bound with :math:`\tau` drawn by :math:`\alpha_t`: never above
        `expectation`.
    """

    value: float
    expectation: float
    delta: float
    probability: float
    steps: int
    total: float
    alpha_last: float
    constants: Constants | None
    missing: tuple[Missing, ...] = ()
    estimate: Estimate | None = None
    weighted: float = math.inf

    @property
    def is_valid(self) -> bool:
        """Whether every hypothesis of the theorem holds on 1..T."""
        return not self.missing

    @property
    def statement(self) -> str:
        """One sentence: the bound, or why there is none."""
        if self.missing:
            return "no bound: " + "; ".join(map(str, self.missing))
        if math.isinf(self.expectation):
            known = self.constants
            cause = ""
            if known is not None and known.C1_log < -100:
                cause = (
                    f": theta_t stays below theta' = {known.theta_prime:.6g} for {known.below:,} steps, "
                    f"so that log C1 = {known.C1_log:.4g}"
                )
            return f"the bound exceeds the largest double{cause}"
        return (
            f"after {self.steps:,} steps, |grad f(x_tau)|^2 <= {self.value:.6g} with probability at least "
            f"{self.probability:.4g}, and (E |grad f(x_tau)|^(4/3))^(3/2) <= {self.expectation:.6g}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain types; a number that is infinite is None, and `statement` says why."""
        return {
            "steps": self.steps,
            "delta": self.delta,
            "probability": self.probability,
            "value": _finite(self.value),
            "expectation": _finite(self.expectation),
            "weighted": _finite(self.weighted),
            "sum": _finite(self.total),
            "alpha_last": _finite(self.alpha_last),
            "constants": None
            if self.constants is None
            else {name: _finite(number) for name, number in self.constants.to_dict().items()},
            "missing": [
                {"hypothesis": one.hypothesis, "reason": one.sentence, "t": one.t} for one in self.missing
            ],
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "statement": self.statement,
        }


def bound(
    method: Method, problem: Problem, steps: int, delta: float = 0.1, theta_prime: float | None = None
) -> Bound:
    """Evaluate the bounds of Theorems 1 and 2 after a number of steps.

    Args:
      method: the three sequences.
      problem: L, G, d, the gap and epsilon.
      steps: T.
      delta: in (0, 1); Theorem 2 holds with probability at least 1 - delta^(2/3).
      theta_prime: the free number between beta^2 and theta; None takes the one that makes the bound least.

    Returns:
      The bound with its constants. Where a hypothesis of the theorem is missing on 1..T, the bound is
      infinite and `missing` says which.

    Raises:
      BoundError: delta or theta_prime is out of range.
      SumError: the number of steps is not a whole number, or too large for the form of the method.

    Examples:
      >>> from generic_adam import Method, Problem
      >>> m = Method(alpha="1e-3/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
      >>> p = Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
      >>> f"{bound(m, p, steps=1000, delta=0.1, theta_prime=0.9).value:.6g}"
      '2.78618e+09'
    """
    if not 0 < delta < 1:
        raise BoundError(f"delta is {delta!r}, expected a number between 0 and 1")
    seen = survey(method, steps)
    limit = limit_of_theta(method, seen)
    missing = seen.missing
    if not missing and (limit <= seen.beta**2 or _on_the_border(method)):
        sentence = f"theta = {limit:.6g} is not above beta^2 = {seen.beta**2:.6g}"
        missing = (Missing("(R2)", sentence, None),)
    if theta_prime is not None:
        _check_theta_prime(theta_prime, method, seen, limit)
    if missing:
        return _assembled(seen, delta, None, missing, None)
    facts = Sequences(seen.beta, seen.theta_first, seen.chi_first, seen.C0)
    product = BelowThetaPrime(method.theta, seen.steps)
    chosen = best_theta_prime(problem, facts, product, limit) if theta_prime is None else float(theta_prime)
    known = constants(problem, facts, chosen, *product.logarithm_and_count(chosen))
    weighted = at_weighted_iterate(method, seen.steps, known, seen.total)
    estimate = constant_theta_estimate(method, seen.steps, known, delta)
    return _assembled(seen, delta, known, (), estimate, weighted)


def _assembled(
    seen: Survey,
    delta: float,
    known: Constants | None,
    missing: tuple[Missing, ...],
    estimate: Estimate | None,
    weighted: float = math.inf,
) -> Bound:
    expectation = math.inf
    divisor = seen.steps * seen.alpha_last
    # A divisor that a double cannot hold, 0 or infinite, leaves the bound as large as it is without one.
    if known is not None and 0 < divisor < math.inf and math.isfinite(known.C_prime):
        expectation = (known.C + known.C_prime * seen.total) / divisor
    return Bound(
        value=expectation / delta,
        expectation=expectation,
        delta=delta,
        probability=1 - delta ** (2 / 3),
        steps=seen.steps,
        total=seen.total,
        alpha_last=seen.alpha_last,
        constants=known,
        missing=missing,
        estimate=estimate,
        weighted=weighted,
    )


def _on_the_border(method: Method) -> bool:
    """Whether theta = beta^2 for constants, compared as fractions: 0.49 and 0.7^2 differ as floats."""
    beta, theta = method.beta, method.theta
    return isinstance(beta, Constant) and isinstance(theta, Constant) and theta.value == beta.value**2


def limit_of_theta(method: Method, seen: Survey) -> float:
    """Return the limit of theta_t, or a lower bound for it: theta_T, or what the form of theta_t says."""
    growth = (1 - method.theta).growth
    if growth is None or growth.trend > 0:
        return seen.theta_last
    return 1.0 if growth.trend < 0 or growth.is_zero else max(seen.theta_last, 1 - growth.high)


def best_theta_prime(problem: Problem, facts: Sequences, product: BelowThetaPrime, limit: float) -> float:
    """Return the theta' that makes C3, and with it the bound, least.

    Up to theta_1 a larger theta' only shrinks gamma, so the search starts there (or at beta^2). The logarithm
    of C3 is convex in log theta' (see `log_C3`), so golden-section search finds its minimum. With constant
    theta it is theta itself, where C1 = 1.
    """
    lower = max(facts.theta_first, facts.beta**2)
    if facts.beta == 0 or lower >= limit:
        return facts.theta_first

    def objective(logarithm: float) -> float:
        candidate = math.exp(logarithm)
        if candidate <= facts.beta**2:
            return math.inf
        return log_C3(problem, facts, candidate, product.logarithm_and_count(candidate)[0])

    left, right = math.log(lower), math.log(limit)
    inner_left, inner_right = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    value_left, value_right = objective(inner_left), objective(inner_right)
    for _ in range(_ITERATIONS):
        if value_left <= value_right:
            right, inner_right, value_right = inner_right, inner_left, value_left
            inner_left = right - _GOLDEN * (right - left)
            value_left = objective(inner_left)
        else:
            left, inner_left, value_left = inner_left, inner_right, value_right
            inner_right = left + _GOLDEN * (right - left)
            value_right = objective(inner_right)
    # theta_1 itself, the least theta' worth trying, is an end that the search only approaches.
    best = min((math.log(lower), inner_left, inner_right), key=objective)
    return math.exp(best) if best > math.log(lower) else lower


def _check_theta_prime(theta_prime: float, method: Method, seen: Survey, limit: float) -> None:
    constant = method.theta.constant_value
    below = theta_prime <= constant if constant is not None else theta_prime < limit
    if not (seen.beta**2 < theta_prime and below):
        closing = "]" if constant is not None else ")"
        raise BoundError(
            f"theta_prime is {theta_prime!r}, expected a number in "
            f"(beta^2, theta{closing} = ({seen.beta**2:.6g}, {limit:.6g}{closing}"
        )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
