"""Expansions at infinity: what is proved of a tail is true of its values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.schedules import parse, periodic, substitute, t
from generic_adam.schedules.balls import sign_of_step
from generic_adam.schedules.expansion import direction, tail_direction, tail_sign
from tests.schedules.expressions import positive_schedules


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("sqrt(t^2 + 1) - t", 64, 1),
        ("log(t + 1) - log(t) - 1/t", 64, -1),
        ("t^0.5 - 100", 64, None),
        ("t^0.5 - 100", 10_001, 1),
        ("1/t - 2/t^2 - 1/(t + 2)", 64, -1),
        ("exp(1/t) - 1 - 1/t", 64, 1),
        ("sin(t)", 64, None),
        ("sqrt((t + 100)^2 + 1) - (t + 100)", 64, None),
        ("sqrt((t + 100)^2 + 1) - (t + 100)", 8192, 1),
    ],
)
def test_the_sign_of_a_tail(text, start, expected):
    assert tail_sign(parse(text), start) == expected


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("log(t + 1)/(t + 1)", 64, -1),
        ("t/(t + 1)", 64, 1),
        ("t^-0.4/sqrt(t^-0.8)", 16, 0),
        ("log(log(t + 99))^0.5/(t*log(t + 9))^0.25", 1024, -1),
        ("bias_correction(0.999)^0.5/bias_correction(0.9)", 64, None),
        ("bias_correction(0.999)^0.5/bias_correction(0.9)", 8192, 1),
        ("t*0.99^t", 64, None),
        ("t*0.99^t", 200, -1),
        ("2 + sin(t)", 64, None),
    ],
)
def test_the_direction_of_a_tail(text, start, expected):
    assert tail_direction(parse(text), start) == expected


@given(positive_schedules(), positive_schedules(), st.sampled_from([64, 1000]))
@settings(max_examples=80, deadline=None)
def test_what_is_proved_of_a_tail_is_true_of_its_values(one, other, start):
    difference = one - other
    times = np.unique(np.floor(np.geomspace(start, start * 1e4, 200)))
    with np.errstate(all="ignore"):
        values, sizes = difference.at(times), np.abs(one.at(times)) + np.abs(other.at(times))
    known = np.isfinite(values) & np.isfinite(sizes) & (sizes > 1e-290)
    values, slack = values[known], 1e-11 * sizes[known]
    sign, direction = tail_sign(difference, start), tail_direction(difference, start)
    if sign is not None:
        assert np.all(sign * values >= -slack) if sign else np.all(np.abs(values) <= slack)
    if direction:
        assert np.all(direction * np.diff(values) >= -(slack[1:] + slack[:-1]))


STAIRS = {
    "t - periodic(t, 7)": 1,
    "(t + 3 - periodic(t, 7))^-0.5": -1,
    "0.5^((t - periodic(t - 1, 300))/300)": -1,
    "1 - 1/(t + 9 - periodic(t, 10))^0.7": 1,
    "1/(2*t - periodic(2*t + 1, 5) + 9)": -1,
    "max(0.9, 1 - 1/(t - periodic(t, 4) + 4))": 1,
    "(t - periodic(t, 7))/t": None,
    "log(t - periodic(t, 7) + 1)*t": None,
    "bias_correction(0.9)*(t - periodic(t, 7))": None,
    "cos(t - periodic(t, 7))": None,
}


@pytest.mark.parametrize(("text", "expected"), STAIRS.items(), ids=STAIRS)
def test_a_staircase_goes_where_its_steps_go(text, expected):
    found = direction(parse(text), 1, math.inf)
    assert found == expected
    if found is not None:
        moves = np.diff(parse(text).values(1, 2000))
        assert np.all(found * moves >= 0)
        assert np.any(moves != 0)


@given(positive_schedules(), st.integers(1, 40), st.integers(1, 60), st.sampled_from([200.0, math.inf]))
@settings(max_examples=60, deadline=None)
def test_what_is_said_of_a_staircase_is_true_of_its_values(smooth, length, start, stop):
    stairs = substitute(smooth, {t: (t + length - periodic(t, length)) / length})
    found = direction(stairs, start, stop)
    if found is not None:
        assert all(sign_of_step(stairs, step) in {None, 0, found} for step in range(start + 1, start + 3 * length + 2))
