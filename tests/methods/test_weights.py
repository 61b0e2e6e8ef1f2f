"""Weights and theta, both ways, by logarithms."""

import math

import numpy as np
import pytest

from generic_adam.methods import Method, MethodError, log_weights, theta_from_log_weights


def test_constant_theta_for_a_million_steps_there_and_back():
    steps, theta = 10**6, 0.999
    logarithms = log_weights(theta, steps)
    # closed form: w_t = (1 - theta) theta^-t, which is e^1000 at the end, beyond any double
    expected = math.log(0.001) - np.arange(1, steps + 1) * math.log(theta)
    np.testing.assert_allclose(logarithms, expected, rtol=0, atol=1e-9)
    assert logarithms[-1] > math.log(np.finfo(float).max)
    back, complement = theta_from_log_weights(logarithms)
    np.testing.assert_allclose(back, theta, rtol=1e-12)
    np.testing.assert_allclose(complement, 0.001, rtol=1e-9)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10, 99, 100, 101])
def test_any_number_of_steps(steps):
    expected = np.log(0.25) - np.arange(1, steps + 1) * np.log(0.75)
    np.testing.assert_allclose(log_weights(0.75, steps), expected, rtol=1e-13)


def test_weights_of_the_schedule_are_recovered():
    method = Method.from_weights(1, 0, "t^0.7", initial=3.0)
    times = np.arange(1, 2001)
    np.testing.assert_allclose(log_weights(method.theta, 2000, initial=3.0), 0.7 * np.log(times), atol=1e-11)


def test_geometric_weights_as_a_schedule_are_constant_theta():
    # w_t = (1 - theta) theta^-t through the schedule algebra, past the t where raw weights overflow
    method = Method.from_weights(1, 0, "0.001 * 0.999^(-t)")
    for t in (1, 1000, 10**6):
        assert method.theta(t) == pytest.approx(0.999, rel=1e-12)


def test_complement_keeps_its_digits_where_theta_rounds_to_one():
    logarithms = log_weights("1 - 1e-20", 5)
    _, complement = theta_from_log_weights(logarithms)
    np.testing.assert_allclose(complement, 1e-20, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_weights("1 - 1/t", 10), r"^theta: weights need 0 < theta_t < 1, got 0 at t = 1$"),
        (lambda: log_weights(0.9, 10, initial=0), r"^initial: expected a finite W_0 > 0, got 0$"),
        (lambda: theta_from_log_weights([0.0, math.inf]), r"^weights: expected a one-dimensional array"),
        (lambda: theta_from_log_weights([[0.0]]), r"^weights: expected a one-dimensional array"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(MethodError, match=message):
        call()
