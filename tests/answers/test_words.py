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
from generic_adam.answers.layout import ALWAYS, Line, fitted, rows
from generic_adam.answers.words import lines, words_of
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
    return [Line(part.verdict, weight=ALWAYS), *(Line(f"{one.value:g}", one.name) for one in part.numbers)]


ANSWER = Answer("GUARANTEED", (Number("Noise part", 0.5), Number("Start", math.inf)))


def test_words_are_those_that_are_registered():
    assert str(ANSWER) == ANSWER.text == "GUARANTEED\n  Noise part       0.5\n  Start            inf"
    assert lines(ANSWER)[1] == Line("0.5", "Noise part")


def test_a_part_without_words_has_its_fields():
    assert Number("Noise part", 0.5).text == "name: Noise part; value: 0.5"


def test_plain_types_are_what_json_has():
    assert list(ANSWER.to_dict()) == ["verdict", "numbers", "largest"]
    assert ANSWER.to_dict()["numbers"] == [{"name": "Noise part", "value": 0.5}, {"name": "Start", "value": None}]
    mixed = {1: np.int64(3), "x": np.float32(0.5), "q": Fraction(1, 3), "s": {"b", "a"}, "n": math.nan, "t": True}
    assert plain(mixed) == {"1": 3, "x": 0.5, "q": "1/3", "s": ["a", "b"], "n": None, "t": True}
    json.dumps(ANSWER.to_dict(), allow_nan=False)


line = st.builds(Line, st.text("ab ", min_size=1, max_size=120), st.sampled_from(["", "Cause"]), st.integers(1, 9))


@given(st.lists(line, max_size=20), st.sampled_from([None, 40, 80]), st.integers(1, 10))
def test_what_is_left_fits_keeps_its_order_and_loses_the_lightest_first(told, width, most):
    head = Line("GUARANTEED", weight=ALWAYS)
    left = fitted([head, *told], width, most)
    assert left[0] == head
    assert sum(len(rows(one, width)) for one in left) <= max(most, 1)
    assert [one for one in told if one in left][: len(left)] is not None
    kept = iter(told)
    assert all(any(one == other for other in kept) for one in left[1:])
    lost = [one.weight for one in told if told.count(one) > left.count(one)]
    if lost and left[1:]:
        assert max(lost) <= min(one.weight for one in left[1:])


def test_a_line_is_shortened_before_it_goes():
    told = [Line("one", weight=ALWAYS), Line("a long story " * 20, short="short"), Line("last", weight=6)]
    assert [one.text for one in fitted(told, 40, 3)] == ["one", "short", "last"]
