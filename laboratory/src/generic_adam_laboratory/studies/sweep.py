"""Running a study: all its methods in lock-step, on this machine, a Dask cluster or ``torchrun``'s processes.

One epoch of each run after the other, so that at any moment all methods have been trained equally long: a
study that is stopped early is a shorter study, not half of a comparison. A task is one epoch of one run; it
starts from the run's checkpoint and leaves the next.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from generic_adam.errors import RunError
from generic_adam.files import ensure_output_directory, write_json, writing
from generic_adam_laboratory import backends
from generic_adam_laboratory.backends import ALONE, Group, Pool
from generic_adam_laboratory.data.datasets import Dataset, Text, load
from generic_adam_laboratory.runs.records import read_manifest
from generic_adam_laboratory.runs.run import exclusive, refuse_another
from generic_adam_laboratory.studies.study import Job, Study
from generic_adam_laboratory.training import EpochRecord, train

_ELAPSED: Final = "elapsed.json"


@dataclass(frozen=True)
class Advance:
    """The outcome of one task for its job.

    Attributes:
        record: of the last epoch of the run, which may lie beyond the one that was asked for.
        is_over: whether there is nothing left to train.
        samples_per_second: while training; None if the epoch had been run before.
        complaints: a line for each damaged checkpoint that was passed over.
    """

    job: Job
    record: EpochRecord
    is_over: bool
    samples_per_second: float | None
    complaints: tuple[str, ...]


Told = Callable[[Advance, float], None]
"""Told what a task did, and an estimate of the seconds that are left."""


@dataclass(frozen=True)
class Place:
    """The places of a study: of its runs, its data (None: the default places) and its results.

    It has one worker a core by default, or one for a GPU; or those of a Dask scheduler.
    """

    directory: Path
    data: Path | None = None
    device: str = "cpu"
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise RunError(f"--jobs {self.workers}: expected a positive whole number")
        if self.device not in {"cpu", "cuda"}:
            raise RunError(f"--device {self.device!r}: expected cpu or cuda")
        if self.device == "cuda" and self.scheduler is None:  # a cluster's devices are not seen from here
            import torch

            if not torch.cuda.is_available():
                raise RunError("--device cuda: torch finds no CUDA device on this machine")

    def pool(self, group: Group, tell: Callable[[str], None]) -> AbstractContextManager[Pool]:
        """Choose the backend of its tasks."""
        if group.size > 1:
            return nullcontext(backends.group_pool(group))
        if self.scheduler is not None:
            return backends.dask_pool(self.scheduler, tell)
        default = 1 if self.device == "cuda" else os.cpu_count() or 1
        workers = default if self.workers is None else self.workers
        # One worker is this process itself, which has torch already.
        return backends.local_pool(workers) if workers > 1 else nullcontext(backends.group_pool(group))


def run(
    study: Study,
    place: Place,
    *,
    on_advance: Told = lambda _done, _seconds: None,
    tell: Callable[[str], None] = lambda _: None,
    restart: bool = False,
) -> bool:
    """Run a study, or what is left of it; return whether this process, the first of a group, is to publish it.

    `on_advance` is told of each epoch of each run, with an estimate of the seconds that are left; `tell` of what there
    is to wait for. `restart` forgets what the directory has of these runs. A signal raises `Paused`.
    """
    directory = ensure_output_directory(place.directory)
    jobs = study.jobs(directory)

    def advanced(done: Advance, seconds_left: float) -> None:
        on_advance(done, seconds_left)
        write_json(directory / _ELAPSED, {"seconds": earlier + time.perf_counter() - begun})

    with (
        backends.pausing(),
        backends.process_group(place.device) as group,
        exclusive(directory) if group.is_first else nullcontext(),
        place.pool(group, tell) as pool,
    ):
        if restart and group.is_first:
            with writing(f"anew to {directory}"):  # an old run that cannot be removed would be taken for the new one
                (directory / _ELAPSED).unlink(missing_ok=True)
                for job in jobs:
                    if job.directory.exists():
                        shutil.rmtree(job.directory)
        elif group.is_first and (manifest := read_manifest(directory)):
            refuse_another(directory, "finished", manifest.get("settings"), study.identity)
        begun, earlier = time.perf_counter(), elapsed_seconds(directory)
        told = {"on_advance": advanced} if group.is_first else {}
        run_jobs(jobs, pool, data=place.data, device=place.device, **told)
        return group.is_first


def elapsed_seconds(directory: Path) -> float:
    """Seconds that commands have spent on this study so far; a manifest counts them all."""
    try:
        seconds = float(json.loads((directory / _ELAPSED).read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0.0  # only the manifest's time is lost with it
    return seconds if math.isfinite(seconds) else 0.0


def run_jobs(
    jobs: Sequence[Job],
    pool: Pool,
    *,
    data: Path | None,
    device: str = "cpu",
    on_advance: Told = lambda _done, _seconds: None,
) -> None:
    """Run all jobs to their last epoch; see `run`."""
    for job in jobs:
        job.directory.mkdir(parents=True, exist_ok=True)
    place = None if data is None else str(data.absolute())
    started, fresh = time.perf_counter(), 0
    left = {job: job.settings.epochs for job in jobs}  # of each run, as far as is known
    for epoch in range(1, max(left.values(), default=0) + 1):
        # A run that was found further on is not asked again before the others have caught up with it.
        behind = [job for job in jobs if left[job] > max(0, job.settings.epochs - epoch)]
        for future in pool.completed([pool.submit(advance, job, epoch, place, device) for job in behind]):
            done: Advance = future.result()
            left[done.job] = 0 if done.is_over else done.job.settings.epochs - done.record.epoch
            fresh += done.samples_per_second is not None
            pace = (time.perf_counter() - started) / fresh if fresh else 0.0
            on_advance(done, sum(left.values()) * pace)


def advance(job: Job, epoch: int, data: str | None, device: str, group: Group = ALONE) -> Advance:
    """Bring one run to the end of `epoch`; nothing happens if it is there already."""
    import torch

    # One thread: several runs side by side use the cores better than one run across them, and the order of
    # additions is fixed. Denormal numbers are slow and mean nothing to a training, but may to what comes after it.
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        with exclusive(job.directory) if group.is_first else nullcontext():
            dataset = _dataset(job.settings.dataset, data)
            result = train(job.settings, dataset, job.directory, until=epoch, device=device, group=group)
    finally:
        torch.set_flush_denormal(False)
    # A run whose loss stopped being a number has fewer epochs; one that was run longer before has more.
    record = result.records[min(job.settings.epochs, len(result.records)) - 1]
    is_over = record.epoch == job.settings.epochs or not math.isfinite(record.train_loss)
    return Advance(job, record, is_over, result.samples_per_second, result.complaints)


@lru_cache(maxsize=1)
def _dataset(name: str, directory: str | None) -> Dataset | Text:
    """One copy a process, for all the tasks it is given."""
    return load(name, directory)
