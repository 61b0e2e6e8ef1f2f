"""Parts that every benchmark shares: fair timing side by side, and a record that names the machine.

A benchmark times its candidates in turn, round after round, and keeps the best time of each: a burst of other
work on the machine then meets all of them or is left out, and their ratio stays fair.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from generic_adam.answers.terminal import print_table
from generic_adam.files import atomic_write, ensure_output_directory, write_json
from generic_adam_laboratory.runs.records import describe_machine, manifest

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"


def best_seconds(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the best time of one call of each candidate, measured in turn.

    Args:
        candidates: what to call, by name.
        rounds: how often each is timed.
        calls: how many calls make one timing (for what takes microseconds).
        clock: seconds on the wall, or `time.process_time`: what the process needs, whatever
            else the machine does.

    Returns:
        Seconds a call, by name.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for candidate in candidates.values():
        candidate()  # caches, compilation and the first touch of memory are not what is measured
    for _ in range(rounds):
        for name, candidate in candidates.items():
            begin = clock()
            for _ in range(calls):
                candidate()
            best[name] = min(best[name], (clock() - begin) / calls)
    return best


def publish(
    name: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    command: str,
    seconds: float,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Print the table and keep it in ``results/benchmarks`` as Markdown and JSON, with the machine.

    Args:
        name: the stem of the files.
        headings: the columns.
        rows: the cells; the first column is a label.
        command: what to type to get the table again.
        seconds: how long the benchmark took.
        settings: sizes and counts that the numbers depend on.
    """
    record = manifest(command, dict(settings or {}), seconds)
    record["load_average"] = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    record["rows"] = [dict(zip(headings, row, strict=True)) for row in rows]
    print_table(headings, rows, title=name, right=headings[1:])
    ensure_output_directory(RESULTS)
    write_json(RESULTS / f"{name}.json", record)
    with atomic_write(RESULTS / f"{name}.md") as file:
        file.write(_markdown(headings, rows, command))
    print(f"written: results/benchmarks/{name}.md and .json")


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[object]], command: str) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in describe_machine().items())
    lines = [
        f"`{command}`",
        "",
        "| " + " | ".join(headings) + " |",
        "|---" + "|---:" * (len(headings) - 1) + "|",
        *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        "",
        f"Machine: {machine}.",
        "",
    ]
    return "\n".join(lines)
