"""Theorems G, Z and S: three settings with bounds of their own, in closed form.

G is momentum that averages the noise away, Z RMSProp with big batches, S signSGD: plain averages over the steps. For
ever they say something with exact gradients alone, and G and Z ask for L and a bound on every gradient. Statements and
proofs are on the page docs/theorems/special.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Constant, Schedule, bias_correction, exact, sqrt
from generic_adam.schedules.enclosure import collected
from generic_adam.theorems.decide import Decision, Rate, Status
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.theorem import (
    NOTHING,
    VANISHING_STEPS,
    Answers,
    Assumptions,
    Excluded,
    Offer,
    Theorem,
    rate_of_sums,
)
from generic_adam.theorems.weighted import certain_parts


def largest_averaging_rate(smoothness: float, beta: float, upper: float) -> float:
    r"""Return the largest alpha of Theorem G: :math:`\min\{1/(2Lc_u), (1-\beta)/(\sqrt2\,\beta L c_u)\}`."""
    first = 1 / (2 * smoothness * upper)
    return first if beta == 0 else min(first, (1 - beta) / (math.sqrt(2) * beta * smoothness * upper))


@dataclass(frozen=True)
class Averaged:
    """x_{t+1} = x_t - alpha s_t m_t with c_l <= s_t <= c_u: what Theorem G takes from an algorithm.

    Args:
      alpha: the constant learning rate.
      beta: the constant momentum factor.
      lower: c_l, such as 1/(G + eps).
      upper: c_u, such as 1/eps (1/((1 - beta) eps) with bias correction).
    """

    alpha: float
    beta: float
    lower: float
    upper: float

    @classmethod
    def of(cls, x: Algorithm, gradient: float) -> Averaged | None:
        """None where the form is none of: constants throughout, or torch's bias corrections of them."""
        method, beta = x.method, x.method.beta.constant_value
        if beta is None:
            return None
        largest = max(gradient, math.sqrt(x.initial_v))
        rate, eps = method.alpha.constant_value, x.eps.constant_value
        if rate is not None and eps:
            below = math.hypot(largest, eps) if x.eps_under_root else largest + eps
            return cls(rate, beta, 1 / below, 1 / eps)
        # lr sqrt(1 - prod theta)/(1 - beta^t) m_t/(sqrt(v_t) + eps sqrt(1 - prod theta)): v_t/(1 - prod theta) <= G^2.
        correction = sqrt(bias_correction(method.theta))
        rate = collected(method.alpha * bias_correction(method.beta) / correction).constant_value
        eps = collected(x.eps / correction).constant_value
        if rate is None or not eps or x.eps_under_root or x.initial_v or x.running_maximum:
            return None
        divisor = (1 - beta) * eps
        return cls(rate, beta, 1 / (gradient + eps), 1 / divisor if divisor else math.inf)

    def bound(self, *, smoothness: float, gap: float, variance: float, first_gradient: float, steps: int) -> float:
        r"""Evaluate Theorem G, a bound on the average of :math:`\mathbb{E}\|\nabla f(x_t)\|^2`.

        .. math::

            \frac{2\,\text{gap}}{\alpha c_l T}
            + \frac{c_u}{c_l}\Big[\frac{\beta\|\nabla f(x_1)\|^2}{(1-\beta) T} + (1-\beta)\sigma^2\Big]

        Args:
          smoothness: L.
          gap: f(x_1) - f*.
          variance: sigma^2, a bound on the conditional variance of the gradient.
          first_gradient: the squared norm of grad f(x_1), or a bound on it.
          steps: T.

        Raises:
          TheoremError: alpha is too large, or a number is out of range.
        """
        alpha, beta, lower, upper = self.alpha, self.beta, self.lower, self.upper
        if not (0 < lower <= upper and 0 <= beta < 1 and alpha > 0 and steps >= 1):
            raise TheoremError("Theorem G: expected 0 < lower <= upper, 0 <= beta < 1, alpha > 0 and steps >= 1")
        limit = largest_averaging_rate(smoothness, beta, upper)
        if not alpha <= limit:
            raise TheoremError(f"expected alpha = {alpha:g} <= {limit:g}")
        start = beta * first_gradient / ((1 - beta) * steps)
        return 2 * gap / (alpha * lower * steps) + upper / lower * (start + (1 - beta) * variance)


def big_batch_bound(
    alpha: float,
    theta: float,
    eps: float,
    problem: Problem,
    *,
    variance: float,
    steps: int,
    initial_v: float = 0.0,
) -> float:
    r"""Evaluate Theorem Z, if :math:`1-\theta \le \text{eps}^2/(16G^2)`, :math:`\alpha \le \text{eps}/(2L)`.

    .. math::

        \frac1T \sum_t \mathbb{E}\|\nabla f(x_t)\|^2 \le \frac{2(\sqrt\theta G +
        \text{eps})\,\text{gap}}{\alpha T} + \frac{\sqrt\theta G + \text{eps}}{\text{eps}}\,\frac{\sigma^2}{b}

    Args:
      alpha: the constant learning rate.
      theta: the constant theta.
      eps: what is added to the root.
      problem: L, the gap and `gradient_sup`, of which G is the largest.
      variance: sigma^2/b, of a batch.
      steps: T.
      initial_v: v_0, whose root stands for G in the divisor where it is larger.

    Raises:
      TheoremError: a hypothesis fails.
    """
    if not (0 < theta < 1 and eps > 0 and alpha > 0 and steps >= 1):
        raise TheoremError("Theorem Z: expected 0 < theta < 1, eps > 0, alpha > 0 and at least one step")
    G = max(part.gradient for part in certain_parts(problem))
    largest_q, largest_rate = eps**2 / (16 * G**2), eps / (2 * problem.smoothness)
    if not (1 - theta <= largest_q and alpha <= largest_rate):
        told = f"1 - theta = {1 - theta:g} <= {largest_q:g} and alpha = {alpha:g} <= {largest_rate:g}"
        raise TheoremError(f"expected {told}")
    largest = math.sqrt(theta * max(G**2, initial_v)) + eps
    return 2 * largest * problem.gap / (alpha * steps) + largest / eps * variance


def sign_bound(
    *,
    smoothness_sum: float,
    gap: float,
    deviation_sum: float,
    rates: float,
    squares: float,
    batch: float = 1.0,
) -> float:
    r"""Evaluate Theorem S, with :math:`L_k` and a standard deviation :math:`\sigma_k` for each coordinate.

    .. math::

        \frac{\sum_t \alpha_t\,\mathbb{E}\|\nabla f(x_t)\|_1}{\sum_t \alpha_t} \le
        \frac{\text{gap} + \tfrac12\|L\|_1 \sum_t\alpha_t^2}{\sum_t\alpha_t}
        + \frac{2\|\sigma\|_1}{\sqrt n}

    With :math:`\alpha = 1/\sqrt{\|L\|_1 T}` and :math:`n = T` it is
    :math:`(\sqrt{\|L\|_1}(\text{gap}+\tfrac12) + 2\|\sigma\|_1)/\sqrt T`; with n = 1 the noise is a floor.

    Args:
      smoothness_sum: the sum of the L_k.
      gap: f(x_1) - f*.
      deviation_sum: the sum of the sigma_k of one example.
      rates: the sum of the alpha_t, the lengths of the steps in each coordinate.
      squares: the sum of their squares.
      batch: n.
    """
    if not (rates > 0 and batch >= 1):
        raise TheoremError("Theorem S: expected a learning rate above 0 and a batch of at least 1")
    return (gap + smoothness_sum * squares / 2) / rates + 2 * deviation_sum / math.sqrt(batch)


_ONE_OVER_T = Rate(Fraction(-1))
_CONSTANTS = "it is about constant alpha, beta and eps > 0, bias-corrected or not"
_MEASURES = {
    "smoothness": "it asks for the smoothness L of the loss",
    "gradient_norm": "it asks for a bound on every stochastic gradient",
}
_PLAIN_LOSS: Excluded = {"decay inside the gradient changes its L and G": lambda x: x.l2 != 0}


def _exact(assume: Assumptions, floor: str) -> Decision:
    """Exact gradients: noise leaves a floor under the average."""
    if assume.full_batch:
        return Decision(Status.HOLDS, "Every gradient is exact.")
    return Decision(Status.FAILS, f"Noise leaves {floor} under the average, however long the run is.")


class Averaging(Theorem):
    """Theorem G: momentum averages the noise away, whatever the second moment is."""

    name: ClassVar = "G"
    title: ClassVar = "Theorem G"
    statement: ClassVar = "the average of E |grad f(x_t)|^2 over the steps tends to 0"
    covered: ClassVar = "Adam with constants, any theta, where alpha is small beside eps and 1/L"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "|g_t| <= G always", "a bound on the variance")
    source: ClassVar = "docs/theorems/special.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum", "centered"})
    excludes: ClassVar = {_CONSTANTS: lambda x: Averaged.of(x, 1.0) is None, **_PLAIN_LOSS}
    takes: ClassVar = _MEASURES
    uses: ClassVar = ("full_batch",)

    def decide(self, x: Algorithm, assume: Assumptions) -> Answers:
        """alpha <= min(1/(2 L c_u), (1 - beta)/(sqrt 2 beta L c_u)), and exact gradients."""
        steps = Averaged.of(x, assume.gradient_norm or 0.0)
        if steps is None or assume.smoothness is None:  # examine asks outside first
            raise TheoremError("Theorem G: expected constants and a smoothness")
        limit = largest_averaging_rate(assume.smoothness, steps.beta, steps.upper)
        told = f"alpha = {steps.alpha:g}, and {limit:.4g} is the largest for L = {assume.smoothness:g} and this eps."
        small = _compared(steps.alpha, limit, told)
        return [small, _exact(assume, "(1 - beta) sigma^2 c_u/c_l")], _ONE_OVER_T

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem G after T steps, tau uniform."""
        taken = Averaged.of(x, max(part.gradient for part in certain_parts(problem)))
        if taken is None:
            raise TheoremError(_CONSTANTS)
        total = problem.total_gradient_bound**2
        known = {"smoothness": problem.smoothness, "gap": problem.gap, "variance": _variance(problem)}
        return _offered(taken.bound(**known, first_gradient=total, steps=steps), problem)


def _steady(x: Algorithm) -> bool:
    steady = all(one.is_constant for one in (x.method.alpha, x.method.theta, x.eps))
    return steady and x.eps(1) > 0 and x.method.theta(1) > 0 and not x.eps_under_root


class BigBatch(Theorem):
    """Theorem Z: RMSProp with big batches, 1 - theta small beside eps^2."""

    name: ClassVar = "Z"
    title: ClassVar = "Theorem Z"
    statement: ClassVar = Averaging.statement
    covered: ClassVar = "RMSProp with constants and an eps that is large beside alpha L and G sqrt(1 - theta)"
    assumptions: ClassVar = Averaging.assumptions
    source: ClassVar = "docs/theorems/special.md"
    allows: ClassVar = frozenset({"initial_v", "eps"})

    excludes: ClassVar = {
        "it is about RMSProp, without momentum": lambda x: x.method.beta != NOTHING,
        "it is about constant alpha, theta and eps > 0 beside the root": lambda x: not _steady(x),
        **_PLAIN_LOSS,
    }
    takes: ClassVar = _MEASURES
    uses: ClassVar = ("full_batch",)

    def decide(self, x: Algorithm, assume: Assumptions) -> Answers:
        """alpha <= eps/(2L), 1 - theta <= eps^2/(16 G^2), and exact gradients."""
        if not assume.smoothness or not assume.gradient_norm:  # examine asks outside first
            raise TheoremError("Theorem Z: expected a smoothness and a bound on the gradients")
        alpha, q, eps = (_number(one) for one in (x.method.alpha, 1 - x.method.theta, x.eps))
        largest = eps / (2 * exact(assume.smoothness))
        share = eps**2 / (16 * exact(assume.gradient_norm) ** 2)
        said = [f"{float(one):.4g}" for one in (alpha, largest, q, share)]
        answers = [
            _compared(alpha, largest, f"alpha = {said[0]}, and eps/(2L) = {said[1]} is the largest."),
            _compared(q, share, f"1 - theta = {said[2]}, and eps^2/(16 G^2) = {said[3]} is the largest."),
            _exact(assume, "(sqrt(theta) G + eps)/eps times the variance of a batch"),
        ]
        return answers, _ONE_OVER_T

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem Z after T steps, tau uniform."""
        given = (x.method.alpha(1), x.method.theta(1), x.eps(1))
        known = {"variance": _variance(problem), "initial_v": x.initial_v}
        return _offered(big_batch_bound(*given, problem, steps=steps, **known), problem)


class Sign(Theorem):
    """Theorem S: signSGD, which is Adam with beta = theta = 0 and nothing added."""

    name: ClassVar = "S"
    title: ClassVar = "Theorem S"
    statement: ClassVar = "the average of E |grad f(x_t)|_1, weighted by alpha_t, tends to 0"
    covered: ClassVar = "steps by the sign of the gradient: Adam with both betas 0 and no eps"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "a bound on the variance of every coordinate")
    source: ClassVar = "docs/theorems/special.md"
    allows: ClassVar = frozenset({"initial_v"})

    excludes: ClassVar = {
        "it is about beta = theta = 0": lambda x: (x.method.beta, x.method.theta) != (NOTHING, NOTHING)
    }
    uses: ClassVar = ("full_batch",)
    hypotheses: ClassVar = VANISHING_STEPS

    def decide(self, x: Algorithm, assume: Assumptions) -> Answers:
        """alpha_t >= 0, alpha_t -> 0 with an infinite sum, and exact gradients."""
        answers, _ = super().decide(x, assume)
        return [*answers, _exact(assume, "2 |sigma|_1")], rate_of_sums(x)

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """Theorem S after T steps, tau drawn in proportion to alpha_t."""
        rates = squares = 0.0
        for block in Sequences.of_algorithm(x, steps).blocks():
            if block.alpha.min() < 0:
                raise TheoremError(f"expected alpha_t >= 0, got {block.alpha.min():g}")
            rates, squares = rates + block.total(block.alpha), squares + block.total(block.alpha**2)
        if rates <= 0:
            raise TheoremError("every learning rate up to the horizon is 0")
        smooth, spread = problem.dimension * problem.smoothness, _deviations(problem)
        sums = {"rates": rates, "squares": squares}
        value = sign_bound(smoothness_sum=smooth, gap=problem.gap, deviation_sum=spread, **sums)
        # |grad|^(4/3) <= G^(1/3) |grad|_1.
        expectation = math.sqrt(problem.total_gradient_bound) * value**1.5
        return Offer(expectation, value, {"mean_l1": value, "sum": rates, "squares": squares})


def _compared(given: float | Fraction, limit: float | Fraction, told: str) -> Decision:
    """given <= limit; of two fractions exactly, of floats, which may be off by rounding, a tie is open."""
    rational = isinstance(given, Fraction) and isinstance(limit, Fraction)
    rounding = 0 if rational else 1e-12
    if given <= limit * (1 - rounding):
        return Decision(Status.HOLDS, told)
    return Decision(Status.FAILS if given > limit * (1 + rounding) else Status.UNDECIDED, told)


def _number(schedule: Schedule) -> float | Fraction:
    """The value of a constant: a fraction where its form has one."""
    simple = collected(schedule)
    return simple.value if isinstance(simple, Constant) else schedule(1)


def _variance(problem: Problem) -> float:
    """E |g - grad f|^2, at most E |g|^2 where it is not given."""
    given, total = problem.variance, problem.total_gradient_bound**2
    if given is None:
        return total
    return min(total, math.fsum(given) if isinstance(given, Sequence) else given)


def _deviations(problem: Problem) -> float:
    """The sum of the coordinates' standard deviations."""
    given = problem.variance
    if given is None:
        return problem.gradient_sum_bound
    if isinstance(given, Sequence):
        return math.fsum(math.sqrt(one) for one in given)
    return math.sqrt(problem.dimension * given)


def _offered(value: float, problem: Problem) -> Offer:
    """(E |grad|^(4/3))^(3/2) <= E |grad|^2, and E |grad|_1 <= sqrt(d E |grad|^2)."""
    return Offer(value, math.sqrt(problem.dimension * value), {"mean_square": value})
