"""Theorems G and S: two settings with bounds of their own, in closed form.

G is momentum that averages the noise away, S signSGD: plain averages over the steps. For ever they say something with
exact gradients alone, and G asks for L and a bound on every gradient. Statements and proofs are on the page
docs/theorems/special.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import bias_correction, sqrt
from generic_adam.schedules.enclosure import collected
from generic_adam.setting import Setting
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Rate, Status
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.theorem import (
    NOTHING,
    VANISHING_STEPS,
    Excluded,
    Hypothesis,
    Offer,
    Theorem,
)
from generic_adam.theorems.weighted import certain_parts


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

    def largest_rate(self, smoothness: float) -> float:
        r"""Return the largest alpha that is allowed, :math:`\min\{1/(2Lc_u), (1-\beta)/(\sqrt2\,\beta L c_u)\}`."""
        unit = 1 / smoothness / self.upper if self.upper else math.inf
        return min(unit / 2, unit * (1 - self.beta) / (math.sqrt(2) * self.beta)) if self.beta else unit / 2

    def bound(self, problem: Constants, steps: int, first_gradient: float | None = None) -> float:
        r"""Evaluate Theorem G, a bound on the average of :math:`\mathbb{E}\|\nabla f(x_t)\|^2`.

        .. math::

            \frac{2\,\text{gap}}{\alpha c_l T}
            + \frac{c_u}{c_l}\Big[\frac{\beta\|\nabla f(x_1)\|^2}{(1-\beta) T} + (1-\beta)\sigma^2\Big]

        Args:
          problem: L, the gap and the variance.
          steps: T.
          first_gradient: the squared norm of grad f(x_1); None takes G^2.

        Raises:
          TheoremError: alpha is too large.
        """
        alpha, beta, lower, upper = self.alpha, self.beta, self.lower, self.upper
        limit = self.largest_rate(problem.smoothness)
        if not 0 < alpha <= limit:
            raise TheoremError(f"expected alpha = {alpha:g} <= {limit:g}")
        first = problem.total_gradient_bound**2 if first_gradient is None else first_gradient
        noise = beta * first / ((1 - beta) * steps) + (1 - beta) * problem.total_variance
        return 2 * problem.gap / alpha / lower / steps + upper / lower * noise


_CONSTANTS = "it is about constant alpha, beta and eps > 0, bias-corrected or not"
_PLAIN_LOSS: Excluded = {"decay inside the gradient changes its L and G": lambda x: x.l2 != 0}


def _exact_or(floor: str) -> Hypothesis:
    """Exact gradients: noise leaves a floor under the average."""

    def hypothesis(_: Algorithm, setting: Setting) -> Decision:
        if setting.full_batch:
            return Decision(Status.HOLDS, "Every gradient is exact.")
        return Decision(Status.FAILS, f"Noise leaves {floor} under the average, however long the run is.")

    return hypothesis


def _slow_enough(x: Algorithm, setting: Setting) -> Decision:
    """alpha <= min(1/(2 L c_u), (1 - beta)/(sqrt 2 beta L c_u))."""
    steps = Averaged.of(x, setting.gradient_norm or 0.0)
    if steps is None or setting.smoothness is None:  # examine asks outside first
        raise TheoremError("Theorem G: expected constants and a smoothness")
    limit = steps.largest_rate(setting.smoothness)
    told = f"alpha = {steps.alpha:g}, and {limit:.4g} is the largest for L = {setting.smoothness:g} and this eps."
    near = abs(steps.alpha - limit) <= 1e-12 * limit  # the floats may be off by rounding
    return Decision(Status.UNDECIDED if near else Status.HOLDS if steps.alpha < limit else Status.FAILS, told)


class Averaging(Theorem):
    """Theorem G: momentum averages the noise away, whatever the second moment is."""

    name: ClassVar = "G"
    statement: ClassVar = "the average of E |grad f(x_t)|^2 over the steps tends to 0"
    covered: ClassVar = "Adam with constants, any theta, where alpha is small beside eps and 1/L"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "|g_t| <= G always", "a bound on the variance")
    source: ClassVar = "docs/theorems/special.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum", "centered"})
    excludes: ClassVar = {_CONSTANTS: lambda x: Averaged.of(x, 1.0) is None, **_PLAIN_LOSS}
    takes: ClassVar = ("smoothness", "gradient_norm")
    uses: ClassVar = ("full_batch",)
    hypotheses: ClassVar = (_slow_enough, _exact_or("(1 - beta) sigma^2 c_u/c_l"))
    rate: ClassVar = Rate(Fraction(-1))

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Theorem G after T steps, tau uniform."""
        taken = Averaged.of(x, max(part.gradient for part in certain_parts(problem)))
        if taken is None:
            raise TheoremError(_CONSTANTS)
        return _offered(taken.bound(problem, steps), problem)


class Sign(Theorem):
    """Theorem S: signSGD, which is Adam with beta = theta = 0 and nothing added."""

    name: ClassVar = "S"
    statement: ClassVar = "the average of E |grad f(x_t)|_1, weighted by alpha_t, tends to 0"
    covered: ClassVar = "steps by the sign of the gradient: Adam with both betas 0 and no eps"
    assumptions: ClassVar = ("(A1)", "(A2)", "(A3)", "a bound on the variance of every coordinate")
    source: ClassVar = "docs/theorems/special.md"
    allows: ClassVar = frozenset({"initial_v"})
    excludes: ClassVar = {
        "it is about beta = theta = 0": lambda x: (x.method.beta, x.method.theta) != (NOTHING, NOTHING)
    }
    uses: ClassVar = ("full_batch",)
    hypotheses: ClassVar = (*VANISHING_STEPS, _exact_or("2 |sigma|_1"))

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        r"""Theorem S after T steps, tau drawn in proportion to alpha_t; the variance is that of a batch.

        .. math::

            \frac{\sum_t \alpha_t\,\mathbb{E}\|\nabla f(x_t)\|_1}{\sum_t \alpha_t} \le
            \frac{\text{gap} + \tfrac12\|L\|_1 \sum_t\alpha_t^2}{\sum_t\alpha_t} + 2\|\sigma\|_1
        """
        rates = squares = 0.0
        for block in Sequences.of_algorithm(x, steps).blocks():
            if block.alpha.min() < 0:
                raise TheoremError(f"expected alpha_t >= 0, got {block.alpha.min():g}")
            rates, squares = rates + block.total(block.alpha), squares + block.total(block.alpha**2)
        if rates <= 0:
            raise TheoremError("every learning rate up to the horizon is 0")
        drift = problem.dimension * problem.smoothness * squares / 2
        value = (problem.gap + drift) / rates + 2 * _deviations(problem)
        # |grad|^(4/3) <= G^(1/3) |grad|_1.
        expectation = math.sqrt(problem.total_gradient_bound) * value**1.5
        return Offer(expectation, value, {"mean_l1": value, "sum": rates, "squares": squares})


def _deviations(problem: Constants) -> float:
    """The sum of the coordinates' standard deviations."""
    given = problem.variance
    if given is None:
        return problem.gradient_sum_bound
    if isinstance(given, Sequence):
        return math.fsum(math.sqrt(one) for one in given)
    return math.sqrt(problem.dimension * given)


def _offered(value: float, problem: Constants) -> Offer:
    """(E |grad|^(4/3))^(3/2) <= E |grad|^2, and E |grad|_1 <= sqrt(d E |grad|^2)."""
    return Offer(value, math.sqrt(problem.dimension * value), {"mean_square": value})
