r"""Theorem R: regret with constant beta, and the condition on :math:`\Gamma_t` decided exactly.

R-AMS is AMSGrad with constant theta. R-NC is AdamNC and NosAdam: (a) :math:`\alpha_t^2 \le \theta_t\alpha_{t-1}^2` for
all t >= 2, necessary and sufficient for :math:`\Gamma_t \ge 0`, and (b) a finite
:math:`\zeta = \sup_t \max_{j\le t} \alpha_t\sqrt{W_t/w_j}`. The proofs are on the page docs/theorems/regret.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import (
    BiasCorrection,
    Constant,
    Join,
    Maximum,
    Opaque,
    Periodic,
    Schedule,
    Time,
    WeightedTheta,
    as_power_of_t,
    as_schedule,
    join,
    t,
)
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.growth import Growth
from generic_adam.schedules.tree import rebuild, substitute, walk
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Array, Sequences
from generic_adam.theorems.theorem import CONVEX, About, Assumptions, Hypothesis, Theorem
from generic_adam.theorems.weighted import certain_parts


def constant_beta_bound(*, diameter: float, beta: float, last_divisors: float, momentum_sum: float) -> float:
    r"""Return the bound on the regret from what was measured.

    Args:
      diameter: D.
      beta: the constant momentum factor.
      last_divisors: :math:`\sum_k D'_{T,k}`.
      momentum_sum: :math:`\sum_{t,k} m_{t,k}^2/D'_{t,k}`.
    """
    if not 0 <= beta < 1:
        raise TheoremError(f"beta is {beta!r}, expected a number in [0, 1)")
    return (diameter**2 * last_divisors + (1 + beta) * momentum_sum) / (2 * (1 - beta))


def amsgrad_regret(x: Sequences, problem: Problem, diameter: float) -> float:
    r"""Return R-AMS's bound on :math:`R_T` in the worst case :math:`|g_{t,k}| = G_k`.

    Args:
      x: non-increasing alpha, constant beta and theta with beta^2 < theta.
      problem: its `gradient_sup`.
      diameter: D.

    Raises:
      TheoremError: a hypothesis fails.
    """
    rates, last, beta, theta, q = 0.0, math.inf, 0.0, 0.0, 0.0
    start = _last_divisors(x, problem)
    for block in x.blocks():
        beta, theta, q = _constant("beta", block.beta), _constant("theta", block.theta), float(block.q[0])
        if (np.diff(block.alpha, prepend=last) > 0).any():
            raise TheoremError(f"R-AMS: expected learning rates that never rise, and they do from {block.start} on")
        rates, last = rates + block.total(block.alpha), float(block.alpha[-1])
    if beta**2 >= theta:
        raise TheoremError(f"R-AMS: expected beta^2 < theta, got beta = {beta:g} and theta = {theta:g}")
    slope = (1 + beta) / (2 * math.sqrt(q * (1 - beta**2 / theta))) * rates
    return start * _start(diameter, beta, last) + _gradient_sum(problem) * slope


def non_increasing_regret(x: Sequences, problem: Problem, diameter: float) -> float:
    r"""Return R-NC's bound on :math:`R_T` in the worst case :math:`|g_{t,k}| = G_k`.

    Args:
      x: alpha and theta with (a) of the theorem (see `gamma`), constant beta.
      problem: its `gradient_sup`.
      diameter: D.
    """
    beta = last = 0.0
    for block in x.blocks():
        beta, last = _constant("beta", block.beta), float(block.alpha[-1])
    slope = (1 + beta) / (1 - beta) * zeta_constant(x) * math.sqrt(x.steps)
    return _last_divisors(x, problem) * _start(diameter, beta, last) + _gradient_sum(problem) * slope


def _start(diameter: float, beta: float, last_rate: float) -> float:
    return diameter**2 / (2 * (1 - beta) * last_rate) if last_rate > 0 else math.inf


def zeta_constant(x: Sequences) -> float:
    r"""Return :math:`\zeta = \max_{t\le T} \max_{j\le t} \alpha_t\sqrt{W_t/w_j}`, in logarithms.

    It is the least number with :math:`\sqrt{v_t}/\alpha_t \ge |g_{1:t}|/\zeta` for every sequence of
    gradients. Where :math:`\theta_1 = 0` the first gradient is the whole of :math:`v_1`:
    :math:`W_1 = w_1 = 1`.
    """
    growth, least, largest = 0.0, math.inf, 0.0
    for block in x.blocks():
        theta, q = np.broadcast_to(block.theta, block.length), np.broadcast_to(block.q, block.length)
        sums = growth + np.cumsum(np.log1p(np.where(theta > 0, q, 0.0) / np.where(theta > 0, theta, 1.0)))
        smallest = np.minimum(np.minimum.accumulate(np.log(q) + sums), least)
        with np.errstate(divide="ignore"):
            exponents = 2 * np.log(block.alpha) + sums - smallest
        largest = max(largest, float(np.exp(exponents.max() / 2)))
        growth, least = float(sums[-1]), float(smallest[-1])
    return largest


def _constant(name: str, values: Array) -> float:
    if (values != values[0]).any():
        raise TheoremError(f"regret: expected a constant {name}")
    return float(values[0])


def _gradient_sum(problem: Problem) -> float:
    return sum(part.count * part.gradient for part in certain_parts(problem))


def _last_divisors(x: Sequences, problem: Problem) -> float:
    """What the sum over k of D_T is at most; eps has to be constant, so that D_t/alpha_t never falls."""
    eps = {_constant("eps", block.eps) for block in x.blocks()}
    if len(eps) > 1:
        raise TheoremError("regret: expected a constant eps")
    least = math.sqrt(x.initial_v)
    return sum(part.count * (max(part.gradient, least) + max(eps)) for part in certain_parts(problem))


def _constant_beta(x: Algorithm, _: Assumptions) -> Decision:
    beta = x.method.beta
    if beta.is_constant and 0 <= beta(1) < 1:
        return Decision(Status.HOLDS, f"beta_t = {beta} is constant.")
    return Decision(Status.UNDECIDED, "beta_t is not a constant in [0, 1) by its form.")


def _power_of_time(x: Algorithm, _: Assumptions) -> Decision:
    """alpha_t = c t^-s with 0 < s < 1: the average regret is then of the order T^-min(s, 1 - s)."""
    power = as_power_of_t(x.method.alpha)
    if power is None or power[0] <= 0:
        return Decision(Status.UNDECIDED, "alpha_t is no c t^-s by its form.")
    s = -power[1]
    told = f"alpha_t falls as t^-{float(s):g}; 0 < s < 1 is asked for."
    return Decision(Status.HOLDS if 0 < s < 1 else Status.FAILS, told, order=Growth.of(1, -min(s, 1 - s)))


def _above_squared_beta(x: Algorithm, _: Assumptions) -> Decision | None:
    """R-AMS: beta^2 < theta < 1, constants."""
    beta, theta = x.method.beta, x.method.theta
    if not x.running_maximum:
        return None
    if not (theta.is_constant and beta.is_constant):
        return Decision(Status.UNDECIDED, "R-AMS is proved for constant beta and theta.")
    sides = decide.positive(theta - beta * beta), decide.positive(1 - theta)
    statuses = {one.status for one in sides}
    if Status.FAILS in statuses:
        return Decision(Status.FAILS, "beta^2 < theta < 1 is not so.")
    if Status.UNDECIDED in statuses:
        return Decision(Status.UNDECIDED, "Whether beta^2 < theta < 1 is open.")
    return Decision(Status.HOLDS, "beta^2 < theta < 1.")


def _zeta_is_finite(x: Algorithm, _: Assumptions) -> Decision | None:
    """(b) for alpha_t = c/sqrt t: 1 - theta_t = c'/t with c' <= 1, or weights t^-r with r < 1."""
    alpha, theta = as_power_of_t(x.method.alpha), x.method.theta
    asked = "zeta = sup_t max_j alpha_t sqrt(W_t/w_j) is finite"
    if x.running_maximum:
        return None
    if alpha is None or alpha[1] != Fraction(-1, 2):
        return Decision(Status.UNDECIDED, f"{asked}: decided for alpha_t = c/sqrt t alone.")
    if isinstance(theta, WeightedTheta):
        weights = as_power_of_t(theta.weights)
        if weights is None or weights[1] > 0:
            return Decision(Status.UNDECIDED, f"{asked}: decided for weights t^-r, r >= 0.")
        told = f"{asked} for weights t^-r exactly where r < 1; r = {float(-weights[1]):g}."
        return Decision(Status.HOLDS if weights[1] > -1 else Status.FAILS, told)
    share = as_power_of_t(_from_the_second_step(1 - theta))
    if share is None or share[1] != -1 or not 0 < share[0] <= 1:
        return Decision(Status.UNDECIDED, f"{asked}: decided for 1 - theta_t = c/t, 0 < c <= 1.")
    return Decision(Status.HOLDS, f"{asked}: 1 - theta_t = {float(share[0]):g}/t.")


ADAM_NC: tuple[Hypothesis, ...] = (
    lambda x, _: None if x.running_maximum else gamma(x.method),
    _zeta_is_finite,
)
"""(a) and (b) of R-NC."""


class Regret(Theorem):
    """Theorem R: average regret with constant beta, of AMSGrad (R-AMS) or with Gamma_t >= 0 (R-NC)."""

    name: ClassVar = "R"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret tends to 0 on convex problems with bounded domain and gradients"
    covered: ClassVar = "AMSGrad with constant theta; AdamNC, AdaGrad and NosAdam; constant beta"
    assumptions: ClassVar = ("convex losses", "a bounded domain with projection", "bounded gradients")
    source: ClassVar = "docs/theorems/regret.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum"})
    excludes: ClassVar = {"it has a constant eps beside the root": lambda x: not x.eps.is_constant or x.eps_under_root}
    takes: ClassVar = {"convex": CONVEX}
    hypotheses: ClassVar = (_constant_beta, _power_of_time, _above_squared_beta, *ADAM_NC)


def gamma(method: Method, horizon: int | None = None) -> Decision:
    r"""Decide (a), :math:`\alpha_t^2 \le \theta_t\,\alpha_{t-1}^2` for all t >= 2, or those up to a horizon.

    Ties for ever are decided by form: :math:`\alpha_t = c\,t^{-s}` with :math:`2s \le 1` and
    :math:`q_t = c' t^p`, :math:`p \le -1`, :math:`c' 2^{p+1} \le 2s` (Bernoulli:
    :math:`1-(1-1/t)^{2s} \ge 2s/t`), or theta from weights that never rise and :math:`2s \ge 1` (a mean of
    falling weights falls). The rest is the sign of :math:`\theta_t - \alpha_t^2/\alpha_{t-1}^2`, decided in
    exact numbers with the first step at which it is negative; a join of forms piece by piece, and where they meet.
    A bias correction of a constant has a form one step earlier; of a moving factor only failures are found.

    Args:
      method: alpha and theta.
      horizon: the last step that counts; None asks it of every t.
    """
    return _gamma(method.alpha, method.theta, 2, horizon)


def _gamma(alpha: Schedule, theta: Schedule, first: int, last: int | None) -> Decision:
    """(a) on the steps from `first` to `last`."""
    by_form = _holds_by_form(alpha, theta)
    if by_form is not None:
        return Decision(Status.HOLDS, by_form)
    if not isinstance(alpha, Join):
        return _compared(alpha, theta, first, last)
    meet = alpha.threshold
    if first > meet:
        return _gamma(alpha.after, theta, first, last)
    if last is not None and last < meet:
        return _gamma(alpha.before, theta, first, last)
    pieces = (
        _gamma(alpha.before, theta, first, meet - 1),
        _compared(alpha, theta, meet, meet),
        _gamma(alpha.after, theta, meet + 1, last),
    )
    return next((one for one in pieces if not one.holds), pieces[-1])


_SHIFTED = (Time, Join, Periodic, BiasCorrection, Opaque)


def _compared(alpha: Schedule, theta: Schedule, first: int, last: int | None) -> Decision:
    """The sign of theta_t - alpha_t^2/alpha_{t-1}^2 on the steps from `first` to `last`."""
    if not all(isinstance(node, _SHIFTED) or node.pointwise for node in walk(alpha)):  # a sum over the steps
        return Decision(Status.UNDECIDED, "alpha_(t-1)'s form is not known.")
    earlier = _one_step_earlier(alpha)
    ratio = collected(collected(alpha * alpha, first) / collected(earlier * earlier, first), first)
    name = "theta_t - alpha_t^2/alpha_(t-1)^2"
    return decide.not_negative(join(1, first, theta - ratio), last, name=name)


def _one_step_earlier(schedule: Schedule) -> Schedule:
    """The schedule of u_{t-1}, for t >= 2, of one without sums or products over the steps."""
    match schedule:
        case Time():
            return t - 1
        case Join(threshold, before, after):
            return join(_one_step_earlier(before), threshold + 1, _one_step_earlier(after))
        case Periodic(body, period):  # u_period comes before u_1
            ending = substitute(body, {t: as_schedule(period)})
            return Periodic(join(ending, 2, _one_step_earlier(body)), period)
        case BiasCorrection(factor):  # 1 - prod u_i over i < t
            powers = factor ** (t - 1) if factor.is_constant else (1 - schedule) / factor
            return 1 - powers
        case Opaque(function, name):
            return Opaque(lambda times: function(np.maximum(times - 1, 1)), name)
        case _:
            return rebuild(schedule, _one_step_earlier)


def _holds_by_form(alpha: Schedule, theta: Schedule) -> str | None:
    rate = as_power_of_t(alpha)
    if rate is None or rate[0] <= 0:
        return None
    doubled = -2 * rate[1]
    if isinstance(theta, WeightedTheta):
        weights = as_power_of_t(theta.weights)
        falls = doubled >= 1 and weights is not None and weights[0] > 0 and weights[1] <= 0
        return "The weights never rise, so B_t/t does not rise." if falls else None
    share = as_power_of_t(_from_the_second_step(1 - theta))
    if share is None or not 0 < doubled <= 1 or share[1] > -1:
        return None
    factor, power = share
    # c' 2^(p+1) <= 2s; the power of 2 is rational only for whole p, and at most 1 otherwise.
    scale = Fraction(2) ** int(power + 1) if power.denominator == 1 else Fraction(1)
    return f"1 - theta_t <= {float(doubled):g}/t." if factor * scale <= doubled else None


def _from_the_second_step(schedule: Schedule) -> Schedule:
    """Return the schedule as it is for t >= 2, where max(t, 2) is t."""
    maxima = [node for node in walk(schedule) if isinstance(node, Maximum)]
    early: dict[Schedule, Schedule] = {
        node: t
        for node in maxima
        for one, other in ((node.left, node.right), (node.right, node.left))
        if one == t and isinstance(other, Constant) and other.value <= 2
    }
    return substitute(schedule, early)
