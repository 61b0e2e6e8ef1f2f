"""The algorithm of what a LightningModule's `configure_optimizers` returns; lightning is not imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm

_KEYS = {"optimizer", "lr_scheduler", "monitor"}
_SCHEDULER_KEYS = {"scheduler", "interval", "frequency", "monitor", "strict", "name", "reduce_on_plateau"}


def read_configuration(configuration: Any, *, steps_per_epoch: int | None = None) -> tuple[Algorithm, ...]:
    """The algorithms of the optimizers that `configure_optimizers` returns, in any of its forms.

    Args:
        configuration: an optimizer; a sequence of them; two lists, of optimizers and schedulers; a dictionary
            with "optimizer" and "lr_scheduler"; or a sequence of such dictionaries.
        steps_per_epoch: the optimizer steps of one epoch: needed where a scheduler's interval is "epoch",
            which is Lightning's default, or where its frequency is above 1. Batches count as steps: gradients
            are taken not to be accumulated.

    Returns:
        The algorithms of all optimizers, in order.

    Raises:
        OptimizerError: the configuration cannot be read, or needs steps_per_epoch.
    """
    from generic_adam.adapters.torch import read

    found: list[Algorithm] = []
    for optimizer, scheduler in _pairs(configuration):
        chosen, every = _scheduler_and_pace(scheduler, steps_per_epoch)
        found.append(read(optimizer, chosen, steps_per_scheduler_step=every))
    return tuple(found)


def _pairs(configuration: Any) -> list[tuple[Any, Any]]:
    """(optimizer, its scheduler or None) for each optimizer."""
    if isinstance(configuration, Mapping):
        unknown = set(configuration) - _KEYS
        if unknown or "optimizer" not in configuration:
            raise OptimizerError(
                f"a Lightning configuration has the keys {', '.join(sorted(_KEYS))}; got "
                f"{', '.join(map(str, configuration)) or 'none'}"
            )
        return [(configuration["optimizer"], configuration.get("lr_scheduler"))]
    if isinstance(configuration, Sequence) and not isinstance(configuration, str):
        if len(configuration) == 2 and all(isinstance(part, list) for part in configuration):
            return _matched(*configuration)
        return [pair for part in configuration for pair in _pairs(part)]
    return [(configuration, None)]


def _matched(optimizers: list[Any], schedulers: list[Any]) -> list[tuple[Any, Any]]:
    """Two lists: each scheduler goes with the optimizer that it was made for."""
    for scheduler in map(_inner, schedulers):
        owner = getattr(scheduler, "optimizer", None)
        if not any(owner is optimizer for optimizer in optimizers):
            raise OptimizerError(
                f"a {type(scheduler).__name__} drives none of the optimizers; expected one made for them"
            )
    pairs: list[tuple[Any, Any]] = []
    for optimizer in optimizers:
        own = [one for one in schedulers if getattr(_inner(one), "optimizer", None) is optimizer]
        if len(own) > 1:
            raise OptimizerError(
                f"{len(own)} schedulers drive one {type(optimizer).__name__}; expected at most one"
            )
        pairs.append((optimizer, own[0] if own else None))
    return pairs


def _inner(scheduler: Any) -> Any:
    return scheduler.get("scheduler") if isinstance(scheduler, Mapping) else scheduler


def _scheduler_and_pace(scheduler: Any, steps_per_epoch: int | None) -> tuple[Any, int]:
    """The scheduler itself, and the optimizer steps for each of its own."""
    if scheduler is None:
        return None, 1
    settings = scheduler if isinstance(scheduler, Mapping) else {"scheduler": scheduler}
    unknown = set(settings) - _SCHEDULER_KEYS
    if unknown or settings.get("scheduler") is None:
        raise OptimizerError(
            f"a Lightning lr_scheduler has the keys {', '.join(sorted(_SCHEDULER_KEYS))}; got "
            f"{', '.join(map(str, settings)) or 'none'}"
        )
    interval, frequency = settings.get("interval", "epoch"), settings.get("frequency", 1)
    if interval not in {"step", "epoch"} or not isinstance(frequency, int) or frequency < 1:
        raise OptimizerError(
            f"expected interval 'step' or 'epoch' and a frequency >= 1, got {interval!r} and {frequency!r}"
        )
    if interval == "step":
        _check_even(frequency, steps_per_epoch)
        return settings["scheduler"], frequency
    if steps_per_epoch is None:
        raise OptimizerError(
            "the scheduler steps once an epoch (Lightning's default): expected the number of optimizer "
            "steps in an epoch as well"
        )
    return settings["scheduler"], frequency * steps_per_epoch


def _check_even(frequency: int, steps_per_epoch: int | None) -> None:
    """Lightning counts batches for `frequency` anew in each epoch: an even pace needs one that divides it."""
    if frequency > 1 and (steps_per_epoch is None or steps_per_epoch % frequency):
        length = "is not given" if steps_per_epoch is None else f"has {steps_per_epoch} steps"
        raise OptimizerError(
            f"Lightning counts a frequency of {frequency} steps anew in each epoch, and an epoch {length}; "
            "expected steps in an epoch that it divides"
        )
