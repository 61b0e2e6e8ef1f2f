"""Each sentence of the paper about the counterexample, with what the simulated lanes say about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from generic_adam.experiments.counterexample.figure import PAPER_STEPS, figure_methods
from generic_adam.experiments.counterexample.lane_records import LaneRecords
from generic_adam.experiments.records import Claim, Finding

ARRIVED = -0.9
"""A lane has arrived at -1 if x_T is at most this."""
MIDDLE = 0.0
"""A lane goes to -1, arrived or on its way, if x_T is below this, nearer to -1 than to +1."""
WRONG_END = 0.9
"""A lane stays at +1 if x_T is at least this."""
SHARE = 0.95
"""A sentence is supported (contradicted) if this share of the replicates agrees (does the opposite)."""

Lanes = NDArray[np.bool_]


def claims(records: LaneRecords, printed: LaneRecords) -> list[Claim]:
    """Return the table of claims.

    Args:
      records: the ten curves of the figure, on the problem with -10.
      printed: the same curves on the problem as printed, with +10.
    """
    a, b, c = (lambda r: f"(a) r = {r:g}"), (lambda r: f"(b) r = {r:g}"), (lambda s: f"(c) s = {s:g}")
    text = "section 5.1, Figure 1(a, d)"
    fixed = "section 5.1, Figure 1(b, e)"
    return [
        *(
            _goes_right(records, f"For r = {r:g} Generic Adam is convergent.", text, a(r))
            for r in (1, 0.75, 0.5)
        ),
        _order(
            records,
            "The convergence becomes slower when r decreases (r = 1, 0.75, 0.5).",
            text,
            [a(1), a(0.75), a(0.5)],
        ),
        *(_stays_wrong(records, f"For r = {r:g} it does not converge.", text, a(r)) for r in (0, 0.25)),
        _theta_claim(a(0.25)),
        _goes_right(records, "With the numerator fixed at 0.01, r = 0.25 is convergent.", fixed, b(0.25)),
        _stays_wrong(records, "With the numerator fixed at 0.01, r = 0 is not.", fixed, b(0)),
        _order(
            records,
            "With r = 0.8 fixed, smaller s is faster (s = 0.4, 0.6, 0.8).",
            "Figure 1(c, f)",
            [c(0.4), c(0.6), c(0.8)],
        ),
        _order(
            records,
            "With s fixed, smaller r is faster (so printed; meant is: r fixed, smaller s).",
            "section 5.1, sensitivity of s",
            [a(0.5), a(0.75), a(1)],
        ),
        _misprint(printed, "; with −10x they part as the sentences above say"),
    ]


def claims_as_printed(printed: LaneRecords) -> list[Claim]:
    """Return what is left to judge where the misprint itself was run: no other sentence is about it."""
    return [_misprint(printed)]


def _judge(agree: Lanes, opposite: Lanes) -> Finding:
    """Three answers: most replicates agree, most do the opposite, or neither."""
    if agree.mean() >= SHARE:
        return Finding.SUPPORTED
    return Finding.CONTRADICTED if opposite.mean() >= SHARE else Finding.UNCLEAR


def _goes_right(records: LaneRecords, sentence: str, source: str, label: str) -> Claim:
    """A claim that lanes go to -1: nearer to it than to +1 at T, with the number that have arrived."""
    x = records.final_x(label)
    arrived = int((x <= ARRIVED).sum())
    evidence = (
        f"x < {MIDDLE:g} in {_count(x < MIDDLE)}, x ≤ {ARRIVED} in {arrived}; {_medians(records, label)}"
    )
    return Claim(sentence, source, _judge(x < MIDDLE, x >= WRONG_END), evidence)


def _stays_wrong(records: LaneRecords, sentence: str, source: str, label: str) -> Claim:
    """A claim that lanes stay at +1 up to T."""
    x = records.final_x(label)
    evidence = f"x ≥ {WRONG_END} in {_count(x >= WRONG_END)}; {_medians(records, label)}"
    return Claim(sentence, source, _judge(x >= WRONG_END, x < MIDDLE), evidence)


def _medians(records: LaneRecords, label: str) -> str:
    """The median lane at a tenth of the steps and at the end: a lane on its way still moves."""
    tenth = int(np.searchsorted(records.times, records.times[-1] / 10))
    early, late = (np.median(records.x[records.index(label), k]) for k in (tenth, -1))
    return f"median x {early:.3f} at t = {records.times[tenth]:,}, {late:.3f} at T = {_steps(records)}"


def _order(records: LaneRecords, sentence: str, source: str, labels: Sequence[str]) -> Claim:
    """A claim on speed, the fastest label first: R(T)/T on the same gradients, replicate by replicate."""
    regrets = np.stack([records.final_regret(label) for label in labels])
    steps = np.diff(regrets, axis=0)
    rising, falling = steps > 0, steps < 0  # equal regrets, as in the first few steps, speak for neither
    agree, opposite = np.asarray(rising.all(axis=0)), np.asarray(falling.all(axis=0))
    medians = ", ".join(f"{label}: {np.median(regrets[i]):.4f}" for i, label in enumerate(labels))
    pairs = ", ".join(
        f"{first} before {second} in {int(pair.sum())}"
        for first, second, pair in zip(labels, labels[1:], rising, strict=False)
    )
    evidence = (
        f"at T = {_steps(records)}: R(T)/T in this order in {_count(agree)} ({pairs}), "
        f"reversed in {int(opposite.sum())}; medians {medians}"
    )
    return Claim(sentence, source, _judge(agree, opposite), evidence)


def _theta_claim(label: str) -> Claim:
    theta = figure_methods()[label].theta(PAPER_STEPS)
    return Claim(
        "For r = 0.25, theta_t is at most about 0.9954 up to T = 10^7.",
        "section 5.1",
        Finding.SUPPORTED if round(theta, 4) == 0.9954 else Finding.CONTRADICTED,
        f"theta_t at t = 10^7 is {theta:.6f}, and theta_t increases",
    )


def _misprint(printed: LaneRecords, contrast: str = "") -> Claim:
    """With both slopes positive no method can go wrong, so the claim on r = 0 and 0.25 refutes the print."""
    arrivals = np.stack([printed.arrival(label, -1.0) for label in printed.labels])
    fastest, slowest = arrivals.min(axis=0), arrivals.max(axis=0)
    stay = np.asarray((printed.x[:, -1] >= WRONG_END).any(axis=0))
    evidence = (
        f"with +10x all {len(printed.labels)} curves reach x = −1 for good in {_count(slowest < np.inf)}, "
        f"in the median seed the fastest at t = {np.median(fastest):.0f} and the slowest at "
        f"t = {np.median(slowest):.0f}{contrast}"
    )
    return Claim(
        "f_t(x) = 10x with probability 0.99 (as printed) makes r = 0 and 0.25 fail.",
        "section 5.1, the problem's definition",
        _judge(stay, slowest < np.inf),
        evidence,
    )


def _count(lanes: Lanes) -> str:
    return f"{int(lanes.sum())} of {lanes.size} seeds"


def _steps(records: LaneRecords) -> str:
    return f"{int(records.times[-1]):,}"
