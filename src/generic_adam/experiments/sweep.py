"""Many runs at once: single-threaded processes on this machine, or the workers of a Dask cluster.

The runs advance in lock-step, one epoch of each after the other, so that at any moment all methods have been
trained equally long: a study that is stopped early is a shorter study, not half of a comparison. A task is
one epoch of one run; it starts from the run's checkpoint and leaves the next.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from generic_adam.experiments.dask_client import connect
from generic_adam.experiments.data import Dataset, load
from generic_adam.experiments.distributed import ALONE, Group
from generic_adam.experiments.settings import RunSettings, SettingsError
from generic_adam.experiments.training import EpochRecord


class WorkerError(ValueError):
    """A process that worked on a run is gone; the message is one line."""


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
        record: of the last epoch of the run, which may lie beyond the one that was asked for.
        is_over: whether there is nothing left to train.
        images_per_second: while training; None if the epoch had been run before.
        complaints: a line for each damaged checkpoint that was passed over.
    """

    job: Job
    record: EpochRecord
    is_over: bool
    images_per_second: float | None
    complaints: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """Where tasks run: `submit` gives futures, `completed` iterates over them as they finish."""

    submit: Callable[..., Any]
    completed: Callable[[Sequence[Any]], Iterable[Any]]


def run_sweep(
    jobs: Sequence[Job],
    pool: Pool,
    *,
    data: str | None,
    device: str = "cpu",
    on_advance: Callable[[Advance, float], None] | None = None,
) -> None:
    """Run all jobs to their last epoch.

    Args:
        jobs: the runs.
        pool: where tasks run.
        data: directory of the data sets, or None for the default places.
        device: "cpu" or "cuda".
        on_advance: called after each epoch of each run, with an estimate of the seconds that are left.
    """
    for job in jobs:
        job.directory.mkdir(parents=True, exist_ok=True)
    started, fresh = time.perf_counter(), 0
    left = {job: job.settings.epochs for job in jobs}  # of each run, as far as is known
    for epoch in range(1, max(left.values()) + 1):
        # A run that was found further on is not asked again before the others have caught up with it.
        behind = [job for job in jobs if left[job] > max(0, job.settings.epochs - epoch)]
        futures = [pool.submit(advance, job, epoch, data, device) for job in behind]
        try:
            for future in pool.completed(futures):
                done: Advance = future.result()
                left[done.job] = 0 if done.is_over else done.job.settings.epochs - done.record.epoch
                fresh += done.images_per_second is not None
                if on_advance is not None:
                    pace = (time.perf_counter() - started) / fresh if fresh else 0.0
                    on_advance(done, sum(left.values()) * pace)
        finally:
            for future in futures:
                future.cancel()


def advance(job: Job, epoch: int, data: str | None, device: str, group: Group = ALONE) -> Advance:
    """Bring one run to the end of `epoch`; nothing happens if it is there already."""
    import torch

    from generic_adam.experiments import training
    from generic_adam.experiments.run import exclusive

    # One thread: several runs side by side use the cores better than one run across them, and the order of
    # additions is fixed. Denormal numbers are slow and mean nothing here.
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    speeds: list[float] = []
    with exclusive(job.directory) if group.is_first else nullcontext():
        result = training.train(
            job.settings,
            _dataset(job.settings.dataset, data),
            job.directory,
            until=epoch,
            device=device,
            group=group,
            on_epoch=lambda progress: speeds.append(progress.images_per_second),
        )
    # A run whose loss stopped being a number has fewer epochs; one that was run longer before has more.
    record = result.records[min(job.settings.epochs, len(result.records)) - 1]
    is_over = record.epoch == job.settings.epochs or not math.isfinite(record.train_loss)
    return Advance(job, record, is_over, speeds[-1] if speeds else None, result.complaints)


@lru_cache(maxsize=1)
def _dataset(name: str, directory: str | None) -> Dataset:
    """One copy a process, for all the tasks it is given."""
    return load(name, directory)


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """Worker processes on this machine, which end when this process does, however it ends."""
    if workers < 1:
        raise SettingsError(f"jobs {workers}: expected a positive whole number")
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_die_with_parent) as executor:
        try:
            yield Pool(executor.submit, as_completed)
        except BaseException as error:
            # Ctrl-C, or a task that failed: to wait for epochs under way would look like hanging, and what
            # they have done so far is repeated from the last checkpoint anyway.
            executor.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            if isinstance(error, BrokenProcessPool):
                raise WorkerError(
                    "a worker process was killed, perhaps for want of memory (fewer --jobs need less); "
                    "the same command goes on from the last checkpoints"
                ) from error
            raise


def _die_with_parent() -> None:
    """Tie a worker to the process that started it, and leave Ctrl-C to that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it must not break off a checkpoint
    if sys.platform == "linux":
        # Without this a killed parent would leave workers that go on writing into the directory.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextmanager
def dask_pool(address: str) -> Iterator[Pool]:
    """The workers of a Dask cluster; they need this package, and the data and --out under the same paths.

    Args:
        address: of the scheduler, "tcp://HOST:PORT".
    """
    with connect(address) as client:
        from distributed import as_completed as dask_as_completed

        def submit(function: Callable[..., Advance], *arguments: object) -> object:
            # Not pure: what a task does depends on the checkpoint that it finds.
            return client.submit(function, *arguments, pure=False)

        yield Pool(submit, dask_as_completed)


@dataclass(frozen=True)
class _Later:
    """A task that runs when its result is asked for, so that each is told of as soon as it is done."""

    result: Callable[[], Advance]

    def cancel(self) -> None:
        """Nothing is under way."""


def group_pool(group: Group) -> Pool:
    """This process itself, one task after the other, together with the other processes of its group."""

    def submit(function: Callable[..., Advance], *arguments: object) -> _Later:
        return _Later(partial(function, *arguments, group))

    return Pool(submit, iter)
