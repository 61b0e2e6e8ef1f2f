"""Measured against bounded: the theorems' two sides on one axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import generic_adam as ga
from generic_adam.experiments.bound import DELTAS, Comparison, claims
from generic_adam.experiments.records import (
    Claim,
    atomic_write,
    markdown_table,
    write_claims,
    write_csv,
    write_manifest,
)
from generic_adam.extras import from_extra
from generic_adam.report.style import GREY, along_path, house_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADINGS = (
    "panel",
    "method",
    "measured",
    "W or E",
    "the paper's",
    "trivial",
    "slope measured",
    "slope W or E",
    "rate",
)
"""The columns of `rows`, all at the last T."""


def rows(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Return a line a method, at the last T."""
    found: list[tuple[str, ...]] = []
    for one in comparisons:
        rate = ga.certify(one.member.algorithm.method).rate
        measured, sharper = one.slopes
        found.append(
            (
                one.member.panel, one.member.label, f"{one.measured.weighted[-1]:.3g}",
                f"{one.sharper[-1]:.3g} ({one.theorem})",
                "none" if np.isnan(one.paper[-1]) else f"{one.paper[-1]:.3g}", f"{one.trivial:.3g}",
                _two_digits(measured), _two_digits(sharper), "none" if rate is None else str(rate),
            )
        )  # fmt: skip
    return found


def _two_digits(slope: float) -> str:
    return f"{round(slope, 2) + 0.0:.2f}"  # the sum turns a rounded -0.0, printed "-0.00", into 0.0


def write_results(
    folder: Path, comparisons: Sequence[Comparison], command: str, settings: Mapping[str, Any], seconds: float
) -> list[Claim]:
    """Write figure, records, tables, claims and manifest; return the claims."""
    plot_bound(comparisons, folder / "bound")
    write_csv(folder / "records.csv", _RECORD_HEADINGS, _records(comparisons))
    write_csv(folder / "theorem-2.csv", _SHARE_HEADINGS, _shares(comparisons))
    with atomic_write(folder / "outcomes.md") as file:
        file.write(markdown_table(HEADINGS, rows(comparisons), left=("panel", "method", "rate")))
    found = claims(comparisons)
    write_claims(folder, found)
    write_manifest(folder / "manifest.json", command, settings, seconds)
    return found


_RECORD_HEADINGS = (
    "panel", "method", "T", "measured_uniform", "low", "high", "measured_weighted", "paper", "sharper",
    "theorem", "trivial",
)  # fmt: skip

_SHARE_HEADINGS = ("panel", "method", "delta", "level", "promised", "share")


def _records(comparisons: Sequence[Comparison]) -> Iterable[Sequence[object]]:
    """Every point of the figure; beyond the measurement only the paper's bound has a value."""
    for one in comparisons:
        data, names = one.measured, (one.member.panel, one.member.label)
        kind = (one.theorem, f"{one.trivial:.9g}")
        columns = (data.uniform, data.low, data.high, data.weighted, one.paper, one.sharper)
        for place, steps in enumerate(data.steps):
            values = ["" if np.isnan(column[place]) else f"{column[place]:.9g}" for column in columns]
            yield (*names, int(steps), *values, *kind)
        for steps, value in zip(one.far_steps[1:], one.far_paper[1:], strict=True):
            if not np.isnan(value):
                yield (
                    *names,
                    int(steps),
                    "",
                    "",
                    "",
                    "",
                    f"{value:.9g}",
                    "",
                    one.theorem,
                    f"{one.trivial:.9g}",
                )


def _shares(comparisons: Sequence[Comparison]) -> Iterable[Sequence[object]]:
    """The share of (seed, tau) below B/delta at the last T, for the smallest bound that there is."""
    for one in comparisons:
        bound = one.sharper[-1] if np.isnan(one.paper[-1]) else min(one.paper[-1], one.sharper[-1])
        for delta in DELTAS:
            share = one.measured.share_below(-1, bound / delta)
            promised = 1 - delta ** (2 / 3)
            yield (
                one.member.panel,
                one.member.label,
                delta,
                f"{bound / delta:.6g}",
                f"{promised:.6g}",
                f"{share:.6g}",
            )


def plot_bound(comparisons: Sequence[Comparison], stem: Path) -> tuple[Path, Path]:
    """Draw measured, bounded and trivial, one panel for each beta and eps."""
    with from_extra("experiments"):
        from matplotlib import pyplot as plt
        from matplotlib.lines import Line2D

    panels = list(dict.fromkeys(one.member.panel for one in comparisons))
    with house_style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=(3.9 * len(panels), 4.4), squeeze=False, sharey=True
        )
        for axis, panel in zip(axes[0], panels, strict=True):
            axis.set_title(panel)
            _draw_panel(axis, [one for one in comparisons if one.member.panel == panel])
        axes[0][0].set_ylabel(r"$(\mathbb{E}\,\|\nabla f(x_\tau)\|^{4/3})^{3/2}$")
        handles = [
            Line2D([], [], color=GREY, linewidth=2.0, label="measured"),
            Line2D([], [], color=GREY, linewidth=1.6, linestyle="--", label="Theorem W (with eps: E)"),
            Line2D([], [], color=GREY, linewidth=1.6, linestyle=":", label="the paper's Theorem 1"),
            Line2D([], [], color="black", linewidth=1.0, label="with no theorem"),
        ]
        handles += [
            Line2D([], [], color=along_path(r), linewidth=2.4, label=f"r = {r:g}")
            for r in sorted({one.member.r for one in comparisons})
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9)
        paths = save_figure(figure, stem)
        plt.close(figure)
    return paths


def _draw_panel(axis: Axes, comparisons: Sequence[Comparison]) -> None:
    # Wide lines first: where two methods measure the same, both colours stay visible.
    for one, width in zip(comparisons, np.linspace(3.4, 1.4, len(comparisons)), strict=True):
        colour, steps = along_path(one.member.r), one.measured.steps
        axis.plot(steps, one.measured.weighted, color=colour, linewidth=width)
        axis.plot(steps, one.sharper, color=colour, linestyle="--", linewidth=1.6)
        axis.plot(steps, one.paper, color=colour, linestyle=":", linewidth=1.6)
    axis.axhline(comparisons[0].trivial, color="black", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps T")
