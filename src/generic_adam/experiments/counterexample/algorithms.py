"""What a lane can run: any Generic Adam, and the peers AMSGrad, Padam and AdaShift.

An algorithm says which sequences it needs, what it remembers, and which kernel carries it through a block of
t. The values of a sequence are computed once a block and shared by all lanes and all algorithms that need
them.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import kernels
from generic_adam.methods import Method
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules import t as time

Floats = NDArray[np.float64]


class Block(NamedTuple):
    """What the lanes of one algorithm meet between two points of time.

    Attributes:
      start: t of the first step.
      values: the algorithm's schedules at each step.
      gradients: step by replicate.
      interval: where x is projected to.
      record_at: the steps that are recorded, counted from 0 at `start`.
      x: where x_t goes, recorded step by replicate.
      loss: where the sum of losses up to t goes, recorded step by replicate.
    """

    start: int
    values: tuple[Floats, ...]
    gradients: Floats
    interval: tuple[float, float]
    record_at: NDArray[np.int64]
    x: Floats
    loss: Floats

    @property
    def recording(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The last three, in the order in which every kernel takes them."""
        return self.record_at, self.x, self.loss


class Algorithm(abc.ABC):
    """One rule for the step, run on many lanes at once."""

    rows: int
    """How many rows of state a lane has; the first three are x, the sum of losses and its compensation."""

    @property
    @abc.abstractmethod
    def schedules(self) -> tuple[Schedule, ...]:
        """The sequences whose values at t the kernel needs, in its order."""

    @abc.abstractmethod
    def advance(self, block: Block, state: Floats) -> None:
        """Carry the lanes in `state` through the block."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the algorithm and its parameters as plain types."""

    def initial_state(self, lanes: int, start: float, epsilon: float) -> Floats:
        """Return the state at t = 1: x_1 = start, m_0 = 0, v_0 = epsilon."""
        state = np.zeros((self.rows, lanes))
        state[kernels.X] = start
        state[kernels.MEMORY + 1] = epsilon
        return state


@dataclass(frozen=True)
class GenericAdam(Algorithm):
    """Generic Adam (Algorithm 1) with the schedules of a `Method`."""

    method: Method
    rows: int = field(default=5, init=False, repr=False)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """alpha, beta, 1 - beta, theta, 1 - theta, the complements without cancellation."""
        return _adam_schedules(self.method)

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel of Algorithm 1."""
        kernels.advance_generic_adam(block.values, block.gradients, state, *block.interval, *block.recording)

    def describe(self) -> dict[str, Any]:
        """Return the three schedules as text."""
        return {"algorithm": "Generic Adam", **_schedules_of(self.method)}


@dataclass(frozen=True)
class AMSGrad(Algorithm):
    """AMSGrad (Reddi, Kale, Kumar 2018): Generic Adam with the running maximum of v under the root."""

    method: Method
    rows: int = field(default=6, init=False, repr=False)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """alpha, beta, 1 - beta, theta, 1 - theta."""
        return _adam_schedules(self.method)

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel of AMSGrad."""
        kernels.advance_amsgrad(block.values, block.gradients, state, *block.interval, *block.recording)

    def describe(self) -> dict[str, Any]:
        """Return the three schedules as text."""
        return {"algorithm": "AMSGrad", **_schedules_of(self.method)}


@dataclass(frozen=True)
class Padam(Algorithm):
    """Padam: AMSGrad with the power p of the running maximum in place of the root, 0 < p <= 1/2."""

    method: Method
    power: float = 0.125
    rows: int = field(default=7, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the power."""
        if not 0 < self.power <= 0.5:
            raise RunError(f"Padam's power is {self.power}, expected 0 < power <= 1/2")

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """alpha, beta, 1 - beta, theta, 1 - theta."""
        return _adam_schedules(self.method)

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel of Padam."""
        kernels.advance_padam(
            block.values, block.gradients, state, *block.interval, *block.recording, self.power
        )

    def describe(self) -> dict[str, Any]:
        """Return the three schedules as text, and the power."""
        return {"algorithm": "Padam", "power": self.power, **_schedules_of(self.method)}


@dataclass(frozen=True)
class AdaShift(Algorithm):
    """AdaShift (Zhou et al. 2019): v is built from the gradient n steps ago, independent of the present one.

    Args:
      alpha: learning-rate schedule.
      beta: weight of the n kept gradients, a constant.
      theta: second-moment parameter, a constant.
      kept: n, how many gradients the first moment averages and by how much the second lags.
    """

    alpha: Schedule
    beta: float = 0.9
    theta: float = 0.99
    kept: int = 10

    def __post_init__(self) -> None:
        """Check the constants."""
        object.__setattr__(self, "alpha", as_schedule(self.alpha))
        if not 0 <= self.beta < 1:
            raise RunError(f"AdaShift's beta is {self.beta}, expected 0 <= beta < 1")
        if not 0 < self.theta < 1:
            raise RunError(f"AdaShift's theta is {self.theta}, expected 0 < theta < 1")
        if self.kept < 1:
            raise RunError(f"AdaShift keeps {self.kept} gradients, expected at least 1")

    @property
    def rows(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """x, losses (2), m, v, and the last n gradients."""
        return 5 + self.kept

    def initial_state(self, lanes: int, start: float, epsilon: float) -> Floats:
        """Return the state at t = 1; v starts at 0, for its bias is divided out."""
        del epsilon
        return super().initial_state(lanes, start, 0.0)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """alpha, and 1 - theta^(t - n), of which the values for t <= n are not used."""
        return (self.alpha, 1 - as_schedule(self.theta) ** (time - self.kept))

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel of AdaShift on the last n gradients and the block's, then keep the last n again."""
        weights = self.beta ** np.arange(self.kept)
        weights /= weights.sum()
        history = state[kernels.MEMORY + 2 :]
        window = np.concatenate((history, block.gradients))
        kernels.advance_adashift(
            block.values,
            window,
            state,
            *block.interval,
            *block.recording,
            weights,
            self.theta,
            block.start,
        )
        history[:] = window[len(window) - self.kept :]

    def describe(self) -> dict[str, Any]:
        """Return the constants and the learning rate as text."""
        return {
            "algorithm": "AdaShift", "alpha": str(self.alpha), "beta": self.beta, "theta": self.theta,
            "kept": self.kept,
        }  # fmt: skip


def as_algorithm(method: Method | Algorithm) -> Algorithm:
    """Return the algorithm that runs a `Method`; an algorithm is returned as it is."""
    return method if isinstance(method, Algorithm) else GenericAdam(method)


def _adam_schedules(method: Method) -> tuple[Schedule, ...]:
    return (method.alpha, method.beta, 1 - method.beta, method.theta, 1 - method.theta)


def _schedules_of(method: Method) -> dict[str, str]:
    return {"alpha": str(method.alpha), "beta": str(method.beta), "theta": str(method.theta)}
