import math
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.schedules import ScheduleError, as_schedule, bias_correction, parse, theta_from_weights


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
