"""The catalogue: published methods, one function each with its formula, and the list that they form.

A function returns a `Method` (three sequences) or, where the step itself differs from the paper's, as in what
frameworks ship (eps in the denominator, v_0 = 0, decoupled decay), an `Algorithm`. `@listed` puts it into the
list that names, documentation and tests read; the first line of its docstring is its summary there. Arguments
are keywords with defaults, and mean the same everywhere:

    lr      the learning rate; where alpha_t falls by its formula, the numerator (the papers' eta)
    beta    the momentum parameter (beta_1 of Kingma and Ba)
    theta   the second-moment parameter (their beta_2)
    eps     what is added to the root of v_t
    r, s    the exponents of 1 - theta_t (or of the weights) and of alpha_t
    initial W_0 > 0, the weight of v_0

A `ScheduleLike` is a number, a text such as "0.001/sqrt(t)", a schedule or a callable of t.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from generic_adam.errors import MethodError, meant, shown
from generic_adam.methods.algorithm import Algorithm, HeavyBall, Nesterov
from generic_adam.methods.method import Method, ScheduleLike, exact_number, read_schedule, read_sequence
from generic_adam.schedules import Schedule, as_schedule, join, maximum, minimum, sqrt, t, tree
from generic_adam.schedules import bias_correction as correction_factor

__all__ = [
    "MethodInfo",
    "adaema",
    "adafactor",
    "adagrad",
    "adagrad_torch",
    "adam",
    "adam_to_adaema",
    "adamnc",
    "adamw",
    "adopt",
    "amsgrad",
    "build",
    "certified_adam",
    "entries",
    "generic_adam",
    "info",
    "nadam",
    "names",
    "nosadam",
    "nosadam_hh",
    "polynomial_weights",
    "power_family",
    "rmsprop",
    "rmsprop_mukkamala_hein",
    "rmsprop_torch",
    "sgd",
]

Builder = Callable[..., Method | Algorithm]
_Function = TypeVar("_Function", bound=Builder)


@dataclass(frozen=True)
class MethodInfo:
    """One method of the catalogue.

    Attributes:
        name: what `build` and the command line know it by.
        build: the function that makes it; keyword arguments only, each with a default.
        citation: where it was published.
    """

    name: str
    build: Builder
    citation: str

    @property
    def summary(self) -> str:
        """The method in a few words."""
        return (inspect.getdoc(self.build) or self.name).partition("\n")[0].rstrip(".")

    @property
    def parameters(self) -> dict[str, object]:
        """The keyword arguments of `build` with their defaults."""
        return {name: one.default for name, one in inspect.signature(self.build).parameters.items()}


_BY_NAME: dict[str, MethodInfo] = {}


def listed(citation: str) -> Callable[[_Function], _Function]:
    """Put a function into the catalogue, in the order of the file."""

    def put(build: _Function) -> _Function:
        _BY_NAME[build.__name__] = MethodInfo(build.__name__, build, citation)
        return build

    return put


ZOU = 'Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019'
HUANG = (
    'Huang, Wang, Dong, "Nostalgic Adam: Weighting More of the Past Gradients When Designing the Adaptive '
    'Learning Rate", IJCAI 2019'
)
HINTON = 'Tieleman, Hinton, "Lecture 6.5: RMSProp", Neural Networks for Machine Learning, 2012'
DUCHI = (
    'Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", '
    "JMLR 12, 2011"
)
REDDI = 'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018'


def corrected(rate: Schedule, beta: Schedule, theta: Schedule) -> Schedule:
    r"""Kingma and Ba's bias correction as a learning rate, exact for any schedules.

    .. math:: \mathrm{lr}_t \sqrt{1 - \prod_{i \le t} \theta_i} \big/ \left(1 - \prod_{i \le t} \beta_i\right)
    """
    return rate * sqrt(correction_factor(theta)) / correction_factor(beta)


def corrected_eps(eps: ScheduleLike, theta: ScheduleLike) -> Schedule:
    r"""e_t = eps sqrt(1 - prod_{i<=t} theta_i): what eps is once the bias correction is a part of alpha_t."""
    return read_schedule("eps", eps) * sqrt(correction_factor(theta))


def power_correction(beta: Schedule) -> Schedule:
    """Return 1 - beta_t^t, which torch's Adam has for 1 - prod beta_i, in a form whose limit can be read off."""
    if isinstance(beta, tree.Join):
        return join(1 - beta.before**t, beta.threshold, power_correction(beta.after))
    if beta.is_constant:
        return correction_factor(beta)
    exact, order = 1 - beta**t, beta.order
    if order is None or order.trend != 0 or not 0 <= order.low <= order.high < 1:
        return exact
    # beta_t^t <= beta_t <= sup beta, so the correction lies between 1 - sup beta and 1.
    return tree.Bounded(exact, (1 - order.high) * (1 - 1e-12), 1.0)


def _is_on(bias_correction: object) -> bool:
    if not isinstance(bias_correction, bool):  # "no" would count as yes
        raise MethodError(f"bias_correction is {shown(bias_correction)}, expected True or False")
    return bias_correction


@listed('Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015')
def adam(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.999, bias_correction: bool = True
) -> Method:
    r"""Adam, with or without bias correction.

    .. math::
        \alpha_t = \mathrm{lr}_t \frac{\sqrt{1 - \prod_{i \le t} \theta_i}}{1 - \prod_{i \le t} \beta_i},
        \qquad \beta_t = \beta, \qquad \theta_t = \theta

    The correction is part of alpha_t; without it alpha_t = lr_t. Adam's own epsilon is left out: in Generic
    Adam epsilon is the start value of v.
    """
    rate = read_schedule("lr", lr)
    if _is_on(bias_correction):  # read first, so that a message is about beta and not about a product of betas
        rate = corrected(rate, read_sequence("beta", beta), read_sequence("theta", theta))
    return Method(rate, beta, theta)


@listed(ZOU)
def generic_adam(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.999, bias_correction: bool = False
) -> Method:
    r"""Adam's sequences in Generic Adam, as in the paper.

    .. math:: x_{t+1} = x_t - \alpha_t \frac{m_t}{\sqrt{v_t}}, \qquad v_0 = 10^{-8}

    Nothing is added to the root, and there is no bias correction unless it is asked for.
    """
    return adam(lr=lr, beta=beta, theta=theta, bias_correction=bias_correction)


@listed(f"{ZOU}, corollary on powers of t")
def certified_adam(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: float = 0.999,
    K: float | None = None,
    bias_correction: bool = True,
) -> Method:
    r"""Adam for 1/(1-theta) steps, then guaranteed in the long run.

    .. math::
        \alpha_t &= \mathrm{lr} \min(1, \sqrt{K/t}) \sqrt{1 - \textstyle\prod_{i \le t} \theta_i} / (1 - \beta^t) \\
        \beta_t &= \beta, \qquad \theta_t = \max(\theta, 1 - 1/t)

    For a constant lr the rate is log T / sqrt T; without bias correction C_0 = sqrt(K (1 - theta)), so 1 for
    the smallest K. K is how long the learning rate stays: at least 1/(1 - theta), which is the default.
    """
    constant = exact_number("theta", theta, above=0, below=1)
    smallest = 1 / (1 - constant)
    hold = smallest if K is None else exact_number("K", K)
    if hold < smallest:
        raise MethodError(f"K: expected a number >= 1/(1 - theta) = {float(smallest):g}, got {K!r}")
    rate = read_schedule("lr", lr) * minimum(1, sqrt(hold / t))
    if _is_on(bias_correction):
        # prod theta_i telescopes once theta_i = 1 - 1/i: theta^t up to the last t below 1/(1-theta), which is
        # m, and theta^m m/t from there on.
        last = math.ceil(smallest) - 1
        late = 1 - as_schedule(constant) ** last * last / t
        second_moments = join(correction_factor(constant), last + 1, late)
        rate = rate * sqrt(second_moments) / correction_factor(read_sequence("beta", beta))
    return Method(rate, beta, maximum(constant, 1 - 1 / t))


@listed(HINTON)
def rmsprop(*, lr: ScheduleLike = 1e-3, theta: ScheduleLike = 0.9) -> Method:
    r"""RMSProp, constant theta.

    .. math:: \alpha_t = \mathrm{lr}_t, \qquad \beta_t = 0, \qquad \theta_t = \theta
    """
    return Method(lr, 0, theta)


@listed('Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017')
def rmsprop_mukkamala_hein(*, lr: float = 1e-3, c: float = 0.9) -> Method:
    r"""RMSProp with theta_t = 1 - c/t.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = 0, \qquad \theta_t = 1 - c/t

    with 0 < c <= 1; theta_1 = 0 at c = 1, where condition 2 fails.
    """
    return Method(_falling(lr), 0, 1 - exact_number("c", c, above=0, at_most=1) / t)


@listed(DUCHI)
def adagrad(*, lr: float = 1e-2) -> Method:
    r"""AdaGrad, as an exponential average.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt{t + 1}, \qquad \beta_t = 0, \qquad \theta_t = 1 - 1/(t + 1)

    Every squared gradient weighs the same, w_t = 1. As v_t = (epsilon + sum_{i<=t} g_i^2) / (t + 1), the step is
    the textbook's lr g_t / sqrt(epsilon + sum_{i<=t} g_i^2).
    """
    return Method(exact_number("lr", lr, above=0) / sqrt(t + 1), 0, 1 - 1 / (t + 1))


@listed(
    'Chen, Liu, Sun, Hong, "On the Convergence of a Class of Adam-Type Algorithms for Non-Convex '
    'Optimization", ICLR 2019'
)
def adaema(*, lr: float = 1e-3, beta: ScheduleLike = 0.9) -> Method:
    r"""AdaGrad with EMA momentum.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad \theta_t = 1 - 1/t

    theta_1 = 0, so condition 2 fails at t = 1 as published; ``power_family(r=1, K=2)`` is the same from t = 2 on.
    """
    return Method(_falling(lr), beta, 1 - 1 / t)


@listed(REDDI)
def adamnc(*, lr: float = 1e-3, beta: float = 0.9, decay: float = 0.999) -> Method:
    r"""Adam with theta_t = 1 - 1/t and fading momentum.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta \lambda^t, \qquad \theta_t = 1 - 1/t

    with lambda the decay, 0 < lambda <= 1. theta_1 = 0, so condition 2 fails at t = 1 as published.
    """
    fading = as_schedule(exact_number("decay", decay, above=0, at_most=1)) ** t
    return Method(_falling(lr), exact_number("beta", beta, at_least=0, below=1) * fading, 1 - 1 / t)


@listed(f"{ZOU}, corollary on powers of t")
def power_family(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, s: float = 0.5, r: float = 1.0, c: float = 1.0, K: float = 2
) -> Method:
    r"""alpha_t and 1 - theta_t as powers of t.

    .. math:: \alpha_t = \mathrm{lr} / t^s, \qquad \beta_t = \beta, \qquad \theta_t = 1 - c / \max(t, K)^r

    with K >= 1. With c / K^r < 1 it is guaranteed for 0 < r <= 2s < 2.
    """
    exponent, scale = exact_number("r", r, at_least=0), exact_number("c", c, above=0)
    hold = exact_number("K", K, at_least=1)
    time = t if hold == 1 else maximum(t, hold)
    return Method(_falling(lr, s), beta, 1 - scale / time**exponent)


@listed(f"{ZOU}, Section 5")
def adam_to_adaema(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, theta: float = 0.999, r: float = 0.5, s: float = 0.5
) -> Method:
    r"""Path from Adam to AdaEMA, the paper's.

    .. math::
        \alpha_t = \mathrm{lr} / t^s, \qquad \beta_t = \beta, \qquad
        \theta_t = 1 - (r \bar\theta + 1 - \bar\theta) / t^r

    from Adam at r = 0 to AdaEMA at r = 1. The paper has theta 0.99 in the counterexample and 0.999 for the
    networks, and s = 1/2 except in its study of s.
    """
    constant = exact_number("theta", theta, above=0, below=1)
    position = exact_number("r", r, at_least=0, at_most=1)
    return Method(_falling(lr, s), beta, 1 - (position * constant + 1 - constant) / t**position)


@listed(f"{ZOU}, corollary on polynomial weights")
def polynomial_weights(*, lr: float = 1e-3, beta: ScheduleLike = 0.9, r: float = 1.0, initial: float = 1.0) -> Method:
    r"""Weighted AdaEMA with w_t = t^r.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad w_t = t^r

    With W_0 = 1 condition 2 holds for r <= 1 only: for r > 1, theta_2 < theta_1.
    """
    return nosadam(lr=lr, beta=beta, weights=t ** exact_number("r", r, at_least=0), initial=initial)


@listed(HUANG)
def nosadam(
    *, lr: float = 1e-3, beta: ScheduleLike = 0.9, weights: ScheduleLike = "t^-0.1", initial: float = 1.0
) -> Method:
    r"""Nostalgic Adam, any weights.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad \theta_t = B_{t-1} / B_t

    with B_t = B_{t-1} + b_t, weights b_t > 0 and B_0 the initial one.
    """
    return Method.from_weights(_falling(lr), beta, weights, initial)


@listed(HUANG)
def nosadam_hh(*, lr: float = 1e-3, beta: ScheduleLike = 0.9, r: float = 0.1, initial: float = 1.0) -> Method:
    r"""Nostalgic Adam, w_t = t^-r.

    .. math:: \alpha_t = \mathrm{lr} / \sqrt t, \qquad \beta_t = \beta, \qquad w_t = t^{-r}

    Guaranteed for r < 1; from r = 1 on, chi_t grows without bound and condition 3 fails.
    """
    return nosadam(lr=lr, beta=beta, weights=t ** -exact_number("r", r, at_least=0), initial=initial)


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
    *, lr: ScheduleLike = 2e-3, beta: float = 0.9, theta: float = 0.999, eps: float = 1e-8, momentum_decay: float = 4e-3
) -> Algorithm:
    r"""NAdam as torch ships it.

    .. math::
        x_{t+1} &= x_t - \mathrm{lr} \frac{a_t m_t + b_t g_t}{\sqrt{\hat v_t} + \mathrm{eps}}, \qquad
        \mu_t = \beta (1 - 0.5 \cdot 0.96^{t\psi}) \\
        a_t &= \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i}, \qquad
        b_t = \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i}

    with psi the momentum decay: how fast the momentum grows from beta / 2 to beta.
    """
    momentum = exact_number("beta", beta, at_least=0, below=1)
    speed = exact_number("momentum_decay", momentum_decay, at_least=0)

    def mu(time: Schedule) -> Schedule:
        return momentum * (1 - Fraction(1, 2) * as_schedule(Fraction(24, 25)) ** (speed * time))

    so_far = correction_factor(mu(t))
    ahead = mu(t + 1)
    return Algorithm(
        Method(read_schedule("lr", lr) * sqrt(correction_factor(theta)), beta, theta),
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
    return Algorithm(Method(lr, 0, theta), initial_v=0, eps=eps, heavy_ball=_heavy_ball(momentum), label="RMSprop")


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


@listed('Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any beta_2 with the Optimal Rate", NeurIPS 2024')
def adopt(
    *, lr: ScheduleLike = 1e-3, beta: ScheduleLike = 0.9, theta: ScheduleLike = 0.9999, eps: float = 1e-6
) -> Algorithm:
    r"""ADOPT, without its clipping.

    .. math::
        m_t &= \beta m_{t-1} + (1 - \beta) g_t / \max(\sqrt{v_{t-1}}, \mathrm{eps}) \\
        x_{t+1} &= x_t - \mathrm{lr}_t m_t

    The gradient is divided by the root of the v before it, which is eps at least, and averaged then.
    """
    return Algorithm(Method(lr, beta, theta), initial_v=0, eps=eps, delayed=True, label="ADOPT")


@listed('Shazeer, Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018')
def adafactor(*, beta: ScheduleLike = 0, r: float = 0.8, K: float = 10_000, eps: float = 1e-15) -> Algorithm:
    r"""Adafactor's sequences: not factored, clipped or scaled.

    .. math::
        \alpha_t &= 1 / \sqrt{\max(t, K)}, \qquad \beta_t = \beta \\
        \theta_t &= 1 - t^{-r}, \qquad D_t = \sqrt{v_t + \mathrm{eps}^2}

    beta = 0 is T5's, 0.9 PaLM's. The recipes t5 and palm have what they ran besides: steps scaled by the parameters,
    factored moments, clipping, decay. The square of eps is Adafactor's epsilon_1, which is added to
    every squared gradient.
    """
    exponent, hold = exact_number("r", r, above=0), exact_number("K", K, at_least=1)
    method = Method(1 / sqrt(maximum(t, hold)), beta, 1 - t**-exponent)
    return Algorithm(method, initial_v=0, eps=eps, eps_under_root=True, label="Adafactor, unfactored")


def _heavy_ball(momentum: float) -> HeavyBall | None:
    factor = exact_number("momentum", momentum, at_least=0, below=1)
    return HeavyBall(factor) if factor else None


def _falling(lr: float, s: float = 0.5) -> Schedule:
    """lr / t^s, written with a root where it is one."""
    rate, exponent = exact_number("lr", lr, above=0), exact_number("s", s)
    return rate / sqrt(t) if exponent == Fraction(1, 2) else rate / t**exponent


# Names that people try, and why no theorem here can be asked about them.
REFUSED = {
    "radam": "it starts as momentum alone and its later steps carry a factor that no theorem covers",
    "lamb": "it rescales each layer's step by the norm of the weights, which no theorem covers",
    "lion": "its step is the sign of an average, which no theorem here covers",
}


def entries() -> tuple[MethodInfo, ...]:
    """Every method of the catalogue, in the order in which it is listed."""
    return tuple(_BY_NAME.values())


def names() -> tuple[str, ...]:
    """Return the names of the catalogue's methods, in its order."""
    return tuple(_BY_NAME)


def info(name: str) -> MethodInfo:
    """Return the entry of a method; hyphens count as underscores, capitals as small letters.

    Raises:
        MethodError: there is none; the message offers the closest name.
    """
    wanted = spelled(name)
    if wanted in REFUSED:
        raise MethodError(f"{wanted} is not in the catalogue: {REFUSED[wanted]}")
    if wanted not in _BY_NAME:
        raise unknown("no method is called", name, _BY_NAME)
    return _BY_NAME[wanted]


def build(name: str, **arguments: object) -> Method | Algorithm:
    """Return a method of the catalogue by its name, with arguments that are checked against its signature.

    Raises:
        MethodError: no such method, or no such argument; the message offers the closest name.
    """
    entry = info(name)
    for argument in arguments:
        if argument not in entry.parameters:
            raise unknown(f"{entry.name} has no argument", argument, entry.parameters)
    return entry.build(**arguments)


def spelled(name: str) -> str:
    """Return a name as it is listed: hyphens count as underscores, capitals as small letters."""
    return name.strip().lower().replace("-", "_")


def unknown(missing: str, name: str, known: Iterable[str]) -> MethodError:
    """Return an error that offers the closest of the known names, or all of them."""
    return MethodError(f"{missing} {name!r}; {meant(spelled(name), known)}")
