"""How far float32 moves v from the exact recursion when theta_t = 1 - 1/t, in three ways to write its update.

Gradients are gaussian; the error is the largest relative one among 16 coordinates, against float64. The operations
are those of torch's kernels, one rounding each, compiled here so that 3 x 10^7 steps take seconds.

    python benchmarks/drift.py
"""

import time

import numba
import numpy as np
from machine import publish

MARKS = np.array([10**4, 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7])
COORDINATES = 16
CLOSE = 2.0**-10
SPACING = 2.0**-24


@numba.njit
def errors(marks: np.ndarray, coordinates: int, generator: np.random.Generator) -> np.ndarray:
    """The errors at each mark: theta and 1 - theta rounded apart, rounded together, and the difference form."""
    single = np.float32
    exact = np.zeros(coordinates)
    kept = np.zeros((3, coordinates), dtype=single)
    result = np.zeros((len(marks), 3))
    carry, mark = 0.0, 0
    for t in range(1, marks[-1] + 1):
        weight = 1.0 / t
        apart, theta = single(weight), single(1.0 - weight)
        together, theta_together = apart, theta
        if weight < CLOSE:
            held = np.rint((weight + carry) / SPACING) * SPACING
            carry += weight - held
            together, theta_together = single(held), single(1.0 - held)
        for j in range(coordinates):
            g = single(generator.normal())
            exact[j] += weight * (np.float64(g) ** 2 - exact[j])
            kept[0, j] = single(theta * kept[0, j]) + single(single(apart * g) * g)
            kept[1, j] = single(theta_together * kept[1, j]) + single(single(together * g) * g)
            if weight < CLOSE:
                kept[2, j] += single(apart * single(single(g * g) - kept[2, j]))
            else:
                kept[2, j] = single(theta * kept[2, j]) + single(single(apart * g) * g)
        if t == marks[mark]:
            for way in range(3):
                result[mark, way] = np.max(np.abs(kept[way] / exact - 1.0))
            mark += 1
    return result


def shown(error: float) -> str:
    """A relative error, in percent from a thousandth on."""
    return f"{100 * error:.2g} %" if error >= 1e-3 else f"{error:.0e}"


def main() -> None:
    """Simulate, print and keep the table."""
    begin = time.perf_counter()
    rows = [
        (f"{steps:,}", *map(shown, found))
        for steps, found in zip(
            MARKS.tolist(), errors(MARKS, COORDINATES, np.random.default_rng(0)).tolist(), strict=True
        )
    ]
    publish(
        "drift",
        ("steps", "rounded apart", "rounded together (fused)", "difference form (foreach)"),
        rows,
        command="python benchmarks/drift.py",
        seconds=time.perf_counter() - begin,
        settings={"theta": "1 - 1/t", "gradients": "gaussian", "coordinates": COORDINATES, "seed": 0},
    )


if __name__ == "__main__":
    main()
