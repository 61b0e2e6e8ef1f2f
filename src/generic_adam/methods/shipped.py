"""Adam and its relatives as the frameworks ship them: eps in the denominator, v_0 = 0, decoupled decay."""

from __future__ import annotations

from fractions import Fraction

from generic_adam.methods.algorithm import Algorithm, HeavyBall, Nesterov
from generic_adam.methods.catalogue import adagrad as adagrad_sequences
from generic_adam.methods.catalogue import adam as adam_sequences
from generic_adam.methods.catalogue import listed
from generic_adam.methods.method import Method, ScheduleLike, exact_number, read_schedule
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t


def corrected_eps(eps: float, theta: ScheduleLike) -> Schedule:
    r"""e_t = eps sqrt(1 - prod_{i<=t} theta_i): what eps is once the bias correction is a part of alpha_t."""
    return exact_number("eps", eps, at_least=0) * sqrt(bias_correction(theta))


@listed(
    "AdamW as torch, Optax and Keras ship it",
    'Loshchilov, Hutter, "Decoupled Weight Decay Regularization", ICLR 2019',
)
def adamw(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: ScheduleLike = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Algorithm:
    r"""Adam with bias correction, eps in the denominator, v_0 = 0 and decoupled weight decay.

    .. math::
        x_{t+1} = (1 - \mathrm{lr}_t \lambda) x_t - \mathrm{lr}_t
        \frac{\hat m_t}{\sqrt{\hat v_t} + \mathrm{eps}}

    Args:
        lr: the learning rate, a number or any schedule.
        beta: the momentum parameter (beta_1).
        theta: the second-moment parameter (beta_2).
        eps: what is added to the root of the corrected v_t.
        weight_decay: lambda; 0 is torch's Adam.

    Returns:
        The algorithm.
    """
    shrink = read_schedule("lr", lr) * exact_number("weight_decay", weight_decay, at_least=0)
    return Algorithm(
        adam_sequences(lr=lr, beta=beta, theta=theta),
        initial_v=0,
        eps=corrected_eps(eps, theta),
        decay=shrink,
        label="AdamW" if weight_decay else "Adam",
    )


@listed("AMSGrad as torch ships it", 'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018')
def amsgrad(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: ScheduleLike = 0.999,
    eps: float = 1e-8,
) -> Algorithm:
    r"""Adam with the running maximum of v_t in the denominator.

    .. math:: D_t = \sqrt{\max_{i \le t} v_i} + e_t

    Args:
        lr: the learning rate.
        beta: the momentum parameter.
        theta: the second-moment parameter.
        eps: as in AdamW.

    Returns:
        The algorithm.
    """
    return Algorithm(
        adam_sequences(lr=lr, beta=beta, theta=theta),
        initial_v=0,
        eps=corrected_eps(eps, theta),
        running_maximum=True,
        label="AMSGrad",
    )


@listed("NAdam as torch ships it", 'Dozat, "Incorporating Nesterov Momentum into Adam", ICLR 2016 workshop')
def nadam(
    *,
    lr: ScheduleLike = 2e-3,
    beta: float = 0.9,
    theta: float = 0.999,
    eps: float = 1e-8,
    momentum_decay: float = 4e-3,
) -> Algorithm:
    r"""Adam with Nesterov momentum that grows from beta / 2 to beta.

    .. math::
        \mu_t = \beta (1 - 0.5 \cdot 0.96^{t\psi}), \qquad
        x_{t+1} = x_t - \mathrm{lr} \frac{a_t m_t + b_t g_t}{\sqrt{\hat v_t} + \mathrm{eps}}, \qquad
        a_t = \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i}, \quad
        b_t = \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i}

    Args:
        lr: the learning rate.
        beta: the momentum parameter.
        theta: the second-moment parameter.
        eps: as in AdamW.
        momentum_decay: psi, how fast the momentum grows.

    Returns:
        The algorithm.
    """
    momentum = exact_number("beta", beta, at_least=0, below=1)
    speed = exact_number("momentum_decay", momentum_decay, at_least=0)

    def mu(time: Schedule) -> Schedule:
        return momentum * (1 - Fraction(1, 2) * as_schedule(Fraction(24, 25)) ** (speed * time))

    so_far = bias_correction(mu(t))
    ahead = mu(t + 1)
    weights = Nesterov(ahead / (1 - ahead * (1 - so_far)), (1 - mu(t)) / so_far)
    rate = read_schedule("lr", lr) * sqrt(bias_correction(theta))
    return Algorithm(
        Method(rate, beta, theta), initial_v=0, eps=corrected_eps(eps, theta), nesterov=weights, label="NAdam"
    )


@listed(
    "RMSprop as torch ships it",
    'Tieleman, Hinton, "Lecture 6.5: RMSProp", Neural Networks for Machine Learning, 2012',
)
def rmsprop_torch(
    *, lr: ScheduleLike = 1e-2, theta: ScheduleLike = 0.99, eps: float = 1e-8, momentum: float = 0.0
) -> Algorithm:
    r"""RMSprop with eps in the denominator and heavy-ball momentum after the division.

    .. math:: b_t = \mu b_{t-1} + g_t / (\sqrt{v_t} + \mathrm{eps}), \qquad x_{t+1} = x_t - \mathrm{lr}\, b_t

    Args:
        lr: the learning rate.
        theta: the second-moment parameter (torch's alpha).
        eps: what is added to the root.
        momentum: mu.

    Returns:
        The algorithm.
    """
    factor = exact_number("momentum", momentum, at_least=0, below=1)
    ball = HeavyBall(factor) if factor else None
    return Algorithm(Method(lr, 0, theta), initial_v=0, eps=eps, heavy_ball=ball, label="RMSprop")


@listed(
    "AdaGrad as torch ships it",
    'Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", '
    "JMLR 12, 2011",
)
def adagrad_torch(*, lr: float = 1e-2, eps: float = 1e-10, initial_accumulator: float = 0.0) -> Algorithm:
    r"""AdaGrad with eps in the denominator: the sum of squares is (t + 1) v_t, so e_t = eps / sqrt(t + 1).

    .. math:: x_{t+1} = x_t - \mathrm{lr}\, g_t / (\sqrt{s_0 + \textstyle\sum_{i \le t} g_i^2} + \mathrm{eps})

    Args:
        lr: the learning rate.
        eps: what is added to the root of the sum.
        initial_accumulator: the sum's start, which is v_0.

    Returns:
        The algorithm.
    """
    return Algorithm(
        adagrad_sequences(lr=lr),
        initial_v=initial_accumulator,
        eps=exact_number("eps", eps, at_least=0) / sqrt(t + 1),
        label="Adagrad",
    )


@listed(
    "stochastic gradient descent, with or without momentum",
    'Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951',
)
def sgd(*, lr: ScheduleLike = 1e-2, momentum: float = 0.0) -> Algorithm:
    r"""x_{t+1} = x_t - lr_t b_t with b_t = mu b_{t-1} + g_t.

    Args:
        lr: the learning rate.
        momentum: mu.

    Returns:
        The algorithm; its theta is without meaning.
    """
    factor = exact_number("momentum", momentum, at_least=0, below=1)
    ball = HeavyBall(factor) if factor else None
    return Algorithm(Method(lr, 0, 0.5), preconditioned=False, heavy_ball=ball, label="SGD")


@listed(
    "ADOPT, without its clipping",
    'Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any beta_2 with the Optimal Rate", '
    "NeurIPS 2024",
)
def adopt(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.9999, eps: float = 1e-6
) -> Algorithm:
    r"""The gradient is divided by the root of the v before it, and averaged then.

    .. math::
        m_t = \beta m_{t-1} + (1 - \beta) g_t / \max(\sqrt{v_{t-1}}, \mathrm{eps}), \qquad
        x_{t+1} = x_t - \mathrm{lr}_t m_t

    Args:
        lr: the learning rate.
        beta: the momentum parameter.
        theta: the second-moment parameter.
        eps: the least divisor.

    Returns:
        The algorithm.
    """
    return Algorithm(Method(lr, beta, theta), initial_v=0, eps=eps, delayed=True, label="ADOPT")
