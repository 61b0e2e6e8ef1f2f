"""Numbers that cannot lie: a ball holds the true value, a range every product, a sign is found with enough digits."""

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from generic_adam.schedules import parse
from generic_adam.schedules.balls import (
    BITS,
    EVERYTHING,
    Precision,
    Range,
    above,
    apply,
    as_fraction,
    ball,
    below,
    decided,
    is_finite,
    larger,
    point,
    power,
    rounded_up,
    sign,
    sign_of_step,
    value,
)


@given(st.fractions())
def test_floats_on_either_side_of_a_fraction(number):
    low, high = (side(fmpq(number.numerator, number.denominator)) for side in (below, above))
    assert Fraction(low) <= number <= Fraction(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


def test_beyond_the_largest_double_the_bounds_stay_true():
    huge = power(fmpq(10), fmpq(400))
    assert (below(huge), above(huge)) == (math.nextafter(math.inf, 0), math.inf)
    assert (below(arb.nan()), above(arb.nan())) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("text", "t", "exact"),
    [
        ("(1 - 1/t)^2 / 3", 7, Fraction(12, 49)),
        ("sqrt(t)/t^(1/3)", 64, Fraction(2)),
        ("theta_from_weights(t)", 3, Fraction(4, 7)),
        ("bias_correction(1 - 1/(t + 1))", 9, Fraction(9, 10)),
        ("max(t - 5, 1/t) if t < 6 else 0.1", 5, Fraction(1, 5)),
        ("periodic(t^2, 4)", 7, Fraction(9)),
    ],
)
def test_what_is_a_fraction_is_one(text, t, exact):
    found = value(parse(text), t)
    assert isinstance(found, fmpq)
    assert as_fraction(found) == exact


@pytest.mark.parametrize("text", ["t^0.8", "exp(-1/t)", "log(t + 1)*sin(t)", "0.999^t", "bias_correction(0.999)"])
@pytest.mark.parametrize("t", [3, 10**6, 10**15])
def test_a_ball_holds_the_value_at_sixty_digits(text, t):
    truth = {
        "t^0.8": lambda: mp.mpf(t) ** (mp.mpf(4) / 5),
        "exp(-1/t)": lambda: mp.exp(-mp.one / t),
        "log(t + 1)*sin(t)": lambda: mp.log(t + 1) * mp.sin(t),
        "0.999^t": lambda: (mp.mpf(999) / 1000) ** t,
        "bias_correction(0.999)": lambda: 1 - (mp.mpf(999) / 1000) ** t,
    }
    with mp.workdps(60):
        number = ball(value(parse(text), t))
        exact = arb(mp.nstr(truth[text](), 55, min_fixed=1, max_fixed=0))
        assert number.overlaps(exact)
        assert number.rel_accuracy_bits() > 60


def test_a_precision_lasts_until_its_end():
    def widened(bits):
        barrier.wait()
        for _ in range(300):
            with Precision(bits):
                seen.append(ctx.prec >= bits)
                time.sleep(0)  # another thread may run now
                seen.append(ctx.prec >= bits)

    seen: list[bool] = []
    barrier = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(widened, (8192, 512, 2048)))
    with Precision(512):
        with Precision(2048):
            pass
        assert ctx.prec == 512
    assert ctx.prec == BITS
    assert all(seen)


def test_a_sign_takes_as_many_digits_as_it_needs():
    near = parse("exp(pi*sqrt(163)) - 262537412640768744")
    assert sign(near, 1) == -1
    assert sign(parse("sqrt(t^2 + 1e-60) - t"), 10**6) == 1
    assert sign_of_step(parse("1 + 0.5^t"), 1000) == -1
    assert sign_of_step(parse("sqrt(2)*log(max(t, 10))"), 5) == 0
    assert decided(lambda: arb(2).sqrt() ** 2 - 2)[0] is None


@given(st.floats(1e-300, 1e300), st.integers(1, 12))
def test_a_printed_bound_is_not_below_the_number(number, digits):
    told = rounded_up(number, digits)
    assert Fraction(told) >= Fraction(str(number))
    assert Fraction(told) <= Fraction(str(number)) * (1 + Fraction(10) ** (1 - digits)), (
        "and no more than a digit above"
    )
    assert [rounded_up(one, 3) for one in (float("inf"), float("nan"), 0.0)] == ["inf", "nan", "0"]


fractions = st.fractions(-50, 50, max_denominator=40).map(lambda x: fmpq(x.numerator, x.denominator))
ends = st.tuples(fractions, fractions).map(sorted)
# Ends are fractions or balls without radius; a range may be one number.
ranges = st.one_of(
    ends.map(lambda pair: Range(*pair)),
    ends.map(lambda pair: Range(arb(pair[0]).lower(), arb(pair[1]).upper())),
    fractions.map(point),
)


def element(whole, share):
    """A number of the range, exact where the range is one number."""
    return whole.low if whole.low is whole.high else whole.low + (whole.high - whole.low) * arb(share)


def assert_holds(whole, number):
    assert not number < whole.low
    assert not number > whole.high
    if whole.sign:
        assert not number * whole.sign <= 0


@given(ranges, ranges, st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None, max_examples=300)
def test_a_range_holds_what_its_elements_make(one, other, at, also):
    x, y = element(one, at), element(other, also)
    for whole, number in (
        (one + other, x + y),
        (one - other, x - y),
        (one * other, x * y),
        (one.hull(other), x),
        (one.largest(other), larger(x, y)),
    ):
        assert_holds(whole, number)
    if other.sign:
        assert_holds(one / other, x / y)
    elif not (other.low == 0 and one.low >= 0):
        assert one / other == EVERYTHING


@given(ranges, st.floats(0, 1), st.sampled_from(["exp", "expm1", "sin", "cos", "abs", "log", "log1p"]))
@settings(deadline=None, max_examples=300)
def test_the_image_of_a_range_holds_the_values(whole, share, name):
    found = apply(name, element(whole, share))
    if is_finite(found):
        assert_holds(whole.image(name), found)


@given(ranges, st.floats(0, 1), st.sampled_from([(2, 1), (3, 1), (-1, 1), (-2, 1), (1, 2), (-3, 2), (4, 3)]))
@settings(deadline=None, max_examples=300)
def test_a_power_of_a_range_holds_the_powers(whole, share, exponent):
    found = power(element(whole, share), fmpq(*exponent))
    if is_finite(found):
        assert_holds(whole ** fmpq(*exponent), found)
