"""The two file formats of the experiments, read strictly: a wrong size or label is an error, never a guess.

MNIST comes as IDX files: two zero bytes, a type code, the number of axes, one big-endian 32-bit length for
each axis, then the values. CIFAR-100's binary distribution is a plain sequence of records of 3,074 bytes:
coarse label, fine label, and 3,072 bytes of a 32 x 32 image, one colour plane after the other.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from generic_adam.experiments.data.errors import DataError

_IDX_UNSIGNED_BYTE: Final = 0x08
_MOST_AXES: Final = 32  # of an array in any NumPy
_CIFAR_SIDE: Final = 32
_CIFAR_RECORD: Final = 2 + 3 * _CIFAR_SIDE * _CIFAR_SIDE
_CIFAR_CLASSES: Final = 100


def read_idx(path: Path) -> np.ndarray:
    """Read an IDX file of unsigned bytes, compressed with gzip if its name ends in ``.gz``.

    Args:
        path: the file.

    Returns:
        The array, of the shape that the header gives.

    Raises:
        DataError: the file cannot be read, is damaged, or holds another type.
    """
    raw = _read_bytes(path)
    axes = raw[3] if len(raw) >= 4 else 0
    header = 4 + 4 * axes
    if len(raw) < 4 or raw[:2] != b"\x00\x00" or not 0 < axes <= _MOST_AXES or len(raw) < header:
        raise DataError(f"{path}: not an IDX file (bad header)")
    if raw[2] != _IDX_UNSIGNED_BYTE:
        raise DataError(f"{path}: IDX type 0x{raw[2]:02x}, expected 0x08 (unsigned bytes)")
    shape = tuple(int(n) for n in np.frombuffer(raw, dtype=">u4", count=axes, offset=4))
    if math.prod(shape) != len(raw) - header:
        raise DataError(
            f"{path}: {len(raw) - header:,} values, but the header says {' x '.join(map(str, shape))}"
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=header).reshape(shape).copy()


def read_cifar100(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read ``train.bin`` or ``test.bin`` of CIFAR-100's binary distribution.

    Args:
        path: the file.

    Returns:
        Images as (count, 32, 32, 3) unsigned bytes, and fine labels, 0 to 99.

    Raises:
        DataError: the file cannot be read, is not a whole number of records, or has a label out of range.
    """
    raw = _read_bytes(path)
    if not raw or len(raw) % _CIFAR_RECORD:
        raise DataError(
            f"{path}: {len(raw):,} bytes, expected a positive multiple of {_CIFAR_RECORD:,} (one record)"
        )
    records = np.frombuffer(raw, dtype=np.uint8).reshape(-1, _CIFAR_RECORD)
    labels = records[:, 1].copy()
    if labels.max() >= _CIFAR_CLASSES:
        row = int(labels.argmax())
        raise DataError(f"{path}: record {row} has fine label {labels[row]}, expected 0 to 99")
    planes = records[:, 2:].reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


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
