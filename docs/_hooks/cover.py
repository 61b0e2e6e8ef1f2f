"""The figure at the top of the README and of the site: one problem, two methods, opposite ends.

Run it to draw the figure anew (about half a minute; the simulator is compiled first):

    python docs/_hooks/cover.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import generic_adam as ga
from generic_adam.experiments.counterexample import LaneRecords, Plan, simulate
from generic_adam.report.style import BLUE, VERMILION, house_style, save_figure

STEM = Path(__file__).parents[1] / "assets" / "counterexample"
STEPS = 10**7
SEEDS = 20
ADAM = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
CERTIFIED = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")


def draw(records: LaneRecords) -> Figure:
    """x_t of both methods against t, median and the band that holds 80 % of the seeds."""
    with house_style():
        figure = Figure(figsize=(7.6, 3.3))
        axes = figure.subplots()
        told = {
            "adam": (VERMILION, rf"Adam, $\theta = 0.99$: {ga.certify(ADAM).verdict}"),
            "certified": (BLUE, rf"$\theta_t = 1 - 1/\max(t, 2)$: {ga.certify(CERTIFIED).verdict}"),
        }
        for key, (colour, label) in told.items():
            low, median, high = np.quantile(records.x[records.index(key)], (0.1, 0.5, 0.9), axis=1)
            axes.fill_between(records.times, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(records.times, median, color=colour, label=label)
        axes.set(xscale="log", xlim=(10, STEPS), ylim=(-1.12, 1.28), xlabel="step $t$", ylabel="$x_t$")
        axes.set_yticks([-1, 0, 1], ["−1\n(best)", "0", "1\n(worst)"])
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.0))
    return figure


def main() -> None:
    """Simulate and save."""
    records = simulate(Plan({"adam": ADAM, "certified": CERTIFIED}, steps=STEPS, replicates=SEEDS), threads=2)
    for key in records.labels:
        print(f"{key}: median of x_T over {SEEDS} seeds is {np.median(records.final_x(key)):.4f}")
    for path in save_figure(draw(records), STEM):
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
