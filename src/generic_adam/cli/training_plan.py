"""From the options of ``reproduce lenet`` and its like to a study and its runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generic_adam.experiments.settings import OptimizerSettings
    from generic_adam.experiments.studies import Study
    from generic_adam.experiments.sweep import Job
    from generic_adam.methods import Method

_LONG_HOLD = 10_000  # K; 1/(1 - theta) = 1,000 is the smallest


@dataclass(frozen=True)
class TrainingPlan:
    """The command line; None where the study's own value is to be taken.

    Attributes:
        name: of the command.
        epochs: length of each run.
        seeds: runs of each method.
        width: ResNet-18's first width.
        blocks: "usual" or "paper".
        epsilons: values of v_0; none for the study's own.
        corrected: whether Kingma and Ba's Adam runs too.
        device: "cpu" or "cuda".
        jobs: processes.
        scheduler: address of a Dask scheduler.
        bf16: compute in bfloat16 where autocast allows.
        quick: a few epochs of scikit-learn's digits.
    """

    name: str
    epochs: int | None
    seeds: int
    width: int | None
    blocks: str
    epsilons: tuple[float, ...]
    corrected: bool
    device: str
    jobs: int | None
    scheduler: str | None
    bf16: bool
    quick: bool

    @property
    def is_cost(self) -> bool:
        """Whether it asks what the guarantee costs, and so has methods of its own."""
        return self.name.endswith("-cost")

    def study(self) -> Study:
        """The study with what was asked for in place of the paper's values.

        Raises:
            SettingsError: it cannot be run as asked.
        """
        from generic_adam.experiments.studies import STUDIES, quick

        study = STUDIES[self.name.removesuffix("-cost")]
        self._check(study)
        if self.quick:
            study = quick(study)
        if self.width is not None:
            study = replace(study, width=self.width)
        if self.blocks == "paper":
            study = replace(study, network="resnet18-paper")
        return replace(
            study,
            epochs=study.epochs if self.epochs is None else self.epochs,
            epsilons=self.epsilons or study.epsilons,
        )

    def _check(self, study: Study) -> None:
        """Refuse, before any data are read, what makes no sense and what would have no effect."""
        from generic_adam.experiments.settings import SettingsError

        for name in ("epochs", "seeds", "width", "jobs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"--{name} {value}: expected a positive whole number")
        if self.blocks not in {"usual", "paper"}:
            raise SettingsError(f"--blocks {self.blocks!r}: expected usual or paper")
        if study.network == "lenet" and (self.width is not None or self.blocks != "usual"):
            raise SettingsError("--width and --blocks go with ResNet-18: there is one LeNet")
        if self.is_cost and (self.epsilons or self.corrected):
            raise SettingsError(
                f"--epsilon and --corrected do not go with {self.name}, whose methods are fixed"
            )
        for epsilon in self.epsilons:
            if not 0 < epsilon < math.inf:
                raise SettingsError(f"--epsilon {epsilon:g}: expected a positive number")
        if len({f"{epsilon:g}" for epsilon in self.epsilons}) < len(set(self.epsilons)):
            raise SettingsError("--epsilon: two values are equal to six digits, which name their folders")
        self._check_device()

    def _check_device(self) -> None:
        from generic_adam.experiments.settings import SettingsError
        from generic_adam.extras import from_extra

        if self.device not in {"cpu", "cuda"}:
            raise SettingsError(f"--device {self.device!r}: expected cpu or cuda")
        if self.device == "cuda" and self.scheduler is None:  # a cluster's devices are not seen from here
            with from_extra("experiments"):
                import torch

            if not torch.cuda.is_available():
                raise SettingsError("--device cuda: torch finds no CUDA device on this machine")

    def command(self, study: Study) -> str:
        """What repeats the run, defaults spelled out."""
        parts = [f"generic-adam reproduce {self.name} --epochs {study.epochs} --seeds {self.seeds}"]
        if study.network != "lenet":
            parts.append(f"--width {study.width} --blocks {self.blocks}")
        if not self.is_cost:
            parts += [f"--epsilon {epsilon!r}" for epsilon in study.epsilons]
            parts += ["--corrected"] * self.corrected
        parts += [f"--device {self.device}"] if self.device != "cpu" else []
        return " ".join(parts + ["--bf16"] * self.bf16 + ["--quick"] * self.quick)

    def jobs_of(self, study: Study, directory: Path, images: int) -> list[Job]:
        """The runs of the study, each with its folder.

        Args:
            study: what `study` gave.
            directory: of the whole study.
            images: number of training images.
        """
        from generic_adam.experiments.studies import run_folder, runs_of
        from generic_adam.experiments.sweep import Job

        runs = dict.fromkeys(
            run
            for methods in self._methods(study, images)
            for run in runs_of(study, methods, epochs=study.epochs, seeds=self.seeds, bf16=self.bf16)
        )
        # Absolute: the workers of a cluster have another working directory.
        return [Job(run, directory.absolute() / "runs" / run_folder(run)) for run in runs]

    def _methods(self, study: Study, images: int) -> list[tuple[OptimizerSettings, ...]]:
        from generic_adam.experiments.settings import BATCH_SIZE
        from generic_adam.experiments.studies import corrected_adam, cost_methods, paper_methods

        if self.is_cost:
            return [cost_methods(certified_replacements(study.epochs * -(-images // BATCH_SIZE)))]
        methods = [paper_methods(study.alpha, epsilon) for epsilon in study.epsilons]
        return methods + ([(corrected_adam(study.alpha),)] if self.corrected else [])


def certified_replacements(steps: int) -> list[tuple[str, Method]]:
    """What takes the place of Adam with its usual constants, all starting with its bias correction.

    The nearest certified method, which is `certified_adam`; the same with the learning rate held ten times as
    long as it has to be; and the constants that `advise` tunes to this number of steps.
    """
    from generic_adam.experiments.studies import COMMON_RATE
    from generic_adam.methods import adam, certified_adam
    from generic_adam.theorems.advice import advise

    advice = advise(adam(lr=COMMON_RATE), horizon=steps)
    for_ever = [one.method for one in advice if one.horizon is None]
    tuned = [one.method for one in advice if one.horizon is not None]
    longer = certified_adam(lr=COMMON_RATE, K=_LONG_HOLD, bias_correction=True)
    return [
        *((f"certified Adam{'' if n == 0 else f', proposal {n + 1}'}", m) for n, m in enumerate(for_ever)),
        (f"certified Adam, K = {_LONG_HOLD}", longer),
        *(("tuned to T", method) for method in tuned),
    ]
