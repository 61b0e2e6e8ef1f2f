r"""Theorem Y: symmetric noise with one peak leaves no noise of the new gradient; Theorem L: smooth examples, no floor.

**(A5)**: given the past, :math:`g_{t,k} = \mu + \xi` with :math:`\xi` symmetric about 0 and unimodal, that is
:math:`\xi = R U` with U uniform on [-1, 1] and :math:`R \ge 0` independent of it; so :math:`\mathbb{E}R^2 = 3 s^2` for
the variance :math:`s^2`. Nothing is asked between coordinates or steps.

**Lemma Y1.** For :math:`\psi \ge 0` convex and non-increasing, and :math:`\phi \ge \psi`,

.. math:: \operatorname{sign}(\mu)\,\mathbb{E}_t[g\,\phi(g^2)] \ge |\mu|\,\psi(\mu^2 + 3 s^2).

Given R > 0, substitution makes the left side a mean of :math:`\mu\phi` over an interval with midpoint
:math:`\mu^2 + R^2` (for :math:`R > \mu` the part over :math:`[\mu-R, R-\mu]` is odd), which is at least
:math:`\mu\psi(\mu^2+R^2)` (Hermite and Hadamard); Jensen over R. With :math:`\phi(y) = 1/(\sqrt{a + q y} + e)`, convex
and decreasing, the new gradient never turns the step against the mean:

**Statement.** Under (A1) to (A5) and with the sequences of Theorems W and E the bound is theirs without Lemma N's part,

.. math::

    X_w &\le \frac1\Pi\Big[\text{gap} + \sum_{k,t}\hat A_t (S_{t,k}-S_{t-1,k}) \\
    &\quad + \sum_{k,t}\hat m_{t,k}(S'_{t,k}-S'_{t-1,k})\Big], \\
    m_{i,k} &= \tfrac12 G_k Q_i\rho_i\sqrt{M_{i-1}},

for :math:`\hat D_t = \sqrt{\theta_t v_{t-1} + q_t(\mu^2 + 3 s^2)} + e_t`, whose means take :math:`(1 + 2 q_t) G_k^2`
for :math:`G_k^2`. Without momentum (RMSProp, with any heavy ball after the division) there is no noise left.

Gradients that are clipped, by value or by norm, keep the conclusion with :math:`\Pi/\lambda` for :math:`\Pi`, however
often clipping acts (`clipping.symmetric_factor`); by norm, the noise of a weight is symmetric given that of the others.

**Theorem L.** If beside (A5) every example's gradient is Lipschitz, batches are independent and :math:`e_t \ge e > 0`,
then constant :math:`\beta, \theta` leave no floor: :math:`\alpha_t \to 0` and :math:`\sum\alpha_t = \infty` suffice.
With the past gradients taken at :math:`x_i` in place of :math:`x_j`, Lemma Y1 holds for each :math:`g_i` inside
:math:`m_t/D_t`, and what that changes is of the order of the steps between. Its bound after T steps is in powers of
1/e and says nothing; statement and proof are on the page docs/theorems/symmetric.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from generic_adam.methods import Algorithm
from generic_adam.setting import Setting
from generic_adam.theorems import decide
from generic_adam.theorems.clipping import clipped_parts, symmetric_factor
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Status
from generic_adam.theorems.epsilon import VANISHING_DECAY, eps_in_step
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.theorem import (
    NOTHING,
    STARTS_FROM_NOTHING,
    VANISHING_STEPS,
    WITHOUT_NOISE,
    Hypothesis,
    Offer,
    Theorem,
    momentum_below_one,
    theta_in_range,
)
from generic_adam.theorems.weighted import Weighted, weighted_bound

GIVEN_THE_OTHERS = "the noise of each weight is symmetric given that of the others"


def _inherited(x: Algorithm) -> bool:
    """Return whether a direction from before the division is inherited: Adam's momentum, not a heavy ball."""
    return x.heavy_ball is None and x.method.beta != NOTHING


def _momentum(x: Algorithm, setting: Setting) -> Decision | None:
    return momentum_below_one(x, setting) if _inherited(x) else None


def _momentum_vanishes(x: Algorithm, _: Setting) -> Decision | None:
    """beta_t -> 0, beside a theta_t that stays below 1: of a constant beta a floor is left."""
    if not _inherited(x):
        return None
    found = replace(decide.vanishes(x.method.beta.growth, "beta_t", "t"), order=None)
    q = (1 - x.method.theta).growth
    if found.holds and not (q is not None and q.trend == 0):
        told = (
            "With momentum it is proved for theta_t that stay away from 1; Theorems W and E are for those that do not."
        )
        return Decision(Status.UNDECIDED, told)
    return found


def _eps(x: Algorithm, setting: Setting) -> Decision | None:
    """Without momentum any positive e_t will do; a constant one is asked nothing more."""
    return None if x.eps.is_constant and not _inherited(x) else eps_in_step(x, setting)


SYMMETRIC_FOR_EVER: tuple[Hypothesis, ...] = (*WITHOUT_NOISE, _momentum, _momentum_vanishes, _eps)


class Symmetric(Weighted):
    """Theorem Y: symmetric noise with one peak. In the long run without momentum, or with one that vanishes."""

    name: ClassVar = "Y"
    covered: ClassVar = (
        "what Theorems E, N, H and D cover, gradients clipped or not, where the noise is symmetric with one peak; "
        "RMSProp, any theta"
    )
    assumptions: ClassVar = (*Weighted.assumptions, "(A5)")
    source: ClassVar = "docs/theorems/symmetric.md"
    allows: ClassVar = frozenset({"initial_v", "eps", "nesterov", "heavy_ball", "decay", "clipping"})
    excludes: ClassVar = {
        **STARTS_FROM_NOTHING,
        "updates are clipped": lambda x: x.clipping is not None and x.clipping.kind == "update",
        "weight decay is added to the gradient after it is clipped": lambda x: x.clipping is not None and x.l2 != 0,
        "two kinds of momentum": lambda x: x.nesterov is not None and x.heavy_ball is not None,
        "decay beside Nesterov or heavy-ball momentum": lambda x: (
            x.decay != NOTHING and not (x.nesterov is None and x.heavy_ball is None)
        ),
    }
    takes: ClassVar = ("noise",)
    uses: ClassVar = ("weights_bound",)
    hypotheses: ClassVar = (*SYMMETRIC_FOR_EVER, *VANISHING_DECAY)

    def granted(self, x: Algorithm) -> tuple[str, ...]:
        """Return, where a norm is clipped, symmetry given the other weights' noise."""
        return (GIVEN_THE_OTHERS,) if x.clipping is not None and x.clipping.kind == "norm" else ()

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Evaluate the theorem's recursion after T steps."""
        clipped, clip = None, x.clipping
        if clip is not None:
            parts = clipped_parts(problem, clip.threshold, by_value=clip.kind == "value")
            clipped = parts, symmetric_factor(problem, clip)
        return weighted_bound(Sequences.of_algorithm(x, steps), problem, symmetric=True, clipped=clipped).offer()


def _eps_stays(x: Algorithm, _: Setting) -> Decision:
    """0 < e <= e_t <= e' for two numbers e and e'."""
    inside, growth = decide.positive(x.eps, name="eps_t"), x.eps.growth
    if not inside.holds:
        return inside
    if growth is not None and growth.trend == 0:
        return Decision(Status.HOLDS, "eps_t stays between two positive numbers.")
    return Decision(Status.UNDECIDED, "Whether eps_t stays between two positive numbers is open.")


class SmoothSamples(Theorem):
    """Theorem L: every example's loss is smooth, the noise symmetric with one peak: constant betas leave no floor."""

    name: ClassVar = "L"
    statement: ClassVar = Weighted.statement
    covered: ClassVar = "Adam with any constant betas, where examples are smooth one by one and the noise is symmetric"
    assumptions: ClassVar = (*Symmetric.assumptions, "(A6)")
    source: ClassVar = "docs/theorems/symmetric.md"
    allows: ClassVar = frozenset({"initial_v", "eps"})
    excludes: ClassVar = {"nothing is added to sqrt(v_t)": lambda x: x.eps == NOTHING}
    takes: ClassVar = ("noise", "smooth_samples")
    needs: ClassVar = ("batches are drawn independently of each other",)
    hypotheses: ClassVar = (momentum_below_one, *VANISHING_STEPS, theta_in_range, _eps_stays)
