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
from fractions import Fraction
from typing import TYPE_CHECKING

from generic_adam.schedules import Constant, Divide, Function, Multiply, Power, Schedule, Time

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


def as_power_of_t(schedule: Schedule) -> tuple[Fraction, Fraction] | None:
    """Return (c, p) if the schedule is, by its form, exactly c t^p for every t; else None."""
    match schedule:
        case Constant(value):
            return value, Fraction(0)
        case Time():
            return Fraction(1), Fraction(1)
        case Multiply(left, right):
            first, second = as_power_of_t(left), as_power_of_t(right)
            return None if first is None or second is None else (first[0] * second[0], first[1] + second[1])
        case Divide(left, right):
            first, second = as_power_of_t(left), as_power_of_t(right)
            if first is None or second is None or second[0] == 0:
                return None
            return first[0] / second[0], first[1] - second[1]
        case Function("sqrt", Time()):
            return Fraction(1), Fraction(1, 2)
        case Power(Time(), Constant(exponent)):
            return Fraction(1), exponent
        case _:
            return None
