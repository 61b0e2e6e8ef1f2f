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
from generic_adam.torch.tensors import is_distributed


class Expected(NamedTuple):
    """What a tensor of a parameter's state is."""

    shape: torch.Size
    dtype: torch.dtype


class Kept:
    """A saved tensor on its way through torch's load_state_dict, which would round it to half precision."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def keep(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """A state_dict with its tensors kept from torch's casts.

    Raises:
        OptimizerError: it has not the form of a state_dict.
    """
    if not isinstance(state_dict.get("state"), Mapping) or not isinstance(
        state_dict.get("param_groups"), (list, tuple)
    ):
        raise OptimizerError("expected a state_dict with 'state' and 'param_groups'")
    kept = {}
    for index, moments in state_dict["state"].items():
        if not isinstance(moments, Mapping):
            raise OptimizerError(f"the saved state of parameter {index} is a {type(moments).__name__}")
        kept[index] = {
            key: Kept(value) if isinstance(value, Tensor) else value for key, value in moments.items()
        }
    return {**state_dict, "state": kept}


def take(parameter: Tensor, moments: Mapping[str, Any], expected: Mapping[str, Expected], where: str) -> None:
    """Put the kept tensors of one parameter in place, on its device and in the dtype of its state.

    Args:
        parameter: whose state it is.
        moments: its saved state, changed in place.
        expected: the tensors that a step updates in place.
        where: which parameter it is, for messages.

    Raises:
        OptimizerError: a tensor has another shape or kind than its parameter asks for.
    """
    for key, value in moments.items():
        if not isinstance(value, Kept):
            if key in expected or not _is_plain(value):
                kind = "a tensor" if key in expected else "a number"
                raise OptimizerError(f"the saved {key} of {where} is {value!r}; expected {kind}")
            continue
        tensor = value.tensor
        if key in expected:
            _compare(tensor, parameter, expected[key], f"the saved {key} of {where}")
            tensor = tensor.to(dtype=expected[key].dtype, device=parameter.device)
            if not is_distributed(tensor) and 0 in tensor.stride():
                # Elements that share memory cannot be updated one by one.
                tensor = tensor.clone(memory_format=torch.contiguous_format)
        moments[key] = tensor  # pyright: ignore[reportIndexIssue]


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (
        isinstance(value, (tuple, list)) and all(map(_is_plain, value))
    )


def _compare(saved: Tensor, parameter: Tensor, expected: Expected, name: str) -> None:
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
        parameter: int(step.tensor if isinstance(step, Kept) else step)
        for parameter, moments in state["state"].items()
        if (step := moments.get("step")) is not None
    }
    t = max(steps.values(), default=0)
    for group, before in zip(state["param_groups"], present, strict=True):
        # Releases of torch without the key had AdamW as a class of its own; which of the two it was is not
        # saved.
        if group["weight_decay"] and not group.get("decoupled_weight_decay", False):
            raise OptimizerError(
                f"the saved weight_decay {group['weight_decay']} was added to the gradient (L2), or "
                "is of a torch that did not save which; only decoupled weight decay can be continued"
            )
        saved = dict(group)
        group.clear()
        group.update(before)
        for key in ("params", "weight_decay", "amsgrad", "maximize", "param_names", "initial_lr"):
            if key in saved:
                group[key] = saved[key]
        group["step"] = t
        numbers = {
            "lr": saved["lr"],
            "beta": saved["betas"][0],
            "theta": saved["betas"][1],
            "eps": saved["eps"],
        }
        for name, value in numbers.items():
            if before[f"{name}_schedule"] is None:
                group[name] = value
        group["betas"] = (group["beta"], group["theta"])
        # 1 - beta^t, by a form in which nothing cancels: Adam's parameters were constant.
        beta, theta = (float(value) for value in saved["betas"])
        group["bias_corrections"] = (_one_minus_power(beta, t), _one_minus_power(theta, t))
        for parameter in group["params"]:
            count = steps.get(parameter, t)
            if count != t:
                state["state"][parameter]["beta_correction"] = _one_minus_power(beta, count)
                state["state"][parameter]["theta_correction"] = _one_minus_power(theta, count)


def _one_minus_power(base: float, exponent: int) -> float:
    if base == 0.0:
        return 1.0 if exponent else 0.0
    return -math.expm1(exponent * math.log(base))
