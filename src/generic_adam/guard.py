"""The outer safety: what takes a minute of the processor is stopped, which is no answer.

Answers come from counted work (`schedules.work`) and do not depend on the machine. A hostile or very long text may
still take longer than anybody waits; only where a question comes in, here, a clock is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from generic_adam.errors import StoppedError
from generic_adam.schedules.work import guarded

SECONDS = 60.0
"""After so many seconds of the processor a question is stopped; a budget above 1 gives it as many times more."""


class _Over(BaseException):
    """Past every `except Exception` between the clock and the question: nothing may take it for an answer."""


@contextmanager
def guard(budget: float = 1.0) -> Iterator[None]:
    """Stop what is asked inside once it has taken too long.

    Args:
        budget: the factor on the work that is allowed inside.

    Raises:
        StoppedError: it has. No answer was found, and none is kept.
    """
    seconds = SECONDS * (budget if 1 < budget < 1e6 else 1.0)
    end = time.thread_time() + seconds

    def look() -> None:
        if time.thread_time() > end:
            raise _Over

    try:
        with guarded(look):
            yield
    except _Over:
        said = "no answer: a machine twice as fast, or a budget of 2, might have one"
        raise StoppedError(f"stopped after {seconds:g} s of this machine's processor, {said}") from None
