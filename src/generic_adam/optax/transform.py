r"""The transformation itself: Algorithm 1 over a pytree, with every number of step t from its schedule."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.optax.coefficients import CoefficientLike, RunningSchedules, RunningSum, as_coefficient
from generic_adam.optax.errors import check_not_negative
from generic_adam.optax.moments import decay_schedules, decays_of, narrowed, next_moments, quotient, root
from generic_adam.optax.trees import first_moments, map_leaves, second_moments
from generic_adam.schedules import Schedule
from generic_adam.schedules import bias_correction as product_complement

DEFAULT_INITIAL_V = 1e-8
DEFAULT_EPS = 1e-16


class ScaleByGenericAdamState(NamedTuple):
    """What Generic Adam remembers between steps.

    Attributes:
        count: the steps taken so far, t - 1; an int32 that starts at 0, as everywhere in Optax.
        mu: m_{t-1}.
        nu: v_{t-1}, real and at least float32.
        sums: the running sums of schedules that are defined by a recursion (usually none).
    """

    count: ArrayLike
    mu: optax.Updates
    nu: optax.Updates
    sums: tuple[RunningSum, ...]


def scale_by_generic_adam(
    beta: CoefficientLike,
    theta: CoefficientLike,
    *,
    initial_v: ArrayLike = DEFAULT_INITIAL_V,
    eps: ArrayLike = DEFAULT_EPS,
    bias_correction: bool = False,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformation:
    r"""Rescale gradients by Generic Adam: m_t / sqrt(v_t), without learning rate and without sign.

    See :func:`generic_adam` for the update and the arguments. Chain it with any learning rate of Optax's:

    Examples:
        >>> import optax
        >>> solver = optax.chain(
        ...     scale_by_generic_adam(beta=0.9, theta="1 - 1/max(t, 2)"),
        ...     optax.scale_by_learning_rate(optax.cosine_decay_schedule(1e-3, 10_000)),
        ... )
    """
    return transformation(
        None,
        as_coefficient("beta", beta),
        as_coefficient("theta", theta),
        initial_v=initial_v,
        eps=eps,
        bias_correction=bias_correction,
        mu_dtype=mu_dtype,
    )


def transformation(
    alpha: Schedule | None,
    beta: Schedule,
    theta: Schedule,
    *,
    initial_v: ArrayLike,
    eps: ArrayLike,
    bias_correction: bool,
    mu_dtype: DTypeLike | None,
) -> optax.GradientTransformation:
    """Algorithm 1 with the step -alpha_t m_t / sqrt(v_t), or m_t / sqrt(v_t) where alpha is None."""
    check_not_negative("initial_v", initial_v)
    check_not_negative("eps", eps)
    schedules = decay_schedules(beta, theta)
    if alpha is not None:
        schedules["alpha"] = alpha
    if bias_correction:
        schedules |= {
            "beta_correction": product_complement(beta),
            "theta_correction": product_complement(theta),
        }
    running = RunningSchedules(schedules)

    def init(params: optax.Params) -> ScaleByGenericAdamState:
        return ScaleByGenericAdamState(
            count=jnp.zeros([], jnp.int32),
            mu=first_moments(params, mu_dtype),
            nu=second_moments(params, initial_v),
            sums=running.start(),
        )

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None
    ) -> tuple[optax.Updates, ScaleByGenericAdamState]:
        del params
        numbers, sums = running.advance(state.count, state.sums)
        decays = decays_of(numbers)
        step, offset = -numbers["alpha"] if alpha is not None else 1.0, eps
        if bias_correction:
            # m / (1 - prod beta) over sqrt(v / (1 - prod theta)) + eps (Kingma and Ba), in two numbers.
            scale = jnp.sqrt(numbers["theta_correction"])
            step, offset = step * scale / numbers["beta_correction"], eps * scale

        def move(gradient: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            new_m, new_v = next_moments(gradient, m, v, decays)
            direction = quotient(new_m, root(new_v) + jnp.asarray(offset, new_v.dtype))
            moved = narrowed(jnp.asarray(step, new_v.dtype) * direction, gradient.dtype)
            return moved, new_m.astype(m.dtype), new_v.astype(v.dtype)

        moved, mu, nu = map_leaves(move, 3, updates, state.mu, state.nu)
        return moved, ScaleByGenericAdamState(optax.safe_increment(state.count), mu, nu, sums)

    return optax.GradientTransformation(init, update)
