"""What an output directory holds, recognised by its files: the input of a report page.

Any experiment's directory will do, and so will one that a person filled: a certificate (``check --json``), a
bound (``bound --json``) and the CSV of a watched run are known by what is in them, not by their names.

A directory may come from anyone. So a file is read only if it is a plain file inside the directory (a
symbolic link is listed and never followed) of a bounded size; what is taken from it has the shape that is
written down here; and where the manifest holds the SHA-256 of a file, a file without it is named.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final
from xml.parsers import expat

from generic_adam.errors import DataError
from generic_adam.experiments.records import Claim, Finding
from generic_adam.methods import Method
from generic_adam.theorems.certificate import certify_algorithm

REPORT_NAME: Final = "report.html"
WATCH_COLUMNS: Final = frozenset({"step", "group", "chi", "ratio", "negative_gamma", "gradient_norm"})
"""The columns that make a CSV the record of a watched run."""

_TABLE_ROWS: Final = 60
_METHODS: Final = 200
_LARGEST: Final = 64 * 2**20  # bytes of a file that is shown: no record of ours comes near
_SEQUENCES: Final = ("alpha", "beta", "theta")

# Shapes: a type, several, one for every element of a list, or one for each key that has to be there. A key
# with a question mark may be missing; "*" stands for every key.
_NUMBER: Final = (int, float)
_CERTIFICATE: Final = {
    "verdict": str,
    "rate?": (str, NoneType),
    "theorem?": (str, NoneType),
    "method": dict.fromkeys(_SEQUENCES, str),
    "conditions": [{"number": (int, str), "status": str, "reason": str}],
}
_BOUND: Final = {
    "steps": int,
    "expectation": (int, float, NoneType),
    "value?": (int, float, NoneType),
    "delta?": (int, float, NoneType),
    "statement?": str,
    "constants": ({"*": _NUMBER}, NoneType),
}
_CLAIMS: Final = [{"sentence": str, "source": str, "verdict": str, "evidence": str}]
_MANIFEST: Final = {
    "command": str,
    "settings": dict,
    "seconds": _NUMBER,
    "finished": str,
    "versions": {"*": str},
    "machine": {"processor?": str, "cores?": int},
    "files": {"*": str},
}


@dataclass(frozen=True)
class Table:
    """A small table of text.

    Attributes:
        title: what it is about.
        header: the columns' names.
        right: for each column whether it is set flush right.
        rows: the cells, row by row; as many as there are columns.
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
        manifest: command, settings, versions, machine: those parts that have the shape we write.
        claims: sentences of the paper with what was measured about them.
        figures: SVG files, and PNG files that have no SVG beside them, as bytes by path.
        tables: small tables of results.
        certificates: certificates as plain types, by label.
        bounds: bounds as plain types, by file name.
        watched: the CSV files of watched runs, as text by path.
        files: the size of every plain file; None for a symbolic link, which is not followed.
        changed: files that are not what the run wrote by the manifest's SHA-256, and how.
    """

    directory: Path
    manifest: Mapping[str, Any]
    claims: tuple[Claim, ...]
    figures: Mapping[Path, bytes]
    tables: tuple[Table, ...]
    certificates: Mapping[str, Mapping[str, Any]]
    bounds: Mapping[str, Mapping[str, Any]]
    watched: Mapping[Path, str]
    files: Mapping[Path, int | None]
    changed: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that a report could show."""
        shown = (self.manifest, self.claims, self.figures, self.certificates, self.bounds, self.watched)
        return not any(shown)


def read_contents(directory: str | Path) -> Contents:
    """Find out what an output directory holds.

    Raises:
        DataError: it is no directory, holds nothing to report, or a file of it cannot be read.
    """
    folder = Path(directory)
    if not folder.is_dir():
        reason = "it is a file, expected a directory" if folder.exists() else "no such directory"
        raise DataError(f"cannot report on {folder}: {reason}")
    files = _files(folder)
    plain = [path for path, size in files.items() if size is not None]
    documents = {path: _read_json(path) for path in plain if path.suffix == ".json"}
    manifest = _fitting_parts(documents.get(folder / "manifest.json"))
    contents = Contents(
        directory=folder,
        manifest=manifest,
        claims=_claims(folder / "claims.json", documents),
        figures={path: _figure(path) for path in plain if _is_figure(path, files)},
        tables=tuple(read_table(path) for path in plain if path.suffix == ".md" and path.name != "claims.md"),
        certificates=_certificates(manifest, documents),
        bounds={path.stem: data for path, data in documents.items() if _fits(data, _BOUND)},
        watched={path: text for path in plain if path.suffix == ".csv" and (text := _watched(path))},
        files=files,
        changed=_changed(folder, manifest.get("files", {}), files),
    )
    if contents.is_empty:
        raise DataError(
            f"nothing to report in {folder}: expected a manifest, claims, a figure, a certificate, a bound "
            "or the record of a watched run"
        )
    return contents


def _files(folder: Path) -> dict[Path, int | None]:
    """Return what lies below a directory, in order; devices, sockets and hidden files are not ours."""
    found: dict[Path, int | None] = {}
    for parent, folders, names in os.walk(folder, followlinks=False):
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in (*names, *linked):
            path = Path(parent) / name
            if name.startswith(".") or path == folder / REPORT_NAME:
                continue
            with suppress(OSError):  # gone meanwhile
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    found[path] = status.st_size if stat.S_ISREG(status.st_mode) else None
    return dict(sorted(found.items()))


def _read_bytes(path: Path) -> bytes:
    try:
        # O_NOFOLLOW and O_NONBLOCK: neither a link nor a pipe that took the file's place since it was listed.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(path, flags), "rb") as stream:  # noqa: PTH123 - a descriptor, opened as we want it
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if len(content) > _LARGEST:
        raise DataError(f"cannot read {path}: larger than {_LARGEST // 2**20} MiB")
    return content


def _read_text(path: Path) -> str:
    try:
        return _read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: not text in UTF-8 ({error})") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path), parse_constant=_refuse_constant)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: not JSON ({error})") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _fits(data: Any, shape: Any) -> bool:
    """Whether plain data has a shape: see the shapes above."""
    if isinstance(shape, tuple):
        return any(_fits(data, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(data, list) and all(_fits(one, shape[0]) for one in data)
    if isinstance(shape, dict):
        return isinstance(data, dict) and all(
            all(_fits(value, part) for value in data.values())
            if key == "*"
            else (_fits(data[name], part) if (name := key.rstrip("?")) in data else key.endswith("?"))
            for key, part in shape.items()
        )
    if isinstance(data, bool):
        return shape is bool
    return isinstance(data, shape) and not (isinstance(data, float) and not math.isfinite(data))


def _fitting_parts(manifest: Any) -> dict[str, Any]:
    """Return those parts of a manifest that have the shape we write: a foreign one is not trusted further."""
    found = manifest if isinstance(manifest, dict) else {}
    return {
        name: found[name] for name, shape in _MANIFEST.items() if name in found and _fits(found[name], shape)
    }


def _claims(path: Path, documents: Mapping[Path, Any]) -> tuple[Claim, ...]:
    listed = documents.get(path, [])
    if not _fits(listed, _CLAIMS) or any(one["verdict"] not in set(Finding) for one in listed):
        raise DataError(
            f"cannot read {path}: not a list of claims, each with sentence, source, evidence and a verdict "
            f"({', '.join(Finding)})"
        )
    return tuple(Claim(**{name: one[name] for name in _CLAIMS[0]}) for one in listed)


def _is_figure(path: Path, files: Mapping[Path, int | None]) -> bool:
    return path.suffix == ".svg" or (path.suffix == ".png" and files.get(path.with_suffix(".svg")) is None)


def _figure(path: Path) -> bytes:
    """Return a figure's bytes, if they are the picture that its name says."""
    content = _read_bytes(path)
    if path.suffix == ".png":
        if not content.startswith(b"\x89PNG\r\n\x1a\n"):
            raise DataError(f"cannot read {path}: not a PNG picture")
        return content
    roots: list[str] = []
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = lambda name, *_rest: _refuse_constant(f"the entity {name}")
    parser.StartElementHandler = lambda name, _attributes: roots.append(name) if not roots else None
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"cannot read {path}: not an SVG picture ({error})") from error
    if roots[0].rpartition(":")[2] != "svg":
        raise DataError(f"cannot read {path}: not an SVG picture (its root is {roots[0]!r})")
    return content


def _watched(path: Path) -> str | None:
    """Return the text of a watched run's CSV, None for any other."""
    text = _read_text(path)
    try:
        header = next(csv.reader(io.StringIO(text)), [])
    except csv.Error as error:
        raise DataError(f"cannot read {path}: {error}") from error
    return text if set(header) >= WATCH_COLUMNS else None


def _changed(folder: Path, recorded: Mapping[str, str], files: Mapping[Path, int | None]) -> dict[str, str]:
    """Compare files with the SHA-256 that the manifest recorded when they were written."""
    changed: dict[str, str] = {}
    for name, expected in recorded.items():
        path = folder / name
        if files.get(path) is None:  # also for a name that leads out of the directory: nothing is read there
            changed[name] = "the manifest names it, but it is no file of this directory"
        elif _sha256(path) != expected.lower():
            changed[name] = "its SHA-256 is not the manifest's: it was changed after the run"
    return changed


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _certificates(manifest: Mapping[str, Any], documents: Mapping[Path, Any]) -> dict[str, Mapping[str, Any]]:
    """Return certificates that lie in the directory, and those of the methods that its manifest names."""
    found: dict[str, Mapping[str, Any]] = {}
    for label, texts in _methods_in(manifest).items():
        with suppress(ValueError):  # a method made of functions has no text to come back from
            found[label] = certify_algorithm(Method(**texts)).to_dict()
    for path, data in documents.items():
        if _fits(data, _CERTIFICATE):
            found[path.stem] = data
    return found


def _methods_in(manifest: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the Generic Adam methods among a manifest's settings, as their three texts, by label.

    A table of methods by label, or the lines of a study, whose sequences stand under "optimizer".
    """
    settings = manifest.get("settings", {})
    methods = settings.get("methods", settings.get("lines"))
    if isinstance(methods, dict):
        entries = list(methods.items())
    else:
        listed = [entry for entry in methods if isinstance(entry, dict)] if isinstance(methods, list) else []
        entries = [(entry.get("label"), entry.get("optimizer", entry)) for entry in listed]
    return {
        str(label): {name: str(entry[name]) for name in _SEQUENCES}
        for label, entry in entries[:_METHODS]
        if isinstance(entry, dict) and entry.keys() >= set(_SEQUENCES) and _is_generic_adam(entry)
    }


def _is_generic_adam(entry: Mapping[str, Any]) -> bool:
    """Whether three sequences say it all; AMSGrad, a bias correction, decay or torch's own say more."""
    named = str(entry.get("algorithm", entry.get("family", "Generic Adam")))
    more = any(entry.get(name) for name in ("amsgrad", "corrected", "decay"))
    return named.lower().replace("-", " ") == "generic adam" and not more


def read_table(path: Path) -> Table:
    """Return the first table of a Markdown file; an empty one where there is none."""
    lines = [line for line in _read_text(path).splitlines() if line.lstrip().startswith("|")]
    cells = [_cells(line) for line in lines[: _TABLE_ROWS + 2]]
    title = path.stem.replace("_", " ").replace("-", " ").capitalize()
    if len(cells) < 2:
        return Table(title, (), (), ())
    right = tuple(rule.endswith(":") and not rule.startswith(":") for rule in cells[1])
    return make_table(title, cells[0], cells[2:], right)


def _cells(line: str) -> tuple[str, ...]:
    """Return the cells of a Markdown table's row, where a bar in a cell has a backslash before it."""
    parts = line.strip().strip("|").replace("\\|", "\x00").split("|")
    return tuple(part.strip().replace("\x00", "|") for part in parts)


def make_table(
    title: str,
    header: tuple[str, ...],
    rows: list[tuple[str, ...]],
    right: tuple[bool, ...] = (),
) -> Table:
    """Return a table as wide as its header; columns of numbers and those asked for are flush right."""
    width = len(header)
    even = tuple((*row, *("",) * width)[:width] for row in rows)
    flush = tuple(
        (i < len(right) and right[i]) or all(_looks_numeric(row[i]) for row in even) for i in range(width)
    )
    return Table(title, header, flush, even)


def _looks_numeric(cell: str) -> bool:
    try:
        float(cell.removesuffix("%").replace(",", "").replace("−", "-"))
    except ValueError:
        return False
    return True
