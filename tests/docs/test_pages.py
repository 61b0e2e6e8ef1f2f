"""Test that the first pages are true: their Python runs, their commands answer as promised."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generic_adam.cli import Exit
from generic_adam.cli.app import run

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index.md",)
ANSWERS = ("check.md", "reading-the-output.md")
WIDTH = 76  # of a block of code on a page


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page, those inside tabs included."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_and_prints_what_its_comments_say(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scope: dict[str, Any] = {}
    assert blocks(page, "python")
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), scope)  # the page's own code
        shown = capsys.readouterr().out
        for promised in re.findall(r"^print\(.*?\)\s+# (.+)$", block, re.MULTILINE):
            assert promised in shown, promised


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_answer_what_their_comments_say(
    page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("generic-adam ")]
    assert commands
    for line in commands:
        words = shlex.split(line, comments=True)
        code = run(words[1:])
        promised = line.partition("# ")[2].strip()
        assert promised
        assert promised in capsys.readouterr().out
        assert code == Exit.FINE


@pytest.mark.parametrize("page", ANSWERS)
def test_the_answer_that_is_shown_is_the_one_on_a_terminal(page: str, on_a_terminal: Callable[..., list[str]]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    pairs = re.findall(r"^```bash\n([^\n]*)\n```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert pairs
    for command, answer in pairs:
        shown = on_a_terminal(WIDTH, *shlex.split(command, comments=True)[1:])
        assert "\n".join(shown).rstrip() + "\n" == answer


def test_the_exit_codes_are_documented_once() -> None:
    text = (DOCS / "reading-the-output.md").read_text(encoding="utf-8")
    told = {int(code): name for code, name in re.findall(r"^\| (\d+) \| ([a-z ]+) \|", text, re.MULTILINE)}
    assert told == {one.value: one.name.lower().replace("_", " ") for one in Exit}
