"""Figure 1 of the paper on the counterexample: what is run, what is read off the lanes, and the claims.

Three pairs of panels, ten curves; the peers beside them; and the curves that ten million steps leave open once
more, ten and a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import generic_adam as ga
from generic_adam.methods import Algorithm, Method, adagrad, adam_to_adaema, power_family, sgd
from generic_adam.methods.algorithm import Nesterov
from generic_adam.schedules import as_schedule
from generic_adam_laboratory.counterexample.problem import Counterexample, Form
from generic_adam_laboratory.counterexample.simulation import (
    MAX_STEPS,
    AdaShift,
    LaneRecords,
    Plan,
    Simulating,
    Simulation,
    Subject,
    simulate,
)
from generic_adam_laboratory.runs.records import Claim
from generic_adam_laboratory.runs.run import Progress, Run, Stages, carry_out

PAPER_STEPS = 10**7
PAPER_ALPHA = "0.5/sqrt(t)"
PAPER_BETA = 0.9
PAPER_THETA = 0.99

QUANTILES = (0.1, 0.5, 0.9)
"""The three lines of a band over seeds: its lower edge, the median, its upper edge."""

ARRIVED = -0.9
"""A lane has arrived at -1 if x_T is at most this."""
MIDDLE = 0.0
"""A lane goes to -1, arrived or on its way, if x_T is below this, nearer to -1 than to +1."""
WRONG_END = 0.9
"""A lane stays at +1 if x_T is at least this."""
SHARE = 0.95
"""A sentence is supported (contradicted) if this share of the replicates agrees (does the opposite)."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Curve:
    """One curve of the figure, in panel "a", "b" or "c": alpha_t = 0.5/t^s, theta_t = 1 - numerator/t^r."""

    panel: str
    r: Fraction
    s: Fraction = Fraction(1, 2)

    @property
    def numerator(self) -> Fraction:
        """0.01 + 0.99 r, and 0.01 in panel (b)."""
        return Fraction(1, 100) + (0 if self.panel == "b" else Fraction(99, 100) * self.r)

    @property
    def short_label(self) -> str:
        """The parameter that varies in its panel, for a legend."""
        return f"s = {float(self.s):g}" if self.panel == "c" else f"r = {float(self.r):g}"

    @property
    def label(self) -> str:
        """Its name in records and tables."""
        return f"({self.panel}) {self.short_label}"

    @property
    def method(self) -> Method:
        """Its three sequences."""
        r, s = float(self.r), float(self.s)
        if self.panel == "b":
            return power_family(lr=0.5, beta=PAPER_BETA, s=s, r=r, c=float(self.numerator), K=1)
        return adam_to_adaema(lr=0.5, beta=PAPER_BETA, theta=PAPER_THETA, r=r, s=s)


PATH = {r: Curve("a", Fraction(r)) for r in ("0", "0.25", "0.5", "0.75", "1")}
"""The curves of panel (a) by r."""
FIXED = {r: Curve("b", Fraction(r)) for r in ("0", "0.25")}
"""The curves of panel (b) by r."""
BY_S = tuple(Curve("c", Fraction(4, 5), Fraction(s)) for s in ("0.4", "0.6", "0.8"))
"""The curves of panel (c)."""
PANELS = {
    "ad": (r"$\theta_t = 1 - (0.01 + 0.99\,r)/t^r,\ \alpha_t = 0.5/\sqrt{t}$", tuple(PATH.values())),
    "be": (r"$\theta_t = 1 - 0.01/t^r,\ \alpha_t = 0.5/\sqrt{t}$", tuple(FIXED.values())),
    "cf": (r"$\theta_t = 1 - 0.802/t^{0.8},\ \alpha_t = 0.5/t^s$", BY_S),
}
"""The figure's rows, average regret (the first letter) and x: their title and their curves, from slow to fast."""
LONGER = (((PATH["0.5"], *BY_S), 10, 1), (BY_S[:2], 100, 5))
"""The curves that T steps leave open, how many times as long they run, on one of how many of the seeds."""

ADAM = Method(PAPER_ALPHA, PAPER_BETA, PAPER_THETA)
CERTIFIED = Method(PAPER_ALPHA, PAPER_BETA, "1 - 1/max(t, 2)")
"""They differ in theta alone."""


def figure_methods() -> dict[str, Method]:
    """Return the ten curves of the figure by label."""
    return {curve.label: curve.method for _, curves in PANELS.values() for curve in curves}


def peer_methods() -> dict[str, Subject]:
    """Return what the paper compares with, and other members of the family, under the paper's alpha."""
    return {
        "AMSGrad, θ = 0.99": Algorithm(ADAM, running_maximum=True),
        "Padam, p = 1/8, θ = 0.99": Algorithm(ADAM, running_maximum=True, power=Fraction(1, 8)),
        "AdaShift, n = 10, θ = 0.99": AdaShift(as_schedule(PAPER_ALPHA), PAPER_BETA, PAPER_THETA, kept=10),
        "RMSProp, θ = 0.99": Method(PAPER_ALPHA, 0, PAPER_THETA),
        "RMSProp, θ = 1 − 0.9/t": Method(PAPER_ALPHA, 0, "1 - 0.9/t"),
        "AdaGrad": adagrad(lr=0.5),
        "AdaGrad in stages": staged_adagrad(lr=0.5),
        "NAdam, θ = 0.99": Algorithm(ADAM, nesterov=Nesterov(as_schedule(PAPER_BETA), as_schedule(1 - PAPER_BETA))),
        # Steps as long as Adam's: the root of the mean square of a slope is about 100.
        "SGD, αₜ = 0.005/√t": sgd(lr="0.005/sqrt(t)"),
        "certified Adam, θ = 1 − 1/max(t, 2)": CERTIFIED,
    }


def staged_adagrad(lr: float, stages: int = 12) -> Method:
    r"""Return stagewise AdaGrad (Chen et al. 2019): AdaGrad begun anew in each stage, with $\eta/\sqrt{j}$ in stage j.

    Stage j begins at $4^{j-1}$, and the last, from $4^{11}$ on, does not end. What else is published, a proximal
    term and the mean of a stage's points, is left out: the lanes show x_t.
    """

    def joined(piece: Callable[[int, int], str]) -> str:
        texts = [piece(stage, 4 ** (stage - 1) - 1) for stage in range(1, stages + 1)]
        text = texts[-1]
        for stage in range(stages - 1, 0, -1):
            text = f"{texts[stage - 1]} if t < {4**stage} else ({text})"
        return text

    alpha = joined(lambda stage, before: f"{lr!r}/sqrt({stage})/sqrt(t - {before})")
    return Method(alpha, 0, joined(lambda _, before: f"1 - 1/(t - {before})"))


@dataclass(frozen=True)
class Study:
    """Plan the figure's curves and the peers, and the open curves once more, longer."""

    plan: Plan

    @property
    def longer(self) -> tuple[Plan, ...]:
        """The open curves, run longer; only where the problem is the paper's."""
        problem, lanes = self.plan.problem, self.plan.replicate_range
        if problem.form is not Form.STOCHASTIC or problem.as_printed:
            return ()
        return tuple(
            replace(
                self.plan,
                methods={curve.label: curve.method for curve in curves},
                steps=min(times * self.plan.steps, MAX_STEPS),
                replicates=lanes[: max(1, len(lanes) // share)],
            )
            for curves, times, share in LONGER
        )

    @property
    def identity(self) -> dict[str, Any]:
        """The settings as plain types."""
        return self.plan.settings() | {
            "longer": [[list(plan.methods), plan.steps, len(plan.replicate_range)] for plan in self.longer],
        }

    @property
    def lane_steps(self) -> int:
        """Single steps of single lanes, of the figure and of the longer runs."""
        return sum(plan.lane_steps for plan in (self.plan, *self.longer))


@dataclass(frozen=True)
class Outcome:
    """The measurements: the figure's lanes and the peers', its curves as printed (+10), longer runs."""

    records: LaneRecords
    printed: LaneRecords
    longer: tuple[LaneRecords, ...] = ()

    def reading(self, *curves: Curve) -> list[LaneRecords]:
        """Return the records that hold all of some curves, the longest run last."""
        every = (self.records, *self.longer)
        return [one for one in every if {curve.label for curve in curves} <= set(one.labels)]


def run_study(
    study: Study, *, simulating: Simulating = Simulation, progress: Progress | None = None, run: Run | None = None
) -> Outcome:
    """Run a study, or what a run has not of it yet."""
    simulations = [simulating(plan) for plan in (study.plan, *study.longer)]
    carry_out(Stages(*simulations), run, progress)
    first, *longer = (simulation.records() for simulation in simulations)
    problem = replace(study.plan.problem, as_printed=True)
    printed = replace(study.plan, methods=figure_methods(), steps=10**4, problem=problem)
    return Outcome(first, simulate(printed), tuple(longer))


# The sentences --------------------------------------------------------------------------------------------


def claims(outcome: Outcome, problem: Counterexample | None = None) -> list[Claim]:
    """Return every sentence of section 5.1 about the counterexample, with what the lanes say about it.

    Where the misprint itself was run no other sentence is about it; what was run in Reddi's form says so.
    """
    problem = problem or Counterexample()
    if problem.as_printed:
        return [_misprint(outcome.printed)]
    form = "" if problem.form is Form.STOCHASTIC else f" (Here in the {problem.form} form.)"
    path, fixed, by_s, text = (
        "section 5.1, Figure 1(a, d)", "section 5.1, Figure 1(b, e)",
        "section 5.1, Figure 1(c, f); printed: (c, e)", "section 5.1, sensitivity of s",
    )  # fmt: skip
    zero, quarter, half, three_quarters, one = PATH.values()

    def told(sentence: str, source: str, judged: Callable[..., tuple[str, str]], *curves: Curve) -> Claim:
        return Claim(sentence + form, source, *judged(outcome, *curves))

    return [
        _same_theta("With r = 0 Generic Adam is Adam with theta = 0.99.", zero, "0.99"),
        _same_theta("With r = 1 it is AdaEMA, theta_t = 1 - 1/t.", one, "1 - 1/t"),
        *(
            told(f"For {curve.short_label} Generic Adam is convergent.", path, _goes_right, curve)
            for curve in (one, three_quarters, half)
        ),
        told(
            "The convergence becomes slower when r decreases (r = 1, 0.75, 0.5).", path, _order,
            one, three_quarters, half,
        ),
        *(
            told(f"For {curve.short_label} it does not converge.", path, _stays_wrong, curve)
            for curve in (zero, quarter)
        ),
        *_quarter_claims(outcome, form, quarter, FIXED["0.25"]),
        told("With the numerator fixed at 0.01, r = 0.25 is convergent.", fixed, _goes_right, FIXED["0.25"]),
        told("With the numerator fixed at 0.01, r = 0 is not.", fixed, _stays_wrong, FIXED["0"]),
        *(
            told(
                f"With r = 0.8 fixed, smaller s is faster ({first.short_label} against {second.short_label}).",
                by_s, _order, first, second,
            )
            for first, second in pairwise(BY_S)
        ),
        told(
            "With s fixed, smaller r is faster (so printed; meant is: r fixed, smaller s).",
            text, _order, half, three_quarters, one,
        ),
        _rates_claim(
            "That smaller r is slower matches the corollary on the power family.", path,
            {f"r = {r}": power_family(s=0.5, r=r, c=0.5) for r in (1, 0.75, 0.5)},
            ["T^(-1/2) log T", "T^(-3/8)", "T^(-1/4)"],
        ),
        _rates_claim(
            "That smaller s is faster coincides with the corollary on the power family.", text,
            {curve.short_label: curve.method for curve in BY_S}, ["T^(-2/5)", "T^(-2/5) log T", "T^(-1/5)"],
        ),
        _misprint(outcome.printed, "; with −10x they part as the sentences above say"),
    ]  # fmt: skip


def _judge(agree: Flags, opposite: Flags) -> str:
    """Three answers: most replicates agree, most do the opposite, or neither."""
    if agree.mean() >= SHARE:
        return "supported"
    return "contradicted" if opposite.mean() >= SHARE else "unclear"


def _is_long(records: LaneRecords) -> bool:
    """Return whether a run is as long as the paper's: a shorter run leaves open what it did not show."""
    return bool(records.times[-1] >= PAPER_STEPS)


def _goes_right(outcome: Outcome, curve: Curve) -> tuple[str, str]:
    """Judge whether lanes go to -1: nearer to -1 than to +1 at the last T; the share that has arrived is told."""
    told, x, is_long = [], np.empty(0), False
    for records in outcome.reading(curve):
        is_long = _is_long(records)
        x = records.final_x(curve.label)
        told.append(
            f"at T = {_steps(records)}: x < {MIDDLE:g} in {_count(x < MIDDLE)}, x ≤ {ARRIVED} in "
            f"{int((x <= ARRIVED).sum())}, median x {np.median(x):.3f}"
        )
    return _judge(x < MIDDLE, is_long & (x >= WRONG_END)), "; ".join(told)


def _stays_wrong(outcome: Outcome, curve: Curve) -> tuple[str, str]:
    """Judge whether lanes stay at +1 up to T."""
    x, is_long = outcome.records.final_x(curve.label), _is_long(outcome.records)
    told = f"x ≥ {WRONG_END} in {_count(x >= WRONG_END)}, median x {np.median(x):.3f}"
    return _judge(is_long & (x >= WRONG_END), is_long & (x < MIDDLE)), f"at T = {_steps(outcome.records)}: {told}"


def _order(outcome: Outcome, *curves: Curve) -> tuple[str, str]:
    """Which is faster, the fastest first: R(T)/T on the same gradients, replicate by replicate, at the last T."""
    told, verdict = [], "unclear"
    for one in outcome.reading(*curves):
        regrets = np.stack([one.final_regret(curve.label) for curve in curves])
        steps = np.diff(regrets, axis=0)
        # Equal regrets, as in the first few steps, speak for neither.
        agree, opposite = np.asarray((steps > 0).all(axis=0)), np.asarray((steps < 0).all(axis=0))
        medians = ", ".join(
            f"{curve.short_label}: {np.median(row):.4f}" for curve, row in zip(curves, regrets, strict=True)
        )
        told.append(
            f"at T = {_steps(one)}: R(T)/T in this order in {_count(agree)}, reversed in "
            f"{int(opposite.sum())}; medians {medians}"
        )
        verdict = _judge(agree & _is_long(one), opposite & _is_long(one))
    return verdict, "; ".join(told)


def _same_theta(sentence: str, curve: Curve, theta: str) -> Claim:
    found, expected = curve.method.theta.values(1, 10**4 + 1), as_schedule(theta).values(1, 10**4 + 1)
    apart = float(np.abs(found - expected).max())
    return Claim(
        sentence,
        "section 5.1",
        "supported" if apart < 1e-15 else "contradicted",
        f"theta_t = {curve.method.theta}; up to t = 10,000 it differs from {theta} by at most {apart:.1g}",
    )


def _quarter_claims(outcome: Outcome, form: str, quarter: Curve, nearer: Curve) -> list[Claim]:
    """Judge why r = 0.25 is not seen to converge, beside the curve of the same r whose theta_t is nearer to 1."""
    theta, other = (curve.method.theta(PAPER_STEPS) for curve in (quarter, nearer))
    (stays, stayed), (goes, went) = _stays_wrong(outcome, quarter), _goes_right(outcome, nearer)
    rate = ga.certify(quarter.method).rate
    return [
        Claim(
            "For r = 0.25, theta_t is at most about 0.9954 up to T = 10^7.",
            "section 5.1",
            "supported" if round(theta, 4) == 0.9954 else "contradicted",
            f"theta_t at t = 10^7 is {theta:.6f}, and theta_t increases",
        ),
        Claim(
            f"That theta_t is not sufficiently close to 1.{form}",
            "section 5.1",
            stays if stays == goes else "unclear",
            f"with {theta:.4f} at 10^7 steps, {stayed}; with the numerator 0.01 and {other:.4f}, {went}",
        ),
        Claim(
            "The rate of r = 0.25 is so slow that no convergent trend may be seen in even 10^7 iterations." + form,
            "section 5.1",
            stays if rate is not None else "contradicted",
            f"certified in the long run at the rate {rate}; {stayed}",
        ),
    ]


def _rates_claim(sentence: str, source: str, methods: Mapping[str, Method], expected: Sequence[str]) -> Claim:
    """Compare the corollary's rates, by the certificate, with those that the sentence speaks of."""
    rates = {label: str(ga.certify(method).rate) for label, method in methods.items()}
    return Claim(
        sentence,
        source,
        "supported" if list(rates.values()) == expected else "unclear",
        "certified rates: " + ", ".join(f"{label}: {rate}" for label, rate in rates.items()),
    )


def _misprint(printed: LaneRecords, contrast: str = "") -> Claim:
    """With both slopes positive no method can go wrong, so the claim on r = 0 and 0.25 refutes the print."""
    arrivals = np.stack([printed.arrival(label, -1.0) for label in printed.labels])
    fastest, slowest = arrivals.min(axis=0), arrivals.max(axis=0)
    stay = np.all([printed.final_x(PATH[r].label) >= WRONG_END for r in ("0", "0.25")], axis=0)
    return Claim(
        "f_t(x) = 10x with probability 0.99 (as printed) makes r = 0 and 0.25 fail.",
        "section 5.1, the problem's definition",
        _judge(stay, slowest < np.inf),
        f"with +10x all {len(printed.labels)} curves reach x = −1 for good in {_count(slowest < np.inf)}, "
        f"in the median seed the fastest at t = {np.median(fastest):.0f} and the slowest at "
        f"t = {np.median(slowest):.0f}{contrast}",
    )


def _count(lanes: Flags) -> str:
    return f"{int(lanes.sum())} of {lanes.size} seeds"


def _steps(records: LaneRecords) -> str:
    return f"{int(records.times[-1]):,}"
