"""Sums of smooth schedules as integrals: Gauss and Legendre's rule, and running sums at real t.

A running sum W_t is W_n + the sum of the w_i that follow, which is an integral and a correction at its ends. So a share
w_t/W_t has values between whole t too, as smooth as its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from generic_adam.schedules import tree
from generic_adam.schedules.tree import FloatArray, Schedule, remembered

FIRST_SMOOTH = 1024
"""The t from which on a running sum is an integral with an end correction."""
_NODES = 16
_WIDTH = 0.25

Integrand = Callable[[FloatArray], FloatArray]


@cache
def gauss_legendre(nodes: int) -> tuple[FloatArray, FloatArray]:
    """The nodes and the weights of the rule on [-1, 1]."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return points, weights


def panel_integrals(integrand: Integrand, lower: FloatArray, upper: FloatArray, nodes: int = _NODES) -> FloatArray:
    """Integrate over each panel with one Gauss-Legendre rule."""
    points, weights = gauss_legendre(nodes)
    half = (upper - lower) / 2
    times = (upper + lower)[:, None] / 2 + half[:, None] * points
    with np.errstate(over="ignore", invalid="ignore"):
        # The width first: a value near the least float has no digits left after a weight.
        return (integrand(times.ravel()).reshape(times.shape) * half[:, None]) @ weights


def end_correction(u: Callable[[Any], Any], lower: Any, upper: Any) -> Any:
    """Return the difference between the integral of u from lower to upper and the sum: [u'] / 24.

    The derivatives are central differences over half a step: exact to about 1e-16 of the value.
    """
    slopes = [(u(end + 0.25) - u(end - 0.25)) / 0.5 for end in (lower, upper)]
    return (slopes[1] - slopes[0]) / 24


@remembered
def has_smooth_share(weights: Schedule) -> bool:
    """Return whether w_t/W_t has values at real t: weights without kinks and callables, of the order of a power."""
    inside = all(node.smooth for node in tree.walk(weights))
    growth = weights.growth if inside and weights.accepts_real_times else None
    return growth is not None and growth.sign > 0 and growth.rho.sign_of_log == 0


@remembered
def _beginning(node: tree.OfWeights) -> float:
    """Return W_n for the first smooth n."""
    return math.fsum([float(node.initial), *node.weights.values(1, FIRST_SMOOTH + 1).tolist()])


def smooth_share(node: tree.OfWeights, times: FloatArray) -> FloatArray:
    """Return w_t/W_t at real t >= 1024; on whole t it is the recursion's, to about 1e-13."""
    weights = node.weights
    # Narrower panels for steep weights: t^p moves by e^{p width} over a panel.
    growth = weights.growth
    width = _WIDTH / max(1.0, 0.0 if growth is None else abs(float(growth.power)) / 8)
    flat = np.asarray(times, dtype=np.float64).ravel()
    order = np.argsort(flat)
    start, ends = FIRST_SMOOTH + 0.5, flat[order] + 0.5
    panels = np.exp(np.arange(math.log(start), math.log(max(start, float(ends[-1]))), width))
    edges = np.union1d(np.append(panels[1:], start), ends[ends > start])
    pieces = panel_integrals(weights.at, edges[:-1], edges[1:], nodes=6)
    running = np.concatenate([[0.0], np.cumsum(pieces)])[np.searchsorted(edges, np.maximum(ends, start))]
    shares = np.empty_like(flat)
    shares[order] = weights.at(flat[order]) / (_beginning(node) + running - end_correction(weights.at, start, ends))
    return shares.reshape(np.shape(times))
