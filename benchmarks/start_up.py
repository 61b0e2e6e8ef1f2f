"""Cold starts: what a newcomer waits for. Target: ``generic-adam check adam`` in under 0.4 s."""

import subprocess
import sys
import time
from collections.abc import Callable

from machine import best_seconds, publish

ROUNDS = 15
PROGRAMS = {
    "python, nothing imported": ("-c", "pass"),
    "import numpy": ("-c", "import numpy"),
    "import generic_adam": ("-c", "import generic_adam"),
    "certify adam, as a library": ("-c", "import generic_adam as ga; ga.certify(ga.methods.adam())"),
    "generic-adam --version": ("-m", "generic_adam.cli", "--version"),
    "generic-adam methods": ("-m", "generic_adam.cli", "methods"),
    "generic-adam check adam": ("-m", "generic_adam.cli", "check", "adam"),
    "import torch, for comparison": ("-c", "import torch"),
}


def start(arguments: tuple[str, ...]) -> Callable[[], object]:
    """A function that runs a fresh interpreter to its end."""
    return lambda: subprocess.run([sys.executable, *arguments], capture_output=True, check=False)


def main() -> None:
    """Time every program in turn and keep the table."""
    begin = time.perf_counter()
    best = best_seconds({name: start(arguments) for name, arguments in PROGRAMS.items()}, rounds=ROUNDS)
    publish(
        "start-up",
        ("program", "best wall-clock time [s]"),
        [(name, f"{seconds:.3f}") for name, seconds in best.items()],
        command="python benchmarks/start_up.py",
        seconds=time.perf_counter() - begin,
        settings={"rounds": ROUNDS},
    )


if __name__ == "__main__":
    main()
