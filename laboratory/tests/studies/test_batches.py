"""beta2 against the batch size: the studies, and what is read off their ends."""

import pytest

from generic_adam.cli.app import run
from generic_adam.errors import RunError
from generic_adam.files import write_csv
from generic_adam.schedules import parse
from generic_adam_laboratory.runs.records import write_manifest
from generic_adam_laboratory.studies.batches import EXPERIMENTS, SIZES, Swept, read_sweeps, rows
from generic_adam_laboratory.studies.study import COLUMNS, Options

STEPS = 2000


def values(text):
    return parse(text).values(1, STEPS + 1)


def test_every_batch_size_sees_as_many_windows_and_scales_its_rate():
    peaks = {}
    for size in SIZES:
        experiment = EXPERIMENTS[f"gpt-batch-{size}"]
        assert experiment.study.epochs * experiment.study.batch_size == 128
        found = experiment.lines(experiment.study, Options(), STEPS)
        assert len({line.optimizer.theta for line in found}) == len(found) == 7
        peaks[size] = values(found[0].optimizer.alpha).max()
    assert peaks[128] / peaks[8] == pytest.approx(4)


SWEPT = Swept(8, {0.9: (2.2, 2.0), 0.99: (2.0, 2.0001), 0.999: (2.004, 1.98)})


def test_the_half_life_is_the_time_in_which_half_is_forgotten():
    steps = SWEPT.half_life(0.99) / 8
    assert 0.99**steps == pytest.approx(0.5)


def test_the_best_and_what_is_as_good_are_told_seed_by_seed():
    assert SWEPT.best == (0.99, 0.999)
    assert SWEPT.usual == 0.999
    assert SWEPT.above(0.999) == [0, 0]
    assert SWEPT.above(0.99) == pytest.approx([-0.2, 1.015], abs=1e-3)
    assert SWEPT.close == [0.999]  # 0.99 is 1 % above in the second seed
    assert rows([SWEPT])[0][:6] == ("8", "4,000", "0.99, 0.999", "552, 5,542", "0.999", "5,542")


def results(folder, size):
    folder.mkdir()
    ends = {"0.9": 2.2, "0.95": 2.1, "0.999": 2.0}
    made = [("any", "", f"beta2 = {b}", seed, 1, 3.0, loss + seed, 0.5) for b, loss in ends.items() for seed in (0, 1)]
    write_csv(folder / "records.csv", COLUMNS, made)
    settings = {"batch_size": size, "lines": [{"label": f"beta2 = {b}"} for b in ends]}
    write_manifest(folder / "manifest.json", "generic-adam reproduce x", settings, 1.0)
    return folder


def test_studies_are_put_side_by_side_by_a_command(tmp_path, capsys):
    made = [results(tmp_path / str(size), size) for size in (16, 4)]
    assert run(["reproduce", "gpt-batches", *map(str, made), "--out", str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"outcomes.md", "gpt-batches.svg", "manifest.json"}
    table = (tmp_path / "out" / "outcomes.md").read_text(encoding="utf-8").splitlines()
    assert [line.split("|")[1].strip() for line in table[2:]] == ["4", "16"]
    assert "+5.0" in table[2], "0.95 is 5 % above the best"
    (made[0] / "records.csv").write_text("changed")
    assert run(["reproduce", "gpt-batches", *map(str, made)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_another_study_is_one_line(tmp_path):
    write_manifest(tmp_path / "manifest.json", "x", {"seeds": 3}, 1.0)
    with pytest.raises(RunError, match="gpt-batch"):
        read_sweeps([tmp_path])
