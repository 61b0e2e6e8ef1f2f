"""Images a second of the training loop against the ordinary one, on this machine, in one run.

The ordinary loop is what a tutorial shows: a Dataset that transforms one image at a time as torchvision does
(bytes to float, scale, standardise), a shuffling DataLoader with worker processes, torch.optim.Adam as it
comes, ``loss.item()`` for the running mean. Ours holds the images in memory as bytes, standardises whole
batches, keeps tensors in channels-last order and steps with GenericAdam. Both train LeNet on the same images
with the same batch size and one thread, in turn, several times; the best of each counts.

    python benchmarks/training.py [--data DIR] [--images N] [--rounds N] [--workers N ...]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import publish
from torch.nn import functional as F  # noqa: N812 - the name everyone knows
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from generic_adam.errors import DataError
from generic_adam_laboratory.data.datasets import Dataset, load
from generic_adam_laboratory.networks import LeNet
from generic_adam_laboratory.studies.paper_studies import BASE_RATE, paper_lines
from generic_adam_laboratory.training import BATCH_SIZE, RunSettings, train

TARGET = 1.5


class TransformedImages(TorchDataset):
    """One image at a time: bytes to floats in [0, 1], then standardised, as torchvision's transforms do."""

    def __init__(self, dataset: Dataset) -> None:
        mean, deviation = dataset.standardisation
        self.images, self.labels = dataset.train_images, dataset.train_labels
        self.mean = torch.tensor(mean / 255, dtype=torch.float32).view(-1, 1, 1)
        self.deviation = torch.tensor(deviation / 255, dtype=torch.float32).view(-1, 1, 1)

    def __len__(self) -> int:
        """Number of images."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """The transformed image and its label."""
        image = torch.from_numpy(self.images[index]).permute(2, 0, 1).contiguous().float().div(255)
        return image.sub(self.mean).div(self.deviation), int(self.labels[index])


class TutorialLeNet(LeNet):
    """The same network with ReLU before the pooling, as it is usually written."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of the images."""
        hidden = F.max_pool2d(F.relu(self.conv1(images)), 2)
        hidden = F.max_pool2d(F.relu(self.conv2(hidden)), 2).flatten(1)
        return self.dense3(F.relu(self.dense2(F.relu(self.dense1(hidden)))))


def ordinary_epoch(dataset: Dataset, workers: int) -> float:
    """Images a second of one epoch of the ordinary loop, the start of its workers included."""
    network = TutorialLeNet(dataset.channels, dataset.classes)
    optimizer = torch.optim.Adam(network.parameters())
    loader = DataLoader(TransformedImages(dataset), batch_size=BATCH_SIZE, shuffle=True, num_workers=workers)
    started, running = time.perf_counter(), 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(labels)
    assert np.isfinite(running)
    return len(dataset.train_labels) / (time.perf_counter() - started)


def our_epochs(dataset: Dataset, epochs: int) -> tuple[float, list[int]]:
    """Images a second of the training part of the best epoch, and the peak memory in KiB after each."""
    settings = RunSettings("lenet", 1, dataset.name, paper_lines(BASE_RATE, 1e-8)[4].optimizer, 0, epochs)
    speeds: list[float] = []
    memory: list[int] = []
    with tempfile.TemporaryDirectory() as directory:
        for epoch in range(1, epochs + 1):
            result = train(settings, dataset, Path(directory), until=epoch)
            speeds.append(result.samples_per_second or 0.0)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return max(speeds), memory


def first_images(dataset: Dataset, count: int) -> Dataset:
    """The first training images, to keep an epoch of the ordinary loop short."""
    return Dataset(
        dataset.name,
        dataset.train_images[:count],
        dataset.train_labels[:count],
        dataset.test_images[:100],
        dataset.test_labels[:100],
        dataset.classes,
    )


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory of the data sets (default: as the product looks)")
    parser.add_argument("--images", type=int, default=12_800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2], help="of the DataLoader")
    options = parser.parse_args()
    begun = time.perf_counter()

    torch.set_num_threads(1)
    try:
        dataset = load("mnist", options.data)
    except DataError as error:
        print(f"{error}; scikit-learn's digits are used instead")
        dataset = load("digits")
    dataset = first_images(dataset, options.images)
    ordinary = dict.fromkeys(options.workers, 0.0)
    ours, memory = 0.0, []
    for _ in range(options.rounds):  # in turn, so that a busy moment of the machine meets them alike
        for workers in ordinary:
            ordinary[workers] = max(ordinary[workers], ordinary_epoch(dataset, workers))
        speed, memory = our_epochs(dataset, epochs=3)
        ours = max(ours, speed)

    best = max(ordinary.values())
    rows = [
        (f"DataLoader, {workers} workers, torch.optim.Adam", f"{speed:,.0f}", f"{speed / best:.2f}")
        for workers, speed in ordinary.items()
    ]
    rows.append(("this project, GenericAdam with r = 1", f"{ours:,.0f}", f"{ours / best:.2f}"))
    arguments = f"--images {options.images} --rounds {options.rounds}"
    publish(
        "training",
        ("LeNet, one thread", "images a second", "ratio"),
        rows,
        command=f"python benchmarks/training.py {arguments}",
        seconds=time.perf_counter() - begun,
        settings={
            "data": dataset.name,
            "images": len(dataset.train_labels),
            "batch_size": BATCH_SIZE,
            "target_ratio": TARGET,
            "peak_memory_kib_by_epoch": memory,
        },
    )
    print(f"ratio {ours / best:.2f}, target {TARGET}: {'met' if ours >= TARGET * best else 'MISSED'}")


if __name__ == "__main__":
    main()
