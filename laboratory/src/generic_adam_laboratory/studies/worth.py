"""Worth it? The changes that `advise` and the folklore propose for an AdamW run, and two ways to draw batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Final

from generic_adam.methods import Method
from generic_adam.methods.shapes import fall, warm_up
from generic_adam.schedules import Schedule, parse
from generic_adam_laboratory.runs.records import Table
from generic_adam_laboratory.studies.paper_studies import BASE_RATE, INITIAL_VS, path_line
from generic_adam_laboratory.studies.study import Curve, Experiment, Line, Options, Study, by_method, spread
from generic_adam_laboratory.training import OptimizerSettings

RATE, EPS = 0.001, 1e-8
"""The peak of the learning rate, and torch's eps."""

DECAYS: Final = {"gpt": 0.1}
"""Weight decay where it is not torch's default for AdamW, 0.01."""

SHUFFLED, REPLACED = "shuffled", "with replacement"
"""Two ways to draw batches: every sample once an epoch (Theorem RR), or each from all (the other theorems)."""


def cosine(rate: float, steps: int) -> Schedule:
    """Warm up over a twentieth of the run, then half a cosine to a tenth."""
    warm = Fraction(max(1, steps // 20))
    return warm_up(rate, warm, fall("cosine", rate, rate / 10, warm, Fraction(steps)))


def changes(study: Study, _options: Options, steps: int) -> Sequence[Line]:
    """Lay AdamW with a cosine and beta2 = 0.95 beside each change of it: beta2, eps, a rising beta2, and advice."""
    decay = DECAYS.get(study.network, 0.01)
    shape = cosine(RATE, steps)
    keep = 3 * steps // 4

    def adamw(label: str, theta: str, eps: float = EPS) -> Line:
        return Line(label, OptimizerSettings("torch-adamw", str(shape), "0.9", theta, eps, decay=decay))

    def generic(label: str, alpha: Schedule, theta: str) -> Line:
        method = Method(alpha, 0.9, theta)
        texts = (str(method.alpha), str(method.beta), str(method.theta))
        return Line(label, OptimizerSettings("generic-adam", *texts, EPS, corrected=True, decay=decay))

    kept = parse(f"({shape}) * min(1, sqrt({keep}/t))")
    return [
        adamw("AdamW cosine, 0.95", "0.95"),
        adamw("AdamW cosine, 0.98", "0.98"),
        adamw("AdamW cosine, 0.999", "0.999"),
        adamw("AdamW cosine, 0.95, eps 1e-6", "0.95", 1e-6),
        generic("theta rising", shape, "max(0.95, 1 - 1/t)"),
        generic("advice, three quarters kept", kept, f"max(0.95, 1 - (1 - 0.95)*{keep}/t)"),
    ]


def worth(_study: Study, steps: int, curves: Sequence[Curve]) -> dict[str, Table]:
    """Tell each change's last test loss against the first line's own seed, and when it meets that line's last loss."""
    (first, *others) = by_method(curves, None).items()
    ends = {run.seed: run.records[-1].test_loss for run in first[1]}
    rows = []
    for label, runs in others:
        shared = [run for run in runs if run.seed in ends]
        shares = [100 * (run.records[-1].test_loss / ends[run.seed] - 1) for run in shared]
        met = [_met(run, ends[run.seed], steps) for run in shared]
        there = [step for step in met if step is not None]
        when = (
            f"{median(there):,.0f} ({min(there):,} to {max(there):,})"
            if len(there) == len(met)
            else "not in every seed"
        )
        rows.append([label, spread(shares, "+.2f"), when])
    return {
        "worth.md": (
            ["change", f"last test loss against {first[0]}, %", f"step of {steps:,} at which it is as low"],
            rows,
        )
    }


def _met(run: Curve, loss: float, steps: int) -> int | None:
    """Find the step at which the test loss first is as low as `loss`, on straight lines between epochs."""
    each = steps // len(run.records)
    losses = [record.test_loss for record in run.records]
    for epoch, (before, after) in enumerate(pairwise([losses[0], *losses]), 1):
        if after <= loss:
            share = 1 if before == after else (before - loss) / (before - after)
            return round(each * (epoch - 1 + share))
    return None


def orders(_study: Study, _options: Options, _steps: int) -> Sequence[Line]:
    """List r = 0 and r = 1 of the paper's Figure 2, each in shuffled epochs and with replacement."""
    return [
        replace(line, label=f"{line.label}, {how}", initial_v=None, replacement=how == REPLACED)
        for line in (path_line(BASE_RATE, Fraction(r), INITIAL_VS[0]) for r in (0, 1))
        for how in (SHUFFLED, REPLACED)
    ]


def orders_apart(_study: Study, _steps: int, curves: Sequence[Curve]) -> dict[str, Table]:
    """Tell how far shuffled epochs end from sampling with replacement, on the same seed, in percent."""
    runs, rows = by_method(curves, None), []
    for r in (0, 1):
        pairs = [runs.get(f"r = {r}, {how}", []) for how in (SHUFFLED, REPLACED)]
        ends = [{run.seed: run.records[-1] for run in found} for found in pairs]
        shared = [(ends[0][seed], ends[1][seed]) for seed in ends[0] if seed in ends[1]]
        if shared:
            losses = [
                spread([100 * (getattr(a, name) / getattr(b, name) - 1) for a, b in shared], "+.1f")
                for name in ("train_loss", "test_loss")
            ]
            right = spread([100 * (a.test_accuracy - b.test_accuracy) for a, b in shared], "+.2f")
            rows.append([f"r = {r}", *losses, right])
    heads = ["method", "training loss, %", "test loss, %", "test accuracy, points"]
    return {"orders.md": (heads, rows)}


EXPERIMENTS: Final = {
    "lenet-orders": Experiment(
        Study("lenet-orders", "lenet", 1, "mnist", 10, "costs", seeds=3), orders, notes=orders_apart
    ),
    **{
        study.name: Experiment(study, changes, notes=worth)
        for study in (
            Study("lenet-changes", "lenet", 1, "mnist", 20, "costs", seeds=3),
            Study("resnet18-changes", "resnet18", 4, "cifar100", 2, "costs", seeds=3),
            Study("gpt-changes", "gpt", 64, "stdlib", 8, "costs", seeds=3, batch_size=8),
        )
    },
}
"""The studies of changes and of drawing, by the name that ``reproduce`` knows."""
