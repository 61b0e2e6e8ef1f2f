"""`generic-adam reproduce EXPERIMENT`: run an experiment of the paper; figure, records, claims, manifest."""

from importlib import import_module

import typer

# In the order of `generic-adam reproduce --help`. Each module has a function `register(reproduce_app)`;
# a new experiment adds its module here.
EXPERIMENTS: tuple[str, ...] = (
    "reproduce_lanes",
    "reproduce_training",
)


def register(app: typer.Typer) -> None:
    """Add `reproduce` and its experiments."""
    reproduce_app = typer.Typer(
        no_args_is_help=True, help="Run an experiment of the paper: figure, records, claims, manifest."
    )
    for name in EXPERIMENTS:
        import_module(f"generic_adam.cli.{name}").register(reproduce_app)
    app.add_typer(reproduce_app, name="reproduce")
