"""How long a question may take: seconds of the processor, after which it is undecided."""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, Token
from typing import Self

from generic_adam.errors import ScheduleError, shown

SECONDS = 2.0
"""How long an answer may take unless said otherwise; what is left then is undecided."""
FOR_EVER = 1 / 8
"""The share of it that one question about every t has: what walking does not show soon it does not show at all."""
# So many times a walk asks balls about a step; where floats tell nothing, walking on is no use.
_MOST_QUESTIONS = 5_000


class Undecided(ScheduleError):  # noqa: N818  (an answer, not an error)
    """A question that ended without an answer; the text says why."""


def _checked(seconds: object) -> float:
    try:
        number = math.nan if isinstance(seconds, bool | str) else float(seconds)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 0:
        raise ScheduleError(f"budget is {shown(seconds)}; expected a number of seconds, 0 or more")
    return number


class Budget:
    """A limit on the seconds of work; `with` it, everything inside keeps to it (`check_time`).

    Args:
        seconds: how many; None takes those of the enclosing budget, or SECONDS. The clock starts now, and ends no
            later than that of an enclosing budget.
        share: how much of them this is for.
    """

    def __init__(self, seconds: float | None = None, share: float = 1.0) -> None:
        whole = _LIMIT.get()
        self.seconds: float = _checked(seconds) if seconds is not None else whole.seconds if whole else SECONDS
        self.share, self.end = share, time.thread_time() + self.seconds * share
        if whole is not None and whole.end < self.end:
            self.seconds, self.share, self.end = whole.seconds, whole.share, whole.end
        self.questions = 0
        self._tokens: list[Token[Budget | None]] = []

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.end - time.thread_time()

    def __enter__(self) -> Self:
        self._tokens.append(_LIMIT.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _LIMIT.reset(self._tokens.pop())

    def ask(self, t: int) -> None:
        """Count a question about one step; raise Undecided where they are too many or the time is over."""
        self.questions += 1
        if self.questions > _MOST_QUESTIONS:
            raise Undecided(f"floats tell too little: {_MOST_QUESTIONS:,} steps were asked about up to t = {t:,}")
        self.check(t)

    def check(self, t: int) -> None:
        """Raise Undecided where the time is over."""
        if self.left < 0:
            part = "" if self.share == 1 else "its share of "
            raise Undecided(
                f"{part}the budget of {self.seconds:g} s was used up at t = {t:,} (the option `budget` gives more)"
            )


_LIMIT: ContextVar[Budget | None] = ContextVar("_LIMIT", default=None)


def check_time(t: int) -> None:
    """Raise Undecided where the time of an enclosing budget is over."""
    limit = _LIMIT.get()
    if limit is not None:
        limit.check(t)
