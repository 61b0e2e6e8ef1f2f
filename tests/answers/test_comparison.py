"""Two configurations side by side: the sign, what differs, and saved answers that are none."""

from __future__ import annotations

import json

import pytest

import generic_adam as ga
from generic_adam.answers.comparison import Comparison, saved
from generic_adam.answers.json import summary
from generic_adam.cli import main
from generic_adam.errors import TheoremError
from generic_adam.theorems.theorem import Answer

PAIRS = {
    "one and the same": ("nanogpt", "nanogpt", "the same"),
    "a larger beta2": (ga.methods.adamw(theta=0.95), ga.methods.adamw(theta=0.999), "better"),
    "a rate far too large": (ga.methods.adamw(), ga.methods.adamw(lr=100.0), "worse"),
    "the long run gained": (
        ga.methods.adam(),
        ga.methods.certified_adam(),
        "worse",
    ),  # and the run is bounded less well
    "the long run lost": (ga.methods.certified_adam(), ga.methods.adam(), "worse"),
}


@pytest.mark.parametrize(("before", "after", "verdict"), PAIRS.values(), ids=PAIRS)
def test_what_became_of_the_guarantee(before, after, verdict):
    found = ga.compare(before, after, horizon=20_000)
    assert found.verdict == verdict
    assert (found.better, found.worse) == (verdict == "better", verdict == "worse")
    assert bool(found.differences) == (before is not after)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_order_of_the_answers_is_theirs():
    base = dict(summary(ga.certify("adamw", horizon=10_000)))
    for one in Answer:
        for other in Answer:
            sides = [{**base, "answer": str(each), "run": None} for each in (one, other)]
            places = [list(Answer).index(each) for each in (one, other)]
            assert Comparison(*sides).sign == (places[1] < places[0]) - (places[1] > places[0])


def test_what_differs_is_named_as_in_a_script():
    found = ga.compare(ga.methods.adamw(), ga.methods.adamw(lr=3e-4, theta=0.95), horizon=10_000)
    told = {one.name: str(one) for one in found.differences}
    assert told["beta2"] == "0.999 -> 0.95"
    assert {"lr", "beta2", "decay a step"} <= {*told}
    assert "steps" not in told


def test_a_saved_answer_is_compared(tmp_path, capsys):
    file = tmp_path / "baseline.json"
    command = "adamw --betas 0.9,0.95 --steps 1e5"
    assert main(["check", *command.split(), "--json"]) == 0
    file.write_text(capsys.readouterr().out)
    for now, code, word in (
        (command, 0, "THE SAME"),
        (f"{command} --lr 10", 1, "WORSE"),
        (f"{command} --lr 5e-4", 0, "BETTER"),
    ):
        assert main(["compare", str(file), now]) == code
        assert word in capsys.readouterr().out.splitlines()[0]
        assert main(["check", *now.split(), "--against", str(file), "--fail-on", "worse"]) == code
        assert word in capsys.readouterr().out
    assert ga.compare(file, "adamw", horizon=100_000).verdict == "better"
    assert main(["compare", str(file), "--lr 10 --betas 0.9,0.95 --steps 1e5"]) == 1  # quoted options, no name first


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", "3", '"answer"', "[" * 10_000,
     '{"schema": 1, "answer": "fine", "long_run": {"answer": "unknown"}, "run": null}',
     '{"schema": 2, "answer": "unknown", "long_run": {"answer": "unknown"}, "run": null}',
     '{"schema": 1, "answer": "unknown", "long_run": [], "run": null}',
     '{"schema": 1, "answer": ["unknown"], "long_run": {"answer": "unknown"}, "run": null}',
     '{"schema": 1, "answer": "unknown", "long_run": {"answer": "unknown"}, "run": {"gradients_at_most": "1"}}'],
)  # fmt: skip
def test_what_is_no_answer_is_refused_in_one_line(text, tmp_path, capsys):
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(TheoremError, match="check --json"):
        saved(file)
    assert main(["check", "adam", "--against", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TheoremError, match=r"none\.json"):
        saved(tmp_path / "none.json")


def test_sides_are_read_as_check_reads_them(tmp_path, capsys):
    file = tmp_path / "hf.json"
    file.write_text(json.dumps({"learning_rate": 1e-3, "max_steps": 100_000, "adam_beta2": 0.95, "max_grad_norm": 0}))
    options = "adamw --weight-decay 0 --lr 1e-3 --betas 0.9 0.999 --decay linear"
    assert main(["compare", str(file), options, "--steps", "100k"]) == 0
    out = capsys.readouterr().out
    assert "BETTER" in out
    assert "0.95 -> 0.999" in out
    assert main(["compare", "adamw", "adamw --lrr 3"]) == 2
    assert main(["compare", "rmsprop_torch", "nanogpt", "--json"]) in {0, 1}
    json.loads(capsys.readouterr().out)
