"""Training set-ups for `verify`: what they are made of, and what a case is.

The optimizers here are written out on purpose, the way people write them, apart from the replay that judges them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Case:
    """One set-up with what is claimed of it.

    Attributes:
        name: a short name.
        make: makes a fresh object for `generic_adam.verify`.
        claim: what its owner believed; None where nothing was said.
        category: the right category of the difference; "" where there is none.
        report: the thread that it is modelled on, as repository#number.
    """

    name: str
    make: Callable[[], Any]
    claim: Mapping[str, Any] | Any = None
    category: str = ""
    report: str = ""


SHAPES = {"embed.weight": (8, 6), "layer.weight": (8, 6), "layer.bias": (8,), "head.weight": (5, 3), "scale": (1,)}


def weights(dtype: torch.dtype = torch.float32) -> list[tuple[str, torch.nn.Parameter]]:
    """Return fresh named parameters of a small network."""
    random = torch.Generator().manual_seed(7)
    made = {name: 0.2 * torch.randn(shape, generator=random) for name, shape in SHAPES.items()}
    return [(name, torch.nn.Parameter(value.to(dtype))) for name, value in made.items()]


@dataclass
class Made:
    """The attributes of an object that `make()` may return."""

    named: list[tuple[str, Any]]
    optimizer: Any = None
    scheduler: Any = None
    every: int = 1
    step: Callable[[list[Any]], Any] | None = None
    resume: Callable[[], Any] | None = None
    apply: Callable[[Mapping[str, Any]], Any] | None = None


class Written(torch.optim.Optimizer):
    """Adam with decoupled decay, written out; `fault` names the line that is wrong."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        fault: str = "",
        state_dtype: torch.dtype | None = None,
    ) -> None:
        self.fault, self.state_dtype = fault, state_dtype
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Take a step."""
        self.total = getattr(self, "total", 0)
        for group in self.param_groups:
            with_gradient = [p for p in group["params"] if p.grad is not None]
            for p in with_gradient:
                self._start(p)
                self.state[p]["step"] += 1
            group["step"] = group.get("step", 0) + bool(with_gradient)
            last = self.state[with_gradient[-1]]["step"] if with_gradient else 0
            for p in with_gradient:
                self.total += 1
                count = {"last step": last, "group step": group["step"], "shared step": self.total}.get(self.fault)
                self._update(p, group, self.state[p]["step"] if count is None else count)
            if self.fault == "idle decay":
                for p in group["params"]:
                    if p.grad is None:
                        p.mul_(1 - group["lr"] * group["weight_decay"])

    def _start(self, p: Any) -> None:
        if not self.state[p]:
            kind = self.state_dtype or (torch.float32 if p.dtype in {torch.bfloat16, torch.float16} else p.dtype)
            zeros = torch.zeros_like(p, dtype=kind)
            self.state[p].update(step=0, exp_avg=zeros.clone(), exp_avg_sq=zeros.clone())

    def _update(self, p: Any, group: dict[str, Any], count: int) -> None:
        state, fault = self.state[p], self.fault
        (b1, b2), lr, eps, decay = group["betas"], group["lr"], group["eps"], group["weight_decay"]
        g, x = (
            p.grad.float() if p.dtype != torch.float64 else p.grad,
            p.float() if p.dtype != torch.float64 else p.clone(),
        )
        if fault == "coupled":
            g = g + decay * x
        elif fault == "undiluted decay":
            x = x * (1 - decay)
        elif fault == "double decay":
            g, x = g + decay * x, x * (1 - lr * decay)
        elif fault != "no decay":
            x = x * (1 - lr * decay)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        before = v.clone()
        m.mul_(b1).add_(g.to(m.dtype), alpha=1.0 if fault == "undamped" else 1 - b1)
        square = {"absolute": g.abs(), "of momentum": m * m}.get(fault, g * g)
        v.mul_(1.0 if fault == "forgets nothing" else b2).add_(square.to(v.dtype), alpha=1 - b2)
        v = before if fault == "delayed" else v
        at = {"second step": count + 1, "frozen": 1}.get(fault, count)
        c1, c2 = 1 - b1**at, 1 - b2**at
        c1 = 1.0 if fault in {"uncorrected", "second only"} else c1
        c2 = 1.0 if fault in {"uncorrected", "first only"} else c2
        m, v = m.float() / c1, v.float() if fault == "hat" else v.float() / c2
        if fault == "nesterov":
            m = b1 * m + (1 - b1) * g / c1
        if fault == "hat":
            update = m * math.sqrt(c2) / (v.sqrt() + eps)
        elif fault == "root":
            update = m / (v + eps).sqrt()
        elif fault == "no root":
            update = m / (v + eps)
        else:
            update = m / (v.sqrt() + eps)
        if fault in {"rms clip", "rms clip upside down"}:
            size = update.pow(2).mean().sqrt()
            update = update / (size.clamp(max=1.0) if fault == "rms clip upside down" else size.clamp(min=1.0))
        rate = -lr if fault == "ascends" else lr
        p.copy_((x - rate * update).to(p.dtype))


class Scaler:
    """A loss scaler as toolkits write them: skips what overflows, halves, and unscales."""

    def __init__(self, size: float = 2.0**12) -> None:
        self.size, self.skipped = size, False

    def unscale(self, parameters: list[Any], *, divide: bool = True) -> None:
        """Divide the gradients by the scale, and see whether all are finite."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        self.skipped = any(not bool(torch.isfinite(g).all()) for g in gradients)
        for g in gradients if divide else ():
            g.div_(self.size)


def loop(  # noqa: C901 - one loop, with every fault where it is made
    optimizer: Any,
    named: list[tuple[str, Any]],
    *,
    scheduler: Any = None,
    clip: float | None = None,
    scaler: Scaler | None = None,
    fault: str = "",
) -> Callable[[list[Any]], None]:
    """Return the step of a training loop; `fault` names what is wrong with it."""
    parameters = [p for _, p in named]
    counted = {"steps": 0}

    def step(losses: list[Any]) -> None:  # noqa: C901, PLR0912
        if fault != "never cleared":
            optimizer.zero_grad(set_to_none=fault != "zeros stay")
        for number, loss in enumerate(losses):
            if fault == "cleared each":
                optimizer.zero_grad()
            share = 1 if fault in {"summed", "cleared each"} else len(losses)
            value = loss() / share
            (value * scaler.size if scaler else value).backward()
            if fault == "scheduler each micro-batch":
                scheduler.step()
            if fault == "clip each micro-batch":
                torch.nn.utils.clip_grad_norm_(parameters, clip or 1.0)
            if fault == "first only" and number == 0:
                break
        if scaler and fault != "clip before unscaling":
            scaler.unscale(parameters, divide=fault != "never unscaled")
        if clip is not None:
            _clip(parameters, clip, fault)
        if scaler and fault == "clip before unscaling":
            scaler.unscale(parameters)
        counted["steps"] += 1
        skipped = bool(scaler and scaler.skipped)
        if fault == "scheduler first":
            scheduler.step()
        if not skipped:
            optimizer.step()
        if scheduler is not None and fault not in {"scheduler each micro-batch", "scheduler first"}:
            times = 4 if fault == "scheduler each rank" else 1
            if fault == "scheduler each epoch":
                times = int(counted["steps"] % 10 == 0)
            if skipped and fault != "scheduler goes on":
                times = 0
            for _ in range(times):
                scheduler.step()

    return step


def _clip(parameters: list[Any], limit: float, fault: str) -> None:
    if fault == "clip each parameter":
        for p in parameters:
            torch.nn.utils.clip_grad_norm_([p], limit)
    elif fault == "clip value":
        torch.nn.utils.clip_grad_value_(parameters, limit)
    elif fault == "clip upside down":
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(torch.clamp(norm / limit, min=1.0))
    elif fault not in {"clip each micro-batch", "no clip"}:
        torch.nn.utils.clip_grad_norm_(parameters, limit)


def saved(made: Made, again: Callable[[], Made], fault: str = "") -> Callable[[], Made]:
    """Return a `resume`: weights, optimizer and scheduler through torch.save into fresh objects."""

    def resume() -> Made:
        file = io.BytesIO()
        state = made.optimizer.state_dict()
        clock = made.scheduler.state_dict() if made.scheduler else None
        torch.save({"weights": [p.detach().clone() for _, p in made.named], "optimizer": state, "clock": clock}, file)
        file.seek(0)
        read = torch.load(file, weights_only=True)
        fresh = again()
        with torch.no_grad():
            for (_, p), value in zip(fresh.named, read["weights"], strict=True):
                p.copy_(value.bfloat16().to(p.dtype) if fault == "weights in bf16" else value)
        _load(fresh, read, fault)
        return fresh

    return resume


def _load(fresh: Made, read: dict[str, Any], fault: str) -> None:
    state = read["optimizer"]
    if fault == "no optimizer":
        state = None
    elif fault in {"no steps", "no second moment", "no first moment"}:
        for own in state["state"].values():
            key = {"no steps": "step", "no second moment": "exp_avg_sq", "no first moment": "exp_avg"}[fault]
            own[key] = own[key] * 0
    elif fault == "order":  # the first two have the same shape: nothing complains
        state["state"][0], state["state"][1] = state["state"][1], state["state"][0]
    if state is not None:
        fresh.optimizer.load_state_dict(state)
    if fault == "old rate":
        for group in fresh.optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
        fresh.scheduler = None
    elif fresh.scheduler is not None and fault != "clock anew":
        fresh.scheduler.load_state_dict(read["clock"])


def by_optax(transformation: Callable[[], Any], *, compiled: bool = False) -> Callable[[], Made]:
    """Return what makes a set-up that an Optax transformation drives, not compiled where it counts in Python."""

    def make() -> Made:
        import jax
        import jax.numpy as jnp
        import optax

        rule = transformation()
        made = Made([(name, jnp.asarray(p.detach().numpy())) for name, p in weights()])
        state = rule.init(dict(made.named))
        update: Any = jax.jit(rule.update) if compiled else rule.update

        def apply(gradients: Any) -> None:
            nonlocal state
            values = dict(made.named)
            given = {name: jnp.asarray(gradients[name]) for name in values}
            updates, state = update(given, state, values)
            moved: Any = optax.apply_updates(values, updates)
            made.named = list(moved.items())

        made.apply = apply
        return made

    return make
