"""Claims about every u_t, or every u_t up to a step: proved, refuted at a step, or left open; and C0 of (R3).

The steps are cut at the joins of the schedule. On each stretch the form is asked first (`enclose`, and on a
tail an expansion); where it does not answer, growing beginnings are walked and the form is asked about the
rest. A refutation is a step at which balls say so; what nothing decides is open, with what was tried.

C0 is the least constant with u_t <= C0 min_{i<=t} u_i. On a stretch where u rises or falls its ends tell all; elsewhere
steps are walked, and on the last stretch an expansion takes over.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import NAN, Number, Precision, above, ball, below, sign, sign_of_step, value
from generic_adam.schedules.enclosure import collected, enclose, is_defined, resolved, stretches
from generic_adam.schedules.expansion import direction, tail_rise, tail_sign
from generic_adam.schedules.normal import has_callable
from generic_adam.schedules.rounding import BLOCK, ULP, filtered, lost
from generic_adam.schedules.tree import FloatArray, Schedule, contains
from generic_adam.schedules.work import Account, Spent, Undecided, Work, budget_factor, charge, note

# Beginnings of a stretch that are walked before the form is asked about the rest.
BEGINNINGS = (64, 1024, 8192, 65_536)
# A finite stretch is walked to its end up to this length.
_LONGEST_WALK = 1 << 24
_BEGINNING_OF_CALLABLE = 1 << 16
# For C0 a stretch that an expansion bounds is walked all the same up to this length; a beginning of 2^20 steps is for a
# warm-up of 300,000, after which a maximum has its side.
_EVERY_STEP = 1 << 17
_BEGINNINGS_OF_RISE = (*BEGINNINGS, 1 << 20)
_SOON = 1024
# A bound this close to C0 ends the search; with running sums, whose values cost as many steps in balls, the second.
_CLOSE_ENOUGH = 1e-6
_ABOUT = 1e-2
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
    """Return the last steps of the beginnings of a stretch that are walked."""
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
    return found == 1 or (claim is Inequality.NOT_NEGATIVE and found == 0)


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
    """Return the steps first..last in blocks: the first t and the array of t."""
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
    """Return the first t of first..last (t >= 2 for a claim about steps) that refutes a claim, or None; proved."""
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


@dataclass(frozen=True)
class Rise:
    """An upper bound on C0 = sup_t u_t / min_{i<=t} u_i, and whether it is C0 itself.

    Attributes:
        constant: the bound; infinite where none was found. Never below the truth.
        exact: whether it is attained (up to rounding).
        note: why none was found; "" where one was.
        spent: whether that was the budget.
    """

    constant: float
    exact: bool
    note: str = ""
    spent: bool = False


class _Running:
    """min u_i and C0 over the steps seen so far, as balls: neither underflows."""

    def __init__(self) -> None:
        self.least: arb | None = None
        self.constant = arb(1)
        self.exact = True

    def rise_to(self, largest: Number) -> None:
        """Values no larger than `largest`, after those that were seen."""
        if self.least is not None and not largest <= self.least:
            self.constant = max(self.constant, (largest / self.least).upper())

    def fall_to(self, smallest: Number) -> None:
        """Values no smaller than `smallest`, and no larger than one that was seen."""
        low = ball(smallest).lower()
        self.least = low if self.least is None else min(low, self.least)

    def walk(self, schedule: Schedule, first: int, last: int) -> None:
        """Every step of a stretch, in floats with error bounds; in balls where floats leave their range."""
        for begin, times in blocks(first, last):
            values, errors = filtered(schedule, times)
            with np.errstate(invalid="ignore"):  # an infinite value with an infinite error
                lowest, highest = values - errors, values + errors
            least = math.inf if self.least is None else below(self.least)
            if not (lowest.min() > 1e-290 and highest.max() < 1e290 and least > 1e-290):
                for t in range(begin, begin + len(times)):
                    charge(Work.ASKED, 1, t)
                    one = value(schedule, t)
                    if not one > 0:
                        raise Undecided(f"no precision tells how large it is at t = {t:,}")
                    self.rise_to(one)
                    self.fall_to(one)
                continue
            before = np.minimum(np.concatenate([[least], np.minimum.accumulate(lowest)[:-1]]), least)
            rise = float(np.max(highest / before)) * (1 + 1e-15)
            if rise > 1:
                self.constant = max(self.constant, arb(rise))
            self.least = arb(min(least, float(lowest.min())))


def least_rise(schedule: Schedule, last: float = math.inf) -> Rise:
    """C0 of a positive sequence over t = 1, 2, ..., last; kept with it, for the budget that it had."""
    key = "rise", last, budget_factor()
    known: Rise | None = schedule.known_facts.get(key)
    if known is None:
        known = schedule.known_facts[key] = _found(schedule, last)
    if known.spent:
        note(known.note)
    return known


def _found(schedule: Schedule, last: float) -> Rise:
    running = _Running()
    try:
        with Precision(), Account():
            chi = collected(schedule)
            for start, stop in stretches(1, last, chi.joins):
                _follow(running, chi, start, stop, to_the_end=stop == last)
    except (ScheduleError, Undecided) as unknown:
        return Rise(math.inf, False, str(unknown), isinstance(unknown, Spent))
    constant = above(running.constant)
    return Rise(constant, running.exact, "" if math.isfinite(constant) else "it exceeds the largest double")


def _follow(running: _Running, schedule: Schedule, start: int, stop: float, *, to_the_end: bool) -> None:
    piece = collected(resolved(schedule, start, stop), start, stop)
    if _by_direction(running, schedule, piece, start, stop):
        return
    close = _ABOUT if contains(piece, tree.OfWeights, tree.BiasCorrection) else _CLOSE_ENOUGH
    done, best = start - 1, arb(math.inf)
    for size in _BEGINNINGS_OF_RISE:
        if size <= stop - start + 1 <= _SOON:
            continue  # walking it to its end is quicker than another proof
        end = int(min(start + size - 1, stop))
        running.walk(schedule, done + 1, end)
        done = end
        if end >= stop or _by_direction(running, schedule, piece, end, stop):
            return
        late = tail_rise(piece, end) if to_the_end else None
        if late is not None and running.least is not None:
            best = min(best, max(late[0], (late[1] / running.least).upper()))
            if best <= running.constant * (1 + close):
                break
    if stop - start < (_EVERY_STEP if best < math.inf else _LONGEST_WALK):
        running.walk(schedule, done + 1, int(stop))
        return
    if not best < math.inf:
        raise Undecided("no form bounds it, and it is too long to walk")
    running.exact = False
    running.constant = max(running.constant, best)


def _by_direction(running: _Running, schedule: Schedule, piece: Schedule, start: int, stop: float) -> bool:
    """Take a stretch on which the form says that the sequence rises or falls."""
    trend = direction(piece, start, stop)
    if trend is None:
        return False
    first, last = value(schedule, start), NAN
    growth = piece.growth if trend > 0 and math.isinf(stop) else None
    if math.isfinite(stop):
        last = value(schedule, int(stop))
    elif trend <= 0:
        last = fmpq(0)  # nothing comes after it
    elif growth is not None and growth.trend == 0:
        last = growth.coefficient.high
    if not (first > 0 and last >= 0):
        return False
    running.rise_to(first)
    running.fall_to(first)
    (running.fall_to if trend <= 0 else running.rise_to)(last)
    return True
