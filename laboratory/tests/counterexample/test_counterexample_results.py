"""The committed run: its numbers come from the code, and its claims from its numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import generic_adam as ga
from generic_adam_laboratory.counterexample import Plan, simulate
from generic_adam_laboratory.counterexample.simulation import algorithm_of
from generic_adam_laboratory.counterexample.study import figure_methods, peer_methods
from generic_adam_laboratory.runs.records import read_claims

RESULTS = Path(__file__).parents[3] / "results" / "counterexample"
# Their schedules are roots and quotients, correctly rounded on every machine.
EXACT = ("(a) r = 0", "(a) r = 1")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, np.ndarray]:
    """x_T and R(T)/T by replicate, for each method."""
    rows = csv.DictReader((RESULTS / "outcomes.csv").read_text(encoding="utf-8").splitlines())
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["T"] != "10000000":
            continue
        found.setdefault(row["method"], []).append((float(row["x"]), float(row["average_regret"])))
    return {label: np.array(lanes) for label, lanes in found.items()}


def test_the_committed_run_is_the_papers(outcomes: dict[str, np.ndarray]) -> None:
    manifest = json.loads((RESULTS / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["steps"] == 10**7
    assert manifest["settings"]["replicates"] == [0, 100]
    assert manifest["settings"]["problem"]["common_slope"] == -10.0
    assert set(outcomes) == set(figure_methods()) | set(peer_methods())
    assert all(lanes.shape == (100, 2) for lanes in outcomes.values())


def test_its_first_lanes_come_out_again(outcomes: dict[str, np.ndarray]) -> None:
    methods = {label: figure_methods()[label] for label in EXACT}
    records = simulate(Plan(methods, 10**7, 4))
    for label in EXACT:
        assert records.final_x(label).tolist() == outcomes[label][:4, 0].tolist()
        assert records.final_regret(label).tolist() == outcomes[label][:4, 1].tolist()


def test_what_theory_says_of_it_is_what_it_says_now() -> None:
    head, _, *rows = (
        [cell.strip() for cell in row.split("|")] for row in (RESULTS / "outcomes.md").read_text("utf-8").splitlines()
    )
    subjects, place = figure_methods() | peer_methods(), head.index("theory")
    verdicts = {label: str(ga.certify(algorithm_of(subject)).verdict) for label, subject in subjects.items()}
    assert {row[1]: row[place] for row in rows} == verdicts


def test_its_claims_are_its_numbers(outcomes: dict[str, np.ndarray]) -> None:
    claims = {claim.sentence: claim for claim in read_claims(RESULTS)}
    for r in (1, 0.75, 0.5):
        claim = claims[f"For r = {r:g} Generic Adam is convergent."]
        going = int((outcomes[f"(a) r = {r:g}"][:, 0] < 0).sum())
        assert f"x < 0 in {going} of 100 seeds" in claim.evidence
        assert claim.verdict == "supported"
    for r in (0, 0.25):
        claim = claims[f"For r = {r:g} it does not converge."]
        stuck = int((outcomes[f"(a) r = {r:g}"][:, 0] >= 0.9).sum())
        assert f"x ≥ 0.9 in {stuck} of 100 seeds" in claim.evidence
        assert claim.verdict == "supported"
        assert stuck >= 95
    for (first, second), verdict in (((0.4, 0.6), "contradicted"), ((0.6, 0.8), "supported")):
        slower = outcomes[f"(c) s = {second}"][:, 1] - outcomes[f"(c) s = {first}"][:, 1]
        in_order = int((slower > 0).sum())
        (claim,) = [one for one in claims.values() if f"s = {first:g} against s = {second:g}" in one.sentence]
        assert f"at T = 10,000,000: R(T)/T in this order in {in_order} of 100 seeds" in claim.evidence
        assert claim.verdict == verdict, "of the longest run"
