"""What a simulation returns: x_t and R(t)/t of every lane at logarithmically spaced t."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.records import atomic_write

Floats = NDArray[np.float64]

QUANTILES = (0.1, 0.5, 0.9)
"""What a band shows over seeds: its lower edge, the median, its upper edge."""

_GEOMETRIC_POINTS = 480  # of which about 400 are distinct whole numbers for T = 10^7


def record_times(steps: int, points: int = _GEOMETRIC_POINTS) -> NDArray[np.int64]:
    """Return whole t from 1 to `steps`, evenly spaced on a logarithmic scale, without repetition."""
    spaced = np.rint(np.geomspace(1, steps, max(points, 2)))
    return np.unique(np.concatenate((spaced[:-1], [steps])).astype(np.int64))


@dataclass(frozen=True)
class LaneRecords:
    """The recorded lanes of a simulation.

    Attributes:
      times: the recorded t.
      labels: the methods, in order.
      replicates: the replicates, in order.
      x: x_t, method by time by replicate.
      average_regret: R(t)/t, method by time by replicate.
    """

    times: NDArray[np.int64]
    labels: tuple[str, ...]
    replicates: range
    x: Floats
    average_regret: Floats

    def index(self, label: str) -> int:
        """Return the place of a method."""
        return self.labels.index(label)

    def final_x(self, label: str) -> Floats:
        """Return x_T of every replicate."""
        return self.x[self.index(label), -1]

    def final_regret(self, label: str) -> Floats:
        """Return R(T)/T of every replicate."""
        return self.average_regret[self.index(label), -1]

    def arrival(self, label: str, level: float) -> Floats:
        """Return the first recorded t from which on x stays at or below `level`, by replicate; inf: never."""
        above = self.x[self.index(label)] > level
        last_above = above.shape[0] - 1 - np.argmax(above[::-1], axis=0)
        first = np.where(above.any(axis=0), last_above + 1, 0)
        return np.append(self.times.astype(np.float64), np.inf)[first]

    @staticmethod
    def join(parts: Sequence[LaneRecords]) -> LaneRecords:
        """Put records of neighbouring replicates together, whatever the order in which they came."""
        parts = sorted(parts, key=lambda part: part.replicates.start)
        replicates = parts[0].replicates
        for part in parts[1:]:
            if part.replicates.start != replicates.stop or part.labels != parts[0].labels:
                raise RunError(
                    f"records of replicates {replicates} and {part.replicates} do not belong together"
                )
            replicates = range(replicates.start, part.replicates.stop)
        return LaneRecords(
            times=parts[0].times,
            labels=parts[0].labels,
            replicates=replicates,
            x=np.concatenate([part.x for part in parts], axis=2),
            average_regret=np.concatenate([part.average_regret for part in parts], axis=2),
        )


def write_quantiles(path: str | os.PathLike[str], records: LaneRecords) -> None:
    """Write a tidy CSV: one row a method and t, with the 10, 50 and 90 % quantiles over replicates."""
    header = ["method", "t"]
    header += [f"{name}_q{round(100 * q)}" for name in ("x", "average_regret") for q in QUANTILES]
    _write_csv(path, header, _quantile_rows(records))


def _quantile_rows(records: LaneRecords) -> Iterator[list[object]]:
    x = np.quantile(records.x, QUANTILES, axis=2)
    regret = np.quantile(records.average_regret, QUANTILES, axis=2)
    for place, label in enumerate(records.labels):
        for k, t in enumerate(records.times.tolist()):
            yield [label, t, *(f"{value:.6g}" for value in (*x[:, place, k], *regret[:, place, k]))]


def write_outcomes(path: str | os.PathLike[str], records: LaneRecords) -> None:
    """Write one row a lane: where it ended, with all digits."""
    rows = (
        [
            label,
            replicate,
            repr(float(records.x[place, -1, i])),
            repr(float(records.average_regret[place, -1, i])),
        ]
        for place, label in enumerate(records.labels)
        for i, replicate in enumerate(records.replicates)
    )
    _write_csv(path, ["method", "replicate", "x", "average_regret"], rows)


def _write_csv(path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
