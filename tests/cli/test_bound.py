"""`generic-adam bound`: the check value, missing hypotheses, and bad input."""

from __future__ import annotations

import json

import pytest

from generic_adam.cli import main

CHECK = [
    "bound",
    "power_family",
    "--lr",
    "1e-3",
    "--steps",
    "1000",
    "--dimension",
    "10",
    "--theta-prime",
    "0.9",
]


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_check_value(capsys):
    code, out, _ = run(capsys, *CHECK, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["value"] == pytest.approx(2.78617829311e9, rel=1e-9)
    assert data["constants"]["C1"] == pytest.approx(0.143398599540, rel=1e-9)
    assert data["problem"]["dimension"] == 10


def test_every_constant_is_in_the_table(capsys):
    code, out, _ = run(capsys, *CHECK)
    assert code == 0
    for words in ("2.78618e+09", "θ'", "C0", "C1", "C2", "C3", "C'", "T alpha_T", "1184877.26"):
        assert words in out


def test_without_theta_prime_the_bound_is_no_larger(capsys):
    best = json.loads(run(capsys, *CHECK[:-2], "--json")[1])["value"]
    assert best < 2.78617829311e9


def test_a_missing_hypothesis_is_named_with_exit_code_1(capsys):
    code, out, _ = run(capsys, "bound", "adaema", "--steps", "100")
    assert code == 1
    assert "no bound: (R2): theta_1 = 0 is not positive" in out
    code, out, _ = run(capsys, "bound", "adaema", "--steps", "100", "--json")
    assert code == 1
    assert json.loads(out)["value"] is None


def test_the_floor_of_constant_theta(capsys):
    _, out, _ = run(capsys, "bound", "adam", "--no-bias-correction", "--steps", "1e6")
    assert "never falls below" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bound", "adam"], "--steps"),
        (["bound", "adam", "--steps", "0"], "number of steps"),
        (["bound", "adam", "--steps", "1e30"], "number of steps"),
        (["bound", "adam", "--steps", "100", "--delta", "2"], "delta"),
        (["bound", "adam", "--steps", "100", "--smoothness", "-1"], "smoothness"),
        (["bound", "adam", "--steps", "100", "--gap", "nan"], "gap"),
        (["bound", "adam", "--steps", "100", "--dimension", "1.5"], "dimension"),
        (["bound", "adam", "--steps", "100", "--theta-prime", "0.5"], "theta_prime"),
        (["bound", "madam", "--steps", "100"], "did you mean 'adam'"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err
