"""Reads an Algorithm off what people have: a torch optimizer and scheduler, a Trainer's arguments, a file.

Nothing here is imported by `import generic_adam`, and no framework is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from typing import Any

from generic_adam.adapters.clock import Clock, length_of_epoch
from generic_adam.adapters.plain import read_config, read_trainer
from generic_adam.adapters.transformation import read_transformation
from generic_adam.adapters.updates import clipped
from generic_adam.errors import OptimizerError, told_as
from generic_adam.methods import Algorithm, Method, as_algorithm, merged

__all__ = ["load", "read", "read_config"]


def read(
    subject: Any, scheduler: Any = None, *, steps_per_scheduler_step: int | None = None, steps: int | None = None
) -> Algorithm:
    """Return the algorithm of whatever a training script has; groups with other sequences are its `others`.

    Args:
        subject: a torch optimizer; a pair (optimizer, scheduler); a LightningModule or what its `configure_optimizers`
            returns, in any form; transformers' Trainer or TrainingArguments; an Optax transformation; or a Method or
            an Algorithm. An optimizer with a method algorithm_of(group, lr, beta) says itself what it does to a
            parameter group, with lr_t and beta_t where a scheduler drives them.
        scheduler: the scheduler of a torch optimizer.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None means 1, except
            that a Lightning scheduler with the interval "epoch" has to be told the length of an epoch.
        steps: the number of steps, where Trainer's arguments do not say.
    """
    with told_as(OptimizerError, f"{type(subject).__name__} cannot be read:"):
        if steps_per_scheduler_step is not None:
            Clock(steps_per_scheduler_step)  # refused where it is no pace, with a scheduler or without
        if isinstance(subject, Method | Algorithm):
            return as_algorithm(subject)
        is_optimizer = partial(_is_of, "torch", "optim.Optimizer")
        if scheduler is not None and not is_optimizer(subject):
            raise OptimizerError(f"a scheduler goes with a torch optimizer, not with {type(subject).__name__}")
        if hasattr(subject, "create_optimizer_and_scheduler"):
            return _of_trainer(subject, steps)
        if hasattr(subject, "lr_scheduler_type") and hasattr(subject, "optim"):
            return read_trainer(subject, steps=steps)
        if callable(getattr(subject, "configure_optimizers", None)):
            subject = subject.configure_optimizers()
        if _is_of("optax", "GradientTransformation", subject):
            return read_transformation(subject)
        pace = steps_per_scheduler_step
        if is_optimizer(subject):
            found = [(subject, scheduler, pace)]
        elif isinstance(subject, tuple) and list(map(is_optimizer, subject)) == [True, False]:
            found = [(*subject, pace)]
        elif isinstance(subject, Mapping | list | tuple) and len(subject) > 0:
            found = [(optimizer, *_scheduler_and_pace(wanted, pace)) for optimizer, wanted in _pairs(subject)]
        else:
            raise OptimizerError(
                f"cannot read a {type(subject).__name__}; expected a Method or an Algorithm, a torch optimizer, "
                "(optimizer, scheduler), a LightningModule or what its configure_optimizers returns, a Trainer or "
                "transformers.TrainingArguments, or an Optax transformation"
            )
        from generic_adam.adapters.torch import read as read_optimizer

        each = [read_optimizer(one, its, steps_per_scheduler_step=every) for one, its, every in found]
        return each[0] if len(each) == 1 else merged([part for one in each for part in one.parts])


def _of_trainer(trainer: Any, steps: int | None) -> Algorithm:
    """Return the algorithm of what a Trainer has made, or by its arguments of what it will make."""
    made = (trainer.optimizer, trainer.lr_scheduler)
    if None not in made:
        return read_made(*made, float(trainer.args.max_grad_norm or 0), steps)
    makes = (trainer.create_optimizer, trainer.create_scheduler, trainer.get_optimizer_cls_and_kwargs)
    own = made != (None, None) or trainer.optimizer_cls_and_kwargs is not None
    if own or any(one.__module__ != "transformers.trainer" for one in makes):
        said = "has an optimizer of its own; expected both made, by trainer.create_optimizer_and_scheduler(steps)"
        raise OptimizerError(f"{type(trainer).__name__} {said}")
    return read_trainer(trainer.args, steps=steps)


def read_made(subject: Any, scheduler: Any, norm: float, steps: int | None) -> Algorithm:
    """Return what `read` does, with gradients clipped to a norm (0 for none), over a number of steps."""
    parts = read(subject, scheduler).parts
    return merged([clipped(part, norm, horizon=steps or part.horizon) for part in parts])


def _is_of(package: str, path: str, value: Any) -> bool:
    """Return whether a value is of a package's class; whoever holds one has imported the package."""
    return package in sys.modules and isinstance(value, attrgetter(path)(sys.modules[package]))


def _known_keys(what: str, given: Mapping[Any, Any], known: set[str], needed: str) -> None:
    if set(given) - known or given.get(needed) is None:
        got = ", ".join(map(str, given)) or "none"
        raise OptimizerError(f"a Lightning {what} has the keys {', '.join(sorted(known))}; got {got}")


def _pairs(configuration: Any) -> list[tuple[Any, Any]]:
    """Return (optimizer, its scheduler or None) for each optimizer."""
    if isinstance(configuration, Mapping):
        _known_keys("configuration", configuration, {"optimizer", "lr_scheduler", "monitor"}, "optimizer")
        return [(configuration["optimizer"], configuration.get("lr_scheduler"))]
    if isinstance(configuration, Sequence) and not isinstance(configuration, str):
        if len(configuration) == 2 and all(isinstance(part, list) for part in configuration):
            return _matched(*configuration)
        return [pair for part in configuration for pair in _pairs(part)]
    return [(configuration, None)]


def _matched(optimizers: list[Any], schedulers: list[Any]) -> list[tuple[Any, Any]]:
    """Pair each optimizer with the scheduler that was made for it."""
    own: dict[int, list[Any]] = {id(optimizer): [] for optimizer in optimizers}
    for one in schedulers:
        inner = one.get("scheduler") if isinstance(one, Mapping) else one
        driven = getattr(inner, "optimizer", None)
        if id(driven) not in own:
            raise OptimizerError(f"a {type(inner).__name__} drives none of the optimizers; expected one made for them")
        if own[id(driven)]:
            raise OptimizerError(f"2 schedulers drive one {type(driven).__name__}; expected at most one")
        own[id(driven)].append(one)
    return [(optimizer, *(own[id(optimizer)] or [None])) for optimizer in optimizers]


_SCHEDULER_KEYS = {"scheduler", "interval", "frequency", "monitor", "strict", "name", "reduce_on_plateau"}


def _scheduler_and_pace(scheduler: Any, steps_per_epoch: int | None) -> tuple[Any, int]:
    """Return the scheduler itself, and the optimizer steps for each of its own.

    Batches count as steps: gradients are taken not to be accumulated.
    """
    if scheduler is None:
        return None, 1
    settings = scheduler if isinstance(scheduler, Mapping) else {"scheduler": scheduler}
    _known_keys("lr_scheduler", settings, _SCHEDULER_KEYS, "scheduler")
    interval, frequency = settings.get("interval", "epoch"), settings.get("frequency", 1)
    if interval not in {"step", "epoch"} or not isinstance(frequency, int) or frequency < 1:
        said = f"got {interval!r} and {frequency!r}"
        raise OptimizerError(f"expected interval 'step' or 'epoch' and a frequency >= 1, {said}")
    if interval == "epoch":
        every = length_of_epoch("the scheduler steps once an epoch (Lightning's default)", steps_per_epoch)
        return settings["scheduler"], frequency * every
    # Lightning counts batches for `frequency` anew in each epoch: an even pace needs one that divides it.
    said = f"Lightning counts a frequency of {frequency} steps anew in each epoch"
    if frequency > 1 and length_of_epoch(said, steps_per_epoch) % frequency:
        raise OptimizerError(f"{said}, of {steps_per_epoch} steps; expected a number that it divides")
    return settings["scheduler"], frequency


def load(reference: str) -> Any:
    """Import a module, call a function of it without arguments, and return what it returns.

    Modules are looked for in the working directory too, as `python -m` does, or beside a file that is named. The
    user's own code runs.

    Args:
        reference: such as "train:configure", "package.module:function" or "scripts/train.py:configure".
    """
    module, separator, path = reference.rpartition(":")
    if not separator or not module or not path:
        raise OptimizerError(f"expected package.module:function, got {reference!r}")
    here = str(Path(module).resolve().parent if module.endswith(".py") else Path.cwd())
    sys.path.insert(0, here)
    try:
        with told_as(OptimizerError, f"{reference} raised"):
            try:
                function = attrgetter(path)(_import(module, here))
            except AttributeError:
                said = f"{module} has no {path!r}; expected a function that returns an optimizer"
                raise OptimizerError(said) from None
            if not callable(function):
                said = f"{reference} is a {type(function).__name__}; expected a function without arguments"
                raise OptimizerError(said)
            return function()
    finally:
        with suppress(ValueError):  # the user's code may have taken it away itself
            sys.path.remove(here)


class _Uncached(SourceFileLoader):
    """Runs the text of a file: bytecode of a second ago passes for that of a file edited since."""

    def path_stats(self, path: Any) -> Any:
        """Know no time of the file, so that no bytecode is read or written."""
        raise OSError(path)


def _import(name: str, here: str) -> Any:
    with told_as(OptimizerError, f"importing {name} raised"):
        if not name.endswith(".py"):
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as missing:
                if not f"{name}.".startswith(f"{missing.name}."):
                    raise
                said = f"no module named {missing.name!r}, looked for in {here} and Python's path"
                raise OptimizerError(said) from missing
        # The file itself, whatever else goes by its name.
        file = Path(name)
        spec = spec_from_file_location(file.stem, file, loader=_Uncached(file.stem, str(file)))
        if spec is None or spec.loader is None or not file.is_file():
            raise OptimizerError(f"{name} cannot be read: No such file")
        module = module_from_spec(spec)
        sys.modules.setdefault(file.stem, module)
        spec.loader.exec_module(module)
        return module
