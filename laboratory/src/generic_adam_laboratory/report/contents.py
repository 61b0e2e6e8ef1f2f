"""The contents of a directory that an experiment wrote: the input of a report page.

Its manifest says what it is. A directory may come from anyone. So a file is read only if it is a plain file inside
the directory (a symbolic link is listed and never followed) of a bounded size; what is taken from it has the shape
that is written down here; and where the manifest holds the SHA-256 of a file, a file without it is named.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from generic_adam.errors import DataError
from generic_adam_laboratory.runs.records import Claim, sha256_of

REPORT_NAME: Final = "report.html"

_TABLE_ROWS: Final = 60
_LARGEST: Final = 64 * 2**20  # bytes of a file that is shown: no record of ours comes near
# Shapes: a type, several, or one for each key that has to be there. A key with a question mark may be missing; "*"
# stands for every key.
_NUMBER: Final = (int, float)
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
        files: the size of every plain file; None for a symbolic link, which is not followed.
        changed: files that are not what the run wrote by the manifest's SHA-256, and how.
    """

    directory: Path
    manifest: Mapping[str, Any]
    claims: tuple[Claim, ...]
    figures: Mapping[Path, bytes]
    tables: tuple[Table, ...]
    files: Mapping[Path, int | None]
    changed: Mapping[str, str]


def read_contents(directory: str | Path) -> Contents:
    """Find out what an output directory holds.

    Raises:
        DataError: it is no directory of an experiment's, or a file of it cannot be read.
    """
    folder = Path(directory)
    if not folder.is_dir():
        reason = "it is a file, expected a directory" if folder.exists() else "no such directory"
        raise DataError(f"cannot report on {folder}: {reason}")
    files = _files(folder)
    plain = [path for path, size in files.items() if size is not None]
    if folder / "manifest.json" not in plain:
        raise DataError(f"nothing to report in {folder}: expected the manifest that an experiment writes")
    manifest = _fitting_parts(_read_json(folder / "manifest.json"))
    return Contents(
        directory=folder,
        manifest=manifest,
        claims=_claims(folder / "claims.json") if folder / "claims.json" in plain else (),
        figures={
            path: _figure(path)
            for path in plain
            if path.suffix == ".svg" or (path.suffix == ".png" and path.with_suffix(".svg") not in plain)
        },
        tables=tuple(read_table(path) for path in plain if path.suffix == ".md" and path.name != "claims.md"),
        files=files,
        changed=_changed(folder, manifest.get("files", {}), files),
    )


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
    except (ValueError, TypeError, LookupError, RecursionError, expat.ExpatError) as error:
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


def _claims(path: Path) -> tuple[Claim, ...]:
    with _reading(path, "not a list of claims, each with sentence, source, evidence and a verdict"):
        return tuple(Claim(**one) for one in _read_json(path))


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
