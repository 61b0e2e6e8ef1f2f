"""The figure of the counterexample: average regret and x against t, median and band over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from generic_adam.experiments.counterexample import Plan, simulate
from generic_adam.experiments.counterexample.algorithms import Algorithm, GenericAdam, as_algorithm
from generic_adam.experiments.counterexample.claims import ARRIVED, MIDDLE, claims, claims_as_printed
from generic_adam.experiments.counterexample.figure import PANELS, Panel, figure_methods
from generic_adam.experiments.counterexample.lane_records import (
    QUANTILES,
    LaneRecords,
    write_outcomes,
    write_quantiles,
)
from generic_adam.experiments.records import atomic_write, write_claims, write_manifest
from generic_adam.extras import from_extra
from generic_adam.methods import Method
from generic_adam.report.style import BLUE, GREEN, PALETTE, VERMILION, colour_for, house_style, save_figure
from generic_adam.theorems.zou2019 import examine_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGINS = {"left": 0.06, "right": 0.985, "bottom": 0.115, "top": 0.955, "wspace": 0.09, "hspace": 0.15}
_FIRST_SHOWN = 100  # before this R(t)/t is the luck of a few draws: one rare slope at t = 10 makes it 200


def plot_counterexample(records: LaneRecords, stem: str | Path) -> tuple[Path, Path]:
    """Draw Figure 1 of the paper, six panels, as SVG and PNG.

    Args:
      records: the figure's ten curves (others are not drawn).
      stem: path without ending.

    Returns:
      The two paths, SVG first.
    """
    with from_extra("experiments"):
        import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots(
            2, len(PANELS), figsize=(11.4, 6.2), sharex=True, sharey="row", gridspec_kw=_MARGINS
        )
        # Fixed margins: the automatic layout measures every tick, which takes longer than all the lanes.
        figure.set_layout_engine("none")
        try:
            for column, panel in enumerate(PANELS):
                _draw_panel(axes[0, column], axes[1, column], records, panel)
            _name_axes(axes, records)
            return save_figure(figure, stem)
        finally:
            plt.close(figure)


def draw_ends(records: LaneRecords, labels: Mapping[str, str]) -> Figure:
    """Draw x_t against t, median and the band that holds 80 % of the seeds: who ends where.

    Args:
      records: two methods or more.
      labels: what the legend says, by the label of the records; the first is drawn as the one that fails.
    """
    with from_extra("experiments"):
        from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=(7.6, 3.3))
        axes = figure.subplots()
        for colour, (key, label) in zip((VERMILION, BLUE, GREEN), labels.items(), strict=False):
            low, median, high = np.quantile(records.x[records.index(key)], (0.1, 0.5, 0.9), axis=1)
            axes.fill_between(records.times, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(records.times, median, color=colour, label=label)
        last = int(records.times[-1])
        axes.set(xscale="log", xlim=(10, last), ylim=(-1.12, 1.28), xlabel="step $t$", ylabel="$x_t$")
        axes.set_yticks([-1, 0, 1], ["−1\n(best)", "0", "1\n(worst)"])
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.0))
    return figure


def _draw_panel(above: Axes, below: Axes, records: LaneRecords, panel: Panel) -> None:
    shown = records.times >= _first_shown(records)
    times = records.times[shown]
    for place_in_panel, label in enumerate(panel.curves):
        place, short = records.index(label), panel.short_label(label)
        # The path of colours belongs to r; values of s lie too close on it to be told apart.
        colour = PALETTE[place_in_panel] if short.startswith("s") else colour_for(short)
        for axes, lanes in ((above, records.average_regret[place]), (below, records.x[place])):
            low, median, high = np.quantile(lanes[shown], QUANTILES, axis=1)
            axes.fill_between(times, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(times, median, color=colour, label=short)
    above.set_title(f"({panel.letters[0]})  {panel.title}", fontsize=10, y=1.0)
    below.set_title(f"({panel.letters[1]})", fontsize=10, y=1.0)
    above.legend(loc="upper right", labelspacing=0.25)


def _first_shown(records: LaneRecords) -> int:
    """Where the axis begins; a run that ends before that is shown whole."""
    return _FIRST_SHOWN if records.times[-1] > _FIRST_SHOWN else 1


def _name_axes(axes: np.ndarray, records: LaneRecords) -> None:
    from matplotlib.ticker import NullLocator

    above, below = axes
    above[0].set_ylabel("average regret R(t)/t")
    below[0].set_ylabel("xₜ   (best: −1)")
    above[0].set_ylim(0.01, 10)  # before the scale, which would complain of a short run's regret of 0
    above[0].set_yscale("log")
    above[0].yaxis.set_minor_locator(NullLocator())
    below[0].set_ylim(-1.06, 1.06)
    below[0].set_yticks([-1, -0.5, 0, 0.5, 1])
    for panel in below:
        panel.set_xscale("log")
        panel.set_xlim(_first_shown(records), max(records.times[-1], 2))
        panel.set_xlabel("step t")
        panel.xaxis.set_minor_locator(NullLocator())
    seeds = len(records.replicates)
    below[-1].text(
        1.0, -0.24, f"median and 10–90 % band over {seeds} seeds" if seeds > 1 else "one seed",
        transform=below[-1].transAxes, ha="right", va="top", fontsize=8, color="#5A5A5A",
    )  # fmt: skip


OUTCOME_HEADINGS = ("method", "x_T: median", "10–90 %", "x_T < 0", "x_T ≤ −0.9", "R(T)/T: median", "theory")
"""The columns of `outcome_rows`."""


def outcome_rows(methods: Mapping[str, Method | Algorithm], records: LaneRecords) -> list[tuple[str, ...]]:
    """Say who converges here: where each method's lanes ended, and what the certificate says of it."""
    rows: list[tuple[str, ...]] = []
    for label, method in methods.items():
        x, regret = records.final_x(label), records.final_regret(label)
        low, median, high = np.quantile(x, QUANTILES)
        rows.append(
            (
                label,
                _signed(median),
                f"{_signed(low)} … {_signed(high)}",
                f"{int((x < MIDDLE).sum())} of {x.size}",
                f"{int((x <= ARRIVED).sum())} of {x.size}",
                f"{np.median(regret):.4f}",
                _theory(method),
            )
        )
    return rows


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _theory(method: Method | Algorithm) -> str:
    """The certificate's verdict; it speaks of Generic Adam only."""
    algorithm = as_algorithm(method)
    return (
        str(examine_method(algorithm.method).verdict)
        if isinstance(algorithm, GenericAdam)
        else "another algorithm"
    )


def write_results(
    folder: Path,
    plan: Plan,
    records: LaneRecords,
    command: str,
    timing: Mapping[str, Any],
    seconds: float,
) -> None:
    """Write everything a reader needs: figure, records, outcomes, claims, manifest."""
    plot_counterexample(records, folder / "counterexample")
    write_quantiles(folder / "records.csv", records)
    write_outcomes(folder / "outcomes.csv", records)
    write_outcome_table(folder / "outcomes.md", outcome_rows(plan.methods, records))
    printed = replace(
        plan,
        methods=figure_methods(),
        steps=min(plan.steps, 10**4),
        problem=replace(plan.problem, as_printed=True),
    )
    beside = simulate(printed)
    write_claims(folder, claims_as_printed(beside) if plan.problem.as_printed else claims(records, beside))
    write_manifest(folder / "manifest.json", command, plan.settings() | dict(timing), seconds)


def write_outcome_table(path: str | Path, rows: list[tuple[str, ...]]) -> Path:
    """Write `outcome_rows` as a Markdown table."""
    lines = [OUTCOME_HEADINGS, ("---", *["---:"] * 5, "---"), *rows]
    with atomic_write(path) as file:
        file.writelines("| " + " | ".join(line) + " |\n" for line in lines)
    return Path(path)
