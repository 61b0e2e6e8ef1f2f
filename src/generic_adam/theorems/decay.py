"""Theorem D: decoupled weight decay (AdamW), the box that its iterates stay in, and what it cannot promise.

Statements and proofs are on the page docs/theorems/decay.md. No theorem says that the gradient of f tends to 0 under a
constant decay: AdamW solves its own equation, with the size of the noise in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import WEIGHTED_FOR_EVER
from generic_adam.theorems.sequences import Recursion, Sequences, rounding
from generic_adam.theorems.theorem import NOTHING, STARTS_FROM_NOTHING, Hypothesis
from generic_adam.theorems.weighted import Weighted


def box_bound(sequences: Sequences, start: float) -> float:
    r"""Return X of the box lemma on the steps 1..T.

    .. math:: X = \max\Big(|x_1|_\infty, \max_{t} \frac{\alpha_t}{\nu_t}\sqrt{M_t}\Big), \qquad 0/0 := 0.

    With Nesterov's step, :math:`a_t\sqrt{M_t} + b_t/\sqrt{q_t}` stands for the root.

    Args:
      sequences: the steps 1..T.
      start: :math:`|x_1|_\infty`.

    Raises:
      TheoremError: some :math:`\nu_t` is outside [0, 1], so that x may overshoot 0 or grow; or the step is not W's, E's
        or N's.
    """
    if sequences.heavy_ball is not None or sequences.power != 0.5:
        raise TheoremError("box lemma: expected m_t over the root of v_t, not a heavy ball or another power")
    box, squares = start, 0.0
    for block in sequences.blocks():
        if not 0 <= block.decay.min() <= block.decay.max() <= 1:
            raise TheoremError("box lemma: expected 0 <= nu_t <= 1")
        M = Recursion(block.rho**2, block.length)(block.gain**2 / block.q, squares)
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = block.momentum_weight * np.sqrt(M) + block.gradient_weight / np.sqrt(block.q)
            reach = np.where(block.alpha > 0, block.alpha * largest / block.decay, 0.0)
        squares, box = float(M[-1]), max(box, float(reach.max()) * (1 + rounding(sequences.steps)))
    return box


def largest_update(beta: float, theta: float) -> float:
    r"""Return U, with :math:`|\hat m_t|/\sqrt{\hat v_t} \le U` for Adam with both bias corrections, every t.

    .. math:: U = \frac{1-\beta}{\sqrt{(1-\beta^2/\theta)(1-\theta)}} \quad (\beta^2 < \theta),

    so that AdamW has :math:`|x_t|_\infty \le \max(|x_1|_\infty, U/\lambda)` for all t. It is attained in the
    limit by :math:`g_t = (\theta/\beta)^t`. The corrected quantity only grows towards U, by
    :math:`(1-a^t)(1-b^t) \le (1-(ab)^{t/2})^2` with :math:`a = \beta^2/\theta`, :math:`b = \theta`.

    Args:
      beta: in [0, 1).
      theta: in (beta^2, 1); below that U is infinite.

    Examples:
      >>> round(largest_update(0.9, 0.999), 7)
      7.2702918
    """
    if theta <= beta**2:
        return math.inf
    return (1 - beta) / math.sqrt((1 - beta**2 / theta) * (1 - theta))


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


def _weights_stay_bounded(_: Algorithm, setting: Setting) -> Decision:
    """|x_t|_inf <= X for every t, which only the user can say."""
    if setting.weights_bound is None:
        told = "The weights stay bounded: no bound on the weights is asserted."
        return Decision(Status.UNDECIDED, told)
    told = f"The weights stay bounded: |x_t|_inf <= {setting.weights_bound:g} is asserted."
    return Decision(Status.HOLDS, told)


def _decay_vanishes(x: Algorithm, _: Setting) -> Decision:
    """The alpha-weighted mean of lambda_t^2, lambda_t = nu_t / alpha_t, tends to 0: then decay leaves no floor.

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


def _where_it_decays(hypothesis: Hypothesis) -> Hypothesis:
    @functools.wraps(hypothesis)
    def asked(x: Algorithm, setting: Setting) -> Decision | None:
        return None if x.decay == NOTHING else hypothesis(x, setting)

    return asked


VANISHING_DECAY: tuple[Hypothesis, ...] = (
    _where_it_decays(_weights_stay_bounded),
    _where_it_decays(_decay_vanishes),
)
"""What decoupled decay asks beside any theorem of this kind."""


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
