"""The catalogue as data: one frozen entry a method, which drives listings, documentation and tests."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from generic_adam.methods import adagrad_family, adam_family, language_models
from generic_adam.methods.errors import MethodError
from generic_adam.methods.method import Method


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
    build: Callable[..., Method]
    summary: str
    citation: str

    @property
    def parameters(self) -> dict[str, object]:
        """The keyword arguments of `build` with their defaults."""
        return {name: one.default for name, one in inspect.signature(self.build).parameters.items()}


_ZOU = 'Zou, Shen, Jie, Zhang, Liu, "A Sufficient Condition for Convergences of Adam and RMSProp", CVPR 2019'
_HUANG = (
    'Huang, Wang, Dong, "Nostalgic Adam: Weighting More of the Past Gradients When Designing the Adaptive '
    'Learning Rate", IJCAI 2019'
)

ENTRIES: tuple[MethodInfo, ...] = (
    MethodInfo(
        "adam",
        adam_family.adam,
        "Adam, with or without bias correction",
        'Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015',
    ),
    MethodInfo(
        "certified_adam",
        adam_family.certified_adam,
        "Adam for 1/(1-theta) steps, then certified for ever",
        f"{_ZOU}, corollary on powers of t",
    ),
    MethodInfo(
        "rmsprop",
        adagrad_family.rmsprop,
        "RMSProp, constant theta",
        'Tieleman, Hinton, "Lecture 6.5: RMSProp", Neural Networks for Machine Learning, 2012',
    ),
    MethodInfo(
        "rmsprop_mukkamala_hein",
        adagrad_family.rmsprop_mukkamala_hein,
        "RMSProp with theta_t = 1 - c/t",
        'Mukkamala, Hein, "Variants of RMSProp and Adagrad with Logarithmic Regret Bounds", ICML 2017',
    ),
    MethodInfo(
        "adagrad",
        adagrad_family.adagrad,
        "AdaGrad, as an exponential average",
        'Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic '
        'Optimization", JMLR 12, 2011',
    ),
    MethodInfo(
        "adaema",
        adam_family.adaema,
        "AdaGrad with EMA momentum",
        'Chen, Liu, Sun, Hong, "On the Convergence of a Class of Adam-Type Algorithms for Non-Convex '
        'Optimization", ICLR 2019',
    ),
    MethodInfo(
        "adamnc",
        adam_family.adamnc,
        "Adam with theta_t = 1 - 1/t and fading momentum",
        'Reddi, Kale, Kumar, "On the Convergence of Adam and Beyond", ICLR 2018',
    ),
    MethodInfo(
        "power_family",
        adam_family.power_family,
        "alpha_t and 1 - theta_t as powers of t",
        f"{_ZOU}, corollary on powers of t",
    ),
    MethodInfo(
        "adam_to_adaema",
        adam_family.adam_to_adaema,
        "the paper's path from Adam to AdaEMA",
        f"{_ZOU}, Section 5",
    ),
    MethodInfo(
        "polynomial_weights",
        adagrad_family.polynomial_weights,
        "Weighted AdaEMA with w_t = t^r",
        f"{_ZOU}, corollary on polynomial weights",
    ),
    MethodInfo("nosadam", adagrad_family.nosadam, "Nostalgic Adam, any weights", _HUANG),
    MethodInfo("nosadam_hh", adagrad_family.nosadam_hh, "Nostalgic Adam, w_t = t^-r", _HUANG),
    MethodInfo(
        "palm",
        language_models.palm,
        "PaLM's training set-up",
        'Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", JMLR 24, 2023',
    ),
    MethodInfo(
        "t5",
        language_models.t5,
        "T5's training set-up, Adafactor unfactored",
        'Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", '
        "JMLR 21, 2020",
    ),
)
"""Every method of the catalogue, in the order in which it is listed."""

_BY_NAME = {entry.name: entry for entry in ENTRIES}


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
    if wanted not in _BY_NAME:
        raise MethodError(f"no method is called {name!r}{_suggestion(wanted, names())}")
    return _BY_NAME[wanted]


def build(name: str, **arguments: object) -> Method:
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
