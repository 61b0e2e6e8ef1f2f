"""Pytrees of parameters: several results from one pass over the leaves, and moments to go with each leaf."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from generic_adam.optax.errors import TransformationError

PyTree = Any


def map_leaves(
    function: Callable[..., tuple[jax.Array, ...]], results: int, tree: PyTree, *rest: PyTree
) -> tuple[PyTree, ...]:
    """As `jax.tree.map`, for a function that returns several arrays: one tree for each of them.

    Args:
        function: of one leaf of each tree.
        results: how many arrays it returns.
        tree: its structure is that of the results; `None` and masked parts stay as they are.
        *rest: trees with the same structure.

    Returns:
        One tree for each result.
    """
    leaves, structure = jax.tree.flatten(tree)
    moved = [function(*parts) for parts in zip(leaves, *map(structure.flatten_up_to, rest), strict=True)]
    return tuple(structure.unflatten([one[index] for one in moved]) for index in range(results))


def at_least_float32(dtype: DTypeLike) -> jnp.dtype:
    """The dtype of moments: float16 and bfloat16 can hold neither g^2 nor an average over 1,000 steps."""
    return jnp.promote_types(dtype, jnp.float32)


def real_dtype(dtype: DTypeLike) -> jnp.dtype:
    """The dtype of abs(x)^2."""
    return jnp.finfo(dtype).dtype


def first_moments(params: PyTree, dtype: DTypeLike | None) -> PyTree:
    """m_0 = 0, in the dtype given or the parameters' own, at least float32."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        kind = jnp.result_type(leaf)
        if not jnp.issubdtype(kind, jnp.inexact):
            where = jax.tree_util.keystr(path) or "the parameter"
            raise TransformationError(
                f"{where} is of dtype {kind}; expected floating or complex parameters (mask others)"
            )
    return jax.tree.map(
        lambda p: jnp.zeros_like(p, dtype=dtype or at_least_float32(jnp.result_type(p))), params
    )


def second_moments(params: PyTree, initial: ArrayLike) -> PyTree:
    """v_0 = initial, real and at least float32."""
    return jax.tree.map(
        lambda p: jnp.full_like(p, initial, dtype=real_dtype(at_least_float32(jnp.result_type(p)))), params
    )
