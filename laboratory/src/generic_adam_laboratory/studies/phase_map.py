r"""The (r, s) plane on the counterexample: where does the theory stop, and where does practice go on?

The power family has $\alpha_t = 0.5/t^s$ and $\theta_t = 1 - c/\max(t, 2)^r$ with the paper's numerator
$c = 0.01 + 0.99\,r$, held at 1 for r > 1 so that theta stays above 0. The paper's condition certifies it for
$0 < r \le 2s < 2$, Theorem W for $0 < r < 1 + s$ with $0 < s < 1$ and for $0 < r \le 2$ at s = 1. Each point
of a grid is simulated on the same streams of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.answers.figures import BLUE, GREY, VERMILION, drawing, legend_below, save_figure
from generic_adam.errors import RunError
from generic_adam.methods import Method
from generic_adam.methods import power_family as power_family_of
from generic_adam_laboratory.counterexample import LaneRecords, Plan
from generic_adam_laboratory.counterexample.simulation import Simulating, Simulation
from generic_adam_laboratory.counterexample.study import ARRIVED, PAPER_BETA
from generic_adam_laboratory.runs.records import Claim, Occasion, write_results
from generic_adam_laboratory.runs.run import Progress, Run, carry_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

R_RANGE = (0.0, 2.0)
S_RANGE = (0.0, 1.2)
MOST_POINTS = 10**4
MOSTLY = 0.75
"""A point goes (arrives) if this share of its lanes does."""


def point_label(r: float, s: float) -> str:
    """Return the label of a point in the records."""
    return f"r = {r:g}, s = {s:g}"


def numerator(r: float) -> float:
    """C = 0.01 + 0.99 r, at most 1."""
    return min(1.0, 0.01 + 0.99 * r)


def power_family(r: float, s: float) -> Method:
    """Return the member of the power family at (r, s), with the paper's numerator and momentum."""
    return power_family_of(lr=0.5, beta=PAPER_BETA, s=s, r=r, c=round(numerator(r), 12), K=2)


def _members(points: Sequence[tuple[float, float]]) -> dict[str, Method]:
    return {point_label(r, s): power_family(r, s) for r, s in points}


def in_papers_region(r: float, s: float) -> bool:
    """Return whether the paper's corollary covers (r, s): 0 < r <= 2s < 2."""
    return 0 < r <= 2 * s < 2


def in_weighted_region(r: float, s: float) -> bool:
    """Tell whether Theorem W covers (r, s) in the long run: 0 < r < 1 + s with 0 < s < 1, or 0 < r <= 2 with s = 1."""
    return (0 < s < 1 and 0 < r < 1 + s) or (s == 1 and 0 < r <= 2)


@dataclass(frozen=True)
class Grid:
    """The points of the map: values of r and of s, rising."""

    r: tuple[float, ...]
    s: tuple[float, ...]

    @staticmethod
    def regular(columns: int, rows: int) -> Grid:
        """Return a regular grid over 0 <= r <= 2 and 0 <= s <= 1.2."""
        if columns < 2 or rows < 2 or columns * rows > MOST_POINTS:
            raise RunError(f"the grid is {columns} by {rows}, expected at least 2 by 2, at most {MOST_POINTS:,} points")
        r, s = np.linspace(*R_RANGE, columns), np.linspace(*S_RANGE, rows)
        return Grid(tuple(np.round(r, 6).tolist()), tuple(np.round(s, 6).tolist()))

    @property
    def points(self) -> list[tuple[float, float]]:
        """All (r, s), row of s after row of s."""
        return [(r, s) for s in self.s for r in self.r]

    def where(self, holds: Callable[[float, float], bool]) -> Flags:
        """Return at which points something holds, s by r."""
        return np.array([[holds(r, s) for r in self.r] for s in self.s])

    def plan(self, steps: int, replicates: int, seed: int = 0) -> Plan:
        """Return the simulation of all points."""
        return Plan(_members(self.points), steps, replicates, seed=seed)


@dataclass(frozen=True)
class PhaseMap:
    """The measurements: one number a point, s by r.

    Medians of x_T and R(T)/T, the mean of R(T)/T, and the shares of lanes with x_T < 0, nearer to the best point than
    to the worst, and with x_T <= -0.9.
    """

    grid: Grid
    steps: int
    replicates: int
    x: Floats
    right_share: Floats
    arrived_share: Floats
    average_regret: Floats
    mean_regret: Floats

    @staticmethod
    def from_records(grid: Grid, records: LaneRecords) -> PhaseMap:
        """Read the map off the records of `grid.plan(...)`."""
        shape = (len(grid.s), len(grid.r), len(records.replicates))
        x, regret = (lanes[:, -1].reshape(shape) for lanes in (records.x, records.average_regret))
        ends = (np.median(x, axis=2), (x < 0).mean(axis=2), (x <= ARRIVED).mean(axis=2))
        return PhaseMap(grid, int(records.times[-1]), shape[2], *ends, np.median(regret, axis=2), regret.mean(axis=2))


def run_map(
    grid: Grid,
    plan: Plan,
    *,
    simulating: Simulating = Simulation,
    progress: Progress | None = None,
    run: Run | None = None,
) -> PhaseMap:
    """Simulate a map (`grid.plan(...)`), or what is left of it in a run."""
    work = simulating(plan)
    carry_out(work, run, progress)
    return PhaseMap.from_records(grid, work.records())


def outside_and_arriving(measured: PhaseMap) -> list[tuple[float, float]]:
    """Return the points that no theorem covers and most of whose lanes arrive all the same."""
    grid = measured.grid
    covered = grid.where(in_papers_region) | grid.where(in_weighted_region)
    found = (~covered & (measured.arrived_share >= MOSTLY)).ravel()
    return [point for point, is_one in zip(grid.points, found, strict=True) if is_one]


def claims(measured: PhaseMap) -> list[Claim]:
    """Say how theory and measurement agree, both ways."""
    grid, right, arrived = measured.grid, measured.right_share >= MOSTLY, measured.arrived_share >= MOSTLY
    wrong = measured.right_share <= 1 - MOSTLY
    paper, weighted = grid.where(in_papers_region), grid.where(in_weighted_region)
    where = f"at T = {measured.steps:,} with {measured.replicates} seeds a point"
    beyond = outside_and_arriving(measured)
    return [
        Claim(
            "Inside 0 < r <= 2s < 2 Generic Adam goes to -1.",
            "power-family corollary",
            _inside(paper, right),
            _counts(where, paper, right, wrong, "certified by the paper")
            + ": the theorem is about T → ∞, with a rate that is slow near the edges",
        ),
        Claim(
            "The condition is sufficient, not necessary.",
            "remark after the sufficient condition",
            "supported" if (~paper & right).any() else "unclear",
            _counts(where, ~paper, right, wrong, "not certified by the paper"),
        ),
        Claim(
            "Where Theorem W certifies and the paper does not, Generic Adam goes to -1.",
            "Theorem W, beyond the paper",
            _inside(weighted & ~paper, right),
            _counts(where, weighted & ~paper, right, wrong, "certified by Theorem W alone"),
        ),
        Claim(
            "Outside both regions lanes arrive as well: neither condition is necessary.",
            "beyond the paper",
            "supported" if beyond else "unclear",
            f"{where}: {len(beyond)} points outside both have x ≤ {ARRIVED} in at least {MOSTLY:.0%} of the "
            f"seeds, of {int((~(paper | weighted)).sum())} outside and {int(arrived.sum())} that arrive",
        ),
    ]


def _counts(where: str, region: Flags, right: Flags, wrong: Flags, name: str) -> str:
    return (
        f"{where}: {int((region & right).sum())} of {int(region.sum())} points {name} have x < 0 in at least "
        f"{MOSTLY:.0%} of the seeds, {int((region & wrong).sum())} in at most {1 - MOSTLY:.0%}"
    )


def _inside(region: Flags, right: Flags) -> str:
    """No finite T can contradict a limit: all points there (if any) is support, all else is unclear."""
    return "supported" if region.any() and right[region].all() else "unclear"


def identity(grid: Grid, plan: Plan) -> dict[str, Any]:
    """Return the settings as plain types; the methods follow from r and s."""
    settings = {key: value for key, value in plan.settings().items() if key != "methods"}
    return settings | {"r": list(grid.r), "s": list(grid.s)}


# Tables and figure ----------------------------------------------------------------------------------------

_PAPERS = np.array([(0.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)])  # 0 < r <= 2s < 2, corners (r, s)
_WEIGHTED = np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)])  # 0 < r < 1 + s


def write_map(folder: Path, measured: PhaseMap, occasion: Occasion) -> None:
    """Write map, figure, table, claims and manifest."""
    plot_phase_map(measured, folder / "phase-map")
    measures = ("x_median", "share_x_below_0", "share_arrived", "regret_median", "regret_mean")
    tables = {
        "phase-map.csv": (("r", "s", "paper", "theorem_w", *measures), _map_rows(measured)),
    }
    write_results(folder, occasion, tables, claims(measured))


def _map_rows(measured: PhaseMap) -> Iterator[Sequence[object]]:
    names = ("x", "right_share", "arrived_share", "average_regret", "mean_regret")
    columns = [getattr(measured, name).ravel() for name in names]
    for (r, s), *values in zip(measured.grid.points, *columns, strict=True):
        covered = (int(in_papers_region(r, s)), int(in_weighted_region(r, s)))
        yield [r, s, *covered, *(f"{value:.6g}" for value in values)]


def plot_phase_map(measured: PhaseMap, stem: str | Path) -> tuple[Path, Path]:
    """Draw the map as SVG and PNG: x_T above, R(T)/T below."""
    with drawing(7.6, 9.4) as figure:
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        ends = LinearSegmentedColormap.from_list("ends", [BLUE, "#F4F4F2", VERMILION])
        above, below = figure.subplots(2, 1, sharex=True)
        at = (np.array(measured.grid.r), np.array(measured.grid.s))
        how = {"shading": "nearest", "rasterized": True}
        where = above.pcolormesh(*at, measured.x, cmap=ends, vmin=-1, vmax=1, **how)
        figure.colorbar(where, ax=above, label=r"median $x_T$   (best: −1)", ticks=[-1, -0.5, 0, 0.5, 1])
        regret = measured.average_regret
        norm = LogNorm() if (regret > 0).any() else None  # in a few steps nobody has a regret
        pays = below.pcolormesh(*at, regret, cmap="viridis_r", norm=norm, **how)
        scale = figure.colorbar(pays, ax=below, label="median R(T)/T", format="{x:.2g}")
        scale.ax.yaxis.set_minor_formatter("{x:.2g}")
        for axes, title in ((above, "where it ends"), (below, "what it pays")):
            _outline(axes, measured.grid)
            axes.set_title(title)
        below.set_xlabel(r"r   in   $\theta_t = 1 - \min(1, 0.01 + 0.99\,r)/\max(t,2)^r$")
        above.text(
            1.0, 1.02, f"T = {measured.steps:,}, {measured.replicates} seeds a point", ha="right",
            va="bottom", transform=above.transAxes, fontsize=8, color=GREY,
        )  # fmt: skip
        legend_below(figure, above, 2)
        return save_figure(figure, stem)


def _outline(axes: Axes, grid: Grid) -> None:
    from matplotlib.patheffects import AbstractPathEffect, withStroke

    # The lower map is dark where the lines are.
    halo: list[AbstractPathEffect] = [withStroke(linewidth=3.6, foreground="white")]
    for corners, dashes, label in (
        (_WEIGHTED, "--", r"Theorem W: $0 < r < 1 + s$"),
        (_PAPERS, "-", r"the paper: $0 < r \leq 2s < 2$"),
    ):
        axes.plot(
            *corners.T, color="black", linewidth=1.6, linestyle=dashes, clip_on=False, label=label, path_effects=halo
        )
    axes.set_ylabel(r"s   in   $\alpha_t = 0.5/t^s$")
    axes.set_xlim(grid.r[0], grid.r[-1])
    axes.set_ylim(grid.s[0], grid.s[-1])
    axes.grid(visible=False)
