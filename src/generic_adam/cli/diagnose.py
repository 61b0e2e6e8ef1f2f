"""``generic-adam diagnose``: what a watched run suffers from, since when, and what to change."""

from pathlib import Path
from typing import Annotated

import typer

from generic_adam.cli import Exit
from generic_adam.cli.subject import AsJson

_ENOUGH = 50
Page = Annotated[Path | None, typer.Option("--html", metavar="PAGE", help="Write a page with pictures too.")]


def diagnose(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `Watch(optimizer, out=DIR)` wrote.")],
    as_json: AsJson = False,
    html: Page = None,
) -> None:
    """Name the cause of a run's trouble, since when, and what to change."""
    from generic_adam.answers.terminal import print_json, say
    from generic_adam.watch import diagnose as diagnose_records
    from generic_adam.watch.records import read_facts, read_records

    records, facts = read_records(directory / "watch.csv"), read_facts(directory / "watch.json")
    found = diagnose_records(records, facts.get("options"))
    budget = facts.get("budget") or {}
    if html is not None and records:
        from generic_adam.answers.run_page import write_page

        write_page(html, directory.resolve().name, records, found, budget)
    if as_json:
        print_json(found.to_dict() | {"budget": budget or None})
    else:
        say("\n".join([str(found), *([budget["text"]] if "text" in budget else [])]))
        if html is not None and records:
            say(f"wrote {html}")
    if not found.healthy:
        raise typer.Exit(Exit.NOT)
    if found.steps[1] - found.steps[0] < _ENOUGH:
        raise typer.Exit(Exit.UNKNOWN)
