"""``generic-adam data``, ``report`` and ``demo``: what comes before an experiment, after it, and instead."""

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from generic_adam.answers.terminal import answer, make_progress, print_table, say
from generic_adam.cli.app import tell
from generic_adam.cli.check import print_answer
from generic_adam.cli.listings import with_facts

STEPS = 8_000
"""Steps of the demo's trainings."""
_FETCH = "Example:  generic-adam data fetch mnist --data ~/data"
_SETS = ["mnist", "cifar100"]
_NEXT = (
    "check --lr 3e-4 --betas 0.9,0.95 --warmup 2000 --decay cosine --steps 600000",
    "advise nanogpt",
    "reproduce haywire",
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
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="What an experiment wrote.")],
    out: Annotated[Path | None, typer.Option(help="The page (report.html in the directory).")] = None,
) -> None:
    """Turn an output directory into one self-contained HTML page.

    Exit code 1 if a file is not the one the run wrote: its SHA-256 is not the manifest's.
    """
    from generic_adam_laboratory.report import write_report

    path, changed = write_report(directory, out)
    typer.echo(f"wrote {path}")
    for name in changed:
        tell(f"{name}: missing, or its SHA-256 is not the manifest's: changed after the run")
    if changed:
        raise typer.Exit(1)


def demo(out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("runs/demo")) -> None:
    """Show Adam leave a minimum that it had reached, what prevents it, and read a recipe that everybody knows."""
    from rich.progress import BarColumn, TimeRemainingColumn

    from generic_adam.files import ensure_output_directory
    from generic_adam.methods.recipes import recipe
    from generic_adam_laboratory.runs.run import Stages, carry_out
    from generic_adam_laboratory.studies import haywire

    folder = ensure_output_directory(out)
    changes = (haywire.ADAM, haywire.FALLS, haywire.RISES, haywire.REPAIRED)
    trainings = [haywire.Training(change, seed=0, steps=STEPS) for change in changes]
    with make_progress("training", BarColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("training")
        carry_out(Stages(*trainings), progress=lambda done, total: bar.update(task, completed=done, total=total))
    words = {"certified": "guaranteed", "not certified": "no guarantee"}
    rows = [[*row[:-1], answer(words.get(row[-1], row[-1]))] for row in haywire.outcomes(trainings)]
    left = f"loss leaves {haywire.ARRIVED:g} at step"
    heads = ("change", left, "worst loss after", "lr x curvature", "long run")
    title = f"Adam on a problem it can solve: lr 1e-3, betas 0.9 and 0.999, {STEPS:,} steps"
    print_table(heads, rows, title=title, right=heads[1:4])
    say(
        "Adam reaches the minimum and leaves it again: its steps grow while the gradients vanish, until lr x "
        f"curvature passes {haywire.EDGE:.0f}. Each half of the condition delays that; both together prevent it. "
        '"No guarantee" does not mean that a run fails.'
    )
    for path in haywire.draw_haywire(trainings, folder / "haywire"):
        typer.echo(f"wrote {path}")
    say("", "The same question for settings that many people use, nanoGPT's:")
    print_answer(with_facts(recipe("nanogpt").algorithm))
    # `make demo` leaves PATH alone, and `python -m` has no script.
    script = "generic-adam" if shutil.which("generic-adam") else sys.argv[0]
    program = script if Path(script).stem == "generic-adam" else "python -m generic_adam.cli"
    typer.echo("\n  ".join(("\nNext:", *(f"{program} {words}" for words in _NEXT))))
