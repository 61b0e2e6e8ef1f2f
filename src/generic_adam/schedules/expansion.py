r"""Expansions at infinity: the leading terms of a schedule, and proofs about its tail.

The idea
--------
After Gruntz ("On Computing Limits in a Symbolic Manipulation System", 1996) a sequence is compared by the terms it is
made of,

.. math:: u_t = \sum_{i<n} c_i\,s_i(t) + R(t), \qquad s_0 > s_1 > \dots \text{ in order of growth},

with c_i a range: one exact fraction, or everything that a swinging coefficient may be (sin t is [-1, 1]).

The ordering
------------
A scale is s = rho^t t^p (log t)^q (log log t)^w with exact exponents, and scales are ordered like words: first by rho,
then by p, then by q, then by w (`growth.Scale.compared_with`). So 0.999^t < t^-9 < t^-1/2 / log t < t^-1/2 < 1 < log t.
No other functions are on the scale: exp(-sqrt(t)) raises `Unclear`, which is no answer, and never a wrong one.

The rules
---------
Sums merge equal scales; exact coefficients cancel exactly, and the next term leads; where coefficients are ranges,
nothing cancels and the sign stays open. Products multiply every term by every term. Of f(u) the leading term is taken
out, u = c_0 s_0 (1 + d) with d -> 0, and the power series of f is put in for d (`Calculus.series`). Terms beyond the
first 2 (6 where those cancel) go into R.

R is kept in one of two ways. A Calculus with start None keeps its order alone, which gives the growth of a schedule. A
Calculus from a step N on keeps a number b with

.. math:: |R(t)| \le b\,s(t) \quad\text{for every } t \ge N,

from Lagrange's remainder of each series, which is asked to hold for sup abs(d) <= 1/2 over t >= N. Everything that is
proved of a tail rests on this one invariant; `tests/soundness/remainder.py` samples it.

Signs and directions
--------------------
`tail_sign`: u_t has the sign of c_0 for all t >= N once the other terms and b s, each over s_0, add up to less than
abs(c_0) at t = N, since each of these ratios falls from N on (`Calculus.highest`). `tail_direction` asks it of u', or
of u'/u = sum p_i x_i'/x_i for a product of positive factors x_i^p_i, where exponents cancel exactly.

A worked example
----------------
Whether u_t = sqrt(t^2 + 1) - t is positive from N = 16 on:

    t^2 + 1               t^2 + 1                         two exact terms, R = 0
    leading term out      t^2 (1 + d), d = t^-2           sup d = 1/256 <= 1/2, so the series may be used
    sqrt(1 + d)           1 + d/2 + R                     abs(R) <= 2^(3/2)/8 d^2 = 0.36 t^-4
    sqrt(t^2 + 1)         t + (1/2) t^-1 + R              abs(R) <= 0.36 t^-3
    less t                (1/2) t^-1 + R                  t - t is exactly 0, and the next term leads
    sign                  0.36 t^-3/((1/2) t^-1) < 1      at t = 16, and falling: positive for every t >= 16

With t + 1,000 in place of t, d is above 1/2 at N = 16 and the series is refused: the caller walks on, and asks with a
larger N.

How to debug it
---------------
>>> from generic_adam.schedules import parse
>>> u = parse("sqrt(t^2 + 1) - t")
>>> found = Calculus(16, 2).expand(u)
>>> [(scale.text("t"), str(c.number)) for scale, c in found.terms]
[('t^(-1)', '1/2')]
>>> found.rest.scale.text("t"), float(found.rest.bound) < 0.4
('t^(-3)', True)
>>> tail_sign(u, 16), tail_direction(u, 16)
(1, -1)

Where an answer is open, expand the parts (`tree.walk`): the innermost one that raises `Unclear` is the cause. The usual
ones are a range that should be a fraction (log 2 and sin are ranges), more than six cancelling terms, a node that is
off the scale, and an N that is too small. Expansions are kept in `known_facts`: build the schedule anew after a change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from itertools import accumulate
from typing import Any

from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import (
    BITS,
    INFINITY,
    ONE,
    SWING,
    Number,
    Precision,
    Range,
    ball,
    is_finite,
    number,
    point,
    power,
    value,
)
from generic_adam.schedules.enclosure import NOTHING, enclose, factors, is_defined, resolved
from generic_adam.schedules.growth import UNIT, UNKNOWN_CONSTANT, ZERO, GeometricBase, Growth, Scale
from generic_adam.schedules.normal import as_linear, as_power_of_t, derivative, linear
from generic_adam.schedules.tree import NODES, Schedule, Table, order_of, remembered, substitute, walk

# How many terms are kept: few first, more where they cancel.
_COUNTS = (2, 6)
_T = Scale(power=fmpq(1))
_LOG = Scale(log=fmpq(1))
_LOGLOG = Scale(loglog=fmpq(1))
# From here on log log t > 1, so that every scale is a positive function.
EARLIEST = 16

Term = tuple[Scale, Range]


class Unclear(Exception):  # noqa: N818  (an answer, not an error)
    """No expansion: it is off the scale, the terms kept cancel, or a series does not yet converge at the step."""


@dataclass(frozen=True)
class Rest:
    """The remainder of an expansion.

    Attributes:
        scale: its order.
        little: whether it is of smaller order than the scale.
        bound: abs(R(t)) <= bound * scale(t) from the step on that a proof is wanted for.
    """

    scale: Scale
    little: bool = False
    bound: Number = INFINITY

    def times(self, scale: Scale, size: Number, little: bool = False) -> Rest:
        """Return the product with something of that order and size."""
        bound = self.bound if self.bound is INFINITY else ball(self.bound * size).upper()
        return Rest(self.scale * scale, self.little or little, bound)


@dataclass(frozen=True)
class Expansion:
    """Terms of falling order, and what is left out (None: nothing)."""

    terms: tuple[Term, ...]
    rest: Rest | None = None

    @property
    def is_zero(self) -> bool:
        """Return whether it is the sequence 0."""
        return not self.terms and self.rest is None

    @property
    def rests(self) -> list[Rest]:
        """The remainder as a list."""
        return [] if self.rest is None else [self.rest]

    def scaled(self, c: Range, scale: Scale = UNIT) -> Expansion:
        """c s a."""
        rest = None if self.rest is None else self.rest.times(scale, c.size)
        return Expansion(tuple((one * scale, c * other) for one, other in self.terms), rest)

    def __neg__(self) -> Expansion:
        return Expansion(tuple((scale, -c) for scale, c in self.terms), self.rest)


def constant(c: Range) -> Expansion:
    """Return the expansion of a number."""
    return Expansion(() if c.is_zero else ((UNIT, c),))


class Calculus:
    """Operations on expansions with so many terms, eventually (start None) or for every t >= start."""

    def __init__(self, start: int | None, count: int) -> None:
        self.start, self.count = start, count
        self.key = ("expansion", start, count)

    def expand(self, node: Schedule) -> Expansion:
        """Return the expansion of a schedule, kept with the node."""
        found = node.known_facts.get(self.key)
        if found is None:
            try:
                found = expansion_of[type(node)](node, self)
            except Unclear:
                found = Unclear
            node.known_facts[self.key] = found
        if isinstance(found, Expansion):
            return found
        raise Unclear

    def highest(self, scale: Scale) -> arb:
        """Return the supremum of a scale that does not tend to infinity over t >= start: its value there."""
        if scale.trend == 0:
            return arb(1)
        if self.start is None or self.start < EARLIEST:
            raise Unclear
        t = arb(self.start)
        log = t.log()
        loglog = log.log()
        # t s'/s = t log rho + p + (q + w/log log t)/log t: where that is <= 0 throughout, s falls.
        rate = scale.rho.log_at(BITS)
        of_logs = scale.log + max(arb(0), (scale.loglog / loglog).upper())
        slope = t * rate + scale.power + max(arb(0), (of_logs / log).upper())
        if scale.rho.sign_of_log > 0 or not slope <= 0:
            raise Unclear
        log_of_value = t * rate + scale.power * log + scale.log * loglog + scale.loglog * loglog.log()
        return log_of_value.exp().upper()

    def together(self, parts: list[Rest]) -> Rest | None:
        """Several things left out, as one."""
        if len(parts) < 2:
            return parts[0] if parts else None
        top = parts[0]
        for part in parts[1:]:
            order = part.scale.compared_with(top.scale)
            if order > 0 or (order == 0 and top.little):
                top = part
        if self.start is None:
            return top
        bound = arb(0)
        for part in parts:
            bound += part.bound * self.highest(part.scale / top.scale)
        return Rest(top.scale, False, bound.upper())

    def collected(self, terms: list[Term], rests: list[Rest]) -> Expansion:
        """Equal scales merged, exact zeros dropped, the terms that are too many left out."""
        merged: list[Term] = []
        for scale, c in sorted(terms, key=cmp_to_key(lambda a, b: b[0].compared_with(a[0]))):
            if merged and merged[-1][0].compared_with(scale) == 0:
                merged[-1] = (merged[-1][0], merged[-1][1] + c)
            else:
                merged.append((scale, c))
        rest = self.together(rests)
        kept: list[Term] = []
        left: list[Rest] = [] if rest is None else [rest]
        for scale, c in merged:
            if c.is_zero:
                continue
            hidden = False
            if rest is not None and self.start is None:
                order = rest.scale.compared_with(scale)
                hidden = order > 0 or (order == 0 and not rest.little)
            if hidden or len(kept) == self.count:
                left.append(Rest(scale, False, c.size))
            else:
                kept.append((scale, c))
        return Expansion(tuple(kept), self.together(left))

    def add(self, a: Expansion, b: Expansion) -> Expansion:
        """Add a and b."""
        return self.collected([*a.terms, *b.terms], a.rests + b.rests)

    def subtract(self, a: Expansion, b: Expansion) -> Expansion:
        """Subtract b from a."""
        return self.add(a, -b)

    def magnitude(self, a: Expansion) -> Rest:
        """Return the order of a, with a bound on abs(a)."""
        parts = [Rest(scale, False, c.size) for scale, c in a.terms]
        return self.together(parts + a.rests) or Rest(UNIT, False, arb(0))

    def multiply(self, a: Expansion, b: Expansion) -> Expansion:
        """Multiply a and b."""
        if a.is_zero or b.is_zero:
            return Expansion(())
        rests: list[Rest] = []
        for one, other in ((a, b), (b, a)):
            if one.rest is not None:
                size = self.magnitude(other)
                rests.append(one.rest.times(size.scale, size.bound, size.little))
        return self.collected([(s * r, c * d) for s, c in a.terms for r, d in b.terms], rests)

    def series(self, d: Expansion, coefficients: Callable[[int], fmpq], tail: Callable[[int, arb], arb]) -> Expansion:
        """sum_k c_k d^k for d -> 0, with abs(R_n) <= tail(n, sup abs(d)) abs(d)^n."""
        if d.is_zero:
            return constant(point(coefficients(0)))
        size = self.magnitude(d)
        if not self.fades(size):
            raise Unclear
        n = self.count
        bound = INFINITY
        if self.start is not None:
            largest = (size.bound * self.highest(size.scale)).upper()
            if not largest <= fmpq(1, 2):
                raise Unclear
            bound = (tail(n, largest) * size.bound**n).upper()
        result = constant(point(coefficients(n - 1)))
        for k in range(n - 2, -1, -1):
            result = self.add(self.multiply(result, d), constant(point(coefficients(k))))
        if all(coefficients(k) == 0 for k in range(n, n + 4)):
            return result
        return self.add(result, Expansion((), Rest(size.scale ** fmpq(n), size.little, bound)))

    def fades(self, rest: Rest) -> bool:
        """Return whether something left out tends to 0, or at least has a bound."""
        return rest.scale.trend < 0 or (rest.scale.trend == 0 and (rest.little or self.start is not None))

    def lead(self, a: Expansion) -> tuple[Scale, Range, Expansion]:
        """(s, c, d) with a = c s (1 + d), d -> 0."""
        if not a.terms or not a.terms[0][1].sign:
            raise Unclear
        scale, c = a.terms[0]
        if a.rest is not None:
            order = a.rest.scale.compared_with(scale)
            if order > 0 or (order == 0 and not a.rest.little):
                raise Unclear
        return scale, c, Expansion(a.terms[1:], a.rest).scaled(c ** fmpq(-1), scale ** fmpq(-1))

    def power(self, a: Expansion, exponent: fmpq) -> Expansion:
        """a^exponent."""
        if a.is_zero and exponent > 0:
            return a
        scale, c, d = self.lead(a)
        if c.sign < 0 and exponent.q != 1:
            raise Unclear

        steps = range(self.count + 3)
        binomials = [*accumulate(steps, lambda b, i: b * (exponent - i) / (i + 1), initial=fmpq(1))]

        def tail(n: int, _largest: arb) -> arb:
            # (1 + x)^(p - n) for abs(x) <= 1/2
            factor = arb(2) ** (n - exponent) if exponent < n else arb(1.5) ** (exponent - n)
            return abs(arb(binomials[n])) * factor

        return self.series(d, binomials.__getitem__, tail).scaled(c**exponent, scale**exponent)

    def logarithm(self, a: Expansion) -> Expansion:
        """log a."""
        scale, c, d = self.lead(a)
        if c.sign < 0 or scale.loglog:
            raise Unclear
        rate = scale.rho.log_at(BITS) if scale.rho.factors else scale.rho.exponent_of_e
        leading = ((_T, rate), (_LOG, scale.power), (_LOGLOG, scale.log))
        terms: list[Term] = [(one, point(part)) for one, part in leading]
        small = self.series(
            d,
            lambda k: fmpq((-1) ** (k + 1), k) if k else fmpq(0),
            lambda n, largest: (1 / (1 - largest)) ** n / n,
        )
        return self.add(self.collected([*terms, (UNIT, c.image("log"))], []), small)

    def exponential(self, a: Expansion, base: Fraction | None = None) -> Expansion:
        """base^a for a number base > 0, e by default."""
        if a.rest is not None and not self.fades(a.rest):
            raise Unclear
        scale, factor, small = UNIT, ONE, list[Term]()
        log_base = ONE if base is None else point(number(base)).image("log")
        for one, c in a.terms:
            if one.trend < 0:
                small.append((one, c * log_base))
            elif one.trend > 0:
                scale = scale * _geometric(one, c, base)
            elif base is not None and c.number is not None:
                factor = point(power(number(base), c.number))
            else:
                factor = (c * log_base).image("exp")
        rests = [rest.times(UNIT, log_base.size) for rest in a.rests]
        grown = self.series(
            self.collected(small, rests),
            lambda k: fmpq(1, math.factorial(k)),
            lambda n, largest: largest.exp() / math.factorial(n),
        )
        return grown.scaled(factor, scale)

    def oscillation(self, name: str, a: Expansion) -> Expansion:
        """sin a or cos a."""
        if any(scale.trend > 0 for scale, _ in a.terms) or (a.rest is not None and a.rest.scale.trend >= 0):
            return constant(SWING)
        small = tuple((scale, c) for scale, c in a.terms if scale.trend < 0)
        middle = next((c for scale, c in a.terms if scale.trend == 0), NOTHING)

        def part(shift: int) -> Expansion:
            # The derivatives of sin at 0 are 0, 1, 0, -1; those of cos come one later.
            return self.series(
                Expansion(small, a.rest),
                lambda k: fmpq((0, 1, 0, -1)[(k + shift) % 4], math.factorial(k)),
                lambda n, _largest: arb(1) / math.factorial(n),
            )

        sine, cosine = part(0), part(1)
        if name == "sin":
            return self.add(cosine.scaled(middle.image("sin")), sine.scaled(middle.image("cos")))
        return self.subtract(cosine.scaled(middle.image("cos")), sine.scaled(middle.image("sin")))

    def sign(self, a: Expansion) -> int:
        """Return the sign of a eventually, or for every t >= start; 0 for the sequence 0."""
        if a.is_zero:
            return 0
        _, c, d = self.lead(a)
        if self.start is not None and not d.is_zero:
            size = self.magnitude(d)
            if not size.bound * self.highest(size.scale) < 1:
                raise Unclear
        return c.sign

    def largest(self, a: Expansion, b: Expansion) -> Expansion:
        """max(a, b): the one that is ahead, or what holds both where they cross again and again."""
        try:
            return a if self.sign(self.subtract(a, b)) >= 0 else b
        except Unclear:
            pass
        sizes = [self.magnitude(one).scale for one in (a, b) if not one.is_zero]
        top = sizes[0] if len(sizes) == 1 or sizes[0].compared_with(sizes[1]) >= 0 else sizes[1]
        leading: list[Range] = []
        others: list[Rest] = []
        for one in (a, b):
            leading.append(next((c for scale, c in one.terms if scale.compared_with(top) == 0), NOTHING))
            lower = Expansion(tuple(term for term in one.terms if term[0].compared_with(top)), one.rest)
            if not lower.is_zero:
                others.append(self.magnitude(lower))
        return self.collected([(top, leading[0].largest(leading[1]))], others)

    def absolute(self, a: Expansion) -> Expansion:
        """abs(a)."""
        try:
            return a if self.sign(a) >= 0 else -a
        except Unclear:
            if not a.terms:
                raise
        (top, c), rest = a.terms[0], Expansion(a.terms[1:], a.rest)
        return self.collected([(top, c.image("abs"))], [] if rest.is_zero else [self.magnitude(rest)])


def _geometric(scale: Scale, c: Range, base: Fraction | None) -> Scale:
    """base^(c s) as a scale: rho^t for s = t, t^c for s = log t, (log t)^c for s = log log t."""
    exponent = c.number
    if exponent is not None:
        if scale == _T:
            rho = GeometricBase(exponent)
            return Scale(rho if base is None else GeometricBase.from_rational(base) ** exponent)
        if base is None and scale == _LOG:
            return Scale(power=exponent)
        if base is None and scale == _LOGLOG:
            return Scale(log=exponent)
    raise Unclear


expansion_of: Table[Callable[[Any, Calculus], Expansion]] = Table("expansions at infinity")
"""Node, calculus -> its expansion; raises Unclear where there is none."""


def _of_two(
    operation: Callable[[Calculus, Expansion, Expansion], Expansion],
) -> Callable[[tree.Binary, Calculus], Expansion]:
    return lambda node, calculus: operation(calculus, calculus.expand(node.left), calculus.expand(node.right))


def _power(node: tree.Power, calculus: Calculus) -> Expansion:
    base, exponent = node.left, node.right
    if isinstance(exponent, tree.Constant):
        return calculus.power(calculus.expand(base), number(exponent.value))
    if isinstance(base, tree.Constant) and base.value > 0:
        return calculus.exponential(calculus.expand(exponent), base.value)
    product = calculus.multiply(calculus.expand(exponent), calculus.logarithm(calculus.expand(base)))
    return calculus.exponential(product)


_FUNCTIONS: dict[str, Callable[[Calculus, Expansion], Expansion]] = {
    "sqrt": lambda calculus, a: calculus.power(a, fmpq(1, 2)),
    "log": Calculus.logarithm,
    "log1p": lambda calculus, a: calculus.logarithm(calculus.add(a, constant(ONE))),
    "exp": Calculus.exponential,
    "expm1": lambda calculus, a: calculus.subtract(calculus.exponential(a), constant(ONE)),
    "abs": Calculus.absolute,
    "sin": lambda calculus, a: calculus.oscillation("sin", a),
    "cos": lambda calculus, a: calculus.oscillation("cos", a),
}


def _join(node: tree.Join, calculus: Calculus) -> Expansion:
    if calculus.start is not None and calculus.start < node.threshold:
        raise Unclear
    return calculus.expand(node.after)


def _by_range(node: Schedule, start: int = 1) -> Expansion:
    bounds = enclose(node, start).range
    if not bounds.is_finite:
        raise Unclear
    return constant(bounds)


def share_times_t(node: tree.WeightShare, start: int) -> Range | None:
    """Bounds on t w_t / W_t for t >= start where w_t = c t^p with p > -1; None for other weights.

    With y = (start/t)^{p+1}, W_t/(t w_t) lies between a y + (1 - y)/(p + 1) and that plus 1/start, a being
    W_{start-1}/(start w_start): the sum of i^p is compared with its integral. It is linear in y, so its ends
    are at y = 0 and y = 1.
    """
    form = as_power_of_t(node.weights)
    if form is None or form[0] <= 0 or form[1] <= -1:
        return None
    with Precision():
        share = ball(value(node, start))
        first, limit = (1 / share - 1) / start, 1 / ball(number(form[1] + 1))
        inverse = point(first).hull(point(limit)) + Range(fmpq(0), fmpq(1, start))
        return ONE / inverse if inverse.low > 0 else None


def _share(node: tree.WeightShare, calculus: Calculus) -> Expansion:
    if calculus.start is not None:
        scaled = share_times_t(node, calculus.start)
        return _by_range(node, calculus.start) if scaled is None else Expansion(((_T ** fmpq(-1), scaled),))
    weights = node.weights.growth
    sums = None if weights is None or weights.sign <= 0 else weights.partial_sums()
    if weights is None or sums is None:
        raise Unclear
    if weights.rho.sign_of_log > 0:
        # w_t/W_t tends to 1 - 1/rho, up to the swing of the coefficient.
        limit = point(-(-weights.rho.log_at(BITS)).expm1())
        swing = weights.coefficient
        share = limit if swing.low == swing.high else (swing / swing * limit).meet(Range(fmpq(0), fmpq(1)))
        return Expansion(((UNIT, share),), Rest(UNIT, True))
    # W_0 counts beside a convergent sum; only its being a positive constant is used.
    inverse = (UNKNOWN_CONSTANT if sums.trend == 0 else sums).inverse()
    if inverse is None:
        raise Unclear
    share = weights * inverse
    return Expansion(((share.scale, share.coefficient),), Rest(share.scale, True))


def _correction(node: tree.BiasCorrection, calculus: Calculus) -> Expansion:
    if isinstance(node.factor, tree.Constant):
        rho = GeometricBase.from_rational(node.factor.value)
        return calculus.collected([(UNIT, ONE), (Scale(rho), -ONE)], [])
    if calculus.start is not None:
        return _by_range(node, calculus.start)
    # It rises from 1 - factor_1 to a limit of at most 1, and tends to 1 where the product tends to 0.
    missing = node.factor.complement.growth
    sums = None if missing is None or missing.sign <= 0 else missing.partial_sums()
    if sums is None:
        raise Unclear
    if sums.trend > 0:
        return Expansion(((UNIT, ONE),), Rest(UNIT, True))
    return constant(Range(point(value(node, 1)).low, fmpq(1), True))


expansion_of.update(
    {
        tree.Constant: lambda node, _calculus: constant(point(number(node.value))),
        tree.Time: lambda _node, _calculus: Expansion(((_T, ONE),)),
        tree.Add: _of_two(Calculus.add),
        tree.Subtract: _of_two(Calculus.subtract),
        tree.Multiply: _of_two(Calculus.multiply),
        tree.Divide: _of_two(lambda calculus, a, b: calculus.multiply(a, calculus.power(b, fmpq(-1)))),
        tree.Power: _power,
        tree.Maximum: _of_two(Calculus.largest),
        tree.Minimum: _of_two(lambda calculus, a, b: -calculus.largest(-a, -b)),
        tree.Negate: lambda node, calculus: -calculus.expand(node.operand),
        tree.Function: lambda node, calculus: _FUNCTIONS[node.name](calculus, calculus.expand(node.argument)),
        tree.Join: _join,
        **dict.fromkeys((tree.Periodic, tree.Bounded, tree.Opaque), lambda node, _calculus: _by_range(node)),
        tree.WeightShare: _share,
        tree.WeightedTheta: lambda node, calculus: calculus.subtract(constant(ONE), calculus.expand(node.complement)),
        tree.BiasCorrection: _correction,
    }
)


def _order(node: Schedule) -> Growth | None:
    """Return the growth of the leading term; where its sign is open, of an upper bound."""
    known: Growth | None = None
    with Precision(), suppress(ScheduleError):
        for count in _COUNTS:
            with suppress(Unclear):
                found = Calculus(None, count).expand(node)
                if found.is_zero:
                    return ZERO
                for scale, c in found.terms[:1]:
                    if found.rest is None or found.rest.scale.compared_with(scale) <= 0:
                        known = Growth(c, scale)
                if known is not None and known.sign:
                    return known
    return known


order_of.update(dict.fromkeys(NODES, _order))


def tail_sign(schedule: Schedule, start: int) -> int | None:
    """Return the sign of u_t for every t >= start, proved by an expansion; None where it proves nothing."""
    if start >= EARLIEST:
        with Precision(), suppress(ScheduleError):
            for count in _COUNTS:
                with suppress(Unclear):
                    calculus = Calculus(start, count)
                    return calculus.sign(calculus.expand(schedule))
    return None


def tail_rise(schedule: Schedule, start: int) -> tuple[arb, arb] | None:
    """Bounds on u_t / u_s for start <= s <= t and on u_t, of a positive schedule; None where no expansion gives them.

    With u = c s (1 + d), s falling, abs(d) <= h < 1: (sup c/inf c) (1 + h)/(1 - h) and sup c s(start) (1 + h).
    """
    if start >= EARLIEST:
        with Precision(), suppress(ScheduleError):
            for count in _COUNTS:
                with suppress(Unclear):
                    calculus = Calculus(start, count)
                    scale, c, d = calculus.lead(calculus.expand(schedule))
                    largest, size = c.high * calculus.highest(scale), calculus.magnitude(d)
                    h = (size.bound * calculus.highest(size.scale)).upper()
                    if c.low > 0 and c.is_finite and h < 1:
                        return (c.high / c.low * (1 + h) / (1 - h)).upper(), (largest * (1 + h)).upper()
    return None


def direction(schedule: Schedule, start: int, stop: float) -> int | None:
    """1, 0 or -1 where u_t rises, is constant or falls on a stretch of numbers: by its range, or as a tail."""
    by_range = enclose(schedule, start, stop).direction
    if by_range is not None and is_defined(schedule, start, stop):
        return by_range
    stairs = _stairs(schedule)
    if stairs is not None:
        step, length = stairs
        last = stop if math.isinf(stop) else 1 + (stop - 1) // length
        return direction(step, 1 + (start - 1) // length, last)
    return tail_direction(schedule, start)


def _rests_but_for(moving: Schedule, node: Schedule) -> bool:
    """Return whether u_t is the same number for every t as long as one of its parts is."""
    if node == moving:
        return True
    rests = node.pointwise and not isinstance(node, tree.Time)
    return rests and all(_rests_but_for(moving, child) for child in node.children)


@remembered
def _stairs(schedule: Schedule) -> tuple[Schedule, int] | None:
    """Return v and n where u_t = v_k with k = 1 + floor((t - 1)/n): then u falls where v does, and rises likewise.

    t - periodic(t, n) is n (k - 1); it is put in for that, and nothing else may move.
    """
    for node in walk(schedule):
        match node:
            case tree.Subtract(left, tree.Periodic(right, length)):
                line, repeated = as_linear(left), as_linear(right)
                if line is None or repeated is None or line[0] != repeated[0]:
                    continue
                if _rests_but_for(node, schedule):
                    slope, offset = length * line[0], line[1] - repeated[1]
                    return substitute(schedule, {node: linear(slope, offset - slope)}), length
            case _:
                pass
    return None


def tail_direction(schedule: Schedule, start: int) -> int | None:
    """1, 0 or -1 where u_t rises, is constant or falls for t >= start; None where that is not proved.

    The derivative of log(x), x'/x, has values where x < 0: whether u_t has one is asked at its first step, as x keeps
    its sign where x'/x has an expansion.
    """
    with Precision(), suppress(ScheduleError):
        smooth = resolved(schedule, start, ahead=lambda left, right: tail_sign(left - right, start))
        every = factors(smooth, start)
        if all(enclose(base, start).positive or tail_sign(base, start) == 1 for base in every):
            # u' has the sign of u'/u, which is a sum over the factors of u > 0.
            slopes = (tree.Constant(exponent) * derivative(base) / base for base, exponent in every.items())
            found = tail_sign(sum(slopes, start=tree.operand(0)), start)
        else:
            found = tail_sign(derivative(smooth), start)
        return found if found is None or is_finite(value(schedule, start)) else None
    return None
