"""Decide a claim about every t: the beginning by its values, the tail by its form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from generic_adam.schedules import FloatArray, Schedule, ScheduleError, has_callable, joins
from generic_adam.schedules.enclosure import Enclosure, enclose
from generic_adam.theorems.verdicts import Status

# A stretch is tried by form first; where that is not enough, this many of its steps are checked one by one
# before the form is asked again about the rest.
_CHECKED = (16, 256, 4096, 65_536)
# A finite stretch that no form decides is checked to its end when it is not longer than this.
_LONGEST_CHECKED = 1 << 24
_CHECKED_OF_CALLABLE = 1 << 16


@dataclass(frozen=True)
class Claim:
    """A statement about every u_t of a schedule.

    Attributes:
        by_form: whether facts about a stretch of t prove the statement there.
        violation: the index of the first value that refutes it, or None. It is given u_t on consecutive steps
            and the least value before them (None at t = 1), and may use what is known of the sign by form.
    """

    by_form: Callable[[Enclosure], bool]
    violation: Callable[[FloatArray, float | None, Enclosure], int | None]


@dataclass(frozen=True)
class Finding:
    """The outcome: a proof, a refutation at a step, or neither.

    Attributes:
        status: holds, fails or undecided.
        witness: the step that refutes the claim.
        by_form_from: the step from which the proof is by form (1 when it needed no values).
        checked_to: the last step checked by its value, when undecided.
        note: what stopped the check, when undecided.
    """

    status: Status
    witness: int | None = None
    by_form_from: int = 1
    checked_to: int = 0
    note: str = ""


def examine(schedule: Schedule, claim: Claim, last: float = math.inf) -> Finding:
    """Decide a claim about u_1, u_2, ..., u_last.

    The steps are cut at the schedule's joins. On each stretch the form is asked first; where it does not
    answer, growing beginnings of it are checked by their values and the form is asked about the rest.
    """
    starts = [1, *(cut for cut in joins(schedule) if cut <= last)]
    stops: list[float] = [*(start - 1.0 for start in starts[1:]), last]
    by_form_from = 1
    for start, stop in zip(starts, stops, strict=True):
        finding = _examine_stretch(schedule, claim, start, stop)
        if finding.status is not Status.HOLDS:
            return finding
        if finding.by_form_from != start or start > 1:
            by_form_from = finding.by_form_from
    return Finding(Status.HOLDS, by_form_from=by_form_from)


def _examine_stretch(schedule: Schedule, claim: Claim, start: int, stop: float) -> Finding:
    opaque = has_callable(schedule)
    try:
        facts = enclose(schedule, start, stop)
        witness = _first_violation(schedule, claim, start, start, facts)
        if witness is not None:
            return _refuted(schedule, claim, witness, facts)
        if claim.by_form(facts):
            return Finding(Status.HOLDS, by_form_from=start)
        checked = start
        for size in _sizes(stop - start + 1, opaque):
            end = int(min(start + size - 1, stop))
            witness = _first_violation(schedule, claim, checked, end, facts)
            if witness is not None:
                return _refuted(schedule, claim, witness, facts)
            checked = end
            if end >= stop:
                return Finding(Status.HOLDS, by_form_from=end + 1)
            if claim.by_form(enclose(schedule, end, stop)):
                return Finding(Status.HOLDS, by_form_from=end)
    except ScheduleError as error:
        return Finding(Status.UNDECIDED, checked_to=start, note=str(error))
    return _search_later(schedule, claim, checked, stop, facts)


def _refuted(schedule: Schedule, claim: Claim, witness: int, facts: Enclosure) -> Finding:
    alone = claim.violation(schedule.values(witness, witness + 1), None, facts)
    if alone is None and _is_rounding(schedule, witness):
        note = f"the values at t = {witness - 1} and {witness} differ by no more than rounding"
        return Finding(Status.UNDECIDED, checked_to=witness - 1, note=note)
    return Finding(Status.FAILS, witness)


def _sizes(length: float, opaque: bool) -> list[int]:
    if length <= _LONGEST_CHECKED:
        return [*(size for size in _CHECKED if size < length), int(length)]
    return [_CHECKED_OF_CALLABLE] if opaque else list(_CHECKED)


def _first_violation(schedule: Schedule, claim: Claim, first: int, last: int, facts: Enclosure) -> int | None:
    """The first step from first to last that refutes the claim, in blocks so that memory stays small."""
    block = 1 << 16
    before = float(schedule.values(first - 1, first)[0]) if first > 1 else None
    for begin in range(first, last + 1, block):
        values = schedule.values(begin, min(begin + block, last + 1))
        found = claim.violation(values, before, facts)
        if found is not None:
            return begin + found
        # Each step may rise by its rounding; many steps together may not.
        before = float(values.min() if before is None else min(before, values.min()))
    return None


def _is_rounding(schedule: Schedule, t: int) -> bool:
    """Whether u_{t-1} and u_t cannot be told apart: a rise between them may be rounding only."""
    if t < 2:
        return False
    before, now = enclose(schedule, t - 1, t - 1).range, enclose(schedule, t, t).range
    return (
        math.isfinite(before.high)
        and math.isfinite(now.low)
        and now.low <= before.high
        and before.low <= now.high
    )


def _search_later(schedule: Schedule, claim: Claim, checked: int, stop: float, facts: Enclosure) -> Finding:
    """No proof: look for a refutation at later steps, spread evenly on a logarithmic scale."""
    if schedule.accepts_real_times and not has_callable(schedule):
        for t in np.unique(np.geomspace(checked, min(stop, 1e12), 200).astype(np.int64)).tolist():
            values = schedule.at([float(t), float(t + 1)])
            if claim.violation(values[1:], float(values[0]), facts) is not None:
                finding = _refuted(schedule, claim, t + 1, facts)
                if finding.status is Status.FAILS and not _is_cancellation(schedule, claim, t + 1, facts):
                    return finding
    return Finding(Status.UNDECIDED, checked_to=checked)


def _is_cancellation(schedule: Schedule, claim: Claim, t: int, facts: Enclosure) -> bool:
    """Whether u_t refutes the claim by itself, and yet its rounding leaves room for a number that does not.

    Far out, differences such as sqrt(t^2 + 1) - t, which is positive, are 0 in floats.
    """

    def refutes(value: float) -> bool:
        return claim.violation(np.array([value]), None, facts) is not None

    if not refutes(float(schedule.values(t, t + 1)[0])):
        return False
    bounds = enclose(schedule, t, t).range
    return not (refutes(bounds.low) and refutes(bounds.high) and bounds.high - bounds.low < 0.5)
