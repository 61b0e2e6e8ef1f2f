"""What a bound must know about the function being minimised."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass


class ProblemError(ValueError):
    """A constant of the problem is missing or impossible; the message is one line."""


@dataclass(frozen=True)
class Problem:
    r"""The constants of assumptions (A1) to (A4), and the start value of the second moment.

    The function :math:`f` is bounded below by :math:`f^*`, its gradient is :math:`L`-Lipschitz, the
    stochastic gradients are unbiased and :math:`\mathbb{E}_t \|g_t\|^2 \le G^2` whatever the past. (The paper
    prints :math:`G` for :math:`G^2`, and its proofs use the bound given the past, :math:`\sigma_t \le G`.)

    Args:
      smoothness: :math:`L > 0`.
      gradient_bound: :math:`G > 0`, the root of the bound on the second moment.
      dimension: :math:`d`, the number of coordinates.
      gap: :math:`f(x_1) - f^* \ge 0`.
      epsilon: :math:`\epsilon > 0`, the value of every coordinate of :math:`v_0`.

    Examples:
      >>> Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1).epsilon
      1e-08
    """

    smoothness: float
    gradient_bound: float
    dimension: int
    gap: float
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("smoothness", "gradient_bound", "epsilon"):
            object.__setattr__(self, name, _number(name, getattr(self, name), positive=True))
        object.__setattr__(self, "gap", _number("gap", self.gap, positive=False))
        object.__setattr__(self, "dimension", _dimension(self.dimension))

    @property
    def second_moment_root(self) -> float:
        r""":math:`\sqrt{G^2 + \epsilon d}`, which bounds the root of :math:`\mathbb{E}\|v_t\|_1`."""
        return math.sqrt(self.gradient_bound * self.gradient_bound + self.epsilon * self.dimension)

    @property
    def start_logarithm(self) -> float:
        r""":math:`\log(1 + G^2 / (\epsilon d))`: what starting from a small :math:`v_0` costs."""
        return math.log1p(self.gradient_bound * (self.gradient_bound / (self.epsilon * self.dimension)))


def _number(name: str, value: float, *, positive: bool) -> float:
    expected = "a positive number" if positive else "a number that is not negative"
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{name} is {value!r}, expected {expected}") from error
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise ProblemError(f"{name} is {value!r}, expected {expected}")
    return number


def _dimension(value: int) -> int:
    try:
        # A whole float such as 25.6e6 is how people write the size of a network.
        dimension = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except TypeError as error:
        raise ProblemError(f"dimension is {value!r}, expected a whole number of at least 1") from error
    if dimension < 1:
        raise ProblemError(f"dimension is {value!r}, expected a whole number of at least 1")
    return dimension
