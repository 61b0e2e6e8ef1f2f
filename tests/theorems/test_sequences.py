"""Recursions in tables against plain loops, and the logarithm against forty digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.methods import Algorithm, Method
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.horizon import read_horizon
from generic_adam.theorems.sequences import Recursion, Sequences, backward, log_growth, majorant
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import known, problem_of


def looped(terms, factors, start=0.0):
    """F_t = rho_t F_{t-1} + f_t, one step after the other."""
    values, current = [], start
    for term, factor in zip(terms, factors, strict=True):
        current = factor * current + term
        values.append(current)
    return np.array(values)


@given(st.integers(1, 400), st.floats(0, 3), st.integers(0, 2**32 - 1), st.floats(0.1, 1.3))
def test_a_table_gives_what_a_loop_gives(length, start, seed, largest):
    rng = np.random.default_rng(seed)
    terms, factors = rng.random(length) * (rng.random(length) < 0.8), rng.random(length) * largest
    assert Recursion(factors, length)(terms, start) == pytest.approx(looped(terms, factors, start), rel=1e-13)
    backwards = looped(terms[::-1], np.concatenate([[0.0], factors[:0:-1]]))[::-1]
    assert backward(terms, factors) == pytest.approx(backwards, rel=1e-13)


@pytest.mark.parametrize("length", [1, 47, 48, 49, 1000, 65_536, 70_001])
def test_every_length_and_a_constant_factor(length):
    terms = np.random.default_rng(length).random(length)
    expected = looped(terms, [0.9] * length, 2.0)
    assert Recursion(np.array([0.9]), length)(terms, 2.0) == pytest.approx(expected, rel=1e-13)


def test_at_rest_a_recursion_is_one_number_for_any_length():
    assert Recursion(np.array([0.5]), 10**12)(np.array([1.0]), 2.0).tolist() == [2.0]
    assert len(Recursion(np.array([0.5]), 100)(np.array([1.0]), 0.0)) == 100


def test_products_beyond_the_largest_double_leave_zeros_alone():
    with np.errstate(over="ignore", invalid="ignore"):
        values = Recursion(np.array([1e10]), 200)(np.zeros(200), 0.0)
    assert not values.any()


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.floats(0, 10))
def test_the_majorant_is_the_least_one_that_does_not_increase(values, after):
    hat = majorant(np.array(values), after)
    assert hat.tolist() == [max([*values[i:], after]) for i in range(len(values))]


@given(
    st.lists(st.floats(1e-12, 1 - 1e-12), min_size=1, max_size=30),
    st.floats(1e-6, 1e20),
)
@settings(max_examples=200)
def test_the_logarithm_at_forty_digits(complements, ratio):
    q = np.array(complements)
    with mpmath.workdps(40):
        weights, increments, before = mpmath.mpf(1), [], mpmath.mpf(0)
        for one in complements:
            weights /= 1 - mpmath.mpf(one)
            now = mpmath.log(1 + mpmath.mpf(ratio) * (weights - 1))
            increments.append(float(now - before))
            before = now
    computed = log_growth(q / (1 - q), ratio)
    # theta itself is rounded: near q = 1 it has few digits, and so has its logarithm.
    assert computed == pytest.approx(increments, rel=1e-10, abs=1e-15 / (1 - max(complements)))


def test_the_logarithm_far_out_is_that_of_theta():
    growth = np.array([0.001 / 0.999])
    decrease = np.log1p(growth)
    assert log_growth(growth, 1e16, before=200.0, length=10**9).tolist() == decrease.tolist()
    near = log_growth(growth, 1e16, before=110.0, length=3)
    assert near == pytest.approx(np.repeat(decrease, 3), rel=1e-14)


def test_complements_have_all_their_digits():
    """1 - beta_t divides and multiplies: as a difference of doubles it would be off by 1e-5 here."""
    x = Algorithm(Method(0.1, "1 - 1e-11*(1 + 1/t)", "1 - 1e-13/t"))
    block = Sequences.of_algorithm(x, 50).block(1, 51)
    t = np.arange(1.0, 51)
    assert block.gain == pytest.approx(1e-11 * (1 + 1 / t), rel=1e-15)
    assert block.q == pytest.approx(1e-13 / t, rel=1e-15)
    beyond = Algorithm(Method(0.1, "1 - 1e-20", 0.9))  # a beta that rounds to 1 is below 1
    assert weighted_bound(Sequences.of_algorithm(beyond, 5), problem_of(1, 1, 1, 1)).weight > 0


def test_a_single_step_is_no_constant_block():
    sequences = Sequences.of_algorithm(Algorithm(Method("1/t", 0.9, 0.999)), 50)
    assert sequences.block(1, 2).alpha.tolist() == [1.0]
    assert len(sequences.block(1, 51).alpha) == 50


@pytest.mark.parametrize("alpha", ["(t + 1e17)^0.5 - 1e17^0.5", "sqrt((t + 1e9)^2 + 1) - (t + 1e9)"])
def test_a_sequence_whose_digits_cancel_has_no_bound(alpha):
    """In doubles the first is a multiple of 1/16 and the second 0."""
    x = Algorithm(Method(alpha, 0.9, 0.999), initial_v=0, eps=1e-8)
    found = bound_algorithm(x, known(1, 1, 1, 1), 1000)
    assert not found.is_valid
    assert "cancel" in dict(found.missing)["E"].about
    assert "the terms of alpha_t" in read_horizon(x, 1000).unknown.about
    short = Algorithm(Method(0.1, 0.9, "1 - 1/t"), initial_v=0, eps=1e-8)  # theta_1 = 0 is a difference as well
    assert bound_algorithm(short, known(1, 1, 1, 1), 1).is_valid
    shallow = Algorithm(Method("sqrt(t + 1) - sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-8)
    assert bound_algorithm(shallow, known(1, 1, 1, 1), 10**5).is_valid


def test_the_smaller_of_two_is_not_blamed_for_the_other():
    x = Algorithm(Method("min(1/t, 1e-12)", 0.9, "1 - 1/(t + 1)"))
    assert Sequences.of_algorithm(x, 10).block(1, 11).alpha.tolist() == [1e-12]


def test_what_is_kept_of_a_constant_stretch_is_one_number():
    """The memory stays flat: of a block that stands still no array is held on to."""
    x = Algorithm(Method("1e-3 / (1 - 0.9^t)", 0.9, 0.999), initial_v=0, eps=1e-8)
    sequences = Sequences.of_algorithm(x, 10**6)
    for block in sequences.blocks():
        if len(block.alpha) == 1:
            assert block.alpha.base is None
            assert sequences.block(block.start, block.stop).alpha is block.alpha
    assert len(block.alpha) == 1
