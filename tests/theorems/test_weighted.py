"""Theorems W, E and N after T steps: check values, the plain reference, forty digits, laws."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.errors import TheoremError
from generic_adam.methods import Method
from generic_adam.methods.algorithm import Algorithm, Nesterov
from generic_adam.schedules import as_schedule
from generic_adam.theorems import sequences as sequences_module
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.sweep import Sweep
from generic_adam.theorems.weighted import best_shares, concluded, weighted_bound
from generic_adam.theorems.zou2019 import bound as paper_bound
from tests.theorems import reference
from tests.theorems.problems import problem_of

TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1)
TEN = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1)
TEN_BY_COORDINATE = problem_of(smoothness=1, gradient_bound=[10**-0.5] * 10, dimension=10, gap=1)
T = np.arange(1.0, 1001.0)
ADAEMA = (1e-3 / np.sqrt(T), 0.9, 1 - 1 / np.maximum(T, 2))
COSINE = (1e-3 * (1 + np.cos(np.pi * (T - 1) / 999)) / 2, 0.9, 0.999)
LINEAR = (1e-3 * (1 - (T - 1) / 1000), 0.9, 0.999)
WARM_UP = (1e-3 * np.minimum(T / 100, 1), 0.9, 0.999)
HARMONIC = (1e-3 / T, 0.9, 1 - 1 / (T + 1))
RMSPROP = (1e-3 / np.sqrt(T), 0.0, 1 - 1 / (T + 1))
close = pytest.approx


def weighted(problem, alpha, beta, theta, **given):
    return weighted_bound(Sequences.of(alpha, beta, theta, initial_v=problem.epsilon), problem, **given)


def speaks(bound, problem):
    return bound.offer().beats(problem.trivial_l2, problem.trivial_l1)


def torch_adam(steps, lr=1e-3, beta=0.9, theta=0.999, eps=1e-8):
    t = np.arange(1.0, steps + 1)
    correction = np.sqrt(-np.expm1(t * math.log(theta)))
    rate = lr * correction / -np.expm1(t * math.log(beta))
    return Sequences.of(rate, beta, theta, eps=eps * correction)


def test_the_best_shares():
    """The closed form beside a grid: one share, two, and a keep below 1."""
    for constant, paid, keep in ((0.0, (1.0,), 1.0), (2.0, (0.3, 1.1), 1.0), (5.0, (0.01, 3.0), 0.4)):
        shares = best_shares(constant, paid, keep)
        value = (constant + sum(one / share for one, share in zip(paid, shares, strict=True))) / (keep - sum(shares))
        grid = np.linspace(0, keep, 402)[1:-1]
        if len(paid) == 1:
            tried = (constant + paid[0] / grid) / (keep - grid)
        else:
            s, phi = np.meshgrid(grid, grid)
            with np.errstate(divide="ignore"):
                tried = np.where(s + phi < keep, (constant + paid[0] / s + paid[1] / phi) / (keep - s - phi), np.inf)
        assert value <= tried.min() <= value * (1 + 1e-3)
    assert best_shares(1.0, (0.0, 0.0)) == [0.0, 0.0]


class TestCheckValuesOfW:
    def test_tiny_step_by_step(self):
        problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1, epsilon=0.01)
        bound = weighted(problem, TINY_ALPHA, 0.5, 0.9)
        assert bound.theorem == "W"
        assert bound.drift == close(0.140008616256, rel=1e-9)
        assert bound.weight == close(0.171472915197, rel=1e-9)
        assert bound.value == close(9.73618754893, rel=1e-11)
        assert not speaks(bound, problem)

    def test_tiny_by_hand(self):
        rows = [[0.1, 0.1, 0.05], [0.5] * 3, [0.9] * 3]
        by_hand = reference.sharp(*rows, 1, 1, [(1, 1, 1)], sqrt=math.sqrt, log=math.log, v_0=0.01)
        assert 0.5 / math.sqrt(0.9) == close(0.527046276695, rel=1e-9)
        assert by_hand["R"] == close([0.5, 0.763523138347, 0.902412027236], rel=1e-9)
        assert by_hand["M"] == close([2.5, 3.19444444444, 3.38734567901], rel=1e-9)
        assert by_hand["Q"] == close([0.166593516558, 0.126352313835, 0.05], rel=1e-9)
        assert by_hand["H"] == close([0.0092155222768, 0.0064241919517, 0.001128015034], rel=1e-9)
        assert by_hand["A"] == close([0.0460776113841, 0.0321209597583, 0.0056400751702], rel=1e-9)
        assert by_hand["dS"] == close([2.49412330489, 0.702784587133, 0.445252297393], rel=1e-9)
        assert by_hand["dS_2"] == close(by_hand["dS"], rel=1e-12)
        assert by_hand["value"] == close(9.73618754893, rel=1e-11)

    @pytest.mark.parametrize(
        ("sequences", "weight", "value", "each"),
        [
            (ADAEMA, 0.061515104355, 22.4777703238, 18.2496172713),
            (COSINE, 0.49317959466, 20.9263237431, 9.98404260837),
            (LINEAR, 0.493760167406, 20.0805633778, 9.5221064813),
            (WARM_UP, 0.953887123895, 11.6365699053, 5.54486463973),
            (HARMONIC, 0.00581308710045, 187.487787466, 176.925378596),
            (RMSPROP, 0.0618010087652, 18.9674896766, 17.0643509466),
        ],
    )
    def test_a_thousand_steps(self, sequences, weight, value, each):
        bound = weighted(TEN, *sequences)
        assert (bound.weight, bound.value) == close((weight, value), rel=1e-9)
        assert weighted(TEN_BY_COORDINATE, *sequences).value == close(each, rel=1e-9)

    def test_warm_up_from_zero_then_cosine_to_zero(self):
        alpha = 1e-3 * np.where(T <= 100, (T - 1) / 100, (1 + np.cos(np.pi * (T - 101) / 900)) / 2)
        bound = weighted(TEN, alpha, 0.9, 0.999)
        assert (bound.weight, bound.value) == close((0.501440033688, 20.9351282504), rel=1e-9)

    @pytest.mark.parametrize(("steps", "value"), [(10**4, 0.152843622276), (10**6, 0.0167075031522)])
    def test_without_momentum_it_says_something_in_one_dimension(self, steps, value):
        t = np.arange(1.0, steps + 1)
        sequences = Sequences.of(
            0.178 / np.sqrt(t), 0.0, 1 - 1 / np.maximum(t, 2), q=1 / np.maximum(t, 2), initial_v=1e-8
        )
        bound = weighted_bound(sequences, TINY)
        assert bound.value == close(value, rel=1e-9)
        assert speaks(bound, TINY)

    def test_three_cases_of_the_theorem(self):
        to_zero = 1e-3 * (1 + np.cos(np.pi * T / 1000)) / 2
        to_zero[-1] = 0.0
        assert math.isfinite(weighted(TEN, to_zero, 0.9, 0.999).value)
        assert weighted(TEN, np.zeros(1000), 0.9, 0.999).value == math.inf
        wild = weighted(TEN, np.full(1000, 1e-3), 0.99, 0.95)
        assert wild.value > 1e6
        assert not speaks(wild, TEN)


class TestCheckValuesOfE:
    def test_a_hundred_thousand_steps_say_something(self):
        bound = weighted_bound(torch_adam(100_000), TEN_BY_COORDINATE)
        assert bound.value == close(0.375300713495, rel=1e-9)
        assert bound.l1 / TEN_BY_COORDINATE.trivial_l1 == close(0.3438, abs=5e-5)
        assert speaks(bound, TEN_BY_COORDINATE)

    def test_eps_may_grow_as_it_likes(self):
        """theta = 0.3 with torch's correction: e_2/e_1 = 1.14, beyond the 2 sqrt(0.3) = 1.0954 asked for before."""
        assert (math.sqrt(1 + 0.3), 2 * math.sqrt(0.3)) == close((1.1402, 1.0954), abs=5e-5)
        assert math.isfinite(weighted_bound(torch_adam(100, theta=0.3), TEN).value)
        leaps = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=np.array([0.1, 10.0, 1e3]))
        assert math.isfinite(weighted_bound(leaps, TINY).value)
        with pytest.raises(TheoremError, match="fails at t = 2"):
            weighted_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=np.array([0.1, 0.09, 0.1])), TINY)
        with pytest.raises(TheoremError, match="one of them positive"):
            weighted_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9), TINY)

    def test_eps_that_comes_where_momentum_was_and_goes_where_it_is_not_is_no_loophole(self, monkeypatch):
        """The hypothesis on eps is asked of every step, in whatever block of steps the momentum is."""
        monkeypatch.setattr(sequences_module, "BLOCK", 2)
        beta, eps = np.array([0.0, 0.0, 0.5, 0.5]), np.array([1.0, 0.1, 0.1, 0.1])
        with pytest.raises(TheoremError, match="fails at t = 2"):
            weighted_bound(Sequences.of(0.1, beta, 0.9, eps=eps), TINY)
        late = Sequences.of(0.1, beta, 0.9, eps=np.array([1.0, 1.0, 0.0, 0.0]), initial_v=0.1)
        with pytest.raises(TheoremError, match="fails at t = 3"):
            weighted_bound(late, TINY)


@st.composite
def cases(draw, longest=60):
    """Sequences, a problem and free numbers; theta_1 = 0, zeros, growth and falls among them."""
    steps = draw(st.integers(1, longest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    alpha = rng.random(steps) * (rng.random(steps) < 0.8)
    alpha[rng.integers(steps)] = 0.5
    beta = np.full(steps, draw(st.sampled_from([0.0, 0.5, 0.9]))) * (rng.random(steps) if rng.random() < 0.5 else 1.0)
    q = np.exp(-rng.random(steps) * 5) * 0.7
    if rng.random() < 0.3:
        q[:] = q[0]
    theta = 1 - q
    e = np.empty(steps)
    e[0] = 10.0 ** -rng.integers(1, 8)
    for t in range(1, steps):
        e[t] = e[t - 1] * np.sqrt(theta[t]) * (1 + rng.random())
    if draw(st.booleans()):
        theta[0] = 0.0
    return alpha, beta, theta, e


def as_lists(case, number=float):
    return [[number(x) for x in values] for values in case]


@given(cases(), st.booleans(), st.integers(3, 200))
@settings(max_examples=150)
def test_blocks_of_any_size_give_what_the_plain_reference_gives(case, under_root, block):
    alpha, beta, theta, e = as_lists(case)
    parts = [(2, 0.5, 0.25), (1, 2.0, 4.0)]
    tools = {"sqrt": math.sqrt, "log": math.log}
    expected = reference.sharp(alpha, beta, theta, 1.5, 0.7, parts, e=e, root=under_root, **tools)
    problem = problem_of(smoothness=1.5, gradient_bound=[0.5, 0.5, 2.0], dimension=3, gap=0.7)
    sequences = Sequences.of(*map(np.array, (alpha, beta, theta)), eps=np.array(e), under_root=under_root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences_module, "BLOCK", block)
        bound = weighted_bound(sequences, problem)
    assert bound.value == close(float(expected["value"]), rel=1e-9)
    assert bound.s1 == close(float(expected["s1"]), rel=1e-9)


@given(cases(longest=120), st.floats(1e-3, 1e3))
@settings(max_examples=40)
def test_doubles_stay_within_what_is_claimed_of_them_at_forty_digits(case, gradient):
    """`rounding` bounds the error: the bound times 1 + rounding is above the exact one, and not far above."""
    alpha, beta, theta, e = case
    with mpmath.workdps(40):
        exact = as_lists(case, mpmath.mpf)
        number = mpmath.mpf(gradient)
        parts = [(1, number, number**2)]
        tools = {"sqrt": mpmath.sqrt, "log": mpmath.log}
        expected = reference.sharp(*exact[:3], 1, 1, parts, e=exact[3], **tools)["value"]
        problem = problem_of(smoothness=1, gradient_bound=gradient, dimension=1, gap=1)
        bound = weighted_bound(Sequences.of(alpha, beta, theta, eps=e), problem)
        assert expected <= mpmath.mpf(bound.value) * (1 + mpmath.mpf(bound.rounding))
        assert bound.value == close(float(expected), rel=1e-10)
    assert bound.rounding < 1e-12 * len(alpha) + 1e-12


class TestLaws:
    @given(cases(), st.floats(0.01, 100))
    @settings(max_examples=50)
    def test_scaling_the_function(self, case, factor):
        alpha, beta, theta, e = case
        small = weighted_bound(Sequences.of(alpha, beta, theta, eps=e), TEN)
        scaled = problem_of(smoothness=factor, gradient_bound=factor, dimension=10, gap=factor)
        large = weighted_bound(Sequences.of(alpha, beta, theta, eps=factor * e), scaled)
        assert large.value == close(factor * small.value, rel=1e-9)

    @given(cases(), st.integers(1, 5))
    @settings(max_examples=50)
    def test_steps_of_length_zero_at_the_end_change_nothing(self, case, more):
        alpha, beta, theta, e = case
        short = weighted_bound(Sequences.of(alpha, beta, theta, eps=e), TEN)
        longer = [
            np.concatenate([x, np.full(more, last)]) for x, last in ((alpha, 0), (beta, 0), (theta, 0.9), (e, e[-1]))
        ]
        after = weighted_bound(Sequences.of(*longer[:3], eps=longer[3]), TEN)
        assert after.value == close(short.value, rel=1e-12)

    @given(cases())
    @settings(max_examples=50)
    def test_monotone_in_every_constant(self, case):
        alpha, beta, theta, e = case
        base = {"smoothness": 1.0, "gradient_bound": 1.0, "dimension": 10, "gap": 1.0}
        sequences = Sequences.of(alpha, beta, theta, eps=e)
        value = weighted_bound(sequences, problem_of(**base)).value
        for name in ("smoothness", "gradient_bound", "gap"):
            larger = problem_of(**base | {name: 1.5})
            assert weighted_bound(sequences, larger).value >= value * (1 - 1e-12)

    def test_a_smaller_start_costs_more(self):
        values = [weighted(problem_of(1, 1, 10, 1, epsilon=eps), *ADAEMA).value for eps in (1e-2, 1e-4, 1e-8, 1e-12)]
        assert values == sorted(values)

    def test_nesterov_without_a_gradient_of_its_own_is_e(self):
        plain = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1)
        nesterov = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1, momentum_weight=1.0, gradient_weight=0.0)
        assert weighted_bound(plain, TINY) == weighted_bound(nesterov, TINY)

    @given(st.floats(0, 1), st.floats(0.05, 0.5), st.integers(2, 400), st.floats(1e-3, 1))
    @settings(max_examples=60)
    def test_without_momentum_w_is_below_the_papers_bound_up_to_the_start(self, r, c, steps, rate):
        """Law 3, a constant chi (C0 = 1), 18.97 against 56.10 on the check case.

        With beta = 0 the paper's B_w = sqrt(G^2 + eps d) (2/A) [gap + C3 d (chi_1 log(1 + G^2/(eps d)) +
        sum alpha sqrt q/theta_1)], C3 = chi_1 L + 2 G; W has 1/A for 2/A, chi L/2 + 0.572 G in place of C3, and
        S_T <= log(1 + G^2/(eps d)) + log W_T, log(1/theta) <= q/theta.
        """
        t = np.arange(1.0, steps + 1)
        theta = 1 - c / t**r
        alpha = rate * np.sqrt(1 - theta)
        found = weighted(TEN, alpha, np.zeros(steps), theta)
        size, total = math.sqrt(1 + 10 * TEN.epsilon), (alpha * np.sqrt(1 - theta)).sum()
        start = rate * math.log1p(1 / (10 * TEN.epsilon)) + total / theta[0]
        paper = size * 2 / alpha.sum() * (TEN.gap + (rate + 2) * 10 * start)
        assert found.l2 <= paper / 2 * (1 + 1e-9)

    def test_w_against_the_papers_check_case(self):
        method = Method("1e-3/sqrt(t)", 0, "1 - 1/(t+1)")
        w = weighted(TEN, 1e-3 / np.sqrt(T), np.zeros(1000), 1 - 1 / (T + 1))
        paper = paper_bound(method, TEN, 1000).weighted
        assert (w.value, paper) == close((18.9674896766, 56.1000007831), rel=1e-9)

    def test_decay_of_nothing_is_e_with_the_longer_drift(self):
        """Law 4: nu = 0."""
        sequences = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1)
        hardly = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1, decay=1e-200)
        plain = weighted_bound(sequences, TINY)
        boxed = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1, weights_bound=1)
        found = weighted_bound(hardly, boxed)
        assert found.decay == close(0.0, abs=1e-12)
        assert plain.drift < found.drift < 3 * plain.drift
        flat = {"smoothness": 1e-30, "gradient_bound": 1, "dimension": 1, "gap": 1}
        same = (
            weighted_bound(sequences, problem_of(**flat)).value,
            weighted_bound(hardly, problem_of(**flat, weights_bound=1)).value,
        )
        assert same[0] == close(same[1], rel=1e-9)


def test_a_constant_tail_in_closed_form_is_the_long_sum():
    steps = 400_000
    closed = weighted_bound(Sequences.of(1e-3, 0.9, 0.999, eps=1e-8, steps=steps), TEN)
    ones = np.ones(steps)
    spelled = Sequences.of(1e-3 * ones, 0.9 * ones, 0.999 * ones, eps=1e-8 * ones)
    assert weighted_bound(spelled, TEN).value == close(closed.value, rel=1e-11)


def test_groups_with_proportional_rates():
    """kappa = 1 for all is no group; another kappa for all is kappa alpha, in a scale of its own."""
    each = TEN_BY_COORDINATE
    plain = weighted(each, *ADAEMA)
    assert weighted(each, *ADAEMA, scales=[(4, 1.0), (6, 1.0)]).value == close(plain.value, rel=1e-12)
    alpha, beta, theta = ADAEMA
    faster = weighted(each, 3 * alpha, beta, theta)
    grouped = weighted(each, alpha, beta, theta, scales=[(10, 3.0)])
    # pi has alpha in it and D/kappa has 1/kappa: X_w counts kappa times what it counts with alpha * kappa.
    assert grouped.value == close(3 * faster.value, rel=1e-9)
    assert grouped.l2 == close(faster.l2, rel=1e-9)
    with pytest.raises(TheoremError, match="10 coordinates in all"):
        weighted(each, *ADAEMA, scales=[(4, 1.0)])
    # One G for the whole gradient may all be in the group with the slowest rate, where s_1 has its largest 1/kappa.
    with pytest.raises(TheoremError, match="for each coordinate"):
        weighted(TEN, *ADAEMA, scales=[(4, 1.0), (6, 0.01)])


@given(cases(longest=30), st.lists(st.floats(0.01, 10), min_size=2, max_size=6))
@settings(max_examples=60)
def test_one_bound_for_the_whole_gradient_is_above_every_way_to_spread_it(case, bounds):
    """Model (i) with G^2 = sum of G_k^2: every (ii) with that sum is a case of it."""
    alpha, beta, theta, e = case
    each = problem_of(1, bounds, len(bounds), 1, weights_bound=1.0)
    whole = replace(each, gradient_bound=each.total_gradient_bound)
    for form in ({"eps": e}, {"eps": e, "under_root": True}, {"eps": e, "decay": 0.1 * alpha}):
        sequences = Sequences.of(alpha, beta, theta, **form)
        spread, together = (weighted_bound(sequences, one) for one in (each, whole))
        assert spread.l1 <= together.l1 * (1 + 1e-12)
        assert spread.l2 <= together.l2 * (1 + 1e-12)


def test_the_variance_of_a_batch_makes_the_noise_smaller():
    problems = [
        problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1e-3, variance=variance)
        for variance in (None, 1.0, 0.25, 0.01, 0.0)
    ]
    bounds = [weighted(problem, *RMSPROP) for problem in problems]
    values = [one.value for one in bounds]
    assert values[0] == values[1]  # the variance is no smaller than the second moment: Lemma N
    assert values == sorted(values, reverse=True)
    assert [one.s > 0 for one in bounds] == [False, False, False, True, False]
    # Without momentum a full batch has no noise.
    assert bounds[-1].noise == 0


@given(cases(longest=30), st.floats(1e-3, 1))
@settings(max_examples=60)
def test_a_share_of_the_descent_is_best_at_the_share_that_is_chosen(case, deviation):
    """The majorants are those of the summands one by one: on wild sequences a few percent may be lost."""
    alpha, beta, theta, e = case
    sequences = Sequences.of(alpha, beta, theta, eps=e)
    problem = problem_of(1, 1, 10, 1, variance=deviation**2)
    sweep = Sweep(sequences)
    chosen = concluded("E", sweep, problem, problem.parts, by_share=True)
    for s in (0.05, 0.2, 0.35, 0.5):
        part = problem.parts[0]
        cost, _ = sweep.cost(problem.parts, 1.0, lambda _, s=s, part=part: {"first": part.noise / (2 * s)})
        assert chosen.value <= 1.25 * (problem.gap + cost.total) / ((1 - s) * sweep.weight)


class TestAlgorithms:
    def test_torch_adam_as_data(self):
        correction = "sqrt(1 - 0.999^t)"
        method = Method(f"1e-3 * {correction} / (1 - 0.9^t)", 0.9, 0.999)
        algorithm = Algorithm(method, initial_v=0, eps=f"1e-8 * {correction}")
        bound = weighted_bound(Sequences.of_algorithm(algorithm, 1000), TEN)
        assert bound.value == close(34.65792075514, rel=1e-9)

    def test_what_has_become_constant_is_cheap_and_right(self):
        algorithm = Algorithm(Method("1e-3 / (1 - 0.9^t)", 0.9, "1 - 1/max(t, 2)"), initial_v=0, eps=1e-8)
        sequences = Sequences.of_algorithm(algorithm, 200_000)
        assert len(sequences.block(131_073, 196_609).alpha) == 1
        t = np.arange(1.0, 200_001)
        spelled = Sequences.of(1e-3 / (1 - 0.9**t), 0.9, 1 - 1 / np.maximum(t, 2), q=1 / np.maximum(t, 2), eps=1e-8)
        assert weighted_bound(sequences, TEN).value == close(weighted_bound(spelled, TEN).value, rel=1e-11)

    def test_nesterov_and_the_start_of_v(self):
        nesterov = Nesterov(as_schedule(0.5), as_schedule(0.5))
        algorithm = Algorithm(Method("0.1 if t < 3 else 0.05", 0.5, 0.9), initial_v=0, eps=0.1, nesterov=nesterov)
        bound = weighted_bound(Sequences.of_algorithm(algorithm, 3), TINY)
        given = {"momentum_weight": 0.5, "gradient_weight": 0.5}
        assert bound.value == close(weighted_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1, **given), TINY).value)
