r"""Padam, and with it AMSGrad: the running maximum of v_t, to a power."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.methods import Method
from generic_adam.optax.aliases import sequences
from generic_adam.optax.coefficients import CoefficientLike, RunningSchedules, RunningSum
from generic_adam.optax.errors import TransformationError, check_not_negative
from generic_adam.optax.moments import decay_schedules, decays_of, narrowed, next_moments, power_of, quotient
from generic_adam.optax.transform import DEFAULT_EPS, DEFAULT_INITIAL_V
from generic_adam.optax.trees import first_moments, map_leaves, second_moments


class PadamState(NamedTuple):
    """What Padam remembers between steps.

    Attributes:
        count: the steps taken so far, t - 1.
        mu: m_{t-1}.
        nu: v_{t-1}.
        nu_max: the largest v so far; 0 at the start.
        sums: the running sums of schedules that are defined by a recursion.
    """

    count: ArrayLike
    mu: optax.Updates
    nu: optax.Updates
    nu_max: optax.Updates
    sums: tuple[RunningSum, ...]


def padam(
    method_or_alpha: Method | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    partial: float = 0.125,
    initial_v: ArrayLike = DEFAULT_INITIAL_V,
    eps: ArrayLike = DEFAULT_EPS,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformation:
    r"""Padam: Generic Adam with a power of the running maximum of v_t in place of the root.

    .. math::
        \hat v_t &= \max(\hat v_{t-1}, v_t), \qquad \hat v_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\hat v_t^{\,p} + \text{eps})

    with m_t and v_t as in :func:`generic_adam`. p = 1/2 is AMSGrad, in the paper's order: the maximum is
    that of the uncorrected v_t.

    Args:
        method_or_alpha: a method, or the base learning rate alpha_t.
        beta: the momentum parameter beta_t; not with a method.
        theta: the second-moment parameter theta_t; not with a method.
        partial: p, 0 < p <= 1/2; its authors use 1/8.
        initial_v: v_0.
        eps: added to the power.
        mu_dtype: the dtype of m; None for that of the parameters, at least float32.

    Returns:
        A :class:`optax.GradientTransformation`.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu, "Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks", IJCAI 2020
    """
    if not 0 < partial <= 0.5:
        raise TransformationError(f"partial is {partial}; expected 0 < partial <= 1/2")
    check_not_negative("initial_v", initial_v)
    check_not_negative("eps", eps)
    alpha, beta, theta = sequences(method_or_alpha, beta, theta)
    running = RunningSchedules({"alpha": alpha} | decay_schedules(beta, theta))

    def init(params: optax.Params) -> PadamState:
        return PadamState(
            count=jnp.zeros([], jnp.int32),
            mu=first_moments(params, mu_dtype),
            nu=second_moments(params, initial_v),
            nu_max=second_moments(params, 0.0),
            sums=running.start(),
        )

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None
    ) -> tuple[optax.Updates, PadamState]:
        del params
        numbers, sums = running.advance(state.count, state.sums)
        decays = decays_of(numbers)

        def move(gradient: jax.Array, m: jax.Array, v: jax.Array, v_max: jax.Array) -> tuple[jax.Array, ...]:
            new_m, new_v = next_moments(gradient, m, v, decays)
            new_max = jnp.maximum(v_max.astype(new_v.dtype), new_v)
            direction = quotient(new_m, power_of(new_max, partial) + jnp.asarray(eps, new_v.dtype))
            moved = narrowed(-jnp.asarray(numbers["alpha"], new_v.dtype) * direction, gradient.dtype)
            return moved, new_m.astype(m.dtype), new_v.astype(v.dtype), new_max.astype(v.dtype)

        moved, mu, nu, nu_max = map_leaves(move, 4, updates, state.mu, state.nu, state.nu_max)
        return moved, PadamState(optax.safe_increment(state.count), mu, nu, nu_max, sums)

    return optax.GradientTransformation(init, update)
