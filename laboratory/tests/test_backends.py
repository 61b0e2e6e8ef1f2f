"""Pools: the same bits wherever tasks run, nothing lost to kill -9, no worker without its parent."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from generic_adam.errors import RunError
from generic_adam_laboratory import backends
from generic_adam_laboratory.backends import (
    ALONE,
    Group,
    Paused,
    dask_pool,
    group_pool,
    local_pool,
    pausing,
)
from generic_adam_laboratory.data.datasets import load
from generic_adam_laboratory.runs.run import exclusive
from generic_adam_laboratory.studies.sweep import run_jobs
from generic_adam_laboratory.training import read_records, train
from laboratory.tests.small_mnist import LINES, jobs_in, write_small_mnist

ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_small_mnist(tmp_path_factory.mktemp("data"))


def contents(jobs) -> list[bytes]:
    return [(job.directory / "records.csv").read_bytes() for job in jobs]


@pytest.mark.slow
def test_processes_and_dask_give_the_same_bits(tmp_path, data):
    distributed = pytest.importorskip("distributed")
    here, processes, cluster = (jobs_in(tmp_path / name, epochs=1) for name in ("here", "processes", "dask"))
    run_jobs(here, group_pool(ALONE), data=data)
    with local_pool(1) as pool:
        run_jobs(processes, pool, data=data)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
        ) as local,
        dask_pool(local.scheduler_address) as pool,
    ):
        run_jobs(cluster, pool, data=data)
    assert contents(here) == contents(processes) == contents(cluster)


def test_a_worker_that_is_killed_is_one_line():
    with pytest.raises(RunError, match="killed"), local_pool(1) as pool:
        pool.submit(os.abort).result()


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(backends, "CONNECT_SECONDS", 0.2)
    with pytest.raises(RunError, match="answers"), dask_pool("tcp://127.0.0.1:9"):
        pass


@pytest.mark.parametrize("address", ["bogus://[", "tcp://[", "tcp://a:b", "[bold]", ""])
def test_what_is_no_address_never_makes_a_client(address, monkeypatch):
    """One that is made for it waits 20 s when it is thrown away, and prints a traceback."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed.Client, "__init__", lambda *_args, **_options: pytest.fail("a client was made"))
    with pytest.raises(RunError, match="answers"), dask_pool(address):
        pass


def test_a_cluster_without_workers_is_waited_for_and_told_of(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(backends, "WORKER_SECONDS", 0.3)
    told = []
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty,
        pytest.raises(RunError, match="no worker"),
        dask_pool(empty.scheduler_address, told.append),
    ):
        pass
    assert told == ["the Dask cluster has no worker yet: waiting for one, at most 0.3 s"]


SCHEDULER = "from distributed.cli.dask_scheduler import main; main(['--port', '0', '--no-dashboard'])"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_scheduler_that_dies_is_one_line(caplog, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(logging.getLogger("distributed.client"), "handlers", [caplog.handler])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", SCHEDULER], stderr=subprocess.PIPE, text=True) as scheduler:
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
        with (
            subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard"], **quiet) as worker,
            pytest.raises(RunError, match="gone"),
            dask_pool(address) as pool,
        ):
            lose(pool.submit(time.sleep, 60), scheduler, worker)
    assert caplog.records == [], "the client of Dask says nothing of its own"


def lose(future, *processes: subprocess.Popen) -> None:
    time.sleep(0.2)
    for process in processes:
        process.kill()
    future.result()


def test_a_run_in_use_is_refused(tmp_path, data):
    (job,) = jobs_in(tmp_path, LINES[:1])
    job.directory.mkdir(parents=True)
    with exclusive(job.directory), pytest.raises(RunError, match="in use"):
        run_jobs([job], group_pool(ALONE), data=data)


def started(script: str, *arguments: str, **options) -> subprocess.Popen:
    """A process of its own session, as a terminal would start it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
        **options,
    )


SLEEPERS = """
import sys, time
from generic_adam_laboratory.backends import Paused, local_pool, pausing

if __name__ == "__main__":
    try:
        with pausing(), local_pool(2) as pool:
            futures = [pool.submit(time.sleep, 60) for _ in range(6)]
            print("ready", flush=True)
            for future in pool.completed(futures):
                future.result()
    except Paused as paused:
        print(f"paused {paused}", flush=True)
        sys.exit(128 + paused.signal)
"""


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def wait_until(condition) -> None:
    """Wait for what has to happen; pytest's own timeout ends a wait for what does not."""
    while not condition():
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_pauses_at_once_without_a_traceback(number):
    with started(SLEEPERS) as process:
        assert process.stdout.readline() == "ready\n"
        wait_until(lambda: len(children_of(process.pid)) >= 2)
        workers = children_of(process.pid)
        os.killpg(process.pid, number)  # as a terminal does: to the workers, too
        out, err = process.communicate(timeout=120)
    assert out == f"paused {number.name}\n"
    assert err == ""
    assert process.returncode == 128 + number
    wait_until(lambda: not any(map(is_alive, workers)))


def test_a_second_signal_ends_the_process():
    script = """
import os, signal, time
from generic_adam_laboratory.backends import Paused, pausing
with pausing():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except Paused:
        os.kill(os.getpid(), signal.SIGINT)
        print("still here")
"""
    with started(script) as process:
        out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == ("", "", 130)


def test_signals_act_as_before_once_the_block_is_left():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Paused), pausing():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


EARLY = """
import os, sys
from generic_adam_laboratory.backends import local_pool
if __name__ == "__main__":
    with local_pool(1) as pool:
        pool.submit(os.getpid)
        print(*open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split(), flush=True)
        os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_parent_killed_while_its_worker_starts_leaves_none():
    """The worker asks who its parent is: the signal of a parent's death comes only if it dies later."""
    with started(EARLY) as process:
        children = [int(child) for child in process.stdout.readline().split()]
        process.wait(timeout=120)
    assert children
    wait_until(lambda: not any(map(is_alive, children)))


SWEEP = """
import sys
from pathlib import Path
from generic_adam_laboratory.backends import local_pool
from generic_adam_laboratory.studies.sweep import run_jobs
from laboratory.tests.small_mnist import jobs_in

if __name__ == "__main__":
    with local_pool(1) as pool:
        run_jobs(jobs_in(Path(sys.argv[1]), epochs=4), pool, data=Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_nothing(tmp_path, data):
    killed = tmp_path / "killed"
    with started(SWEEP, str(killed), str(data)) as process:
        # As soon as some run has finished its second epoch: in the middle of the next run's.
        while process.poll() is None and not list(killed.rglob("checkpoint-000002.pt")):
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    wait_until_free(killed)
    assert not (jobs_in(killed)[1].directory / "checkpoint-000004.pt").exists(), "killed too late"
    with started(SWEEP, str(killed), str(data)) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err

    whole = jobs_in(tmp_path / "whole", epochs=4)
    run_jobs(whole, group_pool(ALONE), data=data)
    assert contents(whole) == contents(jobs_in(killed))


def wait_until_free(directory: Path) -> None:
    """Workers die with their parent; the system needs a moment to say so."""

    def is_free() -> bool:
        try:
            for lock in directory.rglob(".lock"):
                with exclusive(lock.parent):
                    pass
        except RunError:
            return False
        return True

    wait_until(is_free)


TORCHRUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from generic_adam_laboratory.backends import group_pool, process_group
from generic_adam_laboratory.studies.sweep import run_jobs
from laboratory.tests.small_mnist import LINES, jobs_in

with process_group("cpu") as group:
    assert group.size == 2
    run_jobs(jobs_in(Path(sys.argv[1]), LINES[2:3]), group_pool(group), data=Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    data = write_small_mnist(tmp_path / "data", train=155)  # the last batch has 27 images: unequal shares
    script = tmp_path / "script.py"
    script.write_text(TORCHRUN)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = [str(tmp_path / "two"), str(data), ROOT]
    done = subprocess.run(
        [sys.executable, *launcher, str(script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    (job,) = jobs_in(tmp_path / "one", LINES[2:3])
    job.directory.mkdir(parents=True)
    train(job.settings, load("mnist", data), job.directory)
    (other,) = jobs_in(tmp_path / "two", LINES[2:3])
    one, two = (read_records(run.directory / "records.csv") for run in (job, other))
    assert len(one) == len(two) == 2
    for a, b in zip(one, two, strict=True):
        assert b.train_loss == pytest.approx(a.train_loss, rel=1e-4)
        assert b.test_loss == pytest.approx(a.test_loss, rel=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_shares_of_a_batch_are_the_batch(size):
    order = torch.randperm(23)
    shares = [list(Group(rank, size).batches(order, 8)) for rank in range(size)]
    for index, (batch, count) in enumerate(ALONE.batches(order, 8)):
        assert torch.equal(torch.cat([share[index][0] for share in shares]), batch)
        assert {share[index][1] for share in shares} == {len(batch)} == {count}


def test_a_last_batch_smaller_than_the_group_is_left_out_by_all():
    assert [len(list(Group(rank, 4).batches(torch.arange(10), 8))) for rank in range(4)] == [1, 1, 1, 1]
