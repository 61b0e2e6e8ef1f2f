import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.schedules import parse
from generic_adam.schedules.balls import above, below
from generic_adam.schedules.enclosure import enclose
from generic_adam.schedules.expansion import share_times_t
from generic_adam.schedules.tree import WeightShare
from tests.schedules.expressions import positive_schedules


def _later(start):
    """Steps from start on, near and far."""
    far = np.floor(np.geomspace(start, start * 1e6 + 100, 60))
    return np.unique(np.concatenate([np.arange(start, start + 60, dtype=float), far]))


@given(positive_schedules(), st.sampled_from([1, 2, 17, 300]))
@settings(max_examples=400, deadline=None)
def test_every_fact_is_true_of_the_values(schedule, start):
    facts = enclose(schedule, start)
    times = _later(start)
    values = schedule.at(times)
    finite = np.isfinite(values) & (values > 1e-300) & (values < 1e300)
    values = values[finite]
    assert np.all(values * (1 + 1e-12) >= below(facts.range.low))
    assert np.all(values * (1 - 1e-12) <= above(facts.range.high))
    if facts.direction == 1:
        assert np.all(np.diff(values) >= -1e-12 * values[1:])
    if facts.direction == -1:
        assert np.all(np.diff(values) <= 1e-12 * values[1:])
    if facts.direction == 0:
        np.testing.assert_allclose(values, values[:1].repeat(values.size), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "start", "direction", "positive"),
    [
        ("1/max(t, 2)", 1, -1, True),
        ("log(t+1)/(t+1)", 1, None, True),
        ("t * 0.99^t", 1, None, True),
        ("min(0.001, 1/t)", 1, -1, True),
        ("1 - theta_from_weights(t^0.5)", 1, -1, True),
        ("1 - theta_from_weights(t)", 1, -1, True),
        ("1 - theta_from_weights(t^2)", 1, None, True),
        ("1 - theta_from_weights(t^2)", 5, -1, True),
        ("1 - theta_from_weights(t^-0.5)", 1, -1, True),
        ("bias_correction(0.999)", 1, 1, True),
        ("1 + 0.5*sin(t)", 1, None, True),
        ("sin(t)", 1, None, False),
        ("t - 5", 1, 1, False),
        ("t - 5", 6, 1, True),
        ("1 if t < 10 else 2", 1, None, True),
        ("1 if t < 10 else 2", 10, 0, True),
    ],
)
def test_known_directions_and_signs(text, start, direction, positive):
    facts = enclose(parse(text), start)
    assert facts.direction == direction
    assert facts.positive is positive


def test_a_finite_stretch_can_know_more():
    cosine = parse("0.5 + 0.5*cos(pi*t/1000)")
    assert enclose(cosine, 1, 999).direction == -1
    assert enclose(cosine, 1, 999).positive
    assert enclose(cosine, 1).direction is None
    bounds = enclose(parse("cos(1/(t + 1))"), 1).range
    assert (below(bounds.low), above(bounds.high)) == (pytest.approx(math.cos(0.5)), 1.0)


@pytest.mark.parametrize("power", ["0", "0.5", "1", "2", "-0.5"])
def test_the_share_of_power_weights_times_t_is_enclosed(power):
    share = 1 - parse(f"theta_from_weights(t^{power})" if power != "0" else "theta_from_weights(1)")
    assert isinstance(share, WeightShare)
    for start in (2, 50, 2000):
        bounds = share_times_t(share, start)
        assert bounds is not None
        times = np.unique(np.floor(np.geomspace(start, 200_000, 300)))
        products = times * share.at(times)
        assert np.all(products >= below(bounds.low) * (1 - 1e-12))
        assert np.all(products <= above(bounds.high) * (1 + 1e-12))
    assert bounds.high / bounds.low < 1.1


def test_a_step_is_enclosed_with_its_rounding():
    difference = parse("sqrt(t + 1) - sqrt(t)")
    t = 10**12
    exact = 1 / (math.sqrt(t + 1) + math.sqrt(t))
    bounds = enclose(difference, t, t).range
    assert below(bounds.low) <= exact * (1 + 1e-15)
    assert above(bounds.high) >= exact * (1 - 1e-15)
    assert above(bounds.high) - below(bounds.low) < 1e-20


@pytest.mark.parametrize(
    ("text", "t", "value"),
    [
        # The float nearest to 0.8, or to 0.999999, is off by more than an ulp of the power.
        ("t^0.8", 10**9, "15848931.92461113485202101"),
        ("0.999999^t", 10**6, "0.3678792572316450942857981"),
        ("min(expm1(t), t^2)", 10**6, "1e12"),
        ("t^(1/t)", 2, "1.414213562373095048801689"),
    ],
)
def test_one_step_lies_in_its_range(text, t, value):
    bounds = enclose(parse(text), t, t).range
    # The values are given to 25 digits.
    slack = Fraction(value) / 10**24
    assert Fraction(below(bounds.low)) - slack <= Fraction(value) <= Fraction(above(bounds.high)) + slack


def test_a_moving_exponent_over_a_base_of_any_sign_is_unknown():
    assert enclose(parse("(5 - t)^(1 + 1/t)"), 1).sign == 0


def test_an_overflow_inside_leaves_no_nan():
    assert enclose(parse("0.5^(1.01^t)"), 10**6).range.low == 0


def test_an_overflow_inside_leaves_no_exact_zero():
    # 0.999999^t underflows at t = 10^9, and 100 over it overflows; one over that is still positive.
    assert enclose(parse("1 / (100 / 0.999999^t)"), 10**9, 10**9).range.high > 0


def test_a_power_beyond_floats_has_facts_all_the_same():
    assert enclose(parse("1.01^(1e6 + 1/t)"), 10**6).positive
