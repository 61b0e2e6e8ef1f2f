"""`generic-adam bound`: the check values, the trivial bound beside them, and bad input."""

from __future__ import annotations

import json

import pytest

import generic_adam as ga
from generic_adam.cli import main

CHECK = ["bound", "power_family", "--lr", "1e-3", "--steps", "1000", "--dimension", "10"]


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_smallest_bound_and_the_papers(capsys):
    code, out, _ = run(capsys, *CHECK, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["theorem"] == "W"
    assert data["constants"]["X_w"] <= 63.9218639441
    assert dict(data["others"])["zou2019"] <= 2.78617829311e8
    assert data["trivial"] == 1
    assert data["informative"] is False
    assert data["setting"]["dimension"] == 10
    _, out, _ = run(capsys, *CHECK, "--theorem", "zou2019", "--json")
    assert 0 < json.loads(out)["constants"]["C1"] <= 1


def test_the_rate_with_the_least_bound_is_named(capsys):
    """The closed form of start against curvature, at the problem's own gap and smoothness."""
    problem = ["--lr", "1e-3", "--smoothness", "2", "--gap", "3", "--steps", "1e4"]
    _, out, _ = run(capsys, "bound", "adam", *problem, "--json")
    factor = json.loads(out)["best_rate"]
    x, known = ga.methods.adamw(lr=1e-3, weight_decay=0), ga.Setting(smoothness=2, gap=3, gradient_bound=1, dimension=1)
    size = {k: ga.certify(ga.methods.adamw(lr=1e-3 * factor * k, weight_decay=0), horizon=10_000, setting=known)
            for k in (0.8, 1, 1.25)}  # fmt: skip
    relative = [one.horizon.relative for one in size.values()]
    assert relative[1] == min(relative)
    assert factor == ga.best_rate(x, 10_000, known).factor
    assert f"{factor:.2g} x yours for the least" in run(capsys, "bound", "adam", *problem)[1]
    assert json.loads(run(capsys, "bound", "amsgrad", "--steps", "1e4", "--json")[1])["best_rate"] is None


def test_silence_is_said_and_every_number_is_in_the_table(capsys):
    assert len(run(capsys, *CHECK)[1].splitlines()) <= 10
    _, out, _ = run(capsys, *CHECK, "--explain")
    assert out.startswith("NO USEFUL GUARANTEE")
    assert "trivial: 1" in out
    assert "with probability 0.784" in out  # 1 - 0.1^(2/3) = 0.784556...: never more than is true
    for name in ("noise", "drift", "divisor", "X_w"):
        assert any(line.split()[:1] == [name] for line in out.splitlines()), name


@pytest.mark.parametrize(
    ("granted", "known"),
    [
        (["--smoothness", "7"], {"smoothness": 7}),
        (["--full-batch"], {"variance": 0}),
        (["--gradient-norm", "2"], {"gradient_norm": 2}),
        (["--gradient-norm", "2", "--gradient-bound", "0.5"], {"gradient_bound": 0.5, "gradient_norm": 2}),
        (["--weights-bound", "3"], {"weights_bound": 3}),
    ],
)
def test_what_is_granted_is_a_constant_of_the_problem(capsys, granted, known):
    code, out, _ = run(capsys, *CHECK, *granted, "--json")
    data = json.loads(out)
    constants = {
        "smoothness": 1,
        "dimension": 10,
        "gap": 1,
        **({} if "gradient_norm" in known else {"gradient_bound": 1}),
        **known,
    }
    method = ga.methods.power_family(lr=1e-3)
    assert code == 0
    assert data["expectation"] == ga.bound(method, ga.Setting(**constants), 1000).expectation


def test_amsgrad_asks_for_a_bound_on_every_gradient(capsys):
    code, out, _ = run(capsys, "bound", "amsgrad", "--steps", "1e4")
    assert code == 1
    assert "--gradient-norm G" in out
    code, out, _ = run(capsys, "bound", "amsgrad", "--steps", "1e4", "--gradient-norm", "1")
    assert code == 0
    assert "Theorem M" in out


def test_no_theorem_no_bound(capsys):
    code, out, _ = run(capsys, "bound", "generic-adam", "--clip", "1", "--steps", "1000")
    assert code == 1
    assert out.startswith("NO BOUND")
    assert len(out.splitlines()) <= 10
    assert "clipping" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bound", "adam"], "--steps T"),
        ([*CHECK, "--delta", "2"], "delta is 2.0"),
        ([*CHECK, "--smoothness", "-1"], "smoothness"),
        ([*CHECK, "--dimension", "2.5"], "dimension"),
        ([*CHECK, "--gradient-bound", "nan"], "gradient_bound"),
        ([*CHECK, "--theorem", "Q"], "no theorem is called 'Q'"),
        ([*CHECK, "--convex"], "--convex is about regret"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert words in err


def test_what_was_granted_is_named(capsys):
    granted = ("--clip", "1", "--gradient-norm", "0.5", "--weight-decay", "0.1", "--weights-bound", "2")
    code, out, _ = run(capsys, "bound", "adamw", *granted, "--steps", "1000")
    assert code == 0
    assert "no gradient is longer than 0.5" in out
    assert "every weight stays within 2" in out


def test_when_a_theorem_asked_alone_says_something_is_its_own_answer(capsys):
    asked = ["bound", "generic-adam", "--steps", "100", "--dimension", "10", "--json"]
    whole = json.loads(run(capsys, *asked)[1])
    assert whole["informative_from"] == json.loads(run(capsys, *asked, "--theorem", "W")[1])["informative_from"]
    assert whole["informative_from"] is not None
    assert json.loads(run(capsys, *asked, "--theorem", "zou2019")[1])["informative_from"] is None
