"""A scheduler's time: how often it has been stepped before step t, and schedules of that count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generic_adam.errors import OptimizerError
from generic_adam.schedules import Schedule, as_schedule, join, periodic, t, tree

# What cannot be moved to another clock: its value at t rests on other t, or on code.
_FIXED = (tree.OfWeights, tree.BiasCorrection, tree.Periodic, tree.Bounded, tree.Opaque)


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
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise OptimizerError(
                f"steps_per_scheduler_step must be a whole number of at least 1, got {self.every!r}"
            )

    @property
    def count(self) -> Schedule:
        """k_t."""
        if self.every == 1:
            return t - (1 + self.start)
        return (t - periodic(t, self.every)) / self.every - self.start

    def first_step(self, count: int) -> int:
        """The first t with k_t >= count."""
        return (count + self.start) * self.every + 1

    def later(self, count: int) -> Clock:
        """The clock of a phase that begins `count` scheduler steps after this one."""
        return Clock(self.every, self.start + count)

    def switch(self, before: object, count: int, after: object) -> Schedule:
        """`before` while k_t < count, `after` from then on."""
        threshold, early = self.first_step(count), as_schedule(before)
        while isinstance(early, tree.Join) and early.threshold >= threshold:
            early = early.before  # its later phase would never be reached
        return join(early, threshold, after)

    def staircase(self, factor: float, size: int = 1) -> Schedule:
        """factor^floor(k_t / size), as a geometric sequence times a factor that repeats.

        Written so, its order of growth can be read off: gamma^floor(u) = gamma^u gamma^-(u - floor(u)).
        """
        length = size * self.every
        base = as_schedule(factor)
        if length == 1:
            return base**self.count
        elapsed = (t - self.first_step(0)) / length
        return base**elapsed * self.repeating_steps(length, lambda position: base ** (-position / length))

    def repeating(self, period: int, body: Callable[[Schedule], Schedule]) -> Schedule:
        """body(k_t mod period)."""
        every = self.every
        if every == 1:
            return self.repeating_steps(period, body)
        # A phase begins at a multiple of `every`, so the step within an epoch does not depend on the phase.
        within = periodic(t - 1, every)
        return self.repeating_steps(period * every, lambda position: body((position - within) / every))

    def repeating_steps(self, length: int, body: Callable[[Schedule], Schedule]) -> Schedule:
        """body(j) with j = 0, ..., length - 1 again and again, j = 0 at the first step of the phase."""
        # The node repeats from t = 1 on; a phase that begins elsewhere is the same cycle, entered in its
        # middle.
        entered = (self.first_step(0) - 1) % length
        rotated = join(body(t + (length - entered - 1)), entered + 1, body(t - (entered + 1)))
        return periodic(rotated, length)


def follow(schedule: Schedule, clock: Clock) -> Schedule | None:
    """The schedule whose value at optimizer step t is schedule(k_t + 1): its first before any scheduler step.

    None where the form does not allow it: running sums, periods and callables, once the clock is not t
    itself.
    """
    if clock == Clock():
        return schedule
    if tree.contains(schedule, *_FIXED):
        return None

    def moved(node: Schedule) -> Schedule:
        if isinstance(node, tree.Time):
            return clock.count + 1
        if isinstance(node, tree.Join):
            return clock.switch(moved(node.before), node.threshold - 1, moved(node.after))
        return tree.rebuild(node, moved)

    return moved(schedule)


def between(start: float, end: float, x: Schedule) -> Schedule:
    """`start` where x = 0, `end` where x = 1, in a straight line."""
    first, last = as_schedule(start), as_schedule(end)
    return first + (last - first) * x if start <= end else first - (first - last) * x


def scaled(base: float, factor: Schedule) -> Schedule:
    """base * factor, multiplied out over the phases of the factor."""
    if isinstance(factor, tree.Join):
        return join(scaled(base, factor.before), factor.threshold, scaled(base, factor.after))
    return base * factor
