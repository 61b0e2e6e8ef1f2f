"""The data sets in memory: where they are looked for, and the formats they come in.

Images stay unsigned bytes in the order (image, row, column, channel): a quarter of the memory of floats, and
the order in which convolutions are fastest. They become standardised floats one batch at a time, in the
training loop. A text is one long array of characters, cut into windows there.

Files are read strictly: a wrong size or label is an error, never a guess. MNIST comes as IDX files: two zero
bytes, a type code, the number of axes, one big-endian 32-bit length for each axis, then the values.
CIFAR-100's binary distribution is a plain sequence of records of 3,074 bytes: coarse label, fine label, and
3,072 bytes of a 32 x 32 image, one colour plane after the other.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import sysconfig
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from generic_adam.errors import DataError
from generic_adam_laboratory.extras import for_training

ENVIRONMENT_VARIABLE: Final = "GENERIC_ADAM_DATA"

CHARACTERS: Final = "\n" + "".join(map(chr, range(32, 127)))
"""The characters of a text; everything else is one further character."""

STEPS_OF_A_TEXT: Final = 250

_IDX_UNSIGNED_BYTE: Final = 0x08
_CIFAR_SIDE: Final = 32
_CIFAR_RECORD: Final = 2 + 3 * _CIFAR_SIDE * _CIFAR_SIDE
_HELD_OUT: Final = 10  # every tenth file of a text


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled images for training and testing: unsigned bytes, (count, height, width, channels).

    Labels are unsigned bytes from 0 to classes - 1.
    """

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: int

    def __post_init__(self) -> None:
        for part, images, labels in (
            ("training", self.train_images, self.train_labels),
            ("test", self.test_images, self.test_labels),
        ):
            if len(images) != len(labels) or len(images) == 0:
                raise DataError(f"{self.name}: {len(images):,} {part} images but {len(labels):,} labels")
            if labels.max() >= self.classes:
                raise DataError(f"{self.name}: {part} label {labels.max()}, expected 0 to {self.classes - 1}")
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            train, test = self.train_images.shape[1:], self.test_images.shape[1:]
            raise DataError(f"{self.name}: training images are {train}, test images {test}")

    @property
    def channels(self) -> int:
        """Number of colour channels."""
        return self.train_images.shape[3]

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the images and labels as they are used, for a manifest."""
        return _sha256(self.train_images, self.train_labels, self.test_images, self.test_labels)

    def steps(self, batch_size: int) -> int:
        """Count the steps of an epoch, in which every image is seen once."""
        return -(-len(self.train_images) // batch_size)

    @cached_property
    def standardisation(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each channel over the training images, exact up to one rounding.

        A byte takes 256 values, so both follow from a histogram in whole numbers.
        """
        values, found = np.arange(256, dtype=np.int64), []
        for channel in range(self.channels):
            counts = np.bincount(self.train_images[..., channel].ravel(), minlength=256)
            mean = float(counts @ values) / float(counts.sum())
            found.append((mean, math.sqrt(float(counts @ (values - mean) ** 2) / float(counts.sum()))))
        means, deviations = np.transpose(found)
        return means, deviations


@dataclass(frozen=True, eq=False)
class Text:
    """Characters for training and validation, long arrays of indices into `CHARACTERS`, of different files."""

    name: str
    train: np.ndarray
    test: np.ndarray
    classes: int = len(CHARACTERS) + 1
    channels: int = 0

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of both parts as they are used, for a manifest: another Python has another library."""
        return _sha256(self.train, self.test)

    def steps(self, batch_size: int) -> int:  # noqa: ARG002 - as of images
        """Count the steps that are called an epoch: a text is read at random places and never as a whole."""
        return STEPS_OF_A_TEXT


def _sha256(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def standard_library(directory: str | os.PathLike[str] | None = None) -> Text:
    """Read the source text of Python's own standard library, which every machine has.

    The modules that are single files, in the order of their names; every tenth is for validation. What was
    written by the build of this very Python is left out. DataError if there are fewer than ten such files.
    """
    folder = Path(directory or sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_sysconfigdata")]
    if len(files) < _HELD_OUT:
        raise DataError(f"{folder}: {len(files)} Python files, expected the standard library's source")
    index = np.full(256, len(CHARACTERS), dtype=np.uint8)
    index[np.frombuffer(CHARACTERS.encode(), dtype=np.uint8)] = np.arange(len(CHARACTERS), dtype=np.uint8)
    texts = [index[np.frombuffer(path.read_bytes(), dtype=np.uint8)] for path in files]
    held_out = texts[_HELD_OUT - 1 :: _HELD_OUT]
    kept = [text for n, text in enumerate(texts, start=1) if n % _HELD_OUT]
    return Text("stdlib", np.concatenate(kept), np.concatenate(held_out))


def load(name: str, directory: str | os.PathLike[str] | None = None) -> Dataset | Text:
    """Load "mnist" or "cifar100" from files, "digits" (scikit-learn's) or "stdlib", which are always there.

    They are looked for in `directory`, by default ``$GENERIC_ADAM_DATA``, then the cache that ``data fetch`` fills.
    DataError if there is no such name, or its files are missing (the message says which command gets them) or damaged.
    """
    if name == "digits":
        return _digits()
    if name == "stdlib":
        return standard_library()
    if name not in LOADERS:
        raise DataError(f"no data set {name!r}: expected one of {', '.join(sorted(LOADERS))}, digits, stdlib")
    folder, marker, loader = LOADERS[name]
    return loader(find_folder(name, folder, marker, directory))


def find_folder(name: str, folder: str, marker: str, directory: str | os.PathLike[str] | None = None) -> Path:
    """Find the first directory that holds the file `marker`: `directory`, else the environment's, else the cache.

    Either the data set's own folder or the directory above it may be given.
    """
    if directory is not None:
        roots = [Path(directory)]
    else:
        named = os.environ.get(ENVIRONMENT_VARIABLE)
        roots = ([Path(named)] if named else []) + [cache_directory()]
    for root in roots:
        for candidate in (root / folder, root):
            if (candidate / marker).is_file():
                return candidate
    searched = " or ".join(str(root) for root in roots)
    raise DataError(f"no {name} data in {searched}: get it with `generic-adam data fetch {name}`")


def cache_directory() -> Path:
    """Return the folder of ``generic-adam data fetch``: ``$XDG_CACHE_HOME/generic-adam``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "generic-adam"


def _mnist(folder: Path) -> Dataset:
    def part(name: str) -> tuple[np.ndarray, np.ndarray]:
        images = read_idx(folder / f"{name}-images-idx3-ubyte.gz", 3)
        labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz", 1)
        if images.shape[1:] != (28, 28):
            raise DataError(f"{folder}: {name} images are {images.shape[1:]}, expected (28, 28)")
        return images[..., np.newaxis], labels

    return Dataset("mnist", *part("train"), *part("t10k"), classes=10)


def _cifar100(folder: Path) -> Dataset:
    train, test = read_cifar100(folder / "train.bin"), read_cifar100(folder / "test.bin")
    return Dataset("cifar100", *train, *test, classes=100)


LOADERS: Final[dict[str, tuple[str, str, Callable[[Path], Dataset]]]] = {
    "mnist": ("mnist", "train-images-idx3-ubyte.gz", _mnist),
    "cifar100": ("cifar-100-binary", "train.bin", _cifar100),
}
"""For each data set its folder, a file that says that a folder is the data set's, and its reader."""


def _digits() -> Dataset:
    """scikit-learn's 1,797 digits of 8 x 8 pixels, enlarged to 24 x 24 and framed to MNIST's 28 x 28.

    The first 1,437 train and the last 360, by other writers, test.
    """
    with for_training():
        from sklearn.datasets import load_digits

    digits: Any = load_digits()
    small = (digits.images * 15).astype(np.uint8)  # 0..16 to 0..240
    large = np.pad(small.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))[..., np.newaxis]
    labels = digits.target.astype(np.uint8)
    return Dataset("digits", large[:1437], labels[:1437], large[1437:], labels[1437:], classes=10)


def read_idx(path: Path, axes: int) -> np.ndarray:
    """Read an IDX file of unsigned bytes with so many axes, compressed with gzip if its name ends in ``.gz``.

    DataError if it cannot be read, is damaged, or is another file.
    """
    raw = _read_bytes(path)
    header = 4 + 4 * axes
    if len(raw) < header or raw[:4] != bytes((0, 0, _IDX_UNSIGNED_BYTE, axes)):
        raise DataError(f"{path}: not an IDX file of unsigned bytes with {axes} axes (bad header)")
    shape = tuple(int(n) for n in np.frombuffer(raw, dtype=">u4", count=axes, offset=4))
    if math.prod(shape) != len(raw) - header:
        raise DataError(f"{path}: {len(raw) - header:,} values, but the header says {' x '.join(map(str, shape))}")
    return np.frombuffer(raw, dtype=np.uint8, offset=header).reshape(shape).copy()


def read_cifar100(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read ``train.bin`` or ``test.bin`` of CIFAR-100: images as (count, 32, 32, 3) bytes, and fine labels."""
    raw = _read_bytes(path)
    if not raw or len(raw) % _CIFAR_RECORD:
        raise DataError(f"{path}: {len(raw):,} bytes, expected a positive multiple of {_CIFAR_RECORD:,} (one record)")
    records = np.frombuffer(raw, dtype=np.uint8).reshape(-1, _CIFAR_RECORD)
    planes = records[:, 2:].reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 1].copy()


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
