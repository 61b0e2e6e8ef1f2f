"""Building an expression in its normal form: numbers folded exactly, a t + b collected, 1 - (1 - x) undone.

Every way to make a schedule (operators, the parser, the builders) goes through these functions, so that
equal text means equal schedule, and `1 - theta` keeps all its digits.
"""

from __future__ import annotations

from fractions import Fraction

from generic_adam.schedules.base import Schedule
from generic_adam.schedules.choices import Join, Maximum, Minimum
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.nodes import Add, Constant, Divide, Multiply, Negate, Subtract, Time
from generic_adam.schedules.powers import Power

# Exact powers of numbers are folded while they stay this small; beyond, the float power serves.
_LARGEST_FOLDED_EXPONENT = 64
_LARGEST_FOLDED_BITS = 2048


def as_linear(node: Schedule) -> tuple[Fraction, Fraction] | None:
    """(a, b) where the expression is a t + b with exact a and b, else None."""
    match node:
        case Constant(value):
            return Fraction(0), value
        case Time():
            return Fraction(1), Fraction(0)
        case Negate(operand):
            inner = as_linear(operand)
            return None if inner is None else (-inner[0], -inner[1])
        case Add(left, right) | Subtract(left, right):
            first, second = as_linear(left), as_linear(right)
            if first is None or second is None:
                return None
            sign = 1 if isinstance(node, Add) else -1
            return first[0] + sign * second[0], first[1] + sign * second[1]
        case Multiply(Constant(factor), other) | Multiply(other, Constant(factor)):
            inner = as_linear(other)
            return None if inner is None else (factor * inner[0], factor * inner[1])
        case Divide(left, Constant(divisor)) if divisor != 0:
            inner = as_linear(left)
            return None if inner is None else (inner[0] / divisor, inner[1] / divisor)
        case _:
            return None


def linear(slope: Fraction, offset: Fraction) -> Schedule:
    """The normal form of a t + b."""
    if slope == 0:
        return Constant(offset)
    if slope < 0 and offset != 0:
        return Subtract(Constant(offset), _times_t(-slope))
    if offset == 0:
        return _times_t(slope)
    if offset < 0:
        return Subtract(_times_t(slope), Constant(-offset))
    return Add(_times_t(slope), Constant(offset))


def _times_t(slope: Fraction) -> Schedule:
    if slope == 1:
        return Time()
    if slope == -1:
        return Negate(Time())
    return Multiply(Constant(slope), Time())


def add(left: Schedule, right: Schedule) -> Schedule:
    """Left + right."""
    collected = _collected(left, right, 1)
    if collected is not None:
        return collected
    if left == Constant(Fraction(0)):
        return right
    return left if right == Constant(Fraction(0)) else Add(left, right)


def subtract(left: Schedule, right: Schedule) -> Schedule:
    """Left - right; 1 - x is the complement that x carries."""
    collected = _collected(left, right, -1)
    if collected is not None:
        return collected
    if left == Constant(Fraction(1)):
        return right.complement
    if left == Constant(Fraction(0)):
        return negate(right)
    return left if right == Constant(Fraction(0)) else Subtract(left, right)


def _collected(left: Schedule, right: Schedule, sign: int) -> Schedule | None:
    first, second = as_linear(left), as_linear(right)
    if first is None or second is None:
        return None
    return linear(first[0] + sign * second[0], first[1] + sign * second[1])


def multiply(left: Schedule, right: Schedule) -> Schedule:
    """Left * right."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(left.value * right.value)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Constant):
            if one.value == 1:
                return other
            if one.value == 0 and other.order is not None:
                return one
            scaled = as_linear(other)
            if scaled is not None:
                return linear(one.value * scaled[0], one.value * scaled[1])
    return Multiply(left, right)


def divide(left: Schedule, right: Schedule) -> Schedule:
    """Left / right."""
    if isinstance(right, Constant):
        if right.value == 0:
            raise ScheduleError("division by zero in a schedule: the divisor is the constant 0")
        if right.value == 1:
            return left
        scaled = as_linear(left)
        if scaled is not None:
            return linear(scaled[0] / right.value, scaled[1] / right.value)
    return Divide(left, right)


def power(base: Schedule, exponent: Schedule) -> Schedule:
    """Base ^ exponent."""
    if isinstance(exponent, Constant):
        if exponent.value == 1:
            return base
        if exponent.value == 0:
            return Constant(Fraction(1))
        if isinstance(base, Constant) and _folds_exactly(base.value, exponent.value):
            if base.value == 0 and exponent.value < 0:
                raise ScheduleError("division by zero in a schedule: 0 to a negative power")
            return Constant(base.value ** int(exponent.value))
    result = Power(base, exponent)
    if result.left.is_constant and result.right.is_constant:
        result(1)  # a power of two numbers that overflows or is not real is an error now, not at step 1
    return result


def _folds_exactly(base: Fraction, exponent: Fraction) -> bool:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_FOLDED_EXPONENT:
        return False
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    return bits * abs(int(exponent)) <= _LARGEST_FOLDED_BITS


def negate(operand: Schedule) -> Schedule:
    """-operand."""
    if isinstance(operand, Negate):
        return operand.operand
    scaled = as_linear(operand)
    return linear(-scaled[0], -scaled[1]) if scaled is not None else Negate(operand)


def maximum(left: Schedule, right: Schedule) -> Schedule:
    """max(left, right)."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return left if left.value >= right.value else right
    return left if left == right else Maximum(left, right)


def minimum(left: Schedule, right: Schedule) -> Schedule:
    """min(left, right)."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return left if left.value <= right.value else right
    return left if left == right else Minimum(left, right)


def join(threshold: int, before: Schedule, after: Schedule) -> Schedule:
    """Before for t < threshold, after from then on."""
    if threshold <= 1 or before == after:
        return after
    return Join(threshold, before, after)
