"""Puts the subcommands together and turns every input error into one line.

A subcommand is a module of this package with a function ``register(app)`` that adds it to the application.
Such a module imports only typer and the standard library at its top: what is heavy is imported inside the
command, so that ``generic-adam check adam`` does not pay for torch.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from generic_adam.cli.errors import report_error

# Each subcommand and its module, in the order of `generic-adam --help`. A new one is added here.
SUBCOMMANDS: Mapping[str, str] = {
    "check": "check",
    "bound": "bound",
    "advise": "advise",
    "methods": "listings",
    "recipes": "listings",
    "theorems": "listings",
    "reproduce": "reproduce",
    "data": "data",
    "report": "report",
    "demo": "demo",
}

_PROGRAM = "generic-adam"


def _show_version(wanted: bool) -> None:
    if wanted:
        from generic_adam import __version__

        typer.echo(f"{_PROGRAM} {__version__}")
        raise typer.Exit


def build_app(modules: Iterable[str] = SUBCOMMANDS.values()) -> typer.Typer:
    """The application with the subcommands of the given modules, by default all.

    Args:
        modules: modules of this package, each with a function ``register(app)``.

    Returns:
        The application.
    """
    app = typer.Typer(
        name=_PROGRAM,
        pretty_exceptions_enable=False,
        epilog="Example:  generic-adam check adamw --steps 1e5",
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(  # pyright: ignore[reportUnusedFunction]
        context: typer.Context,
        version: Annotated[  # noqa: ARG001 - handled by its callback
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Does my Adam converge, how fast, and what is the smallest change that makes it?"""
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for name in dict.fromkeys(modules):
        import_module(f"generic_adam.cli.{name}").register(app)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: what follows the program's name.

    Returns:
        The exit code: the command's own, or that of :func:`report_error`.
    """
    try:
        # Only the subcommand that is asked for is imported; help and misspellings need them all.
        asked = [SUBCOMMANDS[name] for name in arguments[:1] if name in SUBCOMMANDS]
        app = build_app(asked or SUBCOMMANDS.values())
        # Out of "standalone mode" errors come here as exceptions instead of being printed over several lines.
        code = app(args=list(arguments), prog_name=_PROGRAM, standalone_mode=False)
        sys.stdout.flush()  # a reader that has left is noticed here, not at the interpreter's exit
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - each has its exit code
        return report_error(error)
    return code if isinstance(code, int) else 0
