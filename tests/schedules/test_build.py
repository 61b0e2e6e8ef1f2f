"""Builders: each is its formula; sequences that repeat, and sequences known by their bounds."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.schedules import (
    Bounded,
    Opaque,
    ScheduleError,
    as_schedule,
    clip,
    geometric,
    linear_warmup,
    parse,
    periodic,
    power_law,
    t,
)


def test_builders():
    assert power_law(3, 0.5, shift=1)(3) == 1.5
    assert geometric(2, 0.5)(3) == 0.25
    assert clip(t, 2, 4).values(1, 7).tolist() == [2, 2, 3, 4, 4, 4]
    warm = linear_warmup(4, 0.1)
    np.testing.assert_allclose(warm.values(1, 6), [0.025, 0.05, 0.075, 0.1, 0.1])


@given(period=st.integers(1, 40), step=st.integers(1, 10_000))
def test_values_repeat(period, step):
    u = periodic("1 / (t + 3) + 0.5 * t", period)
    assert u(step) == u(step + period) == as_schedule("1 / (t + 3) + 0.5 * t")((step - 1) % period + 1)
    assert u.values(step, step + 1)[0] == u(step)


@given(divisor=st.integers(2, 50), step=st.integers(1, 10**6))
def test_a_floor_is_a_period(divisor, step):
    assert ((t - periodic(t, divisor)) / divisor)(step) == (step - 1) // divisor


def test_growth_is_the_exact_range_of_one_period():
    u = parse("periodic(0.25 + (t - 2)^2, 5)")
    assert u.growth is not None
    assert (u.growth.low, u.growth.high) == (0.25, 9.25)
    assert parse("periodic(t - 1, 5)").growth is None  # touches zero: its order is not known from below
    staircase = parse("0.1^(t / 30) * periodic(0.1^(-t / 30), 30)")
    assert staircase.growth is not None
    assert staircase.growth.rho.log == pytest.approx(np.log(0.1) / 30, rel=1e-15)


def test_text_complement_pickle():
    u = parse("periodic(1 - 0.5 / t, 7)")
    assert parse(str(u)) == u
    assert pickle.loads(pickle.dumps(u)) == u
    np.testing.assert_array_equal((1 - u).values(1, 20), periodic("0.5 / t", 7).values(1, 20))
    assert periodic(0.5, 3).is_constant


@pytest.mark.parametrize(
    "text", ["periodic(t, 0)", "periodic(t, 2.5)", "periodic(t, t)", "periodic(t)", "periodic(t, -3)"]
)
def test_bad_periods_are_one_line(text):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_bounds_are_enforced_and_give_the_order():
    known = Bounded(Opaque(lambda s: 0.5 + 0.25 * (-1) ** int(s)), 0.25, 0.75)
    assert known.growth is not None
    assert (known.growth.low, known.growth.high) == (0.25, 0.75)
    assert known(1) == 0.25
    np.testing.assert_array_equal(known.values(1, 4), [0.25, 0.75, 0.25])
    wrong = Bounded(Opaque(float), 0.0, 5.0)
    with pytest.raises(ScheduleError, match="outside its bounds"):
        wrong(6)
    with pytest.raises(ScheduleError, match="t = 6"):
        wrong.values(1, 10)
    with pytest.raises(ScheduleError, match="low <= high"):
        Bounded(Opaque(float), 1.0, 0.0)
