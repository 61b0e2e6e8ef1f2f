"""Claims, commands and machines of the committed runs, read from `results/`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from generic_adam.experiments.records import claims_table, read_claims

RESULTS = Path(__file__).parents[2] / "results"


def committed_runs() -> str:
    """One line a committed run: its name, the command that makes it, how long it took and on what."""
    lines = ["| run | command | seconds | machine |", "|---|---|---|---|"]
    for path in sorted(RESULTS.rglob("manifest.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        machine = record["machine"]
        place = f"{machine['processor']}, {machine['cores']} cores"
        name = path.parent.relative_to(RESULTS).as_posix()
        lines.append(f"| {name} | `{record['command']}` | {record['seconds']:,} | {place} |")
    return "\n".join(lines) if len(lines) > 2 else "No run is committed yet."


def claims_of(folder: Path) -> str:
    """The table of claims of one committed run."""
    return claims_table(read_claims(folder))


def _name(folder: Path) -> str:
    return folder.relative_to(RESULTS).as_posix().replace("/", "-")


GENERATORS: dict[str, Callable[[], str]] = {
    "committed-runs": committed_runs,
    **{
        f"claims-{_name(path.parent)}": partial(claims_of, path.parent)
        for path in sorted(RESULTS.rglob("claims.json"))
    },
}
