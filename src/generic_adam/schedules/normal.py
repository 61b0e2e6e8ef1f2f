"""The normal form: numbers folded exactly, a t + b collected, 1 - (1 - x) undone; and complements 1 - u.

Every way to make a schedule (operators, the parser, the builders, `rebuild`) goes through these rules, so
that equal text means equal schedule, and `1 - theta` keeps all its digits.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.tree import Schedule, complement_of, contains, normal_form

# Up to this whole exponent 1 - (1 - c)^p is multiplied out.
_LARGEST_HORNER = 8
# Exact powers of numbers are folded while they stay this small; beyond, the node stands for the number.
_LARGEST_FOLDED_EXPONENT = 64
_LARGEST_FOLDED_BITS = 2048
ZERO, ONE = tree.Constant(Fraction(0)), tree.Constant(Fraction(1))


def as_linear(node: Schedule) -> tuple[Fraction, Fraction] | None:
    """(a, b) where the expression is a t + b with exact a and b, else None."""
    match node:
        case tree.Constant(value):
            return Fraction(0), value
        case tree.Time():
            return Fraction(1), Fraction(0)
        case tree.Negate(operand):
            inner = as_linear(operand)
            return None if inner is None else (-inner[0], -inner[1])
        case tree.Add(left, right) | tree.Subtract(left, right):
            first, second = as_linear(left), as_linear(right)
            if first is None or second is None:
                return None
            sign = 1 if isinstance(node, tree.Add) else -1
            return first[0] + sign * second[0], first[1] + sign * second[1]
        case tree.Multiply(tree.Constant(factor), other) | tree.Multiply(other, tree.Constant(factor)):
            inner = as_linear(other)
            return None if inner is None else (factor * inner[0], factor * inner[1])
        case tree.Divide(left, tree.Constant(divisor)) if divisor != 0:
            inner = as_linear(left)
            return None if inner is None else (inner[0] / divisor, inner[1] / divisor)
        case _:
            return None


def as_exponential(node: Schedule) -> tuple[Fraction | None, Fraction, Fraction] | None:
    """(c, a, b) where the expression is c^(a t + b) with a number c > 0 (None for e) and a != 0, else None."""
    match node:
        case tree.Power(tree.Constant(base), exponent) if base > 0:
            line = as_linear(exponent)
        case tree.Function("exp", exponent):
            base, line = None, as_linear(exponent)
        case _:
            return None
    return None if line is None or not line[0] else (base, *line)


def _positive(node: Schedule) -> bool:
    """Whether u_t > 0 for every t >= 1, by a look at its form."""
    line = as_linear(node)
    if line is not None:
        return line[0] >= 0 and line[0] + line[1] > 0
    return as_exponential(node) is not None


def factored(
    schedule: Schedule, positive: Callable[[Schedule], bool] = _positive
) -> dict[Schedule, Fraction]:
    """u = prod base_i ^ exponent_i, equal bases collected; (t+1)^-0.5 / sqrt(1/(t+1)) has none left.

    Args:
        schedule: u.
        positive: what tells that a part is positive: sqrt(x y) is sqrt(x) sqrt(y), and sqrt(x^2) is x, only
            where x and y are.
    """
    found: dict[Schedule, Fraction] = {}

    def collect(node: Schedule, exponent: Fraction) -> None:
        match node:
            case tree.Power(base, tree.Constant()) if exponent.denominator > 1 and not positive(base):
                pass
            case tree.Multiply(left, right) | tree.Divide(left, right) if exponent.denominator > 1 and not (
                positive(left) and positive(right)
            ):
                pass
            case tree.Multiply(left, right):
                collect(left, exponent)
                return collect(right, exponent)
            case tree.Divide(left, right):
                collect(left, exponent)
                return collect(right, -exponent)
            case tree.Power(base, tree.Constant(value)):
                return collect(base, exponent * value)
            case tree.Function("sqrt", argument):
                return collect(argument, exponent / 2)
            case tree.Constant(value) if value == 1:
                return None
            case _:
                pass
        total = found.pop(node, Fraction(0)) + exponent
        if total:
            found[node] = total
        return None

    collect(schedule, Fraction(1))
    return found


def as_power_of_t(schedule: Schedule) -> tuple[Fraction, Fraction] | None:
    """(c, p) if the schedule is, by its form, exactly c t^p for every t; else None."""
    factor, power = Fraction(1), Fraction(0)
    for base, exponent in factored(schedule).items():
        if isinstance(base, tree.Time):
            power = exponent
        elif isinstance(base, tree.Constant) and _folds_exactly(base.value, exponent):
            factor *= base.value ** int(exponent)
        else:
            return None
    return factor, power


def linear(slope: Fraction, offset: Fraction) -> Schedule:
    """The normal form of a t + b."""
    if slope == 0:
        return tree.Constant(offset)
    if slope < 0 and offset != 0:
        return tree.Subtract(tree.Constant(offset), _times_t(-slope))
    if offset == 0:
        return _times_t(slope)
    if offset < 0:
        return tree.Subtract(_times_t(slope), tree.Constant(-offset))
    return tree.Add(_times_t(slope), tree.Constant(offset))


def _times_t(slope: Fraction) -> Schedule:
    if slope == 1:
        return tree.Time()
    if slope == -1:
        return tree.Negate(tree.Time())
    return tree.Multiply(tree.Constant(slope), tree.Time())


def _collected(left: Schedule, right: Schedule, sign: int) -> Schedule | None:
    first, second = as_linear(left), as_linear(right)
    if first is None or second is None:
        return None
    return linear(first[0] + sign * second[0], first[1] + sign * second[1])


@normal_form.rule(tree.Constant)
def _constant(value: Fraction) -> Schedule:
    return tree.Constant(value)


@normal_form.rule(tree.Time)
def _time() -> Schedule:
    return tree.Time()


@normal_form.rule(tree.Add)
def add(left: Schedule, right: Schedule) -> Schedule:
    """Left + right."""
    collected = _collected(left, right, 1)
    if collected is not None:
        return collected
    if left == ZERO:
        return right
    return left if right == ZERO else tree.Add(left, right)


@normal_form.rule(tree.Subtract)
def subtract(left: Schedule, right: Schedule) -> Schedule:
    """Left - right; 1 - x is the complement that x carries."""
    collected = _collected(left, right, -1)
    if collected is not None:
        return collected
    if left == ONE:
        return right.complement
    if left == ZERO:
        return negate(right)
    return left if right == ZERO else tree.Subtract(left, right)


@normal_form.rule(tree.Multiply)
def multiply(left: Schedule, right: Schedule) -> Schedule:
    """Left * right."""
    if isinstance(left, tree.Constant) and isinstance(right, tree.Constant):
        return tree.Constant(left.value * right.value)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, tree.Constant):
            if one.value == 1:
                return other
            if one.value == 0 and other.order is not None:
                return one
            scaled = as_linear(other)
            if scaled is not None:
                return linear(one.value * scaled[0], one.value * scaled[1])
    match left, right:  # powers of one number: floats would round apart what is a single number
        case tree.Power(tree.Constant(base), tree.Constant(p)), tree.Power(other, tree.Constant(q)) if (
            base > 0 and other == left.left
        ):
            return power(other, tree.Constant(p + q))
        case tree.Function("exp", tree.Constant(p)), tree.Function("exp", tree.Constant(q)):
            return ONE if p + q == 0 else function("exp", tree.Constant(p + q))
        case _:
            return tree.Multiply(left, right)


@normal_form.rule(tree.Divide)
def divide(left: Schedule, right: Schedule) -> Schedule:
    """Left / right."""
    if isinstance(right, tree.Constant):
        if right.value == 0:
            raise ScheduleError("division by zero in a schedule: the divisor is the constant 0")
        if right.value == 1:
            return left
        scaled = as_linear(left)
        if scaled is not None:
            return linear(scaled[0] / right.value, scaled[1] / right.value)
    return tree.Divide(left, right)


@normal_form.rule(tree.Power)
def power(base: Schedule, exponent: Schedule) -> Schedule:
    """Base ^ exponent."""
    if isinstance(exponent, tree.Constant):
        if exponent.value == 1:
            return base
        if exponent.value == 0:
            return ONE
        if isinstance(base, tree.Constant) and _folds_exactly(base.value, exponent.value):
            if base.value == 0 and exponent.value < 0:
                raise ScheduleError("division by zero in a schedule: 0 to a negative power")
            return tree.Constant(base.value ** int(exponent.value))
        match base:
            case tree.Function("sqrt", tree.Constant(square)) if square > 0:
                return power(tree.Constant(square), tree.Constant(exponent.value / 2))
            case _:
                pass
    result = tree.Power(base, exponent)
    if base.is_constant and exponent.is_constant:
        result(1)  # a power of two numbers that overflows or is not real is an error now, not at step 1
    return result


def _folds_exactly(base: Fraction, exponent: Fraction) -> bool:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_FOLDED_EXPONENT:
        return False
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    return bits * abs(int(exponent)) <= _LARGEST_FOLDED_BITS


@normal_form.rule(tree.Negate)
def negate(operand: Schedule) -> Schedule:
    """-operand."""
    if isinstance(operand, tree.Negate):
        return operand.operand
    scaled = as_linear(operand)
    return linear(-scaled[0], -scaled[1]) if scaled is not None else tree.Negate(operand)


@normal_form.rule(tree.Function)
def function(name: str, argument: Schedule) -> Schedule:
    """One of the named functions of a schedule."""
    match name, argument:
        case "exp", tree.Function("log", tree.Constant(value)) if value > 0:
            return tree.Constant(value)
        case "log", tree.Function("exp", tree.Constant(value)):
            return tree.Constant(value)
        case _:
            result = tree.Function(name, argument)
    if argument.is_constant:
        result(1)  # log(-1) or exp(1e9) is an error now, not at step 1
    return result


@normal_form.rule(tree.Maximum)
def maximum(left: Schedule, right: Schedule) -> Schedule:
    """max(left, right)."""
    if isinstance(left, tree.Constant) and isinstance(right, tree.Constant):
        return left if left.value >= right.value else right
    return left if left == right else tree.Maximum(left, right)


@normal_form.rule(tree.Minimum)
def minimum(left: Schedule, right: Schedule) -> Schedule:
    """min(left, right)."""
    if isinstance(left, tree.Constant) and isinstance(right, tree.Constant):
        return left if left.value <= right.value else right
    return left if left == right else tree.Minimum(left, right)


@normal_form.rule(tree.Join)
def join(threshold: int, before: Schedule, after: Schedule) -> Schedule:
    """Before for t < threshold, after from then on."""
    if threshold <= 1 or before == after:
        return after
    return tree.Join(threshold, before, after)


@normal_form.rule(tree.Periodic)
def periodic(body: Schedule, period: int) -> Schedule:
    """The first `period` values again and again."""
    repeated = tree.Periodic(body, period)
    return body if body.is_constant else repeated


@normal_form.rule(tree.BiasCorrection)
def bias_correction(factor: Schedule) -> Schedule:
    """1 - prod factor_i; 1 where the factor is 0."""
    return ONE if factor == ZERO else tree.BiasCorrection(factor)


normal_form.rule(tree.Bounded)(tree.Bounded)
normal_form.rule(tree.WeightedTheta)(tree.WeightedTheta)
normal_form.rule(tree.WeightShare)(tree.WeightShare)
normal_form.rule(tree.Opaque)(tree.Opaque)


@complement_of.rule(tree.Time, tree.Add, tree.Multiply, tree.Bounded, tree.Opaque)
def _plain(node: Schedule) -> Schedule:
    return tree.Subtract(ONE, node)


@complement_of.rule(tree.Negate)
def _(node: tree.Negate) -> Schedule:
    # 1 - (-expm1(x)) = e^x: what 1 - e^x was before its own digits were kept.
    match node.operand:
        case tree.Function("expm1", argument):
            return tree.Function("exp", argument)
        case _:
            return _plain(node)


@complement_of.rule(tree.Constant)
def _(node: tree.Constant) -> Schedule:
    return tree.Constant(1 - node.value)


@complement_of.rule(tree.Subtract)
def _(node: tree.Subtract) -> Schedule:
    return node.right if node.left == ONE else _plain(node)


@complement_of.rule(tree.Divide)
def _(node: tree.Divide) -> Schedule:
    # 1 - a/b = (b - a)/b: for t/(t+1) the numerator collapses to 1 and nothing cancels.
    difference = node.right - node.left
    return difference / node.right if difference.is_constant else _plain(node)


@complement_of.rule(tree.Power)
def _(node: tree.Power) -> Schedule:
    return _one_minus_power(node.left, node.right) or _plain(node)


@complement_of.rule(tree.Function)
def _(node: tree.Function) -> Schedule:
    if node.name == "exp":
        return -tree.Function("expm1", node.argument)
    if node.name == "sqrt":
        return _one_minus_power(node.argument, tree.Constant(Fraction(1, 2))) or _plain(node)
    return _plain(node)


def _one_minus_power(base: Schedule, exponent: Schedule) -> Schedule | None:
    """1 - (1 - c)^p, accurate however small c is; None for a base that is no 1 - c.

    -expm1(p log1p(-c)) in general. For p = 2, 3, ... it is c (1 + (1 - c) (1 + (1 - c) (...))), which has a
    value where 1 - c is negative, too: 1 - (1 - 1.5/t)^2 at t = 1.
    """
    if isinstance(base, tree.Subtract) and base.left == ONE:
        missing = base.right
    elif isinstance(base, tree.Divide) and (base.right - base.left).is_constant:
        missing = (base.right - base.left) / base.right
    else:
        return None
    if isinstance(exponent, tree.Constant) and exponent.value in range(2, _LARGEST_HORNER + 1):
        inner: Schedule = ONE
        for _ in range(int(exponent.value) - 1):
            inner = 1 + base * inner
        return missing * inner
    return -tree.Function("expm1", exponent * tree.Function("log1p", -missing))


@complement_of.rule(tree.Maximum)
def _(node: tree.Maximum) -> Schedule:
    return minimum(1 - node.left, 1 - node.right)


@complement_of.rule(tree.Minimum)
def _(node: tree.Minimum) -> Schedule:
    return maximum(1 - node.left, 1 - node.right)


@complement_of.rule(tree.Join)
def _(node: tree.Join) -> Schedule:
    return join(node.threshold, 1 - node.before, 1 - node.after)


@complement_of.rule(tree.Periodic)
def _(node: tree.Periodic) -> Schedule:
    return periodic(1 - node.body, node.period)


@complement_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta) -> Schedule:
    return tree.WeightShare(node.weights, node.initial)


@complement_of.rule(tree.WeightShare)
def _(node: tree.WeightShare) -> Schedule:
    return tree.WeightedTheta(node.weights, node.initial)


@complement_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection) -> Schedule:
    return _plain(node)


def has_callable(schedule: Schedule) -> bool:
    """Whether a Python callable is part of the schedule, so that its tail cannot be known."""
    return contains(schedule, tree.Opaque)
