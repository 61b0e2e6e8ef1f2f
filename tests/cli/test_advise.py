"""`generic-adam advise`: the nearest certified changes, in words and in JSON."""

from __future__ import annotations

import json

import pytest

from generic_adam.cli import main
from generic_adam.methods import Method
from generic_adam.theorems.certificate import certify


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_adam_gets_the_repair_and_the_tuned_constants(capsys):
    code, out, _ = run(capsys, "advise", "adam", "--horizon", "1e5")
    assert code == 0
    assert "1. theta_t = max(0.999, 1 - 1/t); alpha_t times min(1, sqrt(1000/t))" in out
    assert "2. constants for 100,000 steps" in out


def test_the_printed_methods_parse_back_to_certified_ones(capsys):
    _, out, _ = run(capsys, "advise", "polynomial_weights", "--r", "2", "--json")
    advice = json.loads(out)["advice"]
    assert len(advice) == 2
    for one in advice:
        assert str(certify(Method(**one["method"])).verdict) == "certified"


def test_nothing_to_change(capsys):
    code, out, _ = run(capsys, "advise", "certified_adam")
    assert code == 0
    assert "nothing to change" in out


def test_no_change_known_is_exit_code_1(capsys):
    code, out, _ = run(capsys, "advise", "--alpha", "0.001*t^2", "--beta", "0.9", "--theta", "0.9")
    assert code == 1
    assert "no certified change is known" in out


@pytest.mark.parametrize("horizon", ["0", "1e30", "1.5"])
def test_bad_horizons(capsys, horizon):
    code, _, err = run(capsys, "advise", "adam", "--horizon", horizon)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "--horizon" in err
