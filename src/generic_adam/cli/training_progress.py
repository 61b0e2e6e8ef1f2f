"""What a study of networks shows while it runs: epoch, loss, accuracy, images a second, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generic_adam.experiments.sweep import Advance, Job


@contextmanager
def show_progress(
    jobs: Sequence[Job], directory: Path, *, tensorboard: bool
) -> Iterator[Callable[[Advance, float], None]]:
    """A line after each epoch of each run, or bars on a terminal.

    Args:
        jobs: the runs.
        directory: of the study.
        tensorboard: also write logs for TensorBoard there.

    Yields:
        What a sweep is to call after each epoch.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.studies import run_folder

    console = make_console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}"),
    )
    bars = Progress(*columns, console=console, disable=not console.is_terminal)
    tasks = {
        job.directory: bars.add_task(str(run_folder(job.settings)), total=job.settings.epochs, now="")
        for job in jobs
    }
    with bars, _tensorboard(directory, tensorboard) as log:

        def tell(done: Advance, seconds_left: float) -> None:
            for complaint in done.complaints:
                console.print(f"warning: {complaint}; the checkpoint before it is used")
            speed = (
                "done before" if done.images_per_second is None else f"{done.images_per_second:,.0f} images/s"
            )
            now = (
                f"loss {done.record.train_loss:.4f}, accuracy {done.record.test_accuracy:.2%}, {speed}, "
                f"{_duration(seconds_left)} left"
            )
            bars.update(tasks[done.job.directory], completed=done.record.epoch, now=now)
            if done.images_per_second is not None:
                log(done)
                if not console.is_terminal:
                    settings = done.job.settings
                    console.print(
                        f"{run_folder(settings)}: epoch {done.record.epoch}/{settings.epochs}, {now}"
                    )

        yield tell


@contextmanager
def _tensorboard(directory: Path, wanted: bool) -> Iterator[Callable[[Advance], None]]:
    """A function that logs an epoch; it does nothing unless wanted."""
    if not wanted:
        yield lambda _done: None
        return
    from torch.utils.tensorboard import SummaryWriter  # pyright: ignore[reportPrivateImportUsage]

    from generic_adam.experiments.studies import run_folder
    from generic_adam.experiments.study_records import MEASURES

    writers: dict[Path, SummaryWriter] = {}

    def log(done: Advance) -> None:
        folder = directory / "tensorboard" / run_folder(done.job.settings)
        if folder not in writers:
            writers[folder] = SummaryWriter(str(folder))
        writer = writers[folder]
        for measure in MEASURES:
            writer.add_scalar(measure, getattr(done.record, measure), done.record.epoch)
        writer.flush()

    try:
        yield log
    finally:
        for writer in writers.values():
            writer.close()


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
