"""The figures of the network studies: one for each question that a study asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from generic_adam.answers.figures import (
    BLUE,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    along_path,
    drawing,
    legend_below,
    save_figure,
)
from generic_adam_laboratory.studies.study import MEASURES, Curve, Study, by_method, initial_values, last_epoch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES: Final[dict[str, tuple[str, Any]]] = {
    "RMSProp": (PURPLE, (0, (5, 1.5))),
    "AMSGrad": (GREY, (0, (1.5, 1.5))),
    "Adam, corrected": ("#7B3294", (0, (4, 1, 1, 1))),
    "NAdam": (ORANGE, (0, (3, 1))),
    "AdaGrad in stages": ("#117733", "-"),
    "SGD": ("#332288", "-"),
    "SGD, momentum": ("#332288", (0, (3, 1))),
    "r = 0, no cut-off": (VERMILION, (0, (3, 1))),
    "r = 1, no cut-off": (BLUE, (0, (3, 1))),
}
"""Colour and dashes of what is not on the path of r; lines that lie on one another are told apart by both."""

_THEIRS: Final = ("#D55E00", "#E69F00", "#CC79A7", "#8C4A00", "#B8A000")
_OURS: Final = ("#0072B2", "#009E73", "#56B4E9", "#332288", "#117733")
"""In a study of costs: what people use, and what is certified or advised."""

_ROW_HEIGHT, _HEAD_HEIGHT = 2.7, 1.1


def plot_study(study: Study, curves: Sequence[Curve], stem: Path) -> tuple[Path, Path]:
    """Plot a study, medians over its seeds and their range as a band; what it compares decides the panels."""
    draw, rows = {
        "methods": (_methods, 3 * len(initial_values(curves) or [None])),
        "initial v": (_initial_v, 1),
        "costs": (partial(_costs, study), 2.2),
    }[study.compares]
    with drawing(7.6, _ROW_HEIGHT * rows + _HEAD_HEIGHT) as figure:  # narrow enough for a phone
        draw(figure, curves)
        figure.suptitle(study.title, x=0.01, ha="left", fontweight="bold")
        return save_figure(figure, stem)


def _methods(figure: Figure, curves: Sequence[Curve]) -> None:
    """Three rows for each v_0: a measure on the paper's own axis, beside its ratio to r = 1, where lines come apart."""
    from matplotlib.ticker import PercentFormatter

    values = initial_values(curves) or [None]
    columns = 1 + any(curve.r == 1 for curve in curves)
    axes = figure.subplots(3 * len(values), columns, squeeze=False)
    for rows, value in zip(axes.reshape(-1, 3, columns), values, strict=True):
        runs = by_method(curves, value)
        reference = {curve.seed: curve for found in runs.values() for curve in found if curve.r == 1}
        colours = {
            label: _STYLES.get(label, (GREY,))[0] if found[0].r is None else along_path(float(found[0].r))
            for label, found in runs.items()
        }
        start = "" if value is None else f", $v_0 = {_power(value)}$"
        for panels, (measure, name) in zip(rows, MEASURES.items(), strict=True):
            _draw(panels[0], runs, measure, colours)
            panels[0].set_title(f"{name}{start}")
            is_share = measure == "test_accuracy"
            if is_share:
                panels[0].yaxis.set_major_formatter(PercentFormatter(1))
            else:
                _logarithmic(panels[0])
            for panel in panels[1:]:  # 99 % over 98 % shows nothing, errors of 1 % over 2 % do
                _draw(panel, runs, "test_error" if is_share else measure, colours, reference)
                panel.set_title(f"{'test error' if is_share else name} ÷ that of r = 1")
    for panel in axes[-1]:
        panel.set_xlabel("epoch")
    legend_below(figure, axes[0][0], 4)


def _initial_v(figure: Figure, curves: Sequence[Curve]) -> None:
    """Training loss of r = 0 over that of r = 1: against epochs for each v_0, and against v_0."""
    over_time, over_values = figure.subplots(1, 2)
    values, epoch = initial_values(curves), last_epoch(curves)
    adaema = {curve.seed: curve for curve in curves if curve.r == 1}
    adam = {value: [c for c in curves if c.r == 0 and c.initial_v == value] for value in values}
    shades = {f"$v_0 = {_power(v)}$": along_path(n / max(1, len(values) - 1)) for n, v in enumerate(values)}
    named = {label: adam[value] for label, value in zip(shades, values, strict=True)}
    _draw(over_time, named, "train_loss", shades, adaema)
    over_time.set_title("training loss, r = 0 ÷ r = 1")
    over_time.set_xlabel("epoch")
    over_time.axhline(1, color="#4A4A4A", lw=0.8)
    _logarithmic(over_time)
    for after, dashes in ((1, (0, (1.5, 1.5))), (epoch, "-")):
        ratios = [
            [c.after(after, "train_loss") / adaema[c.seed].after(after, "train_loss") for c in adam[value]]
            for value in values
        ]
        middle, label = [median(r) for r in ratios], f"after epoch {after}"
        over_values.plot(values, middle, marker="o", color=VERMILION, ls=dashes, label=label)
        low, high = [min(r) for r in ratios], [max(r) for r in ratios]
        over_values.fill_between(values, low, high, color=VERMILION, alpha=0.18, lw=0)
    over_values.axhline(1, color="#4A4A4A", lw=0.8)
    over_values.set(xscale="log", xlabel="$v_0$")
    over_values.set_title("against $v_0$: below 1 Adam is ahead")
    over_values.legend()
    _logarithmic(over_values)
    legend_below(figure, over_time, 4)


def _costs(study: Study, figure: Figure, curves: Sequence[Curve]) -> None:
    """Training and test loss, and where each method ends, with the range over seeds."""
    halves: Any = figure.subfigures(2, 1)  # with margins of their own: the last panel has long labels
    above, below = halves
    training, test = above.subplots(1, 2)
    ends = below.subplots()
    runs, epoch = by_method(curves, None), last_epoch(curves)
    is_text = study.dataset == "stdlib"
    kind = "validation" if is_text else "test"
    families = {line.label: line.optimizer.family for line in study.lines}
    theirs = [label for label in runs if families[label].startswith("torch")]
    ours = [label for label in runs if label not in theirs]
    colours = dict(zip((*theirs, *ours), (*_THEIRS[: len(theirs)], *_OURS), strict=False))
    for panel, measure, name in ((training, "train_loss", "training loss"), (test, "test_loss", f"{kind} loss")):
        _draw(panel, runs, measure, colours)
        _logarithmic(panel)
        panel.set_title(name)
        panel.set_xlabel("epoch of 250 steps" if is_text else "epoch")
    for place, (label, found) in enumerate(reversed(runs.items())):
        shade = colours[label]
        for measure, marker, lift, fill in (("train_loss", "s", 0.13, "white"), ("test_loss", "o", -0.13, shade)):
            values = [curve.after(epoch, measure) for curve in found]
            middle = median(values)
            error = [[middle - min(values)], [max(values) - middle]]
            style = {"fmt": marker, "ms": 5, "capsize": 2, "color": shade, "mfc": fill}
            ends.errorbar(middle, place + lift, xerr=error, **style)
    ends.set_yticks(range(len(runs)), list(reversed(runs)))
    ends.set_title(f"at the end: □ training, ● {kind} loss")
    ends.set_xlabel("loss: median and range over the seeds")
    ends.grid(axis="y", visible=False)
    for text, label in zip(ends.get_yticklabels(), reversed(runs), strict=True):
        text.set_color(colours[label])
    losses = [curve.after(epoch, measure) for curve in curves for measure in ("train_loss", "test_loss")]
    if max(losses) > 4 * min(losses):
        _logarithmic(ends, of="x")


def _draw(
    panel: Axes,
    runs: Mapping[str, Sequence[Curve]],
    measure: str,
    colours: Mapping[str, str],
    reference: Mapping[int, Curve] | None = None,
) -> None:
    """Each method's median against epochs, with the range over seeds; as a ratio to the run of the seed."""
    from matplotlib.ticker import MaxNLocator

    for label, found in runs.items():
        curves = [curve for curve in found if not reference or curve.seed in reference]
        length = min((len(curve.records) for curve in curves), default=0)
        epochs = range(1, length + 1)
        values = [[_value(curve, measure, epoch, reference) for curve in curves] for epoch in epochs]
        shade = colours[label]
        middle = [median(v) for v in values]
        dashes = _STYLES.get(label, (GREY, "-"))[1]
        # One epoch is a point, and there a ring stands for dashes.
        point: dict[str, Any] = {"marker": "o", "mfc": shade if dashes == "-" else "white"} if length == 1 else {}
        panel.plot(epochs, middle, color=shade, ls=dashes, label=label, **point)
        if len(curves) > 1:
            lows, highs = [min(v) for v in values], [max(v) for v in values]
            panel.fill_between(epochs, lows, highs, color=shade, alpha=0.18, lw=0)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _value(curve: Curve, measure: str, epoch: int, reference: Mapping[int, Curve] | None) -> float:
    def measured(one: Curve) -> float:
        return 1 - one.after(epoch, "test_accuracy") if measure == "test_error" else one.after(epoch, measure)

    if not reference:
        return measured(curve)
    other = measured(reference[curve.seed])
    return measured(curve) / other if other else math.nan


def _logarithmic(panel: Axes, of: str = "y") -> None:
    """Label a logarithmic axis with 0.2, 0.5 and 1 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set(**{f"{of}scale": "log"})
    axis = panel.yaxis if of == "y" else panel.xaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    """1e-08 as 10^{-8}, for a formula."""
    exponent = math.log10(value)
    return f"10^{{{exponent:.0f}}}" if exponent == round(exponent) else f"{value:g}"
