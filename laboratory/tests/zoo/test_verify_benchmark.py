"""The study of `verify`: random right set-ups agree, and what it counts is what it was told."""

import pytest

pytest.importorskip("torch")

from generic_adam_laboratory.runs.records import Occasion, read_claims
from generic_adam_laboratory.zoo import verify_benchmark as study
from generic_adam_laboratory.zoo.verify_cases import Case


@pytest.mark.parametrize("number", range(12))
def test_a_random_right_one_agrees(number):
    case = study.random_right(1, number)
    assert study.tried(study.RANDOM, case).agrees is True, case.name


@pytest.mark.slow
def test_two_hundred_random_right_ones_agree():
    cases = [study.random_right(2, number) for number in range(200)]
    assert [one.name for one in cases if study.tried(study.RANDOM, one).agrees is not True] == []


def test_what_is_counted_is_what_was_told(tmp_path):
    wrong, right = Case("w", lambda: None, None, "betas", "a#1"), Case("r", lambda: None)
    outcomes = [
        study.Outcome(study.ZOO, wrong, False, ("betas",), 1.0),
        study.Outcome(study.ZOO, wrong, False, ("sign",), 1.0),
        study.Outcome(study.HELD_OUT, wrong, True, (), 3.0),
        study.Outcome(study.RANDOM, right, False, ("sign",), 2.0),
    ]
    _, rows = study.outcomes_table(outcomes)
    assert [row[1:7] for row in rows] == [
        ("2", "2", "1", "0", "0", "0"),
        ("1", "0", "0", "0", "0", "0"),
        ("0", "0", "0", "1", "1", "0"),
    ]
    study.write_verify(tmp_path, outcomes, Occasion("generic-adam reproduce verify", {}, 1.0))
    assert [one.verdict for one in read_claims(tmp_path)] == ["contradicted"] * 3
