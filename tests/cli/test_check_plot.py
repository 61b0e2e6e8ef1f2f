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
        assert run([*method, "--plot", str(path), "--against", "adam"]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out) == plain
        assert str(path) in printed.err
        assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--plot", "figure.bmp"], "ends in one of .svg, .png, .pdf"),
        (["--plot", "nowhere/figure.svg"], "cannot write nowhere/figure.svg"),
        (["--plot", "figure.svg", "--against", "adamm"], "adamm"),
        (["--against", "adam"], "--against goes with --plot FILE"),
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
