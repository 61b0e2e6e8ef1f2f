"""Puts the subcommands together and turns whatever ends them into one line and an exit code.

A subcommand is a function, or a group of them, of its own name in a module of this package, which imports only
typer, rich and the standard library at its top: what is heavy is imported inside the command, so that
``generic-adam check adam`` does not pay for torch. Another distribution brings subcommands as entry points of the
group ``generic_adam.commands``. Looking for them takes longer than a short answer, so it is done only for a first
word that is none of ours, for help and for completion.
"""

import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from generic_adam import __version__, cli
from generic_adam.errors import ExtraError, GenericAdamError, StoppedError
from generic_adam.extras import LABORATORY, missing_extra

# Each subcommand with its module and an example, in the order of `generic-adam --help`; a group has its own examples.
SUBCOMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("check", "--lr 3e-4 --betas 0.9,0.95 --warmup 2000 --decay cosine --steps 600000"),
    "advise": ("advise", "nanogpt --keep 500000"),
    "compare": ("check", "nanogpt llama"),
    "bound": ("bound", "adamw --weight-decay 0 --steps 1e5 --dimension 10"),
    "diagnose": ("diagnose", "runs/mine"),
    "verify": ("verify", "--from train:configure --as adamw --lr 3e-4 --betas 0.9,0.95"),
    "recipes": ("listings", "nanogpt"),
    "methods": ("listings", "--json"),
    "theorems": ("listings", "W"),
}
# The laboratory's, with their examples: a command of another distribution has none here.
OF_LABORATORY: Mapping[str, str] = {
    "demo": "--out runs/first",
    "reproduce": "",
    "data": "",
    "report": "runs/counterexample --out page.html",
}
COMMANDS = "generic_adam.commands"
"""The group of entry points by which other distributions bring subcommands."""

_PROGRAM = "generic-adam"
_CODES = "Exit codes:  0 fine, 1 not (a difference, a finding, --fail-on), 2 bad input, 3 unknown, 4 search incomplete"
_NUMBER = re.compile(r"[0-9.]+")


class _InOrder(TyperGroup):
    """Lists groups and commands together, ours first: typer puts all groups last."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        ours = (*SUBCOMMANDS, *OF_LABORATORY)
        return sorted(self.commands, key=lambda name: ours.index(name) if name in ours else len(ours))


def build_app(only: str | None = None) -> typer.Typer:
    """Return the application with one subcommand, or with all that are installed."""
    app = typer.Typer(
        name=_PROGRAM,
        cls=_InOrder,
        pretty_exceptions_enable=False,
        epilog=_example("check adamw --steps 1e5"),
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(  # pyright: ignore[reportUnusedFunction]
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        """Check the optimizer you train with: does it converge, what is it doing, is it what you think?"""
        if version:
            typer.echo(f"{_PROGRAM} {__version__}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for name, (command, example) in _commands(only).items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, epilog=example and _example(f"{name} {example}"))(command)
    return app


def _commands(only: str | None) -> dict[str, tuple[Any, str | None]]:
    """Return all subcommands, or the one of a name, each with its example."""
    found: dict[str, tuple[Any, str | None]] = {}
    for name in SUBCOMMANDS if only is None else SUBCOMMANDS.keys() & {only}:
        module, example = SUBCOMMANDS[name]
        found[name] = getattr(import_module(f"generic_adam.cli.{module}"), name), example
    if only not in found:
        from importlib.metadata import entry_points

        for entry in entry_points(group=COMMANDS):
            if entry.name not in SUBCOMMANDS and only in {None, entry.name}:
                found[entry.name] = entry.load(), OF_LABORATORY.get(entry.name)
    if not found:
        raise ExtraError(f"{only!r} comes with the laboratory, which is not installed: pip install {LABORATORY}")
    return found


def _example(words: str) -> str:
    return f"Example:  {_PROGRAM} {words}\n\n{_CODES}"


def run(arguments: Sequence[str]) -> int:
    """Run one command line, what follows the program's name; return its exit code."""
    try:
        # Only the subcommand that is asked for is imported; help and misspellings need them all.
        known = {*SUBCOMMANDS, *OF_LABORATORY} & {*arguments[:1]}
        app = build_app(arguments[0] if known else None)
        arguments = joined(arguments)
        # Out of "standalone mode" errors come here as exceptions instead of being printed over several lines.
        code = app(args=list(arguments), prog_name=_PROGRAM, standalone_mode=False)
        sys.stdout.flush()  # a reader that has left is noticed here, not at the interpreter's exit
        if code == cli.Exit.INTERRUPTED:  # what typer makes of a KeyboardInterrupt
            tell(cli.last_word)
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - each has its exit code
        return report_error(error)
    return code if isinstance(code, int) else 0


def joined(arguments: Sequence[str]) -> list[str]:
    """Write the two numbers of `--betas 0.9 0.95` as one value, and `compare`'s quoted options as a value."""
    words: list[str] = []
    for word in arguments:
        if arguments[0] == "compare" and word.startswith("--") and " " in word:
            word = f" {word}"  # a quoted side of it, not an option  # noqa: PLW2901
        if words[-2:-1] == ["--betas"] and "," not in words[-1] and _NUMBER.fullmatch(word):
            words[-1] += f",{word}"
        else:
            words.append(word)
    return words


def report_error(error: BaseException) -> int:
    """Print what went wrong and return the exit code (see `main`), which is never one that means an answer."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        tell(cli.last_word)
        return cli.Exit.INTERRUPTED
    # typer turns a broken pipe into SystemExit(1), which would read as an answer.
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):  # `generic-adam methods | head`: nobody is left to read a message
        _point_at_nothing(sys.stdout)
        return cli.Exit.READER_LEFT
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else cli.Exit.BAD_INPUT
    message = _message(error)
    if message is not None:
        tell(message)
        return cli.Exit.INCOMPLETE if isinstance(error, StoppedError) else cli.Exit.BAD_INPUT
    if isinstance(error, OSError):
        _point_at_nothing(sys.stdout)
        tell(f"cannot write the output: {error.strerror or error}")
        return cli.Exit.OUTPUT_FAILED
    with suppress(OSError, ValueError):  # what could not be written is met again by the next line
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        tell("not enough memory")
    else:
        tell("the lines above are a defect of generic-adam, not of your input: please report them")
    return cli.Exit.DEFECT


def _message(error: BaseException) -> str | None:
    """Return the line for the user, or None if the error is a defect of this program."""
    if isinstance(error, typer.TyperException):
        close: Sequence[str] = getattr(error, "possibilities", None) or ()
        if close:  # typer lists close options in its own words; commands already read like this
            return f"{_first_lower(error.message)}. Did you mean {', '.join(map(repr, close))}?"
        # The message is empty where a group was called alone: its help has been printed then.
        return _first_lower(error.format_message().rstrip(".")) or "expected a command"
    if isinstance(error, GenericAdamError):  # its message is one line, written for the user
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        extra = missing_extra(error.name)
        return None if extra is None else str(extra)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


def _first_lower(text: str) -> str:
    # "No such option" reads on after "generic-adam:", but "T must be ..." is a letter of the paper.
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def tell(message: str) -> None:
    """Say one line on standard error, if anybody can hear it."""
    try:
        print(f"{_PROGRAM}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _point_at_nothing(sys.stderr)


def _point_at_nothing(stream: TextIO) -> None:
    """Let a stream that failed end in silence: the interpreter flushes it again, and would complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
