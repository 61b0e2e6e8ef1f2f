"""The lanes over a Dask cluster: the same bits, whoever dies in mid-run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generic_adam.cli.app import run
from generic_adam.methods import Algorithm, Method
from generic_adam_laboratory.backends import Pool, dask_pool
from generic_adam_laboratory.counterexample import LaneRecords, Plan, simulate
from generic_adam_laboratory.counterexample.simulation import Elsewhere
from generic_adam_laboratory.runs.run import carry_out

distributed = pytest.importorskip("distributed")

ADAM = Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99)
PLAN = Plan({"Adam": ADAM, "AMSGrad": Algorithm(ADAM, running_maximum=True)}, steps=20_000, replicates=24, seed=1)

# Workers that are ended on purpose leave sockets to the collector; nothing else is let through.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
    ) as local:
        yield local


def simulated(plan: Plan, address: str) -> LaneRecords:
    work = Elsewhere(plan, address)
    carry_out(work)
    return work.records()


def same_bits(a: LaneRecords, b: LaneRecords) -> bool:
    return a.x.tobytes() == b.x.tobytes() and a.average_regret.tobytes() == b.average_regret.tobytes()


def test_a_worker_killed_in_mid_run_changes_nothing(cluster: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(PLAN.methods, steps=500_000, replicates=range(2, 26), seed=2)
    victim = next(iter(cluster.workers.values())).pid
    killed: list[int] = []

    @contextmanager
    def killing(*arguments: Any) -> Iterator[Pool]:
        with dask_pool(*arguments) as pool:

            def completed(tasks: Sequence[Any]) -> Iterator[Any]:
                assert len(tasks) > 2  # there are more to come
                for done in pool.completed(tasks):
                    if not killed:
                        os.kill(victim, signal.SIGKILL)
                        killed.append(victim)
                    yield done

            yield replace(pool, completed=completed)

    monkeypatch.setattr("generic_adam_laboratory.counterexample.simulation.dask_pool", killing)
    records = simulated(plan, cluster.scheduler_address)
    assert killed
    assert records.replicates == range(2, 26)
    assert same_bits(records, simulate(plan, threads=2))


def test_the_command_line_writes_the_same_records(cluster: object, tmp_path: Path) -> None:
    small = ["reproduce", "counterexample", "--quick", "--steps", "2000", "--seeds", "8", "--no-peers", "--out"]
    assert run([*small, str(tmp_path / "here")]) == 0
    assert run([*small, str(tmp_path / "there"), "--scheduler", cluster.scheduler_address]) == 0
    for name in ("records.csv", "outcomes.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
