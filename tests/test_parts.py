"""Answers are parts, which become words and plain types when they are asked for."""

from dataclasses import dataclass

from generic_adam.parts import Part


@dataclass(frozen=True)
class Reading(Part):
    steps: int
    noise: float


def test_a_part_has_words_and_plain_types():
    reading = Reading(100, 0.5)
    assert str(reading) == reading.text
    assert "0.5" in reading.text
    assert reading.to_dict() == {"steps": 100, "noise": 0.5}
