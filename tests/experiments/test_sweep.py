"""Sweeps: lock-step, the same bits wherever they run, and nothing lost to kill -9."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generic_adam.experiments.dask_client import ClusterError
from generic_adam.experiments.distributed import ALONE
from generic_adam.experiments.records import OutputError
from generic_adam.experiments.run import exclusive
from generic_adam.experiments.settings import SettingsError
from generic_adam.experiments.studies import STUDIES, paper_methods, path_theta, run_folder, runs_of
from generic_adam.experiments.sweep import WorkerError, dask_pool, group_pool, local_pool, run_sweep
from generic_adam.schedules import parse
from tests.experiments.small_mnist import METHODS, jobs_in, write_small_mnist


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    return str(write_small_mnist(tmp_path_factory.mktemp("data")))


def contents(jobs) -> list[bytes]:
    return [(job.directory / "records.csv").read_bytes() for job in jobs]


def test_runs_advance_in_lock_step_and_again_costs_nothing(tmp_path, data):
    seen = []
    jobs = jobs_in(tmp_path)
    run_sweep(jobs, group_pool(ALONE), data=data, on_advance=lambda done, _: seen.append(done))
    assert [done.record.epoch for done in seen] == [1, 1, 2, 2]
    assert [done.job for done in seen] == [*jobs, *jobs]
    assert all(done.images_per_second > 0 for done in seen)
    before, seen[:] = contents(jobs), []
    run_sweep(jobs, group_pool(ALONE), data=data, on_advance=lambda done, _: seen.append(done))
    assert [done.record.epoch for done in seen] == [2, 2], "each run is read once, not once an epoch"
    assert [done.images_per_second for done in seen] == [None] * 2
    assert contents(jobs) == before


@pytest.mark.slow
def test_processes_and_dask_give_the_same_bits(tmp_path, data):
    distributed = pytest.importorskip("distributed")
    here, processes, cluster = (jobs_in(tmp_path / name, epochs=1) for name in ("here", "processes", "dask"))
    run_sweep(here, group_pool(ALONE), data=data)
    with local_pool(1) as pool:
        run_sweep(processes, pool, data=data)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
        ) as local,
        dask_pool(local.scheduler_address) as pool,
    ):
        run_sweep(cluster, pool, data=data)
    assert contents(here) == contents(processes) == contents(cluster)


def test_a_run_that_is_ahead_waits_for_the_others(tmp_path, data):
    jobs, seen = jobs_in(tmp_path), []
    run_sweep(jobs[:1], group_pool(ALONE), data=data)
    run_sweep(jobs, group_pool(ALONE), data=data, on_advance=lambda done, left: seen.append((done, left)))
    trained = [(done.job, done.images_per_second is not None) for done, _ in seen]
    assert trained == [(jobs[0], False), (jobs[1], True), (jobs[1], True)]
    assert seen[-1][1] == 0, "nothing is left"


def test_a_worker_that_is_killed_is_one_line():
    with pytest.raises(WorkerError, match="goes on from the last checkpoints"), local_pool(1) as pool:
        pool.submit(os.abort).result()


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr("generic_adam.experiments.dask_client.CONNECT_SECONDS", 0.2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers at"), dask_pool("tcp://127.0.0.1:9"):
        pass


def test_a_run_in_use_is_refused(tmp_path, data):
    (job,) = jobs_in(tmp_path, METHODS[:1])
    job.directory.mkdir(parents=True)
    with (
        exclusive(job.directory),
        pytest.raises(OutputError, match="in use by another process"),
        local_pool(1) as pool,
    ):
        run_sweep([job], pool, data=data)


def test_no_workers_is_refused():
    with pytest.raises(SettingsError, match="jobs 0: expected a positive"), local_pool(0):
        pass


SWEEP = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from generic_adam.experiments.sweep import local_pool, run_sweep
from tests.experiments.small_mnist import jobs_in

if __name__ == "__main__":
    with local_pool(1) as pool:
        run_sweep(jobs_in(Path(sys.argv[1]), epochs=4), pool, data=sys.argv[2])
"""


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_nothing(tmp_path, data):
    script, killed = tmp_path / "sweep.py", tmp_path / "killed"
    script.write_text(SWEEP)
    command = [sys.executable, str(script), str(killed), data, str(Path(__file__).parents[2])]
    for epoch in (1, 3):  # as soon as some run has finished it: in the middle of the next run's epoch
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not list(killed.rglob(f"checkpoint-{epoch:06d}.pt")):
                time.sleep(0.002)
            os.kill(process.pid, signal.SIGKILL)
        wait_until_free(killed)
        assert not (jobs_in(killed)[1].directory / "checkpoint-000004.pt").exists(), "killed too late"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    whole = jobs_in(tmp_path / "whole", epochs=4)
    run_sweep(whole, group_pool(ALONE), data=data)
    assert contents(whole) == contents(jobs_in(killed))


def wait_until_free(directory: Path, seconds: float = 20) -> None:
    """Workers die with their parent; the system needs a moment to say so."""
    deadline = time.monotonic() + seconds
    for lock in directory.rglob(".lock"):
        while True:
            try:
                with exclusive(lock.parent):
                    break
            except OutputError:
                assert time.monotonic() < deadline, f"{lock} is still held: a worker survived its parent"
                time.sleep(0.05)


def test_methods_that_forget_epsilon_are_run_once():
    runs = [
        (settings, run_folder(settings))
        for epsilon in (1e-8, 1e-4)
        for settings in runs_of(STUDIES["lenet"], paper_methods("0.001/sqrt(t)", epsilon), epochs=1, seeds=1)
    ]
    assert len(runs) == 14
    assert len(set(runs)) == 12
    assert len({folder for _, folder in runs}) == 12


@pytest.mark.parametrize(
    ("fraction", "first", "hundredth"),
    [(0, 0.999, 0.999), (0.25, 0.74925, 1 - 0.25075 / 100**0.25), (0.5, 0.4995, 0.94995), (1, 0.0, 0.99)],
)
def test_theta_of_the_path_is_the_papers(fraction, first, hundredth):
    theta = parse(path_theta(fraction))
    assert theta(1) == pytest.approx(first, abs=1e-12)
    assert theta(100) == pytest.approx(hundredth, abs=1e-12)
