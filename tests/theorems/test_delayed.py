"""Theorem O: check values, and runs below their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.theorems.delayed import delayed_bound
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Sequences

close = pytest.approx
TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = Problem(smoothness=1, gradient_bound=1, dimension=1, gap=1)


def slope(x):
    return 2 * x / (1 + x * x) ** 2


class TestDelayed:
    def test_check_values(self):
        bound = delayed_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1), TINY)
        assert (bound.drift, bound.value) == close((0.798828125, 10.6597222222), rel=1e-9)
        t = np.arange(1.0, 1001)
        ten = Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1)
        values = [
            delayed_bound(Sequences.of(1e-3 / np.sqrt(t), 0.9, 0.999, eps=eps), ten).value
            for eps in (1e-6, 1e-2)
        ]
        assert values == close([688621180.322, 24.1935203466], rel=1e-9)
        with pytest.raises(TheoremError, match="one of them positive"):
            delayed_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9), TINY)

    def test_measured_adopt(self):
        steps, eps, beta, theta = 400, 0.1, 0.9, 0.5
        t = np.arange(1.0, steps + 1)
        alpha = 0.05 / np.sqrt(t)
        rng = np.random.default_rng(0)
        x = np.full((200, 1), 2.0)
        v = (slope(x) + rng.choice([-0.5, 0.5], size=x.shape)) ** 2
        m, total = 0.0, 0.0
        Q, weights = 0.0, np.empty(steps)
        for i in reversed(range(steps)):
            Q = alpha[i] + beta * Q
            weights[i] = (1 - beta) * Q
        for i in range(steps):
            exact, divisor = slope(x), np.maximum(np.sqrt(v), eps)
            total += weights[i] * (exact**2 / divisor).mean()
            g = exact + rng.choice([-0.5, 0.5], size=x.shape)
            m = beta * m + (1 - beta) * g / divisor
            v = theta * v + (1 - theta) * g * g
            x = x - alpha[i] * m
        problem = Problem(smoothness=2, gradient_bound=math.sqrt(27 / 64 + 0.25), dimension=1, gap=0.8)
        assert (
            0
            < total / weights.sum()
            <= delayed_bound(Sequences.of(alpha, beta, theta, eps=eps), problem).value
        )
