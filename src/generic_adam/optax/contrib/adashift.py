r"""AdaShift: v_t from gradients that are n steps old, so that v_t and g_t are independent."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer
from jax.typing import ArrayLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import ScheduleLike
from generic_adam.optax import leaves
from generic_adam.optax.coefficients import RunningSchedules, RunningSum, as_coefficient, check_not_negative
from generic_adam.optax.transform import PAPERS, accepts_old_name
from generic_adam.schedules import as_schedule

Reduction = Literal["max", "none"]


class AdaShiftState(NamedTuple):
    """What AdaShift remembers between steps.

    Attributes:
        count: the steps taken so far, t - 1.
        kept: the last n gradients of each leaf, oldest first, along a new first axis.
        nu: v_{t-1}; one number a leaf where a reduction is used.
        sums: the running sums of schedules that are defined by a recursion.
    """

    count: ArrayLike
    kept: optax.Updates
    nu: optax.Updates
    sums: tuple[RunningSum, ...]


@accepts_old_name
def adashift(
    learning_rate: ScheduleLike,
    beta: float | jax.Array = 0.9,
    theta: float | jax.Array = 0.999,
    *,
    keep: int | jax.Array = 10,
    reduction: Reduction = "max",
    eps: ArrayLike = PAPERS["eps"],
) -> optax.GradientTransformationExtraArgs:
    r"""AdaShift: a moving average of the last n gradients over the root of a v_t built from older ones.

    .. math::
        m_t &= \sum_{i < n} \beta^i g_{t-i} \Big/ \sum_{i < n} \beta^i \\
        v_t &= \theta v_{t-1} + (1 - \theta) \phi(g_{t-n}^2), \qquad v_n = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\sqrt{v_t / (1 - \theta^{t-n})} + \text{eps})

    The first n steps only collect gradients: their updates are 0. Nothing ties v_t to the present gradient,
    so the quotient has no bound: where v_t is still 0 a coordinate stays where it is, and the quotient is cut
    at the root of the largest number of its type.

    Args:
        learning_rate: alpha_t: a number, a text, a schedule or a callable of t.
        beta: the weight of a gradient against the next newer one, 0 <= beta < 1.
        theta: the second-moment parameter, 0 <= theta < 1.
        keep: n, the number of gradients kept; each costs the memory of the parameters. `init` has to
            know it: under a jitted `optax.inject_hyperparams` it is one of the `static_args`.
        reduction: phi, "max" for the maximum over each leaf, "none" for the identity.
        eps: added to the root.

    Returns:
        A :class:`optax.GradientTransformationExtraArgs`.

    References:
        Zhou, Zhang, Lu, Wang, Zhang, Yu, "AdaShift: Decorrelation and Convergence of Adaptive Learning Rate
        Methods", ICLR 2019
    """
    if isinstance(keep, int | float) and keep < 1:
        raise OptimizerError(f"keep is {keep}; expected a whole number >= 1")
    if reduction not in get_args(Reduction):
        raise OptimizerError(f'reduction is {reduction!r}; expected "max" or "none"')
    for name, value in (("beta", beta), ("theta", theta)):
        if isinstance(value, int | float) and not 0 <= value < 1:
            raise OptimizerError(f"{name} is {value}; expected a number with 0 <= {name} < 1")
    check_not_negative(eps=eps)
    running = RunningSchedules({"alpha": as_coefficient("alpha", learning_rate)})
    decay = leaves.Factor(theta, (1 - as_schedule(theta))(1) if isinstance(theta, int | float) else 1 - theta)

    def phi(squares: jax.Array) -> jax.Array:
        return jnp.max(squares) if reduction == "max" and squares.size else squares

    def init(params: optax.Params) -> AdaShiftState:
        if isinstance(keep, Tracer):
            raise OptimizerError(
                'keep decides the shape of the state; expected static_args="keep" with inject_hyperparams'
            )
        zeros = leaves.first_moments(params, None)
        return AdaShiftState(
            count=jnp.zeros([], jnp.int32),
            kept=jax.tree.map(lambda p: jnp.broadcast_to(p, (int(keep), *p.shape)), zeros),
            nu=jax.tree.map(lambda p: jnp.zeros_like(phi(leaves.squared(p))), zeros),
            sums=running.start(),
        )

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
    ) -> tuple[optax.Updates, AdaShiftState]:
        del params, extra_args
        numbers, sums = running.advance(state.count, state.sums)

        def move(gradient: jax.Array, past: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
            n = len(past)
            collecting = state.count < n
            age = jnp.maximum(state.count + 1 - n, 1).astype(v.dtype)
            corrected = -jnp.expm1(age * jnp.log1p(-jnp.asarray(decay.complement, v.dtype)))
            g = leaves.held_in_range(gradient.astype(past.dtype))
            recent = jnp.concatenate([past[1:], g[None]])
            powers = jnp.asarray(beta, v.dtype) ** jnp.arange(n - 1, -1, -1, dtype=v.dtype)
            m = jnp.tensordot((powers / powers.sum()).astype(recent.dtype), recent, axes=1)
            new_v = jnp.where(collecting, v, decay.average(v, phi(leaves.squared(past[0]))))
            below = leaves.root(new_v / corrected) + jnp.asarray(eps, v.dtype)
            # Nothing ties v_t to m_t: a leaf whose first gradients are 0 would move by m_t / eps.
            limit = float(jnp.finfo(v.dtype).max) ** 0.5
            direction = jnp.where(new_v == 0, 0, _cut(leaves.quotient(m, below), limit))
            step = jnp.where(collecting, 0, -jnp.asarray(numbers["alpha"], v.dtype))
            return leaves.narrowed(step * direction, gradient.dtype), recent, new_v

        moved, recent, nu = leaves.map_leaves(move, updates, state.kept, state.nu)
        return moved, AdaShiftState(optax.safe_increment(state.count), recent, nu, sums)

    return optax.GradientTransformationExtraArgs(init, update)


def _cut(value: jax.Array, limit: float) -> jax.Array:
    """The value with its real and imaginary parts held between -limit and limit."""
    if jnp.iscomplexobj(value):
        return jax.lax.complex(*(jnp.clip(part, -limit, limit) for part in (value.real, value.imag)))
    return jnp.clip(value, -limit, limit)
