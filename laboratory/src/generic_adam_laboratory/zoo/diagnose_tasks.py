"""The tasks of the zoo of `diagnose`: small things to be learnt, by networks of many families."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from generic_adam_laboratory.data.datasets import load
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.networks import GPT, LeNet, ResNet18

if TYPE_CHECKING:
    from generic_adam_laboratory.zoo.diagnose_runs import Options

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
    """Return a task: a network of one hidden layer learns another; `points`: a few points, all at each step."""
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
def digits() -> tuple[Tensor, Tensor]:
    """Return the digits as images of 8 x 8 points, and their labels."""
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
    return _classes(model, *digits(), o)


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
    return _classes(model, *digits(), o)


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
    """Return a task: a policy that is rewarded for its draws (REINFORCE with a baseline); no lower bound."""
    d, arms = 8, 5
    model = nn.Sequential(nn.Linear(d, 32), nn.Tanh(), nn.Linear(32, arms))
    worth = torch.randn(d, arms, generator=draw)
    baseline, begun = [0.0], [False]

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        return torch.randn(o.batch, d, generator=r), torch.rand(o.batch, 1, generator=r)

    def loss(x: Tensor, uniform: Tensor) -> Tensor:
        logs = F.log_softmax(model(x), 1)
        chosen = (logs.detach().exp().cumsum(1) < uniform).sum(1).clamp_max(arms - 1)
        reward = (x @ worth).gather(1, chosen[:, None]).squeeze(1)
        advantage = reward - baseline[0]
        baseline[0] += 0.02 * float(advantage.mean()) * begun[0]  # once a step, however often one looks
        begun[0] = False
        return -(advantage * logs.gather(1, chosen[:, None]).squeeze(1)).mean()

    def tick(_step: int) -> None:
        begun[0] = True

    return Task(model, draws, loss, tick=tick)


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
