"""``generic-adam data``, ``report`` and ``demo``: what comes before an experiment, after it, and instead."""

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from generic_adam.answers.terminal import answer, make_console, make_progress, print_table, say
from generic_adam.cli.app import tell
from generic_adam.cli.check import print_answer

STEPS, SEEDS = 2_000_000, 20
_FETCH = "Example:  generic-adam data fetch mnist --data ~/data"
_SETS = ["mnist", "cifar100"]
_NEXT = (
    "check --lr 3e-4 --betas 0.9,0.95 --warmup 2000 --decay cosine --steps 600000",
    "advise nanogpt",
    "reproduce counterexample",
)


data = typer.Typer(help="Get the data sets of the experiments.", no_args_is_help=True, epilog=_FETCH)


@data.command(epilog=_FETCH)
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="mnist or cifar100.", autocompletion=lambda: _SETS)],
    directory: Annotated[Path | None, typer.Option("--data", help="Put it there, not in the cache.")] = None,
    mirror: Annotated[str | None, typer.Option(help="URL of a directory that holds the same files.")] = None,
) -> None:
    """Download a data set, check its SHA-256 and unpack it; a broken download goes on where it broke."""
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

    from generic_adam_laboratory.data import downloads

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with make_progress(*columns) as progress:
        tasks: dict[str, Any] = {}

        def report(file: str, have: int, size: int) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=size)
            progress.update(tasks[file], completed=have)

        folder = downloads.fetch(name, directory, mirror=mirror, report=report)
    typer.echo(f"{name} is in {folder}")


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="What an experiment, a check or a watched run wrote.")
    ],
    out: Annotated[Path | None, typer.Option(help="The page (report.html in the directory).")] = None,
) -> None:
    """Turn an output directory into one self-contained HTML page.

    Exit code 1 if a file is not the one the run wrote: its SHA-256 is not the manifest's.
    """
    from generic_adam_laboratory.report.page import write_report

    path, contents = write_report(directory, out)
    typer.echo(f"wrote {path}")
    for name, reason in contents.changed.items():
        tell(f"{name}: {reason}")
    if contents.changed:
        raise typer.Exit(1)


def demo(out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("runs/demo")) -> None:
    """Show Adam failing where a certified method arrives, and read a recipe that everybody knows."""
    from dataclasses import replace

    import numpy as np

    from generic_adam.answers.figures import save_figure
    from generic_adam.files import ensure_output_directory
    from generic_adam.methods import as_algorithm
    from generic_adam.methods.recipes import recipe
    from generic_adam.theorems.certificate import certify_algorithm
    from generic_adam_laboratory.counterexample import Plan, simulate
    from generic_adam_laboratory.counterexample.figures import draw_two_curves
    from generic_adam_laboratory.counterexample.study import TWO_CURVES

    folder = ensure_output_directory(out)
    adam, certified = TWO_CURVES.items()  # the same step size and momentum; what differs is the second moment
    amsgrad = replace(as_algorithm(adam[1]), running_maximum=True)
    subjects = dict([adam, ("AMSGrad", amsgrad), certified])
    with make_console(stderr=True).status("compiling the inner loops (kept for later runs), then simulating"):
        records = simulate(Plan(subjects, steps=STEPS, replicates=SEEDS), threads=2)
    rows = []
    for label, subject in subjects.items():
        one, end = certify_algorithm(subject), np.median(records.final_x(label))
        rows.append((label, answer(one.verdict), one.theorem or "", one.rate or "", f"{end:+.3f}"))
    title = f"The counterexample of Reddi, Kale and Kumar, {STEPS:,} steps, {SEEDS} seeds: -1 is best, +1 is worst"
    print_table(("method", "for ever", "theorem", "rate", "ends at"), rows, title=title, right=("ends at",))
    say("Not certified means that no theorem guarantees it. Here Adam does fail; on your problem it may not.")
    for path in save_figure(draw_two_curves(records), folder / "counterexample"):
        typer.echo(f"wrote {path}")
    say("")
    print_answer(certify_algorithm(recipe("nanogpt").algorithm), explain=False)
    # `make demo` leaves PATH alone, and `python -m` has no script.
    script = "generic-adam" if shutil.which("generic-adam") else sys.argv[0]
    program = script if Path(script).stem == "generic-adam" else "python -m generic_adam.cli"
    typer.echo("\n  ".join(("\nNext:", *(f"{program} {words}" for words in _NEXT))))
