r"""Padam, and with it AMSGrad: the running maximum of v_t, to a power."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import Method
from generic_adam.optax import leaves
from generic_adam.optax.coefficients import CoefficientLike, RunningSchedules, RunningSum, check_not_negative
from generic_adam.optax.transform import PAPERS, accepts_old_name, running_schedules, settings_of


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


@accepts_old_name
def padam(
    learning_rate: Method | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    partial: float | jax.Array = 0.125,
    initial_v: ArrayLike = PAPERS["initial_v"],
    eps: CoefficientLike = PAPERS["eps"],
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Padam: Generic Adam with a power of the running maximum of v_t in place of the root.

    .. math::
        \hat v_t &= \max(\hat v_{t-1}, v_t), \qquad \hat v_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\hat v_t^{\,p} + \text{eps})

    with m_t and v_t as in :func:`generic_adam`, without bias correction. p = 1/2 is AMSGrad, in the paper's
    order: the maximum is that of the uncorrected v_t.

    Args:
        learning_rate: a method, or the base learning rate alpha_t.
        beta: the momentum parameter beta_t, 0.9 if not given; not with a method.
        theta: the second-moment parameter theta_t, 0.999 if not given; not with a method.
        partial: p, 0 < p <= 1/2; its authors use 1/8.
        initial_v: v_0.
        eps: added to the power.
        mu_dtype: the dtype of m; None for that of the parameters, at least float32.

    Returns:
        A :class:`optax.GradientTransformationExtraArgs`.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu, "Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks", IJCAI 2020
    """
    if isinstance(partial, int | float) and not 0 < partial <= 0.5:
        raise OptimizerError(f"partial is {partial}; expected 0 < partial <= 1/2")
    check_not_negative(initial_v=initial_v)
    chosen = settings_of(learning_rate, PAPERS, {"beta": beta, "theta": theta})
    running = RunningSchedules(running_schedules(chosen["alpha"], chosen["beta"], chosen["theta"], eps))

    def init(params: optax.Params) -> PadamState:
        return PadamState(
            count=jnp.zeros([], jnp.int32),
            mu=leaves.first_moments(params, mu_dtype),
            nu=leaves.second_moments(params, initial_v),
            nu_max=leaves.second_moments(params, 0.0),
            sums=running.start(),
        )

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
    ) -> tuple[optax.Updates, PadamState]:
        del params, extra_args
        numbers, sums = running.advance(state.count, state.sums)

        def move(gradient: jax.Array, m: jax.Array, v: jax.Array, v_max: jax.Array) -> tuple[jax.Array, ...]:
            new_m, new_v = leaves.next_moments(gradient, m, v, numbers)
            new_max = jnp.maximum(v_max.astype(new_v.dtype), new_v)
            zero = new_max == 0  # where the derivative of the power would be infinite
            power = jnp.where(zero, 0, jnp.where(zero, 1, new_max) ** jnp.asarray(partial, new_v.dtype))
            direction = leaves.quotient(new_m, power + jnp.asarray(numbers["eps"], new_v.dtype))
            moved = -jnp.asarray(numbers["alpha"], new_v.dtype) * direction
            kept = (new_m.astype(m.dtype), new_v.astype(v.dtype), new_max.astype(v.dtype))
            return leaves.narrowed(moved, gradient.dtype), *kept

        moved, mu, nu, nu_max = leaves.map_leaves(move, updates, state.mu, state.nu, state.nu_max)
        return moved, PadamState(optax.safe_increment(state.count), mu, nu, nu_max, sums)

    return optax.GradientTransformationExtraArgs(init, update)
