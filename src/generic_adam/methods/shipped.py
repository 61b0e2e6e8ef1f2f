"""Adam and its relatives as the frameworks ship them: eps in the denominator, v_0 = 0, decoupled decay."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from generic_adam.methods.algorithm import Algorithm, HeavyBall, Nesterov
from generic_adam.methods.catalogue import DUCHI, HINTON, REDDI, adagrad, adam, corrected_eps, listed
from generic_adam.methods.method import Method, ScheduleLike, exact_number, read_schedule
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt, t


@listed('Loshchilov, Hutter, "Decoupled Weight Decay Regularization", ICLR 2019')
def adamw(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: ScheduleLike = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Algorithm:
    r"""AdamW as torch, Optax and Keras ship it.

    .. math::
        x_{t+1} = (1 - \mathrm{lr}_t \lambda) x_t - \mathrm{lr}_t
        \frac{\hat m_t}{\sqrt{\hat v_t} + \mathrm{eps}}

    with lambda the weight decay; with 0 it is torch's Adam.
    """
    return Algorithm(
        adam(lr=lr, beta=beta, theta=theta),
        initial_v=0,
        eps=corrected_eps(eps, theta),
        decay=read_schedule("lr", lr) * exact_number("weight_decay", weight_decay, at_least=0),
        label="AdamW" if weight_decay else "Adam",
    )


@listed(REDDI)
def amsgrad(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.999, eps: float = 1e-8
) -> Algorithm:
    r"""AMSGrad as torch ships it.

    .. math:: D_t = \sqrt{\max_{i \le t} v_i} + e_t
    """
    plain = adamw(lr=lr, beta=beta, theta=theta, eps=eps, weight_decay=0)
    return replace(plain, running_maximum=True, label="AMSGrad")


@listed('Dozat, "Incorporating Nesterov Momentum into Adam", ICLR 2016 workshop')
def nadam(
    *,
    lr: ScheduleLike = 2e-3,
    beta: float = 0.9,
    theta: float = 0.999,
    eps: float = 1e-8,
    momentum_decay: float = 4e-3,
) -> Algorithm:
    r"""NAdam as torch ships it.

    .. math::
        \mu_t = \beta (1 - 0.5 \cdot 0.96^{t\psi}), \qquad
        x_{t+1} = x_t - \mathrm{lr} \frac{a_t m_t + b_t g_t}{\sqrt{\hat v_t} + \mathrm{eps}}, \qquad
        a_t = \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i}, \quad
        b_t = \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i}

    with psi the momentum decay: how fast the momentum grows from beta / 2 to beta.
    """
    momentum = exact_number("beta", beta, at_least=0, below=1)
    speed = exact_number("momentum_decay", momentum_decay, at_least=0)

    def mu(time: Schedule) -> Schedule:
        return momentum * (1 - Fraction(1, 2) * as_schedule(Fraction(24, 25)) ** (speed * time))

    so_far = bias_correction(mu(t))
    ahead = mu(t + 1)
    return Algorithm(
        Method(read_schedule("lr", lr) * sqrt(bias_correction(theta)), beta, theta),
        initial_v=0,
        eps=corrected_eps(eps, theta),
        nesterov=Nesterov(ahead / (1 - ahead * (1 - so_far)), (1 - mu(t)) / so_far),
        label="NAdam",
    )


@listed(HINTON)
def rmsprop_torch(
    *, lr: ScheduleLike = 1e-2, theta: ScheduleLike = 0.99, eps: float = 1e-8, momentum: float = 0.0
) -> Algorithm:
    r"""RMSprop as torch ships it.

    .. math:: b_t = \mu b_{t-1} + g_t / (\sqrt{v_t} + \mathrm{eps}), \qquad x_{t+1} = x_t - \mathrm{lr}\, b_t

    with mu the momentum and theta what torch calls alpha.
    """
    return Algorithm(
        Method(lr, 0, theta), initial_v=0, eps=eps, heavy_ball=_heavy_ball(momentum), label="RMSprop"
    )


@listed(DUCHI)
def adagrad_torch(*, lr: float = 1e-2, eps: float = 1e-10, initial_accumulator: float = 0.0) -> Algorithm:
    r"""AdaGrad as torch ships it.

    .. math:: x_{t+1} = x_t - \mathrm{lr}\, g_t / (\sqrt{s_0 + \textstyle\sum_{i \le t} g_i^2} + \mathrm{eps})

    The sum of squares, from the initial accumulator s_0 on, is (t + 1) v_t, so that e_t = eps / sqrt(t + 1).
    """
    offset = exact_number("eps", eps, at_least=0)
    shrinking = offset / sqrt(t + 1) if offset else 0
    return Algorithm(adagrad(lr=lr), initial_v=initial_accumulator, eps=shrinking, label="Adagrad")


@listed('Robbins, Monro, "A Stochastic Approximation Method", Annals of Mathematical Statistics 22, 1951')
def sgd(*, lr: ScheduleLike = 1e-2, momentum: float = 0.0) -> Algorithm:
    r"""Stochastic gradient descent, with or without momentum.

    .. math:: b_t = \mu b_{t-1} + g_t, \qquad x_{t+1} = x_t - \mathrm{lr}_t b_t

    with mu the momentum; theta is without meaning here.
    """
    return Algorithm(Method(lr, 0, 0.5), preconditioned=False, heavy_ball=_heavy_ball(momentum), label="SGD")


@listed(
    'Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any beta_2 with the Optimal Rate", '
    "NeurIPS 2024"
)
def adopt(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.9999, eps: float = 1e-6
) -> Algorithm:
    r"""ADOPT, without its clipping.

    .. math::
        m_t = \beta m_{t-1} + (1 - \beta) g_t / \max(\sqrt{v_{t-1}}, \mathrm{eps}), \qquad
        x_{t+1} = x_t - \mathrm{lr}_t m_t

    The gradient is divided by the root of the v before it, which is eps at least, and averaged then.
    """
    return Algorithm(Method(lr, beta, theta), initial_v=0, eps=eps, delayed=True, label="ADOPT")


def _heavy_ball(momentum: float) -> HeavyBall | None:
    factor = exact_number("momentum", momentum, at_least=0, below=1)
    return HeavyBall(factor) if factor else None
