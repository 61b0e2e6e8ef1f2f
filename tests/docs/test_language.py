"""The product speaks one language: phrases that it gave up stand in no page and in no string of the library."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "src").rglob("*.py"))

GIVEN_UP = (
    r"for ever\b",  # in the long run
    r"\bforever\b",
    r"\bsilent(?:ly)?\b",  # no useful guarantee; of no use
    r"\bprices?\b",  # cost
    r"\bspeaks\b",  # is about, covers, is useful
    r"what holds without a theorem",  # the size that gradients have anyway; the trivial bound
    r"summed step sizes?",  # total learning rate over the run
    r"the theory speaks",
    r"not to say that it fails",
    r"would have to tend to",  # the guarantee needs it to approach
    r"it says all about",
    r"certified for ever",
)
EARLIER = re.compile("|".join(GIVEN_UP), re.IGNORECASE)


def earlier(text: str) -> list[str]:
    return [text[max(0, one.start() - 40) : one.end() + 20] for one in EARLIER.finditer(text)]


def test_the_phrases_are_found():
    assert [bool(earlier(text)) for text in ("For ever: certified", "The price is", "for every t", "long run")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert len(PAGES) > 30
    assert len(MODULES) > 50


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_has_an_earlier_phrase(path):
    assert earlier(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_string_of_the_library_has_an_earlier_phrase(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    strings = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    assert [found for one in strings for found in earlier(one)] == []
