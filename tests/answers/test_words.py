"""Parts become lines, phrases and plain types in one place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.answers.json import plain
from generic_adam.answers.words import Line, lines, words_of
from generic_adam.parts import Part


@dataclass(frozen=True)
class Number(Part):
    name: str
    value: float


@dataclass(frozen=True)
class Answer(Part):
    verdict: str
    numbers: tuple[Number, ...]

    also = ("largest",)

    @property
    def largest(self):
        return max(one.value for one in self.numbers)


@words_of.register
def _(part: Answer):
    return [Line(part.verdict), *(Line(f"{one.value:g}", one.name) for one in part.numbers)]


ANSWER = Answer("GUARANTEED", (Number("Noise part", 0.5), Number("Start", math.inf)))


def test_words_are_those_that_are_registered():
    assert str(ANSWER) == ANSWER.text == "GUARANTEED\n  Noise part   0.5\n  Start        inf"
    assert lines(ANSWER)[1] == Line("0.5", "Noise part")


def test_a_part_without_words_has_its_fields():
    assert Number("Noise part", 0.5).text == "name: Noise part; value: 0.5"


def test_plain_types_are_what_json_has():
    assert list(ANSWER.to_dict()) == ["verdict", "numbers", "largest"]
    assert ANSWER.to_dict()["numbers"] == [{"name": "Noise part", "value": 0.5}, {"name": "Start", "value": None}]
    mixed = {1: np.int64(3), "x": np.float32(0.5), "q": Fraction(1, 3), "s": {"b", "a"}, "n": math.nan, "t": True}
    assert plain(mixed) == {"1": 3, "x": 0.5, "q": "1/3", "s": ["a", "b"], "n": None, "t": True}
    json.dumps(ANSWER.to_dict(), allow_nan=False)


@given(st.text("ab ", min_size=1, max_size=200), st.sampled_from(["", "Cause"]), st.integers(30, 120))
def test_rows_fit_a_width_and_lose_no_word(text, label, width):
    line = Line(text, label)
    found = line.rows(width)
    assert all(len(row) <= width for row in found if " " in row.strip())
    assert "".join(found).split() != [] or not str(line).split()
    if max(map(len, text.split()), default=0) <= 20:
        assert " ".join(found).split() == str(line).split()
