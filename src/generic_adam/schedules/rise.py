r"""C0 of (R3): the least constant with u_t <= C0 min_{i<=t} u_i, over all t or up to a horizon.

The steps are cut at joins and where a maximum or minimum changes sides. Where the form says that u rises or
falls on a stretch, its ends tell all; elsewhere steps are walked, and a bound by form takes over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb, fmpq

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.balls import NAN, Number, Precision, above, ball, below, number, value
from generic_adam.schedules.enclosure import (
    FLAT,
    collected,
    enclose,
    factors,
    settled,
    share_times_t,
    stretches,
)
from generic_adam.schedules.expansion import direction
from generic_adam.schedules.prove import BEGINNINGS, blocks
from generic_adam.schedules.ranges import ONE, point
from generic_adam.schedules.rounding import filtered
from generic_adam.schedules.tree import Schedule, contains
from generic_adam.schedules.work import Account, Spent, Undecided, Work, budget_factor, charge, note

# A stretch that no form bounds is walked to its end up to this length; up to the shorter one in any case.
_LONGEST_WALK = 1 << 24
_EVERY_STEP = 1 << 17
# The last one is for a warm-up of 300,000 steps, after which a maximum has its side.
_BEGINNINGS = (*BEGINNINGS, 1 << 20)
_SOON = 1024
_CLOSE_ENOUGH = 1e-6
# With running sums, whose values cost as many steps in balls, this is close enough.
_ABOUT = 1e-2


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
                _follow(running, chi, start, stop)
    except (ScheduleError, Undecided) as unknown:
        return Rise(math.inf, False, str(unknown), isinstance(unknown, Spent))
    constant = above(running.constant)
    return Rise(constant, running.exact, "" if math.isfinite(constant) else "it exceeds the largest double")


def _follow(running: _Running, schedule: Schedule, start: int, stop: float) -> None:
    piece = schedule if start == stop else collected(settled(schedule, start, stop), start, stop)
    close = _ABOUT if contains(piece, tree.OfWeights, tree.BiasCorrection) else _CLOSE_ENOUGH
    if _by_direction(running, schedule, piece, start, stop):
        return
    length, done = stop - start + 1, start - 1
    best: arb | None = None
    for size in _BEGINNINGS:
        if size <= length <= _SOON:
            continue  # walking it to its end is quicker than another proof
        end = int(min(start + size - 1, stop))
        running.walk(piece, done + 1, end)
        done = end
        piece = collected(settled(schedule, end, stop), end, stop)  # later, more sides of maxima are known
        if end >= stop or _by_direction(running, schedule, piece, end, stop):
            return
        found = _bound(running, schedule, piece, end, stop)
        if found is not None and (best is None or found < best):
            best = found
            if best <= running.constant * (1 + close):
                break
    if length <= (_LONGEST_WALK if best is None else _EVERY_STEP):
        running.walk(piece, done + 1, int(stop))
        return
    if best is None:
        raise Undecided("no form bounds it, and it is too long to walk")
    running.exact = False
    running.constant = max(running.constant, best)
    # What comes later is compared with the least value, which the stretch may have lowered.
    low = enclose(piece, done, stop).range.low
    if math.isfinite(stop) and not low > 0:
        raise Undecided("no form bounds it from below")
    running.fall_to(low)


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


def _bound(running: _Running, schedule: Schedule, piece: Schedule, start: int, stop: float) -> arb | None:
    """A bound on u_t / min u_i for the steps after `start`: by range, or factor by factor."""
    bounds = enclose(piece, start, stop).range
    found: list[arb] = []
    if running.least is None:
        return None
    if bounds.low > 0 and bounds.is_finite:
        found.append((bounds.high / min(ball(bounds.low).lower(), running.least)).upper())
    factor = _rise_of_factors(piece, start, stop)
    now = value(schedule, start)
    if factor is not None and now > 0:
        found.append(max(factor, (factor * now / running.least).upper()))
    return min(found) if found else None


def _rise_of_factors(piece: Schedule, start: int, stop: float) -> arb | None:
    """A bound on u_t / u_s for start <= s <= t: a falling part times factors between two constants."""
    smooth, bound = FLAT, ONE
    for factor, exponent in factors(piece, start, stop).items():
        facts = enclose(factor, start, stop)
        swing = facts.range
        scaled = share_times_t(factor, start) if isinstance(factor, tree.WeightShare) else None
        if scaled is not None:
            smooth, swing = smooth - point(number(exponent)), scaled
        elif facts.elasticity is not None and facts.positive:
            smooth = smooth + facts.elasticity * point(number(exponent))
            continue
        if not (swing.low > 0 and swing.is_finite):
            return None
        bound = bound * (swing / swing) ** number(abs(exponent))
    return ball(bound.high).upper() if smooth.trend in {0, -1} else None
