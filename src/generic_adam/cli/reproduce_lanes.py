"""What the experiments on the counterexample share on the command line: T, the run, its progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from generic_adam.experiments.counterexample import LaneRecords, Plan


class Run(NamedTuple):
    """The records of a run, and how long its parts took."""

    records: LaneRecords
    timing: dict[str, object]


def parse_steps(text: str) -> int:
    """Read a number of steps such as 10000000 or 1e7.

    Raises:
      ExperimentError: it is not a whole number of at least 1.
    """
    from decimal import Decimal, InvalidOperation

    from generic_adam.experiments.counterexample import ExperimentError

    try:
        number = Decimal(text)
        whole = int(number) if number.is_finite() and abs(number) < 10**40 else None
    except InvalidOperation:
        whole = None
    if whole is None or whole != number or whole < 1:
        raise ExperimentError(f"--steps is {text!r}, expected a whole number of at least 1, such as 1e7")
    return whole


def run_plan(plan: Plan, directory: Path, *, threads: int | None, scheduler: str | None, resume: bool) -> Run:
    """Run a plan here or on a cluster, with progress; Ctrl-C leaves a checkpoint in the directory.

    Args:
      plan: what to simulate.
      directory: where the checkpoint goes.
      threads: threads of this machine (None: all cores).
      scheduler: address of a Dask scheduler, or None.
      resume: go on from the checkpoint.
    """
    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.counterexample import (
        ExperimentError,
        InterruptedRun,
        compile_kernels,
        simulate,
    )

    console = make_console(stderr=True)
    if scheduler is not None:
        if resume:
            raise ExperimentError(
                "--resume goes on with a run of this machine, expected no --scheduler beside it"
            )
        from generic_adam.experiments.cluster import simulate_on_cluster

        begun = time.perf_counter()
        with _progress(plan) as report:
            records = simulate_on_cluster(plan, scheduler, progress=report)
        return _timed(plan, records, time.perf_counter() - begun, {"scheduler": scheduler})

    with console.status("compiling the inner loops (kept for later runs)"):
        compiling = compile_kernels()
    checkpoint = directory / "checkpoint.npz"
    threads = os.cpu_count() or 1 if threads is None else threads
    begun, worked = time.perf_counter(), time.process_time()
    try:
        with _progress(plan) as report:
            records = simulate(
                plan, threads=threads, progress=report, checkpoint_path=checkpoint, resume=resume
            )
    except InterruptedRun as stop:
        console.print(f"stopped before t = {stop.next_t:,}; --resume goes on from {checkpoint}")
        raise
    run = _timed(plan, records, time.perf_counter() - begun, {"threads": threads, "resumed": resume})
    run.timing["compile_seconds"] = round(compiling, 3)
    # What the run needed, whatever else the machine did: over the number of cores, the time on an idle one.
    run.timing["processor_seconds"] = round(time.process_time() - worked, 3)
    seconds = run.timing["simulation_seconds"]
    console.print(
        f"{plan.lane_steps:,} lane-steps in {seconds} s: {run.timing['nanoseconds_a_lane_step']} ns each "
        f"on {threads} thread{'s' if threads > 1 else ''}; compiling took {compiling:.1f} s before that"
    )
    return run


def _timed(plan: Plan, records: LaneRecords, seconds: float, more: dict[str, object]) -> Run:
    timing: dict[str, object] = {
        "lane_steps": plan.lane_steps,
        "simulation_seconds": round(seconds, 3),
        "nanoseconds_a_lane_step": round(1e9 * seconds / plan.lane_steps, 3),
    }
    return Run(records, timing | more)


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
