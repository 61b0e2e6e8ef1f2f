r"""Theorem R: regret with constant beta, and the condition on :math:`\Gamma_t` decided exactly.

**Setting**: convex :math:`f_t` on a domain with :math:`|x-y|_\infty \le D`, :math:`|g_{t,k}| \le G_k`,
:math:`D'_t = D_t/\alpha_t` non-decreasing in every coordinate, and a projection in the :math:`D'_t`-norm.
Then

.. math::

    R_T \le \frac{D^2}{2(1-\beta)} \sum_k D'_{T,k} + \frac{1+\beta}{2(1-\beta)} \sum_{t,k}
    \frac{m_{t,k}^2}{D'_{t,k}}.

**R-AMS** (AMSGrad, constant theta, :math:`\gamma = \beta^2/\theta < 1`, alpha non-increasing):

.. math::

    R_T \le \frac{D^2}{2(1-\beta)\alpha_T} \sum_k \sqrt{\bar v_{T,k}}
    + \frac{1+\beta}{2\sqrt{(1-\theta)(1-\gamma)}} \sum_{t,k} \alpha_t |g_{t,k}|.

**R-NC** (AdamNC, NosAdam): if (a) :math:`\alpha_t^2 \le \theta_t\alpha_{t-1}^2` for all t >= 2, which is
necessary and sufficient for :math:`\Gamma_t \ge 0` under every sequence of gradients (the worst case is
:math:`g_t = 0`), and (b) :math:`\zeta = \sup_t \max_{j\le t} \alpha_t\sqrt{W_t/w_j} < \infty` with
:math:`w_j = q_j W_j`, then

.. math::

    R_T \le \frac{D^2}{2(1-\beta)\alpha_T} \sum_k \sqrt{v_{T,k}} + \frac{1+\beta}{1-\beta}\,\zeta \sum_k
    |g_{1:T,k}|_2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import (
    Add,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Schedule,
    Subtract,
    Time,
    WeightedTheta,
    as_power_of_t,
)
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, StepWitness
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import BLOCK, Array, Block, Sequences, minus_log
from generic_adam.theorems.theorem import About, Assumptions, Finding, Theorem
from generic_adam.theorems.verdicts import Condition, Rate, Status

# Steps that are walked for a witness, and how many of them may be compared in fractions.
_WALKED = 100_000
_EXACT = 4096
_CONVEX = "the losses are convex, on a bounded domain with projection"
# Values of schedules are right to a few units in the last place; what differs by more than this differs.
_ROUNDING = 1e-11


def constant_beta_bound(*, diameter: float, beta: float, last_divisors: float, momentum_sum: float) -> float:
    r"""Return the bound on the regret from what was measured.

    Args:
      diameter: D.
      beta: the constant momentum factor.
      last_divisors: :math:`\sum_k D'_{T,k}`.
      momentum_sum: :math:`\sum_{t,k} m_{t,k}^2/D'_{t,k}`.
    """
    _check_beta(beta)
    return (diameter**2 * last_divisors + (1 + beta) * momentum_sum) / (2 * (1 - beta))


def amsgrad_regret(sequences: Sequences, problem: Problem, diameter: float) -> float:
    r"""Return R-AMS's bound on :math:`R_T` in the worst case :math:`|g_{t,k}| = G_k`.

    Args:
      sequences: non-increasing alpha, constant beta and theta with beta^2 < theta.
      problem: its `gradient_sup`.
      diameter: D.

    Raises:
      TheoremError: a hypothesis fails.
    """
    rates, last = 0.0, math.inf
    beta = theta = q = 0.0
    for block in _blocks(sequences):
        beta, theta, q = _constant("beta", block.beta), _constant("theta", block.theta), float(block.q[0])
        if (np.diff(block.alpha, prepend=last) > 0).any():
            raise TheoremError(
                f"R-AMS: expected learning rates that never rise, and they do from {block.start} on"
            )
        last = float(block.alpha[-1])
        rates += float(block.alpha.sum()) * ((block.stop - block.start) / len(block.alpha))
    if beta**2 >= theta:
        raise TheoremError(f"R-AMS: expected beta^2 < theta, got beta = {beta:g} and theta = {theta:g}")
    total = _gradient_sum(problem)
    start = diameter**2 / (2 * (1 - beta) * last) * total if last > 0 else math.inf
    return start + (1 + beta) / (2 * math.sqrt(q * (1 - beta**2 / theta))) * rates * total


def non_increasing_regret(sequences: Sequences, problem: Problem, diameter: float) -> float:
    r"""Return R-NC's bound on :math:`R_T` in the worst case :math:`|g_{t,k}| = G_k`.

    Args:
      sequences: alpha and theta with (a) of the theorem (see `gamma`), constant beta.
      problem: its `gradient_sup`.
      diameter: D.
    """
    beta = 0.0
    last = 0.0
    for block in _blocks(sequences):
        beta, last = _constant("beta", block.beta), float(block.alpha[-1])
    total = _gradient_sum(problem)
    start = diameter**2 / (2 * (1 - beta) * last) * total if last > 0 else math.inf
    slope = (1 + beta) / (1 - beta) * zeta_constant(sequences)
    return start + slope * total * math.sqrt(sequences.steps)


def zeta_constant(sequences: Sequences) -> float:
    r"""Return :math:`\zeta = \max_{t\le T} \max_{j\le t} \alpha_t\sqrt{W_t/w_j}`, in logarithms.

    It is the least number with :math:`\sqrt{v_t}/\alpha_t \ge |g_{1:t}|/\zeta` for every sequence of
    gradients. Where :math:`\theta_1 = 0` the first gradient is the whole of :math:`v_1`:
    :math:`W_1 = w_1 = 1`.
    """
    growth, least, largest = 0.0, math.inf, 0.0
    for block in _blocks(sequences):
        length = block.stop - block.start
        theta, q = np.broadcast_to(block.theta, length), np.broadcast_to(block.q, length)
        decrease = minus_log(np.where(theta > 0, theta, 1.0), np.where(theta > 0, q, 0.0))
        sums = growth + np.cumsum(decrease)
        logarithms = np.log(q) + sums
        smallest = np.minimum(np.minimum.accumulate(logarithms), least)
        with np.errstate(divide="ignore"):
            exponents = 2 * np.log(block.alpha) + sums - smallest
        largest = max(largest, float(np.exp(exponents.max() / 2)))
        growth, least = float(sums[-1]), float(smallest[-1])
    return largest


def _blocks(sequences: Sequences) -> Iterator[Block]:
    for start in range(1, sequences.steps + 1, BLOCK):
        yield sequences.block(start, min(start + BLOCK, sequences.steps + 1))


def _constant(name: str, values: Array) -> float:
    if (values != values[0]).any():
        raise TheoremError(f"regret: expected a constant {name}")
    return float(values[0])


def _gradient_sum(problem: Problem) -> float:
    if not problem.sup_parts:
        raise TheoremError("regret: expected a bound |g_k| <= G_k that always holds (`gradient_sup`)")
    return sum(part.count * part.gradient for part in problem.sup_parts)


def _check_beta(beta: float) -> None:
    if not 0 <= beta < 1:
        raise TheoremError(f"beta is {beta!r}, expected a number in [0, 1)")


class Regret(Theorem):
    """Theorem R: average regret with constant beta, of AMSGrad (R-AMS) or with Gamma_t >= 0 (R-NC)."""

    name: ClassVar = "R"
    title: ClassVar = "Theorem R"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret tends to 0 on convex problems with bounded domain and gradients"
    covered: ClassVar = "AMSGrad with constant theta; AdamNC, AdaGrad and NosAdam; constant beta"
    assumptions: ClassVar = ("convex losses", "a bounded domain with projection", "bounded gradients")
    source: ClassVar = "docs/theorems/regret.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum"})

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed; convexity is needed, and an eps that does not move."""
        convex = () if assume.convex else ("it is about convex losses on a bounded domain, with projection",)
        moving = (
            () if x.eps.is_constant and not x.eps_under_root else ("it has a constant eps beside the root",)
        )
        return (*super().outside(x, assume), *convex, *moving)

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Constant beta, and R-AMS or R-NC for learning rates c t^-s."""
        del assume
        beta = x.method.beta
        inside = beta.is_constant and 0 <= beta(1) < 1
        told = (
            f"beta_t = {beta} is constant." if inside else "beta_t is not a constant in [0, 1) by its form."
        )
        first = Condition(1, Status.HOLDS if inside else Status.UNDECIDED, told)
        falls = _rate_of_steps(x.method.alpha)
        if x.running_maximum:
            exponent = falls[1]
            rate = None if exponent is None else Rate(-min(exponent, 1 - exponent), Fraction(0), Fraction(0))
            return self.finding([first, falls[0], _above_squared_beta(x.method)], rate, needs=(_CONVEX,))
        decided = gamma(x.method)
        witness = decided.witness.t if isinstance(decided.witness, StepWitness) else None
        third = Condition(3, decided.status, decided.reason + ".", witness)
        rate = Rate(Fraction(-1, 2), Fraction(0), Fraction(0))
        return self.finding([first, falls[0], third, _zeta_is_finite(x.method)], rate, needs=(_CONVEX,))


def _rate_of_steps(alpha: Schedule) -> tuple[Condition, Fraction | None]:
    """alpha_t never rises, T alpha_T -> infinity and the mean of alpha_t -> 0, with the exponent s of c t^-s."""
    power = as_power_of_t(alpha)
    if power is None or power[0] <= 0:
        return Condition(2, Status.UNDECIDED, "alpha_t is no c t^-s by its form."), None
    exponent = -power[1]
    holds = 0 < exponent < 1
    told = f"alpha_t falls as t^-{float(exponent):g}; 0 < s < 1 is asked for."
    return Condition(2, Status.HOLDS if holds else Status.FAILS, told), exponent if holds else None


def _above_squared_beta(method: Method) -> Condition:
    beta, theta = method.beta, method.theta
    if not (theta.is_constant and beta.is_constant):
        return Condition(3, Status.UNDECIDED, "R-AMS is proved for constant beta and theta.")
    inside = decide.positive(theta - beta * beta).holds and decide.positive(1 - theta).holds
    told = "beta^2 < theta < 1." if inside else "beta^2 < theta < 1 is not so."
    return Condition(3, Status.HOLDS if inside else Status.FAILS, told)


def _zeta_is_finite(method: Method) -> Condition:
    """(b) for alpha_t = c/sqrt t: 1 - theta_t = c'/t with c' <= 1, or weights t^-r with r < 1."""
    alpha = as_power_of_t(method.alpha)
    asked = "zeta = sup_t max_j alpha_t sqrt(W_t/w_j) is finite"
    if alpha is None or alpha[1] != Fraction(-1, 2):
        return Condition(4, Status.UNDECIDED, f"{asked}: decided for alpha_t = c/sqrt t alone.")
    if isinstance(method.theta, WeightedTheta):
        weights = as_power_of_t(method.theta.weights)
        if weights is None or weights[1] > 0:
            return Condition(4, Status.UNDECIDED, f"{asked}: decided for weights t^-r, r >= 0.")
        status = Status.HOLDS if weights[1] > -1 else Status.FAILS
        return Condition(
            4, status, f"{asked} for weights t^-r exactly where r < 1; r = {float(-weights[1]):g}."
        )
    share = as_power_of_t(_from_the_second_step(1 - method.theta))
    if share is None or share[1] != -1 or not 0 < share[0] <= 1:
        return Condition(4, Status.UNDECIDED, f"{asked}: decided for 1 - theta_t = c/t, 0 < c <= 1.")
    return Condition(4, Status.HOLDS, f"{asked}: 1 - theta_t = {float(share[0]):g}/t.")


def gamma(method: Method, horizon: int | None = None) -> Decision:
    r"""Decide (a), :math:`\alpha_t^2 \le \theta_t\,\alpha_{t-1}^2` for all t >= 2, or those up to a horizon.

    For ever it is decided by form: :math:`\alpha_t = c\,t^{-s}` with :math:`2s \le 1` and
    :math:`q_t = c' t^p`, :math:`p \le -1`, :math:`c' 2^{p+1} \le 2s` (Bernoulli:
    :math:`1-(1-1/t)^{2s} \ge 2s/t`), or theta from weights that never rise and :math:`2s \ge 1` (a mean of
    falling weights falls). A witness is searched for on the first steps, and what rounding leaves open is
    compared in fractions.

    Args:
      method: alpha and theta.
      horizon: the last step that counts; None asks it of every t.
    """
    reason = _holds_by_form(method)
    if reason is not None:
        return Decision(Status.HOLDS, reason)
    last = _WALKED if horizon is None else min(horizon, _WALKED)
    witness, open_steps = _first_failure(method, last)
    claim = "alpha_t^2 <= theta_t alpha_(t-1)^2"
    if witness is not None:
        return Decision(Status.FAILS, f"{claim} fails at t = {witness}", StepWitness(witness))
    if open_steps:
        return Decision(Status.UNDECIDED, f"{claim} is too close to tell at {open_steps:,} of {last:,} steps")
    if horizon is not None and horizon <= last:
        return Decision(Status.HOLDS, f"{claim} at every step up to {horizon:,}")
    return Decision(Status.UNDECIDED, f"{claim} at the first {last:,} steps; nothing is known of later ones")


def _holds_by_form(method: Method) -> str | None:
    alpha = as_power_of_t(method.alpha)
    if alpha is None or alpha[0] <= 0:
        return None
    doubled = -2 * alpha[1]
    if isinstance(method.theta, WeightedTheta):
        weights = as_power_of_t(method.theta.weights)
        if doubled >= 1 and weights is not None and weights[0] > 0 and weights[1] <= 0:
            return "the weights never rise, so B_t/t does not rise"
        return None
    share = as_power_of_t(_from_the_second_step(1 - method.theta))
    if share is None or not 0 < doubled <= 1 or share[1] > -1:
        return None
    factor, power = share
    # c' 2^(p+1) <= 2s; the power of 2 is rational only for whole p, and at most 1 otherwise.
    scale = Fraction(2) ** int(power + 1) if power.denominator == 1 else Fraction(1)
    if factor * scale <= doubled:
        return f"1 - theta_t <= {float(doubled):g}/t"
    return None


def _from_the_second_step(schedule: Schedule) -> Schedule:
    """Return the schedule as it is for t >= 2, where max(t, 2) is t."""
    match schedule:
        case Maximum(Time(), Constant(value)) | Maximum(Constant(value), Time()) if value <= 2:
            return Time()
        case Divide(left, right):
            return Divide(_from_the_second_step(left), _from_the_second_step(right))
        case Multiply(left, right):
            return Multiply(_from_the_second_step(left), _from_the_second_step(right))
        case Power(base, exponent):
            return Power(_from_the_second_step(base), exponent)
        case _:
            return schedule


def _first_failure(method: Method, last: int) -> tuple[int | None, int]:
    """Return the first step at which (a) fails for certain, and how many before it were left open."""
    if last < 2:
        return None, 0
    alpha, theta = method.alpha.values(1, last + 1), method.theta.values(2, last + 1)
    with np.errstate(all="ignore"):
        excess = alpha[1:] ** 2 / (theta * alpha[:-1] ** 2) - 1
    # 0/0 (a rate that stays 0) and what is not a number are left to the fractions.
    certain = excess > _ROUNDING
    close = ~(excess < -_ROUNDING) & ~certain
    first = int(np.argmax(certain)) if certain.any() else len(excess)
    open_steps = 0
    for index in np.flatnonzero(close[:first])[:_EXACT].tolist():
        answer = _holds_exactly(method, index + 2)
        if answer is None:
            open_steps += 1
        elif not answer:
            return index + 2, open_steps
    open_steps += max(0, int(close[:first].sum()) - _EXACT)
    if open_steps:
        return None, open_steps
    return (None, 0) if first == len(excess) else (first + 2, 0)


def _holds_exactly(method: Method, t: int) -> bool | None:
    now, before = _square(method.alpha, t), _square(method.alpha, t - 1)
    theta = _rational(method.theta, t)
    if now is None or before is None or theta is None:
        return None
    return now <= theta * before


def _square(node: Schedule, t: int) -> Fraction | None:
    """Return the square of a schedule at t where its form makes that rational: sqrt(t), t^(-1/2)."""
    match node:
        case Function("sqrt", inner):
            return _rational(inner, t)
        case Multiply(left, right):
            first, second = _square(left, t), _square(right, t)
            return None if first is None or second is None else first * second
        case Divide(left, right):
            first, second = _square(left, t), _square(right, t)
            return None if first is None or not second else first / second
        case Power(base, Constant(exponent)) if (2 * exponent).denominator == 1:
            inner = _rational(base, t)
            return None if inner is None or (inner == 0 and exponent < 0) else inner ** int(2 * exponent)
        case _:
            value = _rational(node, t)
            return None if value is None else value * value


def _rational(node: Schedule, t: int) -> Fraction | None:
    """Return the exact value of a schedule at t where its form is rational; else None."""
    match node:
        case Constant(value):
            return Fraction(value)
        case Time():
            return Fraction(t)
        case Negate(inner):
            value = _rational(inner, t)
            return None if value is None else -value
        case Power(base, Constant(exponent)) if exponent.denominator == 1:
            value = _rational(base, t)
            return None if value is None or (value == 0 and exponent < 0) else value ** int(exponent)
        case WeightedTheta(weights, initial) if t <= _EXACT:
            terms = [_rational(weights, i) for i in range(1, t + 1)]
            known = [term for term in terms if term is not None]
            total = initial + sum(known)
            return (total - known[-1]) / total if len(known) == t and total else None
        case Join(threshold, before, after):
            return _rational(before if t < threshold else after, t)
        case Add(left, right) | Subtract(left, right) | Multiply(left, right) | Divide(left, right):
            return _combined(node, _rational(left, t), _rational(right, t))
        case Maximum(left, right) | Minimum(left, right):
            return _combined(node, _rational(left, t), _rational(right, t))
        case _:
            return None


def _combined(node: Schedule, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    if left is None or right is None:
        return None
    match node:
        case Add():
            return left + right
        case Subtract():
            return left - right
        case Multiply():
            return left * right
        case Divide():
            return left / right if right else None
        case Maximum():
            return max(left, right)
        case _:
            return min(left, right)
