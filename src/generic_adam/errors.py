"""Every error that the library raises on purpose: one line that says what, where and what was expected."""

from __future__ import annotations


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
