"""Several processes on one run, as ``torchrun`` starts them; alone, everything here does nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from generic_adam.extras import from_extra

with from_extra("experiments"):
    import torch
    from torch import distributed


T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """The processes that share one run.

    Attributes:
        rank: of this process, from 0.
        size: number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and talks to the user."""
        return self.rank == 0

    def batches(self, order: torch.Tensor, batch_size: int) -> Iterator[tuple[torch.Tensor, int]]:
        """This process's share of each batch, with the size of the whole batch.

        The batches are those of a single process. A last batch with fewer images than processes is left out,
        on all of them, because batch normalisation of nothing is undefined.
        """
        for batch in order.split(batch_size):
            if len(batch) >= self.size:
                yield batch.tensor_split(self.size)[self.rank], len(batch)

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` gives on the first process, on all of them: they need not see the same disk."""
        if self.size == 1:
            return make()
        shared = [make() if self.is_first else None]
        distributed.broadcast_object_list(shared)
        return shared[0]  # pyright: ignore[reportReturnType]

    def mean(self, value: torch.Tensor) -> torch.Tensor:
        """The mean of a tensor over the processes."""
        if self.size > 1:
            distributed.all_reduce(value)
            value /= self.size
        return value


ALONE = Group()
"""A single process."""


@contextmanager
def process_group(device: str) -> Iterator[Group]:
    """Join the processes that ``torchrun`` started, or yield `ALONE` if it did not start this one.

    Args:
        device: "cpu" (gloo) or "cuda" (nccl, one GPU a process).
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Group(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
