"""What does the guarantee cost? Adam as people use it against the certified methods nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from generic_adam.experiments.study import Experiment, Line, Options, Study
from generic_adam.experiments.training import OptimizerSettings
from generic_adam.methods import Method, adam, certified_adam
from generic_adam.methods.algorithm import Algorithm
from generic_adam.methods.method import ScheduleLike
from generic_adam.methods.shapes import cosine_fall, warm_up
from generic_adam.methods.shipped import corrected_eps
from generic_adam.schedules import Schedule, as_schedule, bias_correction, sqrt
from generic_adam.theorems.advice import advise_algorithm
from generic_adam.theorems.certificate import certify_algorithm

RATE: Final = 0.001
"""The learning rate with which Adam is mostly used; the peak where there is a warm-up."""

EPS: Final = 1e-8
"""torch's default in Adam's denominator."""

LONG_HOLD: Final = 10_000
"""K of the certified method whose learning rate stays long; 1/(1 - theta) = 1,000 is the smallest."""

GPT_DECAY, GPT_LOWEST, GPT_BATCH = 0.1, 0.0001, 8
"""Weight decay, the last learning rate of the cosine, and windows in a step."""


def nearest(lr: ScheduleLike = RATE, theta: float = 0.999, keep: int | None = None) -> Method:
    """`certified_adam` without the bias correction, which the optimizer brings."""
    return certified_adam(lr=lr, theta=theta, K=keep, bias_correction=False)


def certified(label: str, method: Method, decay: float = 0.0) -> Line:
    """A method in torch's form: its alpha_t and theta_t, with the bias correction and eps of torch's Adam."""
    texts = (str(method.alpha), str(method.beta), str(method.theta))
    return Line(label, OptimizerSettings("generic-adam", *texts, EPS, corrected=True, decay=decay))


def network_lines(_study: Study, _options: Options, steps: int) -> Sequence[Line]:
    """Adam with a constant rate and with cosine decay, NAdam, and what takes Adam's place.

    The nearest certified method, which is `certified_adam`; the same with the learning rate held ten times as
    long as it has to be; and the constants that `advise` tunes to this number of steps.
    """
    cosine = cosine_fall(RATE, 0.0, Fraction(1), Fraction(steps + 1))
    tuned = [
        one.method
        for one in advise_algorithm(adam(lr=RATE, bias_correction=False), horizon=steps)
        if one.horizon
    ]
    return [
        Line("Adam, constant rate", OptimizerSettings("torch-adam", f"{RATE}", "0.9", "0.999", EPS)),
        Line("Adam, cosine decay", OptimizerSettings("torch-adam", str(cosine), "0.9", "0.999", EPS)),
        certified("certified Adam", nearest()),
        certified(f"certified Adam, K = {LONG_HOLD}", nearest(keep=LONG_HOLD)),
        *(certified("tuned to T", method) for method in tuned),
    ]


def gpt_lines(_study: Study, _options: Options, steps: int) -> Sequence[Line]:
    """AdamW as people use it, and the certified methods nearest to it, all with the same weight decay.

    AdamW with a constant rate, and with a warm-up over a twentieth of the run and half a cosine to a tenth;
    theta = 0.999 and 0.95 with each. Against them `certified_adam`, which is what `advise` proposes for the
    first; its proposals for the last, with nothing kept and with half of the run kept; `certified_adam` for
    the last, whose learning rate is kept as long and whose theta rises at once; and the last with such a
    theta and its learning rate untouched.
    """
    warm = Fraction(max(1, steps // 20))
    shape = warm_up(RATE, warm, cosine_fall(RATE, GPT_LOWEST, warm, Fraction(steps)))
    keep = max(20, steps // 2)
    advised = advise_algorithm(Method(shape, 0.9, 0.95), keep=keep)

    def adamw(label: str, alpha: Schedule, theta: str) -> Line:
        return Line(label, OptimizerSettings("torch-adamw", str(alpha), "0.9", theta, EPS, decay=GPT_DECAY))

    rising = OptimizerSettings(
        "generic-adam", str(shape), "0.9", "max(0.95, 1 - 1/t)", EPS, corrected=True, decay=GPT_DECAY
    )
    return [
        adamw("AdamW constant, 0.999", as_schedule(RATE), "0.999"),
        adamw("AdamW constant, 0.95", as_schedule(RATE), "0.95"),
        adamw("AdamW cosine, 0.999", shape, "0.999"),
        adamw("AdamW cosine, 0.95", shape, "0.95"),
        certified("certified Adam", nearest(), GPT_DECAY),
        certified("advice, 0.95", nearest(shape, 0.95), GPT_DECAY),
        certified(f"advice, 0.95, keep {keep}", advised[0].method, GPT_DECAY),
        certified(f"certified Adam, 0.95, K = {keep}", nearest(shape, 0.95, keep), GPT_DECAY),
        Line("theta rising", rising),
    ]


def algorithm_of(settings: OptimizerSettings) -> Algorithm:
    """The algorithm that a line runs, its weight decay left out: theorem E speaks of the rest.

    torch's form: alpha_t carries the correction sqrt(1 - prod theta)/(1 - prod beta), v_0 = 0, and eps is
    added to the corrected root.
    """
    beta, theta = as_schedule(settings.beta), as_schedule(settings.theta)
    rate = as_schedule(settings.alpha) * sqrt(bias_correction(theta)) / bias_correction(beta)
    eps = corrected_eps(settings.epsilon, theta)
    return Algorithm(Method(rate, beta, theta), initial_v=0, eps=eps)


def guarantees(study: Study, steps: int) -> list[tuple[str, list[str], list[list[str]]]]:
    """The three numbers of theorem E for each line at the end of its run, and its certificate for ever."""
    rows = []
    for line in study.lines:
        algorithm = algorithm_of(line.optimizer)
        found = certify_algorithm(algorithm, horizon=steps)
        told = found.horizon
        numbers = (told.noise, told.gap, told.drift) if told is not None else (None, None, None)
        parts = ["–" if value is None else format(value, ".3g") for value in numbers]
        rows.append([line.label, *parts, str(found.verdict)])
    return [("guarantees", ["method", "noise", "gap", "drift", "for ever"], rows)]


EXPERIMENTS: Final = {
    experiment.study.name: experiment
    for experiment in (
        Experiment(
            Study("lenet-cost", "lenet", 1, "mnist", 20, "costs"),
            network_lines,
            lambda _study, _curves: [],
            guarantees,
        ),
        Experiment(
            Study("resnet18-cost", "resnet18", 64, "cifar100", 100, "costs"),
            network_lines,
            lambda _study, _curves: [],
            guarantees,
        ),
        Experiment(
            Study("gpt-cost", "gpt", 128, "stdlib", 8, "costs", seeds=3, batch_size=GPT_BATCH),
            gpt_lines,
            lambda _study, _curves: [],
            guarantees,
        ),
    )
}
"""The studies of the cost, by the name that ``reproduce`` knows."""
