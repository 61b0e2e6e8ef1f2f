"""What the optimizers are run on: gradients as functions of (x, t), in NumPy and in torch."""

from collections.abc import Callable

import numpy as np
import torch

from generic_adam.torch.scheduled import ScheduledOptimizer

DIMENSION = 7
START = np.linspace(-1.0, 2.0, DIMENSION)
_CURVATURE = np.linspace(0.5, 2.0, DIMENSION)


def noisy_quadratic(x: np.ndarray, t: int) -> np.ndarray:
    """A quadratic's gradient at one point or several, plus noise; one coordinate is 0 until t = 3."""
    g = _CURVATURE * x + np.cos(t * (1.0 + np.arange(DIMENSION)))
    if t < 3:
        g[..., 2] = 0.0
    return g


def run(
    optimizer: ScheduledOptimizer,
    parameter: torch.nn.Parameter,
    steps: int,
    gradient: Callable[[np.ndarray, int], np.ndarray] = noisy_quadratic,
    first: int = 1,
) -> np.ndarray:
    """The iterates x_1, ..., x_{T+1} of an optimizer under a gradient that is given in NumPy."""
    points = [parameter.detach().numpy().copy()]
    for t in range(first, first + steps):
        parameter.grad = torch.from_numpy(gradient(points[-1], t))
        optimizer.step()
        points.append(parameter.detach().numpy().copy())
    return np.array(points)


def distance(points: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference, relative to the largest iterate."""
    return float(np.abs(points - reference).max() / np.abs(reference).max())
