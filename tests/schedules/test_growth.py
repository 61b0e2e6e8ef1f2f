import math
from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given, settings

from generic_adam.schedules import parse
from generic_adam.schedules.growth import GeometricBase
from tests.schedules.expressions import positive_schedules

ORDERS = {
    "0.5/sqrt(t)": "t^(-1/2)",
    "3": "1",
    "0": "0",
    "1 - 1/max(t, 2)": "1",
    "1 - t/(t+1)": "t^(-1)",
    "0.9 * 0.99^t": "0.99^t",
    "0.99^t / 0.99^t": "1",
    "0.5^t * 4^(t/2)": "1",
    "exp(-t/2) * exp(t/2)": "1",
    "t^(1/3) * sqrt(t)": "t^(5/6)",
    "1/(sqrt(t) * log(t+1))": "t^(-1/2) (log t)^(-1)",
    "log(log(t+2))": "log log t",
    "log(3*t^2)": "log t",
    "log(2^t)": "t",
    "log(1 + 1/t)": "t^(-1)",
    "log1p(1/t^2)": "t^(-2)",
    "expm1(1/t)": "t^(-1)",
    "1 - exp(-1/t)": "t^(-1)",
    "1 - sqrt(1 - 1/(t+1))": "t^(-1)",
    "exp(1/t)": "1",
    "1 + 0.5*sin(t)": "1",
    "(1 + 0.5*sin(t))/t": "t^(-1)",
    "t + sin(t)": "t",
    "abs(cos(t)) + 1": "1",
    "max(t, 100)": "t",
    "min(t, 100)": "1",
    "max(0.999, 1 - 1/t)": "1",
    "1 - max(0.999, 1 - 1/t)": "t^(-1)",
    "t if t < 100 else 1/t": "t^(-1)",
    "t^2 + t": "t^2",
    "theta_from_weights(t^0.5)": "1",
    "1 - theta_from_weights(t^0.5)": "t^(-1)",
    "1 - theta_from_weights(1/t)": "t^(-1) (log t)^(-1)",
    "1 - theta_from_weights(t^-2)": "t^(-2)",
    "1 - theta_from_weights(2^t)": "1",
    "1 - theta_from_weights(0.5^t)": "0.5^t",
    "1 - theta_from_weights(1/(t*log(t+1)))": "t^(-1) (log t)^(-1) (log log t)^(-1)",
    "bias_correction(0.999)": "1",
    "bias_correction(1 - 1/t^2)": "1",
    "2^(1/t)": "1",
    # What is left where leading terms cancel.
    "sqrt(t+1) - sqrt(t)": "t^(-1/2)",
    "(t+1)^0.3 - t^0.3": "t^(-7/10)",
    "sqrt(t^2+1) - t": "t^(-1)",
    "sqrt((t+1e9)^2 + 1) - (t+1e9)": "t^(-1)",
    "log(t+1) - log(t)": "t^(-1)",
    "2/t^0.5 - 3/t": "t^(-1/2)",
    "sin(1/t)": "t^(-1)",
    "1 - cos(1/t)": "t^(-2)",
    "t^(1/t)": "1",
    "t^(1/t) - 1": "t^(-1) log t",
    "(1 + 1/t)^t": "1",
    "exp(log(t)/2)": "t^(1/2)",
    "exp(2*log(log(t+9)))": "(log t)^2",
    "1e-300^2 + 1/t": "1",
    "max(1/t, 1e-200*1e-200)": "1",
    "abs(1/t - 1/sqrt(t))": "t^(-1/2)",
}
UNKNOWN = [
    "sin(t)",
    "1 - sin(t)^2",
    "t - t*cos(t)",
    "log(log(log(t+20)))",
    "exp(sqrt(t))",
    "t^t",
    "exp(1) - (1 + 1/t)^t",  # the constants cancel, and no digits prove it
]


@pytest.mark.parametrize(("text", "order"), ORDERS.items())
def test_order_of_growth(text, order):
    assert str(parse(text).growth) == order


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_not_known_is_not_guessed(text):
    assert parse(text).growth is None


@given(positive_schedules())
@settings(max_examples=300, deadline=None)
def test_growth_agrees_with_the_values_far_out(schedule):
    """Log u_t less the log of the scale function: the coefficient, up to slow corrections."""
    growth = schedule.growth
    # A geometric part takes over late and leaves the range of floats early: the table above tests it.
    if growth is None or "^t" in str(schedule) or not math.isfinite(growth.high) or growth.low < 1e-300:
        return
    t = 1e12
    value = float(schedule.at([t])[0])
    scale = float(growth.power) * math.log(t) + float(growth.log) * math.log(math.log(t))
    scale += float(growth.loglog) * math.log(math.log(math.log(t)))
    # Constants inside logarithms fade as slowly as 1/log t, hence the allowance.
    assert math.log(growth.low) - 3 <= math.log(value) - scale <= math.log(growth.high) + 3


def test_partial_sums_follow_the_rules_of_the_scale():
    cases = {
        "1/sqrt(t)": "t^(1/2)",
        "1/t": "log t",
        "1/(t*log(t+1))": "log log t",
        "log(t+1)/t": "(log t)^2",
        "1/(t*log(t+1)*log(log(t+9))^0.5)": "(log log t)^(1/2)",
        "1/(t*log(t+1)*log(log(t+9))^2)": "1",
        "1/(t*log(t+1)^2)": "1",
        "1/t^2": "1",
        "0.99^t * t^5": "1",
        "1.01^t / t": "1.01^t t^(-1)",
    }
    for text, order in cases.items():
        growth = parse(text).growth
        assert growth is not None
        assert str(growth.partial_sums()) == order
    off_the_scale = parse("1/(t*log(t+1)*log(log(t+9)))").growth
    assert off_the_scale is not None
    assert off_the_scale.partial_sums() is None


def test_coefficients_are_enclosed():
    growth = parse("(2 + sin(t)) * sqrt(3) / t").growth
    assert growth is not None
    assert growth.low <= math.sqrt(3) <= 3 * math.sqrt(3) <= growth.high
    assert growth.high < 3.001 * math.sqrt(3)


def test_the_base_of_a_geometric_factor_is_exact():
    half = GeometricBase.from_rational(Fraction(1, 2))
    assert (half ** Fraction(1, 3) * GeometricBase.from_rational(Fraction(8)) ** Fraction(1, 9)).sign_of_log == 0
    near_one = GeometricBase.from_rational(Fraction(10**20 + 1, 10**20))
    assert near_one.sign_of_log == 1
    assert (near_one ** Fraction(-1)).sign_of_log == -1
    e_times_rational = GeometricBase(fmpq(1)) * GeometricBase.from_rational(
        Fraction(367879441171442321595523770161460867445811131031767834507836801697461495744899, 10**78)
    )
    assert e_times_rational.sign_of_log != 0  # e is irrational, however good the approximation


def test_the_logarithm_of_a_base_close_to_one_keeps_its_digits():
    assert GeometricBase.from_rational(1 - Fraction(1, 10**9)).log == pytest.approx(-1.0000000005e-9, rel=1e-15)
    assert GeometricBase.from_rational(1 + Fraction(1, 10**20)).log == pytest.approx(1e-20, rel=1e-15)


@pytest.mark.parametrize("text", ["(1e300*t)^0.1 - 1e30*t^0.1", "exp(300.1 - t/10) - exp(300.1)*exp(-t/10)"])
def test_a_difference_that_is_zero_has_no_sign(text):
    growth = parse(text).growth
    assert growth is None or growth.is_zero


def test_a_base_next_to_1_is_shown_by_its_logarithm():
    assert str(parse("exp(-1e-200*t)/t").growth) == "e^(-1e-200 t) t^(-1)"
