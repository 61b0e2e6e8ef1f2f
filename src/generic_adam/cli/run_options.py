"""Options that several experiments share, each written once."""

from typing import Annotated

import typer

Quick = Annotated[bool, typer.Option("--quick", help="A small run of a few seconds.")]
Seed = Annotated[int, typer.Option(help="The run's seed: it fixes every random number.")]
Threads = Annotated[
    int | None, typer.Option(help="Threads of this machine; by default all cores.", show_default=False)
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Run on a Dask cluster: tcp://HOST:PORT of its scheduler.", show_default=False),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Replace the run that --out holds, paused or finished.")
]
