"""The exact base rho of a geometric factor rho^t."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from generic_adam.schedules.cached import cached_attribute


@dataclass(frozen=True)
class GeometricBase:
    r"""rho = e^k * n_1^{e_1} * n_2^{e_2} * ..., with pairwise coprime integers n_i > 1 and rational k, e_i.

    In this form "is rho = 1?" is exact: coprime integers are multiplicatively independent, and e^k is
    algebraic only for k = 0 (Lindemann). Floats could not tell 0.99^t / 0.99^t from slow decay.
    """

    exponent_of_e: Fraction = Fraction(0)
    factors: tuple[tuple[int, Fraction], ...] = ()

    @classmethod
    def from_rational(cls, value: Fraction) -> GeometricBase:
        """The base equal to a positive rational number."""
        return cls(Fraction(0), _coprime({value.numerator: Fraction(1), value.denominator: Fraction(-1)}))

    @classmethod
    def from_exponential(cls, exponent: Fraction) -> GeometricBase:
        """The base e^exponent."""
        return cls(exponent, ())

    def __mul__(self, other: GeometricBase) -> GeometricBase:
        exponents = dict(self.factors)
        pending = list(other.factors)
        if not pending:
            return GeometricBase(self.exponent_of_e + other.exponent_of_e, self.factors)
        for integer, exponent in pending:
            exponents[integer] = exponents.get(integer, Fraction(0)) + exponent
        return GeometricBase(self.exponent_of_e + other.exponent_of_e, _coprime(exponents))

    def __pow__(self, exponent: Fraction) -> GeometricBase:
        if exponent == 0:
            return ONE
        return GeometricBase(self.exponent_of_e * exponent, tuple((n, e * exponent) for n, e in self.factors))

    @cached_attribute
    def sign_of_log(self) -> int:
        """-1, 0 or 1 as rho < 1, rho = 1 or rho > 1; exact."""
        if not self.factors:
            return (self.exponent_of_e > 0) - (self.exponent_of_e < 0)
        if self.exponent_of_e == 0 and len(self.factors) == 1:
            return 1 if self.factors[0][1] > 0 else -1
        return 1 if self._decimal_log > 0 else -1

    @cached_attribute
    def _decimal_log(self) -> Decimal:
        """Log rho to more digits than a float has; it must not be zero."""
        # As many digits as that takes: close to 1 most of them cancel.
        digits = 40
        while True:
            with localcontext() as context:
                context.prec = digits
                total = _decimal(self.exponent_of_e)
                size = abs(total)
                for integer, exponent in self.factors:
                    term = _decimal(exponent) * Decimal(integer).ln()
                    total += term
                    size += abs(term)
                if abs(total) > size * Decimal(10) ** (22 - digits):
                    return total
            digits *= 2

    @cached_attribute
    def log(self) -> float:
        """Log rho as a float, accurate to a few ulp however close to 1 rho is."""
        terms = [float(self.exponent_of_e), *(float(e) * math.log(n) for n, e in self.factors)]
        total = math.fsum(terms)
        # 0.999999999 is a quotient of two integers, whose logarithms cancel.
        cancelled = abs(total) < 0.1 * max(map(abs, terms))
        return float(self._decimal_log) if cancelled and self.factors else total


def log_of(value: Fraction) -> float:
    """Log of a positive number, accurate to a few ulp: log of the nearest float is not, close to 1."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator) if not float(value) else math.log(value)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _coprime(exponents: dict[int, Fraction]) -> tuple[tuple[int, Fraction], ...]:
    """Rewrite a product of integer powers over pairwise coprime integers (factor refinement)."""
    pending = [(n, e) for n, e in exponents.items() if n != 1 and e != 0]
    refined: dict[int, Fraction] = {}
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
