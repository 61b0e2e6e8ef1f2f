"""Downloads that can be trusted: checked, resumed where they broke off, unpacked by name.

A file grows under its name with ``.part`` at the end and gets its own name only once its checksum is right.
Of an archive only the members that are expected are read, and they are written to names chosen here, so that
no path in an archive can lead anywhere.
"""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from generic_adam.errors import DataError, GenericAdamError
from generic_adam.files import OutputError, atomic_write, ensure_output_directory, writing
from generic_adam_laboratory.data.datasets import cache_directory
from generic_adam_laboratory.runs.records import sha256_of

BLOCK: Final = 1 << 16
ATTEMPTS: Final = 5
"""Times in a row that a connection may break off before it has brought a block more than all before it."""

SILENCE: Final = 30
"""Seconds without a byte after which a connection has broken off."""

Report = Callable[[str, int, int], None]
"""Told the file's name, the bytes that are there, and the bytes there will be."""


@dataclass(frozen=True)
class RemoteFile:
    """A file whose content is known before it is fetched."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """The source of a data set: files at an address, for a folder of the data directory.

    If there are members, paths with their sizes, they are unpacked from the (single) file, an archive.
    """

    folder: str
    address: str
    files: tuple[RemoteFile, ...]
    members: Mapping[str, int] = field(default_factory=dict)


_MNIST: Final = """
train-images-idx3-ubyte.gz 9912422 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
train-labels-idx1-ubyte.gz 28881 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
t10k-images-idx3-ubyte.gz 1648877 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
t10k-labels-idx1-ubyte.gz 4542 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
"""
_CIFAR: Final = """
cifar-100-binary.tar.gz 168513733 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec
"""


def _files(table: str) -> tuple[RemoteFile, ...]:
    rows = (line.split() for line in table.split("\n") if line)
    return tuple(RemoteFile(name, int(size), sha256) for name, size, sha256 in rows)


SOURCES: Final = {
    "mnist": Source("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/", _files(_MNIST)),
    "cifar100": Source(
        "cifar-100-binary",
        "https://www.cs.toronto.edu/~kriz/",
        _files(_CIFAR),
        {"cifar-100-binary/train.bin": 50_000 * 3074, "cifar-100-binary/test.bin": 10_000 * 3074},
    ),
}
"""The data sets that can be fetched, by name."""


def fetch(name: str, directory: Path | None = None, *, mirror: str | None = None, report: Report | None = None) -> Path:
    """Fetch a data set of `SOURCES`, unless it is there already; return its folder.

    The folder goes into `directory`, by default the cache, where `load` looks by itself; `mirror` is the URL of another
    directory that holds the same files. DataError if the server cannot be reached or the content is not the known
    one, OutputError if it cannot be written; what came is kept.
    """
    if name not in SOURCES:
        raise DataError(f"no data set {name!r} to fetch: expected one of {', '.join(sorted(SOURCES))}")
    return fetch_source(SOURCES[name], directory or cache_directory(), mirror=mirror, report=report)


def fetch_source(source: Source, directory: Path, *, mirror: str | None = None, report: Report | None = None) -> Path:
    """Fetch the files of a source into its folder under `directory` and unpack them; see `fetch`."""
    address = mirror or source.address
    if not _is_web(address):
        raise DataError(f"{_printable(address)}: expected an address that begins with http:// or https://")
    folder = ensure_output_directory(directory / source.folder)
    unpacked = {folder / Path(path).name: size for path, size in source.members.items()}
    if unpacked and all(path.is_file() and path.stat().st_size == size for path, size in unpacked.items()):
        return folder
    for file in source.files:
        destination = folder / file.name
        if not (destination.is_file() and sha256_of(destination) == file.sha256):
            _download(f"{address.rstrip('/')}/{file.name}", file, destination, report)
    if source.members:
        archive = folder / source.files[0].name
        unpack(archive, source.members, folder)
        archive.unlink()
    return folder


def _download(url: str, file: RemoteFile, destination: Path, report: Report | None) -> None:
    part = destination.with_name(destination.name + ".part")
    if part.is_symlink() or (part.exists() and not part.is_file()):
        raise OutputError(f"{part} is a link or no file, expected a file of ours or none; remove it")
    was_there = part.exists()
    while True:
        _complete(url, file, part, report)
        if sha256_of(part) == file.sha256:
            part.replace(destination)
            return
        part.unlink()
        if not was_there:
            raise DataError(f"{_printable(url)}: its SHA-256 is not {file.sha256}; the download was thrown away")
        was_there = False  # what an earlier command left was bad: that must not cost a good server's answer


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _complete(url: str, file: RemoteFile, part: Path, report: Report | None) -> None:
    """Ask until all bytes are there; what was there before is kept unless it is too long."""
    if _size(part) > file.size:
        part.unlink()
    failures, most = 0, _size(part)
    while (have := _size(part)) < file.size:
        try:
            _receive(url, file, part, have, report)
        except HTTPError as error:
            error.close()
            raise DataError(_printable(f"{url}: {error.code} {error.reason}")) from error
        except GenericAdamError:
            raise
        except (OSError, ValueError, HTTPException) as error:  # a timeout, a corrupt record, an address that is none
            came = _size(part)
            failures, most = (0, came) if came >= most + BLOCK else (failures + 1, most)
            if failures >= ATTEMPTS:
                kept = f"{came:,} of {file.size:,} bytes are kept; the same command goes on from there"
                reason = getattr(error, "reason", error)
                raise DataError(_printable(f"{url}: {reason} ({kept})")) from error


def _receive(url: str, file: RemoteFile, part: Path, have: int, report: Report | None) -> None:
    """Append what the server sends, from byte `have` on; start over if it will not send a range."""
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - scheme is checked
    with urlopen(request, timeout=SILENCE) as response:  # noqa: S310 - as above
        range_sent = response.headers.get("Content-Range", "")
        resumed = response.status == 206 and range_sent.startswith(f"bytes {have}-")
        have = have if resumed else 0
        with writing(part):
            out = part.open("ab" if resumed else "wb")
        with out:
            while block := response.read1(BLOCK):  # what has come, without waiting for a whole block
                have += len(block)
                if have > file.size:
                    raise DataError(f"{_printable(url)}: more than the expected {file.size:,} bytes")
                with writing(part):  # at once, so that a full disk is told apart from a bad connection
                    out.write(block)
                    out.flush()
                if report is not None:
                    report(file.name, have, file.size)
    if have < file.size:
        raise ConnectionError(f"the connection broke off after {have:,} of {file.size:,} bytes")


def _printable(text: str) -> str:
    """Text of a server or an address without control characters, and not too long for a line."""
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


def unpack(archive: Path, members: Mapping[str, int], folder: Path) -> None:
    """Write the expected members of a tar archive into `folder`, each under the last part of its name.

    DataError if one is missing, is no plain file or has another size, or the archive is damaged.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for path, size in members.items():
                info = tar.getmember(path)
                # A link could lead out of the archive; a plain file cannot.
                content = tar.extractfile(info) if info.isreg() and info.size == size else None
                if content is None:
                    raise DataError(f"{archive}: {path} is not a file of {size:,} bytes")
                with atomic_write(folder / Path(path).name, "wb") as out:
                    shutil.copyfileobj(content, out)
    except KeyError as error:
        raise DataError(f"{archive}: no {path} inside") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: damaged archive ({error})") from error


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:  # "http://[" begins an address of version 6 and does not end it
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)
