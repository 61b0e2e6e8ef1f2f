"""The studies of networks and the data sets, through the command line."""

import io
import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from generic_adam.cli.app import run
from generic_adam.files import OutputError
from generic_adam_laboratory.backends import Paused
from generic_adam_laboratory.cli.reproduce import _STUDIES, _advancing
from generic_adam_laboratory.data.downloads import SOURCES
from generic_adam_laboratory.runs.records import read_claims
from generic_adam_laboratory.runs.run import exclusive
from generic_adam_laboratory.studies import batches, cost, paper_studies, worth
from generic_adam_laboratory.studies.study import read_curves
from laboratory.tests.small_mnist import write_small_mnist

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    return str(write_small_mnist(tmp_path_factory.mktemp("data"), train=64, test=20))


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out figures, which take most of a small study's time and are looked at elsewhere."""

    def leave_out():
        monkeypatch.setattr("generic_adam_laboratory.studies.study_figures.plot_study", lambda *_: None)

    return leave_out


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_study_leaves_everything_a_reader_needs_and_resumes(tmp_path, data, capfd, undrawn):
    out = tmp_path / "study"
    arguments = ["reproduce", "lenet", "--epochs", "1", "--jobs", "1", "--data", data, "--out", str(out)]
    assert run([*arguments, "--epsilon", "1e-4"]) == 0
    first = capfd.readouterr()
    assert "epsilon-0.0001/r-0.5/seed-0: epoch 1/1, loss " in first.err
    assert "images/s" in first.err
    assert "Outcomes" in first.out
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "lenet.svg",
        "lenet.png",
        "records.csv",
        "outcomes.md",
        "claims.json",
        "claims.md",
        "manifest.json",
    }
    curves = read_curves(out / "records.csv")
    assert [curve.method for curve in curves] == [
        *("r = 0", "r = 0.25", "r = 0.5", "r = 0.75", "r = 1", "RMSProp", "AMSGrad")
    ]
    assert len(read_claims(out)) == 9
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["command"] == "generic-adam reproduce lenet --epochs 1 --seeds 1 --epsilon 0.0001"
    assert len(manifest["settings"]["lines"]) == 7

    undrawn()
    before = (out / "records.csv").read_bytes()
    assert json.loads((out / "elapsed.json").read_text())["seconds"] == pytest.approx(manifest["seconds"], abs=1e-3)
    (out / "elapsed.json").write_text('{"seconds": 1000000}')
    assert run([*arguments, "--epsilon", "1e-4"]) == 0
    assert "images/s" not in capfd.readouterr().err, "nothing was left to train"
    assert (out / "records.csv").read_bytes() == before
    again = json.loads((out / "manifest.json").read_text())
    assert again["seconds"] > 1e6, "the time of all commands counts"

    assert run([*arguments, "--epsilon", "1e-4", "--restart"]) == 0
    assert "images/s" in capfd.readouterr().err, "everything was trained anew"
    assert (out / "records.csv").read_bytes() == before
    fresh = json.loads((out / "manifest.json").read_text())
    assert 0 < fresh["seconds"] < 1e6, "what was thrown away does not count"
    manifest = fresh

    elsewhere = [*arguments[:-1], str(tmp_path / "elsewhere"), "--epsilon", "1e-4", "--earlier", str(out)]
    assert run(elsewhere) == 0
    assert "images/s" not in capfd.readouterr().err, "published runs are not repeated"
    assert (tmp_path / "elsewhere" / "records.csv").read_bytes() == before
    taken = json.loads((tmp_path / "elsewhere" / "manifest.json").read_text())["settings"]["earlier"]
    assert [(len(one["runs"]), one["machine"]) for one in taken] == [(7, manifest["machine"])]

    kept = contents(out)
    with exclusive(out):
        for restart in ([], ["--restart"]):
            assert run([*arguments, "--epsilon", "1e-4", *restart]) == 2
            assert "is in use by another process" in capfd.readouterr().err
    assert contents(out) == kept


@pytest.mark.slow
def test_the_cost_study_compares_adam_with_what_is_advised(tmp_path, data, undrawn):
    undrawn()
    out = tmp_path / "cost"
    labels = ("AdamW constant, 0.999", "AdamW cosine, 0.95", "certified Adam", "theta rising")
    chosen = [word for label in labels for word in ("--only", label)]
    arguments = ["reproduce", "lenet-cost", "--epochs", "8", "--seeds", "1", "--jobs", "1", *chosen]
    assert run([*arguments, "--data", data, "--out", str(out)]) == 0
    adam, cosine, certified, rising = read_curves(out / "records.csv")
    assert tuple(curve.method for curve in (adam, cosine, certified, rising)) == labels
    # An epoch is one step: until t = 1,000 the certified method is Adam, and until t = 20 theta has not risen.
    for theirs, ours in ((adam, certified), (cosine, rising)):
        assert ours.records[0].train_loss == theirs.records[0].train_loss
        assert ours.records[1].test_loss == pytest.approx(theirs.records[1].test_loss, rel=1e-5)
    assert "not certified" in (out / "guarantees.md").read_text(encoding="utf-8")
    assert not (out / "claims.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "resnet18"], "get it with `generic-adam data fetch cifar100`"),
        (["reproduce", "lenet", "--device", "tpu"], "--device 'tpu': expected cpu or cuda"),
        (["reproduce", "resnet18", "--blocks", "3"], "--blocks '3': expected usual or paper"),
        (["reproduce", "lenet", "--quick", "--epochs", "0"], "epochs 0: expected a positive whole number"),
        (["reproduce", "lenet", "--quick", "--seeds", "0"], "seeds 0: expected a positive whole number"),
        (["reproduce", "lenet", "--quick", "--epsilon", "-1"], "--epsilon -1: expected a positive number"),
        (["reproduce", "lenet", "--quick", "--epsilon", "0"], "--epsilon 0: expected a positive number"),
        (["reproduce", "lenet", "--quick", "--epsilon", "inf"], "--epsilon inf: expected a positive number"),
        (["reproduce", "lenet", "--epsilon", "1e-8", "--epsilon", "1.0000001e-8"], "equal to six digits"),
        (["reproduce", "lenet", "--epochs", "0"], "--epochs 0: expected a positive whole number"),
        (["reproduce", "lenet", "--width", "8"], "goes with ResNet-18"),
        (["reproduce", "lenet-cost", "--epsilon", "1e-8"], "does not go with lenet-cost"),
        (["reproduce", "lenet-v0", "--quick", "--only", "r = 0"], "--only does not go with lenet-v0"),
        (
            ["reproduce", "lenet", "--quick", "--seeds", "99999999999999999999"],
            "expected a positive whole",
        ),
        (["reproduce", "resnet18", "--quick", "--width", "9999999"], "number of at most 4,096"),
        (["reproduce", "lenet", "--quick", "--earlier", str(RESULTS / "bound")], "the results of a study of networks"),
        (
            ["reproduce", "lenet", "--quick", "--earlier", str(RESULTS / "lenet-cost")],
            "dataset is mnist",
        ),
        (["data", "fetch", "mnist", "--mirror", "http://["], "begins with http"),
        (["reproduce", "lenet", "--quick", "--jobs", "0"], "jobs 0: expected a positive whole number"),
        (["data", "fetch", "imagenet"], "expected one of cifar100, mnist"),
        (["data", "fetch", "mnist", "--mirror", "ftp://x"], "begins with http"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GENERIC_ADAM_DATA", raising=False)
    assert run(arguments) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_checksums_are_whole():
    for source in SOURCES.values():
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0


def test_a_gpu_that_is_not_there_is_one_line(monkeypatch, capfd):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run(["reproduce", "lenet", "--quick", "--device", "cuda"]) == 2
    assert "--device cuda: torch finds no CUDA device" in capfd.readouterr().err


def test_every_study_is_a_command():
    assert list(_STUDIES) == list(
        paper_studies.EXPERIMENTS | cost.EXPERIMENTS | worth.EXPERIMENTS | batches.EXPERIMENTS
    )


@pytest.mark.parametrize("number", [2, 15, 1])
def test_a_signal_says_the_command_that_goes_on(tmp_path, data, monkeypatch, capfd, number):
    def run_until_a_signal(*_arguments, **_options):
        raise Paused(number)

    monkeypatch.setattr("generic_adam_laboratory.studies.sweep.run", run_until_a_signal)
    out = tmp_path / "a [bold] place"
    asked = ["reproduce", "lenet", "--epochs", "2", "--data", data, "--jobs", "1", "--out", str(out)]
    assert run(asked) == 128 + number
    said = capfd.readouterr().err
    assert f"at the last checkpoints in {out}" in said
    assert "to go on: generic-adam reproduce lenet --epochs 2 --seeds 1 --epsilon 1e-08 --epsilon 0.0001" in said
    assert f"--data {data} --jobs 1 --out '{out}'" in said.replace("\n", " ")
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_signal_while_results_are_published_pauses_too(tmp_path, data, monkeypatch, capfd):
    def is_drawing(_study, _curves, path):
        with pytest.raises(OutputError, match="in use"), exclusive(out):
            pass
        (path.parent / "half.svg").touch()
        os.kill(os.getpid(), signal.SIGTERM)

    out = tmp_path / "study"
    asked = ["reproduce", "lenet", "--epochs", "1", "--jobs", "1", "--epsilon", "1e-4", "--only", "r = 1"]
    asked += ["--data", data, "--out", str(out)]
    with monkeypatch.context() as patch:
        patch.setattr("generic_adam_laboratory.studies.study_figures.plot_study", is_drawing)
        patch.setattr("generic_adam_laboratory.cli.reproduce.make_console", lambda **_: Console(stderr=True, width=60))
        assert run(asked) == 128 + signal.SIGTERM
    said = capfd.readouterr().err
    (command,) = re.findall(r"to go on: (generic-adam reproduce lenet --epochs 1 .*)", said)
    assert shlex.quote(str(out)) in command  # the whole of it, on one line of a narrow terminal
    assert "Traceback" not in said
    assert {path.name for path in out.iterdir()} <= {".lock", "elapsed.json", "runs"}
    (out / ".generic-adam-results-of-a-killed-process").mkdir()
    assert run(asked) == 0
    assert "images/s" not in capfd.readouterr().err, "nothing was left to train"
    assert not list(out.glob(".generic-adam-results-*"))


def test_a_run_that_cannot_be_removed_is_not_taken_for_a_new_one(tmp_path, data, capfd):
    (tmp_path / "elsewhere").mkdir()
    asked = ["reproduce", "lenet", "--epochs", "1", "--jobs", "1", "--epsilon", "1e-4", "--only", "r = 1"]
    study = tmp_path / "study"
    run_directory = study / "runs" / "r-1" / "seed-0"
    run_directory.parent.mkdir(parents=True)
    run_directory.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert run([*asked, "--data", data, "--out", str(study), "--restart"]) == 2
    said = capfd.readouterr().err
    assert f"cannot write anew to {study}: " in said
    assert said.count("\n") == 1
    assert (tmp_path / "elsewhere").is_dir()


def test_bar_and_lines_on_a_narrow_terminal(monkeypatch, tmp_path):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    settings = SimpleNamespace(epochs=100, dataset="mnist")
    jobs = [SimpleNamespace(name=name, settings=settings) for name in ("r-0.25/seed-0", "certified-adam/seed-1")]
    record = SimpleNamespace(epoch=30, train_loss=0.0496, test_accuracy=0.9853)
    with _advancing(jobs) as tell:
        for job in jobs:
            tell(SimpleNamespace(complaints=(), record=record, samples_per_second=300.0, job=job), 4000.0)
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).splitlines()
    last = [line for line in lines if line.startswith("all runs")][-1]
    assert "━━━━" in last
    assert "60/200" in last
    assert "1:06:40 left" in last
    assert len(last.rstrip()) <= 60
    assert any("98.53%" in line for line in lines)


def test_a_directory_of_another_study_is_refused_unless_it_is_to_be_replaced(tmp_path, data, capfd):
    settings = {
        "name": "lenet-cost",
        "network": "lenet",
        "width": 1,
        "dataset": "mnist",
        "batch_size": 64,
        "bf16": False,
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"settings": settings, "files": {}}))
    asked = [
        "reproduce",
        "lenet",
        "--epochs",
        "1",
        "--jobs",
        "1",
        "--only",
        "SGD",
        "--data",
        data,
        "--out",
        str(tmp_path),
    ]
    assert run(asked) == 2
    assert 'a finished run whose name is "lenet-cost", this one\'s is "lenet"' in capfd.readouterr().err
    assert not (tmp_path / "runs" / "sgd" / "seed-0" / "records.csv").exists()
    (tmp_path / "manifest.json").write_text(json.dumps({"settings": settings | {"name": "lenet"}, "files": {}}))
    assert run(asked) == 0, "one method has a figure, and no claims that compare it"
