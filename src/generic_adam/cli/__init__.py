"""The command ``generic-adam``: thin wrappers, one file a subcommand."""

import io
import os
import shlex
import sys
from collections.abc import Sequence

last_word = "interrupted"
"""What an interruption says."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows ``generic-adam``; None takes them from the process.

    Returns:
        0 when the answer is yes or the job is done, 1 when it is no, 3 when undecided, 4 when a search did not come
        to its end, 2 on bad input. None of the others is an answer: 70 is a defect of this program, 74 an output that
        cannot be written, 128 + n the signal n (130 interrupted, 141 the reader of a pipe left).
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
    from generic_adam.cli.app import OUTPUT_FAILED, run, tell

    if sys.stdout is None:  # closed (>&-)
        tell("cannot write the output: standard output is closed")
        return OUTPUT_FAILED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Greek letters, or a name that is no UTF-8, shows "?", not a traceback.
            stream.reconfigure(errors="replace")
    return run(words)


def say_if_interrupted(message: str) -> None:
    """Set what an interruption says from now on."""
    global last_word  # noqa: PLW0603 - a signal's handler is one for the process
    last_word = message
