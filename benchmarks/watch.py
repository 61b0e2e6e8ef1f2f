"""What watching costs: a LeNet training step with a Watch that records every 100 steps, against one without.

The cost has two parts, each measured on `optimizer.step()` alone, where it is large against the noise: what
every step pays, and what a record pays. Their mean over 100 steps is set against a whole LeNet step (batch
64, forward, backward, update), all in processor time. A step after `detach` runs no code of Watch's at all:
the optimizer has no hooks left.

    python benchmarks/watch.py
"""

import time

import torch
from machine import best_seconds, publish

from generic_adam.torch import GenericAdam, Watch
from generic_adam_laboratory.networks import LeNet

EVERY = 100
NEVER = 10**12
OPTIMIZERS = {
    "torch.optim.Adam": torch.optim.Adam,
    "GenericAdam": lambda parameters: GenericAdam(parameters, lr="0.001/sqrt(t)", theta="1 - 1/max(t, 2)"),
}


class Run:
    """A network, an optimizer and, unless `every` is None, a Watch."""

    def __init__(self, name: str, every: int | None, *, detach: bool = False) -> None:
        torch.manual_seed(0)
        self.network = LeNet()
        self.optimizer = OPTIMIZERS[name](self.network.parameters())
        self.images, self.labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
        self.train()
        self.watch = None if every is None else Watch(self.optimizer, every=every)
        if detach and self.watch is not None:
            self.watch.detach()

    def train(self) -> None:
        """One whole training step."""
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.network(self.images), self.labels).backward()
        self.optimizer.step()

    def update(self) -> None:
        """The optimizer's step alone, on the gradients that are there."""
        self.optimizer.step()
        if self.watch is not None:
            self.watch.records.clear()


def main() -> None:
    """Measure, print and keep the table."""
    torch.set_num_threads(1)
    begin = time.perf_counter()
    rows = []
    for name in OPTIMIZERS:
        runs = {
            "plain": Run(name, None),
            "detached": Run(name, 1, detach=True),
            "idle": Run(name, NEVER),
            "record": Run(name, 1),
        }
        updates = best_seconds(
            {key: run.update for key, run in runs.items()}, rounds=60, calls=20, clock=time.process_time
        )
        step = best_seconds({"step": Run(name, None).train}, rounds=40, calls=3, clock=time.process_time)["step"]
        idle, record = updates["idle"] - updates["plain"], updates["record"] - updates["plain"]
        mean = ((EVERY - 1) * idle + record) / EVERY
        rows.append(
            (
                name,
                f"{step * 1e3:.2f} ms",
                f"{updates['plain'] * 1e6:.0f} us",
                f"{updates['detached'] / updates['plain']:.3f}",
                f"{idle * 1e6:.1f} us",
                f"{record * 1e3:.2f} ms",
                f"{100 * mean / step:.2f} %",
            )
        )
    publish(
        "watch",
        (
            "optimizer",
            "LeNet step",
            "update alone",
            "update, detached / plain",
            "idle hook",
            "one record",
            "overhead at every = 100",
        ),
        rows,
        command="python benchmarks/watch.py",
        seconds=time.perf_counter() - begin,
        settings={"network": "LeNet", "batch": 64, "every": EVERY, "threads": 1},
    )


if __name__ == "__main__":
    main()
