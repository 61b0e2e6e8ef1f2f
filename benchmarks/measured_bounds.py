"""Measured against bound for every theorem: the table on the theorems' pages.

f = sum of x_k^2/(1+x_k^2) in d = 5 coordinates from x_1 = 2, noise +-0.5 (L = 2, gap = 4), 400 runs of 4,000
steps each; X_w is averaged with the theorem's own weights and divisor.

    python benchmarks/measured_bounds.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from generic_adam.methods import HeavyBall
from generic_adam.theorems.amsgrad import delayed_bound
from generic_adam.theorems.clipping import full_batch_bound
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Sequences, backward
from generic_adam.theorems.weighted import WeightedBound, weighted_bound

STEPS, DIMENSION, NOISE = 4000, 5, 0.5
T = np.arange(1.0, STEPS + 1)
SLOPE = 3 * math.sqrt(3) / 8  # the largest |f'|
PROBLEM = Constants(
    smoothness=2,
    gradient_bound=[math.sqrt(SLOPE**2 + NOISE**2)] * DIMENSION,
    dimension=DIMENSION,
    gap=4,
    weights_bound=3,
    gradient_sup=SLOPE + NOISE,
)
QUIET = Constants(2, [SLOPE] * DIMENSION, DIMENSION, 4)


@dataclass(frozen=True)
class Case:
    """One row: what runs, and the theorem that is asked."""

    label: str
    x: Sequences
    evaluate: Callable[..., WeightedBound] = weighted_bound
    problem: Constants = PROBLEM
    delayed: bool = False
    noise: float = NOISE

    def bound(self) -> WeightedBound:
        """The theorem's bound."""
        return self.evaluate(self.x, self.problem)


def measure(case: Case, runs: int = 400) -> float:
    """Return X_w of the runs, averaged with the weights of the theorem."""
    x, block, ball = case.x, case.x.block(1, STEPS + 1), case.x.heavy_ball
    names = ("alpha", "beta", "theta", "eps", "momentum_weight", "gradient_weight", "decay")
    alpha, beta, theta, eps, a, b, nu = (np.broadcast_to(getattr(block, name), STEPS) for name in names)
    keep = beta if x.running_maximum or case.delayed else beta / np.sqrt(theta)
    if ball is not None:
        keep = np.full(STEPS, float(ball.factor))
    weights = (1 - beta) * backward(a * alpha, keep) + alpha * b
    rng, shape = np.random.default_rng(1), (runs, DIMENSION)
    where, m, buffer = np.full(shape, 2.0), np.zeros(shape), np.zeros(shape)
    v = largest = np.full(shape, x.initial_v)
    if case.delayed:
        v = noisy(slope(where), case, rng) ** 2
    total = 0.0
    for t in range(STEPS):
        exact = slope(where)
        hat = theta[t] * v + (1 - theta[t]) * (exact**2 + case.noise**2)
        if x.running_maximum:
            hat = np.maximum(hat, largest)
        divisor = np.maximum(np.sqrt(v), eps[t]) if case.delayed else np.sqrt(hat) + eps[t]
        total += weights[t] * (exact**2 / divisor).sum(axis=1).mean()
        g = noisy(exact, case, rng)
        v = theta[t] * v + (1 - theta[t]) * g**2
        largest = np.maximum(largest, v)
        root = divisor if case.delayed else np.sqrt(largest if x.running_maximum else v) + eps[t]
        if case.delayed:
            g, root = g / root, 1.0
        m = beta[t] * m + (1 - beta[t]) * g
        step = (a[t] * m + b[t] * g) / root
        if ball is not None:
            buffer = float(ball.factor) * buffer + g / root
            step = buffer
        where = (1 - nu[t]) * where - alpha[t] * step
    return total / weights.sum()


def slope(x: np.ndarray) -> np.ndarray:
    """The gradient of f."""
    return 2 * x / (1 + x * x) ** 2


def noisy(gradient: np.ndarray, case: Case, rng: np.random.Generator) -> np.ndarray:
    """The gradient and a noise of two values of the same size."""
    return gradient + case.noise * (2.0 * rng.integers(0, 2, gradient.shape) - 1)


def plain(alpha: np.ndarray | float, beta: float, theta: np.ndarray | float) -> Sequences:
    """The paper's algorithm, v_0 = 1e-8."""
    return Sequences.of(alpha, beta, theta, initial_v=1e-8, steps=STEPS)


def torch_adam(lr: np.ndarray | float, theta: float = 0.999, **form: Any) -> Sequences:
    """torch's Adam with beta = 0.9 and eps = 1e-8."""
    root = np.sqrt(1 - theta**T)
    return Sequences.of(lr * root / (1 - 0.9**T), 0.9, theta, eps=1e-8 * root, **form)


def torch_nadam(lr: float) -> Sequences:
    """torch's NAdam with its defaults."""
    mu = 0.9 * (1 - 0.5 * 0.96 ** (0.004 * np.arange(1.0, STEPS + 2)))
    left, root = 1 - np.cumprod(mu), np.sqrt(1 - 0.999**T)
    a, b = mu[1:] / left[1:], (1 - mu[:-1]) / left[:-1]
    return Sequences.of(lr * root, 0.9, 0.999, eps=1e-8 * root, momentum_weight=a, gradient_weight=b)


def cases() -> list[Case]:
    """Every row of the table."""
    cosine = 0.01 * (1 + np.cos(np.pi * (T - 1) / (STEPS - 1))) / 2
    warm_up = 0.01 * np.minimum(T / 400, (STEPS - T) / (STEPS - 400))
    falling, ball = 0.05 / np.sqrt(T), HeavyBall(Fraction(9, 10))
    rmsprop = Sequences.of(0.001, 0.0, 0.99, eps=1e-8, steps=STEPS, heavy_ball=ball)
    adopt = Sequences.of(falling, 0.9, 0.99, eps=0.1)
    quiet = Sequences.of(0.003, 0.0, 0.999, eps=1e-3, steps=STEPS)
    return [
        Case("W: AdaEMA, 0.3/sqrt t", plain(0.3 / np.sqrt(T), 0.9, 1 - 1 / np.maximum(T, 2))),
        Case("W: RMSProp, 0.1/sqrt t", plain(0.1 / np.sqrt(T), 0.0, 1 - 1 / (T + 1))),
        Case("W: cosine from 0.01 to 0", plain(cosine, 0.9, 0.999)),
        Case("W: warm-up, then linear to 0, theta 0.9999", plain(warm_up, 0.9, 0.9999)),
        Case("W: 0.05 t^-0.25, 1 - 0.5 t^-0.9 ((R3) fails)", plain(0.05 * T**-0.25, 0.9, 1 - 0.5 * T**-0.9)),
        Case("W: 0.3/t", plain(0.3 / T, 0.9, 1 - 1 / (T + 1))),
        Case("W: constant 0.003", plain(0.003, 0.9, 0.999)),
        Case("W: constant 0.003, no momentum, theta 0.99", plain(0.003, 0.0, 0.99)),
        Case("E: torch Adam, constant 0.003", torch_adam(0.003)),
        Case("E: torch Adam, cosine from 0.01", torch_adam(cosine)),
        Case("E: torch Adam, constant 0.003, theta 0.95", torch_adam(0.003, 0.95)),
        Case("E: constant e = 0.001", Sequences.of(0.003, 0.9, 0.999, eps=1e-3, steps=STEPS)),
        Case("N: torch NAdam, constant 0.003", torch_nadam(0.003)),
        Case("H: RMSprop, momentum 0.9, 0.001", rmsprop),
        Case("D: AdamW 0.1, constant 0.003, X = 3", torch_adam(0.003, decay=3e-4)),
        Case("M_E: AMSGrad, 0.05/sqrt t", torch_adam(falling, running_maximum=True)),
        Case("O: ADOPT, 0.05/sqrt t, e = 0.1", adopt, delayed_bound, delayed=True),
        Case("B: full batch RMSProp, constant 0.003, e = 0.001", quiet, full_batch_bound, QUIET, noise=0.0),
    ]


def main() -> None:
    """Print the table."""
    print("| theorem and run | measured | bound | bound / G_1 |\n|---|---|---|---|")
    for case in cases():
        bound = case.bound()
        measured = measure(case)
        if not measured <= bound.value:
            raise SystemExit(f"{case.label}: measured {measured} is above the bound {bound.value}")
        relative = bound.value / PROBLEM.gradient_sum_bound
        print(f"| {case.label} | {measured:.4g} | {bound.value:.4g} | {relative:.3g} |", flush=True)


if __name__ == "__main__":
    main()
