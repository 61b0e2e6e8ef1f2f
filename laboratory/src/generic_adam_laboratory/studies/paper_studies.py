"""The paper's studies of networks (Figures 2 to 4), and the number that it never states: v_0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Final

import numpy as np

import generic_adam as ga
from generic_adam.methods import adam_to_adaema, power_family
from generic_adam.schedules import as_schedule
from generic_adam_laboratory import networks
from generic_adam_laboratory.data.datasets import Dataset, Text
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.runs.records import Claim
from generic_adam_laboratory.studies.study import (
    MEASURES,
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
from generic_adam_laboratory.training import BATCH_SIZE, OptimizerSettings

with for_training():
    from torch import nn

BASE_RATE: Final = "0.001/sqrt(t)"
"""alpha_t of all seven methods in the paper's Figures 2 and 3."""

LARGE_RATE: Final = "0.001 if t < 2500 else 0.01/sqrt(t)"
"""alpha_t of the paper's additional study (Figure 4)."""

UNCUT: Final = "r = {:g}, no cut-off"
"""r with 0.01/sqrt(t) from the first step on, which the paper's additional study avoids."""

PATH: Final = tuple(Fraction(quarter, 4) for quarter in range(5))
"""r on the path from Adam to AdaEMA."""

INITIAL_VS: Final = (1e-8, 1e-4)
"""Values of v_0 that the figures compare; the paper does not state its own."""

SWEPT: Final = (1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2)
"""Values of v_0 in the sweep."""

CONSTANT_THETA: Final = {"r = 0", "AMSGrad"}
"""Both methods that the paper calls slowest."""

CERTIFIED_RATES: Final = ["T^(-1/8)", "T^(-1/4)", "T^(-3/8)", "T^(-1/2) log T"]
"""The rates of alpha_t = c/sqrt(t) along r > 0, each better than the one before."""

CORRECTED: Final = "Adam, corrected"
"""Adam with its own start and correction."""

SENSITIVE, INSENSITIVE = 2.0, 1.25
"""Losses along the path differ "extremely" if the largest is twice the smallest, hardly within a quarter."""

WELL: Final = 0.95
"""A method works well if this share of the test images is right."""


def path_line(alpha: str, r: Fraction, initial_v: float) -> Line:
    """Make the line of Generic Adam with beta = 0.9 and theta_t = 1 - (0.001 + 0.999 r)/t^r.

    For r = 1 theta_1 = 0: the first step wipes v_0 out, and one run serves every v_0.
    """
    # Written as in 0.1, whose checkpoints go on.
    theta = str(adam_to_adaema(r=float(r)).theta).replace(" / ", "/")
    start = 0.0 if r == 1 else initial_v
    method = OptimizerSettings("generic-adam", alpha, "0.9", theta, start)
    return Line(f"r = {float(r):g}", method, r, start or None)


def paper_lines(alpha: str, initial_v: float) -> tuple[Line, ...]:
    """List the seven methods of a figure: five r, RMSProp with theta_t = 1 - 1/t, AMSGrad with theta = 0.999."""
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
    return Line(CORRECTED, OptimizerSettings("generic-adam", corrected, "0.9", "0.999", 0.0))


def further_lines(alpha: str, steps: int, initial_v: float) -> tuple[Line, ...]:
    """List methods that the paper names and does not run: NAdam, SGD (with momentum), AdaGrad; the uncut Figure 4.

    Stagewise AdaGrad (Chen et al. 2019) is torch's with a rate that falls from stage to stage, 0.01/sqrt(j) in
    the j-th of four; what else is published, a proximal term and the mean of a stage's points, is left out.
    """
    stage = max(1, steps // 4)
    rate = "0.01/sqrt(4)"
    for number in (3, 2, 1):
        rate = f"0.01/sqrt({number}) if t < {number * stage + 1} else ({rate})"
    uncut = [path_line("0.01/sqrt(t)", r, initial_v) for r in (PATH[0], PATH[-1]) if alpha == LARGE_RATE]
    return (
        Line("AdaGrad in stages", OptimizerSettings("torch-adagrad", rate, "0", "0")),
        Line("NAdam", OptimizerSettings("torch-nadam", alpha, "0.9", "0.999")),
        Line("SGD", OptimizerSettings("torch-sgd", f"100 * ({alpha})", "0", "0")),
        Line("SGD, momentum", OptimizerSettings("torch-sgd", f"10 * ({alpha})", "0.9", "0")),
        *(replace(line, label=UNCUT.format(float(line.r or 0)), r=None) for line in uncut),
    )


def _figure(alpha: str) -> Callable[[Study, Options, int], Sequence[Line]]:
    def lines(_study: Study, options: Options, steps: int) -> Sequence[Line]:
        values = options.epsilon or INITIAL_VS
        found = [line for value in values for line in paper_lines(alpha, value)]
        wanted = [line for line in further_lines(alpha, steps, values[0]) if line.label in options.only]
        return [*found, *([corrected_adam(alpha)] if options.corrected else []), *wanted]

    return lines


def _sweep(_study: Study, options: Options, _steps: int) -> Sequence[Line]:
    values = options.epsilon or SWEPT
    return [path_line(BASE_RATE, r, value) for value in values for r in (Fraction(0), Fraction(1))]


def study_claims(study: Study, curves: Sequence[Curve]) -> list[Claim]:
    """Judge the paper's sentences for each v_0 of a study, after its last epoch.

    A verdict is that of every seed; where seeds disagree it is unclear. The numbers beside it are medians.
    """
    found = [claim for value in initial_values(curves) for claim in _claims_at(study.source, curves, value)]
    return [*found, *_named(curves), *([_cut_off(curves)] if _has_cut_off(study) else [])]


def _agreed(holds: Sequence[bool], opposite: Sequence[bool] | None = None) -> str:
    """Return the verdict of every seed; by default a seed in which a sentence does not hold says the opposite."""
    opposite = [not one for one in holds] if opposite is None else opposite
    return "supported" if holds and all(holds) else "contradicted" if opposite and all(opposite) else "unclear"


def _end(curve: Curve, epoch: int, measure: str) -> float:
    """Return a measure after an epoch; nan counts as the worst, for it would be in no order."""
    value = curve.after(epoch, measure)
    return value if not math.isnan(value) else -math.inf if measure == "test_accuracy" else math.inf


def _claims_at(source: str, curves: Sequence[Curve], initial_v: float) -> list[Claim]:
    epoch = last_epoch(curves)
    here = [curve for curve in curves if curve.initial_v in {None, initial_v}]
    # The paper compares its seven and no others.
    seven = [curve for curve in here if curve.r is not None or curve.method in {"RMSProp", "AMSGrad"}]
    labels = {curve.r: curve.method for curve in seven if curve.r is not None}
    path, positive = [labels[r] for r in sorted(labels)], [labels[r] for r in sorted(labels) if r > 0]
    found: list[Claim] = []

    def ends(measure: str) -> list[dict[str, float]]:
        """List the last values of each seed that has them all."""
        found: dict[int, dict[str, float]] = {}
        for curve in sorted(seven, key=lambda one: one.seed):
            found.setdefault(curve.seed, {})[curve.method] = _end(curve, epoch, measure)
        return [one for one in found.values() if len(one) == max(map(len, found.values()))]

    def claim(sentence: str, evidence: str, *verdict: Sequence[bool]) -> None:
        told = f"{sentence} (v_0 = {initial_v:g}, epoch {epoch})"
        found.append(Claim(told, source, _agreed(*verdict), evidence))

    losses, accuracies = ends("train_loss"), ends("test_accuracy")
    is_whole = len(path) == len(PATH) and {c.method for c in seven} >= {"RMSProp", "AMSGrad"}
    for says, name, values, sign in (
        ("decrease the training loss slowest", "training loss", losses, -1),
        ("show the worst test accuracy", "test accuracy", accuracies, 1),
    ):
        if is_whole:  # of some methods nothing can be said about the last two
            last = [sorted(one, key=lambda label: sign * one[label])[:2] for one in values]
            theirs = [len(CONSTANT_THETA & set(two)) for two in last]
            by_median = sorted(values[0], key=lambda label: median(one[label] for one in values))
            told = ", ".join(f"{label}: {spread([one[label] for one in values], '.4f')}" for label in by_median)
            of_both = [count == 2 for count in theirs], [count == 0 for count in theirs]
            claim(f"AMSGrad and Adam (r = 0) {says}", f"{name}: {told}", *of_both)
    for says, names in (("Larger r trains faster", path), ("Larger r > 0 trains faster", positive)):
        if len(names) > 1 and (names is path or len(path) > 2):
            pairs = [[(one[a], one[b]) for a, b in pairwise(names)] for one in losses]
            told = ", ".join(spread([one[label] for one in losses], ".4f") for label in names)
            order = [all(a > b for a, b in one) for one in pairs], [all(a < b for a, b in one) for one in pairs]
            claim(says, f"training loss along {', '.join(names)}: {told}", *order)
    if len(path) > 2:
        along = [[one[label] for label in path] for one in losses]
        ratios = [max(one) / min(one) if min(one) > 0 else math.inf for one in along]  # all lost: inf/inf, nan
        claim(
            "Convergence is extremely sensitive to theta_t",
            f"largest over smallest training loss along the path: {spread(ratios, '.2f')}",
            [one >= SENSITIVE for one in ratios],
            [one <= INSENSITIVE for one in ratios],
        )
        right = [[one[label] for label in path] for one in accuracies]
        correlations = [rank_correlation(a, b) for a, b in zip(along, right, strict=True)]
        claim(
            "A smaller training loss goes with a higher test accuracy along the path",
            f"rank correlation of the two over the {len(path)} r: {spread(correlations, '.2f')}",
            [one <= -0.9 for one in correlations],
            [one >= 0 for one in correlations],
        )
    if is_whole:  # whether constant theta is slow with its own start and correction, against every r > 0 of a seed
        corrected = {c.seed: _end(c, epoch, "train_loss") for c in curves if c.method == CORRECTED}
        others = [c for c in here if c.r and c.seed in corrected]
        behind = [
            all(loss > _end(c, epoch, "train_loss") for c in others if c.seed == seed)
            for seed, loss in corrected.items()
            if any(c.seed == seed for c in others)
        ]
        told = "constant theta without the effect of v_0 (--corrected) was not run"
        if behind:
            said = ", ".join(f"{c.method}: {_end(c, epoch, 'train_loss'):.4f}" for c in others)
            ours = spread(list(corrected.values()), ".4f")
            told = f"training loss of constant theta with v_0 = 0 and bias correction: {ours}; {said}"
        claim("A possible reason is the constant theta of both", told, behind)
    return found


def _named(curves: Sequence[Curve]) -> list[Claim]:
    """Judge the introduction's sentences on methods that the paper names and does not run, where they were run."""
    epoch, runs = last_epoch(curves), by_method(curves, None)
    found = []
    for says, names in (
        ("RMSProp, Adam and Nadam work well for training deep neural networks", ("RMSProp", "r = 0", "NAdam")),
        ("Stagewise AdaGrad works well in the non-convex stochastic setting", ("AdaGrad in stages",)),
    ):
        if names[-1] in runs:
            right = {label: [_end(c, epoch, "test_accuracy") for c in runs[label]] for label in names if label in runs}
            told = ", ".join(f"{label}: {spread(values, '.2%')}" for label, values in right.items())
            well = [value >= WELL for values in right.values() for value in values]
            found.append(Claim(says, "Section 1", _agreed(well, []), f"test accuracy after epoch {epoch}: {told}"))
    losses = {label: [_end(c, epoch, "train_loss") for c in values] for label, values in runs.items()}
    others = [value for label, values in losses.items() if not label.startswith("SGD") for value in values]
    if "SGD" in runs and others:
        behind = [value > max(others) for value in losses["SGD"]]
        told = ", ".join(f"{label}: {spread(values, '.4f')}" for label, values in losses.items())
        found.append(
            Claim(
                "The performance of vanilla SGD could be still stagnating",
                "Section 1",
                _agreed(behind, [value < min(others) for value in losses["SGD"]]),
                f"training loss after epoch {epoch}, with one learning rate that was not tuned: {told}",
            )
        )
    return found


def _has_cut_off(study: Study) -> bool:
    return any(line.optimizer.alpha == LARGE_RATE for line in study.lines)


def _cut_off(curves: Sequence[Curve]) -> Claim:
    """Judge whether large first steps make a run worse: more training loss, fewer test images right at its end."""
    epoch, runs = last_epoch(curves), by_method(curves, None)
    worse, told = [], []
    for r in (0.0, 1.0):
        uncut = {(one.initial_v, one.seed): one for one in runs.get(UNCUT.format(r), ())}
        for cut in runs.get(f"r = {r:g}", ()):
            for measure, sign in (("train_loss", 1), ("test_accuracy", -1)) if cut.run[1:] in uncut else ():
                with_it, without = (_end(one, epoch, measure) for one in (cut, uncut[cut.run[1:]]))
                worse.append(sign * without > sign * with_it)
                told.append(f"{MEASURES[measure]} of {cut.method} {without:.4f} against {with_it:.4f}")
    evidence = f"after epoch {epoch}: {', '.join(told)} with the cut-off"
    missing = "without the cut-off nothing was run in this study"
    sentence = "0.01/sqrt(t) from the first step on could be so large that performance deteriorates"
    return Claim(sentence, "Supplement", _agreed(worse), evidence if told else missing)


def described(study: Study, dataset: Dataset | Text) -> list[Claim]:
    """Compare the supplement's sentences on data, network and learning rate with the runs here."""
    if not isinstance(dataset, Dataset) or study.dataset not in {"mnist", "cifar100"}:
        return []
    rates = [str(ga.certify(power_family(s=0.5, r=float(r), c=0.5)).rate) for r in PATH[1:]]
    decay = max((line.optimizer.decay for line in study.lines), default=0.0)
    as_told = (study.batch_size, study.epochs, decay) == (BATCH_SIZE, 100, 0)
    found = [
        Claim(
            "That larger r is faster is what the corollary on the power family says",
            study.source,
            _agreed([rates == CERTIFIED_RATES]),
            f"certified rates for r = 0.25, 0.5, 0.75 and 1: {', '.join(rates)}; none for r = 0",
        ),
        Claim(
            "The batch size is 64, training lasts for 100 epochs, no l2 regularization is used",
            "Supplement",
            "supported" if as_told else "unclear",
            f"here batches of {study.batch_size}, {study.epochs} epochs, weight decay {decay:g}",
        ),
    ]
    if study.dataset == "cifar100":
        each = np.bincount(np.concatenate((dataset.train_labels, dataset.test_labels)))
        network = networks.build(study.network, channels=3, classes=100, width=study.width, seed=0)
        channels = [one.out_channels for one in network.modules() if isinstance(one, nn.Conv2d)]
        of_width = [channels.count(study.width * 2**power) for power in range(4)]
        found += [
            Claim(
                "Each class of CIFAR-100 includes 6,000 images",
                "Supplement",
                _agreed([set(each) == {6000}]),
                f"{min(each)} at the least and {max(each)} at the most",
            ),
            Claim(
                "ResNet-18 contains 18 convolutional layers: 3, 5, 5 and 5 with 1, 2, 4 and 8 times the first width",
                "Supplement",
                _agreed([of_width == [3, 5, 5, 5]]),
                f"this network has {', '.join(map(str, of_width))}, projections counted; with --blocks paper it has "
                "the paper's, while the usual ResNet-18 has 5 in each group",
            ),
        ]
    if _has_cut_off(study):
        falling = as_schedule(LARGE_RATE).values(1, 10_001)
        found.append(
            Claim(
                "With the cut-off alpha_t is still non-increasing",
                "Supplement",
                _agreed([bool((np.diff(falling) <= 0).all())]),
                f"up to t = 10,000; it falls at once from {falling[2498]:g} to {falling[2499]:g} at t = 2,500",
            )
        )
    return found


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; no variation counts as 0. Of whole ranks -9/10 is -0.9, which is compared with."""
    with for_training():
        from scipy.stats import rankdata

    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0


def sweep_claims(study: Study, curves: Sequence[Curve]) -> list[Claim]:
    """Judge the paper's order of Adam and AdaEMA as a function of v_0."""
    epoch, found = last_epoch(curves), []
    for value in initial_values(curves):
        ends = [{c.seed: _end(c, epoch, "train_loss") for c in by_method(curves, value)[f"r = {r}"]} for r in (0, 1)]
        adam, adaema = ([one[seed] for seed in ends[0] if seed in ends[1]] for one in ends)
        slower = [a > b for a, b in zip(adam, adaema, strict=True)]
        found.append(
            Claim(
                f"AdaEMA (r = 1) trains faster than Adam (r = 0) (v_0 = {value:g}, epoch {epoch})",
                study.source,
                _agreed(slower),
                f"training loss of r = 0: {spread(adam, '.5f')}, of r = 1: {spread(adaema, '.5f')}",
            )
        )
    return found


EXPERIMENTS: Final = {
    **{
        name: Experiment(
            Study(name, network, width, dataset, 100, source=source), _figure(rate), study_claims, facts=described
        )
        for name, network, width, dataset, rate, source in (
            ("lenet", "lenet", 1, "mnist", BASE_RATE, "Section 5.2, Figure 2"),
            ("resnet18", "resnet18", 64, "cifar100", BASE_RATE, "Section 5.2, Figure 3"),
            ("resnet18-large-lr", "resnet18", 64, "cifar100", LARGE_RATE, "Supplement, Figure 4"),
        )
    },
    "lenet-v0": Experiment(
        Study("lenet-v0", "lenet", 1, "mnist", 20, "initial v", source="Section 5.2, Figure 2"), _sweep, sweep_claims
    ),
}
"""The studies of the paper, by the name that ``reproduce`` knows."""
