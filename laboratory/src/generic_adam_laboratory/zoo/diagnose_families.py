"""More tasks of the zoo of `diagnose`: networks and losses unlike those with which the rules were first written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.zoo.diagnose_tasks import Draw, Task, digits

if TYPE_CHECKING:
    from generic_adam_laboratory.zoo.diagnose_runs import Options

with for_training():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F  # noqa: N812


def _images(o: Options, r: Draw) -> tuple[Tensor, Tensor]:
    images, labels = digits()
    chosen = torch.randint(len(labels), (o.batch,), generator=r)
    return images[chosen], labels[chosen]


class _Bag(nn.Module):
    """The mean of the tokens' vectors, and a class of it."""

    def __init__(self, tokens: int, width: int, classes: int, *, sparse: bool) -> None:
        super().__init__()
        self.table, self.out = nn.EmbeddingBag(tokens, width, sparse=sparse), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.table(x))


def _bag(o: Options, draw: Draw) -> Task:
    """Return a task: texts of ten tokens, most of them rare, and their topic; most rows have no gradient."""
    tokens, topics = o.size or 2000, 8
    odds = 1 / torch.arange(1.0, tokens + 1)
    said = torch.randn(tokens, topics, generator=draw)
    model = _Bag(tokens, 16, topics, sparse=False)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.multinomial(odds, o.batch * 10, replacement=True, generator=r).reshape(o.batch, 10)
        return x, said[x].sum(1).argmax(1)

    return Task(model, draws, lambda x, y: F.cross_entropy(model(x), y))


class _Recurrent(nn.Module):
    """A GRU or LSTM, and a number of its last state."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.body = (nn.LSTM if kind == "lstm" else nn.GRU)(2, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.body(x)[0][:, -1])


def _recurrent(o: Options, _draw: Draw) -> Task:
    """Return a task: the sum of the two numbers that are marked in a sequence."""
    model = _Recurrent(o.kind, o.size or 24)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.rand(o.batch, 12, 2, generator=r)
        marks = torch.rand(o.batch, 12, generator=r).topk(2).indices
        x[:, :, 1] = torch.zeros(o.batch, 12).scatter_(1, marks, 1.0)
        return x, (x[:, :, 0] * x[:, :, 1]).sum(1, keepdim=True) * 2

    return Task(model, draws, lambda x, y: (model(x) - y).square().mean())


class _Coder(nn.Module):
    """An encoder and a decoder of images of 64 points."""

    def __init__(self, code: int, *, drawn: bool) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2 * code if drawn else code)
        )
        self.decode = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 64))


def _vae(o: Options, _draw: Draw) -> Task:
    """Return a task: a variational autoencoder of the digits; its scale is learnt, so that the loss is negative."""
    model = _Coder(4, drawn=True)
    width = nn.Parameter(torch.zeros(()))
    model.register_parameter("width", width)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x, _ = _images(o, r)
        return x, torch.randn(o.batch, 4, generator=r)

    def loss(x: Tensor, noise: Tensor) -> Tensor:
        mean, log = model.encode(x).chunk(2, 1)
        off = model.decode(mean + noise * (log / 2).exp()) - x.flatten(1)
        apart = (off.square() * (-2 * width).exp()).sum(1) / 2 + 64 * width
        return (apart + (mean.square() + log.exp() - 1 - log).sum(1) / 2).mean() / 64

    return Task(model, draws, loss)


def _auto(o: Options, draw: Draw) -> Task:
    """Return a task: an autoencoder; `points`: of the same few images at each step."""
    model = _Coder(8, drawn=False)
    same = _images(o, draw)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x, y = same if o.kind == "points" else _images(o, r)
        return x, y

    return Task(model, draws, lambda x, _: (model.decode(model.encode(x)) - x.flatten(1)).square().mean())


def _contrast(o: Options, _draw: Draw) -> Task:
    """Return a task: two noisy views of an image are to be nearer than those of others."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x, _ = _images(o, r)
        return x + 0.7 * torch.randn(x.shape, generator=r), x + 0.7 * torch.randn(x.shape, generator=r)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        like = F.normalize(model(x), dim=1) @ F.normalize(model(y), dim=1).T / 0.2
        return F.cross_entropy(like, torch.arange(len(x)))

    return Task(model, draws, loss)


class _Translator(nn.Module):
    """A transformer of one layer on each side."""

    def __init__(self, tokens: int, width: int, length: int) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(tokens, width), nn.Linear(width, tokens)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.body = nn.Transformer(width, 2, 1, 1, 2 * width, 0.0, batch_first=True)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        n = before.shape[1]
        mask = torch.full((n, n), -math.inf).triu(1).to(self.places.dtype)
        x, before = self.table(x) + self.places[: x.shape[1]], self.table(before) + self.places[:n]
        return self.out(self.body(x, before, tgt_mask=mask))


def _seq2seq(o: Options, _draw: Draw) -> Task:
    """Return a task: to sort a sequence of eight tokens."""
    tokens, length = 12, 8
    model = _Translator(tokens, o.size or 32, length)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.randint(1, tokens, (o.batch, length), generator=r)
        return x, x.sort(1).values

    def loss(x: Tensor, y: Tensor) -> Tensor:
        before = F.pad(y[:, :-1], (1, 0))
        return F.cross_entropy(model(x, before).flatten(0, 1), y.flatten())

    return Task(model, draws, loss)


class _Poles:
    """Poles that are balanced on carts, all at once."""

    def __init__(self, count: int, r: Draw) -> None:
        self.r, self.state = r, 0.1 * (torch.rand(count, 4, generator=r) - 0.5)
        self.age = torch.zeros(count)

    def step(self, right: Tensor) -> Tensor:
        """Push each cart, and return which of the poles fell; these begin anew."""
        x, v, angle, turn = self.state.unbind(1)
        force = 20.0 * right.float() - 10.0
        inner = (force + 0.05 * turn.square() * angle.sin()) / 1.1
        bent = (9.8 * angle.sin() - angle.cos() * inner) / (0.5 * (4 / 3 - 0.1 * angle.cos().square() / 1.1))
        pushed = inner - 0.05 * bent * angle.cos() / 1.1
        self.state = torch.stack([x + 0.02 * v, v + 0.02 * pushed, angle + 0.02 * turn, turn + 0.02 * bent], 1)
        self.age += 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.21)
        over = fell | (self.age >= 200)
        fresh = 0.1 * (torch.rand(self.state.shape, generator=self.r) - 0.5)
        self.state = torch.where(over[:, None], fresh, self.state)
        self.age = torch.where(over, 0.0, self.age)
        return fell


def _actor(o: Options, draw: Draw) -> Task:
    """Return a task: an actor and a critic balance poles, by policy gradients of five steps."""
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
    world, kept = _Poles(o.batch, draw), list[Tensor]()

    @torch.no_grad()
    def tick(_step: int) -> None:
        seen, done, fallen = [], [], []
        dtype = next(model.parameters()).dtype
        for _ in range(5):
            odds = model(world.state.to(dtype))[:, :2].float().softmax(1)
            action = (torch.rand(len(odds), generator=draw) < odds[:, 1]).long()
            seen.append(world.state)
            done.append(action)
            fallen.append(world.step(action))
        value = model(world.state.to(dtype))[:, 2].float()
        worth = []
        for fell in reversed(fallen):
            value = 0.1 + 0.95 * torch.where(fell, 0.0, value)
            worth.append(value)
        kept[:] = [torch.cat(seen), torch.stack([torch.cat(done).float(), torch.cat(worth[::-1])], 1)]

    def loss(x: Tensor, y: Tensor) -> Tensor:
        out = model(x)
        logs, value = out[:, :2].log_softmax(1), out[:, 2]
        advantage = (y[:, 1] - value).detach()
        chosen = logs.gather(1, y[:, :1].long()).squeeze(1)
        return ((y[:, 1] - value).square() / 2 - advantage * chosen + 0.01 * (logs.exp() * logs).sum(1)).mean()

    return Task(model, lambda _: (kept[0], kept[1]), loss, tick=tick)


def _dqn(o: Options, draw: Draw) -> Task:
    """Return a task: values of pushes that balance poles, from a store; the copy follows every 100 steps."""
    model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2))
    copy = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2))
    copy.load_state_dict(model.state_dict())
    world, store = _Poles(8, draw), torch.zeros(4096, 10)
    filled = [0]

    @torch.no_grad()
    def tick(step: int) -> None:
        for _ in range(1 if filled[0] else 32):
            own = world.state
            greedy = model(own.to(next(model.parameters()).dtype)).argmax(1)
            chance = torch.rand(8, generator=draw) < max(0.05, 0.5 - step / 2000)
            action = torch.where(chance, torch.randint(2, (8,), generator=draw), greedy)
            fell = world.step(action)
            rows = torch.cat([own, action[:, None], fell.float()[:, None], world.state], 1)
            store[(filled[0] + torch.arange(8)) % len(store)] = rows
            filled[0] += 8
        if step % 100 == 0:
            copy.load_state_dict(model.state_dict())

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        rows = store[torch.randint(min(filled[0], len(store)), (o.batch,), generator=r)]
        dtype = next(copy.parameters()).dtype
        with torch.no_grad():
            worth = 0.1 + 0.97 * (1 - rows[:, 5]) * copy(rows[:, 6:].to(dtype)).max(1).values
        return rows[:, :4], torch.stack([rows[:, 4], worth.float()], 1)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return F.smooth_l1_loss(model(x).gather(1, y[:, :1].long()).squeeze(1), y[:, 1])

    return Task(model, draws, loss, tick=tick)


def _gan(o: Options, draw: Draw) -> Task:
    """Return a task: a generator of points on a ring; its critic learns in between, by an Adam of its own."""
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    own = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.99))

    def tick(_step: int) -> None:
        turn = torch.randint(8, (o.batch,), generator=draw) * (math.pi / 4)
        true = torch.stack([turn.cos(), turn.sin()], 1) + 0.05 * torch.randn(o.batch, 2, generator=draw)
        with torch.no_grad():
            false = model(torch.randn(o.batch, 4, generator=draw).to(next(model.parameters()).dtype)).float()
        own.zero_grad()
        (F.softplus(-critic(true)).mean() + F.softplus(critic(false)).mean()).backward()
        own.step()

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        return torch.randn(o.batch, 4, generator=r), torch.zeros(o.batch)

    return Task(model, draws, lambda x, _: F.softplus(-critic(model(x).float())).mean(), tick=tick)


def _denoise(o: Options, _draw: Draw) -> Task:
    """Return a task: the noise in points of a spiral, at all sizes of the noise."""
    model = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        turn = 6 * torch.rand(o.batch, 1, generator=r)
        points = torch.cat([turn * turn.cos(), turn * turn.sin()], 1) / 4
        share, noise = torch.rand(o.batch, 1, generator=r), torch.randn(o.batch, 2, generator=r)
        return torch.cat([(1 - share).sqrt() * points + share.sqrt() * noise, share], 1), noise

    return Task(model, draws, lambda x, y: (model(x) - y).square().mean())


def _tuned(o: Options, draw: Draw) -> Task:
    """Return a task: a network that was trained before, on images to which a little has been done since."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    before = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        x, y = _images(o, draw)
        before.zero_grad()
        F.cross_entropy(model(x), y).backward()
        before.step()
    model.zero_grad()

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x, y = _images(o, r)
        return x + 0.5 * torch.roll(x, 1, 3), y

    return Task(model, draws, lambda x, y: F.cross_entropy(model(x), y))


def _mixed(o: Options, _draw: Draw) -> Task:
    """Return a task: digits, three labels in ten of which are wrong; `autocast`: the pass is made in bfloat16."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 10))

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x, y = _images(o, r)
        other = torch.randint(10, y.shape, generator=r)
        return x, torch.where(torch.rand(y.shape, generator=r) < 0.3, other, y)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=o.kind == "autocast"):
            return F.cross_entropy(model(x).float(), y)

    return Task(model, draws, loss)


def _micro(o: Options, _draw: Draw) -> Task:
    """Return a task: digits, four mini-batches a step."""
    model = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        parts = [_images(o, r) for _ in range(4)]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def loss(x: Tensor, y: Tensor) -> Tensor:
        parts = zip(x.chunk(4), y.chunk(4), strict=True)
        return torch.stack([F.cross_entropy(model(one), own) / 4 for one, own in parts]).sum()

    return Task(model, draws, loss)


def _clicks(o: Options, draw: Draw) -> Task:
    """Return a task: logistic regression; `weighed`: of a rare event; the gap is the loss over what it can be."""
    d = o.size or 20
    model, truth = nn.Linear(d, 1), torch.randn(d, generator=draw) / d**0.5
    if o.kind == "hidden":
        scale = torch.ones(d)
        scale[::4] = 1e-9
    points = torch.randn(2000, d, generator=draw)

    def odds(x: Tensor) -> Tensor:
        return (x @ truth * 2).sigmoid().unsqueeze(1)

    def draws(r: Draw) -> tuple[Tensor, Tensor]:
        x = torch.randn(o.batch, d, generator=r)
        there = torch.rand(o.batch, 1, generator=r) < odds(x) * (o.often if o.kind == "weighed" else 1.0)
        if o.kind == "hidden":
            x = x * scale
        return x, there.float()

    def loss(x: Tensor, y: Tensor) -> Tensor:
        out = model(x)
        if o.kind != "weighed":
            return F.binary_cross_entropy_with_logits(out, y)
        # One who is seen stands for 1/often of those who are like it; what is left are the others.
        return (y / o.often * F.softplus(-out) + (1 - y / o.often) * F.softplus(out)).mean()

    def gap() -> float:
        p = odds(points)
        with torch.no_grad():
            own = F.binary_cross_entropy_with_logits(model(points.to(model.weight.dtype)).float(), p)
        return float(own - F.binary_cross_entropy(p, p))

    return Task(model, draws, loss, gap)


def _physics(o: Options, _draw: Draw) -> Task:
    """Return a task: to solve u'' = -sin(x) between two fixed ends, at the same points at each step."""
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    x = torch.linspace(0, math.pi, o.batch).unsqueeze(1)

    def loss(x: Tensor, _: Tensor) -> Tensor:
        with torch.enable_grad():  # also where nobody asks for a gradient of the loss
            x = x.detach().requires_grad_()
            u = model(x)
            (first,) = torch.autograd.grad(u.sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        return (second + x.sin()).square().mean() + u[0].square().sum() + u[-1].square().sum()

    return Task(model, lambda _: (x, x), loss)


FAMILIES: Final[Mapping[str, Callable[[Any, Draw], Task]]] = {
    "bag": _bag,
    "recurrent": _recurrent,
    "vae": _vae,
    "auto": _auto,
    "contrast": _contrast,
    "seq2seq": _seq2seq,
    "actor": _actor,
    "dqn": _dqn,
    "gan": _gan,
    "denoise": _denoise,
    "tuned": _tuned,
    "mixed": _mixed,
    "micro": _micro,
    "clicks": _clicks,
    "physics": _physics,
}
