import copy
import pickle
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.schedules import (
    Constant,
    ScheduleError,
    as_schedule,
    clip,
    geometric,
    linear_warmup,
    parse,
    power_law,
    t,
)
from generic_adam.schedules.tree import BLOCK
from tests.schedules.expressions import positive_schedules


@given(positive_schedules(), st.integers(1, 3 * BLOCK))
@settings(max_examples=120, deadline=None)
def test_blocks_equal_single_values(schedule, start):
    block = schedule.values(start, start + 20)
    single = np.array([_value(schedule, t) for t in range(start, start + 20)])
    known = ~np.isnan(single)
    np.testing.assert_allclose(block[known], single[known], rtol=1e-13)


def _value(schedule, t):
    try:
        return schedule(t)
    except ScheduleError:  # a part leaves the range of floats, as 0.5^-t does at t = 1075
        return np.nan


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_join_without_a_seam(length):
    times = np.arange(5, 5 + length, dtype=np.float64)
    expected = np.where(times < 9000, 0.001, 0.01 / np.sqrt(times))
    np.testing.assert_array_equal(
        parse("0.001 if t < 9000 else 0.01/sqrt(t)").values(5, 5 + length), expected
    )


def test_at_takes_any_order_and_real_times():
    np.testing.assert_allclose(parse("1/t").at([4.0, 1.0, 2.5]), [0.25, 1, 0.4], rtol=1e-15)


def test_values_needs_a_range_that_starts_at_one():
    for start, stop in ((0, 3), (-1, 2), (5, 4)):
        with pytest.raises(ScheduleError, match="needs 1 <= start <= stop"):
            t.values(start, stop)


@pytest.mark.parametrize(
    ("text", "complement"),
    [
        ("1 - 1/max(t, 2)", lambda t: Fraction(1, max(t, 2))),
        ("1 - 1/(t + 1)", lambda t: Fraction(1, t + 1)),
        ("t/(t + 1)", lambda t: Fraction(1, t + 1)),
        ("(t + 1)/(t + 3)", lambda t: Fraction(2, t + 3)),
        ("max(0.999, 1 - 1/t)", lambda t: min(Fraction(1, 1000), Fraction(1, t))),
        ("0.5 if t < 3 else 1 - 1/t", lambda t: Fraction(1, 2) if t < 3 else Fraction(1, t)),
        ("(1 - 1/(t + 1))^2", lambda t: 1 - (1 - Fraction(1, t + 1)) ** 2),
        ("0.999", lambda t: Fraction(1, 1000)),
        ("theta_from_weights(1)", lambda t: Fraction(1, t + 1)),
    ],
)
def test_one_minus_keeps_its_digits_where_theta_rounds_to_one(text, complement):
    late = [10**3, 10**6] + ([10**12, 10**15] if "weights" not in text else [])
    for step in [1, 2, 3, 10, *late]:
        exact = complement(step)
        assert abs(Fraction((1 - parse(text))(step)) - exact) <= Fraction(1, 10**15) * exact


def test_one_minus_of_an_exponential_keeps_its_digits():
    getcontext().prec = 60
    exact = 1 - (-Decimal(1) / Decimal(10**12)).exp()
    assert float(abs(Decimal((1 - parse("exp(-1/t)"))(10**12)) - exact) / exact) < 1e-15


@pytest.mark.parametrize("exponent", ["0.8", "0.25", "1/3", "0.1"])
def test_powers_keep_their_digits_far_out(exponent):
    getcontext().prec = 60
    for step in (10, 999_999, 1_000_001, 10**9, 10**12):
        power = Fraction(exponent)
        exact = Decimal("0.5") * (-Decimal(step).ln() * power.numerator / power.denominator).exp()
        complement = 1 - parse(f"1 - 0.5/t^({exponent})")
        for value in (complement(step), float(complement.at([float(step)])[0])):
            assert float(abs(Decimal(value) - exact) / exact) < 1e-15


def test_one_minus_undoes_itself():
    theta = parse("1 - 1/max(t, 2)")
    assert 1 - (1 - theta) == theta


def test_numbers_are_the_decimals_people_mean():
    assert as_schedule(0.1) == Constant(Fraction(1, 10))
    assert (1 - as_schedule(0.999))(7) == 0.001


@given(positive_schedules())
@settings(max_examples=60, deadline=None)
def test_survives_pickle_and_deepcopy(schedule):
    schedule.values(1, 3)
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert copy.deepcopy(schedule) == schedule


def test_builders():
    assert power_law(3, 0.5, shift=1)(3) == 1.5
    assert geometric(2, 0.5)(3) == 0.25
    assert clip(t, 2, 4).values(1, 7).tolist() == [2, 2, 3, 4, 4, 4]
    warm = linear_warmup(4, 0.1)
    np.testing.assert_allclose(warm.values(1, 6), [0.025, 0.05, 0.075, 0.1, 0.1])


@pytest.mark.parametrize("bad", [True, None, [1], float("nan"), float("inf")])
def test_what_is_no_schedule_is_refused(bad):
    with pytest.raises(ScheduleError, match="expected"):
        as_schedule(bad)


def test_a_division_by_zero_names_the_step():
    with pytest.raises(ScheduleError, match="t = 5"):
        parse("1/(t - 5)")(5)


@pytest.mark.parametrize("step", [0, -3, 0.5])
def test_time_starts_at_one(step):
    # A library that counts from 0 would otherwise be off by one without a sign of it.
    with pytest.raises(ScheduleError, match="starts at t = 1"):
        parse("1/sqrt(t)")(step)


def test_powers_of_a_number_close_to_one_keep_their_digits():
    schedule = parse("0.999999999^t")
    getcontext().prec = 40
    expected = float(Decimal("0.999999999") ** 10**9)
    assert schedule(10**9) == pytest.approx(expected, rel=1e-14)
    assert schedule.at([1.0, 1e9])[1] == pytest.approx(expected, rel=1e-14)
