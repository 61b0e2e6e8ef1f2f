r"""The two algorithms of the paper are one: theta_t = W_{t-1} / W_t, and back.

w_t = W_0 (1 - theta_t) / prod_{i<=t} theta_i leaves the range of a double, near t = 700,000 for theta =
0.999: both directions work on logarithms.
"""

import math

import numpy as np
import numpy.typing as npt

from generic_adam.errors import MethodError
from generic_adam.methods.parameters import ScheduleLike
from generic_adam.schedules import FloatArray, as_schedule


def log_weights(theta: ScheduleLike, steps: int, initial: float = 1.0) -> FloatArray:
    r"""The weights of Weighted AdaEMA that make it Generic Adam with theta, as logarithms.

    .. math:: \log w_t = \log W_0 + \log(1 - \theta_t) - \sum_{i \le t} \log \theta_i

    Args:
        theta: theta_t, with 0 < theta_t < 1.
        steps: T.
        initial: W_0 > 0; the paper has 1.

    Returns:
        log w_1, ..., log w_T.

    Raises:
        MethodError: some theta_t is not in (0, 1). theta_1 = 0 has no weights: W_0 would have to be 0.
    """
    _check_initial(initial)
    schedule = as_schedule(theta)
    complement = (1 - schedule).values(1, steps + 1)
    inside = (schedule.values(1, steps + 1) > 0) & (complement > 0)
    if not inside.all():
        t = int(np.argmin(inside)) + 1
        raise MethodError(f"theta: weights need 0 < theta_t < 1, got {schedule(t):g} at t = {t}")
    # log theta_t from the complement, which keeps its digits where theta_t is close to 1.
    return math.log(initial) + np.log(complement) - _running_sum(np.log1p(-complement))


def theta_from_log_weights(logarithms: npt.ArrayLike, initial: float = 1.0) -> tuple[FloatArray, FloatArray]:
    r"""theta_t = W_{t-1} / W_t and its complement w_t / W_t, from log w_t.

    Args:
        logarithms: log w_1, ..., log w_T.
        initial: W_0 > 0; the paper has 1.

    Returns:
        theta_1, ..., theta_T and 1 - theta_1, ..., 1 - theta_T, each to full precision.
    """
    _check_initial(initial)
    log_w = np.asarray(logarithms, dtype=np.float64)
    if log_w.ndim != 1 or not np.isfinite(log_w).all():
        raise MethodError("weights: expected a one-dimensional array of finite log w_t")
    log_W = np.logaddexp.accumulate(np.concatenate(([math.log(initial)], log_w)))
    return np.exp(log_W[:-1] - log_W[1:]), np.exp(log_w - log_W[1:])


def _check_initial(initial: float) -> None:
    if not (math.isfinite(initial) and initial > 0):
        raise MethodError(f"initial: expected a finite W_0 > 0, got {initial!r}")


def _running_sum(values: FloatArray) -> FloatArray:
    """Running sums in two levels: rounding grows with the square root of the number of terms, not with it."""
    width = max(1, math.isqrt(values.size))
    rows = np.zeros((-(-values.size // width), width))
    rows.ravel()[: values.size] = values
    within = np.cumsum(rows, axis=1)
    before = np.concatenate(([0.0], np.cumsum(within[:-1, -1])))
    return (before[:, None] + within).ravel()[: values.size]
