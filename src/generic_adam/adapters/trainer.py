"""A method from the arguments of Hugging Face's Trainer, read by name: transformers is not imported."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from generic_adam.adapters.clock import Clock
from generic_adam.adapters.curves import scaled
from generic_adam.adapters.reading import AdapterError, Reading
from generic_adam.adapters.remarks import (
    FACTORED,
    clipped_updates,
    decay_in_gradient,
    decoupled_decay,
    start_and_epsilon,
)
from generic_adam.adapters.warmup_shapes import SHAPES
from generic_adam.methods import Method, adam
from generic_adam.schedules import Schedule, ScheduleError, as_schedule, sqrt, t

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
_ON_DATA = ("reduce_lr_on_plateau", "greedy")


def read_training_arguments(arguments: Any, *, steps: int | None = None) -> Reading:
    """The method that Trainer runs with these arguments.

    Args:
        arguments: a transformers.TrainingArguments, or anything with its attributes.
        steps: the number of optimizer steps, where `max_steps` is not set (it then follows from the data).

    Returns:
        The reading; its horizon is the number of steps.

    Raises:
        AdapterError: an attribute is missing, or names an optimizer or a schedule without (alpha, beta,
            theta).
    """
    total = _total_steps(arguments, steps)
    optimizer, kind = _name(arguments, "optim"), _name(arguments, "lr_scheduler_type")
    rate = _learning_rate(arguments, kind, total)
    method, outside = _method(arguments, optimizer, rate)
    clip = float(getattr(arguments, "max_grad_norm", 0.0) or 0.0)
    if clip > 0:
        outside.append(f"gradients are clipped to norm {clip:g}; the theorem is about unbiased ones")
    return Reading(method, f"Trainer, {optimizer} with {kind}", (0,), total, tuple(outside))


def _attribute(arguments: Any, name: str) -> Any:
    try:
        return getattr(arguments, name)
    except AttributeError:
        raise AdapterError(
            f"{type(arguments).__name__} has no attribute {name!r}; expected transformers.TrainingArguments"
        ) from None


def _name(arguments: Any, attribute: str) -> str:
    """The text of an attribute that is an enumeration's member or a text."""
    value = _attribute(arguments, attribute)
    return str(getattr(value, "value", value))


def _total_steps(arguments: Any, steps: int | None) -> int:
    total = steps if steps is not None else _attribute(arguments, "max_steps")
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise AdapterError(
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
        raise AdapterError(f"lr_scheduler_type {kind!r} depends on the data: there is no sequence to read")
    if kind not in SHAPES:
        names = ", ".join(["constant", *SHAPES])
        raise AdapterError(f"lr_scheduler_type {kind!r} has no known closed form; expected one of {names}")
    shape, defaults = SHAPES[kind]
    given = _scheduler_settings(arguments)
    if "min_lr" in given:
        given["min_lr_rate"] = float(given.pop("min_lr")) / base
    known = {
        "num_warmup_steps": _warm_up_steps(arguments, total),
        "num_training_steps": total,
        "lr_init": base,
    }
    try:
        return scaled(base, shape(Clock(), {**defaults, **known, **given}))
    except (KeyError, TypeError, ScheduleError) as error:
        raise AdapterError(f"lr_scheduler_kwargs {given} do not fit {kind!r}: {error}") from error


def _scheduler_settings(arguments: Any) -> dict[str, Any]:
    given = getattr(arguments, "lr_scheduler_kwargs", None) or {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise AdapterError(f"lr_scheduler_kwargs is no JSON: {error}") from error
    if not isinstance(given, Mapping):
        raise AdapterError(f"expected lr_scheduler_kwargs as a dictionary, got {type(given).__name__}")
    return dict(given)


def _method(arguments: Any, optimizer: str, rate: Schedule) -> tuple[Method, list[str]]:
    if optimizer in _ADAMW:
        return _adamw(arguments, rate)
    if optimizer in _OTHERS:
        return _OTHERS[optimizer](arguments, rate)
    names = ", ".join([*_ADAMW, *_OTHERS])
    raise AdapterError(f"optim {optimizer!r} is no Generic Adam that can be read; expected one of {names}")


def _adamw(arguments: Any, rate: Schedule) -> tuple[Method, list[str]]:
    epsilon, decay = (
        float(_attribute(arguments, "adam_epsilon")),
        float(_attribute(arguments, "weight_decay")),
    )
    outside = [start_and_epsilon(0.0, epsilon)]
    if decay:
        outside.append(decoupled_decay(decay))
    beta, theta = float(_attribute(arguments, "adam_beta1")), float(_attribute(arguments, "adam_beta2"))
    return adam(lr=rate, beta=beta, theta=theta), outside


def _adafactor(arguments: Any, rate: Schedule) -> tuple[Method, list[str]]:
    """Trainer's Adafactor has scale_parameter and relative_step off."""
    outside = [FACTORED, clipped_updates(1.0)]
    decay = float(_attribute(arguments, "weight_decay"))
    if decay:
        outside.append(decoupled_decay(decay))
    return Method(rate, 0, 1 - t ** as_schedule(-0.8)), outside


def _optimizer_settings(arguments: Any) -> dict[str, str]:
    """`optim_args`, which Trainer writes as "name=value, name=value"."""
    text = str(getattr(arguments, "optim_args", None) or "")
    pairs = [part.partition("=") for part in text.replace(" ", "").split(",") if "=" in part]
    return {name: value for name, _, value in pairs}


def _decay_in_gradient(arguments: Any) -> list[str]:
    """Trainer gives `weight_decay` to the parameter groups of every optimizer; these two take it as L2."""
    decay = float(_attribute(arguments, "weight_decay"))
    return [decay_in_gradient(decay)] if decay else []


def _adagrad(arguments: Any, rate: Schedule) -> tuple[Method, list[str]]:
    settings = _optimizer_settings(arguments)
    decayed = rate / (1 + (t - 1) * as_schedule(float(settings.get("lr_decay", 0.0))))
    outside = [start_and_epsilon(0.0, float(settings.get("eps", 1e-10))), *_decay_in_gradient(arguments)]
    return Method(decayed / sqrt(t + 1), 0, 1 - 1 / (t + 1)), outside


def _rmsprop(arguments: Any, rate: Schedule) -> tuple[Method, list[str]]:
    settings = _optimizer_settings(arguments)
    if float(settings.get("momentum", 0.0)) or settings.get("centered", "false").lower() in {
        "true",
        "1",
        "yes",
    }:
        raise AdapterError("RMSprop with momentum or centered=True is outside Generic Adam; expected neither")
    outside = [start_and_epsilon(0.0, float(settings.get("eps", 1e-8))), *_decay_in_gradient(arguments)]
    return Method(rate, 0, float(settings.get("alpha", 0.99))), outside


_OTHERS: dict[str, Callable[[Any, Schedule], tuple[Method, list[str]]]] = {
    "adafactor": _adafactor,
    "adagrad": _adagrad,
    "rmsprop": _rmsprop,
}
