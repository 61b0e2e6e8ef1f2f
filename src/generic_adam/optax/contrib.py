"""The peers that Generic Adam is compared with, as gradient transformations."""

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, Method
from generic_adam.optax import leaves
from generic_adam.optax.coefficients import CoefficientLike, RunningSchedules, RunningSum, check_number
from generic_adam.optax.transform import PAPERS, PAPERS_EPS, accepts_old_name, settings_of, stepping

Reduction = Literal["max", "none"]


class PadamState(NamedTuple):
    """Padam's state between steps: Generic Adam's and, in `nu_max`, the largest v so far (0 at first)."""

    count: ArrayLike
    mu: optax.Updates
    nu: optax.Updates
    nu_max: optax.Updates
    sums: tuple[RunningSum, ...]


@accepts_old_name
def padam(
    learning_rate: Method | Algorithm | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    partial: float | jax.Array | None = None,
    initial_v: ArrayLike | None = None,
    eps: CoefficientLike | None = None,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Padam: Generic Adam with a power of the running maximum of v_t in place of the root.

    .. math::
        \hat v_t &= \max(\hat v_{t-1}, v_t), \qquad \hat v_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\hat v_t^{\,p} + \text{eps})

    with m_t and v_t as in :func:`generic_adam`, without bias correction. p = 1/2 is AMSGrad, in the paper's
    order: the maximum is that of the uncorrected v_t.

    p is ``partial``, 0 < p <= 1/2: its authors' 1/8, or what an algorithm says, if not given. The other arguments are
    those of :func:`generic_adam` with a method, whether one is given or not: v_0 = 1e-8, and eps, added to the power,
    is 1e-16.

    References:
        Chen, Zhou, Tang, Yang, Cao, Gu, "Closing the Generalization Gap of Adaptive Gradient Methods in
        Training Deep Neural Networks", IJCAI 2020
    """
    given = {"beta": beta, "theta": theta, "initial_v": initial_v, "eps": eps}
    chosen = settings_of(learning_rate, PAPERS, given, "running_maximum", "power")
    if isinstance(learning_rate, Algorithm) and not learning_rate.running_maximum:
        raise OptimizerError("padam keeps the maximum of v_t; expected an algorithm with running_maximum=True")
    if partial is None:
        partial = float(learning_rate.power) if isinstance(learning_rate, Algorithm) else 0.125
    check_number("partial", partial, "0 < partial <= 1/2", lambda p: 0 < p <= 0.5)
    return stepping(PadamState, chosen, -1, mu_dtype, partial)


class AdaShiftState(NamedTuple):
    """AdaShift's state between steps: Generic Adam's, with the gradients themselves in place of m.

    Attributes:
        kept: the last n gradients of each leaf, oldest first, along a new first axis.
        nu: v_{t-1}; one number a leaf where a reduction is used.
    """

    count: ArrayLike
    kept: optax.Updates
    nu: optax.Updates
    sums: tuple[RunningSum, ...]


@accepts_old_name
def adashift(
    learning_rate: CoefficientLike,
    beta: float | jax.Array = 0.9,
    theta: float | jax.Array = 0.999,
    *,
    keep: int | jax.Array = 10,
    reduction: Reduction = "max",
    eps: CoefficientLike = PAPERS_EPS,
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
        learning_rate: alpha_t, as for :func:`generic_adam`, without a method.
        beta: the weight of a gradient against the next newer one, 0 <= beta < 1.
        theta: the second-moment parameter, 0 <= theta < 1.
        keep: n, the number of gradients kept; each costs the memory of the parameters. `init` has to
            know it: under a jitted `optax.inject_hyperparams` it is one of the `static_args`.
        reduction: phi, "max" for the maximum over each leaf, "none" for the identity.
        eps: added to the root.

    References:
        Zhou, Zhang, Lu, Wang, Zhang, Yu, "AdaShift: Decorrelation and Convergence of Adaptive Learning Rate
        Methods", ICLR 2019
    """
    check_number("keep", keep, "a whole number >= 1", lambda n: n >= 1 and n % 1 == 0)
    if reduction not in get_args(Reduction):
        raise OptimizerError(f'reduction is {reduction!r}; expected "max" or "none"')
    for name, value in (("beta", beta), ("theta", theta)):
        check_number(name, value, f"a number with 0 <= {name} < 1", lambda one: 0 <= one < 1)
    running = RunningSchedules(learning_rate, beta, theta, eps)

    def phi(squares: jax.Array) -> jax.Array:
        return jnp.max(squares) if reduction == "max" and squares.size else squares

    def moments(params: optax.Params) -> tuple[Any, Any]:
        if isinstance(keep, Tracer):
            raise OptimizerError('keep is the shape of the state; expected static_args="keep" with inject_hyperparams')
        zeros = leaves.first_moments(params, None)
        kept = jax.tree.map(lambda p: jnp.broadcast_to(p, (int(keep), *p.shape)), zeros)
        return kept, jax.tree.map(lambda p: jnp.zeros_like(phi(leaves.squared(p))), zeros)

    def move(numbers: Any, gradient: jax.Array, past: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        n = len(past)
        values = {name: jnp.asarray(number, v.dtype) for name, number in numbers.items()}
        collecting, age = values["t"] <= n, jnp.maximum(values["t"] - n, 1)
        correction = -jnp.expm1(age * jnp.log1p(-values["one_minus_theta"]))
        recent = jnp.concatenate([past[1:], leaves.held_in_range(gradient.astype(past.dtype))[None]])
        powers = values["beta"] ** jnp.arange(n - 1, -1, -1, dtype=v.dtype)
        m = jnp.tensordot((powers / powers.sum()).astype(recent.dtype), recent, axes=1)
        new_v = jnp.where(collecting, v, leaves.averaged(v, phi(leaves.squared(past[0])), numbers, "theta"))
        below = leaves.root(new_v / correction) + values["eps"]
        # Nothing ties v_t to m_t: a leaf whose first gradients are 0 would move by m_t / eps.
        direction = leaves.cut(leaves.quotient(m, below), float(jnp.finfo(v.dtype).max) ** 0.5)
        moved = jnp.where(collecting | (new_v == 0), 0, -values["alpha"] * direction)
        return leaves.narrowed(moved, gradient.dtype), recent, new_v

    return running.transformation(AdaShiftState, moments, move)
