"""A walk in floats has error bounds that hold, and finds the first step that brute force finds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generic_adam.schedules import parse
from generic_adam.schedules.balls import above, ball, below, sign, sign_of_step, value
from generic_adam.schedules.budget import Budget
from generic_adam.schedules.scan import blocks, filtered, first_not, first_rise
from tests.schedules.expressions import positive_schedules


@given(positive_schedules(), positive_schedules(), st.sampled_from([1, 40, 10**6]))
@settings(max_examples=80, deadline=None)
def test_an_error_bound_holds_whatever_cancels(one, other, start):
    difference = one - other
    times = np.arange(start, start + 8, dtype=np.float64)
    for t, found, error in zip(range(start, start + 8), *filtered(difference, times), strict=True):
        if not np.isfinite(error):
            continue
        truth = ball(value(difference, t))
        assume(truth.is_finite())
        assert Fraction(found) - Fraction(error) <= Fraction(above(truth))
        assert Fraction(found) + Fraction(error) >= Fraction(below(truth))


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
    assert first_not(shifted, 1, 40, Budget()) == not_positive
    assert first_not(shifted, 1, 40, Budget(), zero=True) == negative
    assert first_rise(schedule, 2, 40, Budget()) == next(
        (t for t, s in zip(steps[1:], moves, strict=True) if s > 0), None
    )


def test_blocks_hold_every_step_once():
    found = list(blocks(5, 100_000, Budget()))
    np.testing.assert_array_equal(np.concatenate([times for _, times in found]), np.arange(5.0, 100_001))
    assert all(times[0] == begin for begin, times in found)


@pytest.mark.parametrize("t", [10**5, 10**6])
def test_a_dip_of_one_step_far_out_is_found(t):
    assert first_not(parse(f"abs(t - {t})"), 1, t + 10, Budget()) == t
    assert first_rise(parse(f"abs(t - {t})"), 2, t + 10, Budget()) == t + 1
