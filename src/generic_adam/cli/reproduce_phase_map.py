"""`generic-adam reproduce phase-map`: the (r, s) plane, measured against certified."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from generic_adam.cli.run_options import Quick, Resume, Scheduler, Threads

_STEPS, _COLUMNS, _ROWS = "1e7", 41, 25
_QUICK_STEPS, _QUICK_COLUMNS, _QUICK_ROWS = "1e5", 11, 13


def register(app: typer.Typer) -> None:
    """Add the experiment to `reproduce`."""
    app.command("phase-map")(phase_map)


def phase_map(
    seeds: Annotated[int, typer.Option(help="How many independent streams of gradients a point.")] = 8,
    steps: Annotated[str | None, typer.Option(help=f"T: {_STEPS}, or {_QUICK_STEPS} with --quick.")] = None,
    columns: Annotated[
        int | None,
        typer.Option(help=f"Values of r from 0 to 2: {_COLUMNS}, or {_QUICK_COLUMNS} with --quick."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help=f"Values of s from 0 to 1.2: {_ROWS}, or {_QUICK_ROWS} with --quick.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records and manifest.")] = Path(
        "runs/phase-map"
    ),
    quick: Quick = False,
    seed: Annotated[int, typer.Option(help="The run's seed.")] = 0,
    threads: Threads = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
) -> None:
    """Map where Generic Adam converges on the counterexample, against where the theory says so."""
    from generic_adam.cli.reproduce_lanes import parse_steps, run_plan
    from generic_adam.cli.tables import answer, print_table
    from generic_adam.experiments.phase_map import Grid, PhaseMap, write_phase_map
    from generic_adam.experiments.records import ensure_output_directory, write_claims, write_manifest
    from generic_adam.report.phase_map import phase_map_claims, plot_phase_map, verdicts

    begun = time.perf_counter()
    steps = steps or (_QUICK_STEPS if quick else _STEPS)
    columns = columns if columns is not None else (_QUICK_COLUMNS if quick else _COLUMNS)
    rows = rows if rows is not None else (_QUICK_ROWS if quick else _ROWS)
    grid = Grid.regular(columns, rows)
    plan = grid.plan(parse_steps(steps), seeds, seed)
    directory = ensure_output_directory(out)
    run = run_plan(plan, directory, threads=threads, scheduler=scheduler, resume=resume)
    measured, theory = PhaseMap.from_records(grid, run.records), verdicts(grid)
    figure = plot_phase_map(measured, directory / "phase-map")
    write_phase_map(directory / "phase-map.csv", measured, theory)
    claims = phase_map_claims(measured, theory)
    written = write_claims(directory, claims)
    command = f"generic-adam reproduce phase-map --seeds {seeds} --steps {plan.steps} --seed {seed}"
    command += f" --columns {columns} --rows {rows}"
    settings = {key: value for key, value in plan.settings().items() if key != "methods"}
    settings |= {"r": list(grid.r), "s": list(grid.s)} | run.timing
    manifest = write_manifest(directory / "manifest.json", command, settings, time.perf_counter() - begun)
    print_table(
        ("claim", "verdict", "evidence"),
        [(claim.sentence, answer(claim.verdict), claim.evidence) for claim in claims],
    )
    files = [*figure, directory / "phase-map.csv", *written, manifest]
    typer.echo("\n".join(f"wrote {path}" for path in files))
