r"""Theorem Y: symmetric noise with one peak leaves no noise of the new gradient.

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

    X_w \le \frac1\Pi\Big[\text{gap} + \sum_{k,t}\hat A_t (S_{t,k}-S_{t-1,k})
    + \sum_{k,t}\hat m_{t,k}(S'_{t,k}-S'_{t-1,k})\Big], \qquad m_{i,k} = \tfrac12 G_k Q_i\rho_i\sqrt{M_{i-1}},

for :math:`\hat D_t = \sqrt{\theta_t v_{t-1} + q_t(\mu^2 + 3 s^2)} + e_t`, whose means take :math:`(1 + 2 q_t) G_k^2`
for :math:`G_k^2`. Without momentum (RMSProp, with any heavy ball after the division) there is no noise left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generic_adam.errors import TheoremError
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.sweep import SHARP, Sweep
from generic_adam.theorems.weighted import WeightedBound, parts_of, sharp_bound


def symmetric_bound(
    x: Sequences, problem: Constants, *, scales: Sequence[tuple[int, float]] | None = None
) -> WeightedBound:
    r"""Evaluate Theorem Y after T steps: symmetric noise with one peak, nothing clipped.

    Args:
      x: the sequences, and the form of the step: Adam's, Nesterov's, heavy-ball momentum, decoupled decay.
      problem: L, G, d and the gap; decay asks for the box X.
      scales: groups of coordinates with proportional learning rates.

    Raises:
      TheoremError: a hypothesis of Theorems W and E on the sequences fails, or v_t is replaced by its maximum or raised
        to another power than 1/2.
    """
    if x.running_maximum or x.power != 0.5:
        raise TheoremError("Theorem Y has no running maximum and no other power than 1/2")
    sweep = Sweep(x, replace(SHARP, noisy=False))
    return sharp_bound("Y", sweep, problem, parts_of(problem, scales))
