"""Reads the optimizer and the scheduler that belong together, parameter group by parameter group."""

from __future__ import annotations

from typing import Any

import torch

from generic_adam.adapters.clock import Clock
from generic_adam.adapters.reading import AdapterError, Reading, merge_equal
from generic_adam.adapters.torch.optimizers import reader_of
from generic_adam.adapters.torch.rates import Rates, scheduled_rates
from generic_adam.schedules import as_schedule


def read(
    optimizer: torch.optim.Optimizer, scheduler: Any = None, *, steps_per_scheduler_step: int = 1
) -> tuple[Reading, ...]:
    """The methods that an optimizer runs, one for each set of parameter groups that differ.

    Nothing of the optimizer or the scheduler is changed. t = 1 is the first step of the whole run, also where
    both have been stepped already: base rates and settings are read from the scheduler's attributes, and its
    present count is checked against them.

    Args:
        optimizer: a torch.optim Adam, AdamW, RMSprop, Adagrad or Adafactor, or a GenericAdam.
        scheduler: the learning-rate scheduler that drives it, or None.
        steps_per_scheduler_step: how many optimizer steps are made for each `scheduler.step()`: 1, or the
            length of an epoch.

    Returns:
        The readings, in the order of their first parameter group.

    Raises:
        AdapterError: not a Generic Adam, a scheduler of another optimizer, or a state that cannot be read.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise AdapterError(f"expected a torch optimizer, got {type(optimizer).__name__}")
    reader = reader_of(optimizer)
    clock = Clock(steps_per_scheduler_step)
    if scheduler is None:
        rates = [_unscheduled(group) for group in optimizer.param_groups]
    else:
        _check_belongs(scheduler, optimizer)
        rates = scheduled_rates(scheduler, optimizer, clock)
    source = type(optimizer).__name__ + (f" with {type(scheduler).__name__}" if scheduler is not None else "")
    readings = []
    for index, (group, rate) in enumerate(zip(optimizer.param_groups, rates, strict=True)):
        if scheduler is not None:
            _check_drives(scheduler, group, rate)
        found = reader(group, rate.rate, rate.beta)
        notes = (*found.notes, *rate.notes)
        readings.append(Reading(found.method, source, (index,), rate.horizon, found.outside, notes))
    return merge_equal(readings)


def _unscheduled(group: dict[str, Any]) -> Rates:
    rate = as_schedule(float(group["lr"]))
    if "initial_lr" not in group:
        return Rates(rate)
    return Rates(
        rate, notes=("a scheduler has touched this learning rate; it is read as constant without it",)
    )


def _check_drives(scheduler: Any, group: dict[str, Any], rate: Rates) -> None:
    """A GenericAdam with a schedule of its own refuses to step once something else writes to that number."""
    for name, written in (("lr", True), ("beta", rate.beta is not None)):
        own = group.get(f"{name}_schedule")
        if written and own is not None:
            raise AdapterError(
                f"{name} follows the optimizer's own schedule {own}, and {type(scheduler).__name__} writes "
                "to it too; expected one of the two"
            )


def _check_belongs(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    owner = getattr(scheduler, "optimizer", None)
    if owner is None:
        raise AdapterError(f"expected a torch learning-rate scheduler, got {type(scheduler).__name__}")
    if owner is not optimizer:
        raise AdapterError(
            f"{type(scheduler).__name__} belongs to another optimizer ({type(owner).__name__}); "
            "expected one made for the optimizer it is read with"
        )
