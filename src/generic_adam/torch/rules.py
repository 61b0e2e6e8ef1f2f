"""Allowed values of an optimizer's numbers and options, and the error line of any other value."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeGuard

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError, ScheduleError, shown
from generic_adam.methods.method import ScheduleLike
from generic_adam.schedules import Schedule, as_schedule

Number = float | Tensor
"""A plain number as a parameter group has it; schedulers fill a tensor of one element in place."""
Value = ScheduleLike | Tensor
"""Every type that a constructor takes for a coefficient."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number that a float can hold; True and False are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def plain(value: Any) -> Any:
    """Return a number as Python's own, which kernels take and files hold; any other value as it is."""
    if not is_number(value):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def is_one_number(value: Tensor) -> bool:
    """Return whether a tensor can stand for a number."""
    return value.numel() == 1 and not (value.is_complex() or value.is_meta)


def number(value: Any) -> Any:
    """Return the number in a tensor of one element, as states hold them; what is none as it is."""
    return value.item() if isinstance(value, Tensor) and is_one_number(value) else value


def cell_dtype(name: str) -> torch.dtype:
    """Return the type of a number of a state: torch's own for the step count, and whatever else exactly."""
    is_count = name == "step" and torch.get_default_dtype() is not torch.float64
    return torch.float32 if is_count else torch.float64


def cell(name: str, value: float) -> Tensor:
    """Return a number of a state as torch keeps its step count: a tensor without dimensions on the processor."""
    return torch.tensor(float(value), dtype=cell_dtype(name), device="cpu")


class UnsupportedError(OptimizerError, RuntimeError):
    """A step that an optimizer cannot make, with these tensors or at all; torch's own raise a RuntimeError there."""


@dataclass(frozen=True)
class Rule:
    """The allowed values of an option, or of a number in a saved state: in words, and as a test."""

    expected: str
    fits: Callable[[Any], bool]
    error: type[OptimizerError] = OptimizerError

    def check(self, name: str, value: Any) -> Any:
        """Return the value as it is, or raise an OptimizerError that names it."""
        if not self.fits(value):
            raise self.error(f"{name} is {shown(value)}; expected {self.expected}")
        return value


NON_NEGATIVE = Rule("a finite number >= 0", lambda value: is_number(value) and 0.0 <= value < math.inf)
# A sum of shares that has been rounded may lie above 1 by as little.
SHARE = Rule("a number in [0, 1]", lambda value: is_number(value) and 0.0 <= value <= 1.0 + 2.0**-40)
WHOLE = Rule("a whole number >= 0", lambda value: is_number(value) and 0.0 <= value <= 2**63 and not value % 1)
FLAG = Rule("True or False", lambda value: isinstance(value, int) and value in {0, 1})
SHARE_BELOW_ONE = Rule("a number in [0, 1)", lambda value: is_number(value) and 0.0 <= value < 1.0)
CORRECTION = Rule('True, False or "torch"', lambda it: FLAG.fits(it) or (isinstance(it, str) and it == "torch"))
FLAG_OR_NONE = Rule("True or False", lambda value: value is None or FLAG.fits(value))
UNSUPPORTED = Rule(
    "False, as each step's numbers come from Python", lambda x: FLAG_OR_NONE.fits(x) and not x, UnsupportedError
)


@dataclass(frozen=True)
class Coefficient:
    """One number of an update rule: a plain one, driven from outside, or a schedule of t.

    Attributes:
        name: the constructor's keyword, which is also the key of its value in `param_groups`.
        below_one: whether the value must stay in [0, 1); otherwise any finite value >= 0 will do.
        positive: whether 0 is out of range too.
    """

    name: str
    below_one: bool = False
    positive: bool = False

    @property
    def schedule_key(self) -> str:
        """The key of its schedule in `param_groups`; None is stored there for a plain number."""
        return f"{self.name}_schedule"

    def read(self, value: Value) -> tuple[Number, Schedule | None]:
        """Return the value at t = 1, and the schedule; a constant schedule is a plain number, a tensor stays one."""
        if isinstance(value, Tensor) or is_number(value):
            return self.number(value), None
        try:
            schedule = as_schedule(value)
            first = schedule(1)
        except ScheduleError as error:
            raise OptimizerError(f"{self.name}: {error}") from error
        return self.check(first, t=1), None if schedule.is_constant else schedule

    def number(self, value: Any) -> Number:
        """Return a plain number in range, or a tensor of one element as it is."""
        number = self.check(self.plain(value))
        return value if isinstance(value, Tensor) else number

    def plain(self, value: Any) -> float:
        """Return a number, or that in a tensor of one element; raise an OptimizerError for anything else."""
        if isinstance(value, Tensor):
            if not is_one_number(value):
                raise OptimizerError(f"{self.name} is a tensor of shape {tuple(value.shape)}; expected one real number")
        elif not is_number(value):
            raise OptimizerError(f"{self.name} is {shown(value)}; expected a number")
        return float(value)

    def check(self, value: float, t: int | None = None) -> float:
        """Return the value as it is, or raise an OptimizerError that names it."""
        if self.below_one:
            # A schedule such as 1 - 2^-t stays below 1 and rounds to it: let pass where t is known.
            if 0.0 <= value < 1.0 or (value == 1.0 and t is not None and t > 1):
                return value
            expected = f"0 <= {self.name} < 1"
        else:
            if 0.0 <= value < math.inf and (value > 0.0 or not self.positive):
                return value
            expected = f"a finite {self.name} {'>' if self.positive else '>='} 0"
        where = "" if t is None else f" at t = {t}"
        raise OptimizerError(f"{self.name}{where} is {value}; expected {expected}")


LEARNING_RATE = Coefficient("lr")
MOMENTUM = Coefficient("beta", below_one=True)
SECOND_MOMENT = Coefficient("theta", below_one=True)
OF_ADAM = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT, Coefficient("eps"), Coefficient("weight_decay"))
LOOK_AHEAD = (Coefficient("momentum_weight"), Coefficient("gradient_weight"))
