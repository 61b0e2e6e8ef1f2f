r"""Schedules as functions that JAX can trace: one rule for each node, and running sums as functions of t.

theta_t = W_{t-1} / W_t and 1 - prod theta_i are defined by recursions, which a function of t cannot run.
Where they have a closed form it is used. Elsewhere the first `TABLE` values come from `Schedule.values`, and
from there on the sums are continued by the Euler-Maclaurin formula with Gauss-Legendre quadrature. Inside a
transformation, where there is a state, `coefficients` runs the recursion itself.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from generic_adam.methods import ScheduleLike
from generic_adam.schedules import FloatArray, Schedule, ScheduleError, as_schedule, tree
from generic_adam.schedules.evaluate import log_of, split_geometric

TABLE = 2**17
"""How many steps of a running sum are tabulated: t = 1, ..., 131,072."""

LAST = 2**31
"""The largest t that Optax counts to (its int32 count stays at 2^31 - 1)."""

# Over [a, 2a] a function with its singularity at 0, as t^p (log t)^q, is integrated by n nodes to 5.8^(-2n).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_CHECK_NODES, _CHECK_WEIGHTS = np.polynomial.legendre.leggauss(12)
_AGREEMENT = 1e-13

_ONE = tree.Constant(Fraction(1))

Number = jax.Array | float
Recursion = tree.WeightedTheta | tree.WeightShare | tree.BiasCorrection


class Moment(NamedTuple):
    """The step at which schedules are evaluated.

    Attributes:
        count: the steps taken before it, t - 1, as a whole number: thresholds and periods are exact at any t.
        time: t as a float of the default precision. In float32 it is exact up to 2^24 = 16,777,216 and within
            6e-8 of t, relatively, from there on.
        recursion: (node, moment) -> the value of a node that is defined by a running sum or product.
    """

    count: jax.Array
    time: jax.Array
    recursion: Callable[[Any, Any], Number]


def moment_after(count: ArrayLike, recursion: Callable[[Any, Moment], Number]) -> Moment:
    """The moment t = count + 1: the one place where Optax's counting from 0 meets the paper's from 1."""
    whole = jnp.asarray(count)
    return Moment(whole, whole.astype(jnp.result_type(float)) + 1, recursion)


class Counted:
    """A schedule of Optax's, which counts from 0, as a function of t = 1, 2, 3, ..."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, t: ArrayLike) -> Any:
        """f(t - 1)."""
        return self.function(t - 1)


class Given:
    """A number that is known only while JAX traces, such as an injected hyperparameter, for every t."""

    def __init__(self, value: jax.Array) -> None:
        self.value = value

    def __call__(self, _t: ArrayLike) -> jax.Array:
        """The number."""
        return self.value


@dataclass(frozen=True)
class OptaxSchedule:
    """count -> u_{count + 1}: what `as_optax_schedule` returns.

    Attributes:
        schedule: u, which counts from 1.
    """

    schedule: Schedule

    def __call__(self, count: ArrayLike) -> jax.Array:
        """u_t at t = count + 1, in JAX's default precision."""
        moment = moment_after(count, from_table)
        value = jnp.asarray(evaluate(self.schedule, moment), moment.time.dtype)
        return jnp.broadcast_to(value, moment.time.shape)


def as_optax_schedule(schedule: ScheduleLike | OptaxSchedule) -> OptaxSchedule:
    r"""A function of Optax's count that JAX can trace, equal to the schedule.

    Optax counts the steps taken, from 0; schedules here count t = 1, 2, 3, ...: the function returns
    :math:`u_{count + 1}`, so that it serves wherever Optax takes a schedule.

    With ``jax_enable_x64`` it agrees with ``schedule.values`` to 1e-12, relatively. Without, t and all
    numbers are float32: t is exact up to 2^24 and within 6e-8 from there on; thresholds and periods are exact
    at any count. A value close to 1 keeps 24 bits, so take the complement from its own schedule:
    ``as_optax_schedule(1 - as_schedule(theta))``.

    Running sums and products (``theta_from_weights``, ``bias_correction``) with a constant factor, or with
    weights c rho^t, are computed in closed form. Others are read from a table for t up to 131,072 and
    continued by the Euler-Maclaurin formula, to the same accuracy, up to t = 2^31. From the first stretch
    [a, 2a] past the table over which the summand is not smooth (a join, an oscillation, a Python callable),
    the value is nan rather than a guess. `generic_adam` has no such limit: it carries the sums in its state.

    Args:
        schedule: a number, a text, a schedule, a callable of t, or a schedule of Optax's, which is itself.

    Returns:
        A function of count, a whole number or an array of them.

    Raises:
        ScheduleError: when called while JAX traces, if the schedule holds a callable that cannot be traced.

    Examples:
        >>> learning_rate = as_optax_schedule("0.5 / sqrt(t)")
        >>> float(learning_rate(3))
        0.25
    """
    return OptaxSchedule(schedule_of(schedule))


def schedule_of(value: ScheduleLike | OptaxSchedule) -> Schedule:
    """The schedule of t = 1, 2, ... that a value stands for; Optax's own is known by its module."""
    if isinstance(value, OptaxSchedule):
        return value.schedule
    if callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "optax":
        return tree.Opaque(Counted(value), getattr(value, "__qualname__", "optax schedule").partition(".")[0])
    return as_schedule(value)


def evaluate(node: Schedule, moment: Moment) -> Number:
    """u_t at a moment, as operations of jax.numpy.

    Args:
        node: the schedule.
        moment: when.

    Returns:
        u_t: a Python number where the schedule is constant, else an array like moment.time.

    Raises:
        ScheduleError: the schedule holds a Python callable that JAX cannot trace.
    """
    constant = node.constant_value
    if constant is not None:
        return constant
    return TRACED[type(node)](node, moment)


Rule = Callable[[Any, Moment], Number]
TRACED: tree.Table[Rule] = tree.Table("JAX")
"""Node, moment -> u_t as operations that JAX can trace."""


def _of_two(operation: Callable[[Any, Any], Any]) -> Rule:
    return lambda node, moment: operation(evaluate(node.left, moment), evaluate(node.right, moment))


def _exponent_of_constant(node: tree.Power, moment: Moment) -> Number | None:
    """The exponent y log(b) of b^y with a number b > 0, whose logarithm is that of the exact base.

    In float32 the t-th power of a rounded 0.999 drifts.
    """
    if not (isinstance(node.left, tree.Constant) and node.left.value > 0):
        return None
    return log_of(node.left.value) * evaluate(node.right, moment)


def _power(node: tree.Power, moment: Moment) -> Number:
    exponent = _exponent_of_constant(node, moment)
    return _of_two(jnp.power)(node, moment) if exponent is None else jnp.exp(exponent)


def _subtract(node: tree.Subtract, moment: Moment) -> Number:
    # 1 - 0.999^t, as people write the bias correction: the difference would keep four digits in float32.
    if node.left == _ONE and isinstance(node.right, tree.Power):
        exponent = _exponent_of_constant(node.right, moment)
        if exponent is not None:
            return -jnp.expm1(exponent)
    return _of_two(operator.sub)(node, moment)


def _join(node: tree.Join, moment: Moment) -> Number:
    threshold, count = node.threshold - 1, moment.count
    before = evaluate(node.before, moment)
    if jnp.issubdtype(count.dtype, jnp.integer) and threshold > jnp.iinfo(count.dtype).max:
        return before
    return jnp.where(count < threshold, before, evaluate(node.after, moment))


def _opaque(node: tree.Opaque, moment: Moment) -> Number:
    """A user's function of t: as it is where t is known, else traced."""
    if isinstance(node.function, Given):
        return node.function.value
    if not isinstance(moment.count, Tracer):
        whole = np.asarray(moment.count)
        return jnp.asarray(
            np.reshape([node(int(c) + 1) for c in whole.ravel()], whole.shape), moment.time.dtype
        )
    try:
        counted = isinstance(node.function, Counted)
        value = node.function.function(moment.count) if counted else node.function(moment.time)
        result = jnp.asarray(value, moment.time.dtype)
    except Exception as error:
        raise ScheduleError(
            f"{node} cannot be traced by JAX ({type(error).__name__}): "
            "write it as text, or with jax.numpy operations on t and without `if`, math or numpy"
        ) from error
    if result.shape not in {(), moment.time.shape}:
        raise ScheduleError(
            f"{node} returned an array of shape {result.shape}; expected one number for each t"
        )
    return result


def _recursive(node: Recursion, moment: Moment) -> Number:
    return moment.recursion(node, moment)


TRACED |= {
    tree.Constant: lambda node, _moment: float(node.value),
    tree.Time: lambda _node, moment: moment.time,
    tree.Add: _of_two(operator.add),
    tree.Subtract: _subtract,
    tree.Multiply: _of_two(operator.mul),
    tree.Divide: _of_two(operator.truediv),
    tree.Power: _power,
    tree.Maximum: _of_two(jnp.maximum),
    tree.Minimum: _of_two(jnp.minimum),
    tree.Negate: lambda node, moment: -evaluate(node.operand, moment),
    tree.Function: lambda node, moment: getattr(jnp, node.name)(evaluate(node.argument, moment)),
    tree.Join: _join,
    tree.Bounded: lambda node, moment: evaluate(node.operand, moment),
    tree.Periodic: lambda node, moment: evaluate(
        node.body, moment_after(moment.count % node.period, moment.recursion)
    ),
    tree.WeightedTheta: _recursive,
    tree.WeightShare: _recursive,
    tree.BiasCorrection: _recursive,
    tree.Opaque: _opaque,
}


def closed_form(node: Recursion, moment: Moment) -> Number | None:
    r"""The value where the running sum is geometric: a constant factor, or weights w_t = c rho^t.

    .. math::
        1 - \prod_{i \le t} \theta = -\operatorname{expm1}(t \log \theta), \qquad
        \frac{w_t}{W_t} = \frac{c}{W_0 \rho^{-t} + c (1 - \rho^{-t}) / (1 - \rho^{-1})}

    Args:
        node: the recursion.
        moment: when.

    Returns:
        Its value, or None where the sum is of another form.
    """
    if not has_closed_form(node):
        return None
    if isinstance(node, tree.BiasCorrection):
        missing = node.factor.complement(1)
        return -jnp.expm1(math.log1p(-missing) * moment.time) if missing < 1 else 1.0
    log_rho, rest = split_geometric(node.weights)
    weight = rest(1)
    if log_rho == 0:
        share = weight / (float(node.initial) + weight * moment.time)
    else:
        decay = -log_rho * moment.time
        share = weight / (
            float(node.initial) * jnp.exp(decay) + weight * (jnp.expm1(decay) / math.expm1(-log_rho))
        )
    return 1 - share if isinstance(node, tree.WeightedTheta) else share


def has_closed_form(node: Recursion) -> bool:
    """Whether `closed_form` knows the value."""
    if isinstance(node, tree.BiasCorrection):
        return node.factor.complement.is_constant
    return split_geometric(node.weights)[1].is_constant


def from_table(node: Recursion, moment: Moment) -> Number:
    """The value at any moment, by the closed form or the table; `as_optax_schedule` tells the range."""
    closed = closed_form(node, moment)
    if closed is not None:
        return closed
    if isinstance(node, tree.WeightedTheta):
        return 1 - from_table(tree.WeightShare(node.weights, node.initial), moment)
    table = _tabulate(node)
    index = jnp.clip(moment.count, 0, TABLE - 1).astype(jnp.int32)
    tabulated = jnp.asarray(table.values, moment.time.dtype)[index]
    return jnp.where(moment.time <= TABLE, tabulated, _continued(node, table, moment))


class _Table(NamedTuple):
    """The beginning of a recursion, and what its sum is at TABLE, 2 TABLE, 4 TABLE, ...

    Attributes:
        values: the values at t = 1, ..., TABLE.
        edges: the t at which sums are known.
        sums: W_t or log prod theta_i at the edges.
    """

    values: FloatArray
    edges: FloatArray
    sums: FloatArray


@lru_cache(maxsize=64)
def _tabulate(node: tree.WeightShare | tree.BiasCorrection) -> _Table:
    values = node.values(1, TABLE + 1)
    summand = _summand(node)
    edges, sums = [float(TABLE)], [_sum_at_table_end(node, values)]
    if summand.accepts_real_times and math.isfinite(float(summand.at(float(TABLE)))):
        while edges[-1] < LAST:
            start, end = edges[-1], 2 * edges[-1]
            increment = _increment(summand, start, end, _NODES, _WEIGHTS)
            check = _increment(summand, start, end, _CHECK_NODES, _CHECK_WEIGHTS)
            # Two quadratures that differ mean a kink, a jump or an oscillation, where the formula is wrong.
            if not abs(increment - check) <= _AGREEMENT * abs(increment):
                break
            edges.append(end)
            sums.append(sums[-1] + increment)
    return _Table(values, np.array(edges), np.array(sums))


def _summand(node: tree.WeightShare | tree.BiasCorrection) -> Schedule:
    """w_t, or log theta_t from its complement."""
    if isinstance(node, tree.WeightShare):
        return node.weights
    return tree.Function("log1p", -node.factor.complement)


def _sum_at_table_end(node: tree.WeightShare | tree.BiasCorrection, values: FloatArray) -> float:
    if isinstance(node, tree.WeightShare):
        return node.weights(TABLE) / float(values[-1])
    return math.log1p(-float(values[-1])) if values[-1] < 1 else -math.inf


def _increment(summand: Schedule, start: float, end: float, nodes: FloatArray, weights: FloatArray) -> float:
    r"""The sum of u_i over start < i <= end: the integral from start + 1/2 to end + 1/2, less [u'] / 24."""
    half = (end - start) / 2
    integral = half * float(weights @ summand.at(start + 0.5 + half * (1 + nodes)))
    slopes = np.diff(summand.at([end, end + 1]))[0] - np.diff(summand.at([start, start + 1]))[0]
    return integral - float(slopes) / 24


def _continued(node: tree.WeightShare | tree.BiasCorrection, table: _Table, moment: Moment) -> jax.Array:
    """The value past the table by the same formula; nan where two quadratures did not agree."""
    summand, time = _summand(node), moment.time

    def at(times: jax.Array) -> Number:
        return evaluate(summand, Moment(times - 1, times, _no_recursion))

    if isinstance(node, tree.BiasCorrection) and table.values[-1] == 1:
        return jnp.ones_like(time)  # the product has vanished, and factors below 1 keep it so
    if len(table.edges) == 1:
        return jnp.full_like(time, jnp.nan)
    edges, sums = (jnp.asarray(array, time.dtype) for array in (table.edges, table.sums))
    panel = jnp.clip(jnp.searchsorted(edges, time, side="right") - 1, 0, len(table.edges) - 2)
    start = edges[panel]
    half = (time - start) / 2
    nodes, weights = (jnp.asarray(array, time.dtype) for array in (_NODES, _WEIGHTS))
    integral = half * jnp.sum(weights * at(start[..., None] + 0.5 + half[..., None] * (1 + nodes)), axis=-1)
    slopes = (at(time + 1) - at(time)) - (at(start + 1) - at(start))
    total = sums[panel] + (integral - slopes / 24)
    value = at(time) / total if isinstance(node, tree.WeightShare) else -jnp.expm1(total)
    return jnp.where(time <= edges[-1], value, jnp.nan)


def _no_recursion(node: Recursion, _moment: Moment) -> Number:
    raise ScheduleError(f"{node} is not defined between whole t")
