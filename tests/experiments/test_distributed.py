"""Two gloo processes, started by torchrun, train as one does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from generic_adam.experiments.data import load
from generic_adam.experiments.distributed import ALONE, Group
from generic_adam.experiments.training import read_records, train
from tests.experiments.small_mnist import METHODS, jobs_in, write_small_mnist

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from generic_adam.experiments.distributed import process_group
from generic_adam.experiments.sweep import group_pool, run_sweep
from tests.experiments.small_mnist import METHODS, jobs_in

with process_group("cpu") as group:
    assert group.size == 2
    run_sweep(jobs_in(Path(sys.argv[1]), METHODS[2:3]), group_pool(group), data=sys.argv[2])
"""


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    data = write_small_mnist(tmp_path / "data", train=155)  # the last batch has 27 images: unequal shares
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = [str(tmp_path / "two"), str(data), str(Path(__file__).parents[2])]
    done = subprocess.run(
        [sys.executable, *launcher, str(script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    (job,) = jobs_in(tmp_path / "one", METHODS[2:3])
    job.directory.mkdir(parents=True)
    train(job.settings, load("mnist", data), job.directory)
    (other,) = jobs_in(tmp_path / "two", METHODS[2:3])
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
