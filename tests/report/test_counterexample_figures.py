"""The figures hold the curves they name, and the certificate agrees with the outline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

from generic_adam.experiments.counterexample import AMSGrad, LaneRecords, Plan, simulate
from generic_adam.experiments.counterexample.figure import figure_methods
from generic_adam.experiments.phase_map import Grid, PhaseMap, is_certified_region
from generic_adam.methods import Method
from generic_adam.report import counterexample, phase_map


@pytest.fixture(scope="module")
def records() -> LaneRecords:
    return simulate(Plan(figure_methods(), steps=20_000, replicates=8))


def test_the_six_panels_show_median_and_band(
    records: LaneRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def keep(figure: plt.Figure, stem: Path) -> tuple[Path, Path]:
        drawn.extend(figure.axes)
        return stem.with_suffix(".svg"), stem.with_suffix(".png")

    monkeypatch.setattr(counterexample, "save_figure", keep)
    counterexample.plot_counterexample(records, tmp_path / "figure")
    assert [axes.get_title(loc="left")[:3] for axes in drawn] == ["(a)", "(b)", "(c)", "(d)", "(e)", "(f)"]
    assert [len(axes.lines) for axes in drawn] == [5, 2, 3, 5, 2, 3]
    line, band = drawn[5].lines[1], drawn[5].collections[1]  # (f), s = 0.6
    lanes = records.x[records.index("(c) s = 0.6")]
    shown = records.times >= 100
    np.testing.assert_array_equal(line.get_xdata(), records.times[shown])
    np.testing.assert_array_equal(line.get_ydata(), np.quantile(lanes[shown], 0.5, axis=1))
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.min() == np.quantile(lanes[shown], 0.1, axis=1).min()
    assert edges.max() == np.quantile(lanes[shown], 0.9, axis=1).max()


def test_the_figure_is_saved_twice(records: LaneRecords, tmp_path: Path) -> None:
    svg, png = counterexample.plot_counterexample(records, tmp_path / "figure")
    assert svg.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.png", "figure.svg"]


def test_the_table_of_outcomes(tmp_path: Path) -> None:
    adam = Method("0.5/sqrt(t)", 0.9, 0.99)
    methods = {"Adam": adam, "AdaGrad": Method("0.5/sqrt(t+1)", 0, "1 - 1/(t+1)"), "AMSGrad": AMSGrad(adam)}
    x = np.array([[[1.0, 1.0, 0.5]], [[-0.95, -0.5, 0.1]], [[-1.0, -1.0, -1.0]]])
    records = LaneRecords(np.array([10]), tuple(methods), range(3), x, abs(x))
    rows = counterexample.outcome_rows(methods, records)
    assert [row[0] for row in rows] == ["Adam", "AdaGrad", "AMSGrad"]
    assert [row[3] for row in rows] == ["0 of 3", "2 of 3", "3 of 3"]
    assert [row[4] for row in rows] == ["0 of 3", "1 of 3", "3 of 3"]
    assert [row[-1] for row in rows] == ["not certified", "certified", "another algorithm"]
    path = counterexample.write_outcome_table(tmp_path / "outcomes.md", rows)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5
    assert {line.count("|") for line in lines} == {8}


def test_the_certificate_agrees_with_the_outline() -> None:
    grid = Grid.regular(9, 7)
    verdicts = phase_map.verdicts(grid)
    for i, s in enumerate(grid.s):
        for j, r in enumerate(grid.r):
            assert (verdicts[i][j] == "certified") is is_certified_region(r, s), (r, s)


def test_the_map_is_drawn_and_its_claims_count_points(tmp_path: Path) -> None:
    grid = Grid.regular(3, 3)  # r = 0, 1, 2 and s = 0, 0.6, 1.2: only (1, 0.6) is certified
    verdicts = phase_map.verdicts(grid)
    share = np.zeros((3, 3))
    share[1, 1] = share[2, 2] = 1.0
    measured = PhaseMap(grid, 10, 4, 1 - 2 * share, share, 0.5 - 0.4 * share)
    inside, beyond = phase_map.phase_map_claims(measured, verdicts)
    assert inside.verdict == "supported"
    assert "1 of 1 certified points" in inside.evidence
    assert beyond.verdict == "supported"
    assert "1 of 8 points not certified" in beyond.evidence
    never = PhaseMap(grid, 10, 4, np.ones((3, 3)), np.zeros((3, 3)), np.full((3, 3), 0.5))
    assert [claim.verdict for claim in phase_map.phase_map_claims(never, verdicts)] == ["unclear", "unclear"]
    svg, png = phase_map.plot_phase_map(measured, tmp_path / "map")
    assert svg.stat().st_size > 1000
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_run_of_a_few_steps_is_drawn_without_complaint(tmp_path: Path) -> None:
    few = simulate(Plan(figure_methods(), steps=10, replicates=2))
    counterexample.plot_counterexample(few, tmp_path / "few")  # warnings are errors here


def test_a_map_without_a_certified_point_supports_nothing() -> None:
    grid = Grid.regular(2, 2)
    ones = np.ones((2, 2))
    inside, _ = phase_map.phase_map_claims(PhaseMap(grid, 10, 2, -ones, ones, ones), phase_map.verdicts(grid))
    assert inside.verdict == "unclear"
