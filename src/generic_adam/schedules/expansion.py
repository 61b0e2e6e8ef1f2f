r"""Expansions at infinity: the leading terms of a schedule, and proofs about its tail.

After Gruntz ("On Computing Limits in a Symbolic Manipulation System", 1996) a sequence is compared by the
terms it is made of. Here they are those of the scale rho^t t^p (log t)^q (log log t)^w with exact exponents,

.. math:: u_t = \sum_{i<n} c_i\,s_i(t) + R(t), \qquad s_0 > s_1 > \dots \text{ in order of growth},

with c_i an exact fraction or a range (a range also for what swings: sin t is [-1, 1]). Sums, products,
powers, exp, log and sin of expansions are expansions: the leading term is taken out, u = c_0 s_0 (1 + d) with
d -> 0, and the power series of the function is put in for d. Where leading terms cancel, sqrt(t^2 + 1) - t,
exact coefficients cancel exactly and the next term leads; where they are not exact, nothing is concluded.

R is kept in one of two ways:

- *eventually*: only its order. This gives the growth of a schedule.
- *from a step N on*: abs(R(t)) <= b s(t) for every t >= N, with a number b, from Lagrange's remainder of the
  series. Then the sign of u_t is proved for every t >= N where the leading term outweighs all others and R at
  t = N (each of them over s_0 falls); and applied to the derivative it proves that u rises or falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import (
    BITS,
    INFINITY,
    Precision,
    Range,
    apply,
    number,
    point,
    power,
    sign_of,
    value,
)
from generic_adam.schedules.enclosure import enclose, factors, oscillation, resolved, share_times_t
from generic_adam.schedules.growth import (
    UNIT,
    UNKNOWN_CONSTANT,
    ZERO,
    GeometricBase,
    Growth,
    Scale,
    positive_power,
)
from generic_adam.schedules.normal import as_linear, function, linear
from generic_adam.schedules.tree import NODES, Schedule, Table, contains, order_of, substitute, walk

Coefficient = fmpq | Range

# How many terms are kept: few first, more where they cancel.
_COUNTS = (2, 6)
_HALF = fmpq(1, 2)
_T = Scale(power=fmpq(1))
_LOG = Scale(log=fmpq(1))
_LOGLOG = Scale(loglog=fmpq(1))
# From here on log log t > 1, so that every scale is a positive function.
EARLIEST = 16


class OffScale(Exception):  # noqa: N818  (an answer, not an error)
    """The sequence has no expansion on the scale."""


class Unclear(Exception):  # noqa: N818
    """The terms kept cancel, or nothing tells the sign of a coefficient."""


class TooEarly(Exception):  # noqa: N818
    """The series does not converge fast enough at the step from which on a proof is wanted."""


def _range(c: Coefficient) -> Range:
    return c if isinstance(c, Range) else point(c)


def _sign(c: Coefficient) -> int:
    """1, -1, or 0 where it is not known."""
    return c.sign if isinstance(c, Range) else sign_of(c) or 0


def _sum(a: Coefficient, b: Coefficient) -> Coefficient:
    return a + b if isinstance(a, fmpq) and isinstance(b, fmpq) else _range(a) + _range(b)


def _product(a: Coefficient, b: Coefficient) -> Coefficient:
    return a * b if isinstance(a, fmpq) and isinstance(b, fmpq) else _range(a) * _range(b)


def _size(c: Coefficient) -> arb:
    """An upper bound on abs(c)."""
    low, high = _range(c).ends
    return max(abs(low), abs(high))


def _to_power(c: Coefficient, exponent: fmpq) -> Coefficient:
    sign = _sign(c)
    if not sign or (sign < 0 and exponent.q != 1):
        raise Unclear
    if isinstance(c, fmpq):
        raised = power(c, exponent)
        return raised if isinstance(raised, fmpq) else point(raised)
    raised = positive_power(c if sign > 0 else -c, exponent)
    return -raised if sign < 0 and exponent.p % 2 else raised


def _of_function(name: str, c: Coefficient) -> Coefficient:
    """Exp or log of a coefficient (both increase), sin or cos."""
    if isinstance(c, fmpq):
        result = apply(name, c)
        return result if isinstance(result, fmpq) else point(result)
    if name in {"sin", "cos"}:
        return oscillation(name, c)
    return c.mapped(lambda x: apply(name, x))


@dataclass(frozen=True)
class Rest:
    """What an expansion leaves out.

    Attributes:
        scale: its order.
        little: whether it is of smaller order than the scale.
        bound: abs(R(t)) <= bound * scale(t) from the step on that a proof is wanted for.
    """

    scale: Scale
    little: bool = False
    bound: arb | None = None

    @property
    def known(self) -> arb:
        """The bound, where there has to be one."""
        return INFINITY if self.bound is None else self.bound


@dataclass(frozen=True)
class Expansion:
    """Terms of falling order, and what is left out (None: nothing)."""

    terms: tuple[tuple[Scale, Coefficient], ...]
    rest: Rest | None = None

    @property
    def is_zero(self) -> bool:
        """Whether it is the sequence 0."""
        return not self.terms and self.rest is None


def constant(c: Coefficient) -> Expansion:
    """The expansion of a number."""
    return Expansion(((UNIT, c),) if not (isinstance(c, fmpq) and c == 0) else ())


class Calculus:
    """Operations on expansions with so many terms, eventually (start None) or for every t >= start."""

    def __init__(self, start: int | None, count: int) -> None:
        self.start, self.count = start, count
        self.key = ("expansion", start, count)

    def expand(self, node: Schedule) -> Expansion:
        """The expansion of a schedule, kept with the node."""
        found = node.known_facts.get(self.key)
        if found is None:
            try:
                found = expansion_of[type(node)](node, self)
            except (OffScale, Unclear, TooEarly) as answer:
                found = type(answer)
            node.known_facts[self.key] = found
        if isinstance(found, Expansion):
            return found
        raise found

    def highest(self, scale: Scale) -> arb:
        """The supremum of a scale that does not tend to infinity over t >= start: its value there."""
        if scale.trend == 0:
            return arb(1)
        if self.start is None or self.start < EARLIEST:
            raise TooEarly
        t = arb(self.start)
        log = t.log()
        loglog = log.log()
        # t s'/s = t log rho + p + q/log t + w/(log t log log t): where that is <= 0 throughout, s falls.
        slope = arb(scale.power)
        slope += max(arb(0), (scale.log / log).upper())
        slope += max(arb(0), (scale.loglog / (log * loglog)).upper())
        rate = scale.rho.log_at(BITS)
        slope += t * rate
        if scale.rho.sign_of_log > 0 or not slope <= 0:
            raise TooEarly
        log_of_value = t * rate + scale.power * log + scale.log * loglog + scale.loglog * loglog.log()
        return log_of_value.exp().upper()

    def rests(self, parts: list[Rest]) -> Rest | None:
        """Several things left out, together."""
        if not parts:
            return None
        top = parts[0]
        for part in parts[1:]:
            order = part.scale.compared_with(top.scale)
            if order > 0 or (order == 0 and top.little):
                top = part
        if self.start is None:
            return top
        bound = arb(0)
        for part in parts:
            bound += part.known * self.highest(part.scale / top.scale)
        return Rest(top.scale, False, bound.upper())

    def collected(self, terms: list[tuple[Scale, Coefficient]], rests: list[Rest]) -> Expansion:
        """Equal scales merged, exact zeros dropped, the terms that are too many left out."""
        merged: list[tuple[Scale, Coefficient]] = []
        for scale, c in sorted(terms, key=cmp_to_key(lambda a, b: b[0].compared_with(a[0]))):
            if merged and merged[-1][0].compared_with(scale) == 0:
                merged[-1] = (merged[-1][0], _sum(merged[-1][1], c))
            else:
                merged.append((scale, c))
        merged = [(scale, c) for scale, c in merged if not (isinstance(c, fmpq) and c == 0)]
        rest = self.rests(rests)
        kept: list[tuple[Scale, Coefficient]] = []
        left: list[Rest] = [] if rest is None else [rest]
        for scale, c in merged:
            hidden = False
            if rest is not None and self.start is None:
                order = rest.scale.compared_with(scale)
                hidden = order > 0 or (order == 0 and not rest.little)
            if hidden or len(kept) == self.count:
                left.append(Rest(scale, False, None if self.start is None else _size(c)))
            else:
                kept.append((scale, c))
        return Expansion(tuple(kept), self.rests(left))

    def add(self, a: Expansion, b: Expansion) -> Expansion:
        """A + b."""
        return self.collected([*a.terms, *b.terms], [one.rest for one in (a, b) if one.rest is not None])

    def scaled(self, a: Expansion, c: Coefficient, scale: Scale = UNIT) -> Expansion:
        """C s a."""
        terms = [(one * scale, _product(c, other)) for one, other in a.terms]
        rest = a.rest
        if rest is not None:
            bound = None if rest.bound is None else (rest.bound * _size(c)).upper()
            rest = Rest(rest.scale * scale, rest.little, bound)
        return Expansion(tuple(terms), rest)

    def negative(self, a: Expansion) -> Expansion:
        """-a."""
        return self.scaled(a, fmpq(-1))

    def subtract(self, a: Expansion, b: Expansion) -> Expansion:
        """A - b."""
        return self.add(a, self.negative(b))

    def magnitude(self, a: Expansion) -> Rest:
        """The order of a, with a bound on abs(a)."""
        parts = [Rest(scale, False, None if self.start is None else _size(c)) for scale, c in a.terms]
        found = self.rests(parts + ([a.rest] if a.rest is not None else []))
        return Rest(UNIT, False, arb(0)) if found is None else found

    def multiply(self, a: Expansion, b: Expansion) -> Expansion:
        """A b."""
        if a.is_zero or b.is_zero:
            return Expansion(())
        terms = [(s * r, _product(c, d)) for s, c in a.terms for r, d in b.terms]
        rests: list[Rest] = []
        for one, other in ((a, b), (b, a)):
            if one.rest is not None:
                size = self.magnitude(other)
                bound = None
                if one.rest.bound is not None and size.bound is not None:
                    bound = (one.rest.bound * size.bound).upper()
                rests.append(Rest(one.rest.scale * size.scale, one.rest.little or size.little, bound))
        return self.collected(terms, rests)

    def series(
        self, d: Expansion, coefficients: Callable[[int], Coefficient], tail: Callable[[int, arb], arb]
    ) -> Expansion:
        """sum_k c_k d^k for d -> 0, with abs(R_n) <= tail(n, sup abs(d)) abs(d)^n."""
        if d.is_zero:
            return constant(coefficients(0))
        size = self.magnitude(d)
        if not self.fades(size):
            raise Unclear
        n = self.count
        bound = None
        if self.start is not None:
            largest = (size.known * self.highest(size.scale)).upper()
            if not largest <= _HALF:
                raise TooEarly
            bound = (tail(n, largest) * size.known**n).upper()
        result = constant(coefficients(n - 1))
        for k in range(n - 2, -1, -1):
            result = self.add(self.multiply(result, d), constant(coefficients(k)))
        cut = Rest(size.scale ** fmpq(n), size.little, bound)
        exact = all(isinstance(c := coefficients(k), fmpq) and c == 0 for k in range(n, n + 4))
        return result if exact else self.add(result, Expansion((), cut))

    def fades(self, rest: Rest) -> bool:
        """Whether something left out tends to 0, or at least has a bound."""
        return rest.scale.trend < 0 or (rest.scale.trend == 0 and (rest.little or self.start is not None))

    def lead(self, a: Expansion) -> tuple[Scale, Coefficient, Expansion]:
        """(s, c, d) with a = c s (1 + d), d -> 0."""
        if not a.terms:
            raise Unclear
        (scale, c), lower = a.terms[0], a.terms[1:]
        if not _sign(c):
            raise Unclear
        if a.rest is not None:
            order = a.rest.scale.compared_with(scale)
            if order > 0 or (order == 0 and not a.rest.little):
                raise Unclear
        inverse = _to_power(c, fmpq(-1))
        return scale, c, self.scaled(Expansion(lower, a.rest), inverse, scale ** fmpq(-1))

    def power(self, a: Expansion, exponent: fmpq) -> Expansion:
        """a^exponent."""
        if a.is_zero and exponent > 0:
            return a
        scale, c, d = self.lead(a)

        def binomial(k: int) -> fmpq:
            result = fmpq(1)
            for i in range(k):
                result = result * (exponent - i) / (i + 1)
            return result

        def tail(n: int, _largest: arb) -> arb:
            # (1 + x)^(p - n) for abs(x) <= 1/2
            factor = arb(2) ** (n - exponent) if exponent < n else arb(1.5) ** (exponent - n)
            return abs(arb(binomial(n))) * factor

        return self.scaled(self.series(d, binomial, tail), _to_power(c, exponent), scale**exponent)

    def logarithm(self, a: Expansion) -> Expansion:
        """Log a."""
        scale, c, d = self.lead(a)
        if _sign(c) < 0 or scale.loglog:
            raise OffScale
        terms: list[tuple[Scale, Coefficient]] = [(_LOG, scale.power), (_LOGLOG, scale.log)]
        if scale.rho.sign_of_log:
            rate = point(scale.rho.log_at(BITS)) if scale.rho.factors else scale.rho.exponent_of_e
            terms.append((_T, rate))
        terms.append((UNIT, _of_function("log", c)))
        small = self.series(
            d,
            lambda k: fmpq((-1) ** (k + 1), k) if k else fmpq(0),
            lambda n, largest: (1 / (1 - largest)) ** n / n,
        )
        return self.add(self.collected(terms, []), small)

    def exponential(self, a: Expansion, base: Fraction | None = None) -> Expansion:
        """base^a for a number base > 0, e by default."""
        if a.rest is not None and not self.fades(a.rest):
            raise Unclear
        scale, factor, small = UNIT, constant(fmpq(1)), list[tuple[Scale, Coefficient]]()
        log_base: Coefficient = fmpq(1) if base is None else _of_function("log", number(base))
        for one, c in a.terms:
            if one.trend < 0:
                small.append((one, _product(c, log_base)))
            elif one.trend == 0:
                factor = constant(self._constant_power(c, base))
            else:
                scale = scale * self._geometric(one, c, base)
        rest = a.rest
        if rest is not None and rest.bound is not None:
            rest = Rest(rest.scale, rest.little, (rest.bound * _size(log_base)).upper())
        grown = self.series(
            self.collected(small, [rest] if rest is not None else []),
            lambda k: fmpq(1, math.factorial(k)),
            lambda n, largest: largest.exp() / math.factorial(n),
        )
        return self.multiply(self.scaled(factor, fmpq(1), scale), grown)

    @staticmethod
    def _constant_power(c: Coefficient, base: Fraction | None) -> Coefficient:
        if base is None:
            return _of_function("exp", c)
        if isinstance(c, fmpq):
            raised = power(number(base), c)
            return raised if isinstance(raised, fmpq) else point(raised)
        return _of_function("exp", _product(c, _of_function("log", number(base))))

    @staticmethod
    def _geometric(scale: Scale, c: Coefficient, base: Fraction | None) -> Scale:
        """base^(c s) as a scale: rho^t for s = t, t^c for s = log t, (log t)^c for s = log log t."""
        if isinstance(c, Range):
            raise OffScale
        if scale == _T:
            return Scale(GeometricBase(c) if base is None else GeometricBase.from_rational(base) ** c)
        if base is None and scale == _LOG:
            return Scale(power=c)
        if base is None and scale == _LOGLOG:
            return Scale(log=c)
        raise OffScale

    def oscillation(self, name: str, a: Expansion) -> Expansion:
        """Sin a or cos a."""
        if any(scale.trend > 0 for scale, _ in a.terms) or (a.rest is not None and a.rest.scale.trend >= 0):
            return constant(Range(arb(-1), arb(1)))
        small = tuple((scale, c) for scale, c in a.terms if scale.trend < 0)
        middle: Coefficient = next((c for scale, c in a.terms if scale.trend == 0), fmpq(0))

        def part(shift: int) -> Expansion:
            # The derivatives of sin at 0 are 0, 1, 0, -1; those of cos come one later.
            return self.series(
                Expansion(small, a.rest),
                lambda k: fmpq((0, 1, 0, -1)[(k + shift) % 4], math.factorial(k)),
                lambda n, _largest: arb(1) / math.factorial(n),
            )

        sine, cosine = part(0), part(1)
        if name == "sin":
            return self.add(
                self.scaled(cosine, _of_function("sin", middle)),
                self.scaled(sine, _of_function("cos", middle)),
            )
        return self.subtract(
            self.scaled(cosine, _of_function("cos", middle)), self.scaled(sine, _of_function("sin", middle))
        )

    def sign(self, a: Expansion) -> int:
        """The sign of a eventually, or for every t >= start; 0 for the sequence 0."""
        if a.is_zero:
            return 0
        _, c, d = self.lead(a)
        if self.start is not None and not d.is_zero:
            size = self.magnitude(d)
            if not size.known * self.highest(size.scale) < 1:
                raise TooEarly
        return _sign(c)

    def largest(self, a: Expansion, b: Expansion) -> Expansion:
        """max(a, b): the one that is ahead, or what holds both where they cross for ever."""
        try:
            return a if self.sign(self.subtract(a, b)) >= 0 else b
        except Unclear:
            pass
        sizes = [self.magnitude(one).scale for one in (a, b) if not one.is_zero]
        top = sizes[0] if len(sizes) == 1 or sizes[0].compared_with(sizes[1]) >= 0 else sizes[1]
        leading: list[Range] = []
        others: list[Rest] = []
        for one in (a, b):
            at_top = [c for scale, c in one.terms if scale.compared_with(top) == 0]
            leading.append(_range(at_top[0]) if at_top else point(fmpq(0)))
            lower = Expansion(tuple(term for term in one.terms if term[0].compared_with(top)), one.rest)
            if not lower.is_zero:
                others.append(self.magnitude(lower))
        low = max(one.low for one in leading)
        return self.collected([(top, Range(low, max(one.high for one in leading)))], others)

    def absolute(self, a: Expansion) -> Expansion:
        """abs(a)."""
        try:
            return a if self.sign(a) >= 0 else self.negative(a)
        except Unclear:
            if not a.terms:
                raise
        (top, c), rest = a.terms[0], Expansion(a.terms[1:], a.rest)
        return self.collected(
            [(top, Range(arb(0), _size(c)))], [] if rest.is_zero else [self.magnitude(rest)]
        )


expansion_of: Table[Callable[[Any, Calculus], Expansion]] = Table("expansions at infinity")
"""Node, calculus -> its expansion; raises OffScale, Unclear or TooEarly where there is none."""


@expansion_of.rule(tree.Constant)
def _(node: tree.Constant, _: Calculus) -> Expansion:
    return constant(number(node.value))


@expansion_of.rule(tree.Time)
def _(_node: tree.Time, _: Calculus) -> Expansion:
    return Expansion(((_T, fmpq(1)),))


_OF_TWO: dict[type[Schedule], Callable[[Calculus, Expansion, Expansion], Expansion]] = {
    tree.Add: Calculus.add,
    tree.Subtract: Calculus.subtract,
    tree.Multiply: Calculus.multiply,
    tree.Divide: lambda calculus, a, b: calculus.multiply(a, calculus.power(b, fmpq(-1))),
    tree.Maximum: Calculus.largest,
    tree.Minimum: lambda calculus, a, b: calculus.negative(
        calculus.largest(calculus.negative(a), calculus.negative(b))
    ),
}


@expansion_of.rule(*_OF_TWO)
def _(node: tree.Binary, calculus: Calculus) -> Expansion:
    return _OF_TWO[type(node)](calculus, calculus.expand(node.left), calculus.expand(node.right))


@expansion_of.rule(tree.Negate)
def _(node: tree.Negate, calculus: Calculus) -> Expansion:
    return calculus.negative(calculus.expand(node.operand))


@expansion_of.rule(tree.Power)
def _(node: tree.Power, calculus: Calculus) -> Expansion:
    base, exponent = node.left, node.right
    if isinstance(exponent, tree.Constant):
        return calculus.power(calculus.expand(base), number(exponent.value))
    if isinstance(base, tree.Constant) and base.value > 0:
        return calculus.exponential(calculus.expand(exponent), base.value)
    product = calculus.multiply(calculus.expand(exponent), calculus.logarithm(calculus.expand(base)))
    return calculus.exponential(product)


@expansion_of.rule(tree.Function)
def _(node: tree.Function, calculus: Calculus) -> Expansion:
    inner = calculus.expand(node.argument)
    one = constant(fmpq(1))
    match node.name:
        case "sqrt":
            return calculus.power(inner, _HALF)
        case "log":
            return calculus.logarithm(inner)
        case "log1p":
            return calculus.logarithm(calculus.add(inner, one))
        case "exp":
            return calculus.exponential(inner)
        case "expm1":
            return calculus.subtract(calculus.exponential(inner), one)
        case "abs":
            return calculus.absolute(inner)
        case _:
            return calculus.oscillation(node.name, inner)


@expansion_of.rule(tree.Join)
def _(node: tree.Join, calculus: Calculus) -> Expansion:
    if calculus.start is not None and calculus.start < node.threshold:
        raise TooEarly
    return calculus.expand(node.after)


@expansion_of.rule(tree.Periodic, tree.Bounded)
def _(node: Schedule, _: Calculus) -> Expansion:
    bounds = enclose(node, 1).range
    if not bounds.is_finite:
        raise OffScale
    return constant(bounds)


@expansion_of.rule(tree.Opaque)
def _(_node: tree.Opaque, _: Calculus) -> Expansion:
    raise OffScale


@expansion_of.rule(tree.WeightShare)
def _(node: tree.WeightShare, calculus: Calculus) -> Expansion:
    if calculus.start is not None:
        scaled = share_times_t(node, calculus.start)
        if scaled is not None:
            return Expansion(((Scale(power=fmpq(-1)), scaled),))
        return _by_range(node, calculus.start)
    weights = node.weights.growth
    sums = None if weights is None or weights.sign <= 0 else weights.partial_sums()
    if weights is None or sums is None:
        raise OffScale
    if weights.rho.sign_of_log > 0:
        # w_t/W_t tends to 1 - 1/rho, up to the swing of the coefficient.
        limit = point(-(-weights.rho.log_at(BITS)).expm1())
        swing = weights.coefficient
        share = limit if swing.low == swing.high else (swing / swing * limit).meet(Range(arb(0), arb(1)))
        return Expansion(((UNIT, share),), Rest(UNIT, True))
    # W_0 counts beside a convergent sum; only its being a positive constant is used.
    inverse = (UNKNOWN_CONSTANT if sums.trend == 0 else sums).inverse()
    if inverse is None:
        raise OffScale
    share = weights * inverse
    return Expansion(((share.scale, share.coefficient),), Rest(share.scale, True))


def _by_range(node: Schedule, start: int) -> Expansion:
    facts = enclose(node, start)
    if not facts.range.is_finite:
        raise OffScale
    return constant(facts.range)


@expansion_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta, calculus: Calculus) -> Expansion:
    return calculus.subtract(constant(fmpq(1)), calculus.expand(node.complement))


@expansion_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection, calculus: Calculus) -> Expansion:
    if isinstance(node.factor, tree.Constant):
        rho = GeometricBase.from_rational(node.factor.value)
        return calculus.collected([(UNIT, fmpq(1)), (Scale(rho), fmpq(-1))], [])
    if calculus.start is not None:
        return _by_range(node, calculus.start)
    # It rises from 1 - factor_1 to a limit of at most 1, and tends to 1 where the product tends to 0.
    missing = node.factor.complement.growth
    sums = None if missing is None or missing.sign <= 0 else missing.partial_sums()
    if sums is None:
        raise OffScale
    if sums.trend > 0:
        return Expansion(((UNIT, fmpq(1)),), Rest(UNIT, True))
    return constant(Range(point(value(node, 1)).low, arb(1), True))


@order_of.rule(*NODES)
def _(node: Schedule) -> Growth | None:
    """The growth of the leading term; where its sign is open, of an upper bound."""
    known: Growth | None = None
    with Precision():
        for count in _COUNTS:
            try:
                found = Calculus(None, count).expand(node)
            except (Unclear, TooEarly):
                continue
            except (OffScale, ScheduleError):
                return None
            if found.is_zero:
                return ZERO
            if found.terms:
                scale, c = found.terms[0]
                if found.rest is not None and found.rest.scale.compared_with(scale) > 0:
                    continue
                known = Growth(_range(c), scale)
                if known.sign:
                    return known
    return known


def tail_sign(schedule: Schedule, start: int) -> int | None:
    """The sign of u_t for every t >= start, proved by an expansion; None where it proves nothing."""
    with Precision():
        for moved, first in _views(schedule, start):
            for count in _COUNTS:
                calculus = Calculus(first, count)
                try:
                    return calculus.sign(calculus.expand(moved))
                except (Unclear, TooEarly):
                    continue
                except (OffScale, ScheduleError):
                    break
    return None


def _views(schedule: Schedule, start: int) -> Iterator[tuple[Schedule, int]]:
    """The schedule from a step on, in t, and in t + b where its terms are made of t + b with a large b.

    The expansion of sqrt((t + 1e9)^2 + 1) - (t + 1e9) in powers of 1/t converges from t = 1e9 on only.
    """
    if start >= EARLIEST:
        yield schedule, start
    if contains(schedule, tree.Join, tree.Periodic, tree.OfWeights, tree.BiasCorrection, tree.Opaque):
        return
    lines = [line for node in walk(schedule) if (line := as_linear(node)) is not None and line[0] > 0]
    shift = max((math.floor(offset / slope) for slope, offset in lines), default=0)
    if shift > 0 and start + shift >= EARLIEST:
        yield substitute(schedule, {tree.Time(): linear(Fraction(1), Fraction(-shift))}), start + shift


def tail_direction(schedule: Schedule, start: int) -> int | None:
    """1, 0 or -1 where u_t rises, is constant or falls for t >= start; None where that is not proved."""
    with Precision():
        try:
            smooth = resolved(schedule, start, ahead=lambda left, right: tail_sign(left - right, start))
            parts = {base: exponent for base, exponent in factors(smooth).items() if not base.is_constant}
            if len(parts) < 2 or not all(enclose(base, start).positive for base in parts):
                return tail_sign(derivative(smooth), start)
            known = _direction_of_corrections(parts, start)
            if known is not None:
                return known
            # u' has the sign of u'/u, which is a sum over the factors of u > 0.
            total: Schedule = tree.Constant(Fraction(0))
            for base, exponent in parts.items():
                total = total + tree.Constant(exponent) * derivative(base) / base
            return tail_sign(total, start)
        except (OffScale, ScheduleError):
            return None


def _direction_of_corrections(parts: dict[Schedule, Fraction], start: int) -> int | None:
    r"""The direction of (1 - a^t)^p (1 - b^t)^q, a > b, with p and q of different sign (Adam's correction).

    With h(c) = -log(c) / (c^{-t} - 1), u'/u = p h(a) + q h(b) has the sign of p h(a)/h(b) + q, and h(a)/h(b)
    increases with t: once u' has the sign of p, it has it for ever.
    """
    if len(parts) != 2 or not all(
        isinstance(base, tree.BiasCorrection) and base.factor.is_constant for base in parts
    ):
        return None
    slopes = [(value(base.factor, 1), exponent) for base, exponent in parts.items()]  # type: ignore[attr-defined]
    if not all(isinstance(factor, fmpq) and factor > 0 for factor, _ in slopes):
        return None
    (_, q), (_, p) = sorted(slopes)
    total = arb(0)
    for factor, exponent in slopes:
        total -= number(exponent) * arb(factor).log() / (arb(factor) ** -start - 1)
    found = sign_of(total)
    return found if found and p * q < 0 and found == sign_of(number(p)) else None


def derivative(node: Schedule) -> Schedule:  # noqa: C901, PLR0912  (one rule a node)
    """u'(t) of a schedule without joins, kinks, running sums and callables; raises OffScale for those."""
    match node:
        case tree.Constant():
            return tree.Constant(Fraction(0))
        case tree.Time():
            return tree.Constant(Fraction(1))
        case tree.Add(left, right):
            return derivative(left) + derivative(right)
        case tree.Subtract(left, right):
            return derivative(left) - derivative(right)
        case tree.Multiply(left, right):
            return derivative(left) * right + left * derivative(right)
        case tree.Divide(left, right):
            return (derivative(left) * right - left * derivative(right)) / right**2
        case tree.Negate(operand):
            return -derivative(operand)
        case tree.Power(base, tree.Constant(exponent)):
            return tree.Constant(exponent) * base ** tree.Constant(exponent - 1) * derivative(base)
        case tree.Power(base, exponent):
            log = function("log", base)
            inside = derivative(exponent) * log
            if not base.is_constant:
                inside = inside + exponent * derivative(base) / base
            return node * inside
        case tree.Function(name, argument):
            return _outer(name, argument) * derivative(argument)
        case tree.BiasCorrection(factor) if factor.is_constant:
            return -(factor ** tree.Time()) * function("log", factor)
        case _:
            raise OffScale


def _outer(name: str, x: Schedule) -> Schedule:
    match name:
        case "sqrt":
            return 1 / (2 * function("sqrt", x))
        case "log":
            return 1 / x
        case "log1p":
            return 1 / (1 + x)
        case "exp" | "expm1":
            return function("exp", x)
        case "sin":
            return function("cos", x)
        case "cos":
            return -function("sin", x)
        case _:
            raise OffScale
