"""Measured against bound for every theorem: the table on the theorems' pages.

f = sum of x_k^2/(1+x_k^2) in d = 5 coordinates from x_1 = 2, noise +-0.5 (L = 2, gap = 4), 400 runs of 4,000
steps each; X_w is averaged with the theorem's own weights and divisor.

    python benchmarks/measured_bounds.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from generic_adam.methods import HeavyBall
from generic_adam.theorems.clipping import full_batch_bound
from generic_adam.theorems.delayed import delayed_bound
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import WeightedBound, weighted_bound

STEPS, RUNS, DIMENSION, NOISE = 4000, 400, 5, 0.5
T = np.arange(1.0, STEPS + 1)
SLOPE = 3 * math.sqrt(3) / 8  # the largest |f'|
PROBLEM = Problem(
    smoothness=2,
    gradient_bound=[math.sqrt(SLOPE**2 + NOISE**2)] * DIMENSION,
    dimension=DIMENSION,
    gap=4,
    box=3,
    gradient_sup=SLOPE + NOISE,
)


@dataclass(frozen=True)
class Case:
    """One row: what runs, and the theorem that is asked."""

    label: str
    alpha: np.ndarray
    beta: float
    theta: np.ndarray
    bound: Callable[[Sequences, Problem], WeightedBound]
    eps: np.ndarray | float = 0.0
    decay: np.ndarray | float = 0.0
    kind: str = "adam"
    noise: float = NOISE

    @property
    def sequences(self) -> Sequences:
        """The sequences as the theorems take them; v_0 = 1e-8 where there is no eps."""
        has_eps = np.any(self.eps)
        return Sequences.of(
            self.alpha,
            self.beta,
            self.theta,
            eps=self.eps,
            decay=self.decay,
            initial_v=0.0 if has_eps else 1e-8,
        )


def measure(case: Case) -> float:
    """Return X_w of the runs."""
    rng = np.random.default_rng(1)
    shape = (RUNS, DIMENSION)
    x, m, b = np.full(shape, 2.0), np.zeros(shape), np.zeros(shape)
    v = np.full(shape, case.sequences.initial_v)
    eps, nu = np.broadcast_to(case.eps, STEPS), np.broadcast_to(case.decay, STEPS)
    largest = v
    if case.kind == "delayed":
        v = (slope(x) + noise_of(rng, case, shape)) ** 2
    keep = case.beta if case.kind in {"maximum", "delayed", "heavy ball"} else case.beta / np.sqrt(case.theta)
    weights = np.empty(STEPS)
    Q = 0.0
    for i in reversed(range(STEPS)):
        Q = case.alpha[i] + (np.broadcast_to(keep, STEPS)[i + 1] * Q if i + 1 < STEPS else 0.0)
        weights[i] = Q
    total = 0.0
    for t in range(STEPS):
        exact = slope(x)
        theta = case.theta[t]
        hat = theta * v + (1 - theta) * (exact**2 + case.noise**2)
        if case.kind == "maximum":
            hat = np.maximum(hat, largest)
        divisor = np.maximum(np.sqrt(v), eps[t]) if case.kind == "delayed" else np.sqrt(hat) + eps[t]
        total += weights[t] * (exact**2 / divisor).sum(axis=1).mean()
        g = exact + noise_of(rng, case, shape)
        v = theta * v + (1 - theta) * g**2
        largest = np.maximum(largest, v)
        if case.kind == "delayed":
            m = case.beta * m + (1 - case.beta) * g / divisor
            x = x - case.alpha[t] * m
        elif case.kind == "heavy ball":
            b = case.beta * b + g / (np.sqrt(v) + eps[t])
            x = x - case.alpha[t] * b
        else:
            m = case.beta * m + (1 - case.beta) * g
            root = np.sqrt(largest if case.kind == "maximum" else v) + eps[t]
            x = (1 - nu[t]) * x - case.alpha[t] * m / root
    return total / weights.sum()


def slope(x: np.ndarray) -> np.ndarray:
    """The gradient of f."""
    return 2 * x / (1 + x * x) ** 2


def noise_of(rng: np.random.Generator, case: Case, shape: tuple[int, int]) -> np.ndarray:
    """Two values of the same size."""
    return case.noise * (2.0 * rng.integers(0, 2, shape) - 1)


def torch_rate(lr: np.ndarray | float, beta: float, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha_t and e_t of torch's Adam with eps = 1e-8."""
    root = np.sqrt(1 - theta**T)
    return lr * root / (1 - beta**T), 1e-8 * root


def cases() -> list[Case]:
    """Every row of the table."""
    flat = np.ones(STEPS)
    cosine = 0.01 * (1 + np.cos(np.pi * (T - 1) / (STEPS - 1))) / 2
    warm_up = 0.01 * np.minimum(T / 400, (STEPS - T) / (STEPS - 400))
    adam, adam_eps = torch_rate(0.003, 0.9, 0.999)
    falling, falling_eps = torch_rate(cosine, 0.9, 0.999)
    ams, ams_eps = torch_rate(0.05 / np.sqrt(T), 0.9, 0.999)
    ema = 1 - 1 / np.maximum(T, 2)
    quiet = Problem(2, [SLOPE] * DIMENSION, DIMENSION, 4)
    return [
        Case("W: AdaEMA, 0.3/sqrt t", 0.3 / np.sqrt(T), 0.9, ema, weighted_bound),
        Case("W: RMSProp, 0.1/sqrt t", 0.1 / np.sqrt(T), 0.0, 1 - 1 / (T + 1), weighted_bound),
        Case("W: cosine from 0.01 to 0", cosine, 0.9, 0.999 * flat, weighted_bound),
        Case("W: warm-up, then linear to 0, theta 0.9999", warm_up, 0.9, 0.9999 * flat, weighted_bound),
        Case(
            "W: 0.05 t^-0.25, 1 - 0.5 t^-0.9 ((R3) fails)",
            0.05 * T**-0.25,
            0.9,
            1 - 0.5 * T**-0.9,
            weighted_bound,
        ),
        Case("E: torch Adam, constant 0.003", adam, 0.9, 0.999 * flat, weighted_bound, adam_eps),
        Case("E: torch Adam, cosine from 0.01", falling, 0.9, 0.999 * flat, weighted_bound, falling_eps),
        Case("E: constant e = 0.001", 0.003 * flat, 0.9, 0.999 * flat, weighted_bound, 1e-3),
        Case(
            "H: RMSprop, momentum 0.9, 0.001",
            0.001 * flat,
            0.9,
            0.99 * flat,
            lambda s, p: weighted_bound(replace(s, heavy_ball=HeavyBall(Fraction(9, 10))), p),
            1e-8,
            kind="heavy ball",
        ),
        Case("D: AdamW 0.1, constant 0.003, X = 3", adam, 0.9, 0.999 * flat, weighted_bound, adam_eps, 3e-4),
        Case(
            "M_E: AMSGrad, 0.05/sqrt t",
            ams,
            0.9,
            0.999 * flat,
            lambda s, p: weighted_bound(replace(s, running_maximum=True), p),
            ams_eps,
            kind="maximum",
        ),
        Case(
            "O: ADOPT, 0.05/sqrt t, e = 0.1",
            0.05 / np.sqrt(T),
            0.9,
            0.99 * flat,
            delayed_bound,
            0.1,
            kind="delayed",
        ),
        Case(
            "B: full batch RMSProp, constant 0.003, e = 0.001",
            0.003 * flat,
            0.0,
            0.999 * flat,
            lambda s, _: full_batch_bound(s, quiet),
            1e-3,
            noise=0.0,
        ),
    ]


def main() -> None:
    """Print the table."""
    print("| theorem and run | measured | bound | bound / G_1 |\n|---|---|---|---|")
    for case in cases():
        measured, bound = measure(case), case.bound(case.sequences, PROBLEM)
        if not measured <= bound.value:
            raise SystemExit(f"{case.label}: measured {measured} is above the bound {bound.value}")
        relative = bound.value / PROBLEM.gradient_sum_bound
        print(f"| {case.label} | {measured:.4g} | {bound.value:.4g} | {relative:.3g} |", flush=True)


if __name__ == "__main__":
    main()
