"""Claims are read off the lanes: the three verdicts, on lanes made by hand and on simulated ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from generic_adam_laboratory.counterexample import Counterexample, LaneRecords, Plan, simulate
from generic_adam_laboratory.counterexample.study import (
    LONGER,
    PANELS,
    Outcome,
    Study,
    claims,
    figure_methods,
    run_study,
    staged_adagrad,
)
from generic_adam_laboratory.runs.records import Claim

TIMES = np.array([10**5, 10**6, 10**7])
SEEDS = 20
# What the paper says: the end point and the average regret of each curve.
AS_CLAIMED = {
    "(a) r = 0": (1.0, 0.40),
    "(a) r = 0.25": (0.99, 0.40),
    "(a) r = 0.5": (-0.5, 0.20),
    "(a) r = 0.75": (-0.99, 0.03),
    "(a) r = 1": (-0.99, 0.02),
    "(b) r = 0": (1.0, 0.40),
    "(b) r = 0.25": (-0.95, 0.10),
    "(c) s = 0.4": (-0.9, 0.06),
    "(c) s = 0.6": (-0.7, 0.15),
    "(c) s = 0.8": (0.8, 0.36),
}


def lanes(ends: dict[str, tuple[float, float]]) -> LaneRecords:
    values = np.array(list(ends.values()))
    shape = (len(ends), TIMES.size, SEEDS)
    x = np.broadcast_to(values[:, :1, np.newaxis], shape).copy()
    regret = np.broadcast_to(values[:, 1:, np.newaxis], shape).copy()
    return LaneRecords(TIMES, tuple(ends), range(SEEDS), x, regret)


@pytest.fixture(scope="module")
def printed() -> LaneRecords:
    return simulate(Plan(figure_methods(), 10_000, SEEDS, Counterexample(as_printed=True)))


def find(found: list[Claim], words: str) -> Claim:
    (claim,) = [claim for claim in found if words in claim.sentence]
    return claim


def test_lanes_as_the_paper_claims_support_it(printed: LaneRecords) -> None:
    found = claims(Outcome(lanes(AS_CLAIMED), printed))
    verdicts = {claim.sentence: claim.verdict for claim in found}
    against = [sentence for sentence, verdict in verdicts.items() if verdict != "supported"]
    # Two sentences are misprints, and lanes that behave as claimed contradict them.
    assert against == [find(found, "so printed").sentence, find(found, "as printed").sentence]
    assert all(verdicts[sentence] == "contradicted" for sentence in against)


@pytest.mark.parametrize(
    ("label", "end", "words", "verdict"),
    [
        ("(a) r = 0.5", (0.95, 0.2), "For r = 0.5", "contradicted"),
        ("(a) r = 0.5", (0.5, 0.2), "For r = 0.5", "unclear"),
        ("(a) r = 0", (-0.5, 0.2), "For r = 0 it", "contradicted"),
        ("(b) r = 0.25", (1.0, 0.1), "r = 0.25 is convergent", "contradicted"),
        ("(a) r = 0.5", (-0.5, 0.025), "slower when r decreases", "unclear"),
        ("(c) s = 0.4", (-0.9, 0.2), "smaller s is faster (s = 0.4", "contradicted"),
        ("(c) s = 0.4", (-0.9, 0.2), "smaller s is faster (s = 0.6", "supported"),
    ],
)
def test_other_lanes_change_the_verdict(
    printed: LaneRecords, label: str, end: tuple[float, float], words: str, verdict: str
) -> None:
    found = claims(Outcome(lanes(AS_CLAIMED | {label: end}), printed))
    assert find(found, words).verdict == verdict


@pytest.mark.parametrize(("dissenting", "verdict"), [(1, "supported"), (2, "unclear")])
def test_one_seed_in_twenty_may_dissent(printed: LaneRecords, dissenting: int, verdict: str) -> None:
    records = lanes(AS_CLAIMED)
    x = records.x.copy()
    x[records.index("(a) r = 1"), -1, :dissenting] = 0.5
    claim = find(claims(Outcome(replace(records, x=x), printed)), "For r = 1 ")
    assert claim.verdict == verdict
    assert f"{SEEDS - dissenting} of {SEEDS} seeds" in claim.evidence


def test_the_figure_has_the_papers_ten_curves() -> None:
    assert {letters: len(curves) for letters, (_, curves) in PANELS.items()} == {"ad": 5, "be": 2, "cf": 3}
    methods = figure_methods()
    for r in (0, 0.25, 0.5, 0.75, 1):
        method = methods[f"(a) r = {r:g}"]
        for t in (1, 7, 10**7):
            assert method.at(t) == pytest.approx((0.5 / t**0.5, 0.9, 1 - (0.01 + 0.99 * r) / t**r), rel=1e-14)
    assert methods["(c) s = 0.6"].at(9) == pytest.approx((0.5 / 9**0.6, 0.9, 1 - 0.802 / 9**0.8), rel=1e-14)
    assert methods["(b) r = 0.25"].theta(16) == pytest.approx(1 - 0.01 / 2, rel=1e-15)


def test_adagrad_in_stages_begins_anew_at_powers_of_four() -> None:
    method = staged_adagrad(0.5)
    for t, stage, before in (
        (1, 1, 0),
        (3, 1, 0),
        (4, 2, 3),
        (15, 2, 3),
        (16, 3, 15),
        (10**7, 12, 4**11 - 1),
    ):
        age = t - before
        assert method.at(t) == pytest.approx((0.5 / stage**0.5 / age**0.5, 0, 1 - 1 / age), abs=1e-12)


@pytest.mark.parametrize(
    ("curve", "end", "verdict"),
    [
        ("(a) r = 0.25", (0.99, 0.4), "supported"),
        ("(a) r = 0.25", (-0.5, 0.2), "contradicted"),
        ("(b) r = 0.25", (0.99, 0.4), "unclear"),  # nearer to 1 does not help there
    ],
)
def test_theta_is_too_far_from_1_where_a_nearer_one_arrives(
    printed: LaneRecords, curve: str, end: tuple[float, float], verdict: str
) -> None:
    found = claims(Outcome(lanes(AS_CLAIMED | {curve: end}), printed))
    claim = find(found, "not sufficiently close")
    assert claim.verdict == ("unclear" if verdict == "contradicted" else verdict)
    slow = find(found, "no convergent trend")
    assert slow.verdict == ("contradicted" if verdict == "contradicted" else "supported")


def test_equal_regrets_speak_for_no_order(printed: LaneRecords) -> None:
    level = lanes({label: (x, 0.2) for label, (x, _) in AS_CLAIMED.items()})
    assert find(claims(Outcome(level, printed)), "smaller s is faster (s = 0.4").verdict == "unclear"


def test_a_run_of_the_misprint_is_judged_on_the_misprint_alone(printed: LaneRecords) -> None:
    (claim,) = claims(Outcome(printed, printed), Counterexample(as_printed=True))
    assert claim.verdict == "contradicted"
    assert "sentences above" not in claim.evidence


def test_a_longer_run_decides_what_is_open(printed: LaneRecords) -> None:
    short = lanes(AS_CLAIMED | {"(a) r = 0.5": (0.5, 0.2), "(c) s = 0.4": (-0.9, 0.2)})
    run_longer = [curve.label for curves, _, _ in LONGER for curve in curves]
    found = claims(Outcome(short, printed, longer=(lanes({label: AS_CLAIMED[label] for label in run_longer}),)))
    for words in ("For r = 0.5 ", "smaller s is faster (s = 0.4"):
        claim = find(found, words)
        assert claim.verdict == "supported"
        assert claim.evidence.count("at T = ") == 2
    # Only the curves that were run longer are judged there.
    assert find(found, "For r = 1 ").evidence.count("at T = ") == 1


@pytest.mark.parametrize(
    ("end", "convergent"), [((1.0, 0.4), "unclear"), ((-0.95, 0.1), "supported")], ids=["not yet there", "there"]
)
def test_a_run_shorter_than_the_papers_leaves_open_what_has_not_happened(
    printed: LaneRecords, end: tuple[float, float], convergent: str
) -> None:
    short = replace(lanes(dict.fromkeys(AS_CLAIMED, end)), times=TIMES // 10)
    verdicts = {claim.sentence: claim.verdict for claim in claims(Outcome(short, printed))}
    found = {verdict for sentence, verdict in verdicts.items() if sentence.endswith("is convergent.")}
    assert found == {convergent}
    open_ones = ("it does not converge.", "r = 0 is not.", "is faster (s", "is faster (so", "when r decreases")
    for words in open_ones:
        assert {verdict for sentence, verdict in verdicts.items() if words in sentence} == {"unclear"}


def test_the_misprint_is_judged_on_runs_that_are_long_enough() -> None:
    outcome = run_study(Study(Plan(figure_methods(), 1, 2)))
    assert find(claims(outcome), "as printed").verdict == "contradicted"
    assert claims(outcome, Counterexample(as_printed=True))[0].verdict == "contradicted"


def test_what_was_run_in_reddis_form_says_so(printed: LaneRecords) -> None:
    usual, other = (
        [claim.sentence for claim in claims(Outcome(lanes(AS_CLAIMED), printed), Counterexample(form=form))]
        for form in ("stochastic", "deterministic")
    )
    said = [after.removeprefix(before) for before, after in zip(usual, other, strict=True)]
    assert set(said) == {"", " (Here in the deterministic form.)"}
    assert [bool(words) for words in said] == [
        "onverge" in one or "faster (" in one or "is not." in one or "sufficiently" in one for one in usual
    ]
