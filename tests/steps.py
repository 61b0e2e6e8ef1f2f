"""An Algorithm run from its fields alone, in float64 NumPy: what readings and the catalogue are compared with."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from generic_adam.methods import Algorithm

Gradient = Callable[[np.ndarray, int], np.ndarray]
START = np.array([0.5, -1.0, 2.0])


def gradient(x: np.ndarray, t: int) -> np.ndarray:
    """A gradient that depends on the point and does not settle."""
    return 0.3 * x + np.sin(np.array([1.0, 2.0, 3.0]) * t) + 0.05


def torch_path(
    x: Any, optimizer: Any, scheduler: Any = None, steps: int = 60, gradient: Gradient = gradient
) -> np.ndarray:
    """What a torch optimizer makes of its parameter x, as `path` has it."""
    points = []
    for t in range(1, steps + 1):
        x.grad = x.new_tensor(gradient(x.detach().numpy(), t))
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        points.append(x.detach().numpy().copy())
    return np.array(points)


def path(algorithm: Algorithm, gradient: Gradient, start: np.ndarray, steps: int) -> np.ndarray:
    """x_2, ..., x_{steps + 1}."""
    return np.array(list(_points(algorithm, gradient, start, steps)))


def _points(a: Algorithm, gradient: Gradient, start: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    assert not a.delayed
    assert not a.factored
    x = np.array(start, dtype=float)
    m, mean, buffer, largest = (np.zeros_like(x) for _ in range(4))
    v = np.full_like(x, a.initial_v)
    for t in range(1, steps + 1):
        alpha, beta, theta = a.method.at(t)
        g = clipped(a, -gradient(x, t) if a.maximize else gradient(x, t)) + float(a.l2) * x
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
