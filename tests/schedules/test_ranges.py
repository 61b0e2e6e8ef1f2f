"""Ranges hold whatever is made of their elements."""

from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.schedules.balls import apply, larger, power
from generic_adam.schedules.ranges import EVERYTHING, Range, is_finite, point

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
