r"""Algorithms 1 and 2 of the paper in float64 NumPy, line by line: what every optimizer is tested against.

Nothing here is fast or clever, on purpose. All operations are coordinate-wise and t starts at 1.

The paper leaves open what an update is where v_t = 0, which theta_1 = 0 (AdaEMA, AdamNC) allows for a
coordinate whose first gradient is 0: there m_t = 0 as well, the quotient is 0/0, and **the coordinate does
not move**. A zero v_t under an m_t that is not zero has no sensible reading and is an error.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from generic_adam.methods.method import Method, ScheduleLike
from generic_adam.schedules import as_schedule

Array = NDArray[np.float64]
Gradient = Callable[[Array, int], ArrayLike]
Projection = Callable[[Array], ArrayLike]


@dataclass(frozen=True)
class Trajectory:
    """The path of an algorithm over T steps.

    Attributes:
        points: x_1, ..., x_{T+1}, along the first axis.
        momentum: m_1, ..., m_T.
        second_moment: v_1, ..., v_T (for Weighted AdaEMA: V_t / W_t).
    """

    points: Array
    momentum: Array
    second_moment: Array


def generic_adam(
    method: Method,
    gradient: Gradient,
    start: ArrayLike,
    steps: int,
    epsilon: float = 1e-8,
    projection: Projection | None = None,
) -> Trajectory:
    r"""Algorithm 1, Generic Adam.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2, \qquad v_0 = \epsilon \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / \sqrt{v_t}

    Args:
        method: the sequences alpha, beta, theta.
        gradient: gives g_t from (x_t, t).
        start: x_1.
        steps: T.
        epsilon: the start value of v; there is no epsilon in the denominator.
        projection: applied to x_{t+1} before it is used, for a constrained problem.

    Returns:
        Every x_t, m_t and v_t.

    Raises:
        ZeroDivisionError: some v_t is 0 where m_t is not.
    """
    complement_of_beta = 1 - method.beta
    complement_of_theta = 1 - method.theta

    x = np.array(start, dtype=np.float64)
    m = np.zeros_like(x)
    v = np.full_like(x, epsilon)
    record: list[tuple[Array, Array, Array]] = []
    for t in range(1, steps + 1):
        alpha, beta, theta = method.at(t)
        g = np.asarray(gradient(x, t), dtype=np.float64)
        v = theta * v + complement_of_theta(t) * g**2
        m = beta * m + complement_of_beta(t) * g
        x = _project(x - alpha * _quotient(m, v, t), projection)
        record.append((x, m, v))
    return _trajectory(start, record)


def weighted_adaema(
    alpha: ScheduleLike,
    beta: ScheduleLike,
    weights: ScheduleLike,
    gradient: Gradient,
    start: ArrayLike,
    steps: int,
    epsilon: float = 1e-8,
    initial: float = 1.0,
    projection: Projection | None = None,
) -> Trajectory:
    r"""Algorithm 2, AdaGrad with weighted averages and EMA momentum.

    .. math::
        W_t &= W_{t-1} + w_t, \qquad W_0 = 1 \\
        V_t &= V_{t-1} + w_t g_t^2, \qquad V_0 = \epsilon W_0 \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / \sqrt{V_t / W_t}

    It is Generic Adam with theta_t = W_{t-1} / W_t. The weights are used as they are, so those that grow like
    theta^-t overflow in the end; :mod:`generic_adam.methods.method` converts them by logarithms.

    Arguments and errors are those of `generic_adam`, with the weights w_t > 0, the start value epsilon of V_t / W_t,
    and W_0 initial, which the paper has as 1.

    Returns:
        Every x_t, m_t and V_t / W_t.
    """
    alpha, beta, weights = as_schedule(alpha), as_schedule(beta), as_schedule(weights)
    complement_of_beta = 1 - beta

    x = np.array(start, dtype=np.float64)
    m = np.zeros_like(x)
    W = initial
    V = np.full_like(x, epsilon * initial)
    record: list[tuple[Array, Array, Array]] = []
    for t in range(1, steps + 1):
        g = np.asarray(gradient(x, t), dtype=np.float64)
        W = W + weights(t)
        V = V + weights(t) * g**2
        m = beta(t) * m + complement_of_beta(t) * g
        x = _project(x - alpha(t) * _quotient(m, V / W, t), projection)
        record.append((x, m, V / W))
    return _trajectory(start, record)


def _quotient(m: Array, v: Array, t: int) -> Array:
    """m_t / sqrt(v_t), and 0 where both are 0."""
    zero = v == 0
    if np.any(zero & (m != 0)):
        raise ZeroDivisionError(f"v_t = 0 but m_t is not 0 at t = {t}: the update m_t / sqrt(v_t) is undefined")
    return np.where(zero, 0.0, m) / np.sqrt(np.where(zero, 1.0, v))


def _project(x: Array, projection: Projection | None) -> Array:
    return x if projection is None else np.asarray(projection(x), dtype=np.float64)


def _trajectory(start: ArrayLike, record: list[tuple[Array, Array, Array]]) -> Trajectory:
    first = np.array(start, dtype=np.float64)
    x, m, v = np.array(record).reshape(-1, 3, *first.shape).swapaxes(0, 1)
    return Trajectory(np.concatenate([first[None], x]), m, v)
