"""Values: one at a time (a function composed once for each node), and in blocks; how far off, `rounding` says."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import fmpq

from generic_adam.errors import ScheduleError, shown
from generic_adam.schedules import tree
from generic_adam.schedules.balls import INFINITY, NAN, PRECISIONS, Precision, apply, ball, nearest, value
from generic_adam.schedules.growth import GeometricBase
from generic_adam.schedules.normal import as_exponential, factored, function
from generic_adam.schedules.tree import FloatArray, ScalarFunction, Schedule, block_of, compiled, remembered
from generic_adam.schedules.work import Undecided, Work, reach

Values = FloatArray | np.float64 | float

# From this exponent on, the digits that a float loses of a base such as 0.9 show in the power.
_LONG = 64
# From this base on, the digits that a float loses of an exponent show in the power.
_FAR = 1e6
# Blocks of recursions are small, so that the first steps of a run do not wait for values far ahead.
_RECURSION_BLOCK = 4096
_ROW = 512
# A running quantity at t costs t steps; past this the wait would be minutes.
LARGEST_RECURSION = 10**9


def _log1p(value: float) -> float:
    # 1 - (1 - 1/t)^p at t = 1 passes through log1p(-1) = -infinity, as in arrays; math.log1p would refuse it.
    return -math.inf if value == -1 else math.log1p(value)


_FUNCTIONS: dict[str, ScalarFunction] = {
    **{name: getattr(math, name) for name in ("sqrt", "log", "exp", "sin", "cos", "expm1")},
    "abs": abs,
    "log1p": _log1p,
}


def _composed(operation: Callable[..., float]) -> Callable[[tree.Binary], ScalarFunction]:
    """t -> operation(left_t, right_t), with constants taken out of the inner call."""

    def compose(node: tree.Binary) -> ScalarFunction:
        f, g = node.left.scalar, node.right.scalar
        a, b = node.left.constant_value, node.right.constant_value
        if a is not None:
            return lambda t: operation(a, g(t))
        if b is not None:
            return lambda t: operation(f(t), b)
        return lambda t: operation(f(t), g(t))

    return compose


def _blocks_of_two(operation: Callable[..., Any]) -> Callable[[tree.Binary, FloatArray], Values]:
    return lambda node, times: operation(node.left.block(times), node.right.block(times))


def _constant(node: tree.Constant) -> ScalarFunction:
    number = float(node.value)
    return lambda _t: number


def _of_one(function: ScalarFunction, inner: ScalarFunction) -> ScalarFunction:
    return lambda t: function(inner(t))


def _join(node: tree.Join) -> ScalarFunction:
    threshold, before, after = node.threshold, node.before.scalar, node.after.scalar
    return lambda t: before(t) if t < threshold else after(t)


def joined(
    node: tree.Join, times: FloatArray, part_at: Callable[[Schedule, FloatArray], tuple[Any, Any]]
) -> tuple[Any, Any]:
    """Both parts, each at the times that are its own."""
    early = times < node.threshold
    if not early.any():
        return part_at(node.after, times)
    if early.all():
        return part_at(node.before, times)
    values, errors = np.empty_like(times), np.empty_like(times)
    for mask, part in ((early, node.before), (~early, node.after)):
        values[mask], errors[mask] = part_at(part, times[mask])
    return values, errors


def in_period(node: tree.Periodic, t: Any) -> Any:
    """Return the step of the first period that t repeats."""
    return (t - 1) % node.period + 1


def _bounded(node: tree.Bounded) -> ScalarFunction:
    inner, low, high = node.operand.scalar, node.low, node.high

    def evaluate(t: float) -> float:
        value = inner(t)
        if not low <= value <= high:
            raise ScheduleError(f"{node} is {value} at t = {t}, outside its bounds {low} and {high}")
        return value

    return evaluate


def _bounded_block(node: tree.Bounded, times: FloatArray) -> Values:
    values = np.asarray(node.operand.block(times), dtype=np.float64)
    outside = np.flatnonzero(~((values >= node.low) & (values <= node.high)))
    if outside.size:
        where = np.ravel(times)[outside[0]]  # a constant leaves them at the first step
        raise ScheduleError(f"{node} leaves its bounds {node.low} and {node.high} at t = {where:.0f}")
    return values


def _opaque(node: tree.Opaque) -> ScalarFunction:
    function = node.function

    def evaluate(t: float) -> float:
        try:
            value = function(t)
        except Undecided:
            raise  # a budget was used up inside
        except Exception as error:
            detail = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ScheduleError(f"the callable {node} raised at t = {t}: {detail}") from error
        with suppress(TypeError, ValueError, OverflowError):
            if np.ndim(value) == 0 and not isinstance(value, str | bytes):
                return float(value)
        raise ScheduleError(f"the callable {node} returned {shown(value)} at t = {t}; expected one number")

    return evaluate


def _opaque_block(node: tree.Opaque, times: FloatArray) -> Values:
    whole = times.size > 1 and bool(np.all(times == np.floor(times)))
    block = called_on_block(node, times) if whole else None
    if block is not None:
        return block
    singles = [node.scalar(int(t) if t == math.floor(t) else float(t)) for t in times.ravel()]
    return np.array(singles).reshape(times.shape)


def called_on_block(node: tree.Opaque, times: FloatArray) -> FloatArray | None:
    """Return the function applied to the whole block, or None where it is not a function of arrays."""
    try:
        block = np.asarray(node.function(times.copy()), dtype=np.float64)
    except Undecided:
        raise
    except Exception:  # noqa: BLE001  (any failure means "not for arrays"; single calls report their own errors)
        return None
    if block.shape != times.shape:
        return None
    for index in (0, times.size // 3, times.size - 1):
        single = node.scalar(int(times[index]))
        if not (block[index] == single or math.isclose(block[index], single, rel_tol=1e-15)):
            return None
    return block


def _lost_digits(node: tree.Power) -> tuple[float, float]:
    """Return the digits that floats lose: of log(base) for a number as base, of a number as exponent.

    0.999999999^t at t = 10^9 would be off by 3e-8, t^0.8 at t = 10^12 by 1.2e-15.
    """
    base, exponent = node.left, node.right
    if isinstance(exponent, tree.Constant):
        return 0.0, float(exponent.value - Fraction(float(exponent.value)))
    if not isinstance(base, tree.Constant) or base.value <= 0:
        return 0.0, 0.0
    rounded = Fraction(float(base.value))
    return float((base.value - rounded) / rounded) if rounded else 0.0, 0.0


def _power(node: tree.Power) -> ScalarFunction:
    rate, lost = _lost_digits(node)
    if not rate and not lost:
        return _composed(math.pow)(node)
    f, g = node.left.scalar, node.right.scalar

    def power(t: float) -> float:
        base, exponent = f(t), g(t)
        result = math.pow(base, exponent)
        if (base < _FAR if lost else abs(exponent) < _LONG) or not 0 < result < math.inf:
            return result
        return result * math.exp(lost * math.log(base) if lost else rate * exponent)

    return power


def _power_block(node: tree.Power, times: FloatArray) -> Values:
    base, exponent = node.left.block(times), node.right.block(times)
    if not isinstance(base, np.ndarray):
        if 0 < base < 1 and np.size(exponent) and np.min(exponent) * math.log(base) < -760:
            return np.zeros_like(exponent)  # below every double; the library's power takes its time over it
        result = np.power(base, exponent)
    else:
        # The operator knows the fast exponents 2, 0.5 and -1 of arrays, but not the commonest one of all.
        result = 1 / np.sqrt(base) if np.ndim(exponent) == 0 and exponent == -0.5 else base**exponent
    rate, lost = _lost_digits(node)
    if not rate and not lost:
        return result
    far = base >= _FAR if lost else np.abs(exponent) >= _LONG
    if np.any(far):
        exact = result * np.exp(lost * np.log(base) if lost else rate * exponent)
        result = np.where(far & (result != 0) & np.isfinite(result), exact, result)
    return result


class RunningQuantity:
    """A running quantity evaluated block by block, with the state at each block's start kept.

    `advance(state, times)` returns the values on a block of whole t and the state after it.
    """

    def __init__(
        self,
        node: Schedule,
        initial: float,
        block: int,
        advance: Callable[[float, FloatArray], tuple[FloatArray, float]],
    ) -> None:
        self.block = block
        self._node = node
        self._advance = advance
        self._states = {0: initial}
        self._last: tuple[int, FloatArray] = (-1, np.empty(0))

    def block_values(self, index: int) -> FloatArray:
        """Return the values on t = index * block + 1, ..., (index + 1) * block."""
        held = self._last
        if held[0] == index:
            return held[1]
        reach(Work.BLOCKS, self._node, index)
        while True:
            known = min(len(self._states) - 1, index)
            start = known * self.block + 1
            values, state = self._advance(self._states[known], np.arange(start, start + self.block, dtype=np.float64))
            # By its index, not appended: a second thread that came as far finds the same state there.
            self._states[known + 1] = state
            if known == index:
                self._last = (index, values)
                return values

    def scalar(self, t: float) -> float:
        """Return the value at one whole t."""
        index, offset = divmod(self._whole(t) - 1, self.block)
        return float(self.block_values(index)[offset])

    def evaluate(self, times: FloatArray) -> FloatArray:
        """Return the values at an array of whole t."""
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
            raise ScheduleError(f"a schedule with a running sum or product is defined at t = 1, 2, 3, ..., got {t}")
        if t > LARGEST_RECURSION:
            raise ScheduleError(
                f"a running sum or product is evaluated up to t = {LARGEST_RECURSION:.0e}, got t = {t:.6g}"
            )
        return int(t)


def _running(state: float, terms: FloatArray) -> tuple[FloatArray, float]:
    """Return the sums state + terms[0] + ... + terms[i], each accurate to a few ulp, and the last of them."""
    rows = terms.reshape(-1, _ROW) if terms.size % _ROW == 0 else terms[None]
    starts = np.cumsum([state, *rows.sum(axis=1)])  # NumPy adds a row up in pairs, as good as exactly
    return (starts[:-1, None] + np.cumsum(rows, axis=1)).ravel(), float(starts[-1])


@remembered
def split_geometric(weights: Schedule) -> tuple[float, Schedule]:
    """(log rho, rest) with w_t = rho^t rest_t: the factor that would overflow is kept as a number."""
    rho, rest = GeometricBase(), tree.operand(1)
    for base, exponent in factored(weights).items():
        form = as_exponential(base)
        if form is None:
            rest = rest * base ** tree.Constant(exponent)
        else:
            constant, slope, offset = form
            one = GeometricBase(fmpq(1)) if constant is None else GeometricBase.from_rational(constant)
            rho = rho * one ** (slope * exponent)
            known = tree.Constant(offset * exponent)
            rest = rest * (function("exp", known) if constant is None else tree.Constant(constant) ** known)
    return (rho.log, rest) if rho.sign_of_log else (0.0, weights)


@remembered
def _share(node: tree.OfWeights) -> RunningQuantity:
    """w_t / W_t, from sums scaled by rho^t where w_t would overflow."""
    log_rho, rest = split_geometric(node.weights)
    size = _RECURSION_BLOCK if log_rho <= 0 else max(1, min(_RECURSION_BLOCK, int(300 / log_rho)))
    # A share does not change with the unit of the weights. It is about the larger of w_1 and W_0, so that W_t >= 1/2
    # does not underflow; for rho > 1, where W_0 is soon forgotten, it is w_1, times rho^s in the block starting at s.
    initial_bits = node.initial.numerator.bit_length() - node.initial.denominator.bit_length()
    bits_of_rho, bits = log_rho / math.log(2), math.frexp(rest(1))[1]
    if log_rho <= 0:  # beyond 2^10000 there is nothing left of the weights
        bits = max(bits, math.floor(min(initial_bits - bits_of_rho, 10_000)))
    lift = initial_bits - bits_of_rho - bits
    if log_rho > 0 and lift > 1000:
        raise ScheduleError(f"W_0 = {node.initial} is too large beside the weights {node.weights}")
    initial = float(node.initial / Fraction(2) ** initial_bits) * 2.0 ** min(lift, 1000)

    def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
        powers = np.exp(log_rho * (times - (times[0] if log_rho > 0 else 1)))
        unscaled = np.broadcast_to(rest.block(times), times.shape)
        if not bool(np.all(unscaled > 0)):
            first = int(times[np.argmin(unscaled > 0)])
            raise ScheduleError(f"weights must be positive, got w_t = {node.weights(first)} at t = {first}")
        weights = powers * np.ldexp(unscaled, -bits)
        sums, total = _running(state, weights)
        if total == math.inf or (log_rho > 0 and weights.min() < 1e-290):
            raise ScheduleError(f"the sum of {node.weights} leaves the range of floats by t = {times[-1]:.0f}")
        return weights / sums, total * math.exp(-log_rho * size) if log_rho > 0 else total

    return RunningQuantity(node, initial, size, advance)


@remembered
def decay_of(node: tree.BiasCorrection) -> float | None:
    """-log of a constant factor, right to an ulp (nan where no precision tells it); None for one that moves."""
    if not node.factor.is_constant:
        return None
    rate = NAN
    for bits in PRECISIONS:
        with Precision(bits):
            rate = -ball(apply("log1p", -value(node.factor.complement, 1)))
        if rate.rel_accuracy_bits() >= 60:
            break
    return nearest(rate) if rate.rel_accuracy_bits() >= 60 or rate == INFINITY else math.nan


@remembered
def _log_product(node: tree.BiasCorrection) -> RunningQuantity:
    """Log prod factor_i, from the exact complements of the factors."""
    complement = node.factor.complement

    def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
        missing = np.broadcast_to(np.asarray(complement.block(times)), times.shape)
        inside = (missing > 0) & (missing <= 1)
        if not bool(np.all(inside)):
            first = int(times[np.argmin(inside)])
            raise ScheduleError(f"bias correction needs factors in [0, 1), got {node.factor(first)} at t = {first}")
        with np.errstate(divide="ignore"):
            logs = np.log1p(-missing)
        return _running(state, logs)

    return RunningQuantity(node, 0.0, _RECURSION_BLOCK, advance)


def _correction(node: tree.BiasCorrection) -> ScalarFunction:
    rate = decay_of(node)
    if rate is not None:
        return lambda t: -math.expm1(-rate * t)
    running = _log_product(node).scalar
    return lambda t: -math.expm1(running(t))


def _correction_block(node: tree.BiasCorrection, times: FloatArray) -> Values:
    rate = decay_of(node)
    return -np.expm1(-rate * times if rate is not None else _log_product(node).evaluate(times))


compiled.update(
    {
        tree.Constant: _constant,
        tree.Time: lambda _node: float,
        tree.Power: _power,
        tree.Negate: lambda node: _of_one(operator.neg, node.operand.scalar),
        tree.Function: lambda node: _of_one(_FUNCTIONS[node.name], node.argument.scalar),
        tree.Join: _join,
        tree.Periodic: lambda node: _of_one(node.body.scalar, partial(in_period, node)),
        tree.Bounded: _bounded,
        tree.WeightShare: lambda node: _share(node).scalar,
        tree.WeightedTheta: lambda node: _of_one((1.0).__sub__, _share(node).scalar),
        tree.BiasCorrection: _correction,
        tree.Opaque: _opaque,
    }
)
block_of.update(
    {
        tree.Constant: lambda node, _times: float(node.value),
        tree.Time: lambda _node, times: times,
        tree.Power: _power_block,
        tree.Negate: lambda node, times: -node.operand.block(times),
        tree.Function: lambda node, times: getattr(np, node.name)(node.argument.block(times)),
        tree.Join: lambda node, times: joined(node, times, lambda part, at: (part.block(at), 0.0))[0],
        tree.Periodic: lambda node, times: node.body.block(in_period(node, times)),
        tree.Bounded: _bounded_block,
        tree.WeightShare: lambda node, times: _share(node).evaluate(times),
        tree.WeightedTheta: lambda node, times: 1.0 - _share(node).evaluate(times),
        tree.BiasCorrection: _correction_block,
        tree.Opaque: _opaque_block,
    }
)
# node -> its operation on two numbers, and on two arrays
OF_TWO: dict[type[Schedule], tuple[Callable[..., Any], Callable[..., Any]]] = {
    tree.Add: (operator.add, operator.add),
    tree.Subtract: (operator.sub, operator.sub),
    tree.Multiply: (operator.mul, operator.mul),
    tree.Divide: (float.__truediv__, np.true_divide),
    tree.Maximum: (max, np.maximum),
    tree.Minimum: (min, np.minimum),
}
for _node, (_single, _block) in OF_TWO.items():
    compiled[_node] = _composed(_single)
    block_of[_node] = _blocks_of_two(_block)
