r"""Theorems E, N and H: Adam as it is shipped, with eps beside the root, :math:`v_0 = 0`, a bias correction.

E adds :math:`e_t` to the root (torch's Adam has :math:`\text{eps}\sqrt{1-\theta^t}`, Keras' and BERT's a constant), N
is the Nesterov step of NAdam, H the heavy ball of torch's RMSprop, or with the rate inside the buffer of TensorFlow's.
Statements and proofs are on the page docs/theorems/epsilon.md.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule, bias_correction, join, sqrt, t
from generic_adam.schedules.balls import sign
from generic_adam.schedules.enclosure import collected
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.theorem import NOTHING, Hypothesis
from generic_adam.theorems.weighted import W_INFINITY, Weighted


def eps_in_step(x: Algorithm, _: Setting) -> Decision | None:
    r"""sqrt(theta_t) e_{t-1} <= e_t <= 2 sqrt(theta_t) e_{t-1} for t >= 2, and e_t's share of growth O(1 - theta_t).

    The right side is asked for where momentum stands before the division and eps beside the root. Known forms: e_t
    constant (it needs theta_t >= 1/4); the bias correction's, e_t = eps sqrt(b_t) with b_t = 1 - prod theta_i
    (for which the left side always holds); e_t = eps / sqrt(t + k) with theta_t = 1 - 1/(t + k), AdaGrad's, where the
    left side is an equality.
    """
    theta, eps = x.method.theta, x.eps
    if eps == NOTHING:
        return None
    first = sign(eps, 1)  # a float would take exp(-1000) for 0
    if first is None:
        return Decision(Status.UNDECIDED, "Whether eps_1 > 0 is open: no precision tells.")
    if first != 1:
        return Decision(Status.FAILS, "eps_1 = 0: nothing keeps the denominator positive.", decide.StepWitness(1, 0.0))
    no_upper = x.eps_under_root or x.method.beta == NOTHING or x.heavy_ball is not None
    what = "eps_t is constant"
    if not eps.is_constant:
        for shift in (0, 1):
            if theta == as_schedule(1) - 1 / (t + shift) and collected(eps * sqrt(t + shift)).is_constant:
                told = f"eps_t sqrt(t + {shift}) is constant and theta_t = {theta}: the two keep step."
                return Decision(Status.HOLDS, told)
        if not corrects_bias(eps, theta):
            told = f"Whether eps_t = {eps} keeps step with theta_t is open: the form is not known."
            return Decision(Status.UNDECIDED, told)
        what = "eps_t = eps sqrt(1 - prod theta_i), the bias correction's"
        if not no_upper and sign(theta, 1) != 0:  # else the product is 0 from the first step on: eps_t is constant
            return _correction_in_step(theta, what)
    return Decision(Status.HOLDS, f"{what}.") if no_upper else _theta_at_least(theta, Fraction(1, 4), what)


def _correction_in_step(theta: Schedule, what: str) -> Decision:
    r"""b_t <= 4 theta_t b_{t-1}, that is 3 b_t >= 4 (1 - theta_t), for t >= 2, with b_t = 1 - prod theta_i.

    As theta_t b_{t-1} = b_t - (1 - theta_t), which is never above b_t: the left side always holds. A theta that never
    falls has b_t >= 1 - theta_t^2, so that theta_t >= 1/3 is enough, and for a constant needed.
    """
    simple = _theta_at_least(theta, Fraction(1, 3), what)
    if theta.is_constant or (simple.holds and decide.non_decreasing(theta).holds):
        return simple
    slack = join(1, 2, 3 * bias_correction(theta) - 4 * (1 - theta))
    found = decide.not_negative(slack, name="3 (1 - prod theta_i) - 4 (1 - theta_t)")
    return replace(found, reason=f"{what}{', but' if found.status is Status.FAILS else ':'} {found.reason}")


def corrects_bias(eps: Schedule, theta: Schedule) -> bool:
    """Whether eps_t = c sqrt(1 - prod theta_i), or c sqrt(1 - theta^t) for a constant theta."""
    written_out = theta.is_constant and collected(eps / sqrt(1 - theta**t)).is_constant
    return written_out or collected(eps / sqrt(bias_correction(theta))).is_constant


def _theta_at_least(theta: Schedule, least: Fraction, what: str) -> Decision:
    """theta_t >= least for t >= 2."""
    decision = decide.not_negative(join(1, 2, theta - least), name=f"theta_t - {least}")
    if decision.holds:
        return Decision(Status.HOLDS, f"{what}, and theta_t >= {least} from t = 2 on.")
    told = (
        f"{what}, but theta_t < {least}" if decision.status is Status.FAILS else f"whether theta_t >= {least} is open"
    )
    return Decision(decision.status, f"{told}: {decision.reason}", decision.witness)


def _weights_stay(x: Algorithm, _: Setting) -> Decision | None:
    """a_t and b_t of Nesterov's step are bounded, not negative, and do not both vanish: N's weights are alpha_t's."""
    if x.nesterov is None:
        return None
    both = (x.nesterov.momentum_weight, x.nesterov.gradient_weight)
    for name, weights in zip(("a_t", "b_t"), both, strict=True):
        inside = decide.not_negative(weights, name=name)
        if not inside.holds:
            return inside
    orders = [one.growth for one in both]
    bounded = all(one is not None and one.trend <= 0 for one in orders)
    if bounded and any(one is not None and one.trend == 0 and one.sign > 0 for one in orders):
        return Decision(Status.HOLDS, "The weights of momentum and gradient are bounded, and not both vanish.")
    return Decision(Status.UNDECIDED, "Whether the weights of momentum and gradient stay bounded is open.")


WEIGHTED_FOR_EVER: tuple[Hypothesis, ...] = (eps_in_step, _weights_stay, *W_INFINITY)
"""The hypotheses of W or, where something is added to the root, of E, N or H."""


class Epsilon(Weighted):
    """Theorems E, N and H: eps in the denominator, v_0 = 0, bias correction, Nesterov or heavy-ball momentum."""

    name: ClassVar = "E"
    covered: ClassVar = (
        "Adam as frameworks ship it: eps added or under the root, v_0 = 0, bias correction; NAdam; RMSprop with "
        "momentum; Adagrad"
    )
    source: ClassVar = "docs/theorems/epsilon.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "nesterov", "heavy_ball"})
    excludes: ClassVar = {
        "nothing is added to sqrt(v_t): Theorem W is the one to ask": lambda x: (
            x.eps == NOTHING and x.nesterov is None and x.heavy_ball is None
        ),
        "v_0 = 0 and nothing added": lambda x: x.initial_v == 0 and x.eps == NOTHING,
        "two kinds of momentum": lambda x: x.nesterov is not None and x.heavy_ball is not None,
        "heavy-ball momentum outside [0, 1)": lambda x: x.heavy_ball is not None and not 0 <= x.heavy_ball.factor < 1,
    }
    hypotheses: ClassVar = WEIGHTED_FOR_EVER
