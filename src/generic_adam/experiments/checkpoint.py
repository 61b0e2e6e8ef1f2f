"""Checkpoints that survive a crash: checksummed, written aside and renamed, the one before kept.

A file ``checkpoint-000012.pt`` is one line of text, ``generic-adam checkpoint sha256=... bytes=...``,
followed by what `torch.save` wrote. A process killed at any moment leaves whole files only; a file that was
damaged later does not match its line and is passed over in favour of the one before it.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generic_adam.experiments.records import OutputError, atomic_write
from generic_adam.extras import from_extra

with from_extra("experiments"):
    import torch
    from filelock import FileLock, Timeout

KEPT: Final = 2
"""Checkpoints that stay on disk: the newest, and the one to fall back on."""

_HEADER: Final = re.compile(rb"generic-adam checkpoint sha256=([0-9a-f]{64}) bytes=(\d+)\n")
_LONGEST_HEADER: Final = 128
_NAME: Final = re.compile(r"checkpoint-(\d{6,})\.pt")
_UNFINISHED: Final = ".checkpoint-*.pt.*"  # as `atomic_write` calls its temporary files


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message is one line that names the file."""


@dataclass(frozen=True)
class Restored:
    """The newest whole state (None if there is none), and a line on every file that was passed over."""

    state: dict[str, Any] | None
    complaints: tuple[str, ...]


def save(directory: Path, epoch: int, state: dict[str, Any]) -> Path:
    """Write the state after `epoch`, then remove all but this and the `KEPT` - 1 before it.

    A checkpoint of a later epoch is removed too: this state was built on the newest whole one, so a later one
    is damaged, and counted among the newest it would push out those that can be used.

    Args:
        directory: of the run; must exist.
        epoch: number of finished epochs.
        state: tensors and plain types only, so that it can be read without running foreign code.

    Raises:
        OutputError: it could not be written (disk full, say); earlier checkpoints are untouched.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    payload = buffer.getbuffer()
    path = directory / f"checkpoint-{epoch:06d}.pt"
    with atomic_write(path, "wb") as file:
        digest = hashlib.sha256(payload).hexdigest()
        file.write(f"generic-adam checkpoint sha256={digest} bytes={len(payload)}\n".encode())
        file.write(payload)
    found = _checkpoints(directory)
    kept = [one for number, one in found if number <= epoch][:KEPT]
    # A process that was killed while it wrote leaves its temporary file, which can be large.
    for old in [*(one for _, one in found if one not in kept), *directory.glob(_UNFINISHED)]:
        old.unlink(missing_ok=True)
    return path


def load_latest(directory: Path) -> Restored:
    """Return the newest checkpoint that is whole, with a complaint about each damaged one passed over."""
    complaints: list[str] = []
    for _, path in _checkpoints(directory):
        try:
            return Restored(load(path), tuple(complaints))
        except CheckpointError as error:
            complaints.append(str(error))
    return Restored(None, tuple(complaints))


def load(path: Path) -> dict[str, Any]:
    """Read one checkpoint.

    Raises:
        CheckpointError: it cannot be read, does not match its checksum, or is no checkpoint.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from error
    header = _HEADER.match(raw[:_LONGEST_HEADER])
    if header is None:
        raise CheckpointError(f"{path}: not a checkpoint (bad first line)")
    payload = memoryview(raw)[header.end() :]
    expected = int(header[2])
    if len(payload) != expected:
        raise CheckpointError(f"{path}: truncated or grown ({len(payload):,} bytes, expected {expected:,})")
    if hashlib.sha256(payload).hexdigest().encode() != header[1]:
        raise CheckpointError(f"{path}: corrupt (its SHA-256 does not match)")
    try:
        state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{path}: cannot be read ({reason})") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: not a checkpoint (it holds no table of values)")
    return state


def _checkpoints(directory: Path) -> list[tuple[int, Path]]:
    """Checkpoints of a run, newest first."""
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name))]
    return sorted(found, reverse=True)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold a directory for this process alone.

    The system lets go of it when the process ends, however it ends.

    Raises:
        OutputError: another process holds it.
    """
    lock = FileLock(directory / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise OutputError(
            f"{directory} is in use by another process; wait for it or choose another --out"
        ) from error
    except OSError as error:
        raise OutputError(f"cannot lock {directory}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()
