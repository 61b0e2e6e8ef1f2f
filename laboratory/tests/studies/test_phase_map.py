"""The phase map: the family it samples, the region it outlines, what it reads off the lanes."""

from __future__ import annotations

import numpy as np
import pytest

import generic_adam as ga
from generic_adam.errors import RunError
from generic_adam_laboratory.counterexample import Plan, simulate
from generic_adam_laboratory.studies.phase_map import (
    Grid,
    PhaseMap,
    in_papers_region,
    in_weighted_region,
    outside_and_arriving,
    point_label,
    power_family,
    run_map,
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
    assert in_papers_region(r, s) is inside


@pytest.mark.parametrize(
    ("r", "s", "inside"),
    [
        (1.49, 0.5, True),
        (1.5, 0.5, False),
        (0.5, 0.0, False),
        (2.0, 1.0, True),
        (2.01, 1.0, False),
        (0.5, 1.01, False),
        (0.0, 0.5, False),
    ],
)
def test_the_region_of_theorem_w(r: float, s: float, inside: bool) -> None:
    assert in_weighted_region(r, s) is inside


def test_the_certificate_agrees_with_both_regions() -> None:
    for r, s in Grid.regular(6, 7).points:
        certified = ga.certify(power_family(r, s)).verdict == "certified"
        # The paper's theorem alone, or all of them: whichever `certify` asks, it is one of the two.
        assert certified in {in_papers_region(r, s), in_weighted_region(r, s)}, (r, s)
        if in_papers_region(r, s):
            assert certified


def made_up(share: np.ndarray, grid: Grid) -> PhaseMap:
    return PhaseMap(grid, 10**6, 4, 1 - 2 * share, share, share, 0.5 - 0.4 * share, 0.5 - 0.4 * share)


def test_what_no_theorem_covers_and_arrives_is_listed() -> None:
    grid = Grid.regular(3, 3)  # r = 0, 1, 2 and s = 0, 0.6, 1.2
    share = np.zeros((3, 3))
    share[1, 1] = share[2, 2] = 1.0
    assert outside_and_arriving(made_up(share, grid)) == [(2.0, 1.2)]


def test_a_map_is_run_on_its_plan() -> None:
    grid = Grid((0.5, 1.0), (0.4, 0.6))
    plan = grid.plan(steps=300, replicates=3, seed=2)
    found, own = run_map(grid, plan), simulate(Plan({"m": power_family(1.0, 0.4)}, 300, 3, seed=2))
    assert found.x[0, 1] == np.median(own.final_x("m"))
