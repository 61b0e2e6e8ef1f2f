"""`reproduce bound`: what it writes, and one line for bad input."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from generic_adam.cli import main

FILES = {
    "bound.svg", "bound.png", "records.csv", "outcomes.md", "claims.json", "claims.md",
    "manifest.json",
}  # fmt: skip


def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "bound", "--steps", "220", "--seeds", "3", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir() if path.name != ".lock"} == FILES
    rows = list(csv.DictReader((tmp_path / "records.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["method"] for row in rows} == {"r = 0", "r = 0.5", "r = 1"}
    measured = [row for row in rows if row["measured_weighted"]]
    assert all(float(row["measured_weighted"]) <= float(row["sharper"]) for row in measured)
    assert all(not row["paper"] for row in rows if row["theorem"] == "E")
    assert "Outcomes of generic-adam reproduce bound --seeds 3 --steps 220" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--steps", "3"], ["--seeds", "0"], ["--seed", "-1"], ["--steps", "many"]])
def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code = main(["reproduce", "bound", "--quick", "--out", str(tmp_path / "x"), *arguments])
    assert code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
