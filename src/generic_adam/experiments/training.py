"""The one training loop of the experiments, top to bottom.

For every network, data set, optimizer, device and number of processes the same lines run. All methods of a
seed start from the same weights and see the same batches in the same order. On a CPU the loop is
deterministic, and a run that was interrupted ends with the same bits as one that was not: everything it
depends on is in the checkpoint.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from generic_adam.experiments import checkpoint, networks
from generic_adam.experiments.data import Dataset
from generic_adam.experiments.distributed import ALONE, Group
from generic_adam.experiments.optimizers import build_optimizer
from generic_adam.experiments.records import OutputError, atomic_write
from generic_adam.experiments.settings import RunSettings
from generic_adam.extras import from_extra

with from_extra("experiments"):
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812 - the name everyone knows
    from torch.nn.parallel import DistributedDataParallel

EVALUATION_BATCH: Final = 1000
"""Images in a forward pass of the test: large enough to be fast, small enough for the cache."""


@dataclass(frozen=True)
class EpochRecord:
    """One row of ``records.csv``.

    Attributes:
        epoch: from 1.
        train_loss: mean cross-entropy over the epoch's batches, each measured before the step it leads to.
        test_loss: mean cross-entropy over the test images after the epoch.
        test_accuracy: fraction of the test images that are classified correctly.
    """

    epoch: int
    train_loss: float
    test_loss: float
    test_accuracy: float


@dataclass(frozen=True)
class Progress:
    """What is told after each epoch: its record, and how fast it went."""

    record: EpochRecord
    images_per_second: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """The records so far, and a line on every damaged checkpoint that was passed over."""

    records: tuple[EpochRecord, ...]
    complaints: tuple[str, ...]


def state_bytes(state: dict[str, Any]) -> bytes:
    """A state of tensors and plain types as bytes, for a checkpoint."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def read_state(payload: bytes) -> dict[str, Any]:
    """Read what `state_bytes` wrote; nothing in it can run code."""
    state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise TypeError("it holds no table of values")
    return state


def train(
    settings: RunSettings,
    dataset: Dataset,
    directory: Path,
    *,
    until: int | None = None,
    device: str = "cpu",
    group: Group = ALONE,
    on_epoch: Callable[[Progress], None] | None = None,
) -> Result:
    """Train from the last checkpoint in `directory`, or from the beginning; leave one after each epoch.

    Args:
        settings: what to train, and how.
        dataset: the images, in memory.
        directory: of this run alone; holds the checkpoints and ``records.csv``.
        until: stop after this epoch; default: all of ``settings.epochs``.
        device: "cpu" or "cuda".
        group: the processes that share this run (DistributedDataParallel); the first of them writes.
        on_epoch: called after each epoch.

    Returns:
        The records of all epochs so far.

    Raises:
        CheckpointError: the directory holds another run.
        OutputError: a checkpoint could not be written; the one before it stays.
    """
    train_set = _Images(dataset.train_images, dataset.train_labels, dataset, device)
    test_set = _Images(dataset.test_images, dataset.test_labels, dataset, device)
    network = networks.build(
        settings.network,
        channels=dataset.channels,
        classes=dataset.classes,
        width=settings.width,
        seed=settings.seed,
    ).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    steps_per_epoch = sum(1 for _ in group.batches(torch.arange(len(train_set)), settings.batch_size))
    optimizer, scheduler = build_optimizer(
        settings.optimizer, network.parameters(), total_steps=settings.epochs * steps_per_epoch
    )
    generator = torch.Generator().manual_seed(settings.seed)
    records: list[EpochRecord] = []

    restored = group.from_first(lambda: checkpoint.load_latest(directory, read_state))
    if (state := restored.state) is not None:
        if state.get("fingerprint") != settings.fingerprint():
            raise checkpoint.CheckpointError(
                f"{directory} holds a run with other settings; choose another --out or remove it"
            )
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        if scheduler is not None:
            scheduler.load_state_dict(state["scheduler"])
        generator.set_state(state["generator"])
        records = [EpochRecord(*row) for row in state["records"]]
        if group.is_first:
            # A process killed between its two files left the table an epoch behind the checkpoint.
            write_records(directory / "records.csv", records)

    model = DistributedDataParallel(network) if group.size > 1 else network
    autocast = torch.autocast(device, torch.bfloat16) if settings.bf16 else nullcontext()

    for epoch in range(len(records) + 1, (settings.epochs if until is None else until) + 1):
        if records and not math.isfinite(records[-1].train_loss):
            break  # nothing after that epoch would be a number
        started = time.perf_counter()
        network.train()
        order = torch.randperm(len(train_set), generator=generator)
        loss_sum = torch.zeros((), device=device)
        for mine, batch_size in group.batches(order, settings.batch_size):
            images, labels = train_set.batch(mine)
            with autocast:
                # DistributedDataParallel averages over processes: this makes it the mean over the whole
                # batch.
                loss = F.cross_entropy(model(images), labels, reduction="sum") * (group.size / batch_size)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            loss_sum += loss.detach() * batch_size
        trained = time.perf_counter()

        train_loss = group.mean(loss_sum).item() / len(train_set)
        test_loss, test_accuracy = evaluate(network, test_set)
        records.append(EpochRecord(epoch, train_loss, test_loss, test_accuracy))
        if group.is_first:
            state = {
                "fingerprint": settings.fingerprint(),
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict() if scheduler is not None else None,
                "generator": generator.get_state(),
                "records": [astuple(record) for record in records],
            }
            checkpoint.save(directory, epoch, state_bytes(state))
            write_records(directory / "records.csv", records)
        if on_epoch is not None:
            on_epoch(
                Progress(records[-1], len(train_set) / (trained - started), time.perf_counter() - started)
            )
    return Result(tuple(records), restored.complaints)


@torch.inference_mode()
def evaluate(network: nn.Module, images: _Images) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over a set of images."""
    network.eval()
    loss_sum, correct = torch.zeros((), dtype=torch.float64), 0
    for indices in torch.arange(len(images)).split(EVALUATION_BATCH):
        inputs, labels = images.batch(indices)
        logits = network(inputs)
        loss_sum += F.cross_entropy(logits, labels, reduction="sum").double().cpu()
        correct += int((logits.argmax(dim=1) == labels).sum())
    return loss_sum.item() / len(images), correct / len(images)


class _Images:
    """Images on the device as bytes; `batch` standardises the ones asked for."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, dataset: Dataset, device: str) -> None:
        mean, deviation = dataset.standardisation
        self._images = _to_device(torch.from_numpy(images), device)
        self._labels = _to_device(torch.from_numpy(labels).long(), device)
        self._mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self._deviation = torch.tensor(deviation, dtype=torch.float32, device=device)

    def __len__(self) -> int:
        return len(self._labels)

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Images (count, channels, height, width) in channels-last order, and their labels."""
        indices = indices.to(self._images.device, non_blocking=True)
        pixels = self._images[indices].float().sub_(self._mean).div_(self._deviation)
        return pixels.permute(0, 3, 1, 2), self._labels[indices]


def _to_device(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Copy to the device, through pinned memory if it is a GPU."""
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def write_records(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write the records as CSV, atomically; floats as the shortest text that reads back as the same bits."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(EpochRecord))
        writer.writerows(astuple(record) for record in records)


def read_records(path: Path) -> list[EpochRecord]:
    """Read back what `write_records` wrote.

    Raises:
        OutputError: the file is missing or is not such a table.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(_rows(file))
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise OutputError(f"{path}: not a table of epochs ({error})") from error


def _rows(file: Iterator[str]) -> Iterator[EpochRecord]:
    for row in csv.DictReader(file):
        yield EpochRecord(
            int(row["epoch"]), float(row["train_loss"]), float(row["test_loss"]), float(row["test_accuracy"])
        )
