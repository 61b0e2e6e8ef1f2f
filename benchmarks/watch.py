"""The cost of watching: whole training steps with a Watch beside the same steps without, in one process by turns.

A block is the 25 steps of a window, its record included; the figure is the median over pairs of blocks of their ratio,
in processor time, with the loss as a user gives it.

    python benchmarks/watch.py
"""

import statistics
import time

import torch
from machine import publish
from torch import nn

from generic_adam.torch import GenericAdam, Watch
from generic_adam_laboratory.networks import GPT, LeNet, ResNet18

BLOCK, PAIRS = 25, 12
NETWORKS = {
    "small GPT, width 128, 16 x 64": (
        lambda: GPT(97, 128),
        lambda: (torch.randint(97, (16, 64)), torch.randint(97, (16, 64))),
        1.0,
    ),
    "ResNet-18, width 8, batch 32": (
        lambda: ResNet18(3, 100, 8),
        lambda: (torch.randn(32, 3, 32, 32), torch.randint(100, (32,))),
        1.0,
    ),
    "LeNet, batch 64": (LeNet, lambda: (torch.randn(64, 1, 28, 28), torch.randint(10, (64,))), 3.0),
}
OPTIMIZERS = {"Adam": torch.optim.Adam, "GenericAdam": lambda p: GenericAdam(p, lr=1e-3)}


class Run:
    """A network and its optimizer, watched or not."""

    def __init__(self, network: nn.Module, optimizer: torch.optim.Optimizer, *, watched: bool) -> None:
        self.network, self.optimizer = network, optimizer
        self.watch = Watch(optimizer, model=network, on_event=lambda _: None) if watched else None

    def block(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Return the processor seconds of a window of steps."""
        start = time.process_time()
        for _ in range(BLOCK):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.network(inputs), targets)
            loss.backward()
            self.optimizer.step()
            if self.watch is not None:
                self.watch.loss(loss)
        return time.process_time() - start


def main() -> None:
    """Measure, print and keep the table."""
    torch.set_num_threads(1)
    begin, rows = time.perf_counter(), []
    for name, (make, draw, goal) in NETWORKS.items():
        for kind, adam in OPTIMIZERS.items():
            torch.manual_seed(0)
            batch, runs = draw(), []
            for watched in (False, True):
                network = make()
                runs.append(Run(network, adam(network.parameters()), watched=watched))
            for run in runs:
                run.block(*batch)
            plain, watched = zip(*([run.block(*batch) for run in runs] for _ in range(PAIRS)), strict=True)
            over = sorted(100 * (b / a - 1) for a, b in zip(plain, watched, strict=True))
            best = 100 * (min(watched) / min(plain) - 1)
            step = min(plain) / BLOCK
            rows.append((
                f"{name}, {kind}", f"{1e3 * step:.2f} ms", f"{statistics.median(over):.2f} %", f"{best:.2f} %",
                f"{over[len(over) // 4]:.2f} to {over[-1 - len(over) // 4]:.2f} %", f"< {goal:g} %",
            ))  # fmt: skip
            print(*rows[-1], flush=True)
    publish(
        "watch",
        ("network", "a step", "overhead, median", "best against best", "middle half", "goal"),
        rows,
        command="python benchmarks/watch.py",
        seconds=time.perf_counter() - begin,
        settings={"block": BLOCK, "pairs": PAIRS, "threads": 1},
    )


if __name__ == "__main__":
    main()
