r"""The share :math:`w_t / W_t` of Weighted AdaEMA continued to real t, for integrals over long ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from generic_adam.schedules import FloatArray, Function, Growth, Join, Maximum, Minimum, Schedule, WeightShare
from generic_adam.schedules.tree import ScalarFunction, block_of, compiled, order_of, text_of
from generic_adam.theorems.quadrature import panel_integrals

# From this t on the running sum is an integral with an end correction (Euler-Maclaurin).
FIRST_SMOOTH = 1024
_PANEL_WIDTH = 0.25


@final
@dataclass(frozen=True, repr=False)
class SmoothShare(Schedule):
    r"""w_t / W_t for real t, the sum replaced by Euler and Maclaurin's formula.

    .. math:: W_t = W_n + \int_{n+1/2}^{t+1/2} w - \frac{w'(t+1/2) - w'(n+1/2)}{24}, \qquad n = 1024.

    On whole t it agrees with the recursion to about 1e-13; it serves only weights of one smooth expression
    that grow or fall no faster than a power.
    """

    weights: Schedule
    initial: Fraction

    @staticmethod
    def serves(weights: Schedule) -> bool:
        """Whether weights are smooth (no kinks, no callables) and not geometric."""
        growth = weights.growth
        smooth = weights.accepts_real_times and not _has_kinks(weights)
        return smooth and growth is not None and growth.sign > 0 and growth.rho.sign_of_log == 0

    @cached_property
    def _beginning(self) -> float:
        """W_n."""
        return math.fsum([float(self.initial), *self.weights.values(1, FIRST_SMOOTH + 1).tolist()])

    @cached_property
    def _panel_width(self) -> float:
        """Narrower for steep weights: t^p moves by e^{p width} over a panel."""
        growth = self.weights.growth
        return _PANEL_WIDTH if growth is None else _PANEL_WIDTH / max(1.0, abs(float(growth.power)) / 8)

    def continued(self, times: FloatArray) -> FloatArray:
        """The share at real t >= 1024."""
        flat = np.asarray(times, dtype=np.float64).ravel()
        order = np.argsort(flat)
        ends = np.log(flat[order] + 0.5)
        start = math.log(FIRST_SMOOTH + 0.5)
        panels = np.arange(start, max(start, float(ends[-1])), self._panel_width)
        edges = np.union1d(np.append(panels, start), ends[ends > start])
        pieces = panel_integrals(self.weights.at, edges[:-1], edges[1:], nodes=6)
        running = np.concatenate([[0.0], np.cumsum(pieces)])[np.searchsorted(edges, np.maximum(ends, start))]
        slopes = _slope(self.weights, np.concatenate([[FIRST_SMOOTH + 0.5], np.exp(ends)]))
        correction = (slopes[1:] - slopes[0]) / 24
        sums = self._beginning + running - correction
        shares = np.empty_like(flat)
        shares[order] = self.weights.at(flat[order]) / sums
        return shares.reshape(np.shape(times))


@compiled.rule(SmoothShare)
def _(node: SmoothShare) -> ScalarFunction:
    return lambda t: float(node.continued(np.array([float(t)]))[0])


@block_of.rule(SmoothShare)
def _(node: SmoothShare, times: FloatArray) -> FloatArray:
    return node.continued(times)


@order_of.rule(SmoothShare)
def _(node: SmoothShare) -> Growth | None:
    return WeightShare(node.weights, node.initial).growth


@text_of.rule(SmoothShare)
def _(node: SmoothShare) -> tuple[str, int]:
    return f"smooth share of {node.weights}", 5


def _slope(schedule: Schedule, times: FloatArray) -> FloatArray:
    """The derivative by a central difference over half a step: exact to about 1e-16 of the value."""
    return (schedule.at(times + 0.25) - schedule.at(times - 0.25)) / 0.5


def _has_kinks(node: Schedule) -> bool:
    kink = isinstance(node, Join | Maximum | Minimum) or (
        isinstance(node, Function) and node.name in {"abs", "sin", "cos"}
    )
    return kink or any(_has_kinks(child) for child in node.children)
