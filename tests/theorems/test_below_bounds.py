"""Measured is at most the bound: exact expectations over every path, four smooth functions, random sequences.

The noise of a step takes two values, all 2^T paths are followed, and X_w is the finite sum that it is: no
sampling, so that a bound violated by a hair would be seen.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.methods import HeavyBall
from generic_adam.theorems.amsgrad import amsgrad_bound, delayed_bound
from generic_adam.theorems.clipping import biased_bound, full_batch_bound
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import problem_of


@dataclass(frozen=True)
class Smooth:
    """A function of a vector (last axis), its gradient, its smoothness, its infimum 0."""

    value: object
    gradient: object
    smoothness: float


FUNCTIONS = {
    "wells": Smooth(lambda x: (x**2 / (1 + x**2)).sum(-1), lambda x: 2 * x / (1 + x**2) ** 2, 2.0),
    "cosines": Smooth(lambda x: (1 - np.cos(x)).sum(-1), np.sin, 1.0),
    "log cosh": Smooth(lambda x: np.log(np.cosh(x)).sum(-1), np.tanh, 1.0),
    # Not a sum over coordinates: the Hessian of log(1 + |x|^2) has norm at most 2.
    "logarithm": Smooth(lambda x: np.log1p((x**2).sum(-1)), lambda x: 2 * x / (1 + (x**2).sum(-1, keepdims=True)), 2.0),
}


@dataclass(frozen=True)
class Setting:
    """Sequences, a start and a noise of two values; v_0 and eps say which divisor it is."""

    function: Smooth
    alpha: np.ndarray
    beta: np.ndarray
    theta: np.ndarray
    eps: np.ndarray
    initial_v: float
    start: np.ndarray
    outcomes: np.ndarray
    chances: np.ndarray
    noisy: np.ndarray


def draw_setting(name: str, seed: int, with_eps: bool, steps: int) -> Setting:
    rng = np.random.default_rng(seed)
    alpha = rng.random(steps) * 10.0 ** rng.integers(-2, 1) * (rng.random(steps) < 0.8)
    alpha[rng.integers(steps)] = 0.3
    beta = rng.random(steps) * rng.choice([0.0, 0.6, 0.95])
    theta = 1 - np.exp(-rng.random(steps) * 4) * 0.9
    eps = np.zeros(steps)
    if with_eps:
        eps[0] = 10.0 ** rng.integers(-3, 1)
        for t in range(1, steps):
            eps[t] = eps[t - 1] * np.sqrt(theta[t]) * (1 + rng.random())
        theta[0] *= rng.random() < 0.7
    up = rng.uniform(0.1, 0.9)
    size = rng.choice([0.0, 0.2, 2.0])
    initial_v = 0.0 if with_eps and rng.random() < 0.5 else 10.0 ** rng.integers(-6, 4 if with_eps else 0)
    return Setting(
        FUNCTIONS[name], alpha, beta, theta, eps, initial_v,
        rng.uniform(-3, 3, 2), size * np.array([1 / up, -1 / (1 - up)]), np.array([up, 1 - up]),
        np.array([[1.0, 1.0], [1.0, 0.0]][rng.integers(2)]),
    )  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """E of (grad_k f)^2/Dhat_k at every step, and what the assumptions hold with on these paths."""

    terms: np.ndarray
    certain: float
    problem: Constants


def follow(x: Setting, step, hat, clip=math.inf) -> Measured:
    """Follow every path. `step(t, state, g)` moves the state, `hat(t, state, sigma)` is the divisor-hat.

    Clipped gradients move the state and make sigma; the problem is that of the gradients before.
    """

    def clipped(g):
        return g * np.minimum(1, clip / np.maximum(np.linalg.norm(g, axis=-1, keepdims=True), 1e-300))

    steps = len(x.alpha)
    choices = np.array(list(itertools.product(range(2), repeat=steps)))
    probability = x.chances[choices].prod(axis=1)
    shape = (len(choices), 2)
    state = {
        "x": np.repeat(x.start[None], len(choices), axis=0),
        "m": np.zeros(shape),
        "buffer": np.zeros(shape),
    }
    state |= {"v": np.full(shape, x.initial_v), "largest": np.full(shape, x.initial_v)}
    terms, largest_sigma, certain, reached = [], np.zeros(2), np.zeros(2), np.abs(x.start).max()
    for t in range(steps):
        slope = x.function.gradient(state["x"])
        outcomes = [slope + outcome * x.noisy for outcome in x.outcomes]
        raw = np.sqrt(sum(p * g**2 for p, g in zip(x.chances, outcomes, strict=True)))
        sigma = np.sqrt(sum(p * clipped(g) ** 2 for p, g in zip(x.chances, outcomes, strict=True)))
        largest_sigma = np.maximum(largest_sigma, raw.max(axis=0))
        certain = np.maximum(certain, np.max(np.abs(outcomes), axis=(0, 1)))
        terms.append(probability @ (slope**2 / hat(t, state, sigma)).sum(axis=1))
        step(t, state, clipped(slope + x.outcomes[choices[:, t]][:, None] * x.noisy))
        reached = max(reached, np.abs(state["x"]).max())
    gap = float(x.function.value(x.start))
    problem = problem_of(
        x.function.smoothness, list(np.maximum(largest_sigma, 1e-9)), 2, gap, x.initial_v or 1e-8,
        weights_bound=reached, gradient_sup=list(np.maximum(certain, 1e-9)),
    )  # fmt: skip
    return Measured(np.array(terms), float(certain.max()), problem)


def moments(x: Setting, t, state, g):
    state["m"] = x.beta[t] * state["m"] + (1 - x.beta[t]) * g
    state["v"] = x.theta[t] * state["v"] + (1 - x.theta[t]) * g**2
    state["largest"] = np.maximum(state["largest"], state["v"])


def hat_v(x: Setting, t, state, sigma):
    return x.theta[t] * state["v"] + (1 - x.theta[t]) * sigma**2


def weights(x: Setting, keep, own):
    """(1 - beta_i) Q_i with Q_i = own_i + keep_{i+1} Q_{i+1}."""
    Q, result = 0.0, np.empty(len(own))
    for i in reversed(range(len(own))):
        Q = own[i] + (keep[i + 1] * Q if i + 1 < len(own) else 0.0)
        result[i] = Q
    return result


def rho(x: Setting):
    return np.where(x.theta > 0, x.beta / np.sqrt(np.where(x.theta > 0, x.theta, 1)), 0.0)


def average(terms, pi):
    return float((terms * pi).sum() / pi.sum())


names = st.sampled_from(sorted(FUNCTIONS))
cases = st.tuples(names, st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 7))
with_eps = st.tuples(names, st.integers(0, 2**32 - 1), st.just(True), st.integers(1, 7))


def check(found: float, bound: float):
    assert found <= bound * (1 + 1e-9)


@given(cases, st.booleans(), st.booleans())
@settings(max_examples=150)
def test_theorems_w_and_e(case, under_root, look_ahead):
    x = draw_setting(*case)
    a, b = (0.6, 0.5) if look_ahead else (1.0, 0.0)

    def divide(v, t):
        return np.sqrt(v + x.eps[t] ** 2) if under_root else np.sqrt(v) + x.eps[t]

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = state["x"] - x.alpha[t] * (a * state["m"] + b * g) / divide(state["v"], t)

    measured = follow(x, step, lambda t, state, sigma: divide(hat_v(x, t, state, sigma), t))
    sequences = Sequences.of(
        x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v, momentum_weight=a, gradient_weight=b,
        under_root=under_root,
    )  # fmt: skip
    total = replace(measured.problem, gradient_bound=measured.problem.total_gradient_bound)
    for problem in (measured.problem, total):
        bound = weighted_bound(sequences, problem)
        Q = weights(x, rho(x), a * x.alpha)
        pi = (1 - x.beta) * Q + b * x.alpha
        check(average(measured.terms, pi), bound.value)


@given(cases)
@settings(max_examples=80)
def test_a_known_variance(case):
    """W.3 with the standard deviation itself in place of G_k."""
    x = draw_setting(*case)

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = state["x"] - x.alpha[t] * state["m"] / (np.sqrt(state["v"]) + x.eps[t])

    measured = follow(x, step, lambda t, state, sigma: np.sqrt(hat_v(x, t, state, sigma)) + x.eps[t])
    problem = replace(measured.problem, variance=variances(x))
    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v)
    bound = weighted_bound(sequences, problem)
    assert bound.value <= weighted_bound(sequences, measured.problem).value * (1 + 1e-9)
    check(average(measured.terms, (1 - x.beta) * weights(x, rho(x), x.alpha)), bound.value)


def variances(x: Setting):
    return (float(x.chances @ x.outcomes**2) * x.noisy).tolist()


@given(cases, st.floats(0, 0.95), st.booleans())
@settings(max_examples=80)
def test_theorem_h(case, factor, rate_inside):
    x = draw_setting(*case)

    def step(t, state, g):
        moments(x, t, state, g)
        inside, outside = (x.alpha[t], 1.0) if rate_inside else (1.0, x.alpha[t])
        state["buffer"] = factor * state["buffer"] + inside * g / (np.sqrt(state["v"]) + x.eps[t])
        state["x"] = state["x"] - outside * state["buffer"]

    measured = follow(x, step, lambda t, state, sigma: np.sqrt(hat_v(x, t, state, sigma)) + x.eps[t])
    ball = HeavyBall(Fraction(factor), rate_inside)
    sequences = Sequences.of(x.alpha, 0.0, x.theta, eps=x.eps, initial_v=x.initial_v, heavy_ball=ball)
    bound = weighted_bound(sequences, measured.problem)
    own = np.ones(len(x.alpha)) if rate_inside else x.alpha
    pi = weights(x, np.full(len(own), factor), own) * (x.alpha if rate_inside else 1.0)
    check(average(measured.terms, pi), bound.value)


@given(with_eps, st.floats(0, 0.3))
@settings(max_examples=80)
def test_theorem_d(case, decay):
    x = draw_setting(*case)
    nu = decay * x.alpha

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = (1 - nu[t]) * state["x"] - x.alpha[t] * state["m"] / (np.sqrt(state["v"]) + x.eps[t])

    measured = follow(x, step, lambda t, state, sigma: np.sqrt(hat_v(x, t, state, sigma)) + x.eps[t])
    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v, decay=nu)
    bound = weighted_bound(sequences, measured.problem)
    check(average(measured.terms, (1 - x.beta) * weights(x, rho(x), x.alpha)), bound.value)


@given(with_eps)
@settings(max_examples=80)
def test_theorems_m(case):
    x = draw_setting(*case)
    x = replace(x, eps=np.maximum.accumulate(x.eps))

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = state["x"] - x.alpha[t] * state["m"] / (np.sqrt(state["largest"]) + x.eps[t])

    def hat_before(t, state, sigma):
        return np.sqrt(state["largest"]) + x.eps[max(t - 1, 0)]

    def certain(found):
        return replace(found.problem, gradient_bound=found.problem.gradient_sup)

    def hat_of_maximum(t, state, sigma):
        return np.sqrt(np.maximum(state["largest"], hat_v(x, t, state, sigma))) + x.eps[t]

    form = {"initial_v": x.initial_v, "running_maximum": True}
    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, **form)
    pi = (1 - x.beta) * weights(x, x.beta, x.alpha)
    measured = follow(x, step, hat_before)
    check(average(measured.terms, pi), amsgrad_bound(sequences, measured.problem).value)
    measured = follow(x, step, hat_of_maximum)
    check(average(measured.terms, pi), weighted_bound(sequences, measured.problem).value)
    plain = follow(x, step, lambda *_: np.ones(2))
    for problem in (measured.problem, certain(measured)):
        check(average(plain.terms, pi), amsgrad_bound(sequences, problem).l2)
        check(average(plain.terms, pi), weighted_bound(sequences, problem).l2)


@given(with_eps, st.sampled_from([1 / 8, 1 / 4, 0.4]))
@settings(max_examples=60)
def test_padam(case, power):
    x = draw_setting(*case)
    x = replace(x, eps=np.full(len(x.alpha), x.eps[0]))

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = state["x"] - x.alpha[t] * state["m"] / (state["largest"] ** power + x.eps[t])

    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v, power=power)
    measured = follow(x, step, lambda t, state, sigma: state["largest"] ** power + x.eps[t])
    bound = amsgrad_bound(sequences, measured.problem)
    pi = (1 - x.beta) * weights(x, x.beta, x.alpha)
    check(average(measured.terms, pi), bound.value)
    check(average(follow(x, step, lambda *_: np.ones(2)).terms, pi), bound.l2)


@given(cases, st.floats(0.01, 3), st.booleans(), st.booleans())
@settings(max_examples=120)
def test_clipped_gradients(case, threshold, exact, known):
    """C2 where the gradients are exact, C3 with their bias elsewhere, with and without the variance (W.3)."""
    x = draw_setting(*case)
    x = replace(x, outcomes=0 * x.outcomes) if exact else x

    def step(t, state, g):
        moments(x, t, state, g)
        state["x"] = state["x"] - x.alpha[t] * state["m"] / (np.sqrt(state["v"]) + x.eps[t])

    def hat(t, state, sigma):
        return np.sqrt(hat_v(x, t, state, sigma)) + x.eps[t]

    measured = follow(x, step, hat, threshold)
    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v)
    pi = (1 - x.beta) * weights(x, rho(x), x.alpha)
    total = replace(measured.problem, gradient_bound=measured.problem.total_gradient_bound)
    for problem in (measured.problem, total):
        seen = average(measured.terms, pi)
        if exact:
            check(seen, full_batch_bound(sequences, problem, threshold=threshold).value)
        else:
            spread = replace(problem, variance=variances(x)) if known else problem
            least = min(1.0, threshold / np.hypot(*measured.problem.gradient_sup))
            for factor in (None, least):
                check(seen, biased_bound(sequences, spread, threshold, least_factor=factor).value)


@given(with_eps)
@settings(max_examples=80)
def test_theorem_o(case):
    x = draw_setting(*case)
    x = replace(x, eps=np.full(len(x.alpha), x.eps[0]))

    def divide(t, state, sigma=None):
        return np.maximum(np.sqrt(state["v"]), x.eps[t])

    def step(t, state, g):
        state["m"] = x.beta[t] * state["m"] + (1 - x.beta[t]) * g / divide(t, state)
        state["v"] = x.theta[t] * state["v"] + (1 - x.theta[t]) * g**2
        state["x"] = state["x"] - x.alpha[t] * state["m"]

    measured = follow(x, step, divide)
    sequences = Sequences.of(x.alpha, x.beta, x.theta, eps=x.eps, initial_v=x.initial_v)
    bound = delayed_bound(sequences, measured.problem)
    check(average(measured.terms, (1 - x.beta) * weights(x, x.beta, x.alpha)), bound.value)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_gradients_and_the_smoothness_are_right(name):
    function = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-3, 3, (2, 2000, 2))
    for k in range(2):
        nudge = np.zeros(2)
        nudge[k] = 1e-6
        slope = (function.value(x + nudge) - function.value(x - nudge)) / 2e-6
        assert slope == pytest.approx(function.gradient(x)[:, k], abs=1e-8)
    apart = np.linalg.norm(function.gradient(x) - function.gradient(y), axis=1) / np.linalg.norm(x - y, axis=1)
    assert 0.5 * function.smoothness < apart.max() <= function.smoothness * (1 + 1e-9)
    assert function.value(np.zeros(2)) == 0
    assert math.isclose(float(function.value(x).min()), 0, abs_tol=0.1)


STEPS = 4000
TIMES = np.arange(1.0, STEPS + 1)
SAMPLED = {
    # alpha, beta, theta; X_w measured over 400 runs and bounded, as the page of Theorem W lists them.
    "AdaEMA": (0.3 / np.sqrt(TIMES), 0.9, 1 - 1 / np.maximum(TIMES, 2), 0.17475, 7.9590896),
    "RMSProp": (0.1 / np.sqrt(TIMES), 0.0, 1 - 1 / (TIMES + 1), 0.33237, 1.1406712),
    "cosine": (0.005 * (1 + np.cos(np.pi * (TIMES - 1) / 3999)), 0.9, np.full(STEPS, 0.999), 0.33353, 11.456414),
    "warm-up": (
        0.01 * np.where(TIMES <= 400, TIMES / 400, (STEPS - TIMES) / 3600),
        *(0.9, np.full(STEPS, 0.9999), 0.59988, 81.659329),
    ),
    "(R3) violated": (0.05 * TIMES**-0.25, 0.9, 1 - 0.5 * TIMES**-0.9, 0.15953, 11.658344),
    "harmonic": (0.3 / TIMES, 0.9, 1 - 1 / (TIMES + 1), 0.63685, 11.507649),
    "constant": (np.full(STEPS, 0.003), 0.9, np.full(STEPS, 0.999), 0.36382, 3.0654321),
    "no momentum": (np.full(STEPS, 0.003), 0.0, np.full(STEPS, 0.99), 0.34726, 0.69644011),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_four_thousand_steps_on_wells(name):
    """X_w on sum x^2/(1 + x^2), d = 5, x_1 = 2, noise +-1/2: what was measured, and what bounds it."""
    alpha, beta, theta, measured, bound = SAMPLED[name]
    rng, shape, v_0 = np.random.default_rng(1), (200, 5), 1e-8
    x, m, v = np.full(shape, 2.0), np.zeros(shape), np.full(shape, v_0)
    terms = np.empty(STEPS)
    for t in range(STEPS):
        slope = 2 * x / (1 + x**2) ** 2
        hat = theta[t] * v + (1 - theta[t]) * (slope**2 + 0.25)
        terms[t] = (slope**2 / np.sqrt(hat)).sum(axis=1).mean()
        g = slope + rng.choice([-0.5, 0.5], shape)
        m, v = beta * m + (1 - beta) * g, theta[t] * v + (1 - theta[t]) * g**2
        x = x - alpha[t] * m / np.sqrt(v)
    pi = np.empty(STEPS)
    Q = 0.0
    for t in reversed(range(STEPS)):
        Q = alpha[t] + (beta / math.sqrt(theta[t + 1]) * Q if t + 1 < STEPS else 0.0)
        pi[t] = (1 - beta) * Q
    problem = problem_of(2, [math.sqrt(27 / 64 + 1 / 4)] * 5, 5, 4.0, v_0)
    found = weighted_bound(Sequences.of(alpha, beta, theta, initial_v=v_0), problem)
    assert found.value == pytest.approx(bound, rel=1e-7)
    assert found.weight == pytest.approx(pi.sum(), rel=1e-9)
    assert pi @ terms / pi.sum() == pytest.approx(measured, rel=0.04)


def test_the_bounds_of_e_n_and_h_on_wells():
    """As their pages list them, for the same problem and number of steps."""
    problem = problem_of(2, [math.sqrt(27 / 64 + 1 / 4)] * 5, 5, 4.0)
    root, times = np.sqrt(-np.expm1(TIMES * math.log(0.999))), np.arange(1.0, STEPS + 2)
    mu = 0.9 * (1 - 0.5 * 0.96 ** (0.004 * times))
    product = np.cumprod(mu)
    rate = root / (1 - 0.9**TIMES)
    nadam = {
        "momentum_weight": mu[1:] / (1 - product[1:]),
        "gradient_weight": (1 - mu[:-1]) / (1 - product[:-1]),
    }
    listed = [
        (Sequences.of(0.003 * rate, 0.9, 0.999, eps=1e-8 * root), 7.1905949),
        (Sequences.of(SAMPLED["cosine"][0] * rate, 0.9, 0.999, eps=1e-8 * root), 18.021554),
        (Sequences.of(0.003, 0.9, 0.999, eps=1e-3, steps=STEPS), 2.4931188),
        (Sequences.of(0.003 * root, 0.9, 0.999, eps=1e-8 * root, **nadam), 5.319039),
    ]
    for sequences, value in listed:
        assert weighted_bound(sequences, problem).value == pytest.approx(value, rel=1e-7)
    ball = HeavyBall(Fraction(9, 10))
    rmsprop = Sequences.of(1e-3, 0.0, 0.99, eps=1e-8, steps=STEPS, heavy_ball=ball)
    assert weighted_bound(rmsprop, problem).value == pytest.approx(2.3696562, rel=1e-7)
