"""The figure at the top of the README and of the site: one problem, two methods, opposite ends.

Run it to draw the figure anew (about half a minute; the simulator is compiled first):

    python docs/_hooks/cover.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import generic_adam as ga
from generic_adam.experiments.counterexample import Plan, simulate
from generic_adam.report.counterexample import draw_ends
from generic_adam.report.style import save_figure

STEM = Path(__file__).parents[1] / "assets" / "counterexample"
STEPS = 10**7
SEEDS = 20
ADAM = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
CERTIFIED = ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")


def main() -> None:
    """Simulate and save."""
    records = simulate(Plan({"adam": ADAM, "certified": CERTIFIED}, steps=STEPS, replicates=SEEDS), threads=2)
    for key in records.labels:
        print(f"{key}: median of x_T over {SEEDS} seeds is {np.median(records.final_x(key)):.4f}")
    told = {
        "adam": rf"Adam, $\theta = 0.99$: {ga.certify(ADAM).verdict}",
        "certified": rf"$\theta_t = 1 - 1/\max(t, 2)$: {ga.certify(CERTIFIED).verdict}",
    }
    for path in save_figure(draw_ends(records, told), STEM):
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
