"""How a sequence grows: exact exponents on the scale c rho^t t^p (log t)^q (log log t)^w."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction

from generic_adam.schedules.cached import cached_attribute

_TINY = math.ulp(0.0)
_ROUNDING = math.ulp(1.0)


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


@dataclass(frozen=True)
class Growth:
    r"""u_t = c_t rho^t t^p (log t)^q (log log t)^w, with every limit point of c_t in [low, high].

    When low and high have one sign, u_t is of exactly this order (a factor between two constants of one sign
    is allowed, as in 1 + 0.5 sin t). When they straddle zero, only the upper bound on abs(u_t) is meant; such
    a growth is used inside sums and never handed out by `Schedule.growth`. low = high = 0 stands for the
    sequence that is 0.

    Attributes:
        low: lower end of the enclosure of the coefficient c.
        high: upper end of it.
        rho: base of the geometric factor, exact.
        power: p.
        log: q.
        loglog: w.
    """

    low: float
    high: float
    rho: GeometricBase = ONE
    power: Fraction = Fraction(0)
    log: Fraction = Fraction(0)
    loglog: Fraction = Fraction(0)

    @property
    def is_zero(self) -> bool:
        """Whether the sequence is 0 from some t on."""
        return self.low == 0 == self.high

    @property
    def sign(self) -> int:
        """1 or -1 where the sequence has that sign from some t on, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    @property
    def trend(self) -> int:
        """-1, 0, 1: the scale function tends to 0, is constant, or tends to infinity."""
        for part in (self.rho.sign_of_log, self.power, self.log, self.loglog):
            if part != 0:
                return 1 if part > 0 else -1
        return 0

    def compared_with(self, other: Growth) -> int:
        """-1, 0 or 1 as the order of this sequence is below, equal to or above the order of the other."""
        if self.is_zero or other.is_zero:
            return other.is_zero - self.is_zero
        quotient = replace(self, low=1.0, high=1.0)._scaled(other, -1)
        return quotient.trend

    def __neg__(self) -> Growth:
        return replace(self, low=-self.high, high=-self.low)

    def __add__(self, other: Growth) -> Growth:
        order = self.compared_with(other)
        if order > 0:
            return self
        if order < 0:
            return other
        return replace(self, low=_down(self.low + other.low), high=_up(self.high + other.high))

    def __mul__(self, other: Growth) -> Growth:
        if self.is_zero or other.is_zero:
            return ZERO
        corners = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        scaled = self._scaled(other, 1)
        return replace(scaled, low=_down(min(corners)), high=_up(max(corners)))._keeping_sign(
            self.sign * other.sign
        )

    def inverse(self) -> Growth | None:
        """1/u, or None where u may vanish or change sign."""
        if self.sign == 0:
            return None
        ends = sorted((_reciprocal(self.low), _reciprocal(self.high)))
        unit = Growth(1.0, 1.0)._scaled(self, -1)
        return replace(unit, low=_down(ends[0]), high=_up(ends[1]))._keeping_sign(self.sign)

    def raised_to(self, exponent: Fraction) -> Growth | None:
        """u^exponent, or None where u is not positive."""
        if exponent == 0:
            return Growth(1.0, 1.0)
        if self.is_zero and exponent > 0:
            return ZERO
        if self.sign <= 0:
            return None
        ends = sorted((_power(self.low, float(exponent)), _power(self.high, float(exponent))))
        # A float loses digits of an exponent such as 0.1: that is as much of a factor as the base is large.
        slack = 4 * _ROUNDING * (1 + abs(float(exponent)) * _largest_log(self.low, self.high))
        raised = Growth(
            _down(ends[0] * (1 - slack)),
            _up(ends[1] * (1 + slack)),
            self.rho**exponent,
            self.power * exponent,
            self.log * exponent,
            self.loglog * exponent,
        )
        return raised._keeping_sign(1)

    def logarithm(self) -> Growth | None:
        """Log u, or None where it leaves the scale or its leading coefficient is unknown."""
        if self.sign <= 0:
            return None
        if self.rho.sign_of_log:
            return _exactly(self.rho.log, power=Fraction(1))
        if self.power:
            return _exactly(float(self.power), log=Fraction(1))
        if self.log:
            return _exactly(float(self.log), loglog=Fraction(1))
        if self.loglog or not math.isfinite(self.high) or self.low <= _TINY:
            return None
        return Growth(_down(_down(math.log(self.low))), _up(_up(math.log(self.high))))

    def partial_sums(self) -> Growth | None:
        """The growth of sum_{t<=T} u_t for u > 0 (theory: the rules of the scale), or None off the scale."""
        if self.sign <= 0:
            return None
        direction = self.rho.sign_of_log
        if direction > 0:
            return replace(self, high=_up(self.high / -math.expm1(-self.rho.log) * (1 + 16 * _ROUNDING)))
        if direction < 0 or self.power < -1:
            return UNKNOWN_CONSTANT
        if self.power > -1:
            return self._divided_by(float(self.power + 1), power=self.power + 1)
        if self.log > -1:
            return self._divided_by(float(self.log + 1), power=Fraction(0), log=self.log + 1)
        if self.log < -1:
            return UNKNOWN_CONSTANT
        if self.loglog > -1:
            return self._divided_by(
                float(self.loglog + 1), power=Fraction(0), log=Fraction(0), loglog=self.loglog + 1
            )
        return UNKNOWN_CONSTANT if self.loglog < -1 else None

    def largest(self, other: Growth) -> Growth:
        """The growth of max(u, v)."""
        order = self.compared_with(other)
        if order == 0:
            return replace(self, low=max(self.low, other.low), high=max(self.high, other.high))
        bigger, smaller = (self, other) if order > 0 else (other, self)
        if bigger.sign > 0:
            return bigger
        if bigger.sign < 0:
            return smaller
        return replace(bigger, low=min(0.0, bigger.low))

    def __str__(self) -> str:
        return scale_text(self, "t") if not self.is_zero else "0"

    def _scaled(self, other: Growth, sign: int) -> Growth:
        rho = self.rho * (other.rho if sign > 0 else other.rho ** Fraction(-1))
        return replace(
            self,
            rho=rho,
            power=self.power + sign * other.power,
            log=self.log + sign * other.log,
            loglog=self.loglog + sign * other.loglog,
        )

    def _divided_by(self, divisor: float, **exponents: Fraction) -> Growth:
        moved = replace(self, low=_down(self.low / divisor), high=_up(self.high / divisor), **exponents)
        return moved._keeping_sign(1)

    def _keeping_sign(self, sign: int) -> Growth:
        """Undo a rounding to zero: the end of a one-signed enclosure never touches zero."""
        if sign > 0 and self.low <= 0:
            return replace(self, low=_TINY)
        if sign < 0 and self.high >= 0:
            return replace(self, high=-_TINY)
        return self


def scale_text(growth: Growth, variable: str) -> str:
    """The scale function in words people read, such as "T^(-1/2) log T"; constants are left out."""
    parts: list[str] = []
    if growth.rho.sign_of_log:
        parts.append(f"{math.exp(growth.rho.log):.6g}^{variable}")
    for name, exponent in (
        (variable, growth.power),
        (f"log {variable}", growth.log),
        (f"log log {variable}", growth.loglog),
    ):
        if exponent == 1:
            parts.append(name)
        elif exponent != 0:
            base = f"({name})" if " " in name else name
            shown = str(exponent) if exponent > 0 and exponent.denominator == 1 else f"({exponent})"
            parts.append(f"{base}^{shown}")
    return " ".join(parts) or "1"


def _exactly(
    coefficient: float,
    power: Fraction = Fraction(0),
    log: Fraction = Fraction(0),
    loglog: Fraction = Fraction(0),
) -> Growth:
    slack = 16 * math.ulp(coefficient)
    return Growth(coefficient - slack, coefficient + slack, ONE, power, log, loglog)


def _largest_log(*ends: float) -> float:
    return max(abs(math.log(end)) if 0 < end < math.inf else 0.0 for end in ends)


def _down(value: float) -> float:
    return math.nextafter(value, -math.inf)


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def _product(a: float, b: float) -> float:
    # An unknown constant has an infinite end; times an exact zero it is still zero.
    return 0.0 if a == 0 or b == 0 else a * b


def _reciprocal(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) < 1e-300 else 1.0 / value


def _power(value: float, exponent: float) -> float:
    try:
        return math.pow(value, exponent)
    except OverflowError:
        return math.inf


ZERO = Growth(0.0, 0.0)
UNKNOWN_CONSTANT = Growth(_TINY, math.inf)
