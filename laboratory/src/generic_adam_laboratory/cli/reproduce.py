"""`generic-adam reproduce EXPERIMENT`: run an experiment of the paper; figure, records, claims, manifest.

The same command starts a run, takes up a paused one, and tells that a finished one is finished.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.answers.terminal import answer, make_console, make_progress, print_table
from generic_adam.cli import say_if_interrupted
from generic_adam.cli.subject import Rows, declared, taking

if TYPE_CHECKING:
    from generic_adam_laboratory.runs.records import Occasion
    from generic_adam_laboratory.runs.run import Run
    from generic_adam_laboratory.studies.study import Job, Options
    from generic_adam_laboratory.studies.sweep import Advance, Place

_EXAMPLE = "Example:  generic-adam reproduce {} --quick"
_STUDIES = {
    "lenet": "Figure 2: LeNet on MNIST, seven methods.",
    "resnet18": "Figure 3: ResNet-18 on CIFAR-100, seven methods.",
    "resnet18-large-lr": "Figure 4: ResNet-18 with the larger learning rate.",
    "lenet-v0": "The order of Adam and AdaEMA on LeNet as a function of v_0.",
    "lenet-cost": "What the guarantee costs on LeNet: Adam as people use it against certified methods.",
    "resnet18-cost": "What the guarantee costs on ResNet-18.",
    "gpt-cost": "What the guarantee costs on a small GPT: AdamW against certified methods.",
    "lenet-orders": "Shuffled epochs against sampling with replacement on LeNet, r = 0 and r = 1.",
    "lenet-changes": "Worth it? One change of AdamW at a time on LeNet.",
    "resnet18-changes": "Worth it? One change of AdamW at a time on ResNet-18.",
    "gpt-changes": "Worth it? One change of AdamW at a time on a small GPT.",
    **{
        f"gpt-batch-{size}": f"beta2 from 0.9 to 0.9999 on a small GPT, batch {size}."
        for size in (4, 8, 16, 32, 64, 128)
    },
}

_HELP = "Run an experiment of the paper: figure, records, claims, manifest."
reproduce = typer.Typer(no_args_is_help=True, help=_HELP, epilog=_EXAMPLE.format("counterexample"))

# Experiments that are not a study of networks ---------------------------------------------------------------

_ROWS: Rows = {
    "seeds": (int, "--seeds N", "Independent streams of gradients, problems or trainings."),
    "steps": (float, "--steps T", "The number of steps."),
    "seed": (int, "--seed N", "The run's seed (0): it fixes every random number."),
    "form": (str, "--form NAME", "stochastic (the paper's) or deterministic."),
    "as_printed": (bool, "--as-printed", "The paper's misprint, +10x."),
    "no_peers": (bool, "--no-peers", "Without AMSGrad, Padam, AdaShift, RMSProp and AdaGrad."),
    "columns": (int, "--columns N", "Values of r from 0 to 2."),
    "rows": (int, "--rows N", "Values of s from 0 to 1.2."),
    "fuzz": (int, "--fuzz N", "Random right set-ups."),
    "data": (Path, "--data DIRECTORY", "The data sets ($GENERIC_ADAM_DATA, then the cache)."),
    "threads": (int, "--threads N", "Threads of this machine; by default all cores."),
    "scheduler": (str, "--scheduler ADDRESS", "Run on a Dask cluster: its scheduler's tcp://HOST:PORT."),
    "out": (Path, "--out DIRECTORY", "For figure, records, claims and manifest (runs/ and the name)."),
    "quick": (bool, "--quick", "A small run: seconds instead of hours."),
    "restart": (bool, "--restart", "Replace the run that --out holds."),
}


@dataclass(frozen=True)
class _Task:
    """A run as its options say it.

    Attributes:
        values: the options that repeat it, defaults spelled out.
        identity: the settings that tell it from other runs, as plain types.
        lane_steps: how much it is, in single steps of single lanes.
        compute: finds the results, given `run`, `simulating` and `progress`.
        write: fills a folder with them.
        flags: the flags that repeat it.
    """

    values: Mapping[str, object]
    identity: Mapping[str, Any]
    lane_steps: int
    compute: Callable[..., Any]
    write: Callable[[Path, Any, Occasion], object]
    flags: Mapping[str, bool] = field(default_factory=dict)


def _experiment(name: str, *options: str) -> Callable[[Callable[..., _Task]], Callable[..., _Task]]:
    """Make a command of the function that turns its options into a task."""

    def register(plan: Callable[..., _Task]) -> Callable[..., _Task]:
        def command(**given: Any) -> None:
            asked = {one: it for one, it in given.items() if it is not None}
            out, restart = asked.pop("out", Path("runs") / name), asked.pop("restart", False)
            threads = asked.pop("threads", os.cpu_count() or 1) if "threads" in options else 1
            scheduler = asked.pop("scheduler", None)
            task = plan(**asked)
            _reproduce(_command(name, task.values, task.flags), task, out, threads, scheduler, restart=restart)

        rows = {one: _ROWS[one] for one in (*options, "out", "quick", "restart")}
        reproduce.command(name, help=plan.__doc__, epilog=_EXAMPLE.format(name))(taking(command, declared(rows)))
        return plan

    return register


@_experiment("counterexample", "seeds", "steps", "seed", "form", "as_printed", "no_peers", "threads", "scheduler")
def _counterexample(
    seeds: int | None = None,
    steps: float | None = None,
    seed: int = 0,
    form: str = "stochastic",
    *,
    as_printed: bool = False,
    no_peers: bool = False,
    quick: bool = False,
) -> _Task:
    """Reproduce Figure 1: Generic Adam on the counterexample of Reddi, Kale and Kumar.

    100 seeds and 1e7 steps as in the paper; 20 and 5e5 with --quick.
    """
    from generic_adam_laboratory.counterexample import Counterexample, Plan, figures
    from generic_adam_laboratory.counterexample import study as studies

    plan = Plan(
        studies.figure_methods() | ({} if no_peers else studies.peer_methods()),
        steps=_whole(steps, 5e5 if quick else 1e7),
        replicates=(20 if quick else 100) if seeds is None else seeds,
        problem=Counterexample(form=form, as_printed=as_printed),
        seed=seed,
    )
    study = studies.Study(plan)
    flags = {"as-printed": as_printed, "no-peers": no_peers}
    values = {"seeds": len(plan.replicate_range), "steps": plan.steps, "seed": seed, "form": form}
    compute, write = partial(studies.run_study, study), partial(figures.write_study, study)
    return _Task(values, study.identity, study.lane_steps, compute, write, flags)


@_experiment("phase-map", "seeds", "steps", "columns", "rows", "seed", "threads", "scheduler")
def _phase_map(
    seeds: int = 8,
    steps: float | None = None,
    columns: int | None = None,
    rows: int | None = None,
    seed: int = 0,
    *,
    quick: bool = False,
) -> _Task:
    """Map where Generic Adam converges on the counterexample, against where the theory says so.

    8 seeds, 41 columns, 25 rows and 1e7 steps; 11, 13 and 1e5 with --quick.
    """
    from generic_adam_laboratory.studies import phase_map as maps

    columns = (11 if quick else 41) if columns is None else columns
    rows = (13 if quick else 25) if rows is None else rows
    grid = maps.Grid.regular(columns, rows)
    plan = grid.plan(_whole(steps, 1e5 if quick else 1e7), seeds, seed)
    values = {"seeds": seeds, "steps": plan.steps, "seed": seed, "columns": columns, "rows": rows}
    compute = partial(maps.run_map, grid, plan)
    return _Task(values, maps.identity(grid, plan), plan.lane_steps, compute, maps.write_map)


@_experiment("bound", "seeds", "steps", "seed")
def _bound(seeds: int | None = None, steps: float | None = None, seed: int = 0, *, quick: bool = False) -> _Task:
    """Measure what Theorems 1, 2, W and E bound on the sum of x^2/(1+x^2) with bounded noise.

    64 seeds and 1e6 steps; 16 and 2e3 with --quick.
    """
    from generic_adam_laboratory.studies import bound as bounds

    seeds = (16 if quick else 64) if seeds is None else seeds
    total, well = _whole(steps, 2e3 if quick else 1e6), bounds.BoundedWell()
    values = {"seeds": seeds, "steps": total, "seed": seed}

    def compute(run: Run, progress: Callable[[int, int], None], **_: Any) -> list[bounds.Comparison]:
        return bounds.run_measurements(well, total, seeds, seed, progress=progress, run=run)

    lane_steps = total * seeds * len(bounds.MEMBERS)
    return _Task(values, values | {"problem": asdict(well)}, lane_steps, compute, bounds.write_measurements)


@_experiment("haywire", "seeds", "steps")
def _haywire(seeds: int | None = None, steps: float | None = None, *, quick: bool = False) -> _Task:
    """Watch Adam leave a minimum it had reached, and what delays it, cures it and foretells it.

    5 seeds and 40,000 steps, then 15,000 in torch; 1 seed, 4,000 and 1,000 with --quick.
    """
    from generic_adam_laboratory.studies import haywire as story

    seeds = (1 if quick else 5) if seeds is None else seeds
    total, carried = _whole(steps, 4e3 if quick else 4e4), 1_000 if quick else 15_000

    def compute(run: Run, progress: Callable[[int, int], None], **_: Any) -> Any:
        return story.run_haywire(total, seeds, carried, run=run, progress=progress)

    values = {"seeds": seeds, "steps": total}
    identity, lane_steps = values | {"steps_in_torch": carried}, total * seeds * len(story.CHANGES)
    return _Task(values, identity, lane_steps, compute, story.write_haywire, {"quick": quick})


@_experiment("verify", "fuzz", "seed")
def _verify(fuzz: int | None = None, seed: int = 0, *, quick: bool = False) -> _Task:
    """Count what `generic-adam verify` finds among wrong set-ups, and how often it is wrong about right ones.

    Three zoos of set-ups and 5,000 random right ones; 20 with --quick.
    """
    from generic_adam_laboratory.zoo import verify_benchmark as zoos

    fuzz = (20 if quick else 5_000) if fuzz is None else fuzz
    values = {"fuzz": fuzz, "seed": seed}

    def compute(progress: Callable[[int, int], None], **_: Any) -> Any:
        return zoos.run_verify(fuzz, seed, progress)

    return _Task(values, values, fuzz, compute, zoos.write_verify, {"quick": quick})


@_experiment("floors", "seeds", "data")
def _floors(seeds: int | None = None, data: Path | None = None, *, quick: bool = False) -> _Task:
    """Measure what Adam's scaling costs on LeNet, ResNet-18 and a small GPT, beside what is proved.

    3 seeds, three beta2 and two batch sizes; one seed of LeNet on digits with --quick.
    """
    from generic_adam_laboratory.studies import floors as measured

    seeds = (1 if quick else 3) if seeds is None else seeds
    lane_steps = sum(case.steps for case in measured.cases(seeds, quick=quick))

    def compute(run: Run, progress: Callable[[int, int], None], **_: Any) -> Any:
        return measured.run_floors(seeds, data, quick=quick, run=run, progress=progress)

    identity = {"seeds": seeds, "lr": measured.LR, "beta1": measured.BETA1, "rate": measured.RATE, "quick": quick}
    return _Task({"seeds": seeds}, identity, lane_steps, compute, measured.write_floors, {"quick": quick})


@reproduce.command(epilog=_EXAMPLE.format("diagnose"))
def diagnose(
    out: Annotated[Path, typer.Option(help="Directory for table, records and manifest.")] = Path("runs/diagnose"),
    data: Annotated[Path | None, typer.Option(help="Where MNIST and CIFAR-100 are; without it, fewer runs.")] = None,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only cases with this in their name.")] = "",
) -> None:
    """Judge `Watch`: is the cause of a failing training named, and a healthy one left in peace?

    Some 65 failing trainings, each proved by its ablation, and 60 healthy ones; it goes on where it stopped.
    """
    from generic_adam_laboratory.runs.records import Occasion
    from generic_adam_laboratory.zoo import diagnose_benchmark as benchmark

    begun = time.perf_counter()
    seen = benchmark.look_at_all(out, str(data or ""), typer.echo, only=only)
    occasion = Occasion(_command("diagnose", {}, {}), {"cases": len(seen)}, time.perf_counter() - begun)
    benchmark.write(out, seen, occasion)
    typer.echo(f"wrote {out / 'table.md'}")


@reproduce.command("gpt-batches")
def _batches(
    directories: Annotated[list[Path], typer.Argument(metavar="DIRECTORY...", help="Results of gpt-batch studies.")],
    out: Annotated[Path, typer.Option(help="Directory for figure, table and manifest.")] = Path("runs/gpt-batches"),
) -> None:
    """Put the studies gpt-batch-4 to gpt-batch-128 side by side: beta2 and its half-life against the batch size."""
    from generic_adam.files import ensure_output_directory
    from generic_adam_laboratory.studies.batches import put_together

    command = _command("gpt-batches", {}, {}) + "".join(f" {shlex.quote(str(one))}" for one in directories)
    _print_results(command, put_together(directories, ensure_output_directory(out), command))


def _whole(steps: float | None, usual: float) -> int:
    from generic_adam.schedules.sums import whole_steps

    return whole_steps(usual if steps is None else steps, "--steps")


def _command(name: str, values: Mapping[str, object], flags: Mapping[str, bool]) -> str:
    """Write the command that repeats a run: options but for those that are None, a list one by one, and flags."""
    words = ["generic-adam", "reproduce", name]
    for key, value in values.items():
        for one in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            words += [f"--{key}", str(one)]
    return shlex.join([*words, *(f"--{flag}" for flag, is_given in flags.items() if is_given)])


def _reproduce(command: str, task: _Task, out: Path, threads: int, scheduler: str | None, *, restart: bool) -> None:
    """Compute in a directory of its own and publish, or say how to go on."""
    from generic_adam_laboratory.backends import Paused
    from generic_adam_laboratory.runs.records import Occasion
    from generic_adam_laboratory.runs.run import open_run

    begun = time.perf_counter()
    again = f"go on with: {command} --out {shlex.quote(str(out))}"
    anew = f"{again} --restart" if restart else again  # before there is a checkpoint --out still holds another run
    with open_run(out, task.identity, restart=restart) as run:
        say_if_interrupted(f"interrupted; {anew}")
        if run.is_finished:
            typer.echo(f"{run.directory} holds this run, finished; --restart runs it again")
            return
        try:
            found, timing = _compute(task, run, threads, scheduler)
        except (Paused, OSError) as stop:
            if run.signals.number is None:
                raise
            with suppress(OSError):  # the terminal may be what went away
                typer.echo(f"{stop if isinstance(stop, Paused) else 'paused'}; {again}", err=True)
            raise SystemExit(128 + run.signals.number) from None
        with run.publish() as folder:
            seconds = run.earlier_seconds + time.perf_counter() - begun
            task.write(folder, found, Occasion(command, {**task.identity, **timing}, seconds))
            names = sorted(path.name for path in folder.iterdir())
        _print_results(command, [run.directory / name for name in names])


def _print_results(command: str, written: Sequence[Path]) -> None:
    """Print the table of outcomes, or of claims where there is none, and the files written."""
    from generic_adam_laboratory.report import read_table

    tables = [path for path in written if path.name in {"outcomes.md", "turning.md"}]
    for path in tables or [path for path in written if path.name == "claims.md"]:
        table = read_table(path)
        cells = [[answer(cell) for cell in row] for row in table.rows]
        print_table(table.header, cells, title=f"{table.title} of {command}", right=table.right)
    typer.echo("\n".join(f"wrote {path}" for path in written))


def _compute(task: _Task, run: Run, threads: int, scheduler: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the findings, with the time they took and where."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from generic_adam_laboratory.counterexample import compile_kernels
    from generic_adam_laboratory.counterexample.simulation import Elsewhere, Simulation

    console = make_console(stderr=True)
    with console.status("compiling the inner loops (kept for later runs)"):
        compiling = compile_kernels()
    simulating = partial(Simulation, threads=threads)
    if scheduler is not None:
        simulating = partial(Elsewhere, scheduler=scheduler, tell=console.print)
    worked = time.process_time()
    columns = (f"{task.lane_steps:.1e} lane-steps", BarColumn(12), MofNCompleteColumn(), TimeRemainingColumn())
    with make_progress(*columns) as bar:
        shown = bar.add_task("steps", total=None)
        found = task.compute(
            run=run,
            simulating=simulating,
            progress=lambda done, total: bar.update(shown, completed=done, total=total),
        )
    how = "begun anew" if run.resumed_from is None else "taken up at the checkpoint before it"
    for complaint in run.complaints:
        console.print(f"warning: {complaint}; the run was {how}")
    console.print(
        f"{task.lane_steps:,} lane-steps and what belongs to them in {run.seconds:.1f} s on {threads} "
        f"thread{'s' if threads > 1 else ''}; compiling took {compiling:.1f} s before that"
    )
    return found, {
        "lane_steps": task.lane_steps,
        "simulation_seconds": round(run.seconds, 3),
        "threads": threads,
        "scheduler": scheduler,
        "resumed_from": run.resumed_from,
        "compile_seconds": round(compiling, 3),
        # Of this command, whatever else the machine did: over the number of cores, the time on an idle one.
        "processor_seconds": round(time.process_time() - worked, 3),
    }


_STUDY: Rows = {
    "epochs": (int, "--epochs N", "Length of each run; 100 in the paper."),
    "seeds": (int, "--seeds N", "Runs of each method (3 for the costs, else 1)."),
    "width": (int, "--width N", "ResNet-18's first width (64), or GPT's."),
    "blocks": (str, "--blocks NAME", "ResNet-18: 'usual' (2, 2, 2, 2), or 'paper' (1, 2, 2, 2)."),
    "epsilon": (list[float], "--epsilon", "v_0 (1e-8 and 1e-4); may be given several times."),
    "corrected": (bool, "--corrected", "Also Kingma and Ba's Adam: v_0 = 0 and bias correction."),
    "only": (list[str], "--only LABEL", "A method by its label ('r = 0', SGD, ...); can be repeated."),
    "bf16": (bool, "--bf16", "bfloat16 where autocast allows."),
    "quick": (bool, "--quick", "A small run: seconds instead of hours."),
    "device": (str, "--device NAME", "cpu, unless told otherwise, or cuda."),
    "jobs": (int, "--jobs N", "Processes; by default one a core."),
    "scheduler": (str, "--scheduler ADDRESS", "Run on a Dask cluster: its scheduler's tcp://HOST:PORT."),
    "out": (Path, "--out DIRECTORY", "For all results (runs/ and the name)."),
    "data": (Path, "--data DIRECTORY", "The data sets ($GENERIC_ADAM_DATA, then the cache)."),
    "earlier": (list[Path], "--earlier DIRECTORY", "Results whose runs are taken; can be repeated."),
    "restart": (bool, "--restart", "Replace the runs that --out holds."),
}


def _study(name: str) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from generic_adam_laboratory.studies.study import Options
        from generic_adam_laboratory.studies.sweep import Place

        asked: dict[str, Any] = {one: it for one, it in given.items() if it not in (None, [])}
        asked |= {one: tuple(it) for one, it in asked.items() if isinstance(it, list)}
        options = Options(**{one.name: asked[one.name] for one in fields(Options) if one.name in asked})
        out = asked.get("out", Path("runs") / name)
        place = Place(out, given["data"], asked.get("device", "cpu"), given["jobs"], given["scheduler"])
        _run_study(name, options, place, asked.get("earlier", ()), restart=bool(given["restart"]))

    return taking(command, declared(_STUDY))


for study_name, study_help in _STUDIES.items():
    reproduce.command(study_name, help=study_help, epilog=_EXAMPLE.format(study_name))(_study(study_name))


def _run_study(name: str, options: Options, place: Place, earlier: Sequence[Path], *, restart: bool) -> None:
    """Run a study, or what is left of it, write what a reader needs, and print where the methods stand."""
    from generic_adam_laboratory.backends import Paused, pausing
    from generic_adam_laboratory.runs.records import Occasion
    from generic_adam_laboratory.runs.run import exclusive
    from generic_adam_laboratory.studies import batches, cost, paper_studies, sweep, worth
    from generic_adam_laboratory.studies import study as studies
    from generic_adam_laboratory.studies.study_figures import plot_study

    experiment = (paper_studies.EXPERIMENTS | cost.EXPERIMENTS | worth.EXPERIMENTS | batches.EXPERIMENTS)[name]
    study, known = experiment.plan(options, place.data)
    if earlier:
        study, known["earlier"] = studies.with_earlier(study, known, earlier)
    values = {  # defaults spelled out
        "epochs": study.epochs,
        "seeds": study.seeds,
        "width": None if study.network == "lenet" else study.width,
        "blocks": options.blocks if study.network.startswith("resnet18") else None,
        "epsilon": list(dict.fromkeys(one.initial_v for one in study.lines if one.initial_v is not None)),
        "only": options.only,
        "device": None if place.device == "cpu" else place.device,
    }
    flags = {"corrected": options.corrected, "bf16": options.bf16, "quick": options.quick}
    command = _command(study.name, values, flags)
    where = {"data": place.data, "earlier": earlier, "jobs": place.workers, "scheduler": place.scheduler}
    whole = values | where | {"out": place.directory}
    again = f"to go on: {_command(study.name, whole, flags)}"
    say_if_interrupted(f"interrupted; {place.directory} has what was run; {again}")
    console = make_console(stderr=True)
    try:
        with _advancing(study.jobs(place.directory)) as tell:
            if not sweep.run(study, place, on_advance=tell, tell=console.print, restart=restart):
                return
        with pausing(), exclusive(place.directory):  # no other process may begin the runs anew while they are read
            curves = studies.collect(study, place.directory)
            seconds = sweep.elapsed_seconds(place.directory) + sum(one["seconds"] for one in known.get("earlier", ()))
            files = studies.publish(
                study,
                place.directory,
                curves,
                Occasion(command, {"device": place.device, **known}, seconds),
                claims=experiment.judge(study, curves, place.data),
                draw=plot_study,
                notes=experiment.notes(study, known["steps"], curves),
            )
    except Paused as paused:
        with suppress(OSError):  # the terminal may be what went away
            # Not by the console: a command that it breaks into lines cannot be copied.
            typer.echo(f"paused ({paused}) at the last checkpoints in {place.directory}\n{again}", err=True)
        raise SystemExit(128 + paused.signal) from paused
    _print_results(command, files)


@contextmanager
def _advancing(jobs: Sequence[Job]) -> Iterator[Callable[[Advance, float], None]]:
    """Print a line after each epoch of each run; on a terminal a bar below them."""
    from rich.progress import BarColumn, MofNCompleteColumn

    bar = make_progress("all runs", BarColumn(12), MofNCompleteColumn(), "{task.fields[left]}", transient=False)
    console = bar.console if bar.console.is_terminal else make_console(stderr=True)
    reached = {job.name: 0 for job in jobs}
    whole = bar.add_task("all runs", total=sum(job.settings.epochs for job in jobs), left="")
    with bar:

        def tell(done: Advance, seconds_left: float) -> None:
            for complaint in done.complaints:
                console.print(f"warning: {complaint}; the checkpoint before it is used")
            record, settings, speed = done.record, done.job.settings, done.samples_per_second
            reached[done.job.name] = record.epoch
            left = "" if speed is None else f"{timedelta(seconds=round(seconds_left))} left"
            bar.update(whole, completed=sum(reached.values()), left=left)
            if speed is not None:
                unit = "windows" if settings.dataset == "stdlib" else "images"
                console.print(
                    f"{done.job.name}: epoch {record.epoch}/{settings.epochs}, loss {record.train_loss:.4f}, "
                    f"accuracy {record.test_accuracy:.2%}, {speed:,.0f} {unit}/s, {left}"
                )

        yield tell
