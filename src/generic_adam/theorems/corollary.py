r"""Corollaries of Theorem 1: its bound at a weighted iterate, and its floor where theta does not tend to 1.

**At a weighted iterate.** With :math:`P(\tau = t) = \alpha_t/\sum_{i\le T}\alpha_i`, and the paper's own
constants,

.. math::

    \big(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3}\big)^{3/2} \le B_w(T)
    := \frac{C + C'\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}}{C_0\sum_{t\le T}\alpha_t} \le B(T),

which does not divide by :math:`\alpha_T`. Proof: before :math:`\alpha_T` enters, the paper's last lemma says

.. math::

    (\mathbb{E}\|\nabla f(x_t)\|^{4/3})^{3/2}
    \le \sqrt{G^2+\epsilon d}\,\alpha_t^{-1}\,\mathbb{E}\|\nabla f(x_t)\|^2_{\hat\eta_t};

Jensen with the weights, then the paper's sum. :math:`C_0\sum\alpha_t \ge T\alpha_T` since
:math:`\alpha_T \le C_0\alpha_t`.

**The floor.** For :math:`\alpha_t = \eta/t^s`, :math:`0 \le s < 1`, and :math:`\lim\theta_t = \theta < 1`,
the bound stays above :math:`C'\sqrt{1-\theta}/\delta`; for constant :math:`\theta`

.. math::

    \frac{C}{\delta\eta T^{1-s}} + \frac{C'\sqrt{1-\theta}}{\delta} \le \frac{B(T)}{\delta}
    \le \frac{C}{\delta\eta T^{1-s}} + \frac{C'\sqrt{1-\theta}}{\delta(1-s)}.

The second term does not fall with T: the bound has a floor proportional to :math:`\sqrt{1-\theta}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from generic_adam.schedules import ScheduleError, as_power_of_t
from generic_adam.theorems.sums import SumError, partial_sum

if TYPE_CHECKING:
    from generic_adam.methods import Method
    from generic_adam.theorems.constants import Constants


@dataclass(frozen=True)
class Estimate:
    r"""The two sides of the corollary.

    Args:
      lower: what :math:`B(T)/\delta` is at least.
      upper: what it is at most; infinite where theta_t is not constant.
      floor: the limit of the lower side as T grows, :math:`C'\sqrt{1-\theta}/\delta`.
    """

    lower: float
    upper: float
    floor: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain types; an infinite number is None."""
        sides = {"lower": self.lower, "upper": self.upper, "floor": self.floor}
        return {name: side if math.isfinite(side) else None for name, side in sides.items()}


def at_weighted_iterate(method: Method, steps: int, known: Constants, total: float) -> float:
    r"""Return :math:`B_w(T)`; infinite where the sum of alpha cannot be had.

    Args:
      method: its alpha.
      steps: T.
      known: the constants of Theorem 1.
      total: :math:`\sum_{t\le T}\alpha_t\sqrt{1-\theta_t}`.
    """
    try:
        with np.errstate(over="ignore"):
            rates = partial_sum(method.alpha, steps)
    except (SumError, ScheduleError):
        return math.inf
    if not (0 < rates < math.inf and math.isfinite(known.C_prime)):
        return math.inf
    return (known.C + known.C_prime * total) / (known.C0 * rates)


def constant_theta_estimate(method: Method, steps: int, known: Constants, delta: float) -> Estimate | None:
    """Return the corollary's two sides, or None where theta_t tends to 1 or alpha_t is no eta/t^s."""
    share = 1 - method.theta
    complement = share.constant_value
    power = as_power_of_t(method.alpha)
    if complement is None and share.growth is not None and share.growth.trend == 0:
        complement = share.growth.low
    if not complement or power is None:
        return None
    eta, exponent = power
    s = -exponent
    if not 0 <= s < 1 or float(eta) == 0:
        return None
    # One division at a time: a product of small numbers may round to 0.
    falling = known.C / delta / float(eta) / steps ** float(1 - s)
    floor = known.C_prime * math.sqrt(complement) / delta
    if share.constant_value is None:
        return Estimate(floor, math.inf, floor)
    return Estimate(falling + floor, falling + floor / float(1 - s), floor)
