"""The counterexample of Reddi, Kale and Kumar (2018); its gradients depend on (seed, replicate, t) alone.

A lane is one method with one replicate. The gradients of a replicate come from a generator of its own, whose
state is hashed from (seed, replicate) by NumPy's SeedSequence, so a lane is the same whatever the number of
lanes, threads, blocks or workers. The method does not enter: all methods of a replicate meet the same
gradients (common random numbers). That is the right comparison, method against method on one stream, and each
block of gradients is drawn once for all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam_laboratory.counterexample import kernels

_MAX_SEED = 2**64 - 1


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

    The paper prints +10 x, with which nothing can go wrong: that is `as_printed`. Its form is the stochastic one,
    Reddi's the deterministic one; the interval is [low, high], and x_1 = start.
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
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"form": str(self.form)}


def initial_words(seed: int, replicates: range) -> NDArray[np.uint64]:
    """Return the generators' start: two rows of 64-bit words, one column a replicate."""
    if not 0 <= seed <= _MAX_SEED:
        raise RunError(f"seed is {seed}, expected a whole number from 0 to 2^64 - 1")
    words = np.empty((2, len(replicates)), dtype=np.uint64)
    for column, replicate in enumerate(replicates):
        source = np.random.SeedSequence(entropy=seed, spawn_key=(replicate,))
        words[:, column] = source.generate_state(2, dtype=np.uint64)
    return words


class GradientStream:
    """The gradients of some replicates, block after block, from a generator each."""

    def __init__(self, problem: Counterexample, seed: int, replicates: range) -> None:
        self.problem = problem
        self.words = initial_words(seed, replicates)
        self.counts = np.zeros(len(replicates), dtype=np.int64)  # of the rare slope so far
        self._room = np.empty((0, len(replicates)))

    def draw(
        self, start: int, steps: int, record_at: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return g of t = start, ..., start + steps - 1 (step by replicate), valid until the next call.

        And how often the rare slope had come up to each row of `record_at`, itself included.
        """
        if len(self._room) < steps:  # fresh memory for every block would cost as much as drawing
            self._room = np.empty((steps, self.counts.size))
        gradients = self._room[:steps]
        counts_at = np.empty((record_at.size, self.counts.size), dtype=np.int64)
        period = self.problem.period if self.problem.form is Form.DETERMINISTIC else 0
        kernels.draw_gradients(
            self.words, start, period, np.uint64(self.problem.threshold), *self.problem.slopes, gradients,
            self.counts, record_at, counts_at,
        )  # fmt: skip
        return gradients, counts_at


def gradients_of(problem: Counterexample, steps: int, seed: int, replicate: int) -> NDArray[np.float64]:
    """Return g_1, ..., g_steps of one replicate, as every simulation with this seed meets them."""
    stream = GradientStream(problem, seed, range(replicate, replicate + 1))
    gradients, _ = stream.draw(1, steps, np.empty(0, dtype=np.int64))
    return gradients[:, 0].copy()
