"""The leaves of a pytree: one pass over them with several results, arithmetic that is safe in every dtype."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from generic_adam.errors import OptimizerError

PyTree = Any


def averaged(mean: jax.Array, value: jax.Array, numbers: Mapping[str, Any], name: str) -> jax.Array:
    """factor * mean + (1 - factor) * value with the factor beta_t or theta_t, at the rate that is asked for.

    In float32 theta = 1 - 1.03e-6 is 1 - 1.013e-6, and one within 3e-8 of 1 is 1: with the plain formula v would forget
    too slowly, or never. From 1/2 on, the mean is therefore moved by its distance to the value times the complement,
    which has all its digits from its own schedule. Below 1/2 that would cancel, and the plain formula serves.
    """
    dtype = real_dtype(mean.dtype)
    factor, weight = (jnp.asarray(numbers[key], dtype) for key in (name, f"one_minus_{name}"))
    return jnp.where(factor >= 0.5, mean + weight * (value - mean), factor * mean + weight * value)


def held_in_range(gradient: jax.Array) -> jax.Array:
    """Hold finite parts of the gradient below the root of the largest number, so that no v_t overflows.

    In float32 that is 1.3e19. A larger coordinate moves as one of that size does, by about alpha_t, since
    m_t / sqrt(v_t) does not depend on the scale. What is not finite becomes nan, for the caller to see.
    """
    limit = (float(jnp.finfo(gradient.dtype).max) / (4 if jnp.iscomplexobj(gradient) else 2)) ** 0.5
    return cut(gradient, limit) + 0 * gradient  # 0 times infinity is nan


def cut(value: jax.Array, limit: float) -> jax.Array:
    """Hold the real and imaginary parts of a value between -limit and limit."""
    if jnp.iscomplexobj(value):
        return jax.lax.complex(*(jnp.clip(part, -limit, limit) for part in (value.real, value.imag)))
    return jnp.clip(value, -limit, limit)


def squared(gradient: jax.Array) -> jax.Array:
    """abs(g)^2."""
    return gradient.real**2 + gradient.imag**2 if jnp.iscomplexobj(gradient) else gradient**2


def quotient(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """Divide, with 0 where the denominator is 0: a coordinate with v_t = 0 does not move."""
    zero = denominator == 0
    return jnp.where(zero, 0, numerator / jnp.where(zero, 1, denominator))


def root(value: jax.Array) -> jax.Array:
    """Take the square root; its derivative at 0 is 0 and not infinity, so that gradients flow."""
    zero = value == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, value)))


def narrowed(value: jax.Array, dtype: DTypeLike) -> jax.Array:
    """Cast a value to another dtype; finite values stay finite in float16, whose largest number is 65,504."""
    largest = float(jnp.finfo(dtype).max)
    if largest >= float(jnp.finfo(value.dtype).max):
        return value.astype(dtype)
    return jnp.where(jnp.isfinite(value), cut(value, largest), value).astype(dtype)


# Pytrees: several results from one pass over the leaves, and moments to go with each leaf.


def map_leaves(function: Callable[..., tuple[Any, ...]], gradients: PyTree, *moments: PyTree) -> tuple[PyTree, ...]:
    """(update, *new moments) by a function of one leaf of each tree that returns them in this order.

    A gradient that is None has no update and leaves its moments as they are; None parameters have none of
    the three; masked parts stay as they are. Python numbers are taken as arrays, and a real gradient of complex
    parameters as a complex one.
    """

    def moved(gradient: ArrayLike | None, *own: Any) -> tuple[Any, ...]:
        if gradient is None:
            return None, *own
        inexact = jnp.issubdtype(jnp.result_type(gradient), jnp.inexact)
        given = jnp.asarray(gradient, None if inexact else float)
        return function(given + 0j if jnp.iscomplexobj(own[0]) else given, *own)

    leaves, structure = jax.tree.flatten(gradients, is_leaf=lambda leaf: leaf is None)
    results = [moved(*one) for one in zip(leaves, *map(structure.flatten_up_to, moments), strict=True)]
    return tuple(structure.unflatten([one[index] for one in results]) for index in range(len(moments) + 1))


def wider(one: DTypeLike, other: DTypeLike) -> jnp.dtype:
    """Return the dtype that holds both, also where the user has asked JAX for strict promotion."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(one, other)


def real_dtype(dtype: DTypeLike) -> jnp.dtype:
    """Return the dtype of abs(x)^2."""
    return jnp.finfo(dtype).dtype


def _moment_dtype(leaf: ArrayLike) -> jnp.dtype:
    """At least float32: float16 and bfloat16 can hold neither g^2 nor an average over 1,000 steps."""
    return wider(jnp.result_type(leaf), jnp.float32)


def first_moments(params: PyTree, dtype: DTypeLike | None) -> PyTree:
    """m_0 = 0, in the dtype given or the parameters' own, at least float32."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        kind = jnp.result_type(leaf)
        if not jnp.issubdtype(kind, jnp.inexact):
            where = jax.tree_util.keystr(path) or "the parameter"
            raise OptimizerError(f"{where} is of dtype {kind}; expected floating or complex parameters (mask others)")
        wanted = jnp.complexfloating if jnp.iscomplexobj(leaf) else jnp.floating
        if dtype is not None and not jnp.issubdtype(dtype, wanted):
            raise OptimizerError(f"mu_dtype is {jnp.dtype(dtype)}; expected one that holds an average of {kind}")
    return jax.tree.map(lambda p: jnp.zeros_like(p, dtype=dtype or _moment_dtype(p)), params)


def second_moments(params: PyTree, initial: ArrayLike) -> PyTree:
    """v_0 = initial, real and at least float32."""
    return jax.tree.map(lambda p: jnp.full_like(p, initial, dtype=real_dtype(_moment_dtype(p))), params)
