"""Schedules as functions that JAX can trace: one rule for each node of an expression."""

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from generic_adam.schedules import (
    Add,
    BiasCorrection,
    Bounded,
    Constant,
    Divide,
    Function,
    Join,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Opaque,
    Periodic,
    Power,
    Schedule,
    ScheduleError,
    Subtract,
    Time,
    WeightedTheta,
    WeightShare,
)
from generic_adam.schedules.evaluate import log_of

Number = jax.Array | float


class Moment(NamedTuple):
    """The step at which schedules are evaluated.

    Attributes:
        count: the steps taken before it, t - 1, as a whole number: thresholds and periods are exact at any t.
        time: t as a float of the default precision. In float32 it is exact up to 2^24 = 16,777,216 and within
            6e-8 of t, relatively, from there on.
    """

    count: jax.Array
    time: jax.Array


def moment_after(count: ArrayLike) -> Moment:
    """The moment t = count + 1: the one place where Optax's counting from 0 meets the paper's from 1."""
    whole = jnp.asarray(count)
    return Moment(whole, whole.astype(jnp.result_type(float)) + 1)


Recursion = WeightedTheta | WeightShare | BiasCorrection
RecursionRule = Callable[[Recursion, Moment], Number]
"""How the value of a node that is defined by a running sum is had at a moment."""

_OF_TWO: dict[type[Schedule], Callable[..., Any]] = {
    Add: operator.add,
    Subtract: operator.sub,
    Multiply: operator.mul,
    Divide: operator.truediv,
    Power: jnp.power,
    Maximum: jnp.maximum,
    Minimum: jnp.minimum,
}


def evaluate(node: Schedule, moment: Moment, recursion: RecursionRule) -> Number:  # noqa: C901, PLR0912 - one rule a node
    """u_t at a moment, as operations of jax.numpy.

    Args:
        node: the schedule.
        moment: when.
        recursion: the rule for nodes that are defined by a running sum or product.

    Returns:
        u_t: a Python number where the schedule is constant, else an array like moment.time.

    Raises:
        ScheduleError: the schedule holds a Python callable that JAX cannot trace.
    """
    constant = node.constant_value
    if constant is not None:
        return constant

    def value(part: Schedule) -> Number:
        return evaluate(part, moment, recursion)

    match node:
        case Time():
            return moment.time
        case Power(Constant(base), exponent) if base > 0:
            # The logarithm is that of the exact base: in float32 the t-th power of a rounded 0.999 drifts.
            return jnp.exp(log_of(base) * value(exponent))
        case Subtract(Constant(Fraction(numerator=1, denominator=1)), Power(Constant(base), exponent)) if (
            base > 0
        ):
            # 1 - 0.999^t, as people write the bias correction; the difference keeps four digits in float32.
            return -jnp.expm1(log_of(base) * value(exponent))
        case Add() | Subtract() | Multiply() | Divide() | Power() | Maximum() | Minimum():
            return _OF_TWO[type(node)](value(node.left), value(node.right))
        case Negate(operand):
            return -value(operand)
        case Function(name, argument):
            return getattr(jnp, name)(value(argument))
        case Join(threshold, before, after):
            return jnp.where(_is_before(moment.count, threshold - 1), value(before), value(after))
        case Bounded(operand):
            return value(operand)
        case Periodic(body, period):
            return evaluate(body, moment_after(moment.count % period), recursion)
        case WeightedTheta() | WeightShare() | BiasCorrection():
            return recursion(node, moment)
        case Opaque():
            return _call(node, moment)
        case _:
            raise ScheduleError(
                f"{node} cannot be translated to JAX: {type(node).__name__} is not a known node"
            )


def _is_before(count: jax.Array, threshold: int) -> ArrayLike:
    if jnp.issubdtype(count.dtype, jnp.integer) and threshold > jnp.iinfo(count.dtype).max:
        return True
    return count < threshold


def _call(node: Opaque, moment: Moment) -> Number:
    """A user's function of t: as it is where t is known, else traced."""
    if isinstance(node.function, Given):
        return node.function.value
    if not isinstance(moment.count, Tracer):
        whole = np.asarray(moment.count)
        return jnp.asarray(
            np.reshape([node(int(c) + 1) for c in whole.ravel()], whole.shape), moment.time.dtype
        )
    try:
        result = jnp.asarray(node.function(moment.time), moment.time.dtype)
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


class Given:
    """A number that is known only while JAX traces, such as an injected hyperparameter, for every t."""

    def __init__(self, value: jax.Array) -> None:
        self.value = value

    def __call__(self, _t: ArrayLike) -> jax.Array:
        """The number."""
        return self.value
