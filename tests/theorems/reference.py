"""The theorems with weights written down once more, plainly, for any kind of number.

Loops over lists, no blocks, no search: what the library's numbers are compared with, in doubles and (with
mpmath's numbers) at forty digits.
"""

from __future__ import annotations

import itertools
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


def sharp(
    alpha,
    beta,
    theta,
    L,
    gap,
    parts,
    *,
    sqrt,
    log,
    v_0=0,
    e=None,
    root=False,
    symmetric=False,
    a=None,
    b=None,
    nu=None,
    box=0,
):
    """Return the bound of Theorem W, E, N, D or, where noise is symmetric, Y, with everything that makes it.

    parts: (multiplicity, G_k, mean of G_k^2). The last part's coefficients and logarithms are among what is returned.
    """
    steps = range(len(alpha))
    T, zero = len(alpha), theta[0] == 0
    v_0 = 0 if zero else v_0
    e = [0] * T if e is None else e
    a, b = ([1] * T if a is None else a), ([0] * T if b is None else b)
    q = [1 - x for x in theta]
    rho = [b_ / sqrt(x) if x else 0 for b_, x in zip(beta, theta, strict=True)]
    R = forward([1 - x for x in beta], rho)
    M = forward([(1 - beta[t]) ** 2 / q[t] for t in steps], [x * x for x in rho])
    Q = backward([alpha[t] * a[t] for t in steps], rho)
    rest = [Q[t] - alpha[t] * a[t] for t in steps]
    pi = [(1 - beta[t]) * Q[t] + alpha[t] * b[t] for t in steps]
    up = [alpha[t] * rest[t] * (a[t] + b[t] / 2) + alpha[t] ** 2 * (a[t] + b[t]) * a[t] / 2 for t in steps]
    if nu is not None:
        up = [3 * alpha[t] * rest[t] / 2 + alpha[t] ** 2 if nu[t] else one for t, one in enumerate(up)]
    own = [alpha[t] * rest[t] * b[t] / 2 + alpha[t] ** 2 * (a[t] + b[t]) * b[t] / 2 for t in steps]
    H = backward([R[t] * up[t] for t in steps], rho)
    A = [L * ((1 - beta[t]) * H[t] + own[t]) / q[t] for t in steps]
    n_small, n_any = (1 + sqrt(5)) / (4 * sqrt(2)), (1 + sqrt(2)) / 2
    weights, product = [], 1
    for t in steps:
        product = product if t == 0 and zero else product / theta[t]
        weights.append(product)
    first_eps = sqrt(weights[0]) * e[0]
    share = [0] + [1 - sqrt(theta[t]) * e[t - 1] / e[t] if e[t] else 0 for t in steps[1:]]
    found, sizes, totals = {}, 0, [0] * (3 if root and not zero else 2)
    for count, G, G_squared in parts:
        f, m = [], []
        for t in steps:
            any_eps = 0 if root or (t == 0 and zero) else n_any * min(G, e[t] / sqrt(q[t]))
            f.append(0 if symmetric else pi[t] * max(n_small * G, any_eps) / sqrt(q[t]))
            m.append(G * Q[t] * rho[t] * sqrt(M[t - 1]) / 2 if t else 0)
        S = [log(1 + G_squared * (w - 1) / (v_0 + first_eps**2)) + zero for w in weights]
        if root:
            start = v_0 + first_eps**2
            S_2 = [log((v_0 + G_squared * (w - 1) + w * e[t] ** 2) / start) for t, w in enumerate(weights)]
        else:
            S_2 = [
                2 * log((sqrt(v_0 + G_squared * (w - 1)) + sqrt(w) * e[t]) / (sqrt(v_0) + first_eps))
                for t, w in enumerate(weights)
            ]
        dS, dS_2 = ([one[0], *(now - before for before, now in itertools.pairwise(one))] for one in (S, S_2))

        def paid(coefficients, increments):
            return sum(c * d for c, d in zip(majorant(coefficients), increments, strict=True))

        eps_cost = 0
        for t in steps[1:]:
            before = G_squared if zero else v_0 / weights[t - 1] + G_squared * (1 - 1 / weights[t - 1])
            phi = sqrt(before) / (sqrt(before) + e[t - 1]) if not root else sqrt(before / (before + e[t - 1] ** 2))
            eps_cost += 2 * m[t] * share[t] * phi
        both = [A[t] + f[t] for t in steps]
        everything = [both[t] + m[t] for t in steps]
        choices = [paid(both, dS) + paid(m, dS_2), paid(everything, dS) + eps_cost]
        if root and not zero:
            choices.append(paid(everything, dS_2))
        totals = [so_far + count * one for so_far, one in zip(totals, choices, strict=True)]
        kept = [0 if zero else 1 / w for w in weights]
        moments = [v_0 * kept[t] + G_squared * (1 - kept[t] + (2 * q[t] if symmetric else 0)) for t in steps]
        D = [sqrt(moments[t] + e[t] ** 2) if root else sqrt(moments[t]) + e[t] for t in steps]
        sizes = [(sizes[t] if sizes else 0) + count * D[t] for t in steps]
        found |= {"f": f, "m": m, "dS": dS, "dS_2": dS_2, "choices": choices}
    Pi = sum(pi)
    x = (gap + min(totals)) / Pi
    if nu is not None:
        decaying = [t for t in steps if nu[t]]
        d = sum(part[0] for part in parts)
        x += L * d * box**2 * sum(nu[t] ** 2 * (1 + rest[t] / (2 * alpha[t])) for t in decaying) / Pi
        y = box**2 / 4 * sum(sizes[t] * nu[t] ** 2 / pi[t] for t in decaying) / Pi
        x = (sqrt(x + y) + sqrt(y)) ** 2
    s_1 = sum(pi[t] * sizes[t] for t in steps) / Pi
    return found | {"R": R, "M": M, "Q": Q, "H": H, "A": A, "pi": pi, "Pi": Pi, "s1": s_1, "value": x}
