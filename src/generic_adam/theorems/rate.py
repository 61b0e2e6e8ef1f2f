"""The rate of a certified method: the order of the ratio of condition 4."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from generic_adam.schedules import Growth, Schedule, sqrt
from generic_adam.schedules.growth import scale_text


@dataclass(frozen=True)
class Rate:
    r"""T^power (log T)^log (log log T)^loglog up to a constant: the order of Theorem 1's bound."""

    power: Fraction
    log: Fraction
    loglog: Fraction

    def __str__(self) -> str:
        return scale_text(Growth(1.0, 1.0, power=self.power, log=self.log, loglog=self.loglog), "T")


def ratio_growth(alpha: Schedule, theta: Schedule) -> Growth | None:
    r"""The growth of sum_{t<=T} alpha_t sqrt(1 - theta_t) / (T alpha_T) (condition 4), or None if unknown."""
    terms = (alpha * sqrt(1 - theta)).growth
    steps = alpha.growth
    if terms is None or steps is None or steps.sign <= 0:
        return None
    sums = terms.partial_sums()
    if sums is None:
        return None
    inverse = (steps * Growth(1.0, 1.0, power=Fraction(1))).inverse()
    return sums * inverse if inverse is not None else None


def rate_of(ratio: Growth) -> Rate:
    """The rate that a ratio tending to 0 on the polynomial scale stands for."""
    return Rate(ratio.power, ratio.log, ratio.loglog)
