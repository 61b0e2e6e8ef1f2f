"""The gradients that an optimizer is driven with: each feature of them brings out differences that the others hide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from generic_adam.verify.replay import Floats

WATCHED = 64
"""Coordinates of a parameter that are watched, at most."""
_ALL = 4096
_SIZES = (3.0, 0.3, 1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 0.0)
# A quiet stretch lets v fall, a spike lets it jump; then sizes of their own at each step.
_LOUD, _QUIET, _SPIKE = 7, range(7, 18), 14


def watched(numels: list[int]) -> list[npt.NDArray[np.int64]]:
    """Return which coordinates of each parameter are looked at: few of each where there are many."""
    most = min(WATCHED, max(8, _ALL // max(len(numels), 1)))
    return [np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)) if n else np.zeros(0, int) for n in numels]


def start(size: int, index: int, coarse: float = 0.0) -> Floats:
    """Return weights to begin with: zeros, where small steps show, beside weights of 0.3, where decay does.

    Args:
        size: how many.
        index: which parameter.
        coarse: weights so large that a step is lost beside them, for half precision; 0 for none.
    """
    random, place = np.random.default_rng([2, index]), np.arange(size) + index
    values = np.where(place % 3 == 0, 0.0, 0.3 * random.standard_normal(size))
    return np.where(place % 4 == 1, coarse, values) if coarse else values


def present(steps: int, parameters: int) -> npt.NDArray[np.bool_]:
    """Return whether a parameter has a gradient at a step: the first always, others start late, pause or alternate."""
    there, t = np.ones((steps, parameters), dtype=bool), np.arange(steps)
    for p in range(1, parameters):
        pattern = p % 4
        if pattern == 1:
            there[:, p] = t >= 3
        elif pattern == 2:
            there[:, p] = ~np.isin(t, (4, 5, 16))
        elif pattern == 3:
            there[:, p] = (t % 3 != 1) | (t > 24)
        else:
            there[:, p] = ~np.isin(t, (2, 11))
    return there


def gradients(steps: int, micro: int, sizes: list[int]) -> list[Floats]:
    """Return the gradients of each parameter's watched coordinates: micro-batches, steps, coordinates."""
    random = np.random.default_rng(20)
    envelope = np.array([_envelope(t, random) for t in range(steps)])
    made = []
    for index, size in enumerate(sizes):
        several = len(_SIZES) if size > 3 else 3  # a parameter of few numbers has large gradients
        scale = np.array([_SIZES[(j + index) % several] for j in range(size)])
        one = random.standard_normal((micro, steps, size)) + 0.5 * random.standard_normal((1, steps, size))
        one = one * scale * envelope[:, None]
        steady = (np.arange(size) + index) % 4 == 1  # one sign: many small steps add up
        one[..., steady] = np.abs(one[..., steady])
        one[:, 9:13, 1::2] = 0  # rows that an embedding does not touch
        made.append(one)
    return made


def _envelope(t: int, random: np.random.Generator) -> float:
    drawn = float(10 ** random.uniform(-1, 0.3))
    if t < _LOUD:
        return 1.0
    return 1.0 if t == _SPIKE else 1 / 300 if t in _QUIET else drawn
