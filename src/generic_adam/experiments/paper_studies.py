"""The paper's studies of networks (Figures 2 to 4), and the number that it never states: v_0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Final

from generic_adam.experiments.records import Claim
from generic_adam.experiments.study import (
    Curve,
    Experiment,
    Line,
    Options,
    Study,
    by_method,
    initial_values,
    last_epoch,
    spread,
)
from generic_adam.experiments.training import OptimizerSettings
from generic_adam.extras import from_extra
from generic_adam.methods import adam_to_adaema

BASE_RATE: Final = "0.001/sqrt(t)"
"""alpha_t of all seven methods in the paper's Figures 2 and 3."""

LARGE_RATE: Final = "0.001 if t < 2500 else 0.01/sqrt(t)"
"""alpha_t of the paper's additional study (Figure 4)."""

PATH: Final = tuple(Fraction(quarter, 4) for quarter in range(5))
"""r on the path from Adam to AdaEMA."""

INITIAL_VS: Final = (1e-8, 1e-4)
"""Values of v_0 that the figures compare; the paper does not state its own."""

SWEPT: Final = (1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2)
"""Values of v_0 in the sweep."""

CONSTANT_THETA: Final = ("r = 0", "AMSGrad")
"""The two that the paper calls slowest."""

SENSITIVE, INSENSITIVE = 2.0, 1.25
"""Losses along the path differ "extremely" if the largest is twice the smallest, hardly within a quarter."""


def path_line(alpha: str, r: Fraction, initial_v: float) -> Line:
    """Generic Adam with beta = 0.9 and theta_t = 1 - (0.001 + 0.999 r)/t^r.

    For r = 1 theta_1 = 0: the first step wipes v_0 out, and one run serves every v_0.

    Args:
        alpha: alpha_t as text.
        r: the place on the path.
        initial_v: v_0.
    """
    # Written as in 0.1, whose checkpoints go on.
    theta = str(adam_to_adaema(r=float(r)).theta).replace(" / ", "/")
    start = 0.0 if r == 1 else initial_v
    method = OptimizerSettings("generic-adam", alpha, "0.9", theta, start)
    return Line(f"r = {float(r):g}", method, r, start or None)


def paper_lines(alpha: str, initial_v: float) -> tuple[Line, ...]:
    """The seven methods of a figure: five r, RMSProp with theta_t = 1 - 1/t, AMSGrad with theta = 0.999."""
    return (
        *(path_line(alpha, r, initial_v) for r in PATH),
        Line("RMSProp", OptimizerSettings("generic-adam", alpha, "0", "1 - 1/t", 0.0)),
        Line(
            "AMSGrad",
            OptimizerSettings("generic-adam", alpha, "0.9", "0.999", initial_v, amsgrad=True),
            initial_v=initial_v,
        ),
    )


def corrected_adam(alpha: str) -> Line:
    """Kingma and Ba's Adam at the same rate: r = 0, but v_0 = 0, and with their bias correction.

    It shows how much of a difference between r = 0 and the rest is the correction's and v_0's, not theta's.
    """
    corrected = f"({alpha}) * sqrt(bias_correction(0.999)) / bias_correction(0.9)"
    return Line("Adam, corrected", OptimizerSettings("generic-adam", corrected, "0.9", "0.999", 0.0))


def further_lines(alpha: str) -> tuple[Line, ...]:
    """What the paper names and does not run, at the same rate: NAdam, and SGD with and without momentum."""
    return (
        Line("NAdam", OptimizerSettings("torch-nadam", alpha, "0.9", "0.999")),
        Line("SGD", OptimizerSettings("torch-sgd", f"100 * ({alpha})", "0", "0")),
        Line("SGD, momentum", OptimizerSettings("torch-sgd", f"10 * ({alpha})", "0.9", "0")),
    )


def _figure(alpha: str) -> Callable[[Study, Options, int], Sequence[Line]]:
    def lines(_study: Study, options: Options, _steps: int) -> Sequence[Line]:
        found = [line for value in options.initial_vs or INITIAL_VS for line in paper_lines(alpha, value)]
        wanted = [line for line in further_lines(alpha) if line.label in options.only]
        return [*found, *([corrected_adam(alpha)] if options.corrected else []), *wanted]

    return lines


def _sweep(_study: Study, options: Options, _steps: int) -> Sequence[Line]:
    values = options.initial_vs or SWEPT
    return [path_line(BASE_RATE, r, value) for value in values for r in (Fraction(0), Fraction(1))]


def study_claims(study: Study, curves: Sequence[Curve]) -> list[Claim]:
    """Judge the paper's sentences for each v_0 of a study, after its last epoch.

    A verdict is that of every seed; where seeds disagree it is unclear. The numbers beside it are medians.

    Args:
        study: for its source in the paper.
        curves: its records.
    """
    return [claim for value in initial_values(curves) for claim in _claims_at(study.source, curves, value)]


def _claims_at(source: str, curves: Sequence[Curve], initial_v: float) -> list[Claim]:
    epoch = last_epoch(curves)
    here = [curve for curve in curves if curve.initial_v in {None, initial_v}]
    # The paper compares its seven and no others.
    seven = [curve for curve in here if curve.r is not None or curve.method in {"RMSProp", "AMSGrad"}]
    labels = {curve.r: curve.method for curve in seven if curve.r is not None}
    path = [labels[r] for r in sorted(labels)]
    seeds = sorted({curve.seed for curve in seven})
    where = f"(v_0 = {initial_v:g}, epoch {epoch})"

    def ends(measure: str, seed: int) -> dict[str, float]:
        found = {c.method: c.after(epoch, measure) for c in seven if c.seed == seed}
        # What stopped being a number is the worst there is; nan would be in no order at all.
        worst = math.inf if measure == "train_loss" else -math.inf
        return {name: worst if math.isnan(value) else value for name, value in found.items()}

    losses = [ends("train_loss", seed) for seed in seeds]
    accuracies = [ends("test_accuracy", seed) for seed in seeds]
    spreads = [_ratio([loss[r] for r in path]) for loss in losses]
    correlations = [
        rank_correlation([loss[r] for r in path], [accuracy[r] for r in path])
        for loss, accuracy in zip(losses, accuracies, strict=True)
    ]
    is_whole = len(path) == len(PATH) and {c.method for c in seven} >= {"RMSProp", "AMSGrad"}

    def claim(sentence: str, verdicts: Sequence[str], evidence: str) -> Claim:
        agreed = verdicts[0] if len(set(verdicts)) == 1 else "unclear"
        return Claim(f"{sentence} {where}", source, agreed, evidence)

    positive = [labels[r] for r in sorted(labels) if r > 0]
    found = [
        claim(
            sentence,
            [_order([loss[r] for r in names]) for loss in losses],
            f"training loss along {', '.join(names)}: {_medians(losses, names, '.4f')}",
        )
        for sentence, names in (
            ("Larger r trains faster", path),
            ("Larger r > 0 trains faster", positive),
        )
    ] + [
        claim(
            "Convergence is extremely sensitive to theta_t",
            [_sensitivity(one) for one in spreads],
            f"largest over smallest training loss along the path: {spread(spreads, '.2f')}",
        ),
        claim(
            "A smaller training loss goes with a higher test accuracy along the path",
            ["supported" if c <= -0.9 else "contradicted" if c >= 0 else "unclear" for c in correlations],
            f"rank correlation of the two over the {len(path)} r: {spread(correlations, '.2f')}",
        ),
    ]
    if not is_whole:  # of some methods nothing can be said about the last two
        return found if len(path) > 2 else found[:1]
    return [
        claim(
            "AMSGrad and Adam (r = 0) decrease the training loss slowest",
            [_last_two(loss, largest=True) for loss in losses],
            "training loss: " + _listed(losses, ".4f"),
        ),
        claim(
            "AMSGrad and Adam (r = 0) show the worst test accuracy",
            [_last_two(accuracy, largest=False) for accuracy in accuracies],
            "test accuracy: " + _listed(accuracies, ".4f"),
        ),
        *found,
    ]


def _last_two(values: Mapping[str, float], *, largest: bool) -> str:
    """Supported if the last two are those named, contradicted if neither is."""
    last = set(sorted(values, key=lambda name: values[name], reverse=largest)[:2])
    return ("contradicted", "unclear", "supported")[len(last & set(CONSTANT_THETA))]


def _order(losses: Sequence[float]) -> str:
    """Supported if the losses fall along r, contradicted if they rise, unclear if they do neither."""
    pairs = list(pairwise(losses))
    if all(a > b for a, b in pairs):
        return "supported"
    return "contradicted" if all(a < b for a, b in pairs) else "unclear"


def _ratio(losses: Sequence[float]) -> float:
    least = min(losses)
    return max(losses) / least if 0 < least < math.inf else math.inf


def _sensitivity(ratio: float) -> str:
    return "supported" if ratio >= SENSITIVE else "contradicted" if ratio <= INSENSITIVE else "unclear"


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; no variation counts as 0."""
    with from_extra("experiments"):
        from scipy.stats import rankdata

    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0


def _medians(values: Sequence[Mapping[str, float]], names: Sequence[str], form: str) -> str:
    return ", ".join(spread([one[name] for one in values], form) for name in names)


def _listed(values: Sequence[Mapping[str, float]], form: str) -> str:
    ordered = sorted(values[0], key=lambda name: median(one[name] for one in values))
    return ", ".join(f"{name}: {spread([one[name] for one in values], form)}" for name in ordered)


def sweep_claims(study: Study, curves: Sequence[Curve]) -> list[Claim]:
    """The paper's order of Adam and AdaEMA as a function of v_0."""
    epoch, found = last_epoch(curves), []
    for value in initial_values(curves):
        runs = by_method(curves, value)
        adam, adaema = ([c.after(epoch, "train_loss") for c in runs[f"r = {r}"]] for r in (0, 1))
        slower = [a > b for a, b in zip(adam, adaema, strict=True)]
        found.append(
            Claim(
                f"AdaEMA (r = 1) trains faster than Adam (r = 0) (v_0 = {value:g}, epoch {epoch})",
                study.source,
                "supported" if all(slower) else "unclear" if any(slower) else "contradicted",
                f"training loss of r = 0: {spread(adam, '.5f')}, of r = 1: {spread(adaema, '.5f')}",
            )
        )
    return found


EXPERIMENTS: Final = {
    experiment.study.name: experiment
    for experiment in (
        Experiment(
            Study("lenet", "lenet", 1, "mnist", 100, source="Section 5.2, Figure 2"),
            _figure(BASE_RATE),
            study_claims,
        ),
        Experiment(
            Study("resnet18", "resnet18", 64, "cifar100", 100, source="Section 5.2, Figure 3"),
            _figure(BASE_RATE),
            study_claims,
        ),
        Experiment(
            Study("resnet18-large-lr", "resnet18", 64, "cifar100", 100, source="Supplement, Figure 4"),
            _figure(LARGE_RATE),
            study_claims,
        ),
        Experiment(
            Study("lenet-v0", "lenet", 1, "mnist", 20, "initial v", source="Section 5.2, Figure 2"),
            _sweep,
            sweep_claims,
        ),
    )
}
"""The studies of the paper, by the name that ``reproduce`` knows."""
