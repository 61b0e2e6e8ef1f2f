"""The figures of the network studies: three panels as in the paper, a row for each v_0; and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Final

from generic_adam.experiments.study_records import (
    MEASURES,
    Curve,
    at_epoch,
    common_epochs,
    epsilons,
    methods,
)
from generic_adam.extras import from_extra
from generic_adam.report.style import colour_for, house_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES: Final = {
    "train_loss": "training loss",
    "test_accuracy": "test accuracy",
    "test_loss": "test loss",
}
_DASHES: Final = {
    "RMSProp": (0, (5, 1.5)),
    "AMSGrad": (0, (1.5, 1.5)),
    "Adam, corrected": (0, (4, 1, 1, 1)),
    "Adam, cosine decay": (0, (1.5, 1.5)),
    "certified Adam, K = 10000": (0, (1.5, 1.5)),
}
"""Lines that share a colour, or lie on one another, told apart by their dashes."""

_WIDTH, _ROW_HEIGHT, _LEGEND_HEIGHT = 11.0, 3.1, 0.8


def plot_study(curves: Sequence[Curve], title: str, stem: Path) -> tuple[Path, Path]:
    """Plot training loss, test accuracy and test loss against epochs; the mean over seeds, and their range.

    Args:
        curves: the study.
        title: of the whole figure.
        stem: path without ending.

    Returns:
        The SVG and the PNG.
    """
    with from_extra("experiments"):
        from matplotlib.figure import Figure

    rows = epsilons(curves) or [None]
    with house_style():
        figure = Figure(figsize=(_WIDTH, _ROW_HEIGHT * len(rows) + _LEGEND_HEIGHT), layout="constrained")
        axes = figure.subplots(len(rows), len(MEASURES), squeeze=False, sharex=True)
        for row, epsilon in zip(axes, rows, strict=True):
            for panel, measure in zip(row, MEASURES, strict=True):
                _draw(panel, methods(curves, epsilon), measure)
            if epsilon is not None:
                row[0].set_title(f"{_NAMES[MEASURES[0]]}, $v_0 = {_power(epsilon)}$")
        for panel in axes[-1]:
            panel.set_xlabel("epoch")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8))
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        return save_figure(figure, stem)


def _draw(panel: Axes, by_method: dict[str, list[Curve]], measure: str) -> None:
    from matplotlib.ticker import (
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
        PercentFormatter,
    )

    for label, curves in by_method.items():
        length = min(len(curve.records) for curve in curves)
        epochs = range(1, length + 1)
        values = [[getattr(curve.records[e], measure) for curve in curves] for e in range(length)]
        colour, dashes = colour_for(label), _DASHES.get(label, "-")
        marker = "o" if length == 1 else None
        panel.plot(epochs, [mean(v) for v in values], color=colour, ls=dashes, label=label, marker=marker)
        if len(curves) > 1:
            lows, highs = [min(v) for v in values], [max(v) for v in values]
            panel.fill_between(epochs, lows, highs, color=colour, alpha=0.18, lw=0)
    panel.set_title(_NAMES[measure])
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if measure == "test_accuracy":
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    else:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """1e-08 as 10^{-8}, for a formula."""
    exponent = math.log10(value)
    return f"10^{{{exponent:.0f}}}" if exponent == round(exponent) else f"{value:g}"


def final_headings(curves: Sequence[Curve]) -> tuple[str, ...]:
    """The columns of `final_rows`; v_0 is one of them if it tells the curves apart."""
    return (*(("v_0",) if epsilons(curves) else ()), "method", *(_NAMES[measure] for measure in MEASURES))


def final_rows(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    """What each method reached: the three measures after the last epoch, mean and deviation over seeds."""
    epoch = common_epochs(curves)
    rows: list[tuple[str, ...]] = []
    for epsilon in epsilons(curves) or [None]:
        for label, runs in methods(curves, epsilon).items():
            numbers = tuple(_number(runs, measure, epoch) for measure in MEASURES)
            forgets = all(run.epsilon is None for run in runs)
            start = () if epsilon is None else ("any" if forgets else f"{epsilon:g}",)
            rows.append((*start, label, *numbers))
    return list(dict.fromkeys(rows))


def _number(runs: Sequence[Curve], measure: str, epoch: int) -> str:
    form = ".2%" if measure == "test_accuracy" else ".4f"
    text = format(at_epoch(runs, measure, epoch), form)
    if len(runs) == 1:
        return text
    spread = pstdev(getattr(run.records[min(epoch, len(run.records)) - 1], measure) for run in runs)
    return f"{text} ± {spread:{form}}"


def final_table(curves: Sequence[Curve]) -> str:
    """`final_rows` as a Markdown table."""
    headings = final_headings(curves)
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * (len(headings) - 3) + "---:|" * 3]
    lines += ["| " + " | ".join(row) + " |" for row in final_rows(curves)]
    return "\n".join(lines) + "\n"
