"""Every pointwise inequality of W, E, N and M on random sequences, in doubles and at forty digits."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laboratory.tests.proofs import lemmas
from laboratory.tests.proofs.paths import Paths

VARIANTS = ("w", "e", "root", "maximum")


def walk_of(beta, theta, eps, gradients, exact, sigma, initial_v, **form) -> Paths:
    """One path, one coordinate."""
    one = [values[None, :, None] for values in (gradients, exact, sigma)]
    return Paths(0 * beta, beta, theta, *one, np.ones(1), initial_v, eps, **form)


def make_walk(variant: str, seed: int, steps: int, first_theta_zero: bool) -> Paths:
    """Random sequences within the hypotheses of the variant; zeros and spikes among the gradients."""
    rng = np.random.default_rng(seed)
    beta = rng.random(steps) * rng.choice([0.0, 0.5, 0.99])
    theta = 1 - np.exp(-rng.random(steps) * 6) * 0.95
    eps = np.empty(steps)
    eps[0] = 10.0 ** rng.integers(-6, 1)
    for t in range(1, steps):
        lowest = eps[t - 1] if variant == "maximum" else np.sqrt(theta[t]) * eps[t - 1]
        eps[t] = lowest * (1 + 5.0 * rng.random() * rng.choice([0.0, 1.0]))  # nothing is asked from above
    initial_v = 0.0
    if variant == "w":
        eps[:], initial_v = 0.0, 10.0 ** rng.integers(-8, 1)
    elif rng.random() < 0.3:
        initial_v = rng.random()
    if first_theta_zero and variant != "w":
        theta[0], initial_v = 0.0, 0.0
    exact = rng.standard_normal(steps) * 10.0 ** rng.integers(-2, 2, steps)
    noise = rng.standard_normal(steps) * 10.0 ** rng.integers(-3, 3, steps) * (rng.random(steps) < 0.8)
    gradients = (exact + noise) * (rng.random(steps) < 0.9)
    sigma = np.sqrt(exact**2 + (rng.random(steps) * 10.0 ** rng.integers(-3, 3, steps)) ** 2)
    if rng.random() < 0.2:
        sigma = np.abs(exact)
    form = {"under_root": variant == "root", "running_maximum": variant == "maximum"}
    return walk_of(beta, theta, eps, gradients, exact, sigma, initial_v, **form)


walks = st.builds(make_walk, st.sampled_from(VARIANTS), st.integers(0, 2**32 - 1), st.integers(1, 25), st.booleans())


def exactly(walk: Paths) -> Paths:
    """The same numbers at forty digits; what rounding carried out of a hypothesis is put back into it."""
    beta, theta, eps, gradients, exact, sigma = (
        np.array([mpmath.mpf(float(x)) for x in values.ravel()], dtype=object)
        for values in (walk.beta, walk.theta, walk.eps, walk.gradients, walk.exact, walk.sigma)
    )
    for t in range(1, len(eps)):
        lowest = eps[t - 1] if walk.running_maximum else mpmath.sqrt(theta[t]) * eps[t - 1]
        eps[t] = max(eps[t], lowest)
    form = {"under_root": walk.under_root, "running_maximum": walk.running_maximum}
    start = mpmath.mpf(walk.initial_v)
    return walk_of(beta, theta, eps, gradients, exact, np.maximum(sigma, abs(exact)), start, **form)


def statements(walk: Paths, number=float):
    """(name, statement) of everything that holds on a walk of its variant."""
    yield "momentum", lemmas.momentum_bound(walk)
    yield "direction", lemmas.direction_bound(walk)
    yield "decomposition", lemmas.decomposition(walk)
    yield "variance", lemmas.variance_bound(walk)
    yield "omega", lemmas.exponential_of_sum(walk)
    yield "averaged descent", lemmas.averaged_descent(walk)
    sizes = abs(walk.gradients)
    yield "clipping", lemmas.clipping_bias(sizes, number(0.3) * sizes.max() + number(1e-6))
    yield "box", lemmas.corrected_products(walk.beta[0], walk.theta[-1], len(walk.beta))
    terms, values = walk.omegas[0, :, 0], sizes[0, :, 0] + walk.sigma[0, :, 0]
    yield "majorant", lemmas.majorised_sum(values, terms, np.add.accumulate(terms + walk.q[:, 0]))
    quotient = walk.gradients / walk.divisor
    for index, one in enumerate(lemmas.nesterov_step(walk.u, quotient, walk.sigma, sizes)):
        yield f"nesterov {index}", one
    if walk.running_maximum:
        yield "identity", lemmas.monotone_identity(walk)
        yield "jumps", lemmas.jumps_telescope(walk, 1 + abs(walk.gradients))
        flat = replace(walk, eps=walk.eps[0] + 0 * walk.eps)
        largest = max([*sizes.ravel(), walk.initial_v**0.5])
        for power in (0.125, 0.25, 0.5):
            yield f"padam {power}", lemmas.padam_bound(flat, number(power), largest)


@given(walks)
@settings(max_examples=500)
def test_in_doubles(walk):
    for name, statement in statements(walk):
        assert statement.holds(1e-9), name


@given(walks)
@settings(max_examples=40)
def test_at_forty_digits(walk):
    with mpmath.workdps(40):
        for name, statement in statements(exactly(walk), mpmath.mpf):
            assert statement.holds(mpmath.mpf("1e-35")), name


def test_an_eps_that_falls_faster_than_the_hypothesis_breaks_the_logarithm():
    """The test above could fail: with e_t < sqrt(theta_t) e_{t-1} the inequality is false."""
    broken = 0
    for seed in range(300):
        walk = make_walk("e", seed, 6, first_theta_zero=False)
        faster = replace(walk, eps=walk.eps * 0.1 ** np.arange(6.0))
        broken += not lemmas.exponential_of_sum(faster).holds(1e-6)
    assert broken > 0


def test_the_variance_inequality_is_nearly_attained():
    """||g| - sigma| cannot be replaced by nine tenths of it."""
    worst = 0.0
    for seed in range(400):
        walk = make_walk("w", seed, 20, first_theta_zero=False)
        statement = lemmas.variance_bound(walk)
        positive = statement.right > 1e-9 * statement.scale
        worst = max(worst, float(np.max(statement.left[positive] / statement.right[positive], initial=0.0)))
    assert 0.9 < worst <= 1 + 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_cauchy_schwarz_is_attained(variant):
    """|m| = sqrt(M v) for g_t = (theta/beta)^t: no smaller M would do."""
    steps, beta, theta = 60, 0.5, 0.9
    g = (theta / beta) ** np.arange(1.0, steps + 1)
    constant = np.ones(steps)
    form = {"under_root": variant == "root", "running_maximum": variant == "maximum"}
    walk = walk_of(beta * constant, theta * constant, 1e-3 * constant, g, g, g, 0.0, **form)
    statement = lemmas.momentum_bound(walk)
    assert statement.left[0, -1, 0] == pytest.approx(statement.right[0, -1, 0], rel=1e-9)
