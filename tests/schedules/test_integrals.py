"""Integrals over many orders of magnitude against their closed forms, and sums by means of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.schedules import WeightShare, parse
from generic_adam.schedules.sums import (
    NarrowPanelError,
    QuadratureError,
    SmoothShare,
    end_correction,
    gauss_legendre,
    integral,
)


@given(st.integers(2, 20), st.integers(0, 39))
def test_a_rule_of_n_nodes_is_exact_up_to_degree_2n_minus_1(nodes, degree):
    points, weights = gauss_legendre(nodes)
    exact = 0 if degree % 2 else 2 / (degree + 1)
    if degree < 2 * nodes:
        assert math.isclose(weights @ points**degree, exact, abs_tol=1e-13)


@pytest.mark.parametrize("power", [-2.0, -1.0, -0.5, 0.0, 0.8, 3.0])
def test_powers_over_fifteen_orders_of_magnitude(power):
    exact = math.log(1e15) if power == -1 else (1e15 ** (power + 1) - 1) / (power + 1)
    assert integral(lambda t: t**power, 1, 1e15) == pytest.approx(exact, rel=1e-12)


def test_iterated_logarithms():
    found = integral(lambda t: 1 / (t * np.log(t) * np.log(np.log(t))), 20, 1e300)
    exact = math.log(math.log(math.log(1e300)) / math.log(math.log(20)))
    assert found == pytest.approx(exact, rel=1e-12)
    assert integral(np.sqrt, 5, 5) == 0


def test_what_is_not_smooth_or_not_finite_is_said():
    with pytest.raises(QuadratureError, match="not finite"):
        integral(lambda t: np.where(t > 5, np.inf, 1.0), 1, 10)
    with pytest.raises(NarrowPanelError, match="bends within a few steps near t = ") as caught:
        integral(lambda t: np.where(t < 1234.5, 0.0, 1.0), 1, 1e6, narrowest=4.0)
    assert caught.value.lower <= 1234.5 <= caught.value.upper


@pytest.mark.parametrize("u", [lambda t: t**-0.5, np.log, lambda t: t**0.8])
def test_an_integral_and_its_ends_are_a_sum(u):
    times = np.arange(1000.0, 100_001)
    lower, upper = 999.5, 100_000.5
    found = integral(u, lower, upper) - end_correction(u, lower, upper)
    assert found == pytest.approx(math.fsum(u(times)), rel=1e-13)


@pytest.mark.parametrize("weights", ["t^0.5", "t^2", "1/t", "log(t + 1)"])
def test_a_share_at_real_times_is_the_running_sum_s_at_whole_ones(weights):
    share = 1 - parse(f"theta_from_weights({weights})")
    assert isinstance(share, WeightShare)
    times = np.array([1024.0, 1500.0, 20_000.0, 99_999.0])
    np.testing.assert_allclose(SmoothShare(share.weights, share.initial).at(times), share.at(times), rtol=1e-11)
