"""Schedules against the raw NumPy expression they stand for, and a Method's three scalars at one t.

Targets: a block of 10^7 values at most 1.3 times NumPy's time; the three scalars at most 3 microseconds.
"""

import time
from collections.abc import Callable

import numpy as np
from machine import best_seconds, publish

from generic_adam import methods, parse

STEPS = 10**7
BLOCK_ROUNDS = 4
SCALAR_ROUNDS = 400
CALLS = 250
EXPRESSIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "0.5 / sqrt(t)": lambda t: 0.5 / np.sqrt(t),
    "1 - 1/max(t, 2)": lambda t: 1 - 1 / np.maximum(t, 2),
    "1 - 0.802/t^0.8": lambda t: 1 - 0.802 / t**0.8,
    "0.9 * 0.99^t": lambda t: 0.9 * 0.99**t,
    "0.001 if t < 2500 else 0.01/sqrt(t)": lambda t: np.where(t < 2500, 0.001, 0.01 / np.sqrt(t)),
    "1/(sqrt(t) * log(t + 1))": lambda t: 1 / (np.sqrt(t) * np.log(t + 1)),
    "0.001 * sqrt(1 - 0.999^t) / (1 - 0.9^t)": lambda t: 0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t),
}


def blocks() -> list[tuple[str, str, str, str]]:
    """Processor seconds for 10^7 values, as a schedule and as NumPy writes it; both run in one thread."""
    rows = []
    for text, raw in EXPRESSIONS.items():
        schedule = parse(text)
        np.testing.assert_allclose(schedule.values(1, 10**4), raw(np.arange(1.0, 10**4)), rtol=1e-9)
        seconds = best_seconds(
            {
                "schedule": lambda schedule=schedule: schedule.values(1, STEPS + 1),
                "numpy": lambda raw=raw: raw(np.arange(1, STEPS + 1, dtype=np.float64)),
            },
            rounds=BLOCK_ROUNDS,
            clock=time.process_time,
        )
        ratio = seconds["schedule"] / seconds["numpy"]
        rows.append((text, f"{seconds['schedule']:.3f}", f"{seconds['numpy']:.3f}", f"{ratio:.2f}"))
    return rows


def scalars() -> list[tuple[str, str]]:
    """Microseconds for (alpha_t, beta_t, theta_t) at one t, as an optimizer asks for them: t after t."""
    rows = []
    for entry in methods.entries():
        method = methods.as_algorithm(entry.build()).method

        def walk(at: Callable[[int], object] = method.at) -> None:
            for t in range(20_001, 20_001 + CALLS):
                at(t)

        # Many short rounds: the best of them is one that no other process on the machine interrupted.
        seconds = best_seconds({"at": walk}, rounds=SCALAR_ROUNDS)["at"] / CALLS
        rows.append((entry.name, f"{1e6 * seconds:.2f}"))
    return rows


def main() -> None:
    """Run both and keep the tables."""
    command = "python benchmarks/schedules.py"
    begin = time.perf_counter()
    rows = blocks()
    publish(
        "schedule-values",
        ("schedule", "values [s]", "raw NumPy [s]", "ratio"),
        rows,
        command=command,
        seconds=time.perf_counter() - begin,
        settings={"steps": STEPS, "rounds": BLOCK_ROUNDS},
    )
    begin = time.perf_counter()
    times = scalars()
    publish(
        "method-scalars",
        ("method", "alpha_t, beta_t, theta_t at one t [us]"),
        times,
        command=command,
        seconds=time.perf_counter() - begin,
        settings={"rounds": SCALAR_ROUNDS, "calls": CALLS},
    )


if __name__ == "__main__":
    main()
