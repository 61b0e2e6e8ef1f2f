"""The phase map: measured end point as colour, the certified region as outline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from generic_adam.experiments.counterexample import LaneRecords
from generic_adam.experiments.phase_map import Grid, PhaseMap, power_family, write_phase_map
from generic_adam.experiments.records import Claim, Finding, write_claims, write_manifest
from generic_adam.extras import from_extra
from generic_adam.report.style import BLUE, VERMILION, house_style, save_figure
from generic_adam.theorems.zou2019 import examine_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CERTIFIED = "certified"
_OUTLINE = np.array([(0.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)])  # 0 < r <= 2s < 2, corners (r, s)
_MOSTLY = 0.75


def verdicts(grid: Grid) -> list[list[str]]:
    """Return the certificate's verdict on every point, s by r."""
    return [[str(examine_method(power_family(r, s)).verdict) for r in grid.r] for s in grid.s]


def write_results(
    folder: Path,
    grid: Grid,
    records: LaneRecords,
    command: str,
    settings: Mapping[str, Any],
    seconds: float,
) -> list[Claim]:
    """Write map, figure, claims and manifest; return the claims."""
    measured, theory = PhaseMap.from_records(grid, records), verdicts(grid)
    plot_phase_map(measured, folder / "phase-map")
    write_phase_map(folder / "phase-map.csv", measured, theory)
    claims = phase_map_claims(measured, theory)
    write_claims(folder, claims)
    write_manifest(folder / "manifest.json", command, settings, seconds)
    return claims


def plot_phase_map(phase_map: PhaseMap, stem: str | Path) -> tuple[Path, Path]:
    """Draw the map as SVG and PNG: x_T on the left, R(T)/T on the right.

    Args:
      phase_map: what was measured.
      stem: path without ending.

    Returns:
      The two paths, SVG first.
    """
    with from_extra("experiments"):
        import matplotlib.pyplot as plt
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

    ends = LinearSegmentedColormap.from_list("ends", [BLUE, "#F4F4F2", VERMILION])
    with house_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 4.7), sharey=True)
        try:
            r, s = np.array(phase_map.grid.r), np.array(phase_map.grid.s)
            ends_at = left.pcolormesh(
                r, s, phase_map.x, cmap=ends, vmin=-1, vmax=1, shading="nearest", rasterized=True
            )
            figure.colorbar(ends_at, ax=left, label=r"median $x_T$   (best: −1)", ticks=[-1, -0.5, 0, 0.5, 1])
            pays = right.pcolormesh(
                r, s, phase_map.average_regret, cmap="viridis_r", norm=LogNorm(), shading="nearest",
                rasterized=True,
            )  # fmt: skip
            scale = figure.colorbar(pays, ax=right, label="median R(T)/T", format="{x:.2g}")
            scale.ax.yaxis.set_minor_formatter("{x:.2g}")
            for axes in (left, right):
                _outline(axes)
            left.set_ylabel(r"s   in   $\alpha_t = 0.5/t^s$")
            left.set_title("where it ends")
            right.set_title("what it pays")
            right.text(
                1.0, 1.02, f"T = {phase_map.steps:,}, {phase_map.replicates} seeds a point", ha="right",
                va="bottom", transform=right.transAxes, fontsize=8, color="#5A5A5A",
            )  # fmt: skip
            return save_figure(figure, stem)
        finally:
            plt.close(figure)


def _outline(axes: Axes) -> None:
    axes.plot(_OUTLINE[:, 0], _OUTLINE[:, 1], color="black", linewidth=1.6, clip_on=False)
    axes.text(
        0.5, 0.92, r"certified: $0 < r \leq 2s < 2$", ha="left", va="top", fontsize=9,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2},
    )  # fmt: skip
    axes.set_xlabel(r"r   in   $\theta_t = 1 - \min(1, 0.01 + 0.99\,r)/\max(t,2)^r$")
    axes.grid(visible=False)


def phase_map_claims(phase_map: PhaseMap, theory: list[list[str]]) -> list[Claim]:
    """Say how theory and measurement agree, both ways."""
    certified = np.array(theory) == CERTIFIED
    right, wrong = phase_map.right_share >= _MOSTLY, phase_map.right_share <= 1 - _MOSTLY
    where = f"at T = {phase_map.steps:,} with {phase_map.replicates} seeds a point"
    inside, outside = int(certified.sum()), int((~certified).sum())
    return [
        Claim(
            "Inside 0 < r <= 2s < 2 Generic Adam goes to -1.",
            "power-family corollary",
            _inside_finding(certified, right, wrong),
            f"{where}: {int((certified & right).sum())} of {inside} certified points have x < 0 in at least "
            f"{_MOSTLY:.0%} of the seeds, {int((certified & wrong).sum())} in at most {1 - _MOSTLY:.0%}: "
            "the theorem is about T → ∞, with a rate that is slow near the edges",
        ),
        Claim(
            "The condition is sufficient, not necessary.",
            "remark after the sufficient condition",
            Finding.SUPPORTED if (~certified & right).any() else Finding.UNCLEAR,
            f"{where}: {int((~certified & right).sum())} of {outside} points not certified have x < 0 "
            f"in at least {_MOSTLY:.0%} of the seeds, {int((~certified & wrong).sum())} in at most "
            f"{1 - _MOSTLY:.0%}",
        ),
    ]


def _inside_finding(certified: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> Finding:
    """No finite T can contradict a limit: all points there (if any) is support, all else is unclear."""
    if not certified.any():
        return Finding.UNCLEAR
    return Finding.SUPPORTED if right[certified].all() and not wrong[certified].any() else Finding.UNCLEAR
