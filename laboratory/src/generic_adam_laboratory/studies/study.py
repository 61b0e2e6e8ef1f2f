"""A study: methods compared on one network and one data set, from its plan to the files that it leaves.

What tells its methods apart is data; `generic_adam_laboratory.studies.sweep` runs them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from generic_adam.errors import RunError, told_as
from generic_adam.schedules import as_schedule
from generic_adam_laboratory.data.datasets import Dataset, Text, load
from generic_adam_laboratory.runs.records import (
    Claim,
    Occasion,
    Table,
    damaged_files,
    read_csv,
    read_manifest,
    write_results,
)
from generic_adam_laboratory.runs.run import published
from generic_adam_laboratory.training import BATCH_SIZE, EpochRecord, OptimizerSettings, RunSettings, read_records

COLUMNS: Final = ("v_0", "r", "method", "seed", "epoch", "train_loss", "test_loss", "test_accuracy")

MEASURES: Final = {"train_loss": "training loss", "test_accuracy": "test accuracy", "test_loss": "test loss"}
"""The measures, in the order of the paper's panels, with their names for people."""

_MOST: Final = {"epochs": 10**5, "seeds": 1000, "width": 4096}
"""The largest numbers that a study takes: more is a slip of the pen, and would fill the memory before it fails."""

_NETWORKS: Final = {
    "lenet": "LeNet",
    "resnet18": "ResNet-18, width {}",
    "resnet18-paper": "ResNet-18 with the paper's blocks, width {}",
    "gpt": "GPT, width {}",
}
_DATASETS: Final = {
    "mnist": "MNIST",
    "cifar100": "CIFAR-100",
    "digits": "scikit-learn's digits",
    "stdlib": "Python's standard library",
}


@dataclass(frozen=True)
class Line:
    """One method of a study. What tells it apart is data; the label is for people.

    `r` is its place on the path from Adam (0) to AdaEMA (1); `initial_v` is v_0 where the study compares several and
    the method does not forget it. With `replacement` samples are drawn from all, instead of in shuffled epochs.
    """

    label: str
    optimizer: OptimizerSettings
    r: Fraction | None = None
    initial_v: float | None = None
    replacement: bool = False

    @property
    def folder(self) -> str:
        """The folder of its runs: ``epsilon-1e-08/r-0.5``."""
        words = "".join(c if c.isalnum() or c == "." else " " for c in self.label.lower()).split()
        group = "" if self.initial_v is None else f"epsilon-{self.initial_v:g}/"
        return group + "-".join(words)

    @property
    def plain(self) -> dict[str, Any]:
        """Plain types, for a manifest."""
        plain = asdict(self) | {"r": None if self.r is None else str(self.r)}
        return plain if self.replacement else {name: one for name, one in plain.items() if name != "replacement"}


@dataclass(frozen=True)
class Study:
    """A figure: methods compared on one network and one data set; ``reproduce`` knows its name.

    Attributes:
        width: ResNet-18's first, or GPT's.
        compares: what its figure is about.
        source: where the paper has it; "" if it does not.
        seeds: runs of each method, with seeds 0, 1, ...
        bf16: compute in bfloat16 where autocast allows.
        earlier: runs that were published before, and are not run again; some methods may have more seeds there.
    """

    name: str
    network: str
    width: int
    dataset: str
    epochs: int
    compares: Literal["methods", "initial v", "costs"] = "methods"
    source: str = ""
    seeds: int = 1
    batch_size: int = BATCH_SIZE
    bf16: bool = False
    lines: tuple[Line, ...] = ()
    earlier: tuple[Curve, ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that the runs of one directory share; methods, seeds and epochs may be added."""
        names = ("name", "network", "width", "dataset", "batch_size", "bf16")
        return {name: getattr(self, name) for name in names}

    @property
    def title(self) -> str:
        """A title for the head of a figure."""
        network = _NETWORKS[self.network].format(self.width)
        most = max(self.seeds, *(1 + curve.seed for curve in self.earlier), 0)
        least = "" if self.seeds == most else f"{'one' if self.seeds == 1 else self.seeds} to "
        seeds = "one seed" if most == 1 else f"{least}{most} seeds"
        epochs = "one epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return f"{network}, {_DATASETS[self.dataset]}, {epochs}, {seeds}"

    def jobs(self, directory: Path) -> list[Job]:
        """List the runs to be made: all methods for each seed, without those that were published."""
        root = directory.absolute() / "runs"  # the workers of a cluster have another working directory
        shared = (self.network, self.width, self.dataset)
        known = {curve.run for curve in self.earlier}
        return [
            Job(
                line,
                RunSettings(*shared, line.optimizer, seed, self.epochs, self.batch_size, self.bf16, line.replacement),
                root / line.folder / f"seed-{seed}",
            )
            for seed in range(self.seeds)
            for line in self.lines
            if (line.label, line.initial_v, seed) not in known
        ]


@dataclass(frozen=True)
class Job:
    """A run, and the directory it lives in."""

    line: Line
    settings: RunSettings
    directory: Path

    @property
    def name(self) -> str:
        """The name that progress shows."""
        return f"{self.line.folder}/seed-{self.settings.seed}"


@dataclass(frozen=True)
class Curve:
    """The records of one run, one for each epoch, and which run it was: label, r and v_0 of its line, and seed."""

    method: str
    r: Fraction | None
    initial_v: float | None
    seed: int
    records: tuple[EpochRecord, ...]

    @property
    def run(self) -> tuple[str, float | None, int]:
        """The key that tells it from the other runs of its study."""
        return self.method, self.initial_v, self.seed

    def after(self, epoch: int, measure: str) -> float:
        """Return a measure after an epoch; a run that ended early keeps its last value."""
        return getattr(self.records[min(epoch, len(self.records)) - 1], measure)


def collect(study: Study, directory: Path) -> list[Curve]:
    """Read the records of the runs of a study, in its order; epochs beyond the study's are left out."""
    made = [
        Curve(
            job.line.label, job.line.r, job.line.initial_v, job.settings.seed,
            tuple(read_records(job.directory / "records.csv")[: study.epochs]),
        )
        for job in study.jobs(directory)
    ]  # fmt: skip
    place = [(line.label, line.initial_v) for line in study.lines]
    return sorted([*study.earlier, *made], key=lambda one: (one.seed, place.index((one.method, one.initial_v))))


def with_earlier(
    study: Study, known: Mapping[str, Any], directories: Sequence[Path]
) -> tuple[Study, list[dict[str, Any]]]:
    """Return the study with published runs that are the same runs, further seeds included, and their makers.

    A run is the same if network, data (`known` has their SHA-256), batches and its line are, and if it is at least as
    long. Its bits may differ from those of this machine, whose instruction set may be another; the manifest has both.

    RunError if a directory holds no such study, or its files were changed.
    """
    taken: dict[str, Curve] = {}
    sources: dict[tuple[Any, ...], dict[str, Any]] = {}
    for directory in directories:
        manifest = read_manifest(directory)
        if manifest is None or damaged_files(directory, manifest):
            raise RunError(f"{directory}: expected published results whose files are as their manifest says")
        with told_as(RunError, f"{directory}: expected the results of a study of networks, but"):
            settings = manifest["settings"]
            wanted = study.identity | {"data_sha256": known["data_sha256"], "name": settings.get("name")}
            for name, value in wanted.items():
                if settings.get(name, value) != value:  # manifests of 0.1 have no checksum of the data
                    raise RunError(f"{directory}: {name} is {settings.get(name)}, expected {value}")
            there = [_parsed(line) for line in settings["lines"]]
            folders = {
                (line.label, line.initial_v): line.folder for line in study.lines if _parsed(line.plain) in there
            }
            found = {
                f"{folders[curve.method, curve.initial_v]}/seed-{curve.seed}": curve
                for curve in read_curves(directory / "records.csv")
                if (curve.method, curve.initial_v) in folders
                and (len(curve.records) >= study.epochs or not math.isfinite(curve.records[-1].train_loss))
            }
            before = settings.get("earlier", [])
            own = {name: manifest.get(name, "") for name in ("command", "finished", "versions", "machine")}
            own["seconds"] = round(manifest["seconds"] - sum(one["seconds"] for one in before), 3)
            own["runs"] = [name for name in found if not any(name in one["runs"] for one in before)]
            for one in (*before, own):
                if runs := [name for name in found if name in one["runs"] and name not in taken]:
                    source = sources.setdefault((one["command"], one["finished"]), one | {"runs": []})
                    source["runs"] += runs
            taken = found | taken
    curves = tuple(replace(curve, records=curve.records[: study.epochs]) for curve in taken.values())
    return replace(study, earlier=curves), list(sources.values())


def _parsed(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of a manifest with its sequences, whose text may be spaced otherwise."""
    method = line["optimizer"]
    sequences = {name: as_schedule(method[name]) for name in ("alpha", "beta", "theta")}
    return line | {"optimizer": method | sequences}


def initial_values(curves: Sequence[Curve]) -> list[float]:
    """List the values of v_0 that were compared, in their order."""
    return list(dict.fromkeys(curve.initial_v for curve in curves if curve.initial_v is not None))


def by_method(curves: Sequence[Curve], initial_v: float | None) -> dict[str, list[Curve]]:
    """Group the curves of each method for one v_0, those that forget it included, seeds together."""
    found: dict[str, list[Curve]] = {curve.method: [] for curve in curves}  # in the order of the study
    for curve in curves:
        if initial_v is None or curve.initial_v in {None, initial_v}:
            found[curve.method].append(curve)
    return {method: runs for method, runs in found.items() if runs}


def last_epoch(curves: Sequence[Curve]) -> int:
    """Epochs of the longest run; runs are shorter only if their loss stopped being a number."""
    return max(len(curve.records) for curve in curves)


def outcomes(curves: Sequence[Curve]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table of ends: median over seeds, and their range if there are several."""
    epoch, values = last_epoch(curves), initial_values(curves)
    of_each = Counter((curve.method, curve.initial_v) for curve in curves)
    differ = len(set(of_each.values())) > 1
    headings = ["method", *(["v_0"] if values else []), *(["seeds"] if differ else []), *MEASURES.values()]
    rows: list[list[str]] = []
    for value in values or [None]:
        for label, runs in by_method(curves, value).items():
            forgets = all(run.initial_v is None for run in runs)
            start = [] if value is None else ["any" if forgets else f"{value:g}"]
            ends = {measure: [run.after(epoch, measure) for run in runs] for measure in MEASURES}
            cells = [spread(end, ".2%" if name == "test_accuracy" else ".4f") for name, end in ends.items()]
            if (row := [label, *start, *([str(len(runs))] if differ else []), *cells]) not in rows:
                rows.append(row)
    return headings, rows


def spread(values: Sequence[float], form: str) -> str:
    """Write the median of a few numbers, and their range if there are several: "0.21 (0.20 to 0.23)"."""
    middle, low, high = (format(of(values), form) for of in (median, min, max))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def curve_rows(curves: Sequence[Curve]) -> Iterator[tuple[object, ...]]:
    """All curves as one table, under `COLUMNS`."""
    for curve in curves:
        start = "any" if curve.initial_v is None else curve.initial_v
        place = "" if curve.r is None else curve.r
        for record in curve.records:
            yield start, place, curve.method, curve.seed, *astuple(record)


def read_curves(path: Path) -> list[Curve]:
    """Read the records of a published study; OutputError if the file is missing or no such table."""

    def read(row: Mapping[str, str]) -> Curve:
        r = Fraction(row["r"]) if row["r"] else None
        initial_v = None if row["v_0"] == "any" else float(row["v_0"])
        return Curve(row["method"], r, initial_v, int(row["seed"]), (EpochRecord.read(row),))

    found: dict[tuple[str, float | None, int], Curve] = {}
    for one in read_csv(path, "a study", read):
        known = found.setdefault(one.run, replace(one, records=()))
        found[one.run] = replace(known, records=known.records + one.records)
    return list(found.values())


def publish(
    study: Study,
    directory: Path,
    curves: Sequence[Curve],
    occasion: Occasion,
    *,
    claims: Sequence[Claim],
    draw: Callable[[Study, Sequence[Curve], Path], object],
    notes: Mapping[str, Table] | None = None,
) -> list[Path]:
    """Write figure, records, tables, claims and manifest, which appear together, and return the files.

    `draw` makes the figure at a path without ending, `notes` are further tables by the names of their files, and the
    occasion tells what the study's own settings do not.
    """
    own = {name: value for name, value in asdict(study).items() if name not in {"lines", "earlier"}}
    settings = {**own, **occasion.settings, "lines": [line.plain for line in study.lines]}
    tables = {"records.csv": (COLUMNS, curve_rows(curves)), "outcomes.md": outcomes(curves), **(notes or {})}
    with published(directory) as folder:
        draw(study, curves, folder / study.name)
        write_results(folder, replace(occasion, settings=settings), tables, claims)
        names = sorted(path.name for path in folder.iterdir())
    return [directory / name for name in names]


@dataclass(frozen=True)
class Options:
    """The options of the command line; None or nothing where the study's own value is to be taken.

    `epsilon` has values of v_0, `corrected` adds Kingma and Ba's Adam, `only` names the methods that are wanted, and
    `quick` means a few epochs of a small data set.
    """

    epochs: int | None = None
    seeds: int | None = None
    width: int | None = None
    blocks: str = "usual"
    epsilon: tuple[float, ...] = ()
    corrected: bool = False
    only: tuple[str, ...] = ()
    bf16: bool = False
    quick: bool = False

    def applied_to(self, study: Study) -> Study:
        """Return the study with the options in place of its own values; raise RunError if it cannot be run so."""
        asked = {name: value for name in _MOST if (value := getattr(self, name)) is not None}
        fixed, digits = f"does not go with {study.name}, whose methods are fixed", {f"{v:g}" for v in self.epsilon}
        refused: dict[str, object] = {
            f"--{name} {value}: expected a positive whole number of at most {_MOST[name]:,}": value != clamped
            for name, value in asked.items()
            if (clamped := min(max(1, value), _MOST[name]))
        }
        refused |= {f"--epsilon {v:g}: expected a positive number": not 0 < v < math.inf for v in self.epsilon}
        refused |= {
            f"--blocks {self.blocks!r}: expected usual or paper": self.blocks not in {"usual", "paper"},
            "--width goes with ResNet-18 and GPT: there is one LeNet": study.network == "lenet" and "width" in asked,
            "--blocks goes with ResNet-18": study.network != "resnet18" and self.blocks != "usual",
            f"--epsilon {fixed}": self.epsilon and study.compares == "costs",
            f"--corrected {fixed}": self.corrected and study.compares != "methods",
            f"--only {fixed}": self.only and study.compares == "initial v",
            "--epsilon: two values are equal to six digits, which name their folders": len(digits)
            < len(set(self.epsilon)),
        }
        for reason, is_so in refused.items():
            if is_so:
                raise RunError(reason)
        if self.quick:
            dataset, epochs = ("stdlib", 1) if study.dataset == "stdlib" else ("digits", 3)
            study = replace(study, dataset=dataset, width=min(study.width, 4), epochs=epochs, seeds=1)
        network = "resnet18-paper" if self.blocks == "paper" else study.network
        return replace(study, network=network, bf16=self.bf16, **asked)

    def chosen(self, lines: Sequence[Line]) -> tuple[Line, ...]:
        """Choose the wanted lines, each once; raise RunError if one of them is not there."""
        known = list(dict.fromkeys(line.label for line in lines))
        for label in self.only:
            if label not in known:
                raise RunError(f"--only {label!r}: expected one of {', '.join(known)}")
        return tuple(dict.fromkeys(line for line in lines if not self.only or line.label in self.only))


@dataclass(frozen=True)
class Experiment:
    """One subcommand of ``reproduce``: a study before its data are known, and what it is asked.

    `lines` gives its methods for the study as it is run, the options and the number of steps; `claims` is what its
    curves say, `facts` what is said of data and network, `notes` are further tables by the names of their files.
    """

    study: Study
    lines: Callable[[Study, Options, int], Sequence[Line]]
    claims: Callable[[Study, Sequence[Curve]], list[Claim]] = lambda _study, _curves: []
    notes: Callable[[Study, int, Sequence[Curve]], dict[str, Table]] = lambda _study, _steps, _curves: {}
    facts: Callable[[Study, Dataset | Text], list[Claim]] = lambda _study, _dataset: []

    def judge(self, study: Study, curves: Sequence[Curve], data: Path | None) -> list[Claim]:
        """Every sentence about the study, with what was found."""
        return [*self.claims(study, curves), *self.facts(study, load(study.dataset, data))]

    def plan(self, options: Options, data: Path | None) -> tuple[Study, dict[str, Any]]:
        """Return the study with its lines, and two facts of its data: the steps of each run, and their SHA-256."""
        study = options.applied_to(self.study)
        dataset = load(study.dataset, data)
        steps = study.epochs * dataset.steps(study.batch_size)
        lines = options.chosen(self.lines(study, options, steps))
        return replace(study, lines=lines), {"steps": steps, "data_sha256": dataset.sha256}
