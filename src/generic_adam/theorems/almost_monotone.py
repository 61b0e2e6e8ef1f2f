r"""C0 of (R3): the least constant with chi_t <= C0 min_{i<=t} chi_i, over all t or up to a horizon."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from generic_adam.schedules import BiasCorrection, Schedule, WeightShare, joins
from generic_adam.schedules.elasticity import Elasticity, of_power
from generic_adam.schedules.enclosure import enclose, share_times_t
from generic_adam.schedules.factors import collected, factors
from generic_adam.theorems.pieces import is_piecewise_smooth, kinks, late_value

# A beginning of this length is computed step by step: it makes the bound for the tail tighter.
_BEGINNING = 1023
_CLOSE_ENOUGH = 1e-6
_LONGEST_BEGINNING = 1 << 24
# A horizon up to this is walked to its end, so that C0 is exact, even where the form has a bound.
_EVERY_STEP = 1 << 17
_BLOCK = 1 << 16
# Two values of a constant stretch, each good to a few ulp, differ by no more.
_ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class AlmostMonotone:
    """An upper bound on C0 = sup_t chi_t / min_{i<=t} chi_i, and whether it is C0 itself.

    Attributes:
        constant: the bound; infinite where none was found.
        exact: whether it is attained (up to rounding).
    """

    constant: float
    exact: bool


def almost_monotone(chi: Schedule, last: float = math.inf) -> AlmostMonotone:
    """C0 of a positive sequence over t = 1, 2, ..., last."""
    chi = collected(chi)
    tail_start = max([1, *(cut for cut in joins(chi) if cut <= last)])
    best = AlmostMonotone(math.inf, False)
    if tail_start > _LONGEST_BEGINNING:
        return best
    running = _Running()
    done = 0
    for start in _starts(chi, tail_start, last):
        running.extend(chi, done + 1, start)
        done = start
        found = _with_tail(running, chi, start, last)
        if found.constant < best.constant or (found.exact and found.constant <= best.constant):
            best = found
        if best.exact or best.constant <= running.constant * (1 + _CLOSE_ENOUGH):
            return best
    affordable = _EVERY_STEP if math.isfinite(best.constant) else _LONGEST_BEGINNING
    if last <= affordable:
        running.extend(chi, done + 1, int(last))
        return AlmostMonotone(running.constant, True)
    return best


def _starts(chi: Schedule, tail_start: int, last: float) -> Iterator[int]:
    """Steps from which the form is tried: after the last join, then after the last kink or a beginning."""
    found = kinks(chi, tail_start, int(min(last, _LONGEST_BEGINNING))) if is_piecewise_smooth(chi) else []
    nearby = bool(found) and found[-1] <= tail_start + _EVERY_STEP
    if not (nearby or _has_recursion(chi)):  # a running sum or product settles first
        yield tail_start
    # At the kink itself the two branches may be equal; a step later one is clearly ahead.
    later = max([tail_start + _BEGINNING, *(kink + 1 for kink in found)])
    if later < last:
        yield later


def _has_recursion(schedule: Schedule) -> bool:
    return isinstance(schedule, BiasCorrection | WeightShare) or any(map(_has_recursion, schedule.children))


class _Running:
    """min and C0 over the steps seen so far."""

    def __init__(self) -> None:
        self.least = math.inf
        self.constant = 1.0

    def extend(self, chi: Schedule, first: int, last: int) -> None:
        for begin in range(first, last + 1, _BLOCK):
            values = chi.values(begin, min(begin + _BLOCK, last + 1))
            floors = np.minimum(np.minimum.accumulate(values), self.least)
            with np.errstate(all="ignore"):
                # 0/0 is a falling sequence that has rounded to 0: it rises no more.
                ratios = np.nan_to_num(values / floors, nan=1.0, posinf=math.inf)
            rise = float(np.max(ratios))
            if rise > 1 + _ROUNDING:  # else it is a constant stretch, whose values differ by rounding
                self.constant = max(self.constant, rise)
            self.least = float(floors[-1])


def _with_tail(running: _Running, chi: Schedule, start: int, last: float) -> AlmostMonotone:
    """C0 of the steps up to `start`, seen one by one, and of the later ones, known by their form."""
    facts = enclose(chi, start, last)
    if facts.direction is not None and facts.direction <= 0:
        return AlmostMonotone(running.constant, True)
    candidates = [math.inf]
    if facts.direction == 1 and math.isfinite(last):
        candidates.append(late_value(chi, int(last)) / running.least)
        return AlmostMonotone(max(running.constant, min(candidates)), True)
    if facts.range.low > 0:
        candidates.append(facts.range.high / min(facts.range.low, running.least))
    factor = _rise(chi, start, last)
    if math.isfinite(factor):
        candidates.append(max(factor, factor * chi(start) / running.least))
    return AlmostMonotone(max(running.constant, min(candidates)), False)


def _rise(chi: Schedule, start: int, last: float) -> float:
    """A bound on chi_t / chi_s for start <= s <= t: a falling part times factors between two constants."""
    smooth: Elasticity = of_power(Fraction(0))
    bound = 1.0
    for factor, exponent in factors(chi).items():
        facts = enclose(factor, start, last)
        swing = facts.range
        if isinstance(factor, WeightShare) and (scaled := share_times_t(factor, start)) is not None:
            smooth, swing = smooth + of_power(-exponent), scaled
        elif facts.elasticity is not None and facts.positive:
            smooth = smooth + facts.elasticity.scaled(exponent)
            continue
        if swing.low <= 0 or math.isinf(swing.high):
            return math.inf
        bound *= (swing.high / swing.low) ** abs(float(exponent))
    return bound if smooth.sign in {0, -1} else math.inf
