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
    assert "differs from t = 15,001 on; for ever: certified at rate T^(-1/2) log T" in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.rstrip().endswith("%")}
    assert rows["yours"][3:] == ["1", "1", "1", "100%"]
    assert rows["1"][3:6] == ["1", "1", "0.87"]  # sqrt(15,000/20,000) at the end
    assert float(rows["1"][6].rstrip("%")) == pytest.approx(98.2, abs=0.2)
    assert "constants for" not in out  # theta = 1 - 1/T makes all three numbers larger here


def test_constants_for_the_run_are_offered_where_a_number_becomes_smaller(capsys):
    _, out, _ = run(capsys, "advise", "generic-adam", "--steps", "1e5", "--json")
    tuned = json.loads(out)["advice"][-1]
    assert tuned["changes"].startswith("constants for 100,000 steps")
    assert tuned["after"]["noise"] < tuned["before"]["noise"]


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
        assert "certified, provided every weight stays within" in " ".join(out.split())


def test_what_is_granted_is_granted_to_the_proposals_too(capsys):
    decaying = ["advise", "adamw", "--weight-decay", "0.1", "--steps", "20000"]
    for granted, bound in ([], 1), (["--weights-bound", "5"], 5):
        _, out, _ = run(capsys, *decaying, *granted, "--json")
        first = json.loads(out)["advice"][0]
        assert first["after"]["statement"].startswith(f"for 20,000 steps, provided every weight stays within {bound}")
        _, out, _ = run(capsys, *decaying, *granted)
        assert f"all provided every weight stays within {bound}" in out
        assert ["noise", "decay", "gap", "drift"] in [line.split()[:4] for line in out.splitlines()]


def test_what_no_budget_would_find_is_not_put_down_to_it(capsys):
    _, out, _ = run(capsys, "advise", "sgd", "--momentum", "0.9")
    assert out.splitlines()[-1] == "  no change that helps was found"


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
    pytest.importorskip("matplotlib")
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


def test_a_price_that_is_not_known_is_asked_for(capsys):
    main(["advise", "adamw"])
    assert "depend on the length of the run: add --steps T" in capsys.readouterr().out
    main(["advise", "adamw", "--steps", "3000"])
    assert "add --steps" not in capsys.readouterr().out
