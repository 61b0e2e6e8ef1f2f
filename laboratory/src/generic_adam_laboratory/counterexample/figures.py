"""The counterexample in figures and tables: ten curves with their bands, and who arrives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import generic_adam as ga
from generic_adam.answers.figures import GREY, PALETTE, along_path, drawing, save_figure
from generic_adam_laboratory.counterexample.simulation import LaneRecords, Subject, algorithm_of
from generic_adam_laboratory.counterexample.study import (
    ARRIVED,
    MIDDLE,
    PANELS,
    QUANTILES,
    Outcome,
    Study,
    claims,
)
from generic_adam_laboratory.runs.records import Occasion, write_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGINS = {"left": 0.085, "right": 0.985, "bottom": 0.08, "top": 0.97, "wspace": 0.23, "hspace": 0.17}
_FIRST_SHOWN = 100  # before this R(t)/t is the luck of a few draws: one rare slope at t = 10 makes it 200


def write_study(study: Study, folder: Path, outcome: Outcome, occasion: Occasion) -> None:
    """Write everything a reader needs: figure, records, tables, claims, manifest."""
    plan, records = study.plan, outcome.records
    plot_counterexample(records, folder / "counterexample")
    quantiles = [f"{name}_q{round(100 * q)}" for name in ("x", "average_regret") for q in QUANTILES]
    tables: dict[str, Any] = {
        "records.csv": (("method", "t", *quantiles), _quantile_rows(records)),
        "outcomes.csv": (("method", "T", "replicate", "x", "average_regret"), _lane_rows(outcome)),
        "outcomes.md": (
            ("method", "T", "x_T: median", "10–90 %", "x_T < 0", "x_T ≤ −0.9", "R(T)/T: median", "theory"),
            outcome_rows(plan.methods, outcome),
        ),
    }
    write_results(folder, occasion, tables, claims(outcome, plan.problem))


def outcome_rows(methods: Mapping[str, Subject], outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Say who converges here: where each method's lanes ended, and what the certificate says of it."""
    for records in (outcome.records, *outcome.longer):
        for label in records.labels:
            x, regret = records.final_x(label), records.final_regret(label)
            low, median, high = map(_signed, np.quantile(x, QUANTILES))
            going, arrived = (f"{int(lanes.sum())} of {x.size}" for lanes in (x < MIDDLE, x <= ARRIVED))
            last, pays = f"{int(records.times[-1]):,}", f"{np.median(regret):.4f}"
            yield label, last, median, f"{low} … {high}", going, arrived, pays, _theory(methods[label])


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _theory(subject: Subject) -> str:
    return str(ga.certify(algorithm_of(subject)).verdict)


def _quantile_rows(records: LaneRecords) -> Iterator[Sequence[object]]:
    """One row a method and t, with the quantiles over replicates."""
    x = np.quantile(records.x, QUANTILES, axis=2)
    regret = np.quantile(records.average_regret, QUANTILES, axis=2)
    for place, label in enumerate(records.labels):
        for k, t in enumerate(records.times.tolist()):
            yield [label, t, *(f"{value:.6g}" for value in (*x[:, place, k], *regret[:, place, k]))]


def _lane_rows(outcome: Outcome) -> Iterator[Sequence[object]]:
    """One row a lane: where it ended, with all digits."""
    for records in (outcome.records, *outcome.longer):
        for place, label in enumerate(records.labels):
            for i, replicate in enumerate(records.replicates):
                end = (float(records.x[place, -1, i]), float(records.average_regret[place, -1, i]))
                yield [label, int(records.times[-1]), replicate, *map(repr, end)]


def plot_counterexample(records: LaneRecords, stem: str | Path) -> tuple[Path, Path]:
    """Draw Figure 1 of the paper, six panels with its ten curves, as SVG and PNG."""
    with drawing(7.6, 8.6) as figure:
        # Fixed margins: the automatic layout measures every tick, which takes longer than all the lanes.
        figure.set_layout_engine("none")
        axes = figure.subplots(len(PANELS), 2, sharex=True, sharey="col", gridspec_kw=_MARGINS)
        for (pays, ends), letters in zip(axes, PANELS, strict=True):
            _draw_panel(pays, ends, records, letters)
        _name_axes(axes, records)
        return save_figure(figure, stem)


def _draw_panel(pays: Axes, ends: Axes, records: LaneRecords, letters: str) -> None:
    title, curves = PANELS[letters]
    shown = records.times >= _first_shown(records)
    times = records.times[shown]
    for place, curve in enumerate(curves):
        row = records.index(curve.label)
        # The path of colours belongs to r; values of s lie too close on it to be told apart.
        colour = PALETTE[place] if letters == "cf" else along_path(float(curve.r))
        # Two curves that coincide, as r = 0 and 0.25 do, stay visible: the first is wide, the rest lie on it.
        width = 4.2 if place == 0 and letters == "ad" else 1.7
        for axes, lanes in ((pays, records.average_regret[row]), (ends, records.x[row])):
            low, median, high = np.quantile(lanes[shown], QUANTILES, axis=1)
            axes.fill_between(times, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(times, median, color=colour, label=curve.short_label, linewidth=width)
    pays.set_title(f"({letters[0]})  {title}", fontsize=10, y=1.0)
    ends.set_title(f"({letters[1]})", fontsize=10, y=1.0)
    pays.legend(loc="upper right", labelspacing=0.25)


def _first_shown(records: LaneRecords) -> int:
    """Return the beginning of the axis; a run that ends before that is shown whole."""
    return _FIRST_SHOWN if records.times[-1] > _FIRST_SHOWN else 1


def _name_axes(axes: np.ndarray, records: LaneRecords) -> None:
    from matplotlib.ticker import NullLocator

    for pays, ends in axes:
        pays.set_ylabel("average regret R(t)/t")
        ends.set_ylabel("xₜ   (best: −1)")
    pays, ends = axes[-1]
    pays.set_ylim(0.01, 10)  # before the scale, which would complain of a short run's regret of 0
    for panel in axes[:, 0]:
        panel.set_yscale("log")
        panel.yaxis.set_minor_locator(NullLocator())
    ends.set_ylim(-1.06, 1.06)
    ends.set_yticks([-1, -0.5, 0, 0.5, 1])
    for panel in (pays, ends):
        panel.set_xscale("log")
        panel.set_xlim(_first_shown(records), max(records.times[-1], 2))
        panel.set_xlabel("step t")
        panel.xaxis.set_minor_locator(NullLocator())
    seeds = len(records.replicates)
    ends.text(
        1.0, -0.24, f"median and 10–90 % band over {seeds} seeds" if seeds > 1 else "one seed",
        transform=ends.transAxes, ha="right", va="top", fontsize=8, color=GREY,
    )  # fmt: skip
