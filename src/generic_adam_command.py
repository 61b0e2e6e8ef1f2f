"""The command ``generic-adam`` from its first line on: whoever imports this has Ctrl-C end the process in one line.

It lies beside the package so that the package is imported after it, and imports only what Python's start has loaded:
what comes before is Python's own. No exception has to find its way through imports and callbacks, which Python
reports and forgets. Where a run is open the signal pauses it instead (the laboratory's `runs.run`).
"""

import _signal  # pyright: ignore[reportMissingImports]  # `signal` imports more, which takes longer than all of this
import os
import sys

__all__ = ["main"]


def _leave(*_: object) -> None:
    word = getattr(sys.modules.get("generic_adam.cli"), "last_word", "interrupted")
    cleared = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # the line, and the cursor, of a spinner
    try:
        os.write(2, f"{cleared}generic-adam: {word}\n".encode())
    finally:
        os._exit(130)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # nohup and `&` mean what they say
    _signal.signal(_signal.SIGINT, _leave)

from generic_adam.cli import main  # noqa: E402
