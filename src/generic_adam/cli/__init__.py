"""The command ``generic-adam``: thin wrappers, one file a subcommand."""

import io
import sys
from collections.abc import Sequence

from generic_adam.extras import MissingExtraError, from_extra


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows ``generic-adam``; None takes them from the process.

    Returns:
        0 when the answer is yes or the job is done, 1 when it is no, 2 on bad input, 3 when undecided.
    """
    try:
        with from_extra("cli"):
            from generic_adam.cli.app import run
    except MissingExtraError as error:
        print(f"generic-adam: {error}", file=sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without Greek letters shows "?", not a traceback
    return run(sys.argv[1:] if arguments is None else list(arguments))
