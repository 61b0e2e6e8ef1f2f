"""What one training run is: plain frozen values that travel with its checkpoints and records."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

BATCH_SIZE: Final = 64
"""The paper's."""


class SettingsError(ValueError):
    """A run that cannot be made as asked; the message is one line."""


@dataclass(frozen=True)
class OptimizerSettings:
    """One line of a figure.

    Attributes:
        label: what the legend calls it.
        family: "generic-adam" for this project's optimizer, "torch-adam" for torch's own Adam as people use
            it.
        alpha: base learning rate alpha_t, as text; for torch's Adam a number.
        beta: beta_t, as text.
        theta: theta_t, as text.
        epsilon: v_0, the start of the second moment; for torch's Adam its ``eps`` in the denominator.
        amsgrad: divide by the running maximum of v_t.
        cosine: let the learning rate fall to zero along a half cosine over the whole run (torch's Adam only).
    """

    label: str
    family: Literal["generic-adam", "torch-adam"]
    alpha: str
    beta: str
    theta: str
    epsilon: float = 1e-8
    amsgrad: bool = False
    cosine: bool = False

    def __post_init__(self) -> None:
        if self.family not in {"generic-adam", "torch-adam"}:
            raise SettingsError(f"no optimizer family {self.family!r}: expected generic-adam or torch-adam")
        if self.cosine and self.family != "torch-adam":
            raise SettingsError(
                "cosine decay goes with torch-adam; give generic-adam an alpha schedule instead"
            )
        if not 0 <= self.epsilon < math.inf:
            raise SettingsError(f"epsilon {self.epsilon}: expected a finite number >= 0")


@dataclass(frozen=True)
class RunSettings:
    """A network, a data set, an optimizer and a seed.

    Attributes:
        network: a name of `generic_adam.experiments.networks`.
        width: ResNet-18's first width.
        dataset: "mnist", "cifar100" or "digits".
        optimizer: the method.
        seed: of initial weights and batch order: equal for all methods that are compared.
        epochs: length of the whole run.
        batch_size: images in a step; 64 in the paper.
        bf16: compute in bfloat16 where autocast allows it; weights and moments stay in float32.
    """

    network: str
    width: int
    dataset: str
    optimizer: OptimizerSettings
    seed: int
    epochs: int
    batch_size: int = BATCH_SIZE
    bf16: bool = False

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("batch_size", self.batch_size), ("width", self.width)):
            if value < 1:
                raise SettingsError(f"{name} {value}: expected a positive whole number")

    def to_dict(self) -> dict[str, Any]:
        """The settings in plain types."""
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """What two runs must share for one to continue the other, in plain types.

        The number of epochs is no part of it, so that a finished run can be made longer, unless the learning
        rate is planned over the whole run (cosine); nor is the label, which only figures use.
        """
        plain = self.to_dict()
        plain["optimizer"].pop("label")
        if not self.optimizer.cosine:
            plain.pop("epochs")
        return plain

    def fingerprint(self) -> str:
        """A short name for the identity, equal for runs that continue each other."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
