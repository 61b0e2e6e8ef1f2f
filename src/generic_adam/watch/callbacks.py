"""One line among a Trainer's or Lightning's callbacks: the check at the start, and `Watch` during the run.

Training goes on whatever they find: an optimizer that cannot be read, or not watched, is one line with the reason.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from generic_adam.adapters import read, read_made
from generic_adam.errors import GenericAdamError
from generic_adam.extras import from_extra
from generic_adam.methods import Algorithm
from generic_adam.theorems.certificate import certify_algorithm

with from_extra("torch"):
    import torch

    from generic_adam.adapters.torch import inside
    from generic_adam.watch.watch import Watch

__all__ = ["lightning_callback", "trainer_callback"]

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


def trainer_callback(
    out: str | os.PathLike[str] | None = None, say: Callable[[str], object] = print, **options: Any
) -> Any:
    """Return a callback for transformers.Trainer: ``Trainer(..., callbacks=[trainer_callback("run")])``.

    Args:
        out: the directory of the records, as for `Watch`; None keeps them in memory.
        say: takes the check at the start and the diagnosis at the end, as text.
        **options: as for `Watch`: every, probe, on_event, log.
    """
    base = import_module("transformers").TrainerCallback  # which whoever has a Trainer has
    return type("Callback", (_OfTrainer, base), {})(_Run(out, say, options))


def lightning_callback(
    out: str | os.PathLike[str] | None = None, say: Callable[[str], object] = print, **options: Any
) -> Any:
    """Return a callback for Lightning: ``Trainer(..., callbacks=[lightning_callback("run")])``.

    Args:
        out: the directory of the records, as for `Watch`; of several optimizers each has one inside.
        say: takes the check at the start and the diagnosis at the end, as text.
        **options: as for `Watch`: every, probe, on_event, log.
    """
    name = next((one for one in _LIGHTNING if one in sys.modules), None) or _installed(_LIGHTNING)
    return type("Callback", (_OfLightning, import_module(name).Callback), {})(_Run(out, say, options))


class _Run:
    """The work of a callback in either: the check, a Watch for each optimizer, and the diagnosis.

    Attributes:
        watches: those that look at the run.
    """

    def __init__(self, out: Any, say: Callable[[str], object], options: dict[str, Any]) -> None:
        self.watches: list[Watch] = []
        self._out, self._say, self._options = out, say, options
        self._of: dict[int, Watch] = {}

    def begin(self, found: Sequence[tuple[Any, Callable[[], Algorithm]]], model: Any) -> None:
        """Say what is guaranteed for each optimizer, and watch it."""
        for index, (optimizer, reading) in enumerate(found):
            with self._told("the check says nothing of this run"):
                self._say(str(certify_algorithm(reading())))
            with self._told("this run is not watched"):
                out = self._out if self._out is None or len(found) == 1 else Path(self._out) / str(index)
                watch = Watch(inside(optimizer), out, model=model, **self._options)
                self.watches.append(watch)
                self._of[id(inside(optimizer))] = watch

    def of(self, optimizer: Any) -> Watch | None:
        """Return what watches an optimizer."""
        return self._of.get(id(inside(optimizer)))

    def end(self) -> None:
        """Say what was found; nothing is left on the optimizers."""
        for watch in self.watches:
            self._say(str(watch.diagnose()))
            watch.detach()
        self._of = {}

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except GenericAdamError as error:
            self._say(f"generic-adam: {what}: {error}")


class _OfTrainer:
    """The methods that Trainer calls; `watches` are those that look at the run."""

    def __init__(self, run: _Run) -> None:
        self._run, self.watches = run, run.watches
        self._losses: list[torch.Tensor] = []
        self._hook: Any = None

    def on_train_begin(self, args: Any, state: Any, _control: Any, **given: Any) -> None:
        if not state.is_world_process_zero:
            return
        optimizer, scheduler, model = (given.get(one) for one in ("optimizer", "lr_scheduler", "model"))
        norm = float(args.max_grad_norm or 0)
        self._run.begin([(optimizer, lambda: read_made(optimizer, scheduler, norm, state.max_steps))], model)
        if self.watches and model is not None:
            self._hook = model.register_forward_hook(self._keep_loss)

    def _keep_loss(self, module: Any, _: Any, output: Any) -> None:
        loss = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)
        if module.training and isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        losses, self._losses = self._losses, []
        for watch in self.watches if len(losses) == 1 else ():
            watch.loss(losses[0])

    def on_log(self, args: Any, _state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        logs = logs or {}
        for watch in self.watches:
            if "loss" in logs and (self._hook is None or args.gradient_accumulation_steps > 1):
                watch.loss(float(logs["loss"]))  # a step's batches have a loss of their own each
            if "grad_norm" in logs and args.max_grad_norm:
                watch.clipped(float(logs["grad_norm"]), float(args.max_grad_norm))

    def on_train_end(self, *_: Any, **__: Any) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._run.end()


class _OfLightning:
    """The methods that Lightning calls; `watches` are those that look at the run."""

    def __init__(self, run: _Run) -> None:
        self._run, self.watches = run, run.watches
        self._loss: Any = 0.0
        self._step = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if not trainer.is_global_zero:
            return
        schedulers = {id(one.scheduler.optimizer): one for one in trainer.lr_scheduler_configs}
        batches, steps = trainer.num_training_batches, trainer.estimated_stepping_batches
        pace = math.ceil(batches / trainer.accumulate_grad_batches) if math.isfinite(batches) else None
        steps = int(steps) if math.isfinite(steps) and steps > 0 else None

        def reading(optimizer: Any) -> Algorithm:
            given, scheduler = {"optimizer": optimizer}, schedulers.get(id(optimizer))
            if scheduler is not None:
                names = ("scheduler", "interval", "frequency")
                given["lr_scheduler"] = {one: getattr(scheduler, one) for one in names}
            return read_made(read(given, steps_per_scheduler_step=pace), None, _limit(trainer), steps)

        self._step = trainer.global_step
        self._run.begin([(one, partial(reading, one)) for one in trainer.optimizers], module)

    def on_before_optimizer_step(self, trainer: Any, _module: Any, optimizer: Any) -> None:
        watch, limit = self._run.of(optimizer), _limit(trainer)
        if watch is not None and limit:
            grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            watch.clipped(torch.nn.utils.get_total_norm(grads), limit)

    def on_train_batch_end(self, trainer: Any, _module: Any, outputs: Any, *_: Any) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        # Of gradients that are accumulated, Lightning gives each batch its share of the loss.
        self._loss += math.nan if loss is None else torch.as_tensor(loss).detach()
        if trainer.global_step > self._step:
            for watch in self.watches if loss is not None else ():
                watch.loss(self._loss)
            self._loss, self._step = 0.0, trainer.global_step

    def on_train_end(self, *_: Any) -> None:
        self._run.end()

    def on_exception(self, *_: Any) -> None:
        self._run.end()


def _limit(trainer: Any) -> float:
    """Return the norm to which Lightning clips gradients; 0 where it does not."""
    by_norm = trainer.gradient_clip_algorithm in {None, "norm"}
    return float(trainer.gradient_clip_val or 0) if by_norm else 0.0


def _installed(names: Sequence[str]) -> str:
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError:
            continue
        return name
    raise ModuleNotFoundError(f"Lightning is not installed; expected {' or '.join(names)}")
