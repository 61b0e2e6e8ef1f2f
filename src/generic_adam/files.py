"""Files that are never half-written.

Every writer goes through `atomic_write`: the text is written to a temporary file beside its destination, flushed to
the disk, and renamed, so that a full disk or a killed process leaves the previous file or none.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from generic_adam.errors import RunError

ASIDE = ".generic-adam-"
"""How a file or folder is called that is not finished; what a killed process left is known by it."""


class OutputError(RunError):
    """A result could not be written; the message is one line: what, where, why."""


@contextmanager
def writing(what: object) -> Iterator[None]:
    """Raise an `OutputError` that names the file where the system refuses to write it in the block."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {what}: {error.strerror or error}") from error


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a file ("w", UTF-8, or "wb") that appears at `path` only when the block ends without an error.

    Raises:
      OutputError: the directory is missing, unwritable or full; nothing is left behind.
    """
    destination = Path(path)
    if destination.exists() and not destination.is_file():
        # The renaming below would put a plain file in the place of a device such as /dev/null.
        raise OutputError(f"cannot write {destination}: it is there and is no plain file")
    encoding, newline = (None, None) if mode == "wb" else ("utf-8", "")
    with writing(destination):
        descriptor, name = tempfile.mkstemp(dir=destination.parent, prefix=ASIDE)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes private files; a result is as readable as any file its owner creates.
            temporary.chmod(0o666 & ~_file_mask())
            temporary.replace(destination)
        finally:
            temporary.unlink(missing_ok=True)


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
    with writing(f"to {directory}"):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(f"cannot write to {directory}: it is a file, expected a directory") from error
        with tempfile.TemporaryFile(dir=directory):
            return directory


def write_json(path: str | os.PathLike[str], content: object) -> None:
    """Write `content` as indented JSON, atomically; a number JSON cannot hold (nan) is an error."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path) as file:
        file.write(text + "\n")


def write_csv(path: str | os.PathLike[str], headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table as CSV, atomically; floats as the shortest text that reads back as the same bits."""
    destination = Path(path)
    with atomic_write(destination) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        writer.writerows(rows)
    return destination
