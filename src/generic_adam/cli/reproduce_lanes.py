"""`generic-adam reproduce counterexample | phase-map | bound`: what to run, and where it goes.

The same command starts a run, takes up a paused one, and tells that a finished one is finished.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generic_adam.cli.run_options import Quick, Restart, Scheduler, Seed, Threads

if TYPE_CHECKING:
    from generic_adam.experiments.counterexample import LaneRecords, Plan
    from generic_adam.experiments.run import Run

Timing = dict[str, Any]


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
    seed: Seed = 0,
    threads: Threads = None,
    scheduler: Scheduler = None,
    restart: Restart = False,
) -> None:
    """Reproduce Figure 1: Generic Adam on the counterexample of Reddi, Kale and Kumar."""
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.experiments.counterexample import Counterexample, Plan
    from generic_adam.experiments.counterexample.figure import figure_methods, peer_methods
    from generic_adam.report.counterexample import OUTCOME_HEADINGS, outcome_rows, write_results

    plan = Plan(
        figure_methods() | (peer_methods() if peers else {}),
        steps=parse_steps(steps or ("5e5" if quick else "1e7")),
        replicates=seeds if seeds is not None else (20 if quick else 100),
        problem=Counterexample(form=form, as_printed=as_printed),
        seed=seed,
    )
    command = f"generic-adam reproduce counterexample {_common(plan)} --form {plan.problem.form}"
    command += " --as-printed" if as_printed else ""
    command += "" if peers else " --no-peers"

    def write(folder: Path, records: LaneRecords, timing: Timing, seconds: float) -> None:
        write_results(folder, plan, records, command, timing, seconds)
        print_table(
            OUTCOME_HEADINGS,
            [(*row[:-1], answer(row[-1])) for row in outcome_rows(plan.methods, records)],
            title=f"Who converges here: T = {plan.steps:,}, {len(plan.replicate_range)} seeds",
            right=OUTCOME_HEADINGS[1:-1],
        )

    _reproduce(plan, plan.settings(), command, out, write, threads, scheduler, restart)


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
    from generic_adam.experiments.phase_map import Grid
    from generic_adam.report.phase_map import write_results

    columns = columns if columns is not None else (11 if quick else 41)
    rows = rows if rows is not None else (13 if quick else 25)
    grid = Grid.regular(columns, rows)
    plan = grid.plan(parse_steps(steps or ("1e5" if quick else "1e7")), seeds, seed)
    command = f"generic-adam reproduce phase-map {_common(plan)} --columns {columns} --rows {rows}"
    identity = {key: value for key, value in plan.settings().items() if key != "methods"}
    identity |= {"r": list(grid.r), "s": list(grid.s)}

    def write(folder: Path, records: LaneRecords, timing: Timing, seconds: float) -> None:
        claims = write_results(folder, grid, records, command, identity | timing, seconds)
        print_table(
            ("claim", "verdict", "evidence"),
            [(claim.sentence, answer(claim.verdict), claim.evidence) for claim in claims],
        )

    _reproduce(plan, identity, command, out, write, threads, scheduler, restart)


def bound(
    seeds: Annotated[int | None, typer.Option(help="Independent runs: 128, or 16 with --quick.")] = None,
    steps: Annotated[str | None, typer.Option(help="T: 1e5, or 2e3 with --quick.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records, claims and manifest.")] = Path(
        "runs/bound"
    ),
    quick: Quick = False,
    seed: Seed = 0,
    restart: Restart = False,
) -> None:
    """Measure Theorem 1's left side on the sum of x^2/(1+x^2) with bounded noise, beside its bound."""
    from dataclasses import asdict

    from rich.progress import Progress

    from generic_adam.cli.tables import make_console, print_table
    from generic_adam.experiments.measured import BoundedWell, measure
    from generic_adam.experiments.run import open_run
    from generic_adam.report.bound import HEADINGS, compare, families, write_results

    begun = time.perf_counter()
    seeds = seeds if seeds is not None else (16 if quick else 128)
    total, well = parse_steps(steps or ("2e3" if quick else "1e5")), BoundedWell()
    command = f"generic-adam reproduce bound --seeds {seeds} --steps {total} --seed {seed}"
    identity = {"steps": total, "seeds": seeds, "seed": seed, "problem": asdict(well)}
    with open_run(out, identity, restart=restart, hold_signals=False) as run:
        if _is_finished(run):
            return
        panels = {}
        console = make_console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            methods = families()
            task = progress.add_task("measuring", total=total * sum(map(len, methods.values())))
            for title, members in methods.items():
                runs = measure(members, well, total, seeds, seed, lambda done: progress.advance(task, done))
                panels[title] = compare(members, well, runs)
        with run.publish() as folder:
            write_results(folder, panels, command, identity, time.perf_counter() - begun)
            rows = [(title, *one.row) for title, comparisons in panels.items() for one in comparisons]
            print_table(("panel", *HEADINGS), rows, right=HEADINGS[1:8], title=f"Theorem 1, {seeds} seeds")
        _list_files(run.directory)


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


def _reproduce(
    plan: Plan,
    identity: Mapping[str, Any],
    command: str,
    out: Path,
    write: Callable[[Path, LaneRecords, Timing, float], None],
    threads: int | None,
    scheduler: str | None,
    restart: bool,
) -> None:
    """Simulate in a directory of its own and publish, or say how to go on.

    Args:
      plan: what to simulate.
      identity: what must be the same for a run to be this one.
      command: what a person types to repeat it.
      out: the directory.
      write: fills a folder with the results, which then appear together.
      threads: threads of this machine (None: all cores).
      scheduler: address of a Dask scheduler, or None.
      restart: replace what the directory holds.
    """
    from generic_adam.experiments.run import PausedRun, open_run

    begun = time.perf_counter()
    with open_run(out, identity, restart=restart, hold_signals=scheduler is None, is_command=True) as run:
        if _is_finished(run):
            return
        try:
            records, timing = _simulate(run, plan, threads, scheduler)
        except (PausedRun, OSError) as stop:
            if run.signals.number is None:
                raise
            with suppress(OSError):  # the terminal may be what went away
                where = stop if isinstance(stop, PausedRun) else "paused"
                again = f"{command} --out {shlex.quote(str(out))}"
                typer.echo(f"{where}; go on with: {again}", err=True)
            raise typer.Exit(128 + run.signals.number) from None
        with run.publish() as folder:
            write(folder, records, timing, time.perf_counter() - begun)
        _list_files(run.directory)


def _is_finished(run: Run) -> bool:
    if run.is_finished:
        typer.echo(f"{run.directory} holds this run, finished; --restart runs it again")
    return run.is_finished


def _list_files(directory: Path) -> None:
    from generic_adam.experiments.records import read_manifest

    files = (read_manifest(directory) or {}).get("files", {})
    typer.echo("\n".join(f"wrote {directory / name}" for name in [*files, "manifest.json"]))


def _simulate(run: Run, plan: Plan, threads: int | None, scheduler: str | None) -> tuple[LaneRecords, Timing]:
    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.counterexample import compile_kernels, simulate

    console = make_console(stderr=True)
    begun, worked = time.perf_counter(), time.process_time()
    if scheduler is not None:
        from generic_adam.experiments.cluster import simulate_on_cluster

        with _progress(plan) as report:
            records = simulate_on_cluster(plan, scheduler, progress=report, tell=console.print)
        return records, _timing(plan, time.perf_counter() - begun) | {"scheduler": scheduler}

    with console.status("compiling the inner loops (kept for later runs)"):
        compiling = compile_kernels()
    threads = os.cpu_count() or 1 if threads is None else threads
    with _progress(plan) as report:
        records = simulate(plan, threads=threads, progress=report, run=run)
    for complaint in run.complaints:
        console.print(f"warning: {complaint}; the checkpoint before it was used", markup=False)
    timing = _timing(plan, run.seconds) | {
        "threads": threads,
        "resumed_from": run.resumed_from,
        "compile_seconds": round(compiling, 3),
        # What this process needed, whatever else the machine did: over the number of cores, the time on an
        # idle one.
        "processor_seconds": round(time.process_time() - worked, 3),
    }
    console.print(
        f"{plan.lane_steps:,} lane-steps in {timing['simulation_seconds']} s: "
        f"{timing['nanoseconds_a_lane_step']} ns each on {threads} thread{'s' if threads > 1 else ''}; "
        f"compiling took {compiling:.1f} s before that"
    )
    return records, timing


def _timing(plan: Plan, seconds: float) -> Timing:
    return {
        "lane_steps": plan.lane_steps,
        "simulation_seconds": round(seconds, 3),
        "nanoseconds_a_lane_step": round(1e9 * seconds / plan.lane_steps, 3),
    }


@contextmanager
def _progress(plan: Plan) -> Iterator[Callable[[int], None]]:
    """Show a bar with steps a second and the time left, on a terminal only."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from generic_adam.cli.tables import make_console

    class Speed(ProgressColumn):
        """Steps a second, of every lane together."""

        def render(self, task: Task) -> Text:
            lanes = len(plan.methods) * len(plan.replicate_range)
            speed = f"{task.speed * lanes / 1e6:,.0f} million lane-steps/s" if task.speed else ""
            return Text(speed)

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Speed(), TimeRemainingColumn(),
    )  # fmt: skip
    console = make_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("steps", total=plan.steps)
        yield lambda done: bar.update(task, completed=done)
