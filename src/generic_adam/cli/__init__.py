"""The command ``generic-adam``: thin wrappers, one file a subcommand."""

import io
import os
import shlex
import sys
from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command; docs/reading-the-output.md tells them to users.

    0, 1 and 3 are answers, and 4 is one that is not whole. None of the others is an answer.
    """

    FINE = 0
    NOT = 1
    """A difference, a finding, no bound, or what `check --fail-on` names."""
    BAD_INPUT = 2
    UNKNOWN = 3
    """No answer is known, or the theory does not apply."""
    INCOMPLETE = 4
    """The work limit ended a search; --budget 20 allows more."""
    DEFECT = 70
    """A defect of this program (EX_SOFTWARE of sysexits.h)."""
    OUTPUT_FAILED = 74
    """The output cannot be written (EX_IOERR)."""
    INTERRUPTED = 128 + 2
    """SIGINT, as shells have it."""
    READER_LEFT = 128 + 13
    """SIGPIPE, likewise."""


last_word = "interrupted"
"""The word that an interruption prints."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows ``generic-adam``; None takes them from the process.

    Returns:
        One of `Exit`, or 128 + n after the signal n.
    """
    if arguments is None:
        import generic_adam_command  # noqa: F401 - Ctrl-C ends the process in one line
    say_if_interrupted("interrupted")
    if sys.stderr is None:  # closed (2>&-): print would fall back on standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["reproduce"]:
        again = shlex.join(("generic-adam", *words))
        say_if_interrupted(f"interrupted before the run was open: nothing was begun or changed; start it with: {again}")
    from generic_adam.cli.app import run, tell

    if sys.stdout is None:  # closed (>&-)
        tell("cannot write the output: standard output is closed")
        return Exit.OUTPUT_FAILED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Greek letters, or a name that is no UTF-8, shows "?", not a traceback.
            stream.reconfigure(errors="replace")
    return run(words)


def say_if_interrupted(message: str) -> None:
    """Set what an interruption says from now on."""
    global last_word  # noqa: PLW0603 - a signal's handler is one for the process
    last_word = message
