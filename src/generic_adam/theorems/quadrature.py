r"""Integrals of slowly varying functions over many orders of magnitude.

With :math:`t = e^u`, :math:`\int_a^b f(t)\,dt = \int_{\log a}^{\log b} f(e^u) e^u\,du`. On the logarithmic
axis powers, logarithms and iterated logarithms are analytic and vary by a bounded factor over each panel, so
that a few Gauss-Legendre panels reach the rounding error for any upper limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from generic_adam.schedules import FloatArray

Integrand = Callable[[FloatArray], FloatArray]

_PANEL_WIDTH = 2.0
_NODES = 16
_DEEPEST = 48
_MOST_PANELS = 20_000


class QuadratureError(ArithmeticError):
    """The integrand is not smooth enough for the wanted accuracy, or not finite."""


class NarrowPanelError(QuadratureError):
    """The integrand moves within a few steps of [lower, upper]: an integral is no sum there."""

    def __init__(self, lower: float, upper: float) -> None:
        super().__init__(f"the integrand bends within a few steps near t = {lower:.6g}")
        self.lower = lower
        self.upper = upper


@cache
def _rule(nodes: int) -> tuple[FloatArray, FloatArray]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


def panel_integrals(
    integrand: Integrand, lower: FloatArray, upper: FloatArray, nodes: int = _NODES
) -> FloatArray:
    """Integrate over each panel from e^lower to e^upper with one Gauss-Legendre rule."""
    points, weights = _rule(nodes)
    half = (upper - lower) / 2
    times = np.exp((upper + lower)[:, None] / 2 + half[:, None] * points)
    with np.errstate(over="ignore", invalid="ignore"):
        return half * ((integrand(times.ravel()).reshape(times.shape) * times) @ weights)


def integral(
    integrand: Integrand, lower: float, upper: float, tolerance: float = 1e-12, narrowest: float = 0.0
) -> float:
    """Integrate over [lower, upper], 0 < lower <= upper, halving every panel on which two rules disagree.

    Args:
      integrand: a function of an array of t.
      lower: the lower limit.
      upper: the upper limit.
      tolerance: accepted error relative to the integral of the absolute value.
      narrowest: panels that had to be made narrower than this are an error.

    Raises:
      NarrowPanelError: where the first panels are that are too narrow.
      QuadratureError: the integrand is not finite, or panels had to be halved without end.
    """
    if upper <= lower:
        return 0.0
    start, stop = float(np.log(lower)), float(np.log(upper))
    edges: FloatArray = np.linspace(start, stop, max(2, int(np.ceil((stop - start) / _PANEL_WIDTH)) + 1))
    left, right = edges[:-1], edges[1:]
    whole = panel_integrals(integrand, left, right)
    settled: list[float] = []
    for _ in range(_DEEPEST):
        middle = (left + right) / 2
        halves = panel_integrals(integrand, np.append(left, middle), np.append(middle, right))
        first, second = np.split(halves, 2)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise QuadratureError("the integrand is not finite")
        size = np.abs(first).sum() + np.abs(second).sum() + sum(map(abs, settled))
        done = np.abs(first + second - whole) <= tolerance * size / len(edges)
        narrow = np.flatnonzero(~done & (np.exp(right) - np.exp(left) < narrowest))
        if narrow.size:
            raise NarrowPanelError(float(np.exp(left[narrow].min())), float(np.exp(right[narrow].min())))
        settled.append(float((first + second)[done].sum()))
        if done.all():
            return float(np.sum(settled))
        todo = ~done
        left, right = (
            np.concatenate([left[todo], middle[todo]]),
            np.concatenate([middle[todo], right[todo]]),
        )
        whole = np.concatenate([first[todo], second[todo]])
        if len(left) > _MOST_PANELS:
            break
    raise QuadratureError("the integrand is not smooth")
