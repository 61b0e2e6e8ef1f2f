"""A data set in memory, and where it is looked for.

Images stay unsigned bytes in the order (image, row, column, channel): a quarter of the memory of floats, and
the order in which convolutions are fastest. They become standardised floats one batch at a time, in the
training loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from generic_adam.experiments.data.errors import DataError
from generic_adam.experiments.data.formats import read_cifar100, read_idx
from generic_adam.extras import from_extra

ENVIRONMENT_VARIABLE: Final = "GENERIC_ADAM_DATA"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled images for training and testing.

    Attributes:
        name: "mnist", "cifar100" or "digits".
        train_images: unsigned bytes, (count, height, width, channels).
        train_labels: unsigned bytes, (count,).
        test_images: as `train_images`.
        test_labels: as `train_labels`.
        classes: number of classes; labels are 0 to classes - 1.
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
    def standardisation(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each channel over the training images, exact up to one rounding.

        A byte takes 256 values, so both follow from a histogram in whole numbers.
        """
        values = np.arange(256, dtype=np.int64)
        means, deviations = [], []
        for channel in range(self.channels):
            counts = np.bincount(self.train_images[..., channel].ravel(), minlength=256)
            total, mean = counts.sum(), float(counts @ values) / float(counts.sum())
            means.append(mean)
            deviations.append(float(np.sqrt(float(counts @ (values - mean) ** 2) / float(total))))
        return np.array(means), np.array(deviations)


def load(name: str, directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name.

    Args:
        name: "mnist", "cifar100" or "digits" (scikit-learn's, always available).
        directory: where to look; default: ``$GENERIC_ADAM_DATA``, then the cache that ``data fetch`` fills.

    Returns:
        The data set.

    Raises:
        DataError: no such name, or its files are missing (the message says which command gets them) or
            damaged.
    """
    if name == "digits":
        return _digits()
    if name not in LOADERS:
        raise DataError(f"no data set {name!r}: expected one of {', '.join(sorted(LOADERS))}, digits")
    folder, loader = LOADERS[name]
    return loader(find_folder(name, folder, MARKERS[name], directory))


def find_folder(name: str, folder: str, marker: str, directory: str | os.PathLike[str] | None = None) -> Path:
    """The first directory that holds the file `marker`: `directory`, else the environment's, else the cache.

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
    """Where ``generic-adam data fetch`` puts data sets: ``$XDG_CACHE_HOME/generic-adam``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "generic-adam"


def _mnist(folder: Path) -> Dataset:
    def images(part: str) -> np.ndarray:
        array = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
        if array.ndim != 3:
            raise DataError(f"{folder}: {part} images have {array.ndim} axes, expected 3")
        if array.shape[1:] != (28, 28):
            raise DataError(f"{folder}: {part} images are {array.shape[1:]}, expected (28, 28)")
        return array[..., np.newaxis]

    def labels(part: str) -> np.ndarray:
        array = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
        if array.ndim != 1:
            raise DataError(f"{folder}: {part} labels have {array.ndim} axes, expected 1")
        return array

    return Dataset("mnist", images("train"), labels("train"), images("t10k"), labels("t10k"), classes=10)


def _cifar100(folder: Path) -> Dataset:
    train, test = read_cifar100(folder / "train.bin"), read_cifar100(folder / "test.bin")
    return Dataset("cifar100", *train, *test, classes=100)


LOADERS: Final[dict[str, tuple[str, Callable[[Path], Dataset]]]] = {
    "mnist": ("mnist", _mnist),
    "cifar100": ("cifar-100-binary", _cifar100),
}
"""For each data set its folder and its reader."""

MARKERS: Final = {"mnist": "train-images-idx3-ubyte.gz", "cifar100": "train.bin"}
"""The file whose presence says that a folder is the data set's."""


def _digits() -> Dataset:
    """scikit-learn's 1,797 digits of 8 x 8 pixels, enlarged to 24 x 24 and framed to MNIST's 28 x 28.

    The first 1,437 train and the last 360, by other writers, test.
    """
    with from_extra("experiments"):
        from sklearn.datasets import load_digits

    digits: Any = load_digits()
    small = (digits.images * 15).astype(np.uint8)  # 0..16 to 0..240
    large = np.pad(small.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))[..., np.newaxis]
    labels = digits.target.astype(np.uint8)
    return Dataset("digits", large[:1437], labels[:1437], large[1437:], labels[1437:], classes=10)
