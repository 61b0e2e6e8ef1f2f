"""The algorithm of the arguments of Hugging Face's Trainer, read by name: transformers is not imported."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generic_adam.adapters import updates
from generic_adam.adapters.clock import Clock, scaled
from generic_adam.adapters.shapes import SHAPES
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.methods import Algorithm, Clipping
from generic_adam.schedules import Schedule, as_schedule

_ADAMW = (
    "adamw_torch",
    "adamw_torch_fused",
    "adamw_torch_xla",
    "adamw_torch_npu_fused",
    "adamw_apex_fused",
    "adamw_hf",
    "paged_adamw_32bit",
    "paged_adamw",
)
_OTHERS: dict[str, updates.Update] = {
    "adafactor": updates.read_relative_adafactor,
    "adagrad": updates.read_adagrad,
    "rmsprop": updates.read_rmsprop,
    "sgd": updates.read_sgd,
}
_ON_DATA = ("reduce_lr_on_plateau", "greedy")


def read_training_arguments(arguments: Any, *, steps: int | None = None) -> Algorithm:
    """The algorithm that Trainer runs with these arguments.

    Args:
        arguments: a transformers.TrainingArguments, or anything with its attributes.
        steps: the number of optimizer steps, where `max_steps` is not set (it then follows from the data).

    Returns:
        The algorithm; its horizon is the number of steps.

    Raises:
        OptimizerError: an attribute is missing, or names an optimizer or a schedule without (alpha, beta,
            theta).
    """
    total = _total_steps(arguments, steps)
    optimizer, kind = _name(arguments, "optim"), _name(arguments, "lr_scheduler_type")
    rate = _learning_rate(arguments, kind, total)
    clip = float(getattr(arguments, "max_grad_norm", 0.0) or 0.0)
    try:
        algorithm = _update(arguments, optimizer, rate)
    except OptimizerError:
        raise
    except GenericAdamError as error:
        raise OptimizerError(f"Trainer, {optimizer} with {kind}: {error}") from error
    return replace(
        algorithm,
        source=f"Trainer, {optimizer} with {kind}",
        horizon=total,
        clipping=Clipping(clip) if clip > 0 and algorithm.clipping is None else algorithm.clipping,
        outside=(*algorithm.outside, f"gradients are clipped to norm {clip:g} before updates are")
        if clip > 0 and algorithm.clipping is not None
        else algorithm.outside,
    )


def _attribute(arguments: Any, name: str) -> Any:
    try:
        return getattr(arguments, name)
    except AttributeError:
        raise OptimizerError(
            f"{type(arguments).__name__} has no attribute {name!r}; expected transformers.TrainingArguments"
        ) from None


def _name(arguments: Any, attribute: str) -> str:
    """The text of an attribute that is an enumeration's member or a text."""
    value = _attribute(arguments, attribute)
    return str(getattr(value, "value", value))


def _total_steps(arguments: Any, steps: int | None) -> int:
    total = steps if steps is not None else _attribute(arguments, "max_steps")
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise OptimizerError(
            f"the number of steps is not known (max_steps is {total!r}); expected max_steps > 0, or a horizon"
        )
    return total


def _warm_up_steps(arguments: Any, total: int) -> int:
    """As Trainer counts them: a number below 1 is a share of all steps, and so is warmup_ratio."""
    steps = float(_attribute(arguments, "warmup_steps") or 0)
    if steps >= 1:
        return int(steps)
    share = steps or float(getattr(arguments, "warmup_ratio", 0) or 0)
    return math.ceil(total * share)


def _learning_rate(arguments: Any, kind: str, total: int) -> Schedule:
    base = float(_attribute(arguments, "learning_rate"))
    if kind == "constant":
        return as_schedule(base)
    if kind in _ON_DATA:
        raise OptimizerError(f"lr_scheduler_type {kind!r} depends on the data: there is no sequence to read")
    if kind not in SHAPES:
        names = ", ".join(["constant", *SHAPES])
        raise OptimizerError(f"lr_scheduler_type {kind!r} has no known closed form; expected one of {names}")
    shape, defaults = SHAPES[kind]
    given = _scheduler_settings(arguments)
    known = {
        "num_warmup_steps": _warm_up_steps(arguments, total),
        "num_training_steps": total,
        "lr_init": base,
    }
    try:
        if "min_lr" in given:
            given["min_lr_rate"] = float(given.pop("min_lr")) / base
        return scaled(base, shape(Clock(), {**defaults, **known, **given}))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise OptimizerError(f"lr_scheduler_kwargs {given} do not fit {kind!r}: {error}") from error


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


def _update(arguments: Any, optimizer: str, rate: Schedule) -> Algorithm:
    settings: dict[str, Any] = {"weight_decay": _attribute(arguments, "weight_decay")}
    if optimizer in _ADAMW:
        settings |= {
            "betas": (_attribute(arguments, "adam_beta1"), _attribute(arguments, "adam_beta2")),
            "eps": _attribute(arguments, "adam_epsilon"),
        }
        return updates.read_adamw(settings, rate, None)
    if optimizer not in _OTHERS:
        names = ", ".join([*_ADAMW, *_OTHERS])
        raise OptimizerError(f"optim {optimizer!r} is none that can be read; expected one of {names}")
    return _OTHERS[optimizer](settings | _optimizer_settings(arguments), rate, None)


def _optimizer_settings(arguments: Any) -> dict[str, Any]:
    """`optim_args`, which Trainer writes as "name=value, name=value"."""
    text = str(getattr(arguments, "optim_args", None) or "")
    pairs = [part.partition("=") for part in text.replace(" ", "").split(",") if "=" in part]
    truth = {"true": True, "false": False, "yes": True, "no": False}
    return {name: truth.get(value.lower(), value) for name, _, value in pairs}
