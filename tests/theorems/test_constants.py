"""The constants of a problem: what they make of each other, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.setting import SettingError
from tests.theorems.problems import problem_of

positive = st.floats(1e-6, 1e6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"smoothness": 0},
        {"smoothness": math.nan},
        {"gradient_bound": -1},
        {"epsilon": 0},
        {"dimension": 0},
        {"dimension": 1.5},
        {"gap": -1},
        {"gap": "wide"},
        {"gap": math.inf},
        {"gap": None},
        {"smoothness": 10**400},
        {"dimension": 10**400},
    ],
)
def test_impossible_problems_are_refused_in_one_line(arguments):
    usual = {"smoothness": 1, "gradient_bound": 1, "dimension": 1, "gap": 1, "epsilon": 1e-8}
    with pytest.raises(SettingError, match=next(iter(arguments))) as caught:
        problem_of(**(usual | arguments))
    assert "\n" not in str(caught.value)


def test_a_network_s_size_may_be_written_as_a_float():
    assert problem_of(1, 1, 25.6e6, 1).dimension == 25_600_000  # pyright: ignore[reportArgumentType]


@given(st.lists(positive, min_size=1, max_size=20))
def test_norms_of_the_bounds(bounds):
    """G_2 <= G_1 <= sqrt(d) G_2, and one G for all is the worst case of the same G_2."""
    problem = problem_of(1, bounds, len(bounds), 1)
    total, summed, root = problem.total_gradient_bound, problem.gradient_sum_bound, math.sqrt(len(bounds))
    assert total == pytest.approx(np.linalg.norm(bounds), rel=1e-12)
    assert total <= summed * (1 + 1e-12) <= root * total * (1 + 1e-9)
    alike = problem_of(1, total, len(bounds), 1)
    assert alike.gradient_sum_bound == pytest.approx(root * total, rel=1e-12)
    assert sum(part.count * part.second_moment for part in problem.parts) == pytest.approx(total**2)
    assert sum(part.count * part.second_moment for part in alike.parts) == pytest.approx(total**2)


@given(positive, st.integers(1, 10**6), st.floats(1e-12, 1))
def test_what_a_small_start_costs(bound, dimension, epsilon):
    problem = problem_of(1, bound, dimension, 1, epsilon)
    share = bound**2 / (epsilon * dimension)
    assert problem.start_logarithm == pytest.approx(math.log1p(share), rel=1e-12)
    assert problem.second_moment_root == pytest.approx(math.hypot(bound, math.sqrt(epsilon * dimension)))


def test_the_noise_of_a_coordinate_is_no_more_than_its_gradient():
    problem = problem_of(1, [1.0, 2.0, 2.0], 3, 1, variance=[0.25, 9.0, 1.0])
    assert [(part.count, part.gradient, part.noise) for part in problem.parts] == [
        (1, 1.0, 0.5),
        (1, 2.0, 1.0),
        (1, 2.0, 2.0),
    ]
    assert problem_of(1, 1, 3, 1).sup_parts == ()
    assert [part.second_moment for part in problem_of(1, 1, 3, 1, gradient_sup=2).sup_parts] == [4.0]


def test_the_whole_variance_is_a_sum_or_a_number_and_never_above_the_second_moment():
    assert problem_of(1, [3.0, 4.0], 2, 1, variance=[1.0, 2.0]).total_variance == 3
    assert problem_of(1, 5, 2, 1, variance=4).total_variance == 4
    assert [problem_of(1, 5, 2, 1, variance=given).total_variance for given in (None, [20.0, 9.0], 99)] == [25] * 3


def test_an_array_of_no_dimension_is_a_number():
    assert problem_of(1, np.array(2.0), 3, 1, variance=np.array(0.5)) == problem_of(1, 2, 3, 1, variance=0.5)
    with pytest.raises(SettingError, match=r"gap is .*nan"):
        problem_of(1, 1, 3, np.array(math.nan))  # pyright: ignore[reportArgumentType]


def test_thousands_of_different_bounds_without_noise():
    bounds = np.geomspace(1, 10, 2000)
    parts = problem_of(1, bounds, 2000, 1, variance=0).parts
    assert {part.noise for part in parts} == {0.0}
    assert bounds.sum() <= sum(part.count * part.gradient for part in parts)


@pytest.mark.parametrize("spread", [0.1, 1, 3])
def test_thousands_of_different_bounds_are_rounded_up(spread):
    rng = np.random.default_rng(0)
    bounds = np.exp(spread * rng.normal(size=2000))
    many = problem_of(smoothness=1, gradient_bound=bounds, dimension=2000, gap=1)
    assert len(many.parts) <= 64
    assert sum(part.count for part in many.parts) == 2000
    rounded = sum(part.count * part.gradient for part in many.parts)
    assert bounds.sum() <= rounded <= 1.05 * bounds.sum()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_constants_whose_squares_are_no_doubles_are_refused(size):
    """G^2 = 0 would leave out all of the noise, and Python's own powers overflow."""
    plain = {"smoothness": 1, "gradient_bound": 1, "dimension": 1, "gap": 1}
    small = ("smoothness", "gap", "variance", "weights_bound")
    for name in ("gradient_bound", "epsilon", "gradient_sup", *(small * (size > 1))):
        with pytest.raises(SettingError, match=f"{name} is 1e.*from 1e-140 to 1e"):
            problem_of(**plain | {name: size})
    for name in small:  # what may be 0 may be small, and is not lost
        assert getattr(problem_of(**plain | {name: 1e-200}), name) == 1e-140
    with pytest.raises(SettingError, match="from 1 to 1e"):
        problem_of(1, 1, 10**30, 1)
