"""The counterexample of Reddi, Kale and Kumar (2018): a straight line whose rare slope Adam forgets."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError


class Form(StrEnum):
    """How the rare slope is mixed in."""

    STOCHASTIC = "stochastic"
    DETERMINISTIC = "deterministic"


@dataclass(frozen=True)
class Counterexample:
    r"""One dimension, x projected to an interval, one of two slopes at each t.

    $$
    f_t(x) = \begin{cases} 1010\,x & \text{rarely} \\ -10\,x & \text{otherwise} \end{cases}
    \qquad x \in [-1, 1]
    $$

    "Rarely" is with probability 0.01, independently at each t, in the stochastic form, and at
    t = 1, 102, 203, ... (t mod 101 = 1) in the deterministic one. Either way the slope is positive on
    average, so the best fixed point is the lower end, and a method that weighs the frequent slope too much
    walks to the upper one.

    Args:
      form: "stochastic" (the paper's) or "deterministic" (Reddi's).
      rare_slope: the slope met rarely.
      common_slope: the slope met otherwise. The paper prints +10, with which nothing can go wrong; it must
        be -10.
      probability: chance of the rare slope, for the stochastic form.
      period: the rare slope comes once in this many steps, for the deterministic form.
      low: lower end of the interval.
      high: upper end of the interval.
      start: the first point, x_1.
      as_printed: run the paper's misprint: both slopes of one sign.
    """

    form: Form | str = Form.STOCHASTIC
    rare_slope: float = 1010.0
    common_slope: float = -10.0
    probability: float = 0.01
    period: int = 101
    low: float = -1.0
    high: float = 1.0
    start: float = 1.0
    as_printed: bool = False

    def __post_init__(self) -> None:
        """Check every setting, so that a run cannot begin with a problem that has no meaning."""
        try:
            object.__setattr__(self, "form", Form(self.form))
        except ValueError:
            raise RunError(f"form is {self.form!r}, expected 'stochastic' or 'deterministic'") from None
        for name in ("rare_slope", "common_slope"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value != 0):
                raise RunError(f"{name} is {value}, expected a finite number other than 0")
        if not 0 <= self.probability <= 1:
            raise RunError(f"probability is {self.probability}, expected a number from 0 to 1")
        if self.period < 2:
            raise RunError(f"period is {self.period}, expected a whole number of at least 2")
        if not -math.inf < self.low < self.high < math.inf:
            raise RunError(f"the interval is [{self.low}, {self.high}], expected finite low < high")
        if not self.low <= self.start <= self.high:
            raise RunError(f"start is {self.start}, expected a point of [{self.low}, {self.high}]")

    @property
    def slopes(self) -> tuple[float, float]:
        """The rare slope and the other one, as they are used (`as_printed` taken into account)."""
        common = math.copysign(self.common_slope, self.rare_slope) if self.as_printed else self.common_slope
        return self.rare_slope, common

    @property
    def threshold(self) -> int:
        """A uniform 53-bit whole number below this one means the rare slope."""
        return round(self.probability * 2**53)

    def gradient_sum(self, times: NDArray[np.int64], rare_counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of the first t slopes, from how often the rare one came: exact for whole slopes."""
        rare, common = self.slopes
        return rare * rare_counts + common * (times - rare_counts)

    def regret(self, loss_sum: NDArray[np.float64], gradient_sum: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return $R(t) = \sum f_i(x_i) - \min_{x} x \sum g_i$; on [-1, 1] the minimum is $-|\sum g_i|$."""
        return loss_sum - np.minimum(self.low * gradient_sum, self.high * gradient_sum)

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain types, for a manifest or a checkpoint."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Form) else value
