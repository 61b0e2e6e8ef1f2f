"""The command ``generic-adam``: thin wrappers, one file a subcommand."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows ``generic-adam``; None takes them from the process.

    Returns:
        0 when the answer is yes or the job is done, 1 when it is no, 3 when undecided, 2 on bad input. None
        of the others is an answer: 70 is a defect of this program, 74 an output that cannot be written,
        128 + n the signal n (130 interrupted, 141 the reader of a pipe left).
    """
    if sys.stderr is None:  # closed (2>&-): print would fall back on standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if arguments is None:
        sys.unraisablehook = _leave_when_interrupted
    try:
        from generic_adam.cli.app import OUTPUT_FAILED, run, tell
    except KeyboardInterrupt:
        print("generic-adam: interrupted", file=sys.stderr)
        return 130
    if sys.stdout is None:  # closed (>&-)
        tell("cannot write the output: standard output is closed")
        return OUTPUT_FAILED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Greek letters, or a name that is no UTF-8, shows "?", not a traceback.
            stream.reconfigure(errors="replace")
    return run(sys.argv[1:] if arguments is None else list(arguments))


def _leave_when_interrupted(unraisable: "sys.UnraisableHookArgs") -> None:
    """Python reports, and then forgets, what is raised where nobody can catch it: in callbacks, as of imports."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    with suppress(OSError):
        shown_again = "\x1b[?25h" if os.isatty(2) else ""  # the cursor, which a spinner hides
        os.write(2, f"{shown_again}generic-adam: interrupted\n".encode())
    os._exit(130)
