r"""The (r, s) plane on the counterexample: where does the theory stop, and where does practice go on?

The power family has $\alpha_t = 0.5/t^s$ and $\theta_t = 1 - c/\max(t, 2)^r$ with the paper's numerator
$c = 0.01 + 0.99\,r$, held at 1 for r > 1 so that theta stays above 0. The sufficient condition certifies it
for $0 < r \le 2s < 2$ (section "power family" of the theory page). Each point of a grid is simulated on the
same streams of gradients; what is kept is where its lanes end and what regret they pay.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import Counterexample, LaneRecords, Plan
from generic_adam.experiments.counterexample.figure import PAPER_BETA
from generic_adam.experiments.records import atomic_write
from generic_adam.methods import Method

R_RANGE = (0.0, 2.0)
S_RANGE = (0.0, 1.2)


def power_family(r: float, s: float) -> Method:
    """Return the member of the power family at (r, s), with the paper's numerator and momentum."""
    numerator = min(1.0, 0.01 + 0.99 * r)
    return Method(f"0.5/t^{s:.10g}", PAPER_BETA, f"1 - {numerator:.10g}/max(t, 2)^{r:.10g}")


def is_certified_region(r: float, s: float) -> bool:
    """Whether the paper's corollary covers (r, s): 0 < r <= 2s < 2."""
    return 0 < r <= 2 * s < 2


@dataclass(frozen=True)
class Grid:
    """The points of the map.

    Args:
      r: values of r, rising.
      s: values of s, rising.
    """

    r: tuple[float, ...]
    s: tuple[float, ...]

    @staticmethod
    def regular(columns: int, rows: int) -> Grid:
        """Return a regular grid over 0 <= r <= 2 and 0 <= s <= 1.2."""
        if columns < 2 or rows < 2:
            raise RunError(f"the grid is {columns} by {rows}, expected at least 2 by 2")
        r, s = np.linspace(*R_RANGE, columns), np.linspace(*S_RANGE, rows)
        return Grid(tuple(np.round(r, 6).tolist()), tuple(np.round(s, 6).tolist()))

    def plan(self, steps: int, replicates: int, seed: int = 0, problem: Counterexample | None = None) -> Plan:
        """Return the simulation of all points, row of s after row of s."""
        methods = {point_label(r, s): power_family(r, s) for s in self.s for r in self.r}
        return Plan(methods, steps, replicates, problem or Counterexample(), seed)


def point_label(r: float, s: float) -> str:
    """Return the label of a point in the records."""
    return f"r = {r:g}, s = {s:g}"


@dataclass(frozen=True)
class PhaseMap:
    """What was measured: one number a point, s by r.

    Attributes:
      grid: the points.
      steps: T.
      replicates: how many lanes a point has.
      x: median of x_T.
      right_share: share of lanes with x_T < 0, nearer to the best point than to the worst.
      average_regret: median of R(T)/T.
    """

    grid: Grid
    steps: int
    replicates: int
    x: NDArray[np.float64]
    right_share: NDArray[np.float64]
    average_regret: NDArray[np.float64]

    @staticmethod
    def from_records(grid: Grid, records: LaneRecords) -> PhaseMap:
        """Read the map off the records of `grid.plan(...)`."""
        shape = (len(grid.s), len(grid.r))
        x = records.x[:, -1]
        return PhaseMap(
            grid=grid,
            steps=int(records.times[-1]),
            replicates=len(records.replicates),
            x=np.median(x, axis=1).reshape(shape),
            right_share=(x < 0).mean(axis=1).reshape(shape),
            average_regret=np.median(records.average_regret[:, -1], axis=1).reshape(shape),
        )


def write_phase_map(
    path: str | os.PathLike[str], phase_map: PhaseMap, verdicts: Sequence[Sequence[str]]
) -> None:
    """Write a tidy CSV, one row a point: r, s, the certificate's verdict, what was measured."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["r", "s", "theory", "x_median", "share_x_below_0", "average_regret_median"])
        for i, s in enumerate(phase_map.grid.s):
            for j, r in enumerate(phase_map.grid.r):
                measured = (phase_map.x, phase_map.right_share, phase_map.average_regret)
                writer.writerow([r, s, verdicts[i][j], *(f"{values[i, j]:.6g}" for values in measured)])
