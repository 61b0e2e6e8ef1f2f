"""The error of this sub-package."""


class MethodError(ValueError):
    """A method cannot be what was asked for; one line says what, where and what was expected."""
