"""The one error this package raises, and the checks that raise it."""

import math
from numbers import Real


class TransformationError(ValueError):
    """An argument or a parameter that a transformation cannot work with; the message is one line."""


def check_not_negative(name: str, value: object) -> None:
    """Raise unless the number is finite and >= 0; an array that JAX traces is let pass."""
    if isinstance(value, Real) and not 0 <= float(value) < math.inf:
        raise TransformationError(f"{name} is {value}; expected a finite number >= 0")
