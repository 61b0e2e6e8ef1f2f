"""Checks on the options that several optimizers share."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from generic_adam.errors import OptimizerError


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_non_negative(options: Mapping[str, Any], *names: str) -> None:
    """Raise an OptimizerError unless the named options are finite numbers >= 0."""
    for name in names:
        value = options[name]
        if not is_number(value) or not 0.0 <= value < math.inf:
            raise OptimizerError(f"{name} is {value!r}; expected a finite number >= 0")
