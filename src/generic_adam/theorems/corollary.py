r"""The constant-theta corollary: the bound of Theorem 2 between two explicit expressions, with a floor.

For :math:`\alpha_t = \eta/t^s`, :math:`0 \le s < 1`, and constant :math:`\theta`,

.. math::

    \frac{C}{\delta\eta T^{1-s}} + \frac{C'\sqrt{1-\theta}}{\delta} \le \frac{B(T)}{\delta}
    \le \frac{C}{\delta\eta T^{1-s}} + \frac{C'\sqrt{1-\theta}}{\delta(1-s)}.

The second term does not fall with T: the bound has a floor proportional to :math:`\sqrt{1-\theta}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generic_adam.schedules import as_power_of_t

if TYPE_CHECKING:
    from generic_adam.methods import Method
    from generic_adam.theorems.constants import Constants


@dataclass(frozen=True)
class Estimate:
    r"""The two sides of the corollary.

    Args:
      lower: what :math:`B(T)/\delta` is at least.
      upper: what it is at most.
      floor: the limit of the lower side as T grows, :math:`C'\sqrt{1-\theta}/\delta`.
    """

    lower: float
    upper: float
    floor: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain types; an infinite number is None."""
        sides = {"lower": self.lower, "upper": self.upper, "floor": self.floor}
        return {name: side if math.isfinite(side) else None for name, side in sides.items()}


def constant_theta_estimate(method: Method, steps: int, known: Constants, delta: float) -> Estimate | None:
    """Return the corollary's two sides, or None where theta_t is not constant or alpha_t is no eta/t^s."""
    complement = (1 - method.theta).constant_value
    power = as_power_of_t(method.alpha)
    if complement is None or power is None:
        return None
    eta, exponent = power
    s = -exponent
    if not 0 <= s < 1 or float(eta) == 0:
        return None
    # One division at a time: a product of small numbers may round to 0.
    falling = known.C / delta / float(eta) / steps ** float(1 - s)
    floor = known.C_prime * math.sqrt(complement) / delta
    return Estimate(falling + floor, falling + floor / float(1 - s), floor)
