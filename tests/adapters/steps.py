"""An Algorithm run from its fields alone, in float64 NumPy: what readings are compared with."""

from collections.abc import Callable, Iterator

import numpy as np

from generic_adam.methods import Algorithm


def path(
    algorithm: Algorithm, gradient: Callable[[np.ndarray, int], np.ndarray], start: np.ndarray, steps: int
) -> np.ndarray:
    """x_2, ..., x_{steps + 1}."""
    return np.array(list(_points(algorithm, gradient, start, steps)))


def _points(
    a: Algorithm, gradient: Callable[[np.ndarray, int], np.ndarray], start: np.ndarray, steps: int
) -> Iterator[np.ndarray]:
    assert not a.delayed
    assert not a.factored
    x = np.array(start, dtype=float)
    m, mean, buffer, largest = (np.zeros_like(x) for _ in range(4))
    v = np.full_like(x, a.initial_v)
    for t in range(1, steps + 1):
        alpha, beta, theta = a.method.at(t)
        g = clipped(a, gradient(x, t)) + float(a.l2) * x
        v = theta * v + (1 - a.method.theta)(t) * g**2
        m = beta * m + (1 - a.method.beta)(t) * g
        mean = theta * mean + (1 - theta) * g
        largest = np.maximum(largest, v)
        below = largest if a.running_maximum else v - mean**2 if a.centered else v
        e = a.eps(t)
        divisor = np.sqrt(below + e**2) if a.eps_under_root else below ** float(a.power) + e
        if not a.preconditioned:
            divisor = np.ones_like(x)
        x = x * (1 - a.decay(t))
        if a.heavy_ball is not None:
            inside = alpha if a.heavy_ball.rate_inside else 1.0
            buffer = float(a.heavy_ball.factor) * buffer + inside * g / divisor
            x = x - (1.0 if a.heavy_ball.rate_inside else alpha) * buffer
        elif a.nesterov is not None:
            ahead = a.nesterov.momentum_weight(t) * m + a.nesterov.gradient_weight(t) * g
            x = x - alpha * ahead / divisor
        else:
            x = x - alpha * m / divisor
        yield x.copy()


def clipped(a: Algorithm, g: np.ndarray) -> np.ndarray:
    if a.clipping is None:
        return g
    if a.clipping.kind == "value":
        return np.clip(g, -a.clipping.threshold, a.clipping.threshold)
    assert a.clipping.kind == "norm"
    return g * min(1.0, a.clipping.threshold / np.linalg.norm(g))
