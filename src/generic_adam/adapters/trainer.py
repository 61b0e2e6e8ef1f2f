"""The algorithm of the arguments of Hugging Face's Trainer, read by name: transformers is not imported."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.schedulers import transformers_rate
from generic_adam.errors import GenericAdamError, OptimizerError, shown, told_as
from generic_adam.methods import Algorithm


def read_training_arguments(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """The algorithm that Trainer runs with transformers.TrainingArguments, or anything with its attributes.

    `steps` is the number of optimizer steps where `max_steps` is not set (it then follows from the data).
    """
    with told_as(OptimizerError, f"{type(arguments).__name__} cannot be read:"):
        total = arguments.max_steps if steps is None else steps
        if isinstance(total, bool) or not isinstance(total, int) or total < 1:
            raise OptimizerError(
                f"the number of steps is not known (max_steps is {shown(total)}); "
                "expected max_steps > 0, or a horizon (--steps)"
            )
        # Both may be members of an enumeration.
        optimizer, kind = (
            str(getattr(value, "value", value)) for value in (arguments.optim, arguments.lr_scheduler_type)
        )
        base = float(arguments.learning_rate)
        run = {"num_warmup_steps": _warm_up_steps(arguments, total), "num_training_steps": total}
        rate = transformers_rate(kind, base, run | _scheduler_settings(arguments))
        update = updates.by_name(optimizer, "transformers")
        settings: dict[str, Any] = {"weight_decay": arguments.weight_decay}
        if replace(update, outside=()) == updates.UPDATES["torch.AdamW"]:
            settings["betas"] = (arguments.adam_beta1, arguments.adam_beta2)
            settings["eps"] = arguments.adam_epsilon
        else:
            settings |= _optimizer_settings(arguments)
        source, clip = f"Trainer, {optimizer} with {kind}", float(getattr(arguments, "max_grad_norm", 0) or 0)
        try:
            return updates.clipped(update(settings, rate), clip, source=source, horizon=total)
        except GenericAdamError as error:
            raise OptimizerError(f"{source}: {error}") from error


def _warm_up_steps(arguments: Any, total: int) -> int:
    """As Trainer counts them: a number below 1 is a share of all steps, and so is warmup_ratio."""
    steps = float(arguments.warmup_steps or 0)
    share = steps or float(getattr(arguments, "warmup_ratio", 0) or 0)
    return int(steps) if steps >= 1 else math.ceil(total * share)


def _scheduler_settings(arguments: Any) -> dict[str, Any]:
    given = getattr(arguments, "lr_scheduler_kwargs", None) or {}
    if isinstance(given, str):
        with told_as(OptimizerError, "lr_scheduler_kwargs is no JSON:"):
            given = json.loads(given)
    if not isinstance(given, Mapping):
        raise OptimizerError(f"expected lr_scheduler_kwargs as a dictionary, got {type(given).__name__}")
    return dict(given)


def _optimizer_settings(arguments: Any) -> dict[str, Any]:
    """`optim_args`, which Trainer writes as "name=value, name=value"."""
    text = str(getattr(arguments, "optim_args", None) or "")
    pairs = [part.partition("=") for part in text.replace(" ", "").split(",") if "=" in part]
    truth = {"true": True, "false": False, "yes": True, "no": False}
    return {name: truth.get(value.lower(), value) for name, _, value in pairs}
