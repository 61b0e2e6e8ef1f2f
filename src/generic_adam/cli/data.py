"""``generic-adam data``: the data sets of the experiments."""

from pathlib import Path
from typing import Annotated

import typer

_EXAMPLE = "Example:  generic-adam data fetch mnist --data ~/data"


def register(app: typer.Typer) -> None:
    """Add ``data`` with its subcommand ``fetch``."""
    data = typer.Typer(help="Get the data sets of the experiments.", no_args_is_help=True, epilog=_EXAMPLE)
    data.command("fetch", epilog=_EXAMPLE)(fetch)
    app.add_typer(data, name="data")


def fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="mnist or cifar100.", autocompletion=lambda: ["mnist", "cifar100"]
        ),
    ],
    directory: Annotated[
        Path | None,
        typer.Option("--data", help="Put it there instead of in the cache."),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(help="URL of another directory that holds the same files."),
    ] = None,
) -> None:
    """Download a data set, check its SHA-256 and unpack it; a broken download goes on where it broke."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from generic_adam.cli.tables import make_console
    from generic_adam.experiments.downloads import fetch as fetch_data

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    console = make_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks: dict[str, int] = {}

        def report(file: str, have: int, size: int) -> None:
            task = tasks.setdefault(file, -1)
            if task == -1:
                task = tasks[file] = progress.add_task(file, total=size)
            progress.update(task, completed=have)  # type: ignore[arg-type]

        folder = fetch_data(name, directory, mirror=mirror, report=report)
    typer.echo(f"{name} is in {folder}")
