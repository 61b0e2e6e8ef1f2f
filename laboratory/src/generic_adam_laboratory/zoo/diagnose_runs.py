"""The trainings of the zoo of `diagnose`: what may go wrong in them, and one loop that runs them all."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from generic_adam.schedules import parse
from generic_adam.torch import GenericAdam, Watch
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.zoo.diagnose_families import FAMILIES
from generic_adam_laboratory.zoo.diagnose_tasks import TASKS, Draw

with for_training():
    import torch
    from torch import Tensor, nn


@dataclass(frozen=True)
class Options:
    """A training, as numbers and names.

    Attributes:
        task: its name in `TASKS`; `kind`, `size`, `batch`, `noise`, `often`, `data` are read there.
        optimizer: a class of torch.optim, "GenericAdam", or one of `FAULTY`.
        lr, beta1, beta2, eps, weight_decay: as torch has them; texts of t where they move.
        amsgrad: torch's.
        schedule: what lr is multiplied with, a text of t.
        clip: the largest norm of the gradient.
        dtype: of the weights.
        scale: what the loss is multiplied with, a text of t.
        event: what happens at step `at` and for `length` steps, of the size `by`.
        change: options that are others from step `change_at` on.
    """

    task: str
    steps: int
    optimizer: str = "AdamW"
    lr: Any = 1e-3
    beta1: Any = 0.9
    beta2: Any = 0.999
    eps: Any = 1e-8
    weight_decay: Any = 0.0
    amsgrad: bool = False
    schedule: str = "1"
    clip: Any = None
    dtype: str = "float32"
    scale: str = "1"
    event: str = ""
    at: int = 0
    length: int = 1
    by: float = 1.0
    kind: str = ""
    size: int = 0
    batch: int = 32
    noise: float = 0.5
    often: float = 0.01
    data: str = ""
    change: Mapping[str, Any] = field(default_factory=dict[str, Any])
    change_at: int = 0


class Uncorrected(torch.optim.AdamW):
    """AdamW whose count of steps is set back at every step, so that the correction of the first step never ends."""

    def step(self, closure: Any = None) -> Any:  # noqa: D102
        for state in self.state.values():
            if "step" in state:
                state["step"].zero_()
        return super().step(closure)


class Repeated(torch.optim.AdamW):
    """AdamW that makes each step sixteen times, as code does that calls `step` once a micro-batch too."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # noqa: D102
        plain = torch.optim.AdamW.step.__wrapped__
        for _ in range(15):
            plain(self)
        return super().step(closure)


class Tenfold(torch.optim.AdamW):
    """AdamW that makes steps ten times as long as its groups say."""

    def step(self, closure: Any = None) -> Any:  # noqa: D102
        for group in self.param_groups:
            group["lr"] = 10 * group["lr"]
        found = super().step(closure)
        for group in self.param_groups:
            group["lr"] = group["lr"] / 10
        return found


class Uphill(torch.optim.AdamW):
    """AdamW that goes against its steps from the 200th on, as a wrapper with a wrong sign does."""

    count = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # noqa: D102
        self.count += 1
        before = [p.clone() for group in self.param_groups for p in group["params"]]
        found = super().step(closure)
        if self.count >= 200:
            for p, was in zip((p for group in self.param_groups for p in group["params"]), before, strict=True):
                p.copy_(2 * was - p)
        return found


FAULTY: Final = {one.__name__: one for one in (Uncorrected, Repeated, Tenfold, Uphill)}


def _bad(o: Options, step: int, x: Tensor, y: Tensor, draw: Draw) -> tuple[Tensor, Tensor]:
    """Return the mini-batch as the event leaves it."""
    if not o.at <= step < o.at + o.length:
        return x, y
    if o.event == "inputs":
        return o.by * x, y
    if o.event == "targets":
        return x, o.by * y
    if o.event == "labels":
        return x, y[torch.randperm(len(y), generator=draw)]
    if o.event == "noise":
        return x + o.by * torch.randn(x.shape, generator=draw), y
    return x, y


def _tamper(o: Options, optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Do to the state what the event says."""
    for state in optimizer.state.values():
        if o.event == "second lost":
            state["exp_avg_sq"].zero_()
        elif o.event == "second scaled":
            state["exp_avg_sq"].mul_(o.by)
        elif o.event == "first scaled":
            state["exp_avg"].mul_(o.by)
    if o.event == "weights":
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(o.by)


@dataclass
class Trace:
    """A training as it was seen.

    Attributes:
        losses: at each step, as the watch was told them.
        plain: without the factor `scale`.
        norms: of the gradient at each step, before clipping.
        rms: the largest sqrt(mean(g^2/v)) of a tensor at each step.
        gap: at the end.
        watch: what looked at it.
    """

    losses: np.ndarray
    plain: np.ndarray
    norms: np.ndarray
    rms: np.ndarray
    gap: float
    watch: Watch | None = None


def _number(text: Any, step: int) -> float:
    """Return a number, or the value of a text at a step."""
    return _parsed(text)(step) if isinstance(text, str) else float(text)


@cache
def _parsed(text: str) -> Any:
    return parse(text)


def _optimizer(o: Options, model: nn.Module) -> torch.optim.Optimizer:
    lr, beta2 = _number(o.lr, 1), _number(o.beta2, 1)
    groups = [{"params": list(model.parameters())}]
    if o.optimizer == "GenericAdam":
        return GenericAdam(groups, lr=o.lr, beta=o.beta1, theta=o.beta2)
    kind: Any = FAULTY.get(o.optimizer) or getattr(torch.optim, o.optimizer)
    if o.optimizer == "RMSprop":
        return kind(groups, lr=lr, alpha=beta2, eps=o.eps, weight_decay=o.weight_decay)
    if o.optimizer == "Adagrad":
        return kind(groups, lr=lr, eps=o.eps)
    rest = {"amsgrad": o.amsgrad} if o.amsgrad else {}
    return kind(groups, lr=lr, betas=(o.beta1, beta2), eps=o.eps, weight_decay=o.weight_decay, **rest)


def _now(o: Options, step: int) -> dict[str, Any]:
    """Return the options that a step is made with."""
    names = ("lr", "schedule", "beta2", "eps", "weight_decay", "clip")
    changed = o.change if o.change and step >= o.change_at else {}
    return {name: getattr(o, name) for name in names} | dict(changed)


def _set(o: Options, optimizer: torch.optim.Optimizer, now: Mapping[str, Any], t: int) -> None:
    for group in optimizer.param_groups if o.optimizer != "GenericAdam" else ():
        group["lr"] = _number(now["lr"], t) * _number(now["schedule"], t)
        if "betas" in group:
            group["betas"] = o.beta1, _number(now["beta2"], t)
        group["eps"] = _number(now["eps"], t)
        group["weight_decay"] = _number(now["weight_decay"], t)


def train(o: Options, seed: int, *, watched: bool = False) -> Trace:
    """Train, and return what was seen; the same every time."""
    torch.manual_seed(seed)
    random.seed(seed)
    draw, order, fresh = (torch.Generator().manual_seed(1000 * seed + n) for n in range(3))
    task = {**TASKS, **FAMILIES}[o.task](o, draw)
    dtype = getattr(torch, o.dtype)
    task.model.to(dtype)
    if o.event == "dead":
        _kill(task.model, o.by)
    optimizer = _optimizer(o, task.model)

    def cast(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() else x

    def probe() -> Tensor:
        x, y = _bad(o, 0 if o.length == 1 else step, *task.draw(fresh), fresh)
        return _number(o.scale, step + 1) * task.loss(cast(x), cast(y))

    step = 0
    watch = None
    if watched:
        watch = Watch(optimizer, probe=probe, on_event=lambda _: None, model=task.model)
    losses, norms, sizes = [], [], []
    parameters = list(task.model.parameters())
    for step in range(o.steps):
        task.tick(step)
        now = _now(o, step)
        if "dtype" in now and dtype != torch.float32:
            dtype = torch.float32
            task.model.to(dtype)
            optimizer.load_state_dict(optimizer.state_dict())  # which brings the moments to the weights' type
        _set(o, optimizer, now, step + 1)
        if step == o.at and step and o.event:
            _tamper(o, optimizer, task.model)
        x, y = _bad(o, step, *task.draw(order), order)
        optimizer.zero_grad()
        loss = _number(o.scale, step + 1) * task.loss(cast(x), cast(y))
        loss.backward()
        most = math.inf if now["clip"] is None else _number(now["clip"], step + 1)
        norm = torch.nn.utils.clip_grad_norm_(parameters, most) if watch is None else watch.clip_grad_norm_(most)
        optimizer.step()
        if watch is not None:
            watch.loss(loss)
            sizes.append(_rms(optimizer, parameters))
        losses.append(loss.detach())
        norms.append(norm.detach())
    if watch is not None:
        watch.detach()
    gap = math.nan if task.gap is None else task.gap()
    columns = [torch.stack(one).double().numpy() for one in (losses, norms)]
    plain = columns[0] / np.array([_number(o.scale, step + 1) for step in range(o.steps)])
    return Trace(columns[0], plain, columns[1], np.array(sizes), gap, watch)


def _kill(model: nn.Module, by: float) -> None:
    """Shift the hidden layers so far down that no unit is on."""
    layers = [one for one in model.modules() if isinstance(one, nn.Linear | nn.Conv2d)]
    with torch.no_grad():
        for layer in layers[:-1]:
            nn.init.constant_(layer.get_parameter("bias"), -by)


def _rms(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> float:
    """Return RMS_t = sqrt(mean(g^2/max(v, eps^2))) of the worst tensor, v corrected, as others use it alone."""
    worst = 0.0
    for p in parameters:
        state = optimizer.state.get(p, {})
        v = state.get("exp_avg_sq", state.get("square_avg"))
        if v is not None and p.grad is not None:
            group = optimizer.param_groups[0]
            theta = group["betas"][1] if "betas" in group else group.get("alpha", 0.0)
            corrected = v / (1 - float(theta) ** max(1.0, float(state["step"]))) if "betas" in group else v
            worst = max(worst, float((p.grad.square() / corrected.clamp_min(1e-16)).mean().sqrt()))
    return worst
