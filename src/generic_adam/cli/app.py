"""Puts the subcommands together and turns every input error into one line.

A subcommand is a module of this package with a function ``register(app)`` that adds it to the application.
Such a module imports only typer and the standard library at its top: what is heavy is imported inside the
command, so that ``generic-adam check adam`` does not pay for torch.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from generic_adam.cli.errors import report_error

# In the order of `generic-adam --help`. A new subcommand adds its module here.
SUBCOMMANDS: tuple[str, ...] = (
    "check",
    "bound",
    "advise",
    "methods",
    "recipes",
    "theorems",
    "reproduce",
    "data",
    "report",
    "demo",
)

_PROGRAM = "generic-adam"


def _show_version(wanted: bool) -> None:
    if wanted:
        from generic_adam import __version__

        typer.echo(f"{_PROGRAM} {__version__}")
        raise typer.Exit


def build_app(subcommands: Sequence[str] = SUBCOMMANDS) -> typer.Typer:
    """The application with the given subcommands registered, by default all.

    Args:
        subcommands: modules of this package; each is called like the command it registers.

    Returns:
        The application.
    """
    app = typer.Typer(
        name=_PROGRAM,
        add_completion=False,
        pretty_exceptions_enable=False,
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

    for name in subcommands:
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
        asked = [name for name in arguments[:1] if name in SUBCOMMANDS]
        app = build_app(asked or SUBCOMMANDS)
        # Out of "standalone mode" errors come here as exceptions instead of being printed over several lines.
        code = app(args=list(arguments), prog_name=_PROGRAM, standalone_mode=False)
        sys.stdout.flush()  # a reader that has left is noticed here, not at the interpreter's exit
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - each has its exit code
        return report_error(error)
    return code if isinstance(code, int) else 0
