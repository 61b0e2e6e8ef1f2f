r""":math:`C_1`, the product of :math:`\theta_j/\theta'` over the :math:`\theta_j` below :math:`\theta'`."""

from __future__ import annotations

import bisect
import math
from functools import cached_property

from generic_adam.schedules import Function, Schedule
from generic_adam.theorems.pieces import late_value
from generic_adam.theorems.sums import partial_sum


class BelowThetaPrime:
    r"""The logarithm of :math:`C_1` for any :math:`\theta'`, for a non-decreasing :math:`\theta_t` on 1..T.

    As :math:`\theta_t` does not fall, the :math:`\theta_j < \theta'` are the first N; N is found by bisection
    and :math:`\log C_1 = \sum_{j\le N}\log\theta_j - N\log\theta'` by summation.

    Args:
      theta: :math:`\theta_t`.
      steps: T.
    """

    def __init__(self, theta: Schedule, steps: int) -> None:
        self._complement = 1 - theta
        self._steps = steps

    @cached_property
    def _logarithm(self) -> Schedule:
        # From 1 - theta_t: near theta_t = 1 the logarithm of a rounded theta_t has no digits left.
        return Function("log1p", -self._complement)

    def count(self, theta_prime: float) -> int:
        """Return N, how many theta_j with j <= T are smaller than theta_prime."""
        missing = 1 - theta_prime

        def reached(t: int) -> bool:
            return late_value(self._complement, t) <= missing

        # N is nearly always small, and a late theta_t may be costly: double first, then halve.
        last = 1
        while last < self._steps and not reached(last):
            last = min(2 * last, self._steps)
        return bisect.bisect_left(range(1, last + 1), True, key=reached)

    def logarithm_and_count(self, theta_prime: float) -> tuple[float, int]:
        """Return log C1 and N."""
        below = self.count(theta_prime)
        if below == 0:
            return 0.0, 0
        # Rounding at theta_N = theta_prime could leave a product a hair above 1.
        return min(0.0, partial_sum(self._logarithm, below) - below * math.log(theta_prime)), below
