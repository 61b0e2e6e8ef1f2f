"""The cost of a bound: Theorems W and E for long runs, in processor time, and the memory that they take.

python benchmarks/bounds.py
"""

import time
import tracemalloc

from machine import best_seconds, publish

import generic_adam as ga
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound

PROBLEM = ga.Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1)
COSINE = "1e-3 * (1 + cos(pi * (t - 1) / 1e7)) / 2"
RUNS = {
    "W: AdaEMA, 1e-3/√t, 0.9, 1 − 1/max(t, 2)": ga.Algorithm(ga.Method("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)")),
    "W: cosine, 0.9, 0.999": ga.Algorithm(ga.Method(COSINE, 0.9, 0.999)),
    "E: torch's Adam, constant": ga.methods.adamw(weight_decay=0),
    "E: torch's Adam, cosine": ga.methods.adamw(lr=COSINE, weight_decay=0),
    "N: torch's NAdam": ga.methods.nadam(),
}
LENGTHS = (10**6, 10**7)
# Memory is traced allocation by allocation, which takes ten times as long: shorter runs show that it stays flat.
TRACED = (10**6, 2 * 10**6, 4 * 10**6)


def evaluate(x: ga.Algorithm, steps: int) -> float:
    """Compute the bound on X_w with the best shares."""
    return weighted_bound(Sequences.of_algorithm(x, steps), PROBLEM).value


def peak(x: ga.Algorithm, steps: int) -> float:
    """Measure the most memory that NumPy and Python hold at once, in MiB."""
    tracemalloc.start()
    evaluate(x, steps)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    rows = []
    for name, x in RUNS.items():
        candidates = {steps: lambda x=x, steps=steps: evaluate(x, steps) for steps in LENGTHS}
        seconds = best_seconds(candidates, rounds=2, clock=time.process_time)
        # The blocks of up to 2^20 steps are kept for a second look; longer runs keep none.
        memory = [f"{peak(x, steps):.0f}" for steps in TRACED]
        rows.append((name, *(f"{seconds[steps]:.2f}" for steps in LENGTHS), *memory))
    publish(
        "bounds",
        ("theorem and run", "T = 10⁶ [s]", "T = 10⁷ [s]", "10⁶ [MiB]", "2·10⁶ [MiB]", "4·10⁶ [MiB]"),
        rows,
        command="python benchmarks/bounds.py",
        seconds=time.perf_counter() - begin,
    )


if __name__ == "__main__":
    main()
