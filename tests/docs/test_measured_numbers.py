"""Compare what the pages state as measured with the committed records, computed here from the CSV files alone."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGE = (ROOT / "docs" / "reproduction-counterexample.md").read_text(encoding="utf-8")


def records(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def table(name: str) -> list[list[str]]:
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def lanes() -> dict[tuple[str, int], dict[str, tuple[float, float]]]:
    """x_T and R(T)/T by method and T, then by replicate."""
    found: dict[tuple[str, int], dict[str, tuple[float, float]]] = defaultdict(dict)
    for one in records("counterexample/outcomes.csv"):
        numbers = float(one["x"]), float(one["average_regret"])
        found[one["method"], int(one["T"])][one["replicate"]] = numbers
    return found


def test_the_outcomes_of_the_counterexample(lanes):
    rows = table("counterexample/outcomes.md")
    assert len(rows) == len(lanes)
    for method, steps, *shown in rows:
        x, regret = np.array(list(lanes[method, int(steps.replace(",", ""))].values())).T
        low, median, high = (f"{one:.3f}".replace("-", "−") for one in np.quantile(x, (0.1, 0.5, 0.9)))
        below, arrived = (f"{(x < 0).sum()} of {x.size}", f"{(x <= -0.9).sum()} of {x.size}")
        assert shown[:5] == [median, f"{low} … {high}", below, arrived, f"{np.median(regret):.4f}"], method


def test_the_sentences_on_the_counterexample(lanes):
    def ahead(first: str, second: str, steps: int) -> tuple[int, int]:
        one, other = lanes[first, steps], lanes[second, steps]
        return sum(one[lane][1] < other[lane][1] for lane in one), len(one)

    orders = [ahead("(c) s = 0.4", "(c) s = 0.6", 10**power) for power in (7, 8, 9)]
    assert orders == [(94, 100), (27, 100), (0, 20)]
    assert "94 of 100 seeds at 10⁷ steps, in 27 at 10⁸, and in none of 20 at 10⁹" in " ".join(PAGE.split())
    assert sum(x <= -0.9 for x, _ in lanes["(a) r = 0.5", 10**8].values()) == 100
    assert "100 of 100 seeds have x ≤ −0.9" in PAGE
    assert sum(x < 0 for x, _ in lanes["AdaGrad in stages", 10**7].values()) == 93
    assert "x < 0 in 93 of 100 seeds" in PAGE


def test_the_claims_on_the_phase_map():
    points = [{name: float(value) for name, value in one.items()} for one in records("phase-map/phase-map.csv")]
    claims = (RESULTS / "phase-map" / "claims.md").read_text(encoding="utf-8")
    paper = [one for one in points if one["paper"]]
    further = [one for one in points if one["theorem_w"] and not one["paper"]]
    outside = [one for one in points if not one["theorem_w"] and not one["paper"]]

    def shares(some: list[dict[str, float]]) -> tuple[int, int, int]:
        below = np.array([one["share_x_below_0"] for one in some])
        return int((below >= 0.75).sum()), len(some), int((below <= 0.25).sum())

    for some, words in ((paper, "certified by the paper"), (further, "certified by Theorem W alone")):
        most, total, few = shares(some)
        said = f"{most} of {total} points {words} have x < 0 in at least 75% of the seeds, {few} in at most 25%"
        assert said in claims
    arrived = [one for one in outside if one["share_arrived"] >= 0.75]
    assert f"{len(arrived)} points outside both" in claims


def test_the_bounds_lie_above_what_was_measured():
    rows = records("bound/records.csv")
    claims = (RESULTS / "bound" / "claims.md").read_text(encoding="utf-8")
    last: dict[tuple[str, str], float] = {}
    for one in rows:
        if one["measured_weighted"] and one["sharper"]:
            ratio = float(one["sharper"]) / float(one["measured_weighted"])
            assert ratio > 1
            last[one["panel"], one["method"]] = ratio
    bounds = {(one["panel"], one["method"]): one for one in rows if one["sharper"]}  # at the last T
    for panel, method, _, sharper, paper, *_ in table("bound/outcomes.md"):
        for told, name in ((sharper.split()[0], "sharper"), (paper, "paper")):
            value = bounds[panel, method][name]
            assert told == "none" if not value else float(value) <= float(told) < 1.01 * float(value)
    for panel in dict.fromkeys(panel for panel, _ in last):
        ratios = [ratio for (where, _), ratio in last.items() if where == panel]
        assert f" {min(ratios):.2g} to {max(ratios):.2g}" in claims


def rows_of(benchmark: str) -> dict[str, list[str]]:
    rows = json.loads((RESULTS / "benchmarks" / f"{benchmark}.json").read_text(encoding="utf-8"))["rows"]
    return {label: list(map(str, rest)) for label, *rest in (row.values() for row in rows)}


def test_what_the_page_on_performance_says_of_its_tables():
    ratios = {
        label: [float(re.findall(r"[(](.*)[)]", one)[0]) for one in row] for label, row in rows_of("step").items()
    }
    small, *larger = ratios["GenericAdam, scheduled"]
    assert 0.4 < small < 0.55
    assert all(0.9 <= one <= 1 for one in larger)
    assert ratios["the kernel alone"][0] > 0.7 * small
    updates = {tuple(label.split(": ")): float(row[2]) for label, row in rows_of("optax_step").items()}
    assert all(0.9 < one < 1.1 for (_, name), one in updates.items() if name.startswith("generic_adam"))
    flat = {arrays: one for (arrays, name), one in updates.items() if "flatten" in name}
    assert flat.pop("LeNet") < 1
    assert min(flat.values()) > 3
    assert float(rows_of("start-up")["generic-adam check adam"][0]) < 0.25
    assert all(float(row[0]) < 2 for label, row in rows_of("certificate").items() if "callable" not in label)
    loops = rows_of("counterexample")
    assert float(loops["simulate, 1 method"][0]) < 1.6 * float(loops["C loop"][0])
