"""Whatever a program does to an optimizer between its steps, Generic Adam with constants stays torch's AdamW."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from generic_adam.torch import GenericAdam

SHAPES = ((), (1,), (3,), (2, 3), (0,), (2, 3, 2, 2))
PATHS: tuple[dict[str, bool], ...] = ({}, {}, {}, {"foreach": True}, {"foreach": False}, {"fused": True})


class Pair:
    """Both optimizers, each with its own copy of the same parameters; every act is done to both."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = self.choose.choice([torch.float64, torch.float64, torch.complex128])
        self.ours, self.theirs = [], []
        sizes = [self.choose.randint(1, 3) for _ in range(self.choose.randint(1, 3))]
        groups = [[self.parameter() for _ in range(size)] for size in sizes]
        options = {
            "lr": 0.01,
            "weight_decay": self.choose.choice([0.0, 0.1]),
            "amsgrad": self.choose.random() < 0.2,
            "maximize": self.choose.random() < 0.2,
        }
        path = self.choose.choice(PATHS)
        self.optimizer: Any = GenericAdam([{"params": [x for x, _ in group]} for group in groups], **options, **path)
        self.peer: Any = torch.optim.AdamW(
            [{"params": [y for _, y in group]} for group in groups], **options, foreach=False
        )

    def tensor(self, shape: Any) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator, dtype=self.dtype)

    def parameter(self) -> tuple[torch.nn.Parameter, torch.nn.Parameter]:
        start = self.tensor(self.choose.choice(SHAPES))
        self.ours.append(torch.nn.Parameter(start.clone()))
        self.theirs.append(torch.nn.Parameter(start.clone()))
        return self.ours[-1], self.theirs[-1]

    def both(self, act: Callable[[Any], object]) -> None:
        for optimizer in (self.optimizer, self.peer):
            act(optimizer)

    def group(self) -> int:
        return self.choose.randrange(len(self.optimizer.param_groups))

    def assert_same(self) -> None:
        for x, y in zip(self.ours, self.theirs, strict=True):
            torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-9, atol=1e-11)


# --- steps ---


def step(pair: Pair, share: float = 1.0, strange: bool = False) -> None:
    for x, y in zip(pair.ours, pair.theirs, strict=True):
        g = pair.tensor(x.shape)
        y.grad = g.clone() if pair.choose.random() < share else None
        if strange and g.dim() == 4:
            g = g.transpose(0, 1).contiguous().transpose(0, 1)
        if strange and g.shape == (3,):
            g = g[:1].expand(3)
            y.grad = g.clone() if y.grad is not None else None
        x.grad = None if y.grad is None else g
    pair.both(lambda optimizer: optimizer.step())


def step_with_hooks(pair: Pair) -> None:
    handle = pair.optimizer.register_step_pre_hook(lambda *_: None)
    step(pair)
    handle.remove()


def step_without_a_group(pair: Pair) -> None:
    at = pair.group()
    idle = {id(x) for optimizer in (pair.optimizer, pair.peer) for x in optimizer.param_groups[at]["params"]}
    for x, y in zip(pair.ours, pair.theirs, strict=True):
        g = pair.tensor(x.shape)
        x.grad, y.grad = (None, None) if id(x) in idle else (g, g.clone())
    pair.both(lambda optimizer: optimizer.step())


# --- groups ---


def move(pair: Pair) -> None:
    source, target = pair.group(), pair.group()
    params = pair.optimizer.param_groups[source]["params"]
    if params and source != target:
        at = pair.choose.randrange(len(params))
        pair.both(lambda o: o.param_groups[target]["params"].append(o.param_groups[source]["params"].pop(at)))


def take_out_and_add(pair: Pair) -> None:
    at = pair.group()
    if pair.optimizer.param_groups[at]["params"]:
        for optimizer in (pair.optimizer, pair.peer):
            group = optimizer.param_groups.pop(at)
            optimizer.add_param_group({key: group[key] for key in ("params", "lr")})


def take_out(pair: Pair) -> None:
    at = pair.group()
    if len(pair.optimizer.param_groups) > 1:
        pair.both(lambda o: [o.state.pop(x, None) for x in o.param_groups.pop(at)["params"]])


def replace_by_a_copy(pair: Pair) -> None:
    at = pair.group()
    for groups in (pair.optimizer.param_groups, pair.peer.param_groups):
        groups[at] = {**groups[at], "params": [*groups[at]["params"]]}


def add(pair: Pair) -> None:
    x, y = pair.parameter()
    pair.optimizer.add_param_group({"params": [x]})
    pair.peer.add_param_group({"params": [y]})


def shuffle(pair: Pair) -> None:
    seed = pair.choose.random()
    for part in (lambda o: [o.param_groups], lambda o: [group["params"] for group in o.param_groups]):
        pair.both(lambda o, part=part: [random.Random(seed).shuffle(one) for one in part(o)])


def set_the_rate(pair: Pair) -> None:
    at, rate = pair.group(), pair.choose.choice([0.01, 0.003, 0.0, torch.tensor(0.02, dtype=torch.float64)])
    pair.optimizer.param_groups[at]["lr"] = rate
    pair.peer.param_groups[at]["lr"] = float(rate)


# --- state ---


def look(pair: Pair) -> None:
    assert len(pair.optimizer.state) == len(pair.peer.state)


def clear(pair: Pair) -> None:
    at = pair.group()
    for x in range(len(pair.optimizer.param_groups[at]["params"])):
        pair.both(lambda o, x=x: o.state.pop(o.param_groups[at]["params"][x], None))


def swap(pair: Pair) -> None:
    places = [(at, k) for at, g in enumerate(pair.optimizer.param_groups) for k in range(len(g["params"]))]
    if len(places) < 2:
        return
    chosen = pair.choose.sample(places, 2)
    for o in (pair.optimizer, pair.peer):
        x, y = (o.param_groups[at]["params"][k] for at, k in chosen)
        if x.shape == y.shape and x in o.state and y in o.state:
            o.state[x], o.state[y] = o.state[y], o.state[x]


def replace_data(pair: Pair) -> None:
    x = pair.choose.choice(pair.ours)
    x.data = x.data.clone()


def deep_copy(pair: Pair) -> None:
    pair.optimizer, pair.ours = copy.deepcopy((pair.optimizer, pair.ours))


def pickled(pair: Pair) -> None:
    pair.optimizer, pair.ours = pickle.loads(pickle.dumps((pair.optimizer, pair.ours)))


def load_its_own(pair: Pair) -> None:
    pair.both(lambda o: o.load_state_dict(copy.deepcopy(o.state_dict())))


def load_adams(pair: Pair) -> None:
    pair.optimizer.load_state_dict(copy.deepcopy(pair.peer.state_dict()))


def hand_to_adam(pair: Pair) -> None:
    pair.peer.load_state_dict(copy.deepcopy(pair.optimizer.state_dict()))
    for group in pair.peer.param_groups:
        group["foreach"], group["fused"] = False, None


ACTS: list[Callable[[Pair], None]] = [
    *[step] * 8,
    lambda pair: step(pair, share=0.5),
    lambda pair: step(pair, strange=True),
    *(step_with_hooks, step_without_a_group),
    *(move, take_out_and_add, take_out, replace_by_a_copy, add, shuffle, set_the_rate),
    *(look, clear, swap, replace_data, deep_copy, pickled, load_its_own, load_adams, hand_to_adam),
]


def run(seed: int) -> None:
    pair = Pair(seed)
    for _ in range(pair.choose.randint(5, 40)):
        pair.choose.choice(ACTS)(pair)
        pair.assert_same()
    look(pair)
    for ours, theirs in zip(pair.optimizer.param_groups, pair.peer.param_groups, strict=True):
        for x, y in zip(ours["params"], theirs["params"], strict=True):
            assert pair.optimizer.state.get(x, {}).get("step", 0) == int(pair.peer.state.get(y, {}).get("step", 0))


@pytest.mark.parametrize("seed", range(60))
def test_it_stays_adam(seed: int) -> None:
    run(seed)


@pytest.mark.exhaustive
def test_it_stays_adam_thousands_of_times() -> None:
    for seed in range(60, 3000):
        run(seed)
