"""Numbers that cannot lie: exact fractions and balls (Arb), and single values of a schedule in them.

A number here is an exact fraction while it stays short, else a ball: a midpoint and a radius, with unbounded
exponents, that holds the true value by construction. Nothing underflows, nothing rounds to equal, and t may
be any whole number. Where a ball does not answer a question, `sign` asks again with more digits.

Arb's precision is a setting of the process. It is 128 bits from the import of this module on, and more while
one question is asked again: one thread at a time raises it, and has what it asked for until it is done. The balls
of a thread that asked for no more are narrower meanwhile, which costs it time.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.tree import Schedule, Table, filtered_of, rebuild, remembered
from generic_adam.schedules.work import Work, reach

Number = fmpq | arb

BITS = 128
"""The precision of ranges and first answers."""
PRECISIONS = (BITS, 512, 2048, 8192)
"""Bits of the balls in which a question about one value is asked, one after the other until it is answered."""
NAN, INFINITY = arb.nan(), arb.pos_inf()
ctx.prec = BITS
_RAISING = threading.RLock()
# Fractions longer than this become balls.
_LONGEST_FRACTION = 1024
# A running sum or product is walked in balls up to the first of these, and up to the second where more digits are asked
# for; beyond, it is enclosed in floats with error bounds, a block at once.
_WALKED, LONGEST_SUM = 512, 4096
_CLOSE = 1e-9


class Precision:
    """`with Precision(bits):` computes balls with at least so many bits."""

    def __init__(self, bits: int = BITS) -> None:
        self.bits = bits
        self.before = BITS

    def __enter__(self) -> None:
        if self.bits > BITS:
            _RAISING.acquire()
            self.before = ctx.prec
            ctx.prec = max(self.before, self.bits)

    def __exit__(self, *_error: object) -> None:
        if self.bits > BITS:
            ctx.prec = self.before
            _RAISING.release()


def number(value: Fraction | int | fmpq) -> fmpq:
    """Return the number as an exact fraction of python-flint."""
    return value if isinstance(value, fmpq) else fmpq(value.numerator, value.denominator)


def as_fraction(value: fmpq) -> Fraction:
    """Return the number as a Fraction of the standard library."""
    return Fraction(int(value.p), int(value.q))


def ball(value: Number) -> arb:
    """Return a number as a ball of the present precision."""
    return value if isinstance(value, arb) else arb(value)


def sign_of(value: Number) -> int | None:
    """-1, 0 or 1; None where the ball holds numbers of different sign (or is no number)."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def below(value: Number) -> float:
    """Return the largest float that is surely not above the number."""
    low = ball(value).lower()
    if low.is_nan():
        return -math.inf
    result = float(low)
    return math.nextafter(result, -math.inf) if math.isinf(result) or arb(result) > low else result


def above(value: Number) -> float:
    """Return the smallest float that is surely not below the number."""
    return 0.0 - below(-value)


def rounded_up(number: float, digits: int) -> str:
    """Return the text of a number with so many digits, never below it: the text of a bound is a bound."""
    told = f"{number:.{digits}g}"
    if not math.isfinite(number) or Decimal(told) >= Decimal(str(number)):
        return told
    last = Decimal(1).scaleb(Decimal(told).adjusted() - digits + 1)
    return f"{float(Decimal(told) + last):.{digits}g}"


def nearest(value: Number) -> float:
    """Return the float nearest to the middle of the number."""
    return float(ball(value).mid())


def _shortened(value: Number) -> Number:
    return arb(value) if isinstance(value, fmpq) and value.height_bits() > _LONGEST_FRACTION else value


def quotient(a: Number, b: Number) -> Number:
    """Return a / b; no number where b may be 0."""
    return a / b if sign_of(b) else NAN


def power(base: Number, exponent: Number) -> Number:
    """Return base ^ exponent, exact where both are short fractions and the result is one."""
    if isinstance(exponent, fmpq):
        if exponent == 0:  # of what is no number, no number
            return fmpq(1) if ball(base).is_finite() else NAN
        if base == 0:
            return fmpq(0) if exponent > 0 else NAN
        if exponent.q == 1:
            whole = int(exponent.p)
            if isinstance(base, fmpq) and base.height_bits() * abs(whole) > _LONGEST_FRACTION:
                base = arb(base)
            return base**whole if whole > 0 else quotient(fmpq(1), base**-whole)
        if isinstance(base, fmpq) and base > 0:
            root = _exact_root(base, int(exponent.q))
            if root is not None:
                return power(root, fmpq(exponent.p))
    return ball(base) ** exponent


def _exact_root(base: fmpq, degree: int) -> fmpq | None:
    if degree > 64:
        return None
    root = fmpq(base.p.root(degree), base.q.root(degree))
    return root if root**degree == base else None


def apply(name: str, x: Number) -> Number:
    """One of the named functions, exact where the value is a fraction."""
    if name == "abs":
        return abs(x)
    if name == "sqrt":
        return power(x, fmpq(1, 2))
    if x == 0 and name != "log":
        return fmpq(1) if name in {"exp", "cos"} else fmpq(0)
    if name == "log" and x == 1:
        return fmpq(0)
    return getattr(ball(x), name)()


value_of: Table[Callable[[Any, int], Number]] = Table("single values in balls")
"""Node, whole t -> u_t as an exact fraction or a ball of the present precision."""


def value(schedule: Schedule, t: int) -> Number:
    """u_t: exact where it is a short fraction, else a ball that holds it; no number where it is undefined."""
    return _shortened(value_of[type(schedule)](schedule, t))


@remembered
def _exact(node: tree.Constant) -> fmpq:
    return number(node.value)


def _of_two(operation: Callable[..., Number]) -> Callable[[tree.Binary, int], Number]:
    return lambda node, t: operation(value(node.left, t), value(node.right, t))


def _difference(node: tree.Subtract, t: int) -> Number:
    difference = value(node.left, t) - value(node.right, t)
    return fmpq(0) if _may_be_zero(difference) and _same(node.left, t, node.right, t) else difference


def _may_be_zero(total: Number) -> bool:
    return isinstance(total, arb) and total.is_finite() and total.contains(0)


def _same(one: Schedule, t: int, other: Schedule, s: int) -> bool:
    """Return whether u_t and v_s, two numbers, are equal as written: max(t, 2)^-0.5 at 1 and at 2."""
    with suppress(ScheduleError):
        return _written(one, t) == _written(other, s)
    return False


def _written(node: Schedule, t: int) -> Schedule:
    """Return the expression with its numbers put in; a node that runs from t = 1 on stands with its step."""
    match node:
        case tree.Time():
            return tree.Constant(Fraction(t))
        case tree.Join():
            return _written(node.before if t < node.threshold else node.after, t)
        case tree.Periodic():
            return _written(node.body, (t - 1) % node.period + 1)
        case _ if node.pointwise:
            return rebuild(node, lambda part: _written(part, t))
        case _:
            return tree.Opaque((node, t))  # pyright: ignore[reportArgumentType]  (compared, never called)


def larger(a: Number, b: Number) -> Number:
    """max(a, b)."""
    return a if a >= b else b if b >= a else ball(a).max(ball(b))


def smaller(a: Number, b: Number) -> Number:
    """min(a, b)."""
    return a if a <= b else b if b <= a else ball(a).min(ball(b))


def _opaque(node: tree.Opaque, t: int) -> Number:
    # What a callable returns is the number itself.
    result = node.scalar(t)
    return number(Fraction(result)) if math.isfinite(result) else NAN


def _running(node: Schedule, t: int, start: Number, step: Callable[[Number, int], Number]) -> Number:
    """Return a running sum or product at t, on from the last step asked for; NaN beyond the longest walk."""
    if t > LONGEST_SUM:
        return NAN
    reach(Work.MULTIPLIED, (node, ctx.prec), t)
    known: dict[int, Number] = node.known_facts.setdefault(("running", ctx.prec), {0: start})
    while (i := len(known)) <= t:
        known.setdefault(i, _shortened(step(known[i - 1], i)))
    return known[t]


def _enclosed(node: Schedule, t: int) -> arb | None:
    """Return a running share or product late in its run, where nine digits are enough and floats have them."""
    if t <= (_WALKED if ctx.prec <= BITS else LONGEST_SUM):
        return None
    found, error = filtered_of[type(node)](node, np.array([float(t)]))
    middle, radius = np.ravel(found)[0], np.ravel(error)[0]
    return arb(float(middle), float(radius)) if math.isfinite(middle) and radius < _CLOSE * abs(middle) else None


def _share(node: tree.WeightShare, t: int) -> Number:
    enclosed = _enclosed(node, t)
    if enclosed is not None:
        return enclosed
    total = _running(node, t, fmpq(0), lambda total, i: total + value(node.weights, i))
    return quotient(value(node.weights, t), number(node.initial) + total)


def _correction(node: tree.BiasCorrection, t: int) -> Number:
    if node.factor.is_constant:
        product = power(value(node.factor, 1), fmpq(t))
        if isinstance(product, fmpq):
            return 1 - product
        return -apply("expm1", t * apply("log1p", -value(node.factor.complement, 1)))
    enclosed = _enclosed(node, t)
    if enclosed is not None:
        return enclosed
    return 1 - _running(node, t, fmpq(1), lambda product, i: product * value(node.factor, i))


value_of.update(
    {
        tree.Constant: lambda node, _t: _exact(node),
        tree.Time: lambda _node, t: fmpq(t),
        tree.Add: _of_two(operator.add),
        tree.Subtract: _difference,
        tree.Multiply: _of_two(operator.mul),
        tree.Divide: _of_two(quotient),
        tree.Power: _of_two(power),
        tree.Maximum: _of_two(larger),
        tree.Minimum: _of_two(smaller),
        tree.Negate: lambda node, t: -value(node.operand, t),
        tree.Function: lambda node, t: apply(node.name, value(node.argument, t)),
        tree.Join: lambda node, t: value(node.before if t < node.threshold else node.after, t),
        tree.Periodic: lambda node, t: value(node.body, (t - 1) % node.period + 1),
        tree.Bounded: lambda node, t: value(node.operand, t),
        tree.WeightShare: _share,
        tree.WeightedTheta: lambda node, t: 1 - value(node.complement, t),
        tree.BiasCorrection: _correction,
        tree.Opaque: _opaque,
    }
)


def decided(question: Callable[[], Number]) -> tuple[int | None, Number]:
    """Return the sign of a number, computed with more and more digits until it is clear, and the number."""
    result: Number = NAN
    for bits in PRECISIONS:
        with Precision(bits):
            result = question()
            sign = sign_of(result) if isinstance(result, fmpq) or result.is_finite() else None
        if sign is not None or isinstance(result, fmpq):
            return sign, result
        if not result.is_finite() and bits > BITS:
            break
    return None, result


def sign(schedule: Schedule, t: int) -> int | None:
    """Return the sign of u_t, or None where no precision tells."""
    return decided(lambda: value(schedule, t))[0]


def sign_of_step(schedule: Schedule, t: int) -> int | None:
    """Return the sign of u_t - u_{t-1}."""
    with Precision():
        step = value(schedule, t) - value(schedule, t - 1)
        if _may_be_zero(step) and _same(schedule, t, schedule, t - 1):
            return 0
    return decided(lambda: value(schedule, t) - value(schedule, t - 1))[0]


@dataclass(frozen=True)
class Range:
    """All real numbers from low to high.

    Attributes:
        low: the lower end, exact: a fraction, a ball without radius, or minus infinity.
        high: the upper end, likewise.
        nonzero: whether 0 is left out where it is an end: a positive sequence that tends to 0.
    """

    low: Number
    high: Number
    nonzero: bool = False

    @property
    def sign(self) -> int:
        """1 where every element is positive, -1 where every element is negative, else 0."""
        if self.low > 0 or (self.nonzero and self.low >= 0):
            return 1
        return -1 if self.high < 0 or (self.nonzero and self.high <= 0) else 0

    @property
    def trend(self) -> int | None:
        """0 where it is {0}, 1 or -1 where no element is negative or positive, None where both may be."""
        if self.low >= 0:
            return 1 if self.high > 0 else 0
        return -1 if self.high <= 0 else None

    @property
    def is_zero(self) -> bool:
        """Return whether it is {0}."""
        return self.low == 0 == self.high

    @property
    def number(self) -> fmpq | None:
        """The fraction that it is, if it is one."""
        return self.low if isinstance(self.low, fmpq) and self.low == self.high else None

    @property
    def size(self) -> Number:
        """The largest absolute value."""
        return larger(-self.low, self.high)

    @property
    def is_finite(self) -> bool:
        """Return whether both ends are numbers."""
        return is_finite(self.low) and is_finite(self.high)

    def __neg__(self) -> Range:
        low = -self.high
        return Range(low, low if self.low is self.high else -self.low, self.nonzero)

    def __add__(self, other: Range) -> Range:
        if self.low is self.high and other.low is other.high:  # two fractions
            return point(self.low + other.low)
        low, high = _down(self.low + other.low), _up(self.high + other.high)
        # Two parts that may touch 0 from one side touch it together, if they do.
        positive = low == 0 == self.low and 1 in {self.sign, other.sign}
        return Range(low, high, positive or (high == 0 == self.high and -1 in {self.sign, other.sign}))

    def __sub__(self, other: Range) -> Range:
        return self + (-other)

    def __mul__(self, other: Range) -> Range:
        if other.low is other.high:  # a fraction
            if self.low is self.high:
                return point(self.low * other.low)
            ends = _times(self.low, other.low), _times(self.high, other.low)
            low, high = ends if other.low >= 0 else ends[::-1]
            return Range(_down(low), _up(high), self.nonzero and other.low != 0)
        if self.low is self.high:
            return other * self
        nonzero = bool(self.sign and other.sign)
        if self.low >= 0 and other.low >= 0:
            return Range(_down(_times(self.low, other.low)), _up(_times(self.high, other.high)), nonzero)
        return _hull([_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)], nonzero)

    def __truediv__(self, other: Range) -> Range:
        if not other.sign:
            if other.low == 0 and self.low >= 0:  # dividing by [0, b] is still one-sided
                return Range(_down(_over(self.low, other.high)), INFINITY)
            return EVERYTHING
        if other.sign < 0:
            return (-self) / (-other)
        if self.low >= 0:
            low, high = _over(self.low, other.high), _over(self.high, other.low)
            return Range(_down(low), _up(high), self.sign > 0)
        corners = [_over(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return _hull(corners, bool(self.sign))

    def __pow__(self, exponent: fmpq) -> Range:
        """x^exponent; where that is not defined for every x, everything."""
        if self.low is self.high and (self.low > 0 or (exponent.q == 1 and self.low < 0)):
            return point(power(self.low, exponent))
        even = exponent.q == 1 and exponent.p % 2 == 0
        if self.sign < 0:
            positive = (-self) ** exponent
            return positive if even else -positive if exponent.q == 1 else EVERYTHING
        if self.low < 0:
            return Range(fmpq(0), self.size) ** exponent if even and exponent > 0 else EVERYTHING
        if exponent < 0:
            return (ONE / self) ** -exponent
        return self.mapped(lambda x: power(x, exponent) if is_finite(x) else x, self.sign > 0)

    def meet(self, other: Range) -> Range:
        """Return the numbers in both."""
        return Range(
            _down(larger(self.low, other.low)),
            _up(smaller(self.high, other.high)),
            self.nonzero or other.nonzero,
        )

    def hull(self, other: Range) -> Range:
        """Return the smallest range that holds both."""
        low, high = smaller(self.low, other.low), larger(self.high, other.high)
        return Range(_down(low), _up(high), bool(self.sign) and self.sign == other.sign)

    def largest(self, other: Range) -> Range:
        """max(x, y) for the elements of the two."""
        low, high = larger(self.low, other.low), larger(self.high, other.high)
        signs = {self.sign, other.sign}
        return Range(_down(low), _up(high), 1 in signs or signs == {-1})

    def mapped(self, increasing: Callable[[Number], Number], nonzero: bool = False) -> Range:
        """Return the image under an increasing function."""
        low = increasing(self.low)
        high = low if self.high is self.low else increasing(self.high)
        return Range(_down(low), _up(high), nonzero)

    def image(self, name: str) -> Range:
        """Return the image under a named function."""
        if name == "abs":
            return self if self.low >= 0 else -self if self.high <= 0 else Range(fmpq(0), self.size)
        if name not in {"sin", "cos"}:  # they increase
            return self.mapped(lambda x: apply(name, x), name == "exp" or (name != "log" and bool(self.sign)))
        if not self.is_finite:
            return SWING
        # They move by no more than their argument does.
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        image = apply(name, middle)
        return Range(_down(image - half), _up(image + half)).meet(SWING)


def is_finite(value: Number) -> bool:
    """Return whether it is a number, not an infinity."""
    return isinstance(value, fmpq) or value.is_finite()


def point(value: Number) -> Range:
    """Return the range of one number: a fraction, or as wide as its ball."""
    return Range(value, value) if isinstance(value, fmpq) else Range(_down(value), _up(value))


def _down(value: Number) -> Number:
    if isinstance(value, fmpq):
        return value
    low = value.lower()
    return -INFINITY if low.is_nan() else low


def _up(value: Number) -> Number:
    if isinstance(value, fmpq):
        return value
    high = value.upper()
    return INFINITY if high.is_nan() else high


def _times(a: Number, b: Number) -> Number:
    # An end 0 is exact: times an infinite end it is the limit of zeros.
    return fmpq(0) if a == 0 or b == 0 else a * b


def _over(a: Number, b: Number) -> Number:
    """Return a / b for an end b >= 0; of 0/0 and infinity over infinity the other corners hold the extremes."""
    if a == 0:
        return fmpq(0)
    if not is_finite(b):
        return fmpq(0) if is_finite(a) else a
    return a / b if b > 0 else INFINITY if a > 0 else -INFINITY


def _hull(corners: list[Number], nonzero: bool) -> Range:
    return Range(_down(reduce(smaller, corners)), _up(reduce(larger, corners)), nonzero)


EVERYTHING = Range(-INFINITY, INFINITY)
POSITIVE = Range(fmpq(0), INFINITY, True)
ONE, SWING = Range(fmpq(1), fmpq(1)), Range(fmpq(-1), fmpq(1))
"""The ranges of the number 1, and of sin and cos."""
