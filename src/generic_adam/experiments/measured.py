r"""Theorem 1's left side, measured on a problem whose constants are known.

The problem is smooth, not convex, and stochastic:

.. math:: f(x) = \sum_{k\le d} \frac{x_k^2}{1 + x_k^2}, \qquad g_t = \nabla f(x_t) + \sigma \xi_t,

with :math:`\xi_t` independent signs. Its second derivative lies in [-1/2, 2], so L = 2; a coordinate of its
gradient is at most :math:`3\sqrt3/8`, so :math:`\mathbb{E}_t\|g_t\|^2 \le G^2 = d (27/64 + \sigma^2)`; and
f* = 0. Many seeds run side by side, and what is kept is :math:`\|\nabla f(x_t)\|^{4/3}` averaged over the
steps so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.methods import Method

Array = NDArray[np.float64]

_BLOCK = 4096


MOST_STEPS, MOST_SEEDS = 10**9, 10**6
"""More steps would take days, and more seeds more memory than most machines have."""


@dataclass(frozen=True)
class BoundedWell:
    """The sum of x^2/(1+x^2) with signs as noise, and its constants.

    Args:
      dimension: d.
      noise: sigma, the size of the noise in every coordinate.
      start: every coordinate of x_1.
      epsilon: every coordinate of v_0.
    """

    dimension: int = 10
    noise: float = 0.5
    start: float = 1.0
    epsilon: float = 1e-8

    @property
    def smoothness(self) -> float:
        """L: the largest absolute second derivative, attained at 0."""
        return 2.0

    @property
    def gradient_bound(self) -> float:
        """G: the root of the largest second moment that a gradient can have."""
        return math.sqrt(self.dimension * (27 / 64 + self.noise**2))

    @property
    def gap(self) -> float:
        """f(x_1) - f*."""
        return self.dimension * self.start**2 / (1 + self.start**2)

    def gradient(self, x: Array) -> Array:
        """The exact gradient."""
        return 2 * x / (1 + x * x) ** 2


@dataclass(frozen=True, eq=False)
class Measurement:
    r"""What was measured for one method.

    Args:
      steps: the numbers of steps T at which it was read, shape (n,).
      value: :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` over all seeds, shape (n,).
      low: the same for single seeds, 5th percentile, shape (n,).
      high: the 95th percentile, shape (n,).
    """

    steps: NDArray[np.int64]
    value: Array
    low: Array
    high: Array


def reading_steps(steps: int, per_decade: int = 8) -> NDArray[np.int64]:
    """Whole numbers of steps up to T, evenly spread in logarithm, from 10 on."""
    if not 10 <= steps <= MOST_STEPS:
        raise RunError(f"a measurement takes from 10 to {MOST_STEPS:.0e} steps, got {steps}")
    count = max(2, round(per_decade * math.log10(steps / 10)) + 1)
    return np.unique(np.rint(np.geomspace(10, steps, count)).astype(np.int64))


def measure(
    methods: Mapping[str, Method],
    problem: BoundedWell,
    steps: int,
    seeds: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Measurement]:
    """Run every method from the same start with the same noise, many seeds side by side.

    Args:
      methods: by label.
      problem: the function and its noise.
      steps: T.
      seeds: how many independent runs.
      seed: fixes all of them.
      progress: is told the number of steps after each block of steps of a method.
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise RunError(f"the number of seeds must be from 1 to {MOST_SEEDS:,}, got {seeds}")
    if seed < 0:
        raise RunError(f"the seed must be a whole number of at least 0, got {seed}")
    readings = reading_steps(steps)
    return {
        label: _measure(method, problem, readings, seeds, seed, progress) for label, method in methods.items()
    }


def _measure(
    method: Method,
    problem: BoundedWell,
    readings: NDArray[np.int64],
    seeds: int,
    seed: int,
    progress: Callable[[int], None] | None,
) -> Measurement:
    generator = np.random.default_rng(seed)
    last = int(readings[-1])
    x = np.full((seeds, problem.dimension), problem.start)
    m, v = np.zeros_like(x), np.full_like(x, problem.epsilon)
    totals = np.zeros(seeds)
    read: list[Array] = []
    wanted = set(readings.tolist())
    for begin in range(1, last + 1, _BLOCK):
        end = min(begin + _BLOCK, last + 1)
        # Algorithm 1 as in `reference`, without keeping the whole trajectory.
        alpha, beta, theta = (one.values(begin, end) for one in (method.alpha, method.beta, method.theta))
        rest_beta, rest_theta = (1 - method.beta).values(begin, end), (1 - method.theta).values(begin, end)
        for index in range(end - begin):
            slope = problem.gradient(x)
            totals += (slope * slope).sum(axis=1) ** (2 / 3)
            signs = generator.integers(0, 2, size=x.shape, dtype=np.int8)
            g = slope + problem.noise * (2.0 * signs - 1.0)
            v = theta[index] * v + rest_theta[index] * g * g
            m = beta[index] * m + rest_beta[index] * g
            x = x - alpha[index] * m / np.sqrt(v)
            if begin + index in wanted:
                read.append(totals / (begin + index))
        if progress is not None:
            progress(end - begin)
    averages = np.array(read)
    low, high = np.percentile(averages, (5, 95), axis=1)
    return Measurement(readings, averages.mean(axis=1) ** 1.5, low**1.5, high**1.5)
