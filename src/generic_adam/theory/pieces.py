"""Cuts a schedule into pieces on which it is one smooth expression.

A join, a maximum, a minimum and an absolute value change their expression at a whole t that can be found;
between such t the schedule is analytic, and a sum over a piece can be had from an integral.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from generic_adam.schedules import (
    Add,
    BiasCorrection,
    Constant,
    Divide,
    FloatArray,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Schedule,
    Subtract,
    Time,
    WeightedTheta,
    WeightShare,
    as_schedule,
)
from generic_adam.theory.smooth_share import SmoothShare

_SAMPLES = 2048
_LATE = 1_000_000
_OSCILLATING = frozenset({"sin", "cos"})
_SMOOTH_PARTS = (
    Constant,
    Time,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Negate,
    Function,
    Maximum,
    Minimum,
    Join,
)


@dataclass(frozen=True)
class Piece:
    """On t = first..last the schedule is `expression`, which has no kink there."""

    first: int
    last: int
    expression: Schedule


def is_piecewise_smooth(schedule: Schedule) -> bool:
    """Whether `smooth_pieces` can take the schedule apart: it holds no callable and does not oscillate."""
    if isinstance(schedule, Function) and schedule.name in _OSCILLATING:
        return False
    if isinstance(schedule, WeightedTheta | WeightShare):
        return SmoothShare.serves(schedule.weights)
    if isinstance(schedule, BiasCorrection):
        return schedule.accepts_real_times
    return isinstance(schedule, _SMOOTH_PARTS) and all(map(is_piecewise_smooth, schedule.children))


def smooth_pieces(schedule: Schedule, first: int, last: int) -> list[Piece]:
    """Cut the steps first..last at every kink of the schedule.

    Args:
      schedule: for which `is_piecewise_smooth` is true.
      first: the first step, t >= 1.
      last: the last step.
    """
    smoothed = _with_smooth_shares(schedule)
    cuts = sorted({cut for cut in _cuts(smoothed, first, last) if first < cut <= last})
    starts = [first, *cuts]
    stops = [*(cut - 1 for cut in cuts), last]
    return [Piece(a, b, _resolved(smoothed, a, b)) for a, b in zip(starts, stops, strict=True)]


def late_value(schedule: Schedule, t: int) -> float:
    """Return u_t without running a sum of t terms, where the schedule is smooth."""
    if t < _LATE or schedule.accepts_real_times or not is_piecewise_smooth(schedule):
        return schedule(t)
    return smooth_pieces(schedule, t, t)[0].expression(t)


def _with_smooth_shares(node: Schedule) -> Schedule:
    if isinstance(node, WeightShare):
        return SmoothShare(node.weights, node.initial)
    if isinstance(node, WeightedTheta):
        return Subtract(as_schedule(1), SmoothShare(node.weights, node.initial))
    return _rebuilt(node, [_with_smooth_shares(child) for child in node.children])


def _rebuilt(node: Schedule, children: list[Schedule]) -> Schedule:
    """The same node over other children; the other fields stay."""
    if not children or all(new is old for new, old in zip(children, node.children, strict=True)):
        return node
    replacements = iter(children)
    values = (getattr(node, field.name) for field in fields(node))  # type: ignore[arg-type]
    return type(node)(*(next(replacements) if isinstance(value, Schedule) else value for value in values))


def _cuts(node: Schedule, first: int, last: int) -> Iterator[int]:
    for child in node.children:
        yield from _cuts(child, first, last)
    if isinstance(node, Join):
        yield node.threshold
    elif isinstance(node, Maximum | Minimum):
        yield from _sign_changes(node.left - node.right, first, last)
    elif isinstance(node, Function) and node.name == "abs":
        yield from _sign_changes(node.argument, first, last)


def _sign_changes(difference: Schedule, first: int, last: int) -> Iterator[int]:
    """Whole t at which the sign differs from that at t - 1, found between samples that differ."""
    samples = _sample_steps(first, last)
    positive = difference.at(samples) > 0
    for index in np.flatnonzero(positive[1:] != positive[:-1]):
        low, high, sign = int(samples[index]), int(samples[index + 1]), bool(positive[index])
        while high - low > 1:
            middle = (low + high) // 2
            if bool(difference.at([float(middle)])[0] > 0) == sign:
                low = middle
            else:
                high = middle
        yield high


def _sample_steps(first: int, last: int) -> FloatArray:
    """Whole steps from first to last, dense at both ends and evenly spread in logarithm between."""
    near = np.arange(first, min(first + 64, last) + 1, dtype=np.float64)
    spread = np.geomspace(first, last, _SAMPLES)
    return np.unique(np.clip(np.floor(np.concatenate([near, spread, [float(last)]])), first, last))


def _resolved(node: Schedule, first: int, last: int) -> Schedule:
    """The expression that the node is on first..last, with every join and kink replaced by its branch."""
    middle = float((first + last) // 2)
    if isinstance(node, Join):
        return _resolved(node.before if last < node.threshold else node.after, first, last)
    if isinstance(node, Maximum | Minimum):
        left_is_larger = bool(node.left.at([middle])[0] > node.right.at([middle])[0])
        chosen = node.left if left_is_larger == isinstance(node, Maximum) else node.right
        return _resolved(chosen, first, last)
    if isinstance(node, Function) and node.name == "abs":
        inner = _resolved(node.argument, first, last)
        return inner if inner.at([middle])[0] > 0 else -inner
    return _rebuilt(node, [_resolved(child, first, last) for child in node.children])
