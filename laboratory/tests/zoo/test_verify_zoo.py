"""The zoo of `verify`: wrong set-ups are found and named, right ones agree."""

import pytest

import generic_adam as ga

pytest.importorskip("torch")
pytest.importorskip("optax")

from generic_adam_laboratory.zoo import verify_adversary as adversary
from generic_adam_laboratory.zoo import verify_held_out as held_out
from generic_adam_laboratory.zoo.verify import RIGHT, WRONG, halves


def test_the_zoo_is_as_large_as_it_says():
    assert len(WRONG) >= 40
    assert len(RIGHT) >= 60
    assert all(one.category and one.report for one in WRONG)
    tuning, judging = halves(WRONG)
    assert sorted(one.name for one in tuning + judging) == sorted({one.name for one in WRONG})


@pytest.mark.parametrize("case", WRONG + held_out.WRONG + adversary.WRONG, ids=lambda one: one.name)
def test_a_wrong_one_is_found_and_named(case):
    v = ga.verify(case.make, claim=case.claim)
    assert v.agrees is False
    assert case.category in {one.category for one in v.differences}, str(v)
    assert all(one.since >= 1 and one.where and one.said and one.size >= 0 for one in v.differences)


@pytest.mark.parametrize("case", RIGHT + held_out.RIGHT + adversary.RIGHT, ids=lambda one: one.name)
def test_a_right_one_agrees(case):
    v = ga.verify(case.make, claim=case.claim)
    assert v.agrees is True, str(v)
