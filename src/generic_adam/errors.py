"""Every error that the library raises on purpose: one line that says what, where and what was expected."""

from __future__ import annotations

import reprlib


def shown(value: object) -> str:
    """A value as messages quote it: in one short line, whatever it is."""
    try:
        text = reprlib.repr(value)
    except Exception:  # noqa: BLE001  (a whole number of 5,000 digits has no text, others' classes may have none)
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]


class GenericAdamError(ValueError):
    """The base of all errors of ours; the command line turns it into one line and exit code 2."""


class ScheduleError(GenericAdamError):
    """A sequence that cannot be read or evaluated."""


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


class ExtraError(ImportError, GenericAdamError):
    """A part of the library whose optional dependencies are not installed."""
