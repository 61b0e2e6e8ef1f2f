"""One door for all that can be read: an optimizer, a configuration, arguments, a user's function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generic_adam.adapters.lightning import read_configuration
from generic_adam.adapters.trainer import read_training_arguments
from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, Method, as_algorithm, merged


def read(
    subject: Any,
    scheduler: Any = None,
    *,
    steps_per_scheduler_step: int | None = None,
    steps: int | None = None,
) -> Algorithm:
    """The algorithm of whatever a training script has at hand.

    Args:
        subject: a torch optimizer; a pair (optimizer, scheduler); what Lightning's `configure_optimizers`
            returns; transformers.TrainingArguments; an Optax transformation; or a Method or an Algorithm,
            which are read as they are.
        scheduler: the scheduler of a torch optimizer.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None means 1, except
            that a Lightning scheduler with the interval "epoch" has to be told the length of an epoch.
        steps: the number of steps, where Trainer's arguments do not say.

    Returns:
        One algorithm; parameter groups with other sequences are its `others`.

    Raises:
        OptimizerError: it is none of these, or cannot be read.
    """
    if isinstance(subject, Method | Algorithm):
        return as_algorithm(subject)
    if _is_optimizer(subject):
        from generic_adam.adapters.torch import read as read_optimizer

        return read_optimizer(subject, scheduler, steps_per_scheduler_step=steps_per_scheduler_step)
    if scheduler is not None:
        raise OptimizerError(f"a scheduler goes with a torch optimizer, not with {type(subject).__name__}")
    if hasattr(subject, "lr_scheduler_type") and hasattr(subject, "optim"):
        return read_training_arguments(subject, steps=steps)
    if _is_transformation(subject):
        from generic_adam.adapters.transformation import read_transformation

        return read_transformation(subject)
    if isinstance(subject, tuple) and len(subject) == 2 and _is_optimizer(subject[0]):
        optimizer, partner = subject
        if partner is None or not _is_optimizer(partner):
            return read(optimizer, partner, steps_per_scheduler_step=steps_per_scheduler_step)
    if isinstance(subject, Mapping | list | tuple) and len(subject) > 0:
        found = read_configuration(subject, steps_per_epoch=steps_per_scheduler_step)
        return merged([part for one in found for part in one.parts])
    raise OptimizerError(
        f"cannot read a {type(subject).__name__}; expected a Method or an Algorithm, a torch optimizer, "
        "(optimizer, scheduler), a Lightning configuration, transformers.TrainingArguments or an Optax "
        "transformation"
    )


def _is_optimizer(value: Any) -> bool:
    # Whoever holds an optimizer has imported torch: without it there is none to recognise.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)


def _is_transformation(value: Any) -> bool:
    optax = sys.modules.get("optax")
    if optax is None:
        return False
    return isinstance(value, optax.GradientTransformation)


def load(reference: str) -> Any:
    """Import a module, call a function of it without arguments, and return what it returns.

    The module is looked for in the working directory too, as `python -m` does. It is the user's own code that
    runs.

    Args:
        reference: such as "train:configure" or "package.module:function".

    Raises:
        OptimizerError: the module or the function is not there, or it raised; one line that says which.
    """
    module_name, separator, path = reference.partition(":")
    if not separator or not module_name or not path:
        raise OptimizerError(f"expected package.module:function, got {reference!r}")
    function: Any = _import(module_name)
    for name in path.split("."):
        if not hasattr(function, name):
            raise OptimizerError(
                f"{module_name} has no {path!r}; expected a function that returns an optimizer"
            )
        function = getattr(function, name)
    if not callable(function):
        raise OptimizerError(
            f"{reference} is a {type(function).__name__}; expected a function without arguments"
        )
    try:
        return function()
    except Exception as error:
        raise OptimizerError(f"{reference} raised {_one_line(error)}") from error


def _import(name: str) -> Any:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise OptimizerError(
                f"no module named {missing!r}, looked for in {here} and Python's path"
            ) from error
        raise OptimizerError(f"importing {name} raised {_one_line(error)}") from error
    except Exception as error:
        raise OptimizerError(f"importing {name} raised {_one_line(error)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
