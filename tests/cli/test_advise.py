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


def test_a_run_with_a_useful_guarantee_needs_no_change_and_sees_what_one_costs(capsys):
    code, out, _ = run(capsys, "advise", "adamw", "--weight-decay", "0", "--steps", "20000")
    assert code == 0
    assert "NOTHING HAS TO CHANGE for 20,000 steps" in out
    assert "For the long run: beta2: 1 - 15 / step after step 15,000" in out
    assert "lr: multiply by sqrt(15000/step) after step 15,000" in out
    assert "total lr over the run 98.1 % of yours; last-step lr 0.001 (yours) -> 0.00087" in out


def test_fine_tuning_is_told_to_change_nothing(capsys):
    command = ["advise", "adamw", "--lr", "2e-5", "--warmup", "1200", "--decay", "linear", "--steps", "12000"]
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert "NOTHING TO CHANGE for 12,000 steps" in out
    assert "starting-point part" in out


@pytest.mark.parametrize("keep", ["nan", "inf", "0", "1.5"])
def test_keep_is_a_number_of_steps(capsys, keep):
    code, _, err = run(capsys, "advise", "adam", "--keep", keep)
    assert code == 2
    assert err.startswith("generic-adam: --keep: expected a whole number of steps")


def test_clipping_that_never_acts_is_set_aside_and_said(capsys):
    clipped = ["advise", "adamw", "--steps", "20000", "--clip", "1"]
    for asserted in ([], ["--gradient-norm", "1"]):
        _, out, _ = run(capsys, *clipped, *asserted, "--json")
        first = json.loads(out)["advice"][0]
        assert first["verdict"] == "certified"
        assert any("no gradient is longer than 1" in one for one in first["needs"])
        _, out, _ = run(capsys, *clipped, *asserted)
        assert "no gradient is longer than 1" in next(line for line in out.splitlines() if "Assumed" in line)


def test_what_is_granted_is_granted_to_the_proposals_too(capsys):
    decaying = ["advise", "adamw", "--weight-decay", "0.1", "--steps", "20000"]
    for granted, bound in ([], 1), (["--weights-bound", "5"], 5):
        _, out, _ = run(capsys, *decaying, *granted, "--json")
        assert json.loads(out)["assumed"][0].startswith(f"every weight stays within {bound}")
        _, out, _ = run(capsys, *decaying, *granted)
        assert f"every weight stays within {bound}" in out


def test_what_no_budget_would_find_is_not_put_down_to_it(capsys):
    _, out, _ = run(capsys, "advise", "sgd", "--momentum", "0.9")
    assert "no change near yours is guaranteed" in out
    assert "stopped early" not in out


def test_keep_chooses_where_it_begins(capsys):
    _, out, _ = run(capsys, "advise", "adamw", "--weight-decay", "0", "--keep", "5000")
    assert "identical to yours until step 5,000" in out


def test_the_printed_algorithms_parse_back_to_certified_ones(capsys):
    _, out, _ = run(capsys, "advise", "adaema", "--json")
    advice = json.loads(out)["advice"]
    assert advice
    for one in advice:
        assert certify_algorithm(Algorithm.from_dict(one["algorithm"])).verdict == "certified"


def test_what_is_certified_needs_nothing(capsys):
    code, out, _ = run(capsys, "advise", "certified_adam")
    assert code == 0
    assert "NOTHING TO CHANGE" in out


@pytest.mark.parametrize("arguments", [["adam", "--keep", "0"], ["adam", "--steps", "1.5"]])
def test_bad_input_is_one_line(capsys, arguments):
    code, out, err = run(capsys, "advise", *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_without_a_number_of_steps_it_says_that_the_long_run_is_meant_and_asks(capsys):
    main(["advise", "adamw"])
    out = capsys.readouterr().out
    assert "FOR THE LONG RUN ONLY" in out
    assert "--steps T" in out
    main(["advise", "adamw", "--steps", "3000"])
    assert "--steps T" not in capsys.readouterr().out


def test_where_the_loss_moves_nothing_is_advised(capsys):
    for steps in (["--steps", "1e6"], []):
        assert main(["advise", "adam", "--setting", "rl", *steps]) == 3
        out = capsys.readouterr().out
        assert "DOES NOT APPLY" in out
        assert "Watch" in out


def test_a_bound_that_is_infinite_is_no_number(capsys):
    assert main(["advise", "adam", "--betas", "0.9", "0.7", "--steps", "1e5"]) == 0
    out = capsys.readouterr().out
    assert "no bound -> " in out
    assert "nan" not in out
