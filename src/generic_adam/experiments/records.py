"""What an experiment leaves behind: files that are never half-written, a manifest, a table of claims.

Every writer here goes through `atomic_write`: the text is written to a temporary file beside its destination,
flushed to the disk, and renamed, so that a full disk or a killed process leaves the previous file or none.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import json
import os
import platform
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from generic_adam.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

MANIFEST_PACKAGES = (
    "generic-adam",
    "numpy",
    "numba",
    "torch",
    "torchvision",
    "jax",
    "optax",
    "matplotlib",
    "dask",
)
"""Packages whose version can change a result or a figure; those that are not installed are left out."""


class OutputError(RunError):
    """A result could not be written; the message is one line: what, where, why."""


class Finding(StrEnum):
    """What a run says about a sentence of the paper."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what was measured about it.

    Args:
      sentence: what is claimed, in one sentence.
      source: where the paper says it (section, figure, corollary).
      verdict: "supported", "contradicted" or "unclear".
      evidence: the numbers the verdict rests on.
    """

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


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that appears at `path` only when the block ends without an error.

    Args:
      path: the destination; its directory must exist.
      mode: "w" for text (UTF-8, newlines as written) or "wb" for bytes.

    Yields:
      The open temporary file, in the destination's directory.

    Raises:
      OutputError: the directory is missing, unwritable or full; nothing is left behind.
    """
    if mode not in {"w", "wb"}:
        raise ValueError(f"atomic_write takes mode 'w' or 'wb', not {mode!r}")
    destination = Path(path)
    if destination.exists() and not destination.is_file():
        # The renaming below would put a plain file in the place of a device such as /dev/null.
        raise OutputError(f"cannot write {destination}: it is there and is no plain file")
    encoding, newline = (None, None) if mode == "wb" else ("utf-8", "")
    try:
        descriptor, temporary = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.")
    except OSError as error:
        raise _output_error(destination, error) from error
    try:
        with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result is as readable as any file its owner creates.
        Path(temporary).chmod(0o666 & ~_file_mask())
        Path(temporary).replace(destination)
    except OSError as error:
        raise _output_error(destination, error) from error
    finally:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()


def _output_error(destination: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write {destination}: {error.strerror or error}")


def _file_mask() -> int:
    """Return the process's umask; the only portable way to read it is to set it and set it back."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def ensure_output_directory(path: str | os.PathLike[str]) -> Path:
    """Create `path` (and its parents) if needed and prove that a file can be written there.

    An experiment calls this before it computes, so that an hour's work is not lost to a typing error.

    Raises:
      OutputError: the path is a file, or cannot be created or written.
    """
    directory = Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except FileExistsError as error:
        raise OutputError(f"cannot write to {directory}: it is a file, expected a directory") from error
    except OSError as error:
        raise OutputError(f"cannot write to {directory}: {error.strerror or error}") from error
    return directory


def manifest(command: str, settings: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Describe a run so that it can be repeated: command, settings, versions, machine, time, load.

    Args:
      command: what a person types to repeat the run.
      settings: the resolved settings, defaults included; plain types.
      seconds: wall-clock time the run took.
    """
    now = dt.datetime.now(dt.UTC)
    return {
        "command": command,
        "settings": dict(settings),
        "seconds": round(seconds, 3),
        "finished": now.isoformat(timespec="seconds"),
        "versions": _versions(),
        "machine": describe_machine(),
        "load_average": _load_average(),
    }


def write_manifest(
    path: str | os.PathLike[str], command: str, settings: Mapping[str, Any], seconds: float
) -> Path:
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
        if Path(name).name != name
        or not (directory / name).is_file()
        or sha256_of(directory / name) != digest
    ]


def write_json(path: str | os.PathLike[str], content: object) -> None:
    """Write `content` as indented JSON, atomically; a number JSON cannot hold (nan) is an error."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file:
        file.write(text + "\n")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in MANIFEST_PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def describe_machine() -> dict[str, Any]:
    """Return what of the machine matters for a time or a bit: processor, cores, memory; no name, no path."""
    return {
        "processor": _processor_name(),
        "architecture": platform.machine(),
        "instruction_set": _instruction_set(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _load_average() -> list[float] | None:
    """Return how many processes wanted a core over 1, 5 and 15 minutes: without it a time says little."""
    try:
        return [round(load, 2) for load in os.getloadavg()]
    except (AttributeError, OSError):  # not every system counts
        return None


def _processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _instruction_set() -> list[str] | None:
    """Return the vector instructions: what libraries choose among them decides the last bits of a result."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, words = line.partition(":")
            if name.strip() in {"flags", "Features"}:
                known = ("sse4_2", "avx", "fma", "avx2", "avx512", "amx", "asimd", "sve")
                return sorted(word for word in words.split() if word.startswith(known))
    return None


def _memory_gib() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system names these
        return None
    return round(total / 2**30, 1)


def write_csv(
    path: str | os.PathLike[str], headings: Sequence[str], rows: Iterable[Sequence[object]]
) -> Path:
    """Write a table as CSV, atomically; floats as the shortest text that reads back as the same bits."""
    destination = Path(path)
    with atomic_write(destination) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows(rows)
    return destination


def markdown_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] | None = None
) -> str:
    """A table in Markdown, each row on one line whatever its cells hold.

    Args:
      headings: of the columns.
      rows: of text.
      left: headings of the columns that align to the left; the others hold numbers. By default all.
    """
    rule = ["---" if left is None or heading in left else "---:" for heading in headings]
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]]) + "\n"


def write_table(
    path: Path, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] | None = None
) -> None:
    """Write `markdown_table(...)`, atomically."""
    with atomic_write(path) as file:
        file.write(markdown_table(headings, rows, left=left))


def write_claims(directory: str | os.PathLike[str], claims: Sequence[Claim]) -> tuple[Path, Path]:
    """Write the claims as `claims.json` (for programs) and `claims.md` (a table for people).

    Returns:
      The two paths, JSON first.
    """
    folder = Path(directory)
    as_json, as_table = folder / "claims.json", folder / "claims.md"
    write_json(as_json, [asdict(claim) for claim in claims])
    with atomic_write(as_table) as file:
        file.write(claims_table(claims))
    return as_json, as_table


def claims_table(claims: Sequence[Claim]) -> str:
    """Return the claims as a Markdown table."""
    rows = [(c.sentence, c.source, c.verdict, c.evidence) for c in claims]
    return markdown_table(("claim", "source", "verdict", "evidence"), rows)


def _cell(text: str) -> str:
    """Keep a table's row on one line, whatever the text holds."""
    return " ".join(text.split()).replace("|", "\\|")


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
