"""A data set in MNIST's format that trains in a moment, and the jobs of a sweep over it."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np

from generic_adam_laboratory.studies.paper_studies import EXPERIMENTS, paper_lines
from generic_adam_laboratory.studies.study import Job

LINES = paper_lines("0.01/sqrt(t)", 1e-8)


def write_small_mnist(folder: Path, train: int = 160, test: int = 40) -> Path:
    """Write four IDX files: a bright row whose height is the label, in noise."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for part, count in (("train", train), ("t10k", test)):
        labels = generator.integers(0, 10, count)
        images = generator.integers(0, 100, (count, 28, 28))
        images[np.arange(count), 2 * labels + 4] += 150
        for name, array in ((f"{part}-images-idx3", images), (f"{part}-labels-idx1", labels)):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            content = gzip.compress(header + array.astype(np.uint8).tobytes())
            (folder / f"{name}-ubyte.gz").write_bytes(content)
    return folder


def jobs_in(directory: Path, lines=LINES[:2], epochs: int = 2) -> list[Job]:
    """Runs of LeNet on it, one for each line."""
    return replace(EXPERIMENTS["lenet"].study, epochs=epochs, lines=lines).jobs(directory)
