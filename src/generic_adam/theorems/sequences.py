r"""An algorithm in numbers: its sequences on the steps 1..T, and linear recursions over them in NumPy alone.

A bound of this package is a few recursions of first order, :math:`F_t = \rho_t F_{t-1} + f_t` with
:math:`\rho_t, f_t \ge 0`, run forwards or backwards over 1..T. A loop in Python takes a second for a million
steps; here a block of steps is laid out as a table, its columns are advanced together, and the carries
between the columns are put in afterwards:

.. math:: F_t = F^{\text{local}}_t + \Big(\prod_{j \le t} \rho_j\Big) F_{\text{before the column}}.

Every term is non-negative, so that nothing cancels, and a product that underflows stands for a term that
could not be seen; `rounding` bounds what doubles can do to a result. An array of length 1 is a constant
stretch: what is constant is computed once.

Two logarithms pay for noise, momentum and drift. With :math:`U_t = W_t v_t` plus a constant, :math:`\ell_t =
\log(U_t/U_{t-1})` and :math:`\ell'_t = 2\log(D_t/(\sqrt{\theta_t}\,D_{t-1}))` telescope, and their sums are at most
:math:`S_t` and :math:`S'_t` in the mean (Jensen); Lemma N is paid by the first. Proofs: docs/theorems/weighted.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import TheoremError
from generic_adam.methods.algorithm import Algorithm, HeavyBall, Nesterov
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules.rounding import lost_digits
from generic_adam.schedules.work import Undecided, Work, allow, poll

Array = NDArray[np.float64]

BLOCK = 1 << 16
"""Steps of a block."""

LONGEST = 10**8
"""The most steps that the recursions are run for."""


def total(values: Array, length: int) -> float:
    """Return the sum over `length` steps, on which an array of length 1 is constant."""
    return float(values.sum()) * (length / len(values))


def _sequence(name: str) -> cached_property[Array]:
    def values(block: Block) -> Array:
        return block.read(name)

    return cached_property(values)


@dataclass(frozen=True, eq=False)
class Block:
    r"""The sequences on consecutive steps, read when they are looked at; an array of length 1 is a constant.

    alpha is :math:`\alpha_t` as it multiplies the step, a bias correction folded in; gain is :math:`1 - \beta_t` and
    q is :math:`1 - \theta_t`, with all their digits; eps is :math:`e_t`, added to :math:`\sqrt{v_t}` (or its square
    under the root); the weights of momentum and gradient are :math:`a_t` and :math:`b_t` of
    :math:`\alpha_t (a_t m_t + b_t g_t)/D_t`, and decay is :math:`\nu_t` of :math:`x_{t+1} = (1-\nu_t) x_t - \dots`.

    Args:
      read: the values of a sequence by its name.
      start: the first of the steps.
      stop: the step after the last.
    """

    read: Callable[[str], Array]
    start: int
    stop: int
    alpha = _sequence("alpha")
    beta = _sequence("beta")
    gain = _sequence("gain")
    theta = _sequence("theta")
    q = _sequence("q")
    eps = _sequence("eps")
    momentum_weight = _sequence("momentum_weight")
    gradient_weight = _sequence("gradient_weight")
    decay = _sequence("decay")

    @property
    def length(self) -> int:
        """The number of steps."""
        return self.stop - self.start

    @property
    def rho(self) -> Array:
        r""":math:`\rho_t = \beta_t/\sqrt{\theta_t}`; 0 where :math:`\theta_1 = 0`, which inherits nothing."""
        return np.where(self.theta > 0, self.beta, 0.0) / np.sqrt(self._positive_theta)

    @property
    def growth(self) -> Array:
        r""":math:`q_t/\theta_t = 1/\theta_t - 1`; 0 in place of the infinity where :math:`\theta_1 = 0`."""
        return np.where(self.theta > 0, self.q, 0.0) / self._positive_theta

    @property
    def _positive_theta(self) -> Array:
        return self.theta if self.theta[0] > 0 else np.where(self.theta > 0, self.theta, 1.0)

    def total(self, values: Array) -> float:
        """Return the sum of values, one for each step or one for all of them."""
        return total(values, self.length)


@dataclass(frozen=True, eq=False)
class Sequences:
    r"""The deterministic sequences of an algorithm on the steps 1..T, and the form of its step.

    Args:
      steps: T.
      block: the sequences on the steps start..stop-1, as a function of (start, stop).
      initial_v: :math:`v_0 \ge 0`.
      under_root: whether :math:`D_t = \sqrt{v_t + e_t^2}`.
      running_maximum: whether :math:`\max_{i\le t} v_i` stands for :math:`v_t`.
      power: p of :math:`D_t = v_t^p + e_t`.
      heavy_ball: momentum after the division, beta unused; or None.
      looks_ahead: whether some :math:`b_t` may differ from 0.
      decays: whether some :math:`\nu_t` may.
    """

    steps: int
    block: Callable[[int, int], Block]
    initial_v: float = 0.0
    under_root: bool = False
    running_maximum: bool = False
    power: float = 0.5
    heavy_ball: HeavyBall | None = None
    looks_ahead: bool = False
    decays: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= LONGEST:
            raise TheoremError(f"steps: expected a whole number from 1 to {LONGEST:,}, got {self.steps}")
        if self.heavy_ball is not None and not 0 <= self.heavy_ball.factor < 1:
            raise TheoremError(f"momentum is {self.heavy_ball.factor!r}, expected a number in [0, 1)")

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(start, stop) of every block."""
        return [(start, min(start + BLOCK, self.steps + 1)) for start in range(1, self.steps + 1, BLOCK)]

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks from the first to the last."""
        return (self.block(start, stop) for start, stop in self.edges)

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
        steps: int | None = None,
        **form: Any,
    ) -> Sequences:
        """Return the sequences that arrays of T values, or numbers for constants, spell out."""
        complement = 1 - np.asarray(theta, dtype=np.float64) if q is None else q
        given = {"alpha": alpha, "beta": beta, "theta": theta, "q": complement, "eps": eps, "decay": decay}
        given["gain"] = 1 - np.asarray(beta, dtype=np.float64)
        given |= {"momentum_weight": momentum_weight, "gradient_weight": gradient_weight}
        arrays = {name: np.atleast_1d(np.asarray(one, dtype=np.float64)) for name, one in given.items()}
        lengths = {len(values) for values in arrays.values() if len(values) > 1}
        last = max(lengths, default=1) if steps is None else steps
        if lengths - {last}:
            raise TheoremError(f"sequences of {sorted(lengths)} values, expected {last} of each")

        def block(start: int, stop: int) -> Block:
            def read(name: str) -> Array:
                values = arrays[name]
                return values if len(values) == 1 else values[start - 1 : stop - 1]

            return Block(read, start, stop)

        looks_ahead, decays = bool(arrays["gradient_weight"].any()), bool(arrays["decay"].any())
        return cls(last, block, **form, looks_ahead=looks_ahead, decays=decays)

    @classmethod
    def of_algorithm(cls, x: Algorithm, steps: int) -> Sequences:
        """Return the sequences of an algorithm; what is constant on a block is kept as one number.

        Raises:
          TheoremError: when a value is asked for that is no finite number.
          Undecided: terms of a sequence cancel, so that doubles do not have its digits; or there are more steps than
            the budget allows.
        """
        allow(Work.SWEPT, steps, steps)
        method = x.method
        ahead = x.nesterov or Nesterov(as_schedule(1), as_schedule(0))
        schedules = {"alpha": method.alpha, "beta": method.beta, "theta": method.theta}
        schedules |= {"gain": 1 - method.beta, "q": 1 - method.theta, "eps": x.eps, "decay": x.decay}
        schedules |= {"momentum_weight": ahead.momentum_weight, "gradient_weight": ahead.gradient_weight}
        for name, one in schedules.items():
            _check_digits(name, one, steps)
        constant: dict[tuple[str, int, int], Array] = {}  # what stands still is evaluated in one pass alone

        def block(start: int, stop: int) -> Block:
            poll()

            def read(name: str) -> Array:
                key = (name, start, stop)
                found = constant[key] if key in constant else _values(schedules[name], start, stop)
                if len(found) == 1:
                    constant[key] = found
                return found

            return Block(read, start, stop)

        form = (x.initial_v, x.eps_under_root, x.running_maximum, float(x.power), x.heavy_ball)
        return cls(steps, block, *form, x.nesterov is not None, x.decay != as_schedule(0))


def _check_digits(name: str, schedule: Schedule, steps: int) -> None:
    """Raise Undecided where the errors of a sequence's values are no rounding any more."""
    # beta and theta enter as products over the steps, the others as they are.
    if lost_digits(schedule, steps) > (1e-9 if name in ("beta", "theta") else 1e-6):
        raise Undecided(f"the terms of {name}_t = {schedule} cancel: doubles do not have enough of its digits")


def _values(schedule: Schedule, start: int, stop: int) -> Array:
    constant = schedule.constant_value
    if constant is not None:
        return np.array([float(constant)])
    values = schedule.values(start, stop)
    finite = np.isfinite(values)
    if not finite.all():
        raise TheoremError(f"{schedule} is no finite number at t = {start + int(np.argmin(finite))}")
    # A copy of the one number: a view would keep the block that it was cut from.
    return values[:1].copy() if values[0] == values[-1] and (values == values[0]).all() else values


# Below this many steps a loop does all the work.
_SHORT = 48
# Rows of a table: NumPy is called for each, and a column's carry costs no more than a term of a short recursion.
_ROWS = 32
# A step that moves F by no more than this share of it, 4u, is rounding.
_REST = 2.0**-51


class Recursion:
    r""":math:`F_t = \rho_t F_{t-1} + f_t` for one block of factors and any number of right sides.

    Args:
      factors: :math:`\rho_t \ge 0`, one for each step, or a single one for all of them.
      length: the number of steps.
      backwards: whether the recursion starts at the last step, :math:`F_i = f_i + \rho_i F_{i+1}`.
    """

    def __init__(self, factors: Array, length: int, *, backwards: bool = False) -> None:
        self._length = length
        self._order = slice(None, None, -1 if backwards else 1)
        self._rows = 1 if length < _SHORT else _ROWS
        self._columns = -(-length // self._rows)
        self._single = factors[0] if len(factors) == 1 else None
        table = factors if len(factors) == 1 else self._table(factors[self._order])
        self._factors = np.broadcast_to(table, (self._rows, table.shape[-1]))
        # Row by row: NumPy's own accumulate goes column by column, ten times slower.
        self._products = np.array(self._factors)
        for row in range(1, self._rows):
            np.multiply(self._products[row - 1], self._factors[row], out=self._products[row])
        # From column to column it is a recursion again; an infinite product has to be asked one by one.
        self._overflows = bool(np.isinf(self._products[-1]).any())
        nested = self._columns >= _SHORT and self._rows > 1 and not self._overflows
        self._carried = Recursion(self._products[-1], self._columns) if nested else None

    def __call__(self, terms: Array, start: float) -> Array:
        """Return F for the right sides `terms`, from F = `start` just outside the block.

        Where factor and right side are constant and F has come to rest, F is constant: an array of length 1.
        """
        single = self._single if len(terms) == 1 else None
        if single is not None and abs(single * start + terms[0] - start) <= _REST * start:
            return np.array([start])
        local = self._table(np.broadcast_to(terms, self._length)[self._order])
        scratch = np.empty(self._columns)
        for row in range(1, self._rows):
            np.multiply(local[row - 1], self._factors[row], out=scratch)
            local[row] += scratch
        carries, products = self._before_columns(local[-1], start), self._products
        if self._overflows:
            products = np.where(carries > 0, products, 0.0)
        result = np.empty((self._columns, self._rows))
        np.add(local, products * carries, out=result.T)
        return result.reshape(-1)[: self._length][self._order]

    def _before_columns(self, last: Array, start: float) -> Array:
        """F before each column, from what the columns add up to."""
        if self._carried is not None:
            return np.concatenate([[start], self._carried(last, start)[:-1]])
        before: list[float] = []
        current = start
        whole = np.broadcast_to(self._products[-1], self._columns).tolist()
        for product, end in zip(whole, last.tolist(), strict=True):
            before.append(current)
            # An infinite product of a zero is a zero that never grew.
            current = end + (product * current if current else 0.0)
        return np.array(before)

    def _table(self, values: Array) -> Array:
        """Lay the steps out by columns; the steps that fill up the last column are zeros."""
        if self._rows * self._columns > self._length:
            values = np.concatenate([values, np.zeros(self._rows * self._columns - self._length)])
        return values.reshape(self._columns, self._rows).T.copy()


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


def log_growth(growth: Array, ratio: float, before: float = 0.0, length: int | None = None) -> Array:
    r"""Return the increments of :math:`S_t = \log(1 + r (W_t - 1))`.

    With :math:`W_t = \prod_{i\le t} \theta_i^{-1} = e^{\lambda_t}`, so that
    :math:`-\log\theta_t = \log(1 + q_t/\theta_t)`, it is

    .. math::

        S_t - S_{t-1} = \log\Big(1 + \frac{q_t}{\theta_t}\cdot
        \frac{r}{e^{-\lambda_{t-1}} + r\,(1 - e^{-\lambda_{t-1}})}\Big),

    in which nothing overflows and nothing cancels, for any r and at any horizon.

    Args:
      growth: :math:`q_t/\theta_t`, one for each step or one for all.
      ratio: r.
      before: :math:`\lambda` at the last step before the block.
      length: the number of steps, where the array does not say it.

    Returns:
      One increment for each step, or a single one where they are all the same.
    """
    decrease = np.log1p(growth)
    # From here on exp(-lambda) is below the last digit of both summands of the divisor.
    if ratio == 0 or before > 80 + abs(math.log(ratio)):
        return decrease if ratio else np.zeros(1)
    count = len(growth) if length is None else length
    earlier = before + np.concatenate([[0.0], np.cumsum(np.broadcast_to(decrease, count)[:-1])])
    return np.log1p(growth * (ratio / (np.exp(-earlier) - ratio * np.expm1(-earlier))))


def rounding(steps: int, ratio: float = 1.0) -> float:
    r"""Return how far, relatively, doubles may carry a bound from its exact value: about 56 T units in the last place.

    Everything is a sum of products of non-negative numbers, so relative errors add up and never grow by
    cancellation. With u = 2^-53, and every value of a sequence within 2u of what it stands for (one that has lost
    its digits is refused), :math:`\rho_t = \beta_t/\sqrt{\theta_t}` is within 5u. A term of a recursion
    is multiplied and added once a step (in the table too: a term meets at most a row, a column and a carry), so each
    recursion adds 7u a step for R, Q and H, and 12u for M, of which the root is taken; a recursion at rest adds 4u a
    step to its factor's 5u.

    Drift: R and Q inside H, 27 T u. Noise: Q and the root of M, 16 T u. The logarithm takes
    :math:`\lambda_t`, within (T + 5)u of itself, and is within :math:`(1 + \log^+ r^{-1})` times that; the sum over the
    steps adds T u, and the divisor :math:`\Pi`, a sum of Q, 10 T u. Together :math:`(39 + \log^+ r^{-1}) T u`, and what
    does not grow with T is less than 400u while the shares leave a fiftieth of the descent. The share of eps is a
    difference: it is rounded up by its own error instead, and :math:`e_t \ge \sqrt{\theta_t}\,e_{t-1}` is believed to
    16u a step.

    Args:
      steps: T.
      ratio: the least r of the logarithms.
    """
    return ((56 + max(0.0, -math.log(ratio)) if ratio else 56) * steps + 400) * 2.0**-53


LEMMA_N = (1 + math.sqrt(5)) / (4 * math.sqrt(2))
"""N = 0.572, the constant of Lemma N where :math:`e_t` is at most the root of the mean second moment, or under it."""

LEMMA_N_ANY_EPS = (1 + math.sqrt(2)) / 2
"""N' = 1.207, its constant whatever :math:`e_t` is."""


def eps_factor(eps: Array, q: Array, gradient: float) -> Array:
    r"""Return what Lemma N's constant is multiplied by for eps beside the root.

    The lemma holds with :math:`\max(N G, N'\min(G, e_t/\sqrt{q_t}))` for :math:`N G`: where :math:`e_t` exceeds the
    root of the mean second moment, the gradients are smaller than :math:`e_t/\sqrt{q_t}`.

    Args:
      eps: :math:`e_t`.
      q: :math:`1 - \theta_t`.
      gradient: G.
    """
    return np.maximum(1.0, LEMMA_N_ANY_EPS / LEMMA_N * np.minimum(1.0, eps / (np.sqrt(q) * gradient)))


def divisor_growth(
    growth: Array, before: Array | float, second_moment: float, eps_before: Array, new_eps: Array, *, under_root: bool
) -> Array:
    r"""Return the increments of :math:`S'_t`, the logarithm of how far the divisor grows.

    .. math::

        S'_t = 2\log\frac{\sqrt{v_0 + G^2(W_t-1)} + \sqrt{W_t}\,e_t}{\sqrt{v_0} + e_1/\sqrt{\theta_1}}, \qquad
        S'_t = \log\frac{v_0 + G^2(W_t-1) + W_t e_t^2}{v_0 + e_1^2/\theta_1}

    with eps beside the root, or under it. Divided by :math:`\sqrt{W_{t-1}}`, every step's growth is a sum of positive
    terms, in which nothing cancels or overflows.

    Args:
      growth: :math:`q_t/\theta_t`.
      before: :math:`v_0/W_{t-1} + G^2(1 - 1/W_{t-1})`, the mean second moment before the step.
      second_moment: :math:`G^2`.
      eps_before: :math:`e_{t-1}`; :math:`e_0 = e_1/\sqrt{\theta_1}`.
      new_eps: :math:`e_t/\sqrt{\theta_t} - e_{t-1} \ge 0`.
      under_root: whether eps is under the root.
    """
    rise = second_moment * growth
    if under_root:
        return np.log1p((rise + new_eps * (new_eps + 2 * eps_before)) / (before + eps_before**2))
    root = np.sqrt(before)
    added = rise / (np.sqrt(before + rise) + root + np.finfo(float).tiny)  # 0 where nothing is there yet
    return 2 * np.log1p((added + new_eps) / (root + eps_before))
