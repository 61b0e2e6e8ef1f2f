import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.schedules import Opaque, ScheduleError, as_schedule, clip, join, parse, periodic, t
from generic_adam.schedules.tree import Bounded
from tests.schedules.expressions import positive_schedules

MEANINGS = {
    "0.5 / sqrt(t)": lambda t: 0.5 / math.sqrt(t),
    "0.001 if t < 2500 else 0.01/sqrt(t)": lambda t: 0.001 if t < 2500 else 0.01 / math.sqrt(t),
    "1 - 1/max(t, 2)": lambda t: 1 - 1 / max(t, 2),
    "0.9 * 0.99^t": lambda t: 0.9 * 0.99**t,
    "-t^2": lambda t: -(t**2),
    "2^-t": lambda t: 2.0**-t,
    "2^3^2": lambda t: 512.0,
    "1 - 2 - 3 - t": lambda t: -4.0 - t,
    "12 / t / 2": lambda t: 6 / t,
    "min(t, 5, 3) + clip(t, 2, 4)": lambda t: min(t, 3) + min(max(t, 2), 4),
    "abs(sin(t)) + cos(t)": lambda t: abs(math.sin(t)) + math.cos(t),
    "exp(-t/7) * log(t + 1)": lambda t: math.exp(-t / 7) * math.log(t + 1),
    "1 if t <= 3 else 2": lambda t: 1.0 if t <= 3 else 2.0,
    "1 if t >= 3 else 2": lambda t: 1.0 if t >= 3 else 2.0,
    "1 if t > 3 else 2": lambda t: 1.0 if t > 3 else 2.0,
    "1 if t < 2.5 else 2 if t < 1e1 else 3": lambda t: 1.0 if t < 2.5 else 2.0 if t < 10 else 3.0,
    "cos(pi * t / 10)": lambda t: math.cos(math.pi * t / 10),
    "(t)": float,
    "  +t ": float,
    "bias_correction(0.9)": lambda t: 1 - 0.9**t,
    "theta_from_weights(1)": lambda t: t / (t + 1),
    "theta_from_weights(1, 3)": lambda t: (t + 2) / (t + 3),
}


@pytest.mark.parametrize(("text", "meaning"), MEANINGS.items())
def test_means_what_mathematics_means(text, meaning):
    schedule = parse(text)
    for step in (1, 2, 3, 4, 9, 10, 11, 2499, 2500):
        assert schedule(step) == pytest.approx(meaning(step), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("text", MEANINGS)
def test_text_parses_back_to_an_equal_schedule(text):
    schedule = parse(text)
    assert parse(str(schedule)) == schedule
    assert hash(parse(str(schedule))) == hash(schedule)


@pytest.mark.parametrize("text", ["0.123456789^64*0.987654321^64*0.192837465^64/t", "*".join(["1." + "3" * 900] * 3)])
def test_a_long_number_parses_back(text):
    assert parse(str(parse(text))) == parse(text)


@given(positive_schedules())
@settings(max_examples=200, deadline=None)
def test_any_schedule_prints_as_text_that_parses_back(schedule):
    assert parse(str(schedule)) == schedule
    complement = 1 - schedule
    assert parse(str(complement)) == complement


ERRORS = {
    "1 +": "column 3",
    "1 + * 2": "column 5",
    "sqrt(t": "column 5",
    "0.5/sqr(t)": "column 5 of '0.5/sqr(t)': unknown function 'sqr' (did you mean 'sqrt'?)",
    "2^x": "column 3 of '2^x': unknown name 'x'",
    "t.real": "column 1",
    "__import__('os')": "unknown function '__import__'",
    "().__class__": "column 1",
    "(lambda: 1)()": "column 2"[:7],
    "[t]": "column 1",
    "t and 1": "column 1",
    "True": "True is not a number",
    "1j": "1j is not a number",
    "'t'": "is not a number",
    "max(t)": "max takes 2 to 64 arguments",
    "sqrt(t, 2)": "sqrt takes 1 argument",
    "sqrt(x=t)": "sqrt takes 1 argument",
    "1 if t*2 < 3 else 4": "column 6 of '1 if t*2 < 3 else 4': the condition cannot be read",
    "1 if t < t else 4": "the threshold is not a number",
    "t < 3": "column 1",
    "t & 3": "column 1",
    "1e999": "is too large",
    "1e-99999": "is too small",
    "9^9^9^9": "column 3",
    "1/0": "division by zero",
    "1/(2 - 2)": "division by zero",
    "0^-1": "division by zero",
    "log(-1)": "log(-1)",
    "sqrt(-2)": "sqrt(-2)",
    "exp(1e9)": "exp(1000000000)",
    "θ": "unexpected character 'θ'",
    "t\n": "unexpected character",
    "": "empty text",
    "   ": "empty text",
    "theta_from_weights(1, 0)": "must be positive",
    "theta_from_weights(1, t)": "must be a number",
    "bias_correction(1)": "[0, 1)",
}


@pytest.mark.parametrize(("text", "message"), ERRORS.items())
def test_an_error_is_one_line_that_says_where(text, message):
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


HOSTILE = [
    "(" * 5000 + "t" + ")" * 4000,
    "-" * 9_999 + "1",
    "1+" * 4_999 + "1",
    "9" * 9_999,
    "1e" + "9" * 9_000,
    "1e-" + "9" * 9_000,
    "t^" * 4_999 + "t",
    "2^" * 60 + "2",
    "sqrt(" * 1_500 + "t" + ")" * 1_500,
    "max(" + "t," * 4_000 + "t)",
    "t" * 10_000_000,
    "1 if t < 2 else " * 500 + "1",
    "*".join(["1." + "3" * 990] * 5),
    "\x00",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_an_error_at_once(text):
    with pytest.raises(ScheduleError):
        parse(text)


@given(st.text(alphabet="t0123456789.+-*/^()esqrtlogmaxin, <if", max_size=40))
@settings(max_examples=300, deadline=None)
def test_random_text_is_a_schedule_or_a_schedule_error(text):
    try:
        schedule = parse(text)
    except ScheduleError:
        return
    with np.errstate(all="ignore"):
        assert schedule.values(1, 4).shape == (3,)


def test_builders():
    assert clip(t, 2, 4).values(1, 7).tolist() == [2, 2, 3, 4, 4, 4]
    warm = join(0.1 * t / 4, 4, 0.1)
    np.testing.assert_allclose(warm.values(1, 6), [0.025, 0.05, 0.075, 0.1, 0.1])
    with pytest.raises(ScheduleError, match="a threshold must be a whole number"):
        join(t, 4.0, 1)


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
