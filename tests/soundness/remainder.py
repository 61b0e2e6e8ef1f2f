"""The bound on what an expansion leaves out, sampled: abs(u_t - terms) <= b s(t) at steps from N on, in 512-bit balls.

Every sign and direction of a tail rests on this invariant, and a verdict shows only where it is far off. So it is asked
of every part of a schedule, of its complement and of its derivative.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from flint import arb

import generic_adam as ga
from generic_adam.errors import ScheduleError
from generic_adam.schedules.balls import Precision, ball, is_finite, value
from generic_adam.schedules.expansion import Calculus, Expansion, Unclear
from generic_adam.schedules.growth import Scale
from generic_adam.schedules.normal import derivative
from generic_adam.schedules.tree import Schedule, walk

BITS = 512
STARTS = (16, 64, 1024)
COUNTS = (2, 6)


@dataclass(frozen=True)
class Sampled:
    """One comparison.

    Attributes:
        node: the expression.
        start: N.
        t: the step.
        inside: whether the value is within the bound of the terms; None where no precision tells.
    """

    node: Schedule
    start: int
    t: int
    inside: bool | None


def at(scale: Scale, t: int) -> arb:
    """s(t), as a ball."""
    log = arb(t).log()
    exponent = t * scale.rho.log_at(BITS) + arb(scale.power) * log + arb(scale.log) * log.log()
    return (exponent + arb(scale.loglog) * log.log().log()).exp()


def is_within(found: Expansion, node: Schedule, t: int) -> bool | None:
    """True if u_t is where the expansion says; None where the balls are too wide to tell."""
    low, high = arb(0), arb(0)
    for scale, c in found.terms:
        low, high = low + ball(c.low) * at(scale, t), high + ball(c.high) * at(scale, t)
    if found.rest is not None:
        if not is_finite(found.rest.bound):
            return None
        slack = ball(found.rest.bound) * at(found.rest.scale, t)
        low, high = low - slack, high + slack
    u = ball(value(node, t))
    if not (u.is_finite() and low.is_finite() and high.is_finite()):
        return None
    if u < low or u > high:
        return False
    return True if low <= u <= high else None


def expressions(text: str) -> Iterator[Schedule]:
    """A schedule, its complement and its derivative, each with every part of it."""
    with suppress(ScheduleError, ZeroDivisionError, OverflowError):
        whole = ga.parse(text)
        yield from walk(whole)
        yield from walk(1 - whole)
        yield from walk(derivative(whole))


def sampled(text: str) -> Iterator[Sampled]:
    """Compare every part of a text's schedule with its expansions, from each N on."""
    for node in dict.fromkeys(expressions(text)):
        for start in STARTS:
            for count in COUNTS:
                with Precision(BITS), suppress(Unclear, ScheduleError):
                    found = Calculus(start, count).expand(node)
                    for t in (start, start + 1, 2 * start, 64 * start):
                        yield Sampled(node, start, t, is_within(found, node, t))
