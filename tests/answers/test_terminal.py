"""Tables and JSON."""

import json
import math

import pytest

from generic_adam.answers.terminal import answer, make_console, print_json, print_table


def test_cells_are_literal_and_never_wrapped_in_a_pipe(capsys):
    print_table(("name", "x"), [("a" * 300, "[red]1[/red]"), ("b", 2)], right=("x",))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[2].split() == ["a" * 300, "[red]1[/red]"]
    assert lines[3].endswith("           2")
    assert len(lines[2]) == len(lines[3])


def test_paths_are_no_markup(capsys):
    make_console().print("runs/[bold]/[/z]/:smile:/x")
    assert capsys.readouterr().out == "runs/[bold]/[/z]/:smile:/x\n"


def test_answers_have_their_colour():
    assert answer("fails").style == "bold red"
    assert answer("holds").style == "green"
    assert answer("undecided").style == "bold yellow"
    assert answer("0.25").style == ""


def test_json_refuses_what_json_cannot_say(capsys):
    print_json({"θ": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"θ": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        print_json({"x": math.inf})
