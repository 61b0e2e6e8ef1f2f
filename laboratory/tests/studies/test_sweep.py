"""A study runs in lock-step, and taking it up again costs nothing."""

from pathlib import Path

import pytest

from generic_adam_laboratory.backends import ALONE, group_pool
from generic_adam_laboratory.studies.sweep import elapsed_seconds, run_jobs
from laboratory.tests.small_mnist import jobs_in, write_small_mnist


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_small_mnist(tmp_path_factory.mktemp("data"))


def contents(jobs) -> list[bytes]:
    return [(job.directory / "records.csv").read_bytes() for job in jobs]


def test_runs_advance_in_lock_step_and_again_costs_nothing(tmp_path, data):
    seen = []
    jobs = jobs_in(tmp_path)
    run_jobs(jobs, group_pool(ALONE), data=data, on_advance=lambda done, _: seen.append(done))
    assert [done.record.epoch for done in seen] == [1, 1, 2, 2]
    assert [done.job for done in seen] == [*jobs, *jobs]
    assert all(done.samples_per_second > 0 for done in seen)
    before, seen[:] = contents(jobs), []
    run_jobs(jobs, group_pool(ALONE), data=data, on_advance=lambda done, _: seen.append(done))
    assert [done.record.epoch for done in seen] == [2, 2], "each run is read once, not once an epoch"
    assert [done.samples_per_second for done in seen] == [None] * 2
    assert contents(jobs) == before


def test_a_run_that_is_ahead_waits_for_the_others(tmp_path, data):
    jobs, seen = jobs_in(tmp_path), []
    run_jobs(jobs[:1], group_pool(ALONE), data=data)
    run_jobs(jobs, group_pool(ALONE), data=data, on_advance=lambda done, left: seen.append((done, left)))
    trained = [(done.job, done.samples_per_second is not None) for done, _ in seen]
    assert trained == [(jobs[0], False), (jobs[1], True), (jobs[1], True)]
    assert seen[-1][1] == 0, "nothing is left"


@pytest.mark.parametrize("content", ["[]", '{"seconds": NaN}', '{"seconds": 1e999}', '{"seconds": 1' + 400 * "0" + "}"])
def test_elapsed_time_that_cannot_be_read_is_only_lost(tmp_path, content):
    (tmp_path / "elapsed.json").write_text(content)
    assert elapsed_seconds(tmp_path) == 0.0
