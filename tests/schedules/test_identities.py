"""Exact forms of numbers: what folds is equal to sixty digits, and what is no number does not fold."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp

from generic_adam.schedules import Constant, ScheduleError, parse
from generic_adam.schedules.balls import sign, sign_of_step
from generic_adam.schedules.identities import exact_form


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("sqrt(2)/2 - sqrt(0.5)", "0"),
        ("sqrt(8)*sqrt(2)", "4"),
        ("2^(1/3)*4^(1/3)", "2"),
        ("(1 + sqrt(2))^2 - 3 - 2*sqrt(2)", "0"),
        ("exp(0.5)^2/exp(1)", "1"),
        ("exp(sqrt(2))/exp(sqrt(2)) - 1", "0"),
        ("sqrt(exp(2)) - exp(1)", "0"),
        ("expm1(2) - exp(2)", "-1"),
        ("abs(sqrt(2)*sqrt(2) - 3)", "1"),
    ],
)
def test_what_is_a_fraction_is_folded(text, number):
    assert parse(text) == parse(number)


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(12)",
        "exp(1)^2",
        "sqrt(2)*sqrt(3)",
        "sin(3)",
        "sqrt(abs(log(2)))^2",
        "log(8) - 3*log(2)",
        "sin(3)^2 + cos(3)^2",
    ],
)
def test_what_is_not_known_to_be_one_stays(text):
    assert not isinstance(parse(text), Constant)


def test_a_divisor_that_may_be_zero_is_not_cancelled():
    # (sqrt(2) + 1)(sqrt(2) - 1) = 1, and of a sum no rule knows the logarithm; and 0/0 is no number.
    zero = "abs(log(sqrt(2) + 1) + log(sqrt(2) - 1))"
    assert not isinstance(parse(f"{zero}/{zero}"), Constant)
    assert sign(parse(f"{zero}/{zero}"), 1) is None


NUMBERS = st.sampled_from(["1", "2", "3", "0.5", "1/3", "6", "-2"])


def _grown(parts):
    two = st.tuples(parts, st.sampled_from(["+", "-", "*", "/"]), parts)
    return st.one_of(
        two.map(lambda x: f"({x[0]}) {x[1]} ({x[2]})"),
        st.tuples(st.sampled_from(["sqrt", "exp", "sin", "cos", "abs", "expm1", "log", "log1p"]), parts).map(
            lambda x: f"{x[0]}({x[1]})"
        ),
        st.tuples(parts, st.sampled_from(["2", "0.5", "-1", "1/3"])).map(lambda x: f"({x[0]})^({x[1]})"),
    )


TEXTS = st.recursive(NUMBERS, _grown, max_leaves=6)


def _truth(text):
    """The number at 100 digits, by mpmath; None where it is not real."""
    names = {name: getattr(mp, name) for name in ("sqrt", "exp", "sin", "cos", "expm1", "log", "log1p")}
    source = re.sub(r"(?<!\w)[\d.]+", r"mpf('\g<0>')", text).replace("^", "**")
    try:
        found = eval(source, {"mpf": mp.mpf, "abs": abs, **names})
    except ZeroDivisionError:
        return None
    return found if mp.im(found) == 0 and mp.isfinite(found) else None


@given(TEXTS, TEXTS)
@example("sin(2)^2", "1 - cos(2)^2")
@settings(max_examples=300, deadline=None)
def test_equal_forms_are_equal_numbers(one, other):
    with mp.workdps(100):
        try:
            left, right = parse(one), parse(other)
            ratio = parse(f"({one})/({other})")
        except ScheduleError:
            return
        for text, schedule in ((one, left), (other, right), (f"({one})/({other})", ratio)):
            truth = _truth(text)
            if truth is not None and isinstance(schedule, Constant):
                exact = mp.mpf(schedule.value.numerator) / schedule.value.denominator
                assert abs(exact - truth) <= mp.mpf(10) ** -60 * (1 + abs(truth))
        truths = _truth(one), _truth(other)
        if None not in truths and exact_form(left) == exact_form(right):
            assert abs(truths[0] - truths[1]) <= mp.mpf(10) ** -60 * (1 + abs(truths[0]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("log(8) - 3*log(2) + 1e-300", 1), ("log(2^61 - 1) - 61*log(2)", -1), ("log(8) - 3*log(2)", None)],
)
def test_where_no_form_tells_the_digits_do_or_it_is_open(text, expected):
    assert sign(parse(text), 7) == expected


def test_identities_count_at_a_step():
    assert sign(parse("sqrt(8*t) - 2*sqrt(2*t)"), 17) == 0
    assert sign(parse("max(sqrt(2*t), 1) - sqrt(2)*sqrt(t)"), 5) == 0
    assert sign_of_step(parse("sqrt(2*t)/sqrt(t)"), 9) == 0
    # No number at either step: they are not equal.
    assert sign_of_step(parse("sin(log(min(t, 3) - 5))"), 5) is None


def test_a_form_is_found_without_its_numbers():
    # Its numbers would have 10^9 digits; of a part without a form the parts were asked twice, each time.
    constant, root = "1.0000000001", "t"
    for _ in range(10):
        constant = f"({constant}^8)"
    for _ in range(24):
        root = f"sqrt(t + {root})"
    parse(constant)
    assert sign(parse(f"{root} - {root}"), 3) == 0
