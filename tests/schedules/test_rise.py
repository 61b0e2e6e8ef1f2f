"""C0 of (R3): brute force on finite stretches, closed forms for ever; an upper bound always."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from generic_adam.schedules import as_schedule, parse
from generic_adam.schedules.rise import least_rise
from tests.schedules.expressions import positive_schedules


def _brute(values):
    return float(np.max(values / np.minimum.accumulate(values)))


@given(positive_schedules())
@settings(max_examples=80, deadline=None)
def test_on_a_finite_stretch_it_is_brute_force(schedule):
    with np.errstate(all="ignore"):
        values = schedule.at(np.arange(1.0, 201))
    if not (np.isfinite(values).all() and values.min() > 1e-280 and values.max() < 1e280):
        return
    found, exact = least_rise(schedule, 200), _brute(values)
    assert found.constant >= exact * (1 - 1e-12)
    if found.exact:
        assert found.constant == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("1/sqrt(t)", 1),
        ("5", 1),
        ("min(t, 100)/100", 100),
        ("t/(t + 1)", 2),
        ("2 - 1/t", 2),
        ("1 if t < 10 else 0.5 if t < 20 else 0.75", 1.5),
        ("t*0.5^t if t < 4 else 3 - 2/t", 3 / 0.375),
        ("log(t + 1)/(t + 1)", math.log(3) / 3 / (math.log(2) / 2)),
    ],
)
def test_for_ever_it_is_the_supremum(text, constant):
    found = least_rise(parse(text))
    assert found.exact
    assert found.constant == pytest.approx(constant, rel=1e-6)
    assert found.constant >= constant * (1 - 1e-15)


def test_it_is_1_where_nothing_rises_and_above_1_where_something_does():
    for text, last in (("exp(1)/t", math.inf), ("sqrt(2)", 1000), ("exp(1)/sqrt(t)", 1000)):
        assert least_rise(parse(text), last).constant == 1
    # by less than a ball of the first precision tells
    assert least_rise(parse("sqrt(2) if t < 5 else sqrt(2) + 1e-60")).constant > 1


@pytest.mark.parametrize("text", ["t", "log(t + 1)", "1.001^t"])
def test_what_grows_has_none(text):
    assert least_rise(parse(text)).constant == math.inf


def test_a_callable_has_one_on_a_horizon_only():
    alpha = as_schedule(lambda t: 1 + (t % 7) / 7)
    assert least_rise(alpha, 100).constant == pytest.approx(13 / 7, rel=1e-9)
    assert least_rise(alpha).constant == math.inf


def test_a_constant_that_no_double_holds_says_so():
    found = least_rise(parse("1e-300 if t < 2 else 1e300"), 10)
    assert (found.constant, found.note) == (math.inf, "it exceeds the largest double")
