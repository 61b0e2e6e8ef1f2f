"""The normal form keeps the value, folds numbers exactly, and is reached by every way to write a schedule."""

from fractions import Fraction
from functools import reduce
from operator import mul

import pytest
from flint import arb
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generic_adam.schedules import ScheduleError, as_power_of_t, as_schedule, parse, t
from generic_adam.schedules.balls import Precision, ball, number, power, value
from generic_adam.schedules.normal import as_linear, derivative, factored, has_callable, linear

fractions = st.fractions(-20, 20, max_denominator=9)


@given(fractions, fractions, fractions, fractions)
def test_lines_are_collected_exactly(a, b, c, d):
    one, other = linear(a, b), linear(c, d)
    assert as_linear(one) == (a, b)
    assert one + other == linear(a + c, b + d)
    assert one - other == linear(a - c, b - d)
    assert as_schedule(c) * one == linear(a * c, b * c)
    assert -one == linear(-a, -b)


@given(
    st.recursive(
        st.sampled_from(["t", "(t-5)", "2"]),
        lambda part: st.one_of(
            st.builds("({}*{})".format, part, part),
            st.builds("({}/{})".format, part, part),
            st.builds("({}^({}))".format, part, st.sampled_from(["-2", "-1", "-0.5", "0.5", "1.5", "2"])),
            st.builds("sqrt({})".format, part),
        ),
        max_leaves=5,
    )
)
@example("(1/(t-5))*(t-5)")
@example("(t-5)^(-0.5)*(t-5)")
@example("sqrt((t-5)^2)")
def test_factors_are_a_number_exactly_where_the_whole_is(text):
    schedule = parse(text)
    with Precision():
        for step in (1, 4, 5, 6, 9):
            product = reduce(mul, (power(value(b, step), number(p)) for b, p in factored(schedule).items()), arb(1))
            assert product.is_finite() == ball(value(schedule, step)).is_finite(), step
            assert not product.is_finite() or product.overlaps(ball(value(schedule, step)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 - (1 - 1/t)", "1/t"),
        ("t + 1 + 2", "t + 3"),
        ("2*t - t", "t"),
        ("(1 + 1)*t/2", "t"),
        ("0.1 + 0.2", "0.3"),
        ("(1/2)^-3", "8"),
        ("sqrt(t)*1", "sqrt(t)"),
        ("0 + t^2", "t^2"),
        ("t^1", "t"),
        ("max(2, 3)", "3"),
        ("1 - t/(t + 1)", "1/(t + 1)"),
    ],
)
def test_two_ways_to_write_it_are_one_schedule(one, other):
    assert parse(one) == parse(other)


@given(fractions, st.sampled_from([Fraction(-1, 2), Fraction(-4, 5), Fraction(2), Fraction(1, 3)]))
@settings(max_examples=50)
def test_powers_of_t_are_read_off(coefficient, exponent):
    found = as_power_of_t(as_schedule(coefficient) * t ** as_schedule(exponent))
    assert found is not None
    assert found[0] == coefficient
    assert coefficient == 0 or found[1] == exponent
    assert as_power_of_t(parse("1/(t + 1)")) is None


def test_a_callable_is_found_wherever_it_is():
    inside = as_schedule(lambda t: 0.5)
    assert has_callable(1 - inside / t)
    assert not has_callable(parse("1 - 0.5/t"))


@pytest.mark.parametrize(
    "text",
    [
        "t^0.8",
        "0.99^t*t^2",
        "log(t + 2)/sqrt(t)",
        "exp(-1/t)",
        "sin(3/t)*cos(t)",
        "t^(1/t)",
        "log1p(2*t) - expm1(1/t)",
    ],
)
def test_the_derivative_is_that_of_differences(text):
    schedule = parse(text)
    h = 1e-5
    for at in (1.5, 7.0, 40.0):
        slope = (schedule.at([at + h])[0] - schedule.at([at - h])[0]) / (2 * h)
        assert derivative(schedule).at([at])[0] == pytest.approx(slope, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("text", ["max(t, 3)", "1 if t < 4 else t", "theta_from_weights(t)", "periodic(t, 3)"])
def test_what_bends_has_no_derivative(text):
    with pytest.raises(ScheduleError, match="no derivative"):
        derivative(parse(text))


def test_the_complement_of_a_long_product_is_not_long():
    for count in (5, 50):
        product = reduce(mul, (1 - 1 / (t + k) for k in range(1, count + 1)))
        assert len(str(1 - product)) < 60 * count
