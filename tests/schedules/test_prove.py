"""A claim about every step: what is proved holds wherever one looks, what is refuted is refuted at its first step."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generic_adam.schedules import as_schedule, clip, exp, parse
from generic_adam.schedules.balls import sign, sign_of_step
from generic_adam.schedules.enclosure import stretches
from generic_adam.schedules.prove import Inequality, blocks, every, first_violation, least_rise
from generic_adam.schedules.text import function
from generic_adam.schedules.tree import Bounded
from generic_adam.schedules.work import Budget
from tests.schedules.expressions import positive_schedules


@pytest.mark.parametrize(
    ("text", "claim", "holds", "t"),
    [
        ("1/sqrt(t)", Inequality.POSITIVE, True, None),
        ("1/sqrt(t)", Inequality.FALLING, True, None),
        ("t - 5", Inequality.POSITIVE, False, 1),
        ("20 - t", Inequality.POSITIVE, False, 20),
        ("20 - t", Inequality.NOT_NEGATIVE, False, 21),
        ("abs(t - 20)", Inequality.NOT_NEGATIVE, True, None),
        ("log(t)/t", Inequality.FALLING, False, 2),
        ("log(t + 2)/(t + 2)", Inequality.FALLING, True, None),
        ("1e12 - t", Inequality.POSITIVE, False, 10**12),
        ("1 - t/1e18", Inequality.POSITIVE, False, 10**18),
        ("1/t if t < 1000 else 1/(t - 1)", Inequality.FALLING, True, None),
        ("1/t if t < 1000 else 1/(t - 2)", Inequality.FALLING, False, 1000),
        # 2^53 + 1 is no float: its neighbour below lies before the join
        ("0.25 if t < 9007199254740993 else 0.5", Inequality.FALLING, False, 2**53 + 1),
        ("min(0.5, (1.4 if t < 9007199254740993 else t)/(t + 1))", Inequality.FALLING, False, 2**53 + 1),
        ("1 if t < 9007199254740993 else 0", Inequality.POSITIVE, False, 2**53 + 1),
        ("1 - 0.5^t", Inequality.POSITIVE, True, None),
        ("0.5^t", Inequality.POSITIVE, True, None),
        # no number anywhere, although the derivative is one
        ("-log(-sqrt(t + 1e9))", Inequality.FALLING, None, None),
    ],
)
def test_decided_as_mathematics_does(text, claim, holds, t):
    found = every(parse(text), claim)
    assert (found.holds, found.t) == (holds, t)


def test_a_callable_is_decided_up_to_a_step_and_open_for_ever():
    falling = as_schedule(lambda t: 1 / t)
    assert every(falling, Inequality.POSITIVE, 500).holds
    assert every(falling, Inequality.POSITIVE).holds is None


def test_a_budget_leaves_it_open_and_a_larger_one_asks_again():
    rough = parse("1.1 + sin(t^2)*sin(t^3)")
    with Budget(0):
        found = every(rough, Inequality.FALLING)
    assert found.holds is None
    assert found.spent
    assert every(rough, Inequality.FALLING).holds is False


def test_stretches_end_at_joins_and_at_the_last_step():
    joined = parse("1 if t < 10 else (2 if t < 30 else 3)")
    assert list(stretches(1, 100, joined.joins)) == [(1, 9), (10, 29), (30, 100)]
    assert list(stretches(1, 20, joined.joins)) == [(1, 9), (10, 20)]


@given(positive_schedules(), positive_schedules(), st.sampled_from(list(Inequality)), st.sampled_from([50, np.inf]))
@settings(max_examples=80, deadline=None)
def test_an_answer_is_true_at_every_step_looked_at(one, other, claim, last):
    schedule = one - other
    found = every(schedule, claim, last)
    broken = {
        Inequality.POSITIVE: lambda t: sign(schedule, t) in (0, -1),
        Inequality.NOT_NEGATIVE: lambda t: sign(schedule, t) == -1,
        Inequality.FALLING: lambda t: t > 1 and sign_of_step(schedule, t) == 1,
    }[claim]
    if found.holds is False:
        assert found.t is not None
        assert found.t <= last
        assert broken(found.t)
    looked_at = range(1, 51) if found.holds is not False else range(1, min(found.t, 51))
    if found.holds is not None:
        assert not any(broken(t) for t in looked_at)


@given(positive_schedules(4), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_the_first_step_is_that_of_brute_force(schedule, level):
    shifted = schedule - level
    steps = range(1, 41)
    signs, moves = [sign(shifted, t) for t in steps], [sign_of_step(schedule, t) for t in steps[1:]]
    assume(None not in signs)
    assume(None not in moves)
    not_positive = next((t for t, s in zip(steps, signs, strict=True) if s <= 0), None)
    negative = next((t for t, s in zip(steps, signs, strict=True) if s < 0), None)
    assert first_violation(shifted, Inequality.POSITIVE, 1, 40) == not_positive
    assert first_violation(shifted, Inequality.NOT_NEGATIVE, 1, 40) == negative
    assert first_violation(schedule, Inequality.FALLING, 2, 40) == next(
        (t for t, s in zip(steps[1:], moves, strict=True) if s > 0), None
    )


def test_blocks_hold_every_step_once():
    found = list(blocks(5, 100_000))
    np.testing.assert_array_equal(np.concatenate([times for _, times in found]), np.arange(5.0, 100_001))
    assert all(times[0] == begin for begin, times in found)


@pytest.mark.parametrize("t", [10**5, 10**6])
def test_a_dip_of_one_step_far_out_is_found(t):
    assert first_violation(parse(f"abs(t - {t})"), Inequality.POSITIVE, 1, t + 10) == t
    assert first_violation(parse(f"abs(t - {t})"), Inequality.FALLING, 2, t + 10) == t + 1


@pytest.mark.parametrize("text", ["1/(0 if t < 5 else 1)", "1/(t if t < 5 else 0)", "sqrt(-1 if t < 5 else 1)"])
def test_a_stretch_without_values_is_open(text):
    found = every(parse(text), Inequality.POSITIVE)
    assert found.holds is None
    assert found.note


@pytest.mark.parametrize("shape", ["clip", "exp", "sin"])
def test_a_form_does_not_tell_that_a_callable_has_values(shape):
    late = as_schedule(lambda t: 0.5 if t < 70_000 else math.nan)
    u = {"clip": clip(late, 0.1, 0.9), "exp": exp(late), "sin": 2 + function("sin", late)}[shape]
    assert every(u, Inequality.POSITIVE).holds is None
    assert every(u, Inequality.POSITIVE, 1000).holds
    assert every(u, Inequality.POSITIVE, 80_000).holds is None
    assert every(Bounded(late, 0.1, 0.9), Inequality.POSITIVE).holds  # vouched for


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
