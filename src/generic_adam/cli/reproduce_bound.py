"""`generic-adam reproduce bound`: Theorem 1's two sides on a problem with known constants."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generic_adam.cli.run_options import Quick

if TYPE_CHECKING:
    from generic_adam.methods import Method

_STEPS, _SEEDS = "1e5", 128
_QUICK_STEPS, _QUICK_SEEDS = "2e3", 16
_MOMENTA = (0.0, 0.9)


def register(app: typer.Typer) -> None:
    """Add the experiment to `reproduce`."""
    app.command("bound")(bound)


def bound(
    seeds: Annotated[
        int | None,
        typer.Option(help=f"How many independent runs: {_SEEDS}, or {_QUICK_SEEDS} with --quick."),
    ] = None,
    steps: Annotated[str | None, typer.Option(help=f"T: {_STEPS}, or {_QUICK_STEPS} with --quick.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for figure, records, claims and manifest.")] = Path(
        "runs/bound"
    ),
    quick: Quick = False,
    seed: Annotated[int, typer.Option(help="Fixes the noise of all runs.")] = 0,
) -> None:
    """Measure Theorem 1's left side on the sum of x^2/(1+x^2) with bounded noise, beside its bound."""
    from rich.progress import Progress

    from generic_adam.cli.reproduce_lanes import parse_steps
    from generic_adam.cli.tables import make_console, print_table
    from generic_adam.experiments.measured import BoundedWell, measure
    from generic_adam.experiments.records import ensure_output_directory
    from generic_adam.report.bound import HEADINGS, compare

    begun = time.perf_counter()
    steps = steps or (_QUICK_STEPS if quick else _STEPS)
    seeds = seeds if seeds is not None else (_QUICK_SEEDS if quick else _SEEDS)
    total, well = parse_steps(steps), BoundedWell()
    directory = ensure_output_directory(out)
    panels = {}
    console = make_console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        methods = {f"β = {beta:g}": family(beta) for beta in _MOMENTA}
        task = progress.add_task("measuring", total=total * sum(map(len, methods.values())))
        for title, members in methods.items():
            runs = measure(members, well, total, seeds, seed, lambda done: progress.advance(task, done))
            panels[title] = compare(members, well, runs)
    rows = [(title, *one.row) for title, comparisons in panels.items() for one in comparisons]
    files = _write(directory, panels, total, seeds, seed, time.perf_counter() - begun)
    print_table(("panel", *HEADINGS), rows, right=HEADINGS[1:8], title=f"Theorem 1, {seeds} seeds")
    typer.echo("\n".join(f"wrote {path}" for path in files))


def family(beta: float) -> dict[str, Method]:
    """The path from constant theta (r = 0) to AdaEMA (r = 1), with alpha_t = 0.1/sqrt(t)."""
    from generic_adam.methods import power_family

    return {
        f"r = {r:g}": power_family(lr=0.1, beta=beta, s=0.5, r=r, c=round(0.01 + 0.99 * r, 6), K=2)
        for r in (0, 0.5, 1)
    }


def _write(directory: Path, panels: dict, steps: int, seeds: int, seed: int, seconds: float) -> list[Path]:
    from dataclasses import asdict

    from generic_adam.experiments.measured import BoundedWell
    from generic_adam.experiments.records import write_claims, write_manifest
    from generic_adam.report.bound import claims, plot_bound, write_records

    figure = plot_bound(panels, directory / "bound")
    records = write_records(directory / "records.csv", panels)
    written = write_claims(directory, claims(panels))
    manifest = write_manifest(
        directory / "manifest.json",
        command=f"generic-adam reproduce bound --seeds {seeds} --steps {steps} --seed {seed}",
        settings={"steps": steps, "seeds": seeds, "seed": seed, "problem": asdict(BoundedWell())},
        seconds=seconds,
    )
    return [*figure, records, *written, manifest]
