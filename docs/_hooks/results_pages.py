"""Claims, commands and machines of the committed runs, read from `results/`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from method_pages import row

from generic_adam_laboratory.runs.records import claims_table, read_claims

RESULTS = Path(__file__).parents[2] / "results"
TONES = {"supported": "good", "contradicted": "bad", "unclear": "open"}
FIRST = ("step", "optax_step", "watch", "start-up", "certificate")  # what users ask for; the others follow
NAMED_VERSIONS = ("numpy", "torch", "jax")


def committed_runs() -> str:
    """One line a committed run: its name, the command that makes it, how long it took and on what."""
    lines = [row("run", "command", "seconds", "machine"), row(*["---"] * 4)]
    for path in sorted(RESULTS.rglob("manifest.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        machine = record["machine"]
        place = f"{machine['processor']}, {machine['cores']} cores"
        name = path.parent.relative_to(RESULTS).as_posix()
        lines.append(row(name, f"`{record['command']}`", f"{record['seconds']:,.0f}", place))
    return "\n".join(lines)


def claims_of(folder: Path) -> str:
    """Return the table of claims of one committed run."""
    table = claims_table(read_claims(folder))
    for finding, tone in TONES.items():
        table = table.replace(f"| {finding} |", f'| <span class="badge {tone}">{finding}</span> |')
    return table


def table_of(path: Path) -> str:
    """Return a table as the run wrote it, but with the method first: a phone keeps that column in sight."""
    text = _left(path.read_text(encoding="utf-8"), 4 if path.parent.name == "diagnose" else 1)
    return re.sub(r"(?m)^\|([^|]+)\|([^|]+)", r"|\2|\1", text) if text.startswith("| v_0 | method |") else text


def diagnosis() -> str:
    """Return the first table of the benchmark of diagnoses: its measures beside their goals."""
    text = (RESULTS / "diagnose" / "table.md").read_text(encoding="utf-8")
    return _left("".join(re.findall(r"(?m)^\|.*\n", text.partition("\n## ")[0])), 4)


def _left(text: str, how_many: int = 1) -> str:
    """Return tables whose columns are all at the right with the first ones, which hold words, at the left."""
    return re.sub(r"(?m)^\|(---:\|)+$", lambda line: line[0].replace("---:", "---", how_many), text)


def benchmarks() -> str:
    """Return a section a benchmark: what it asks, its command, its table, the machine and how busy it was."""
    found = {path.stem: path for path in sorted((RESULTS / "benchmarks").glob("*.json"))}
    return "\n\n".join(_benchmark(found[name]) for name in dict.fromkeys((*FIRST, *found)))


def _benchmark(path: Path) -> str:
    record = json.loads(path.read_text(encoding="utf-8"))
    columns = list(record["rows"][0])
    program = RESULTS.parent / record["command"].split()[1]
    question = (ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    lines = [
        f"### {path.stem.replace('-', ' ').replace('_', ' ').capitalize()}",
        "",
        question,
        "",
        f"```bash\n{record['command']}\n```",
        "",
        row(*map(_plain, columns)),
        row(*("---" if column == columns[0] else "--:" for column in columns)),
        *(row(*(_plain(str(cell)) for cell in one.values())) for one in record["rows"]),
        "",
    ]
    machine, versions = record["machine"], record["versions"]
    facts = [f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"]
    if load := record.get("load_average"):
        facts.append(f"load average {load[0]:.1f} when it ended")
    facts.append(", ".join(f"{name} {versions[name]}" for name in NAMED_VERSIONS if name in versions))
    return "\n".join([*lines, f"<small>{'; '.join(facts)}</small>"])


def _plain(text: str) -> str:
    """Text whose stars, bars and underlines Markdown leaves as they are."""
    return re.sub(r"([*_|`\\])", r"\\\1", text)


def _generators() -> dict[str, Callable[[], str]]:
    """Return a generator for the claims and one for each table of every committed run."""
    found: dict[str, Callable[[], str]] = {}
    for folder in sorted(path for path in RESULTS.rglob("*") if path.is_dir()):
        name = folder.relative_to(RESULTS).as_posix().replace("/", "-")
        for table in folder.glob("*.md"):
            found[f"{table.stem}-{name}"] = partial(table_of, table)
        if (folder / "claims.json").is_file():
            found[f"claims-{name}"] = partial(claims_of, folder)
    return found


GENERATORS: dict[str, Callable[[], str]] = {
    "benchmarks": benchmarks,
    "committed-runs": committed_runs,
    "diagnosis": diagnosis,
    **_generators(),
}
