"""What an output directory holds, recognised by its files: the input of a report page.

Any experiment's directory will do, and so will one that a person filled: a certificate (``check --json``), a
bound (``bound --json``) and the CSV of a watched run are known by what is in them, not by their names.

A directory may come from anyone. So a file is read only if it is a plain file inside the directory (a
symbolic link is listed and never followed) of a bounded size; what is taken from it has the shape that is
written down here; and where the manifest holds the SHA-256 of a file, a file without it is named.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final
from xml.parsers import expat

from generic_adam.answers.plots import WATCH_COLUMNS
from generic_adam.errors import DataError
from generic_adam.methods import Algorithm, Method
from generic_adam.methods.catalogue import adamw
from generic_adam.methods.method import exact_number
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam_laboratory.runs.records import Claim, sha256_of

REPORT_NAME: Final = "report.html"

_TABLE_ROWS: Final = 60
_METHODS, _SECONDS = 200, 20.0  # of a manifest, and for all their certificates: a hostile one could ask for minutes
_LARGEST: Final = 64 * 2**20  # bytes of a file that is shown: no record of ours comes near
_SEQUENCES: Final = ("alpha", "beta", "theta")
_FLOAT32_EPS: Final = 1e-16  # what training adds to the root where the paper has nothing

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
_TRAINED: Final = {"epsilon?": _NUMBER, "decay?": _NUMBER, "amsgrad?": bool, "corrected?": bool}
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
    """A small table of text, as many cells in a row as columns; those named in `right` are set flush right."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()


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
        figures={
            path: _figure(path)
            for path in plain
            if path.suffix == ".svg" or (path.suffix == ".png" and path.with_suffix(".svg") not in plain)
        },
        tables=tuple(read_table(path) for path in plain if path.suffix == ".md" and path.name != "claims.md"),
        certificates=_certificates(manifest, documents),
        bounds={path.stem: data for path, data in documents.items() if _fits(data, _BOUND)},
        watched={path: text for path in plain if path.suffix == ".csv" and (text := _watched(path))},
        files=files,
        changed=_changed(folder, manifest.get("files", {}), files),
    )
    shown = ("manifest", "claims", "figures", "certificates", "bounds", "watched")
    if not any(getattr(contents, name) for name in shown):
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


@contextmanager
def _reading(path: Path, otherwise: str = "") -> Iterator[None]:
    """Turn whatever reading a file may raise into one line about it."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, LookupError, RecursionError, csv.Error, expat.ExpatError) as error:
        raise DataError(f"cannot read {path}: {otherwise} ({error})") from error


def _read_bytes(path: Path) -> bytes:
    # O_NOFOLLOW and O_NONBLOCK: neither a link nor a pipe that took the file's place since it was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with _reading(path), open(os.open(path, flags), "rb") as stream:  # noqa: PTH123 - a descriptor of our own
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise DataError(f"cannot read {path}: larger than {_LARGEST // 2**20} MiB")
    return content


def _read_text(path: Path) -> str:
    with _reading(path, "not text in UTF-8"):
        return _read_bytes(path).decode("utf-8")


def _read_json(path: Path) -> Any:
    with _reading(path, "not JSON"):
        return json.loads(_read_text(path), parse_constant=_refuse)


def _refuse(name: str, *_rest: object) -> None:
    raise ValueError(f"{name} is not expected")


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
    # Neither nan nor what no float can hold: numbers are computed with.
    return isinstance(data, shape) and (not isinstance(data, _NUMBER) or abs(data) < sys.float_info.max)


def _fitting_parts(manifest: Any) -> dict[str, Any]:
    """Return those parts of a manifest that have the shape we write: a foreign one is not trusted further."""
    found = manifest if isinstance(manifest, dict) else {}
    return {name: found[name] for name, shape in _MANIFEST.items() if name in found and _fits(found[name], shape)}


def _claims(path: Path, documents: Mapping[Path, Any]) -> tuple[Claim, ...]:
    with _reading(path, "not a list of claims, each with sentence, source, evidence and a verdict"):
        return tuple(Claim(**one) for one in documents.get(path, []))


def _figure(path: Path) -> bytes:
    """Return a figure's bytes, if they are the picture that its name says."""
    content = _read_bytes(path)
    if path.suffix == ".png":
        if not content.startswith(b"\x89PNG\r\n\x1a\n"):
            raise DataError(f"cannot read {path}: not a PNG picture")
        return content
    roots: list[str] = []
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = lambda name, *_rest: _refuse(f"the entity {name}")
    parser.StartElementHandler = lambda name, _attributes: roots.append(name) if not roots else None
    with _reading(path, "not an SVG picture"):
        parser.Parse(content, True)
        if roots[0].rpartition(":")[2] != "svg":
            raise ValueError(f"its root is {roots[0]!r}")
    return content


def _watched(path: Path) -> str | None:
    """Return the text of a watched run's CSV, None for any other."""
    text = _read_text(path)
    with _reading(path, "not CSV"):
        header = next(csv.reader(io.StringIO(text)), [])
    return text if set(header) >= WATCH_COLUMNS else None


def _changed(folder: Path, recorded: Mapping[str, str], files: Mapping[Path, int | None]) -> dict[str, str]:
    """Compare files with the SHA-256 that the manifest recorded when they were written."""
    changed: dict[str, str] = {}
    for name, expected in recorded.items():
        if files.get(folder / name) is None:  # also where a name leads out: nothing is read there
            changed[name] = "the manifest names it, but it is no file of this directory"
            continue
        with _reading(folder / name):
            if sha256_of(folder / name) != expected.lower():
                changed[name] = "its SHA-256 is not the manifest's: it was changed after the run"
    return changed


def _certificates(manifest: Mapping[str, Any], documents: Mapping[Path, Any]) -> dict[str, Mapping[str, Any]]:
    """Return certificates that lie in the directory, and those of the algorithms that its manifest says were run."""
    found: dict[str, Mapping[str, Any]] = {}
    begun = time.monotonic()
    for label, entry in _methods_in(manifest.get("settings", {})).items():
        if time.monotonic() - begun > _SECONDS:
            break
        with suppress(ValueError):  # a method made of functions has no text to come back from
            x = _algorithm_run(entry)
            found |= {} if x is None else {label: certify_algorithm(x).to_dict()}
    for path, data in documents.items():
        if _fits(data, _CERTIFICATE):
            found[path.stem] = data
    return found


def _methods_in(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return what a manifest's settings say of each method, by label and, where lines share one, by v_0 as well.

    A table of methods by label, or the lines of a study, whose sequences stand under "optimizer".
    """
    methods = settings.get("methods", settings.get("lines"))
    if isinstance(methods, list):
        listed = [one for one in methods[:_METHODS] if isinstance(one, dict)]
        entries = [(str(one.get("label")), one.get("optimizer", one)) for one in listed]
    else:
        entries = list(methods.items())[:_METHODS] if isinstance(methods, dict) else []
    fitting = [(label, entry) for label, entry in entries if _fits(entry, dict.fromkeys(_SEQUENCES, str))]
    shared = Counter(label for label, _ in fitting)
    return {f"{label}, v_0 = {one.get('epsilon')}" if shared[label] > 1 else label: one for label, one in fitting}


def _algorithm_run(entry: Mapping[str, Any]) -> Algorithm | None:
    """The algorithm that `Algorithm.to_dict` wrote, or that a network was trained with; None where that is not known.

    Raises:
        GenericAdamError: it is none.
    """
    family = entry.get("family")
    if family is None:
        x = Algorithm.from_dict({name: value for name, value in entry.items() if name != "algorithm"})
        return x if x.departures or entry.get("algorithm", "Generic Adam") == "Generic Adam" else None
    if not _fits(entry, _TRAINED):
        return None
    epsilon, decay, amsgrad = entry.get("epsilon", 1e-8), entry.get("decay", 0.0), entry.get("amsgrad", False)
    alpha, beta, theta = (entry[name] for name in _SEQUENCES)
    if family in {"torch-adam", "torch-adamw"} or (family == "generic-adam" and entry.get("corrected")):
        return None if amsgrad else adamw(lr=alpha, beta=beta, theta=theta, eps=epsilon, weight_decay=decay)
    if family != "generic-adam":
        return None
    method = Method(alpha, beta, theta)
    shrinks = method.alpha * exact_number("decay", decay)
    return Algorithm(method, initial_v=epsilon, eps=_FLOAT32_EPS, running_maximum=amsgrad, decay=shrinks)


def read_table(path: Path) -> Table:
    """Return the first table of a Markdown file; an empty one where there is none."""
    lines = [line.strip() for line in _read_text(path).splitlines() if line.lstrip().startswith("|")]
    # A bar in a cell has a backslash before it.
    cells = [
        tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|")))
        for line in lines[: _TABLE_ROWS + 2]
    ]
    title = path.stem.replace("_", " ").replace("-", " ").capitalize()
    if len(cells) < 2:
        return Table(title, (), ())
    header, rules, *rows = cells
    aligned = zip(header, rules, strict=False)
    right = [name for name, rule in aligned if rule.endswith(":") and not rule.startswith(":")]
    even = [(*row, *("",) * len(header))[: len(header)] for row in rows]  # a stranger's rows may be ragged
    return Table(title, header, even, right)
