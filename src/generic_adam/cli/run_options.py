"""Options that several experiments share, each written once."""

from typing import Annotated

import typer

Quick = Annotated[bool, typer.Option("--quick", help="A small run of a few seconds.")]
Threads = Annotated[
    int | None, typer.Option(help="Threads of this machine; by default all cores.", show_default=False)
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Run on a Dask cluster: tcp://HOST:PORT of its scheduler.", show_default=False),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out.")]
