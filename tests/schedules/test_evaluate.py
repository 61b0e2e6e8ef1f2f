"""Values one at a time, in blocks, of running sums and of callables: each equal to the others and to the truth."""

import copy
import math
import pickle
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from generic_adam.schedules import (
    Constant,
    Opaque,
    ScheduleError,
    as_schedule,
    bias_correction,
    parse,
    t,
    theta_from_weights,
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
    np.testing.assert_array_equal(parse("0.001 if t < 9000 else 0.01/sqrt(t)").values(5, 5 + length), expected)


def test_at_takes_any_order_and_real_times():
    np.testing.assert_allclose(parse("1/t").at([4.0, 1.0, 2.5]), [0.25, 1, 0.4], rtol=1e-15)


def test_values_needs_a_range_that_starts_at_one():
    for start, stop in (
        (0, 3),
        (-1, 2),
        (5, 4),
        (1, 1.5),
        (1, math.inf),
        (math.nan, 2),
        (1, 10**12),
        (1, 10**400),
    ):
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
        ("0.999", lambda t: Fraction(1, 1000)),
        ("theta_from_weights(1)", lambda t: Fraction(1, t + 1)),
    ],
)
def test_one_minus_keeps_its_digits_where_theta_rounds_to_one(text, complement):
    late = [10**3, 10**6] + ([10**12, 10**15] if "weights" not in text else [])
    for step in [1, 2, 3, 10, *late]:
        exact = complement(step)
        assert abs(Fraction((1 - parse(text))(step)) - exact) <= Fraction(1, 10**15) * exact


@pytest.mark.parametrize(
    ("text", "function", "steps"),
    [
        ("1/(1 + exp(t))", lambda t: 1 / (1 + mp.exp(t)), (1, 40, 700)),
        ("bias_correction(0.5)", lambda t: 1 - mpf("0.5") ** t, (1, 40, 900)),
    ],
)
def test_one_minus_of_a_function_keeps_its_digits(text, function, steps):
    missing = 1 - parse(text)
    with mp.workdps(400):
        for step in steps:
            exact = 1 - function(mpf(step))
            for found in (missing(step), missing.at([step])[0]):
                assert abs(mpf(float(found)) - exact) <= 1e-15 * exact, step


def test_a_complement_that_no_float_holds_is_a_subtraction():
    # The limit of the quotient, 1e309, is too large for a number of the language.
    u = parse("1e-302*(1e300*t/(1e-9*t + 1))")
    assert (1 - u)(10) == pytest.approx(0.9)


@pytest.mark.parametrize("exponent", ["0.8", "0.25", "1/3", "0.1"])
def test_powers_keep_their_digits_far_out(exponent):
    getcontext().prec = 60
    for step in (10, 999_999, 1_000_001, 10**9, 10**12):
        power = Fraction(exponent)
        exact = Decimal("0.5") * (-Decimal(step).ln() * power.numerator / power.denominator).exp()
        complement = 1 - parse(f"1 - 0.5/t^({exponent})")
        for found in (complement(step), float(complement.at([float(step)])[0])):
            assert float(abs(Decimal(found) - exact) / exact) < 1e-15


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


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("1", lambda t: Fraction(1)),
        ("t", Fraction),
        ("t^2", lambda t: Fraction(t) ** 2),
        ("1/t", lambda t: Fraction(1, t)),
        ("2^t", lambda t: Fraction(2) ** t),
        ("t * 0.5^t", lambda t: t * Fraction(1, 2) ** t),
        ("3^t / t", lambda t: Fraction(3) ** t / t),
    ],
)
@pytest.mark.parametrize("initial", [1, Fraction(5, 2)])
def test_theta_from_weights_equals_exact_sums(text, weight, initial):
    theta = theta_from_weights(parse(text), initial)
    total = Fraction(initial)
    for step in range(1, 1500):
        before, total = total, total + weight(step)
        if step in {1, 2, 3, 10, 1023, 1024, 1025, 1026, 1499}:
            assert theta(step) == pytest.approx(float(before / total), rel=1e-13)
            assert (1 - theta)(step) == pytest.approx(float(weight(step) / total), rel=1e-13)


def test_blocks_of_theta_equal_single_values_in_any_order():
    theta = theta_from_weights("t^0.5")
    block = theta.values(1, 5000)
    fresh = theta_from_weights("t^0.5")
    np.testing.assert_array_equal([fresh(t) for t in (4999, 1, 2048, 3)], block[[4998, 0, 2047, 2]])
    np.testing.assert_array_equal(fresh.at([4999.0, 1, 2048, 3]), block[[4998, 0, 2047, 2]])


def test_growing_geometric_weights_do_not_overflow():
    theta = theta_from_weights("0.001 * 0.999^-t")
    np.testing.assert_allclose(theta.values(999_000, 1_000_001), 0.999, rtol=1e-12)


@pytest.mark.parametrize("text", ["1 - 1/max(t, 2)", "0.9 * 0.99^t", "max(0.9, 1 - 1/t)", "0.999"])
def test_bias_correction_has_the_exact_product(text):
    factor = parse(text)
    corrected = bias_correction(factor)
    product = 1.0
    for step in range(1, 3000):
        product *= factor(step)
        assert corrected(step) == pytest.approx(1 - product, rel=1e-11)
    np.testing.assert_allclose(corrected.values(1, 3000), [corrected(t) for t in range(1, 3000)], rtol=1e-14)


def test_bias_correction_of_a_factor_that_is_zero_at_first_is_one():
    assert bias_correction("1 - 1/t").values(1, 5).tolist() == [1, 1, 1, 1]
    assert bias_correction(0)(3) == 1


def test_small_corrections_keep_their_digits():
    assert bias_correction("1 - 1e-12")(1) == pytest.approx(1e-12, rel=1e-14)
    assert bias_correction("0.999")(10) == pytest.approx(-math.expm1(10 * math.log1p(-0.001)), rel=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theta_from_weights("1 - t")(3), "weights must be positive, got w_t = 0"),
        (lambda: theta_from_weights("1", -2), "must be positive"),
        (lambda: bias_correction(1.5), r"\[0, 1\)"),
        (lambda: bias_correction("t/3").values(1, 9), "at t = 3"),
        (lambda: theta_from_weights("t^0.5").at([2.5]), "whole t"),
        (lambda: theta_from_weights("t^0.5")(10**12), "up to t = 1e"),
        (lambda: theta_from_weights(as_schedule(lambda t: -1.0))(1), "weights must be positive"),
    ],
)
def test_bad_recursions_say_what_and_where(make, message):
    with pytest.raises(ScheduleError, match=message):
        make()


def test_a_vectorised_callable_is_called_once_a_block():
    calls = []

    def alpha(t):
        calls.append(np.ndim(t))
        return 0.5 / np.sqrt(t)

    values = as_schedule(alpha).values(1, 5001)
    np.testing.assert_allclose(values, 0.5 / np.sqrt(np.arange(1, 5001)), rtol=1e-15)
    assert calls.count(1) == 1
    assert len(calls) < 10


@pytest.mark.parametrize(
    "function",
    [
        lambda t: 0.1 if t < 50 else 0.01,
        lambda t: max(t, 2) / 1000,
        lambda t: math.exp(-t),
        lambda t: 0.9,
        lambda t: float(np.sum(t)),  # takes arrays, but is not a function of each entry
        lambda t: t[0] if np.ndim(t) else t,
    ],
)
def test_a_scalar_callable_gives_the_same_numbers_one_by_one(function):
    schedule = as_schedule(function)
    np.testing.assert_array_equal(schedule.values(1, 101), [function(t) for t in range(1, 101)])


def _raises(t):
    if t >= 7:
        raise KeyError("no entry")
    return 0.1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_raises, "raised at t = 7: KeyError"),
        (lambda t: np.zeros(3), "returned array([0., 0., 0.]) at t = 1; expected one number"),
        (lambda t: "0.1", "returned '0.1' at t = 1; expected one number"),
        (lambda t: 10**400, "at t = 1; expected one number"),
        (lambda t: None, "returned None at t = 1"),
    ],
)
def test_a_bad_callable_is_named_with_the_step(function, message):
    with pytest.raises(ScheduleError) as caught:
        as_schedule(function).values(1, 20)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_known_of_its_tail():
    schedule = as_schedule(lambda t: 1 / t)
    assert isinstance(schedule, Opaque)
    assert schedule.growth is None
    assert (schedule * 2).growth is None


def test_a_constant_outside_its_bounds_is_one_line():
    with pytest.raises(ScheduleError, match=r"leaves its bounds 6e-08 and 6e-08 at t = 1"):
        parse("bounded(1, 6e-8, 6e-8)").values(1, 4)
