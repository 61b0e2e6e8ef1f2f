"""Random gradients that depend on (seed, replicate, t) alone.

A lane is one method with one replicate. The gradients of a replicate come from a generator of its own, whose
state is hashed from (seed, replicate) by NumPy's SeedSequence, so a lane is the same whatever the number of
lanes, threads, blocks or machines. The method does not enter: all methods of a replicate meet the same
gradients (common random numbers). That is the right comparison, method against method on one stream, and each
block of gradients is drawn once for all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import kernels
from generic_adam.experiments.counterexample.problem import Counterexample, Form

_MAX_SEED = 2**64 - 1


def initial_words(seed: int, replicates: range) -> NDArray[np.uint64]:
    """Return the generators' start: two rows of 64-bit words, one column a replicate."""
    if not 0 <= seed <= _MAX_SEED:
        raise RunError(f"seed is {seed}, expected a whole number from 0 to 2^64 - 1")
    words = np.empty((2, len(replicates)), dtype=np.uint64)
    for column, replicate in enumerate(replicates):
        source = np.random.SeedSequence(entropy=seed, spawn_key=(replicate,))
        words[:, column] = source.generate_state(2, dtype=np.uint64)
    return words


class GradientStream:
    """The gradients of some replicates, block after block.

    Args:
      problem: the counterexample.
      seed: the run's seed.
      replicates: which replicates; a generator each.

    Attributes:
      words: the generators' states (two rows, one column a replicate).
      counts: how often each replicate has met the rare slope so far.
    """

    def __init__(self, problem: Counterexample, seed: int, replicates: range) -> None:
        self.problem = problem
        self.words = initial_words(seed, replicates)
        self.counts = np.zeros(len(replicates), dtype=np.int64)
        self._room = np.empty((0, len(replicates)))

    def draw(
        self, start: int, steps: int, record_at: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw the gradients of t = start, ..., start + steps - 1; the generators move on by as much.

        Args:
          start: t of the first row.
          steps: how many rows.
          record_at: rows up to which, themselves included, the rare slopes are counted.

        Returns:
          The gradients (step by replicate), valid until the next call, and the counts (recorded row by
          replicate).
        """
        rare, common = self.problem.slopes
        if len(self._room) < steps:  # fresh memory for every block would cost as much as drawing
            self._room = np.empty((steps, self.counts.size))
        gradients = self._room[:steps]
        counts_at = np.empty((record_at.size, self.counts.size), dtype=np.int64)
        if self.problem.form is Form.DETERMINISTIC:
            period = self.problem.period
            kernels.periodic_gradients(
                start, period, self.counts, rare, common, gradients, record_at, counts_at
            )
        else:
            threshold = np.uint64(self.problem.threshold)
            kernels.draw_gradients(
                self.words, self.counts, threshold, rare, common, gradients, record_at, counts_at
            )
        return gradients, counts_at


def gradients_of(problem: Counterexample, steps: int, seed: int, replicate: int) -> NDArray[np.float64]:
    """Return g_1, ..., g_steps of one replicate, as every simulation with this seed meets them."""
    stream = GradientStream(problem, seed, range(replicate, replicate + 1))
    gradients, _ = stream.draw(1, steps, np.empty(0, dtype=np.int64))
    return gradients[:, 0].copy()
