"""The table of a study reads back as it was, and its results appear together."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from generic_adam.errors import RunError
from generic_adam.files import OutputError, write_csv
from generic_adam_laboratory.runs.records import Occasion, damaged_files, read_manifest
from generic_adam_laboratory.studies.paper_studies import EXPERIMENTS
from generic_adam_laboratory.studies.study import (
    COLUMNS,
    Curve,
    Options,
    by_method,
    collect,
    curve_rows,
    initial_values,
    last_epoch,
    outcomes,
    publish,
    read_curves,
    with_earlier,
)
from generic_adam_laboratory.training import EpochRecord
from laboratory.tests.small_mnist import LINES, jobs_in

WRONG_V = "v_0,r,method,seed,epoch,train_loss,test_loss,test_accuracy\nsmall,,r,0,1,1,1,1\n"


def curve(method, losses, *, r=None, initial_v=1e-8, seed=0):
    records = tuple(EpochRecord(e, loss, 2 * loss, 1 - loss / 4) for e, loss in enumerate(losses, 1))
    return Curve(method, r, initial_v, seed, records)


def test_runs_have_absolute_folders_for_workers_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {job.directory.is_relative_to(tmp_path / "out" / "runs") for job in jobs_in(Path("out"))} == {True}


def test_a_table_reads_back_bit_for_bit(tmp_path):
    curves = [
        curve("r = 0", [1 / 3, 0.1 + 0.2], r=Fraction(0)),
        curve("r = 0", [0.5, 0.25], r=Fraction(0), seed=1),
        curve("r = 1/3", [0.5, 0.25], r=Fraction(1, 3), seed=1),
        curve("another, with a comma", [1e-300, 0.25], initial_v=None),
    ]
    write_csv(tmp_path / "records.csv", COLUMNS, curve_rows(curves))
    assert read_curves(tmp_path / "records.csv") == curves


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "v_0,r,method,seed,epoch\n1,0,r,0,x\n", WRONG_V])
def test_another_table_is_refused(tmp_path, text):
    path = tmp_path / "records.csv"
    path.write_text(text)
    if text:
        with pytest.raises(OutputError, match="not a table of a study"):
            read_curves(path)
    else:
        assert read_curves(path) == []


def test_methods_that_forget_v0_count_for_each():
    curves = [curve("a", [1.0]), curve("a", [2.0], initial_v=1e-4), curve("b", [3.0], initial_v=None)]
    assert initial_values(curves) == [1e-8, 1e-4]
    assert by_method(curves, 1e-4) == {"a": [curves[1]], "b": [curves[2]]}
    assert by_method([curves[0], curves[2]], None) == {"a": [curves[0]], "b": [curves[2]]}


def test_the_table_of_ends_has_medians_and_ranges_and_a_shared_run_once():
    curves = [
        *(curve("a", [9.0, loss], seed=n) for n, loss in enumerate((0.4, 0.1, 0.2))),
        curve("b", [0.3], initial_v=None),  # ended early: it keeps its last value
        curve("a", [9.0, 0.8], initial_v=1e-4),
    ]
    assert last_epoch(curves) == 2
    headings, rows = outcomes(curves)
    assert headings == ["method", "v_0", "seeds", "training loss", "test accuracy", "test loss"]
    assert rows == [
        [
            "a",
            "1e-08",
            "3",
            "0.2000 (0.1000 to 0.4000)",
            "95.00% (90.00% to 97.50%)",
            "0.4000 (0.2000 to 0.8000)",
        ],
        ["b", "any", "1", "0.3000", "92.50%", "0.6000"],
        ["a", "0.0001", "1", "0.8000", "80.00%", "1.6000"],
    ]


def test_results_appear_together_with_their_checksums(tmp_path):
    study = replace(EXPERIMENTS["lenet"].study, epochs=1, lines=LINES[:2])
    curves = [curve(line.label, [0.5], r=line.r, initial_v=line.initial_v) for line in study.lines]

    def draw(_study, _curves, stem):
        stem.with_suffix(".svg").write_text("<svg/>")

    def fail(*_arguments):
        raise OutputError("no room")

    (tmp_path / "records.csv").write_text("old")
    with pytest.raises(OutputError, match="no room"):
        publish(study, tmp_path, curves, Occasion("c", {}, 1.0), claims=[], draw=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]
    assert (tmp_path / "records.csv").read_text() == "old", "nothing appears before everything is written"

    files = publish(study, tmp_path, curves, Occasion("c", {}, 1.0), claims=[], draw=draw)
    assert [path.name for path in files] == ["lenet.svg", "manifest.json", "outcomes.md", "records.csv"]
    assert read_curves(tmp_path / "records.csv") == curves
    manifest = read_manifest(tmp_path)
    assert set(manifest["files"]) == {"lenet.svg", "outcomes.md", "records.csv"}
    assert [line["r"] for line in manifest["settings"]["lines"]] == ["0", "1/4"]
    assert damaged_files(tmp_path, manifest) == []
    (tmp_path / "outcomes.md").write_text("changed")
    assert damaged_files(tmp_path, manifest) == ["outcomes.md"]
    json.dumps(manifest)


def test_only_the_methods_that_are_wanted_run():
    assert [line.label for line in Options(only=("AMSGrad", "r = 1")).chosen(LINES)] == ["r = 1", "AMSGrad"]
    with pytest.raises(RunError, match="--only"):
        Options(only=("r = 2",)).chosen(LINES)


def test_published_runs_are_taken_and_not_repeated(tmp_path):
    lenet = EXPERIMENTS["lenet"]
    study = replace(
        lenet.study,
        epochs=2,
        seeds=2,
        lines=tuple(lenet.lines(lenet.study, Options(epsilon=(1e-8,)), 9)[:3]),
    )
    known = {"steps": 9, "data_sha256": "abc"}
    curves = [
        curve(line.label, [1.0 + n, 0.5], r=line.r, initial_v=line.initial_v) for n, line in enumerate(study.lines)
    ]
    published = replace(study, seeds=1)
    publish(published, tmp_path, curves, Occasion("", known, 3), claims=[], draw=lambda *_: None)
    other = replace(study.lines[2], optimizer=replace(study.lines[2].optimizer, theta="0.9"))
    spaced = replace(study.lines[1].optimizer, theta=study.lines[1].optimizer.theta.replace("/", "  /  "))
    asked = replace(study, lines=(study.lines[0], replace(study.lines[1], optimizer=spaced), other))
    found, (source,) = with_earlier(asked, known, [tmp_path])
    assert found.earlier == tuple(curves[:2]), "the third line is another method"
    assert source["runs"] == ["epsilon-1e-08/r-0/seed-0", "epsilon-1e-08/r-0.25/seed-0"]
    assert source["seconds"] == 3
    to_run = [(job.line.label, job.settings.seed) for job in found.jobs(tmp_path)]
    assert to_run == [(other.label, 0), *((line.label, 1) for line in asked.lines)]
    again, _ = with_earlier(published, known, [tmp_path])
    assert collect(again, tmp_path) == curves
    assert with_earlier(replace(published, epochs=3), known, [tmp_path])[0].earlier == (), "they are too short"
    with pytest.raises(RunError, match="data_sha256"):
        with_earlier(study, known | {"data_sha256": "xyz"}, [tmp_path])
    (tmp_path / "records.csv").write_text("changed")
    with pytest.raises(RunError, match="as their manifest says"):
        with_earlier(study, known, [tmp_path])


def test_further_seeds_come_along_and_each_run_is_told_once(tmp_path):
    """Curves of a study with one seed, and of another that took its runs, with three seeds of some methods."""
    lenet, known = EXPERIMENTS["lenet"], {"steps": 9, "data_sha256": "abc"}
    lines = tuple(lenet.lines(lenet.study, Options(epsilon=(1e-8, 1e-4)), 9))
    two = tuple(line for line in lines if line.label in {"r = 0", "r = 1"})
    whole = replace(lenet.study, epochs=1, lines=two)  # r = 0 with two v_0, and r = 1
    some = replace(whole, seeds=3, lines=two[:2])

    def runs(study, seeds, loss):
        return [
            curve(line.label, [loss + seed], r=line.r, initial_v=line.initial_v, seed=seed)
            for seed in seeds
            for line in study.lines
        ]

    def write(study, curves, name, seconds, **settings):
        (tmp_path / name).mkdir()
        occasion = Occasion(name, known | settings, seconds)
        publish(study, tmp_path / name, curves, occasion, claims=[], draw=lambda *_: None)
        return tmp_path / name

    first = write(whole, runs(whole, [0], 1.0), "first", 10)
    taken, sources = with_earlier(some, known, [first])
    second = write(some, [*taken.earlier, *runs(some, [1, 2], 1.0)], "second", 10 + 7, earlier=sources)
    merged, sources = with_earlier(whole, known, [second, first])
    assert merged.jobs(tmp_path) == []
    assert merged.title == "LeNet, MNIST, one epoch, one to 3 seeds"
    curves = collect(merged, tmp_path)
    assert [(one.method, one.initial_v, one.seed) for one in curves] == [
        ("r = 0", 1e-8, 0), ("r = 1", None, 0), ("r = 0", 1e-4, 0),
        ("r = 0", 1e-8, 1), ("r = 1", None, 1), ("r = 0", 1e-8, 2), ("r = 1", None, 2),
    ]  # fmt: skip
    assert {one["command"]: (len(one["runs"]), one["seconds"]) for one in sources} == {
        "first": (3, 10),
        "second": (4, 7),
    }
    headings, rows = outcomes(curves)
    assert [row[: headings.index("training loss")] for row in rows] == [
        ["r = 0", "1e-08", "3"], ["r = 1", "any", "3"], ["r = 0", "0.0001", "1"],
    ]  # fmt: skip
    claims = lenet.claims(merged, curves)
    assert [claim.evidence for claim in claims] == [
        "training loss along r = 0, r = 1: 2.0000 (1.0000 to 3.0000), 2.0000 (1.0000 to 3.0000)",
        "training loss along r = 0, r = 1: 1.0000, 1.0000",
    ], "of a v_0 the seeds that have all its methods are judged"


@pytest.mark.parametrize(
    "damage", [{"settings": []}, {"settings": {"lines": [{}]}}, {"seconds": "long"}, {"seconds": None}]
)
def test_a_foreign_manifest_of_earlier_runs_is_one_line(tmp_path, damage):
    study = replace(EXPERIMENTS["lenet"].study, epochs=1, lines=LINES[:2])
    curves = [curve(line.label, [0.5], r=line.r, initial_v=line.initial_v) for line in study.lines]
    publish(study, tmp_path, curves, Occasion("c", {"data_sha256": "abc"}, 1.0), claims=[], draw=lambda *_: None)
    manifest = read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | damage))
    with pytest.raises(RunError, match="results"):
        with_earlier(study, {"data_sha256": "abc"}, [tmp_path])
