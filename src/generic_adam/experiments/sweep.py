"""Many runs at once: single-threaded processes on this machine, or the workers of a Dask cluster.

The runs advance in lock-step, one epoch of each after the other, so that at any moment all methods have been
trained equally long: a study that is stopped early is a shorter study, not half of a comparison. A task is
one epoch of one run; it starts from the run's checkpoint and leaves the next.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from generic_adam.experiments.data import Dataset, load
from generic_adam.experiments.settings import RunSettings


@dataclass(frozen=True)
class Job:
    """A run, and the directory it lives in."""

    settings: RunSettings
    directory: Path


@dataclass(frozen=True)
class Advance:
    """What one task did.

    Attributes:
        job: whose run.
        epoch: epochs finished.
        train_loss: of the last of them.
        test_accuracy: after it.
        images_per_second: while training; None if the epoch had been run before.
        complaints: a line for each damaged checkpoint that was passed over.
    """

    job: Job
    epoch: int
    train_loss: float
    test_accuracy: float
    images_per_second: float | None
    complaints: tuple[str, ...]


class Pool(Protocol):
    """What the sweep needs of an executor; `concurrent.futures` and Dask's client both have it."""

    def submit(self, function: Callable[..., Advance], /, *arguments: object) -> Future[Advance]:
        """Run the function elsewhere."""
        ...


def run_sweep(
    jobs: Sequence[Job],
    pool: Pool,
    *,
    data: str | None,
    device: str = "cpu",
    on_advance: Callable[[Advance, float], None] | None = None,
    completed: Callable[[Sequence[Future[Advance]]], Iterator[Future[Advance]]] = as_completed,
) -> None:
    """Run all jobs to their last epoch.

    Args:
        jobs: the runs.
        pool: where tasks run.
        data: directory of the data sets, or None for the default places.
        device: "cpu" or "cuda".
        on_advance: called after each epoch of each run with the seconds that are left, as estimated.
        completed: iterates over futures as they finish; Dask has its own.
    """
    for job in jobs:
        job.directory.mkdir(parents=True, exist_ok=True)
    started, fresh = time.perf_counter(), 0
    for epoch in range(1, max(job.settings.epochs for job in jobs) + 1):
        futures = [
            pool.submit(advance, job, epoch, data, device) for job in jobs if job.settings.epochs >= epoch
        ]
        try:
            for future in completed(futures):
                done = future.result()
                fresh += done.images_per_second is not None
                if on_advance is not None:
                    left = sum(max(job.settings.epochs - epoch, 0) for job in jobs) + sum(
                        not other.done() for other in futures
                    )
                    pace = (time.perf_counter() - started) / fresh if fresh else 0.0
                    on_advance(done, left * pace)
        finally:
            for future in futures:
                future.cancel()


def advance(job: Job, epoch: int, data: str | None, device: str) -> Advance:
    """Bring one run to the end of `epoch`; nothing happens if it is there already."""
    from generic_adam.experiments import checkpoint, training

    speeds: list[float] = []
    with checkpoint.exclusive(job.directory):
        result = training.train(
            job.settings,
            _dataset(job.settings.dataset, data),
            job.directory,
            until=epoch,
            device=device,
            on_epoch=lambda progress: speeds.append(progress.images_per_second),
        )
    last = result.records[-1]
    return Advance(
        job,
        last.epoch,
        last.train_loss,
        last.test_accuracy,
        speeds[-1] if speeds else None,
        result.complaints,
    )


@lru_cache(maxsize=1)
def _dataset(name: str, directory: str | None) -> Dataset:
    """One copy a process, for all the tasks it is given."""
    return load(name, directory)


@contextmanager
def local_pool(workers: int) -> Iterator[Executor]:
    """Single-threaded worker processes on this machine, which end when this process does, however it ends."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _prepare_worker() -> None:
    """One thread, no denormal numbers (they are slow and mean nothing here), and no life of its own."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the parent decides; a Ctrl-C must not break off a checkpoint
    if sys.platform == "linux":
        # Without this a killed parent would leave workers that go on writing into the directory.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
