"""Measured against bounded: Theorem 1's two sides on one axis, with their slopes."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from generic_adam.experiments.measured import BoundedWell, Measurement
from generic_adam.experiments.records import Claim, atomic_write
from generic_adam.methods import Method
from generic_adam.report.style import colour_for, house_style, save_figure
from generic_adam.theory.bound import bound
from generic_adam.theory.certificate import certify
from generic_adam.theory.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADINGS = ("method", "T", "measured", "bound", "bound / measured", "slope measured", "slope bound", "rate")


@dataclass(frozen=True, eq=False)
class Comparison:
    """One method's two sides of Theorem 1.

    Args:
      label: what the legend calls the method.
      method: its sequences.
      measured: the left side.
      bounds: the right side at the same numbers of steps.
    """

    label: str
    method: Method
    measured: Measurement
    bounds: NDArray[np.float64]

    @property
    def holds(self) -> bool:
        """Whether the measured side is below the bound at every T."""
        return bool(np.all(self.measured.value <= self.bounds))

    @property
    def slopes(self) -> tuple[float, float]:
        """The exponents of T over the last two decades, measured and bounded."""
        late = self.measured.steps >= self.measured.steps[-1] / 100
        time = np.log(self.measured.steps[late])
        sides = (self.measured.value[late], self.bounds[late])
        measured, bounded = (float(np.polyfit(time, np.log(side), 1)[0]) for side in sides)
        return measured, bounded

    @property
    def row(self) -> tuple[str, ...]:
        """The method's line in the table, at the last T."""
        measured, bounded = self.slopes
        left, right = self.measured.value[-1], self.bounds[-1]
        rate = certify(self.method).rate
        return (
            self.label,
            f"{self.measured.steps[-1]:,}",
            f"{left:.3g}",
            f"{right:.3g}",
            f"{right / left:.2g}",
            f"{measured:.2f}",
            f"{bounded:.2f}",
            "none" if rate is None else str(rate),
        )


def problem_of(well: BoundedWell) -> Problem:
    """The constants of the measured problem, as the bound wants them."""
    return Problem(well.smoothness, well.gradient_bound, well.dimension, well.gap, well.epsilon)


def compare(
    methods: Mapping[str, Method], well: BoundedWell, measured: Mapping[str, Measurement]
) -> list[Comparison]:
    """Put the bound of Theorem 1 beside what was measured."""
    problem = problem_of(well)
    return [
        Comparison(
            label,
            method,
            measured[label],
            np.array([bound(method, problem, int(steps)).expectation for steps in measured[label].steps]),
        )
        for label, method in methods.items()
    ]


def plot_bound(panels: Mapping[str, Sequence[Comparison]], stem: Path) -> tuple[Path, Path]:
    """Draw measured (solid, with a band over seeds) and bounded (dashed), one panel a value of beta."""
    from matplotlib import pyplot as plt

    with house_style():
        figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4.2), squeeze=False)
        for axis, (title, comparisons) in zip(axes[0], panels.items(), strict=True):
            axis.set_title(title)
            _draw_panel(axis, comparisons)
        axes[0][0].set_ylabel(r"$(\mathbb{E}\,\|\nabla f(x_\tau)\|^{4/3})^{3/2}$")
        figure.suptitle("Theorem 1: measured (solid) and its bound (dashed)", x=0.01, ha="left", fontsize=11)
        paths = save_figure(figure, stem)
        plt.close(figure)
    return paths


def _draw_panel(axis: Axes, comparisons: Sequence[Comparison]) -> None:
    for one in comparisons:
        colour, steps = colour_for(one.label), one.measured.steps
        measured, bounded = one.slopes
        axis.fill_between(steps, one.measured.low, one.measured.high, color=colour, alpha=0.18, linewidth=0)
        axis.plot(steps, one.measured.value, color=colour, label=f"{one.label}, slope {measured:.2f}")
        axis.plot(steps, one.bounds, color=colour, linestyle="--", label=f"bound, slope {bounded:.2f}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps T")
    # Under the panel: between the two families of lines there is no room that every run leaves free.
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=len(comparisons), fontsize=8)


def write_records(path: Path, panels: Mapping[str, Sequence[Comparison]]) -> Path:
    """Write every point of the figure as CSV."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("panel", "method", "T", "measured", "low", "high", "bound"))
        for panel, comparisons in panels.items():
            for one in comparisons:
                data = one.measured
                for values in zip(data.steps, data.value, data.low, data.high, one.bounds, strict=True):
                    writer.writerow((panel, one.label, int(values[0]), *(f"{x:.9g}" for x in values[1:])))
    return path


def claims(panels: Mapping[str, Sequence[Comparison]]) -> list[Claim]:
    """What the runs say about Theorem 1 and the rates of its corollary."""
    everything = [one for comparisons in panels.values() for one in comparisons]
    closest = min(float(np.min(one.bounds / one.measured.value)) for one in everything)
    readings = sum(len(one.bounds) for one in everything)
    falling = [
        (title, one)
        for title, comparisons in panels.items()
        for one in comparisons
        if certify(one.method).rate is not None
    ]
    faster = all(one.slopes[0] <= one.slopes[1] + 0.05 for _, one in falling)
    slopes = "; ".join(
        f"{title}, {one.label}: {one.slopes[0]:.2f} against {one.slopes[1]:.2f}" for title, one in falling
    )
    return [
        Claim(
            "Theorem 1 bounds (E|grad f(x_tau)|^(4/3))^(3/2) at every T",
            "Theorem 1",
            "supported" if all(one.holds for one in everything) else "contradicted",
            f"{readings} readings of {len(everything)} methods; the bound is at least "
            f"{_power_of_ten(closest)} times what is measured",
        ),
        Claim(
            "the measured side falls at least as fast as the bound of a certified method",
            "Corollary on the power family",
            "supported" if faster else "unclear",
            f"exponents of T over the last two decades: {slopes}",
        ),
    ]


def _power_of_ten(number: float) -> str:
    return f"10^{math.floor(math.log10(number))}"
