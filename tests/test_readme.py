"""The README is true: its Python blocks print what it says, its commands exist, its links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from generic_adam.cli.app import build_app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCK.findall(README) if name == language]


@pytest.fixture(scope="module")
def printed():
    """Return what the Python blocks print, run one after the other in one scope, as a reader would."""
    scope, output = {}, io.StringIO()
    for block in blocks("python"):
        with contextlib.redirect_stdout(output):
            exec(compile(block, "README.md", "exec"), scope)
    return output.getvalue()


def test_there_are_blocks_to_run():
    assert len(blocks("python")) >= 2


def test_python_blocks_print_what_the_readme_shows(printed):
    assert printed == "".join(blocks("text"))


def test_the_answer_that_is_shown_is_the_one_on_a_terminal(on_a_terminal):
    (block,) = blocks("console")
    command, _, shown = block.partition("\n")
    assert "\n".join(on_a_terminal(96, *command.removeprefix("$ generic-adam ").split())).rstrip() + "\n" == shown


def test_the_first_block_is_about_ten_lines():
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([\w-]+)", "\n".join(blocks("bash")), re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_named_subcommands_exist():
    app = build_app()
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    named = set(re.findall(r"`generic-adam ([a-z]+)", README))
    assert named
    assert named <= known


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
