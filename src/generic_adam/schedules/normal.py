"""The normal form: numbers folded exactly, a t + b collected, 1 - (1 - x) undone; complements, derivatives.

Every way to make a schedule (operators, the parser, the builders, `rebuild`) goes through these rules, so
that equal text means equal schedule, and `1 - theta` keeps all its digits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.tree import NODES, Schedule, complement_of, contains, normal_form, remembered

# Exact powers of numbers are folded while they stay this small; beyond, the node stands for the number.
_LARGEST_FOLDED_EXPONENT = 64
_LARGEST_FOLDED_BITS = 2048
ZERO, ONE = tree.Constant(Fraction(0)), tree.Constant(Fraction(1))


@remembered
def as_linear(node: Schedule) -> tuple[Fraction, Fraction] | None:
    """Return (a, b) where the expression is a t + b with exact a and b, else None."""
    match node:
        case tree.Constant(value):
            return Fraction(0), value
        case tree.Time():
            return Fraction(1), Fraction(0)
        case tree.Add(left, right) | tree.Subtract(left, right):
            one, two = as_linear(left), as_linear(right)
            if one is None or two is None:
                return None
            add = operator.add if isinstance(node, tree.Add) else operator.sub
            return add(one[0], two[0]), add(one[1], two[1])
        case _:
            factor, part = _scaled(node)
            line = None if part is node else as_linear(part)
            return None if line is None else (factor * line[0], factor * line[1])


def _scaled(node: Schedule) -> tuple[Fraction, Schedule]:
    """(c, x) where the expression is a number c times x."""
    match node:
        case tree.Negate(other):
            return Fraction(-1), other
        case tree.Multiply(tree.Constant(factor), other) | tree.Multiply(other, tree.Constant(factor)):
            return factor, other
        case tree.Divide(other, tree.Constant(divisor)) if divisor != 0:
            return 1 / divisor, other
        case tree.Divide(top, bottom) if (inner := _scaled(top))[1] is not top:
            return inner[0], tree.Divide(inner[1], bottom)
        case _:
            return Fraction(1), node


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
    """Return whether u_t is a number above 0 for every t >= 1, by a look at its form."""
    line = as_linear(node)
    if line is not None:
        return line[0] >= 0 and line[0] + line[1] > 0
    match node:
        case tree.Power(base, exponent):
            return _positive(base) and _has_values(exponent)
        case tree.Function("exp", argument):
            return _has_values(argument)
        case tree.Function("log", argument):
            return _positive(argument - 1)
        case tree.Function(name, argument):
            return name in {"sqrt", "log1p"} and _positive(argument)
        case tree.BiasCorrection(factor):
            return isinstance(factor, tree.Constant)
        case _:
            return node.keeps_sign and all(map(_positive, node.children))


def _has_values(node: Schedule) -> bool:
    """Return whether u_t is a number for every t >= 1, by a look at its form; asked before a part is folded away."""
    match node:
        case tree.Divide(top, bottom):
            return _has_values(top) and _positive(bottom)
        case tree.Function("sqrt" | "log" | "log1p", argument):
            return _positive(argument)
        case _:
            return all(map(_has_values, node.children)) if node.total else _positive(node)


def factored(schedule: Schedule, positive: Callable[[Schedule], bool] = _positive) -> dict[Schedule, Fraction]:
    """u = prod base_i ^ exponent_i, equal bases collected; (t+1)^-0.5 / sqrt(1/(t+1)) has none left.

    The product is a number exactly where u is one: (t - 5)/(t - 5), sqrt(t - 5)^2 and 1/(1/(t - 5)) keep their parts.

    Args:
        schedule: u.
        positive: what tells that a part is positive: sqrt(x y) is sqrt(x) sqrt(y), and sqrt(x^2) is x, only
            where x and y are.
    """
    found: dict[Schedule, Fraction] = {}

    def collect(node: Schedule, exponent: Fraction) -> None:
        whole = exponent.denominator == 1
        match node:
            case tree.Multiply(left, right) if whole or (positive(left) and positive(right)):
                collect(left, exponent)
                collect(right, exponent)
            case tree.Divide(left, right) if positive(right) and (whole or positive(left)):
                collect(left, exponent)
                collect(right, -exponent)
            case tree.Power(base, tree.Constant(value)) if positive(base):
                collect(base, exponent * value)
            case tree.Function("sqrt", argument) if positive(argument):
                collect(argument, exponent / 2)
            case tree.Constant(value) if value == 1:
                pass
            case _:
                if node in found and not positive(node):  # not merged, but kept as one part of its own
                    powers = (node ** tree.Constant(one) for one in (found.pop(node), exponent))
                    node, exponent = tree.Multiply(*powers), Fraction(1)
                total = found.pop(node, Fraction(0)) + exponent
                if total:
                    found[node] = total

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
    """Return the normal form of a t + b."""
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


def _linear_or(node: Schedule, other: Schedule | None = None) -> Schedule:
    """Return the normal form of a node that is a t + b; any other is `other`, or the node itself."""
    line = as_linear(node)
    return linear(*line) if line is not None else other or node


def _add(left: Schedule, right: Schedule) -> Schedule:
    node = tree.Add(left, right)
    return _linear_or(node, right if left == ZERO else left if right == ZERO else None)


def _subtract(left: Schedule, right: Schedule) -> Schedule:
    node = tree.Subtract(left, right)
    line = as_linear(node)
    if line is not None:
        return linear(*line)
    if left == ONE:
        return right.complement
    if left == right and _has_values(left):
        return ZERO
    return -right if left == ZERO else left if right == ZERO else node


def _multiply(left: Schedule, right: Schedule) -> Schedule:
    for one, other in ((left, right), (right, left)):
        if one == ONE or (one == ZERO and _has_values(other)):
            return other if one == ONE else one
    match left, right:
        case tree.Function("exp", a), tree.Function("exp", b):
            return function("exp", a + b)
        case _:
            return _linear_or(tree.Multiply(left, right))


def _divide(left: Schedule, right: Schedule) -> Schedule:
    if right == ZERO:
        raise ScheduleError("division by zero in a schedule: the divisor is the constant 0")
    node = tree.Divide(left, right)
    return _linear_or(node, left if right == ONE else None)


def _power(base: Schedule, exponent: Schedule) -> Schedule:
    if exponent == ONE:
        return base
    if exponent == ZERO or base == ONE:
        return ONE + ZERO * (base if exponent == ZERO else exponent)
    match base, exponent:
        case tree.Constant(value), tree.Constant(p) if _folds_exactly(value, p):
            if value == 0 and p < 0:
                raise ScheduleError("division by zero in a schedule: 0 to a negative power")
            return tree.Constant(value ** int(p))
        case tree.Function("sqrt", tree.Constant(value)), tree.Constant(p):
            return tree.Constant(value) ** tree.Constant(p / 2)
        case _:
            return _defined(tree.Power(base, exponent))


def _defined(node: Schedule) -> Schedule:
    """Return a node whose constant value exists: an overflow is an error now, not at step 1."""
    if all(part.is_constant for part in node.children):
        node(1)
    return node


def _folds_exactly(base: Fraction, exponent: Fraction) -> bool:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_FOLDED_EXPONENT:
        return False
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    return bits * abs(int(exponent)) <= _LARGEST_FOLDED_BITS


def _negate(operand: Schedule) -> Schedule:
    node = tree.Negate(operand)
    return _linear_or(node, operand.operand if isinstance(operand, tree.Negate) else node)


def function(name: str, argument: Schedule) -> Schedule:
    """Apply one of the named functions; exp and log undo each other."""
    match name, argument:
        case ("exp", tree.Constant(Fraction(numerator=0))):
            return ONE
        case ("log", tree.Function("exp", inner)) | ("exp", tree.Function("log", tree.Constant() as inner)):
            return inner
        case _:
            return _defined(tree.Function(name, argument))


def _extreme(kind: type[tree.Maximum | tree.Minimum]) -> Callable[[Schedule, Schedule], Schedule]:
    def rule(left: Schedule, right: Schedule) -> Schedule:
        if isinstance(left, tree.Constant) and isinstance(right, tree.Constant):
            return left if (left.value >= right.value) == (kind is tree.Maximum) else right
        return left if left == right else kind(left, right)

    return rule


def _correction(factor: Schedule) -> Schedule:
    return ONE if factor == ZERO else tree.BiasCorrection(factor)


def _join(threshold: int, before: Schedule, after: Schedule) -> Schedule:
    return after if threshold <= 1 or before == after else tree.Join(threshold, before, after)


def _periodic(body: Schedule, period: int) -> Schedule:
    repeated = tree.Periodic(body, period)
    return body if body.is_constant else repeated


normal_form.update(
    {
        **{node: node for node in NODES},
        tree.Add: _add,
        tree.Subtract: _subtract,
        tree.Multiply: _multiply,
        tree.Divide: _divide,
        tree.Power: _power,
        tree.Negate: _negate,
        tree.Function: function,
        tree.Maximum: _extreme(tree.Maximum),
        tree.Minimum: _extreme(tree.Minimum),
        tree.Join: _join,
        tree.Periodic: _periodic,
        tree.BiasCorrection: _correction,
    }
)


def _plain(node: Schedule) -> Schedule:
    return tree.Subtract(ONE, node)


def _without_sum(node: tree.Add | tree.Subtract) -> Schedule:
    """Return 1 - u where a number is added: 1 - (c + x) is (1 - c) - x."""
    match node:
        case tree.Add(tree.Constant(c), x) | tree.Add(x, tree.Constant(c)):
            return tree.Constant(1 - c) - x
        case tree.Subtract(tree.Constant(c), x):
            return tree.Constant(1 - c) + x
        case _:
            return _plain(node)


def _without_quotient(node: tree.Divide) -> Schedule:
    """Return 1 - a/b as (b - a)/b where that is shorter: (t + 1)/(t + 2)."""
    top, bottom = node.left, node.right
    shorter = not top.is_constant and as_linear(top) and as_linear(bottom)
    return (bottom - top) / bottom if shorter else _plain(node)


complement_of.update(
    {
        **dict.fromkeys(NODES, _plain),
        tree.Constant: lambda node: tree.Constant(1 - node.value),
        **dict.fromkeys((tree.Add, tree.Subtract), _without_sum),
        tree.Divide: _without_quotient,
        tree.Negate: lambda node: ONE + node.operand,
        tree.Maximum: lambda node: normal_form[tree.Minimum](1 - node.left, 1 - node.right),
        tree.Minimum: lambda node: normal_form[tree.Maximum](1 - node.left, 1 - node.right),
        tree.Join: lambda node: _join(node.threshold, 1 - node.before, 1 - node.after),
        tree.Periodic: lambda node: _periodic(1 - node.body, node.period),
        tree.BiasCorrection: lambda node: (
            node.factor ** tree.Time() if isinstance(node.factor, tree.Constant) else _plain(node)
        ),
        tree.WeightedTheta: lambda node: tree.WeightShare(node.weights, node.initial),
        tree.WeightShare: lambda node: tree.WeightedTheta(node.weights, node.initial),
    }
)


_OUTER: dict[str, Callable[[Schedule], Schedule]] = {
    "sqrt": lambda x: 1 / (2 * function("sqrt", x)),
    "log": lambda x: 1 / x,
    "log1p": lambda x: 1 / (1 + x),
    "exp": lambda x: function("exp", x),
    "expm1": lambda x: function("exp", x),
    "sin": lambda x: function("cos", x),
    "cos": lambda x: -function("sin", x),
}


def derivative(node: Schedule) -> Schedule:
    """u'(t) of a schedule without joins, kinks, running sums and callables; a ScheduleError for those."""
    match node:
        case _ if node.is_constant:
            return ZERO
        case tree.Time():
            return ONE
        case tree.Add(left, right):
            return derivative(left) + derivative(right)
        case tree.Subtract(left, right):
            return derivative(left) - derivative(right)
        case tree.Multiply(left, right):
            sides = (left, right), (right, left)
            return reduce(operator.add, [derivative(a) * b for a, b in sides if not a.is_constant])
        case tree.Divide(left, right):
            rate = -left * derivative(right)
            return (rate if left.is_constant else derivative(left) * right + rate) / right**2
        case tree.Negate(operand):
            return -derivative(operand)
        case tree.Power(base, tree.Constant(exponent)):
            return tree.Constant(exponent) * base ** tree.Constant(exponent - 1) * derivative(base)
        case tree.Power(base, exponent):
            return node * derivative(exponent * function("log", base))
        case tree.Function(name, argument) if name in _OUTER:
            return _OUTER[name](argument) * derivative(argument)
        case tree.BiasCorrection(factor) if factor.is_constant:
            return -(factor ** tree.Time()) * function("log", factor)
        case _:
            raise ScheduleError(f"{node} has no derivative by form")


def has_callable(schedule: Schedule) -> bool:
    """Return whether a Python callable is part of the schedule, so that its tail cannot be known."""
    return contains(schedule, tree.Opaque)
