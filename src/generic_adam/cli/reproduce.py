"""`generic-adam reproduce EXPERIMENT`: run an experiment of the paper; figure, records, claims, manifest."""

from importlib import import_module
from typing import Annotated

import typer

# Options that several experiments share.
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

# In the order of `generic-adam reproduce --help`. Each module has a function `register(reproduce_app)`;
# a new experiment adds its module here.
EXPERIMENTS: tuple[str, ...] = (
    "reproduce_lanes",
    "reproduce_training",
)
_EXAMPLE = "Example:  generic-adam reproduce {} --quick"


def register(app: typer.Typer) -> None:
    """Add `reproduce` and its experiments."""
    reproduce_app = typer.Typer(
        no_args_is_help=True,
        help="Run an experiment of the paper: figure, records, claims, manifest.",
        epilog=_EXAMPLE.format("counterexample"),
    )
    for name in EXPERIMENTS:
        import_module(f"generic_adam.cli.{name}").register(reproduce_app)
    for command in reproduce_app.registered_commands:
        command.epilog = _EXAMPLE.format(command.name)
    app.add_typer(reproduce_app, name="reproduce")
