"""The rate of a certified method: the order of the ratio of condition 4."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from generic_adam.schedules import Growth
from generic_adam.schedules.growth import Scale


@dataclass(frozen=True)
class Rate:
    r"""T^power (log T)^log (log log T)^loglog up to a constant: the order of Theorem 1's bound."""

    power: Fraction
    log: Fraction
    loglog: Fraction

    def __str__(self) -> str:
        return Scale(power=self.power, log=self.log, loglog=self.loglog).text("T")


def rate_of(ratio: Growth) -> Rate:
    """The rate that a ratio tending to 0 on the polynomial scale stands for."""
    return Rate(ratio.power, ratio.log, ratio.loglog)
