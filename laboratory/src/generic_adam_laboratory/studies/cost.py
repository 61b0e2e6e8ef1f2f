"""The cost of the guarantee: Adam as people use it against the certified methods nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from generic_adam.methods import Method, catalogue, certified_adam
from generic_adam.methods.algorithm import Algorithm
from generic_adam.methods.method import ScheduleLike
from generic_adam.methods.shapes import fall, warm_up
from generic_adam.schedules import Schedule, as_schedule, parse
from generic_adam.schedules.balls import rounded_up
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam_laboratory.runs.records import Table
from generic_adam_laboratory.studies.study import Curve, Experiment, Line, Options, Study
from generic_adam_laboratory.training import OptimizerSettings

RATE, LOWEST = 0.001, 0.0001
"""The learning rate with which Adam is mostly used, the peak of the cosine; and the cosine's last."""

EPS: Final = 1e-8
"""torch's default in Adam's denominator."""

DECAYS: Final = {"gpt": 0.1}
"""Weight decay where it is not torch's default for AdamW, 0.01."""


def lines(study: Study, _options: Options, steps: int) -> Sequence[Line]:
    """AdamW as people use it, and the certified methods nearest to it, all with the same weight decay.

    AdamW with a constant rate, and with a warm-up over a twentieth of the run and half a cosine to a tenth;
    theta = 0.999 and 0.95 with each. Against them `certified_adam` for the first; the changes that certify the
    last for ever, begun at once and after half of the run; `certified_adam` for the last, whose learning rate
    is kept as long and whose theta rises at once; and the last with such a theta and its learning rate
    untouched.
    """
    decay = DECAYS.get(study.network, 0.01)
    warm = Fraction(max(1, steps // 20))
    shape = warm_up(RATE, warm, fall("cosine", RATE, LOWEST, warm, Fraction(steps)))
    keep = max(20, steps // 2)

    def adamw(label: str, alpha: Schedule, theta: str) -> Line:
        return Line(label, OptimizerSettings("torch-adamw", str(alpha), "0.9", theta, EPS, decay=decay))

    def generic(label: str, method: Method) -> Line:
        """alpha_t and theta_t with the bias correction and eps of torch's Adam."""
        texts = (str(method.alpha), str(method.beta), str(method.theta))
        return Line(label, OptimizerSettings("generic-adam", *texts, EPS, corrected=True, decay=decay))

    def falling(since: int, theta: str) -> Method:
        return Method(parse(f"({shape}) * min(1, sqrt({since} / t))"), 0.9, theta)

    def certified(lr: ScheduleLike, theta: float, hold: int | None = None) -> Method:
        return certified_adam(lr=lr, theta=theta, K=hold, bias_correction=False)

    return [
        adamw("AdamW constant, 0.999", as_schedule(RATE), "0.999"),
        adamw("AdamW constant, 0.95", as_schedule(RATE), "0.95"),
        adamw("AdamW cosine, 0.999", shape, "0.999"),
        adamw("AdamW cosine, 0.95", shape, "0.95"),
        generic("certified Adam", certified(RATE, 0.999)),
        generic("advice, 0.95", falling(20, "max(0.95, 1 - 1 / t)")),
        generic(f"advice, 0.95, keep {keep}", falling(keep, f"max(0.95, 1 - {Fraction(keep, 20)} / t)")),
        generic(f"certified Adam, 0.95, K = {keep}", certified(shape, 0.95, keep)),
        generic("theta rising", Method(shape, 0.9, "max(0.95, 1 - 1/t)")),
    ]


def algorithm_of(settings: OptimizerSettings) -> Algorithm:
    """Return the algorithm of a line, its weight decay left out: Theorem E speaks of the rest."""
    return catalogue.adamw(
        lr=settings.alpha, beta=settings.beta, theta=settings.theta, eps=settings.epsilon, weight_decay=0
    )


def guarantees(study: Study, steps: int, _curves: Sequence[Curve] = ()) -> dict[str, Table]:
    """Tabulate Theorem E's three numbers of each line at the end of its run, and its certificate, without decay."""
    rows = []
    for line in study.lines:
        found = certify_algorithm(algorithm_of(line.optimizer), horizon=steps)
        told = found.horizon
        numbers = (told.noise, told.gap, told.drift) if told is not None else (None, None, None)
        parts = ["–" if value is None else rounded_up(value, 3) for value in numbers]
        rows.append([line.label, *parts, str(found.verdict)])
    return {"guarantees.md": (["method", "noise", "gap", "drift", "in the long run, without decay"], rows)}


EXPERIMENTS: Final = {
    study.name: Experiment(study, lines, notes=guarantees)
    for study in (
        Study("lenet-cost", "lenet", 1, "mnist", 20, "costs", seeds=3),
        Study("resnet18-cost", "resnet18", 64, "cifar100", 100, "costs", seeds=3),
        Study("gpt-cost", "gpt", 128, "stdlib", 8, "costs", seeds=3, batch_size=8),
    )
}
"""The studies of the cost, by the name that ``reproduce`` knows."""
