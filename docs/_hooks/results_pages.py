"""Claims, commands and machines of the committed runs, read from `results/`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from method_pages import row

from generic_adam.experiments.records import claims_table, read_claims

RESULTS = Path(__file__).parents[2] / "results"
DOCS = RESULTS.parent / "docs"
EXPERIMENTS = (
    ("the counterexample, 10⁷ steps", "counterexample", "reproduction-counterexample.md"),
    ("which (r, s) reach the right end", "phase-map", "reproduction-counterexample.md"),
    ("LeNet on MNIST", "lenet", "reproduction-training.md"),
    ("ResNet-18 on CIFAR-100", "resnet18", "reproduction-training.md"),
    ("ResNet-18 with the larger step size", "resnet18-large-lr", "reproduction-training.md"),
    ("Adam against AdaEMA as a function of v₀", "lenet-v0", "reproduction-training.md"),
    ("what the guarantee costs on LeNet", "lenet-cost", "reproduction-training.md"),
    ("what the guarantee costs on ResNet-18", "resnet18-cost", "reproduction-training.md"),
    ("what the guarantee costs on a small GPT", "gpt-cost", "reproduction-training.md"),
    ("Theorem 1 against its bound", "bound", "#theorem-1-measured"),
)
OUTCOMES = ("outcomes.md", "final.md")
TABLES = ("guarantees", "turning", "conditions", "best", "outside")
TONES = {"supported": "good", "contradicted": "bad", "unclear": "open"}
NAMED_VERSIONS = ("numpy", "torch", "jax")


def experiments() -> str:
    """One line an experiment: its command, and the page about it once that is written."""
    lines = [row("experiment", "command", "page"), row(*["---"] * 3)]
    for name, command, page in EXPERIMENTS:
        is_there = page.startswith("#") or (DOCS / page).is_file()
        lines.append(row(name, f"`generic-adam reproduce {command}`", f"[read]({page})" if is_there else "–"))
    return "\n".join(lines)


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
    table = claims_table(read_claims(folder))
    for finding, tone in TONES.items():
        table = table.replace(f"| {finding} |", f'| <span class="badge {tone}">{finding}</span> |')
    return table


def outcomes_of(folder: Path) -> str:
    """The table of outcomes of one committed run, as the run wrote it."""
    return next(folder / name for name in OUTCOMES if (folder / name).is_file()).read_text(encoding="utf-8")


def not_yet(command: str) -> str:
    """What stands in the place of a run that is not among the committed ones."""
    return f"*No run of `generic-adam reproduce {command}` is committed yet.*"


def without_missing_figures(markdown: str) -> str:
    """A page in which the figure of a run that is not committed is a sentence."""

    def check(image: re.Match[str]) -> str:
        return image[0] if (RESULTS / image[1]).is_file() else not_yet(image[1].split("/")[0])

    return re.sub(r"!\[[^\]]*\]\(\.\./results/([^)]+)\)", check, markdown)


def benchmarks() -> str:
    """A section a benchmark: its command, its table, the machine and how busy it was."""
    sections = [_benchmark(path) for path in sorted((RESULTS / "benchmarks").glob("*.json"))]
    return "\n\n".join(sections) or "No benchmark is committed yet."


def _benchmark(path: Path) -> str:
    record = json.loads(path.read_text(encoding="utf-8"))
    columns = list(record["rows"][0])
    lines = [
        f"### {path.stem.replace('-', ' ').replace('_', ' ').capitalize()}",
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
    """A generator for the claims and one for the outcomes of every run, committed or not."""
    found: dict[str, Callable[[], str]] = {}
    for _, command, _ in EXPERIMENTS:
        found[f"claims-{command}"] = found[f"outcomes-{command}"] = partial(not_yet, command)
    for folder in sorted(path for path in RESULTS.rglob("*") if path.is_dir()):
        name = folder.relative_to(RESULTS).as_posix().replace("/", "-")
        if (folder / "claims.json").is_file():
            found[f"claims-{name}"] = partial(claims_of, folder)
        for table in TABLES:
            if (folder / f"{table}.md").is_file():
                found[f"{table}-{name}"] = partial((folder / f"{table}.md").read_text, encoding="utf-8")
        if any((folder / outcomes).is_file() for outcomes in OUTCOMES):
            found[f"outcomes-{name}"] = partial(outcomes_of, folder)
    return found


GENERATORS: dict[str, Callable[[], str]] = {
    "benchmarks": benchmarks,
    "committed-runs": committed_runs,
    "experiments": experiments,
    **_generators(),
}
