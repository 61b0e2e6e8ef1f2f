"""What an optimizer's numbers may be: plain ones, driven from outside, or schedules of t."""

import math
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeGuard

from torch import Tensor

from generic_adam.errors import OptimizerError, ScheduleError
from generic_adam.methods.method import ScheduleLike
from generic_adam.schedules import Schedule, as_schedule

Number = float | Tensor
"""A plain number as a parameter group has it: a tensor of one element is filled in place by schedulers."""


class UnsupportedError(OptimizerError, RuntimeError):
    """What an optimizer cannot do with these tensors; torch's own raise a RuntimeError there."""


@dataclass(frozen=True)
class Coefficient:
    """One number of an update rule, with the values it may take.

    Attributes:
        name: the constructor's keyword, which is also the key of its value in `param_groups`.
        below_one: whether the value must stay in [0, 1); otherwise any finite value >= 0 will do.
        positive: whether 0 is out of range too.
        schedule_key: the key of its schedule in `param_groups`; None is stored there for a plain number.
    """

    name: str
    below_one: bool = False
    positive: bool = False
    schedule_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule_key", f"{self.name}_schedule")

    def read(self, value: ScheduleLike | Tensor) -> tuple[Number, Schedule | None]:
        """The value at t = 1, and the schedule; a constant one is a plain number, a tensor stays one.

        Raises:
            OptimizerError: not a number, text, schedule or callable, or out of range at t = 1.
        """
        if isinstance(value, Tensor) or is_number(value):
            return self.number(value), None
        try:
            schedule = as_schedule(value)
            first = schedule(1)
        except ScheduleError as error:
            raise OptimizerError(f"{self.name}: {error}") from error
        return self.check(first, t=1), None if schedule.is_constant else schedule

    def number(self, value: Number) -> Number:
        """A plain number, or a tensor of one element as it is.

        Raises:
            OptimizerError: neither, or out of range.
        """
        if isinstance(value, Tensor):
            if value.numel() != 1 or value.is_complex() or value.is_meta:
                raise OptimizerError(
                    f"{self.name} is a tensor of shape {tuple(value.shape)}; expected one real number"
                )
            self.check(float(value))
            return value
        if not is_number(value):
            raise OptimizerError(f"{self.name} is {shown(value)}; expected a number")
        try:
            return self.check(float(value))
        except OverflowError:
            return self.check(math.inf if value > 0 else -math.inf)

    def check(self, value: float, t: int | None = None) -> float:
        """The value as it is, or an error that names it."""
        if self.below_one:
            # A schedule such as 1 - 2^-t stays below 1 and rounds to it: equality is let pass where t is
            # known.
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
EPSILON = Coefficient("eps")
DECAY = Coefficient("weight_decay")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value as messages quote it: in one short line, whatever it is."""
    try:
        text = reprlib.repr(value)
    except Exception:  # noqa: BLE001  (a whole number of 5,000 digits has no text, others' classes may have none)
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]


def check_non_negative(options: Mapping[str, Any], *names: str) -> None:
    """Raise an OptimizerError unless the named options are finite numbers >= 0."""
    for name in names:
        value = options[name]
        if not is_number(value) or not 0.0 <= value <= sys.float_info.max:
            raise OptimizerError(f"{name} is {shown(value)}; expected a finite number >= 0")


def check_flags(options: Mapping[str, Any], *names: str) -> None:
    """Raise an OptimizerError unless the named options are True or False; None is a choice of kernels alone."""
    for name in names:
        value = options[name]
        undecided = value is None and name in {"foreach", "fused"}
        if not undecided and (not isinstance(value, int) or value not in {True, False}):
            raise OptimizerError(f"{name} is {shown(value)}; expected True or False")


def separate_betas(options: Mapping[str, Any]) -> tuple[Any, Any]:
    """The pair beta, theta from options that hold either them or betas, as torch's Adam has them."""
    beta, theta, betas = options.get("beta"), options.get("theta"), options.get("betas")
    if betas is None:
        return beta, theta
    if beta is not None or theta is not None:
        raise OptimizerError(
            "betas and beta or theta are given; expected betas=(beta, theta), or the two by name"
        )
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise OptimizerError(f"betas is {shown(betas)}; expected a pair (beta, theta)")
    return betas[0], betas[1]
