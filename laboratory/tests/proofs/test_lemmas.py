"""Every lemma of the supplement, on random gradients, random valid schedules, and exact expectations.

The expectations are exact: the noise of each step takes two values, and all 2^T paths are followed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.theorems.zou2019 import Facts, PaperConstants, constants
from laboratory.tests.proofs import lemmas
from laboratory.tests.proofs.paths import Paths, Statement
from tests.theorems import reference
from tests.theorems.problems import problem_of

SMOOTHNESS = 2.0  # of the sum of x^2/(1+x^2): the second derivative lies in [-1/2, 2]


def gradient(x):
    return 2 * x / (1 + x**2) ** 2


def value(x):
    return (x**2 / (1 + x**2)).sum(axis=-1)


@st.composite
def sequences(draw, steps):
    """alpha, beta, theta that satisfy (R1) and (R2) on 1..steps; (R3) holds with whatever C0 that costs."""
    sizes = st.floats(0.01, 1.0)
    theta = np.sort(draw(st.lists(st.floats(0.02, 0.999), min_size=steps, max_size=steps)))
    beta = np.array(draw(st.lists(st.floats(0, 0.95), min_size=steps, max_size=steps)))
    alpha = np.array(draw(st.lists(sizes, min_size=steps, max_size=steps)))
    beta *= min(1.0, 0.999 * math.sqrt(theta[-1]) / max(beta.max(), 1e-300))  # theta > beta^2
    return alpha, beta, theta


@st.composite
def ensembles(draw, max_steps=6, max_dimension=3):
    """All paths of Generic Adam on the sum of x^2/(1+x^2) with two-valued noise of mean zero."""
    steps = draw(st.integers(1, max_steps))
    dimension = draw(st.integers(1, max_dimension))
    alpha, beta, theta = draw(sequences(steps))
    epsilon = draw(st.sampled_from([1e-8, 1e-3, 1.0]))
    start = np.array(draw(st.lists(st.floats(-3, 3), min_size=dimension, max_size=dimension)))
    up = draw(st.floats(0.05, 0.95))
    size = draw(st.sampled_from([0.0, 0.3, 5.0]))
    outcomes = size * np.array([1 / up, -1 / (1 - up)])
    chances = np.array([up, 1 - up])
    paths = follow_every_path(start, alpha, beta, theta, epsilon, outcomes, chances)
    beta_bound = float(beta.max())
    theta_prime = draw(st.floats(0.001, 0.999)) * (theta[-1] - beta_bound**2) + beta_bound**2
    problem = problem_of(
        smoothness=SMOOTHNESS,
        gradient_bound=max(paths.second_moment, 1e-12),
        dimension=dimension,
        gap=float(value(start)),
        epsilon=epsilon,
    )
    known = known_constants(problem, alpha, beta, theta, theta_prime)
    return paths, problem, known


def known_constants(problem, alpha, beta, theta, theta_prime) -> PaperConstants:
    chi = alpha / np.sqrt(1 - theta)
    facts = Facts(
        beta=float(beta.max()),
        theta_first=float(theta[0]),
        chi_first=float(chi[0]),
        C0=reference.almost_non_increasing(chi),
    )
    return constants(problem, facts, theta_prime, reference.log_product_below(theta, theta_prime))


def follow_every_path(start, alpha, beta, theta, epsilon, outcomes, chances) -> Paths:
    """Run Algorithm 1 on every sequence of outcomes, written out here independently of `Paths`."""
    steps, dimension = len(alpha), len(start)
    choices = np.array(list(itertools.product(range(len(outcomes)), repeat=steps)))
    x = np.repeat(start[None, :], len(choices), axis=0)
    m, v = np.zeros_like(x), np.full_like(x, epsilon)
    shape = (len(choices), steps, dimension)
    gradients, exact, sigma = np.empty(shape), np.empty(shape), np.empty(shape)
    for t in range(steps):
        slope = gradient(x)
        noise = outcomes[choices[:, t]][:, None]
        exact[:, t], gradients[:, t] = slope, slope + noise
        sigma[:, t] = np.sqrt(sum(p * (slope + o) ** 2 for p, o in zip(chances, outcomes, strict=True)))
        v = theta[t] * v + (1 - theta[t]) * gradients[:, t] ** 2
        m = beta[t] * m + (1 - beta[t]) * gradients[:, t]
        x -= alpha[t] * m / np.sqrt(v)
    probability = chances[choices].prod(axis=1)
    return Paths(alpha, beta, theta, gradients, exact, sigma, probability, epsilon)


@given(st.floats(1e-6, 1e6), st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_logarithmic_sum(start, terms):
    assert lemmas.logarithmic_sum(start, np.array(terms)).holds()


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=50))
def test_summation_by_parts(pairs):
    factors, terms = np.array(pairs).T
    statement = lemmas.summation_by_parts(factors, terms)
    size = np.abs(factors).sum() * np.abs(terms).sum()
    assert abs(statement.left - statement.right) <= 1e-12 * size + np.finfo(float).tiny  # products below it underflow


@given(ensembles())
@settings(max_examples=150)
def test_lemmas_on_the_sequences(ensemble):
    paths, _, known = ensemble
    assert lemmas.grows_at_most(paths.chi, known.C0).holds()
    assert lemmas.grows_at_most(paths.alpha, known.C0).holds()
    assert lemmas.theta_products(paths.theta, known).holds()


@given(ensembles())
@settings(max_examples=150)
def test_lemmas_on_every_path(ensemble):
    paths, _, known = ensemble
    assert lemmas.momentum_squared(paths, known).holds()
    assert lemmas.step_decomposition(paths).holds(1e-7)
    assert lemmas.sum_of_squared_steps(paths, known).holds()
    assert lemmas.sum_of_omega_on_a_path(paths).holds()


@given(ensembles())
@settings(max_examples=200)
def test_lemmas_in_expectation(ensemble):
    paths, problem, known = ensemble
    assert lemmas.progress_recursion(paths, problem, known).holds()
    assert lemmas.sum_of_progress(paths, problem, known).holds()
    assert lemmas.sum_of_omega(paths, problem).holds()
    assert lemmas.weighted_sum_of_omega(paths, problem, known).holds()
    assert lemmas.random_iterate(paths, problem, known).holds()
    assert lemmas.theorem_1(paths, known).holds()


@given(ensembles())
@settings(max_examples=50)
def test_the_probabilities_and_the_conditional_moments_are_right(ensemble):
    paths, _, _ = ensemble
    assert paths.probability.sum() == pytest.approx(1)
    # Unbiased (A3) and sigma: averages over the whole space, so over every past too.
    assert paths.expectation(paths.gradients) == pytest.approx(paths.expectation(paths.exact), abs=1e-9)
    assert paths.expectation(paths.gradients**2) == pytest.approx(paths.expectation(paths.sigma**2), rel=1e-9)


def test_the_printed_minus_sign_is_a_misprint():
    """Errata: with the minus sign of the paper's last display, the lemma before the one on tau is false."""
    steps = 400
    alpha, beta, theta = np.full(steps, 0.1), np.zeros(steps), np.full(steps, 0.5)
    ones = np.ones((1, steps, 1))
    paths = Paths(alpha, beta, theta, ones, ones, ones, np.ones(1), 1.0)
    problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1, epsilon=1.0)
    known = known_constants(problem, alpha, beta, theta, 0.4)
    right = lemmas.weighted_sum_of_omega(paths, problem, known)
    printed = paths.chi[0] * problem.start_logarithm - np.sum(alpha * np.sqrt(1 - theta)) / theta[0]
    assert right.holds()
    assert printed < 0 < right.left


def test_a_false_statement_is_seen():
    chi = np.array([1.0, 2.0, 0.5, 1.5])
    assert reference.almost_non_increasing(chi) == pytest.approx(3.0)
    assert lemmas.grows_at_most(chi, 3.0).holds()
    assert not lemmas.grows_at_most(chi, 2.9).holds()
    equal = Statement(np.array(1.0), np.array(1.1), equal=True)
    assert not equal.holds()
