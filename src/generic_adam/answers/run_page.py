"""The page of a watched run: what was found, the loss with the events on it, the budget, and every instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from generic_adam.answers.figures import BLUE, GREEN, GREY, ORANGE, PALETTE, VERMILION, drawing, figure_bytes
from generic_adam.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from generic_adam.watch import Diagnosis
    from generic_adam.watch.records import Record

INSTRUMENTS: Final = {
    "norm": ("gradient norm before clipping", None),
    "lr": ("learning rate", None),
    "update": ("largest update size, in lr", None),
    "stale": ("RMS of gradient over second moment", 4.0),
    "falling": ("share of weights in free fall", 0.9),
    "probed": ("curvature over the edge of stability", None),
    "eps_share": ("share of eps in the divisor", 0.5),
    "reach": ("step over the first weights", 0.4),
    "decay": ("weight decay over step", 0.5),
    "lost": ("share of lost updates", 0.5),
    "skew": ("share of the gradient that is scaled away", 0.5),
    "wrong": ("step made against step stated", 1e-2),
}
"""The columns that are drawn: what they are, and the value above which they are no longer healthy."""

_STYLE: Final = """
body { color: #1c2733; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; margin: 0 auto; max-width: 62rem; padding: 1.5rem }
h1 { font-size: 1.5rem } h2 { border-bottom: 1px solid #dde2e7; color: #0b4f79; font-size: 1.1rem; margin-top: 2rem }
svg { height: auto; max-width: 100% } section { background: #f5f7f9; border-left: 4px solid #b23c00; margin: 1rem 0; padding: .6rem 1rem }
section.good { border-color: #00734f } code { font-family: "DejaVu Sans Mono", monospace; font-size: .9em }
dt { color: #5a6572; float: left; min-width: 6rem } dd { margin-left: 7rem } footer, .soft { color: #5a6572; font-size: .85rem }
"""  # noqa: E501


def write_page(path: Path, name: str, records: Sequence[Record], found: Diagnosis, budget: Mapping[str, Any]) -> None:
    """Write a page that stands alone.

    Args:
        path: the file.
        name: what the run is called.
        records: those of the run.
        found: what they show.
        budget: the shares of the run's budget, as they were saved; empty where none was measured.
    """
    parts = [f"<h1>{escape(name)}: {'healthy' if found.healthy else escape(found.findings[0].title)}</h1>"]
    first, last = found.steps
    parts.append(f'<p class="soft">Steps {first:,} to {last:,}.</p>')
    if found.healthy:
        parts.append('<section class="good">Nothing was found.</section>')
    for one in found.findings:
        numbers = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in one.evidence.items()
        )
        rows = {"since": f"step {one.since:,}", "tensor": one.tensor, "evidence": numbers, "change": one.change}
        rows |= {"settings": ", ".join(f"{key} = {text}" for key, text in one.settings.items()), "page": one.page}
        told = "".join(f"<dt>{key}</dt><dd>{escape(str(text))}</dd>" for key, text in rows.items() if text)
        parts.append(f"<section><b>{escape(one.title)}</b> <code>{one.cause}</code><dl>{told}</dl></section>")
    parts += ["<h2>Loss</h2>", _svg(_draw_loss(records, found))]
    if budget.get("shares"):
        parts += ["<h2>Budget: what the size of the gradient is made of</h2>", _svg(_draw_budget(budget))]
        parts.append(f'<p class="soft">{escape(str(budget.get("text", "")))}</p>')
    parts += ["<h2>Instruments</h2>", _svg(_draw_instruments(records))]
    parts.append(
        '<p class="soft">A point is a window of steps, in its worst tensor. Grey: outside the healthy range. Some '
        "findings need a second sign: in a run that has converged all weights fall freely.</p>"
    )
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}</title><style>{_STYLE}</style>'
    with atomic_write(path) as file:
        file.write("\n".join([head, *parts, "</html>\n"]))


def _svg(figure: Figure) -> str:
    text = figure_bytes(figure, "svg").decode()
    return f"<figure>{text[text.index('<svg') :]}</figure>"


def _column(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([getattr(one, name) for one in records], dtype=float)


def _draw_loss(records: Sequence[Record], found: Diagnosis) -> Figure:
    steps = _column(records, "step")
    with drawing(9.6, 3.2) as figure:
        axes = figure.subplots()
        axes.fill_between(
            steps, _column(records, "loss_low"), _column(records, "loss_high"), color=BLUE, alpha=0.15, lw=0
        )
        axes.plot(steps, _column(records, "loss"), color=BLUE, label="mean of a window, and its range")
        low = _column(records, "loss_low")
        if np.nanmin(low, initial=np.inf) > 0 and np.nanmax(_column(records, "loss_high"), initial=0) > 30 * np.nanmin(
            low
        ):
            axes.set_yscale("log")
        for one, colour in zip(found.findings, [VERMILION, *PALETTE[2:]], strict=False):
            axes.axvspan(one.since, max(one.until, one.since), color=colour, alpha=0.08, lw=0)
            axes.axvline(one.since, color=colour, label=f"{one.cause}, since step {one.since:,}")
        axes.set(xlabel="step", ylabel="loss")
        axes.legend()
    return figure


def _draw_budget(budget: Mapping[str, Any]) -> Figure:
    names = {"curvature": "curvature of the steps (lr)", "loss_drop": "loss still falling", "bias": "Adam's scaling"}
    total = sum(budget[name]["value"] for name in names)
    with drawing(9.6, 1.5) as figure:
        axes, left = figure.subplots(), 0.0
        for (name, text), colour in zip(names.items(), (ORANGE, GREEN, GREY), strict=True):
            share, error = (budget[name][one] / total for one in ("value", "standard_error"))
            axes.barh(0, share, left=left, color=colour, label=f"{text}: {share:.0%} +- {100 * error:.0f}")
            left += share
        axes.set(yticks=[], xlabel="share")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def _draw_instruments(records: Sequence[Record]) -> Figure:
    steps = _column(records, "step")
    with drawing(9.6, 7.2) as figure:
        for axes, (name, (title, limit)) in zip(figure.subplots(4, 3).flat, INSTRUMENTS.items(), strict=True):
            values = _column(records, name)
            there = np.isfinite(values)
            axes.plot(steps[there], values[there], color=BLUE, marker="." if there.sum() < 12 else None)
            axes.set_title(title, fontsize=9, fontweight="normal")
            if limit is not None:
                top = max(1.4 * limit, 1.1 * float(values[there].max(initial=0.0)))
                axes.axhspan(limit, top, color="#E9E9E9", lw=0)
                axes.set_ylim(min(0.0, 1.1 * float(values[there].min(initial=0.0))), top)
            if not there.any():
                axes.text(0.5, 0.4, "not measured", transform=axes.transAxes, ha="center", color=GREY, fontsize=9)
            axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
    return figure
