"""Counted work: how much may be done for one question, so that a text has one answer on every machine.

No clock decides. Each question (a claim about every t, the constant C0 of a sequence) has an allowance of its own,
so that its answer depends on the text alone: not on what was asked before, and not on what is kept from before.
Work that is done once and kept (a running product in balls, the replay of a scheduler) counts by how far it has to
go, which is the same whether a part of it is kept or not. Where an allowance is used up, `Spent` goes past all that
would take it for an answer, up to the question itself, which is then open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from enum import Enum
from typing import Self

from generic_adam.errors import GenericAdamError, ScheduleError, shown


class Work(Enum):
    """Kinds of work, each with its words and with how much of it is allowed at a budget of 1."""

    WALKED = "steps walked for one question", 1 << 24
    ASKED = "values asked of exact numbers for one question", 2_000
    BLOCKS = "blocks of a running sum for one question", 5_000
    MULTIPLIED = "factors multiplied exactly for one question", 1 << 18
    REPLAYED = "steps of a scheduler's replay", 1_000_000
    SWEPT = "steps of a run that are summed", 1 << 24
    TRIED = "changes tried", 64

    def __init__(self, words: str, allowed: int) -> None:
        self.words, self.allowed = words, allowed


class Undecided(GenericAdamError):  # noqa: N818  (an answer, not an error)
    """A question that ended without an answer; the text says why."""


class Spent(Undecided):
    """A question whose allowance of work was used up.

    Attributes:
        kind: the work of which there was too little.
        limit: how much of it was allowed.
    """

    def __init__(self, kind: Work, limit: int, at: int) -> None:
        where = "" if at <= 0 else f" at t = {at:,}"
        super().__init__(f"the budget of {limit:,} {kind.words} was used up{where} (the option `budget` gives more)")
        self.kind, self.limit = kind, limit


def _checked(times: object) -> float:
    try:
        number = math.nan if isinstance(times, bool | str) else float(times)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ScheduleError(f"budget is {shown(times)}; expected a factor on the allowed work, 0 or more")
    return number


class Budget:
    """A factor on all allowances; `with` it, every question inside has that much.

    Args:
        times: the factor; 1 is more than any method, recipe or scheduler of the library needs, 0 leaves the form alone,
            None takes the factor of the enclosing budget.

    Attributes:
        spent: what was used up inside, each once.
    """

    def __init__(self, times: float | None = None) -> None:
        self.factor = budget_factor() if times is None else _checked(times)
        self.spent: list[str] = []
        self._tokens: list[Token[Budget | None]] = []

    def __enter__(self) -> Self:
        self._outer = _BUDGET.get()
        self._tokens.append(_BUDGET.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _BUDGET.reset(self._tokens.pop())

    def note(self, why: str) -> None:
        """Remember, here and outside, that a question was left open for want of work."""
        if why not in self.spent:
            self.spent.append(why)
        if self._outer is not None:
            self._outer.note(why)


class Account:
    """The work done for one question; `with` it, `charge` and `reach` count here."""

    def __init__(self) -> None:
        self._done = dict.fromkeys(Work, 0)
        self._farthest: dict[object, int] = {}
        self._tokens: list[Token[Account | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_ACCOUNT.set(self))
        return self

    def __exit__(self, *_error: object) -> None:
        _ACCOUNT.reset(self._tokens.pop())

    def add(self, kind: Work, amount: int, at: int) -> None:
        """Count work; raise Spent where it is more than is allowed."""
        self._done[kind] += amount
        allow(kind, self._done[kind], at)

    def reach(self, kind: Work, key: object, to: int) -> None:
        """Count the steps of a running quantity up to one of them, each step once."""
        before = self._farthest.get(key, 0)
        if to > before:
            self._farthest[key] = to
            self.add(kind, to - before, to)


_BUDGET: ContextVar[Budget | None] = ContextVar("_BUDGET", default=None)
_ACCOUNT: ContextVar[Account | None] = ContextVar("_ACCOUNT", default=None)
_GUARD: ContextVar[Callable[[], None] | None] = ContextVar("_GUARD", default=None)


def budget_factor() -> float:
    """Return the factor on all allowances that is in force."""
    budget = _BUDGET.get()
    return 1.0 if budget is None else budget.factor


def note(why: str) -> None:
    """Tell the enclosing budget that a question was left open for want of work."""
    budget = _BUDGET.get()
    if budget is not None:
        budget.note(why)


def allow(kind: Work, amount: int, at: int = 0) -> None:
    """Raise Spent where so much work of a kind is more than is allowed."""
    poll()
    limit = kind.allowed * budget_factor()
    if amount > limit:
        raise Spent(kind, int(limit), at)


def charge(kind: Work, amount: int, at: int = 0) -> None:
    """Count work for the question that is being decided, where one is."""
    account = _ACCOUNT.get()
    if account is None:
        poll()
    else:
        account.add(kind, amount, at)


def reach(kind: Work, key: object, to: int) -> None:
    """Count a running quantity up to a step for the question that is being decided, where one is."""
    account = _ACCOUNT.get()
    if account is None:
        poll()
    else:
        account.reach(kind, key, to)


def poll() -> None:
    """Let a guard that was set outside end what goes on for too long; it is no part of any answer."""
    guard = _GUARD.get()
    if guard is not None:
        guard()


@contextmanager
def guarded(guard: Callable[[], None]) -> Generator[None]:
    """Call a guard at every count of work inside; what it raises must not be an `Exception`."""
    token = _GUARD.set(guard)
    try:
        yield
    finally:
        _GUARD.reset(token)
