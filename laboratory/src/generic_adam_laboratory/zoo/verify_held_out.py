# ruff: noqa: E501 - the tables are read by their columns
"""Set-ups for `verify` that were written after it, from reports alone and without a look at its code.

They judge: what they found is in results/verify beside the zoo that `verify` was made with.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch.optim import lr_scheduler

from generic_adam_laboratory.zoo.verify_cases import Case, Made, by_optax, weights

BF16, DECAYED = torch.bfloat16, {"algorithm": "AdamW", "lr": 2e-3, "betas": (0.9, 0.98), "weight_decay": 0.05}
FLAT = {"layer.bias", "scale"}
Update = Callable[[Any, Any, dict[str, Any], dict[str, Any], int], Any]


class Plain(torch.optim.Optimizer):
    """An optimizer whose step is one function of (weights, gradient, state, group, step): new weights."""

    def __init__(self, params: Any, update: Update, own_count: bool = True, **defaults: Any) -> None:
        self.update, self.own_count, self.calls = update, own_count, 0
        super().__init__(params, {"lr": 2e-3, "betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.05} | defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # noqa: ARG002
        """Take a step."""
        self.calls += 1
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state["n"] = state.get("n", 0) + 1
                    count = state["n"] if self.own_count else self.calls
                    p.copy_(self.update(p.float(), p.grad.float(), state, group, count))


def _moments(g: Any, state: dict[str, Any], group: dict[str, Any], b2: float | None = None, start: float = 0.0) -> Any:
    b1, own = group["betas"]
    b2 = float(own) if b2 is None else b2
    state["m"] = b1 * state.get("m", torch.zeros_like(g)) + (1 - b1) * g
    state["v"] = b2 * state.get("v", torch.full_like(g, start)) + (1 - b2) * g * g
    return state["m"], state["v"]


def _adamw(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    m, v = _moments(g, s, o)
    (b1, b2), lr = o["betas"], o["lr"]
    return x - lr * (m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + o["eps"]) + o["weight_decay"] * x)


def _bert(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: ARG001
    m, v = _moments(g, s, o)
    return x - o["lr"] * (m / (v.sqrt() + o["eps"]) + o["weight_decay"] * x)


def _keras(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    m, v = _moments(g, s, o)
    (b1, b2), lr = o["betas"], o["lr"]
    return x - lr * math.sqrt(1 - b2**t) / (1 - b1**t) * m / (v.sqrt() + o["eps"])


def _keras_decay(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return _adamw(x, g, s, {**o, "lr": o["lr"] / (1 + 0.05 * (t - 1)), "weight_decay": 0.0}, t)


def _rate_squared(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return _adamw(x, g, s, {**o, "weight_decay": o["lr"] * o["weight_decay"]}, t)


def _growing(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    m, v = _moments(g, s, o, 1 - t**-0.8)
    return x - o["lr"] * (m / (1 - 0.9**t) / (v.sqrt() + o["eps"]) + o["weight_decay"] * x)


def _lazy(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    before = {name: s[name].clone() for name in ("m", "v") if name in s}
    new = _adamw(x, g, s, o, t)
    for name, value in before.items():
        s[name] = torch.where(g == 0, value, s[name])
    return torch.where(g == 0, x, new)


def _ones(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: ARG001
    s["v"] = 0.99 * s.get("v", torch.ones_like(g)) + 0.01 * g * g
    return x - o["lr"] * g / (s["v"].sqrt() + o["eps"])


def _half(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    new = _adamw(x, g, s, o, t)
    s["m"], s["v"] = s["m"].half().float(), s["v"].half().float()
    return new


def _one_scale(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    _, v = _moments(g, s, o)
    (b1, b2), lr = o["betas"], o["lr"]
    return x - lr * (s["m"] / (1 - b1**t) / ((v.mean() / (1 - b2**t)).sqrt() + o["eps"]) + o["weight_decay"] * x)


def _plain(update: Update = _adamw, dtype: torch.dtype = torch.float32, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        named = weights(dtype)
        return Made(named, Plain([p for _, p in named], update, **options))

    return make


def _adam(named: Any, **options: Any) -> Any:
    return torch.optim.AdamW(
        [p for _, p in named], **{"lr": 2e-3, "betas": (0.9, 0.98), "weight_decay": 0.05} | options
    )


def _clocked(factor: Callable[[int], float], every: int = 1, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        named = weights()
        optimizer = _adam(named, **options)
        return Made(named, optimizer, lr_scheduler.LambdaLR(optimizer, factor), every)

    return make


def _split(of_weights: dict[str, Any], of_flat: dict[str, Any], overwrite: bool = False) -> Callable[[], Made]:
    """Two groups; a home-made warm-up may write one rate over both."""

    def make() -> Made:
        named = weights()
        groups = [
            {"params": [p for name, p in named if (name in FLAT) == flat], **own}
            for flat, own in ((False, of_weights), (True, of_flat))
        ]
        optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98), weight_decay=0.05)

        def step(losses: list[Any]) -> None:
            for group in optimizer.param_groups if overwrite else ():
                group["lr"] = 2e-3
            optimizer.zero_grad()
            losses[0]().backward()
            optimizer.step()

        return Made(named, optimizer, step=step)

    return make


def _loop(body: Callable[[Any, list[Any], list[Any]], None], kind: Callable[[Any], Any] = _adam) -> Callable[[], Made]:
    """Return what makes a training step, `body(optimizer, parameters, losses)`."""

    def make() -> Made:
        named = weights()
        optimizer = kind(named)
        return Made(named, optimizer, step=lambda losses: body(optimizer, [p for _, p in named], losses))

    return make


def _backward(optimizer: Any, losses: list[Any], share: float = 1.0) -> None:
    optimizer.zero_grad()
    for loss in losses:
        (share * loss()).backward()


def _sum_then_mean(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:
    _backward(optimizer, losses)
    torch.nn.utils.clip_grad_norm_(parameters, 0.5)
    for p in parameters:
        if p.grad is not None:
            p.grad.div_(len(losses))
    optimizer.step()


def _clip(which: slice, *, late: bool = False) -> Callable[[Any, list[Any], list[Any]], None]:
    def body(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:
        _backward(optimizer, losses, 1 / len(losses))
        if late:
            optimizer.step()
        torch.nn.utils.clip_grad_norm_(parameters[which], 0.5)
        if not late:
            optimizer.step()

    return body


def _cleared_early(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:  # noqa: ARG001
    for loss in losses:
        loss().backward()
    optimizer.zero_grad()
    optimizer.step()


def _summed(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:  # noqa: ARG001
    _backward(optimizer, losses)
    optimizer.step()


def _averaged(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:  # noqa: ARG001
    _backward(optimizer, losses, 1 / len(losses))
    optimizer.step()


def _closure(optimizer: Any, parameters: list[Any], losses: list[Any]) -> None:  # noqa: ARG001
    def closure() -> Any:
        _backward(optimizer, losses)
        return losses[0]()

    optimizer.step(closure)


def _scaled() -> Made:
    """PyTorch's own gradient scaler, with clipping after it has unscaled."""
    named = weights()
    optimizer, scaler = _adam(named), torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step(losses: list[Any]) -> None:
        optimizer.zero_grad()
        for loss in losses:
            scaler.scale(loss() / len(losses)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([p for _, p in named], 0.5)
        scaler.step(optimizer)
        scaler.update()

    return Made(named, optimizer, step=step)


def _in_backward() -> Made:
    """One optimizer for each parameter, stepped as soon as its gradient is there."""
    named = weights()
    each = {p: _adam([(name, p)]) for name, p in named}

    def stepped(p: Any) -> None:
        each[p].step()
        each[p].zero_grad()

    for _, p in named:
        p.register_post_accumulate_grad_hook(stepped)

    def step(losses: list[Any]) -> None:
        losses[0]().backward()

    return Made(named, None, step=step)


def _masters(all_of_them: bool) -> Callable[[], Made]:
    """bfloat16 weights with a float32 copy of each, or of all but the last."""

    def make() -> Made:
        named = weights(BF16)

        def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
            if not all_of_them and x.numel() == 15:
                return _adamw(x, g, s, o, t)
            s["wide"] = _adamw(s.get("wide", x), g, s, o, t)
            return s["wide"]

        return Made(named, Plain([p for _, p in named], update))

    return make


def _saved(fault: str = "") -> Callable[[], Made]:
    def fresh(**options: Any) -> Made:
        named = weights()
        optimizer = _adam(named, **options)
        made = Made(named, optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 80))
        averages = [p.detach().clone() for _, p in named]

        def resume() -> Made:
            file = io.BytesIO()
            kept = [p.detach() for _, p in named]
            for mean, p in zip(averages, kept, strict=True):
                mean.lerp_(p, 0.5)
            torch.save(
                [averages if fault == "averages" else kept, optimizer.state_dict(), made.scheduler.state_dict()], file
            )
            file.seek(0)
            values, state, clock = torch.load(file)
            again = fresh(**({"betas": (0.9, 0.999)} if fault == "betas" else {}))
            for (_, p), value in zip(again.named, values, strict=True):
                p.data.copy_(value)
            if fault == "half":
                for own in state["state"].values():
                    own.update({name: own[name].bfloat16() for name in ("exp_avg", "exp_avg_sq")})
            if fault == "betas":
                for group in state["param_groups"]:
                    group["betas"] = (0.9, 0.999)
            again.optimizer.load_state_dict(state)
            again.scheduler.load_state_dict(clock)
            if fault == "one more":
                again.scheduler.step()
            return again

        made.resume = resume
        return made

    return fresh


def _optax(transformation: Callable[[Any], Any], *, compiled: bool = False) -> Callable[[], Made]:
    return by_optax(lambda: transformation(import_module("optax")), compiled=compiled)


def _kind(kind: str, dtype: torch.dtype = torch.float32, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        named = weights(dtype)
        return Made(named, getattr(torch.optim, kind)([p for _, p in named], **options))

    return make


def _counted() -> Made:
    """Register a hook after each step, as loggers do."""
    named, seen = weights(), []
    optimizer = _adam(named)
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    return Made(named, optimizer)


def _two_formats() -> Made:
    named = weights()
    named = [(name, torch.nn.Parameter(p.detach().double()) if name in FLAT else p) for name, p in named]
    return Made(named, _adam(named, foreach=True))


def _sgd(named: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"lr": 0.05, "momentum": 0.9}
    return torch.optim.SGD([p for _, p in named], **settings | options)


def _cosine(length: int) -> Callable[[int], float]:
    return lambda t: 2e-3 * (1 + math.cos(math.pi * (t - 1) / length)) / 2


RISING = {**DECAYED, "lr": lambda t: 2e-3 * min(1.0, t / 20)}
SGD = {"algorithm": "SGD", "lr": 0.05, "momentum": 0.9}
BOUND = {**DECAYED, "clip_norm": 0.5}
SAVED = {**DECAYED, "lr": _cosine(80)}
ADAM = {"algorithm": "Adam", "lr": 2e-3, "betas": (0.9, 0.98)}
FLAT_PLAIN = {name: {"weight_decay": 0.0} for name in FLAT}
FLAT_FAST = {name: {"lr": 2e-2} for name in FLAT}

WRONG: tuple[Case, ...] = (
    Case("count of all calls", _plain(own_count=False), DECAYED, "step counter", "apex#1615"),
    Case("eps_root set", _optax(lambda o: o.adam(2e-3, b2=0.98, eps_root=1e-8)), ADAM, "epsilon", "optax#882"),
    Case("RMSprop from ones", _plain(_ones, weight_decay=0.0), {"algorithm": "RMSprop", "lr": 2e-3}, "second moment", "pytorch#32545"),
    Case("BERT's Adam", _plain(_bert), DECAYED, "bias correction", "transformers#363"),
    Case("warm-up from 0", _clocked(lambda k: min(1.0, k / 20)), RISING, "schedule", "transformers#27872"),
    Case("cosine over micro-batches", _clocked(lambda k: _cosine(320)(k + 1) / 2e-3), SAVED, "schedule", "transformers#18436"),
    Case("one scheduler step more", _saved("one more"), SAVED, "resume", "Lightning#18588"),
    Case("betas of the checkpoint", _saved("betas"), SAVED, "resume", "Lightning#15462"),
    Case("state saved in bfloat16", _saved("half"), SAVED, "resume", "Paddle#49382"),
    Case("averaged weights loaded", _saved("averages"), SAVED, "resume", "stylegan2-ada#108"),
    Case("the sum is clipped", _loop(_sum_then_mean), {**BOUND, "accumulate": 4}, "clipping", "accelerate#641"),
    Case("only the first is clipped", _loop(_clip(slice(0, 1))), BOUND, "clipping", "transformers#1563"),
    Case("clipped after the step", _loop(_clip(slice(None), late=True)), BOUND, "clipping", "Pytorch-UNet#468"),
    Case("decay times lr squared", _plain(_rate_squared), DECAYED, "weight decay", "pytorch#3740"),
    Case("decay mask upside down", _split({"weight_decay": 0.0}, {}), {**DECAYED, "per": FLAT_PLAIN}, "weight decay", "optax#292"),
    Case("decay of the rate", _plain(_keras_decay), DECAYED, "weight decay", "tensorflow/addons#2282"),
    Case("beta2 grows", _plain(_growing), DECAYED, "betas", "allennlp#2334"),
    Case("rows of zeros wait", _plain(_lazy), DECAYED, "missing gradients", "tensorflow/addons#1"),
    Case("dampened", _kind("SGD", lr=0.05, momentum=0.9, dampening=0.9), SGD, "momentum", "pytorch#1767"),
    Case("one rate over all groups", _split({}, {"lr": 2e-2}, overwrite=True), {**DECAYED, "per": FLAT_FAST}, "learning rate", "sd-scripts#364"),
    Case("maximize left out", _kind("Adam", lr=2e-3, betas=(0.9, 0.98)), {**ADAM, "maximize": True}, "sign", "pytorch#68052"),
    Case("state in float16", _plain(_half), DECAYED, "state precision", "optax#1754"),
    Case("no copy of the head", _masters(all_of_them=False), DECAYED, "lost updates", "Adam-mini#26"),
    Case("cleared before the step", _loop(_cleared_early), DECAYED, "not updated", "examples#1196"),
    Case("SGD on a sum", _loop(_summed, _sgd), {**SGD, "accumulate": 4}, "gradient scale", "super-gradients#653"),
    Case("one second moment a tensor", _plain(_one_scale), DECAYED, "second moment", "Adam-mini#17"),
)  # fmt: skip

RIGHT: tuple[Case, ...] = (
    Case("AdamW, foreach", lambda: Made(named := weights(), _adam(named, foreach=True)), DECAYED),
    Case("AdamW, written", _plain(), DECAYED),
    Case("Adam, written, nothing claimed", _plain(weight_decay=0.0), None),
    Case("Keras's order, claimed", _plain(_keras, weight_decay=0.0), {**ADAM, "eps_place": "hat"}),
    Case("BERT's Adam, claimed", _plain(_bert), {**DECAYED, "bias_correction": False}),
    Case("warm-up from 0, claimed", _clocked(lambda k: min(1.0, k / 20)), {**DECAYED, "lr": lambda t: 2e-3 * min(1.0, (t - 1) / 20)}),
    Case("four micro-batches", _loop(_averaged), {**DECAYED, "accumulate": 4}),
    Case("scaled and clipped", _scaled, {**BOUND, "scaler": True, "accumulate": 2}),
    Case("resumed", _saved(), SAVED),
    Case("float32 copies", _masters(all_of_them=True), DECAYED),
    Case("all bfloat16, claimed", lambda: Made(named := weights(BF16), _adam(named)), {**DECAYED, "state_dtype": "bfloat16"}),
    Case("closure", _loop(_closure, lambda named: _sgd(named, nesterov=True)), {**SGD, "nesterov": True}),
    Case("a hook", _counted, DECAYED),
    Case("stepped in backward", _in_backward, DECAYED),
    Case("tensor rate", lambda: Made(named := weights(), _adam(named, lr=torch.tensor(2e-3))), DECAYED),
    Case("rates of groups, claimed", _split({}, {"lr": 2e-2}), {**DECAYED, "per": FLAT_FAST}),
    Case("scheduler each fifth step", _clocked(lambda k: 0.8**k, every=5), {**DECAYED, "lr": lambda t: 2e-3 * 0.8 ** ((t - 1) // 5)}),
    Case("Optax, injected rate", _optax(lambda o: o.inject_hyperparams(o.adam)(learning_rate=o.linear_schedule(2e-3, 0.0, 50), b2=0.98)), {**ADAM, "lr": lambda t: 2e-3 * (1 - (t - 1) / 50)}),
    Case("Optax, four micro-batches", _optax(lambda o: o.MultiSteps(o.adam(2e-3, b2=0.98), 4), compiled=True), {**ADAM, "accumulate": 4}),
    Case("two formats", _two_formats, DECAYED),
    Case("NAdam, decoupled", _kind("NAdam", lr=2e-3, weight_decay=0.05, decoupled_weight_decay=True), {"algorithm": "NAdam", "lr": 2e-3, "weight_decay": 0.05, "decoupled": True}),
    Case("RMSprop, centered, momentum", _kind("RMSprop", lr=2e-3, centered=True, momentum=0.9), {"algorithm": "RMSprop", "lr": 2e-3, "centered": True, "momentum": 0.9}),
    Case("Adagrad, rate decays, nothing claimed", _kind("Adagrad", lr=0.02, lr_decay=0.1), None),
    Case("maximize, claimed", _kind("Adam", lr=2e-3, betas=(0.9, 0.98), maximize=True), {**ADAM, "maximize": True}),
)  # fmt: skip
