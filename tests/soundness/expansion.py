r"""Asymptotic expansions of sequences, several terms deep: the oracle's own view of large t.

A sequence is c_1 K_1 + c_2 K_2 + ... + O(K) with K_i = e^{a t} t^p (log t)^q (log log t)^w in falling
order. Several terms, so that leading ones may cancel: sqrt(t^2 + 1) - t is 1/(2t) because the t go and the
next term stays. Coefficients are fractions where they are rational and 400-digit numbers otherwise; a sum
below 1e-350 of its parts is taken for zero. A coefficient that oscillates is a pair (low, high) of bounds on
its limit points.

Nothing of generic_adam is imported here: this is what it is compared with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp, mpf

DIGITS = 400
TERMS = 5
_NOISE = mpf(10) ** -350
_SAME_RATE = Fraction(1, 10**60)

Number = Fraction | mpf
Coefficient = tuple[Number, Number]
Key = tuple[Fraction, Fraction, Fraction, Fraction]

_ZERO = Fraction(0)
CONSTANT: Key = (_ZERO, _ZERO, _ZERO, _ZERO)
TIME: Key = (_ZERO, Fraction(1), _ZERO, _ZERO)
LOG: Key = (_ZERO, _ZERO, Fraction(1), _ZERO)
LOGLOG: Key = (_ZERO, _ZERO, _ZERO, Fraction(1))


class UnknownError(Exception):
    """The oracle cannot say."""


def precise(function: Callable) -> Callable:
    """Run a function with the digits that coefficients have."""

    @functools.wraps(function)
    def run(*arguments):
        with mp.workdps(DIGITS):
            return function(*arguments)

    return run


def order_of(key: Key) -> int:
    """1, 0 or -1 as the scale function tends to infinity, is constant or tends to 0."""
    return compare(key, CONSTANT)


def times(one: Key, other: Key, exponent: Fraction = Fraction(1)) -> Key:
    """The key of one * other^exponent."""
    if exponent != 1:
        other = tuple(b and _snapped(b * exponent) for b in other)  # type: ignore[assignment]
    return tuple(_snapped(a + b) if a and b else a or b for a, b in zip(one, other, strict=True))  # type: ignore[return-value]


def _snapped(value: Fraction) -> Fraction:
    # Irrational exponents are 80-digit fractions: sqrt(2)^2 comes back as a fraction next to 2.
    if value.denominator > 10**30:
        near = value.limit_denominator(10**6)
        if abs(near - value) < _SAME_RATE:
            return near
    return value


def compare(one: Key, other: Key) -> int:
    """1, 0, -1 as one is of larger, the same or smaller order."""
    for a, b in zip(one, other, strict=True):
        if a is not b and a != b and abs(a - b) > _SAME_RATE:
            return 1 if a > b else -1
    return 0


def number(value: Number) -> mpf:
    """The number with all digits of the present precision."""
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def as_fraction(value: Number) -> Fraction:
    """The number, or a fraction equal to it in 80 digits."""
    if isinstance(value, Fraction):
        return value
    if value == 0:
        return _ZERO
    scale = 10**80
    return _snapped(Fraction(int(mp.nint(value * scale)), scale))


def _plus(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    x, y = number(a), number(b)
    total = x + y
    return _ZERO if abs(total) <= _NOISE * max(abs(x), abs(y)) else total


def _product(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    if a == 0 or b == 0:
        return _ZERO
    return number(a) * number(b)


def _power(base: Number, exponent: Number) -> Number:
    """base^exponent for base > 0, or any base and a whole exponent."""
    if isinstance(exponent, Fraction) and exponent.denominator == 1 and abs(exponent) < 200:
        if isinstance(base, Fraction):
            return base ** int(exponent)
        return number(base) ** int(exponent)
    if base == 1:
        return Fraction(1)
    return mp.power(number(base), number(exponent))


def _sum(x: Coefficient, y: Coefficient) -> Coefficient:
    low = _plus(x[0], y[0])
    return low, low if x[0] is x[1] and y[0] is y[1] else _plus(x[1], y[1])


def _scaled(x: Coefficient, y: Coefficient) -> Coefficient:
    if x[0] is x[1] and y[0] is y[1]:
        value = _product(x[0], y[0])
        return value, value
    corners = [_product(a, b) for a in x for b in y]
    return min(corners, key=number), max(corners, key=number)


def sign(coefficient: Coefficient) -> int:
    """The sign of every limit point, 0 where they straddle zero."""
    return 1 if coefficient[0] > 0 else -1 if coefficient[1] < 0 else 0


@dataclass(frozen=True)
class Series:
    """The terms in falling order, the order of what is left out (None: nothing), whether it oscillates."""

    terms: tuple[tuple[Key, Coefficient], ...]
    rest: Key | None = None
    oscillates: bool = False

    @property
    def is_zero(self) -> bool:
        return not self.terms and self.rest is None

    def lead(self) -> tuple[Key, Coefficient]:
        """The leading term."""
        if not self.terms:
            raise UnknownError("no leading term")
        return self.terms[0]

    def sign(self) -> int | None:
        """The sign for large t, where one is known."""
        return (sign(self.terms[0][1]) or None) if self.terms else None

    def definite(self) -> tuple[Key, Coefficient, int]:
        """The leading term and its sign, known to be of one sign."""
        key, coefficient = self.lead()
        if sign(coefficient) == 0:
            raise UnknownError("the leading coefficient straddles zero")
        return key, coefficient, sign(coefficient)

    def tail(self) -> Series:
        """Without the leading term."""
        return Series(self.terms[1:], self.rest, self.oscillates)


def constant(value: Number) -> Series:
    """The constant sequence."""
    return Series(((CONSTANT, (value, value)),)) if value != 0 else Series(())


def single(key: Key, value: Number = Fraction(1)) -> Series:
    """One term, exact."""
    return Series(((key, (value, value)),))


def swinging(low: Number, high: Number) -> Series:
    """A sequence with its limit points in [low, high]."""
    return Series(((CONSTANT, (low, high)),), None, True)


_descending = functools.cmp_to_key(lambda a, b: compare(b[0], a[0]))


def _normal(terms: list[tuple[Key, Coefficient]], rests: list[Key | None], oscillates: bool) -> Series:
    rest: Key | None = None
    for candidate in rests:
        if candidate is not None and (rest is None or compare(candidate, rest) > 0):
            rest = candidate
    merged: list[tuple[Key, Coefficient]] = []
    for key, coefficient in sorted(terms, key=_descending):
        if merged and compare(merged[-1][0], key) == 0:
            merged[-1] = key, _sum(merged[-1][1], coefficient)
        else:
            merged.append((key, coefficient))
    kept = [(key, c) for key, c in merged if not (c[0] == 0 and c[1] == 0) and (rest is None or compare(key, rest) > 0)]
    if len(kept) > TERMS:
        rest, kept = kept[TERMS][0], kept[:TERMS]
    return Series(tuple(kept), rest, oscillates)


@precise
def add(one: Series, other: Series) -> Series:
    """one + other."""
    return _normal([*one.terms, *other.terms], [one.rest, other.rest], one.oscillates or other.oscillates)


@precise
def multiply(one: Series, other: Series) -> Series:
    """one * other."""
    if one.is_zero or other.is_zero:
        return Series(())
    terms = [(times(k, m), _scaled(c, d)) for k, c in one.terms for m, d in other.terms]
    rests: list[Key | None] = []
    for series, partner in ((one, other), (other, one)):
        if partner.rest is not None:
            largest = series.terms[0][0] if series.terms else series.rest
            assert largest is not None
            rests.append(times(largest, partner.rest))
    return _normal(terms, rests, one.oscillates or other.oscillates)


def negate(series: Series) -> Series:
    """-series."""
    return multiply(constant(Fraction(-1)), series)


def _of_small(small: Series, coefficients: list[Number]) -> Series:
    """coefficients[0] + coefficients[1] u + ... for u that tends to 0, cut after the last of them."""
    total, power = constant(coefficients[0]), constant(Fraction(1))
    for coefficient in coefficients[1:]:
        power = multiply(power, small)
        total = add(total, multiply(constant(coefficient), power))
    if small.is_zero:
        return total
    following = multiply(power, small)
    largest = following.terms[0][0] if following.terms else following.rest
    return _normal(list(total.terms), [total.rest, largest], total.oscillates or small.oscillates)


def _small_part(series: Series) -> tuple[Key, Coefficient, Series]:
    """(K, c, u) with series = c K (1 + u); u is only an order where c oscillates."""
    key, coefficient, _ = series.definite()
    inverse = tuple(-part for part in key)
    tail = series.tail()
    if coefficient[0] is coefficient[1] or coefficient[0] == coefficient[1]:
        over = _power(coefficient[0], Fraction(-1))
        return key, coefficient, multiply(tail, single(inverse, over))  # type: ignore[arg-type]
    following = tail.terms[0][0] if tail.terms else tail.rest
    if following is None:
        return key, coefficient, Series((), None, True)
    return key, coefficient, Series((), times(following, inverse), True)  # type: ignore[arg-type]


@precise
def power(series: Series, exponent: Number) -> Series:
    """series^exponent."""
    if exponent == 0:
        return constant(Fraction(1))
    if series.is_zero and exponent > 0:
        return series
    key, coefficient, small = _small_part(series)
    whole = isinstance(exponent, Fraction) and exponent.denominator == 1
    if coefficient[0] <= 0 and not (whole and coefficient[0] == coefficient[1]):
        raise UnknownError("a power of something negative")
    binomial: list[Number] = [Fraction(1)]
    for j in range(TERMS):
        binomial.append(_product(binomial[-1], _product(_plus(exponent, Fraction(-j)), Fraction(1, j + 1))))
    ends = sorted((_power(c, exponent) for c in coefficient), key=number)
    scale = Series(((times(CONSTANT, key, as_fraction(exponent)), (ends[0], ends[-1])),), None, series.oscillates)
    return multiply(scale, _of_small(small, binomial))


def divide(one: Series, other: Series) -> Series:
    """one / other."""
    return multiply(one, power(other, Fraction(-1)))


@precise
def logarithm(series: Series) -> Series:
    """log(series)."""
    key, coefficient, small = _small_part(series)
    if coefficient[0] <= 0:
        raise UnknownError("the logarithm of something negative")
    rate, p, q, w = key
    if w != 0:
        raise UnknownError("log log log t is off the scale")
    terms: list[tuple[Key, Coefficient]] = [
        (scale, (exponent, exponent)) for scale, exponent in ((TIME, rate), (LOG, p), (LOGLOG, q)) if exponent
    ]
    low, high = (Fraction(0) if c == 1 else mp.log(number(c)) for c in coefficient)
    terms.append((CONSTANT, (low, low if coefficient[0] == coefficient[1] else high)))
    series_of_log = [Fraction(0), *(Fraction((-1) ** (j + 1), j) for j in range(1, TERMS + 1))]
    main = _normal(terms, [], series.oscillates)
    return add(main, _of_small(small, list(series_of_log)))


def _split(series: Series) -> tuple[list[tuple[Key, Coefficient]], Coefficient, Series]:
    """The terms that tend to infinity, the constant one, and the rest, which has to tend to 0."""
    if series.rest is not None and order_of(series.rest) >= 0:
        raise UnknownError("what is left out does not tend to 0")
    large = [(key, c) for key, c in series.terms if order_of(key) > 0]
    middle = [c for key, c in series.terms if order_of(key) == 0]
    small = [(key, c) for key, c in series.terms if order_of(key) < 0]
    return (
        large,
        middle[0] if middle else (_ZERO, _ZERO),
        Series(tuple(small), series.rest, series.oscillates),
    )


@precise
def exponential(series: Series) -> Series:
    """exp(series), where that stays on the scale."""
    large, middle, small = _split(series)
    scales = {TIME: _ZERO, LOG: _ZERO, LOGLOG: _ZERO}
    for key, coefficient in large:
        if key not in scales or coefficient[0] != coefficient[1]:
            raise UnknownError("the exponential leaves the scale")
        if 0 < abs(number(coefficient[0])) < number(_SAME_RATE):
            raise UnknownError("a rate so small is taken for 0 here")
        scales[key] = as_fraction(coefficient[0])
    ends = [Fraction(1) if c == 0 else mp.exp(number(c)) for c in middle]
    if middle[0] == middle[1]:
        ends[1] = ends[0]
    factorials: list[Number] = [Fraction(1)]
    for j in range(1, TERMS + 1):
        factorials.append(factorials[-1] * Fraction(1, j))
    key = (scales[TIME], scales[LOG], scales[LOGLOG], _ZERO)
    scale = Series(((key, (ends[0], ends[1])),), None, series.oscillates)
    return multiply(scale, _of_small(small, factorials))


@precise
def sine(series: Series, shift: int) -> Series:
    """sin(series + shift pi/2): shift 0 is sin, 1 is cos."""
    if any(order_of(key) > 0 for key, _ in series.terms):
        return swinging(Fraction(-1), Fraction(1))
    _, middle, small = _split(series)
    if middle[0] != middle[1] or small.oscillates:
        return swinging(Fraction(-1), Fraction(1))
    if middle[0] == 0:
        turn: list[Number] = [Fraction(0), Fraction(1), Fraction(0), Fraction(-1)]
    else:
        s, c = mp.sin(number(middle[0])), mp.cos(number(middle[0]))
        s, c = (_ZERO if abs(x) < _NOISE else x for x in (s, c))
        turn = [s, c, _product(s, Fraction(-1)), _product(c, Fraction(-1))]
    coefficients: list[Number] = []
    factorial = Fraction(1)
    for j in range(TERMS + 1):
        factorial *= max(j, 1)
        coefficients.append(_product(turn[(j + shift) % 4], 1 / factorial))
    return _of_small(small, coefficients)


@precise
def largest(one: Series, other: Series) -> Series:
    """max(one, other) for large t."""
    difference = add(one, negate(other))
    if difference.is_zero:
        return one
    if difference.terms and sign(difference.terms[0][1]):
        return one if sign(difference.terms[0][1]) > 0 else other
    if one.terms and other.terms and compare(one.terms[0][0], other.terms[0][0]) == 0:
        (key, c), (_, d) = one.terms[0], other.terms[0]
        return Series(
            ((key, (max(c[0], d[0], key=number), max(c[1], d[1], key=number))),),
            times(key, LOGLOG, Fraction(-1, 1000)),
            True,
        )
    raise UnknownError("which of the two is larger")


def absolute(series: Series) -> Series:
    """abs(series)."""
    if series.is_zero:
        return series
    _, _, direction = series.definite()
    return series if direction > 0 else negate(series)


@precise
def partial_sums(series: Series) -> Series:
    """The leading order of the sums of a positive sequence; an unknown constant where they converge."""
    key, coefficient, direction = series.definite()
    if direction < 0:
        raise UnknownError("sums of negative terms")
    rate, p, q, w = key
    unknown = Series(((CONSTANT, (mpf(10) ** -100000, mpf(10) ** 100000)),), None, True)
    if abs(rate) > _SAME_RATE:
        if rate < 0:
            return unknown
        geometric = 1 / (1 - mp.exp(-number(rate)))
        if coefficient[0] != coefficient[1]:
            bounds = coefficient[0], coefficient[1] * geometric
        else:
            bounds = (coefficient[0] * geometric,) * 2
        return Series(((key, bounds),), times(key, LOGLOG, Fraction(-1)), series.oscillates)
    if p < -1 or (p == -1 and (q < -1 or (q == -1 and w < -1))):
        return unknown
    if p > -1:
        divisor, raised, slack = p + 1, (rate, p + 1, q, w), LOG
        gap = Fraction(1)
    elif q > -1:
        divisor, raised, slack = q + 1, (_ZERO, _ZERO, q + 1, w), LOG
        gap = min(Fraction(1), q + 1)
    elif w > -1:
        divisor, raised, slack = w + 1, (_ZERO, _ZERO, _ZERO, w + 1), LOGLOG
        gap = min(Fraction(1), w + 1)
    else:
        raise UnknownError("1/(t log t log log t) is off the scale")
    if w != 0:
        slack, gap = LOGLOG, min(gap, Fraction(1))
    scaled = _scaled(coefficient, (1 / divisor, 1 / divisor))
    return Series(((raised, scaled),), times(raised, slack, -gap), series.oscillates)
