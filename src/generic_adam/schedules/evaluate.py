"""Values: one at a time (a function composed once for each node) and in blocks (NumPy)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.budget import check_time
from generic_adam.schedules.normal import as_linear
from generic_adam.schedules.tree import FloatArray, ScalarFunction, Schedule, block_of, compiled

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


def _quotient(a: float, b: float) -> float:
    return a / b


_FUNCTIONS: dict[str, tuple[ScalarFunction, Callable[..., Any]]] = {
    "sqrt": (math.sqrt, np.sqrt),
    "log": (math.log, np.log),
    "exp": (math.exp, np.exp),
    "abs": (abs, np.abs),
    "sin": (math.sin, np.sin),
    "cos": (math.cos, np.cos),
    "expm1": (math.expm1, np.expm1),
    "log1p": (_log1p, np.log1p),
}
_OF_TWO: dict[type[Schedule], tuple[Callable[..., Any], Callable[..., Any]]] = {
    tree.Add: (operator.add, operator.add),
    tree.Subtract: (operator.sub, operator.sub),
    tree.Multiply: (operator.mul, operator.mul),
    tree.Divide: (_quotient, np.true_divide),
    tree.Maximum: (max, np.maximum),
    tree.Minimum: (min, np.minimum),
}


@compiled.rule(tree.Constant)
def _(node: tree.Constant) -> ScalarFunction:
    number = float(node.value)
    return lambda _t: number


@block_of.rule(tree.Constant)
def _(node: tree.Constant, _times: FloatArray) -> Values:
    return float(node.value)


@compiled.rule(tree.Time)
def _(_node: tree.Time) -> ScalarFunction:
    return float


@block_of.rule(tree.Time)
def _(_node: tree.Time, times: FloatArray) -> Values:
    return times


@compiled.rule(tree.Add, tree.Subtract, tree.Multiply, tree.Divide, tree.Maximum, tree.Minimum)
def _(node: tree.Binary) -> ScalarFunction:
    return _composed(_OF_TWO[type(node)][0], node)


@block_of.rule(tree.Add, tree.Subtract, tree.Multiply, tree.Divide, tree.Maximum, tree.Minimum)
def _(node: tree.Binary, times: FloatArray) -> Values:
    return _OF_TWO[type(node)][1](node.left.block(times), node.right.block(times))


def _composed(operation: Callable[..., float], node: tree.Binary) -> ScalarFunction:
    """The function t -> operation(left_t, right_t), with constants taken out of the inner call."""
    f, g = node.left.scalar, node.right.scalar
    a, b = node.left.constant_value, node.right.constant_value
    if a is not None:
        return lambda t: operation(a, g(t))
    if b is not None:
        return lambda t: operation(f(t), b)
    return lambda t: operation(f(t), g(t))


@compiled.rule(tree.Negate)
def _(node: tree.Negate) -> ScalarFunction:
    inner = node.operand.scalar
    return lambda t: -inner(t)


@block_of.rule(tree.Negate)
def _(node: tree.Negate, times: FloatArray) -> Values:
    return -node.operand.block(times)


@compiled.rule(tree.Function)
def _(node: tree.Function) -> ScalarFunction:
    function, inner = _FUNCTIONS[node.name][0], node.argument.scalar
    return function if isinstance(node.argument, tree.Time) else lambda t: function(inner(t))


@block_of.rule(tree.Function)
def _(node: tree.Function, times: FloatArray) -> Values:
    return _FUNCTIONS[node.name][1](node.argument.block(times))


@compiled.rule(tree.Join)
def _(node: tree.Join) -> ScalarFunction:
    threshold, before, after = node.threshold, node.before.scalar, node.after.scalar
    return lambda t: before(t) if t < threshold else after(t)


@block_of.rule(tree.Join)
def _(node: tree.Join, times: FloatArray) -> Values:
    early = times < node.threshold
    if not early.any():
        return node.after.block(times)
    if early.all():
        return node.before.block(times)
    result = np.empty_like(times)
    result[early] = node.before.block(times[early])
    result[~early] = node.after.block(times[~early])
    return result


@compiled.rule(tree.Periodic)
def _(node: tree.Periodic) -> ScalarFunction:
    period, body = node.period, node.body.scalar
    return lambda t: body((t - 1) % period + 1)


@block_of.rule(tree.Periodic)
def _(node: tree.Periodic, times: FloatArray) -> Values:
    return node.body.block(np.mod(times - 1, node.period) + 1)


@compiled.rule(tree.Bounded)
def _(node: tree.Bounded) -> ScalarFunction:
    inner, low, high = node.operand.scalar, node.low, node.high

    def evaluate(t: float) -> float:
        value = inner(t)
        if not low <= value <= high:
            raise ScheduleError(f"{node} is {value} at t = {t}, outside its bounds {low} and {high}")
        return value

    return evaluate


@block_of.rule(tree.Bounded)
def _(node: tree.Bounded, times: FloatArray) -> Values:
    values = np.asarray(node.operand.block(times), dtype=np.float64)
    outside = np.flatnonzero(~((values >= node.low) & (values <= node.high)))
    if outside.size:
        where = np.ravel(times)[outside[0]]  # a constant leaves them at the first step
        raise ScheduleError(f"{node} leaves its bounds {node.low} and {node.high} at t = {where:.0f}")
    return values


@compiled.rule(tree.Opaque)
def _(node: tree.Opaque) -> ScalarFunction:
    function = node.function

    def evaluate(t: float) -> float:
        try:
            value = function(t)
        except Exception as error:
            detail = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ScheduleError(f"the callable {node} raised at t = {t}: {detail}") from error
        if np.ndim(value) != 0:
            raise ScheduleError(f"the callable {node} returned an array at t = {t}; expected one number")
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise ScheduleError(
                f"the callable {node} returned {value!r} at t = {t}; expected one number"
            ) from error

    return evaluate


@block_of.rule(tree.Opaque)
def _(node: tree.Opaque, times: FloatArray) -> Values:
    whole = times.size > 1 and bool(np.all(times == np.floor(times)))
    block = called_on_block(node, times) if whole else None
    if block is not None:
        return block
    return np.array([node.scalar(int(t) if t == math.floor(t) else float(t)) for t in times.ravel()]).reshape(
        times.shape
    )


def called_on_block(node: tree.Opaque, times: FloatArray) -> FloatArray | None:
    """The function applied to the whole block, or None where it is not a function of arrays."""
    try:
        block = np.asarray(node.function(times.copy()), dtype=np.float64)
    except Exception:  # noqa: BLE001  (any failure means "not for arrays"; single calls report their own errors)
        return None
    if block.shape != times.shape:
        return None
    for index in (0, times.size // 3, times.size - 1):
        single = node.scalar(int(times[index]))
        if not (block[index] == single or math.isclose(block[index], single, rel_tol=1e-15)):
            return None
    return block


def lost_exponent(node: tree.Power) -> float:
    """What a float loses of an exponent such as 0.8; t^0.8 at t = 10^12 would be off by 1.2e-15."""
    exponent = node.right
    return (
        float(exponent.value - Fraction(float(exponent.value)))
        if isinstance(exponent, tree.Constant)
        else 0.0
    )


def lost_rate(node: tree.Power) -> float:
    """What a float loses of log(base), base a number: 0.999999999^t at t = 10^9 would be off by 3e-8."""
    base = node.left
    if not isinstance(base, tree.Constant) or base.value <= 0 or isinstance(node.right, tree.Constant):
        return 0.0
    rounded = Fraction(float(base.value))
    return float((base.value - rounded) / rounded) if rounded else 0.0


@compiled.rule(tree.Power)
def _(node: tree.Power) -> ScalarFunction:
    rate, lost = lost_rate(node), lost_exponent(node)
    if rate:
        return _exponential(node, rate)
    if not lost:
        return _composed(math.pow, node)
    inner, exponent = node.left.scalar, node.right(1)

    def power(t: float) -> float:
        base = inner(t)
        result = math.pow(base, exponent)
        return result if base < _FAR else result + result * (lost * math.log(base))

    return power


def _exponential(node: tree.Power, rate: float) -> ScalarFunction:
    base, exponent = node.left(1), node.right.scalar

    def power(t: float) -> float:
        x = exponent(t)
        result = math.pow(base, x)
        if abs(x) < _LONG or not 0 < result < math.inf:
            return result
        return result * math.exp(rate * x)

    return power


@block_of.rule(tree.Power)
def _(node: tree.Power, times: FloatArray) -> Values:
    base, exponent = node.left.block(times), node.right.block(times)
    if not isinstance(base, np.ndarray):
        if 0 < base < 1 and np.size(exponent) and np.min(exponent) * math.log(base) < -760:
            return np.zeros_like(exponent)  # below every double; the library's power takes its time over it
        result, rate = np.power(base, exponent), lost_rate(node)
        if rate and np.size(exponent) and float(np.max(np.abs(exponent))) >= _LONG:
            done = (np.abs(exponent) < _LONG) | (result == 0) | np.isinf(result)
            result = np.where(done, result, result * np.exp(rate * exponent))
        return result
    # The operator knows the fast exponents 2, 0.5 and -1 of arrays, but not the commonest one of all.
    result = 1 / np.sqrt(base) if np.ndim(exponent) == 0 and exponent == -0.5 else base**exponent
    lost = lost_exponent(node)
    if lost and base.size and float(base.max()) >= _FAR:
        result = np.where(base < _FAR, result, result + result * (lost * np.log(base)))
    return result


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
            check_time(start)
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


def _running(state: float, terms: FloatArray) -> tuple[FloatArray, float]:
    """The sums state + terms[0] + ... + terms[i], each accurate to a few ulp, and the last of them."""
    rows = terms.reshape(-1, _ROW) if terms.size % _ROW == 0 else terms[None]
    starts = np.cumsum([state, *rows.sum(axis=1)])  # NumPy adds a row up in pairs, as good as exactly
    return (starts[:-1, None] + np.cumsum(rows, axis=1)).ravel(), float(starts[-1])


def log_of(value: Fraction) -> float:
    """Log of a positive number, accurate to a few ulp: log of the nearest float is not, close to 1."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator) if not float(value) else math.log(value)


def split_geometric(weights: Schedule) -> tuple[float, Schedule]:
    """(log rho, rest) with w_t = rho^t rest_t: the factor that would overflow is kept as a number."""
    match weights:
        case tree.Multiply(left, right):
            (first, rest), (second, other) = split_geometric(left), split_geometric(right)
            return first + second, rest * other
        case tree.Divide(left, right):
            (first, rest), (second, other) = split_geometric(left), split_geometric(right)
            return first - second, rest / other
        case tree.Negate(operand):
            rate, rest = split_geometric(operand)
            return rate, -rest
        case tree.Power(tree.Constant(base), exponent) if (
            base > 0 and (line := as_linear(exponent)) is not None
        ):
            return float(line[0]) * log_of(base), tree.Constant(base) ** tree.Constant(line[1])
        case tree.Function("exp", argument) if (line := as_linear(argument)) is not None:
            return float(line[0]), tree.Function("exp", tree.Constant(line[1]))
        case _:
            return 0.0, weights


def _share(node: tree.OfWeights) -> Recursion:
    """w_t / W_t, computed from sums scaled by rho^t, so that neither w_t nor W_t can overflow."""
    if "share" in node.known_facts:
        return node.known_facts["share"]
    log_rho, rest = split_geometric(node.weights)
    size = _RECURSION_BLOCK if log_rho == 0 else max(1, min(_RECURSION_BLOCK, int(300 / abs(log_rho))))
    # A share does not change with the unit of the weights; a large one would overflow their sum.
    first = rest(1)
    unit = 2.0 ** -math.frexp(first)[1] if 1e200 < first < math.inf else 1.0

    def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
        # state = W_{s-1} rho^{-(s-1)} for the block starting at s; weights are scaled likewise.
        powers = np.exp(log_rho * (times - (times[0] - 1)))
        weights = powers * (rest.block(times) * unit)
        if not bool(np.all(weights > 0)):
            first = int(times[np.argmin(weights > 0)])
            raise ScheduleError(f"weights must be positive, got w_t = {node.weights(first)} at t = {first}")
        sums, total = _running(state, weights)
        if math.isinf(total) and math.isfinite(state):
            raise ScheduleError(f"the sum of {node.weights} overflows by t = {times[-1]:.0f}")
        return weights / sums, total / float(powers[-1])

    return node.known_facts.setdefault("share", Recursion(float(node.initial) * unit, size, advance))


@compiled.rule(tree.WeightShare)
def _(node: tree.WeightShare) -> ScalarFunction:
    return _share(node).scalar


@block_of.rule(tree.WeightShare)
def _(node: tree.WeightShare, times: FloatArray) -> Values:
    return _share(node).evaluate(times)


@compiled.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta) -> ScalarFunction:
    share = _share(node).scalar
    return lambda t: 1.0 - share(t)


@block_of.rule(tree.WeightedTheta)
def _(node: tree.WeightedTheta, times: FloatArray) -> Values:
    return 1.0 - _share(node).evaluate(times)


def decay_of(node: tree.BiasCorrection) -> float | None:
    """-log of a constant factor from its exact complement, which keeps what log(theta) would lose."""
    missing = node.factor.complement.constant_value
    if missing is None:
        return None
    return -math.log1p(-missing) if missing < 1 else math.inf


def _log_product(node: tree.BiasCorrection) -> Recursion:
    """Log prod factor_i, from the exact complements of the factors."""
    if "product" in node.known_facts:
        return node.known_facts["product"]
    complement = node.factor.complement

    def advance(state: float, times: FloatArray) -> tuple[FloatArray, float]:
        missing = np.broadcast_to(np.asarray(complement.block(times)), times.shape)
        inside = (missing > 0) & (missing <= 1)
        if not bool(np.all(inside)):
            first = int(times[np.argmin(inside)])
            raise ScheduleError(
                f"bias correction needs factors in [0, 1), got {node.factor(first)} at t = {first}"
            )
        with np.errstate(divide="ignore"):
            logs = np.log1p(-missing)
        return _running(state, logs)

    return node.known_facts.setdefault("product", Recursion(0.0, _RECURSION_BLOCK, advance))


@compiled.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection) -> ScalarFunction:
    rate = decay_of(node)
    if rate is not None:
        return lambda t: -math.expm1(-rate * t)
    running = _log_product(node).scalar
    return lambda t: -math.expm1(running(t))


@block_of.rule(tree.BiasCorrection)
def _(node: tree.BiasCorrection, times: FloatArray) -> Values:
    rate = decay_of(node)
    return -np.expm1(-rate * times if rate is not None else _log_product(node).evaluate(times))
