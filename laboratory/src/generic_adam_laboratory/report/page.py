"""One self-contained HTML page from an experiment's directory: figures, claims, tables, how to run it again.

Everything is inside the file: figures as images, style as text, no script, nothing fetched, and a
Content-Security-Policy that keeps it so. The template escapes whatever it is given. Of the directory plain files
alone are read; a symbolic link is named. The page reads on a screen, light or dark, and on paper.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from generic_adam import __version__
from generic_adam.errors import DataError, told_as
from generic_adam.files import atomic_write
from generic_adam_laboratory.runs.records import Claim, damaged_files, read_claims, read_manifest

REPORT_NAME: Final = "report.html"

_TABLE_ROWS: Final = 60
_LARGEST: Final = 64 * 2**20  # bytes of a file that is shown: no record of ours comes near
# A verdict's colour repeats, and never replaces, its word.
_TONES: Final = {
    **dict.fromkeys(("certified", "supported", "holds"), "good"),
    **dict.fromkeys(("not certified", "contradicted", "fails", "changed"), "bad"),
    **dict.fromkeys(("unclear", "undecided"), "open"),
}
_TYPES: Final = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class Table:
    """A small table of text, as many cells in a row as columns; those named in `right` are set flush right."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()


@dataclass(frozen=True)
class Contents:
    """The contents of an output directory.

    Attributes:
        directory: where.
        manifest: command, settings, versions, machine.
        claims: sentences of the paper with what was measured about them.
        figures: SVG files, and PNG files that have no SVG beside them, as bytes by path.
        tables: small tables of results.
        files: the size of every plain file; None for a symbolic link, which is not followed.
        changed: files that are missing, or not what the run wrote by the manifest's SHA-256.
    """

    directory: Path
    manifest: Mapping[str, Any]
    claims: Sequence[Claim]
    figures: Mapping[Path, bytes]
    tables: Sequence[Table]
    files: Mapping[Path, int | None]
    changed: Sequence[str]


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
    plain = [path for path, size in files.items() if size is not None and size <= _LARGEST]
    manifest = read_manifest(folder) if folder / "manifest.json" in plain else None
    if manifest is None:
        raise DataError(f"nothing to report in {folder}: expected the manifest.json that an experiment writes")
    with told_as(DataError, f"cannot read {folder / 'claims.json'}:"):
        claims = read_claims(folder) if folder / "claims.json" in plain else []
    figures = [one for one in plain if one.suffix in _TYPES]
    with told_as(DataError, f"cannot read {folder}:"):
        shown = {
            one: one.read_bytes() for one in figures if one.suffix == ".svg" or one.with_suffix(".svg") not in plain
        }
        changed = damaged_files(folder, manifest)
    tables = [read_table(path) for path in plain if path.suffix == ".md" and path.name != "claims.md"]
    return Contents(folder, manifest, claims, shown, tables, files, changed)


def _files(folder: Path) -> dict[Path, int | None]:
    """Return what lies below a directory, in order; devices, sockets and hidden files are not ours."""
    found: dict[Path, int | None] = {}
    for parent, folders, names in os.walk(folder, followlinks=False):
        for path in (Path(parent) / name for name in (*names, *folders)):
            if path.name.startswith(".") or path == folder / REPORT_NAME:
                continue
            with suppress(OSError):  # gone meanwhile
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    found[path] = status.st_size if stat.S_ISREG(status.st_mode) else None
    return dict(sorted(found.items()))


def read_table(path: Path) -> Table:
    """Return the first table of a Markdown file; an empty one where there is none."""
    with told_as(DataError, f"cannot read {path}:"):
        text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.lstrip().startswith("|")]
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
    even = [(*row, *("",) * len(header))[: len(header)] for row in rows]  # rows may be ragged
    return Table(title, header, even, right)


def write_report(directory: str | Path, out: str | Path | None = None) -> tuple[Path, Contents]:
    """Write the page of an output directory.

    Args:
        directory: what an experiment left behind.
        out: the page's file; `report.html` in the directory if None.

    Returns:
        The page's path and what was read for it.

    Raises:
        DataError: the directory cannot be reported on.
        OutputError: the page cannot be written.
    """
    contents = read_contents(directory)
    with told_as(DataError, f"cannot report on {directory}, whose manifest.json is not an experiment's:"):
        page = render(contents)
    path = contents.directory / REPORT_NAME if out is None else Path(out)
    with atomic_write(path, "wb") as stream:
        # A lone surrogate, from a name that is not UTF-8 or from JSON, becomes a question mark.
        stream.write(page.encode("utf-8", "replace"))
    return path, contents


def render(contents: Contents) -> str:
    """Return the page as HTML."""
    from jinja2 import Environment, StrictUndefined, select_autoescape

    package = resources.files("generic_adam_laboratory.report")
    style = package.joinpath("page.css").read_text(encoding="utf-8")
    template = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True), undefined=StrictUndefined
    ).from_string(package.joinpath("page.html").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    manifest = {"command": "", "settings": {}, "versions": {}, **contents.manifest}
    name = contents.directory.resolve().name.replace("-", " ").replace("_", " ").capitalize()
    rows = [astuple(one) for one in contents.claims]
    claims = Table("Claims", ("claim", "source", "verdict", "evidence"), rows)
    figures = [
        (path.relative_to(contents.directory).as_posix(), _TYPES[path.suffix], base64.b64encode(content).decode())
        for path, content in contents.figures.items()
    ]
    return template.render(
        changed=contents.changed,
        facts=_facts(manifest),
        # An SVG that is an image runs no script and fetches nothing.
        figures=[(shown, f"data:{kind};base64,{content}") for shown, kind, content in figures],
        files=_table_of(contents),
        manifest=manifest,
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        settings=json.dumps(manifest["settings"], indent=2, ensure_ascii=False),
        style=style,
        tables=[table for table in (claims, *contents.tables) if table.rows],
        title=manifest["settings"].get("title") or name,
        tones=_TONES,
        version=__version__,
        versions=", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
    )


def _facts(manifest: Mapping[str, Any]) -> str:
    """When it ended, how long it took, and on what; seconds as people say them."""
    machine, seconds = manifest.get("machine", {}), float(manifest.get("seconds", 0))
    hours, minutes = divmod(round(seconds / 60), 60)
    long = f"{hours} h {minutes} min" if hours else f"{minutes} minutes"
    finished = manifest.get("finished", "").replace("T", " ").replace("+00:00", " UTC")
    facts = (
        finished and f"finished {finished}",
        (f"{round(seconds, 1):g} seconds" if seconds < 120 else long) if seconds else "",
        machine.get("processor"),
        f"{machine['cores']} cores" if machine.get("cores") else "",
    )
    return " · ".join(filter(None, facts))


def _table_of(contents: Contents) -> Table:
    """List the directory's own files one by one, and each folder below it as one line."""
    found: dict[tuple[bool, str], list[int]] = {}
    for path, size in contents.files.items():
        first, *deeper = path.relative_to(contents.directory).parts
        found.setdefault((size is None, f"{first}/" if deeper else first), []).append(size or 0)
    rows = [
        (name, f"{len(sizes):,}", "symbolic link, not followed" if is_link else f"{sum(sizes):,}")
        for (is_link, name), sizes in sorted(found.items(), key=lambda item: item[0][0])
    ]
    return Table("Files", ("name", "files", "bytes"), rows, ("files", "bytes"))
