# ruff: noqa: E501 - the tables are read by their columns
"""A third zoo for `verify`: written against it, from reports that the other two left out.

Objects come in the shapes that people hand over: namespaces, plain classes without torch's base, wrappers around an
optimizer, flat buffers, parameters of no dimension. docs/verify.md has what the first run found.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from types import SimpleNamespace as Space
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import lr_scheduler

from generic_adam_laboratory.zoo.verify_cases import Case, by_optax

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
SHAPES = {"embed": (40, 6), "fc.weight": (6, 10), "fc.bias": (6,), "fc2.weight": (6, 10), "norm": (10,), "gain": ()}
BASE = {"algorithm": "AdamW", "lr": 5e-4, "betas": (0.9, 0.99), "weight_decay": 0.2}
ADAM = {"algorithm": "Adam", "lr": 5e-4, "betas": (0.9, 0.99)}
SGD = {"algorithm": "SGD", "lr": 0.02, "momentum": 0.8}
RMS = {"algorithm": "RMSprop", "lr": 2e-3, "alpha": 0.95}
FLAT = ("fc.bias", "norm", "gain")
Update = Callable[[Any, Any, dict[str, Any], dict[str, Any], int], Any]


def network(dtype: torch.dtype = F32) -> list[tuple[str, Any]]:
    """Return fresh named parameters."""
    random = torch.Generator().manual_seed(11)
    made = {name: 0.1 * torch.randn(shape, generator=random) for name, shape in SHAPES.items()}
    return [(name, torch.nn.Parameter(value.to(dtype))) for name, value in made.items()]


class Bare:
    """An optimizer that is no torch.optim.Optimizer: groups, a state of its own, and a step that is one function.

    `count` is "own", "group", "groups" (each group moves one count), "all" or "twice"; `limit` is where a count stays.
    """

    def __init__(self, params: Any, update: Update, count: str = "own", limit: int = 10**9, **defaults: Any) -> None:
        groups = list(params)
        groups = groups if isinstance(groups[0], dict) else [{"params": groups}]
        options = {"lr": 5e-4, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.2} | defaults
        self.param_groups: list[dict[str, Any]] = [options | group for group in groups]
        self.state: dict[Any, dict[str, Any]] = {}
        self.update, self.count, self.limit, self.calls, self.visits = update, count, limit, 0, 0

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step."""
        self.calls += 1
        for group in self.param_groups:
            self.visits += 1
            group["n"] = group.get("n", 0) + 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                own = self.state.setdefault(p, {"n": 0})
                own["n"] += 2 if self.count == "twice" else 1
                count = {"group": group["n"], "groups": self.visits, "all": self.calls}.get(self.count, own["n"])
                p.copy_(self.update(p.float(), p.grad.float(), own, group, min(count, self.limit)))


class Based(Bare, torch.optim.Optimizer):
    """The same with torch's base, which torch's schedulers ask for."""

    def __init__(self, params: Any, update: Update, **options: Any) -> None:
        Bare.__init__(self, params, update, **options)
        groups = [{name: value for name, value in group.items() if name != "n"} for group in self.param_groups]
        torch.optim.Optimizer.__init__(self, groups, {})


def moments(g: Any, s: dict[str, Any], o: dict[str, Any], square: Any = None) -> tuple[Any, Any]:
    """Move m and v of a parameter."""
    (b1, b2), zero = o["betas"], torch.zeros_like(g)
    s["m"] = b1 * s.get("m", zero) + (1 - b1) * g
    s["v"] = b2 * s.get("v", zero) + (1 - b2) * (g * g if square is None else square)
    return s["m"], s["v"]


def stepped(x: Any, m: Any, v: Any, o: dict[str, Any], t: int, decay: float | None = None) -> Any:
    """Return AdamW's weights from its moments."""
    (b1, b2), lr = o["betas"], o["lr"]
    share = lr * o["weight_decay"] if decay is None else decay
    return (1 - share) * x - lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + o["eps"])


def adamw(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: D103
    return stepped(x, *moments(g, s, o), o, t)


def _overwritten_maximum(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    old = s.get("v", torch.zeros_like(g))
    m, v = moments(g, s, o)
    s["v"] = torch.maximum(old, v)
    return stepped(x, m, s["v"], o, t)


def _maximum(corrected: bool) -> Update:
    def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
        m, v = moments(g, s, o)
        c = 1 - o["betas"][1] ** t
        s["top"] = torch.maximum(s.get("top", torch.zeros_like(v)), v / c if corrected else v)
        return stepped(x, m, s["top"] * c if corrected else s["top"], o, t)

    return update


def _multiplied(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    m, v = moments(g, s, o)
    (b1, b2), lr = o["betas"], o["lr"]
    return (1 - lr * o["weight_decay"]) * x - lr * m * (1 - b1**t) / ((v * (1 - b2**t)).sqrt() + o["eps"])


def _decay_of_corrected_rate(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    (b1, b2), lr = o["betas"], o["lr"]
    return stepped(x, *moments(g, s, o), o, t, lr * math.sqrt(1 - b2**t) / (1 - b1**t) * o["weight_decay"])


def _decay_of_first_rate(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return stepped(x, *moments(g, s, o), o, t, o.setdefault("first", o["lr"]) * o["weight_decay"])


def _decay_in_momentum(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return stepped(x, *moments(g + o["weight_decay"] * x, s, o, g * g), o, t, 0.0)


def _stored(which: str, dtype: torch.dtype) -> Update:
    def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
        new = adamw(x, g, s, o, t)
        s.update({name: s[name].to(dtype).float() for name in which})
        return new

    return update


def _eight_bits(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    new = adamw(x, g, s, o, t)
    for name in "mv":
        top = s[name].abs().max().clamp(min=1e-30)
        s[name] = (s[name] / top * 127).round() / 127 * top
    return new


def _rows(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    square = (g * g).mean(-1, keepdim=True).expand_as(g) if g.dim() > 1 else g * g
    return stepped(x, *moments(g, s, o, square), o, t)


def _factored(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    if g.dim() < 2:
        return adamw(x, g, s, o, t)
    s["rows"] = 0.99 * s.get("rows", torch.zeros(len(g), 1)) + 0.01 * (g * g).mean(1, keepdim=True)
    s["columns"] = 0.99 * s.get("columns", torch.zeros(1, g.shape[1])) + 0.01 * (g * g).mean(0, keepdim=True)
    m, _ = moments(g, s, o)
    return stepped(x, m, s["rows"] * s["columns"] / s["rows"].mean().clamp(min=1e-30), o, t)


def _rooted(place: str) -> Update:
    def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
        m, v = moments(g, s, o)
        (b1, b2), lr, eps = o["betas"], o["lr"], o["eps"]
        v = v / (1 - b2**t)
        root = v.sqrt().clamp(min=eps) if place == "least" else (v + eps * eps).sqrt()
        return (1 - lr * o["weight_decay"]) * x - lr * m / (1 - b1**t) / root

    return update


def _update_clipped(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    u = adamw(torch.zeros_like(x), g, s, o, t) / o["lr"]
    return (1 - o["lr"] * o["weight_decay"]) * x + o["lr"] * u / u.pow(2).mean().sqrt().clamp(min=1.0)


def _sgd(inside: bool) -> Update:
    def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: ARG001
        s["b"] = 0.8 * s.get("b", torch.zeros_like(g)) + (o["lr"] * g if inside else g)
        return x - (s["b"] if inside else o["lr"] * s["b"])

    return update


def _sgdw(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return _sgd(False)(x, g, s, o, t) - o["lr"] * 0.1 * x


def _keras(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: ARG001
    m, v = moments(g, s, o)
    return x - o["lr"] * m / (v.sqrt() + o["eps"])


def _ones(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:  # noqa: ARG001
    s["v"] = 0.95 * s.get("v", torch.ones_like(g)) + 0.05 * g * g
    return x - o["lr"] * g / (s["v"].sqrt() + o["eps"])


def _growing(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    return adamw(x, g, s, {**o, "betas": (0.9, 0.99 - 0.09 / o["n"])}, t)


def _kahan(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    move = adamw(x, g, s, o, t) - x + s.get("rest", 0.0)
    new = (x + move).bfloat16().float()
    s["rest"] = x + move - new
    return new


# What is handed over.


def bare(update: Update = adamw, dtype: torch.dtype = F32, split: bool = False, **options: Any) -> Callable[[], Any]:
    """Return what makes a namespace with a plain class."""

    def make() -> Any:
        named = network(dtype)
        groups = [[p for name, p in named if (name in FLAT) == flat] for flat in (False, True)]
        given = [{"params": one} for one in groups] if split else [p for _, p in named]
        return Space(named=named, optimizer=Bare(given, update, **options))

    return make


def kind(name: str, dtype: torch.dtype = F32, **options: Any) -> Callable[[], Any]:
    """Return what makes a namespace with one of torch's."""
    return lambda: Space(named=(own := network(dtype)), optimizer=_torch(name, own, **options))


def _torch(name: str, named: Any, **options: Any) -> Any:
    return getattr(torch.optim, name)([p for _, p in named], **options)


def _adamw(named: Any, **options: Any) -> Any:
    return _torch("AdamW", named, **{"lr": 5e-4, "betas": (0.9, 0.99), "weight_decay": 0.2} | options)


def paced(scheduler: Callable[[Any], Any], every: int = 1, make: Callable[[Any], Any] = _adamw) -> Callable[[], Any]:
    """Return what makes an optimizer with a scheduler."""

    def made() -> Any:
        named = network()
        optimizer = make(named)
        return Space(named=named, optimizer=optimizer, scheduler=scheduler(optimizer), every=every)

    return made


def looped(body: Callable[..., Any], make: Callable[[Any], Any] = _adamw) -> Callable[[], Any]:
    """Return what makes a training step, `body(optimizer, named, losses, call)`."""

    def made() -> Any:
        named, calls = network(), []
        optimizer = make(named)

        def step(losses: list[Any]) -> None:
            calls.append(1)
            body(optimizer, dict(named), losses, len(calls))

        return Space(named=named, optimizer=optimizer, step=step)

    return made


def _sgd_of(named: Any, **options: Any) -> Any:
    return _torch("SGD", named, **{"lr": 0.02, "momentum": 0.8} | options)


def _backward(optimizer: Any, losses: list[Any], share: float | None = None) -> None:
    optimizer.zero_grad()
    for loss in losses:
        (loss() * (1 / len(losses) if share is None else share)).backward()


def _scaled_by(share: float) -> Callable[..., None]:
    def body(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
        _backward(optimizer, losses, share)
        optimizer.step()

    return body


def _clipping(how: Callable[[list[Any], Any], Any]) -> Callable[..., None]:
    def body(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
        _backward(optimizer, losses)
        how(list(named.values()), optimizer)
        optimizer.step()

    return body


def _by_group(parameters: list[Any], optimizer: Any) -> None:  # noqa: ARG001
    for some in (parameters[:3], parameters[3:]):
        clip_grad_norm_(some, 0.7)


def _always(parameters: list[Any], optimizer: Any) -> None:  # noqa: ARG001
    own = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([(g * g).sum() for g in own]).sum().sqrt()
    for g in own:
        g.mul_(0.7 / (norm + 1e-6))


def _first_norm(parameters: list[Any], optimizer: Any) -> None:  # noqa: ARG001
    own = [p.grad for p in parameters if p.grad is not None]
    factor = (0.7 / (own[0].norm() + 1e-6)).clamp(max=1.0)
    for g in own:
        g.mul_(factor)


def _left_behind(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    """Replace a gradient where there is a new one, and never take it away."""
    fresh = {p: p.grad for p in named.values()}
    for p in named.values():
        p.grad = None
    losses[0]().backward()
    for p in named.values():
        p.grad = fresh[p] if p.grad is None else p.grad
    optimizer.step()


def _frozen_later(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:
    _backward(optimizer, losses)
    if call > 12:
        named["fc2.weight"].grad = None
    optimizer.step()


def _negated(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    optimizer.zero_grad()
    (-losses[0]()).backward()
    optimizer.step()


def _beta_later(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    for group in optimizer.param_groups:
        group["betas"] = (0.9, 0.99 if call < 15 else 0.95)
    _backward(optimizer, losses)
    optimizer.step()


def _counts_skips(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    _backward(optimizer, losses, 1.0)
    if all(bool(p.grad.isfinite().all()) for p in named.values() if p.grad is not None):
        optimizer.step()
    else:
        for p in named.values():
            if p in optimizer.state and p.grad is not None:
                optimizer.state[p]["n"] += 1


def _closure(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    def closure() -> Any:
        _backward(optimizer, losses)
        return torch.zeros(())

    optimizer.step(closure)


def _ranks(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    """Four ranks, each with a micro-batch; their gradients are added and divided by four, as DDP does."""
    total: dict[Any, Any] = {}
    for loss in losses:
        optimizer.zero_grad()
        loss().backward()
        for p in named.values():
            if p.grad is not None:
                total[p] = total.get(p, 0) + p.grad
    for p in named.values():
        p.grad = total[p] / len(losses) if p in total else None
    clip_grad_norm_(named.values(), 0.7)
    optimizer.step()


def old_model() -> Any:
    """Make an optimizer for a model that is then made anew."""
    return Space(named=network(), optimizer=_adamw(network()))


def of_model(step: bool = True) -> Callable[[], Any]:
    """Return what makes a class like DistributedDataParallel's companions: the optimizer is inside."""

    class Wrapper:
        def __init__(self, inner: Any) -> None:
            self.optimizer = inner

        @property
        def param_groups(self) -> Any:
            return self.optimizer.param_groups

        def step(self) -> None:
            self.optimizer.step()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["optimizer"], name)

    def make() -> Any:
        named = network()
        outer = Wrapper(_adamw(named))
        return Space(named=named, optimizer=outer) if step else outer

    return make


def flat() -> Any:
    """Make one buffer for all weights, of which the parameters are views, as sharded optimizers keep it."""
    sizes = [math.prod(shape) for shape in SHAPES.values()]
    buffer = torch.cat([p.detach().reshape(-1) for _, p in network()])
    views = buffer.split(sizes)
    named = [
        (name, torch.nn.Parameter(view.view(shape))) for (name, shape), view in zip(SHAPES.items(), views, strict=True)
    ]
    own: dict[str, Any] = {}
    options = {"lr": 5e-4, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.2}
    calls = []

    @torch.no_grad()
    def step(losses: list[Any]) -> None:
        for _, p in named:
            p.grad = None
        with torch.enable_grad():
            losses[0]().backward()
        calls.append(1)
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for _, p in named]
        buffer.copy_(adamw(buffer, torch.cat([g.reshape(-1) for g in grads]), own, options, len(calls)))

    return Space(named=named, step=step)


def two_optimizers() -> Any:
    """Make one optimizer for matrices and one for the rest, both inside the step."""
    named = network()
    each = [
        _adamw([one for one in named if (one[0] in FLAT) == flat], lr=lr) for flat, lr in ((False, 5e-4), (True, 2e-3))
    ]

    def step(losses: list[Any]) -> None:
        for one in each:
            one.zero_grad()
        losses[0]().backward()
        for one in each:
            one.step()

    return Space(named=iter(named), optimizer=None, step=step)


def functional() -> Any:
    """Make torch tensors without an optimizer's class: `apply` returns the new weights."""
    made = Space(named=[(name, p.detach()) for name, p in network()])
    own: dict[str, dict[str, Any]] = {name: {} for name, _ in made.named}
    options = {"lr": 5e-4, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.2}
    calls = []

    def apply(gradients: Any) -> Any:
        calls.append(1)
        made.named = [
            (name, adamw(x, torch.as_tensor(gradients[name]), own[name], options, len(calls))) for name, x in made.named
        ]
        return dict(made.named)

    made.apply = apply
    return made


def saved(fault: str = "", split: bool = False) -> Callable[[], Any]:
    """Return what makes a plain class with its own saving; `fault` is what is wrong with that."""

    def fresh() -> Any:
        named = network(BF16 if fault == "masters" else F32)
        groups = [
            {"params": [p for n, p in named if (n in FLAT) == flat], "weight_decay": 0.0 if flat else 0.2}
            for flat in (False, True)
        ]
        wide: dict[Any, Any] = {}

        def update(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
            s["x"] = adamw(s.get("x", x), g, s, o, t)
            return s["x"]

        optimizer = Bare(groups, update if fault == "masters" else adamw, "group" if split else "own")
        made = Space(named=named, optimizer=optimizer, scheduler=None, before=None)

        def step(losses: list[Any]) -> None:
            made.before = copy.deepcopy([optimizer.state.get(p, {}) for _, p in named])
            _backward(optimizer, losses)
            optimizer.step()

        def resume() -> Any:
            again = fresh()
            state = made.before if fault == "older" else [optimizer.state.get(p, {}) for _, p in named]
            for (name, old), (_, new), kept in zip(named, again.named, state, strict=True):
                new.data.copy_(old.data)
                own = copy.deepcopy(kept)
                if fault == "summed":
                    own["m"], own["v"] = 4 * own["m"], 4 * own["v"]
                if fault == "masters":
                    own.pop("x", None)
                if fault != "one group" or name not in FLAT:
                    again.optimizer.state[new] = own
            for one, other in zip(again.optimizer.param_groups, optimizer.param_groups, strict=True):
                one["n"] = 0 if fault == "empty group" and one is again.optimizer.param_groups[1] else other.get("n", 0)
                one["weight_decay"] = 0.2 if fault == "options" else one["weight_decay"]
                one["betas"] = (0.9, 0.999) if fault == "betas" else one["betas"]
            if fault == "other order":
                again.named = again.named[::-1]
            return again

        made.step, made.resume, made.wide = step, resume, wide
        return made

    return fresh


def reloaded(fault: str = "") -> Callable[[], Any]:
    """Return what makes torch's AdamW under a warm-up, through state dicts; a warm-up may be applied twice."""

    def fresh() -> Any:
        named = network()
        optimizer = _adamw(named)
        made = Space(
            named=named,
            optimizer=optimizer,
            scheduler=lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 50)),
        )

        def resume() -> Any:
            if fault == "same object":
                return made
            again = fresh()
            for (_, old), (_, new) in zip(made.named, again.named, strict=True):
                new.data.copy_(old.data)
            again.optimizer.load_state_dict(copy.deepcopy(made.optimizer.state_dict()))
            again.scheduler.load_state_dict(made.scheduler.state_dict())
            if fault == "twice":
                again.scheduler.base_lrs = [group["lr"] for group in again.optimizer.param_groups]
            if fault == "later":
                again.optimizer.param_groups[0]["lr"] = made.optimizer.param_groups[0]["lr"] / 10
                again.scheduler = None
            return again

        made.resume = resume
        return made

    return fresh


def _optax(build: Callable[[Any], Any], *, compiled: bool = False) -> Callable[[], Any]:
    def transformation() -> Any:
        import optax

        return build(optax)

    return by_optax(transformation, compiled=compiled)


def _layered(rates: dict[str, float]) -> Callable[[], Any]:
    def make() -> Any:
        named = network()
        return Space(
            named=named,
            optimizer=torch.optim.AdamW(
                [{"params": [p], "lr": rates[name]} for name, p in named], betas=(0.9, 0.99), weight_decay=0.2
            ),
        )

    return make


def _odd_parameters() -> Any:
    """Make an empty tensor, one of a single number, channels last, one of many weights."""
    shapes = {"none": (0,), "one": (1,), "image": (4, 3, 2, 2), "many": (400, 300)}
    named = [(name, torch.nn.Parameter(0.1 * torch.ones(shape))) for name, shape in shapes.items()]
    named[2] = ("image", torch.nn.Parameter(named[2][1].detach().to(memory_format=torch.channels_last)))
    return Space(named=named, optimizer=_adamw(named, foreach=False))


def _cosine(t: int, length: int = 30) -> float:
    return 5e-4 * (1 + math.cos(math.pi * min(t - 1, length) / length)) / 2


def _lambda(factor: Callable[[int], float]) -> Callable[[Any], Any]:
    return lambda optimizer: lr_scheduler.LambdaLR(optimizer, factor)


def _rising(steps: int) -> dict[str, Any]:
    return {**BASE, "lr": f"5e-4 * min(1, t / {steps})"}


RATES = dict(zip(SHAPES, (1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3), strict=True))
BY_LAYER = {**BASE, "per": {name: {"lr": rate} for name, rate in RATES.items()}}
PLAIN = {name: {"weight_decay": 0.0} for name in FLAT}
CLIPPED, MICRO = {**BASE, "clip_norm": 0.7}, {"accumulate": 4}
HALVES = {**BASE, "per": PLAIN}


def _typed(**values: Any) -> Update:
    """Return an update with a value that is written in it, whatever the groups say."""
    return lambda x, g, s, o, t: adamw(x, g * values.get("scale", 1.0), s, {**o, **values}, t)


def _largest(x: Any, g: Any, s: dict[str, Any], o: dict[str, Any], t: int) -> Any:
    m, _ = moments(g, s, o)
    s["most"] = torch.maximum(0.99 * s.get("most", torch.zeros_like(g)), g.abs())
    return (1 - o["lr"] * o["weight_decay"]) * x - o["lr"] / (1 - 0.9**t) * m / (s["most"] + o["eps"])


def _each_micro_batch(optimizer: Any, named: Any, losses: list[Any], call: int) -> None:  # noqa: ARG001
    for loss in losses:
        _backward(optimizer, [loss])
        optimizer.step()


def _scheduled_by_micro(o: Any) -> Any:
    return o.MultiSteps(o.chain(o.scale_by_adam(b2=0.99), o.scale(-5e-4)), 4)


WRONG: tuple[Case, ...] = (
    Case("the maximum overwrites v", bare(_overwritten_maximum), {**BASE, "amsgrad": True}, "second moment", "tt-metal#17554"),
    Case("maximum of the corrected", bare(_maximum(True)), {**BASE, "amsgrad": True}, "second moment", "pytorch#1767"),
    Case("corrections multiply", bare(_multiplied), BASE, "bias correction", "Mocha.jl#104"),
    Case("counted twice", bare(count="twice"), BASE, "step counter", "spd#616"),
    Case("each group moves the count", bare(count="groups", split=True), BASE, "step counter", "DeepSpeed#1823"),
    Case("the count stays at 256", bare(limit=256, betas=(0.9, 0.999)), {**BASE, "betas": (0.9, 0.999), "horizon": 300}, "step counter", "oneflow#3501"),
    Case("skipped steps are counted", looped(_counts_skips, lambda named: Bare([p for _, p in named], adamw)), {**BASE, "scaler": True}, "step counter", "apex#577"),
    Case("decay by the corrected rate", bare(_decay_of_corrected_rate), BASE, "weight decay", "pytorch#3740"),
    Case("decay is not scheduled", paced(_lambda(lambda k: min(1.0, (k + 1) / 20)), make=lambda named: Based([p for _, p in named], _decay_of_first_rate)), _rising(20), "weight decay", "tensorflow/addons#844"),
    Case("decay in m alone", bare(_decay_in_momentum), BASE, "weight decay", "AdamW-pytorch#1"),
    Case("decay before Adam in a chain", _optax(lambda o: o.chain(o.add_decayed_weights(0.2), o.adam(5e-4, b2=0.99))), BASE, "weight decay", "optax#292"),
    Case("decay after the rate in a chain", _optax(lambda o: o.chain(o.adam(5e-4, b2=0.99), o.add_decayed_weights(0.2))), BASE, "weight decay", "levanter#1147"),
    Case("a cycle moves momentum", paced(lambda o: lr_scheduler.CyclicLR(o, 0.02, 0.02, step_size_up=10), make=_sgd_of), SGD, "momentum", "onnxruntime#5165"),
    Case("SGD's rate in the buffer", paced(_lambda(lambda k: min(1.0, (k + 1) / 20)), make=lambda named: Based([p for _, p in named], _sgd(True), lr=0.02)), {**SGD, "lr": "0.02 * min(1, t / 20)"}, "momentum", "chainer#6299"),
    Case("no Nesterov", kind("SGD", lr=0.02, momentum=0.8), {**SGD, "nesterov": True}, "momentum", "ML-From-Scratch#35"),
    Case("Optax's m in bfloat16", _optax(lambda o: o.adamw(5e-4, b2=0.99, weight_decay=0.2, mu_dtype="bfloat16")), BASE, "state precision", "Automodel#2248"),
    Case("v in float16", bare(_stored("v", F16)), BASE, "state precision", "optax#1769"),
    Case("m in bfloat16", bare(_stored("m", BF16)), BASE, "state precision", "torchtune#2254"),
    Case("eight bits a tensor", bare(_eight_bits), BASE, "state precision", "bitsandbytes#152"),
    Case("float16 weights without copies", bare(dtype=F16, lr=2e-5), {**BASE, "lr": 2e-5}, "lost updates", "mindone#843"),
    Case("the cosine comes back", paced(lambda o: lr_scheduler.CosineAnnealingLR(o, 30)), {**BASE, "lr": _cosine, "horizon": 60}, "schedule", "sd-scripts#364"),
    Case("decay over half the steps", paced(_lambda(lambda k: max(0.0, 1 - k / 25))), {**BASE, "lr": lambda t: 5e-4 * (1 - (t - 1) / 50)}, "schedule", "accelerate#1382"),
    Case("whole numbers in the warm-up", paced(_lambda(lambda k: min(1, (k + 1) // 20))), _rising(20), "schedule", "RAdam#22"),
    Case("once in ten steps", paced(_lambda(lambda k: min(1.0, (k + 1) / 20)), every=10), _rising(20), "schedule", "ACE-Step#198"),
    Case("both schedules at once", paced(lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.LinearLR(o, 0.1, 1.0, 15), lr_scheduler.ExponentialLR(o, 0.95)])), {**BASE, "lr": lambda t: 5e-4 * min(1.0, 0.1 + 0.9 * (t - 1) / 15)}, "schedule", "pytorch_optimizer#382"),
    Case("rates of layers upside down", _layered(dict(zip(SHAPES, reversed(RATES.values()), strict=True))), BY_LAYER, "learning rate", "super-gradients#653"),
    Case("rate times root of ranks", kind("AdamW", lr=5e-4 * 8**0.5, betas=(0.9, 0.99), weight_decay=0.2), BASE, "learning rate", "ControlNet#322"),
    Case("one group's count is lost", saved("empty group", split=True), {**HALVES, "count": "group"}, "resume", "TransformerEngine#3318"),
    Case("moments added over ranks", saved("summed"), HALVES, "resume", "Lightning#15462"),
    Case("state older than the weights", saved("older"), HALVES, "resume", "Paddle#49382"),
    Case("float32 copies made anew", saved("masters"), HALVES, "resume", "areal#1292"),
    Case("one group's state is lost", saved("one group"), HALVES, "resume", "OneVision-Encoder#65"),
    Case("options of groups are lost", saved("options"), HALVES, "resume", "Lightning#4044"),
    Case("the warm-up is applied twice", reloaded("twice"), _rising(50), "resume", "gradual-warmup-lr#27"),
    Case("a tenth of the rate after loading", reloaded("later"), _rising(50), "resume", "BasicSR#327"),
    Case("clipped by the largest value", looped(_clipping(lambda ps, _: clip_grad_norm_(ps, 0.7, math.inf))), CLIPPED, "clipping", "trl#3312"),
    Case("clipped group by group", looped(_clipping(_by_group)), CLIPPED, "clipping", "verl#2282"),
    Case("always scaled to the norm", looped(_clipping(_always)), CLIPPED, "clipping", "DeepRL-Agents#20"),
    Case("the first tensor's norm for all", looped(_clipping(_first_norm)), CLIPPED, "clipping", "composer#3915"),
    Case("clipped at four times the norm", looped(_clipping(lambda ps, _: clip_grad_norm_(ps, 2.8))), CLIPPED, "clipping", "EveryDream2#175"),
    Case("no clipping of updates", bare(), {**BASE, "clip_update": 0.5}, "clipping", "levanter#982"),
    Case("averaged twice", looped(_scaled_by(1 / 16), _sgd_of), {**SGD, **MICRO}, "gradient scale", "accelerate#662"),
    Case("gradients of four ranks are added", looped(_scaled_by(4.0), _sgd_of), SGD, "gradient scale", "examples#1196"),
    Case("a fixed scale stays", looped(_scaled_by(1024.0)), BASE, "gradient scale", "Pytorch-UNet#468"),
    Case("gradients are left behind", looped(_left_behind), BASE, "missing gradients", "holocron#1"),
    Case("no gradient counts as zero", flat, BASE, "missing gradients", "torchtitan#2732"),
    Case("frozen from step 13", looped(_frozen_later), BASE, "not updated", "OLMo#245"),
    Case("the optimizer of an old model", old_model, BASE, "not updated", "ml-by-hand#85"),
    Case("eps 1e-15", kind("Adam", lr=5e-4, betas=(0.9, 0.99), eps=1e-15), ADAM, "epsilon", "gaussian_splatting#33"),
    Case("eps is the least divisor", bare(_rooted("least"), eps=1e-4), {**BASE, "eps": 1e-4}, "epsilon", "K-NRM#10"),
    Case("eps squared under the root", bare(_rooted("inside"), eps=1e-4), {**BASE, "eps": 1e-4}, "epsilon", "rl-algo-impls#10"),
    Case("beta2 from step 15 on", looped(_beta_later), BASE, "betas", "candle#1448"),
    Case("RMSprop's alpha is torch's default", kind("RMSprop", lr=2e-3), RMS, "betas", "fqf-iqn#24"),
    Case("Adagrad begins at 0.1", kind("Adagrad", lr=0.01, initial_accumulator_value=0.1), {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-10}, "second moment", "keras#686"),
    Case("not centered", kind("RMSprop", lr=2e-3, alpha=0.95), {**RMS, "centered": True}, "second moment", "baselines#258"),
    Case("one second moment a row", bare(_rows), BASE, "second moment", "Adam-mini#17"),
    Case("factored second moment", bare(_factored), BASE, "second moment", "OneTrainer#1005"),
    Case("the loss is negated", looped(_negated), BASE, "sign", "PySyft#740"),
    Case("beta2 0.997 in the code", bare(_typed(betas=(0.9, 0.997))), BASE, "betas", "marin#4567"),
    Case("beta1 0.87 in the code", bare(_typed(betas=(0.87, 0.99))), BASE, "betas", "prodigy-plus#9"),
    Case("eps 3e-7 in the code", bare(_typed(eps=3e-7)), BASE, "epsilon", "Emerging-Optimizers#189"),
    Case("decay 0.07 in the code", bare(_typed(weight_decay=0.07)), BASE, "weight decay", "apex#1849"),
    Case("rate times 1.37", bare(_typed(lr=1.37 * 5e-4)), BASE, "learning rate", "senpai#787"),
    Case("momentum 0.73 in the code", kind("SGD", lr=0.02, momentum=0.73), SGD, "momentum", "trax#614"),
    Case("gradients of three ranks are added", looped(_scaled_by(3.0)), BASE, "gradient scale", "mmengine#894"),
    Case("clipped at 0.43", looped(_clipping(lambda ps, _: clip_grad_norm_(ps, 0.43))), CLIPPED, "clipping", "ace#1482"),
    Case("updates are clipped at 1.7", bare(_update_clipped), {**BASE, "clip_update": 0.6}, "clipping", "timm#2790"),
    Case("the count begins at 6", bare(lambda x, g, s, o, t: adamw(x, g, s, o, t + 5)), BASE, "step counter", "Arraymancer#658"),
    Case("a parabola for a line", paced(_lambda(lambda k: max(0.0, 1 - k / 50) ** 2)), {**BASE, "lr": lambda t: 5e-4 * (1 - (t - 1) / 50)}, "schedule", "transformers#32236"),
    Case("a warm-up each ten steps", paced(_lambda(lambda k: (k % 10 + 1) / 10)), _rising(10), "schedule", "diffusers#4387"),
    Case("a warm-up from a tenth", paced(_lambda(lambda k: 0.1 + 0.9 * min(1.0, k / 20))), _rising(20), "schedule", "GaLore#62"),
    Case("eps of one group", lambda: Space(named=(own := network()), optimizer=Bare([{"params": [p for _, p in own[:3]]}, {"params": [p for _, p in own[3:]], "eps": 1e-5}], adamw)), BASE, "epsilon", "pykoi#69"),
    Case("infinity norm for squares", bare(_largest), BASE, "second moment", "optax#1754"),
    Case("rates of layers unasked", _layered({**RATES}), BASE, "learning rate", "ControlNet#527"),
    Case("a step for each micro-batch", looped(_each_micro_batch), {**BASE, **MICRO}, "gradient scale", "accelerate#963"),
    Case("betas of the checkpoint, plain class", saved("betas"), HALVES, "resume", "Lightning#5486"),
    Case("a chain without decay", _optax(_scheduled_by_micro, compiled=True), {**BASE, **MICRO}, "weight decay", "optax#292"),
    Case("v begins at 1e-3", bare(lambda x, g, s, o, t: (s.setdefault("v", torch.full_like(g, 1e-3)), adamw(x, g, s, o, t))[1]), BASE, "second moment", "fqf-iqn#24"),
)  # fmt: skip


def _algorithm(name: str, **options: Any) -> Any:
    from generic_adam.methods import catalogue

    return getattr(catalogue, name)(**options)


RIGHT: tuple[Case, ...] = (
    Case("a plain class", bare(), BASE),
    Case("a plain class, nothing claimed", bare(), None),
    Case("two groups of a plain class, nothing claimed", bare(split=True), None),
    Case("a wrapper", of_model(), BASE),
    Case("a wrapper itself", of_model(step=False), BASE),
    Case("an Algorithm", kind("AdamW", lr=5e-4, betas=(0.9, 0.99), weight_decay=0.2), _algorithm("adamw", lr=5e-4, beta=0.9, theta=0.99, weight_decay=0.2)),
    Case("an Algorithm with a schedule", paced(_lambda(lambda k: 1 / (k + 1))), _algorithm("adamw", lr="5e-4 / t", beta=0.9, theta=0.99, weight_decay=0.2)),
    Case("a name", kind("Adam"), "adam"),
    Case("a name in capitals", kind("AdamW", weight_decay=0.0), "ADAMW"),
    Case("optimizer and scheduler in a pair", lambda: (own := _adamw(network()), lr_scheduler.ExponentialLR(own, 0.95)), {**BASE, "lr": "5e-4 * 0.95 ** (t - 1)"}),
    Case("maximum of the corrected, claimed", bare(_maximum(True)), {**BASE, "amsgrad": True, "amsgrad_max": "corrected"}),
    Case("maximum, written out", bare(_maximum(False)), {**BASE, "amsgrad": True}),
    Case("count of all calls, claimed", bare(count="all"), {**BASE, "count": "optimizer"}),
    Case("count of the group, claimed", bare(count="group"), {**BASE, "count": "group"}),
    Case("rate in SGD's buffer, claimed", paced(_lambda(lambda k: min(1.0, (k + 1) / 20)), make=lambda named: Based([p for _, p in named], _sgd(True), lr=0.02)), {**SGD, "lr": "0.02 * min(1, t / 20)", "rate_in_momentum": True}),
    Case("SGD, decoupled", bare(_sgdw, lr=0.02), {**SGD, "weight_decay": 0.1, "decoupled": True}),
    Case("SGD, plain", kind("SGD", lr=0.02), {"algorithm": "SGD", "lr": 0.02}),
    Case("uncorrected, eps-hat, claimed", bare(_keras), {**ADAM, "bias_correction": False, "eps_place": "hat"}),
    Case("from ones, claimed", bare(_ones, lr=2e-3), {**RMS, "initial_v": 1.0}),
    Case("beta2 by step, claimed", bare(_growing), {**BASE, "betas": (0.9, lambda t: 0.99 - 0.09 / t)}),
    Case("beta2 as text, claimed", bare(_growing), {**BASE, "betas": (0.9, "0.99 - 0.09 / t")}),
    Case("updates clipped, claimed", bare(_update_clipped), {**BASE, "clip_update": 1.0}),
    Case("bfloat16 with what is left over", bare(_kahan, BF16), BASE),
    Case("bfloat16 weights, m and v in float32, float16 weights", bare(lambda x, g, s, o, t: s.update(x=adamw(s.get("x", x), g, s, o, t)) or s["x"], F16), BASE),
    Case("restarts, claimed", paced(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10, 2)), {**BASE, "horizon": 80, "lr": lambda t: 5e-4 * (1 + math.cos(math.pi * ((t - 1) / 10 if t <= 10 else (t - 11) / 20 if t <= 30 else (t - 31) / 40 if t <= 70 else (t - 71) / 80))) / 2}),
    Case("the cosine comes back, claimed", paced(lambda o: lr_scheduler.CosineAnnealingLR(o, 30)), {**BASE, "lr": lambda t: 5e-4 * (1 + math.cos(math.pi * (t - 1) / 30)) / 2, "horizon": 60}),
    Case("once in ten steps, claimed", paced(_lambda(lambda k: 0.5**k), every=10), {**BASE, "lr": lambda t: 5e-4 * 0.5 ** ((t - 1) // 10), "horizon": 100}),
    Case("rates of layers, claimed", _layered(RATES), BY_LAYER),
    Case("saved and loaded", saved(), HALVES),
    Case("saved and loaded, count of the group", saved(split=True), {**HALVES, "count": "group"}),
    Case("loaded in another order", saved("other order"), HALVES),
    Case("through state dicts", reloaded(), _rising(50)),
    Case("loaded into itself", reloaded("same object"), _rising(50)),
    Case("four ranks, clipped", looped(_ranks), {**CLIPPED, **MICRO}),
    Case("a closure", looped(_closure), {**BASE, **MICRO}),
    Case("SGD clipped and accumulated", looped(_clipping(lambda ps, _: clip_grad_norm_(ps, 0.7)), _sgd_of), {**SGD, "clip_norm": 0.7, **MICRO}),
    Case("the loss is negated, claimed", looped(_negated), {**BASE, "maximize": True}),
    Case("no gradient counts as zero, claimed", flat, {**BASE, "missing": "zero"}),
    Case("two optimizers in a step", two_optimizers, {**BASE, "per": {name: {"lr": 2e-3} for name in FLAT}}),
    Case("torch tensors by a function", functional, BASE),
    Case("odd parameters", _odd_parameters, BASE),
    Case("fused with the maximum", kind("AdamW", lr=5e-4, betas=(0.9, 0.99), weight_decay=0.2, fused=True, amsgrad=True), {**BASE, "amsgrad": True}),
    Case("NAdam's own momentum decay", kind("NAdam", momentum_decay=0.02), {"algorithm": "NAdam", "lr": 2e-3, "momentum_decay": 0.02}),
    Case("Adagrad from 0.1, claimed", kind("Adagrad", lr=0.01, initial_accumulator_value=0.1), {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-10, "initial_v": 0.1}),
    Case("Optax, decay masked", _optax(lambda o: o.adamw(5e-4, b2=0.99, weight_decay=0.2, mask=lambda tree: {name: name not in {"layer.bias", "scale"} for name in tree})), {**BASE, "per": {"layer.bias": {"weight_decay": 0.0}, "scale": {"weight_decay": 0.0}}}),
    Case("Optax, clipped and accumulated", _optax(lambda o: o.MultiSteps(o.chain(o.clip_by_global_norm(0.7), o.adamw(5e-4, b2=0.99, weight_decay=0.2)), 4), compiled=True), {**CLIPPED, **MICRO}),
    Case("Optax's RMSprop, claimed", _optax(lambda o: o.rmsprop(2e-3, decay=0.95)), {**RMS, "eps_place": "root"}),
    Case("Optax's Adagrad, claimed", _optax(lambda o: o.adagrad(0.01)), {"algorithm": "Adagrad", "lr": 0.01, "eps": 1e-7, "eps_place": "root", "initial_v": 0.1}),
    Case("Optax's NAdam without a schedule, claimed", _optax(lambda o: o.adam(5e-4, b2=0.99, nesterov=True)), {**ADAM, "nesterov": True}),
)  # fmt: skip
