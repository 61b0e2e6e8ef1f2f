"""`generic-adam methods`, `recipes` and `theorems`: tables, JSON, and one entry in full."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from generic_adam.cli import main
from generic_adam.methods import Method, as_algorithm, build, entries
from generic_adam.methods.recipes import recipe, recipe_names


def test_the_table_has_a_row_for_each_method(capsys):
    assert main(["methods"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = [line.split() for line in captured.out.splitlines() if line.strip()]
    assert [row[0] for row in rows[2:]] == [entry.name for entry in entries()]
    assert rows[0][0] == "method"


def test_columns_align(capsys):
    main(["methods"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    column = lines[0].index("what it is")
    for line, entry in zip(lines[2:], entries(), strict=True):
        assert line[column:].startswith(entry.summary)


def test_json_holds_the_catalogue_and_parses_back(capsys):
    assert main(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in listed] == [entry.name for entry in entries()]
    for item, entry in zip(listed, entries(), strict=True):
        assert item["citation"] == entry.citation
        again = Method(alpha=item["alpha"], beta=item["beta"], theta=item["theta"])
        assert again == as_algorithm(entry.build()).method
        assert entry.build() == build(item["name"], **item["parameters"])


@pytest.fixture(scope="module")
def gallery():
    with redirect_stdout(StringIO()) as out:
        assert main(["recipes", "--json"]) == 0
    return json.loads(out.getvalue())


def test_the_gallery_is_plain_and_complete(gallery):
    assert [entry["name"] for entry in gallery] == list(recipe_names())
    for entry in gallery:
        assert entry["horizon"]["steps"] == recipe(entry["name"]).algorithm.horizon


# The three numbers of the theorems' page, for the recipes whose sequences are those of its table.
@pytest.mark.parametrize(("name", "noise"), [("transformer", 0.262407), ("t5", 0.0192352), ("nanogpt", 0.408952)])
def test_the_noise_of_the_page(gallery, name, noise):
    entry = next(one for one in gallery if one["name"] == name)
    assert entry["horizon"]["noise"] == pytest.approx(noise, rel=2e-3)


def test_nothing_is_claimed_for_what_no_theorem_covers(gallery):
    for entry in gallery:
        clipped = "clipping" in entry["algorithm"]
        assert not (clipped and (entry["verdict"] == "certified" or entry["horizon"]["useful"]))


def test_one_recipe_in_full(capsys):
    assert main(["recipes", "Transformer"]) == 0
    text = capsys.readouterr().out
    assert "for 100,000 steps" in text
    assert "guaranteed: gradients average below 55.3 %" in text
    assert "Theorem E: not certified" in text


@pytest.mark.parametrize(("name", "hint"), [("plam", "did you mean 'palm'?"), ("zzz", "expected one of")])
def test_an_unknown_recipe_is_one_line(name, hint, capsys):
    assert main(["recipes", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert hint in captured.err


def test_theorems_fit_a_page_where_they_are_piped(capsys):
    main(["theorems"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    assert "zou2019" in out
