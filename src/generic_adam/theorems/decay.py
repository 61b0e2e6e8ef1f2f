"""Theorem D: decoupled weight decay (AdamW), and what it cannot promise.

Statements and proofs are on the page docs/theorems/decay.md. No theorem says that the gradient of f tends to 0 under a
constant decay: AdamW solves its own equation, with the size of the noise in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import WEIGHTED_FOR_EVER
from generic_adam.theorems.theorem import NOTHING, STARTS_FROM_NOTHING, Hypothesis, where
from generic_adam.theorems.weighted import Weighted


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
