"""`generic-adam recipes`: the gallery as a table, as JSON, and one recipe in full."""

import json

import pytest

from generic_adam.cli import main
from generic_adam.methods.recipes import recipe, recipe_names


@pytest.fixture(scope="module")
def entries():
    from contextlib import redirect_stdout
    from io import StringIO

    with redirect_stdout(StringIO()) as out:
        assert main(["recipes", "--json"]) == 0
    return json.loads(out.getvalue())


def test_json_is_plain_and_complete(entries):
    assert [entry["name"] for entry in entries] == list(recipe_names())
    for entry in entries:
        assert entry["horizon"]["steps"] == recipe(entry["name"]).algorithm.horizon


# The three numbers of the theorems' page, for the recipes whose sequences are those of its table.
@pytest.mark.parametrize(
    ("name", "noise"), [("transformer", 1.32294), ("t5", 0.134497), ("nanogpt", 2.33962)]
)
def test_the_noise_of_the_page(entries, name, noise):
    entry = next(one for one in entries if one["name"] == name)
    assert entry["horizon"]["noise"] == pytest.approx(noise, rel=2e-3)


def test_nothing_is_claimed_for_what_no_theorem_covers(entries):
    for entry in entries:
        clipped = "clipping" in entry["algorithm"]
        assert not (clipped and (entry["verdict"] == "certified" or entry["horizon"]["informative"]))


def test_one_recipe_in_full(capsys):
    assert main(["recipes", "Transformer"]) == 0
    text = capsys.readouterr().out
    assert "Transformer base, 100,000 steps" in text
    assert "silent" in text
    assert "Theorem E: not certified" in text


@pytest.mark.parametrize(("name", "hint"), [("plam", "did you mean 'palm'?"), ("zzz", "expected one of")])
def test_an_unknown_recipe_is_one_line(name, hint, capsys):
    assert main(["recipes", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert hint in captured.err
