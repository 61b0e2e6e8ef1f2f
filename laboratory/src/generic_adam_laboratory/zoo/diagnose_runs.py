"""The trainings of the zoo of `diagnose`: small tasks, what may go wrong in them, and one loop that runs them all."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from generic_adam.schedules import parse
from generic_adam.torch import GenericAdam, Watch
from generic_adam_laboratory.data.datasets import load
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.networks import GPT, LeNet, ResNet18

with for_training():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F  # noqa: N812

Draw = torch.Generator
_LENGTH = 32
"""Characters that a GPT sees."""


@dataclass
class Task:
    """Something to be learnt.

    Attributes:
        model: what learns.
        draw: draws a mini-batch: inputs and targets.
        loss: inputs, targets -> the loss.
        gap: how far the model is from the best there is, exactly; None where that is not known.
        tick: called before each step, for tasks that move.
    """

    model: nn.Module
    draw: Callable[[Draw], tuple[Tensor, Tensor]]
    loss: Callable[[Tensor, Tensor], Tensor]
    gap: Callable[[], float] | None = None
    tick: Callable[[int], None] = lambda _step: None


class _Weights(nn.Module):
    """Numbers that are learnt by themselves."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.w = nn.Parameter(start)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def _linear(o: Options, draw: Draw) -> Task:
    """Least squares with noise; `rare`: of each five inputs one is there once in a hundred; `points`: a full batch."""
    d = o.size or 40
    truth, model = torch.randn(d, generator=draw), _Weights(0.1 * torch.randn(d, generator=draw))
    often = torch.ones(d)
    if o.kind == "rare":
        often[::5] = 0.005
    if o.kind == "points":
        x = torch.randn(o.batch, d, generator=draw)
        y = torch.randn(o.batch, generator=draw)
        return Task(model, lambda _: (x, y), lambda x, y: (model(x) - y).square().sum())

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.randn(o.batch, d, generator=r) * (torch.rand(o.batch, d, generator=r) < often)
        if o.kind == "hidden":  # inputs that are almost 0 while one trains
            x[:, ::5] *= 1e-9
        return x, x @ truth + o.noise * torch.randn(o.batch, generator=r)

    gap = lambda: float((model.w.detach() - truth).square().mean())  # noqa: E731
    return Task(model, draws, lambda x, y: (model(x) - y).square().mean(), gap)


def _rare(o: Options, draw: Draw) -> Task:
    """Means of numbers that are mostly 0 and rarely large: the gradient is mostly small and to one side."""
    d, often = o.size or 30, o.often
    model = _Weights(0.1 * torch.randn(d, generator=draw))

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        y = (torch.rand(o.batch, d, generator=r) < often) / often
        return torch.ones(o.batch, 1), y + 0.1 * torch.randn(o.batch, d, generator=r)

    gap = lambda: float((model.w.detach() - 1).square().mean())  # noqa: E731
    return Task(model, draws, lambda _x, y: (model.w - y).square().sum(1).mean() / 2, gap)


def _tanh(o: Options, draw: Draw) -> Task:
    """A network of one hidden layer learns another; `points`: all of a few points at each step."""
    d, width = 16, o.size or 64
    model = nn.Sequential(nn.Linear(d, width), nn.Tanh(), nn.Linear(width, 1))
    teacher = 0.3 * torch.randn(d, 4, generator=draw)
    if o.kind == "points":
        x, y = torch.randn(o.batch, d, generator=draw), torch.randn(o.batch, 1, generator=draw)
        return Task(model, lambda _: (x, y), lambda x, y: (model(x) - y).square().sum())

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.randn(o.batch, d, generator=r)
        y = torch.sin(x @ teacher).sum(1, keepdim=True)
        if o.kind == "rare":  # the target is mostly 0 and rarely large
            y = (torch.rand(o.batch, 1, generator=r) < o.often) / o.often * (1 + 0.5 * torch.tanh(x[:, :1]))
        return x, y + o.noise * torch.randn(o.batch, 1, generator=r)

    loss = lambda x, y: (model(x) - y).square().mean()  # noqa: E731
    if o.kind != "rare":
        return Task(model, draws, loss)
    points = torch.randn(500, d, generator=draw)
    best = 1 + 0.5 * torch.tanh(points[:, :1])
    return Task(model, draws, loss, lambda: float((model(points).detach() - best).square().mean()))


@cache
def _digits() -> tuple[Tensor, Tensor]:
    data: Any = load("digits")
    images = torch.tensor(data.train_images, dtype=torch.float32).permute(0, 3, 1, 2)
    images = F.adaptive_avg_pool2d(images, 8)
    return (images - images.mean()) / images.std(), torch.tensor(data.train_labels, dtype=torch.long)


@cache
def _images(name: str, directory: str) -> tuple[Tensor, Tensor]:
    data: Any = load(name, directory)
    kept = torch.tensor(data.train_images[:20_000], dtype=torch.float32).permute(0, 3, 1, 2) / 255
    return kept - kept.mean(), torch.tensor(data.train_labels[:20_000], dtype=torch.long)


@cache
def _text() -> Tensor:
    text: Any = load("stdlib")
    return torch.tensor(text.train[: 1 << 19], dtype=torch.long)


def _classes(model: nn.Module, images: Tensor, labels: Tensor, o: Options) -> Task:
    rows = torch.arange(o.batch)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        chosen = rows if o.kind == "points" else torch.randint(len(labels), (o.batch,), generator=r)
        return images[chosen], labels[chosen]

    return Task(model, draws, lambda x, y: F.cross_entropy(model(x), y))


def _mlp(o: Options, _draw: Draw) -> Task:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, o.size or 64), nn.ReLU(), nn.Linear(o.size or 64, 10))
    return _classes(model, *_digits(), o)


def _conv(o: Options, _draw: Draw) -> Task:
    width = o.size or 8
    model = nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        *([nn.BatchNorm2d(width)] if o.kind == "norm" else []),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * width, 10),
    )
    return _classes(model, *_digits(), o)


def _gpt(o: Options, _draw: Draw) -> Task:
    model, text = GPT(97, o.size or 32), _text()

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        window = text[torch.randint(len(text) - _LENGTH, (o.batch, 1), generator=r) + torch.arange(_LENGTH + 1)]
        return window[:, :-1], window[:, 1:]

    return Task(model, draws, lambda x, y: F.cross_entropy(model(x), y))


def _lenet(o: Options, _draw: Draw) -> Task:
    return _classes(LeNet(), *_images("mnist", o.data), o)


def _resnet(o: Options, _draw: Draw) -> Task:
    return _classes(ResNet18(3, 100, 8), *_images("cifar100", o.data), o)


def _values(o: Options, draw: Draw) -> Task:
    """Values of states under a policy, by bootstrapping from a copy that follows every 200 steps; rewards are rare.

    The states drift, so that the stream is another at each time.
    """
    d = 12
    model = nn.Sequential(nn.Linear(d, 64), nn.Tanh(), nn.Linear(64, 1))
    target = nn.Sequential(nn.Linear(d, 64), nn.Tanh(), nn.Linear(64, 1))
    target.load_state_dict(model.state_dict())
    good, drift = torch.randn(d, generator=draw), torch.randn(d, generator=draw)
    now = [0]

    def tick(step: int) -> None:
        now[0] = step
        if step % 200 == 0:
            target.load_state_dict(model.state_dict())

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.randn(o.batch, d, generator=r) + math.sin(now[0] / 700) * drift
        after = 0.9 * x + 0.4 * torch.randn(o.batch, d, generator=r)
        with torch.no_grad():
            reward = ((x @ good) > 2.0).float().unsqueeze(1) * (1 + 0.2 * torch.randn(o.batch, 1, generator=r))
            return x, reward + 0.9 * target(after)

    return Task(model, draws, lambda x, y: F.smooth_l1_loss(model(x), y), tick=tick)


def _policy(o: Options, draw: Draw) -> Task:
    """A policy that is rewarded for its draws (REINFORCE with a baseline); the loss has no lower bound of its own."""
    d, arms = 8, 5
    model = nn.Sequential(nn.Linear(d, 32), nn.Tanh(), nn.Linear(32, arms))
    worth = torch.randn(d, arms, generator=draw)
    baseline = [0.0]

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        return torch.randn(o.batch, d, generator=r), torch.rand(o.batch, 1, generator=r)

    def loss(x: Tensor, uniform: Tensor) -> Tensor:
        logs = F.log_softmax(model(x), 1)
        chosen = (logs.detach().exp().cumsum(1) < uniform).sum(1).clamp_max(arms - 1)
        reward = (x @ worth).gather(1, chosen[:, None]).squeeze(1)
        advantage = reward - baseline[0]
        baseline[0] += 0.02 * float(advantage.mean())
        return -(advantage * logs.gather(1, chosen[:, None]).squeeze(1)).mean()

    return Task(model, draws, loss)


TASKS: Final[Mapping[str, Callable[[Any, Draw], Task]]] = {
    "linear": _linear,
    "rare": _rare,
    "tanh": _tanh,
    "mlp": _mlp,
    "conv": _conv,
    "gpt": _gpt,
    "lenet": _lenet,
    "resnet": _resnet,
    "values": _values,
    "policy": _policy,
}


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


FAULTY: Final = {"Uncorrected": Uncorrected, "Repeated": Repeated}


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
    """What was seen of a training.

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
    kind = FAULTY.get(o.optimizer) or getattr(torch.optim, o.optimizer)
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
    task = TASKS[o.task](o, draw)
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
