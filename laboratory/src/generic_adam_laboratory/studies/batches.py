r"""beta2 against the batch size on a small GPT: does one half-life, counted in samples, suit every batch?

The second moment forgets half of what it holds in :math:`\log 2/\log(1/\theta)` steps (theta is beta2), which is as
many batches. A recipe that is moved to another batch keeps its memory of the data if beta2 moves with it. Six studies
train on the same number of windows with batches of 4 to 128 and seven values of beta2; this module puts their ends
side by side, against beta2 and against the half-life in windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Final

from generic_adam.answers.figures import along_path, drawing, legend_below, save_figure
from generic_adam.errors import RunError, told_as
from generic_adam_laboratory.runs.records import Occasion, damaged_files, read_manifest, write_results
from generic_adam_laboratory.runs.run import published
from generic_adam_laboratory.studies.study import Experiment, Line, Options, Study, read_curves, spread
from generic_adam_laboratory.studies.worth import EPS, RATE, cosine
from generic_adam_laboratory.training import OptimizerSettings

SIZES: Final = (4, 8, 16, 32, 64, 128)
"""Batch sizes; each run sees 32,000 windows."""

BETA2: Final = ("0.9", "0.95", "0.98", "0.99", "0.995", "0.999", "0.9999")

CLOSE: Final = 0.5
"""A beta2 is as good as the best of its batch if its validation loss is within so many percent."""


def lines(size: int, _study: Study, _options: Options, steps: int) -> Sequence[Line]:
    """AdamW at one batch size with seven beta2, the learning rate scaled with the root of the batch."""
    shape = str(cosine(RATE * sqrt(size / 8), steps))
    return [
        Line(f"beta2 = {theta}", OptimizerSettings("torch-adamw", shape, "0.9", theta, EPS, decay=0.1))
        for theta in BETA2
    ]


EXPERIMENTS: Final = {
    f"gpt-batch-{size}": Experiment(
        Study(f"gpt-batch-{size}", "gpt", 32, "stdlib", 128 // size, "costs", seeds=2, batch_size=size),
        partial(lines, size),
    )
    for size in SIZES
}
"""The studies of one batch size each, by the name that ``reproduce`` knows."""


@dataclass(frozen=True)
class Swept:
    """The ends of the runs of one batch size: the validation loss of each seed, by beta2."""

    size: int
    losses: dict[float, tuple[float, ...]]

    def half_life(self, beta2: float) -> float:
        """Return the number of windows in which the second moment forgets half of what it holds."""
        return self.size * math.log(2) / -math.log(beta2)

    @property
    def usual(self) -> float:
        """The beta2 with the least median loss over the seeds."""
        return min(self.losses, key=lambda one: median(self.losses[one]))

    def above(self, beta2: float) -> list[float]:
        """Return by how many percent each seed's loss is above the one that it has with the usual best beta2."""
        return [100 * (a / b - 1) for a, b in zip(self.losses[beta2], self.losses[self.usual], strict=True)]

    @property
    def best(self) -> tuple[float, ...]:
        """The beta2 with the least loss, for each seed."""
        count = len(self.losses[self.usual])
        return tuple(min(self.losses, key=lambda one: self.losses[one][seed]) for seed in range(count))

    @property
    def close(self) -> list[float]:
        """The values of beta2 that are as good as the usual best in every seed, up to `CLOSE` percent."""
        return [beta2 for beta2 in self.losses if max(self.above(beta2)) <= CLOSE]


def read_sweeps(directories: Sequence[Path]) -> list[Swept]:
    """Read published studies of one batch size each, the smallest first; RunError if one is no such study."""
    found = []
    for directory in directories:
        manifest = read_manifest(directory)
        if manifest is None or damaged_files(directory, manifest):
            raise RunError(f"{directory}: expected published results whose files are as their manifest says")
        with told_as(RunError, f"{directory}: expected the results of a gpt-batch study, but"):
            size, names = manifest["settings"]["batch_size"], [one["label"] for one in manifest["settings"]["lines"]]
            ends: dict[str, dict[int, float]] = {name: {} for name in names}
            for curve in read_curves(directory / "records.csv"):
                ends[curve.method][curve.seed] = curve.records[-1].test_loss
            by_beta2 = {float(name.removeprefix("beta2 = ")): one for name, one in ends.items()}
            seeds = sorted(set.intersection(*(set(one) for one in by_beta2.values())))
            found.append(Swept(size, {beta2: tuple(one[seed] for seed in seeds) for beta2, one in by_beta2.items()}))
    if not found:
        raise RunError("no results to put side by side: expected directories of gpt-batch studies")
    return sorted(found, key=lambda one: one.size)


HEADINGS: Final = (
    "batch", "steps", "best beta2, seed by seed", "its half-life in windows", f"within {CLOSE:g} % of the best",
    "their half-lives", "loss at 0.95, %", "loss at 0.999, %",
)  # fmt: skip


def rows(sweeps: Sequence[Swept]) -> list[tuple[str, ...]]:
    """Tabulate the best beta2 of each batch size, with what is as good, and two usual values against the best."""
    return [
        (
            str(one.size), f"{32_000 // one.size:,}", ", ".join(f"{beta2:g}" for beta2 in one.best),
            ", ".join(f"{one.half_life(beta2):,.0f}" for beta2 in one.best),
            _range([f"{beta2:g}" for beta2 in one.close]),
            _range([f"{one.half_life(beta2):,.0f}" for beta2 in one.close]),
            *(spread(one.above(beta2), "+.1f") if beta2 in one.losses else "–" for beta2 in (0.95, 0.999)),
        )
        for one in sweeps
    ]  # fmt: skip


def _range(texts: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else "none in every seed"


def draw_batches(sweeps: Sequence[Swept], stem: Path) -> tuple[Path, Path]:
    """Draw by how much each beta2 is above the best of its batch, against beta2 and against the half-life."""
    with drawing(7.6, 3.9) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for place, one in enumerate(sweeps):
            colour = along_path(place / max(1, len(sweeps) - 1))
            excess = [one.above(beta2) for beta2 in one.losses]
            for panel, at in (
                (left, [1 - beta2 for beta2 in one.losses]),
                (right, [one.half_life(beta2) for beta2 in one.losses]),
            ):
                panel.plot(at, [median(v) for v in excess], color=colour, marker="o", ms=3.5, label=f"batch {one.size}")
                panel.fill_between(at, [min(v) for v in excess], [max(v) for v in excess], color=colour, alpha=0.15)
        left.set(xscale="log", xlabel="1 − beta2", ylabel="validation loss against the best, %", ylim=(None, 12))
        left.invert_xaxis()
        left.set_title("against beta2")
        right.set(xscale="log", xlabel="half-life in windows")
        right.set_title("against the half-life")
        figure.suptitle("beta2 and the batch size, GPT of width 32, 32,000 windows", x=0.01, ha="left", weight="bold")
        legend_below(figure, left, 6)
        return save_figure(figure, stem)


def put_together(directories: Sequence[Path], out: Path, command: str) -> list[Path]:
    """Write table, figure and manifest of the studies of all batch sizes; return the files."""
    sweeps = read_sweeps(directories)
    seconds = sum(float((read_manifest(one) or {})["seconds"]) for one in directories)
    settings = {"sizes": [one.size for one in sweeps], "close": CLOSE}
    with published(out) as folder:
        draw_batches(sweeps, folder / "gpt-batches")
        tables = {"outcomes.md": (HEADINGS, rows(sweeps))}
        write_results(folder, Occasion(command, settings, seconds), tables, [])
        names = sorted(path.name for path in folder.iterdir())
    return [out / name for name in names]
