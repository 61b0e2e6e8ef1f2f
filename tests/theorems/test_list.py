"""The list of theorems: names, sources that exist, and one instance each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from generic_adam.errors import TheoremError
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.theorem import Confidence

ROOT = Path(__file__).parents[2]


def test_names_are_unique_whatever_their_case():
    names = [one.name.lower() for one in THEOREMS]
    assert len(names) == len(set(names))
    assert {"w", "e", "d", "y", "l", "p", "m", "o", "c", "b", "rr", "r", "zou2019"} <= set(names)


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda one: one.name)
def test_what_is_proved_here_has_its_page(theorem):
    assert theorem_named(theorem.name.upper()) is theorem
    if theorem.confidence is Confidence.PROVED:
        assert re.search(r"docs/theorems/\w+\.md|a case of Theorem \w", theorem.source), theorem.source
    if theorem.source.startswith("docs/"):
        text = (ROOT / theorem.source).read_text()
        assert theorem.name.split("2")[0] in text
        assert "Proof" in text


def test_a_wrong_name_is_answered_with_the_closest():
    with pytest.raises(TheoremError, match="did you mean 'zou2019'"):
        theorem_named("zou2018")


@pytest.mark.parametrize("name", ["zhang2022", "XIE_LI2024"])
def test_what_is_only_cited_is_no_theorem_here(name):
    with pytest.raises(TheoremError, match="cited") as caught:
        theorem_named(name)
    page = re.search(r"docs/\S+\.md", str(caught.value))
    assert name.lower() in (ROOT / page.group()).read_text()


def test_a_theorem_is_imported_without_the_others():
    """Their list is made when it is asked for."""
    code = "import sys, generic_adam.theorems.amsgrad; print(*(one for one in sys.modules if 'theorems.' in one))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "theorems.amsgrad" in told
    for other in ("literature", "zou2019", "regret", "shuffled"):
        assert f"theorems.{other}" not in told
