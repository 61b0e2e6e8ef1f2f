"""Every optimizer of generic_adam.torch: how to build it, and what it answers to bad arguments.

A new optimizer is tested by being listed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from generic_adam.torch import AdaShift, AdaUSM, AMSGrad, GenericAdam, Padam, WeightedAdaEMA
from generic_adam.torch.scheduled import ScheduledOptimizer


@dataclass(frozen=True)
class BadInput:
    """Keyword arguments that are refused, and the whole message."""

    arguments: Mapping[str, Any]
    message: str


@dataclass(frozen=True)
class OptimizerInfo:
    """One optimizer.

    Attributes:
        constructor: the class.
        valid: keyword arguments that are taken, covering the options.
        bad: keyword arguments that are refused.
        shards: whether it runs on sharded parameters (DTensor).
    """

    constructor: type[ScheduledOptimizer]
    valid: tuple[Mapping[str, Any], ...]
    bad: tuple[BadInput, ...]
    shards: bool = True

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.constructor.__name__


NUMBERS = {"step", "count", "beta_correction", "theta_correction", "correction", "weight_sum"}
"""What a state holds beside moments: numbers, each a tensor without dimensions, as torch's step count."""


def moments_of(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The moments of a parameter's state by name; what else it has must be numbers."""
    for name in state.keys() & NUMBERS:
        assert state[name].shape == ()
        assert state[name].dtype is (torch.float32 if name == "step" else torch.float64)
        assert state[name].device.type == "cpu"
    return {name: value for name, value in state.items() if name not in NUMBERS}


def _arguments(**arguments: Any) -> Mapping[str, Any]:
    return MappingProxyType(arguments)


def _bad(message: str, **arguments: Any) -> BadInput:
    return BadInput(_arguments(**arguments), message)


_PAPERS = _arguments(initial_v=1e-8, eps=1e-16, bias_correction=False)
_BAD_FOR_ALL = (
    _bad("lr is -1.0; expected a finite lr >= 0", lr=-1.0),
    _bad("lr is nan; expected a finite lr >= 0", lr=float("nan")),
    _bad("lr: expected a number, a text, a schedule or a callable of t, got NoneType", lr=None),
    _bad("lr at t = 1 is -1.0; expected a finite lr >= 0", lr="1 - 2/t"),
)
_BAD_NUMBERS = (
    _bad("eps is -1e-08; expected a finite number >= 0", eps=-1e-8),
    _bad("weight_decay is '0.1'; expected a finite number >= 0", weight_decay="0.1"),
)
_BAD_SEQUENCES = (
    _bad("eps is -1e-08; expected a finite eps >= 0", eps=-1e-8),
    _bad("weight_decay at t = 1 is -1.0; expected a finite weight_decay >= 0", weight_decay="1 - 2/t"),
)
_BAD_BETA = _bad("beta is 1.0; expected 0 <= beta < 1", beta=1.0)
_BAD_THETA = _bad("theta at t = 1 is 2.0; expected 0 <= theta < 1", theta="1 + 1/t")
_BAD_INITIAL_V = _bad("initial_v is inf; expected a finite number >= 0", initial_v=float("inf"))
_CONTRADICTION = _bad("foreach=True and fused=True contradict each other: choose one", foreach=True, fused=True)
_BETAS_TWICE = _bad(
    "betas and beta or theta are given; expected betas=(beta, theta), or the two by name",
    betas=(0.9, 0.99),
    theta=0.9,
)

_GENERIC_ADAM = OptimizerInfo(
    GenericAdam,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)", **_PAPERS),
        _arguments(lr="0.1/sqrt(t)", eps="1e-3/t", theta=0.9, weight_decay="0.1/t"),
        _arguments(lr=0.01, betas=(0.5, "1 - 0.9/t^0.5"), weight_decay=0.1),
        _arguments(lr=lambda t: 0.1 / t, beta="0.9 * 0.99^t", theta="1 - 1/t"),
        _arguments(lr=0.01, bias_correction=False, initial_v=1e-8, weight_decay=0.01),
        _arguments(lr="0.1/sqrt(t)", theta="1 - 1/(t + 1)", eps=1e-16),
        _arguments(lr=0.01, amsgrad=True, maximize=True),
        _arguments(lr=0.01, beta=0.0, theta="1 - 1/t", foreach=True),
        _arguments(lr=0.01, beta=0.0, theta="1 - 1/t", foreach=False, weight_decay=0.1, **_PAPERS),
        _arguments(lr=0.01, fused=True, eps=0.0, initial_v=1e-8),
        _arguments(lr=torch.tensor(0.01), betas=(torch.tensor(0.5), torch.tensor(0.9))),
        _arguments(lr=0.01, weight_decay=0.1, decoupled_weight_decay=False, maximize=True),
        _arguments(lr="0.1/sqrt(t)", weight_decay=0.1, decoupled_weight_decay=False, foreach=True),
        _arguments(lr="0.1/sqrt(t)", beta=0.8, momentum_weight=0.8, gradient_weight="0.2 + 0.1/t", weight_decay=0.1),
        _arguments(lr=0.01, heavy_ball=0.7, bias_correction=False, weight_decay=0.1, decoupled_weight_decay=False),
        _arguments(lr="0.1/sqrt(t)", theta=0.9, heavy_ball=0.5, rate_inside=True, amsgrad=True, foreach=False),
        _arguments(lr=0.01, beta="0.9 - 0.5/t", theta="1 - 1/(t + 1)", bias_correction="torch"),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_SEQUENCES,
        _BAD_BETA,
        _BAD_THETA,
        _BAD_INITIAL_V,
        _CONTRADICTION,
        _BETAS_TWICE,
        _bad("betas is 0.9; expected a pair (beta, theta)", betas=0.9),
        _bad("heavy_ball is 1.0; expected a number in [0, 1)", heavy_ball=1.0),
        _bad("bias_correction is 'yes'; expected True, False or \"torch\"", bias_correction="yes"),
        _bad("lr is a tensor of shape (2,); expected one real number", lr=torch.ones(2)),
        _bad("capturable is True; expected False, as each step's numbers come from Python", capturable=True),
        _bad("differentiable is True; expected False, as each step's numbers come from Python", differentiable=True),
    ),
)
_WEIGHTED_ADAEMA = OptimizerInfo(
    WeightedAdaEMA,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", beta=0.9, weights="t^0.5"),
        _arguments(lr=0.01, weights=lambda t: 1.0 / t, initial_weight=2.0, weight_decay=0.1),
        _arguments(lr=0.01, betas=(0.5, None), weights="t"),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_SEQUENCES,
        _BAD_BETA,
        _BAD_INITIAL_V,
        _CONTRADICTION,
        _bad("betas is (0.9, 0.99); expected (beta, None): the weights stand for theta", betas=(0.9, 0.99)),
        _bad("initial_weight is 0.0; expected a number > 0", initial_weight=0.0),
    ),
)
_AMSGRAD = OptimizerInfo(
    AMSGrad,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", beta=0.9, theta=0.999),
        _arguments(lr=0.01, betas=(0.5, 0.9), weight_decay=0.1, maximize=True),
        _arguments(lr=0.01, foreach=True),
        _arguments(lr=0.01, foreach=False),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_SEQUENCES,
        _BAD_BETA,
        _BAD_THETA,
        _BAD_INITIAL_V,
        _CONTRADICTION,
        _BETAS_TWICE,
    ),
)
_PADAM = OptimizerInfo(
    Padam,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", beta=0.9, theta=0.999, partial=0.25),
        _arguments(lr=0.01, betas=(0.5, "1 - 1/t"), partial=0.5, weight_decay=0.1, maximize=True),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_SEQUENCES,
        _BAD_BETA,
        _BAD_THETA,
        _BAD_INITIAL_V,
        _bad("partial is 0.6; expected 0 < partial <= 0.5", partial=0.6),
        _bad("amsgrad is False; expected True, as it is a part of Padam", amsgrad=False),
        _bad("partial is 0; expected 0 < partial <= 0.5", partial=0),
    ),
)
_ADASHIFT = OptimizerInfo(
    AdaShift,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", beta=0.5, theta=0.9, keep=3, reduction="none"),
        _arguments(lr=0.01, keep=1, theta="1 - 1/t", weight_decay=0.1, maximize=True, foreach=True),
        _arguments(lr=0.01, keep=2, reduction="none", weight_decay=0.1, foreach=True),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_NUMBERS,
        _BAD_BETA,
        _BAD_THETA,
        _bad("keep is 0; expected a whole number >= 1", keep=0),
        _bad("keep is 2.5; expected a whole number >= 1", keep=2.5),
        _bad("reduction is 'mean'; expected 'max' or 'none'", reduction="mean"),
    ),
    shards=False,
)
_ADAUSM = OptimizerInfo(
    AdaUSM,
    valid=(
        _arguments(),
        _arguments(lr="0.1/sqrt(t)", weights=1.0, momentum=0.5),
        _arguments(lr=0.01, weights="t^0.5", momentum=0.9, interpolation=0.9, weight_decay=0.1),
        _arguments(lr=0.01, betas=(0.5, None), interpolation=1.0, maximize=True),
    ),
    bad=(
        *_BAD_FOR_ALL,
        *_BAD_NUMBERS,
        _bad("weights is 0.0; expected a finite weights > 0", weights=0.0),
        _bad("momentum is 1.0; expected 0 <= momentum < 1", momentum=1.0),
        _bad("betas is (0.9, 0.99); expected (momentum, None) and no momentum beside it", betas=(0.9, 0.99)),
        _bad(
            "interpolation is 1.5; expected 0 <= interpolation <= momentum / (1 - momentum) = 1",
            momentum=0.5,
            interpolation=1.5,
        ),
    ),
)

OPTIMIZERS: tuple[OptimizerInfo, ...] = (
    _GENERIC_ADAM,
    _WEIGHTED_ADAEMA,
    _AMSGRAD,
    _PADAM,
    _ADASHIFT,
    _ADAUSM,
)
