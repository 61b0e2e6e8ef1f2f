"""Theorems 1 and 2: the check value, the best theta', the corollary, and what is said when there is none."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, build, names
from generic_adam.methods.algorithm import as_algorithm
from generic_adam.schedules import as_power_of_t, parse
from generic_adam.schedules.sums import SumError
from generic_adam.setting import Setting
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.zou2019 import (
    BelowThetaPrime,
    Facts,
    bound,
    constants,
    facts_of,
    hypotheses,
    limit_of_theta,
)
from tests.theorems import reference
from tests.theorems.problems import problem_of

PROBLEM = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
METHOD = Method(alpha="1e-3/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")


def test_check_value():
    result = bound(METHOD, PROBLEM, steps=1000, theta_prime=0.9)
    known = result.constants
    assert known is not None
    assert pytest.approx(1, rel=1e-12) == known.C0
    assert pytest.approx(0.143398599540, rel=1e-9) == known.C1
    assert pytest.approx(1.18487725967e6, rel=1e-9) == known.C3
    assert pytest.approx(5.40174052866e6, rel=1e-9) == known.C
    assert known.C_prime == pytest.approx(4.73950927566e8, rel=1e-9)
    assert known.gamma == pytest.approx(0.9)
    assert result.total == pytest.approx(0.00719257764174, rel=1e-9)
    assert result.expectation == pytest.approx(2.78617829311e8, rel=1e-9)
    assert result.is_valid


def written_out(alpha, beta, theta, problem, theta_prime):
    """Theorem 1's constants from arrays, as the paper prints them (with the errata), in plain arithmetic."""
    chi = alpha / np.sqrt(1 - theta)
    top, L, G, d, eps = (
        beta.max(),
        problem.smoothness,
        problem.gradient_bound,
        problem.dimension,
        problem.epsilon,
    )
    C0 = max(chi[t] / min(chi[: t + 1]) for t in range(len(chi)))
    C1 = math.prod(th / theta_prime for th in theta if th < theta_prime)
    gamma = top**2 / theta_prime
    C2 = 2 * (top / (1 - top) / math.sqrt(C1 * (1 - gamma) * theta[0]) + 1) ** 2
    root = 1 - math.sqrt(gamma)
    C3 = C0 / (math.sqrt(C1) * root) * (C0**2 * chi[0] * L / (C1 * root**2) + C2 * G)
    size = math.sqrt(G**2 + eps * d)
    C = 2 * C0 * size / (1 - top) * (problem.gap + C3 * C0 * d * chi[0] * math.log(1 + G**2 / (eps * d)))
    C_prime = 2 * C0**2 * C3 * d * size / ((1 - top) * theta[0])
    return (C + C_prime * np.sum(alpha * np.sqrt(1 - theta))) / (len(alpha) * alpha[-1])


@given(
    s=st.floats(0, 1.2),
    r=st.floats(0.2, 1.5),
    c=st.floats(0.1, 0.9),
    hold=st.integers(1, 20),
    beta=st.floats(0, 0.95),
    steps=st.integers(1, 300),
    where=st.floats(0.02, 0.98),
    dimension=st.integers(1, 1000),
    sizes=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0, 10), st.floats(1e-10, 1)),
)
@settings(max_examples=150)
def test_agrees_with_the_formulas_written_out(s, r, c, hold, beta, steps, where, dimension, sizes):
    method = Method(alpha=f"0.1/t^{s}", beta=beta, theta=f"1 - {c}/max(t, {hold})^{r}")
    t = np.arange(1, steps + 1)
    alpha, theta = 0.1 / t**s, 1 - c / np.maximum(t, hold) ** r
    smoothness, gradient_bound, gap, epsilon = sizes
    problem = problem_of(smoothness, gradient_bound, dimension, gap, epsilon)
    theta_prime = beta**2 + where * (1 - beta**2)
    result = bound(method, problem, steps, theta_prime)
    with np.errstate(over="ignore"):
        expected = written_out(alpha, np.full(steps, beta), theta, problem, theta_prime)
    if expected < 1e290:
        assert result.expectation == pytest.approx(expected, rel=1e-8)
    else:  # near the largest double the two may overflow at different places
        assert result.expectation > 1e280


@pytest.mark.parametrize(
    "method",
    [
        METHOD,
        Method(alpha="0.1/sqrt(t)", beta=0.5, theta="1 - 1/(t+1)"),
        Method(alpha="0.1/sqrt(t)", beta=0.99, theta="1 - 0.1/t^0.5"),
        Method(alpha="0.1/t^0.3", beta=0.95, theta="1 - 0.9/t^0.6"),
        Method.from_weights(alpha="0.1/sqrt(t)", beta=0.8, weights="t^0.5"),
    ],
)
def test_the_best_theta_prime_beats_a_fine_grid(method):
    steps = 2000
    best = bound(method, PROBLEM, steps)
    assert best.constants is not None
    beta = method.beta(1)
    for theta_prime in np.linspace(beta**2, 1, 401)[1:-1]:
        other = bound(method, PROBLEM, steps, theta_prime=float(theta_prime))
        assert best.expectation <= other.expectation * (1 + 1e-12)


@given(st.floats(0.1, 0.95), st.floats(0.05, 0.9), st.floats(0.1, 1.0))
def test_the_logarithm_of_C3_is_convex_in_log_theta_prime(beta, c, r):
    """What makes the one-dimensional search right: log C3(log theta') has no second valley."""
    t = np.arange(1, 400)
    theta = 1 - c / t**r
    facts = Facts(beta, float(theta[0]), 0.1, 1.0)
    grid = np.linspace(math.log(beta**2) * 0.999, -1e-3, 60)
    logs = [
        math.log(constants(PROBLEM, facts, x, reference.log_product_below(theta, x)).C3) for x in map(math.exp, grid)
    ]
    second = np.diff(logs, 2)
    assert np.all(second >= -1e-9 * np.abs(logs).max())


def test_momentum_free_methods_take_theta_one():
    result = bound(Method(alpha="0.1/sqrt(t)", beta=0, theta="1 - 0.5/t"), PROBLEM, 500)
    assert result.constants is not None
    assert result.constants.theta_prime == 0.5
    assert result.constants.C1 == 1
    assert pytest.approx(2) == result.constants.C2


@pytest.mark.parametrize("s", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("steps", [10, 10_000, 300_000])
def test_the_bound_of_a_constant_theta_has_two_sides(s, steps):
    """The page's floor: C/(eta T^(1-s)) + C' sqrt(1 - theta), the second over 1 - s at most."""
    result = bound(Method(alpha=f"0.01/t^{s}", beta=0.9, theta=0.999), PROBLEM, steps)
    falling = result.constants.C / 0.01 / steps ** (1 - s)
    floor = result.constants.C_prime * math.sqrt(0.001)
    assert (falling + floor) * (1 - 1e-12) <= result.expectation <= (falling + floor / (1 - s)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta", "theta", "theta_prime", "uniform", "weighted"),
    [
        ("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)", 0.9, 278617829.311, 142565138.492),
        ("max(1e-3*(1 - (t-1)/1000), 1e-6)", 0.9, "0.999", 0.999, 997937312.733, 1993880.74472),
        ("1e-3/t", 0.9, "1 - 1/(t+1)", None, 2669940034.96, 356682977.558),
        ("1e-3/sqrt(t)", 0, "1 - 1/(t+1)", 0.5, 109.637325141, 56.1000007831),
        ("1e-3*min(t/100, 1)", 0.9, "0.999", 0.999, 89140051858.7, 937822744.436),
    ],
)
def test_the_bound_at_a_weighted_iterate(alpha, beta, theta, theta_prime, uniform, weighted):
    """Corollary 7.0: the paper's constants, no alpha_T."""
    problem = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
    result = bound(Method(alpha, beta, theta), problem, 1000, theta_prime=theta_prime)
    expected = pytest.approx((uniform, weighted), rel=1e-9)
    if theta_prime is None:  # the page does not say which theta' it took; the best one is no worse
        assert result.expectation <= uniform * (1 + 1e-9)
        assert result.weighted / result.expectation == pytest.approx(weighted / uniform, rel=1e-9)
    else:
        assert (result.expectation, result.weighted) == expected


def test_constant_theta_insight_2_is_the_other_way_round():
    """Errata: the corollary's bound increases with s."""
    values = [bound(Method(f"0.01/t^{s}", 0.9, 0.999), PROBLEM, 10**6).expectation for s in (0, 0.3, 0.6)]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1", True),
        ("0.1/sqrt(t)", True),
        ("2*t^-0.3/5", True),
        ("0.1/(t+1)", False),
        ("0.1*log(t+1)", False),
    ],
)
def test_powers_of_t_are_recognised_by_form(text, expected):
    power = as_power_of_t(parse(text))
    assert (power is not None) == expected
    if power is not None:
        t = np.arange(1.0, 50)
        assert parse(text).values(1, 50) == pytest.approx(float(power[0]) * t ** float(power[1]), rel=1e-13)


@pytest.mark.parametrize(
    ("method", "hypothesis", "words"),
    [
        (Method("0.1/sqrt(t)", 0.9, "1 - 1/t"), 2, "theta_t = 0 at t = 1; (R2) needs theta_t > 0"),
        (Method("0.1/sqrt(t)", 0.9, 0.8), 2, "theta = 0.8 is not above beta^2 = 0.81"),
        (Method("0.1/sqrt(t)", 0.9, "0.9 + 0.05/t"), 2, "theta_t falls from 0.95 to 0.925 at t = 2"),
        (
            Method.from_weights("0.1/sqrt(t)", 0.9, "t^2"),
            2,
            "theta_t falls from 0.5 to 0.3333333333 at t = 2",
        ),
        (Method("0.1 if t < 50 else 0", 0.9, 0.99), 3, "alpha_t = 0 at t = 50; (R3) needs chi_t > 0"),
    ],
)
def test_a_missing_hypothesis_is_named(method, hypothesis, words):
    result = bound(method, PROBLEM, 100)
    assert not result.is_valid
    assert result.expectation == math.inf
    assert result.constants is None
    assert [one.number for one in result.missing] == [hypothesis]
    assert words in result.reasons


def test_a_callable_outside_its_range_is_named():
    method = Method(alpha=lambda t: 0.1, beta=lambda t: 0.5 if t < 700 else 1.5, theta=0.99)
    result = bound(method, PROBLEM, 1000)
    assert "(R1): beta_t = 1.5 at t = 700 is outside [0, 1)" in result.reasons


def test_a_rising_chi_costs_but_is_allowed_on_a_horizon():
    # A warm-up over 100 steps: chi rises a hundredfold, so C0 = 100.
    warm = Method("0.1*t/100 if t < 100 else 0.1*sqrt(100/t)", 0.9, "1 - 1/max(t, 100)")
    result = bound(warm, PROBLEM, 5000)
    assert result.is_valid
    assert result.constants is not None
    assert pytest.approx(100) == result.constants.C0


def test_an_overflow_is_infinite_and_explained():
    slow = Method("0.001", 0.9, "1 - 0.9/t^0.1")
    result = bound(slow, PROBLEM, 100_000)
    assert result.is_valid
    assert result.expectation == math.inf
    assert result.reasons == "the bound exceeds the largest double"
    assert result.constants.C1_log < -100


@pytest.mark.parametrize(
    ("alpha", "theta", "steps"),
    [
        ("0.5^t", "1 - 1/(t+1)", 2_000),
        ("0.5^t", "1 - 1/(t+1)", 200_000),
        ("1/sqrt(t)", "1 - 0.5^t", 2_000),
        ("1e-200*1e-200^t", "1 - 1/(t+1)", 2_000),
        ("1e-200*1e-200^t", "1 - 1/(t+1)", 200_000),
    ],
)
def test_what_is_positive_by_its_form_and_rounds_to_0_breaks_no_hypothesis(alpha, theta, steps):
    result = bound(Method(alpha, 0.9, theta), PROBLEM, steps)
    assert result.is_valid
    assert result.reasons == "the bound exceeds the largest double"


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (Method("1e-300/sqrt(t)", 0.9, 0.999), problem_of(1e-140, 1, 1, 1)),
        (Method("1e-100/sqrt(t)", 0.9, 0.999), PROBLEM),
        (Method("1e308/sqrt(t)", 0.9, 0.99999999), PROBLEM),
    ],
)
def test_numbers_near_the_ends_of_a_double_are_no_error(method, problem):
    result = bound(method, problem, 1000)
    assert result.is_valid
    assert result.expectation > 0


@pytest.mark.parametrize("beta", ["1-exp(-800)", "1-0.5^t"])
def test_a_beta_that_a_float_takes_for_1_is_refused_in_a_line(beta):
    """Found by the generated inputs: 1 - beta = e^-800 was divided by; the bound of a rising beta was above 1."""
    method = Method("1/sqrt(t)", beta, "1-0.5*(1-cos(1/(t+1e4)))")
    with pytest.raises(SumError, match="closer to 1 than a float tells"):
        bound(method, problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8), steps=100)


def test_beta_may_be_as_close_to_1_as_a_double_is():
    beta = math.nextafter(1, 0)
    result = bound(Method("1/sqrt(t)", beta, "1 - 1/(t+1)"), PROBLEM, 1000)
    known = result.constants
    assert known is not None
    assert beta**2 < known.theta_prime < 1
    assert math.isfinite(result.expectation)
    # 1 - sqrt(gamma) is at most 1 - beta = 2^-53, and C3 has at least its third power below the line.
    assert 2.0**159 * PROBLEM.smoothness < known.C3


def test_theta_limit_counts_even_if_the_horizon_ends_before():
    # theta_5 = 0.8 < beta^2, but the limit is 1: the theorem applies.
    assert bound(Method("0.1/sqrt(t)", 0.9, "1 - 1/max(t,2)"), PROBLEM, 5).is_valid
    # Of a callable only theta_T is known.
    known_to_five = Method("0.1/sqrt(t)", 0.9, lambda t: 1 - 1 / (t + 1))
    assert "does not show it above beta^2" in bound(known_to_five, PROBLEM, 3).reasons


@pytest.mark.parametrize("name", names())
def test_what_the_bound_takes_from_the_steps_agrees_with_brute_force(name):
    method = as_algorithm(build(name)).method
    steps = 150_000
    known = bound(method, PROBLEM, steps)
    alpha, beta, theta = (getattr(method, one).values(1, steps + 1) for one in ("alpha", "beta", "theta"))
    complement = (1 - method.theta).values(1, steps + 1)
    with np.errstate(all="ignore"):
        falls = np.flatnonzero(np.diff(complement) > 1e-12 * complement[1:]) + 2
        outside = np.flatnonzero(~((theta > 0) & (complement > 0))) + 1
    wrong = sorted({*falls[:1].tolist(), *outside[:1].tolist()})[:1]
    assert [one.witness for one in known.missing if one.number == 2] == wrong
    if all(one.number == 2 and one.witness is None for one in known.missing):
        chi = alpha / np.sqrt(complement)
        rise = np.max(chi / np.minimum.accumulate(chi))
        facts = facts_of(method, steps, hypotheses(method, steps)[2].constant)
        # By form C0 may be an upper bound: for weights, the sum is compared with its integral.
        assert rise * (1 - 1e-12) <= facts.C0 <= 1.05 * rise
        expected = (beta.max(), theta[0], chi[0], alpha[-1], np.sum(alpha * np.sqrt(complement)))
        found = (facts.beta, facts.theta_first, facts.chi_first, known.alpha_last, known.total)
        assert found == pytest.approx(expected, rel=1e-9)
        limit = limit_of_theta(method.theta, steps)
        assert limit == 1 or limit >= theta[-1] * (1 - 1e-12)


@pytest.mark.parametrize("name", ["certified_adam", "power_family"])
def test_the_bound_at_1e15_follows_the_rate(name):
    """From T to 100 T the bound of these methods falls as log T/sqrt T does."""
    method = build(name)
    early, late = (bound(method, PROBLEM, 10**k).expectation for k in (13, 15))
    assert late / early == pytest.approx((15 / 13) / 10, rel=0.05)


def test_what_the_form_does_not_settle_is_refused_beyond_1e8():
    swinging = Method("0.1/sqrt(t)", 0.9, lambda t: 1 - 1 / (t + 1))
    with pytest.raises(SumError, match=r"step by step|is open"):
        bound(swinging, PROBLEM, 10**12)


def test_long_beginnings_in_the_logarithm():
    product = BelowThetaPrime(parse("1 - 0.5/t^0.1"), 10**6)
    value, below = product.logarithm_and_count(0.85)
    t = np.arange(1, 10**6 + 1)
    theta = 1 - 0.5 / t**0.1
    assert below == np.count_nonzero(theta < 0.85)
    assert value == pytest.approx(np.log(theta[theta < 0.85] / 0.85).sum(), rel=1e-10)
    assert value < -1000


def test_a_small_theta_is_not_rounded_to_that_of_its_complement():
    """1 - 6e-17 is 1 - 1.1e-16 as a float: twice theta_1, which stands in denominators."""
    known = bound(Method("0.1/sqrt(t)", 0.5, "max(6e-17, 0.9 - 1/t^2)"), PROBLEM, 100)
    assert known.constants is not None
    assert known.constants.below == 1
    assert known.constants.C1 * known.constants.theta_prime == pytest.approx(6e-17, rel=1e-12)
    assert known.constants.C1_log == pytest.approx(math.log(6e-17 / known.constants.theta_prime), rel=1e-12)


def test_a_theta_that_no_float_tells_from_0_is_refused():
    with pytest.raises(SumError, match="theta_1 is closer to 0"):
        bound(Method("1e-200*(t+1)^-1.2", 0.9, "exp(-1e5/t)"), PROBLEM, 10**6)


@pytest.mark.parametrize("theta_prime", [0.5, 0.81, 1.0, 1.5, math.nan])
def test_theta_prime_out_of_range(theta_prime):
    with pytest.raises(TheoremError, match="theta_prime"):
        bound(METHOD, PROBLEM, 10, theta_prime)


@pytest.mark.parametrize("steps", [0, -1, 10**30, 2.5])
def test_bad_numbers_of_steps(steps):
    with pytest.raises(SumError, match="number of steps"):
        bound(METHOD, PROBLEM, steps)


@pytest.mark.parametrize("beta", ["0", "0.5", "0.9", "0.999999"])
@pytest.mark.parametrize("c", ["1", "0.3", "1e-7"])
@pytest.mark.parametrize("steps", [1, 10, 300])
def test_the_bound_that_is_offered_is_rounded_up(beta, c, steps):
    """At forty digits, from the definitions, Theorem 1's bound with the same theta' is no larger."""
    x = Algorithm(Method("1e-3/sqrt(t)", beta, f"1 - {c}/(t + 1)"))
    setting = Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
    offer = bound_algorithm(x, setting, steps, theorem="zou2019")
    theta_prime, C0 = offer.constants["theta_prime"], offer.constants["C0"]
    with mpmath.workdps(40):
        q = [mpmath.mpf(c) / (t + 1) for t in range(1, steps + 1)]
        alpha = [mpmath.mpf("1e-3") / mpmath.sqrt(t) for t in range(1, steps + 1)]
        top, first, prime = mpmath.mpf(beta), 1 - q[0], mpmath.mpf(theta_prime)
        C1 = mpmath.fprod(one / prime for one in (1 - q for q in q) if one < prime)
        root = 1 - top / mpmath.sqrt(prime)
        C2 = 2 * (top / (1 - top) / mpmath.sqrt(C1 * (1 - top**2 / prime) * first) + 1) ** 2
        chi = alpha[0] / mpmath.sqrt(q[0])
        C3 = C0 / (mpmath.sqrt(C1) * root) * (C0**2 * chi / (C1 * root**2) + C2)
        v_0 = mpmath.mpf(1e-8)
        size = 2 * C0 * mpmath.sqrt(1 + v_0 * 10) / (1 - top)
        C = size * (1 + C3 * C0 * 10 * chi * mpmath.log(1 + 1 / (v_0 * 10)))
        rest = size * C0 * C3 * 10 / first * mpmath.fsum(a * mpmath.sqrt(b) for a, b in zip(alpha, q, strict=True))
        exact = (C + rest) / max(steps * alpha[-1], C0 * mpmath.fsum(alpha))
        assert exact <= offer.expectation <= exact * (1 + mpmath.mpf("1e-7"))
