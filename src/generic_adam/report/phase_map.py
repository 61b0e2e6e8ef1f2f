"""The phase map: measured end point as colour, what theorems certify as outlines, the drift as a curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from generic_adam.experiments.phase_map import (
    MapOutcome,
    PhaseMap,
    claims,
    in_papers_region,
    in_weighted_region,
    outside_and_arriving,
)
from generic_adam.experiments.records import (
    Claim,
    atomic_write,
    markdown_table,
    write_claims,
    write_csv,
    write_manifest,
)
from generic_adam.extras import from_extra
from generic_adam.report.style import BLUE, GREY, VERMILION, house_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAPERS = np.array([(0.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)])  # 0 < r <= 2s < 2, corners (r, s)
_WEIGHTED = np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)])  # 0 < r < 1 + s
_HEADINGS = (
    "r", "s", "paper", "theorem_w", "x_median", "share_x_below_0", "share_arrived", "regret_median",
    "regret_mean",
)  # fmt: skip
_BEST_HEADINGS = ("r", "s", "R(T)/T: mean", "± error", "R(T)/T: median", "x_T ≤ −0.9", "certified by")


def write_results(
    folder: Path, outcome: MapOutcome, command: str, settings: Mapping[str, Any], seconds: float
) -> list[Claim]:
    """Write map, figure, tables, claims and manifest; return the claims."""
    plot_phase_map(outcome, folder / "phase-map")
    write_csv(folder / "phase-map.csv", _HEADINGS, _map_rows(outcome.map))
    with atomic_write(folder / "best.md") as file:
        file.write(best_table(outcome))
    with atomic_write(folder / "outside.md") as file:
        file.write(outside_table(outcome))
    found = claims(outcome)
    write_claims(folder, found)
    star = outcome.drift.zero
    theta_star = {"value": 1 - star.value, "error": star.error}
    write_manifest(folder / "manifest.json", command, dict(settings) | {"theta_star": theta_star}, seconds)
    return found


def _certified_by(r: float, s: float) -> str:
    if in_papers_region(r, s):
        return "the paper, Theorem W"
    return "Theorem W" if in_weighted_region(r, s) else "neither"


def best_table(outcome: MapOutcome) -> str:
    """Return the best points on fresh streams as Markdown, the lowest mean regret first."""
    rows = [
        (
            f"{one.r:g}", f"{one.s:g}", f"{one.mean:.4f}", f"{one.error:.4f}", f"{one.median:.4f}",
            f"{one.arrived_share:.1%}", _certified_by(one.r, one.s),
        )
        for one in outcome.best
    ]  # fmt: skip
    return markdown_table(_BEST_HEADINGS, rows, left=("certified by",))


def outside_table(outcome: MapOutcome) -> str:
    """Return the points that no theorem covers and that arrive all the same, as Markdown."""
    grid, rows = outcome.map.grid, []
    for r, s in outside_and_arriving(outcome.map):
        place = (grid.s.index(s), grid.r.index(r))
        share, regret = outcome.map.arrived_share[place], outcome.map.average_regret[place]
        rows.append((f"{r:g}", f"{s:g}", f"{share:.0%}", f"{regret:.4f}"))
    return markdown_table(("r", "s", "x_T ≤ −0.9", "R(T)/T: median"), rows, left=())


def _map_rows(measured: PhaseMap) -> Iterable[Sequence[object]]:
    values = (
        measured.x, measured.right_share, measured.arrived_share, measured.average_regret,
        measured.mean_regret,
    )  # fmt: skip
    for i, s in enumerate(measured.grid.s):
        for j, r in enumerate(measured.grid.r):
            covered = (int(in_papers_region(r, s)), int(in_weighted_region(r, s)))
            yield [r, s, *covered, *(f"{value[i, j]:.6g}" for value in values)]


def plot_phase_map(outcome: MapOutcome, stem: str | Path) -> tuple[Path, Path]:
    """Draw the map as SVG and PNG: x_T on the left, R(T)/T on the right.

    Args:
      outcome: what was measured.
      stem: path without ending.

    Returns:
      The two paths, SVG first.
    """
    with from_extra("experiments"):
        import matplotlib.pyplot as plt
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

    measured = outcome.map
    ends = LinearSegmentedColormap.from_list("ends", [BLUE, "#F4F4F2", VERMILION])
    with house_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.4, 5.0), sharey=True)
        try:
            r, s = np.array(measured.grid.r), np.array(measured.grid.s)
            ends_at = left.pcolormesh(
                r, s, measured.x, cmap=ends, vmin=-1, vmax=1, shading="nearest", rasterized=True
            )
            figure.colorbar(ends_at, ax=left, label=r"median $x_T$   (best: −1)", ticks=[-1, -0.5, 0, 0.5, 1])
            pays = right.pcolormesh(
                r, s, measured.average_regret, cmap="viridis_r", norm=LogNorm(), shading="nearest",
                rasterized=True,
            )  # fmt: skip
            scale = figure.colorbar(pays, ax=right, label="median R(T)/T", format="{x:.2g}")
            scale.ax.yaxis.set_minor_formatter("{x:.2g}")
            for axes in (left, right):
                _outline(axes, outcome)
            left.set_ylabel(r"s   in   $\alpha_t = 0.5/t^s$")
            left.set_title("where it ends")
            right.set_title("what it pays")
            right.text(
                1.0, 1.02, f"T = {measured.steps:,}, {measured.replicates} seeds a point", ha="right",
                va="bottom", transform=right.transAxes, fontsize=8, color=GREY,
            )  # fmt: skip
            handles, labels = left.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
            return save_figure(figure, stem)
        finally:
            plt.close(figure)


def _outline(axes: Axes, outcome: MapOutcome) -> None:
    axes.plot(
        _WEIGHTED[:, 0], _WEIGHTED[:, 1], color="black", linewidth=1.6, linestyle="--", clip_on=False,
        label=r"Theorem W: $0 < r < 1 + s$",
    )  # fmt: skip
    axes.plot(
        _PAPERS[:, 0], _PAPERS[:, 1], color="black", linewidth=1.6, clip_on=False,
        label=r"the paper: $0 < r \leq 2s < 2$",
    )  # fmt: skip
    r, s = np.linspace(0.01, 2, 160), np.linspace(0, 1.2, 97)
    axes.contour(r, s, outcome.displacement(r, s), levels=[1.0], colors=["#7A1FA2"], linewidths=2.0)
    axes.plot([], [], color="#7A1FA2", linewidth=2.0, label=r"x = 0 at T, by the drift at frozen $\theta$")
    axes.set_xlabel(r"r   in   $\theta_t = 1 - \min(1, 0.01 + 0.99\,r)/\max(t,2)^r$")
    axes.set_xlim(outcome.map.grid.r[0], outcome.map.grid.r[-1])
    axes.set_ylim(outcome.map.grid.s[0], outcome.map.grid.s[-1])
    axes.grid(visible=False)
