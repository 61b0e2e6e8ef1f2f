"""The command ``generic-adam``: thin wrappers, one file a subcommand.

Ctrl-C ends the command at once, in one line: no exception has to find its way through imports and callbacks,
which Python reports and forgets. Where a run is open the signal pauses it instead (`experiments.run`). What comes
before the first line of :func:`main` is Python's own start, so nothing is imported here that it has not loaded.
"""

import io
import os
import sys

TYPE_CHECKING = False  # type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Sequence

last_word = "interrupted"
"""What an interruption says."""


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows ``generic-adam``; None takes them from the process.

    Returns:
        0 when the answer is yes or the job is done, 1 when it is no, 3 when undecided, 2 on bad input. None
        of the others is an answer: 70 is a defect of this program, 74 an output that cannot be written,
        128 + n the signal n (130 interrupted, 141 the reader of a pipe left).
    """
    if arguments is None:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup and `&` mean what they say
            signal.signal(signal.SIGINT, lambda *_: _leave())
    say_if_interrupted("interrupted")
    if sys.stderr is None:  # closed (2>&-): print would fall back on standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["reproduce"]:
        import shlex

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


def _leave() -> None:
    cleared = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # the line, and the cursor, of a spinner
    try:
        os.write(2, f"{cleared}generic-adam: {last_word}\n".encode())
    finally:
        os._exit(130)
