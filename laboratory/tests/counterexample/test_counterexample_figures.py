"""The figures hold the curves they name, and the certificate agrees with the outline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

from generic_adam.methods import Algorithm, Method
from generic_adam_laboratory.counterexample import LaneRecords, Plan, simulate
from generic_adam_laboratory.counterexample import figures as counterexample
from generic_adam_laboratory.counterexample.study import Outcome, figure_methods
from generic_adam_laboratory.runs.records import Occasion
from generic_adam_laboratory.studies import phase_map
from generic_adam_laboratory.studies.phase_map import Grid, PhaseMap, claims


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
    assert [axes.get_title(loc="left")[:3] for axes in drawn] == ["(a)", "(d)", "(b)", "(e)", "(c)", "(f)"]
    assert [len(axes.lines) for axes in drawn] == [5, 5, 2, 2, 3, 3]
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


def test_the_table_of_outcomes() -> None:
    adam = Method("0.5/sqrt(t)", 0.9, 0.99)
    methods = {
        "Adam": adam,
        "AdaGrad": Method("0.5/sqrt(t+1)", 0, "1 - 1/(t+1)"),
        "AMSGrad": Algorithm(adam, running_maximum=True),
    }
    x = np.array([[[1.0, 1.0, 0.5]], [[-0.95, -0.5, 0.1]], [[-1.0, -1.0, -1.0]]])
    records = LaneRecords(np.array([10]), tuple(methods), range(3), x, abs(x))
    longer = LaneRecords(np.array([100]), ("AdaGrad",), range(3), -np.ones((1, 1, 3)), x[:1])
    outcome = Outcome(records, records, longer=(longer,))
    rows = list(counterexample.outcome_rows(methods, outcome))
    assert [row[:2] for row in rows] == [
        ("Adam", "10"), ("AdaGrad", "10"), ("AMSGrad", "10"), ("AdaGrad", "100"),
    ]  # fmt: skip
    assert [row[4] for row in rows] == ["0 of 3", "2 of 3", "3 of 3", "3 of 3"]
    assert [row[5] for row in rows] == ["0 of 3", "1 of 3", "3 of 3", "3 of 3"]
    assert [row[-1] for row in rows[:2]] == ["not certified", "certified"]


def map_of(share: np.ndarray, grid: Grid) -> PhaseMap:
    return PhaseMap(grid, 10, 4, 1 - 2 * share, share, share, 0.5 - 0.4 * share, 0.5 - 0.4 * share)


def test_the_map_is_drawn_and_its_claims_count_points(tmp_path: Path) -> None:
    grid = Grid.regular(3, 3)  # r = 0, 1, 2 and s = 0, 0.6, 1.2: only (1, 0.6) is certified
    share = np.zeros((3, 3))
    share[1, 1] = share[2, 2] = 1.0
    measured = map_of(share, grid)
    inside, beyond, weighted, outside = claims(measured)
    assert inside.verdict == "supported"
    assert "1 of 1 points certified by the paper" in inside.evidence
    assert beyond.verdict == "supported"
    assert "1 of 8 points not certified by the paper" in beyond.evidence
    assert weighted.verdict == "unclear"  # there is no such point on this grid
    assert outside.verdict == "supported"
    assert "1 points outside both" in outside.evidence
    found = claims(map_of(np.zeros((3, 3)), grid))
    assert [claim.verdict for claim in found] == ["unclear"] * 4
    phase_map.write_map(tmp_path, measured, Occasion("command", {}, 1.0))
    rows = (tmp_path / "phase-map.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 10
    assert rows[5] == "1.0,0.6,1,1,-1,1,1,0.1,0.1"
    assert (tmp_path / "phase-map.svg").stat().st_size > 1000
    assert (tmp_path / "phase-map.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_of_a_few_steps_is_drawn_without_complaint(tmp_path: Path) -> None:
    few = simulate(Plan(figure_methods(), steps=10, replicates=2))
    counterexample.plot_counterexample(few, tmp_path / "few")  # warnings are errors here
