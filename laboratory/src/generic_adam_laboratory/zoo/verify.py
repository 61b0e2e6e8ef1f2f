# ruff: noqa: E501 - the tables are read by their columns
"""Forty and more wrong set-ups, each modelled on a report, and sixty right ones, for `generic_adam.verify`.

Cases are numbered as they stand; those of even number are for tuning, the others for judging (`halves`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import torch
from torch.optim import lr_scheduler

from generic_adam_laboratory.zoo.verify_cases import Case, Made, Scaler, Written, by_optax, loop, saved, weights

ADAMW = {"algorithm": "AdamW", "lr": 1e-3, "weight_decay": 0.1}


def _written(fault: str = "", dtype: torch.dtype = torch.float32, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        named = weights(dtype)
        return Made(named, Written([p for _, p in named], **{"weight_decay": 0.1, "fault": fault} | options))

    return make


def _torch(kind: str, dtype: torch.dtype = torch.float32, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        named = weights(dtype)
        return Made(named, getattr(torch.optim, kind)([p for _, p in named], **options))

    return make


def _looped(
    fault: str = "",
    *,
    clip: float | None = None,
    scaled: bool = False,
    warm_up: int = 0,
    make: Callable[..., Any] = torch.optim.AdamW,
    **options: Any,
) -> Callable[[], Made]:
    def made() -> Made:
        named = weights()
        optimizer = make([p for _, p in named], **{"lr": 1e-3, "weight_decay": 0.1} | options)
        scheduler = _warm_up(optimizer, warm_up) if warm_up else None
        step = loop(optimizer, named, scheduler=scheduler, clip=clip, scaler=Scaler() if scaled else None, fault=fault)
        return Made(named, optimizer, scheduler, step=step)

    return made


def _warm_up(optimizer: Any, steps: int) -> Any:
    return lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / steps))


def _warming(steps: int, lr: float = 1e-3) -> Callable[[int], float]:
    return lambda t: lr * min(1.0, t / steps)


def _resumed(fault: str = "", *, warm_up: int = 60, make: Callable[..., Any] = torch.optim.AdamW) -> Callable[[], Made]:
    def fresh() -> Made:
        named = weights()
        optimizer = make([p for _, p in named], lr=1e-3, weight_decay=0.1)
        made = Made(named, optimizer, _warm_up(optimizer, warm_up) if warm_up else None)
        made.resume = saved(made, fresh, fault)
        return made

    return fresh


def _groups(*, bias_decays: bool = False, forgets: str = "", beta2: float = 0.999) -> Callable[[], Made]:
    def make() -> Made:
        named = weights()
        decayed = [p for name, p in named if p.dim() > 1 and name != forgets]
        plain = [p for name, p in named if p.dim() < 2 and name != forgets]
        groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.1 if bias_decays else 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
        optimizer.param_groups[1]["betas"] = (0.9, beta2)
        return Made(named, optimizer)

    return make


NO_DECAY = {name: {"weight_decay": 0.0} for name in ("layer.bias", "scale")}
WARM = {**ADAMW, "lr": _warming(40)}


class _SilentCycle(lr_scheduler.LambdaLR):
    """A scheduler that sets beta2 beside the rate, as one widely used did."""

    def step(self, epoch: Any = None) -> None:
        super().step(epoch)
        for group in self.optimizer.param_groups:
            group["betas"] = (group["betas"][0], 0.99)


def _cycled() -> Made:
    named = weights()
    optimizer = torch.optim.AdamW([p for _, p in named], lr=1e-3, weight_decay=0.1)
    return Made(named, optimizer, _SilentCycle(optimizer, lambda _: 1.0))


def _one_cycle() -> Made:
    named = weights()
    optimizer = torch.optim.AdamW([p for _, p in named], lr=1e-3, weight_decay=0.1)
    return Made(named, optimizer, lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=60))


def _one_cycle_rate(t: int) -> float:
    """OneCycleLR's rate at step t of 60: up from 4e-5 over 18 steps, down to 4e-9, both along half a cosine."""
    up = t <= 18
    start, end, done = (1e-3 / 25, 1e-3, (t - 1) / 17) if up else (1e-3, 1e-3 / 25 / 1e4, (t - 18) / 42)
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


def _rmsprop(*, inside: bool = False, rate_in: bool = False, warm_up: int = 0) -> Callable[[], Made]:
    class RMSprop(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure: Any = None) -> None:  # noqa: ARG002
            for group in self.param_groups:
                lr = group["lr"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    s = self.state[p]
                    if not s:
                        s.update(v=torch.zeros_like(p), buf=torch.zeros_like(p))
                    s["v"].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
                    root = (s["v"] + 1e-8).sqrt() if inside else s["v"].sqrt() + 1e-8
                    if rate_in:
                        s["buf"].mul_(0.9).add_(p.grad / root, alpha=lr)
                        p.sub_(s["buf"])
                    else:
                        s["buf"].mul_(0.9).add_(p.grad / root)
                        p.sub_(s["buf"], alpha=lr)

    def make() -> Made:
        named = weights()
        optimizer = RMSprop([p for _, p in named], {"lr": 1e-3})
        return Made(named, optimizer, _warm_up(optimizer, warm_up) if warm_up else None)

    return make


def _frozen() -> Made:
    named = weights()
    return Made(named, torch.optim.AdamW([p for name, p in named if name != "head.weight"], lr=1e-3, weight_decay=0.1))


def _masters(*, keeps: bool = True) -> Callable[[], Made]:
    """bfloat16 weights with an optimizer of float32 copies, or one that forgets to write them back."""

    def make() -> Made:
        named = weights(torch.bfloat16)
        copies = [torch.nn.Parameter(p.detach().float()) for _, p in named]
        inner = torch.optim.AdamW(copies, lr=1e-3, weight_decay=0.1)

        class Masters(torch.optim.Optimizer):
            def step(self, closure: Any = None) -> None:  # noqa: ARG002
                for (name, p), copy in zip(named, copies, strict=True):
                    copy.grad = None if p.grad is None else p.grad.float()
                    if not keeps and name == "head.weight":
                        copy.grad = None
                inner.step()
                with torch.no_grad():
                    for (_, p), copy in zip(named, copies, strict=True):
                        p.copy_(copy)

        return Made(named, Masters([p for _, p in named], {"lr": 1e-3}))

    return make


def _stochastic() -> Made:
    named = weights(torch.bfloat16)
    random = torch.Generator().manual_seed(3)

    class Rounded(Written):
        def _update(self, p: Any, group: dict[str, Any], count: int) -> None:
            wide = torch.nn.Parameter(p.detach().float())
            wide.grad = p.grad.float()
            self.state[wide] = self.state[p]
            super()._update(wide, group, count)
            del self.state[wide]
            bits = wide.detach().view(torch.int32)
            noise = torch.randint(0, 1 << 16, bits.shape, generator=random, dtype=torch.int32)
            p.copy_(((bits + noise) & -65536).view(torch.float32).to(p.dtype))

    return Made(named, Rounded([p for _, p in named], weight_decay=0.1))


def _o(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import optax

        return getattr(optax, name)(**options)

    return make


def _chained(clip: float, *names: Callable[[], Any]) -> Callable[[], Any]:
    def make() -> Any:
        import optax

        return optax.chain(optax.clip_by_global_norm(clip), *(one() for one in names))

    return make


BF16 = torch.bfloat16
CLIPPED = {**ADAMW, "clip_norm": 1.0}
MICRO = {**ADAMW, "accumulate": 4}

WRONG: tuple[Case, ...] = (
    Case("last parameter's step for all", _written("last step"), ADAMW, "step counter", "DeepSpeed#8471"),
    Case("count of the group", _written("group step"), ADAMW, "step counter", "apex#1615"),
    Case("one count moved by every parameter", _written("shared step"), ADAMW, "step counter", "oneflow#3501"),
    Case("count from 2", _written("second step"), ADAMW, "step counter", "spd#616"),
    Case("count stays at 1", _written("frozen"), ADAMW, "step counter", "ML-From-Scratch#35"),
    Case("no bias correction", _written("uncorrected"), ADAMW, "bias correction", "holocron#1"),
    Case("first moment alone corrected", _written("first only"), ADAMW, "bias correction", "blocks#1175"),
    Case("second moment alone corrected", _written("second only"), ADAMW, "bias correction", "Mocha.jl#104"),
    Case("eps before the correction", _written("hat", eps=1e-6), {**ADAMW, "eps": 1e-6}, "epsilon", "tensorflow#9047"),
    Case("eps under the root", _written("root"), ADAMW, "epsilon", "pytorch#104857"),
    Case("eps 1e-5 for 1e-8", _torch("AdamW", eps=1e-5, weight_decay=0.1), ADAMW, "epsilon", "optax#1769"),
    Case("L2 under the name of AdamW", _written("coupled"), ADAMW, "weight decay", "pytorch#4429"),
    Case("decay without lr", _written("undiluted decay"), ADAMW, "weight decay", "tensorflow/addons#844"),
    Case("decay twice", _written("double decay"), ADAMW, "weight decay", "apex#1849"),
    Case("decay left out", _written("no decay"), ADAMW, "weight decay", "optax#292"),
    Case("biases decay", _groups(bias_decays=True), {**ADAMW, "per": NO_DECAY}, "weight decay", "neural-fortran#152"),
    Case("decay where there is no gradient", _written("idle decay"), ADAMW, "missing gradients", "levanter#1147"),
    Case("moments in bf16", _torch("AdamW", BF16, weight_decay=0.1), ADAMW, "state precision", "areal#1292"),
    Case("moments in bf16, float32 weights", _written(state_dtype=BF16), ADAMW, "state precision", "torchtitan#2732"),
    Case("bf16 weights without copies", _written(dtype=BF16), ADAMW, "lost updates", "torchao#1124"),
    Case("bf16 weights, small rate", _written(dtype=BF16, lr=1e-4), {**ADAMW, "lr": 1e-4}, "lost updates", "ml-by-hand#85"),
    Case("scheduler each micro-batch", _looped("scheduler each micro-batch", warm_up=40), {**WARM, "accumulate": 4}, "schedule", "transformers#18436"),
    Case("warm-up in epochs", _looped("scheduler each epoch", warm_up=40), WARM, "schedule", "ACE-Step#198"),
    Case("scheduler once per rank", _looped("scheduler each rank", warm_up=40), WARM, "schedule", "accelerate#963"),
    Case("scheduler before the optimizer", _looped("scheduler first", warm_up=40), WARM, "schedule", "transformers#27872"),
    Case("no scheduler at all", _torch("AdamW", weight_decay=0.1), WARM, "schedule", "diffusers#4387"),
    Case("scheduler goes on where steps are skipped", _looped("scheduler goes on", warm_up=40, scaled=True), {**WARM, "scaler": True}, "schedule", "accelerate#628"),
    Case("lr times ranks", _torch("AdamW", lr=8e-3, weight_decay=0.1), ADAMW, "learning rate", "accelerate#1382"),
    Case("cycle sets beta2", _cycled, ADAMW, "betas", "DeepSpeed#8495"),
    Case("cycle moves beta1", _one_cycle, {**ADAMW, "lr": _one_cycle_rate}, "betas", "pytorch#113548"),
    Case("betas swapped", _torch("AdamW", betas=(0.999, 0.9), weight_decay=0.1), ADAMW, "betas", "prodigy-plus#9"),
    Case("beta2 of one group", _groups(beta2=0.95), {**ADAMW, "per": NO_DECAY}, "betas", "candle#1448"),
    Case("moments lost", _resumed("no optimizer"), {**ADAMW, "lr": _warming(60)}, "resume", "OneVision-Encoder#65"),
    Case("step lost", _resumed("no steps"), {**ADAMW, "lr": _warming(60)}, "resume", "TransformerEngine#1986"),
    Case("second moment lost", _resumed("no second moment"), {**ADAMW, "lr": _warming(60)}, "resume", "apex#480"),
    Case("schedule begins anew", _resumed("clock anew"), {**ADAMW, "lr": _warming(60)}, "resume", "kohya_ss#1924"),
    Case("rate of the checkpoint is kept", _resumed("old rate"), {**ADAMW, "lr": _warming(60)}, "resume", "Lightning#5486"),
    Case("moments of another parameter", _resumed("order"), {**ADAMW, "lr": _warming(60)}, "resume", "vortex#70"),
    Case("weights through bf16", _resumed("weights in bf16"), {**ADAMW, "lr": _warming(60)}, "resume", "torch-points3d#630"),
    Case("zeros stay", _looped("zeros stay"), ADAMW, "missing gradients", "pytorch_optimizer#159"),
    Case("gradients never cleared", _looped("never cleared"), ADAMW, "gradient scale", "examples#1196"),
    Case("a parameter in no group", _frozen, ADAMW, "not updated", "levanter#982"),
    Case("copies not written", _masters(keeps=False), ADAMW, "not updated", "tt-metal#33076"),
    Case("amsgrad left out", _torch("AdamW", weight_decay=0.1), {**ADAMW, "amsgrad": True}, "second moment", "tt-metal#17554"),
    Case("|g| for g^2", _written("absolute"), ADAMW, "second moment", "deep-ml#1"),
    Case("no root", _written("no root"), ADAMW, "second moment", "oneflow#5960"),
    Case("squares of the momentum", _written("of momentum"), ADAMW, "second moment", "adabelief#1"),
    Case("momentum without 1 - beta1", _written("undamped"), ADAMW, "momentum", "apex#577"),
    Case("Nesterov unasked", _written("nesterov"), ADAMW, "momentum", "timm#2000"),
    Case("RMSprop's eps under the root", _rmsprop(inside=True), {"algorithm": "RMSprop", "momentum": 0.9}, "epsilon", "rl_a3c_pytorch#29"),
    Case("RMSprop's rate in the buffer", _rmsprop(rate_in=True, warm_up=40), {"algorithm": "RMSprop", "momentum": 0.9, "lr": _warming(40)}, "momentum", "timm#100"),
    Case("each parameter clipped", _looped("clip each parameter", clip=1.0), CLIPPED, "clipping", "composer#3915"),
    Case("values clipped", _looped("clip value", clip=1.0), CLIPPED, "clipping", "transformers#986"),
    Case("clipping upside down", _looped("clip upside down", clip=1.0), CLIPPED, "clipping", "timm#2790"),
    Case("updates clipped upside down", _written("rms clip upside down"), {**ADAMW, "clip_update": 1.0}, "clipping", "timm#2790"),
    Case("clipping left out", _looped("no clip", clip=1.0), CLIPPED, "clipping", "marin#1390"),
    Case("clipped before unscaling", _looped("clip before unscaling", clip=1.0, scaled=True), {**CLIPPED, "scaler": True}, "clipping", "Pytorch-UNet#468"),
    Case("clipped at each micro-batch", _looped("clip each micro-batch", clip=1.0), {**CLIPPED, "accumulate": 4}, "clipping", "accelerate#641"),
    Case("micro-batches added up", _looped("summed"), MICRO, "gradient scale", "transformers#34191"),
    Case("only the last micro-batch", _looped("cleared each"), MICRO, "gradient scale", "accelerate#662"),
    Case("never unscaled", _looped("never unscaled", scaled=True), {**ADAMW, "scaler": True}, "gradient scale", "apex#407"),
    Case("ascends", _written("ascends", weight_decay=0.0), {"algorithm": "AdamW"}, "sign", "PySyft#740"),
    Case("Optax eps_root", by_optax(_o("adam", learning_rate=1e-3, eps=0.0, eps_root=1e-8)), {}, "epsilon", "optax#882"),
    Case("Optax adamw's decay forgotten", by_optax(_o("adamw", learning_rate=1e-3)), ADAMW, "weight decay", "optax#292"),
    Case("Optax b2", by_optax(_o("adam", learning_rate=1e-3, b2=0.99)), {}, "betas", "jax#3091"),
    Case("Optax not clipped", by_optax(_o("adam", learning_rate=1e-3)), {"clip_norm": 1.0}, "clipping", "verl#2282"),
)  # fmt: skip


def _scheduled(
    make: Callable[[Any], Any], rate: Callable[[int], float], every: int = 1
) -> tuple[Callable[[], Made], Any]:
    def made() -> Made:
        named = weights()
        optimizer = torch.optim.AdamW([p for _, p in named], lr=1e-3, weight_decay=0.1)
        return Made(named, optimizer, make(optimizer), every)

    return made, {**ADAMW, "lr": rate}


def _cosine(t: int) -> float:
    return 1e-3 * (1 + math.cos(math.pi * (t - 1) / 40)) / 2


def _right() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    options: dict[str, Any]
    for kind in ("Adam", "AdamW"):
        for options in ({"foreach": True}, {"foreach": False}, {"fused": True}, {"amsgrad": True}, {"weight_decay": 0.1},
                        {"maximize": True}, {"lr": torch.tensor(1e-3), "foreach": False}, {"betas": (0.0, 0.95)}):  # fmt: skip
            said = {name: value for name, value in options.items() if name not in {"foreach", "fused"}}
            said = {name: float(value) if name == "lr" else value for name, value in said.items()}
            decay = {"weight_decay": 0.01} if kind == "AdamW" else {}
            yield f"{kind} {options}", _torch(kind, **options), {"algorithm": kind, **decay, **said}
    for kind, options, said in (
        ("NAdam", {}, {"lr": 2e-3}),
        ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"lr": 2e-3, "weight_decay": 0.1, "decoupled": True}),
        ("RMSprop", {}, {"lr": 1e-2}),
        ("RMSprop", {"momentum": 0.9, "centered": True}, {"lr": 1e-2, "momentum": 0.9, "centered": True}),
        ("Adagrad", {}, {"lr": 1e-2, "eps": 1e-10}),
        ("SGD", {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
         {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ):  # fmt: skip
        yield f"{kind} {options}", _torch(kind, **options), {"algorithm": kind, **said}
        yield f"{kind} {options}, nothing claimed", _torch(kind, **options), None
    yield "written out", _written(), ADAMW
    yield "float64", _written(dtype=torch.float64), ADAMW
    yield "group count, claimed", _written("group step"), {**ADAMW, "count": "group"}
    yield "uncorrected, claimed", _written("uncorrected"), {**ADAMW, "bias_correction": False}
    yield "eps-hat, claimed", _written("hat"), {**ADAMW, "eps_place": "hat"}
    yield "root, claimed", _written("root"), {**ADAMW, "eps_place": "root"}
    yield "coupled, claimed", _written("coupled"), {**ADAMW, "algorithm": "Adam"}
    yield "updates clipped, claimed", _written("rms clip"), {**ADAMW, "clip_update": 1.0}
    yield "bf16 everything, claimed", _torch("AdamW", BF16, weight_decay=0.1), {**ADAMW, "state_dtype": "bfloat16"}
    yield "bf16 state, claimed", _written(state_dtype=BF16), {**ADAMW, "state_dtype": "bfloat16"}
    yield "float32 copies", _masters(), ADAMW
    yield "stochastic rounding", _stochastic, ADAMW
    yield "two groups", _groups(), {**ADAMW, "per": NO_DECAY}
    yield "loop", _looped(), ADAMW
    yield "loop that clips", _looped(clip=1.0), CLIPPED
    yield "loop that accumulates", _looped(), MICRO
    yield "loop that accumulates and clips", _looped(clip=1.0), {**CLIPPED, "accumulate": 4}
    yield (
        "loop with a scaler",
        _looped(scaled=True, clip=1.0, warm_up=40),
        {**CLIPPED, "lr": _warming(40), "scaler": True},
    )
    yield "zeros stay, claimed", _looped("zeros stay"), {**ADAMW, "missing": "zero"}
    yield "warm-up", _looped(warm_up=40), WARM
    yield "resume", _resumed(), {**ADAMW, "lr": _warming(60)}
    yield "resume, written out", _resumed(make=Written), {**ADAMW, "lr": _warming(60)}
    yield "cosine", *_scheduled(lambda o: lr_scheduler.CosineAnnealingLR(o, 40), _cosine)
    yield (
        "stairs by epoch",
        *_scheduled(lambda o: lr_scheduler.StepLR(o, 1, 0.5), lambda t: 1e-3 * 0.5 ** ((t - 1) // 10), 10),
    )
    yield (
        "linear",
        *_scheduled(
            lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, 20), lambda t: 1e-3 * (0.1 + 0.9 * min(1, (t - 1) / 20))
        ),
    )
    yield (
        "two schedulers in turn",
        *_scheduled(
            lambda o: lr_scheduler.SequentialLR(
                o, [lr_scheduler.ConstantLR(o, 0.5, 100), lr_scheduler.ExponentialLR(o, 0.9)], [10]
            ),
            lambda t: 5e-4 if t <= 10 else 1e-3 * 0.9 ** (t - 11),
        ),
    )
    yield (
        "RMSprop, rate in the buffer, claimed",
        _rmsprop(rate_in=True),
        {"algorithm": "RMSprop", "momentum": 0.9, "rate_in_momentum": True},
    )
    yield (
        "RMSprop, root, claimed",
        _rmsprop(inside=True),
        {"algorithm": "RMSprop", "momentum": 0.9, "eps_place": "root"},
    )
    yield from _right_elsewhere()


def _accelerated() -> Made:
    """accelerate's own accumulation, clipping and scheduler."""
    import accelerate

    engine = accelerate.Accelerator(gradient_accumulation_steps=4, cpu=True)
    named = weights()
    bare = torch.optim.AdamW([p for _, p in named], lr=1e-3, weight_decay=0.1)
    optimizer, scheduler = engine.prepare(bare, _warm_up(bare, 40))
    model = torch.nn.ParameterList(p for _, p in named)

    def step(losses: list[Any]) -> None:
        for loss in losses:
            with engine.accumulate(model):
                engine.backward(loss())
                if engine.sync_gradients:
                    engine.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

    return Made(named, optimizer, scheduler, step=step)


def _engine() -> Made:
    """Make a wrapper that holds model, optimizer and loss scaler, as DeepSpeed's does."""
    named = weights()
    inner = torch.optim.AdamW([p for _, p in named], lr=1e-3, weight_decay=0.1)

    class Engine:
        def __init__(self) -> None:
            self.optimizer, self.taken = inner, loop(inner, named, clip=1.0, scaler=Scaler())

        def train_batch(self, losses: list[Any]) -> None:
            self.taken(losses)

    engine = Engine()
    return Made(named, engine.optimizer, step=engine.train_batch)


def _right_elsewhere() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Ours and Optax's."""

    def ours(**options: Any) -> Callable[[], Made]:
        def make() -> Made:
            from generic_adam.torch import GenericAdam

            named = weights()
            return Made(named, GenericAdam([p for _, p in named], **options))

        return make

    yield "accelerate, four micro-batches", _accelerated, {**CLIPPED, "lr": _warming(40), "accumulate": 4}
    yield "an engine", _engine, {**CLIPPED, "scaler": True}
    yield "ours", ours(lr=1e-3), {}
    yield "ours, nothing claimed", ours(lr=1e-3), None
    yield "ours with a schedule", ours(lr="1e-3 / sqrt(t)", theta="1 - 1/max(t, 2)", beta=0.9), None
    yield "Optax adam", by_optax(_o("adam", learning_rate=1e-3)), {}
    yield "Optax adamw", by_optax(_o("adamw", learning_rate=1e-3, weight_decay=0.1)), ADAMW
    yield "Optax adamw, clipped", by_optax(_chained(1.0, _o("adamw", learning_rate=1e-3, weight_decay=0.1))), CLIPPED
    yield "Optax amsgrad", by_optax(_o("amsgrad", learning_rate=1e-3)), {"amsgrad": True, "amsgrad_max": "corrected"}
    yield (
        "Optax sgd",
        by_optax(_o("sgd", learning_rate=0.1, momentum=0.9)),
        {"algorithm": "SGD", "lr": 0.1, "momentum": 0.9},
    )
    yield (
        "Optax schedule",
        by_optax(_o("adam", learning_rate=lambda k: 1e-3 * 0.9**k)),
        {"lr": lambda t: 1e-3 * 0.9 ** (t - 1)},
    )


RIGHT: tuple[Case, ...] = tuple(Case(name, make, claim) for name, make, claim in _right())


def halves(cases: tuple[Case, ...]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Return the cases for tuning and those for judging."""
    numbered = list(zip(count(), cases, strict=False))
    return tuple(one for n, one in numbered if n % 2 == 0), tuple(one for n, one in numbered if n % 2)
