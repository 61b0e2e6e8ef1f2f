"""What a live optimizer did at the step it has just made: alpha_t, beta_t, theta_t and v_t as used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch.generic_adam import GenericAdam

Group = Mapping[str, Any]
State = Mapping[str, Any]


@dataclass(frozen=True)
class Live:
    """How to look into one class of optimizers.

    Attributes:
        coefficients: (group, t) -> alpha_t, beta_t, theta_t of the step t that has been made.
        moment_key: group -> the name in the state of the tensor whose root divides.
        moment_scale: t -> what that tensor has to be multiplied by to be v_t.
    """

    coefficients: Callable[[Group, int], tuple[float, float, float]]
    moment_key: Callable[[Group], str]
    moment_scale: Callable[[int], float] = lambda _t: 1.0


def _adam(group: Group, t: int) -> tuple[float, float, float]:
    beta, theta = (float(value) for value in group["betas"])
    # torch's own bias correction: the power of the present beta, also where a scheduler moves it
    return float(group["lr"]) * math.sqrt(1 - theta**t) / (1 - beta**t), beta, theta


def _rmsprop(group: Group, _t: int) -> tuple[float, float, float]:
    return float(group["lr"]), 0.0, float(group["alpha"])


def _adagrad(group: Group, t: int) -> tuple[float, float, float]:
    rate = float(group["lr"]) / (1 + (t - 1) * float(group["lr_decay"]))
    return rate / math.sqrt(t + 1), 0.0, 1 - 1 / (t + 1)


def _generic_adam(group: Group, _t: int) -> tuple[float, float, float]:
    alpha = group["lr"]
    if group["bias_correction"]:
        of_beta, of_theta = group["bias_corrections"]
        alpha *= math.sqrt(of_theta) / of_beta if of_beta else 0.0
    return alpha, group["beta"], group["theta"]


def _of_adam(group: Group) -> str:
    return "max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"


_LIVE: dict[type[torch.optim.Optimizer], Live] = {
    GenericAdam: Live(_generic_adam, _of_adam),
    torch.optim.Adam: Live(_adam, _of_adam),
    torch.optim.RMSprop: Live(_rmsprop, lambda _group: "square_avg"),
    torch.optim.Adagrad: Live(_adagrad, lambda _group: "sum", lambda t: 1 / (t + 1)),
}


def live(optimizer: torch.optim.Optimizer) -> Live:
    """How to look into this optimizer; subclasses are looked into like their parents.

    Raises:
        OptimizerError: it has no alpha_t, theta_t and v_t that could be read.
    """
    for kind, look in _LIVE.items():
        if isinstance(optimizer, kind):
            return look
    names = ", ".join(kind.__name__ for kind in _LIVE)
    raise OptimizerError(
        f"{type(optimizer).__name__} cannot be watched; expected one of {names}, or a subclass"
    )


def steps_done(optimizer: torch.optim.Optimizer) -> int:
    """How many steps the optimizer has made: 0 before the first."""
    counts = [int(group["step"]) for group in optimizer.param_groups if "step" in group]
    counts += [int(state["step"]) for state in optimizer.state.values() if "step" in state]
    return max(counts, default=0)


def second_moments(optimizer: torch.optim.Optimizer, group: Group, look: Live) -> dict[Tensor, Tensor]:
    """Each parameter's tensor whose root divides, where it has one; complex ones as pairs of real numbers."""
    key = look.moment_key(group)
    found = {p: optimizer.state[p][key] for p in group["params"] if key in optimizer.state.get(p, {})}
    return {p: torch.view_as_real(v) if v.is_complex() else v for p, v in found.items()}
