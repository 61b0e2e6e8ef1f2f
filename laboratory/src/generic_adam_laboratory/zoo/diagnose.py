# ruff: noqa: E501 - the tables are read by their columns
"""Failing trainings of known cause and healthy ones, for `generic_adam.watch`.

A failing one names the change that removes its failure and another change of like size that does not: `proved` tries
both on three seeds. Which half a case is in, for tuning thresholds or for judging them, is a matter of its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from generic_adam_laboratory.zoo.diagnose_runs import Options, Trace, train

SEEDS: Final = (0, 1, 2)
_NO_NUMBER: Final = 1e30


@dataclass(frozen=True)
class Case:
    """A training.

    Attributes:
        name: of the case.
        options: the training.
        cause: why it fails; "" for a healthy one.
        measure: "final", the mean loss of the last tenth; "worst", the largest mean of ten steps after a third of the
            run; "gap", the distance from the best at the end.
        level: a run has failed that is above it, or is no number.
        cure: the options that remove the failure.
        other: options that change as much and do not.
        tuned: the rules were mended with sight of it, so that it cannot judge.
    """

    name: str
    options: Options
    cause: str = ""
    measure: str = "final"
    level: float = 0.0
    cure: Mapping[str, Any] = field(default_factory=dict[str, Any])
    other: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tuned: bool = False

    @property
    def judging(self) -> bool:
        """True if the case is in the half that judges."""
        return not self.tuned and hashlib.sha256(self.name.encode()).digest()[0] % 2 == 1

    @property
    def seed(self) -> int:
        """The seed of the training that is watched: the judging half's was not seen while the rules were written."""
        return 5 if self.judging else 0

    def measured(self, trace: Trace) -> float:
        """Return how badly a training went; a large number where it ended in no number."""
        count = len(trace.plain)
        if self.measure == "gap":
            found = trace.gap
        elif self.measure == "final":
            found = float(trace.plain[-max(10, count // 10) :].mean())
        else:
            found = float(np.convolve(trace.plain[count // 3 :], np.full(10, 0.1), "valid").max())
        return found if np.isfinite(found) and np.isfinite(trace.plain[-1]) else _NO_NUMBER

    def agreeing(self, proof: Mapping[str, Sequence[float]]) -> int:
        """Return on how many seeds the run fails, its cure removes that, and the other change does not."""
        rows = zip(*(proof.get(name, ()) for name in ("", "cure", "other")), strict=True)
        return sum(
            not own <= self.level and cured <= self.level and not other <= self.level for own, cured, other in rows
        )


def proved(case: Case) -> dict[str, list[float]]:
    """Return how badly the training goes on each seed: as it is, with its cure, with the other change.

    Two seeds of three decide: where the first two agree the third is left out.
    """
    changed = {"": {}, "cure": case.cure, "other": case.other}
    found: dict[str, list[float]] = {name: [] for name in changed}
    for seed in SEEDS:
        for name, change in changed.items():
            found[name].append(case.measured(train(replace(case.options, **change), seed)))
        if case.agreeing(found) == 2:
            break
    return found


def _failing(
    cause: str,
    name: str,
    measure: str,
    level: float,
    cure: Mapping[str, Any],
    other: Mapping[str, Any],
    task: str,
    steps: int,
    **options: Any,
) -> Case:
    return Case(f"{cause}, {name}", Options(task, steps, **options), cause, measure, level, cure, other)


def _jump(at: int, before: float) -> str:
    """Return a factor of the loss that jumps to 1."""
    return f"{before!r} if t < {at} else 1"


FAILING = [
    # The loss's weight jumps, and with it the gradient: v remembers the small ones.
    _failing("stale_second_moment", "linear", "worst", 2.5, {"beta2": 0.95}, {"eps": 1e-13}, "linear", 1200, lr=0.05, beta2=0.9999, eps=1e-12, scale=_jump(800, 1e-5), noise=1.0),
    _failing("stale_second_moment", "tanh", "worst", 0.65, {"beta2": 0.95}, {"eps": 1e-13}, "tanh", 1000, lr=0.01, beta2=0.9999, eps=1e-12, scale=_jump(700, 1e-5)),
    _failing("stale_second_moment", "conv", "worst", 0.2, {"beta2": 0.95}, {"eps": 1e-13}, "conv", 600, lr=0.01, beta2=0.9999, eps=1e-12, scale=_jump(400, 1e-4)),
    _failing("stale_second_moment", "values", "worst", 0.2, {"beta2": 0.95}, {"eps": 1e-13}, "values", 1000, lr=0.02, beta2=0.9999, eps=1e-12, scale=_jump(600, 1e-4)),
    # All gradients are small: v falls freely.
    _failing("free_fall", "linear", "worst", 1e-4, {"schedule": "min(1, sqrt(500/t))", "beta2": "max(0.995, 1 - 1/t)"}, {"lr": 5e-4}, "linear", 3000, size=400, kind="points", batch=32, beta2=0.995),
    _failing("free_fall", "tanh", "worst", 1e-3, {"schedule": "min(1, sqrt(500/t))", "beta2": "max(0.995, 1 - 1/t)"}, {"weight_decay": 1e-3}, "tanh", 3000, kind="points", batch=32, lr=3e-3, beta2=0.995),
    _failing("free_fall", "tanh wide", "worst", 1e-4, {"schedule": "min(1, sqrt(300/t))", "beta2": "max(0.99, 1 - 1/t)"}, {"weight_decay": 1e-3}, "tanh", 3000, kind="points", size=128, batch=16, lr=2e-3, beta2=0.99),
    _failing("free_fall", "conv", "worst", 1e-2, {"schedule": "min(1, sqrt(300/t))", "beta2": "max(0.99, 1 - 1/t)"}, {"clip": 1.0}, "conv", 2500, kind="points", batch=64, lr=3e-3, beta2=0.99),
    # eps outweighs the root of v.
    _failing("eps_too_large", "tanh", "final", 0.7, {"eps": 1e-8}, {"beta2": 0.95}, "tanh", 600, lr=0.01, eps=10.0),
    _failing("eps_too_large", "conv", "final", 1.0, {"eps": 1e-12}, {"beta2": 0.95}, "conv", 400, lr=3e-3, scale="1e-6", eps=1e-4),
    _failing("eps_too_large", "gpt", "final", 3.2, {"eps": 1e-12}, {"beta2": 0.95}, "gpt", 250, batch=8, lr=3e-3, scale="1e-7", eps=1e-6),
    _failing("eps_too_large", "linear", "gap", 0.1, {"eps": 1e-8}, {"beta1": 0.8}, "linear", 600, lr=0.02, eps=1000.0),
    _failing("eps_too_large", "mlp, rmsprop", "final", 1.0, {"eps": 1e-8}, {"beta2": 0.99}, "mlp", 400, optimizer="RMSprop", beta1=0.0, beta2=0.9, lr=1e-3, eps=5.0),
    # Inputs that are almost 0 while one trains: their weights wander.
    _failing("eps_too_small", "linear", "gap", 0.5, {"eps": 1e-8}, {"beta2": 0.99}, "linear", 1200, kind="hidden", lr=0.1, eps=1e-30),
    _failing("eps_too_small", "linear, fast", "gap", 0.35, {"eps": 1e-7}, {"beta1": 0.8}, "linear", 1500, kind="hidden", lr=0.05, beta2=0.95, eps=1e-20, batch=16),
    _failing("eps_too_small", "linear, large", "gap", 0.35, {"eps": 1e-8}, {"beta1": 0.8}, "linear", 1200, kind="hidden", size=200, lr=0.08, beta2=0.99, eps=1e-25),
    # Steps as large as the weights.
    _failing("lr_too_large", "tanh", "final", 1.2, {"lr": 3e-3}, {"beta2": 0.9}, "tanh", 500, lr=0.5),
    _failing("lr_too_large", "mlp", "final", 1.0, {"lr": 3e-3}, {"beta2": 0.9}, "mlp", 400, lr=0.3),
    _failing("lr_too_large", "conv", "final", 1.0, {"lr": 3e-3}, {"eps": 1e-4}, "conv", 300, lr=0.3),
    _failing("lr_too_large", "gpt", "final", 2.9, {"lr": 3e-3}, {"beta2": 0.95}, "gpt", 250, batch=8, lr=0.2),
    _failing("lr_too_large", "gpt, moderately", "final", 2.6, {"lr": 3e-3}, {"weight_decay": 0.1}, "gpt", 300, batch=8, lr=0.1, beta2=0.95),
    _failing("lr_too_large", "values", "final", 0.5, {"lr": 1e-3}, {"beta2": 0.99}, "values", 600, lr=0.3),
    _failing("lr_too_large", "linear", "gap", 0.3, {"lr": 0.02}, {"beta2": 0.99}, "linear", 600, lr=2.0),
    # Weights that hardly move.
    _failing("lr_too_small", "tanh", "final", 1.2, {"lr": 0.01}, {"eps": 1e-10}, "tanh", 600, lr=1e-6),
    _failing("lr_too_small", "gpt", "final", 3.5, {"lr": 3e-3}, {"eps": 1e-10}, "gpt", 250, batch=8, lr=3e-7),
    _failing("lr_too_small", "conv, warm-up in the wrong unit", "final", 1.0, {"schedule": "min(1, t/50)"}, {"beta2": 0.95}, "conv", 400, lr=3e-3, schedule="t/500000"),
    _failing("lr_too_small", "mlp, decayed at once", "final", 1.0, {"schedule": "1"}, {"beta2": 0.95}, "mlp", 500, lr=1e-3, schedule="max(0, 1 - t/20)"),
    _failing("lr_too_small", "linear", "gap", 0.3, {"lr": 0.02}, {"beta1": 0.8}, "linear", 800, lr=1e-5),
    # Clipping takes the rare large gradients away, or all of it.
    _failing("clipping", "rare", "gap", 0.3, {"clip": None}, {"beta1": 0.8}, "rare", 2000, lr=0.01, beta2=0.9999, clip=0.05, often=0.01, size=3, batch=4),
    _failing("clipping", "rare, few", "gap", 0.3, {"clip": None}, {"eps": 1e-6}, "rare", 2000, lr=0.01, beta2=0.9999, clip=0.03, often=0.02, size=8, batch=2),
    _failing("clipping", "tanh, rare", "gap", 0.3, {"clip": None}, {"beta1": 0.8}, "tanh", 1500, kind="rare", lr=3e-3, beta2=0.9999, clip=0.02, often=0.02, noise=0.1),
    _failing("clipping", "conv", "final", 1.0, {"clip": 1.0}, {"beta2": 0.95}, "conv", 400, lr=1e-3, clip=1e-8),
    _failing("clipping", "gpt", "final", 3.2, {"clip": 1.0}, {"beta2": 0.95}, "gpt", 250, batch=8, lr=3e-3, clip=1e-8),
    # Rare large gradients are divided by their own size.
    _failing("skewed_noise", "rare", "gap", 0.3, {"beta2": 0.9999}, {"beta1": 0.8}, "rare", 2000, lr=0.003, beta2=0.9, often=0.01, batch=2),
    _failing("skewed_noise", "rare, 0.99", "gap", 0.3, {"batch": 512}, {"beta1": 0.8}, "rare", 2000, lr=0.003, beta2=0.95, often=0.004, batch=1),
    _failing("skewed_noise", "tanh", "gap", 0.3, {"beta2": 0.9999}, {"beta1": 0.8}, "tanh", 2000, kind="rare", lr=1e-3, beta2=0.9, often=0.01, batch=4, noise=0.1),
    _failing("skewed_noise", "rare, rmsprop", "gap", 0.3, {"beta2": 0.9999}, {"eps": 1e-6}, "rare", 2000, optimizer="RMSprop", beta1=0.0, lr=0.001, beta2=0.9, often=0.01, batch=2),
    # The weights' precision swallows the updates.
    _failing("lost_updates", "mlp", "final", 1.2, {"dtype": "float32"}, {"beta2": 0.95}, "mlp", 800, dtype="bfloat16", lr=1e-4),
    _failing("lost_updates", "conv", "final", 2.0, {"dtype": "float32"}, {"beta2": 0.95}, "conv", 600, dtype="bfloat16", lr=1e-4),
    _failing("lost_updates", "gpt", "final", 3.5, {"dtype": "float32"}, {"beta2": 0.95}, "gpt", 400, dtype="bfloat16", lr=1e-4, batch=8),
    _failing("lost_updates", "tanh", "final", 1.1, {"dtype": "float32"}, {"eps": 1e-7}, "tanh", 1200, dtype="bfloat16", lr=2e-4),
    # Steps that are not those of the stated optimizer.
    _failing("wrong_optimizer", "v lost, tanh", "worst", 3, {"event": ""}, {"eps": 1e-7}, "tanh", 900, lr=0.01, event="second lost", at=600),
    _failing("wrong_optimizer", "v lost, conv", "worst", 1.0, {"event": ""}, {"beta1": 0.8}, "conv", 500, lr=3e-3, event="second lost", at=310),
    _failing("wrong_optimizer", "v in wrong units, gpt", "worst", 3.2, {"event": ""}, {"weight_decay": 0.1}, "gpt", 300, batch=4, lr=3e-3, event="second scaled", by=1e-8, at=255),
    _failing("wrong_optimizer", "v in wrong units, mlp", "final", 0.5, {"event": ""}, {"beta2": 0.998}, "mlp", 500, lr=1e-3, event="second scaled", by=1e9, at=30),
    _failing("wrong_optimizer", "m in wrong units, conv", "worst", 1.0, {"event": ""}, {"beta2": 0.99}, "conv", 500, lr=3e-3, event="first scaled", by=1e4, at=330),
    _failing("wrong_optimizer", "count reset, tanh", "final", 0.6, {"optimizer": "AdamW"}, {"weight_decay": 0.01}, "tanh", 800, lr=0.02, beta1=0.99, optimizer="Uncorrected"),
    _failing("wrong_optimizer", "many steps in one, mlp", "final", 0.3, {"optimizer": "AdamW"}, {"beta2": 0.99}, "mlp", 400, lr=0.02, optimizer="Repeated"),
    # beta1^2 is not below beta2.
    _failing("beta1_beta2", "linear, rare inputs", "gap", 1.0, {"beta2": 0.99}, {"eps": 1e-6}, "linear", 1200, kind="rare", lr=0.02, beta1=0.99, beta2=0.5),
    _failing("beta1_beta2", "tanh", "final", 0.65, {"beta2": 0.999}, {"eps": 1e-6}, "tanh", 800, lr=0.03, beta1=0.95, beta2=0.3),
    _failing("beta1_beta2", "gpt", "final", 3.2, {"beta2": 0.95}, {"eps": 1e-7}, "gpt", 300, batch=4, lr=4e-3, beta1=0.9, beta2=0.2),
    _failing("beta1_beta2", "values", "worst", 0.13, {"beta2": 0.99}, {"eps": 1e-6}, "values", 800, lr=0.01, beta1=0.95, beta2=0.2),
    # Decay outweighs the steps.
    _failing("weight_decay", "tanh", "final", 1.0, {"weight_decay": 0.1}, {"beta2": 0.95}, "tanh", 600, lr=0.01, weight_decay=20.0),
    _failing("weight_decay", "conv", "final", 1.0, {"weight_decay": 0.1}, {"beta2": 0.95}, "conv", 400, lr=3e-3, weight_decay=30.0),
    _failing("weight_decay", "gpt", "final", 3.0, {"weight_decay": 0.1}, {"beta2": 0.95}, "gpt", 300, batch=8, lr=3e-3, weight_decay=20.0),
    _failing("weight_decay", "linear", "gap", 0.3, {"weight_decay": 0.0}, {"eps": 1e-6}, "linear", 600, lr=0.02, weight_decay=5.0),
    _failing("weight_decay", "mlp, coupled", "final", 1.0, {"weight_decay": 1e-4}, {"beta2": 0.95}, "mlp", 400, optimizer="Adam", lr=1e-3, weight_decay=1.0),
    # Not the optimizer.
    _failing("not_the_optimizer", "conv, bad inputs", "worst", 1.0, {"event": ""}, {"beta2": 0.95}, "conv", 500, lr=1e-3, event="inputs", by=20.0, at=350, length=15),
    _failing("not_the_optimizer", "tanh, bad targets", "worst", 10.0, {"event": ""}, {"beta2": 0.95}, "tanh", 700, lr=3e-3, event="targets", by=20.0, at=400, length=10),
    _failing("not_the_optimizer", "mlp, labels mixed", "worst", 1.0, {"event": ""}, {"beta2": 0.95}, "mlp", 600, lr=1e-3, event="labels", at=350, length=1000),
    _failing("not_the_optimizer", "gpt, labels mixed", "worst", 3.2, {"event": ""}, {"beta2": 0.95}, "gpt", 300, batch=4, lr=3e-3, event="labels", at=260, length=60),
    _failing("not_the_optimizer", "mlp, dead units", "final", 1.5, {"event": ""}, {"beta2": 0.95}, "mlp", 400, lr=1e-3, event="dead", by=30.0),
    _failing("not_the_optimizer", "conv, dead units", "final", 1.5, {"event": ""}, {"lr": 3e-3}, "conv", 300, lr=1e-3, event="dead", by=30.0),
    _failing("not_the_optimizer", "linear, bad targets", "worst", 100.0, {"event": ""}, {"beta1": 0.8}, "linear", 700, lr=0.01, event="targets", by=30.0, at=400, length=5),
]  # fmt: skip


def _healthy(name: str, task: str, steps: int, **options: Any) -> Case:
    return Case(f"healthy, {name}", Options(task, steps, **options))


def _cosine(steps: int, warm: int = 0) -> str:
    """Return a warm-up and half a cosine down to a tenth."""
    return f"min(1, t/{max(1, warm)}) * (0.55 + 0.45 * cos(pi * t / {steps}))"


_USUAL: Final = {
    "Adam": {"optimizer": "Adam"},
    "AdamW, 0.95": {"beta2": 0.95, "weight_decay": 0.1},
    "NAdam": {"optimizer": "NAdam"},
    "RMSprop": {"optimizer": "RMSprop", "beta1": 0.0, "beta2": 0.99},
    "Adamax": {"optimizer": "Adamax"},
    "AMSGrad": {"amsgrad": True},
    "cosine": {"schedule": _cosine(2000, 50), "clip": 1.0},
}

HEALTHY = [
    *(_healthy(f"mlp, {name}", "mlp", 2000, **options) for name, options in _USUAL.items()),
    *(_healthy(f"tanh, {name}", "tanh", 900, **{"lr": 3e-3} | options) for name, options in _USUAL.items()),
    *(_healthy(f"conv, {name}", "conv", 600, **{"lr": 2e-3} | options) for name, options in _USUAL.items()),
    *(_healthy(f"values, {name}", "values", 2000, **options) for name, options in _USUAL.items()),
    *(_healthy(f"linear, {name}", "linear", 900, **{"lr": 0.01, "noise": 1.0} | options) for name, options in list(_USUAL.items())[:4]),
    *(_healthy(f"policy, {name}", "policy", 900, **options) for name, options in list(_USUAL.items())[:4]),
    _healthy("mlp, Adagrad", "mlp", 900, optimizer="Adagrad", lr=0.02),
    _healthy("conv, batch norm", "conv", 900, kind="norm", lr=2e-3, weight_decay=0.05),
    _healthy("mlp, GenericAdam", "mlp", 900, optimizer="GenericAdam", lr="0.01/sqrt(t)", beta2="1 - 1/(t + 1)"),
    _healthy("tanh, inverse root", "tanh", 1200, lr=3e-3, schedule="min(1, sqrt(100/t))", beta2="1 - 1/(t + 10)"),
    _healthy("mlp, full batch", "mlp", 500, kind="points", batch=256),
    _healthy("tanh, few points, converged", "tanh", 1500, kind="points", batch=32, lr=1e-3, schedule="min(1, sqrt(300/t))"),
    _healthy("linear, full batch, converged", "linear", 1500, kind="points", size=100, batch=32, lr=1e-3),
    _healthy("rare targets, large batch", "rare", 1500, lr=0.003, often=0.05, batch=256),
    _healthy("tanh, clipped hard", "tanh", 900, lr=3e-3, clip=0.5),
    _healthy("mlp, batch of 4", "mlp", 1200, batch=4, lr=5e-4),
    _healthy("mlp, bfloat16 weights", "mlp", 600, dtype="bfloat16", lr=3e-3),
    _healthy("gpt, AdamW", "gpt", 400, batch=4, lr=3e-3, beta2=0.95, weight_decay=0.1, clip=1.0, schedule=_cosine(400, 40)),
    _healthy("gpt, Adam, constant", "gpt", 300, batch=4, lr=1e-3, optimizer="Adam"),
    _healthy("gpt, batch of 2", "gpt", 400, batch=2, lr=1e-3, beta2=0.999),
    _healthy("conv, restarts", "conv", 900, lr=2e-3, schedule="0.5 + 0.45 * cos(pi * t / 150)"),
    # Trainings of thousands of steps.
    _healthy("gpt, long", "gpt", 1500, batch=4, lr=2e-3, beta2=0.99, weight_decay=0.1, clip=1.0, schedule=_cosine(1500, 100)),
    _healthy("values, 8,000 steps", "values", 8000, lr=1e-3, clip=10.0),
    _healthy("values, 5,000 steps, eps 1e-5", "values", 5000, lr=3e-4, eps=1e-5, clip=0.5),
    _healthy("policy, 5,000 steps", "policy", 5000, lr=3e-4),
    _healthy("conv, 2,500 steps", "conv", 2500, lr=1e-3, weight_decay=0.05),
    _healthy("mlp, 4,000 steps, interpolated", "mlp", 4000, lr=1e-3),
    _healthy("lenet, Adam", "lenet", 1500, lr=1e-3, batch=32, optimizer="Adam"),
    _healthy("lenet, AdamW, cosine", "lenet", 1500, lr=2e-3, batch=32, beta2=0.99, weight_decay=0.05, schedule=_cosine(1500, 50)),
    _healthy("resnet, AdamW", "resnet", 300, lr=2e-3, batch=16, weight_decay=0.05),
]  # fmt: skip

_LATER: Final = [
    _failing("stale_second_moment", "recurrent, curriculum", "worst", 0.2, {"beta2": 0.95}, {"eps": 1e-13}, "recurrent", 1000, lr=0.02, beta2=0.9999, eps=1e-12, scale=_jump(650, 1e-5)),
    _failing("stale_second_moment", "contrast, loss reweighted", "worst", 1.35, {"beta2": 0.95}, {"eps": 1e-13}, "contrast", 900, lr=0.01, beta2=0.9999, eps=1e-12, scale=_jump(600, 1e-5)),
    _failing("free_fall", "autoencoder, few images", "worst", 1e-5, {"schedule": "min(1, sqrt(300/t))", "beta2": "max(0.99, 1 - 1/t)"}, {"weight_decay": 1e-4}, "auto", 4000, kind="points", batch=8, lr=3e-3, beta2=0.99),
    _failing("free_fall", "physics", "worst", 1e-4, {"schedule": "min(1, sqrt(300/t))", "beta2": "max(0.99, 1 - 1/t)"}, {"weight_decay": 1e-4}, "physics", 4000, batch=32, lr=3e-3, beta2=0.99),
    _failing("eps_too_large", "bag of tokens", "final", 1.2, {"eps": 1e-8}, {"beta2": 0.99}, "bag", 1200, lr=0.01, eps=0.1),
    _failing("eps_too_large", "recurrent", "final", 0.3, {"eps": 1e-8}, {"beta2": 0.99}, "recurrent", 1500, lr=5e-3, eps=30.0),
    _failing("eps_too_small", "clicks, inputs unused so far", "gap", 0.15, {"eps": 1e-8}, {"beta1": 0.8}, "clicks", 1500, kind="hidden", lr=0.03, beta2=0.99, eps=1e-20),
    _failing("lr_too_large", "vae", "final", 0.0, {"lr": 2e-3}, {"beta2": 0.95}, "vae", 800, lr=0.2),
    _failing("lr_too_large", "seq2seq", "final", 1.0, {"lr": 2e-3}, {"beta2": 0.95}, "seq2seq", 800, lr=0.05),
    _failing("lr_too_large", "dqn", "final", 0.02, {"lr": 1e-3}, {"beta2": 0.99}, "dqn", 1500, lr=0.5),
    _failing("lr_too_small", "seq2seq", "final", 1.5, {"lr": 2e-3}, {"eps": 1e-10}, "seq2seq", 800, lr=2e-6),
    _failing("lr_too_small", "denoise, warm-up of 100,000 steps", "final", 0.5, {"schedule": "min(1, t/100)"}, {"beta2": 0.95}, "denoise", 1500, lr=3e-3, schedule="min(1, t/10000000)"),
    _failing("clipping", "recurrent, after the loss was summed", "final", 0.4, {"clip": 1.0}, {"beta2": 0.99}, "recurrent", 1500, lr=5e-3, clip=1e-8),
    _failing("skewed_noise", "clicks, weighed", "gap", 0.3, {"beta2": 0.9999}, {"beta1": 0.8}, "clicks", 3000, kind="weighed", often=0.01, lr=3e-3, beta2=0.9, batch=4),
    _failing("lost_updates", "recurrent", "final", 0.6, {"dtype": "float32"}, {"beta2": 0.99}, "recurrent", 2000, lr=2e-4, dtype="bfloat16"),
    _failing("lost_updates", "denoise", "final", 0.55, {"dtype": "float32"}, {"beta2": 0.99}, "denoise", 2000, lr=1e-4, dtype="bfloat16"),
    _failing("wrong_optimizer", "vae, steps tenfold", "worst", 0.2, {"optimizer": "AdamW"}, {"beta2": 0.99}, "vae", 800, lr=0.015, optimizer="Tenfold"),
    _failing("wrong_optimizer", "seq2seq, v lost", "worst", 1.5, {"event": ""}, {"beta2": 0.99}, "seq2seq", 800, lr=3e-3, event="second lost", at=412),
    _failing("wrong_optimizer", "contrast, uphill", "final", 1.5, {"optimizer": "AdamW"}, {"beta2": 0.99}, "contrast", 800, lr=1e-3, optimizer="Uphill"),
    _failing("beta1_beta2", "seq2seq", "final", 1.0, {"beta2": 0.98}, {"eps": 1e-7}, "seq2seq", 1000, lr=2e-3, beta1=0.95, beta2=0.3),
    _failing("weight_decay", "vae", "final", 0.0, {"weight_decay": 0.01}, {"beta2": 0.95}, "vae", 800, lr=2e-3, weight_decay=20.0),
    _failing("weight_decay", "denoise, coupled", "final", 0.6, {"weight_decay": 1e-5}, {"beta2": 0.95}, "denoise", 1000, optimizer="Adam", lr=2e-3, weight_decay=0.3),
    _failing("not_the_optimizer", "vae, bad images", "worst", 1.0, {"event": ""}, {"beta2": 0.95}, "vae", 900, lr=2e-3, event="inputs", by=15.0, at=520, length=4),
    _failing("not_the_optimizer", "seq2seq, targets mixed", "worst", 1.5, {"event": ""}, {"beta2": 0.95}, "seq2seq", 1200, lr=2e-3, event="labels", at=810, length=40),
    _failing("not_the_optimizer", "recurrent, bad targets", "worst", 30.0, {"event": ""}, {"beta1": 0.8}, "recurrent", 1000, lr=3e-3, event="targets", by=10.0, at=700, length=6),
]  # fmt: skip

_HEALTHY_LATER: Final = [
    _healthy("bag of tokens", "bag", 3000, lr=3e-3),
    _healthy("bag of tokens, AdamW, 0.98", "bag", 2000, lr=0.01, beta2=0.98, weight_decay=0.01, schedule=_cosine(2000, 100)),
    _healthy("recurrent", "recurrent", 4000, lr=3e-3, clip=1.0),
    _healthy("recurrent, lstm, RMSprop", "recurrent", 3000, kind="lstm", optimizer="RMSprop", beta1=0.0, beta2=0.99, lr=1e-3),
    _healthy("vae", "vae", 4000, lr=1e-3),
    _healthy("autoencoder, few images, decaying", "auto", 3000, kind="points", batch=8, lr=1e-3, schedule=_cosine(3000, 20)),
    _healthy("autoencoder, Adamax", "auto", 3000, optimizer="Adamax", lr=2e-3),
    _healthy("contrast", "contrast", 3000, lr=1e-3, weight_decay=1e-4),
    _healthy("seq2seq, AdamW, 0.98", "seq2seq", 2500, lr=2e-3, beta2=0.98, eps=1e-9, schedule="min(t/200, sqrt(200/t))", clip=1.0),
    _healthy("actor, 10,000 steps", "actor", 10000, lr=7e-4, eps=1e-5, clip=0.5, batch=16),
    _healthy("actor, RMSprop", "actor", 4000, optimizer="RMSprop", beta1=0.0, beta2=0.99, eps=1e-5, lr=7e-4, clip=0.5, batch=16),
    _healthy("dqn, 10,000 steps", "dqn", 10000, lr=5e-4, clip=10.0),
    _healthy("gan", "gan", 5000, lr=5e-4, beta1=0.5, beta2=0.99, batch=64),
    _healthy("denoise", "denoise", 5000, lr=1e-3, beta2=0.99),
    _healthy("tuned, 1e-5", "tuned", 1500, lr=1e-5, weight_decay=0.01, schedule="max(0, 1 - t/1500)"),
    _healthy("tuned, 5e-5, one cycle", "tuned", 1500, lr=5e-5, schedule="min(t/150, max(0, (1500 - t)/1350))"),
    _healthy("labels wrong in part", "mixed", 3000, lr=1e-3),
    _healthy("labels wrong in part, autocast, one cycle", "mixed", 2000, kind="autocast", lr=5e-3, schedule="0.05 + 0.95 * min(t/600, max(0, (2000 - t)/1400))"),
    _healthy("four mini-batches a step", "micro", 1500, lr=2e-3, batch=8),
    _healthy("four mini-batches a step, cyclic", "micro", 2000, lr=3e-3, batch=8, schedule="0.5 + 0.49 * cos(pi * t / 200)"),
    _healthy("clicks", "clicks", 3000, lr=3e-3),
    _healthy("clicks, weighed a little", "clicks", 3000, kind="weighed", often=0.3, lr=1e-3, batch=64),
    _healthy("physics, decaying", "physics", 3000, lr=2e-3, batch=32, schedule=_cosine(3000, 50)),
    _healthy("vae, bfloat16 weights", "vae", 1500, lr=3e-3, dtype="bfloat16"),
]  # fmt: skip

FAILING += [replace(one, tuned=True) for one in _LATER]
HEALTHY += [replace(one, tuned=True) for one in _HEALTHY_LATER]
