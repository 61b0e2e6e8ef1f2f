"""Walks over long stretches in floats, each with a bound on its error; what floats leave open, balls tell.

A float decides nothing here unless its error bound does. The rules assume what IEEE 754 promises of + - * /
and sqrt, and that NumPy's other functions are right to 16 units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.schedules import tree
from generic_adam.schedules.balls import sign, sign_of_step
from generic_adam.schedules.budget import Budget, Undecided
from generic_adam.schedules.evaluate import called_on_block, decay_of
from generic_adam.schedules.tree import FloatArray, Schedule, Table

BoolArray = npt.NDArray[np.bool_]
Pair = tuple[Any, Any]
"""Values and bounds on their errors, arrays or single numbers."""

_BLOCK = 1 << 15
# Twice the rounding of one operation, and of one library function.
_ULP = 2.0**-52
_LIBRARY = 16 * _ULP
# What an operation can lose to underflow.
_TINY = 1e-320
# Running sums in floats are right to this, relatively; 1,024 terms at a time are added plainly.
_SUM = 1e-11
# They are walked to here, which takes half a second; later values are left to closed forms in balls.
_FARTHEST_SUM = 1 << 24

filtered_of: Table[Callable[[Any, FloatArray], Pair]] = Table("values with error bounds")
"""Node, array of whole t -> values and bounds on their errors (infinite where nothing is known)."""


def filtered(schedule: Schedule, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u_t at whole t, and bounds on the errors."""
    with np.errstate(all="ignore"):
        values, errors = _pair(schedule, times)
    shape = times.shape
    values = np.array(np.broadcast_to(values, shape), dtype=np.float64)
    errors = np.array(np.broadcast_to(errors, shape), dtype=np.float64)
    errors[~np.isfinite(values) | np.isnan(errors)] = np.inf
    return values, errors


def _pair(node: Schedule, times: FloatArray) -> Pair:
    return filtered_of[type(node)](node, times)


@filtered_of.rule(tree.Constant)
def _(node: tree.Constant, _times: FloatArray) -> Pair:
    number = float(node.value)
    numerator, denominator = number.as_integer_ratio()
    exact = numerator * node.value.denominator == node.value.numerator * denominator
    return number, 0.0 if exact else abs(number) * _ULP + _TINY


@filtered_of.rule(tree.Time)
def _(_node: tree.Time, times: FloatArray) -> Pair:
    return times, np.where(times < 2.0**53, 0.0, times * _ULP)


@filtered_of.rule(tree.Add, tree.Subtract)
def _(node: tree.Add | tree.Subtract, times: FloatArray) -> Pair:
    (a, da), (b, db) = _pair(node.left, times), _pair(node.right, times)
    result = a + b if isinstance(node, tree.Add) else a - b
    return result, da + db + _ULP * np.abs(result)


@filtered_of.rule(tree.Multiply)
def _(node: tree.Multiply, times: FloatArray) -> Pair:
    (a, da), (b, db) = _pair(node.left, times), _pair(node.right, times)
    result = a * b
    return result, np.abs(a) * db + np.abs(b) * da + da * db + _ULP * np.abs(result) + _TINY


@filtered_of.rule(tree.Divide)
def _(node: tree.Divide, times: FloatArray) -> Pair:
    (a, da), (b, db) = _pair(node.left, times), _pair(node.right, times)
    result = np.true_divide(a, b)
    margin = np.abs(b) - db
    error = np.true_divide(da + np.abs(result) * db, margin) * (1 + 8 * _ULP)
    return result, np.where(margin > 0, error + _ULP * np.abs(result) + _TINY, np.inf)


@filtered_of.rule(tree.Negate)
def _(node: tree.Negate, times: FloatArray) -> Pair:
    value, error = _pair(node.operand, times)
    return -value, error


@filtered_of.rule(tree.Maximum, tree.Minimum)
def _(node: tree.Maximum | tree.Minimum, times: FloatArray) -> Pair:
    (a, da), (b, db) = _pair(node.left, times), _pair(node.right, times)
    chosen = np.maximum(a, b) if isinstance(node, tree.Maximum) else np.minimum(a, b)
    return chosen, np.maximum(da, db)


@filtered_of.rule(tree.Power)
def _(node: tree.Power, times: FloatArray) -> Pair:
    (a, da), (x, dx) = _pair(node.left, times), _pair(node.right, times)
    result = np.power(np.asarray(a, dtype=np.float64), x)
    # d(a^x) = a^x (x da/a + log a dx): to first order, times 2 while it stays small.
    log = np.log(np.abs(a))
    relative = 2 * (np.abs(x) * np.true_divide(da, np.abs(a)) + np.abs(log) * dx)
    error = np.abs(result) * (relative + _LIBRARY) + _TINY
    error = np.where((relative < 0.1) & (np.asarray(da) < np.abs(a)), error, np.inf)
    return result, np.where((np.asarray(a) == 0) & (np.asarray(da) == 0) & (x > dx), 0.0, error)


def _root_error(a: Any, da: Any) -> Any:
    """What sqrt makes of an error; infinite where the argument may be negative."""
    low: Any = np.maximum(a - da, 0.0)
    error: Any = np.sqrt(a + da)  # between 0 and 2 da the root is anything up to this
    smaller: Any = np.minimum(error, np.nan_to_num(np.true_divide(da, np.sqrt(low)), nan=np.inf))
    return smaller + np.where(a - da >= 0, 0.0, np.inf)


@filtered_of.rule(tree.Function)
def _(node: tree.Function, times: FloatArray) -> Pair:
    a, da = _pair(node.argument, times)
    result: Any = getattr(np, node.name)(a)
    size: Any = np.abs(result)
    low: Any = a - da
    match node.name:
        case "abs":
            return result, da
        case "sin" | "cos":
            return result, da + _LIBRARY
        case "sqrt":
            return result, _root_error(a, da) + _ULP * size
        case "log":
            return result, np.where(
                low > 0, np.true_divide(da, low) * (1 + _LIBRARY) + _LIBRARY * size, np.inf
            )
        case "log1p":
            under = (1 + low) * (1 - _LIBRARY)
            return result, np.where(under > 0, np.true_divide(da, under) + _LIBRARY * size, np.inf)
        case "exp":
            return result, size * (np.expm1(da) * (1 + _LIBRARY) + _LIBRARY) + _TINY
        case _:  # expm1
            return result, (size + 1) * np.expm1(da) * (1 + _LIBRARY) + _LIBRARY * size


@filtered_of.rule(tree.Join)
def _(node: tree.Join, times: FloatArray) -> Pair:
    early = times < node.threshold
    if not early.any():
        return _pair(node.after, times)
    if early.all():
        return _pair(node.before, times)
    values, errors = np.empty_like(times), np.empty_like(times)
    for mask, part in ((early, node.before), (~early, node.after)):
        values[mask], errors[mask] = _pair(part, times[mask])
    return values, errors


@filtered_of.rule(tree.Periodic)
def _(node: tree.Periodic, times: FloatArray) -> Pair:
    return _pair(node.body, np.mod(times - 1, node.period) + 1)


@filtered_of.rule(tree.Bounded)
def _(node: tree.Bounded, times: FloatArray) -> Pair:
    return _pair(node.operand, times)


@filtered_of.rule(tree.Opaque)
def _(node: tree.Opaque, times: FloatArray) -> Pair:
    # What a callable returns for one t is the number itself; for an array it may round otherwise.
    block = called_on_block(node, times) if times.size > 1 else None
    return (node.block(times), 0.0) if block is None else (block, np.abs(block) * _LIBRARY)


def _worst_relative_error(node: Schedule, part: Schedule, last: float) -> float:
    """The largest relative error of a part over t = 1, ..., last: what a running sum of it can be off."""
    done, worst = node.known_facts.get("relative error", (0, 0.0))
    for begin in range(done + 1, int(last) + 1, _BLOCK):
        end = min(begin + _BLOCK, int(last) + 1)
        values, errors = filtered(part, np.arange(begin, end, dtype=np.float64))
        worst = max(worst, float(np.max(errors / np.abs(values))))
        node.known_facts["relative error"] = (end - 1, worst)
    return worst


@filtered_of.rule(tree.WeightShare)
def _(node: tree.WeightShare, times: FloatArray) -> Pair:
    if times.max() > _FARTHEST_SUM:
        return np.nan, np.inf
    share = node.block(times)
    return share, share * (_SUM + 8 * _worst_relative_error(node, node.weights, float(times.max()))) + _TINY


@filtered_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta, times: FloatArray) -> Pair:
    share, error = _pair(node.complement, times)
    return 1 - share, error + _ULP


@filtered_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection, times: FloatArray) -> Pair:
    if decay_of(node) is not None:
        result = node.block(times)
        return result, np.abs(result) * 1e-13
    if times.max() > _FARTHEST_SUM:
        return np.nan, np.inf
    result = node.block(times)
    # log(1 - m) magnifies the relative error of m where m is close to 1: the factors must stay above 1/100.
    relative = _worst_relative_error(node, node.factor.complement, float(times.max()))
    relative = max(relative, _worst_relative_error(node.factor, node.factor, float(times.max())))
    return result, np.abs(result) * (_SUM + 200 * relative) + _TINY


def blocks(first: int, last: int, budget: Budget) -> Iterator[tuple[int, FloatArray]]:
    """The steps first..last in blocks: the first t and the array of t."""
    for begin in range(first, last + 1, _BLOCK):
        budget.check(begin)
        yield begin, np.arange(begin, min(begin + _BLOCK, last + 1), dtype=np.float64)


def first_not(schedule: Schedule, first: int, last: int, budget: Budget, *, zero: bool = False) -> int | None:
    """The first t of first..last with u_t <= 0 (with zero=True: u_t < 0), or None; proved for every t."""
    for begin, times in blocks(first, last, budget):
        values, errors = filtered(schedule, times)
        for index in np.flatnonzero(~(values > errors)):
            t = begin + int(index)
            budget.ask(t)
            if not values[index] < -errors[index]:
                found = sign(schedule, t)
                if found is None:
                    raise Undecided(f"no precision tells the sign at t = {t:,}")
                if found > 0 or (zero and found == 0):
                    continue
            return t
    return None


def first_rise(schedule: Schedule, first: int, last: int, budget: Budget) -> int | None:
    """The first t of first..last, first >= 2, with u_t > u_{t-1}, or None; proved for every t."""
    for begin, times in blocks(first, last, budget):
        values, errors = filtered(schedule, np.concatenate([[begin - 1.0], times]))
        steps = np.diff(values)
        margin = errors[1:] + errors[:-1] + _ULP * np.abs(steps)
        for index in np.flatnonzero(~((steps < -margin) | ((steps <= 0) & (margin == 0)))):
            t = begin + int(index)
            budget.ask(t)
            if not steps[index] > margin[index]:
                found = sign_of_step(schedule, t)
                if found is None:
                    raise Undecided(f"no precision tells whether it moves between t = {t - 1:,} and {t:,}")
                if found <= 0:
                    continue
            return t
    return None
