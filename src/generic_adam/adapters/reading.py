"""What every adapter returns: the method, how long it runs, and what the theorem does not say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from generic_adam.methods import Method


class AdapterError(ValueError):
    """What cannot be read, or is no Generic Adam; the message is one line: what, where, what was expected."""


@dataclass(frozen=True)
class Reading:
    """A method read off an optimizer.

    Attributes:
        method: the sequences alpha_t, beta_t, theta_t that the optimizer runs, from t = 1.
        source: where it was read, such as "AdamW with CosineAnnealingLR".
        groups: the indices of the parameter groups it holds for.
        horizon: the number of steps after which the run ends, where the source says so.
        outside: what the optimizer does that the theorem does not cover, one sentence each: with any of it,
            no certificate of the method is one of the optimizer.
        notes: how it was read, and what is there but of no weight.
    """

    method: Method
    source: str
    groups: tuple[int, ...] = (0,)
    horizon: int | None = None
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def merge_equal(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """One reading for all parameter groups that share it, in the order of their first group."""
    merged: list[Reading] = []
    for reading in readings:
        for index, earlier in enumerate(merged):
            if replace(earlier, groups=reading.groups) == reading:
                merged[index] = replace(earlier, groups=earlier.groups + reading.groups)
                break
        else:
            merged.append(reading)
    return tuple(merged)
