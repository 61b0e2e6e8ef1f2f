"""What an output directory holds, recognised by its files: the input of a report page.

Any experiment's directory will do, and so will one that a person filled: a certificate (``check --json``), a
bound (``bound --json``) and the CSV of a watched run are known by what is in them, not by their names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generic_adam.experiments.records import Claim, read_claims
from generic_adam.methods import Method
from generic_adam.theorems.certificate import certify

REPORT_NAME: Final = "report.html"
WATCH_COLUMNS: Final = frozenset({"step", "group", "chi", "ratio", "negative_gamma", "gradient_norm"})
"""The columns that make a CSV the record of a watched run."""

_TABLE_ROWS: Final = 60
_SEQUENCES: Final = ("alpha", "beta", "theta")


class ReportError(ValueError):
    """A directory that cannot be reported on; the message is one line."""


@dataclass(frozen=True)
class Table:
    """A small table of text.

    Attributes:
        title: what it is about.
        header: the columns' names.
        right: for each column whether the file sets it flush right.
        rows: the cells, row by row.
    """

    title: str
    header: tuple[str, ...]
    right: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Contents:
    """What was found in an output directory.

    Attributes:
        directory: where.
        manifest: command, settings, versions, machine; empty if there is none.
        claims: sentences of the paper with what was measured about them.
        figures: SVG files, and PNG files that have no SVG beside them.
        tables: small tables of results.
        certificates: certificates as plain types, by label.
        bounds: bounds as plain types, by file name.
        watched: the CSV files of watched runs.
        files: every file, for the list at the end.
    """

    directory: Path
    manifest: Mapping[str, Any]
    claims: tuple[Claim, ...]
    figures: tuple[Path, ...]
    tables: tuple[Table, ...]
    certificates: Mapping[str, Mapping[str, Any]]
    bounds: Mapping[str, Mapping[str, Any]]
    watched: tuple[Path, ...]
    files: tuple[Path, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a report could show."""
        shown = (self.manifest, self.claims, self.figures, self.certificates, self.bounds, self.watched)
        return not any(shown)


def read_contents(directory: str | Path) -> Contents:
    """Find out what an output directory holds.

    Raises:
        ReportError: it is no directory, holds nothing to report, or a file of it cannot be read.
        OutputError: its claims cannot be read.
    """
    folder = Path(directory)
    if not folder.is_dir():
        reason = "it is a file, expected a directory" if folder.exists() else "no such directory"
        raise ReportError(f"cannot report on {folder}: {reason}")
    files = tuple(
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != REPORT_NAME and not path.name.startswith(".")
    )
    documents = {path: _read_json(path) for path in files if path.suffix == ".json"}
    manifest = documents.get(folder / "manifest.json", {})
    contents = Contents(
        directory=folder,
        manifest=manifest if isinstance(manifest, dict) else {},
        claims=tuple(read_claims(folder)) if folder / "claims.json" in documents else (),
        figures=tuple(path for path in files if _is_figure(path)),
        tables=tuple(
            _read_table(path) for path in files if path.suffix == ".md" and path.name != "claims.md"
        ),
        certificates=_certificates(manifest, documents),
        bounds={path.stem: data for path, data in documents.items() if _is_bound(data)},
        watched=tuple(path for path in files if path.suffix == ".csv" and _is_watched(path)),
        files=files,
    )
    if contents.is_empty:
        raise ReportError(
            f"nothing to report in {folder}: expected a manifest, claims, a figure, a certificate, a bound "
            "or the record of a watched run"
        )
    return contents


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ReportError(f"cannot read {path}: not JSON ({error})") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ReportError(f"cannot read {path}: not text in UTF-8 ({error})") from error


def _is_figure(path: Path) -> bool:
    return path.suffix == ".svg" or (path.suffix == ".png" and not path.with_suffix(".svg").exists())


def _is_certificate(data: Any) -> bool:
    conditions = data.get("conditions") if _has(data, "verdict", "method") else None
    return (
        isinstance(conditions, list)
        and all(_has(one, "number", "status", "reason") for one in conditions)
        and _has(data["method"], *_SEQUENCES)
    )


def _is_bound(data: Any) -> bool:
    return _has(data, "expectation", "constants", "steps") and (
        data["constants"] is None or isinstance(data["constants"], dict)
    )


def _has(data: Any, *keys: str) -> bool:
    return isinstance(data, dict) and data.keys() >= set(keys)


def _is_watched(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return set(next(csv.reader(stream), [])) >= WATCH_COLUMNS
    except (OSError, ValueError, csv.Error) as error:
        raise ReportError(f"cannot read {path}: {error}") from error


def _certificates(manifest: Any, documents: Mapping[Path, Any]) -> dict[str, Mapping[str, Any]]:
    """Return certificates that lie in the directory, and those of the methods that its manifest names."""
    found: dict[str, Mapping[str, Any]] = {}
    for label, settings in _methods_in(manifest).items():
        with suppress(ValueError):  # a method made of functions has no text to come back from
            found[label] = certify(Method(**settings)).to_dict()
    for path, data in documents.items():
        if _is_certificate(data):
            found[path.stem] = data
    return found


def _methods_in(manifest: Any) -> dict[str, dict[str, str]]:
    """Return the Generic Adam methods among a manifest's settings, as their three texts, by label."""
    settings = manifest.get("settings") if isinstance(manifest, dict) else None
    methods = settings.get("methods") if isinstance(settings, dict) else None
    if isinstance(methods, dict):
        entries = list(methods.items())
    else:
        listed = methods if isinstance(methods, list) else []
        entries = [(entry.get("label"), entry) for entry in listed if isinstance(entry, dict)]
    return {
        str(label): {name: str(entry[name]) for name in _SEQUENCES}
        for label, entry in entries
        if isinstance(entry, dict) and entry.keys() >= set(_SEQUENCES) and _is_generic_adam(entry)
    }


def _is_generic_adam(entry: Mapping[str, Any]) -> bool:
    """Whether the theorem speaks of this line; AMSGrad and torch's own Adam are other algorithms."""
    named = str(entry.get("algorithm", entry.get("family", "Generic Adam")))
    return named.lower().replace("-", " ") == "generic adam" and not entry.get("amsgrad")


def _read_table(path: Path) -> Table:
    """Return the first table of a Markdown file; an empty one where there is none."""
    lines = [line for line in _read_text(path).splitlines() if line.lstrip().startswith("|")]
    cells = [_cells(line) for line in lines]
    title = path.stem.replace("_", " ").replace("-", " ").capitalize()
    if len(cells) < 2:
        return Table(title, (), (), ())
    right = tuple(rule.endswith(":") and not rule.startswith(":") for rule in cells[1])
    return Table(title, cells[0], right, tuple(cells[2 : 2 + _TABLE_ROWS]))


def _cells(line: str) -> tuple[str, ...]:
    """Return the cells of a Markdown table's row, where a bar in a cell has a backslash before it."""
    parts = line.strip().strip("|").replace("\\|", "\x00").split("|")
    return tuple(part.strip().replace("\x00", "|") for part in parts)
