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
from generic_adam.schedules import Schedule


def rate_of(arguments: Any, total: int, base: float) -> Schedule:
    """lr_t over a run of so many steps, from a base rate."""
    run = {"num_warmup_steps": warm_up_steps(arguments, total), "num_training_steps": total}
    return transformers_rate(_text(arguments.lr_scheduler_type), base, run | _given(arguments))


def read_training_arguments(arguments: Any, *, steps: int | None = None, clip: float | None = None) -> Algorithm:
    """The algorithm that Trainer runs with transformers.TrainingArguments, or anything with its attributes.

    `steps` is the number of optimizer steps where `max_steps` is not set (it then follows from the data); where it is,
    it says how long the schedule is, and `steps` how much of it is run. `clip` takes the place of `max_grad_norm`.
    """
    with told_as(OptimizerError, f"{type(arguments).__name__} cannot be read:"):
        total = run_length(arguments.max_steps, steps)
        optimizer, rate = _text(arguments.optim), rate_of(arguments, total, float(arguments.learning_rate))
        name = optimizer.lower()
        update = updates.by_name(name, "transformers" if name in {"adafactor", "adamw_hf"} else "torch")
        settings: dict[str, Any] = {"weight_decay": arguments.weight_decay}
        if "adam" in name:
            settings["betas"] = (arguments.adam_beta1, arguments.adam_beta2)
            settings["eps"] = arguments.adam_epsilon
        elif name == "adafactor":
            settings |= {"scale_parameter": False, "relative_step": False}  # whatever optim_args says
        given, taken = _optimizer_settings(arguments), _TAKEN.get(name.partition("_")[0], ())
        settings |= {one: value.lower() in _TRUE if one in _FLAGS else value for one, value in given if one in taken}
        ignored = ", ".join(one for one, _ in given if one not in taken)
        source = f"Trainer, {optimizer} with {_text(arguments.lr_scheduler_type)}"
        clip = float(getattr(arguments, "max_grad_norm", 0) or 0) if clip is None else clip
        try:
            found = updates.clipped(update(settings, rate), clip, source=source, horizon=steps or total)
        except GenericAdamError as error:
            raise OptimizerError(f"{source}: {error}") from error
        said = f"optim_args that Trainer does not pass on to {optimizer}: {ignored}"
        return replace(found, notes=(*found.notes, said)) if ignored else found


def run_length(said: Any, steps: int | None) -> int:
    """`max_steps`, or the number that was given beside the arguments where it is not above 0."""
    total = steps if steps is not None and (said is None or said < 1) else said
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        said = f"the number of steps is not known (max_steps is {shown(total)})"
        raise OptimizerError(f"{said}; expected max_steps > 0, or a horizon (--steps)")
    return total


def _text(said: Any) -> str:
    """A name, which may be a member of an enumeration."""
    return str(getattr(said, "value", said))


def warm_up_steps(arguments: Any, total: int) -> int:
    """As Trainer counts them: a number below 1 is a share of all steps, and so is warmup_ratio."""
    steps = float(arguments.warmup_steps or 0)
    if steps < 0:
        raise OptimizerError(f"warmup_steps is {steps:g}; expected a number of at least 0")
    share = steps or float(getattr(arguments, "warmup_ratio", 0) or 0)
    return int(steps) if steps >= 1 else math.ceil(total * share)


def _given(arguments: Any) -> dict[str, Any]:
    given = getattr(arguments, "lr_scheduler_kwargs", None) or {}
    if isinstance(given, str):
        with told_as(OptimizerError, "lr_scheduler_kwargs is no JSON:"):
            given = json.loads(given)
    if not isinstance(given, Mapping):
        raise OptimizerError(f"expected lr_scheduler_kwargs as a dictionary, got {type(given).__name__}")
    return dict(given)


# What Trainer passes on of `optim_args`; its weight_decay is overridden in every parameter group.
_TAKEN = {
    "sgd": ("momentum", "dampening", "nesterov"),
    "adagrad": ("lr_decay", "eps"),
    "rmsprop": ("momentum", "alpha", "eps", "centered"),
}
_FLAGS, _TRUE = ("nesterov", "centered"), ("true", "1", "yes")


def _optimizer_settings(arguments: Any) -> list[list[str]]:
    """`optim_args`, which Trainer writes as "name=value, name=value"."""
    text = str(getattr(arguments, "optim_args", None) or "").replace(" ", "")
    pairs = [part.split("=") for part in text.split(",")] if text else []
    if any(len(pair) != 2 for pair in pairs):
        raise OptimizerError(f"optim_args is {shown(text)}; expected name=value, name=value")
    return pairs
