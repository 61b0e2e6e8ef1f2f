"""All curves of a study in one table, cut to the epochs that every run has."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from generic_adam.experiments.records import OutputError, atomic_write
from generic_adam.experiments.studies import FORGOTTEN
from generic_adam.experiments.sweep import Job
from generic_adam.experiments.training import EpochRecord, read_records

COLUMNS = ("epsilon", "method", "seed", "epoch", "train_loss", "test_loss", "test_accuracy")
MEASURES = ("train_loss", "test_accuracy", "test_loss")
"""What is plotted, in the order of the paper's panels."""


@dataclass(frozen=True)
class Curve:
    """One run of a study.

    Attributes:
        method: its label.
        epsilon: v_0; None if the method forgets it, or if it does not tell curves apart.
        seed: of the run.
        records: one for each epoch.
    """

    method: str
    epsilon: float | None
    seed: int
    records: tuple[EpochRecord, ...]


def collect(jobs: Sequence[Job], *, compare_epsilons: bool = True) -> list[Curve]:
    """Read the records of finished runs, in the order of the jobs; epochs beyond the settings' are left out.

    Args:
        jobs: the runs.
        compare_epsilons: whether v_0 tells the curves apart; otherwise each method has its own, and no curve
            names it.
    """
    return [
        Curve(
            settings.optimizer.label,
            settings.optimizer.epsilon
            if compare_epsilons and settings.optimizer.epsilon != FORGOTTEN
            else None,
            settings.seed,
            tuple(read_records(job.directory / "records.csv")[: settings.epochs]),
        )
        for job in jobs
        for settings in (job.settings,)
    ]


def epsilons(curves: Sequence[Curve]) -> list[float]:
    """The values of v_0 that were compared, in their order."""
    return list(dict.fromkeys(curve.epsilon for curve in curves if curve.epsilon is not None))


def methods(curves: Sequence[Curve], epsilon: float | None) -> dict[str, list[Curve]]:
    """The curves of each method for one v_0, those that forget it included, seeds together."""
    found: dict[str, list[Curve]] = {curve.method: [] for curve in curves}  # in the order of the study
    for curve in curves:
        if epsilon is None or curve.epsilon in {None, epsilon}:
            found[curve.method].append(curve)
    return {method: runs for method, runs in found.items() if runs}


def at_epoch(curves: Sequence[Curve], measure: str, epoch: int) -> float:
    """The mean over seeds of a measure after an epoch."""
    return mean(getattr(curve.records[min(epoch, len(curve.records)) - 1], measure) for curve in curves)


def common_epochs(curves: Sequence[Curve]) -> int:
    """Epochs of the longest run; runs are shorter only if their loss stopped being a number."""
    return max(len(curve.records) for curve in curves)


def write_study(path: Path, curves: Sequence[Curve]) -> Path:
    """Write all curves as one CSV table."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for curve in curves:
            epsilon = "any" if curve.epsilon is None else curve.epsilon
            for record in curve.records:
                writer.writerow(
                    (
                        epsilon,
                        curve.method,
                        curve.seed,
                        record.epoch,
                        record.train_loss,
                        record.test_loss,
                        record.test_accuracy,
                    )
                )
    return path


def read_study(path: Path) -> list[Curve]:
    """Read back what `write_study` wrote.

    Raises:
        OutputError: the file is missing or is not such a table.
    """
    grouped: dict[tuple[float | None, str, int], list[EpochRecord]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                record = EpochRecord(
                    int(row["epoch"]),
                    float(row["train_loss"]),
                    float(row["test_loss"]),
                    float(row["test_accuracy"]),
                )
                epsilon = None if row["epsilon"] == "any" else float(row["epsilon"])
                grouped.setdefault((epsilon, row["method"], int(row["seed"])), []).append(record)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise OutputError(f"{path}: not a table of a study ({error})") from error
    return [
        Curve(method, epsilon, seed, tuple(records)) for (epsilon, method, seed), records in grouped.items()
    ]
