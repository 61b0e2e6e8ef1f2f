r"""Theorem P: steps that are scaled by the size of the parameters, as Adafactor takes them.

Every tensor j has a scale :math:`s_{t,j} = \max(\text{RMS}(x_{t,j}), \epsilon_2)`, known before the gradient is drawn,
that multiplies its step. What is bounded is the gradient in the same unit, per relative change of a tensor,

.. math::

    \mathbb{E}\sum_j s_{\tau,j} \|\nabla_j f(x_\tau)\|_1 \quad\text{beside}\quad
    U = \sum_j n_j b_j G_j, \qquad s_{t,j} \le b_j.

**P1**, unfactored: the numbers of Theorems E and D with :math:`b_j` as the size of the weights. With momentum a scale
that changes turns the direction, which is one more curvature: it multiplies the drift beside
:math:`L\sum n_j b_j^2/U`. Decay costs :math:`\sum\nu_t/\Pi`, as :math:`|\langle\nabla f, x\rangle| \le U`.

**P2**, factored second moments and clipped updates, without momentum: where the noise of each weight is symmetric given
that of the others, the divisor as a function of the own gradient is one that Lemma Y1 takes. No noise is left,

.. math::

    X_w \le \frac{r}{\sum\alpha_t}\Big[\text{gap} + \tfrac12 L c^2 \sum_j n_j b_j^2 \sum_t\alpha_t^2\Big],

for updates clipped to the root mean square c whose own is r c at most. Statement and proof: docs/theorems/scaled.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems.epsilon import VANISHING_MEAN_DECAY, WEIGHTED_FOR_EVER, decays, weights_stay_bounded
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.symmetric import GIVEN_THE_OTHERS
from generic_adam.theorems.theorem import (
    NOTHING,
    STARTS_FROM_NOTHING,
    VANISHING_STEPS,
    Reason,
    Theorem,
    theta_in_range,
    where,
)

UNIT = "gradients are counted times the root mean square of their tensor's parameters"


def averaged(x: Algorithm) -> bool:
    """Return whether the divisor of a weight depends on the present gradients of others (P2)."""
    return x.factored or (x.clipping is not None and x.clipping.kind == "update")


@dataclass(frozen=True)
class ScaledBound:
    """The numbers of P2 after a number of steps, in the unit U and relative to it.

    Attributes:
        gap: the factor of (f(x_1) - f*)/U.
        drift: the factor of the curvature.
        norm: the mean divisor over G.
    """

    gap: float
    drift: float
    norm: float


def averaged_bound(x: Sequences, gradient: float, update_rms: float, threshold: float | None = None) -> ScaledBound:
    """Evaluate P2 after T steps.

    Args:
        x: alpha and theta; eps under the root is Adafactor's epsilon_1, added to every square.
        gradient: G, the bound on the root mean square gradient of a weight.
        update_rms: the bound on the root mean square of a tensor's update before it is clipped.
        threshold: the root mean square that updates are clipped to; None where they are not.

    Raises:
        TheoremError: every learning rate is 0.
    """
    least = update_rms if threshold is None else min(threshold, update_rms)
    total = squares = divisors = grown = 0.0
    starts = x.block(1, 2).theta[0] > 0  # else the first step wipes v_0 out
    for block in x.blocks():
        decrease = np.broadcast_to(np.log1p(block.growth), block.length)
        # 1 - Theta_t, and the present gradient counts three more times.
        kept = -np.expm1(-(grown + np.cumsum(decrease))) if starts else 1.0
        moment = x.initial_v + gradient**2 * (kept + 3 * block.q) + block.eps**2
        total += block.total(block.alpha)
        squares += block.total(block.alpha**2)
        divisors += block.total(np.broadcast_to(block.alpha * np.sqrt(moment), block.length))
        grown += block.total(np.log1p(block.growth))
    if not total > 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    factor = update_rms / least
    return ScaledBound(factor / total, factor * least**2 * squares / (2 * total), divisors / total / gradient)


class Scaled(Theorem):
    """Theorem P: Adafactor's scaled steps, its factored second moments and its clipped updates."""

    name: ClassVar = "P"
    statement: ClassVar = "the gradient per relative change of a tensor tends to 0, tau drawn in proportion to alpha_t"
    covered: ClassVar = (
        "Adafactor: steps scaled by the parameters (beside momentum and decay); factored second moments and clipped "
        "updates without momentum, where the noise is symmetric with one peak"
    )
    source: ClassVar = "docs/theorems/scaled.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "decay", "scaled", "factored", "clipping"})
    excludes: ClassVar = {
        "steps are not scaled, moments not factored, updates not clipped": lambda x: not (x.scaled or averaged(x)),
        "gradients are clipped": lambda x: x.clipping is not None and x.clipping.kind != "update",
        "factored moments or clipped updates beside momentum or decay": lambda x: (
            averaged(x) and (x.method.beta != NOTHING or x.decay != NOTHING)
        ),
        "an eps that is not constant and under the root": lambda x: (
            averaged(x) and not (x.eps_under_root and x.eps.is_constant)
        ),
        "decay is a part of the loss": lambda x: x.l2 != 0,
        **STARTS_FROM_NOTHING,
    }
    uses: ClassVar = ("weights_bound", "noise", "update_rms")
    hypotheses: ClassVar = (
        *where(lambda x: not averaged(x), *WEIGHTED_FOR_EVER),
        *where(averaged, *VANISHING_STEPS, theta_in_range),
        *VANISHING_MEAN_DECAY,
        *where(lambda x: x.scaled and not decays(x), weights_stay_bounded),
    )

    def outside(self, x: Algorithm, setting: Setting) -> tuple[Reason, ...]:
        """Return why it does not cover the algorithm: beside the rest, the facts that its features ask for."""
        takes = {"weights_bound": x.scaled, "noise": averaged(x), "update_rms": averaged(x)}
        missing = (Reason("missing", name) for name, asks in takes.items() if asks and not setting.knows(name))
        return (*super().outside(x, setting), *missing)

    def granted(self, x: Algorithm) -> tuple[str, ...]:
        """Return the unit, and where a divisor is shared, symmetry given the other weights' noise."""
        return (*([UNIT] if x.scaled else []), *([GIVEN_THE_OTHERS] if averaged(x) else []))


def bare(x: Algorithm) -> Algorithm:
    """Return the algorithm whose sequences P's numbers are of."""
    return replace(x, scaled=False, factored=False, clipping=None)
