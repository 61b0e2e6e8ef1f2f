"""What a lane can run: Generic Adam, AMSGrad, Padam, NAdam and SGD as an `Algorithm` says them, and AdaShift.

A rule says which sequences it needs, what it remembers, and which kernel carries it through a block of t. The
values of a sequence are computed once a block and shared by all lanes and all rules that need them.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import kernels
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules import t as time

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AdaShift:
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
    def algorithm(self) -> Algorithm:
        """The algorithm as far as its attributes can say it."""
        window = f"momentum is a weighted mean of the last {self.kept} gradients"
        method = Method(self.alpha, self.beta, self.theta)
        return Algorithm(method, initial_v=0, delayed=True, outside=[window], label="AdaShift")


Subject = Method | Algorithm | AdaShift
"""What a plan names: a Method alone means the paper's algorithm."""


class Block(NamedTuple):
    """What the lanes of one rule meet between two points of time.

    Attributes:
      start: t of the first step.
      values: the rule's schedules at each step.
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


class Rule(abc.ABC):
    """How lanes take a step.

    Attributes:
      name: what people call it.
      rows: how many rows of state a lane has; the first three are x, the sum of losses and its compensation.
      initial_v: v_0.
      schedules: the sequences whose values at t the kernel needs, in its order.
    """

    name: str
    rows: int
    initial_v: float
    schedules: tuple[Schedule, ...]

    @abc.abstractmethod
    def advance(self, block: Block, state: Floats) -> None:
        """Carry the lanes in `state` through the block."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the rule as plain types."""

    def initial_state(self, lanes: int, start: float) -> Floats:
        """Return the state at t = 1: x_1 = start, m_0 = 0, v_0."""
        state = np.zeros((self.rows, lanes))
        state[kernels.X] = start
        state[kernels.MEMORY + 1] = self.initial_v
        return state


class AdamRule(Rule):
    """Algorithm 1, or what differs from it in the divisor (AMSGrad, Padam, SGD) or the momentum (NAdam).

    Args:
      algorithm: the three sequences, v_0, running maximum and power, Nesterov's weights, no divisor at all.

    Raises:
      RunError: it does what the kernel does not.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        method, ahead = algorithm.method, algorithm.nesterov
        has_power = algorithm.power != Fraction(1, 2)
        kinds = [
            (kernels.NESTEROV, "NAdam", ahead is not None),
            (kernels.GRADIENT, "SGD", not algorithm.preconditioned),
            (kernels.POWER, "Padam", has_power),
            (kernels.MAXIMUM, "AMSGrad", algorithm.running_maximum and not has_power),
        ]
        chosen = [(kind, name) for kind, name, is_one in kinds if is_one] or [(kernels.PLAIN, "Generic Adam")]
        known = Algorithm(
            method,
            initial_v=algorithm.initial_v,
            running_maximum=algorithm.running_maximum,
            power=algorithm.power,
            nesterov=ahead,
            preconditioned=algorithm.preconditioned,
        )
        is_maximal = algorithm.running_maximum or not has_power
        if known.departures != algorithm.departures or len(chosen) > 1 or not is_maximal:
            raise RunError(
                f"lanes run Generic Adam, AMSGrad, Padam, NAdam, SGD and AdaShift, not an algorithm in which "
                f"{'; '.join(algorithm.departures)}"
            )
        self.algorithm = algorithm
        ((self._kind, self.name),) = chosen
        self.rows = 5 + algorithm.running_maximum + has_power
        self.initial_v = algorithm.initial_v
        weights = (
            (as_schedule(1), as_schedule(0))
            if ahead is None
            else (ahead.momentum_weight, ahead.gradient_weight)
        )
        # The complements without cancellation.
        self.schedules = (
            method.alpha,
            method.beta,
            1 - method.beta,
            method.theta,
            1 - method.theta,
            *weights,
        )

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel."""
        kernels.advance(
            block.values, block.gradients, state, *block.interval, *block.recording, self._kind,
            float(self.algorithm.power),
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """Return the algorithm's own dictionary, under its name."""
        return {"algorithm": self.name, **self.algorithm.to_dict()}


class AdaShiftRule(Rule):
    """AdaShift on the last n gradients and the block's."""

    name = "AdaShift"
    initial_v = 0.0  # its bias is divided out

    def __init__(self, subject: AdaShift) -> None:
        self.subject = subject
        self.rows = 5 + subject.kept
        # 1 - theta^(t - n), of which the values for t <= n are not used.
        self.schedules = (subject.alpha, 1 - as_schedule(subject.theta) ** (time - subject.kept))
        weights = subject.beta ** np.arange(subject.kept)
        self._weights = weights / weights.sum()

    def advance(self, block: Block, state: Floats) -> None:
        """Run the kernel, then keep the last n gradients again."""
        history = state[kernels.MEMORY + 2 :]
        window = np.concatenate((history, block.gradients))
        kernels.advance_adashift(
            block.values, window, state, *block.interval, *block.recording, self._weights,
            self.subject.theta, block.start,
        )  # fmt: skip
        history[:] = window[len(window) - self.subject.kept :]

    def describe(self) -> dict[str, Any]:
        """Return the constants and the learning rate as text."""
        one = self.subject
        return {
            "algorithm": self.name, "alpha": str(one.alpha), "beta": one.beta, "theta": one.theta,
            "kept": one.kept,
        }  # fmt: skip


def rule_of(subject: Subject) -> Rule:
    """Return the rule that runs a subject."""
    return AdaShiftRule(subject) if isinstance(subject, AdaShift) else AdamRule(as_algorithm(subject))
