"""`generic-adam methods`, `recipes` and `theorems`: tables, JSON, and one entry in full."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from generic_adam.cli import main
from generic_adam.methods import Method, as_algorithm, build, entries
from generic_adam.methods.recipes import recipe, recipe_names
from generic_adam.theorems.certificate import certify_algorithm


def test_the_table_has_a_row_for_each_method(capsys):
    assert main(["methods"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = [line.split() for line in captured.out.splitlines() if line.strip()]
    assert [row[0] for row in rows[2:-1]] == [entry.name for entry in entries()]
    assert rows[0][0] == "method"


def test_columns_align(capsys):
    main(["methods"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    column = lines[0].index("description")
    for line, entry in zip(lines[2:-1], entries(), strict=True):
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
        assert entry["run"]["steps"] == recipe(entry["name"]).algorithm.horizon


# The three numbers of the theorems' page, for the recipes whose sequences are those of its table.
@pytest.mark.parametrize(
    ("name", "noise"),
    [
        ("transformer", 0.262407),
        ("t5", 0.0192352),
        ("nanogpt", 0.408952),
        ("bert", 0.0527735),
        ("stable_diffusion", 0.0527377),
        ("palm", 0.0749685),
    ],
)
def test_the_noise_of_the_page(name, noise):
    assert certify_algorithm(recipe(name).algorithm).horizon.noise == pytest.approx(noise, rel=2e-4)


def test_with_what_it_takes_for_granted_every_recipe_has_a_guarantee_for_its_run(gallery):
    for entry in gallery:
        algorithm = recipe(entry["name"]).algorithm
        assert entry["informative"]
        assert ("gradient_norm" in entry["assumed"]) is (getattr(algorithm.clipping, "kind", None) == "norm")
        assert ("weights_bound" in entry["assumed"]) is (str(algorithm.decay) != "0" or algorithm.scaled)
        assert (entry["without_assumptions"] == "guaranteed") is (
            entry["informative"] and not {*entry["assumed"]} - {"loss"}
        )


def test_the_gallery_says_what_is_guaranteed_and_assumed(capsys):
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith(" nanogpt"))
    assert row.split()[1:10] == ["600,000", "69.1", "%", "no", "guarantee", "gradients", "and", "weights", "within"]
    assert "Lower is better" in lines[-2]
    assert not any(letter in "".join(lines) for letter in "αβθνχ")


def test_one_recipe_in_full(capsys):
    assert main(["recipes", "Transformer"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("GUARANTEED for 100,000 steps.\n  Theorem E    gradients average below 55.3 %")
    assert "Theorem E: not certified" in text


@pytest.mark.parametrize(("name", "hint"), [("plam", "did you mean 'palm'?"), ("zzz", "expected one of")])
def test_an_unknown_recipe_is_one_line(name, hint, capsys):
    assert main(["recipes", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert hint in captured.err
