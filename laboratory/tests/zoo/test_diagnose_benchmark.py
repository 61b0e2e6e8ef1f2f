"""The benchmark of `diagnose`: it is as large as it says, its counts are right, and an interrupted run goes on."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from generic_adam.watch import CAUSES
from generic_adam_laboratory.runs.records import Occasion
from generic_adam_laboratory.zoo import diagnose as zoo
from generic_adam_laboratory.zoo import diagnose_benchmark as benchmark
from generic_adam_laboratory.zoo.diagnose_runs import train


def test_the_zoo_is_as_large_as_it_says():
    assert len(zoo.FAILING) >= 30
    assert len(zoo.HEALTHY) >= 60
    assert {one.cause for one in zoo.FAILING} == set(CAUSES)
    names = [one.name for one in (*zoo.FAILING, *zoo.HEALTHY)]
    assert len(names) == len(set(names))
    assert {one.judging for one in zoo.FAILING} == {True, False}
    for cause in CAUSES:
        assert len({one.options.task for one in zoo.FAILING if one.cause == cause}) >= 2, cause
    long = [one for one in zoo.HEALTHY if one.options.steps >= 1000]
    assert 2 * len(long) >= len(zoo.HEALTHY)


@pytest.mark.parametrize("task", sorted({one.options.task for one in zoo.HEALTHY} - {"lenet", "resnet"}))
def test_a_task_is_the_same_whether_it_is_watched_or_not(task):
    options = next(one.options for one in zoo.HEALTHY if one.options.task == task)
    options = replace(options, steps=4)
    alone, watched = train(options, 1), train(options, 1, watched=True)
    assert np.array_equal(alone.losses, watched.losses)
    assert len(watched.watch.records) == 1


def test_a_case_is_looked_at_once_and_its_change_replayed(tmp_path, monkeypatch):
    case = next(one for one in zoo.FAILING if one.name == "lr_too_small, linear")
    case = replace(case, options=replace(case.options, steps=300), level=0.8)
    seen = benchmark.look(case, tmp_path, "")
    assert seen.is_proved
    assert seen.diagnosis.findings[0].cause == "lr_too_small"
    assert seen.replay < max(seen.proof[""])
    monkeypatch.setattr(benchmark, "train", None)  # nothing is trained again
    again = benchmark.look(case, tmp_path, "")
    assert again.replay == seen.replay
    healthy = replace(seen, case=replace(zoo.HEALTHY[0]), proof={}, replay=None)
    assert benchmark.judged([seen, healthy]) == {
        "right cause first": (1, 1),
        "among the first two": (1, 1),
        "failing called healthy": (0, 1),
        "false alarms": (1, 1),
    }
    benchmark.write(tmp_path, [seen, healthy], Occasion("generic-adam reproduce diagnose", {}, 1.0))
    table = (tmp_path / "table.md").read_text()
    assert "| lr_too_small | 1 | 1 | - |" in table
    assert (tmp_path / "diagnose.png").stat().st_size > 10_000
    assert "lr_too_small, linear" in (tmp_path / "records.csv").read_text()


def test_others_alarms_are_where_they_should_be():
    noise = np.random.default_rng(0).standard_normal(400) * 0.1 + 1.0
    assert benchmark._z_score(noise) is None
    noise[300] = 5.0
    assert benchmark._z_score(noise) == 301
    assert benchmark._zclip(noise) <= 301
    assert benchmark.gone_at(np.concatenate([np.linspace(3, 1, 100), np.full(50, 9.0)])) in range(101, 111)
