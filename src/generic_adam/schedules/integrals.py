r"""Integrals of slowly varying functions over many orders of magnitude, and sums by means of them.

With :math:`t = e^u`, :math:`\int_a^b f(t)\,dt = \int_{\log a}^{\log b} f(e^u) e^u\,du`. On the logarithmic
axis powers, logarithms and iterated logarithms are analytic and vary by a bounded factor over each panel, so
that a few Gauss-Legendre panels reach the rounding error for any upper limit. A sum is an integral and a
correction at its ends, by the midpoint form of Euler and Maclaurin's formula,

.. math:: \sum_{t=a}^{b} u(t) = \int_{a-1/2}^{b+1/2} u(t)\,dt - \frac{u'(b+1/2) - u'(a-1/2)}{24} + \cdots
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, final

import numpy as np

from generic_adam.schedules import tree
from generic_adam.schedules.growth import Growth
from generic_adam.schedules.tree import FloatArray, Schedule, cached_attribute

Integrand = Callable[[FloatArray], FloatArray]

_PANEL_WIDTH = 2.0
_NODES = 16
_DEEPEST = 48
_MOST_PANELS = 20_000
# From this t on a running sum is an integral with an end correction.
FIRST_SMOOTH = 1024
_SHARE_PANEL_WIDTH = 0.25


class QuadratureError(ArithmeticError):
    """The integrand is not smooth enough for the wanted accuracy, or not finite."""


class NarrowPanelError(QuadratureError):
    """The integrand moves within a few steps of [lower, upper]: an integral is no sum there."""

    def __init__(self, lower: float, upper: float) -> None:
        super().__init__(f"the integrand bends within a few steps near t = {lower:.6g}")
        self.lower = lower
        self.upper = upper


@cache
def gauss_legendre(nodes: int) -> tuple[FloatArray, FloatArray]:
    """The nodes and the weights of the rule on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


def panel_integrals(
    integrand: Integrand, lower: FloatArray, upper: FloatArray, nodes: int = _NODES
) -> FloatArray:
    """Integrate over each panel from e^lower to e^upper with one Gauss-Legendre rule."""
    points, weights = gauss_legendre(nodes)
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


def end_correction(u: Callable[[Any], Any], lower: Any, upper: Any) -> Any:
    """What an integral of u from lower to upper is more than the sum: [u'] / 24.

    The derivatives are central differences over half a step: exact to about 1e-16 of the value.
    """
    slopes = [(u(end + 0.25) - u(end - 0.25)) / 0.5 for end in (lower, upper)]
    return (slopes[1] - slopes[0]) / 24


@final
@dataclass(frozen=True, repr=False)
class SmoothShare(Schedule):
    r"""w_t / W_t for real t, for integrals over long ranges: W_t is W_1024 and the formula from there on.

    On whole t it agrees with the recursion to about 1e-13; it serves only weights of one smooth expression
    that grow or fall no faster than a power.
    """

    weights: Schedule
    initial: Fraction

    @staticmethod
    def serves(weights: Schedule) -> bool:
        """Whether weights are smooth (no kinks, no callables) and not geometric."""
        growth = weights.growth
        smooth = weights.accepts_real_times and not any(map(_is_kink, tree.walk(weights)))
        return smooth and growth is not None and growth.sign > 0 and growth.rho.sign_of_log == 0

    @cached_attribute
    def beginning(self) -> float:
        """W_n."""
        return math.fsum([float(self.initial), *self.weights.values(1, FIRST_SMOOTH + 1).tolist()])

    def continued(self, times: FloatArray) -> FloatArray:
        """The share at real t >= 1024."""
        # Narrower panels for steep weights: t^p moves by e^{p width} over a panel.
        growth = self.weights.growth
        width = _SHARE_PANEL_WIDTH / max(1.0, 0.0 if growth is None else abs(float(growth.power)) / 8)
        flat = np.asarray(times, dtype=np.float64).ravel()
        order = np.argsort(flat)
        ends = np.log(flat[order] + 0.5)
        start = math.log(FIRST_SMOOTH + 0.5)
        panels = np.arange(start, max(start, float(ends[-1])), width)
        edges = np.union1d(np.append(panels, start), ends[ends > start])
        pieces = panel_integrals(self.weights.at, edges[:-1], edges[1:], nodes=6)
        running = np.concatenate([[0.0], np.cumsum(pieces)])[np.searchsorted(edges, np.maximum(ends, start))]
        correction = end_correction(self.weights.at, FIRST_SMOOTH + 0.5, np.exp(ends))
        shares = np.empty_like(flat)
        shares[order] = self.weights.at(flat[order]) / (self.beginning + running - correction)
        return shares.reshape(np.shape(times))


@tree.compiled.rule(SmoothShare)
def _(node: SmoothShare) -> tree.ScalarFunction:
    return lambda t: float(node.continued(np.array([float(t)]))[0])


@tree.block_of.rule(SmoothShare)
def _(node: SmoothShare, times: FloatArray) -> FloatArray:
    return node.continued(times)


@tree.order_of.rule(SmoothShare)
def _(node: SmoothShare) -> Growth | None:
    return tree.WeightShare(node.weights, node.initial).growth


@tree.text_of.rule(SmoothShare)
def _(node: SmoothShare) -> tuple[str, int]:
    return f"smooth share of {node.weights}", 5


def _is_kink(node: Schedule) -> bool:
    return isinstance(node, tree.Join | tree.Maximum | tree.Minimum) or (
        isinstance(node, tree.Function) and node.name in {"abs", "sin", "cos"}
    )
