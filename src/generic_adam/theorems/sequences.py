r"""Sequences on the steps 1..T as the bounds take them, and linear recursions over them in NumPy alone.

A bound of this package is a few recursions of first order, :math:`F_t = \rho_t F_{t-1} + f_t` with
:math:`\rho_t, f_t \ge 0`, run forwards or backwards over 1..T. A loop in Python takes a second for a million
steps; here a block of steps is laid out as a table, its columns are advanced together, and the carries
between the columns are put in afterwards:

.. math:: F_t = F^{\text{local}}_t + \Big(\prod_{j \le t} \rho_j\Big) F_{\text{before the column}}.

Every term is non-negative, so that nothing cancels, and a product that underflows stands for a term that
could not be seen. An array of length 1 is a constant stretch: what is constant is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import TheoremError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.schedules import Schedule
from generic_adam.schedules.budget import check_time

Array = NDArray[np.float64]

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
          Undecided: when a block is asked for after the time limit.
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

        constant: dict[tuple[str, int, int], Array] = {}  # what stands still is evaluated in one pass alone

        def block(start: int, stop: int) -> Block:
            check_time(start)
            values = {}
            for name, schedule in schedules.items():
                key = (name, start, stop)
                values[name] = found = constant[key] if key in constant else _values(schedule, start, stop)
                if len(found) == 1:
                    constant[key] = found
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


# Below this many steps a plain loop is faster than a table.
_SHORT = 48
# A step that moves F by less than this share of it is rounding.
_REST = 4 * np.finfo(np.float64).eps


class Recursion:
    r""":math:`F_t = \rho_t F_{t-1} + f_t` for one block of factors and any number of right sides.

    Args:
      factors: :math:`\rho_t \ge 0`, one for each step, or a single one for all of them.
      length: the number of steps.
      backwards: whether the recursion starts at the last step, :math:`F_i = f_i + \rho_i F_{i+1}`.
    """

    def __init__(self, factors: Array, length: int, *, backwards: bool = False) -> None:
        self._length = length
        self._backwards = backwards
        self._factors = factors[::-1] if backwards else factors
        # Long rows, few of them: the loops below run once a row and once a column.
        self._rows = 1 if length < _SHORT else min(64, math.isqrt(length // 8))
        self._columns = -(-length // self._rows)
        if length >= _SHORT:
            table = self._factors if len(factors) == 1 else self._table(self._factors)
            self._table_of_factors = np.broadcast_to(table, (self._rows, table.shape[-1]))
            # Row by row: NumPy's own accumulate goes column by column, ten times slower.
            self._products = np.empty(self._table_of_factors.shape)
            self._products[0] = self._table_of_factors[0]
            for row in range(1, self._rows):
                np.multiply(self._products[row - 1], self._table_of_factors[row], out=self._products[row])
            self._overflows = bool(np.isinf(self._products[-1]).any())

    def __call__(self, terms: Array, start: float) -> Array:
        """Return F for the right sides `terms`, from F = `start` just outside the block.

        Where factor and right side are constant and F has come to rest, F is constant: an array of length 1.
        """
        if len(terms) == 1 and len(self._factors) == 1 and self._rests(terms[0], start):
            return np.array([start])
        ordered = terms[::-1] if self._backwards else terms
        result = self._short(ordered, start) if self._length < _SHORT else self._long(ordered, start)
        return result[::-1] if self._backwards else result

    def _rests(self, term: np.float64, start: float) -> bool:
        """Whether the recursion stays at its start up to rounding."""
        return bool(abs(self._factors[0] * start + term - start) <= _REST * start)

    def _short(self, terms: Array, start: float) -> Array:
        factors = np.broadcast_to(self._factors, self._length).tolist()
        values: list[float] = []
        current = start
        for factor, term in zip(factors, np.broadcast_to(terms, self._length).tolist(), strict=True):
            current = factor * current + term
            values.append(current)
        return np.array(values)

    def _long(self, terms: Array, start: float) -> Array:
        local = self._table(np.broadcast_to(terms, self._length))
        scratch = np.empty(self._columns)
        for row in range(1, self._rows):
            np.multiply(local[row - 1], self._table_of_factors[row], out=scratch)
            local[row] += scratch
        before: list[float] = []
        current = start
        whole = np.broadcast_to(self._products[-1], self._columns).tolist()
        for product, last in zip(whole, local[-1].tolist(), strict=True):
            before.append(current)
            # An infinite product of a zero is a zero that never grew.
            current = last + (product * current if current else 0.0)
        carries = np.array(before)
        products = np.where(carries > 0, self._products, 0.0) if self._overflows else self._products
        for row in range(self._rows):
            np.multiply(products[row], carries, out=scratch)
            local[row] += scratch
        return np.ascontiguousarray(local.T).reshape(-1)[: self._length]

    def _table(self, values: Array) -> Array:
        """Lay the steps out by columns; the steps that fill up the last column are zeros."""
        padded = values
        if self._rows * self._columns > self._length:
            padded = np.zeros(self._rows * self._columns)
            padded[: self._length] = values
        return np.ascontiguousarray(padded.reshape(self._columns, self._rows).T)


def forward(terms: Array, factors: Array, start: float = 0.0) -> Array:
    r"""Return :math:`F_t = \rho_t F_{t-1} + f_t`, from :math:`F_0` = `start`."""
    return Recursion(factors, len(terms))(terms, start)


def backward(terms: Array, factors: Array) -> Array:
    r"""Return :math:`F_i = f_i + \rho_{i+1} F_{i+1}` from :math:`F_{T+1} = 0`; :math:`\rho_1` is not used."""
    shifted = factors if len(factors) == 1 else np.concatenate([factors[1:], [0.0]])
    return Recursion(shifted, len(terms), backwards=True)(terms, 0.0)


def majorant(values: Array, after: float = 0.0) -> Array:
    r"""Return the least non-increasing majorant, :math:`\hat c_i = \max(c_i, c_{i+1}, \dots)`.

    Args:
      values: c, one for each step of a block.
      after: the maximum over everything after the block.
    """
    return np.maximum(np.maximum.accumulate(values[::-1])[::-1], after)


def minus_log(theta: Array, q: Array) -> Array:
    r"""Return :math:`-\log\theta_t`, from :math:`q_t = 1 - \theta_t` where that has more digits."""
    if (q < 0.5).all():
        return -np.log1p(-q)
    return np.where(q < 0.5, -np.log1p(-np.minimum(q, 0.5)), -np.log(theta))


def log_growth(
    decrease: Array, q: Array, ratio: float, before: float = 0.0, length: int | None = None
) -> Array:
    r"""Return the increments of :math:`S_t = \log(1 + r (W_t - 1))`.

    With :math:`W_t = \prod_{i\le t} \theta_i^{-1} = e^{\lambda_t}` and
    :math:`D_t = 1 + (r - 1)(1 - e^{-\lambda_t})` it is

    .. math::

        S_t - S_{t-1} = -\log\theta_t + \log\Big(1 + \frac{(r-1)\, q_t e^{-\lambda_{t-1}}}{D_{t-1}}\Big),

    in which nothing overflows and nothing cancels at any horizon.

    Args:
      decrease: :math:`-\log\theta_t`, one for each step or one for all.
      q: :math:`q_t = 1 - \theta_t`, likewise.
      ratio: r.
      before: :math:`\lambda` at the last step before the block.
      length: the number of steps, where neither array says it.

    Returns:
      One increment for each step, or a single one where they are all the same.
    """
    count = max(len(decrease), len(q)) if length is None else length
    # From here on exp(-lambda) r is below the last digit of log theta for every q.
    if before > 80 + np.log1p(ratio):
        return decrease
    earlier = before + np.concatenate([[0.0], np.cumsum(np.broadcast_to(decrease, count)[:-1])])
    fallen = np.expm1(-earlier)
    return decrease + np.log1p((ratio - 1) * q * (1 + fallen) / (1 - (ratio - 1) * fallen))
