"""Generic Adam as a gradient transformation: Algorithm 1 over a pytree, every number from its schedule."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.methods.algorithm import PAPERS_INITIAL_V
from generic_adam.optax import leaves
from generic_adam.optax.schedule import CoefficientLike, RunningSchedules, RunningSum, check_number

_ADAM = {"beta": 0.9, "theta": 0.999, "initial_v": 0.0, "eps": 1e-8, "bias_correction": True}
"""The options of a learning rate alone: optax.adam's."""
PAPERS_EPS = 1e-16
_PAPERS = {**_ADAM, "initial_v": PAPERS_INITIAL_V, "eps": PAPERS_EPS, "bias_correction": False}
"""The options of a Method alone: Algorithm 1, with an eps for float32, where g^2 underflows."""


class ScaleByGenericAdamState(NamedTuple):
    """Generic Adam's state between steps.

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
    beta: CoefficientLike = 0.9,
    theta: CoefficientLike = 0.999,
    *,
    initial_v: ArrayLike = 0.0,
    eps: CoefficientLike = 1e-8,
    bias_correction: bool = True,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Rescale gradients by Generic Adam: m_t / sqrt(v_t), without learning rate and without sign.

    As it stands it is optax.scale_by_adam. See :func:`generic_adam` for the update and the arguments. Chain
    it with any learning rate of Optax's:

    Examples:
        >>> import optax
        >>> solver = optax.chain(
        ...     scale_by_generic_adam(beta=0.9, theta="1 - 1/max(t, 2)"),
        ...     optax.scale_by_learning_rate(optax.cosine_decay_schedule(1e-3, 10_000)),
        ... )
    """
    settings = {"alpha": 1, "beta": beta, "theta": theta, "eps": eps, "bias_correction": bias_correction}
    return _stepping({**settings, "initial_v": initial_v}, 1, mu_dtype)


def generic_adam(
    learning_rate: Method | Algorithm | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    initial_v: ArrayLike | None = None,
    eps: CoefficientLike | None = None,
    bias_correction: bool | None = None,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformationExtraArgs:
    r"""Adam with any sequences of learning rate, momentum and second-moment parameter, exactly.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) |g_t|^2, \qquad v_0 = \text{initial\_v} \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t\, \hat m_t / (\sqrt{\hat v_t} + \text{eps}), \qquad
        \hat m_t = \frac{m_t}{1 - \prod \beta_i}, \quad \hat v_t = \frac{v_t}{1 - \prod \theta_i}

    ``generic_adam(1e-3)`` is optax.adam(1e-3), to rounding: v_0 = 0, eps = 1e-8, bias correction; with a
    schedule the correction has the exact products. ``generic_adam(method)`` is Algorithm 1 of the paper:
    no hats, v_0 = 1e-8, and nothing is added to the root but 1e-16. An algorithm is run as it says itself.

    t = 1 at the first update. Nothing cancels where theta_t tends to 1. The moments are kept in float32 at least; the
    updates have the dtype of the gradients. A gradient that is None leaves its moments as they are.

    Args:
        learning_rate: alpha_t: a number, a text such as "0.5/sqrt(t)", a schedule, a callable of t = 1, 2, 3, ..., a
            JAX array, or a schedule that Optax made, which counts from 0 and is called so (a function that *you* write
            around one is a callable of t); or a method or an algorithm, with all three sequences.
        beta: the momentum parameter beta_t, 0.9 if not given; not with a method.
        theta: the second-moment parameter theta_t, 0.999 if not given; not with a method.
        initial_v: v_0, which the paper calls epsilon.
        eps: added to the (corrected) root. With 0 a coordinate with v_t = 0 does not move; a method's 1e-16 is there
            because g^2 underflows in float32 for abs(g) < 1e-22.
        bias_correction: whether to correct for m_0 = v_0 = 0, by the hats above.
        mu_dtype: the dtype of m; None for that of the parameters, at least float32.

    Raises:
        OptimizerError: beta or theta is given twice, a sequence cannot be read, initial_v or eps is
            negative, or the algorithm does something that this transformation does not.
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
    given = {"beta": beta, "theta": theta, "initial_v": initial_v, "eps": eps, "bias_correction": bias_correction}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not isinstance(learning_rate, Method | Algorithm):
        return _stepping({"alpha": learning_rate, **_ADAM, **chosen}, -1, mu_dtype)
    if "beta" in chosen or "theta" in chosen:
        raise OptimizerError("a method brings its own beta and theta; expected none beside it")
    algorithm = as_algorithm(learning_rate)
    reason = algorithm.beyond("initial_v", "eps")
    if reason is not None:
        raise OptimizerError(f"this transformation does not run this algorithm: {reason}; chain what else there is")
    method, own_eps = algorithm.method, PAPERS_EPS if algorithm is not learning_rate else algorithm.eps
    sequences = {"alpha": method.alpha, "beta": method.beta, "theta": method.theta}
    return _stepping({**_PAPERS, **sequences, "initial_v": algorithm.initial_v, "eps": own_eps, **chosen}, -1, mu_dtype)


def _stepping(settings: dict[str, Any], sign: int, mu_dtype: DTypeLike | None) -> optax.GradientTransformationExtraArgs:
    """Return the transformation to sign * alpha_t m_t / (sqrt(v_t) + eps_t), each leaf by itself."""
    initial_v = settings.pop("initial_v")
    running = RunningSchedules(**settings)
    check_number("initial_v", initial_v, "a finite number >= 0", lambda v: 0 <= v < math.inf)

    def init(params: optax.Params) -> ScaleByGenericAdamState:
        first, second = leaves.first_moments(params, mu_dtype), leaves.second_moments(params, initial_v)
        return ScaleByGenericAdamState(jnp.zeros([], jnp.int32), first, second, running.start())

    def update(
        updates: optax.Updates, state: Any, params: optax.Params | None = None, **extra_args: Any
    ) -> tuple[optax.Updates, Any]:
        del params, extra_args
        numbers, sums = running.numbers_at(state.count, state.sums)
        moved, mu, nu = leaves.map_leaves(partial(move, numbers), updates, state.mu, state.nu)
        return moved, ScaleByGenericAdamState(optax.safe_increment(state.count), mu, nu, sums)

    def move(numbers: Any, gradient: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        g = leaves.held_in_range(gradient.astype(leaves.wider(gradient.dtype, v.dtype)))
        new_m = leaves.averaged(m.astype(g.dtype), g, numbers, "beta")
        new_v = leaves.averaged(v.astype(leaves.real_dtype(g.dtype)), leaves.squared(g), numbers, "theta")
        step, offset = (jnp.asarray(numbers[name], new_v.dtype) for name in ("alpha", "eps"))
        moved = sign * step * leaves.quotient(new_m, leaves.root(new_v) + offset)
        return leaves.narrowed(moved, gradient.dtype), new_m.astype(m.dtype), new_v.astype(v.dtype)

    def runs() -> tuple[Algorithm, int]:
        alpha, beta, theta, eps = (running.schedules[name] for name in ("alpha", "beta", "theta", "eps"))
        found = Algorithm(Method(alpha, beta, theta), initial_v=float(initial_v), eps=eps, label="GenericAdam")
        return found, sign

    vars(update)["runs"] = runs  # for adapters: chains of Optax's keep the function as it is
    return optax.GradientTransformationExtraArgs(init, update)
