"""Costs that must not grow with the question: each against a small one of its kind, side by side, in processor time.

python benchmarks/soon.py
"""

import math
import time
from contextlib import suppress

import numpy as np
import optax
import torch
from machine import best_seconds, publish

import generic_adam as ga
from generic_adam.schedules import ScheduleError, parse
from generic_adam.theorems import decide

ROUNDS = 5


def read(text: str) -> None:
    """Read a text, or have it refused."""
    with suppress(ScheduleError):
        parse(text)


def nested(leaves: int, leaf: str) -> str:
    """Return a sum of many numbers, in brackets."""
    half = leaves // 2
    return leaf if leaves == 1 else f"({nested(half, leaf)}+{nested(leaves - half, leaf)})"


def replayed(steps: int) -> None:
    """Certify Adam with a warm-up and a cosine that are a Python function, as in nanoGPT."""
    optimizer = torch.optim.Adam([torch.zeros(1)])
    shape = lambda k: (k + 1) / 21 if k < 20 else 0.55 + 0.45 * math.cos(math.pi * (k - 20) / steps)  # noqa: E731
    ga.certify(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, shape), horizon=steps)


def transformed(steps: int) -> None:
    """Certify Optax's Adam on a cycle of so many steps."""
    ga.certify(optax.adam(optax.cosine_onecycle_schedule(steps, 1e-3)), horizon=steps)


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    adaema = ga.Method(alpha="0.001 * min(1, sqrt(1000/t))", beta=0.9, theta="1 - 1/max(t, 2)")
    callables = ga.Method(alpha=lambda t: 0.1 / np.sqrt(t), beta=0.9, theta=lambda t: 1 - 1 / (t + 1))
    raw = lambda: np.sum(0.1 / np.sqrt(t := np.arange(1.0, 1e7)) * np.sqrt(1 / (t + 1)))  # noqa: E731
    power = "1.0000000001"
    for _ in range(10):
        power = f"({power}^8)"
    pairs = {
        "sums to 10^15, against 10^7": (lambda: decide.ratio(adaema, 10**15), lambda: decide.ratio(adaema, 10**7)),
        "a callable summed to 10^7, against NumPy": (lambda: decide.ratio(callables, 10**7), raw),
        "a scheduler's function over 4,000 steps, against 400": (lambda: replayed(4000), lambda: replayed(400)),
        "an Optax schedule over 10^5 steps, against 10^3": (lambda: transformed(10**5), lambda: transformed(10**3)),
        "a power of 10^9 digits, against one of 80": (lambda: read(power), lambda: read("1.0000000001^8")),
        "0e9999999, against 0e9": (lambda: read("0e9999999"), lambda: read("0e9")),
        "2,400 numbers, against 240": (lambda: read(nested(2400, "1")), lambda: read(nested(240, "1"))),
        "9,000 digits, against 900": (lambda: read("0." + "1" * 9000), lambda: read("0." + "1" * 900)),
    }
    rows = []
    for name, (large, small) in pairs.items():
        best = best_seconds({"large": large, "small": small}, rounds=ROUNDS, clock=time.process_time)
        rows.append((name, f"{1e3 * best['large']:.3g}", f"{best['large'] / max(best['small'], 1e-9):.1f}"))
    publish(
        "soon",
        ("question", "time [ms]", "times the small one's"),
        rows,
        command="python benchmarks/soon.py",
        seconds=time.perf_counter() - begin,
        settings={"rounds": ROUNDS},
    )


if __name__ == "__main__":
    main()
