"""One line on standard error for anything the user can put right; a traceback only for our own mistakes."""

import os
import sys
from collections.abc import Sequence

import typer

from generic_adam.extras import MissingExtraError, missing_extra

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, what shells expect
READER_LEFT = 1  # as typer has it when the pipe breaks in the middle of the output


def _is_ours(error: BaseException) -> bool:
    """Whether the error is a class of this package: those carry a one-line message written for the user."""
    return type(error).__module__.partition(".")[0] == "generic_adam"


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
    if isinstance(error, MissingExtraError) or _is_ours(error):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        extra = missing_extra(error.name)
        return None if extra is None else str(extra)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


def report_error(error: BaseException) -> int:
    """Print what went wrong and return the exit code.

    Args:
        error: what a subcommand raised.

    Returns:
        2 for bad input, 130 when interrupted.

    Raises:
        BaseException: the error itself, when it is none the user could have caused.
    """
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED  # the user knows
    if isinstance(error, BrokenPipeError):
        # `generic-adam methods | head`: the reader is gone, and so is any wish for a message. The interpreter
        # flushes standard output once more at exit, which would complain again, so it is pointed at nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    message = _message(error)
    if message is None:
        raise error
    print(f"generic-adam: {_one_line(message)}", file=sys.stderr)
    return BAD_INPUT
