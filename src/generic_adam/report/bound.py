"""Measured against bounded: Theorem 1's two sides on one axis, with their slopes."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.experiments.measured import BoundedWell, Measurement
from generic_adam.experiments.records import Claim, atomic_write, write_claims, write_manifest
from generic_adam.extras import from_extra
from generic_adam.methods import Method, power_family
from generic_adam.report.style import colour_for, house_style, save_figure
from generic_adam.theorems.bound import bound
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.zou2019 import examine_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FARTHEST = 10**12
"""Where the bound is followed to, beyond what can be measured: there its slope is the rate, or a floor."""
HEADINGS = (
    "method",
    "T",
    "measured",
    "bound",
    "bound / measured",
    "slope measured",
    "slope bound",
    "slope bound at 10^12",
    "rate",
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One method's two sides of Theorem 1.

    Args:
      label: what the legend calls the method.
      method: its sequences.
      measured: the left side.
      bounds: the right side at the same numbers of steps.
      far_steps: numbers of steps beyond the measurement.
      far_bounds: the right side there.
    """

    label: str
    method: Method
    measured: Measurement
    bounds: NDArray[np.float64]
    far_steps: NDArray[np.int64]
    far_bounds: NDArray[np.float64]

    @property
    def holds(self) -> bool:
        """Whether the measured side is below the bound at every T."""
        return bool(np.all(self.measured.value <= self.bounds))

    @property
    def slopes(self) -> tuple[float, float]:
        """The exponents of T over the last two decades, measured and bounded."""
        steps = self.measured.steps
        return _slope(steps, self.measured.value), _slope(steps, self.bounds)

    @property
    def far_slope(self) -> float:
        """The exponent of T in the bound over the last two decades it was followed."""
        return _slope(self.far_steps, self.far_bounds)

    @property
    def row(self) -> tuple[str, ...]:
        """The method's line in the table, at the last T."""
        measured, bounded = self.slopes
        left, right = self.measured.value[-1], self.bounds[-1]
        rate = examine_method(self.method).rate
        return (
            self.label,
            f"{self.measured.steps[-1]:,}",
            f"{left:.3g}",
            f"{right:.3g}",
            f"{right / left:.2g}",
            _two_digits(measured),
            _two_digits(bounded),
            _two_digits(self.far_slope),
            "none" if rate is None else str(rate),
        )


def _slope(steps: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """The exponent of T over the last two decades, by least squares on the logarithms."""
    late = steps >= steps[-1] / 100
    return float(np.polyfit(np.log(steps[late]), np.log(values[late]), 1)[0])


def _two_digits(slope: float) -> str:
    return f"{round(slope, 2) + 0.0:.2f}"  # the sum turns a rounded -0.0, printed "-0.00", into 0.0


def problem_of(well: BoundedWell) -> Problem:
    """The constants of the measured problem, as the bound wants them."""
    return Problem(well.smoothness, well.gradient_bound, well.dimension, well.gap, well.epsilon)


def compare(
    methods: Mapping[str, Method], well: BoundedWell, measured: Mapping[str, Measurement]
) -> list[Comparison]:
    """Put the bound of Theorem 1 beside what was measured."""
    problem = problem_of(well)

    def bounds(method: Method, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([bound(method, problem, int(one)).expectation for one in steps])

    found: list[Comparison] = []
    for label, method in methods.items():
        steps = measured[label].steps
        far = np.rint(np.geomspace(steps[-1], FARTHEST, 22)).astype(np.int64)
        found.append(
            Comparison(label, method, measured[label], bounds(method, steps), far, bounds(method, far))
        )
    return found


def families() -> dict[str, dict[str, Method]]:
    """The path from constant theta (r = 0) to AdaEMA (r = 1) with alpha_t = 0.1/sqrt(t), by momentum."""
    return {
        f"β = {beta:g}": {
            f"r = {r:g}": power_family(lr=0.1, beta=beta, s=0.5, r=r, c=round(0.01 + 0.99 * r, 6), K=2)
            for r in (0, 0.5, 1)
        }
        for beta in (0.0, 0.9)
    }


def write_results(
    folder: Path,
    panels: Mapping[str, Sequence[Comparison]],
    command: str,
    settings: Mapping[str, Any],
    seconds: float,
) -> None:
    """Write figure, records, claims and manifest."""
    plot_bound(panels, folder / "bound")
    write_records(folder / "records.csv", panels)
    write_claims(folder, claims(panels))
    write_manifest(folder / "manifest.json", command, settings, seconds)


def plot_bound(panels: Mapping[str, Sequence[Comparison]], stem: Path) -> tuple[Path, Path]:
    """Draw measured (solid, with a band over seeds) and bounded (dashed), one panel a value of beta."""
    with from_extra("experiments"):
        from matplotlib import pyplot as plt

    with house_style():
        figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4.2), squeeze=False)
        for axis, (title, comparisons) in zip(axes[0], panels.items(), strict=True):
            axis.set_title(title)
            _draw_panel(axis, comparisons)
        axes[0][0].set_ylabel(r"$(\mathbb{E}\,\|\nabla f(x_\tau)\|^{4/3})^{3/2}$")
        figure.suptitle(
            "Theorem 1: measured (solid), its bound (dashed), and where the bound goes (dotted)",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        paths = save_figure(figure, stem)
        plt.close(figure)
    return paths


def _draw_panel(axis: Axes, comparisons: Sequence[Comparison]) -> None:
    solid, dashed = [], []
    # Wide lines first: where two methods measure the same, both colours stay visible.
    for one, width in zip(comparisons, np.linspace(3.2, 1.3, len(comparisons)), strict=True):
        colour, steps = colour_for(one.label), one.measured.steps
        measured, bounded = one.slopes
        axis.fill_between(steps, one.measured.low, one.measured.high, color=colour, alpha=0.18, linewidth=0)
        label = f"{one.label}: slope {_two_digits(measured)}"
        solid += axis.plot(steps, one.measured.value, color=colour, linewidth=width, label=label)
        label = f"bound: slope {_two_digits(bounded)}, in the end {_two_digits(one.far_slope)}"
        dashed += axis.plot(steps, one.bounds, color=colour, linestyle="--", label=label)
        axis.plot(one.far_steps, one.far_bounds, color=colour, linestyle=":", linewidth=1.3)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps T")
    # Under the panel: between the two families of lines there is no room that every run leaves free.
    axis.legend(
        handles=solid + dashed, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8.5
    )


def write_records(path: Path, panels: Mapping[str, Sequence[Comparison]]) -> Path:
    """Write every point of the figure as CSV; beyond the measurement only the bound has a value."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("panel", "method", "T", "measured", "low", "high", "bound"))
        for panel, comparisons in panels.items():
            for one in comparisons:
                data = one.measured
                for values in zip(data.steps, data.value, data.low, data.high, one.bounds, strict=True):
                    writer.writerow((panel, one.label, int(values[0]), *(f"{x:.9g}" for x in values[1:])))
                for steps, value in zip(one.far_steps[1:], one.far_bounds[1:], strict=True):
                    writer.writerow((panel, one.label, int(steps), "", "", "", f"{value:.9g}"))
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
        if examine_method(one.method).rate is not None
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
        _floor_claim(panels),
    ]


def _floor_claim(panels: Mapping[str, Sequence[Comparison]]) -> Claim:
    constant = [
        (title, one)
        for title, comparisons in panels.items()
        for one in comparisons
        if one.method.theta.is_constant
    ]
    flat = bool(constant) and all(abs(one.far_slope) < 0.01 for _, one in constant)
    slopes = "; ".join(f"{title}, {one.label}: {one.far_slope:.3f}" for title, one in constant)
    return Claim(
        "with constant theta the bound does not tend to 0",
        "Corollary on constant theta",
        "supported" if flat else "unclear",
        f"exponent of T in the bound from 10^10 to 10^12: {slopes or 'no such method was run'}",
    )


def _power_of_ten(number: float) -> str:
    return f"10^{math.floor(math.log10(number))}"
