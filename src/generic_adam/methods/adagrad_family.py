"""Methods with their origin in AdaGrad and RMSProp: averages of all squared gradients, weighted or not."""

from generic_adam.methods.method import Method
from generic_adam.methods.parameters import ScheduleLike, exact_number
from generic_adam.schedules import sqrt
from generic_adam.schedules.nodes import Time

t = Time()


def rmsprop(*, lr: ScheduleLike = 1e-3, theta: ScheduleLike = 0.9) -> Method:
    r"""RMSProp: Adam without momentum and without correction.

    .. math:: \alpha_t = \mathrm{lr}_t, \qquad \beta_t = 0, \qquad \theta_t = \theta

    Args:
        lr: the learning rate.
        theta: the second-moment parameter.

    Returns:
        The method.
    """
    return Method(lr, 0, theta)


def rmsprop_mukkamala_hein(*, lr: float = 1e-3, c: float = 0.9) -> Method:
    r"""RMSProp with the parameters of Mukkamala and Hein, who proved its regret bound.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = 0, \qquad \theta_t = 1 - c/t

    Args:
        lr: the numerator of the learning rate (eta).
        c: 0 < c <= 1; theta_1 = 0 at c = 1, where condition 2 fails.

    Returns:
        The method.
    """
    scale = exact_number("c", c, above=0, at_most=1)
    return Method(exact_number("lr", lr, above=0) / sqrt(t), 0, 1 - scale / t)


def adagrad(*, lr: float = 1e-2) -> Method:
    r"""AdaGrad: every squared gradient weighs the same (w_t = 1).

    .. math:: \alpha_t = \mathrm{lr} / \sqrt{t + 1}, \qquad \beta_t = 0, \qquad \theta_t = 1 - 1/(t + 1)

    As v_t = (epsilon + sum of g_i^2) / (t + 1), the step is the textbook's
    lr g_t / sqrt(epsilon + sum of g_i^2).

    Args:
        lr: the learning rate (eta).

    Returns:
        The method.
    """
    return Method(exact_number("lr", lr, above=0) / sqrt(t + 1), 0, 1 - 1 / (t + 1))


def polynomial_weights(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, r: float = 1.0, initial: float = 1.0
) -> Method:
    r"""Weighted AdaEMA with weights that grow like a power of t.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad w_t = t^r

    With W_0 = 1 condition 2 holds for r <= 1 only: for r > 1, theta_2 < theta_1.

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.
        r: the exponent of the weights, >= 0.
        initial: W_0.

    Returns:
        The method.
    """
    weights = t ** exact_number("r", r, at_least=0)
    return Method.from_weights(exact_number("lr", lr, above=0) / sqrt(t), beta, weights, initial)


def nosadam(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, weights: ScheduleLike = "t^-0.1", initial: float = 1.0
) -> Method:
    r"""Nostalgic Adam: the past weighs more than the present.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad \theta_t = B_{t-1} / B_t

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.
        weights: b_t > 0, with B_t = B_{t-1} + b_t.
        initial: B_0 > 0.

    Returns:
        The method.
    """
    return Method.from_weights(exact_number("lr", lr, above=0) / sqrt(t), beta, weights, initial)


def nosadam_hh(*, lr: float = 1e-3, beta: ScheduleLike = 0.9, r: float = 0.1, initial: float = 1.0) -> Method:
    r"""NosAdam with hyper-harmonic weights.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad w_t = t^{-r}

    Certified for r < 1; from r = 1 on, chi_t grows without bound and condition 3 fails.

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.
        r: the exponent of the weights, >= 0.
        initial: B_0 > 0.

    Returns:
        The method.
    """
    return nosadam(lr=lr, beta=beta, weights=t ** -exact_number("r", r, at_least=0), initial=initial)
