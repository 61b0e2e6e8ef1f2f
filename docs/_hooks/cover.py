"""The figure at the top of the README and of the site: one problem, two methods, opposite ends.

Run it to draw the figure anew, for light pages and for dark ones (about half a minute; the simulator is
compiled first):

    python docs/_hooks/cover.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from generic_adam.answers.figures import save_figure
from generic_adam_laboratory.counterexample import Plan, simulate
from generic_adam_laboratory.counterexample.figures import draw_two_curves
from generic_adam_laboratory.counterexample.study import TWO_CURVES

STEM = Path(__file__).parents[1] / "assets" / "counterexample"
STEPS = 10**7
SEEDS = 20


def main() -> None:
    """Simulate and save."""
    records = simulate(Plan(TWO_CURVES, STEPS, SEEDS), threads=2)
    for key in records.labels:
        print(f"{key}: median of x_T over {SEEDS} seeds is {np.median(records.final_x(key)):.4f}")
    for is_dark in (False, True):
        stem = STEM.with_name(STEM.name + ("-dark" if is_dark else ""))
        for path in save_figure(draw_two_curves(records, is_dark=is_dark), stem):
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
