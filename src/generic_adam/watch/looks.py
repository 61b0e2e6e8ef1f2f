"""How to look into each class of optimizers: its moments, its coefficients, and the step that it should make."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import currentframe
from typing import Any, Generic, TypeVar

from generic_adam.errors import OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm

with from_extra("torch"):
    import torch
    from torch import Tensor

    from generic_adam.torch.contrib import AdaShift
    from generic_adam.torch.generic_adam import GenericAdam

Group = Mapping[str, Any]
State = Mapping[str, Any]
Masses = tuple[float, float]
Number = TypeVar("Number", bound="float | Tensor")


@dataclass(frozen=True)
class Coefficients(Generic[Number]):
    """The numbers of one step of one group.

    Attributes:
        alpha: alpha_t, with the bias correction in it, as it multiplies m_t / (sqrt(v_t) + e_t).
        beta: beta_t.
        theta: theta_t.
        added: e_t, what is added to sqrt(v_t).
        decay: the share of each weight that a decoupled decay takes off.
        pull: what multiplies the weight in a decay that is part of the gradient.
    """

    alpha: Number
    beta: Number
    theta: Number
    added: Number
    decay: Number
    pull: Number | float = 0.0


@dataclass(frozen=True)
class Look:
    """How to look into one class of optimizers.

    Attributes:
        second: (state of a parameter, group) -> v_t, whose root a step divides by; None before there is one.
        first: (state of a parameter, group) -> m_t; None where the step is along the gradient.
        coefficients: (optimizer, group, t, masses) -> the numbers of the step t that has been made; the masses are
            1 - prod beta and 1 - prod theta over the steps before it.
        replays: whether x_{t+1} = (1 - decay) x_t - alpha_t m_t / (sqrt(v_t) + e_t) is all of the step.
        averages: whether m_t and v_t are averages of g and g^2 with the weights beta and theta.
        known: whether the class is one of torch's or ours.
    """

    second: Callable[[State, Group], Any]
    first: Callable[[State, Group], Any]
    coefficients: Callable[[Any, Group, int, Masses], Coefficients[float]]
    replays: Callable[[Any, Group], bool] = lambda _optimizer, _group: False
    averages: bool = True
    known: bool = True


def _first(state: State, _group: Group) -> Any:
    return state.get("exp_avg")


def _second(state: State, group: Group) -> Any:
    moment = state.get("max_exp_avg_sq" if group.get("amsgrad") else "exp_avg_sq")
    return moment ** (2 * group["partial"]) if moment is not None and "partial" in group else moment


def _adam(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    beta, theta = (float(value) for value in group["betas"][:2])
    # torch's own bias correction: the power of the present beta, also where a scheduler moves it
    root = math.sqrt(1 - theta**t) if theta < 1 else 1.0
    lr, decay = float(group["lr"]), float(group.get("weight_decay") or 0.0)
    alpha = lr * root / (1 - beta**t)
    return Coefficients(alpha, beta, theta, float(group.get("eps", 1e-8)) * root, lr * decay)


def _torch_adam(optimizer: Any, group: Group, t: int, masses: Masses) -> Coefficients[float]:
    found = _adam(optimizer, group, t, masses)
    decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW))
    return found if decoupled else replace(found, decay=0.0, pull=float(group.get("weight_decay") or 0.0))


def _generic(optimizer: Any, group: Group, _t: int, masses: Masses) -> Coefficients[float]:
    # () where no step was made yet
    alpha, beta, theta = (*optimizer.used(group), 0.0, 0.0, 0.0)[:3]
    lr, added = alpha, float(group["eps"])
    if group.get("bias_correction"):
        of_beta, root = 1 - beta * (1 - masses[0]), math.sqrt(1 - theta * (1 - masses[1]))
        lr, added = alpha * of_beta / root if root else 0.0, added * root
    return Coefficients(alpha, beta, theta, added, lr * float(group["weight_decay"]))


def _rmsprop(_optimizer: Any, group: Group, _t: int, _masses: Masses) -> Coefficients[float]:
    lr, theta, eps, pull = (float(group[name]) for name in ("lr", "alpha", "eps", "weight_decay"))
    return Coefficients(lr, 0.0, theta, eps, 0.0, pull)


def _rmsprop_second(state: State, group: Group) -> Any:
    if "square_avg" not in state:
        return None
    return state["square_avg"] - state["grad_avg"] ** 2 if group["centered"] else state["square_avg"]


def _adagrad(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    # sum/(t + 1) is an average with theta_t = 1 - 1/(t + 1)
    rate = float(group["lr"]) / (1 + (t - 1) * float(group["lr_decay"]))
    root = math.sqrt(t + 1)
    pull = float(group["weight_decay"])
    return Coefficients(rate / root, 0.0, 1 - 1 / (t + 1), float(group["eps"]) / root, 0.0, pull)


def _adamax(_optimizer: Any, group: Group, t: int, _masses: Masses) -> Coefficients[float]:
    beta, theta = map(float, group["betas"])
    return Coefficients(float(group["lr"]) / (1 - beta**t), beta, theta, 0.0, 0.0)


def _none(_state: State, _group: Group) -> None:
    return None


def _replays(_optimizer: Any, group: Group) -> bool:
    """Return True if all that a step does is known: no option adds to it."""
    return not (group.get("momentum") or group.get("centered"))


def _is_adam(optimizer: Any, group: Group) -> bool:
    """Return True if a class that is known by its state alone says that it is Adam, or AdamW."""
    name = type(optimizer).__name__.casefold()
    plain = all(group.get(one, True) for one in ("bias_correction", "correct_bias", "adam_w_mode"))
    return plain and (name == "adamw" or (name in {"adam", "fusedadam", "cpuadam"} and not group.get("weight_decay")))


# Subclasses are looked into like their parents; the first that fits.
_LOOKS: dict[type[torch.optim.Optimizer], Look] = {
    GenericAdam: Look(_second, _first, _generic, _replays),
    # v_t / (1 - theta^(t - n)); 0 while it only collects gradients
    AdaShift: Look(
        lambda state, _group: state["second_moment"] / (state["correction"] or 1.0), _none, _generic, averages=False
    ),
    torch.optim.AdamW: Look(_second, _first, _torch_adam, _replays),
    torch.optim.Adam: Look(_second, _first, _torch_adam, _replays),
    torch.optim.NAdam: Look(_second, _first, _torch_adam),
    torch.optim.RMSprop: Look(_rmsprop_second, _none, _rmsprop, _replays),
    torch.optim.Adagrad: Look(
        lambda state, _group: state["sum"] / (state["step"] + 1) if "sum" in state else None,
        _none,
        _adagrad,
        _replays,
    ),
    torch.optim.Adamax: Look(
        lambda state, _group: state["exp_inf"] ** 2 if "exp_inf" in state else None, _first, _adamax, averages=False
    ),
}
_BY_STATE = Look(_second, _first, _adam, _is_adam, known=False)


def look_into(optimizer: torch.optim.Optimizer) -> Look:
    """Return how to look into an optimizer.

    Raises:
        OptimizerError: it keeps no second moment that can be read.
    """
    found = next((look for kind, look in _LOOKS.items() if isinstance(optimizer, kind)), None)
    if found is not None:
        return found
    # Others' Adams are known by what a group says and a state holds.
    groups = optimizer.param_groups
    name = type(optimizer).__name__
    if groups and all("betas" in group and "lr" in group for group in groups):
        states = list(vars(optimizer).get("state", {}).values())
        if all("exp_avg_sq" in state for state in states if state):
            return _BY_STATE
        if any("state1" in state for state in states):
            raise OptimizerError(f"{name} keeps its moments in 8 bits, which cannot be watched; use 32-bit states")
    names = ", ".join(kind.__name__ for kind in _LOOKS)
    raise OptimizerError(
        f"{name} cannot be watched; expected one of {names}, a subclass, or an Adam that keeps exp_avg and exp_avg_sq"
    )


def stated(algorithm: Algorithm, group: int, t: int) -> Coefficients[float]:
    """Return the numbers that an algorithm has at a step of a parameter group."""
    part = next((one for one in algorithm.parts if group in one.groups), algorithm)
    method = part.method
    values = (float(one(t)) for one in (method.alpha, method.beta, method.theta, part.eps, part.decay))
    return Coefficients(*values, pull=float(part.l2))


def comparable(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm that steps can be compared with.

    Raises:
        OptimizerError: its steps are not those of Adam or AdamW.
    """
    for part in algorithm.parts or (algorithm,):
        reason = part.beyond("initial_v", "eps", "decay", "l2", "clipping", "running_maximum", "maximize", "others")
        if reason is not None:
            raise OptimizerError(f"{algorithm.source or 'the algorithm'} cannot be compared with steps: {reason}")
    return algorithm


# torch's wrapper of every `step`, which calls the hooks.
_HOOKED = torch.optim.Optimizer.profile_hook_step(torch.optim.Optimizer.step).__code__


def is_inner(optimizer: torch.optim.Optimizer) -> bool:
    """Return True in a hook of a step that a step of the same optimizer has called: its class calls its parent's.

    torch calls the hooks of both; what has been done is seen before and after the outer one.
    """
    frame, count = currentframe(), 0
    while frame is not None and count < 2:
        count += frame.f_code is _HOOKED and frame.f_locals.get("self") is optimizer
        frame = frame.f_back
    return count == 2


def real(tensor: Any) -> Tensor:
    """Return a tensor as a plain one of real numbers: this process's shard of it, complex numbers as pairs."""
    local = getattr(tensor, "to_local", None)
    if local is not None:
        tensor = local()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
