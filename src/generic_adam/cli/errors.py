"""One line on standard error for anything the user can put right; a traceback only for our own mistakes."""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import typer

from generic_adam.errors import GenericAdamError
from generic_adam.extras import missing_extra

BAD_INPUT = 2
DEFECT = 70  # EX_SOFTWARE of sysexits.h
OUTPUT_FAILED = 74  # EX_IOERR
INTERRUPTED = 128 + 2  # SIGINT, as shells have it
READER_LEFT = 128 + 13  # SIGPIPE, likewise


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _first_lower(text: str) -> str:
    # "No such option" reads on after "generic-adam:", but "T must be ..." is a letter of the paper.
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _message(error: BaseException) -> str | None:
    """What to tell the user, or None if the error is a defect of this program."""
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


def report_error(error: BaseException) -> int:
    """Print what went wrong and return the exit code, which is never one that means an answer.

    Args:
        error: what a subcommand raised.

    Returns:
        2 for bad input, 130 when interrupted, 141 when the reader of a pipe has left, 74 when the output
        cannot be written, and 70, after a traceback, for a defect of this program.
    """
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED  # the user knows
    # typer turns a broken pipe into SystemExit(1), which would read as an answer.
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(cause, BrokenPipeError):  # `generic-adam methods | head`: nobody is left to read a message
        _point_at_nothing(sys.stdout)
        return READER_LEFT
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else BAD_INPUT
    message = _message(error)
    if message is not None:
        tell(message)
        return BAD_INPUT
    if isinstance(error, OSError):
        _point_at_nothing(sys.stdout)
        tell(f"cannot write the output: {error.strerror or error}")
        return OUTPUT_FAILED
    with suppress(OSError, ValueError):
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        tell("not enough memory")
    else:
        tell("the lines above are a defect of generic-adam, not of your input: please report them")
    return DEFECT


def tell(message: str) -> None:
    """Say one line on standard error, if anybody can hear it."""
    with suppress(OSError, ValueError):
        print(f"generic-adam: {_one_line(message)}", file=sys.stderr, flush=True)


def _point_at_nothing(stream: TextIO) -> None:
    """Let a stream that failed end in silence: the interpreter flushes it again, and would complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
