"""``generic-adam report``: one page to read, print or send from what a run left behind."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add ``report``."""
    app.command("report", epilog="Example:  generic-adam report runs/counterexample --out page.html")(report)


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="What an experiment, a check or a watched run wrote.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The page's file; report.html in the directory by default."),
    ] = None,
) -> None:
    """Turn an output directory into one self-contained HTML page.

    Exit code 1 if a file is not the one the run wrote: its SHA-256 is not the manifest's.
    """
    from generic_adam.report.page import write_report

    path, contents = write_report(directory, out)
    typer.echo(f"wrote {path}")
    for name, reason in contents.changed.items():
        typer.echo(f"generic-adam: {name}: {reason}", err=True)
    if contents.changed:
        raise typer.Exit(1)
