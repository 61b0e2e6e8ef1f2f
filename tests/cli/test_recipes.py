"""`generic-adam recipes`: the gallery as a table, as JSON, and one recipe in full."""

import json

import pytest

from generic_adam.cli import main
from generic_adam.methods.recipes import recipe, recipe_names
from generic_adam.theorems.sums import ratio


def test_the_table_has_a_line_for_each_recipe(capsys):
    assert main(["recipes"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0].rstrip("*"): line for line in text.splitlines() if line.strip()}
    for name in recipe_names():
        assert "not certified" in rows[name]
        assert f"{recipe(name).horizon:,}" in rows[name]
    assert "2: at t = 1" in rows["palm"]
    assert "0.0273" in rows["palm"]
    assert "T^(-2/5)" in rows["palm"]
    assert "4: ratio -> 0.2828" in rows["transformer"]
    assert "gpt3*" in text
    assert "palm*" not in text


def test_json_is_plain_and_complete(capsys):
    assert main(["recipes", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == list(recipe_names())
    bert = entries[1]
    assert bert["first_failing"] == 3
    assert bert["ratio"] == ratio(recipe("bert").method, 1_000_000)
    assert bert["certificate"]["conditions"][2]["witness"] == 1


def test_one_recipe_in_full(capsys):
    assert main(["recipes", "Stable-Diffusion"]) == 0
    text = capsys.readouterr().out
    assert "Stable Diffusion v1, 946,000 steps" in text
    assert "condition 4 fails" in text
    assert "not covered: decoupled weight decay of 0.01." in text
    assert main(["recipes", "gpt3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evidence"] == "known"


@pytest.mark.parametrize(("name", "hint"), [("plam", "did you mean 'palm'?"), ("zzz", "expected one of")])
def test_an_unknown_recipe_is_one_line(name, hint, capsys):
    assert main(["recipes", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert hint in captured.err
