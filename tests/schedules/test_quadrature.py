"""Gauss and Legendre's rule is exact as far as it promises; a share has values at real t."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.schedules import ScheduleError, parse, quadrature
from generic_adam.schedules.tree import WeightShare


@given(st.integers(2, 20), st.integers(0, 39))
def test_a_rule_of_n_nodes_is_exact_up_to_degree_2n_minus_1(nodes, degree):
    points, weights = quadrature.gauss_legendre(nodes)
    exact = 0 if degree % 2 else 2 / (degree + 1)
    if degree < 2 * nodes:
        assert math.isclose(weights @ points**degree, exact, abs_tol=1e-13)


@pytest.mark.parametrize("weights", ["t^0.5", "t^2", "1/t", "log(t + 1)"])
def test_a_share_at_real_times_is_the_running_sum_s_at_whole_ones(weights):
    share = 1 - parse(f"theta_from_weights({weights})")
    assert isinstance(share, WeightShare)
    times = np.array([1024.0, 1500.0, 20_000.0, 99_999.0])
    np.testing.assert_allclose(quadrature.smooth_share(share, times), share.at(times), rtol=1e-11)
    between = share.at([1024.5, 20_000.25])
    assert share(1025) < between[0] < share(1024) or share(1024) < between[0] < share(1025)
    with pytest.raises(ScheduleError, match="whole t"):
        share.at([2.5])
