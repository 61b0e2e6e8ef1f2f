"""`reproduce counterexample` and `reproduce phase-map`: what they write, and one line for bad input."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from generic_adam.cli.app import run
from generic_adam.files import OutputError
from generic_adam_laboratory.cli import reproduce as reproduction
from generic_adam_laboratory.counterexample import Plan
from generic_adam_laboratory.counterexample import figures as report
from generic_adam_laboratory.counterexample.study import figure_methods
from generic_adam_laboratory.runs import checkpoint
from generic_adam_laboratory.runs.records import damaged_files, read_claims

SMALL = ["--steps", "3e3", "--seeds", "4", "--threads", "1"]
FILES = {
    "counterexample.svg", "counterexample.png", "outcomes.md", "records.csv", "outcomes.csv", "claims.json",
    "claims.md", "manifest.json",
}  # fmt: skip


def reproduce(*arguments: str | Path) -> int:
    return run(["reproduce", *map(str, arguments)])


def visible(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.name != ".lock"}


def read_rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_everything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("counterexample", *SMALL, "--out", tmp_path) == 0
    assert visible(tmp_path) == FILES
    printed = capsys.readouterr()
    assert "Outcomes" in printed.out
    assert "not certified" in printed.out
    assert str(tmp_path / "counterexample.svg") in printed.out
    assert "compiling took" in printed.err

    rows = read_rows(tmp_path / "records.csv")
    assert {row["method"] for row in rows} > set(figure_methods())
    assert all(float(row["x_q10"]) <= float(row["x_q50"]) <= float(row["x_q90"]) for row in rows)
    outcomes = read_rows(tmp_path / "outcomes.csv")
    assert len(outcomes) == 20 * 4 + 4 * 4 + 2, "the open curves ten and a hundred times as long"
    assert len(read_claims(tmp_path)) == 19
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["lane_steps"] == 3000 * (20 * 4 + 10 * 4 * 4 + 100 * 2)
    assert manifest["settings"]["problem"]["common_slope"] == -10.0


def test_quick_yields_to_what_is_said(tmp_path: Path) -> None:
    assert reproduce("phase-map", "--quick", "--steps", "50", "--rows", "2", "--seeds", "1", "--out", tmp_path) == 0
    settings = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["settings"]
    assert settings["steps"] == 50
    assert settings["s"] == [0.0, 1.2]
    assert len(settings["r"]) == 11


def test_the_command_in_the_manifest_repeats_the_run(tmp_path: Path) -> None:
    settings = [
        "--form",
        "deterministic",
        "--no-peers",
        "--seed",
        "5",
        "--steps",
        "500",
        "--seeds",
        "2",
        "--quick",
    ]
    assert reproduce("counterexample", *settings, "--out", tmp_path / "a") == 0
    command = json.loads((tmp_path / "a" / "manifest.json").read_text(encoding="utf-8"))["command"]
    assert run([*command.split()[1:], "--out", str(tmp_path / "b")]) == 0
    for name in ("records.csv", "outcomes.csv", "claims.json", "counterexample.svg", "counterexample.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_phase_map_writes_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--quick", "--steps", "300", "--seeds", "2", "--columns", "3", "--rows", "3"]
    assert reproduce("phase-map", *small, "--out", tmp_path) == 0
    names = {"phase-map.svg", "phase-map.png", "phase-map.csv", "claims.json", "claims.md", "manifest.json"}
    assert visible(tmp_path) == names
    rows = read_rows(tmp_path / "phase-map.csv")
    assert [row["paper"] for row in rows].count("1") == 1
    assert "not necessary" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "0"], "--steps: expected a whole number of steps from 1 to 10^15, got 0"),
        (["--steps", "-5"], "--steps: expected a whole number of steps from 1 to 10^15, got -5"),
        (["--steps", "1e14"], "1e+12"),
        (["--steps", "1e999999"], "--steps: expected a whole number of steps from 1 to 10^15, got inf"),
        (["--steps", "1.5"], "--steps: expected a whole number of steps from 1 to 10^15, got 1.5"),
        (["--steps", "ten"], "'ten'"),
        (["--steps", "nan"], "--steps: expected a whole number of steps from 1 to 10^15, got nan"),
        (["--seeds", "0"], "expected at least one"),
        (["--seeds", "1000000000"], "GiB of memory"),
        (["--seed", "-1"], "seed is -1"),
        (["--form", "wavy"], "form is 'wavy'"),
        (["--threads", "-1"], "threads is -1"),
        (["--threads", "0"], "threads is 0"),
        (["--seeds", "-3"], "(seeds) is -3"),
        (["--seeds", "99999999999999999999"], "(seeds) is 99999999999999999999"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert reproduce("counterexample", *SMALL, *arguments, "--out", tmp_path) == 2
    error = capsys.readouterr().err
    assert error.startswith("generic-adam: ")
    assert words in error
    assert error.count("\n") == 1
    assert visible(tmp_path) == set()


def test_an_unwritable_directory_is_one_line_before_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert reproduce("counterexample", "--steps", "1e12", "--out", tmp_path / "file") == 2
    assert "expected a directory" in capsys.readouterr().err
    assert reproduce("counterexample", "--steps", "1e12", "--out", "/proc/nowhere") == 2
    assert "cannot write to /proc/nowhere" in capsys.readouterr().err


def test_a_disk_that_fills_up_leaves_no_half_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert reproduce("counterexample", *SMALL, "--out", tmp_path) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert visible(tmp_path) == set()


def test_a_paused_command_says_how_to_go_on_and_the_same_command_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "plot_counterexample", lambda *_: None)
    small = [*SMALL, "--no-peers"]
    assert reproduce("counterexample", *small, "--out", tmp_path / "whole") == 0
    halved = ["counterexample", *small, "--out", tmp_path / "halved"]
    with monkeypatch.context() as patch:
        # As early as a signal can pause: before the first block.
        begin = reproduction.make_progress
        patch.setattr(
            reproduction,
            "make_progress",
            lambda *columns: os.kill(os.getpid(), signal.SIGTERM) or begin(*columns),
        )
        assert reproduce(*halved) == 128 + signal.SIGTERM
    message = capsys.readouterr().err
    assert "paused before t = 1; go on with: generic-adam reproduce counterexample" in message
    assert visible(tmp_path / "halved") == {"checkpoint-000001.npz"}
    assert reproduce(*halved, "--seed", "1") == 2
    assert "a paused run whose seed is 0, this one's is 1" in capsys.readouterr().err
    command = message.split("go on with: generic-adam ")[1].split()
    paused = checkpoint.load(tmp_path / "halved" / "checkpoint-000001.npz", lambda raw: dict(np.load(io.BytesIO(raw))))
    np.savez(buffer := io.BytesIO(), **paused | {"seconds": np.array(1000.0)})
    checkpoint.save(tmp_path / "halved", 1, buffer.getvalue(), "npz")
    assert run(command) == 0
    seconds = json.loads((tmp_path / "halved" / "manifest.json").read_text())["seconds"]
    assert 1000 < seconds < 2000, "of both commands"
    for name in ("records.csv", "outcomes.csv", "claims.json"):
        assert (tmp_path / "halved" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    capsys.readouterr()
    written = (tmp_path / "halved" / "manifest.json").stat().st_mtime_ns
    assert reproduce(*halved) == 0
    assert "holds this run, finished" in capsys.readouterr().out
    assert (tmp_path / "halved" / "manifest.json").stat().st_mtime_ns == written
    assert reproduce(*halved, "--restart") == 0
    assert (tmp_path / "halved" / "manifest.json").stat().st_mtime_ns > written


def test_a_figure_that_fails_costs_nothing_that_was_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*arguments: object) -> None:
        raise OutputError("cannot write the figure: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(report, "plot_counterexample", no_space)
        assert reproduce("counterexample", *SMALL, "--no-peers", "--out", tmp_path) == 2
    assert visible(tmp_path) == {"checkpoint-333001.npz"}
    assert reproduce("counterexample", *SMALL, "--no-peers", "--out", tmp_path) == 0
    assert visible(tmp_path) == FILES
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["resumed_from"] == 333001
    assert set(manifest["files"]) == FILES - {"manifest.json"}
    assert damaged_files(tmp_path, manifest) == []


def test_a_plan_counts_its_lane_steps() -> None:
    assert Plan(figure_methods(), 10**7, 100).lane_steps == 10**10


def test_what_the_run_before_left_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    tiny = ["phase-map", "--steps", "20", "--seeds", "1", "--columns", "2", "--rows", "2", "--out", tmp_path]
    assert reproduce(*tiny) == 0
    (tmp_path / "notes.md").write_text("a user's own")
    (tmp_path / ".results-of-mine").mkdir()
    with (tmp_path / "phase-map.csv").open("a") as file:
        file.write("a user's own line")
    small = ["counterexample", *SMALL, "--steps", "20", "--seeds", "1", "--no-peers", "--out", tmp_path, "--restart"]
    assert reproduce(*small) == 0
    assert visible(tmp_path) == FILES | {"notes.md", ".results-of-mine", "phase-map.csv"}


def test_a_grid_that_fills_the_memory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("phase-map", "--columns", "100000", "--rows", "100000", "--out", tmp_path) == 2
    assert "at most 10,000 points" in capsys.readouterr().err
