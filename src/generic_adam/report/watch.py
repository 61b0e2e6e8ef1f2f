"""The figure of a watched run: what the theory speaks of, as it was while training."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from generic_adam.errors import DataError
from generic_adam.experiments.figures import PALETTE, house_style
from generic_adam.extras import from_extra
from generic_adam.report.contents import WATCH_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# (column, title, whether the axis is logarithmic)
_PANELS: Final = (
    ("chi", r"$\chi_t = \alpha_t / \sqrt{1 - \theta_t}$", True),
    ("ratio", "ratio of condition 4", True),
    ("gradient_norm", r"$\|g_t\|$", True),
    ("update_norm", r"$\|x_{t+1} - x_t\|$", True),
    ("step_size_median", r"step size $\alpha_t / \sqrt{v_t}$, 5 to 95 %", True),
    ("negative_gamma", r"share of $\Gamma_t < 0$", False),
)


def draw_watch(path: str | Path, text: str | None = None) -> Figure:
    """Draw the CSV that `generic_adam.torch.Watch` wrote, one line a parameter group.

    Args:
        path: the CSV.
        text: what it holds; None reads the file.

    Raises:
        DataError: the file cannot be read, or holds no record.
    """
    with from_extra("experiments"):
        from matplotlib.figure import Figure

    records = _read(Path(path), text)
    with house_style():
        figure = Figure(figsize=(9.6, 5.4))
        panels = figure.subplots(2, 3, sharex=True)
        groups = np.unique(records["group"])
        for axes, (column, title, logarithmic) in zip(panels.flat, _PANELS, strict=True):
            if column in (records.dtype.names or ()):
                _draw_panel(axes, records, groups, column, logarithmic)
            axes.set_title(title, fontsize=9.5, fontweight="normal")
        for axes in panels[1]:
            axes.set_xlabel("step $t$")
        if len(groups) > 1:
            panels[0, 0].legend()
    return figure


def _draw_panel(axes: Axes, records: np.ndarray, groups: np.ndarray, column: str, logarithmic: bool) -> None:
    for index, group in enumerate(groups):
        rows = records[records["group"] == group]
        colour = PALETTE[index % len(PALETTE)]
        axes.plot(rows["step"], rows[column], color=colour, label=f"group {int(group)}")
        if column == "step_size_median" and {"step_size_low", "step_size_high"} <= set(
            records.dtype.names or ()
        ):
            axes.fill_between(
                rows["step"], rows["step_size_low"], rows["step_size_high"], color=colour, alpha=0.16, lw=0
            )
    values = records[column]
    if logarithmic and np.any(values > 0):
        axes.set_yscale("log")
    if not logarithmic:
        axes.set_ylim(-0.03, 1.03)


def _read(path: Path, text: str | None) -> np.ndarray:
    try:
        source = path if text is None else io.StringIO(text)
        records = np.genfromtxt(source, delimiter=",", names=True, encoding="utf-8", invalid_raise=True)
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    records = np.atleast_1d(records)
    if records.size == 0:
        raise DataError(f"cannot draw {path}: it holds no record")
    missing = sorted(WATCH_COLUMNS - set(records.dtype.names or ()))
    if missing:
        raise DataError(f"cannot draw {path}: it has no column {missing[0]!r}")
    if not (np.isfinite(records["step"]).all() and np.isfinite(records["group"]).all()):
        raise DataError(f"cannot draw {path}: a step or a group is no number")
    return records
