"""The coordinate-wise arithmetic of Generic Adam on one leaf, safe in every dtype."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from generic_adam.optax.expressions import Number
from generic_adam.optax.trees import real_dtype
from generic_adam.schedules import Schedule


class Factor(NamedTuple):
    """A decay factor and its complement, each from its own schedule: 1 - theta_t keeps all its digits.

    Attributes:
        value: beta_t or theta_t.
        complement: 1 - beta_t or 1 - theta_t.
    """

    value: ArrayLike
    complement: ArrayLike

    def astype(self, dtype: DTypeLike) -> "Factor":
        """Both numbers in the dtype of a leaf."""
        return Factor(jnp.asarray(self.value, dtype), jnp.asarray(self.complement, dtype))


class Decays(NamedTuple):
    """beta_t and theta_t."""

    beta: Factor
    theta: Factor


def decay_schedules(beta: Schedule, theta: Schedule) -> dict[str, Schedule]:
    """What has to be evaluated at every step for `decays_of`."""
    return {"beta": beta, "one_minus_beta": 1 - beta, "theta": theta, "one_minus_theta": 1 - theta}


def decays_of(numbers: Mapping[str, Number]) -> Decays:
    """The values of `decay_schedules` at one t."""
    return Decays(
        Factor(numbers["beta"], numbers["one_minus_beta"]),
        Factor(numbers["theta"], numbers["one_minus_theta"]),
    )


def next_moments(
    gradient: jax.Array, m: jax.Array, v: jax.Array, decays: Decays
) -> tuple[jax.Array, jax.Array]:
    """m_t and v_t from m_{t-1}, v_{t-1} and g_t, in the wider of the dtypes of v and g."""
    g = held_in_range(gradient.astype(jnp.promote_types(gradient.dtype, v.dtype)))
    real = real_dtype(g.dtype)
    return (
        average(decays.beta.astype(real), m.astype(g.dtype), g),
        average(decays.theta.astype(real), v.astype(real), squared(g)),
    )


def average(factor: Factor, mean: jax.Array, value: jax.Array) -> jax.Array:
    """The moving average: factor * mean + (1 - factor) * value, at the rate that is asked for.

    In float32 theta = 1 - 1.03e-6 is 1 - 1.013e-6, and one within 3e-8 of 1 is 1: with the plain formula v
    would forget too slowly, or never. From 1/2 on, the mean is therefore moved by its distance to the value
    times the complement, which has all its digits. Below 1/2 that would cancel, and the plain formula serves.
    """
    decay, weight = jnp.asarray(factor.value), jnp.asarray(factor.complement)
    slow = decay >= 0.5
    kept, forgotten = jnp.where(slow, 1, decay), jnp.where(slow, weight, 0)
    return kept * mean + (weight * value - forgotten * mean)


def held_in_range(gradient: jax.Array) -> jax.Array:
    """The gradient, with finite parts held below the root of the largest number, so that no v_t overflows.

    In float32 that is 1.3e19. A larger coordinate moves as one of that size does, by about alpha_t, since
    m_t / sqrt(v_t) does not depend on the scale. What is not finite stays so, for the caller to see.
    """
    if jnp.iscomplexobj(gradient):
        return jax.lax.complex(*(_clipped(part, 4) for part in (jnp.real(gradient), jnp.imag(gradient))))
    return _clipped(gradient, 2)


def _clipped(values: jax.Array, share: int) -> jax.Array:
    limit = float(jnp.finfo(values.dtype).max / share) ** 0.5
    return jnp.where(jnp.isfinite(values), jnp.clip(values, -limit, limit), values)


def squared(gradient: jax.Array) -> jax.Array:
    """abs(g)^2."""
    square = jnp.real(gradient) ** 2
    return square + jnp.imag(gradient) ** 2 if jnp.iscomplexobj(gradient) else square


def quotient(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """The quotient, and 0 where the denominator is 0: a coordinate with v_t = 0 does not move."""
    zero = denominator == 0
    return jnp.where(zero, 0, numerator / jnp.where(zero, 1, denominator))


def root(value: jax.Array) -> jax.Array:
    """The square root, with derivative 0 (not infinity) at 0, so that gradients flow through an update."""
    zero = value == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, value)))


def power_of(value: jax.Array, exponent: float) -> jax.Array:
    """The power, with derivative 0 at 0 like `root`."""
    zero = value == 0
    return jnp.where(zero, 0, jnp.where(zero, 1, value) ** exponent)


def narrowed(value: jax.Array, dtype: DTypeLike) -> jax.Array:
    """The value in another dtype; what is finite stays so in float16, whose largest number is 65,504."""
    largest = jnp.finfo(dtype).max
    if largest >= jnp.finfo(value.dtype).max:
        return value.astype(dtype)
    return jnp.where(jnp.isfinite(value), jnp.clip(value, -largest, largest), value).astype(dtype)
