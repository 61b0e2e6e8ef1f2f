r"""Generic Adam as a gradient transformation: Algorithm 1 over a pytree, every number from its schedule."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import Method
from generic_adam.optax.coefficients import CoefficientLike, RunningSchedules, RunningSum, as_coefficient
from generic_adam.schedules import Schedule
from generic_adam.schedules import bias_correction as product_complement

DEFAULT_INITIAL_V = 1e-8
DEFAULT_EPS = 1e-16

PyTree = Any


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
) -> optax.GradientTransformationExtraArgs:
    r"""Rescale gradients by Generic Adam: m_t / sqrt(v_t), without learning rate and without sign.

    See :func:`generic_adam` for the update and the arguments. Chain it with any learning rate of Optax's:

    Examples:
        >>> import optax
        >>> solver = optax.chain(
        ...     scale_by_generic_adam(beta=0.9, theta="1 - 1/max(t, 2)"),
        ...     optax.scale_by_learning_rate(optax.cosine_decay_schedule(1e-3, 10_000)),
        ... )
    """
    return _transformation(
        None,
        as_coefficient("beta", beta),
        as_coefficient("theta", theta),
        initial_v=initial_v,
        eps=eps,
        bias_correction=bias_correction,
        mu_dtype=mu_dtype,
    )


def accepts_old_name(make: Callable[..., Any]) -> Callable[..., Any]:
    """`learning_rate` was called `method_or_alpha`: states of `inject_hyperparams` still say so."""

    @functools.wraps(make)
    def made(*arguments: Any, **keywords: Any) -> Any:
        if "method_or_alpha" in keywords:
            old = keywords.pop("method_or_alpha")
            if not arguments:
                keywords.setdefault("learning_rate", old)
        return make(*arguments, **keywords)

    return made


@accepts_old_name
def generic_adam(
    learning_rate: Method | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    initial_v: ArrayLike = DEFAULT_INITIAL_V,
    eps: ArrayLike = DEFAULT_EPS,
    bias_correction: bool = False,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Generic Adam (Algorithm 1), for any sequences alpha_t, beta_t, theta_t, exactly.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) |g_t|^2, \qquad v_0 = \text{initial\_v} \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\sqrt{v_t} + \text{eps})

    t = 1 at the first update. 1 - theta_t comes from its own schedule, so that nothing cancels where theta_t
    tends to 1. The moments are kept in float32 at least, also for bfloat16 and float16 parameters; the
    updates have the dtype of the gradients. A gradient that is None leaves its moments as they are.

    Args:
        learning_rate: alpha_t: a number, a text such as "0.5/sqrt(t)", a schedule, a callable of
            t = 1, 2, 3, ..., a JAX array, or a schedule that Optax made, which counts from 0 and is called so
            (a function that *you* write around one is a callable of t); or a method, with all three
            sequences.
        beta: the momentum parameter beta_t; not with a method.
        theta: the second-moment parameter theta_t; not with a method.
        initial_v: v_0, which the paper calls epsilon.
        eps: added to the root. The paper has none, and with 0 the recursion is the paper's: a coordinate with
            v_t = 0 does not move. The default is there for float32, where g^2 underflows for abs(g) < 1e-22;
            it is below the rounding error of sqrt(v_t) wherever sqrt(v_t) > 2e-9.
        bias_correction: use alpha_t sqrt(1 - prod theta_i) / (1 - prod beta_i) with the exact products.
        mu_dtype: the dtype of m; None for that of the parameters, at least float32.

    Returns:
        A :class:`optax.GradientTransformationExtraArgs`.

    Raises:
        OptimizerError: beta or theta is missing or given twice, a sequence cannot be read, or initial_v
            or eps is negative.
        MethodError: a sequence leaves its range.

    Examples:
        >>> import generic_adam as ga, jax, optax
        >>> solver = generic_adam(ga.methods.adaema(lr=0.1))
        >>> x = jax.numpy.array(1.0)
        >>> state = solver.init(x)
        >>> updates, state = solver.update(jax.grad(lambda x: x**2)(x), state, x)
        >>> round(float(optax.apply_updates(x, updates)), 6)
        0.99

    References:
        Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019
    """
    alpha, beta, theta = sequences(learning_rate, beta, theta)
    return _transformation(
        alpha, beta, theta, initial_v=initial_v, eps=eps, bias_correction=bias_correction, mu_dtype=mu_dtype
    )


def sequences(
    learning_rate: Method | CoefficientLike, beta: CoefficientLike | None, theta: CoefficientLike | None
) -> tuple[Schedule, Schedule, Schedule]:
    """alpha, beta and theta as schedules, from a method or one by one, checked as a method's are."""
    if isinstance(learning_rate, Method):
        if beta is not None or theta is not None:
            raise OptimizerError("a method brings its own beta and theta; expected none beside it")
        return learning_rate.alpha, learning_rate.beta, learning_rate.theta
    if beta is None or theta is None:
        missing = " and ".join(name for name, value in (("beta", beta), ("theta", theta)) if value is None)
        raise OptimizerError(f"expected a method, or a learning rate, beta and theta; got no {missing}")
    return (
        as_coefficient("alpha", learning_rate),
        as_coefficient("beta", beta),
        as_coefficient("theta", theta),
    )


def _transformation(
    alpha: Schedule | None,
    beta: Schedule,
    theta: Schedule,
    *,
    initial_v: ArrayLike,
    eps: ArrayLike,
    bias_correction: bool,
    mu_dtype: DTypeLike | None,
) -> optax.GradientTransformationExtraArgs:
    """Algorithm 1 with the step -alpha_t m_t / sqrt(v_t), or m_t / sqrt(v_t) where alpha is None."""
    check_not_negative(initial_v=initial_v, eps=eps)
    schedules = decay_schedules(beta, theta)
    if alpha is not None:
        schedules["alpha"] = alpha
    if bias_correction:
        schedules |= {
            "beta_correction": product_complement(beta),
            "theta_correction": product_complement(theta),
        }
    running = RunningSchedules(schedules)
    divided = quotient_of_root(eps)

    def init(params: optax.Params) -> ScaleByGenericAdamState:
        return ScaleByGenericAdamState(
            count=jnp.zeros([], jnp.int32),
            mu=first_moments(params, mu_dtype),
            nu=second_moments(params, initial_v),
            sums=running.start(),
        )

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
    ) -> tuple[optax.Updates, ScaleByGenericAdamState]:
        del params, extra_args
        numbers, sums = running.advance(state.count, state.sums)
        decays = decays_of(numbers)
        step, offset = -numbers["alpha"] if alpha is not None else 1.0, eps
        if bias_correction:
            # m / (1 - prod beta) over sqrt(v / (1 - prod theta)) + eps (Kingma and Ba), in two numbers.
            scale = jnp.sqrt(numbers["theta_correction"])
            step, offset = step * scale / numbers["beta_correction"], eps * scale

        def move(gradient: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
            new_m, new_v = next_moments(gradient, m, v, decays)
            direction = divided(new_m, new_v, jnp.asarray(offset, new_v.dtype))
            moved = narrowed(jnp.asarray(step, new_v.dtype) * direction, gradient.dtype)
            return moved, new_m.astype(m.dtype), new_v.astype(v.dtype)

        moved, mu, nu = map_leaves(move, updates, state.mu, state.nu)
        return moved, ScaleByGenericAdamState(optax.safe_increment(state.count), mu, nu, sums)

    return optax.GradientTransformationExtraArgs(init, update)


# Arithmetic on one leaf, safe in every dtype.


class Factor(NamedTuple):
    """A decay factor and its complement, each from its own schedule: 1 - theta_t keeps all its digits.

    Attributes:
        value: beta_t or theta_t.
        complement: 1 - beta_t or 1 - theta_t.
    """

    value: ArrayLike
    complement: ArrayLike

    def average(self, mean: jax.Array, value: jax.Array) -> jax.Array:
        """The moving average: factor * mean + (1 - factor) * value, at the rate that is asked for.

        In float32 theta = 1 - 1.03e-6 is 1 - 1.013e-6, and one within 3e-8 of 1 is 1: with the plain formula
        v would forget too slowly, or never. From 1/2 on, the mean is therefore moved by its distance to the
        value times the complement, which has all its digits. Below 1/2 that would cancel, and the plain
        formula serves.
        """
        real = real_dtype(mean.dtype)
        weight = jnp.asarray(self.complement, real)
        if isinstance(self.value, int | float):  # a number for every t: one of the two is compiled
            if self.value >= 0.5:
                return mean + weight * (value - mean)
            return jnp.asarray(self.value, real) * mean + weight * value
        decay = jnp.asarray(self.value, real)
        slow = decay >= 0.5
        return jnp.where(slow, 1, decay) * mean + weight * (value - jnp.where(slow, 1, 0).astype(real) * mean)


class Decays(NamedTuple):
    """beta_t and theta_t."""

    beta: Factor
    theta: Factor


def decay_schedules(beta: Schedule, theta: Schedule) -> dict[str, Schedule]:
    """What has to be evaluated at every step for `decays_of`."""
    return {"beta": beta, "one_minus_beta": 1 - beta, "theta": theta, "one_minus_theta": 1 - theta}


def decays_of(numbers: dict[str, Any]) -> Decays:
    """The values of `decay_schedules` at one t."""
    return Decays(
        Factor(numbers["beta"], numbers["one_minus_beta"]),
        Factor(numbers["theta"], numbers["one_minus_theta"]),
    )


def next_moments(
    gradient: jax.Array, m: jax.Array, v: jax.Array, decays: Decays
) -> tuple[jax.Array, jax.Array]:
    """m_t and v_t from m_{t-1}, v_{t-1} and g_t, in the wider of the dtypes of v and g."""
    g = gradient.astype(jnp.promote_types(gradient.dtype, v.dtype))
    if jnp.iscomplexobj(g):
        held = held_in_range(g)
        square = squared(held)
    else:  # as `held_in_range`, with less arithmetic: v_t alone says what is not finite
        limit = _largest_root(g.dtype, 2)
        held = jnp.clip(g, -limit, limit)
        square = jnp.minimum(g * g, limit**2) + 0 * g
    return (
        decays.beta.average(m.astype(g.dtype), held),
        decays.theta.average(v.astype(real_dtype(g.dtype)), square),
    )


def held_in_range(gradient: jax.Array) -> jax.Array:
    """The gradient, with finite parts held below the root of the largest number, so that no v_t overflows.

    In float32 that is 1.3e19. A larger coordinate moves as one of that size does, by about alpha_t, since
    m_t / sqrt(v_t) does not depend on the scale. What is not finite becomes nan, for the caller to see.
    """
    if jnp.iscomplexobj(gradient):
        return jax.lax.complex(*(_clipped(part, 4) for part in (jnp.real(gradient), jnp.imag(gradient))))
    return _clipped(gradient, 2)


def _clipped(values: jax.Array, share: int) -> jax.Array:
    limit = _largest_root(values.dtype, share)
    return jnp.clip(values, -limit, limit) + 0 * values  # 0 times infinity is nan


def _largest_root(dtype: DTypeLike, share: int) -> float:
    return float(jnp.finfo(dtype).max / share) ** 0.5


def squared(gradient: jax.Array) -> jax.Array:
    """abs(g)^2."""
    square = jnp.real(gradient) ** 2
    return square + jnp.imag(gradient) ** 2 if jnp.iscomplexobj(gradient) else square


def quotient_of_root(eps: ArrayLike) -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """(m, v, offset) -> m / (sqrt(v) + offset), guarded against 0 / 0 only where eps may be 0."""
    return _over_positive if isinstance(eps, int | float) and eps > 1e-30 else _over_guarded


def _over_guarded(m: jax.Array, v: jax.Array, offset: jax.Array) -> jax.Array:
    return quotient(m, root(v) + offset)


@jax.custom_jvp
def _over_positive(m: jax.Array, v: jax.Array, offset: jax.Array) -> jax.Array:
    return m / (jnp.sqrt(v) + offset)


@_over_positive.defjvp
def _over_positive_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    # The root's derivative at 0 is infinite; the guarded form has 0 there, so that gradients flow.
    return jax.jvp(_over_guarded, primals, tangents)


def quotient(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """The quotient, and 0 where the denominator is 0: a coordinate with v_t = 0 does not move."""
    zero = denominator == 0
    return jnp.where(zero, 0, numerator / jnp.where(zero, 1, denominator))


def root(value: jax.Array) -> jax.Array:
    """The square root, with derivative 0 (not infinity) at 0, so that gradients flow through an update."""
    zero = value == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, value)))


def narrowed(value: jax.Array, dtype: DTypeLike) -> jax.Array:
    """The value in another dtype; what is finite stays so in float16, whose largest number is 65,504."""
    largest = jnp.finfo(dtype).max
    if largest >= jnp.finfo(value.dtype).max:
        return value.astype(dtype)
    return jnp.where(jnp.isfinite(value), jnp.clip(value, -largest, largest), value).astype(dtype)


# Pytrees: several results from one pass over the leaves, and moments to go with each leaf.


def map_leaves(
    function: Callable[..., tuple[Any, ...]], gradients: PyTree, *moments: PyTree
) -> tuple[PyTree, ...]:
    """(update, *new moments) by a function of one leaf of each tree that returns them in this order.

    A gradient that is None has no update and leaves its moments as they are; None parameters have none of
    the three; masked parts stay as they are. Python numbers are taken as arrays.
    """
    leaves, structure = jax.tree.flatten(gradients, is_leaf=lambda leaf: leaf is None)
    results = [
        (None, *own) if gradient is None else function(_as_inexact(gradient), *own)
        for gradient, *own in zip(leaves, *map(structure.flatten_up_to, moments), strict=True)
    ]
    return tuple(structure.unflatten([one[index] for one in results]) for index in range(len(moments) + 1))


def _as_inexact(gradient: ArrayLike) -> jax.Array:
    return jnp.asarray(gradient, None if jnp.issubdtype(jnp.result_type(gradient), jnp.inexact) else float)


def real_dtype(dtype: DTypeLike) -> jnp.dtype:
    """The dtype of abs(x)^2."""
    return jnp.finfo(dtype).dtype


def _moment_dtype(leaf: ArrayLike) -> jnp.dtype:
    """At least float32: float16 and bfloat16 can hold neither g^2 nor an average over 1,000 steps."""
    return jnp.promote_types(jnp.result_type(leaf), jnp.float32)


def first_moments(params: PyTree, dtype: DTypeLike | None) -> PyTree:
    """m_0 = 0, in the dtype given or the parameters' own, at least float32."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        kind = jnp.result_type(leaf)
        if not jnp.issubdtype(kind, jnp.inexact):
            where = jax.tree_util.keystr(path) or "the parameter"
            raise OptimizerError(
                f"{where} is of dtype {kind}; expected floating or complex parameters (mask others)"
            )
    return jax.tree.map(lambda p: jnp.zeros_like(p, dtype=dtype or _moment_dtype(p)), params)


def second_moments(params: PyTree, initial: ArrayLike) -> PyTree:
    """v_0 = initial, real and at least float32."""
    return jax.tree.map(lambda p: jnp.full_like(p, initial, dtype=real_dtype(_moment_dtype(p))), params)


def check_not_negative(**values: ArrayLike) -> None:
    """Raise unless the numbers are finite and >= 0; an array that JAX traces is let pass."""
    for name, value in values.items():
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise OptimizerError(f"{name} is {value}; expected a finite number >= 0")
