"""Floats with error bounds: the truth is never outside them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generic_adam.schedules import minimum, parse
from generic_adam.schedules.balls import LONGEST_SUM, Precision, above, ball, below, value
from generic_adam.schedules.rounding import _error_of_quotient, filtered
from tests.schedules.expressions import positive_schedules


@given(positive_schedules(), positive_schedules(), st.sampled_from([1, 40, 10**6]))
@settings(max_examples=80, deadline=None)
def test_an_error_bound_holds_whatever_cancels(one, other, start):
    difference = one - other
    times = np.arange(start, start + 8, dtype=np.float64)
    for step, found, error in zip(range(start, start + 8), *filtered(difference, times), strict=True):
        if not np.isfinite(error):
            continue
        truth = ball(value(difference, step))
        assume(truth.is_finite())
        assert Fraction(found) - Fraction(error) <= Fraction(above(truth))
        assert Fraction(found) + Fraction(error) >= Fraction(below(truth))


@pytest.mark.parametrize(
    "text",
    [
        "((t+1e17)^0.5-1e17^0.5)^0.01",  # a base that is half error: its power has no first-order bound
        "bias_correction(cos(1.8e-8))",
        "theta_from_weights(1e150*0.5^t)",
        "1-theta_from_weights(2^t*(sqrt(t^2+1e3)-t))",
        "1-theta_from_weights(1e10^t/9999999999^t)",
        "bias_correction(1-theta_from_weights(t))",
        "(-2)^(t+1e-20)",
        "periodic(t, 7)",
        "(0.55 - 0.05*t)^2",
        "(1.1 - 0.1*t)^3",
        "max(0.55 - 0.05*t, 0)^1.5",
        "0.25 if t < 9007199254740993 else 0.5",
        "max(min((t+1e17)^0.5-1e17^0.5, 2e-9*t), 1e-9*t)",  # sides that are apart, and sides that are not
    ],
)
@pytest.mark.parametrize("start", [1, 100, 1020, LONGEST_SUM - 20, 2**53, 2**53 + 1])
def test_a_value_lies_within_its_error(text, start):
    schedule = parse(text)
    steps = range(start, start + 20)
    values, errors = filtered(schedule, np.array(list(steps), dtype=np.float64))
    for t, found, error in zip(steps, values, errors, strict=True):
        with Precision(256):  # which walks what 128 bits take from floats
            truth = value(schedule, t)
        if ball(truth).is_finite():
            assert abs(ball(found) - truth) <= error or not np.isfinite(error)
        else:
            assert not np.isfinite(error)


@given(positive_schedules(), positive_schedules())
@settings(max_examples=40, deadline=None)
def test_the_smaller_of_two_that_are_apart_has_its_own_error(one, other):
    times = np.arange(1.0, 9.0)
    (found, error), (small, its), (large, others) = (filtered(u, times) for u in (minimum(one, other), one, other))
    apart = small + 2 * its < large - 2 * others
    assert (error[apart] == its[apart]).all()
    assert (found[apart] == small[apart]).all()


def test_a_quotient_that_was_flushed_to_zero_may_be_large_where_its_divisor_may_be_small():
    # 2e-300/1e8 is flushed to 0; with an error of 1e8 - 100 the divisor may be 100, and the quotient 2e-302.
    assert _error_of_quotient(0.0, (2e-300, 0.0), (1e8, 1e8 - 100)) >= 2e-302
    # 1e-307 * 0.1 is flushed to 0 on the way to the error.
    assert _error_of_quotient(1e-207, (1e-307, 0.0), (1e-100, 1e-101)) >= 1e-209
    assert _error_of_quotient(0.5, (1.0, 0.0), (2.0, 0.0)) < 1e-15
