"""Three answers: how conditions make a verdict, and how a rate reads."""

import itertools
import json
from fractions import Fraction

import pytest

from generic_adam.schedules import Growth
from generic_adam.theorems.verdicts import (
    Condition,
    Rate,
    Status,
    Verdict,
    rate_of,
    verdict_of,
)


@pytest.mark.parametrize("statuses", list(itertools.product(Status, repeat=3)))
def test_one_failure_decides_and_one_open_question_keeps_it_open(statuses):
    """Kleene's conjunction: false wins over unknown, unknown over true."""
    order = [Status.FAILS, Status.UNDECIDED, Status.HOLDS]
    meant = {
        Status.FAILS: Verdict.NOT_CERTIFIED,
        Status.UNDECIDED: Verdict.UNDECIDED,
        Status.HOLDS: Verdict.CERTIFIED,
    }
    conditions = tuple(Condition(number, status, "") for number, status in enumerate(statuses, start=1))
    assert verdict_of(conditions) is meant[min(statuses, key=order.index)]


@pytest.mark.parametrize(
    ("powers", "text"),
    [
        ((Fraction(-1, 2), 1, 0), "T^(-1/2) log T"),
        ((0, -1, 0), "(log T)^(-1)"),
        ((Fraction(-1, 2), 1, 1), "T^(-1/2) log T log log T"),
        ((-1, 0, 0), "T^(-1)"),
    ],
)
def test_a_rate_reads_as_mathematics_does(powers, text):
    power, log, loglog = map(Fraction, powers)
    assert str(Rate(power, log, loglog)) == text
    assert rate_of(Growth.of(3, power=power, log=log, loglog=loglog)) == Rate(power, log, loglog)


@pytest.mark.parametrize("witness", [None, 7, "alpha_t of order 1"])
def test_a_condition_is_plain_data(witness):
    condition = Condition(2, Status.FAILS, "It falls.", witness)
    plain = json.loads(json.dumps(condition.to_dict()))
    assert Condition(**plain | {"status": Status(plain["status"])}) == condition
