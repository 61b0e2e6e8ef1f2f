"""A schedule of this project as a schedule of Optax."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from generic_adam.methods import ScheduleLike
from generic_adam.optax.expressions import evaluate, moment_after
from generic_adam.optax.recursions import from_table
from generic_adam.schedules import Schedule, as_schedule


@dataclass(frozen=True)
class OptaxSchedule:
    """count -> u_{count + 1}: what `as_optax_schedule` returns.

    Attributes:
        schedule: u, which counts from 1.
    """

    schedule: Schedule

    def __call__(self, count: ArrayLike) -> jax.Array:
        """u_t at t = count + 1, in JAX's default precision."""
        moment = moment_after(count)
        value = jnp.asarray(evaluate(self.schedule, moment, from_table), moment.time.dtype)
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
        schedule: a number, a text, a schedule, or a callable of t; the result of this function is itself.

    Returns:
        A function of count, a whole number or an array of them.

    Raises:
        ScheduleError: when called while JAX traces, if the schedule holds a callable that cannot be traced.

    Examples:
        >>> learning_rate = as_optax_schedule("0.5 / sqrt(t)")
        >>> float(learning_rate(3))
        0.25
    """
    return schedule if isinstance(schedule, OptaxSchedule) else OptaxSchedule(as_schedule(schedule))
