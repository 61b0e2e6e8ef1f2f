"""One door for all that can be read: an optimizer, a pair, Lightning's configuration, Trainer's arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from generic_adam.adapters.lightning import read_configuration
from generic_adam.adapters.reading import AdapterError, Reading
from generic_adam.adapters.trainer import read_training_arguments
from generic_adam.methods import Method


def read_anything(
    subject: Any,
    scheduler: Any = None,
    *,
    steps_per_scheduler_step: int | None = None,
    steps: int | None = None,
) -> tuple[Reading, ...]:
    """The methods of whatever a training script has at hand.

    Args:
        subject: a torch optimizer; a pair (optimizer, scheduler); what Lightning's `configure_optimizers`
            returns; transformers.TrainingArguments; or a Method, which is read as it is.
        scheduler: the scheduler of a torch optimizer.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None means 1, except
            that a Lightning scheduler with the interval "epoch" has to be told the length of an epoch.
        steps: the number of steps, where Trainer's arguments do not say.

    Raises:
        AdapterError: it is none of these, or cannot be read.
    """
    if isinstance(subject, Method):
        return (Reading(subject, "Method"),)
    if _is_optimizer(subject):
        from generic_adam.adapters.torch import read

        every = 1 if steps_per_scheduler_step is None else steps_per_scheduler_step
        return read(subject, scheduler, steps_per_scheduler_step=every)
    if scheduler is not None:
        raise AdapterError(f"a scheduler goes with a torch optimizer, not with {type(subject).__name__}")
    if hasattr(subject, "lr_scheduler_type") and hasattr(subject, "optim"):
        return (read_training_arguments(subject, steps=steps),)
    if isinstance(subject, tuple) and len(subject) == 2 and _is_optimizer(subject[0]):
        optimizer, partner = subject
        if partner is None or not _is_optimizer(partner):
            return read_anything(optimizer, partner, steps_per_scheduler_step=steps_per_scheduler_step)
    if isinstance(subject, Mapping | list | tuple) and len(subject) > 0:
        return read_configuration(subject, steps_per_epoch=steps_per_scheduler_step)
    raise AdapterError(
        f"cannot read a {type(subject).__name__}; expected a torch optimizer, (optimizer, scheduler), "
        "a Lightning configuration or transformers.TrainingArguments"
    )


def _is_optimizer(value: Any) -> bool:
    # Whoever holds an optimizer has imported torch: without it there is none to recognise.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)
