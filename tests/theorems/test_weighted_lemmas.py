"""Every pointwise inequality of W, E, N and M on random sequences, in doubles and at forty digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.theorems import weighted_lemmas as lemmas
from generic_adam.theorems.weighted_lemmas import Walk

VARIANTS = ("w", "e", "root", "maximum")


def make_walk(variant: str, seed: int, steps: int, first_theta_zero: bool) -> Walk:
    """Random sequences within the hypotheses of the variant; zeros and spikes among the gradients."""
    rng = np.random.default_rng(seed)
    beta = rng.random(steps) * rng.choice([0.0, 0.5, 0.99])
    theta = 1 - np.exp(-rng.random(steps) * 6) * 0.95
    eps = np.empty(steps)
    eps[0] = 10.0 ** rng.integers(-6, 1)
    for t in range(1, steps):
        lowest = eps[t - 1] if variant == "maximum" else np.sqrt(theta[t]) * eps[t - 1]
        most = 5.0 if variant == "root" else 1.0  # under the root nothing is asked from above
        eps[t] = lowest * (1 + most * rng.random() * rng.choice([0.0, 1.0]))
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
    return Walk(
        beta, theta, eps, gradients, exact, sigma, initial_v,
        under_root=variant == "root", running_maximum=variant == "maximum",
    )  # fmt: skip


walks = st.builds(
    make_walk, st.sampled_from(VARIANTS), st.integers(0, 2**32 - 1), st.integers(1, 25), st.booleans()
)


def exactly(walk: Walk) -> Walk:
    """The same numbers at forty digits; what rounding carried out of a hypothesis is put back into it."""
    beta, theta, eps, gradients, exact, sigma = (
        np.array([mpmath.mpf(float(x)) for x in values], dtype=object)
        for values in (walk.beta, walk.theta, walk.eps, walk.gradients, walk.exact, walk.sigma)
    )
    for t in range(1, len(eps)):
        lowest = eps[t - 1] if walk.running_maximum else mpmath.sqrt(theta[t]) * eps[t - 1]
        eps[t] = max(eps[t], lowest)
        if not walk.under_root:
            eps[t] = min(eps[t], 2 * lowest)
    sigma = np.maximum(sigma, abs(exact))
    start = mpmath.mpf(walk.initial_v)
    return Walk(beta, theta, eps, gradients, exact, sigma, start, walk.under_root, walk.running_maximum)


def statements(walk: Walk, number=float):
    """(name, statement) of everything that holds on a walk of its variant."""
    yield "momentum", lemmas.momentum_bound(walk)
    yield "direction", lemmas.direction_bound(walk)
    yield "decomposition", lemmas.decomposition(walk)
    yield "variance", lemmas.variance_decomposition(walk)
    yield "omega", lemmas.exponential_of_sum(walk)
    if walk.eps[0] > 0:
        yield "share", lemmas.share_bound(walk)
        yield "young", lemmas.young_for_the_share(walk, number(0.1), max(walk.sigma))
    if walk.running_maximum:
        yield "identity", lemmas.monotone_identity(walk)
        yield "jumps", lemmas.jumps_telescope(walk, 1 + abs(walk.gradients))
        flat = Walk(walk.beta, walk.theta, walk.eps[0] + 0 * walk.eps, walk.gradients, walk.exact, walk.sigma,
                    walk.initial_v, running_maximum=True)  # fmt: skip
        largest = max([*abs(walk.gradients), walk.initial_v**0.5])
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


def test_a_growth_of_eps_beyond_the_hypothesis_breaks_the_decomposition():
    """The test above could fail: with e_t > 2 sqrt(theta_t) e_{t-1} the inequality is false."""
    broken = 0
    for seed in range(300):
        walk = make_walk("e", seed, 6, first_theta_zero=False)
        eps = walk.eps * np.array([1.0, 1e4, 1e8, 1e12, 1e16, 1e20])
        faster = Walk(walk.beta, walk.theta, eps, walk.gradients, walk.exact, walk.sigma, walk.initial_v)
        broken += not lemmas.decomposition(faster).holds(1e-6)
    assert broken > 0


def test_the_variance_inequality_is_nearly_attained():
    """|g - grad| + nu cannot be replaced by half of it."""
    worst = 0.0
    for seed in range(400):
        walk = make_walk("w", seed, 20, first_theta_zero=False)
        statement = lemmas.variance_decomposition(walk)
        positive = statement.right > 1e-12 * statement.scale
        worst = max(worst, float(np.max(statement.left[positive] / statement.right[positive], initial=0.0)))
    assert 0.9 < worst <= 1 + 1e-9


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_majorised_sum(steps, seed):
    rng = np.random.default_rng(seed)
    values, terms = rng.random(steps), rng.random(steps) * (rng.random(steps) < 0.7)
    bounds = np.maximum.accumulate(np.cumsum(terms) + rng.random(steps) * 0.1)
    assert lemmas.majorised_sum(values, terms, bounds).holds(1e-12)


@given(st.integers(0, 2**32 - 1))
def test_nesterov_step(seed):
    rng = np.random.default_rng(seed)
    u, quotient = rng.standard_normal((2, 50))
    a, b = rng.random((2, 50)) * 2
    first, second = lemmas.nesterov_step(u, quotient, a, b)
    assert first.holds(1e-12)
    assert second.holds(1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_cauchy_schwarz_is_attained(variant):
    """|m| = sqrt(M v) for g_t = (theta/beta)^t: no smaller M would do."""
    steps, beta, theta = 60, 0.5, 0.9
    g = (theta / beta) ** np.arange(1.0, steps + 1)
    constant = np.ones(steps)
    walk = Walk(
        beta * constant,
        theta * constant,
        1e-3 * constant,
        g,
        g,
        g,
        0.0,
        variant == "root",
        variant == "maximum",
    )
    statement = lemmas.momentum_bound(walk)
    assert statement.left[-1] == pytest.approx(statement.right[-1], rel=1e-9)
