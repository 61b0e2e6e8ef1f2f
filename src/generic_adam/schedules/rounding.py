"""Blocks of values with error bounds: what a float says, and how far off it can be.

A float decides nothing unless its error bound does. The bounds assume what IEEE 754 promises of + - * / and
sqrt, and that NumPy's other functions are right to 16 units in the last place; but not gradual underflow:
`torch.set_flush_denormal(True)`, or a library built for speed, makes the processor take what is below 2.3e-308
for 0, and has it that way for the whole process.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from generic_adam.schedules import tree
from generic_adam.schedules.evaluate import OF_TWO, called_on_block, decay_of, in_period, joined, split_geometric
from generic_adam.schedules.tree import FloatArray, Pair, Schedule, filtered_of

BLOCK = 1 << 15
"""How many steps are walked at a time."""
# Twice the rounding of one operation, and of one library function.
ULP = 2.0**-52
_LIBRARY = 16 * ULP
# What an operation can lose to underflow: four times the least number that is never flushed to 0.
_TINY = 1e-307
# Running sums in floats are right to this, relatively; 512 terms at a time are added plainly, and then their sums.
_SUM = 1e-11
# They are walked to here, which takes half a second; later values are left to closed forms in balls.
_FARTHEST_SUM = 1 << 24
# Up to this exponent what a base loses by rounding is little in its power.
_STEEP = 2.0**40
# From here on a float is not every whole t: of a period or a join it would be the wrong side.
_LAST_EXACT = 2.0**53


def filtered(schedule: Schedule, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u_t at whole t, each the float next to its t, and bounds on the errors."""
    if times.max() >= _LAST_EXACT and (schedule.joins or not schedule.accepts_real_times):
        return np.full(times.shape, np.nan), np.full(times.shape, np.inf)
    with np.errstate(all="ignore"):
        values, errors = _pair(schedule, times)
    values = np.array(np.broadcast_to(values, times.shape), dtype=np.float64)
    errors = np.array(np.broadcast_to(errors, times.shape), dtype=np.float64)
    errors[~np.isfinite(values) | np.isnan(errors)] = np.inf
    return values, errors


def lost_digits(schedule: Schedule, steps: float) -> float:
    """Return the relative error of the values on 1..T, at a sample of the steps; 0 where each value is a long walk."""
    if schedule.is_constant or not schedule.accepts_real_times:
        return 0.0
    times = np.unique(np.concatenate([np.geomspace(1, steps, 32), np.linspace(1, steps, 32)]).round())
    values, errors = filtered(schedule, times)
    known = np.isfinite(errors) & ((values != 0) | (times > 1))  # a first value of 0 is meant: theta_1, a warm-up
    size, error = float(np.abs(values[known]).sum()), float(errors[known].sum())
    return error / size if size else math.inf if error else 0.0


def _pair(node: Schedule, times: FloatArray) -> Pair:
    return filtered_of[type(node)](node, times)


def _of_two(
    operation: Callable[[Any, Any], Any], error: Callable[[Any, Pair, Pair], Any]
) -> Callable[[tree.Binary, FloatArray], Pair]:
    """left (operation) right, and what the error of the result is, given those of the parts."""

    def rule(node: tree.Binary, times: FloatArray) -> Pair:
        left, right = _pair(node.left, times), _pair(node.right, times)
        result = operation(left[0], right[0])
        return result, error(result, left, right)

    return rule


def _constant(node: tree.Constant, _times: FloatArray) -> Pair:
    number = float(node.value)
    numerator, denominator = number.as_integer_ratio()
    exact = numerator * node.value.denominator == node.value.numerator * denominator
    flushed = abs(number) < _TINY and node.value != 0
    return number, 0.0 if exact and not flushed else abs(number) * ULP + _TINY


def lost(result: Any, a: Any, b: Any) -> Any:
    """Return the most that a sum or difference may lose to underflow: nothing where they cancel exactly."""
    return np.where((result == 0) & (np.abs(a) == np.abs(b)), 0.0, _TINY)


def _error_of_sum(result: Any, left: Pair, right: Pair) -> Any:
    return left[1] + right[1] + ULP * np.abs(result) + lost(result, left[0], right[0])


def _error_of_product(result: Any, left: Pair, right: Pair) -> Any:
    (a, da), (b, db) = left, right
    return np.abs(a) * db + np.abs(b) * da + da * db + ULP * np.abs(result) + _TINY


def _error_of_quotient(result: Any, left: Pair, right: Pair) -> Any:
    # A/B - a/b = ((A - a) - (a/b) (B - b))/B. The a/b may have underflowed, and so may its product with db, and the
    # small divisor makes much of both.
    (_, da), (b, db) = left, right
    margin = np.abs(b) - db
    missed = np.where(np.asarray(db) == 0, 0.0, (np.abs(result) + _TINY) * db + _TINY)
    error = np.true_divide(da + missed, margin) * (1 + 8 * ULP)
    return np.where(margin > 0, error + ULP * np.abs(result) + _TINY, np.inf)


def _error_of_power(result: Any, left: Pair, right: Pair) -> Any:
    (a, da), (x, dx) = left, right
    size = np.abs(a)
    off = np.true_divide(da, size)
    # For off <= 1/4 the true power is the computed one times e^y, abs(y) <= 4/3 off (abs(x) + dx) + abs(log a) dx.
    relative = 2 * (off * (np.abs(x) + dx) + np.abs(np.log(size)) * dx)
    # A negative base has whole powers only: its exponent must be exact.
    known = (relative < 0.1) & (off <= 0.25) & ((np.asarray(a) > 0) | (np.asarray(dx) == 0))
    # A base that may be 0: the true power and the computed one are both below the largest that it can be.
    whole = np.asarray(x) % 1 == 0
    defined = (np.asarray(x) > 0) & (x < _STEEP) & (np.asarray(dx) == 0) & ((np.asarray(a) >= da) | whole)
    either = np.abs(result) + np.power(size + da, np.where(defined, x, 1.0)) * (1 + 2 * _LIBRARY + 4 * ULP * x)
    error = np.where(defined, either * (1 + _LIBRARY) + _TINY, np.inf)
    error = np.where(known, np.minimum(error, np.abs(result) * (relative + _LIBRARY) + _TINY), error)
    return np.where((np.asarray(a) == 0) & (np.asarray(da) == 0) & (x > dx), 0.0, error)


def _error_of_extreme(result: Any, left: Pair, right: Pair) -> Any:
    """Return the error of the larger side where the other one is too far away; else the larger error."""
    (a, da), (b, db) = left, right
    apart = np.abs(a - b) > (1 + 4 * ULP) * (da + db)
    own = np.where(result == a, np.asarray(da, np.float64), np.asarray(db, np.float64))
    return np.where(apart, own, np.maximum(da, db))


def _root_error(a: Any, da: Any) -> Any:
    """Return the error of a root from that of its argument; infinite where the argument may be negative."""
    low: Any = np.maximum(a - da, 0.0)
    error: Any = np.sqrt(a + da)  # between 0 and 2 da the root is anything up to this
    smaller: Any = np.minimum(error, np.nan_to_num(np.true_divide(da, np.sqrt(low)), nan=np.inf))
    return smaller + np.where(a - da >= 0, 0.0, np.inf)


def _function(node: tree.Function, times: FloatArray) -> Pair:
    a, da = _pair(node.argument, times)
    result: Any = getattr(np, node.name)(a)
    size: Any = np.abs(result)
    low: Any = np.subtract(a, da + np.where(np.asarray(da) == 0, 0.0, ULP * np.abs(a)))
    match node.name:
        case "abs":
            return result, da
        case "sin" | "cos":
            return result, da + _LIBRARY
        case "sqrt":
            return result, _root_error(a, da) + ULP * size
        case "log":
            error = np.true_divide(da, low) * (1 + _LIBRARY) + _LIBRARY * size
            return result, np.where(low > 0, error, np.inf)
        case "log1p":
            under = (1 + low) * (1 - _LIBRARY)
            return result, np.where(under > 0, np.true_divide(da, under) + _LIBRARY * size, np.inf)
        case "exp":
            # What underflows may still be as large as the least number times e^da.
            return result, np.maximum(size, _TINY) * (np.expm1(da) * (1 + _LIBRARY) + _LIBRARY) + _TINY
        case _:  # expm1
            return result, (size + 1) * np.expm1(da) * (1 + _LIBRARY) + _LIBRARY * size


def _opaque(node: tree.Opaque, times: FloatArray) -> Pair:
    # What a callable returns for one t is the number itself; for an array it may round otherwise.
    block = called_on_block(node, times) if times.size > 1 else None
    value = node.block(times) if block is None else block
    size = np.abs(value)
    return value, size * (0.0 if block is None else _LIBRARY) + np.where(size < _TINY, _TINY, 0.0)


def _worst_relative_error(node: Schedule, part: Schedule, last: float) -> float:
    """Return the largest relative error of a part over t = 1, ..., last, which bounds that of its running sum."""

    def within(first: int, end: int) -> float:
        values, errors = filtered(part, np.arange(first, end, dtype=np.float64))
        with np.errstate(all="ignore"):
            here = float(np.max(errors / np.abs(values)))
        return here if here < 0.01 else np.inf  # no number is no bound

    # Whole blocks are kept, so that the bound for one t is the same whatever was asked before.
    worst: list[float] = node.known_facts.setdefault("relative errors", [0.0])
    whole, beyond = divmod(int(last), BLOCK)
    while len(worst) <= whole:
        begin = (len(worst) - 1) * BLOCK + 1
        worst.append(max(worst[-1], within(begin, begin + BLOCK)))
    return max(worst[whole], within(whole * BLOCK + 1, int(last) + 1)) if beyond else worst[whole]


def _running(node: Schedule, part: Schedule, times: FloatArray) -> Pair:
    """Return w_t/W_t or 1 - prod (1 - m_i): a relative error of the w or m is at most doubled."""
    if times.max() > _FARTHEST_SUM:
        return np.nan, np.inf
    result = node.block(times)
    relative = _SUM + 4 * _worst_relative_error(node, part, float(times.max()))
    return result, np.abs(result) * relative + _TINY


def _correction(node: tree.BiasCorrection, times: FloatArray) -> Pair:
    if decay_of(node) is not None:
        result = node.block(times)
        # 1e-13 of it, and what a rate such as 1e-320 loses as a float.
        return result, np.abs(result) * 1e-13 + times * _TINY
    return _running(node, node.factor.complement, times)


def _negative(node: tree.Negate, times: FloatArray) -> Pair:
    value, error = _pair(node.operand, times)
    return -value, error


filtered_of.update(
    {
        tree.Constant: _constant,
        tree.Time: lambda _node, times: (times, np.where(times < _LAST_EXACT, 0.0, times * ULP)),
        tree.Power: _of_two(lambda a, x: np.power(np.asarray(a, dtype=np.float64), x), _error_of_power),
        tree.Negate: _negative,
        tree.Function: _function,
        tree.Join: lambda node, times: joined(node, times, _pair),
        tree.Periodic: lambda node, times: _pair(node.body, in_period(node, times)),
        tree.Bounded: lambda node, times: _pair(node.operand, times),
        tree.WeightShare: lambda node, times: _running(node, split_geometric(node.weights)[1], times),
        tree.WeightedTheta: lambda node, times: _pair(tree.Subtract(tree.operand(1), node.complement), times),
        tree.BiasCorrection: _correction,
        tree.Opaque: _opaque,
    }
)
_ERRORS: dict[type[Schedule], Callable[[Any, Pair, Pair], Any]] = {
    **dict.fromkeys((tree.Add, tree.Subtract), _error_of_sum),
    tree.Multiply: _error_of_product,
    tree.Divide: _error_of_quotient,
    **dict.fromkeys((tree.Maximum, tree.Minimum), _error_of_extreme),
}
filtered_of.update({node: _of_two(OF_TWO[node][1], error) for node, error in _ERRORS.items()})
