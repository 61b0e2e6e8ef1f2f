"""`generic-adam advise`: what would be guaranteed more, with its price, in words and in JSON."""

from __future__ import annotations

import json

import pytest

from generic_adam.cli import main
from generic_adam.methods import Algorithm
from generic_adam.theorems.certificate import certify_algorithm


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_adam_keeps_most_of_its_run_and_sees_the_price(capsys):
    code, out, _ = run(capsys, "advise", "adamw", "--weight-decay", "0", "--steps", "20000")
    assert code == 0
    assert "1. theta_t = max(0.999, 1 - 15 / t); alpha_t times min(1, sqrt(15000/t))" in out
    assert "from t = 15,001 on; certified for ever, rate T^(-1/2) log T" in out
    assert "of the summed step size is left" in out
    assert "noise, gap, drift:" in out
    assert "2. constants for 20,000 steps" in out


def test_keep_chooses_where_it_begins(capsys):
    _, out, _ = run(capsys, "advise", "adamw", "--weight-decay", "0", "--keep", "5000")
    assert "from t = 5,001 on" in out


def test_the_printed_algorithms_parse_back_to_certified_ones(capsys):
    _, out, _ = run(capsys, "advise", "adaema", "--json")
    advice = json.loads(out)["advice"]
    assert len(advice) == 2
    for one in advice:
        assert certify_algorithm(Algorithm.from_dict(one["algorithm"])).verdict == "certified"


def test_what_is_certified_needs_nothing(capsys):
    code, out, _ = run(capsys, "advise", "certified_adam")
    assert code == 0
    assert "nothing to change" in out


def test_a_plot_draws_both(capsys, tmp_path):
    figure = tmp_path / "advice.svg"
    arguments = ["advise", "adamw", "--weight-decay", "0", "--steps", "5000", "--plot", str(figure)]
    code, _, err = run(capsys, *arguments)
    assert code == 0
    assert f"wrote {figure}" in err
    assert "yours" in figure.read_text()


@pytest.mark.parametrize("arguments", [["adam", "--keep", "0"], ["adam", "--steps", "1.5"]])
def test_bad_input_is_one_line(capsys, arguments):
    code, out, err = run(capsys, "advise", *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
