"""Schedules defined by a running sum or product: theta from weights, and bias correction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from generic_adam.schedules.base import FloatArray, ScalarFunction, Schedule
from generic_adam.schedules.cached import cached_attribute
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.functions import Function
from generic_adam.schedules.growth import UNKNOWN_CONSTANT, Growth
from generic_adam.schedules.nodes import Constant, Divide, Multiply, Negate
from generic_adam.schedules.powers import Power
from generic_adam.schedules.ratebase import ONE, log_of
from generic_adam.schedules.simplify import as_linear

# Blocks are small, so that the first steps of a run do not wait for values far ahead.
_RECURSION_BLOCK = 1024
# A running quantity at t costs t steps; past this the wait would be minutes.
LARGEST_RECURSION = 10**9


class Recursion:
    """A running quantity evaluated block by block, with the state at each block's start kept.

    `advance(state, times)` returns the values on a block of whole t and the state after it.
    """

    def __init__(
        self, initial: float, block: int, advance: Callable[[float, FloatArray], tuple[FloatArray, float]]
    ) -> None:
        self.block = block
        self._advance = advance
        self._states = {0: initial}
        self._last: tuple[int, FloatArray] = (-1, np.empty(0))

    def block_values(self, index: int) -> FloatArray:
        """The values on t = index * block + 1, ..., (index + 1) * block."""
        held = self._last
        if held[0] == index:
            return held[1]
        while True:
            known = min(len(self._states) - 1, index)
            start = known * self.block + 1
            values, state = self._advance(
                self._states[known], np.arange(start, start + self.block, dtype=np.float64)
            )
            # By its index, not appended: a second thread that came as far finds the same state there.
            self._states[known + 1] = state
            if known == index:
                self._last = (index, values)
                return values

    def scalar(self, t: float) -> float:
        """The value at one whole t."""
        index, offset = divmod(self._whole(t) - 1, self.block)
        return float(self.block_values(index)[offset])

    def evaluate(self, times: FloatArray) -> FloatArray:
        """The values at an array of whole t."""
        if times.size == 0:
            return times.copy()
        if not bool(np.all(times == np.floor(times))):
            raise ScheduleError("a schedule with a running sum or product is defined at whole t only")
        self._whole(float(times.max()))
        result = np.empty_like(times)
        blocks, offsets = np.divmod(times.astype(np.int64) - 1, self.block)
        order = np.argsort(blocks, kind="stable")
        starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
        for here in np.split(order, starts[1:]):
            result[here] = self.block_values(int(blocks[here[0]]))[offsets[here]]
        return result

    @staticmethod
    def _whole(t: float) -> int:
        if t != math.floor(t) or t < 1:
            raise ScheduleError(
                f"a schedule with a running sum or product is defined at t = 1, 2, 3, ..., got {t}"
            )
        if t > LARGEST_RECURSION:
            raise ScheduleError(
                f"a running sum or product is evaluated up to t = {LARGEST_RECURSION:.0e}, got t = {t:.6g}"
            )
        return int(t)


def split_geometric(weights: Schedule) -> tuple[float, Schedule]:
    """(log rho, rest) with w_t = rho^t rest_t: the factor that would overflow is kept as a number."""
    match weights:
        case Multiply(left, right):
            (first, rest), (second, other) = split_geometric(left), split_geometric(right)
            return first + second, rest * other
        case Divide(left, right):
            (first, rest), (second, other) = split_geometric(left), split_geometric(right)
            return first - second, rest / other
        case Negate(operand):
            rate, rest = split_geometric(operand)
            return rate, -rest
        case Power(Constant(base), exponent) if base > 0 and (line := as_linear(exponent)) is not None:
            return float(line[0]) * log_of(base), Constant(base) ** Constant(line[1])
        case Function("exp", argument) if (line := as_linear(argument)) is not None:
            return float(line[0]), Function("exp", Constant(line[1]))
        case _:
            return 0.0, weights


@dataclass(frozen=True, repr=False)
class _OfWeights(Schedule):
    """What theta_t = W_{t-1}/W_t and its complement w_t/W_t share."""

    weights: Schedule
    initial: Fraction = field(default=Fraction(1))

    def __post_init__(self) -> None:
        if self.initial <= 0:
            raise ScheduleError(f"the initial weight sum W_0 must be positive, got {self.initial}")

    @property
    def accepts_real_times(self) -> bool:
        """Whether `at` is defined for real t."""
        return False

    @cached_attribute
    def share(self) -> Recursion:
        """w_t / W_t, computed from sums scaled by rho^t, so that neither w_t nor W_t can overflow."""
        log_rho, rest = split_geometric(self.weights)
        block = _RECURSION_BLOCK if log_rho == 0 else max(1, min(_RECURSION_BLOCK, int(300 / abs(log_rho))))

        def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
            # state = W_{s-1} rho^{-(s-1)} for the block starting at s; weights are scaled likewise.
            powers = np.exp(log_rho * (times - (times[0] - 1)))
            weights = powers * rest._evaluate(times)
            if not bool(np.all(weights > 0)):
                first = int(times[np.argmin(weights > 0)])
                raise ScheduleError(
                    f"weights must be positive, got w_t = {self.weights(first)} at t = {first}"
                )
            sums = state + np.cumsum(weights)
            # The exact sum carries over to the next block; sums inside it are accurate to a few ulp.
            total = math.fsum((state, *weights.tolist()))
            return weights / sums, total / float(powers[-1])

        return Recursion(float(self.initial), block, advance)

    def _growth_of_share(self) -> Growth | None:
        weights = self.weights.growth
        if weights is None or weights.sign <= 0:
            return None
        sums = weights.partial_sums()
        if sums is None:
            return None
        if sums.trend == 0:
            # W_0 counts beside a convergent sum; only its being a positive constant is used.
            sums = UNKNOWN_CONSTANT
        if weights.rho.sign_of_log > 0:
            limit = -math.expm1(-weights.rho.log)
            if weights.low < weights.high * (1 - 1e-9):
                # A factor that swings: w_t / W_t stays between two positive constants.
                return Growth(limit * weights.low / weights.high, 1.0)
            return Growth(limit * (1 - 1e-8), min(1.0, limit * (1 + 1e-8)))
        inverse = sums.inverse()
        return weights * inverse if inverse is not None else None

    def _arguments(self) -> str:
        return f"{self.weights}" if self.initial == 1 else f"{self.weights}, {Constant(self.initial)}"


@final
@dataclass(frozen=True, repr=False)
class WeightedTheta(_OfWeights):
    """theta_t = W_{t-1} / W_t, W_t = W_{t-1} + w_t, W_0 = initial: Generic Adam's theta from weights."""

    def _compile(self) -> ScalarFunction:
        share = self.share.scalar
        return lambda t: 1.0 - share(t)

    def _evaluate(self, times: FloatArray) -> FloatArray:
        return 1.0 - self.share.evaluate(times)

    def _growth(self) -> Growth | None:
        share = self._growth_of_share()
        if share is None:
            return None
        # Off a limit of 1, 1 - share is exact only where the share tends to 0.
        return Growth(1.0, 1.0) + (-share)

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return WeightShare(self.weights, self.initial)

    def __str__(self) -> str:
        return f"theta_from_weights({self._arguments()})"


@final
@dataclass(frozen=True, repr=False)
class WeightShare(_OfWeights):
    """w_t / W_t = 1 - theta_t, all digits kept."""

    binding = 1

    def _compile(self) -> ScalarFunction:
        return self.share.scalar

    def _evaluate(self, times: FloatArray) -> FloatArray:
        return self.share.evaluate(times)

    def _growth(self) -> Growth | None:
        return self._growth_of_share()

    def one_minus(self) -> Schedule:
        """1 - u, with the digits that the form allows to keep."""
        return WeightedTheta(self.weights, self.initial)

    def __str__(self) -> str:
        return f"1 - theta_from_weights({self._arguments()})"


@final
@dataclass(frozen=True, repr=False)
class BiasCorrection(Schedule):
    """u_t = 1 - prod_{i<=t} factor_i, factors in [0, 1): right for schedules, where factor_t^t is wrong."""

    factor: Schedule

    def __post_init__(self) -> None:
        value = self.factor.constant_value
        if value is not None and not 0 <= value < 1:
            raise ScheduleError(f"bias correction needs a factor in [0, 1), got {value}")

    @property
    def constant_value(self) -> float | None:
        """The number that u_t is for every t, or None."""
        return 1.0 if self.factor.constant_value == 0 else None

    @property
    def accepts_real_times(self) -> bool:
        """Whether `at` is defined for real t."""
        return self.factor.is_constant

    @cached_attribute
    def _log_product(self) -> Recursion:
        complement = self.factor.complement

        def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
            missing = np.broadcast_to(np.asarray(complement._evaluate(times)), times.shape)
            if not bool(np.all((missing > 0) & (missing <= 1))):
                first = int(times[np.argmin((missing > 0) & (missing <= 1))])
                raise ScheduleError(
                    f"bias correction needs factors in [0, 1), got {self.factor(first)} at t = {first}"
                )
            with np.errstate(divide="ignore"):
                logs = np.log1p(-missing)
            return state + np.cumsum(logs), math.fsum((state, *logs.tolist())) if np.isfinite(
                logs
            ).all() else -math.inf

        return Recursion(0.0, _RECURSION_BLOCK, advance)

    @cached_attribute
    def decay(self) -> float | None:
        """-log of a constant factor from its exact complement, which keeps what log(theta) would lose."""
        missing = self.factor.complement.constant_value
        if missing is None:
            return None
        return -math.log1p(-missing) if missing < 1 else math.inf

    def _compile(self) -> ScalarFunction:
        rate = self.decay
        if rate is not None:
            return lambda t: -math.expm1(-rate * t)
        running = self._log_product.scalar
        return lambda t: -math.expm1(running(t))

    def _evaluate(self, times: FloatArray) -> FloatArray:
        rate = self.decay
        return -np.expm1(-rate * times if rate is not None else self._log_product.evaluate(times))

    def _growth(self) -> Growth | None:
        # It rises from 1 - factor_1 to a limit of at most 1, and tends to 1 where the product tends to 0.
        missing = self.factor.complement.growth
        if missing is None or missing.sign <= 0:
            return None
        sums = missing.partial_sums()
        if sums is None or sums.trend <= 0:
            return UNKNOWN_CONSTANT if sums is None else Growth(max(self(1), math.ulp(0.0)), 1.0, ONE)
        return Growth(1.0, 1.0)

    def __str__(self) -> str:
        return f"bias_correction({self.factor})"
