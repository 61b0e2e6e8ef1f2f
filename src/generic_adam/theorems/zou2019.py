r"""Zou, Shen, Jie, Zhang and Liu's theorem on Generic Adam: the sufficient condition, and Theorem 1's bound.

**The sufficient condition** (Corollary SC), with :math:`\chi_t = \alpha_t/\sqrt{1-\theta_t}`:

1. 0 <= beta_t <= beta < 1 for every t (R1).
2. 0 < theta_t < 1 for every t, non-decreasing (R2).
3. chi_t is almost non-increasing: chi_t <= C0 min_{i<=t} chi_i (R3).
4. sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) -> 0, which is also the rate.

Theorem 1 with its constants, its bound at a weighted iterate (Corollary 7.0) and the floor of a theta with limit
below 1 are on the page docs/theorems/published.md.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, cast

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Function, Join, Schedule, ScheduleError
from generic_adam.schedules.balls import above, rounded_up
from generic_adam.schedules.enclosure import enclose
from generic_adam.schedules.prove import blocks
from generic_adam.schedules.rounding import filtered, lost_digits
from generic_adam.schedules.sums import SumError, late_value, partial_sum, whole_steps
from generic_adam.setting import Setting, number
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Rate, Status
from generic_adam.theorems.theorem import (
    Condition,
    Confidence,
    Finding,
    Offer,
    Theorem,
)

_EVIDENCE = (1_000, 10_000, 100_000)
_GOLDEN = (math.sqrt(5) - 1) / 2
_ITERATIONS = 60
# Up to here the largest beta_t is looked for step by step.
_SHORT = 100_000
# Two floats that are bounds of what they stand for differ for certain where they differ by more.
_ROUNDING = 1e-12
# The relative error that the values of 1 - theta_t may have.
_MOST_LOST = 1e-6


def hypotheses(method: Method, horizon: int | None = None) -> tuple[Decision, Decision, Decision]:
    """(R1), (R2) and (R3), which are conditions 1 to 3, up to a horizon or for every t."""
    return (
        decide.bounded_below_one(method.beta, horizon),
        decide.non_decreasing(method.theta, horizon),
        decide.step_sizes(method, horizon),
    )


@dataclass(frozen=True)
class PaperFinding(Finding):
    """The answer of the sufficient condition about a method."""

    also = (*Finding.also, "C0", "ratio_order")

    @property
    def C0(self) -> float | None:
        """An upper bound on the constant of (R3); None where condition 3 does not hold."""
        return decide.constant_of(self.conditions[2].rise) if self.conditions else None

    @property
    def ratio_order(self) -> Rate | None:
        """The order of the ratio of condition 4, certified or not; None off the polynomial scale."""
        return self.conditions[3].order if self.conditions else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """C0, which every constant of Theorem 1 has powers of."""
        C0 = self.C0
        return () if C0 is None else (f"C0 <= {rounded_up(C0, 6)} in (R3)",)


class Zou2019(Theorem):
    """Zou, Shen, Jie, Zhang and Liu's Theorem 1 with Corollary SC."""

    name: ClassVar = "zou2019"
    title: ClassVar = "Zou et al. 2019"
    statement: ClassVar = "(E |grad f(x_tau)|^(4/3))^(3/2) tends to 0, tau uniform on 1..T"
    covered: ClassVar = "Generic Adam with v_0 > 0 and nothing added to sqrt(v_t)"
    source: ClassVar = (
        'Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019'
    )
    confidence: ClassVar = Confidence.PUBLISHED
    kind: ClassVar = PaperFinding

    def decide(self, x: Algorithm, setting: Setting) -> list[Decision]:
        """Decide the four conditions, for every t."""
        del setting
        fourth = decide.paper_ratio(x.method)
        if fourth.status is Status.UNDECIDED:
            fourth = replace(fourth, reason=fourth.reason.rstrip(".") + _evidence(x.method))
        return [*hypotheses(x.method), fourth]

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Theorem 1 after T steps, or at an iterate drawn by alpha_t (Corollary 7.0), which is never larger."""
        epsilon = number("v_0", x.initial_v, may_be_zero=False)
        found = bound(x.method, replace(problem, epsilon=epsilon), steps)
        if found.constants is None:
            raise TheoremError(found.reasons)
        numbers = {"sum": found.total, "alpha_last": found.alpha_last, "uniform": found.expectation}
        up = 1 + found.rounding
        return Offer(up * min(found.expectation, found.weighted), None, vars(found.constants) | numbers)


def examine_method(method: Method) -> PaperFinding:
    r"""Decide the four conditions for three sequences, with the rate and the constant C0.

    Examples:
        >>> found = examine_method(Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)"))
        >>> print(found.verdict, found.rate)
        certified T^(-1/2) log T
    """
    return cast("PaperFinding", Zou2019().examine(Algorithm(method)))


def _evidence(method: Method) -> str:
    try:
        numbers = ", ".join(f"{decide.ratio(method, steps):.4g} at T = {steps:,}" for steps in _EVIDENCE)
    except ScheduleError:
        return "."
    return f"; it is {numbers}, which proves nothing."


@dataclass(frozen=True)
class Facts:
    r"""The numbers that Theorem 1 takes from the three sequences on the steps 1..T.

    Attributes:
        beta: :math:`\beta = \sup_t \beta_t`.
        theta_first: :math:`\theta_1`.
        chi_first: :math:`\chi_1`.
        C0: the constant of (R3), :math:`\sup_t \chi_t / \min_{i \le t} \chi_i`.
    """

    beta: float
    theta_first: float
    chi_first: float
    C0: float


@dataclass(frozen=True)
class PaperConstants:
    """Every constant of Theorem 1, with the paper's letters.

    Attributes:
        theta_prime: the free number between beta^2 and theta.
        gamma: beta^2 / theta_prime.
        C0: the constant of (R3).
        C1: the product of theta_j / theta_prime over the theta_j below theta_prime; 1 if there are none.
        C1_log: its logarithm; C1 itself may be too small for a double.
        below: how many theta_j are smaller than theta_prime (the paper's N).
        C2: of Lemma "M_t".
        C3: of Lemma "sum of M_t".
        C: the constant that T alpha_T divides alone.
        C_prime: the factor of the sum of alpha_t sqrt(1 - theta_t).
    """

    theta_prime: float
    gamma: float
    C0: float
    C1: float
    C1_log: float
    below: int
    C2: float
    C3: float
    C: float
    C_prime: float


def constants(problem: Constants, facts: Facts, theta_prime: float, C1_log: float, below: int = 0) -> PaperConstants:
    """Compute the constants of Theorem 1; one that is too large for a double is infinite.

    Args:
      problem: L, G, d, the gap and epsilon.
      facts: beta, theta_1, chi_1 and C0.
      theta_prime: the free number, above beta^2.
      C1_log: the logarithm of C1 for that theta_prime.
      below: how many theta_j lie below theta_prime.
    """
    beta, C0 = facts.beta, facts.C0
    with np.errstate(over="ignore"):
        C2, C3 = np.exp(log_C2_and_C3(problem, facts, theta_prime, C1_log)).tolist()
    scale = 2 * C0 * problem.second_moment_root / (1 - beta)
    start = C3 * C0 * problem.dimension * facts.chi_first * problem.start_logarithm
    return PaperConstants(
        theta_prime=theta_prime,
        gamma=beta**2 / theta_prime,
        C0=C0,
        C1=math.exp(C1_log),
        C1_log=C1_log,
        below=below,
        C2=C2,
        C3=C3,
        C=scale * (problem.gap + start),
        C_prime=scale * C0 * C3 * problem.dimension / facts.theta_first,
    )


def log_C2_and_C3(problem: Constants, facts: Facts, theta_prime: float, C1_log: float) -> tuple[float, float]:
    """Return the logarithms of C2 and C3, finite for any theta_prime above beta^2.

    C and C' are increasing functions of C3 alone once the problem and the sequences are given, so the
    theta_prime that makes C3 least makes the bound least. As a function of log theta_prime, log C3 is convex:
    -log C1 has the increasing slope N, and -log(1 - sqrt gamma) is a sum of decaying exponentials.
    """
    beta, root, C0_log = facts.beta, math.sqrt(theta_prime), math.log(facts.C0)
    # Differences over theta', positive for every theta' above beta^2, however close:
    # 1 - gamma = (theta' - beta^2)/theta', 1 - sqrt(gamma) = (theta' - beta^2)/(sqrt(theta') (sqrt(theta') + beta)).
    difference = _log(theta_prime - beta**2)
    gamma_log, root_log = difference - math.log(theta_prime), difference - math.log(root * (root + beta))
    momentum = -math.inf
    if beta > 0:
        momentum = math.log(beta / (1 - beta)) - (C1_log + gamma_log + math.log(facts.theta_first)) / 2
    C2_log = math.log(2) + 2 * float(np.logaddexp(0.0, momentum))
    step_log = _log(facts.chi_first) + math.log(problem.smoothness)
    squared_steps = 2 * C0_log + step_log - C1_log - 2 * root_log
    noise = C2_log + math.log(problem.total_gradient_bound)
    return C2_log, C0_log - C1_log / 2 - root_log + float(np.logaddexp(squared_steps, noise))


def _log(number: float) -> float:
    """Return the logarithm, -infinity of a number that has rounded to 0 or below."""
    return math.log(number) if number > 0 else -math.inf


@dataclass(frozen=True)
class PaperBound:
    r"""The bound of Theorems 1 and 2 after T steps.

    Attributes:
        expectation: :math:`B(T)` (Theorem 1); infinite where a hypothesis is missing or the number overflows.
            Theorem 2 is Markov's inequality: :math:`\|\nabla f(x_\tau)\|^2 \le B(T)/\delta` with
            probability :math:`1 - \delta^{2/3}`.
        steps: T.
        total: :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}`.
        alpha_last: :math:`\alpha_T`.
        constants: every constant by its letter; None where a hypothesis is missing.
        missing: those of (R1), (R2) and (R3) that do not hold on 1..T; empty for a valid bound.
        weighted: :math:`B_w(T)`, the bound with :math:`\tau` drawn by :math:`\alpha_t`: never above
            `expectation`.
        rounding: how far doubles may have carried both, relatively.
    """

    expectation: float
    steps: int
    total: float
    alpha_last: float
    constants: PaperConstants | None
    missing: tuple[Condition, ...] = ()
    weighted: float = math.inf
    rounding: float = 0.0

    @property
    def is_valid(self) -> bool:
        """True if every hypothesis of the theorem holds on 1..T."""
        return not self.missing

    @property
    def reasons(self) -> str:
        """The missing hypotheses with their reasons, or that no double holds the bound; empty where there is one."""
        if not self.missing and math.isinf(self.expectation):
            return "the bound exceeds the largest double"
        return "; ".join(f"(R{one.number}): {one.reason.rstrip('.')}" for one in self.missing)


def bound(method: Method, problem: Constants, steps: int, theta_prime: float | None = None) -> PaperBound:
    """Evaluate the bound of Theorem 1 after a number of steps.

    Args:
      method: the three sequences.
      problem: L, G, d, the gap and epsilon.
      steps: T, at most 10^15, or 10^8 where the form does not tell.
      theta_prime: the free number between beta^2 and theta; None takes the one that makes the bound least.

    Returns:
      The bound with its constants. Where a hypothesis of the theorem is missing on 1..T, the bound is
      infinite and `missing` says which.

    Raises:
      TheoremError: theta_prime is out of range.
      SumError: the number of steps is no such whole number, or a hypothesis is undecided on them.

    Examples:
      >>> from generic_adam import Method, Setting
      >>> m = Method(alpha="1e-3/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
      >>> p = Constants.of(Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1))
      >>> f"{bound(m, p, steps=1000, theta_prime=0.9).expectation:.6g}"
      '2.78618e+08'
    """
    last = whole_steps(steps, "the number of steps")
    found = hypotheses(method, last)
    for one in found:
        if one.status is Status.UNDECIDED:
            raise SumError(f"a hypothesis is undecided up to T = {last:.3g}: {one.reason}")
    if lost_digits(1 - method.theta, last) > _MOST_LOST:
        raise SumError(f"the terms of {1 - method.theta} cancel: doubles do not have enough of its digits")
    facts, limit = facts_of(method, last, found[2].constant), limit_of_theta(method.theta, last)
    if facts.beta >= 1 and found[0].status is Status.HOLDS:
        raise SumError("beta_t comes closer to 1 than a float tells: the constants, over 1 - beta, are not finite")
    asked = found if not all(one.holds for one in found) else (found[0], _above_squared_beta(method, facts, limit))
    missing = tuple(Condition.of(number, one) for number, one in enumerate(asked, start=1) if not one.holds)
    if theta_prime is not None:
        _check_theta_prime(theta_prime, method.theta, facts.beta, limit)
    known = None
    if not missing:
        if facts.theta_first == 0:
            raise SumError("theta_1 is closer to 0 than a float tells: the constants, over theta_1, are not finite")
        product = BelowThetaPrime(method.theta, last)
        chosen = best_theta_prime(problem, facts, product, limit) if theta_prime is None else theta_prime
        known = constants(problem, facts, float(chosen), *product.logarithm_and_count(float(chosen)))
    total, alpha_last = _sum(decide.weighted_steps(method), last), late_value(method.alpha, last)
    return PaperBound(
        expectation=_quotient(known, total, last * alpha_last),
        steps=last,
        total=total,
        alpha_last=alpha_last,
        constants=known,
        missing=missing,
        rounding=0.0 if known is None else rounding(facts, known),
        weighted=math.inf if known is None else _quotient(known, total, known.C0 * _sum(method.alpha, last)),
    )


def facts_of(method: Method, last: int, C0: float | None) -> Facts:
    """Return what the constants take from the steps 1..T; infinite where a quotient is."""
    first = (1 - method.theta)(1)
    chi = method.alpha(1) / math.sqrt(first) if first > 0 else math.inf
    return Facts(_largest(method.beta, last), method.theta(1), chi, C0 or math.inf)


def _quotient(known: PaperConstants | None, total: float, divisor: float) -> float:
    """(C + C' sum)/divisor; infinite where a double cannot hold it, or the divisor."""
    if known is None or not (0 < divisor < math.inf and math.isfinite(known.C_prime) and total < math.inf):
        return math.inf
    return (known.C + known.C_prime * total) / divisor


def rounding(facts: Facts, known: PaperConstants) -> float:
    r"""Return how far doubles may carry the bound from its exact value, relatively.

    The three sums are within 1e-9 of theirs. :math:`C_3` holds :math:`C_1^{-3/2}` at most, whose logarithm is a
    difference of two sums of N terms, and is the exponential of a sum of ten logarithms, each below 750. The
    differences :math:`1-\beta` and :math:`\theta'-\beta^2` are within a few units of their terms' last place, and occur
    to the second power at most.
    """
    unit, apart = 2.0**-53, known.theta_prime - facts.beta**2
    first = 1e-9 * (abs(known.C1_log) + 2 * known.below * abs(math.log(known.theta_prime)))
    differences = 16 * unit * (1 / (1 - facts.beta) + known.theta_prime / apart) if apart > 0 else math.inf
    return math.expm1(3e-9 + 1.5 * first + 2 * differences + 20 * 750 * unit)


def _sum(schedule: Schedule, last: int) -> float:
    """Return a partial sum; nan where a term is no number."""
    try:
        with np.errstate(over="ignore"):
            return partial_sum(schedule, last)
    except ScheduleError:  # a SumError is one
        return math.nan


def _largest(beta: Schedule, last: int) -> float:
    """Return the largest beta_t up to a step, or the bound that the form gives."""
    constant = beta.constant_value
    if constant is not None:
        return constant
    if last <= _SHORT:
        return float(max(np.add(*filtered(beta, times)).max() for _, times in blocks(1, last)))
    return above(enclose(beta, 1, last).range.high)


def limit_of_theta(theta: Schedule, last: int) -> float:
    """Return the limit of theta_t, or a lower bound for it: theta_T, or what the form of theta_t says."""
    reached, growth = 1 - late_value(1 - theta, last), (1 - theta).growth
    if growth is None or growth.trend > 0:
        return reached
    return 1.0 if growth.trend < 0 or growth.is_zero else max(reached, 1 - growth.high)


def _above_squared_beta(method: Method, facts: Facts, limit: float) -> Decision:
    """theta > beta^2: exact for constants; else `limit` bounds theta from below and `facts` beta from above."""
    squared = facts.beta**2
    told = f"theta is known to be at least {limit:.6g}, which does not show it above beta^2 = {squared:.6g}"
    left_open = Decision(Status.UNDECIDED, told)
    if method.beta.is_constant and method.theta.is_constant:
        order = decide.positive(method.theta - method.beta * method.beta)
        told = f"theta = {limit:.6g} is not above beta^2 = {squared:.6g}"
        return left_open if order.status is Status.UNDECIDED else replace(order, reason=told)
    # beta_t < 1 is (R1): a theta that tends to 1 is above. Two floats have to differ by more than their rounding.
    return replace(left_open, status=Status.HOLDS) if limit == 1 or limit - squared > _ROUNDING else left_open


class BelowThetaPrime:
    r"""The logarithm of :math:`C_1` for any :math:`\theta'`, for a non-decreasing :math:`\theta_t` on 1..T.

    As :math:`\theta_t` does not fall, the :math:`\theta_j < \theta'` are the first N; N is found by bisection
    and :math:`\log C_1 = \sum_{j\le N}\log\theta_j - N\log\theta'` by summation.
    """

    def __init__(self, theta: Schedule, steps: int) -> None:
        self._complement, self._steps = 1 - theta, steps
        # Near 1 the logarithm of a rounded theta_t has no digits left, near 0 that of a rounded complement.
        logarithm, small = Function("log", theta), self.count(0.5)
        if small < steps:
            after = Function("log1p", -self._complement)
            logarithm = Join(small + 1, logarithm, after) if small else after
        self._logarithm = logarithm

    def count(self, theta_prime: float) -> int:
        """Return N, how many theta_j with j <= T are smaller than theta_prime."""
        missing = 1 - theta_prime

        def reached(t: int) -> bool:
            return late_value(self._complement, t) <= missing

        # N is nearly always small, and a late theta_t may be costly: double first, then halve.
        last = 1
        while last < self._steps and not reached(last):
            last = min(2 * last, self._steps)
        return bisect.bisect_left(range(1, last + 1), True, key=reached)

    def logarithm_and_count(self, theta_prime: float) -> tuple[float, int]:
        """Return log C1 and N."""
        below = self.count(theta_prime)
        if below == 0:
            return 0.0, 0
        # Rounding at theta_N = theta_prime could leave a product a hair above 1.
        return min(0.0, partial_sum(self._logarithm, below) - below * math.log(theta_prime)), below


def best_theta_prime(problem: Constants, facts: Facts, product: BelowThetaPrime, limit: float) -> float:
    """Return the theta' that makes C3, and with it the bound, least.

    Up to theta_1 a larger theta' only shrinks gamma, so the search starts there (or at beta^2). The logarithm
    of C3 is convex in log theta' (see `log_C2_and_C3`), so golden-section search finds its minimum. With
    constant theta it is theta itself, where C1 = 1.
    """
    lower = max(facts.theta_first, facts.beta**2)
    if facts.beta == 0 or lower >= limit:
        return facts.theta_first

    @cache
    def objective(logarithm: float) -> float:
        candidate = math.exp(logarithm)
        if candidate <= facts.beta**2:
            return math.inf
        return log_C2_and_C3(problem, facts, candidate, product.logarithm_and_count(candidate)[0])[1]

    first, last = math.log(lower), math.log(limit)
    left, low, high, right = first, last - _GOLDEN * (last - first), first + _GOLDEN * (last - first), last
    for _ in range(_ITERATIONS):
        if objective(low) <= objective(high):
            low, high, right = high - _GOLDEN * (high - left), low, high
        else:
            left, low, high = low, high, low + _GOLDEN * (right - low)
    # theta_1 itself, the least theta' worth trying, is an end that the search only approaches.
    best = min((first, low, high), key=objective)
    return math.exp(best) if best > first else lower


def _check_theta_prime(theta_prime: float, theta: Schedule, beta: float, limit: float) -> None:
    constant = theta.constant_value
    below = theta_prime <= constant if constant is not None else theta_prime < limit
    if not (beta**2 < theta_prime and below):
        closing = "]" if constant is not None else ")"
        raise TheoremError(
            f"theta_prime is {theta_prime!r}, expected a number in "
            f"(beta^2, theta{closing} = ({beta**2:.6g}, {limit:.6g}{closing}"
        )
