"""The cost of a certificate: every method of the catalogue, asked again and built anew, in processor time.

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
        candidates[name, "again"] = lambda method=method: ga.certify(method)
        # What is known of a sequence stays with it: the first question about a new one costs more.
        candidates[name, "anew"] = lambda name=name: ga.certify(ga.methods.build(name))
    opaque = ga.Method(lambda t: 0.5 / np.sqrt(t), 0.9, "1 - 1/max(t, 2)")
    seconds = best_seconds(candidates, rounds=8, clock=time.process_time)
    walked = best_seconds({"callable": lambda: ga.certify(opaque, horizon=10**7)}, rounds=3, clock=time.process_time)[
        "callable"
    ]
    rows = [(name, *(f"{1e3 * seconds[name, kind]:.2f}" for kind in ("again", "anew"))) for name in ga.methods.names()]
    rows.append(("a callable, T = 10^7", f"{1e3 * walked:.0f}", "–"))
    publish(
        "certificate",
        ("certificate of", "asked again [ms]", "built anew [ms]"),
        rows,
        command="python benchmarks/certificate.py",
        seconds=time.perf_counter() - begin,
    )


if __name__ == "__main__":
    main()
