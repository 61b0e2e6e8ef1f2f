"""The paper's sentences about networks, each against the records of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from generic_adam.experiments.records import Claim
from generic_adam.experiments.studies import PATH_FRACTIONS
from generic_adam.experiments.study_records import Curve, at_epoch, common_epochs, epsilons, methods

SLOW = ("r = 0", "AMSGrad")
"""The two that the paper calls slowest: constant theta."""

SENSITIVE, INSENSITIVE = 2.0, 1.25
"""Losses along the path differ "extremely" if the largest is twice the smallest, hardly within a quarter."""


def study_claims(curves: Sequence[Curve], source: str) -> list[Claim]:
    """Judge the paper's five sentences for each v_0 of a study, after its last epoch, on means over seeds.

    Args:
        curves: the study.
        source: where the paper says it, e.g. "Section 5.2, Figure 2".

    Returns:
        Five claims for each epsilon.
    """
    return [claim for epsilon in epsilons(curves) for claim in _claims_at(curves, epsilon, source)]


def _claims_at(curves: Sequence[Curve], epsilon: float, source: str) -> list[Claim]:
    epoch = common_epochs(curves)
    path = [f"r = {fraction:g}" for fraction in PATH_FRACTIONS]
    seven = {*path, *SLOW, "RMSProp"}  # the paper compares no others
    by_method = {name: runs for name, runs in methods(curves, epsilon).items() if name in seven}
    loss = {name: _or_infinite(at_epoch(runs, "train_loss", epoch)) for name, runs in by_method.items()}
    accuracy = {name: at_epoch(runs, "test_accuracy", epoch) for name, runs in by_method.items()}
    where = f"(v_0 = {epsilon:g}, epoch {epoch})"

    def claim(sentence: str, verdict: str, evidence: str) -> Claim:
        return Claim(f"{sentence} {where}", source, verdict, evidence)

    slowest, worst = _top_two(loss, largest=True), _top_two(accuracy, largest=False)
    least = min(loss[r] for r in path)
    spread = max(loss[r] for r in path) / least if 0 < least < math.inf else math.inf
    correlation = rank_correlation([loss[r] for r in path], [accuracy[r] for r in path])
    return [
        claim(
            "AMSGrad and Adam (r = 0) decrease the training loss slowest",
            _set_verdict(slowest),
            "training loss: " + _listed(loss, ".4f"),
        ),
        claim(
            "AMSGrad and Adam (r = 0) show the worst test accuracy",
            _set_verdict(worst),
            "test accuracy: " + _listed(accuracy, ".4f"),
        ),
        claim(
            "Larger r trains faster",
            _order_verdict([loss[r] for r in path]),
            "training loss along r = 0, 0.25, 0.5, 0.75, 1: " + ", ".join(f"{loss[r]:.4f}" for r in path),
        ),
        claim(
            "Larger r > 0 trains faster",
            _order_verdict([loss[r] for r in path[1:]]),
            "training loss along r = 0.25, 0.5, 0.75, 1: " + ", ".join(f"{loss[r]:.4f}" for r in path[1:]),
        ),
        claim(
            "Convergence is extremely sensitive to theta_t",
            "supported" if spread >= SENSITIVE else "contradicted" if spread <= INSENSITIVE else "unclear",
            f"largest over smallest training loss along the path: {spread:.2f}",
        ),
        claim(
            "A smaller training loss goes with a higher test accuracy along the path",
            "supported" if correlation <= -0.9 else "contradicted" if correlation >= 0 else "unclear",
            f"rank correlation of training loss and test accuracy over the five r: {correlation:.2f}",
        ),
    ]


def _or_infinite(loss: float) -> float:
    """A loss that stopped being a number is the worst there is; nan would be in no order at all."""
    return math.inf if math.isnan(loss) else loss


def _top_two(values: dict[str, float], *, largest: bool) -> set[str]:
    return set(sorted(values, key=lambda name: values[name], reverse=largest)[:2])


def _set_verdict(found: set[str]) -> str:
    """Supported if the two are those named, contradicted if neither is."""
    common = len(found & set(SLOW))
    return ("contradicted", "unclear", "supported")[common]


def _order_verdict(losses: Sequence[float]) -> str:
    """Supported if the losses fall along r, contradicted if they rise, unclear if they do neither."""
    pairs = list(pairwise(losses))
    if all(a > b for a, b in pairs):
        return "supported"
    return "contradicted" if all(a < b for a, b in pairs) else "unclear"


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks; no variation counts as 0."""
    a, b = _ranks(first), _ranks(second)
    middle = (len(a) - 1) / 2
    scale = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True)) / scale if scale else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]


def _listed(values: dict[str, float], form: str) -> str:
    ordered = sorted(values.items(), key=lambda item: item[1])
    return ", ".join(f"{name}: {value:{form}}" for name, value in ordered)
