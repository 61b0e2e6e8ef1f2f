r"""Theorem R: regret with constant beta, and the condition on :math:`\Gamma_t` decided exactly.

R-AMS is AMSGrad with constant theta. R-NC is AdamNC and NosAdam: (a) :math:`\alpha_t^2 \le \theta_t\alpha_{t-1}^2` for
all t >= 2, necessary and sufficient for :math:`\Gamma_t \ge 0`, and (b) a finite
:math:`\zeta = \sup_t \max_{j\le t} \alpha_t\sqrt{W_t/w_j}`, which under (a) is :math:`\sup_t \chi_t`. The proofs are on
the page docs/theorems/regret.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

import numpy as np

from generic_adam.errors import ScheduleError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import (
    BiasCorrection,
    Join,
    Opaque,
    Periodic,
    Schedule,
    Time,
    WeightedTheta,
    as_schedule,
    bias_correction,
    join,
    t,
)
from generic_adam.schedules.balls import decided, value
from generic_adam.schedules.enclosure import collected, factors, resolved, stretches
from generic_adam.schedules.growth import CONSTANT, LINEAR
from generic_adam.schedules.prove import Inequality, every
from generic_adam.schedules.tree import rebuild, substitute, walk
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, GrowthWitness, Status, StepWitness
from generic_adam.theorems.theorem import BOUNDED_GRADIENTS, NOTHING, About, Theorem, where


def _constant_beta(x: Algorithm, _: Setting) -> Decision:
    if not x.method.beta.is_constant:
        return Decision(Status.UNDECIDED, "beta_t is not constant by its form.")
    return decide.bounded_below_one(x.method.beta)


def _long_steps(x: Algorithm, _: Setting) -> Decision:
    """T alpha_T tends to infinity: D'_T = D_T/alpha_T is then o(T)."""
    growth = x.method.alpha.growth
    order = None if growth is None or growth.sign <= 0 else (LINEAR * growth).inverse()
    return decide.vanishes(order, "1/(T alpha_T)")


def _mean_step_vanishes(x: Algorithm, _: Setting) -> Decision:
    """R-AMS: the mean of alpha_t tends to 0."""
    return decide.vanishes(decide.over_sums(x.method.alpha.growth, CONSTANT), "the mean of alpha_t")


def _eps_keeps_up(x: Algorithm, _: Setting) -> Decision | None:
    """eps_t/alpha_t never falls, as alpha_t never rises; and eps_t, a part of D_T, stays bounded."""
    if x.eps.is_constant:
        return None
    growth = x.eps.growth
    if growth is None or growth.trend > 0:
        return Decision(Status.UNDECIDED, "Whether eps_t stays bounded is open.")
    return decide.never_rises(collected(x.method.alpha / x.eps), name="alpha_t/eps_t")


def _amsgrads_theta(x: Algorithm, _: Setting) -> Decision:
    """R-AMS: theta is a constant, beta_t^2 < theta < 1."""
    beta, theta = x.method.beta, x.method.theta
    if not theta.is_constant:
        return decide.constant(theta, "", "theta_t is asked to be constant")
    sides = decide.positive(theta - beta * beta, name="theta - beta_t^2"), decide.in_unit_interval(theta, name="theta")
    return next((one for one in sides if not one.holds), Decision(Status.HOLDS, "beta_t^2 < theta < 1, a constant."))


def _zeta_is_finite(x: Algorithm, _: Setting) -> Decision:
    """(b): under (a) alpha_t^2 W_t never rises, so that zeta^2 = sup_j max_{t>=j} alpha_t^2 W_t/w_j = sup_j chi_j^2."""
    growth, told = decide.chi_of(x.method).growth, "Where alpha_t^2 W_t never rises, zeta is sup_t chi_t,"
    if growth is None:
        return Decision(Status.UNDECIDED, f"{told} and the order of chi_t is not known.")
    if growth.trend <= 0:
        return Decision(Status.HOLDS, f"{told} which is finite.")
    return Decision(Status.FAILS, f"{told} which is infinite.", GrowthWitness("chi_t", growth))


class Regret(Theorem):
    """Theorem R: average regret with constant beta, of AMSGrad (R-AMS) or with Gamma_t >= 0 (R-NC)."""

    name: ClassVar = "R"
    about: ClassVar = About.REGRET
    statement: ClassVar = "average regret tends to 0 on convex problems with bounded domain and gradients"
    covered: ClassVar = "AMSGrad with constant theta; AdamNC, AdaGrad and NosAdam; constant beta; bias-corrected or not"
    assumptions: ClassVar = ("convex losses", "a bounded domain with projection", "bounded gradients")
    source: ClassVar = "docs/theorems/regret.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "running_maximum"})
    takes: ClassVar = ("convex",)
    needs: ClassVar = (BOUNDED_GRADIENTS,)
    hypotheses: ClassVar = (
        _constant_beta,
        lambda x, _: decide.positive(x.method.alpha, name="alpha_t"),
        _long_steps,
        *where(
            lambda x: x.running_maximum,
            lambda x, _: decide.never_rises(x.method.alpha, name="alpha_t"),
            _mean_step_vanishes,
            _amsgrads_theta,
        ),
        *where(
            lambda x: not x.running_maximum,
            lambda x, _: decide.in_unit_interval(x.method.theta, name="theta_t", from_zero=True),
            lambda x, _: gamma(x.method),
            _zeta_is_finite,
        ),
        _eps_keeps_up,
    )


def gamma(method: Method, horizon: int | None = None) -> Decision:
    r"""Decide (a), :math:`\alpha_t^2 \le \theta_t\,\alpha_{t-1}^2` for all t >= 2, or those up to a horizon.

    With :math:`c_t = \alpha_t^2/\alpha_{t-1}^2` it is the sign of :math:`(1 - c_t) - q_t`, decided in exact numbers
    with a step at which it is negative, the first up to 65,536; at a join by its two values. Where alpha has
    theta's own bias correction, :math:`\alpha_t^2 = \lambda_t b_t` with :math:`b_t = 1 - \prod_{i\le t}\theta_i`,
    :math:`\theta_t b_{t-1} = b_t - q_t` makes it that of :math:`b_t (1 - \lambda_t/\lambda_{t-1}) - q_t`. A factor of
    alpha that only falls may be left out, and :math:`t^{-2s}` with :math:`2s \ge 1` is enough where the weights
    :math:`w_t = q_t W_t` never rise: :math:`W_t/t` and :math:`(W_t - W_0)/t` are then means of falling weights.

    Args:
      method: alpha and theta.
      horizon: the last step that counts; None asks it of every t.
    """
    alpha, theta, answer = method.alpha, method.theta, _HOLDS
    for start, stop in stretches(1, math.inf if horizon is None else horizon, (*alpha.joins, *theta.joins)):
        found = _at_join(alpha, theta, start) if start > 1 else None
        found = found or _between(resolved(alpha, start, stop), theta, start, stop)
        if found.status is Status.FAILS:
            return found
        answer = found if answer.holds else answer  # the first that is open
    return answer


_GAMMA = "alpha_t^2 <= theta_t alpha_(t-1)^2"
_HOLDS = Decision(Status.HOLDS, f"{_GAMMA} for every t >= 2 asked about.")


def _at_join(alpha: Schedule, theta: Schedule, step: int) -> Decision | None:
    """Return what is wrong with (a) at a single step; None where it holds there."""
    try:
        sign, _ = decided(lambda: value(theta, step) * value(alpha, step - 1) ** 2 - value(alpha, step) ** 2)
    except ScheduleError as error:
        return Decision(Status.UNDECIDED, f"Whether {_GAMMA} at t = {step} is open: {error}.")
    if sign is None:
        return Decision(Status.UNDECIDED, f"Whether {_GAMMA} at t = {step}, where pieces meet, no precision tells.")
    return _fails(step) if sign < 0 else None


def _fails(step: int) -> Decision:
    return Decision(Status.FAILS, f"{_GAMMA} fails at t = {step}.", StepWitness(step))


def _between(alpha: Schedule, theta: Schedule, start: int, stop: float) -> Decision:
    """Decide (a) on the steps start + 1..stop, on which alpha has no join."""
    if alpha == NOTHING:
        return _HOLDS
    own = bias_correction(theta)
    parts = {base: power for base, power in factors(alpha * alpha, start, stop).items() if not base.is_constant}
    corrected = parts.get(own) == 1
    if corrected:
        del parts[own]
    if not all(node.shiftable for base in parts for node in walk(base)):
        return Decision(Status.UNDECIDED, f"Whether {_GAMMA} is open: alpha_(t-1)'s form is not known.")
    moving = {base: power for base, power in parts.items() if not _only_falls(base ** as_schedule(power))}
    if not {*moving} - {t} and parts.get(t, Fraction(0)) <= -1 and _weights_never_rise(theta):
        return _HOLDS
    last = None if math.isinf(stop) else int(stop)

    def asked(left: Mapping[Schedule, Fraction], correction: Schedule) -> Decision:
        share = correction * (1 - _step_ratio(left)) - (1 - theta)
        return decide.not_negative(join(1, start + 1, share), last, name="theta_t - alpha_t^2/alpha_(t-1)^2")

    one = as_schedule(1)
    found = asked(parts, own if corrected else one)
    if corrected and found.status is Status.UNDECIDED:  # b_t < 1: what fails without it fails with it
        bare = asked(parts, one)
        found = bare if isinstance(bare.witness, StepWitness) else found
    if isinstance(found.witness, StepWitness):
        return _fails(found.witness.t)
    return found if found.holds or moving == parts or not asked(moving, own if corrected else one).holds else _HOLDS


def _only_falls(part: Schedule) -> bool:
    return bool(every(part, Inequality.POSITIVE).holds and every(part, Inequality.FALLING).holds)


def _weights_never_rise(theta: Schedule) -> bool:
    """Return whether w_t = q_t W_t never rises: 1/q_t - 1/q_{t-1} >= 1, as w_t/w_{t-1} = q_t/(q_{t-1} theta_t)."""
    if isinstance(theta, WeightedTheta):
        return bool(every(theta.weights, Inequality.FALLING).holds)
    if not all(node.pointwise for node in walk(theta)):
        return False
    inverse = collected(1 / (1 - theta))
    return decide.not_negative(join(1, 2, inverse - _one_step_earlier(inverse) - 1)).holds


def _step_ratio(parts: Mapping[Schedule, Fraction]) -> Schedule:
    """Return the product of the parts at t over that at t - 1, so that 1 less it cancels: ((t - 1)/t)^p."""
    result = as_schedule(1)
    for base, power in parts.items():
        earlier = _one_step_earlier(base)
        result = result * (earlier / base if power < 0 else base / earlier) ** as_schedule(abs(power))
    return result


def _one_step_earlier(schedule: Schedule) -> Schedule:
    """Return the schedule of u_{t-1}, for t >= 2, of one without sums over the steps."""
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
