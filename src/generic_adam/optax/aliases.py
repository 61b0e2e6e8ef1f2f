r"""Generic Adam with its learning rate, ready for training."""

import optax
from jax.typing import ArrayLike, DTypeLike

from generic_adam.methods import Method
from generic_adam.optax.coefficients import CoefficientLike, as_coefficient
from generic_adam.optax.errors import TransformationError
from generic_adam.optax.transform import DEFAULT_EPS, DEFAULT_INITIAL_V, transformation
from generic_adam.schedules import Schedule


def generic_adam(
    method_or_alpha: Method | CoefficientLike,
    beta: CoefficientLike | None = None,
    theta: CoefficientLike | None = None,
    *,
    initial_v: ArrayLike = DEFAULT_INITIAL_V,
    eps: ArrayLike = DEFAULT_EPS,
    bias_correction: bool = False,
    mu_dtype: DTypeLike | None = None,
) -> optax.GradientTransformation:
    r"""Generic Adam (Algorithm 1), for any sequences alpha_t, beta_t, theta_t, exactly.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) |g_t|^2, \qquad v_0 = \text{initial\_v} \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t, \qquad m_0 = 0 \\
        x_{t+1} &= x_t - \alpha_t m_t / (\sqrt{v_t} + \text{eps})

    t = 1 at the first update. 1 - theta_t comes from its own schedule, so that nothing cancels where theta_t
    tends to 1. The moments are kept in float32 at least, also for bfloat16 and float16 parameters; the
    updates have the dtype of the gradients.

    Args:
        method_or_alpha: a method, or the base learning rate alpha_t: a number, a text such as "0.5/sqrt(t)",
            a schedule, a callable of t = 1, 2, 3, ..., or a JAX array. A schedule of Optax's counts from 0:
            pass ``lambda t: f(t - 1)``, or chain it to `scale_by_generic_adam`.
        beta: the momentum parameter beta_t; not with a method.
        theta: the second-moment parameter theta_t; not with a method.
        initial_v: v_0, which the paper calls epsilon.
        eps: added to the root. The paper has none, and with 0 the recursion is the paper's: a coordinate with
            v_t = 0 does not move. The default is there for float32, where g^2 underflows for abs(g) < 1e-22;
            it is below the rounding error of sqrt(v_t) wherever sqrt(v_t) > 2e-9.
        bias_correction: use alpha_t sqrt(1 - prod theta_i) / (1 - prod beta_i) with the exact products.
        mu_dtype: the dtype of m; None for that of the parameters, at least float32.

    Returns:
        A :class:`optax.GradientTransformation`.

    Raises:
        TransformationError: beta or theta is missing or given twice, a sequence cannot be read, or initial_v
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
    alpha, beta, theta = sequences(method_or_alpha, beta, theta)
    return transformation(
        alpha, beta, theta, initial_v=initial_v, eps=eps, bias_correction=bias_correction, mu_dtype=mu_dtype
    )


def sequences(
    method_or_alpha: Method | CoefficientLike, beta: CoefficientLike | None, theta: CoefficientLike | None
) -> tuple[Schedule, Schedule, Schedule]:
    """alpha, beta and theta as schedules, from a method or one by one, checked as a method's are."""
    if isinstance(method_or_alpha, Method):
        if beta is not None or theta is not None:
            raise TransformationError("a method brings its own beta and theta; expected none beside it")
        return method_or_alpha.alpha, method_or_alpha.beta, method_or_alpha.theta
    if beta is None or theta is None:
        missing = " and ".join(name for name, value in (("beta", beta), ("theta", theta)) if value is None)
        raise TransformationError(f"expected a method, or alpha, beta and theta; got no {missing}")
    return (
        as_coefficient("alpha", method_or_alpha),
        as_coefficient("beta", beta),
        as_coefficient("theta", theta),
    )
