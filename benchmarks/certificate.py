"""What a certificate costs: every method of the catalogue, for ever and on horizons, in processor time.

python benchmarks/certificate.py
"""

import time

import numpy as np
from machine import best_seconds, publish

import generic_adam as ga


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    candidates = {}
    for name in ga.methods.names():
        method = ga.methods.build(name)
        candidates[f"{name}, for ever"] = lambda method=method: ga.certify(method)
        candidates[f"{name}, T = 10^15"] = lambda method=method: ga.certify(method, horizon=10**15)
    seconds = best_seconds(candidates, rounds=15, clock=time.process_time)
    opaque = ga.Method(lambda t: 0.5 / np.sqrt(t), 0.9, "1 - 1/max(t, 2)")
    seconds |= best_seconds(
        {"a callable, T = 10^7": lambda: ga.certify(opaque, horizon=10**7)}, rounds=2, clock=time.process_time
    )
    rows = [(name, f"{1e3 * value:.2f}") for name, value in seconds.items()]
    publish(
        "certificate",
        ("certificate of", "milliseconds"),
        rows,
        command="python benchmarks/certificate.py",
        seconds=time.perf_counter() - begin,
    )


if __name__ == "__main__":
    main()
