"""Reading the state of torch.optim.Adam and AdamW, so that training goes on with Generic Adam."""

import math
from typing import Any

from generic_adam.torch.coefficients import MOMENTUM, SECOND_MOMENT, OptimizerError


def translate(state: dict[str, Any], present: list[dict[str, Any]]) -> None:
    """Bring a loaded state of torch's Adam into Generic Adam's form, in place; leave others as they are.

    torch counts steps for each parameter, Generic Adam for the optimizer: t goes on from the largest count.
    Schedules and options that Adam does not have stay as the optimizer was built; plain numbers (lr, betas,
    eps) are the saved ones, as with every torch optimizer.

    Args:
        state: "state" by parameter and "param_groups", as torch's load_state_dict made them.
        present: the groups of the optimizer that loads.

    Raises:
        OptimizerError: the saved weight decay is not decoupled.
    """
    groups = state["param_groups"]
    if not all({"betas", "amsgrad"} <= group.keys() and "initial_v" not in group for group in groups):
        return
    steps = [moments.pop("step", 0) for moments in state["state"].values()]
    t = max((int(step) for step in steps), default=0)
    for group, before in zip(groups, present, strict=True):
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
        for key in ("params", "eps", "weight_decay", "amsgrad", "maximize", "param_names", "initial_lr"):
            if key in saved:
                group[key] = saved[key]
        group["step"] = t
        group["lr"] = before["lr"] if before["lr_schedule"] is not None else float(saved["lr"])
        for coefficient, value in zip((MOMENTUM, SECOND_MOMENT), saved["betas"], strict=True):
            if before[coefficient.schedule_key] is None:
                group[coefficient.name] = float(value)
        group["betas"] = (group["beta"], group["theta"])
        # 1 - beta^t, by a form in which nothing cancels: Adam's parameters were constant.
        group["bias_corrections"] = tuple(_one_minus_power(float(value), t) for value in saved["betas"])


def _one_minus_power(base: float, exponent: int) -> float:
    if base == 0.0:
        return 1.0 if exponent else 0.0
    return -math.expm1(exponent * math.log(base))
