r"""The compiled inner loops: draw a block of gradients, and carry many lanes through it.

Lanes are innermost and contiguous, so that the compiler turns four of them into one vector instruction; a
lane-step then costs little more than the square root and the division in it. Every loop is compiled without
fast-math, so that nothing is reordered or fused: a lane holds the same bits as the same recursion written in
plain Python.

`advance` and `advance_adashift` have the same shape: values (of each schedule at each step), gradients
(step by lane), state (one row a quantity, one column a lane), and where to record. The rows of the state
begin with x_t, then the sum of losses $\sum f_i(x_i)$ and its compensation (Kahan), then what the algorithm
remembers. At a recorded step t the kernel stores x_t (before the step) and the sum of losses up to and
including t.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from generic_adam.experiments.compiled import compiled

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]
Values = tuple[Floats, ...]

X, LOSS, CARRY, MEMORY = 0, 1, 2, 3
"""Rows of a state: the point, the sum of losses, its compensation, and the first row the algorithm owns."""


_ROTATE_A, _ROTATE_A_REST = np.uint64(24), np.uint64(40)
_SHIFT_B = np.uint64(16)
_ROTATE_C, _ROTATE_C_REST = np.uint64(37), np.uint64(27)
_TOP_53 = np.uint64(11)


@compiled
def draw_gradients(
    words: Words, counts: Whole, threshold: np.uint64, rare: float, common: float, gradients: Floats,
    record_at: Whole, counts_at: Whole,
) -> None:  # fmt: skip
    """Fill `gradients` (step by replicate) with the rare slope where the generator falls below `threshold`.

    The generator is xoroshiro128+ (Blackman and Vigna 2018), one state (two rows of `words`) a replicate, of
    which the upper 53 bits are used; it has no multiplication, which AVX2 lacks for 64-bit integers.
    """
    steps, replicates = gradients.shape
    first, second = words[0], words[1]
    recorded = 0
    for k in range(steps):
        row = gradients[k]
        for i in range(replicates):
            a = first[i]
            b = second[i]
            is_rare = ((a + b) >> _TOP_53) < threshold
            b ^= a
            first[i] = ((a << _ROTATE_A) | (a >> _ROTATE_A_REST)) ^ b ^ (b << _SHIFT_B)
            second[i] = (b << _ROTATE_C) | (b >> _ROTATE_C_REST)
            row[i] = rare if is_rare else common
            counts[i] += np.int64(is_rare)
        if recorded < record_at.size and record_at[recorded] == k:
            counts_at[recorded] = counts
            recorded += 1


@compiled
def periodic_gradients(
    start: int, period: int, counts: Whole, rare: float, common: float, gradients: Floats,
    record_at: Whole, counts_at: Whole,
) -> None:  # fmt: skip
    """Fill `gradients` with the rare slope where t mod period = 1; row k is t = start + k."""
    recorded = 0
    for k in range(gradients.shape[0]):
        is_rare = (start + k) % period == 1
        gradients[k] = rare if is_rare else common
        counts += np.int64(is_rare)
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


PLAIN, MAXIMUM, POWER, NESTEROV, GRADIENT = range(5)
"""What `advance` divides by, and what it divides."""


@compiled
def _remember(
    v: float, m: float, g: float, theta: float, theta_rest: float, beta: float, beta_rest: float
) -> tuple[float, float]:
    """Return v_t and m_t."""
    return theta * v + theta_rest * (g * g), beta * m + beta_rest * g


@compiled
def _raise_grown(v: Floats, v_max: Floats, root: Floats, power: float) -> None:
    r"""Keep $\hat v^p$: a call into the mathematics library, dear, made only where $\hat v$ has grown."""
    has_grown = False
    for i in range(v.size):
        has_grown |= v[i] > v_max[i]
    if has_grown:
        for i in range(v.size):
            if v[i] > v_max[i]:
                v_max[i] = v[i]
                root[i] = v[i] ** power


@compiled
def advance(  # noqa: C901, PLR0912 - a loop for each kind: each is one of vectors
    values: Values, gradients: Floats, state: Floats, low: float, high: float,
    record_at: Whole, x_at: Floats, loss_at: Floats, kind: int, power: float,
) -> None:  # fmt: skip
    r"""Generic Adam (Algorithm 1), projected, and its nearest relatives.

    $v_t = \theta_t v_{t-1} + (1-\theta_t) g_t^2,\ m_t = \beta_t m_{t-1} + (1-\beta_t) g_t,\
    x_{t+1} = \Pi(x_t - \alpha_t m_t / \sqrt{v_t})$. AMSGrad has $\hat v_t = \max(\hat v_{t-1}, v_t)$ under the
    root, Padam $\hat v_t^p$ in place of the root, NAdam $a_t m_t + b_t g_t$ in place of $m_t$, and SGD divides
    by nothing. The values: alpha, beta, 1 - beta, theta, 1 - theta, a, b.
    """
    x, loss, carry, m, v = state[0], state[1], state[2], state[3], state[4]
    v_max, root = state[5 % len(state)], state[6 % len(state)]
    alphas, betas, beta_rests, thetas, theta_rests, ahead, present = values
    recorded = 0
    for k in range(gradients.shape[0]):
        alpha = alphas[k]
        is_recorded = recorded < record_at.size and record_at[recorded] == k
        if is_recorded:
            x_at[recorded] = x
        row, factors = gradients[k], (thetas[k], theta_rests[k], betas[k], beta_rests[k])
        if kind == PLAIN:
            for i in range(row.size):
                loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
                v[i], m[i] = _remember(v[i], m[i], row[i], *factors)
                x[i] = _project(x[i] - alpha * (m[i] / math.sqrt(v[i])), low, high)
        elif kind == MAXIMUM:
            for i in range(row.size):
                loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
                v[i], m[i] = _remember(v[i], m[i], row[i], *factors)
                v_max[i] = v[i] if v[i] > v_max[i] else v_max[i]  # noqa: FURB136
                x[i] = _project(x[i] - alpha * (m[i] / math.sqrt(v_max[i])), low, high)
        elif kind == POWER:
            for i in range(row.size):
                loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
                v[i], m[i] = _remember(v[i], m[i], row[i], *factors)
            _raise_grown(v, v_max, root, power)
            for i in range(row.size):
                x[i] = _project(x[i] - alpha * (m[i] / root[i]), low, high)
        elif kind == NESTEROV:
            weight, rest = ahead[k], present[k]
            for i in range(row.size):
                loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
                v[i], m[i] = _remember(v[i], m[i], row[i], *factors)
                step = (weight * m[i] + rest * row[i]) / math.sqrt(v[i])
                x[i] = _project(x[i] - alpha * step, low, high)
        else:
            for i in range(row.size):
                loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
                v[i], m[i] = _remember(v[i], m[i], row[i], *factors)
                x[i] = _project(x[i] - alpha * m[i], low, high)
        if is_recorded:
            loss_at[recorded] = loss
            recorded += 1


@compiled
def advance_adashift(
    values: Values, window: Floats, state: Floats, low: float, high: float,
    record_at: Whole, x_at: Floats, loss_at: Floats, weights: Floats, theta: float, start: int,
) -> None:  # fmt: skip
    r"""AdaShift with n = `weights.size` gradients kept, phi the identity (there is one coordinate).

    $m_t = \sum_{i<n} \beta^i g_{t-i} / \sum_{i<n} \beta^i$, $v_t = \theta v_{t-1} + (1-\theta) g_{t-n}^2$,
    $x_{t+1} = \Pi(x_t - \alpha_t m_t / \sqrt{v_t / (1 - \theta^{t-n})})$; the first n steps only collect
    gradients. `weights` are $\beta^i / \sum \beta^i$. Row n + k of the window is g at t = start + k, so that
    row k is g_{t-n}. The values: alpha, $1 - \theta^{t-n}$.
    """
    x, loss, carry, m, v = state[0], state[1], state[2], state[3], state[4]
    alphas, corrections = values
    kept = weights.size
    recorded = 0
    for k in range(window.shape[0] - kept):
        alpha, correction = alphas[k], corrections[k]
        is_recorded = recorded < record_at.size and record_at[recorded] == k
        if is_recorded:
            x_at[recorded] = x
        row, old = window[kept + k], window[k]
        for i in range(row.size):
            loss[i], carry[i] = _add(loss[i], carry[i], row[i] * x[i])
        if start + k > kept:
            m[:] = 0.0
            for j in range(kept):
                weight, shifted = weights[j], window[kept + k - j]
                for i in range(row.size):
                    m[i] += weight * shifted[i]
            for i in range(row.size):
                v[i] = theta * v[i] + (1.0 - theta) * (old[i] * old[i])
                x[i] = _project(x[i] - alpha * (m[i] / math.sqrt(v[i] / correction)), low, high)
        if is_recorded:
            loss_at[recorded] = loss
            recorded += 1


@compiled
def divisor_statistics(
    gradients: Floats, alphas: Floats, thetas: Floats, theta_rests: Floats, initial_v: float,
    running_maximum: bool, lag: int, first: int,
) -> tuple[float, float]:  # fmt: skip
    r"""Return the share of steps at which $\sqrt{v_t}/\alpha_t$ falls, and the correlation of v_t and g_t^2.

    One lane from t = 1 on; both are taken over the rows from `first` on. `running_maximum` puts the largest v
    so far in place of v_t, `lag` the gradient so many steps ago in place of g_t in v_t.
    """
    v, largest, before = initial_v, 0.0, 0.0
    falls, count = 0, 0
    mean_v, mean_s, moment_v, moment_s, moment_vs = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(lag, gradients.size):
        g = gradients[k - lag]
        v = thetas[k] * v + theta_rests[k] * (g * g)
        largest = v if v > largest else largest  # noqa: FURB136
        used = largest if running_maximum else v
        ratio = math.sqrt(used) / alphas[k]
        if k >= first:
            count += 1
            falls += np.int64(ratio < before)
            square = gradients[k] * gradients[k]
            change_v, change_s = used - mean_v, square - mean_s
            mean_v += change_v / count
            mean_s += change_s / count
            moment_v += change_v * (used - mean_v)
            moment_s += change_s * (square - mean_s)
            moment_vs += change_v * (square - mean_s)
        before = ratio
    spread = math.sqrt(moment_v * moment_s)
    return falls / max(count, 1), moment_vs / spread if spread > 0 else 0.0
