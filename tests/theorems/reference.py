"""The theorems with weights written down once more, plainly, for any kind of number.

Loops over lists, no blocks, no search: what the library's numbers are compared with, in doubles and (with
mpmath's numbers) at forty digits.
"""

from __future__ import annotations

import math

import numpy as np


def almost_non_increasing(chi):
    """The least C_0 of (R3) on the steps: the largest chi_t / min_{i<=t} chi_i."""
    return float(np.max(chi / np.minimum.accumulate(chi)))


def log_product_below(theta, theta_prime):
    """Log C_1: the sum of log(theta_j/theta') over the theta_j < theta'."""
    return float(np.log(theta[theta < theta_prime] / theta_prime).sum())


def forward(terms, factors):
    values, current = [], 0
    for term, factor in zip(terms, factors, strict=True):
        current = factor * current + term
        values.append(current)
    return values


def backward(terms, factors):
    values, current = [], 0
    for i in reversed(range(len(terms))):
        current = terms[i] + (factors[i + 1] * current if i + 1 < len(terms) else 0)
        values.append(current)
    return values[::-1]


def majorant(values):
    result, largest = [], 0
    for value in reversed(values):
        largest = max(largest, value)
        result.append(largest)
    return result[::-1]


def growth(theta, ratio, log):
    """Increments of log(1 + ratio (W_t - 1)); with theta_1 = 0: 1, then the same with W from t = 2 on."""
    values, weights, before = [], 1, 0
    for t, one in enumerate(theta):
        if t == 0 and one == 0:
            values.append(1)
            continue
        weights = weights / one
        now = log(1 + ratio * (weights - 1))
        values.append(now - before)
        before = now
    return values


def theorem(
    alpha,
    beta,
    theta,
    L,
    gap,
    parts,
    *,
    sqrt,
    log,
    eps=0,
    e=None,
    s,
    zeta,
    a=None,
    b=None,
    nu=None,
):
    """Return a dictionary with noise, drift, Pi, X_w (decay apart), and what makes them (of the last part).

    parts: (multiplicity, G_k, mean of G_k^2). eps is v_0, e the sequence e_t (None for 0), a and b Nesterov's
    weights; nu (any value) switches to Theorem D's larger drift.
    """
    steps = range(len(alpha))
    q = [1 - x for x in theta]
    rho = [b_ / sqrt(x) if x else 0 for b_, x in zip(beta, theta, strict=True)]
    a = [1] * len(alpha) if a is None else a
    b = [0] * len(alpha) if b is None else b
    R = forward([1 - x for x in beta], rho)
    M = forward([(1 - beta[t]) ** 2 / q[t] for t in steps], [x * x for x in rho])
    Q = backward([alpha[t] * a[t] for t in steps], rho)
    B = majorant(
        [
            Q[t] * ((1 - beta[t]) / (s * sqrt(q[t])) + (rho[t] * sqrt(M[t - 1]) if t else 0))
            + alpha[t] * b[t] / (s * sqrt(q[t]))
            for t in steps
        ]
    )
    share = [0] * len(alpha)
    if e is not None and any(rho):
        for t in steps:
            if t:
                share[t] = (e[t] - sqrt(theta[t]) * e[t - 1]) / e[t]
    else:
        zeta = 0
    rest = [Q[t] - alpha[t] * a[t] for t in steps]
    up = [L * (alpha[t] * rest[t] * (a[t] + b[t] / 2) + alpha[t] ** 2 * (a[t] + b[t]) * a[t] / 2) for t in steps]
    if nu is not None:
        up = [L * (3 * alpha[t] * rest[t] / 2 + alpha[t] ** 2) for t in steps]
    own = [L * (alpha[t] * rest[t] * b[t] / 2 + alpha[t] ** 2 * (a[t] + b[t]) * b[t] / 2) for t in steps]
    noise = drift = 0
    for count, G, G_squared in parts:
        y = [
            rho[t] ** 2 * share[t] ** 2 * (e[t] + G * sqrt(q[t])) / (2 * zeta * (1 - beta[t])) if share[t] else 0
            for t in steps
        ]
        later = [Q[t + 1] * y[t + 1] if t + 1 < len(alpha) else 0 for t in steps]
        H = backward([R[t] * (up[t] + later[t]) for t in steps], rho)
        A = majorant([((1 - beta[t]) * H[t] + own[t]) / q[t] for t in steps])
        ratio = G_squared / eps if e is None else G_squared / (eps + (e[0] ** 2 / theta[0] if theta[0] else e[0] ** 2))
        dS = growth(theta, ratio, log)
        noise += count * sum(G * B[t] * dS[t] for t in steps)
        drift += count * sum(A[t] * dS[t] for t in steps)
    pi = sum((1 - s - zeta) * (1 - beta[t]) * Q[t] + (1 - s) * alpha[t] * b[t] for t in steps)
    return {
        "R": R,
        "M": M,
        "Q": Q,
        "H": H,
        "A": A,
        "B": B,
        "dS": dS,
        "noise": noise,
        "drift": drift,
        "divisor": pi,
        "value": (gap + noise + drift) / pi if pi else None,
    }


def constant_beta_bound(*, diameter, beta, last_divisors, momentum_sum):
    """Theorem R before its closed forms: D, the sum of D'_T over k, and that of m_t^2/D'_t over t and k."""
    return (diameter**2 * last_divisors + (1 + beta) * momentum_sum) / (2 * (1 - beta))


def corollary_regret(total, steps, *, alpha, beta, fading, diameter, theta=None):
    """Reddi, Kale and Kumar's Corollary 1 (AMSGrad) or 2 (AdamNC), with the missing d/alpha; total: sum of G_k."""
    root, rest, squared = math.sqrt(steps), 1 - beta, diameter**2
    middle = beta * squared / (alpha * rest**2 * (1 - fading) ** 2)
    if theta is None:
        return total * (squared * root / (2 * alpha * rest) + middle + 2 * alpha * root / rest**3)
    third = alpha * math.sqrt(1 + math.log(steps)) / (rest**2 * (1 - beta / math.sqrt(theta)) * math.sqrt(1 - theta))
    return total * (squared * root / (alpha * rest) + middle + third * root)
