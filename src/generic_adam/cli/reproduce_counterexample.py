"""`generic-adam reproduce counterexample`: Figure 1 of the paper, with bands, peers, records and claims."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.run_options import Quick, Resume, Scheduler, Threads

if TYPE_CHECKING:
    from generic_adam.cli.reproduce_lanes import Run
    from generic_adam.experiments.counterexample import Plan

_STEPS, _SEEDS = "1e7", 100
_QUICK_STEPS, _QUICK_SEEDS = "5e5", 20


def register(app: typer.Typer) -> None:
    """Add the experiment to `reproduce`."""
    app.command("counterexample")(counterexample)


def counterexample(
    seeds: Annotated[
        int | None,
        typer.Option(
            help=f"How many independent streams of gradients: {_SEEDS}, or {_QUICK_SEEDS} with --quick."
        ),
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help=f"T: {_STEPS} as in the paper, or {_QUICK_STEPS} with --quick.")
    ] = None,
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
    seed: Annotated[
        int, typer.Option(help="The run's seed; with a replicate's number it fixes all bits.")
    ] = 0,
    threads: Threads = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
) -> None:
    """Reproduce Figure 1: Generic Adam on the counterexample of Reddi, Kale and Kumar."""
    from generic_adam.cli.reproduce_lanes import parse_steps, run_plan
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.experiments.counterexample import Counterexample, Plan
    from generic_adam.experiments.counterexample.figure import figure_methods, peer_methods
    from generic_adam.experiments.records import ensure_output_directory
    from generic_adam.report.counterexample import OUTCOME_HEADINGS, outcome_rows

    begun = time.perf_counter()
    steps = steps or (_QUICK_STEPS if quick else _STEPS)
    seeds = seeds if seeds is not None else (_QUICK_SEEDS if quick else _SEEDS)
    plan = Plan(
        figure_methods() | (peer_methods() if peers else {}),
        steps=parse_steps(steps),
        replicates=seeds,
        problem=Counterexample(form=form, as_printed=as_printed),
        seed=seed,
    )
    directory = ensure_output_directory(out)
    run = run_plan(plan, directory, threads=threads, scheduler=scheduler, resume=resume)
    rows = outcome_rows(plan.methods, run.records)
    files = _write(directory, plan, run, rows, begun)
    print_table(
        OUTCOME_HEADINGS,
        [(*row[:-1], answer(row[-1])) for row in rows],
        title=f"Who converges here: T = {plan.steps:,}, {seeds} seeds",
        right=OUTCOME_HEADINGS[1:-1],
    )
    typer.echo("\n".join(f"wrote {path}" for path in files))


def _write(directory: Path, plan: Plan, run: Run, rows: list[tuple[str, ...]], begun: float) -> list[Path]:
    """Write everything a reader needs, each file whole."""
    from dataclasses import replace

    from generic_adam.experiments.counterexample import simulate
    from generic_adam.experiments.counterexample.claims import claims, claims_as_printed
    from generic_adam.experiments.counterexample.figure import figure_methods
    from generic_adam.experiments.counterexample.lane_records import write_outcomes, write_quantiles
    from generic_adam.experiments.records import write_claims, write_manifest
    from generic_adam.report.counterexample import plot_counterexample, write_outcome_table

    figure = plot_counterexample(run.records, directory / "counterexample")
    write_quantiles(directory / "records.csv", run.records)
    write_outcomes(directory / "outcomes.csv", run.records)
    printed = replace(
        plan,
        methods=figure_methods(),
        steps=min(plan.steps, 10**4),
        problem=replace(plan.problem, as_printed=True),
    )
    beside = simulate(printed)
    judged = claims_as_printed(beside) if plan.problem.as_printed else claims(run.records, beside)
    written = write_claims(directory, judged)
    manifest = write_manifest(
        directory / "manifest.json",
        command=_command(plan),
        settings=plan.settings() | run.timing,
        seconds=time.perf_counter() - begun,
    )
    table = write_outcome_table(directory / "outcomes.md", rows)
    return [*figure, table, directory / "records.csv", directory / "outcomes.csv", *written, manifest]


def _command(plan: Plan) -> str:
    """Return what repeats the run, defaults spelled out."""
    from generic_adam.experiments.counterexample.figure import figure_methods

    parts = [
        "generic-adam reproduce counterexample",
        f"--seeds {len(plan.replicate_range)} --steps {plan.steps} --seed {plan.seed}",
        f"--form {plan.problem.form}",
    ]
    parts += ["--as-printed"] if plan.problem.as_printed else []
    parts += ["--no-peers"] if len(plan.methods) == len(figure_methods()) else []
    return " ".join(parts)
