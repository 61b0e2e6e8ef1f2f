"""Claims about every u_t, or every u_t up to a step: proved, refuted at a step, or left open.

The steps are cut at the joins of the schedule. On each stretch the form is asked first (`enclose`, and on a
tail an expansion); where it does not answer, growing beginnings are walked and the form is asked about the
rest. A refutation is a step at which balls say so; what nothing decides is open, with what was tried.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import sign, sign_of_step
from generic_adam.schedules.enclosure import enclose, is_defined, resolved, stretches
from generic_adam.schedules.expansion import direction, tail_sign
from generic_adam.schedules.normal import has_callable
from generic_adam.schedules.rounding import BLOCK, ULP, filtered, lost
from generic_adam.schedules.tree import FloatArray, Schedule
from generic_adam.schedules.work import Account, Spent, Undecided, Work, budget_factor, charge, note

# Beginnings of a stretch that are walked before the form is asked about the rest.
BEGINNINGS = (64, 1024, 8192, 65_536)
# A finite stretch is walked to its end up to this length.
_LONGEST_WALK = 1 << 24
_BEGINNING_OF_CALLABLE = 1 << 16
# Where a refutation is looked for beyond what is walked.
_LATEST = 1 << 61


class Inequality(Enum):
    """Inequalities that are claimed of every u_t."""

    POSITIVE = "u_t > 0"
    NOT_NEGATIVE = "u_t >= 0"
    FALLING = "u_t <= u_{t-1}"


@dataclass(frozen=True)
class Proof:
    """The outcome for a claim.

    Attributes:
        holds: True, False, or None where it is open.
        t: the first step at which it is known to be violated.
        by_form_from: the step from which on the proof is by form (1 when it needed no values).
        checked_to: the last step that was checked one by one, where it is open.
        note: what stopped the search, where it is open.
        spent: whether that was the budget.
    """

    holds: bool | None
    t: int | None = None
    by_form_from: int = 1
    checked_to: int = 0
    note: str = ""
    spent: bool = False


def every(schedule: Schedule, claim: Inequality, last: float = math.inf) -> Proof:
    """Decide a claim about u_1, u_2, ..., u_last; the answer is kept with the schedule, for the budget that it had."""
    key = claim, last, budget_factor()
    known: Proof | None = schedule.known_facts.get(key)
    if known is None:
        with Account():
            known = schedule.known_facts[key] = _decided(schedule, claim, last)
    if known.spent:
        note(known.note)
    return known


def _decided(schedule: Schedule, claim: Inequality, last: float) -> Proof:
    by_form_from = 1
    for start, stop in stretches(1, last, schedule.joins):
        try:
            proof = _on_stretch(schedule, resolved(schedule, start, stop), claim, start, stop)
        except (ScheduleError, Undecided) as open_end:
            proof = Proof(None, checked_to=start, note=str(open_end), spent=isinstance(open_end, Spent))
        if not proof.holds:
            return proof
        if proof.by_form_from != start or start > 1:
            by_form_from = proof.by_form_from
    return Proof(True, by_form_from=by_form_from)


def _on_stretch(schedule: Schedule, piece: Schedule, claim: Inequality, start: int, stop: float) -> Proof:
    first = 2 if claim is Inequality.FALLING and start == 1 else start
    if first > stop:
        return Proof(True, by_form_from=start)
    # At its first step a sequence that falls may still jump: there a join is.
    jump = claim is Inequality.FALLING and start > 1
    if jump and first_violation(schedule, claim, start, start) is not None:
        return Proof(False, start)
    if proved_by_form(piece, claim, start, stop):
        return Proof(True, by_form_from=start)
    checked = start if jump else first - 1
    for end in _ends(schedule, start, stop):
        if end > checked:
            witness = first_violation(piece, claim, checked + 1, end)
            if witness is not None:
                return Proof(False, witness)
            checked = end
        if end >= stop:
            return Proof(True, by_form_from=end + 1)
        if proved_by_form(piece, claim, end, stop):
            return Proof(True, by_form_from=end)
    found = _search_later(piece, claim, checked, stop) if piece.accepts_real_times else None
    return Proof(None, checked_to=checked) if found is None else Proof(False, found)


def _ends(schedule: Schedule, start: int, stop: float) -> list[int]:
    """The last steps of the beginnings of a stretch that are walked."""
    length = stop - start + 1
    if length <= _LONGEST_WALK:
        return [*(start + size - 1 for size in BEGINNINGS if size < length), int(stop)]
    if has_callable(schedule):
        return [start + _BEGINNING_OF_CALLABLE - 1]
    return [start + size - 1 for size in BEGINNINGS]


def proved_by_form(piece: Schedule, claim: Inequality, start: int, stop: float) -> bool:
    """Return whether the form of a schedule proves the claim on a stretch, and that every u_t there is a number."""
    if claim is Inequality.FALLING:
        return direction(piece, start, stop) in {0, -1}
    facts = enclose(piece, start, stop)
    by_range = facts.positive or (claim is Inequality.NOT_NEGATIVE and bool(facts.range.low >= 0))
    if by_range and is_defined(piece, start, stop):
        return True
    found = tail_sign(piece, start)
    if found == 1 or (claim is Inequality.NOT_NEGATIVE and found == 0):
        return True
    return _proved_by_parts(piece, claim, start, stop)


def _proved_by_parts(piece: Schedule, claim: Inequality, start: int, stop: float) -> bool:
    """Return whether the signs of the parts of a sum, a product, a power or a minimum prove that of the whole."""

    def proved(part: Schedule, of_part: Inequality = claim) -> bool:
        return proved_by_form(part, of_part, start, stop)

    match piece:
        case tree.Add(left, right):
            both = proved(left, Inequality.NOT_NEGATIVE) and proved(right, Inequality.NOT_NEGATIVE)
            return both and (claim is Inequality.NOT_NEGATIVE or proved(left) or proved(right))
        case tree.Minimum(left, right) | tree.Multiply(left, right):
            return proved(left) and proved(right)
        case tree.Divide(left, right):
            return proved(left) and proved(right, Inequality.POSITIVE)
        case tree.Power(base, tree.Constant()) | tree.Function("sqrt", base):
            return proved(base, Inequality.POSITIVE)
        case _:
            return False


def _search_later(piece: Schedule, claim: Inequality, checked: int, stop: float) -> int | None:
    """Return a step that refutes a claim, and whose predecessor does not: a decay without an end is negative late."""
    good, late = checked, int(min(2 * checked, stop))
    while not _is_violated(piece, claim, late):
        if late >= min(stop, _LATEST):
            return None
        good, late = late, int(min(2 * late, stop))
    steps = range(good, late + 1)
    return steps[bisect_left(steps, True, key=lambda t: _is_violated(piece, claim, t) is True)]


def blocks(first: int, last: int) -> Iterator[tuple[int, FloatArray]]:
    """The steps first..last in blocks: the first t and the array of t."""
    for begin in range(first, last + 1, BLOCK):
        end = min(begin + BLOCK, last + 1)
        charge(Work.WALKED, end - begin, begin)
        # Beyond 2^53 each t is rounded by itself: np.arange would add up a rounded step.
        steps = np.arange(begin, end) if end < 2**53 else list(range(begin, end))
        yield begin, np.array(steps, dtype=np.float64)


def _is_violated(schedule: Schedule, claim: Inequality, t: int) -> bool | None:
    """Return whether balls refute the claim at a step; None where no precision tells."""
    found = sign_of_step(schedule, t) if claim is Inequality.FALLING else sign(schedule, t)
    if found is None:
        return None
    return found > 0 if claim is Inequality.FALLING else found < (claim is Inequality.POSITIVE)


def first_violation(schedule: Schedule, claim: Inequality, first: int, last: int) -> int | None:
    """The first t of first..last (t >= 2 for a claim about steps) that refutes a claim, or None; proved."""
    for begin, times in blocks(first, last):
        if claim is Inequality.FALLING:
            values, errors = filtered(schedule, np.concatenate([[float(begin - 1)], times]))
            after, before = values[1:], values[:-1]
            with np.errstate(invalid="ignore"):  # two infinities, with infinite errors
                values = before - after
            errors = errors[1:] + errors[:-1] + ULP * np.abs(values) + lost(values, before, after)
        else:
            values, errors = filtered(schedule, times)
        holds = (values > errors) | ((values == 0) & (errors == 0) & (claim is not Inequality.POSITIVE))
        for index in np.flatnonzero(~holds):
            t = begin + int(index)
            charge(Work.ASKED, 1, t)
            violated = _is_violated(schedule, claim, t)
            if violated is None and values[index] < -errors[index]:
                violated = True  # a running sum too long for balls
            if violated is None:
                raise Undecided(f"no precision tells whether {claim.value} at t = {t:,}")
            if violated:
                return t
    return None
