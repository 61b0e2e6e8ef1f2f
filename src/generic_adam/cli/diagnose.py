"""``generic-adam diagnose``: what a watched run suffers from, since when, and what to change."""

from pathlib import Path
from typing import Annotated

import typer

from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson

_ENOUGH = 50


def diagnose(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `Watch(optimizer, out=DIR)` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Name the cause of a run's trouble: exit code 0 healthy, 1 a finding, 3 too few steps to tell."""
    from generic_adam.answers.terminal import print_json, say
    from generic_adam.watch import diagnose as diagnose_records
    from generic_adam.watch.records import read_records

    found = diagnose_records(read_records(directory / "watch.csv"))
    if as_json:
        print_json(found.to_dict())
    else:
        say(str(found))
    if not found.healthy:
        raise typer.Exit(Exit.NOT)
    if found.steps[1] - found.steps[0] < _ENOUGH:
        raise typer.Exit(Exit.UNKNOWN)
