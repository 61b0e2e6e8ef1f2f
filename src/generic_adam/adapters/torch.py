"""The algorithm of a live torch optimizer with its scheduler, parameter group by parameter group."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from inspect import getattr_static
from typing import Any

from generic_adam.adapters import updates
from generic_adam.errors import GenericAdamError, OptimizerError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm, merged
from generic_adam.methods.method import read_schedule
from generic_adam.schedules import as_schedule

with from_extra("torch"):
    import torch

    from generic_adam.adapters.rates import Rates, scheduled_rates, steps_taken
    from generic_adam.torch.compat import hooks_after, hooks_before

_ZERO = as_schedule(0)
_WRAPPERS = {"accelerate.optimizer", "pytorch_lightning.core.optimizer", "lightning.pytorch.core.optimizer"}
# The code of the functions that torch wraps around a step: to call hooks, and to count for schedulers.
_HOOKED = torch.optim.Optimizer.profile_hook_step(lambda _: None).__code__


def read(
    optimizer: torch.optim.Optimizer, scheduler: Any = None, *, steps_per_scheduler_step: int | None = None
) -> Algorithm:
    """`generic_adam.adapters.read` for a torch optimizer: one of torch's that are known, or one of ours.

    Nothing of the optimizer or the scheduler is changed. t = 1 is the first step of the whole run, also where
    both have been stepped already: base rates and settings are read from the scheduler's attributes, and its
    present count is checked against them. Parts are in the order of their first parameter group.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise OptimizerError(f"expected a torch optimizer, got {type(optimizer).__name__}")
    optimizer = inside(optimizer)
    update, outside = _update_of(optimizer)
    source, notes = type(optimizer).__name__, ()
    if scheduler is None:
        rates = [_unscheduled(optimizer, group) for group in optimizer.param_groups]
    else:
        scheduler = _scheduler_inside(scheduler)
        _check_belongs(scheduler, optimizer)
        rates = scheduled_rates(scheduler, optimizer, steps_per_scheduler_step)
        source += f" with {type(scheduler).__name__}"
        notes = _apart(optimizer, scheduler, steps_per_scheduler_step or 1)
    own = hasattr(optimizer, "algorithm_of")  # which may know its groups by their identity
    beside = {"largest_lr": optimizer.defaults.get("lr"), "adam_w_mode": getattr(optimizer, "adam_w_mode", None)}
    arguments = getattr(optimizer, "args", None)  # of bitsandbytes, the same for all groups
    beside |= {name: getattr(arguments, name, None) for name in ("optim_bits", "percentile_clipping", "max_unorm")}
    parts = []
    for index, (group, rate) in enumerate(zip(optimizer.param_groups, rates, strict=True)):
        if rate.rate == _ZERO:
            notes += (f"group {index} stands still: its learning rate is 0",)
            continue
        if scheduler is not None:
            _check_drives(scheduler, group, rate)
        try:
            found = update(group if own else group | beside, rate.rate, rate.beta)
        except GenericAdamError as error:
            raise OptimizerError(f"{source}, parameter group {index}: {error}") from error
        if not isinstance(found, Algorithm):
            raise OptimizerError(f"{source}.algorithm_of returned a {type(found).__name__}; expected an Algorithm")
        found = replace(found, outside=(*found.outside, *outside), notes=(*found.notes, *rate.notes))
        parts.append(replace(found, source=source, groups=(index,), horizon=rate.horizon))
    if not parts:
        raise OptimizerError(f"{source}: every learning rate is 0; expected one that is not")
    algorithm = merged(parts)
    return replace(algorithm, notes=(*algorithm.notes, *notes))


def inside(optimizer: Any) -> torch.optim.Optimizer:
    """The optimizer that takes the steps, where accelerate or Lightning has put a class of its own around it."""
    while type(optimizer).__module__ in _WRAPPERS:
        if _bare(optimizer.step) is not _bare(type(optimizer).step):
            raise OptimizerError(f"the step of {type(optimizer).__name__} has been replaced by another function")
        optimizer = optimizer.optimizer
    return optimizer


def _scheduler_inside(scheduler: Any) -> Any:
    """What accelerate has put a class of its own around: it takes a step for every process at once."""
    if type(scheduler).__module__ != "accelerate.scheduler":
        return scheduler
    processes = scheduler.optimizers[0].accelerator_state.num_processes
    if processes > 1 and scheduler.step_with_optimizer and not scheduler.split_batches:
        raise OptimizerError(f"accelerate steps the scheduler {processes} times at each step; expected one process")
    return scheduler.scheduler


def _apart(optimizer: torch.optim.Optimizer, scheduler: Any, every: int) -> tuple[str, ...]:
    """A remark where the optimizer's steps are not those after which its scheduler is where it is."""
    steps = max((int(state["step"]) for state in optimizer.state.values() if "step" in state), default=0)
    taken = steps_taken(scheduler)
    if not steps or taken in {steps // every, (steps - 1) // every}:
        return ()
    return (f"the optimizer has taken {steps} steps and its scheduler {taken}: read as if both began together",)


def _update_of(optimizer: torch.optim.Optimizer) -> tuple[Callable[..., Algorithm], tuple[str, ...]]:
    """The function that reads the optimizer's groups, and what it does beside its class's steps."""
    kind = type(optimizer)
    for base in kind.__mro__:
        if updates.why_not(base) is not None:
            break
        if (known := updates.of_class(base)) is not None:
            return known, _beside(optimizer, base)
        if "algorithm_of" in vars(base):  # its package says itself what it runs
            own = (one for one in kind.__mro__ if _package(one) == _package(base))
            return optimizer.algorithm_of, _beside(optimizer, next(own))  # pyright: ignore[reportAttributeAccessIssue]
    raise updates.not_read(kind)


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _beside(optimizer: torch.optim.Optimizer, known: type[torch.optim.Optimizer]) -> tuple[str, ...]:
    """What it does beside the steps of the class that it is read as."""
    kind, outside = type(optimizer), []
    # What a step calls is private: how the state starts, how a group is updated.
    names = [name for name in dir(known) if name == "step" or re.match("_(?!_)", name)]
    if any(_bare(getattr_static(kind, name)) is not _bare(getattr_static(known, name)) for name in names):
        outside.append(f"{kind.__name__} takes its own steps, which may be others than {known.__name__}'s")
    replaced = {name for name in names if name in vars(optimizer) and callable(getattr(kind, name))}
    if _bare(optimizer.step) is not _bare(kind.step) or replaced - {"step"}:
        outside.append("the optimizer's step has been replaced by another function")
    if getattr(getattr(optimizer, "mng", None), "pid2config", None):
        outside.append("bitsandbytes' GlobalOptimManager has other settings for some parameters")
    # A hook is the user's own code, free to move the weights or their gradients.
    own = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    if own or hooks_before or hooks_after:
        outside.append("hooks run at every step")
    return tuple(outside)


def _bare(step: Any) -> Any:
    """A step without the layers that torch puts around it: hooks, and the count of steps for schedulers."""
    step = getattr(step, "__func__", step)
    while getattr(step, "__code__", None) is _HOOKED or getattr(step, "_wrapped_by_lr_sched", False):
        step = step.__wrapped__
    return step


def _unscheduled(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> Rates:
    # Adafactor's relative steps have no rate, and ask for none.
    rate = read_schedule("lr", 1 if group.get("relative_step") else float(group["lr"]))
    # A scheduler leaves a trace; a loop that writes the rate itself, as nanoGPT's, only another number.
    moved = "initial_lr" in group or (optimizer.state and group["lr"] != optimizer.defaults.get("lr"))
    said = "its learning rate is read as constant; where a scheduler or a loop moves it, hand over the scheduler too"
    return Rates(rate, notes=(said,) if moved else ())


def _check_drives(scheduler: Any, group: dict[str, Any], rate: Rates) -> None:
    """A GenericAdam with a schedule of its own refuses to step once something else writes to that number."""
    for name, written in (("lr", True), ("beta", rate.beta is not None)):
        own = group.get(f"{name}_schedule")
        if written and own is not None:
            said = f"and {type(scheduler).__name__} writes to it too; expected one of the two"
            raise OptimizerError(f"{name} follows the optimizer's own schedule {own}, {said}")


def _check_belongs(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    owner = getattr(scheduler, "optimizer", None)
    if owner is None:
        instead = (
            "; one of the rate goes in as LambdaLR(optimizer, lambda k: rate(k) / lr)" if callable(scheduler) else ""
        )
        raise OptimizerError(f"expected a torch learning-rate scheduler, got {type(scheduler).__name__}{instead}")
    if inside(owner) is not optimizer:
        said = f"belongs to another optimizer ({type(owner).__name__}); expected one made for this one"
        raise OptimizerError(f"{type(scheduler).__name__} {said}")
