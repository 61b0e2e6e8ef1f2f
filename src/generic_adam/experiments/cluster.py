"""The same lanes over many machines: chunks of replicates as tasks of a Dask cluster.

A chunk's result depends on the plan and its replicates alone, so a worker may die, be replaced or be given
another cut of the lanes: the joined records have the same bits as a run on one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from generic_adam.experiments.backends import connect, threads_of
from generic_adam.experiments.counterexample import LaneRecords, Plan, simulate
from generic_adam.experiments.counterexample.simulation import split

if TYPE_CHECKING:
    from distributed import Client

_CHUNKS_A_THREAD = 2  # so that a slow or lost worker costs a part of its share, not all of it


def simulate_on_cluster(
    plan: Plan,
    address: str,
    *,
    chunks: int | None = None,
    progress: Callable[[int], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> LaneRecords:
    """Simulate a plan on a Dask cluster.

    Args:
      plan: what to simulate. It is sent to the workers, which must have this package installed.
      address: the scheduler's, e.g. "tcp://10.0.0.7:8786".
      chunks: into how many tasks the replicates are cut; by default two for each thread of the cluster.
      progress: called after each finished chunk with the equivalent number of steps of the whole plan.
      tell: told in a line if there is a wait for the first worker.

    Returns:
      The records, bit for bit those of `simulate(plan)`.

    Raises:
      RunError: the scheduler does not answer, it has no worker, or its workers keep dying.
    """
    with connect(address, tell) as client:
        return _gather(client, plan, chunks, progress)


def _gather(
    client: Client, plan: Plan, chunks: int | None, progress: Callable[[int], None] | None
) -> LaneRecords:
    from distributed import as_completed

    parts = list(split(plan.replicate_range, chunks or _CHUNKS_A_THREAD * threads_of(client)))
    tasks = [client.submit(_simulate_chunk, plan, part, pure=False) for part in parts]
    records: list[LaneRecords] = []
    lanes = 0
    try:
        for done in as_completed(tasks):
            records.append(done.result())
            lanes += len(records[-1].replicates)
            if progress is not None:
                progress(plan.steps * lanes // len(plan.replicate_range))
    finally:  # Ctrl-C included: what is not finished must not go on running on other people's machines
        client.cancel(tasks)
    return LaneRecords.join(records)


def _simulate_chunk(plan: Plan, replicates: range) -> LaneRecords:
    """The task: one thread, for Dask runs as many tasks at a time as a worker has threads."""
    return simulate(replace(plan, replicates=replicates))
