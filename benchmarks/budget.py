"""Does the budget of a run close, and does it notice what else moves the weights? Three networks, 20 runs, shuffled.

Each run is 1,000 steps of shuffled epochs (characters: random places), a budget at its end. Three more have all weights
shrunk by 1e-4 after each step, behind the optimizer's back. The cost is processor time with the meter over without, of
the first run of each network. MNIST is looked for as `generic_adam_laboratory.data` does.

    python benchmarks/budget.py
"""

import math
import time
from collections.abc import Callable, Iterator

import torch
from machine import publish
from torch import Tensor, nn

from generic_adam.theorems.measured import Budget
from generic_adam.torch import GenericAdam
from generic_adam.watch.budget import BudgetMeter
from generic_adam_laboratory.data.datasets import load
from generic_adam_laboratory.networks import GPT, LeNet

STEPS, BATCH, LENGTH = 1000, 64, 32
ADAMS = {
    "Adam (0.9, 0.95)": lambda p: torch.optim.Adam(p, lr=1e-3, betas=(0.9, 0.95)),
    "Adam (0.9, 0.999)": lambda p: torch.optim.Adam(p, lr=1e-3),
    "AdamW, decay 0.1": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.1),
    "1e-2/sqrt(t)": lambda p: GenericAdam(p, lr="0.01/sqrt(t)"),
}
RUNS = [
    *((name, adam, seed) for name in ("MLP", "LeNet") for adam in list(ADAMS)[:2] for seed in range(3)),
    *(("GPT", adam, seed) for adam in list(ADAMS)[:2] for seed in range(2)),
    *((name, adam, 0) for name in ("MLP", "GPT") for adam in list(ADAMS)[2:]),
]
Loss = Callable[[Tensor], Tensor]


def problem(name: str) -> tuple[nn.Module, Loss, int]:
    """Return a network, the loss of some rows of its data, and the number of rows."""
    if name == "GPT":
        text = torch.tensor(load("stdlib").train[: 1 << 20], dtype=torch.long)
        network = GPT(int(text.max()) + 1, 32)

        def characters(rows: Tensor) -> Tensor:
            window = text[rows[: BATCH // 4, None] + torch.arange(LENGTH + 1)]
            return nn.functional.cross_entropy(network(window[:, :-1]), window[:, 1:])

        return network, characters, len(text) - LENGTH
    data = load("digits" if name == "MLP" else "mnist")
    images = torch.tensor(data.train_images, dtype=torch.float32).permute(0, 3, 1, 2) / data.train_images.max()
    labels = torch.tensor(data.train_labels, dtype=torch.long)
    pixels = images[0].numel()
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 10))
    network = mlp if name == "MLP" else LeNet()
    return network, lambda rows: nn.functional.cross_entropy(network(images[rows]), labels[rows]), len(images)


def train(name: str, adam: str, seed: int, *, measured: bool = True, shrunk: bool = False) -> Budget | None:
    """Train, and return the budget."""
    torch.manual_seed(seed)
    network, loss, rows = problem(name)
    optimizer = ADAMS[adam](network.parameters())
    meter = None
    if measured:
        meter = BudgetMeter(optimizer, lambda: loss(torch.randint(rows, (BATCH,))), seed=seed, model=network)
    batches = shuffled(rows)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(next(batches)).backward()
        optimizer.step()
        if shrunk:
            with torch.no_grad():
                for p in network.parameters():
                    p.mul_(1 - 1e-4)
    return None if meter is None else meter.budget()


def shuffled(rows: int) -> Iterator[Tensor]:
    """Yield the batches of epochs without end, each in a new order."""
    while True:
        yield from torch.randperm(rows)[: rows - rows % BATCH].split(BATCH)


def row(name: str, adam: str, seed: int, found: Budget, cost: str = "") -> tuple[str, ...]:
    """Return a line of the table."""
    total = math.fsum(getattr(found, part).value for part in found.shares) or math.nan
    residual = found.residual
    shares = (
        f"{100 * one.value / total:.0f} +- {100 * one.standard_error / total:.0f}"
        for one in (found.curvature, found.loss_drop, found.bias, found.size)
    )
    apart = residual.value / residual.standard_error if residual and residual.standard_error else math.nan
    return f"{name}, {adam}, {seed}", str(found.size.steps), *shares, f"{apart:+.1f}", str(found.closes), cost


def main() -> None:
    """Train, print and keep the table."""
    torch.set_num_threads(1)
    begin, rows, known = time.perf_counter(), [], set()
    for name, adam, seed in RUNS:
        start = time.process_time()
        found = train(name, adam, seed)
        used, cost = time.process_time() - start, ""
        if name not in known:
            known.add(name)
            start = time.process_time()
            train(name, adam, seed, measured=False)
            cost = f"{used / (time.process_time() - start):.2f}"
        rows.append(row(name, adam, seed, found, cost))
        print(*rows[-1], flush=True)
    closed = sum(one[7] == "True" for one in rows)
    print(f"{closed} of {len(rows)} close")
    for name in ("MLP", "LeNet", "GPT"):
        adam = next(iter(ADAMS))
        rows.append(row(f"shrunk: {name}", adam, 0, train(name, adam, 0, shrunk=True)))
        print(*rows[-1], flush=True)
    publish(
        "budget",
        ("run", "measured", "curvature %", "loss drop %", "bias %", "size %", "residual / error", "closes", "cost"),
        rows,
        command="python benchmarks/budget.py",
        seconds=time.perf_counter() - begin,
        settings={"steps": STEPS, "batch": BATCH, "threads": 1, "closed": closed},
    )


if __name__ == "__main__":
    main()
