"""The catalogue: published methods, one function each with its formula, and the list that they form.

A function takes keyword arguments with defaults and returns a `Method` (three sequences) or, where the step
itself differs from the paper's, an `Algorithm`. `@listed` puts it into the list that names, documentation
and tests read.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeVar

from generic_adam.errors import MethodError
from generic_adam.methods.algorithm import Algorithm
from generic_adam.methods.method import (
    Method,
    ScheduleLike,
    check_beta,
    check_theta,
    exact_number,
    read_schedule,
)
from generic_adam.schedules import Schedule, as_schedule, join, maximum, minimum, sqrt, t
from generic_adam.schedules import bias_correction as correction_factor

Builder = Callable[..., Method | Algorithm]
_Function = TypeVar("_Function", bound=Builder)


@dataclass(frozen=True)
class MethodInfo:
    """One method of the catalogue.

    Attributes:
        name: what `build` and the command line know it by.
        build: the function that makes it; keyword arguments only, each with a default.
        summary: what it is, in a few words.
        citation: where it was published.
    """

    name: str
    build: Builder
    summary: str
    citation: str

    @property
    def parameters(self) -> dict[str, object]:
        """The keyword arguments of `build` with their defaults."""
        return {name: one.default for name, one in inspect.signature(self.build).parameters.items()}


_BY_NAME: dict[str, MethodInfo] = {}


def listed(summary: str, citation: str) -> Callable[[_Function], _Function]:
    """Put a function into the catalogue, in the order of the file."""

    def put(build: _Function) -> _Function:
        _BY_NAME[build.__name__] = MethodInfo(build.__name__, build, summary, citation)
        return build

    return put


_ZOU = 'Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019'
_HUANG = (
    'Huang, Wang, Dong, "Nostalgic Adam: Weighting More of the Past Gradients When Designing the Adaptive '
    'Learning Rate", IJCAI 2019'
)


@listed(
    "Adam, with or without bias correction",
    'Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015',
)
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


@listed(
    "Adam for 1/(1-theta) steps, then certified for ever",
    f"{_ZOU}, corollary on powers of t",
)
def certified_adam(
    *,
    lr: ScheduleLike = 1e-3,
    beta: ScheduleLike = 0.9,
    theta: float = 0.999,
    K: float | None = None,
    bias_correction: bool = True,
) -> Method:
    r"""The repair: Adam itself for its first 1/(1 - theta) steps, and for a constant lr certified for ever.

    .. math::
        \alpha_t = \mathrm{lr} \min(1, \sqrt{K/t}) \frac{\sqrt{1 - \prod_{i \le t} \theta_i}}{1 - \beta^t},
        \qquad \beta_t = \beta, \qquad \theta_t = \max(\theta, 1 - 1/t)

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
    if bias_correction:
        # prod theta_i telescopes once theta_i = 1 - 1/i: theta^t up to the last t below 1/(1-theta), which is
        # m, and theta^m m/t from there on.
        last = math.ceil(smallest) - 1
        late = 1 - as_schedule(constant) ** last * last / t
        momentum = read_schedule("beta", beta)
        check_beta(momentum)
        early = correction_factor(constant)
        rate = rate * sqrt(join(early, last + 1, late)) / correction_factor(momentum)
    return Method(rate, beta, growing)


@listed(
    "RMSProp, constant theta",
    'Tieleman, Hinton, "Lecture 6.5: RMSProp", Neural Networks for Machine Learning, 2012',
)
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


@listed(
    "RMSProp with theta_t = 1 - c/t",
    'Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017',
)
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


@listed(
    "AdaGrad, as an exponential average",
    'Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic '
    'Optimization", JMLR 12, 2011',
)
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


@listed(
    "AdaGrad with EMA momentum",
    'Chen, Liu, Sun, Hong, "On the Convergence of a Class of Adam-Type Algorithms for Non-Convex '
    'Optimization", ICLR 2019',
)
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


@listed(
    "Adam with theta_t = 1 - 1/t and fading momentum",
    'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018',
)
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


@listed(
    "alpha_t and 1 - theta_t as powers of t",
    f"{_ZOU}, corollary on powers of t",
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


@listed(
    "the paper's path from Adam to AdaEMA",
    f"{_ZOU}, Section 5",
)
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


@listed(
    "Weighted AdaEMA with w_t = t^r",
    f"{_ZOU}, corollary on polynomial weights",
)
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


@listed(
    "Nostalgic Adam, any weights",
    _HUANG,
)
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


@listed(
    "Nostalgic Adam, w_t = t^-r",
    _HUANG,
)
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


@listed(
    "PaLM's training set-up",
    'Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", JMLR 24, 2023',
)
def palm(*, lr: float = 1e-2, beta: ScheduleLike = 0.9, hold: int = 10_000, r: float = 0.8) -> Method:
    r"""PaLM: a constant learning rate, then 1/sqrt(t).

    .. math::
        \alpha_t = \mathrm{lr} \text{ if } t < \mathrm{hold} \text{ else } 1 / \sqrt t, \qquad
        \beta_t = \beta, \qquad \theta_t = 1 - t^{-r}

    theta_1 = 0, so condition 2 fails at t = 1 as published.

    Args:
        lr: the learning rate while it is held.
        beta: the momentum parameter.
        hold: where the decay begins.
        r: the exponent of 1 - theta_t.

    Returns:
        The method.
    """
    return Method(
        join(exact_number("lr", lr, above=0), _whole("hold", hold), 1 / sqrt(t)), beta, _adafactor_theta(r)
    )


@listed(
    "T5's training set-up, Adafactor unfactored",
    'Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", '
    "JMLR 21, 2020",
)
def t5(*, hold: int = 10_000, r: float = 0.8) -> Method:
    r"""T5: Adafactor's inverse square root, flat at first, without momentum.

    .. math:: \alpha_t = 1 / \sqrt{\max(t, \mathrm{hold})}, \qquad \beta_t = 0, \qquad \theta_t = 1 - t^{-r}

    theta_1 = 0, so condition 2 fails at t = 1 as published.

    Args:
        hold: where the decay begins.
        r: the exponent of 1 - theta_t.

    Returns:
        The method.
    """
    return Method(1 / sqrt(maximum(t, _whole("hold", hold))), 0, _adafactor_theta(r))


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


def _adafactor_theta(r: float) -> Schedule:
    return 1 - t ** -exact_number("r", r, above=0)


def _whole(name: str, value: int) -> int:
    number = exact_number(name, value, at_least=1)
    if number.denominator != 1:
        raise MethodError(f"{name}: expected a whole number >= 1, got {value!r}")
    return int(number)


# Names that people try, and why no theorem here can be asked about them.
_REFUSED = {
    "radam": "it starts as momentum alone and its later steps carry a factor that no theorem covers",
    "lamb": "it rescales each layer's step by the norm of the weights, which no theorem covers",
    "lion": "its step is the sign of an average; see signSGD's theorem (S) for the nearest that is covered",
}


def entries() -> tuple[MethodInfo, ...]:
    """Every method of the catalogue, in the order in which it is listed."""
    return tuple(_BY_NAME.values())


def names() -> tuple[str, ...]:
    """The names of the catalogue's methods, in its order."""
    return tuple(_BY_NAME)


def info(name: str) -> MethodInfo:
    """The entry of a method.

    Args:
        name: its name; hyphens count as underscores, capitals as small letters.

    Returns:
        The entry.

    Raises:
        MethodError: there is none; the message offers the closest name.
    """
    wanted = name.strip().lower().replace("-", "_")
    if wanted in _REFUSED:
        raise MethodError(f"{wanted} is not in the catalogue: {_REFUSED[wanted]}")
    if wanted not in _BY_NAME:
        raise MethodError(f"no method is called {name!r}{_suggestion(wanted, names())}")
    return _BY_NAME[wanted]


def build(name: str, **arguments: object) -> Method | Algorithm:
    """A method of the catalogue by its name.

    Args:
        name: as in :func:`names`.
        **arguments: those of the catalogue's function, all checked against its signature.

    Returns:
        The method.

    Raises:
        MethodError: no such method, or no such argument; the message offers the closest name.
    """
    entry = info(name)
    for argument in arguments:
        if argument not in entry.parameters:
            raise MethodError(
                f"{entry.name} has no argument {argument!r}{_suggestion(argument, tuple(entry.parameters))}"
            )
    return entry.build(**arguments)


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; expected one of {', '.join(known)}"
