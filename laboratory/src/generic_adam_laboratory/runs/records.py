"""Results of an experiment: files that are never half-written, a manifest, a table of claims.

Every file is written whole or not at all (`generic_adam.files`).
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from generic_adam.files import OutputError, atomic_write, write_csv, write_json

Row = TypeVar("Row")

MANIFEST_PACKAGES = (
    "generic-adam", "numpy", "numba", "torch", "torchvision", "jax", "optax", "matplotlib", "dask",
)  # fmt: skip
"""Packages whose version can change a result or a figure; those that are not installed are left out."""

_VECTORS = ("sse4_2", "avx", "fma", "avx2", "avx512", "amx", "asimd", "sve")
_WORDS = {
    "claim", "source", "verdict", "evidence", "panel", "curve", "method", "v_0", "rate", "theory",
    "in the long run, without decay", "certified by", "change", "setting", "long run",
}  # fmt: skip
"""Columns of words; the others hold numbers."""


class Finding(StrEnum):
    """The verdict of a run on a sentence of the paper."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Claim:
    """A sentence, where the paper says it, a verdict (a `Finding`), and the numbers that the verdict rests on."""

    sentence: str
    source: str
    verdict: str
    evidence: str

    def __post_init__(self) -> None:
        """Turn the verdict into a `Finding`, so that a misspelt one is an error; the rest has to be text."""
        for name in ("sentence", "source", "evidence"):
            if not isinstance(value := getattr(self, name), str):
                raise TypeError(f"{name} is {value!r}, expected text")
        object.__setattr__(self, "verdict", Finding(self.verdict))


def manifest(command: str, settings: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Describe a run so that it can be repeated: command, settings (plain types), versions, machine, time, load.

    The seconds are those on the clock of all commands that led to it, of earlier ones up to what they left, and of the
    commands that made other results from which runs were taken.
    """
    # Without how many processes wanted a core over 1, 5 and 15 minutes a time says little.
    load = [round(one, 2) for one in os.getloadavg()] if hasattr(os, "getloadavg") else None
    return {
        "command": command,
        "settings": dict(settings),
        "seconds": round(seconds, 3),
        "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": describe_machine(),
        "load_average": load,
    }


def write_manifest(path: str | os.PathLike[str], command: str, settings: Mapping[str, Any], seconds: float) -> Path:
    """Write `manifest(...)` as JSON to the file `path`, with the SHA-256 of every file beside it."""
    destination = Path(path)
    beside = [one for one in destination.parent.iterdir() if one.is_file() and one != destination]
    files = {one.name: sha256_of(one) for one in sorted(beside) if not one.name.startswith(".")}
    write_json(destination, manifest(command, settings, seconds) | {"files": files})
    return destination


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """Return a directory's manifest; None if there is none that can be read."""
    try:
        found = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def damaged_files(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the files that a manifest lists and that are missing or no longer hold the same bytes."""
    files = manifest.get("files")
    listed = files.items() if isinstance(files, dict) else ()
    return [
        name
        for name, digest in listed
        if Path(name).name != name or not (directory / name).is_file() or sha256_of(directory / name) != digest
    ]


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in MANIFEST_PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def describe_machine() -> dict[str, Any]:
    """Return what of the machine matters for a time or a bit: processor, cores, memory; no name, no path.

    The vector instructions are part of it: what libraries choose among them decides the last bits of a result.
    """
    facts: dict[str, str] = {}
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    words = (facts.get("flags") or facts.get("Features") or "").split()
    try:
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # not every system names these
        memory = None
    return {
        "processor": facts.get("model name") or platform.processor() or "unknown",
        "architecture": platform.machine(),
        "instruction_set": sorted(word for word in words if word.startswith(_VECTORS)) or None,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": f"{platform.system()} {platform.release()}",
    }


def read_csv(path: Path, what: str, read: Callable[[dict[str, str]], Row]) -> list[Row]:
    """Read a CSV table, each row by a function that raises KeyError, TypeError or ValueError if it is none of its own.

    Raises:
      OutputError: the file is missing, or is not the table that `what` names.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [read(row) for row in csv.DictReader(file)]
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise OutputError(f"{path}: not a table of {what} ({error})") from error


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown, each row on one line whatever its cells hold; numbers align to the right."""
    rule = ["---" if heading in _WORDS else "---:" for heading in headings]
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    first, *others = ("| " + " | ".join(row) + " |\n" for row in cells)
    return "".join([first, "|" + "|".join(rule) + "|\n", *others])


def write_claims(directory: str | os.PathLike[str], claims: Sequence[Claim]) -> tuple[Path, Path]:
    """Write the claims as `claims.json` (for programs) and `claims.md` (for people); return the two paths."""
    as_json, as_table = Path(directory) / "claims.json", Path(directory) / "claims.md"
    write_json(as_json, [asdict(claim) for claim in claims])
    with atomic_write(as_table) as file:
        file.write(claims_table(claims))
    return as_json, as_table


def claims_table(claims: Sequence[Claim]) -> str:
    """Return the claims as a Markdown table."""
    return markdown_table(("claim", "source", "verdict", "evidence"), map(astuple, claims))


def read_claims(directory: str | os.PathLike[str]) -> list[Claim]:
    """Read back what `write_claims` wrote.

    Raises:
      OutputError: the file is missing or is not a list of claims.
    """
    path = Path(directory) / "claims.json"
    try:
        return [Claim(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise OutputError(f"cannot read {path}: not a list of claims ({error})") from error


Table = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""Headings and rows."""


@dataclass(frozen=True)
class Occasion:
    """The head of a manifest: the command that repeats a run, its settings, the seconds that it took."""

    command: str
    settings: Mapping[str, Any]
    seconds: float


def write_results(folder: Path, occasion: Occasion, tables: Mapping[str, Table], claims: Sequence[Claim]) -> None:
    """Write what every experiment leaves beside its figure: tables (.csv or .md), claims if any, the manifest last."""
    for name, (headings, rows) in tables.items():
        if name.endswith(".csv"):
            write_csv(folder / name, headings, rows)
        else:
            with atomic_write(folder / name) as file:
                file.write(markdown_table(headings, rows))
    if claims:
        write_claims(folder, claims)
    write_manifest(folder / "manifest.json", occasion.command, occasion.settings, occasion.seconds)
