r"""Theorems E, N and H: Adam as it is shipped, with eps beside the root, :math:`v_0 = 0`, a bias correction.

E adds :math:`e_t` to the root (torch's Adam has :math:`\text{eps}\sqrt{1-\theta^t}`, Keras' and BERT's a constant), N
is the Nesterov step of NAdam, H the heavy ball of torch's RMSprop, or with the rate inside the buffer of TensorFlow's.
Statements and proofs are on the page docs/theorems/epsilon.md.
"""

from __future__ import annotations

from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t
from generic_adam.schedules.balls import sign
from generic_adam.schedules.enclosure import collected
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.theorem import NOTHING, Hypothesis
from generic_adam.theorems.weighted import W_INFINITY, Weighted


def eps_in_step(x: Algorithm, _: Setting) -> Decision | None:
    r"""e_t >= sqrt(theta_t) e_{t-1} for t >= 2, and sup e_t finite.

    Known forms: e_t constant; the bias correction's, e_t = eps sqrt(b_t) with b_t = 1 - prod theta_i, for which
    theta_t b_{t-1} = b_t - (1 - theta_t) is never above b_t; e_t = eps / sqrt(t + k) with theta_t = 1 - 1/(t + k),
    AdaGrad's, an equality.
    """
    theta, eps = x.method.theta, x.eps
    if eps == NOTHING:
        return None
    first = sign(eps, 1)  # a float would take exp(-1000) for 0
    if first is None:
        return Decision(Status.UNDECIDED, "Whether eps_1 > 0 is open: no precision tells.")
    if first != 1:
        return Decision(Status.FAILS, "eps_1 = 0: nothing keeps the denominator positive.", decide.StepWitness(1, 0.0))
    if eps.is_constant:
        return Decision(Status.HOLDS, "eps_t is constant.")
    for shift in (0, 1):
        if theta == as_schedule(1) - 1 / (t + shift) and collected(eps * sqrt(t + shift)).is_constant:
            told = f"eps_t sqrt(t + {shift}) is constant and theta_t = {theta}: the two keep step."
            return Decision(Status.HOLDS, told)
    if corrects_bias(eps, theta):
        return Decision(Status.HOLDS, "eps_t = eps sqrt(1 - prod theta_i), the bias correction's.")
    return Decision(Status.UNDECIDED, f"Whether eps_t = {eps} keeps step with theta_t is open: the form is not known.")


def corrects_bias(eps: Schedule, theta: Schedule) -> bool:
    """Return whether eps_t = c sqrt(1 - prod theta_i), or c sqrt(1 - theta^t) for a constant theta."""
    written_out = theta.is_constant and collected(eps / sqrt(1 - theta**t)).is_constant
    return written_out or collected(eps / sqrt(bias_correction(theta))).is_constant


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
