"""What an optimizer's coefficient may be: a number, driven from outside, or a schedule of t."""

import math
from dataclasses import dataclass, field
from numbers import Real

from generic_adam.errors import OptimizerError
from generic_adam.methods.method import ScheduleLike
from generic_adam.schedules import Schedule, ScheduleError, as_schedule


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

    def read(self, value: ScheduleLike) -> tuple[float, Schedule | None]:
        """The value at t = 1, and the schedule; a constant one is a plain number.

        Raises:
            OptimizerError: not a number, text, schedule or callable, or out of range at t = 1.
        """
        if isinstance(value, Real) and not isinstance(value, bool):
            return self.check(float(value)), None
        try:
            schedule = as_schedule(value)
            first = schedule(1)
        except ScheduleError as error:
            raise OptimizerError(f"{self.name}: {error}") from error
        return self.check(first, t=1), None if schedule.is_constant else schedule

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
