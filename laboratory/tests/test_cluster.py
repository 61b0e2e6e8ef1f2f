"""The lanes over a Dask cluster: the same bits, whoever dies in mid-run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from generic_adam.cli.app import run
from generic_adam.errors import RunError
from generic_adam.methods import Algorithm, Method
from generic_adam_laboratory.cli import reproduce as reproduction
from generic_adam_laboratory.counterexample import LaneRecords, Plan, simulate
from generic_adam_laboratory.counterexample.simulation import simulate_on_cluster

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


def same_bits(a: LaneRecords, b: LaneRecords) -> bool:
    return a.x.tobytes() == b.x.tobytes() and a.average_regret.tobytes() == b.average_regret.tobytes()


def test_a_cluster_gives_the_bits_of_one_machine(cluster: object) -> None:
    steps: list[int] = []
    records = simulate_on_cluster(
        PLAN, cluster.scheduler_address, chunks=3, progress=lambda done, _total: steps.append(done)
    )
    assert same_bits(records, simulate(PLAN))
    assert records.replicates == range(24)
    assert steps[-1] == PLAN.steps
    assert steps == sorted(steps)


def test_a_worker_killed_in_mid_run_changes_nothing(cluster: object) -> None:
    plan = Plan(PLAN.methods, steps=1_000_000, replicates=24, seed=2)
    victim = next(iter(cluster.workers.values())).pid
    steps: list[int] = []

    def kill_at_the_first_chunk(done: int, _total: int) -> None:
        if not steps:  # five of six chunks are still to come
            os.kill(victim, signal.SIGKILL)
        steps.append(done)

    records = simulate_on_cluster(plan, cluster.scheduler_address, chunks=6, progress=kill_at_the_first_chunk)
    assert len(steps) == 6
    assert same_bits(records, simulate(plan, threads=2))


def test_the_command_line_writes_the_same_records(
    cluster: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["reproduce", "counterexample", "--quick", "--steps", "2000", "--seeds", "8", "--no-peers", "--out"]
    assert run([*small, str(tmp_path / "here")]) == 0
    with monkeypatch.context() as patch:  # what was paused here can be run there
        begin = reproduction.make_progress
        ask = lambda *columns: os.kill(os.getpid(), signal.SIGTERM) or begin(*columns)  # noqa: E731
        patch.setattr(reproduction, "make_progress", ask)
        assert run([*small, str(tmp_path / "there")]) == 128 + signal.SIGTERM
    assert run([*small, str(tmp_path / "there"), "--scheduler", cluster.scheduler_address]) == 0
    for name in ("records.csv", "outcomes.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_no_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generic_adam_laboratory.backends.CONNECT_SECONDS", 1)
    with pytest.raises(RunError, match="answers") as caught:
        simulate_on_cluster(PLAN, "tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="answers"):
        simulate_on_cluster(PLAN, "nonsense")


def test_a_cluster_without_workers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generic_adam_laboratory.backends.WORKER_SECONDS", 0.3)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(RunError, match="no worker"),
    ):
        simulate_on_cluster(PLAN, empty.scheduler_address)
