"""Every error that the library raises on purpose: one line that says what, where and what was expected."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def shown(value: object) -> str:
    """Return a value as messages quote it: in one short line, whatever it is."""
    try:
        text = reprlib.repr(value)
    except Exception:  # noqa: BLE001  (a whole number of 5,000 digits has no text, others' classes may have none)
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]


def meant(name: str, known: Iterable[str]) -> str:
    """Return the closest known name, letters swapped first; else the list of all names."""
    names = list(known)
    close = get_close_matches(name, names, n=5)
    if not close:
        return f"expected one of {', '.join(names)}"
    return f"did you mean {min(close, key=lambda one: sorted(one) != sorted(name))!r}?"


class GenericAdamError(ValueError):
    """The base of all errors of ours; the command line turns it into one line and exit code 2."""

    def __str__(self) -> str:
        """One line, whatever was quoted in it."""
        return " ".join(map(str.strip, super().__str__().splitlines()))


class ScheduleError(GenericAdamError):
    """A sequence that cannot be read or evaluated.

    Attributes:
        column: the place in the text that was read, which the message names; None for none.
    """

    column: int | None = None


class MethodError(GenericAdamError):
    """A method, an algorithm or a recipe that cannot be read, or a parameter outside its range."""


class TheoremError(GenericAdamError):
    """A question that no theorem can be asked: a wrong horizon, problem or name."""


class OptimizerError(GenericAdamError):
    """An optimizer, a scheduler, a state or a configuration that cannot be used or read."""


class DataError(GenericAdamError):
    """A data set or a record that is missing, damaged or of another kind."""


class RunError(GenericAdamError):
    """An experiment that cannot start or go on where it is."""


class StoppedError(GenericAdamError):
    """A question that was stopped for the time it took, which is no answer."""


@contextmanager
def told_as(kind: type[GenericAdamError], said: str) -> Iterator[None]:
    """Turn what others' code raises (a scheduler, a closure, a user's function) into an error of ours, in one line.

    Args:
        kind: the class of the error.
        said: what was tried; the class and the text of the exception follow.
    """
    try:
        yield
    except GenericAdamError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{said} {type(error).__name__}: {error}") from error


class ExtraError(ImportError, GenericAdamError):
    """A part of the library whose optional dependencies are not installed."""
