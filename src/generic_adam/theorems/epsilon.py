r"""Theorems E, N, H and D: Adam as it is shipped, with eps beside the root, :math:`v_0 = 0`, a bias correction, decay.

E adds :math:`e_t` to the root (torch's Adam has :math:`\text{eps}\sqrt{1-\theta^t}`, Keras' and BERT's a constant), N
is the Nesterov step of NAdam, H the heavy ball of torch's RMSprop, or with the rate inside the buffer of TensorFlow's,
D decoupled weight decay. No theorem says that the gradient of f tends to 0 under a constant decay: AdamW solves its own
equation, with the size of the noise in it. Statements and proofs: docs/theorems/epsilon.md and decay.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t
from generic_adam.schedules.balls import sign
from generic_adam.schedules.enclosure import collected
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.theorem import NOTHING, STARTS_FROM_NOTHING, Hypothesis, where
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


def coupled(problem: Constants, l2: float) -> Constants:
    r"""Return the problem of :math:`f + \tfrac{\lambda}{2}\|x\|^2`: what decay inside the gradient minimises.

    The gap is that of the sum: the given one is kept for f, and the start adds at most
    :math:`\lambda d X^2/2`.

    Args:
      problem: that of f, with a bound X on the weights.
      l2: lambda.

    Raises:
      TheoremError: no bound on the weights is known, and lambda is not 0.
    """
    if l2 == 0:
        return problem
    if problem.weights_bound is None:
        raise TheoremError("weight decay inside the gradient: expected a bound on the weights (`weights_bound`)")
    added = l2 * problem.weights_bound
    # A number bounds the whole gradient's norm, or (gradient_sup) every coordinate alike.
    norm = added * math.sqrt(problem.dimension)
    return replace(
        problem,
        smoothness=problem.smoothness + l2,
        gradient_bound=_raised(problem.gradient_bound, norm, added),
        gap=problem.gap + added * problem.weights_bound * problem.dimension / 2,
        gradient_sup=None if problem.gradient_sup is None else _raised(problem.gradient_sup, added, added),
        gradient_norm=None if problem.gradient_norm is None else problem.gradient_norm + norm,
    )


def _raised(bounds: float | Sequence[float], whole: float, each: float) -> float | tuple[float, ...]:
    return tuple(one + each for one in bounds) if isinstance(bounds, Sequence) else bounds + whole


def weights_stay_bounded(_: Algorithm, setting: Setting) -> Decision:
    """|x_t|_inf <= X for every t, which only the user can say."""
    if setting.weights_bound is None:
        told = "The weights stay bounded: no bound on the weights is asserted."
        return Decision(Status.UNDECIDED, told)
    told = f"The weights stay bounded: |x_t|_inf <= {setting.weights_bound:g} is asserted."
    return Decision(Status.HOLDS, told)


def _decay_vanishes(x: Algorithm, _: Setting) -> Decision:
    """Decide whether the alpha-weighted mean of (nu_t/alpha_t)^2 tends to 0: then decay leaves no floor.

    Steps with alpha_t = 0 < nu_t are finitely many where alpha_t has an order of its own, and cost a constant.
    """
    # The order of alpha_t itself, step by step: a decay where alpha_t = 0 has no bound.
    alpha, decay = x.method.alpha.growth, x.decay.growth
    inside = decide.not_negative(x.decay, name="nu_t")
    if not inside.holds:
        return inside
    if decay is not None and decay.is_zero:
        return Decision(Status.HOLDS, "There is no decay from some step on.")
    if alpha is None or decay is None:
        return Decision(Status.UNDECIDED, "The order of the decay or of alpha_t is not known.")
    inverse = alpha.inverse()
    order = decide.over_sums(inverse and decay * decay * inverse, alpha)
    if order is None:
        return Decision(Status.UNDECIDED, "A sum of the decay is off the scale of growths.")
    if order.trend < 0:
        return Decision(Status.HOLDS, "The weighted mean of lambda_t^2 tends to 0.", order=order)
    reason = (
        "The decay does not vanish beside alpha_t: grad f = 0 is then not what it solves (Proposition 9.2), and the "
        "bound has the floor (lambda X)^2."
    )
    return Decision(Status.FAILS, reason, decide.GrowthWitness("mean of lambda_t^2", order, "T"))


def _mean_decay_vanishes(x: Algorithm, _: Setting) -> Decision:
    """Sum nu_t over sum alpha_t tends to 0: what Theorems RR and P ask, which pay for decay step by step."""
    inside = decide.not_negative(x.decay, name="nu_t")
    order = decide.over_sums(x.decay.growth, x.method.alpha.growth)
    return decide.vanishes(order, "the decay beside the steps", "T") if inside.holds else inside


def decays(x: Algorithm) -> bool:
    """Return whether there is decoupled decay."""
    return x.decay != NOTHING


VANISHING_DECAY: tuple[Hypothesis, ...] = where(decays, weights_stay_bounded, _decay_vanishes)
"""The hypotheses on decoupled decay beside any theorem of this kind."""
VANISHING_MEAN_DECAY: tuple[Hypothesis, ...] = where(decays, weights_stay_bounded, _mean_decay_vanishes)
"""The hypotheses on decoupled decay beside RR and P."""


class Decay(Weighted):
    """Theorem D: decoupled weight decay beside W or E; its bound takes X from `weights_bound`."""

    name: ClassVar = "D"
    covered: ClassVar = "AdamW: decoupled decay beside what Theorems W and E cover"
    source: ClassVar = "docs/theorems/decay.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "decay"})
    excludes: ClassVar = {
        "there is no decoupled decay: Theorems W and E are the ones to ask": lambda x: x.decay == NOTHING,
        **STARTS_FROM_NOTHING,
    }
    uses: ClassVar = ("weights_bound",)
    hypotheses: ClassVar = (*WEIGHTED_FOR_EVER, *VANISHING_DECAY)
