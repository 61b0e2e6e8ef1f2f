"""What a saved state must be before any of it is taken over, and how torch's Adam's becomes Generic Adam's.

torch's fused kernel walks raw memory and looks at no shape. So every tensor of a loaded state is compared
with its parameter here, and a state that does not fit changes nothing.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch.coefficients import (
    DECAY,
    EPSILON,
    LEARNING_RATE,
    MOMENTUM,
    SECOND_MOMENT,
    is_number,
    shown,
)
from generic_adam.torch.tensors import is_distributed


class Expected(NamedTuple):
    """What a tensor of a parameter's state is."""

    shape: torch.Size
    dtype: torch.dtype


class Range(NamedTuple):
    """What a number of a saved state may be: at least 0.

    Attributes:
        largest: the largest it may be.
        whole: whether it counts something.
    """

    largest: float
    whole: bool = False

    def check(self, name: str, value: Any) -> Any:
        """The number; a tensor of one element, in which torch's optimizers count, is one too.

        Raises:
            OptimizerError: it is none, or out of range.
        """
        found = value
        if isinstance(value, Tensor) and value.numel() == 1 and not (value.is_complex() or value.is_meta):
            found = value.item()
        if not is_number(found) or not 0.0 <= found <= self.largest or (self.whole and found % 1):
            kind = "a whole number >= 0" if self.whole else f"a number in [0, {self.largest:g}]"
            raise OptimizerError(f"{name} is {shown(value)}; expected {kind}")
        return int(found) if self.whole else found


WHOLE = Range(2**63, whole=True)
SHARE = Range(1.0)
CORRECTIONS = ("beta_correction", "theta_correction")
# The maximum is part of the state only with amsgrad, which may be switched on at any time; corrections only
# of parameters that have missed steps.
_MADE_LATER = {"max_exp_avg_sq", "step", *CORRECTIONS}


def of_adam(one: Expected) -> dict[str, Expected | Range]:
    """What the state of a form of Adam consists of, with tensors like one."""
    moments = dict.fromkeys(("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), one)
    return {**moments, "step": WHOLE, **dict.fromkeys(CORRECTIONS, SHARE)}


class Kept:
    """A saved value on its way through torch's load_state_dict, which would round tensors to half precision."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def keep(state_dict: Any, present: list[dict[str, Any]]) -> dict[str, Any]:
    """A state_dict with its state kept from torch's casts.

    Args:
        state_dict: what is to be loaded.
        present: the groups of the optimizer that loads.

    Raises:
        OptimizerError: it has not the form of a state_dict, or not the groups of this optimizer.
    """
    form = {"state": Mapping, "param_groups": (list, tuple)}
    if not isinstance(state_dict, Mapping) or not all(
        isinstance(state_dict.get(key), kind) for key, kind in form.items()
    ):
        raise OptimizerError("expected a state_dict with 'state' and 'param_groups'")
    groups = state_dict["param_groups"]
    if len(groups) != len(present):
        raise OptimizerError(f"the saved state has {len(groups)} parameter groups; expected {len(present)}")
    known = set()
    for index, (group, before) in enumerate(zip(groups, present, strict=True)):
        where = f"group {index} of the saved state"
        if not isinstance(group, Mapping) or not all(isinstance(key, str) for key in group):
            raise OptimizerError(f"{where} is {shown(group)}; expected options by name")
        indices = group.get("params")
        if not isinstance(indices, (list, tuple)) or not all(isinstance(one, (int, str)) for one in indices):
            raise OptimizerError(f"the params of {where} are {shown(indices)}; expected a list of indices")
        if len(indices) != len(before["params"]):
            raise OptimizerError(
                f"{where} has {len(indices)} parameters; expected {len(before['params'])}, as this optimizer"
            )
        known.update(indices)
    kept = dict(state_dict["state"])
    for index in known & kept.keys():
        moments = kept[index]
        if not isinstance(moments, Mapping) or not all(isinstance(key, str) for key in moments):
            raise OptimizerError(f"the saved state of parameter {index} is {shown(moments)}; expected names")
        kept[index] = {key: Kept(value) for key, value in moments.items()}
    return {**state_dict, "state": kept}


def take(
    parameter: Tensor, moments: dict[str, Any], expected: Mapping[str, Expected | Range], where: str
) -> None:
    """Put the kept state of one parameter in place, on its device and in the dtype of its state.

    Args:
        parameter: whose state it is.
        moments: its saved state, changed in place.
        expected: what a step needs of it.
        where: which parameter it is, for messages.

    Raises:
        OptimizerError: something is missing, or is not what the parameter asks for.
    """
    for key, value in moments.items():
        moments[key] = value.value
    for key, rule in expected.items():
        name = f"the saved {key} of {where}"
        if key not in moments:
            if key not in _MADE_LATER:
                raise OptimizerError(f"the saved state of {where} has no {key!r}")
        elif isinstance(rule, Range):
            moments[key] = rule.check(name, moments[key])
        else:
            _compare(moments[key], parameter, rule, name)
            tensor = moments[key].to(dtype=rule.dtype, device=parameter.device)
            if not is_distributed(tensor) and 0 in tensor.stride():
                # Elements that share memory cannot be updated one by one.
                tensor = tensor.clone(memory_format=torch.contiguous_format)
            moments[key] = tensor


def _compare(saved: Any, parameter: Tensor, expected: Expected, name: str) -> None:
    if not isinstance(saved, Tensor):
        raise OptimizerError(f"{name} is {shown(saved)}; expected a tensor")
    if saved.shape != expected.shape:
        raise OptimizerError(
            f"{name} has the shape {tuple(saved.shape)}; expected {tuple(expected.shape)}, as its parameter"
        )
    if saved.layout is not torch.strided or saved.is_quantized:
        raise OptimizerError(f"{name} is not a dense tensor: {saved.layout}, {saved.dtype}")
    if saved.is_complex() != expected.dtype.is_complex or saved.dtype is torch.bool:
        raise OptimizerError(f"{name} is {saved.dtype}; expected {expected.dtype}")
    if saved.is_meta != parameter.is_meta:
        raise OptimizerError(f"{name} is on the device {saved.device}; expected {parameter.device}")
    if is_distributed(saved) != is_distributed(parameter) or (
        is_distributed(saved) and saved.device_mesh != parameter.device_mesh  # pyright: ignore[reportAttributeAccessIssue]
    ):
        raise OptimizerError(f"{name} is not sharded over the processes as its parameter is")


def is_of_adam(groups: list[dict[str, Any]]) -> bool:
    """Whether saved groups are of torch.optim.Adam or AdamW."""
    return all({"betas", "amsgrad"} <= group.keys() and "initial_v" not in group for group in groups)


def translate_adam(state: dict[str, Any], present: list[dict[str, Any]]) -> None:
    """Bring a loaded state of torch's Adam into Generic Adam's form, in place.

    torch counts steps for each parameter, and so does Generic Adam in its bias correction; its schedules go
    on from the largest count.
    Schedules and options that Adam does not have stay as the optimizer was built; plain numbers (lr, betas,
    eps) are the saved ones, as with every torch optimizer.

    Args:
        state: "state" by parameter and "param_groups", as torch's load_state_dict made them.
        present: the groups of the optimizer that loads.

    Raises:
        OptimizerError: the saved weight decay is not decoupled.
    """
    steps = {
        parameter: WHOLE.check("the saved step", moments["step"].value)
        for parameter, moments in state["state"].items()
        if isinstance(parameter, Tensor) and "step" in moments
    }
    t = max(steps.values(), default=0)
    for group, before in zip(state["param_groups"], present, strict=True):
        saved = dict(group)
        pair = saved["betas"] if isinstance(saved["betas"], (tuple, list)) else ()
        numbers = {**saved, **dict(zip(("beta", "theta"), pair, strict=False))}
        for one in _NUMBERS_OF_ADAM:
            numbers[one.name] = one.number(numbers.get(one.name))  # type: ignore[arg-type]
        # Releases of torch without the key had AdamW as a class of its own; which of the two it was is not
        # saved.
        if numbers["weight_decay"] and not saved.get("decoupled_weight_decay", False):
            raise OptimizerError(
                f"the saved weight_decay {shown(saved['weight_decay'])} was added to the gradient (L2), or "
                "is of a torch that did not save which; only decoupled weight decay can be continued"
            )
        group.clear()
        group.update(before)
        for key in ("params", "weight_decay", "amsgrad", "maximize", "param_names", "initial_lr"):
            if key in saved:
                group[key] = saved[key]
        group["step"] = t
        for one in _NUMBERS_OF_ADAM:
            if before[one.schedule_key] is None:
                group[one.name] = numbers[one.name]
        group["betas"] = (group["beta"], group["theta"])
        # 1 - beta^t, by a form in which nothing cancels: Adam's parameters were constant.
        beta, theta = float(numbers["beta"]), float(numbers["theta"])
        group["bias_corrections"] = (_one_minus_power(beta, t), _one_minus_power(theta, t))
        for parameter in group["params"]:
            count = steps.get(parameter, t)
            if count != t:
                own = zip(CORRECTIONS, (beta, theta), strict=True)
                state["state"][parameter].update(
                    {key: Kept(_one_minus_power(base, count)) for key, base in own}
                )


_NUMBERS_OF_ADAM = (LEARNING_RATE, MOMENTUM, SECOND_MOMENT, EPSILON, DECAY)


def part_corrections(moments: dict[str, Kept], of_group: object) -> None:
    """Leave a parameter's own corrections out of its loaded state where they are its group's."""
    own = [moments[key].value for key in CORRECTIONS if key in moments]
    if len(own) == 1:
        raise OptimizerError("the saved state has one bias correction of a parameter; expected two or none")
    if (
        own
        and all(map(is_number, own))
        and isinstance(of_group, (tuple, list))
        and tuple(own) == tuple(of_group)
    ):
        for key in CORRECTIONS:
            del moments[key]


def _one_minus_power(base: float, exponent: int) -> float:
    if base == 0.0:
        return 1.0 if exponent else 0.0
    return -math.expm1(exponent * math.log(base))
