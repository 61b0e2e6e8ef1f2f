"""How a sequence grows: exact exponents on the scale c rho^t t^p (log t)^q (log log t)^w."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from generic_adam.schedules.balls import (
    BITS,
    POSITIVE,
    Precision,
    Range,
    above,
    as_fraction,
    below,
    nearest,
    number,
    point,
    sign_of,
)
from generic_adam.schedules.tree import cached_attribute

NOTHING = fmpq(0)


@lru_cache(maxsize=4096)
def _log_of_integer(integer: int, bits: int) -> arb:
    with Precision(bits):
        return arb(integer).log()


@dataclass(frozen=True)
class GeometricBase:
    r"""rho = e^k * n_1^{e_1} * n_2^{e_2} * ..., with pairwise coprime integers n_i > 1 and rational k, e_i.

    In this form "is rho = 1?" is exact: coprime integers are multiplicatively independent, and e^k is
    algebraic only for k = 0 (Lindemann). Floats could not tell 0.99^t / 0.99^t from slow decay.
    """

    exponent_of_e: fmpq = NOTHING
    factors: tuple[tuple[int, fmpq], ...] = ()

    @classmethod
    def from_rational(cls, value: Fraction) -> GeometricBase:
        """Return the base equal to a positive rational number."""
        return cls(NOTHING, _coprime({value.numerator: fmpq(1), value.denominator: fmpq(-1)}))

    def __mul__(self, other: GeometricBase) -> GeometricBase:
        if other is ONE:
            return self
        if self is ONE:
            return other
        exponents = dict(self.factors)
        for integer, exponent in other.factors:
            exponents[integer] = exponents.get(integer, NOTHING) + exponent
        # The integers of one base are coprime; only new ones have to be made so.
        known = exponents.keys() == dict(self.factors).keys()
        factors = tuple(item for item in exponents.items() if item[1]) if known else _coprime(exponents)
        return GeometricBase(self.exponent_of_e + other.exponent_of_e, factors)

    def __pow__(self, exponent: Fraction | fmpq) -> GeometricBase:
        if exponent == 0 or self is ONE:
            return ONE
        exact = number(exponent)
        return GeometricBase(self.exponent_of_e * exact, tuple((n, e * exact) for n, e in self.factors))

    def compared_with(self, other: GeometricBase) -> int:
        """-1, 0 or 1 as rho is below, equal to or above the other; exact."""
        if self is other or self == other:
            return 0
        difference = self.log_at(BITS) - other.log_at(BITS)
        return sign_of(difference) or (self * other ** fmpq(-1)).sign_of_log

    @cached_attribute
    def sign_of_log(self) -> int:
        """-1, 0 or 1 as rho < 1, rho = 1 or rho > 1; exact."""
        if not self.factors:
            return (self.exponent_of_e > 0) - (self.exponent_of_e < 0)
        return sign_of(self.log_at(BITS)) or (1 if self.sharp_log > 0 else -1)

    @cached_attribute
    def sharp_log(self) -> arb:
        """log rho, not zero, with at least 64 good bits however close to 1 rho is."""
        bits = BITS
        while self.log_at(bits).rel_accuracy_bits() < 64:
            bits *= 2
        return self.log_at(bits)

    def log_at(self, bits: int) -> arb:
        """log rho, computed with so many bits."""
        known: dict[int, arb] = self.__dict__.setdefault("logs", {})
        if bits not in known:
            with Precision(bits):
                total = arb(self.exponent_of_e)
                for integer, exponent in self.factors:
                    total += exponent * _log_of_integer(integer, bits)
            known[bits] = total
        return known[bits]

    @cached_attribute
    def log(self) -> float:
        """log rho as a float, accurate to an ulp however close to 1 rho is."""
        return nearest(self.sharp_log if self.factors else self.exponent_of_e)


def _coprime(exponents: dict[int, fmpq]) -> tuple[tuple[int, fmpq], ...]:
    """Rewrite a product of integer powers over pairwise coprime integers (factor refinement)."""
    pending = [(n, e) for n, e in exponents.items() if n != 1 and e != 0]
    refined: dict[int, fmpq] = {}
    while pending:
        integer, exponent = pending.pop()
        if integer == 1:
            continue
        for other in refined:
            common = math.gcd(integer, other)
            if common > 1:
                held = refined.pop(other)
                pending += [(common, exponent + held), (integer // common, exponent), (other // common, held)]
                break
        else:
            refined[integer] = exponent
    return tuple(sorted((n, e) for n, e in refined.items() if e != 0))


ONE = GeometricBase()


@dataclass(frozen=True)
class Scale:
    r"""The function rho^t t^power (log t)^log (log log t)^loglog, with exact exponents."""

    rho: GeometricBase = ONE
    power: fmpq = NOTHING
    log: fmpq = NOTHING
    loglog: fmpq = NOTHING

    @cached_attribute
    def trend(self) -> int:
        """-1, 0, 1: it tends to 0, is constant, or tends to infinity."""
        for part in (self.rho.sign_of_log, self.power, self.log, self.loglog):
            if part != 0:
                return 1 if part > 0 else -1
        return 0

    def __mul__(self, other: Scale) -> Scale:
        if other is UNIT:
            return self
        if self is UNIT:
            return other
        return Scale(self.rho * other.rho, self.power + other.power, self.log + other.log, self.loglog + other.loglog)

    def __pow__(self, exponent: Fraction | fmpq) -> Scale:
        if self is UNIT:
            return self
        exact = number(exponent)
        return Scale(self.rho**exact, self.power * exact, self.log * exact, self.loglog * exact)

    def __truediv__(self, other: Scale) -> Scale:
        return self if other is UNIT else self * other ** fmpq(-1)

    def compared_with(self, other: Scale) -> int:
        """-1, 0 or 1 as it is of smaller, the same or larger order than the other."""
        if self is other:
            return 0
        order = self.rho.compared_with(other.rho)
        if order:
            return order
        for mine, theirs in ((self.power, other.power), (self.log, other.log), (self.loglog, other.loglog)):
            if mine != theirs:
                return 1 if mine > theirs else -1
        return 0

    def text(self, variable: str) -> str:
        """Return the scale in words people read, such as "T^(-1/2) log T"."""
        parts: list[str] = []
        if self.rho.sign_of_log:
            rate = self.rho.log
            shows = 1e-6 <= abs(rate) < 700  # in six digits
            parts.append(f"{math.exp(rate):.6g}^{variable}" if shows else f"e^({rate:.6g} {variable})")
        for name, exponent in (
            (variable, self.power),
            (f"log {variable}", self.log),
            (f"log log {variable}", self.loglog),
        ):
            if exponent == 1:
                parts.append(name)
            elif exponent != 0:
                base = f"({name})" if " " in name else name
                shown = str(exponent) if exponent > 0 and exponent.q == 1 else f"({exponent})"
                parts.append(f"{base}^{shown}")
        return " ".join(parts) or "1"


UNIT = Scale()


@dataclass(frozen=True)
class Growth:
    r"""u_t = c_t rho^t t^p (log t)^q (log log t)^w, with every limit point of c_t in a range.

    When the range has one sign, u_t is of exactly this order (a factor between two constants of one sign
    is allowed, as in 1 + 0.5 sin t). When it straddles zero, only the upper bound on abs(u_t) is meant; such
    a growth is never handed out by `Schedule.growth`. The range {0} stands for the sequence that is 0.

    Attributes:
        coefficient: the range of c; its ends have unbounded exponents.
        scale: the rest.
    """

    coefficient: Range
    scale: Scale = UNIT

    @classmethod
    def of(
        cls, coefficient: int, power: Fraction, log: Fraction = Fraction(0), loglog: Fraction = Fraction(0)
    ) -> Growth:
        """c t^p (log t)^q (log log t)^w."""
        return cls(point(fmpq(coefficient)), Scale(ONE, number(power), number(log), number(loglog)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Balls do not travel: the ends go as the floats around them, the sign apart.
        return _growth_from_floats, (self.low, self.high, bool(self.sign), self.scale)

    @property
    def low(self) -> float:
        """A float not above any limit point of the coefficient."""
        return below(self.coefficient.low)

    @property
    def high(self) -> float:
        """A float not below any limit point of the coefficient."""
        return above(self.coefficient.high)

    @property
    def rho(self) -> GeometricBase:
        """The base of the geometric factor, exact."""
        return self.scale.rho

    @property
    def power(self) -> Fraction:
        """The exponent p of t."""
        return as_fraction(self.scale.power)

    @property
    def log(self) -> Fraction:
        """The exponent q of log t."""
        return as_fraction(self.scale.log)

    @property
    def loglog(self) -> Fraction:
        """The exponent w of log log t."""
        return as_fraction(self.scale.loglog)

    @property
    def is_zero(self) -> bool:
        """Return whether the sequence is 0 from some t on."""
        return self.coefficient.is_zero

    @property
    def sign(self) -> int:
        """1 or -1 where the sequence has that sign from some t on, else 0."""
        return self.coefficient.sign

    @property
    def trend(self) -> int:
        """-1, 0, 1: the scale tends to 0, is constant, or tends to infinity."""
        return self.scale.trend

    @property
    def limit(self) -> float | None:
        """The limit as a float where the sequence has one that is known to 20 bits, else None."""
        if self.trend < 0 or self.is_zero:
            return 0.0
        low, high = self.coefficient.low, self.coefficient.high
        known = self.trend == 0 and self.sign and self.coefficient.is_finite
        return nearest((low + high) / 2) if known and abs(high - low) * 2**20 <= abs(low) else None

    def compared_with(self, other: Growth) -> int:
        """-1, 0 or 1 as the order of this sequence is below, equal to or above the order of the other."""
        if self.is_zero or other.is_zero:
            return other.is_zero - self.is_zero
        return self.scale.compared_with(other.scale)

    def __neg__(self) -> Growth:
        return Growth(-self.coefficient, self.scale)

    def __mul__(self, other: Growth) -> Growth:
        if self.is_zero or other.is_zero:
            return ZERO
        with Precision():
            return Growth(self.coefficient * other.coefficient, self.scale * other.scale)

    def inverse(self) -> Growth | None:
        """1/u, or None where u may vanish or change sign."""
        return None if self.sign == 0 else self._raised(Fraction(-1))

    def raised_to(self, exponent: Fraction) -> Growth | None:
        """u^exponent, or None where u is not positive."""
        if exponent == 0:
            return CONSTANT
        if self.is_zero and exponent > 0:
            return ZERO
        return self._raised(exponent) if self.sign > 0 else None

    def _raised(self, exponent: Fraction) -> Growth:
        with Precision():
            return Growth(self.coefficient ** number(exponent), self.scale**exponent)

    def partial_sums(self) -> Growth | None:
        """Return the growth of sum_{t<=T} u_t for u > 0; None where it is off the scale."""
        if self.sign <= 0:
            return None
        direction = self.rho.sign_of_log
        if direction < 0:
            return UNKNOWN_CONSTANT
        with Precision():
            if direction > 0:
                # A geometric sum: between the last term and u_T / (1 - 1/rho).
                whole = self.coefficient / point(-(-self.rho.log_at(BITS)).expm1())
                return replace(self, coefficient=self.coefficient.hull(whole))
            # The integral raises the first exponent that is not -1, and the ones before it become 0.
            exponents = [self.scale.power, self.scale.log, self.scale.loglog]
            for index, exponent in enumerate(exponents):
                exponents[index] = exponent + 1
                if exponent > -1:
                    return Growth(self.coefficient / point(exponent + 1), Scale(ONE, *exponents))
                if exponent < -1:
                    return UNKNOWN_CONSTANT
        return None

    @property
    def sum_diverges(self) -> bool:
        """Return whether a sum of terms of this order and one sign is infinite; 1/(t log t log log t) included."""
        if self.is_zero:
            return False
        for part, border in ((self.rho.sign_of_log, 0), (self.power, -1), (self.log, -1)):
            if part != border:
                return part > border
        return self.loglog >= -1

    def largest(self, other: Growth) -> Growth:
        """Return the growth of max(u, v) for u, v > 0."""
        order = self.compared_with(other)
        if order == 0:
            return Growth(self.coefficient.largest(other.coefficient), self.scale)
        return self if order > 0 else other

    def __str__(self) -> str:
        return "0" if self.is_zero else self.scale.text("t")


def _growth_from_floats(low: float, high: float, nonzero: bool, scale: Scale) -> Growth:
    return Growth(Range(arb(low), arb(high), nonzero), scale)


ZERO = Growth(Range(NOTHING, NOTHING))
CONSTANT = Growth.of(1, Fraction(0))
UNKNOWN_CONSTANT = Growth(POSITIVE)
"""The growth of a sequence between two positive constants that are not known."""
LINEAR = Growth.of(1, Fraction(1))
