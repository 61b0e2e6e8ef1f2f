"""Downloads that can be trusted: checked, resumed where they broke off, unpacked by name.

A file grows under its name with ``.part`` at the end and gets its own name only once its checksum is right.
Of an archive only the members that are expected are read, and they are written to names chosen here, so that
no path in an archive can lead anywhere.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from generic_adam.errors import DataError
from generic_adam.experiments.datasets import cache_directory
from generic_adam.experiments.records import OutputError, atomic_write, ensure_output_directory

BLOCK: Final = 1 << 16
ATTEMPTS: Final = 5
"""Times a connection may break off without any progress before the download is given up."""

Report = Callable[[str, int, int], None]
"""Told the file's name, the bytes that are there, and the bytes there will be."""


@dataclass(frozen=True)
class RemoteFile:
    """A file whose content is known before it is fetched."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """A file inside an archive, and its size."""

    path: str
    size: int


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    Attributes:
        folder: the data set's folder in the data directory.
        address: URL of the directory that holds the files.
        files: what to fetch.
        members: what to unpack from the (single) file, if it is an archive.
    """

    folder: str
    address: str
    files: tuple[RemoteFile, ...]
    members: tuple[Member, ...] = ()


SOURCES: Final = {
    "mnist": Source(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        (
            RemoteFile(
                "train-images-idx3-ubyte.gz",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            RemoteFile(
                "train-labels-idx1-ubyte.gz",
                28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            RemoteFile(
                "t10k-images-idx3-ubyte.gz",
                1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            RemoteFile(
                "t10k-labels-idx1-ubyte.gz",
                4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    ),
    "cifar100": Source(
        "cifar-100-binary",
        "https://www.cs.toronto.edu/~kriz/",
        (
            RemoteFile(
                "cifar-100-binary.tar.gz",
                168513733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        (
            Member("cifar-100-binary/train.bin", 50_000 * 3074),
            Member("cifar-100-binary/test.bin", 10_000 * 3074),
        ),
    ),
}
"""The data sets that can be fetched, by name."""


def fetch(
    name: str, directory: Path | None = None, *, mirror: str | None = None, report: Report | None = None
) -> Path:
    """Fetch a data set, unless it is there already.

    Args:
        name: a key of `SOURCES`.
        directory: where its folder goes; default: the cache, where `load` looks by itself.
        mirror: URL of another directory that holds the same files.
        report: told about progress.

    Returns:
        The data set's folder.

    Raises:
        DataError: no such data set, the server cannot be reached, or the content is not the known one.
        OutputError: it cannot be written (disk full, say); what came is kept.
    """
    if name not in SOURCES:
        raise DataError(f"no data set {name!r} to fetch: expected one of {', '.join(sorted(SOURCES))}")
    return fetch_source(SOURCES[name], directory or cache_directory(), mirror=mirror, report=report)


def fetch_source(
    source: Source, directory: Path, *, mirror: str | None = None, report: Report | None = None
) -> Path:
    """Fetch the files of a source into its folder under `directory` and unpack them; see `fetch`."""
    address = mirror or source.address
    if not _is_web(address):
        raise DataError(f"{address}: expected an address that begins with http:// or https://")
    folder = ensure_output_directory(directory / source.folder)
    if source.members and all(_has_size(folder / Path(m.path).name, m.size) for m in source.members):
        return folder
    for file in source.files:
        destination = folder / file.name
        if not (destination.is_file() and _sha256(destination) == file.sha256):
            _download(f"{address.rstrip('/')}/{file.name}", file, destination, report)
    if source.members:
        archive = folder / source.files[0].name
        unpack(archive, source.members, folder)
        archive.unlink()
    return folder


def _download(url: str, file: RemoteFile, destination: Path, report: Report | None) -> None:
    part = destination.with_name(destination.name + ".part")
    failures = 0
    while (have := part.stat().st_size if part.exists() else 0) < file.size:
        try:
            _receive(url, file, part, have, report)
        except HTTPError as error:
            raise DataError(f"{url}: {error.code} {error.reason}") from error
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            failures = 0 if part.exists() and part.stat().st_size > have else failures + 1
            if failures >= ATTEMPTS:
                kept = f"{have:,} of {file.size:,} bytes are kept; the same command goes on from there"
                raise DataError(f"{url}: {reason} ({kept})") from error
    if _sha256(part) != file.sha256:
        part.unlink()
        raise DataError(f"{url}: its SHA-256 is not {file.sha256}; the download was thrown away")
    part.replace(destination)


def _receive(url: str, file: RemoteFile, part: Path, have: int, report: Report | None) -> None:
    """Append what the server sends, from byte `have` on; start over if it will not send a range."""
    headers = {"Range": f"bytes={have}-"} if have else {}
    with urlopen(Request(url, headers=headers), timeout=30) as response:  # noqa: S310 - scheme is checked
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(
            f"bytes {have}-"
        )
        have = have if resumed else 0
        with _writable(part, append=resumed) as write:
            while block := response.read(BLOCK):
                have += len(block)
                if have > file.size:
                    raise DataError(f"{url}: more than the expected {file.size:,} bytes")
                write(block)
                if report is not None:
                    report(file.name, have, file.size)
    if have < file.size:
        raise ConnectionError(f"the connection broke off after {have:,} of {file.size:,} bytes")


@contextmanager
def _writable(part: Path, *, append: bool) -> Iterator[Callable[[bytes], object]]:
    """A function that writes to the file at once, so that a full disk is told apart from a bad connection."""

    def write(block: bytes) -> None:
        try:
            while block:  # without a buffer a write may take only a part
                block = block[out.write(block) :]
        except OSError as error:
            raise OutputError(f"cannot write {part}: {error.strerror or error}") from error

    with part.open("ab" if append else "wb", buffering=0) as out:
        yield write


def unpack(archive: Path, members: tuple[Member, ...], folder: Path) -> None:
    """Write the expected members of a tar archive into `folder`, each under the last part of its name.

    Raises:
        DataError: a member is missing, is no plain file or has another size, or the archive is damaged.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in members:
                _unpack_member(tar, archive, member, folder / Path(member.path).name)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: damaged archive ({error})") from error


def _unpack_member(tar: tarfile.TarFile, archive: Path, member: Member, destination: Path) -> None:
    try:
        info = tar.getmember(member.path)
    except KeyError as error:
        raise DataError(f"{archive}: no {member.path} inside") from error
    # A link could lead out of the archive; a plain file cannot.
    content: IO[bytes] | None = tar.extractfile(info) if info.isreg() else None
    if content is None or info.size != member.size:
        raise DataError(f"{archive}: {member.path} is not a file of {member.size:,} bytes")
    with atomic_write(destination, "wb") as out:
        while block := content.read(BLOCK):
            out.write(block)


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:  # "http://[" begins an address of version 6 and does not end it
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
