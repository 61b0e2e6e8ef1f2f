"""`check --plot`: the figure beside the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generic_adam.cli.app import run


def test_the_figure_is_written_and_the_answer_stays_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = ["check", "--alpha", "0.5/sqrt(t)", "--beta", "0.9", "--theta", "1 - 1/max(t, 2)", "--json"]
    assert run(method) == 0
    plain = json.loads(capsys.readouterr().out)
    for ending, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        path = tmp_path / f"figure.{ending}"
        assert run([*method, "--plot", str(path), "--beside", "adam"]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out) == plain
        assert str(path) in printed.err
        assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--plot", "figure.bmp"], "ends in one of .svg, .png, .pdf"),
        (["--plot", "nowhere/figure.svg"], "cannot write nowhere/figure.svg"),
        (["--plot", "figure.svg", "--beside", "adamm"], "adamm"),
        (["--beside", "adam"], "--beside goes with --plot FILE"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_file(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", "adam", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_rate_that_begins_at_0_has_its_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rate = ["check", "--alpha", "min(t - 1, 10)*1e-4", "--beta", "0.9", "--theta", "0.99", "--steps", "100"]
    assert run([*rate, "--plot", str(tmp_path / "figure.svg")]) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'figure.svg'}\n"


def test_a_run_of_any_length_has_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "check.svg"
    assert run(["check", "adam", "--steps", "1e12", "--plot", str(path)]) in {0, 3}
    assert path.exists()
    assert "1,000,000,000,000 steps" in capsys.readouterr().out
