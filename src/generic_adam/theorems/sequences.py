r"""Deterministic sequences on the steps 1..T as the bounds take them: block by block, constants as one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.theorems.recursions import Array

BLOCK = 1 << 16
"""Steps of a block."""

LONGEST = 10**8
"""The most steps that the recursions are run for."""


def _nothing() -> Array:
    return np.zeros(1)


def _one() -> Array:
    return np.ones(1)


@dataclass(frozen=True, eq=False)
class Block:
    r"""The sequences on consecutive steps; an array of length 1 is a constant.

    Args:
      alpha: :math:`\alpha_t \ge 0` as it multiplies the step, a bias correction folded in.
      beta: :math:`0 \le \beta_t < 1`.
      theta: :math:`0 < \theta_t < 1` (:math:`\theta_1 = 0` where a theorem allows it).
      q: :math:`q_t = 1 - \theta_t`, with all its digits.
      eps: :math:`e_t`, what is added to :math:`\sqrt{v_t}` (or its square under the root).
      momentum_weight: :math:`a_t` of :math:`x_{t+1} = x_t - \alpha_t (a_t m_t + b_t g_t)/D_t`.
      gradient_weight: :math:`b_t` of it.
      decay: :math:`\nu_t` of :math:`x_{t+1} = (1-\nu_t) x_t - \dots`.
      start: the first of the steps.
      stop: the step after the last.
    """

    alpha: Array
    beta: Array
    theta: Array
    q: Array
    eps: Array = field(default_factory=_nothing)
    momentum_weight: Array = field(default_factory=_one)
    gradient_weight: Array = field(default_factory=_nothing)
    decay: Array = field(default_factory=_nothing)
    start: int = 1
    stop: int = 2


@dataclass(frozen=True, eq=False)
class Sequences:
    r"""Deterministic sequences on the steps 1..T.

    Args:
      steps: T.
      block: the sequences on the steps start..stop-1, as a function of (start, stop).
      initial_v: :math:`v_0 \ge 0`.
    """

    steps: int
    block: Callable[[int, int], Block]
    initial_v: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= LONGEST:
            raise TheoremError(f"steps: expected a whole number from 1 to {LONGEST:,}, got {self.steps}")

    @classmethod
    def of(
        cls,
        alpha: Array | float,
        beta: Array | float,
        theta: Array | float,
        *,
        q: Array | float | None = None,
        eps: Array | float = 0.0,
        momentum_weight: Array | float = 1.0,
        gradient_weight: Array | float = 0.0,
        decay: Array | float = 0.0,
        initial_v: float = 0.0,
        steps: int | None = None,
    ) -> Sequences:
        """Return the sequences that arrays of T values, or numbers for constants, spell out."""
        complement = 1 - np.asarray(theta, dtype=np.float64) if q is None else q
        given = (alpha, beta, theta, complement, eps, momentum_weight, gradient_weight, decay)
        arrays = [np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in given]
        lengths = {len(values) for values in arrays if len(values) > 1}
        if steps is None:
            steps = max(lengths, default=1)
        if lengths - {steps}:
            raise TheoremError(f"sequences of {sorted(lengths)} values, expected {steps} of each")

        def block(start: int, stop: int) -> Block:
            return Block(
                *(x if len(x) == 1 else x[start - 1 : stop - 1] for x in arrays), start=start, stop=stop
            )

        return cls(steps, block, initial_v)

    @classmethod
    def of_algorithm(cls, algorithm: Algorithm, steps: int) -> Sequences:
        """Return the sequences of an algorithm; what is constant on a block is kept as one number.

        Raises:
          TheoremError: when a value is asked for that is no finite number.
        """
        method, look_ahead = algorithm.method, algorithm.nesterov
        schedules: dict[str, Schedule] = {
            "alpha": method.alpha,
            "beta": method.beta,
            "theta": method.theta,
            "q": 1 - method.theta,
            "eps": algorithm.eps,
            "decay": algorithm.decay,
        }
        if look_ahead is not None:
            schedules["momentum_weight"] = look_ahead.momentum_weight
            schedules["gradient_weight"] = look_ahead.gradient_weight

        def block(start: int, stop: int) -> Block:
            values = {name: _values(schedule, start, stop) for name, schedule in schedules.items()}
            return Block(**values, start=start, stop=stop)

        return cls(steps, block, algorithm.initial_v)


def _values(schedule: Schedule, start: int, stop: int) -> Array:
    constant = schedule.constant_value
    if constant is not None:
        return np.array([float(constant)])
    values = schedule.values(start, stop)
    finite = np.isfinite(values)
    if not finite.all():
        raise TheoremError(f"{schedule} is no finite number at t = {start + int(np.argmin(finite))}")
    return values[:1] if values[0] == values[-1] and (values == values[0]).all() else values
