"""Adam, and the methods on the way from it to a certified one."""

from fractions import Fraction

from generic_adam.methods.errors import MethodError
from generic_adam.methods.method import Method
from generic_adam.methods.parameters import ScheduleLike, exact_number, read_schedule
from generic_adam.methods.validation import check_beta, check_theta
from generic_adam.schedules import Schedule, as_schedule, maximum, minimum, sqrt
from generic_adam.schedules import bias_correction as correction_factor
from generic_adam.schedules.nodes import Time

t = Time()


def adam(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: ScheduleLike = 0.999,
    bias_correction: bool = True,
) -> Method:
    r"""Adam, as Kingma and Ba published it or without their bias correction.

    .. math::
        \alpha_t = \mathrm{lr}_t \frac{\sqrt{1 - \prod_{i \le t} \theta_i}}{1 - \prod_{i \le t} \beta_i},
        \qquad \beta_t = \beta, \qquad \theta_t = \theta

    The correction is part of alpha_t, and its products are exact for any schedules; for constants they are
    theta^t and beta^t. Without it alpha_t = lr_t. Adam's own epsilon is left out: in Generic Adam epsilon is
    the start value of v.

    Args:
        lr: the learning rate, a number or any schedule ("0.001/sqrt(t)").
        beta: the momentum parameter (beta_1 in Kingma and Ba).
        theta: the second-moment parameter (beta_2 in Kingma and Ba).
        bias_correction: whether alpha_t carries the correction.

    Returns:
        The method.
    """
    rate = read_schedule("lr", lr)
    return Method(_corrected(rate, beta, theta) if bias_correction else rate, beta, theta)


def certified_adam(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: float = 0.999,
    K: float | None = None,
    bias_correction: bool = False,
) -> Method:
    r"""The repair: Adam itself for its first 1/(1 - theta) steps, and for a constant lr certified for ever.

    .. math::
        \alpha_t = \mathrm{lr} \min(1, \sqrt{K/t}), \qquad \beta_t = \beta, \qquad
        \theta_t = \max(\theta, 1 - 1/t)

    For a constant lr the rate is log T / sqrt T; without bias correction C_0 = sqrt(K (1 - theta)), so 1 for
    the smallest K.

    Args:
        lr: the learning rate of the Adam to repair.
        beta: its momentum parameter.
        theta: its second-moment parameter, a number.
        K: how long the learning rate stays, at least 1/(1 - theta); None takes exactly that.
        bias_correction: whether alpha_t carries Kingma and Ba's correction, with this theta_t's products.

    Returns:
        The method.
    """
    constant = exact_number("theta", theta, above=0, below=1)
    smallest = 1 / (1 - constant)
    hold = smallest if K is None else exact_number("K", K)
    if hold < smallest:
        raise MethodError(f"K: expected a number >= 1/(1 - theta) = {float(smallest):g}, got {K!r}")
    growing = maximum(constant, 1 - 1 / t)
    rate = read_schedule("lr", lr) * minimum(1, sqrt(hold / t))
    return Method(_corrected(rate, beta, growing) if bias_correction else rate, beta, growing)


def adaema(*, lr: float = 1e-3, beta: ScheduleLike = 0.9) -> Method:
    r"""AdaEMA, AdaGrad with exponential-moving-average momentum.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad \theta_t = 1 - 1/t

    theta_1 = 0, so condition 2 fails at t = 1 as published; ``power_family(r=1, K=2)`` is the same from
    t = 2 on.

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.

    Returns:
        The method.
    """
    return Method(_decaying(lr), beta, 1 - 1 / t)


def adamnc(*, lr: float = 1e-3, beta: float = 0.9, decay: float = 0.999) -> Method:
    r"""AdamNC: theta_t averages all squared gradients and the momentum fades.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta \lambda^t, \qquad \theta_t = 1 - 1/t

    theta_1 = 0, so condition 2 fails at t = 1 as published.

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter before it fades.
        decay: lambda, 0 < lambda <= 1.

    Returns:
        The method.
    """
    fading = as_schedule(exact_number("decay", decay, above=0, at_most=1)) ** t
    return Method(
        _decaying(lr), as_schedule(exact_number("beta", beta, at_least=0, below=1)) * fading, 1 - 1 / t
    )


def power_family(
    *,
    lr: float = 1e-3,
    beta: ScheduleLike = 0.9,
    s: float = 0.5,
    r: float = 1.0,
    c: float = 1.0,
    K: float = 2,
) -> Method:
    r"""The power family of the paper: both the learning rate and 1 - theta_t are powers of t.

    .. math:: \alpha_t = \mathrm{lr} / t^s, \qquad \beta_t = \beta, \qquad \theta_t = 1 - c / \max(t, K)^r

    With c / K^r < 1 it is certified for 0 < r <= 2s < 2.

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.
        s: the exponent of the learning rate.
        r: the exponent of 1 - theta_t.
        c: the numerator of 1 - theta_t, > 0.
        K: theta_t is constant up to this t, >= 1.

    Returns:
        The method.
    """
    exponent, scale = exact_number("r", r, at_least=0), exact_number("c", c, above=0)
    hold = exact_number("K", K, at_least=1)
    time = t if hold == 1 else maximum(t, hold)
    return Method(_decaying(lr, exact_number("s", s)), beta, 1 - scale / time**exponent)


def adam_to_adaema(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, theta: float = 0.999, r: float = 0.5, s: float = 0.5
) -> Method:
    r"""The path of the paper's experiments, from Adam (r = 0) to AdaEMA (r = 1).

    .. math::
        \alpha_t = \mathrm{lr} / t^s, \qquad \beta_t = \beta, \qquad
        \theta_t = 1 - (r \bar\theta + 1 - \bar\theta) / t^r

    Args:
        lr: the numerator of the learning rate (eta).
        beta: the momentum parameter.
        theta: the constant at r = 0: 0.99 in the counterexample, 0.999 for the networks.
        r: where on the path, 0 <= r <= 1.
        s: the exponent of the learning rate; 1/2 except in the paper's study of s.

    Returns:
        The method.
    """
    constant = exact_number("theta", theta, above=0, below=1)
    position = exact_number("r", r, at_least=0, at_most=1)
    scale = position * constant + 1 - constant
    return Method(_decaying(lr, exact_number("s", s)), beta, 1 - scale / t**position)


def _decaying(lr: float, exponent: Fraction = Fraction(1, 2)) -> Schedule:
    """Lr / t^exponent, written with a root where it is one."""
    rate = exact_number("lr", lr, above=0)
    return rate / sqrt(t) if exponent == Fraction(1, 2) else rate / t**exponent


def _corrected(rate: Schedule, beta: ScheduleLike, theta: ScheduleLike) -> Schedule:
    """Kingma and Ba's bias correction as a learning rate."""
    momentum, second_moment = read_schedule("beta", beta), read_schedule("theta", theta)
    check_beta(momentum)  # first, so that the message is about beta and not about a product of betas
    check_theta(second_moment)
    return rate * sqrt(correction_factor(second_moment)) / correction_factor(momentum)
