"""Numbers that cannot lie: exact fractions and balls (Arb), single values of a schedule, ranges of values.

A number here is an exact fraction while it stays short, else a ball: a midpoint and a radius, with unbounded
exponents, that holds the true value by construction. Nothing underflows, nothing rounds to equal, and t may
be any whole number. Where a ball does not answer a question, `sign` asks again with more digits.

Arb's precision is a setting of the process. It is 128 bits from the import of this module on, and more while
one question is asked again: one thread at a time raises it. Another thread's balls are narrower meanwhile,
which costs it time and changes no answer.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from generic_adam.schedules import tree
from generic_adam.schedules.normal import as_linear
from generic_adam.schedules.tree import Schedule, Table

Number = fmpq | arb

BITS = 128
"""The precision of ranges and first answers."""
PRECISIONS = (BITS, 512, 2048, 8192)
"""What a question about one value is asked with, until a ball answers it."""
NAN, INFINITY = arb.nan(), arb.pos_inf()
ctx.prec = BITS
_RAISING = threading.RLock()
# Fractions longer than this become balls.
_LONGEST_FRACTION = 1024
# A running sum in balls is walked to its t up to here.
LONGEST_SUM = 1 << 17
_CHECKPOINT = 512
# So many terms are added up, in fractions where they are fractions, before a closed form is asked.
_SHORT_SUM = 32


class Precision:
    """`with Precision(bits):` computes balls with at least so many bits."""

    def __init__(self, bits: int = BITS) -> None:
        self.bits = bits
        self.raised = False

    def __enter__(self) -> None:
        if self.bits > ctx.prec:
            _RAISING.acquire()
            self.raised, ctx.prec = True, self.bits

    def __exit__(self, *_error: object) -> None:
        if self.raised:
            ctx.prec = BITS
            _RAISING.release()


def number(value: Fraction | int | fmpq) -> fmpq:
    """An exact number for computations with balls."""
    return value if isinstance(value, fmpq) else fmpq(value.numerator, value.denominator)


def as_fraction(value: fmpq) -> Fraction:
    """The standard library's fraction."""
    return Fraction(int(value.p), int(value.q))


def ball(value: Number) -> arb:
    """A number as a ball of the present precision."""
    return value if isinstance(value, arb) else arb(value)


def sign_of(value: Number) -> int | None:
    """-1, 0 or 1; None where the ball holds numbers of different sign (or is no number)."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def below(value: Number) -> float:
    """The largest float that is surely not above the number."""
    low = ball(value).lower()
    if low.is_nan():
        return -math.inf
    result = float(low)
    return math.nextafter(result, -math.inf) if math.isinf(result) or arb(result) > low else result


def above(value: Number) -> float:
    """The smallest float that is surely not below the number."""
    return 0.0 - below(-value)


def nearest(value: Number) -> float:
    """The float nearest to the middle of the number."""
    return float(ball(value).mid())


def _shortened(value: Number) -> Number:
    return arb(value) if isinstance(value, fmpq) and value.height_bits() > _LONGEST_FRACTION else value


def quotient(a: Number, b: Number) -> Number:
    """A / b; no number where b may be 0."""
    return a / b if sign_of(b) else NAN


def power(base: Number, exponent: Number) -> Number:
    """Base ^ exponent, exact where both are short fractions and the result is one."""
    if isinstance(exponent, fmpq):
        if exponent == 0:
            return fmpq(1)
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
    parts = [_integer_root(int(part), degree) for part in (base.p, base.q)]
    return fmpq(*parts) if None not in parts else None  # type: ignore[arg-type]


def _integer_root(value: int, degree: int) -> int | None:
    guess = math.isqrt(value) if degree == 2 else round(math.exp(math.log(value) / degree))
    return guess if guess**degree == value else None


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
    if name == "log1p" and x == -1:
        return -INFINITY  # 1 - (1 - 1/t)^p passes through it at t = 1
    return getattr(ball(x), name)()


value_of: Table[Callable[[Any, int], Number]] = Table("single values in balls")
"""Node, whole t -> u_t as an exact fraction or a ball of the present precision."""


def value(schedule: Schedule, t: int) -> Number:
    """u_t: exact where it is a short fraction, else a ball that holds it; no number where it is undefined."""
    return _shortened(value_of[type(schedule)](schedule, t))


@value_of.rule(tree.Constant)
def _(node: tree.Constant, _t: int) -> Number:
    known = node.known_facts.get("number")
    return known if known is not None else node.known_facts.setdefault("number", number(node.value))


@value_of.rule(tree.Time)
def _(_node: tree.Time, t: int) -> Number:
    return fmpq(t)


_OF_TWO: dict[type[Schedule], Callable[..., Number]] = {
    tree.Add: operator.add,
    tree.Multiply: operator.mul,
    tree.Divide: quotient,
    tree.Power: power,
}


@value_of.rule(*_OF_TWO)
def _(node: tree.Binary, t: int) -> Number:
    return _OF_TWO[type(node)](value(node.left, t), value(node.right, t))


@value_of.rule(tree.Subtract)
def _(node: tree.Subtract, t: int) -> Number:
    left, right = value(node.left, t), value(node.right, t)
    if isinstance(left, arb) and isinstance(right, arb) and left.overlaps(right):
        return fmpq(0) if _key(node.left, t) == _key(node.right, t) else left - right
    return left - right


@value_of.rule(tree.Maximum)
def _(node: tree.Maximum, t: int) -> Number:
    return _larger(value(node.left, t), value(node.right, t))


@value_of.rule(tree.Minimum)
def _(node: tree.Minimum, t: int) -> Number:
    return -_larger(-value(node.left, t), -value(node.right, t))


def _larger(a: Number, b: Number) -> Number:
    return a if a >= b else b if b >= a else ball(a).max(ball(b))


@value_of.rule(tree.Negate)
def _(node: tree.Negate, t: int) -> Number:
    return -value(node.operand, t)


@value_of.rule(tree.Function)
def _(node: tree.Function, t: int) -> Number:
    return apply(node.name, value(node.argument, t))


@value_of.rule(tree.Join)
def _(node: tree.Join, t: int) -> Number:
    return value(node.before if t < node.threshold else node.after, t)


@value_of.rule(tree.Periodic)
def _(node: tree.Periodic, t: int) -> Number:
    return value(node.body, (t - 1) % node.period + 1)


@value_of.rule(tree.Bounded)
def _(node: tree.Bounded, t: int) -> Number:
    return value(node.operand, t)


@value_of.rule(tree.Opaque)
def _(node: tree.Opaque, t: int) -> Number:
    # What a callable returns is the number itself.
    result = node.scalar(t)
    return number(Fraction(result)) if math.isfinite(result) else NAN


def _running(node: Schedule, t: int, start: Number, step: Callable[[Number, int], Number]) -> Number:
    """A running sum or product at t, on from the one asked for last or the nearest checkpoint before t.

    No number beyond the longest walk.
    """
    if t > LONGEST_SUM:
        return NAN
    known: dict[int, Number] = node.known_facts.setdefault(("running", ctx.prec), {0: start})
    at, total = node.known_facts.get(("last", ctx.prec), (0, start))
    if not t - _CHECKPOINT < at <= t:
        at = t - t % _CHECKPOINT
        while at not in known:
            at -= _CHECKPOINT
        total = known[at]
    for i in range(at + 1, t + 1):
        total = _shortened(step(total, i))
        if i % _CHECKPOINT == 0:
            known[i] = total
    node.known_facts["last", ctx.prec] = (t, total)
    return total


def _share(node: tree.OfWeights, t: int) -> Number:
    total = closed_sum(node.weights, t) if t > _SHORT_SUM else None
    if total is None:
        total = _running(node, t, fmpq(0), lambda total, i: total + value(node.weights, i))
    return quotient(value(node.weights, t), number(node.initial) + total)


def closed_sum(weights: Schedule, t: int) -> Number | None:
    r"""w_1 + ... + w_t for w_t = c (t + b)^p (Hurwitz' zeta function) and c rho^t; None for other weights.

    .. math:: \sum_{i=1}^{t} (i + b)^p = \zeta(-p, 1 + b) - \zeta(-p, t + 1 + b), \qquad b > -1.
    """
    match weights:
        case tree.Constant(one):
            return number(one) * t
        case tree.Multiply(tree.Constant(factor), other) | tree.Multiply(other, tree.Constant(factor)):
            inner = closed_sum(other, t)
            return None if inner is None else number(factor) * inner
        case tree.Divide(other, tree.Constant(factor)):
            inner = closed_sum(other, t)
            return None if inner is None else inner / number(factor)
        case tree.Divide(tree.Constant(factor), tree.Power(base, tree.Constant(exponent))):
            return _sum_of_powers(base, number(factor), -number(exponent), t)
        case tree.Divide(tree.Constant(factor), tree.Function("sqrt", base)):
            return _sum_of_powers(base, number(factor), fmpq(-1, 2), t)
        case tree.Divide(tree.Constant(factor), base):
            return _sum_of_powers(base, number(factor), fmpq(-1), t)
        case tree.Power(tree.Constant(rho), tree.Time()) if rho not in {0, 1}:
            return number(rho) * (power(number(rho), fmpq(t)) - 1) / (number(rho) - 1)
        case tree.Power(base, tree.Constant(exponent)):
            return _sum_of_powers(base, fmpq(1), number(exponent), t)
        case tree.Function("sqrt", base):
            return _sum_of_powers(base, fmpq(1), fmpq(1, 2), t)
        case _:
            return _sum_of_powers(weights, fmpq(1), fmpq(1), t)


def _sum_of_powers(base: Schedule, factor: fmpq, exponent: fmpq, t: int) -> Number | None:
    line = as_linear(base)
    if line is None or line[0] <= 0 or line[0] + line[1] <= 0:
        return None
    slope, first = number(line[0]), number(1 + line[1] / line[0])
    if exponent == -1:
        whole = arb(first + t).digamma() - arb(first).digamma()
    else:
        whole = arb(-exponent).zeta(arb(first)) - arb(-exponent).zeta(arb(first + t))
    return factor * power(slope, exponent) * whole


@value_of.rule(tree.WeightShare)
def _(node: tree.WeightShare, t: int) -> Number:
    return _share(node, t)


@value_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta, t: int) -> Number:
    return 1 - _share(node, t)


@value_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection, t: int) -> Number:
    if node.factor.is_constant:
        return 1 - power(value(node.factor, 1), fmpq(t))
    return 1 - _running(node, t, fmpq(1), lambda product, i: product * value(node.factor, i))


def decided(question: Callable[[], Number]) -> tuple[int | None, Number]:
    """The sign of a number, computed with more and more digits until it is clear, and the number."""
    result: Number = NAN
    for bits in PRECISIONS:
        with Precision(bits):
            result = question()
            sign = sign_of(result)
        if sign is not None or isinstance(result, fmpq):
            return sign, result
        if not result.is_finite() and bits > BITS:
            break
    return None, result


def _key(node: Schedule, t: int) -> object:
    """What u_t is made of, down to exact numbers: equal keys are equal numbers, whatever their digits."""
    found = value(node, t)
    if isinstance(found, fmpq):
        return int(found.p), int(found.q)
    match node:
        case tree.Join(threshold, before, after):
            return _key(before if t < threshold else after, t)
        case tree.Periodic(body, period):
            return _key(body, (t - 1) % period + 1)
        case tree.Maximum(left, right) | tree.Minimum(left, right):
            order = sign_of(value(left, t) - value(right, t))
            if order:
                return _key(left if (order > 0) == isinstance(node, tree.Maximum) else right, t)
        case _:
            pass
    if not node.pointwise:
        return node, t
    name = node.name if isinstance(node, tree.Function) else None
    return type(node), name, tuple(_key(child, t) for child in node.children)


def sign(schedule: Schedule, t: int) -> int | None:
    """The sign of u_t, or None where no precision tells."""
    return decided(lambda: value(schedule, t))[0]


def sign_of_step(schedule: Schedule, t: int) -> int | None:
    """The sign of u_t - u_{t-1}."""
    with Precision():
        found = sign_of(value(schedule, t) - value(schedule, t - 1))
        if found is not None:
            return found
        if _key(schedule, t) == _key(schedule, t - 1):
            return 0
    return decided(lambda: value(schedule, t) - value(schedule, t - 1))[0]


@dataclass(frozen=True)
class Range:
    """All real numbers from low to high; the ends are exact, and may be infinite.

    Attributes:
        low: the lower end.
        high: the upper end.
        nonzero: whether 0 is left out where it is an end: a positive sequence that tends to 0.
    """

    low: arb
    high: arb
    nonzero: bool = False

    @property
    def sign(self) -> int:
        """1 where every element is positive, -1 where every element is negative, else 0."""
        if self.low > 0 or (self.nonzero and self.low >= 0):
            return 1
        return -1 if self.high < 0 or (self.nonzero and self.high <= 0) else 0

    @property
    def ends(self) -> tuple[arb, arb]:
        """The two end points."""
        return self.low, self.high

    @property
    def is_finite(self) -> bool:
        """Whether both ends are numbers."""
        return self.low.is_finite() and self.high.is_finite()

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low, self.nonzero)

    def __add__(self, other: Range) -> Range:
        low, high = _down(self.low + other.low), _up(self.high + other.high)
        signs = {self.sign, other.sign}
        positive = 1 in signs and self.low >= 0 and other.low >= 0
        return Range(low, high, positive or (-1 in signs and self.high <= 0 and other.high <= 0))

    def __sub__(self, other: Range) -> Range:
        return self + (-other)

    def __mul__(self, other: Range) -> Range:
        if self.low >= 0 and other.low >= 0:
            nonzero = self.sign > 0 and other.sign > 0
            return Range(_down(_times(self.low, other.low)), _up(_times(self.high, other.high)), nonzero)
        nonzero = bool(self.sign and other.sign)
        return _hull_of([_times(a, b) for a in self.ends for b in other.ends], nonzero)

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
        return _hull_of([_over(a, b) for a in self.ends for b in other.ends], bool(self.sign))

    def meet(self, other: Range) -> Range:
        """The numbers in both: two enclosures of one thing."""
        low = max(self.low, other.low)
        high = min(self.high, other.high)
        return Range(low, high, self.nonzero or other.nonzero)

    def hull(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return _hull_of([*self.ends, *other.ends], bool(self.sign) and self.sign == other.sign)

    def mapped(self, increasing: Callable[[arb], Number], nonzero: bool = False) -> Range:
        """The image under an increasing function."""
        return Range(_down(ball(increasing(self.low))), _up(ball(increasing(self.high))), nonzero)


def point(value: Number) -> Range:
    """The range of one number: as wide as its ball."""
    middle = ball(value)
    return Range(_down(middle), _up(middle))


def _down(value: arb) -> arb:
    low = value.lower()
    return -INFINITY if low.is_nan() else low


def _up(value: arb) -> arb:
    high = value.upper()
    return INFINITY if high.is_nan() else high


def _times(a: arb, b: arb) -> arb:
    # An end 0 is exact: times an infinite end it is the limit of zeros.
    return arb(0) if a == 0 or b == 0 else a * b


def _over(a: arb, b: arb) -> arb:
    """A / b for an end b >= 0; of 0/0 and infinity over infinity the other corners hold the extremes."""
    if a == 0:
        return arb(0)
    if not b.is_finite():
        return arb(0) if a.is_finite() else a
    return a / b if b > 0 else a.sgn() * INFINITY


def _hull_of(corners: list[arb], nonzero: bool) -> Range:
    low, high = _down(corners[0]), _up(corners[0])
    for corner in corners[1:]:
        bottom, top = _down(corner), _up(corner)
        low = min(low, bottom)
        high = max(high, top)
    return Range(low, high, nonzero)


EVERYTHING = Range(-INFINITY, INFINITY)
NOT_NEGATIVE = Range(arb(0), INFINITY)
POSITIVE = Range(arb(0), INFINITY, True)
