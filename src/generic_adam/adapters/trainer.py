"""The algorithm of the arguments of Hugging Face's Trainer, read by name: transformers is not imported."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.schedulers import transformers_rate
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.methods import Algorithm


def read_training_arguments(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """The algorithm that Trainer runs with transformers.TrainingArguments, or anything with its attributes.

    `steps` is the number of optimizer steps where `max_steps` is not set (it then follows from the data).
    """
    total = steps if steps is not None else _attribute(arguments, "max_steps")
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise OptimizerError(
            f"the number of steps is not known (max_steps is {total!r}); expected max_steps > 0, or a horizon (--steps)"
        )
    # Both may be members of an enumeration.
    optimizer, kind = (
        str(getattr(value, "value", value))
        for value in (_attribute(arguments, "optim"), _attribute(arguments, "lr_scheduler_type"))
    )
    base = float(_attribute(arguments, "learning_rate"))
    run = {"num_warmup_steps": _warm_up_steps(arguments, total), "num_training_steps": total}
    rate = transformers_rate(kind, base, run | _scheduler_settings(arguments))
    update = updates.by_name(optimizer, "transformers")
    settings: dict[str, Any] = {"weight_decay": _attribute(arguments, "weight_decay")}
    if replace(update, outside=()) == updates.UPDATES["torch.AdamW"]:
        settings["betas"] = (_attribute(arguments, "adam_beta1"), _attribute(arguments, "adam_beta2"))
        settings["eps"] = _attribute(arguments, "adam_epsilon")
    else:
        settings |= _optimizer_settings(arguments)
    source = f"Trainer, {optimizer} with {kind}"
    try:
        algorithm = replace(update(settings, rate, None), source=source, horizon=total)
    except GenericAdamError as error:
        raise OptimizerError(f"{source}: {error}") from error
    return updates.clipped(algorithm, float(getattr(arguments, "max_grad_norm", 0.0) or 0.0))


def _attribute(arguments: Any, name: str) -> Any:
    try:
        return getattr(arguments, name)
    except AttributeError:
        raise OptimizerError(
            f"{type(arguments).__name__} has no attribute {name!r}; expected transformers.TrainingArguments"
        ) from None


def _warm_up_steps(arguments: Any, total: int) -> int:
    """As Trainer counts them: a number below 1 is a share of all steps, and so is warmup_ratio."""
    steps = float(_attribute(arguments, "warmup_steps") or 0)
    share = steps or float(getattr(arguments, "warmup_ratio", 0) or 0)
    return int(steps) if steps >= 1 else math.ceil(total * share)


def _scheduler_settings(arguments: Any) -> dict[str, Any]:
    given = getattr(arguments, "lr_scheduler_kwargs", None) or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise OptimizerError(f"lr_scheduler_kwargs is no JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise OptimizerError(f"expected lr_scheduler_kwargs as a dictionary, got {type(given).__name__}")
    return dict(given)


def _optimizer_settings(arguments: Any) -> dict[str, Any]:
    """`optim_args`, which Trainer writes as "name=value, name=value"."""
    text = str(getattr(arguments, "optim_args", None) or "")
    pairs = [part.partition("=") for part in text.replace(" ", "").split(",") if "=" in part]
    truth = {"true": True, "false": False, "yes": True, "no": False}
    return {name: truth.get(value.lower(), value) for name, _, value in pairs}
