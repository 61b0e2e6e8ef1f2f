"""Checks of a saved state before any of it is taken over, and the way from torch's Adam to Generic Adam.

Every tensor of a loaded state is compared with its parameter here, and a state that does not fit changes nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from generic_adam.errors import OptimizerError
from generic_adam.torch import rules
from generic_adam.torch.rules import Rule
from generic_adam.torch.tensors import State

CORRECTIONS = ("beta_correction", "theta_correction")
_LARGEST = "largest_step"


@dataclass(slots=True)
class _Kept:
    """A saved value on its way through torch's load_state_dict, which would round tensors to half precision."""

    value: Any


def keep(state_dict: Mapping[str, Any], present: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a state_dict of this form, its state kept from torch's casts until `release`; else raise."""
    groups = state_dict.get("param_groups")
    if not isinstance(state_dict.get("state"), Mapping) or not isinstance(groups, (list, tuple)):
        raise OptimizerError("expected a state_dict with 'state' and 'param_groups'")
    if len(groups) != len(present):
        raise OptimizerError(f"the saved state has {len(groups)} parameter groups; expected {len(present)}")
    known = set()
    for index, (group, before) in enumerate(zip(groups, present, strict=True)):
        where, indices = f"group {index} of the saved state", group.get("params") if _has_names(group) else None
        if not isinstance(indices, (list, tuple)) or not all(isinstance(one, (int, str)) for one in indices):
            raise OptimizerError(
                f"{where} is {rules.shown(group)}; expected options by name, and indices as its params"
            )
        if len(indices) != len(before["params"]):
            raise OptimizerError(
                f"{where} has {len(indices)} parameters; expected {len(before['params'])}, as this optimizer"
            )
        known.update(indices)
    kept = dict(state_dict["state"])
    for index in known & kept.keys():
        moments = kept[index]
        if not _has_names(moments):
            raise OptimizerError(f"the saved state of parameter {index} is {rules.shown(moments)}; expected names")
        kept[index] = {key: _Kept(value) for key, value in moments.items()}
    return {**state_dict, "state": kept}


def _has_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def release(state: Mapping[Any, Any]) -> None:
    """Undo `keep`, in the state that torch made of it."""
    for parameter, moments in state.items():
        if isinstance(parameter, Tensor):
            moments.update({key: one.value for key, one in moments.items() if isinstance(one, _Kept)})


def fit(parameter: Tensor, moments: dict[str, Any], declared: State, where: str) -> None:
    """Put the saved state of one parameter in place, on its device and in the dtype of its state."""
    for key, rule in declared.items():
        name = f"the saved {key} of {where}"
        if isinstance(rule, Rule):
            if key in moments:
                moments[key] = rules.cell(key, rule.check(name, rules.number(moments[key])))
        elif key in moments:
            moments[key] = rule.fitted(name, moments[key], parameter)
        elif not rule.late:
            raise OptimizerError(f"the saved state of {where} has no {key!r}")


def hand_down(state: dict[str, Any], key: str, names: tuple[str, ...]) -> None:
    """Give each parameter that has none the numbers that version 0.1 kept once for its group."""
    for group in state["param_groups"]:
        own = list(filter(None, map(state["state"].get, group["params"])))
        if all(moments.keys() >= {*names} for moments in own):
            continue  # what else the group has under this key is somebody else's
        shared = group.pop(key, (0.0,) * len(names))
        shared = shared if isinstance(shared, (tuple, list)) else (shared,)
        if len(shared) != len(names):
            raise OptimizerError(f"the saved {key} are {rules.shown(shared)}; expected {len(names)} numbers")
        for moments in own:
            moments.update({"step": group.get("step"), **dict(zip(names, shared, strict=True)), **moments})


def mark(state_dict: Mapping[str, Any]) -> None:
    """Note in each saved group the largest of its step counts, which torch's Adam keeps and leaves behind."""
    for group in state_dict["param_groups"]:
        group[_LARGEST] = _largest(_counts(state_dict, group))


def _counts(state: Mapping[str, Any], group: Mapping[str, Any]) -> list[Any]:
    return [moments.get("step", 0) for one in group["params"] if (moments := state["state"].get(one))]


def _largest(counts: list[Any]) -> float:
    return max((float(step) for step in map(rules.number, counts) if rules.is_number(step)), default=0.0)


def take_if_of_adam(state: dict[str, Any]) -> bool:
    """Return whether a saved state is of torch.optim.Adam or AdamW, and take our mark off its groups.

    They keep what they do not know. So a state may have all of our keys and be theirs, if they have taken steps since.
    """
    groups, ours = state["param_groups"], True
    for group in groups:
        marked, counts = group.pop(_LARGEST, None), _counts(state, group)
        # Before there was a mark, our own step counts were plain numbers.
        known = not any(isinstance(step, Tensor) for step in counts)
        if marked is not None:  # which is anybody's: a file may hold what cannot be compared
            known = rules.is_number(marked) and marked == _largest(counts)
        ours = ours and known and "initial_v" in group
    return not ours and all({"betas", "amsgrad"} <= group.keys() for group in groups)


def translate_adam(state: dict[str, Any], present: list[dict[str, Any]]) -> None:
    """Bring a loaded state of torch's Adam into Generic Adam's form, in place.

    torch counts steps for each parameter, and so does Generic Adam in its bias correction; its schedules go
    on from the largest count. Schedules and options that Adam does not have stay as the optimizer was built;
    plain numbers (lr, betas, eps) are the saved ones, as with every torch optimizer.
    """
    steps = {
        parameter: int(rules.WHOLE.check("the saved step", rules.number(moments["step"])))
        for parameter, moments in state["state"].items()
        if isinstance(parameter, Tensor) and "step" in moments
    }
    t = max(steps.values(), default=0)
    for group, before in zip(state["param_groups"], present, strict=True):
        saved = dict(group)
        pair = saved["betas"] if isinstance(saved["betas"], (tuple, list)) else ()
        saved.update(zip(("beta", "theta"), pair, strict=False))
        numbers = {one.name: one.number(saved.get(one.name)) for one in rules.OF_ADAM}
        # Releases of torch without the key had AdamW as a class of its own; which of the two it was is not saved.
        if numbers["weight_decay"] and not isinstance(saved.get("decoupled_weight_decay"), bool):
            raise OptimizerError(
                f"the saved weight_decay {rules.shown(saved['weight_decay'])} is of a torch that did not save whether "
                "it is decoupled; expected decoupled_weight_decay to be True or False"
            )
        group.clear()
        group.update(before)
        taken = ["params", "weight_decay", "amsgrad", "maximize", "param_names", "initial_lr"]
        taken += ["decoupled_weight_decay"] if numbers["weight_decay"] else []
        group.update({key: saved[key] for key in taken if key in saved})
        group.update({c.name: numbers[c.name] for c in rules.OF_ADAM if before[c.schedule_key] is None})
        group["step"], group["betas"] = t, (group["beta"], group["theta"])
        # 1 - beta^t, by a form in which nothing cancels: Adam's parameters were constant.
        bases = (float(numbers["beta"]), float(numbers["theta"]))
        for parameter in steps.keys() & set(group["params"]):
            own = (one_minus_power(base, steps[parameter]) for base in bases)
            state["state"][parameter].update(zip(CORRECTIONS, own, strict=True))


def one_minus_power(base: float, exponent: int) -> float:
    """1 - base^exponent, without cancellation."""
    return -math.expm1(exponent * math.log(base)) if base else float(exponent > 0)
