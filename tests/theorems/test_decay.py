"""Theorem D, the box lemma and what AdamW converges to."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, HeavyBall, Method
from generic_adam.setting import Setting
from generic_adam.theorems.epsilon import Decay, coupled
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems import reference
from tests.theorems.evaluated import box_bound, largest_update
from tests.theorems.problems import problem_of
from tests.theorems.test_weighted import cases

close = pytest.approx


def adamw(steps, decay, lr=1e-3, beta=0.9, theta=0.999, eps=1e-8):
    t = np.arange(1.0, steps + 1)
    root = np.sqrt(-np.expm1(t * math.log(theta)))
    rate = lr * root / -np.expm1(t * math.log(beta))
    return Sequences.of(rate, beta, theta, eps=eps * root, decay=lr * decay)


def ten(weights_bound=1.0):
    return problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, weights_bound=weights_bound)


def test_the_box_is_for_momentum_before_the_division():
    for form in ({"heavy_ball": HeavyBall(Fraction(9, 10))}, {"power": 0.25}):
        with pytest.raises(TheoremError, match="box lemma"):
            box_bound(Sequences.of(0.1, 0.0, 0.9, eps=0.1, decay=0.01, steps=10, **form), 1.0)


def test_tiny():
    """The value of the theorem's page is 11.57648672643 where S' pays for momentum; S and the share of eps pay less."""
    alpha, decay = [0.1, 0.1, 0.05], [0.01, 0.01, 0.005]
    sequences = Sequences.of(np.array(alpha), 0.5, 0.9, eps=0.1, decay=np.array(decay))
    problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1, weights_bound=1)
    bound = weighted_bound(sequences, problem)
    given = {"sqrt": math.sqrt, "log": math.log, "e": [0.1] * 3, "nu": decay, "box": 1}
    by_hand = reference.sharp(alpha, [0.5] * 3, [0.9] * 3, 1, 1, [(1, 1, 1)], **given)
    assert bound.value == close(by_hand["value"], rel=1e-11)
    assert bound.value < 11.57648672643


@pytest.mark.parametrize(("decay", "value"), [(0.1, 38.92007226708), (0.01, 37.074291609)])
def test_torch_adamw(decay, value):
    """Of the published pages, whose last sum has the largest mean divisor where ours has each step's own: no less."""
    bound = weighted_bound(adamw(1000, decay), ten())
    assert 0.97 * value < bound.value <= value * (1 + 1e-11)


@given(cases())
@settings(max_examples=40)
def test_without_decay_it_is_e_with_a_longer_step(case):
    alpha, beta, theta, e = case
    plain = weighted_bound(Sequences.of(alpha, beta, theta, eps=e), ten())
    # A decay whose square is below every double, wherever there is a step.
    hardly = Sequences.of(alpha, beta, theta, eps=e, decay=np.where(alpha > 0, 1e-200, 0.0))
    decayed = weighted_bound(hardly, ten())
    assert plain.drift <= decayed.drift * (1 + 1e-12)
    # a(Q - a) + a^2/2 is at most 1.5 a(Q - a) + a^2, and at least half of it.
    assert decayed.drift <= 2 * plain.drift * (1 + 1e-12)
    assert plain.value <= decayed.value * (1 + 1e-12)


def test_a_decay_without_a_step_has_no_bound():
    sequences = Sequences.of(np.array([0.1, 0.0, 0.1]), 0.5, 0.9, eps=0.1, decay=0.01)
    assert weighted_bound(sequences, ten()).value == math.inf


def test_the_box_of_adamw_says_nothing_and_a_small_one_does():
    silent = ten(weights_bound=largest_update(0.9, 0.999) / 0.1)
    assert weighted_bound(adamw(100_000, 0.1), silent).l1 > silent.trivial_l1
    by_coordinate = problem_of(1, [10**-0.5] * 10, 10, 1, weights_bound=1.0)
    assert weighted_bound(adamw(100_000, 0.01), by_coordinate).l1 < by_coordinate.trivial_l1


def test_what_is_missing_is_said():
    with pytest.raises(TheoremError, match="weights_bound"):
        weighted_bound(adamw(10, 0.1), problem_of(1, 1, 10, 1))
    with pytest.raises(TheoremError, match="Nesterov"):
        weighted_bound(Sequences.of(0.1, 0.5, 0.9, eps=0.1, gradient_weight=0.5, decay=0.01, steps=3), ten())
    for decay in (1.5, -0.1):
        with pytest.raises(TheoremError, match="nu_t <= 1"):
            box_bound(Sequences.of(0.1, 0.5, 0.9, decay=decay, steps=3), 1.0)


def test_the_box_is_rounded_up():
    """At forty digits the box is no larger than what is returned, and not far below it."""
    steps, beta, theta = 3000, mpmath.mpf(0.9), mpmath.mpf(0.999)
    M = exact = mpmath.mpf(0)
    with mpmath.workdps(40):
        for t in range(1, steps + 1):
            M = beta**2 / theta * M + (1 - beta) ** 2 / (1 - theta)
            exact = max(exact, mpmath.sqrt(M) / t * 10)
    alpha = 1 / np.arange(1.0, steps + 1)
    found = box_bound(Sequences.of(alpha, 0.9, 0.999, decay=0.1), 0.0)
    assert exact <= found <= exact * (1 + 1e-9)


@pytest.mark.parametrize(
    ("beta", "theta", "expected"),
    [
        (0.9, 0.999, 7.2702918),
        (0.9, 0.95, 1.16496474502),
        (0.9, 0.98, 1.69774937525),
        (0.9, 0.99, 2.34520787991),
        (0.5, 0.5, 1.0),
    ],
)
def test_the_largest_update(beta, theta, expected):
    assert largest_update(beta, theta) == close(expected, rel=1e-8 if expected == 7.2702918 else 1e-9)
    # The supremum over t of what the box lemma takes, with both corrections.
    steps = 20_000
    box = box_bound(adamw(steps, 1.0, lr=0.01, beta=beta, theta=theta), 0.0)
    assert box <= expected * (1 + 1e-8)
    assert box == close(expected, rel=1e-3)


@given(
    st.integers(1, 40),
    st.floats(0, 0.95),
    st.floats(0.05, 0.99),
    st.floats(0.01, 1),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=150)
def test_no_gradients_leave_the_box(steps, beta, theta, decay, seed):
    rng = np.random.default_rng(seed)
    alpha, nu = rng.random(steps), np.minimum(1, decay * rng.random(steps) + 1e-3)
    start = 3 * rng.random()
    box = box_bound(Sequences.of(alpha, beta, theta, decay=nu, steps=steps), start)
    grows = rng.choice([1.0, theta / max(beta, 0.05), -1.0])  # (theta/beta)^t attains |m| = sqrt(M v)
    x, m, v = start * rng.choice([-1, 1]), 0.0, 0.0
    for t in range(steps):
        g = grows**t * rng.choice([1.0, rng.standard_normal()])
        m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g * g
        x = (1 - nu[t]) * x - alpha[t] * m / (math.sqrt(v) + 1e-12)
        assert abs(x) <= box * (1 + 1e-9)


def test_the_box_is_attained():
    beta, theta, steps = 0.5, 0.9, 400
    sequences = Sequences.of(0.01, beta, theta, decay=0.01, steps=steps)
    x = m = v = 0.0
    for t in range(steps):
        g = -((theta / beta) ** (t - steps))
        m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g * g
        x = (1 - 0.01) * x - 0.01 * m / math.sqrt(v)
    assert x / box_bound(sequences, 0.0) == close(1 - 0.99**steps, rel=1e-2)


def own_equation(center, noise, decay):
    """The x between 0 and c that AdamW tends to on (x - c)^2/2 with noise +-sigma, not a minimiser.

    It is the root of (x - c) + lambda D x = 0 with D^2 = sigma^2 + (x - c)^2. Without noise D is |x - c|, and x is the
    nearer of c and the corner 1/lambda.
    """
    near, far = 0.0, center
    for _ in range(200):
        x = (near + far) / 2
        near, far = (x, far) if x - center + decay * math.hypot(noise, x - center) * x < 0 else (near, x)
    return (near + far) / 2


class TestObstacle:
    """Prop. 9.2: with a constant decay neither the gradient of f nor that of a ridge tends to 0."""

    @staticmethod
    def run(center, noise, decay, steps, lr, beta=0.9, theta=0.999, eps=1e-8, seed=0):
        """AdamW on (x - c)^2/2 with noise +-sigma; the mean of the last half and the end."""
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=steps)
        x = m = v = tail = 0.0
        for t in range(1, steps + 1):
            g = x - center + noise * signs[t - 1]
            m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g * g
            root = math.sqrt(v / (1 - theta**t)) + eps
            x = (1 - lr * decay) * x - lr * m / (1 - beta**t) / root
            tail += x if t > steps // 2 else 0.0
        return tail / (steps - steps // 2), x

    def test_without_noise_it_stops_at_the_corner_of_the_box(self):
        _, end = self.run(center=3, noise=0, decay=1, steps=60_000, lr=1e-3)
        assert end == close(0.999999995, abs=1e-9)
        assert end - 3 == close(-2, abs=1e-6)  # the gradient of f there: not 0
        assert own_equation(3, 0, 1) == close(1.0, abs=1e-9)
        assert own_equation(0.5, 0, 1) == close(0.5, abs=1e-9)  # inside the box the minimum is found

    def test_with_noise_it_solves_its_own_equation(self):
        mean, _ = self.run(center=0.5, noise=2, decay=1, steps=200_000, lr=1e-3)
        root = own_equation(0.5, 2, 1)
        assert root == close(0.1651, abs=5e-5)
        assert mean == close(root, abs=0.01)
        assert abs(mean - 0.5) > 0.3  # the minimum of f
        assert abs(mean - 0.25) > 0.07  # the minimum of f + x^2/2, which coupled decay finds


@pytest.mark.parametrize(
    ("decay", "status"),
    [
        ("0.1/sqrt(t) if t < 1000 else 0", "certified"),  # there is none from t = 1000 on
        ("0.1/t", "certified"),
        ("0.1/sqrt(t)", "not certified"),  # lambda_t is constant
        (lambda t: 0.1 / t, "undecided"),
    ],
)
def test_decay_that_ends_or_vanishes_is_certified_where_weights_stay_bounded(decay, status):
    x = Algorithm(Method("0.5/sqrt(t)", 0.9, "1 - 1/(t + 1)"), decay=decay)
    assert str(Decay().examine(x, Setting(weights_bound=1)).verdict) == status
    assert str(Decay().examine(x).verdict) == ("undecided" if status == "certified" else status)


def test_coupled_decay_is_another_function():
    problem = problem_of(smoothness=1, gradient_bound=[1.0, 2.0], dimension=2, gap=1, weights_bound=3, gradient_sup=4)
    sum_of_both = coupled(problem, 0.1)
    assert sum_of_both.smoothness == close(1.1)
    assert sum_of_both.gradient_bound == close((1.3, 2.3))
    assert sum_of_both.gradient_sup == close(4.3)
    assert sum_of_both.gap == close(1 + 0.1 * 9)
    assert coupled(problem, 0.0) == problem
    with pytest.raises(TheoremError, match="weights_bound"):
        coupled(problem_of(1, 1, 1, 1), 0.1)
