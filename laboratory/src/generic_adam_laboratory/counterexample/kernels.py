r"""The compiled inner loops: draw a block of gradients, and carry many lanes through it.

Lanes are innermost and contiguous, so that the compiler turns four of them into one vector instruction; a
lane-step then costs little more than the square root and the division in it. Every loop is compiled without
fast-math, so that nothing is reordered or fused: a lane holds the same bits as the same recursion written in
plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]

X, LOSS, CARRY, M, V, V_MAX, ROOT, ROWS = range(8)
"""Rows of a state: the point, the sum of losses and its compensation (Kahan), the moments, the largest v and what
divides; and their number, after which AdaShift keeps gradients."""


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, or load what an earlier process compiled."""
    # error_model="numpy": a division by zero is inf or nan, as in NumPy; the test for it would stop
    # vectorisation.
    dispatcher: Any = njit(nogil=True, error_model="numpy", fastmath=False)(function)
    with suppress(RuntimeError):  # no place for a cache: every process compiles
        dispatcher.enable_caching()
    return dispatcher


@compiled
def next_word(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return the next 64 bits of a generator, of which the upper are best, and its new state.

    xoroshiro128+ (Blackman and Vigna 2018); it has no multiplication, which AVX2 lacks for 64-bit integers.
    """
    mixed = a ^ b
    first = ((a << np.uint64(24)) | (a >> np.uint64(40))) ^ mixed ^ (mixed << np.uint64(16))
    return a + b, first, (mixed << np.uint64(37)) | (mixed >> np.uint64(27))


@compiled
def draw_gradients(
    words: Words, start: int, period: int, threshold: np.uint64, rare: float, common: float,
    gradients: Floats, counts: Whole, record_at: Whole, counts_at: Whole,
) -> None:  # fmt: skip
    """Fill `gradients` (step by replicate) with the rare slope where it comes, and count it up to each record.

    It comes where t mod period = 1; without a period (0), where 53 bits of the generator are below `threshold`.
    """
    first, second, recorded = words[0], words[1], 0
    for k in range(gradients.shape[0]):
        if period > 0:
            threshold = np.uint64(2**53) if (start + k) % period == 1 else np.uint64(0)
        row = gradients[k]
        for i in range(row.size):
            bits, first[i], second[i] = next_word(first[i], second[i])
            is_rare = (bits >> np.uint64(11)) < threshold
            row[i] = rare if is_rare else common
            counts[i] += np.int64(is_rare)
        if recorded < record_at.size and record_at[recorded] == k:
            counts_at[recorded] = counts
            recorded += 1


@compiled
def _add(total: float, carry: float, term: float) -> tuple[float, float]:
    """Add a term to a compensated sum (Kahan), so that ten million losses lose no digit."""
    corrected = term - carry
    new_total = total + corrected
    return new_total, (new_total - total) - corrected


@compiled
def _project(x: float, low: float, high: float) -> float:
    """Return the point of [low, high] nearest to x; nan stays nan."""
    # min() and max() have other rules for nan, which stop vectorisation.
    x = low if x < low else x  # noqa: FURB136
    return high if x > high else x  # noqa: FURB136


@compiled
def _raise_grown(v: Floats, v_max: Floats, root: Floats, power: float) -> None:
    r"""Keep $\hat v^p$: a call into the mathematics library, dear, made only where $\hat v$ has grown."""
    for i in range(v.size):
        if v[i] > v_max[i]:
            v_max[i] = v[i]
            root[i] = v[i] ** power


@compiled
def advance(
    values: tuple[Floats, ...], window: Floats, state: Floats, low: float, high: float, record_at: Whole,
    x_at: Floats, loss_at: Floats, keep: float, power: float, weights: Floats,
) -> None:  # fmt: skip
    r"""Advance Generic Adam (Algorithm 1), projected, or a relative of it: their differences are data.

    $v_t = \theta_t v_{t-1} + (1-\theta_t) g_{t-n}^2,\ m_t = \beta_t m_{t-1} + (1-\beta_t) g_t,\
    x_{t+1} = \Pi(x_t - \alpha_t (a_t m_t + b_t g_t) / \sqrt{\hat v_t})$ with
    $\hat v_t = \max(v_t, \kappa \hat v_{t-1})$. Algorithm 1 has n = 0, a = 1, b = 0 and $\kappa$ (`keep`) = 0;
    AMSGrad $\kappa$ = 1; Padam besides $\hat v_t^p$ in place of the root; NAdam other a and b; SGD theta = 1
    from v_0 = 1. AdaShift has n = `weights.size` > 0 and $m_t = \sum_{i<n} w_i g_{t-i}$.

    `values` holds alpha, beta, 1 - beta, theta, 1 - theta, a, b at each step; row n + k of `window` is g of step
    k, one column a lane; `state` has a row for each quantity. At the steps `record_at` x_t goes to `x_at`, before
    the step, and the sum of losses up to and including t to `loss_at`.
    """
    x, loss, carry, m, v = state[0], state[1], state[2], state[3], state[4]
    v_max, root = state[5], state[6]
    alphas, betas, beta_rests, thetas, theta_rests, ahead, present = values
    kept, recorded = weights.size, 0
    for k in range(window.shape[0] - kept):
        alpha, theta, theta_rest = alphas[k], thetas[k], theta_rests[k]
        beta, beta_rest = betas[k], beta_rests[k]
        a, b, row, old = ahead[k], present[k], window[kept + k], window[k]
        is_recorded = recorded < record_at.size and record_at[recorded] == k
        if is_recorded:
            x_at[recorded] = x
        if kept > 0:  # what the loops below do to m is then nothing
            m[:] = 0.0
            for j in range(kept):
                shifted = window[kept + k - j]
                for i in range(row.size):
                    m[i] += weights[j] * shifted[i]
            beta, beta_rest = 1.0, 0.0
        for i in range(row.size):
            loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
            v[i] = theta * v[i] + theta_rest * (old[i] * old[i])
            m[i] = beta * m[i] + beta_rest * row[i]
        if power == 0.5:
            for i in range(row.size):
                largest = keep * v_max[i]
                v_max[i] = v[i] if v[i] > largest else largest  # noqa: FURB136
                root[i] = math.sqrt(v_max[i])
        else:
            _raise_grown(v, v_max, root, power)
        for i in range(row.size):
            x[i] = _project(x[i] - alpha * ((a * m[i] + b * row[i]) / root[i]), low, high)
        if is_recorded:
            loss_at[recorded] = loss
            recorded += 1
