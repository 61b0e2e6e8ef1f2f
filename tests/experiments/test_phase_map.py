"""The phase map: the family it samples, the region it outlines, what it reads off the lanes."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import simulate
from generic_adam.experiments.phase_map import (
    Grid,
    PhaseMap,
    is_certified_region,
    point_label,
    power_family,
    write_phase_map,
)

GRID = Grid((0.0, 0.5, 1.0, 1.5), (0.25, 0.5, 1.0))


def test_the_family_is_the_papers_with_theta_inside_its_range() -> None:
    method = power_family(0.5, 0.75)
    assert method.at(100) == pytest.approx((0.5 / 100**0.75, 0.9, 1 - 0.505 / 10), rel=1e-14)
    for r in (0.0, 0.5, 1.0, 2.0):
        theta = power_family(r, 0.5).theta.values(1, 1000)
        assert ((theta > 0) & (theta < 1)).all()


def test_a_map_holds_each_points_own_lanes() -> None:
    records = simulate(GRID.plan(steps=3000, replicates=5, seed=1))
    phase_map = PhaseMap.from_records(GRID, records)
    for i, s in enumerate(GRID.s):
        for j, r in enumerate(GRID.r):
            x = records.final_x(point_label(r, s))
            assert phase_map.x[i, j] == np.median(x)
            assert phase_map.right_share[i, j] == (x < 0).mean()
            assert phase_map.average_regret[i, j] == np.median(records.final_regret(point_label(r, s)))
    assert phase_map.steps == 3000
    assert phase_map.replicates == 5


def test_a_map_is_written_as_one_tidy_table(tmp_path: Path) -> None:
    ones = np.ones((3, 4))
    phase_map = PhaseMap(GRID, 10, 2, ones * -1, ones * 0.5, np.arange(12.0).reshape(3, 4))
    verdicts = [[f"v{i}{j}" for j in range(4)] for i in range(3)]
    write_phase_map(tmp_path / "map.csv", phase_map, verdicts)
    rows = list(csv.DictReader((tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 12
    assert rows[6] == {
        "r": "1.0",
        "s": "0.5",
        "theory": "v12",
        "x_median": "-1",
        "share_x_below_0": "0.5",
        "average_regret_median": "6",
    }


def test_regular_grids_cover_the_plane() -> None:
    grid = Grid.regular(5, 4)
    assert grid.r == (0.0, 0.5, 1.0, 1.5, 2.0)
    assert grid.s == (0.0, 0.4, 0.8, 1.2)
    with pytest.raises(RunError, match="at least 2 by 2"):
        Grid.regular(1, 5)


@pytest.mark.parametrize(
    ("r", "s", "inside"),
    [
        (0.5, 0.5, True),
        (1.0, 0.5, True),
        (1.01, 0.5, False),
        (0, 0.5, False),
        (1.0, 1.0, False),
        (0.5, 0.2, False),
    ],
)
def test_the_region_of_the_corollary(r: float, s: float, inside: bool) -> None:
    assert is_certified_region(r, s) is inside
