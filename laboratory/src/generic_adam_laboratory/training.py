"""The one training loop of the experiments, top to bottom, and the plain values that say what a run is.

For every network, data set, optimizer, device and number of processes the same lines run. All methods of a
seed start from the same weights and see the same batches in the same order. On a CPU the loop is
deterministic, and a run that was interrupted ends with the same bits as one that was not: everything it
depends on is in the checkpoint.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from generic_adam.errors import RunError
from generic_adam.files import write_csv
from generic_adam.schedules import as_schedule
from generic_adam_laboratory import networks
from generic_adam_laboratory.backends import ALONE, Group
from generic_adam_laboratory.data.datasets import Dataset, Text
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs.records import read_csv

with for_training():
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812 - the name everyone knows
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.lr_scheduler import LRScheduler

    from generic_adam.torch import GenericAdam, ScheduleLR

BATCH_SIZE: Final = 64
"""The paper's."""

VALIDATION_WINDOWS: Final = 256
"""Windows of a text on which a network is validated, spread evenly over what was held out."""

_FLOAT32_EPS: Final = 1e-16  # the paper has none; it keeps 0/0 out of float32

FAMILIES: Final = ("generic-adam", "torch-adam", "torch-adamw", "torch-nadam", "torch-sgd", "torch-adagrad")


@dataclass(frozen=True)
class OptimizerSettings:
    """A method as it is run: this project's "generic-adam" or one of torch's own, and its sequences as text.

    Attributes:
        beta: beta_t; SGD's momentum.
        epsilon: v_0, the start of the second moment; for torch's methods, and where Generic Adam is corrected
            as they are, what is added to the root.
        corrected: Generic Adam with Kingma and Ba's correction and v_0 = 0, which is torch's Adam under any
            schedules.
        decay: decoupled weight decay.
    """

    family: str
    alpha: str
    beta: str
    theta: str
    epsilon: float = 1e-8
    amsgrad: bool = False
    corrected: bool = False
    decay: float = 0.0

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise RunError(f"no optimizer family {self.family!r}: expected one of {', '.join(FAMILIES)}")
        if not (0 <= self.epsilon < math.inf and 0 <= self.decay < math.inf):
            raise RunError(f"epsilon {self.epsilon}, decay {self.decay}: both are expected to be finite numbers >= 0")

    def build(self, parameters: Iterable[nn.Parameter]) -> tuple[torch.optim.Optimizer, LRScheduler | None]:
        """Build the live optimizer, and the scheduler to step after every batch if it needs one."""
        if self.family == "generic-adam":
            v, eps = (0.0, self.epsilon) if self.corrected else (self.epsilon, _FLOAT32_EPS)
            rules = {"lr": self.alpha, "beta": self.beta, "theta": self.theta, "amsgrad": self.amsgrad}
            others = {"weight_decay": self.decay, "bias_correction": self.corrected}
            return GenericAdam(parameters, **rules, **others, initial_v=v, eps=eps), None
        rate = as_schedule(self.alpha)
        first = rate(1)
        beta = _number("beta", self.beta)
        moments = {"betas": (beta, _number("theta", self.theta)), "eps": self.epsilon}
        fused = {"amsgrad": self.amsgrad, "fused": True}
        name, options = {
            "torch-adam": ("Adam", moments | fused),
            "torch-adamw": ("AdamW", moments | fused),
            "torch-nadam": ("NAdam", moments | {"decoupled_weight_decay": True}),
            "torch-sgd": ("SGD", {"momentum": beta}),
            "torch-adagrad": ("Adagrad", {"eps": self.epsilon}),
        }[self.family]
        make: Any = getattr(torch.optim, name)
        optimizer = make(parameters, first, weight_decay=self.decay, **options)
        return optimizer, None if rate.constant_value is not None else ScheduleLR(optimizer, rate)


def _number(name: str, text: str) -> float:
    value = as_schedule(text).constant_value
    if value is None:
        raise RunError(f"{name} {text!r}: torch's optimizers take a number")
    return float(value)


@dataclass(frozen=True)
class RunSettings:
    """A network, a data set, an optimizer and a seed, the same for the weights and batches of all that are compared.

    It may be made longer later. With bf16 weights and moments stay in float32. With replacement each sample of an
    epoch is drawn from all, instead of each being used once.
    """

    network: str
    width: int
    dataset: str
    optimizer: OptimizerSettings
    seed: int
    epochs: int
    batch_size: int = BATCH_SIZE
    bf16: bool = False
    replacement: bool = False

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("batch_size", self.batch_size), ("width", self.width)):
            if value < 1:
                raise RunError(f"{name} {value}: expected a positive whole number")

    def fingerprint(self) -> str:
        """Return a short name for all that two runs must share for one to continue the other.

        The number of epochs is no part of it, so that a finished run can be made longer. A field that is
        younger than 0.1 is a part of it only where it is used, so that the checkpoints of 0.1 go on.
        """
        plain = asdict(self)
        plain.pop("epochs")
        if not self.replacement:
            plain.pop("replacement")
        method = plain["optimizer"] | {"cosine": False}
        for name in ("corrected", "decay"):
            if not method[name]:
                method.pop(name)
        text = json.dumps(plain | {"optimizer": method}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class EpochRecord:
    """One row of ``records.csv``.

    The training loss is the mean over the epoch's batches, each measured before the step it leads to; the test's loss
    and accuracy (the share of images, or characters, foretold correctly) are those after the epoch.
    """

    epoch: int
    train_loss: float
    test_loss: float
    test_accuracy: float

    @classmethod
    def read(cls, row: Mapping[str, str]) -> EpochRecord:
        """Read a record from a row of a table; raise KeyError, TypeError or ValueError if it is none."""
        numbers = (float(row[name]) for name in ("train_loss", "test_loss", "test_accuracy"))
        return cls(int(row["epoch"]), *numbers)


@dataclass(frozen=True)
class Result:
    """The records so far, a line on every damaged checkpoint that was passed over, and how fast the last epoch went.

    The speed is None if all had been run before.
    """

    records: tuple[EpochRecord, ...]
    complaints: tuple[str, ...]
    samples_per_second: float | None = None


def state_bytes(state: dict[str, Any]) -> bytes:
    """Write a state of tensors and plain types as bytes, for a checkpoint."""
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
    dataset: Dataset | Text,
    directory: Path,
    *,
    until: int | None = None,
    device: str = "cpu",
    group: Group = ALONE,
) -> Result:
    """Train from the last checkpoint in `directory`, or from the beginning; leave one after each epoch.

    The directory is this run's alone; with `until` it stops after that epoch. The processes of a group share the run
    (DistributedDataParallel), and the first of them writes.

    Raises:
        CheckpointError: the directory holds another run.
        OutputError: a checkpoint could not be written; the one before it stays.
    """
    train_set, test_set = samples(dataset, settings.batch_size, device)
    network = networks.build(
        settings.network, channels=dataset.channels, classes=dataset.classes, width=settings.width, seed=settings.seed
    ).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer, scheduler = settings.optimizer.build(network.parameters())
    generator = torch.Generator().manual_seed(settings.seed)
    identity = {"fingerprint": settings.fingerprint(), "data_sha256": dataset.sha256}
    records: list[EpochRecord] = []
    speed: float | None = None

    state, complaints = group.from_first(lambda: checkpoint.load_latest(directory, read_state))
    if state is not None:
        if {name: state.get(name, own) for name, own in identity.items()} != identity:  # 0.1 tells nothing of data
            raise checkpoint.CheckpointError(
                f"{directory} holds a run with other settings or other data; --restart replaces it, --out chooses "
                "another directory"
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
        order = train_set.order(generator, replacement=settings.replacement)
        loss_sum = torch.zeros((), device=device)
        for mine, batch_size in group.batches(order, settings.batch_size):
            inputs, labels = train_set.batch(mine)
            with autocast:
                # DistributedDataParallel averages over processes: this makes it the mean over the whole
                # batch.
                share = group.size / (batch_size * labels[0].numel())
                loss = F.cross_entropy(model(inputs), labels, reduction="sum") * share
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            loss_sum += loss.detach() * batch_size
        speed = len(order) / (time.perf_counter() - started)

        train_loss = group.mean(loss_sum).item() / len(order)
        test_loss, test_accuracy = evaluate(network, test_set)
        records.append(EpochRecord(epoch, train_loss, test_loss, test_accuracy))
        if group.is_first:
            state = {
                **identity,
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict() if scheduler is not None else None,
                "generator": generator.get_state(),
                "records": [astuple(record) for record in records],
            }
            checkpoint.save(directory, epoch, state_bytes(state))
            write_records(directory / "records.csv", records)
    return Result(tuple(records), complaints, speed)


@torch.inference_mode()
def evaluate(network: nn.Module, samples: Samples) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over a test set."""
    network.eval()
    loss_sum, correct, count = torch.zeros((), dtype=torch.float64), 0, 0
    for indices in samples.every().split(samples.evaluated_at_once):
        inputs, labels = samples.batch(indices)
        logits = network(inputs)
        loss_sum += F.cross_entropy(logits, labels, reduction="sum").double().cpu()
        correct += int((logits.argmax(dim=1) == labels).sum())
        count += labels.numel()
    return loss_sum.item() / count, correct / count


def samples(dataset: Dataset | Text, batch_size: int, device: str) -> tuple[Samples, Samples]:
    """Return the samples to train on and those to test on, on the device."""
    if isinstance(dataset, Text):
        length = dataset.steps(batch_size) * batch_size
        return _Windows(dataset.train, length, device), _Windows(dataset.test, VALIDATION_WINDOWS, device)
    train = _Images(dataset.train_images, dataset.train_labels, dataset, device)
    return train, _Images(dataset.test_images, dataset.test_labels, dataset, device)


class _Images:
    """Images on the device as bytes; `batch` standardises the ones asked for."""

    evaluated_at_once = 1000  # in a forward pass of the test: enough to be fast, few enough for the cache

    def __init__(self, images: np.ndarray, labels: np.ndarray, dataset: Dataset, device: str) -> None:
        mean, deviation = dataset.standardisation
        self._images = _to_device(torch.from_numpy(images), device)
        self._labels = _to_device(torch.from_numpy(labels).long(), device)
        self._mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self._deviation = torch.tensor(deviation, dtype=torch.float32, device=device)

    def order(self, generator: torch.Generator, *, replacement: bool = False) -> torch.Tensor:
        count = len(self._labels)
        if replacement:
            return torch.randint(count, (count,), generator=generator)
        return torch.randperm(count, generator=generator)

    def every(self) -> torch.Tensor:
        return torch.arange(len(self._labels))

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Images (count, channels, height, width) in channels-last order, and their labels."""
        indices = indices.to(self._images.device, non_blocking=True)
        pixels = self._images[indices].float().sub_(self._mean).div_(self._deviation)
        return pixels.permute(0, 3, 1, 2), self._labels[indices]


class _Windows:
    """Windows of a text: `batch` gives the characters, and the one that follows each."""

    evaluated_at_once = 32

    def __init__(self, text: np.ndarray, count: int, device: str) -> None:
        self._text = _to_device(torch.from_numpy(text), device)
        self._count = count
        self._starts = len(text) - networks.GPT_CONTEXT
        self._window = torch.arange(networks.GPT_CONTEXT + 1, device=device)

    def order(self, generator: torch.Generator, *, replacement: bool = True) -> torch.Tensor:  # noqa: ARG002
        return torch.randint(self._starts, (self._count,), generator=generator)

    def every(self) -> torch.Tensor:
        return torch.arange(self._count) * (self._starts // self._count)

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Characters (count, context), and those one place on."""
        places = indices.to(self._window.device)[:, None] + self._window
        characters = self._text[places].long()
        return characters[:, :-1], characters[:, 1:]


Samples = _Images | _Windows
"""The data of the loop: the samples of an epoch (`order`) or of a test (`every`), and batches of them."""


def _to_device(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Copy to the device, through pinned memory if it is a GPU."""
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def write_records(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write the records as CSV, atomically."""
    write_csv(path, [field.name for field in fields(EpochRecord)], map(astuple, records))


def read_records(path: Path) -> list[EpochRecord]:
    """Read back what `write_records` wrote."""
    return read_csv(path, "epochs", EpochRecord.read)
