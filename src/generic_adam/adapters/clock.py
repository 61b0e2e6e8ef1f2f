"""A scheduler's time, and the pieces of learning rates over it: stages, ramps, stairs, cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from generic_adam.errors import OptimizerError, ScheduleError, shown
from generic_adam.methods.shapes import Shape, curve
from generic_adam.schedules import Schedule, as_schedule, join, periodic, t, tree
from generic_adam.schedules.work import Work, allow

PAGE = 4096
"""As many counts are asked for at once, at most."""
_MOST = 64


@dataclass(frozen=True)
class Clock:
    """Step t = 1, 2, ... runs after k_t = floor((t - 1) / every) - start steps of the scheduler.

    Attributes:
        every: optimizer steps for each step of the scheduler (1, or the length of an epoch).
        start: scheduler steps taken before the phase this clock belongs to began (`SequentialLR`).
    """

    every: int = 1
    start: int = 0

    def __post_init__(self) -> None:
        if type(self.every) is not int or self.every < 1:
            raise OptimizerError(f"steps_per_scheduler_step is {shown(self.every)}; expected a whole number from 1 on")

    @property
    def count(self) -> Schedule:
        """k_t."""
        if self.every == 1:
            return t - (1 + self.start)
        return (t - periodic(t, self.every)) / self.every - self.start

    def first_step(self, count: int) -> int:
        """Return the first t with k_t >= count."""
        return (count + self.start) * self.every + 1

    def later(self, count: int) -> Clock:
        """Return the clock of a phase that begins `count` scheduler steps after this one."""
        return Clock(self.every, self.start + count)

    def staircase(self, factor: float, size: int = 1) -> Schedule:
        """factor^floor(k_t / size), as a geometric sequence times a factor that repeats.

        Written so, its order of growth can be read off: gamma^floor(u) = gamma^u gamma^-(u - floor(u)).
        """
        if not factor > 0:
            raise ScheduleError(f"stairs by a factor of {factor} have no closed form")
        length, base = size * self.every, as_schedule(factor)
        if length == 1:
            return base**self.count
        elapsed = (t - self.first_step(0)) / length
        return base**elapsed * self._cycle(length, lambda position: base ** (-position / length))

    def repeating(self, period: int, body: Callable[[Schedule], Schedule]) -> Schedule:
        """body(k_t mod period)."""
        if self.every == 1:
            return self._cycle(period, body)
        # A phase begins at a multiple of `every`, so the step within an epoch does not depend on the phase.
        within = periodic(t - 1, self.every)
        return self._cycle(period * self.every, lambda position: body((position - within) / self.every))

    def _cycle(self, length: int, body: Callable[[Schedule], Schedule]) -> Schedule:
        """body(j) with j = 0, ..., length - 1 again and again, j = 0 at the first step of the phase."""
        # The node repeats from t = 1 on; a phase that begins elsewhere is the same cycle, entered in its
        # middle.
        entered = (self.first_step(0) - 1) % length
        rotated = join(body(t + (length - entered - 1)), entered + 1, body(t - (entered + 1)))
        return periodic(rotated, length)


def length_of_epoch(what: str, every: int | None) -> int:
    """Return the optimizer steps of an epoch, which have to be told."""
    if every is None:
        raise OptimizerError(f"{what}: expected the optimizer steps of an epoch (--every N, steps_per_scheduler_step)")
    return every


Part = float | Schedule | Callable[[Clock], Schedule]
"""A number or a schedule of t; or a function of the clock that starts where the part does."""


def stages(clock: Clock, parts: Iterable[tuple[int, Part]], tail: Part) -> Schedule:
    """Join the parts, each while k_t is below its end, and the tail after them."""
    begun, start = [], 0
    for number, (end, part) in enumerate(parts):
        if number > _MOST:
            raise ScheduleError(f"more than {_MOST} stages are no closed form to look at")
        if end > start:
            begun.append((clock.first_step(end), _begin(part, clock.later(start))))
            start = end
    result = _begin(tail, clock.later(start))
    for threshold, before in reversed(begun):
        result = join(_until(before, threshold), threshold, result)
    return result


def _until(schedule: Schedule, threshold: int) -> Schedule:
    """Drop the later phases of a join that are never reached."""
    if isinstance(schedule, tree.Join) and schedule.threshold >= threshold:
        return _until(schedule.before, threshold)
    return schedule


def _begin(part: Part, clock: Clock) -> Schedule:
    return as_schedule(part) if isinstance(part, Schedule) or not callable(part) else part(clock)


def ramp(
    first: float, last: float, length: float, shape: str | Shape = "linear", ahead: int = 0
) -> Callable[[Clock], Schedule]:
    """Return a part: the curve over its own counts, `ahead` of them on."""
    return lambda clock: curve(first, last, clock.count + ahead, length, shape)


def scaled(base: float, factor: Schedule) -> Schedule:
    """Return base * factor, multiplied out over the phases of the factor."""
    if isinstance(factor, tree.Join):
        return join(scaled(base, factor.before), factor.threshold, scaled(base, factor.after))
    return base * factor


def follow(schedule: Schedule, clock: Clock) -> Schedule:
    """Return the schedule whose value at optimizer step t is schedule(k_t + 1): its first before any step."""
    if clock == Clock():
        return schedule
    if not all(node.pointwise or isinstance(node, tree.Join) for node in tree.walk(schedule)):
        raise ScheduleError(f"{schedule} cannot be moved to another clock")

    def moved(node: Schedule) -> Schedule:
        if isinstance(node, tree.Time):
            return clock.count + 1
        if isinstance(node, tree.Join):
            return stages(clock, [(node.threshold - 1, moved(node.before))], moved(node.after))
        return tree.rebuild(node, moved)

    return moved(schedule)


@dataclass(frozen=True)
class Called:
    """u_t = value(k_t), for `tree.Opaque`: each count is asked for once, however often t comes."""

    values: Callable[[npt.NDArray[np.int64]], Any]
    clock: Clock = Clock()
    _pages: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict, init=False, compare=False)

    def __call__(self, time: npt.ArrayLike) -> float | npt.NDArray[np.float64]:
        """One value, or an array of them."""
        counts = (np.asarray(time).astype(np.int64) - 1) // self.clock.every - self.clock.start
        numbers, found = counts // PAGE, np.empty(counts.shape)
        for number in np.unique(numbers).tolist():
            allow(Work.REPLAYED, number * PAGE, number * PAGE)
            here = numbers == number
            page = self._pages.setdefault(number, np.full(PAGE, np.nan))
            inside = counts[here] % PAGE
            missing = np.unique(inside[np.isnan(page[inside])])
            if missing.size:
                page[missing] = self.values(missing + number * PAGE)
            found[here] = page[inside]
        return found if found.ndim else float(found)
