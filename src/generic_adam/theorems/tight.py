r"""How far from tight: a problem on which a part of the noise floor really stays (Proposition T).

The gradients are 1 with probability p and -b otherwise, independent of everything, wherever the slope of f is their
mean :math:`\mu = p - (1-p) b > 0`. A rare spike is divided by the large root that it makes itself: for one b the
mean step :math:`\mathbb{E}\,m/\sqrt v` is 0 although :math:`f' = \mu`. With :math:`\alpha = T^{-3/4}` the iterate then
stays where it is, the gap and the length of the steps vanish from every bound, and

.. math:: \frac{X_w}{G_1} \to \frac{\mu^2}{\sigma}\,\mathbb{E}\frac{1}{\sqrt{\theta v + (1-\theta)\sigma^2}}, \qquad
    \sigma^2 = p + (1-p) b^2,

in the stationary law of v: no theorem with the assumptions of W has a floor below it. The proof is on the page
docs/theorems/weighted.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.theorems.sequences import Array

_HALVINGS = 40


@dataclass(frozen=True)
class Stall:
    r"""A problem on which Adam with constants stands still on a slope.

    Attributes:
        beta: the constant :math:`\beta`.
        theta: the constant :math:`\theta`.
        spike: p, the chance of a gradient of 1.
        small: b, what the other gradients are, times -1.
        size: :math:`X_w/G_1` in the limit, which no floor is below.
    """

    beta: float
    theta: float
    spike: float
    small: float
    size: float

    @property
    def slope(self) -> float:
        """f' where the iterate stands, the mean of the gradients."""
        return self.spike - (1 - self.spike) * self.small

    @property
    def second_moment(self) -> float:
        """The mean of the gradients' squares there, and the largest anywhere."""
        return self.spike + (1 - self.spike) * self.small**2

    def gradient(self, rng: np.random.Generator) -> Callable[[Array, int], Array]:
        """Return the stochastic gradient of f, convex and smooth with its minimum at -2; it stands at 0."""

        def drawn(x: Array, _: int) -> Array:
            noise = np.where(rng.random(x.shape) < self.spike, 1.0, -self.small) - self.slope
            return self.slope * np.clip(x + 2, -1, 1) + noise

        return drawn


def stall(beta: float, theta: float, spikes: float = 0.3, nodes: int = 120) -> Stall:
    r"""Return the problem of Proposition T for constant beta and theta.

    The law of v is computed on nodes in log v, by cubic interpolation of functions that are smooth beside
    :math:`v^{-1/2}`; 120 nodes give four digits.

    Args:
        beta: in [0, 1).
        theta: in (beta^2, 1).
        spikes: :math:`p/(1-\theta)`, about how many spikes v remembers; 0.3 is close to the worst.
        nodes: their number.

    Raises:
        TheoremError: a number is out of range, or no b makes the mean step 0.

    Examples:
        >>> found = stall(0.9, 0.95)
        >>> round(found.size, 4), found.slope > 0
        (0.0276, True)
    """
    p = spikes * (1 - theta)
    if not (0 <= beta < 1 and beta**2 < theta < 1 and 0 < p < 1 and nodes >= 4):
        raise TheoremError(f"expected 0 <= beta, beta^2 < theta < 1 and 0 < p < 1, got {beta:g}, {theta:g}, {p:g}")
    low, high = 1e-9, p / (1 - p)
    if not _mean_step(low, p, beta, theta, nodes)[0] > 0 > _mean_step(high, p, beta, theta, nodes)[0]:
        raise TheoremError(f"no gradient makes the mean step 0 at beta = {beta:g}, theta = {theta:g}")
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _mean_step(middle, p, beta, theta, nodes)[0] > 0 else (low, middle)
    found = Stall(beta, theta, p, low, 0.0)
    inverse = _mean_step(low, p, beta, theta, nodes)[1]
    return Stall(beta, theta, p, low, found.slope**2 / math.sqrt(found.second_moment) * inverse)


def _mean_step(b: float, p: float, beta: float, theta: float, nodes: int) -> tuple[float, float]:
    r"""Return :math:`\mathbb{E}\,m/\sqrt v` and :math:`\mathbb{E}(\theta v + q\sigma^2)^{-1/2}`, both stationary."""
    logs = np.linspace(2 * math.log(b), 0, nodes)
    v, q, rows = np.exp(logs), 1 - theta, np.arange(nodes)

    def after(g: float) -> Array:
        """Return the matrix that takes a function of v_t to its value at theta v_(t-1) + q g^2."""
        moved = theta * v + q * g * g
        place = np.clip((np.log(moved) - logs[0]) / (logs[1] - logs[0]), 0, nodes - 1)
        first = np.clip(place.astype(int) - 1, 0, nodes - 4)
        matrix = np.zeros((nodes, nodes))
        for k in range(4):
            others = [(place - first - j) / (k - j) for j in range(4) if j != k]
            matrix[rows, first + k] = np.prod(others, axis=0) * np.sqrt(v[first + k] / moved)
        return matrix

    large, small = after(1.0), after(b)
    mean = p * large + (1 - p) * small
    balance = np.eye(nodes) - mean.T
    balance[-1] = 1
    stationary = np.linalg.solve(balance, np.append(np.zeros(nodes - 1), 1.0))
    # E m/sqrt v = sum_j (1 - beta) beta^j E[g_(t-j) / sqrt v_t], and what follows g_(t-j) averages over j steps.
    follows = np.linalg.solve(np.eye(nodes) - beta * mean, v**-0.5)
    step = (1 - beta) * float(stationary @ ((p * large - (1 - p) * b * small) @ follows))
    second = p + (1 - p) * b * b
    return step, float(stationary @ (theta * v + q * second) ** -0.5)
