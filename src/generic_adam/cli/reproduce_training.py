"""``generic-adam reproduce lenet|resnet18|...``: the studies of networks, and what the guarantee costs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.reproduce import Scheduler

if TYPE_CHECKING:
    from generic_adam.experiments.study import Experiment, Job, Options, Study
    from generic_adam.experiments.sweep import Advance, Place

_HELP = {
    "lenet": "Figure 2: LeNet on MNIST, seven methods.",
    "resnet18": "Figure 3: ResNet-18 on CIFAR-100, seven methods.",
    "resnet18-large-lr": "Figure 4: ResNet-18 with the larger learning rate.",
    "lenet-v0": "The order of Adam and AdaEMA on LeNet as a function of v_0.",
    "lenet-cost": "What the guarantee costs on LeNet: Adam as people use it against certified methods.",
    "resnet18-cost": "What the guarantee costs on ResNet-18.",
    "gpt-cost": "What the guarantee costs on a small GPT: AdamW against certified methods.",
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
        seeds: Annotated[
            int | None,
            typer.Option(
                help="Runs of each method, with seeds 0, 1, ...", show_default="3 for gpt-cost, else 1"
            ),
        ] = None,
        width: Annotated[
            int | None,
            typer.Option(help="ResNet-18's first width (64 in the paper), or GPT's.", show_default=False),
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
        only: Annotated[
            list[str] | None,
            typer.Option(
                help="A method by its label ('r = 0', AMSGrad, NAdam, SGD, ...); may be given several times.",
                show_default="all of the study",
            ),
        ] = None,
        device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
        jobs: Annotated[
            int | None, typer.Option(help="Processes; by default one a core.", show_default=False)
        ] = None,
        scheduler: Scheduler = None,
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
        earlier: Annotated[
            Path | None,
            typer.Option(help="Published results whose runs are taken instead of repeated."),
        ] = None,
        tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
        quick: Annotated[
            bool, typer.Option("--quick", help="Seconds instead of hours: scikit-learn's digits.")
        ] = False,
    ) -> None:
        from generic_adam.experiments import cost, paper_studies
        from generic_adam.experiments.study import Options
        from generic_adam.experiments.sweep import Place

        _check_place(device, jobs, scheduler)
        options = Options(
            epochs, seeds, width, blocks, tuple(epsilon or ()), corrected, tuple(only or ()), bf16, quick
        )
        place = Place(out or Path("runs") / name, data, device, jobs, scheduler)
        experiment = (paper_studies.EXPERIMENTS | cost.EXPERIMENTS)[name]
        run_experiment(experiment, options, place, earlier=earlier, tensorboard=tensorboard)

    return command


def run_experiment(
    experiment: Experiment,
    options: Options,
    place: Place,
    *,
    earlier: Path | None = None,
    tensorboard: bool = False,
) -> None:
    """Run a study, or what is left of it, write what a reader needs, and print where the methods stand."""
    from generic_adam.cli.tables import make_console, print_table
    from generic_adam.experiments import study as studies
    from generic_adam.experiments import sweep
    from generic_adam.experiments.backends import Paused
    from generic_adam.experiments.study_figures import plot_study

    study, known = experiment.plan(options, place.data)
    if earlier is not None:
        study, known["earlier"] = studies.with_earlier(study, known, earlier)
    command = _repeating(study, options, place)
    console = make_console(stderr=True)
    jobs = study.jobs(place.directory)
    try:
        with _progress(jobs, place.directory, tensorboard=tensorboard) as tell:
            if not sweep.run(study, place, on_advance=tell, tell=console.print):
                return
    except Paused as paused:
        console.print(f"paused ({paused}) at the last checkpoints in {place.directory}", markup=False)
        data = "" if place.data is None else f" --data {shlex.quote(str(place.data))}"
        console.print(f"to go on: {command}{data} --out {shlex.quote(str(place.directory))}", markup=False)
        raise typer.Exit(128 + paused.signal) from paused
    curves = studies.collect(study, place.directory)
    files = studies.publish(
        study,
        place.directory,
        curves,
        command=command,
        claims=experiment.judge(study, curves, place.data),
        notes=experiment.notes(study, known["steps"]),
        draw=plot_study,
        seconds=sweep.elapsed_seconds(place.directory)
        + sum(one["seconds"] for one in known.get("earlier", ())),
        extra={"device": place.device, **known},
    )
    headings, rows = studies.outcomes(curves)
    right = [heading for heading in headings if heading not in {"v_0", "method"}]
    print_table(headings, rows, title=f"After epoch {study.epochs}", right=right)
    typer.echo("\n".join(f"wrote {path}" for path in files))


def _check_place(device: str, jobs: int | None, scheduler: str | None) -> None:
    from generic_adam.errors import RunError
    from generic_adam.extras import from_extra

    if jobs is not None and jobs < 1:
        raise RunError(f"--jobs {jobs}: expected a positive whole number")
    if device not in {"cpu", "cuda"}:
        raise RunError(f"--device {device!r}: expected cpu or cuda")
    if device == "cuda" and scheduler is None:  # a cluster's devices are not seen from here
        with from_extra("experiments"):
            import torch

        if not torch.cuda.is_available():
            raise RunError("--device cuda: torch finds no CUDA device on this machine")


def _repeating(study: Study, options: Options, place: Place) -> str:
    """The command that repeats a study, defaults spelled out."""
    parts = [f"generic-adam reproduce {study.name} --epochs {study.epochs} --seeds {study.seeds}"]
    if study.network != "lenet":
        parts.append(f"--width {study.width}")
    if study.network.startswith("resnet18"):
        parts.append(f"--blocks {options.blocks}")
    values = dict.fromkeys(line.initial_v for line in study.lines if line.initial_v is not None)
    parts += [f"--epsilon {value!r}" for value in values]
    parts += [f"--only {label!r}" for label in options.only]
    parts += [f"--device {place.device}"] if place.device != "cpu" else []
    flags = {"--corrected": options.corrected, "--bf16": options.bf16, "--quick": options.quick}
    return " ".join([*parts, *(flag for flag, is_set in flags.items() if is_set)])


@contextmanager
def _progress(
    jobs: Sequence[Job], directory: Path, *, tensorboard: bool
) -> Iterator[Callable[[Advance, float], None]]:
    """A line after each epoch of each run; on a terminal a bar for each run and one for the whole."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from generic_adam.cli.tables import make_console

    console = make_console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(12),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )
    bars = Progress(*columns, console=console, disable=not console.is_terminal)
    tasks = {job.name: bars.add_task(job.name, total=job.settings.epochs, now="") for job in jobs}
    whole = bars.add_task("all runs", total=sum(job.settings.epochs for job in jobs), now="")
    reached = dict.fromkeys(tasks, 0)
    with bars, _tensorboard(directory, tensorboard) as log:

        def tell(done: Advance, seconds_left: float) -> None:
            for complaint in done.complaints:
                console.print(f"warning: {complaint}; the checkpoint before it is used", markup=False)
            record, speed = done.record, done.samples_per_second
            name, left = done.job.name, f"{_duration(seconds_left)} left"
            reached[name] = record.epoch
            now = f"loss {record.train_loss:.4f}, accuracy {record.test_accuracy:.2%}"
            bars.update(tasks[name], completed=record.epoch, now=now)
            bars.update(whole, completed=sum(reached.values()), now="" if speed is None else left)
            if speed is not None:
                log(done)
                if not console.is_terminal:
                    unit = "windows" if done.job.settings.dataset == "stdlib" else "images"
                    epochs = f"epoch {record.epoch}/{done.job.settings.epochs}"
                    console.print(f"{name}: {epochs}, {now}, {speed:,.0f} {unit}/s, {left}", markup=False)

        yield tell


@contextmanager
def _tensorboard(directory: Path, wanted: bool) -> Iterator[Callable[[Advance], None]]:
    """A function that logs an epoch; it does nothing unless wanted."""
    if not wanted:
        yield lambda _done: None
        return
    from torch.utils.tensorboard import SummaryWriter  # pyright: ignore[reportPrivateImportUsage]

    from generic_adam.experiments.study import MEASURES

    writers: dict[str, SummaryWriter] = {}

    def log(done: Advance) -> None:
        if done.job.name not in writers:
            writers[done.job.name] = SummaryWriter(str(directory / "tensorboard" / done.job.name))
        writer = writers[done.job.name]
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
