"""`generic-adam reproduce counterexample | phase-map | bound`: what to run, and where it goes.

The same command starts a run, takes up a paused one, and tells that a finished one is finished.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from generic_adam.cli.reproduce import Quick, Restart, Scheduler, Seed, Threads

if TYPE_CHECKING:
    from generic_adam.experiments.bound import Comparison
    from generic_adam.experiments.counterexample import LaneRecords, Plan
    from generic_adam.experiments.counterexample.study import Outcome
    from generic_adam.experiments.phase_map import MapOutcome
    from generic_adam.experiments.records import Occasion
    from generic_adam.experiments.run import Run

Timing = dict[str, Any]
Found = TypeVar("Found")


def register(app: typer.Typer) -> None:
    """Add the experiments to `reproduce`."""
    app.command("counterexample")(counterexample)
    app.command("phase-map")(phase_map)
    app.command("bound")(bound)


def counterexample(
    seeds: Annotated[
        int | None, typer.Option(help="Independent streams of gradients: 100, or 20 with --quick.")
    ] = None,
    steps: Annotated[str | None, typer.Option(help="T: 1e7 as in the paper, or 5e5 with --quick.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records, claims and manifest.")] = Path(
        "runs/counterexample"
    ),
    quick: Quick = False,
    form: Annotated[
        str, typer.Option(help="stochastic (the paper's) or deterministic (Reddi's).")
    ] = "stochastic",
    as_printed: Annotated[
        bool, typer.Option("--as-printed", help="Run the paper's misprint, +10x for -10x.")
    ] = False,
    peers: Annotated[
        bool, typer.Option(help="Also run AMSGrad, Padam, AdaShift, RMSProp and AdaGrad.")
    ] = True,
    turning: Annotated[
        bool, typer.Option(help="Also run the slow curves to 10 T, and measure when each r turns round.")
    ] = True,
    seed: Seed = 0,
    threads: Threads = None,
    scheduler: Scheduler = None,
    restart: Restart = False,
) -> None:
    """Reproduce Figure 1: Generic Adam on the counterexample of Reddi, Kale and Kumar."""
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.experiments.counterexample import Counterexample, Plan
    from generic_adam.experiments.counterexample.figures import (
        OUTCOME_HEADINGS,
        TURNING_HEADINGS,
        outcome_rows,
        turning_rows,
        write_study,
    )
    from generic_adam.experiments.counterexample.study import Study, figure_methods, peer_methods, run_study

    plan = Plan(
        figure_methods() | (peer_methods() if peers else {}),
        steps=parse_steps(steps or ("5e5" if quick else "1e7")),
        replicates=seeds if seeds is not None else (20 if quick else 100),
        problem=Counterexample(form=form, as_printed=as_printed),
        seed=seed,
    )
    study = Study(plan, is_quick=quick, with_turning=turning)
    command = f"generic-adam reproduce counterexample {_common(plan)} --form {plan.problem.form}"
    for name, is_given in (("as-printed", as_printed), ("no-peers", not peers), ("quick", quick)):
        command += f" --{name}" if is_given else ""
    command += "" if turning else " --no-turning"

    def compute(lanes: Lanes) -> Outcome:
        return run_study(
            study,
            threads=lanes.threads,
            progress=lanes.progress,
            run=lanes.run,
            simulate_lanes=lanes.elsewhere,
        )

    def write(folder: Path, outcome: Outcome, occasion: Occasion) -> None:
        write_study(folder, study, outcome, occasion)
        print_table(
            OUTCOME_HEADINGS,
            [(*row[:-1], answer(row[-1])) for row in outcome_rows(plan.methods, outcome)],
            title=f"Who converges here: {len(plan.replicate_range)} seeds",
            right=OUTCOME_HEADINGS[1:-1],
        )
        if outcome.turning is not None:
            print_table(
                TURNING_HEADINGS,
                turning_rows(outcome.turning),
                title=f"Where it turns round: theta* = {outcome.turning.theta_star}",
                right=TURNING_HEADINGS[2:],
            )

    _reproduce(
        Job(study.identity, study.lane_steps, command, compute, write), out, threads, scheduler, restart
    )


def phase_map(
    seeds: Annotated[int, typer.Option(help="Independent streams of gradients a point.")] = 8,
    steps: Annotated[str | None, typer.Option(help="T: 1e7, or 1e5 with --quick.")] = None,
    columns: Annotated[
        int | None, typer.Option(help="Values of r from 0 to 2: 41, or 11 with --quick.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Values of s from 0 to 1.2: 25, or 13 with --quick.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records and manifest.")] = Path(
        "runs/phase-map"
    ),
    quick: Quick = False,
    seed: Seed = 0,
    threads: Threads = None,
    scheduler: Scheduler = None,
    restart: Restart = False,
) -> None:
    """Map where Generic Adam converges on the counterexample, against where the theory says so."""
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.experiments.phase_map import Grid, identity, run_map, write_map

    columns = columns if columns is not None else (11 if quick else 41)
    rows = rows if rows is not None else (13 if quick else 25)
    grid = Grid.regular(columns, rows)
    plan = grid.plan(parse_steps(steps or ("1e5" if quick else "1e7")), seeds, seed)
    command = f"generic-adam reproduce phase-map {_common(plan)} --columns {columns} --rows {rows}"
    command += " --quick" if quick else ""
    settings = identity(grid, plan)

    def compute(lanes: Lanes) -> MapOutcome:
        return run_map(
            grid, plan, is_quick=quick, threads=lanes.threads, progress=lanes.progress, run=lanes.run,
            simulate_lanes=lanes.elsewhere,
        )  # fmt: skip

    def write(folder: Path, outcome: MapOutcome, occasion: Occasion) -> None:
        claims = write_map(folder, outcome, occasion)
        print_table(
            ("claim", "verdict", "evidence"),
            [(claim.sentence, answer(claim.verdict), claim.evidence) for claim in claims],
        )

    _reproduce(Job(settings, plan.lane_steps, command, compute, write), out, threads, scheduler, restart)


def bound(
    seeds: Annotated[int | None, typer.Option(help="Independent runs: 64, or 16 with --quick.")] = None,
    steps: Annotated[str | None, typer.Option(help="T: 1e6, or 2e3 with --quick.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records, claims and manifest.")] = Path(
        "runs/bound"
    ),
    quick: Quick = False,
    seed: Seed = 0,
    restart: Restart = False,
) -> None:
    """Measure what Theorems 1, 2, W and E bound on the sum of x^2/(1+x^2) with bounded noise."""
    from dataclasses import asdict

    from generic_adam.cli.tables import print_table
    from generic_adam.experiments.bound import (
        HEADINGS,
        MEMBERS,
        BoundedWell,
        rows,
        run_measurements,
        write_measurements,
    )

    seeds = seeds if seeds is not None else (16 if quick else 64)
    total, well = parse_steps(steps or ("2e3" if quick else "1e6")), BoundedWell()
    command = f"generic-adam reproduce bound --seeds {seeds} --steps {total} --seed {seed}"
    settings = {"steps": total, "seeds": seeds, "seed": seed, "problem": asdict(well)}

    def compute(lanes: Lanes) -> list[Comparison]:
        return run_measurements(well, total, seeds, seed, progress=lanes.progress, run=lanes.run)

    def write(folder: Path, found: list[Comparison], occasion: Occasion) -> None:
        write_measurements(folder, found, occasion)
        title = f"Measured and bounded at T = {total:,}, {seeds} seeds"
        print_table(HEADINGS, rows(found), right=HEADINGS[2:8], title=title)

    lane_steps = total * seeds * len(MEMBERS)
    _reproduce(Job(settings, lane_steps, command, compute, write), out, 1, None, restart)


def parse_steps(text: str) -> int:
    """Read a number of steps such as 10000000 or 1e7.

    Raises:
      RunError: it is not a whole number of at least 1.
    """
    from decimal import Decimal, InvalidOperation

    from generic_adam.errors import RunError

    try:
        number = Decimal(text)
        whole = int(number) if number.is_finite() and abs(number) < 10**40 else None
    except InvalidOperation:
        whole = None
    if whole is None or whole != number or whole < 1:
        raise RunError(f"--steps is {text!r}, expected a whole number of at least 1, such as 1e7")
    return whole


def _common(plan: Plan) -> str:
    return f"--seeds {len(plan.replicate_range)} --steps {plan.steps} --seed {plan.seed}"


@dataclass(frozen=True)
class Lanes:
    """What an experiment is given to compute with.

    Attributes:
      run: the directory it holds.
      threads: of this machine.
      progress: to be called with the number of steps made so far and that of all.
      elsewhere: runs a plan on a cluster, or None.
    """

    run: Run
    threads: int
    progress: Callable[[int, int], None]
    elsewhere: Callable[[Plan], LaneRecords] | None


@dataclass(frozen=True)
class Job(Generic[Found]):
    """An experiment, as this file carries it out.

    Attributes:
      identity: what must be the same for a run to be this one.
      lane_steps: single steps of single lanes.
      command: what a person types to repeat it.
      compute: finds everything.
      write: fills a folder with the results, which then appear together.
    """

    identity: Mapping[str, Any]
    lane_steps: int
    command: str
    compute: Callable[[Lanes], Found]
    write: Callable[[Path, Found, Occasion], None]


def _reproduce(job: Job[Found], out: Path, threads: int | None, scheduler: str | None, restart: bool) -> None:
    """Compute in a directory of its own and publish, or say how to go on.

    Args:
      job: the experiment.
      out: the directory.
      threads: threads of this machine (None: all cores).
      scheduler: address of a Dask scheduler, or None.
      restart: replace what the directory holds.
    """
    from generic_adam.experiments.records import Occasion
    from generic_adam.experiments.run import PausedRun, open_run

    begun = time.perf_counter()
    again = f"{job.command} --out {shlex.quote(str(out))}"
    with open_run(out, job.identity, restart=restart, hold_signals=scheduler is None, is_command=True) as run:
        if run.is_finished:
            typer.echo(f"{run.directory} holds this run, finished; --restart runs it again")
            return
        try:
            threads = os.cpu_count() or 1 if threads is None else threads
            found, timing = _compute(job, run, threads, scheduler, f"go on with: {again}")
        except (PausedRun, OSError) as stop:
            if run.signals.number is None:
                raise
            with suppress(OSError):  # the terminal may be what went away
                where = stop if isinstance(stop, PausedRun) else "paused"
                typer.echo(f"{where}; go on with: {again}", err=True)
            raise typer.Exit(128 + run.signals.number) from None
        with run.publish() as folder:
            settings = {**job.identity, **timing}
            job.write(folder, found, Occasion(job.command, settings, time.perf_counter() - begun))
            names = sorted(path.name for path in folder.iterdir())
        typer.echo("\n".join(f"wrote {run.directory / name}" for name in names))


def _compute(
    job: Job[Found], run: Run, threads: int, scheduler: str | None, go_on: str
) -> tuple[Found, Timing]:
    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.counterexample import compile_kernels

    console = make_console(stderr=True)
    with (
        run.signals.nothing_to_save(f"paused while the inner loops were compiled; {go_on}"),
        console.status("compiling the inner loops (kept for later runs)"),
    ):
        compiling = compile_kernels()
    begun, worked = time.perf_counter(), time.process_time()
    with _progress(job.lane_steps) as report:
        found = job.compute(Lanes(run, threads, report, _elsewhere(scheduler)))
    for complaint in run.complaints:
        console.print(f"warning: {complaint}; the checkpoint before it was used", markup=False)
    seconds = run.seconds if scheduler is None else time.perf_counter() - begun
    timing: Timing = {
        "lane_steps": job.lane_steps,
        "simulation_seconds": round(seconds, 3),
        "threads": threads,
        "scheduler": scheduler,
        "resumed_from": run.resumed_from,
        "compile_seconds": round(compiling, 3),
        # What this process needed, whatever else the machine did: over the number of cores, the time on an
        # idle one.
        "processor_seconds": round(time.process_time() - worked, 3),
    }
    console.print(
        f"{job.lane_steps:,} lane-steps and what belongs to them in {seconds:.1f} s on {threads} "
        f"thread{'s' if threads > 1 else ''}; compiling took {compiling:.1f} s before that"
    )
    return found, timing


def _elsewhere(scheduler: str | None) -> Callable[[Plan], LaneRecords] | None:
    if scheduler is None:
        return None
    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.backends import simulate_on_cluster

    tell = make_console(stderr=True).print
    return lambda plan: simulate_on_cluster(plan, scheduler, tell=tell)


@contextmanager
def _progress(lane_steps: int) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from generic_adam.cli.tables import make_console

    columns = (
        TextColumn(f"{lane_steps:.1e} lane-steps"), BarColumn(20), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    console = make_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("steps", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
