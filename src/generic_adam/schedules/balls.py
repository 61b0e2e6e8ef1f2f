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
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from generic_adam.schedules import tree
from generic_adam.schedules.identities import Form, exact_form
from generic_adam.schedules.normal import as_exponential, as_linear, factored
from generic_adam.schedules.tree import Schedule, Table, filtered_of, remembered
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
LONGEST_SUM = 1 << 17
"""A running sum or product has values up to here."""
# Up to here the first answer walks it in balls; beyond, it is enclosed in floats with error bounds, a block at once.
_WALKED = 4096
_CLOSE = 1e-9
_CHECKPOINT = 512
# So many terms are added up, in fractions where they are fractions, before a closed form is asked.
_SHORT_SUM = 32


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


def rounded_up(number: float, digits: int) -> str:
    """The number with so many digits, never below it: what is printed of a bound is one."""
    told = f"{number:.{digits}g}"
    if not math.isfinite(number) or Decimal(told) >= Decimal(str(number)):
        return told
    last = Decimal(1).scaleb(Decimal(told).adjusted() - digits + 1)
    return f"{float(Decimal(told) + last):.{digits}g}"


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


def _sum(node: tree.Add | tree.Subtract, t: int) -> Number:
    add = operator.add if isinstance(node, tree.Add) else operator.sub
    total = add(value(node.left, t), value(node.right, t))
    # Where digits cancel, the form may tell that it is 0.
    return fmpq(0) if _may_be_zero(total) and not _form(node, t) else total


def _may_be_zero(total: Number) -> bool:
    return isinstance(total, arb) and total.is_finite() and total.contains(0)


def _form(node: Schedule, t: int) -> Form:
    return exact_form(node, t, lambda left, right: sign_of(value(left, t) - value(right, t)))


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
    """A running sum or product at t, on from the one asked for last or the nearest checkpoint before t.

    No number beyond the longest walk.
    """
    if t > LONGEST_SUM:
        return NAN
    reach(Work.MULTIPLIED, (node, ctx.prec), t)
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


def _enclosed(node: Schedule, t: int) -> arb | None:
    """A running share or product late in its run, where nine digits are enough and floats have them."""
    if not _WALKED < t <= LONGEST_SUM or ctx.prec > BITS:
        return None
    found, error = filtered_of[type(node)](node, np.array([float(t)]))
    middle, radius = np.ravel(found)[0], np.ravel(error)[0]
    return arb(float(middle), float(radius)) if math.isfinite(middle) and radius < _CLOSE * abs(middle) else None


def _share(node: tree.WeightShare, t: int) -> Number:
    total = closed_sum(node.weights, t) if t > _SHORT_SUM else None
    enclosed = _enclosed(node, t) if total is None else None
    if enclosed is not None:
        return enclosed
    if total is None:
        total = _running(node, t, fmpq(0), lambda total, i: total + value(node.weights, i))
    return quotient(value(node.weights, t), number(node.initial) + total)


def closed_sum(weights: Schedule, t: int) -> Number | None:
    r"""w_1 + ... + w_t for w_t = c (a t + b)^p (Hurwitz' zeta function) and c rho^t; None for other weights.

    .. math:: \sum_{i=1}^{t} (i + b)^p = \zeta(-p, 1 + b) - \zeta(-p, t + 1 + b), \qquad b > -1.
    """
    factor: Number = fmpq(1)
    moving: list[tuple[Schedule, Fraction]] = []
    for base, exponent in factored(weights).items():
        if isinstance(base, tree.Constant):
            factor = factor * power(number(base.value), number(exponent))
        else:
            moving.append((base, exponent))
    if len(moving) != 1:
        return None if moving else factor * t
    base, p = moving[0][0], number(moving[0][1])
    form, line = as_exponential(base), as_linear(base)
    if form is not None:
        rho, slope, offset = form
        one = apply("exp", fmpq(1)) if rho is None else number(rho)
        ratio = power(one, number(slope) * p)
        return factor * power(one, number(offset) * p) * ratio * (power(ratio, fmpq(t)) - 1) / (ratio - 1)
    if line is None or line[0] <= 0 or line[0] + line[1] <= 0:
        return None
    first = number(1 + line[1] / line[0])
    if p == -1:
        whole = arb(first + t).digamma() - arb(first).digamma()
    else:
        whole = arb(-p).zeta(arb(first)) - arb(-p).zeta(arb(first + t))
    return factor * power(number(line[0]), p) * whole


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
        **dict.fromkeys((tree.Add, tree.Subtract), _sum),
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
    """The sign of a number, computed with more and more digits until it is clear, and the number."""
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
    """The sign of u_t, or None where no precision tells."""
    return decided(lambda: value(schedule, t))[0]


def sign_of_step(schedule: Schedule, t: int) -> int | None:
    """The sign of u_t - u_{t-1}."""
    with Precision():
        step = value(schedule, t) - value(schedule, t - 1)
        if _may_be_zero(step) and _form(schedule, t) == _form(schedule, t - 1):
            return 0
    return decided(lambda: value(schedule, t) - value(schedule, t - 1))[0]
