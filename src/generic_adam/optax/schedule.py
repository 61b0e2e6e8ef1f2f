r"""Schedules as functions that JAX can trace: one rule for each node, and running sums as functions of t.

theta_t = W_{t-1} / W_t and 1 - prod theta_i are defined by recursions, which a function of t cannot run: they are
closed forms or a table. Inside a transformation, which has a state, `coefficients` runs them.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from generic_adam.methods import ScheduleLike
from generic_adam.schedules import FloatArray, Schedule, ScheduleError, as_schedule, tree
from generic_adam.schedules.evaluate import decay_of, split_geometric
from generic_adam.schedules.growth import GeometricBase

TABLE = 2**17
"""How many steps of a running sum are tabulated: t = 1, ..., 131,072."""

Number = jax.Array | float
Running = tree.WeightShare | tree.BiasCorrection
"""The nodes that are defined by a running sum or product; theta_t from weights is 1 minus its share."""


class Instant(NamedTuple):
    """The step at which schedules are evaluated.

    Attributes:
        count: t - 1 as a whole number, so that thresholds and periods are exact at any t.
        time: t as a float of the default precision; in float32 exact up to 2^24, and within 6e-8 from there on.
        running: the values of running sums and products that a state carries.
    """

    count: jax.Array
    time: jax.Array
    running: Mapping[Running, Number]


def moment_after(count: ArrayLike, running: Mapping[Running, Number]) -> Instant:
    """Return t = count + 1: the one place where Optax's counting from 0 meets the paper's from 1."""
    whole = jnp.asarray(count)
    return Instant(whole, whole.astype(jnp.result_type(float)) + 1, running)


@dataclass(frozen=True)
class Counted:
    """A function of Optax's count, 0 first, as a function of t = 1, 2, 3, ..."""

    function: Callable[[Any], Any]

    def __call__(self, t: ArrayLike) -> Any:
        """f(t - 1)."""
        return self.function(t - 1)


@dataclass(frozen=True)
class OptaxSchedule:
    """count -> u_{count + 1} of a schedule u: what `as_optax_schedule` returns."""

    schedule: Schedule

    def __call__(self, count: ArrayLike) -> jax.Array:
        """u_t at t = count + 1, in JAX's default precision."""
        moment = moment_after(count, {})
        value = jnp.asarray(evaluate(self.schedule, moment), moment.time.dtype)
        return jnp.broadcast_to(value, moment.time.shape)


def as_optax_schedule(schedule: ScheduleLike | OptaxSchedule) -> OptaxSchedule:
    r"""Make a function of Optax's count that JAX can trace, equal to a schedule; one of Optax's own is itself.

    Optax counts from 0, schedules here t = 1, 2, 3, ...: the function returns :math:`u_{count + 1}`. With
    ``jax_enable_x64`` it agrees with ``schedule.values`` to 1e-12; without, all is float32 but thresholds and periods,
    which are exact. A value close to 1 keeps 24 bits: take ``as_optax_schedule(1 - as_schedule(theta))``.

    Running sums and products (``theta_from_weights``, ``bias_correction``) that are not geometric are read from a table
    for t up to 131,072, and are nan past it. `generic_adam` carries its sums in its state, without such a limit but
    inside `periodic`.

    Raises:
        ScheduleError: when called while JAX traces, if the schedule holds a callable that cannot be traced.

    Examples:
        >>> learning_rate = as_optax_schedule("0.5 / sqrt(t)")
        >>> float(learning_rate(3))
        0.25
    """
    return OptaxSchedule(schedule_of(schedule))


def schedule_of(value: ScheduleLike | OptaxSchedule) -> Schedule:
    """Return the schedule of t = 1, 2, ... that a value stands for; Optax's own is known by its module."""
    if isinstance(value, OptaxSchedule):
        return value.schedule
    if callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "optax":
        return tree.Opaque(Counted(value), getattr(value, "__qualname__", "optax schedule").partition(".")[0])
    return as_schedule(value)


def evaluate(node: Schedule, moment: Instant) -> Number:
    """u_t at a moment, as operations of jax.numpy: a Python number where the schedule is constant."""
    constant = node.constant_value
    return TRACED[type(node)](node, moment) if constant is None else constant


Rule = Callable[[Any, Instant], Number]
TRACED: tree.Table[Rule] = tree.Table("JAX")
"""Node, moment -> u_t as operations that JAX can trace."""


def _of_two(operation: Callable[[Any, Any], Any]) -> Rule:
    return lambda node, moment: operation(evaluate(node.left, moment), evaluate(node.right, moment))


def _exponent_of_constant(node: Schedule, moment: Instant) -> Number | None:
    """Return the exponent y log(b) of b^y with a number b > 0; the logarithm is that of the exact base.

    In float32 the t-th power of a rounded 0.999 drifts.
    """
    if isinstance(node, tree.Power) and isinstance(node.left, tree.Constant) and node.left.value > 0:
        return GeometricBase.from_rational(node.left.value).log * evaluate(node.right, moment)
    return None


def _power(node: tree.Power, moment: Instant) -> Number:
    exponent = _exponent_of_constant(node, moment)
    return _of_two(jnp.power)(node, moment) if exponent is None else jnp.exp(exponent)


def _subtract(node: tree.Subtract, moment: Instant) -> Number:
    # 1 - 0.999^t, as people write the bias correction: the difference would keep four digits in float32.
    exponent = _exponent_of_constant(node.right, moment) if node.left.constant_value == 1 else None
    return _of_two(operator.sub)(node, moment) if exponent is None else -jnp.expm1(exponent)


def _join(node: tree.Join, moment: Instant) -> Number:
    threshold, count = node.threshold - 1, moment.count
    before = evaluate(node.before, moment)
    if jnp.issubdtype(count.dtype, jnp.integer) and threshold > jnp.iinfo(count.dtype).max:
        return before
    return jnp.where(count < threshold, before, evaluate(node.after, moment))


def _opaque(node: tree.Opaque, moment: Instant) -> Number:
    """Call a user's function of t, as it is where t is known, else traced; one of Optax's count by that."""
    function, shape, dtype = node.function, moment.time.shape, moment.time.dtype
    if not isinstance(function, Counted) and not isinstance(moment.count, Tracer):
        return jnp.asarray([node(int(c) + 1) for c in np.ravel(moment.count)], dtype).reshape(shape)
    try:
        value = function.function(moment.count) if isinstance(function, Counted) else function(moment.time)
        result = jnp.asarray(value, dtype)
    except Exception as error:
        raise ScheduleError(
            f"{node} cannot be traced by JAX ({type(error).__name__}): "
            "write it as text, or with jax.numpy operations on t and without `if`, math or numpy"
        ) from error
    if result.shape not in {(), shape}:
        raise ScheduleError(f"{node} returned an array of shape {result.shape}; expected one number for each t")
    return result


def _running(node: Running, moment: Instant) -> Number:
    """By a closed form, from the state, or from the table, which is nan past the end that `as_optax_schedule` tells."""
    closed = closed_form(node)
    if closed is not None:
        return closed(moment.time)
    if node in moment.running:
        return moment.running[node]
    values = jnp.asarray(_table(node), moment.time.dtype)
    return jnp.where(moment.count < TABLE, values[jnp.clip(moment.count, 0, TABLE - 1).astype(jnp.int32)], jnp.nan)


TRACED.update(
    {
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
        # t starts anew, so that sums of the state are those of another t
        tree.Periodic: lambda node, moment: evaluate(node.body, moment_after(moment.count % node.period, {})),
        tree.WeightedTheta: lambda node, moment: 1 - evaluate(node.complement, moment),
        tree.WeightShare: _running,
        tree.BiasCorrection: _running,
        tree.Opaque: _opaque,
    }
)


def closed_form(node: Running) -> Callable[[jax.Array], jax.Array] | None:
    r"""Return the value as a function of t where the running sum is geometric, else None.

    .. math::
        1 - \prod_{i \le t} \theta = -\operatorname{expm1}(t \log \theta), \qquad
        \frac{w_t}{W_t} = \frac{c}{W_0 \rho^{-t} + c (1 - \rho^{-t}) / (1 - \rho^{-1})}

    for a constant factor theta, and for weights w_t = c rho^t.
    """
    if isinstance(node, tree.BiasCorrection):
        decay = decay_of(node)
        return None if decay is None else lambda time: -jnp.expm1(-decay * time)
    log_rho, rest = split_geometric(node.weights)
    weight, initial = rest.constant_value, float(node.initial)
    if weight is None:
        return None
    if log_rho == 0:
        return lambda time: weight / (initial + weight * time)
    scale = weight / math.expm1(-log_rho)
    return lambda time: weight / (initial * jnp.exp(-log_rho * time) + scale * jnp.expm1(-log_rho * time))


@lru_cache(maxsize=64)
def _table(node: Running) -> FloatArray:
    return node.values(1, TABLE + 1)
