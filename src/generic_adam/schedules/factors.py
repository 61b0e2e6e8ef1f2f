"""A product taken apart: u = prod base_i ^ exponent_i, equal bases collected."""

from __future__ import annotations

from fractions import Fraction

from generic_adam.schedules.enclosure import enclose
from generic_adam.schedules.tree import Constant, Divide, Function, Multiply, Power, Schedule


def factors(schedule: Schedule) -> dict[Schedule, Fraction]:
    """The factors of a positive schedule with their exponents; (t+1)^-0.5 / sqrt(1/(t+1)) has none left."""
    collected: dict[Schedule, Fraction] = {}
    for base, exponent in _flattened(schedule, Fraction(1)):
        total = collected.pop(base, Fraction(0)) + exponent
        if total:
            collected[base] = total
    return collected


def collected(schedule: Schedule) -> Schedule:
    """The same positive sequence with equal factors merged."""
    result: Schedule = Constant(Fraction(1))
    for base, exponent in factors(schedule).items():
        result = result * (base ** Constant(exponent))
    return result


def _flattened(node: Schedule, exponent: Fraction) -> list[tuple[Schedule, Fraction]]:
    whole = exponent.denominator == 1
    match node:
        # sqrt(x y) is sqrt(x) sqrt(y), and sqrt(x^2) is x, only where x and y are positive.
        case Multiply(left, right) if whole or _are_positive(left, right):
            return _flattened(left, exponent) + _flattened(right, exponent)
        case Divide(left, right) if whole or _are_positive(left, right):
            return _flattened(left, exponent) + _flattened(right, -exponent)
        case Power(base, Constant(value)) if whole or _are_positive(base):
            return _flattened(base, exponent * value)
        case Function("sqrt", argument):
            return _flattened(argument, exponent / 2)
        case Constant(value) if value == 1:
            return []
        case _:
            return [(node, exponent)]


def _are_positive(*parts: Schedule) -> bool:
    return all(enclose(part, 1).positive for part in parts)
