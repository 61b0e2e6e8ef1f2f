"""``generic-adam reproduce lenet|resnet18|...``: the studies of networks, and what the guarantee costs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from generic_adam.experiments.distributed import Group
    from generic_adam.experiments.studies import Study
    from generic_adam.experiments.study_records import Curve
    from generic_adam.experiments.sweep import Advance, Job, Pool
    from generic_adam.methods import Method

_ELAPSED = "elapsed.json"
_LONG_HOLD = 10_000  # K; 1/(1 - theta) = 1,000 is the smallest
_HELP = {
    "lenet": "Figure 2: LeNet on MNIST, seven methods.",
    "resnet18": "Figure 3: ResNet-18 on CIFAR-100, seven methods.",
    "resnet18-large-lr": "Figure 4: ResNet-18 with the larger learning rate.",
    "lenet-cost": "What the guarantee costs on LeNet: Adam as people use it against certified methods.",
    "resnet18-cost": "What the guarantee costs on ResNet-18.",
}


def register(app: typer.Typer) -> None:
    """Add the studies to ``reproduce``."""
    for name, text in _HELP.items():
        app.command(name, help=text)(_command(name))


def _command(name: str) -> Callable[..., None]:
    def command(
        epochs: Annotated[
            int | None, typer.Option(help="Length of each run; 100 in the paper.", show_default=False)
        ] = None,
        seeds: Annotated[int, typer.Option(help="Runs of each method, with seeds 0, 1, ...")] = 1,
        width: Annotated[
            int | None, typer.Option(help="ResNet-18's first width; 64 in the paper.", show_default=False)
        ] = None,
        blocks: Annotated[
            str, typer.Option(help="ResNet-18: 'usual' (2, 2, 2, 2) or 'paper' (1, 2, 2, 2).")
        ] = "usual",
        epsilon: Annotated[
            list[float] | None,
            typer.Option(help="v_0; may be given several times.", show_default="1e-8 and 1e-4"),
        ] = None,
        corrected: Annotated[
            bool, typer.Option("--corrected", help="Also Kingma and Ba's Adam: v_0 = 0 and bias correction.")
        ] = False,
        device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
        jobs: Annotated[
            int | None, typer.Option(help="Processes; by default one a core.", show_default=False)
        ] = None,
        scheduler: Annotated[
            str | None,
            typer.Option(help="Run on a Dask cluster: tcp://HOST:PORT of its scheduler.", show_default=False),
        ] = None,
        out: Annotated[
            Path | None, typer.Option(help="Directory for all results.", show_default="runs/ and the name")
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Directory of the data sets.", show_default="$GENERIC_ADAM_DATA, then the cache"
            ),
        ] = None,
        bf16: Annotated[
            bool, typer.Option("--bf16", help="Compute in bfloat16 where autocast allows.")
        ] = False,
        tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
        quick: Annotated[
            bool, typer.Option("--quick", help="Seconds instead of hours: scikit-learn's digits.")
        ] = False,
    ) -> None:
        plan = _Plan(
            name,
            epochs,
            seeds,
            width,
            blocks,
            tuple(epsilon or ()),
            corrected,
            device,
            jobs,
            scheduler,
            bf16,
            quick,
        )
        run_study(plan, out or Path("runs") / name, data, tensorboard=tensorboard)

    return command


@dataclass(frozen=True)
class _Plan:
    """The command line; None where the study's own value is to be taken."""

    name: str
    epochs: int | None
    seeds: int
    width: int | None
    blocks: str
    epsilons: tuple[float, ...]
    corrected: bool
    device: str
    jobs: int | None
    scheduler: str | None
    bf16: bool
    quick: bool

    @property
    def is_cost(self) -> bool:
        return self.name.endswith("-cost")

    def study(self) -> Study:
        """The study with what was asked for in place of the paper's values."""
        from generic_adam.experiments.settings import SettingsError
        from generic_adam.experiments.studies import STUDIES, quick

        if self.device not in {"cpu", "cuda"}:
            raise SettingsError(f"--device {self.device!r}: expected cpu or cuda")
        if self.blocks not in {"usual", "paper"}:
            raise SettingsError(f"--blocks {self.blocks!r}: expected usual or paper")
        study = STUDIES[self.name.removesuffix("-cost")]
        if self.quick:
            study = quick(study)
        if self.width is not None:
            study = replace(study, width=self.width)
        if self.blocks == "paper" and study.network == "resnet18":
            study = replace(study, network="resnet18-paper")
        return replace(
            study,
            epochs=study.epochs if self.epochs is None else self.epochs,
            epsilons=self.epsilons or study.epsilons,
        )

    def command(self, study: Study) -> str:
        """What repeats the run, defaults spelled out."""
        parts = [f"generic-adam reproduce {self.name} --epochs {study.epochs} --seeds {self.seeds}"]
        if study.network != "lenet":
            parts.append(f"--width {study.width} --blocks {self.blocks}")
        if not self.is_cost:
            parts += [f"--epsilon {epsilon:g}" for epsilon in study.epsilons] + [
                "--corrected"
            ] * self.corrected
        return " ".join(parts + ["--bf16"] * self.bf16 + ["--quick"] * self.quick)


def run_study(plan: _Plan, out: Path, data: Path | None, *, tensorboard: bool) -> None:
    """Run a study, or what is left of it, and write its figure, records, claims, table and manifest."""
    from generic_adam.cli.training_progress import show_progress
    from generic_adam.experiments.checkpoint import exclusive
    from generic_adam.experiments.data import load
    from generic_adam.experiments.distributed import process_group
    from generic_adam.experiments.records import ensure_output_directory, write_json
    from generic_adam.experiments.study_records import collect
    from generic_adam.experiments.sweep import run_sweep

    begun = time.perf_counter()
    study = plan.study()
    directory = ensure_output_directory(out)
    dataset = load(study.dataset, data)
    jobs = _jobs(plan, study, directory, len(dataset.train_labels))
    place = None if data is None else str(data)
    with process_group(plan.device) as group:
        if not group.is_first:
            with _pool(plan, group) as pool:
                run_sweep(jobs, pool, data=place, device=plan.device)
            return
        earlier = _elapsed(directory)
        with (
            exclusive(directory),
            _pool(plan, group) as pool,
            show_progress(jobs, directory, tensorboard=tensorboard) as tell,
        ):

            def on_advance(done: Advance, seconds_left: float) -> None:
                tell(done, seconds_left)
                write_json(directory / _ELAPSED, {"seconds": earlier + time.perf_counter() - begun})

            try:
                run_sweep(jobs, pool, data=place, device=plan.device, on_advance=on_advance)
            except KeyboardInterrupt:
                typer.echo("stopped; the same command goes on from the last checkpoints", err=True)
                raise
    curves = collect(jobs, compare_epsilons=not plan.is_cost)
    files = _write(plan, study, directory, jobs, curves, _elapsed(directory))
    _print_table(study, curves)
    typer.echo("\n".join(f"wrote {path}" for path in files))


def _elapsed(directory: Path) -> float:
    """Seconds that commands have spent on this study so far; a manifest counts them all."""
    try:
        return float(json.loads((directory / _ELAPSED).read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0  # only the manifest's time is lost with it


def _jobs(plan: _Plan, study: Study, directory: Path, images: int) -> list[Job]:
    from generic_adam.experiments.settings import BATCH_SIZE
    from generic_adam.experiments.studies import (
        corrected_adam,
        cost_methods,
        paper_methods,
        run_folder,
        runs_of,
    )
    from generic_adam.experiments.sweep import Job

    if plan.is_cost:
        lists = [cost_methods(_certified(study.epochs * -(-images // BATCH_SIZE)))]
    else:
        lists = [paper_methods(study.alpha, epsilon) for epsilon in study.epsilons]
        lists += [(corrected_adam(study.alpha),)] if plan.corrected else []
    runs = dict.fromkeys(
        run
        for methods in lists
        for run in runs_of(study, methods, epochs=study.epochs, seeds=plan.seeds, bf16=plan.bf16)
    )
    return [Job(run, directory / "runs" / run_folder(run)) for run in runs]


def _certified(steps: int) -> list[tuple[str, Method]]:
    """What takes the place of Adam with its usual constants, all starting with its bias correction.

    The nearest certified method, which is `certified_adam`; the same with the learning rate held ten times as
    long as it has to be; and the constants that `advise` tunes to this number of steps.
    """
    from generic_adam.experiments.studies import COMMON_RATE
    from generic_adam.methods import adam, certified_adam
    from generic_adam.theory.advice import advise

    advice = advise(adam(lr=COMMON_RATE), horizon=steps)
    for_ever = [one.method for one in advice if one.horizon is None]
    tuned = [one.method for one in advice if one.horizon is not None]
    longer = certified_adam(lr=COMMON_RATE, K=_LONG_HOLD, bias_correction=True)
    return [
        *((f"certified Adam{'' if n == 0 else f', proposal {n + 1}'}", m) for n, m in enumerate(for_ever)),
        (f"certified Adam, K = {_LONG_HOLD}", longer),
        *(("tuned to T", method) for method in tuned),
    ]


@contextmanager
def _pool(plan: _Plan, group: Group) -> Iterator[Pool]:
    from generic_adam.experiments.sweep import dask_pool, group_pool, local_pool

    if group.size > 1:
        yield group_pool(group)
    elif plan.scheduler is not None:
        with dask_pool(plan.scheduler) as pool:
            yield pool
    else:
        default = 1 if plan.device == "cuda" else os.cpu_count() or 1
        with local_pool(default if plan.jobs is None else plan.jobs) as pool:
            yield pool


def _write(
    plan: _Plan, study: Study, directory: Path, jobs: list[Job], curves: list[Curve], seconds: float
) -> list[Path]:
    """Write what a reader needs, each file whole."""
    from dataclasses import asdict

    from generic_adam.experiments.records import atomic_write, write_claims, write_manifest
    from generic_adam.experiments.settings import BATCH_SIZE
    from generic_adam.experiments.study_records import write_study
    from generic_adam.experiments.training_claims import study_claims
    from generic_adam.report.training import final_table, plot_study

    data = {"mnist": "MNIST", "cifar100": "CIFAR-100", "digits": "scikit-learn's digits"}[study.dataset]
    width = "" if study.network == "lenet" else f", width {study.width}"
    network = "LeNet" if study.network == "lenet" else "ResNet-18"
    title = f"{network}{width}, {data}, {study.epochs} epochs"
    title += ": what the guarantee costs" if plan.is_cost else f" (as in {study.figure} of the paper)"
    files = [
        *plot_study(curves, title, directory / plan.name),
        write_study(directory / "records.csv", curves),
    ]
    with atomic_write(directory / "outcomes.md") as file:
        file.write(final_table(curves))
    files.append(directory / "outcomes.md")
    if not plan.is_cost:
        files += write_claims(directory, study_claims(curves, f"Section 5.2, {study.figure}"))
    settings = asdict(study) | {"seeds": plan.seeds, "device": plan.device, "bf16": plan.bf16}
    if plan.is_cost:  # its methods have learning rates and v_0 of their own
        settings = {
            key: value for key, value in settings.items() if key not in {"alpha", "epsilons", "figure"}
        }
    settings |= {"batch_size": BATCH_SIZE, "methods": [asdict(job.settings.optimizer) for job in jobs]}
    files.append(write_manifest(directory / "manifest.json", plan.command(study), settings, seconds))
    return files


def _print_table(study: Study, curves: list[Curve]) -> None:
    from generic_adam.cli.tables import print_table
    from generic_adam.report.training import final_headings, final_rows

    headings = final_headings(curves)
    right = [heading for heading in headings if heading != "method"]
    print_table(headings, final_rows(curves), title=f"After epoch {study.epochs}", right=right)
