"""Checkpoints that survive a crash: checksummed, written aside and renamed, the one before kept.

A file ``checkpoint-000012.pt`` is one line of text, ``generic-adam checkpoint sha256=... bytes=...``,
followed by its owner's bytes (`torch.save` for a network, ``.npz`` for lanes). A process killed at any moment
leaves whole files only; a file that was damaged later does not match its line and is passed over in favour of
the one before it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from generic_adam.errors import RunError
from generic_adam.files import atomic_write

KEPT: Final = 2
"""Checkpoints that stay on disk: the newest, and the one to fall back on."""

_MARK: Final = b"generic-adam checkpoint"
_HEADER: Final = re.compile(_MARK + rb" sha256=([0-9a-f]{64}) bytes=(\d{1,20})\n")
_NAME: Final = re.compile(r"checkpoint-(\d{6,})\.(?:pt|npz)")

State = TypeVar("State")


class CheckpointError(RunError):
    """A checkpoint cannot be used; the message is one line that names the file."""


def save(directory: Path, number: int, payload: bytes, ending: str = "pt") -> Path:
    """Write the state after `number` epochs or steps, then remove all but this and the `KEPT` - 1 before it.

    If it cannot be written (disk full, say) earlier checkpoints are untouched. One of a later number is removed too:
    this state was built on the newest whole one, so a later one is damaged, and counted among the newest it would
    push out those that can be used.
    """
    path = directory / f"checkpoint-{number:06d}.{ending}"
    with atomic_write(path, "wb") as file:
        digest = hashlib.sha256(payload).hexdigest()
        file.write(_MARK + f" sha256={digest} bytes={len(payload)}\n".encode())
        file.write(payload)
    _remove(directory, kept=[one for at, one in _checkpoints(directory) if at <= number][:KEPT])
    return path


def load_latest(directory: Path, decode: Callable[[bytes], State]) -> tuple[State | None, tuple[str, ...]]:
    """Return the newest whole state (None if there is none), and a line on each damaged file passed over."""
    complaints: list[str] = []
    for _, path in _checkpoints(directory):
        try:
            return load(path, decode), tuple(complaints)
        except CheckpointError as error:
            complaints.append(str(error))
    return None, tuple(complaints)


def load(path: Path, decode: Callable[[bytes], State]) -> State:
    """Read one checkpoint; `decode` turns the bytes that `save` was given into a state.

    CheckpointError if it cannot be read, does not match its checksum, or is no checkpoint.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from error
    header = _HEADER.match(raw)
    if header is None:
        raise CheckpointError(f"{path}: not a checkpoint (bad first line)")
    payload, expected = raw[header.end() :], int(header[2])
    if len(payload) != expected:
        raise CheckpointError(f"{path}: truncated or grown ({len(payload):,} bytes, expected {expected:,})")
    if hashlib.sha256(payload).hexdigest().encode() != header[1]:
        raise CheckpointError(f"{path}: corrupt (its SHA-256 does not match)")
    try:
        return decode(payload)
    except Exception as error:  # whole, but of another kind: what a reader raises then has no common class
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(f"{path}: cannot be read ({reason})") from error


def remove_all(directory: Path) -> None:
    """Delete the checkpoints of a run, once what they would restore is on disk."""
    _remove(directory, kept=[])


def _remove(directory: Path, kept: list[Path]) -> None:
    """Delete the others that begin as checkpoints of ours: other programs call theirs the same."""
    for path in {one for _, one in _checkpoints(directory)}.difference(kept):
        with suppress(OSError):  # a folder of that name, say
            with path.open("rb") as file:
                is_ours = file.read(len(_MARK)) == _MARK
            if is_ours:
                path.unlink()


def _checkpoints(directory: Path) -> list[tuple[int, Path]]:
    """Checkpoints of a run, newest first."""
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name))]
    return sorted(found, reverse=True)
