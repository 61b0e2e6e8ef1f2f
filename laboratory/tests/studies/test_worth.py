"""One change at a time: each line of the studies differs from the first in what its label says, and in nothing else."""

import numpy as np
import pytest

from generic_adam.schedules import parse
from generic_adam_laboratory.studies.study import Curve, Options
from generic_adam_laboratory.studies.worth import EXPERIMENTS, orders_apart, worth
from generic_adam_laboratory.training import EpochRecord

STEPS = 2000


def lines(name):
    experiment = EXPERIMENTS[name]
    return {line.label: line.optimizer for line in experiment.lines(experiment.study, Options(), STEPS)}


def values(text):
    return parse(text).values(1, STEPS + 1)


@pytest.mark.parametrize("name", ["lenet-changes", "resnet18-changes", "gpt-changes"])
def test_a_line_is_the_first_but_for_its_change(name):
    first, *others = lines(name).values()
    for other in others:
        assert (other.beta, other.decay) == (first.beta, first.decay)
    by_label = lines(name)
    assert by_label["AdamW cosine, 0.98"].theta == "0.98"
    assert by_label["AdamW cosine, 0.95, eps 1e-6"].epsilon == 1e-6
    rising = by_label["theta rising"]
    np.testing.assert_allclose(values(rising.alpha), values(first.alpha))
    assert values(rising.theta)[-1] == pytest.approx(1 - 1 / STEPS)


def test_advice_leaves_three_quarters_of_the_run_alone():
    found, keep = lines("gpt-changes"), 3 * STEPS // 4
    first, advised = found["AdamW cosine, 0.95"], found["advice, three quarters kept"]
    np.testing.assert_allclose(values(advised.alpha)[:keep], values(first.alpha)[:keep])
    assert (values(advised.theta)[:keep] == 0.95).all()
    assert values(advised.alpha)[-1] < values(first.alpha)[-1]
    assert values(advised.theta)[-1] > 0.95


def curve(method, seed, losses):
    return Curve(method, None, None, seed, tuple(EpochRecord(k, loss, loss, 0.5) for k, loss in enumerate(losses, 1)))


def test_a_change_is_measured_against_its_own_seed():
    study = EXPERIMENTS["gpt-changes"].study
    curves = [
        curve("first", 0, [4.0, 3.0, 2.0, 2.0]),
        curve("first", 1, [4.0, 3.0, 2.0, 1.0]),
        curve("lower", 0, [4.0, 1.0, 1.0, 1.0]),
        curve("lower", 1, [4.0, 2.0, 0.5, 0.5]),
        curve("higher", 0, [4.0, 3.0, 3.0, 3.0]),
        curve("higher", 1, [4.0, 3.0, 1.0, 1.0]),
    ]
    ((_, rows),) = worth(study, 400, curves).values()
    # lower: 4 to 1 meets 2 two thirds into the second hundred steps; 2 to 0.5 meets 1 two thirds into the third.
    assert rows[0] == ["lower", "-50.00 (-50.00 to -50.00)", "217 (167 to 267)"]
    assert rows[1] == ["higher", "+25.00 (+0.00 to +50.00)", "not in every seed"]


def test_both_orders_are_the_papers_methods_and_differ_in_nothing_but_the_drawing():
    experiment = EXPERIMENTS["lenet-orders"]
    found = experiment.lines(experiment.study, Options(), STEPS)
    assert [(line.label, line.replacement) for line in found] == [
        ("r = 0, shuffled", False),
        ("r = 0, with replacement", True),
        ("r = 1, shuffled", False),
        ("r = 1, with replacement", True),
    ]
    assert found[0].optimizer == found[1].optimizer != found[2].optimizer == found[3].optimizer
    assert found[0].optimizer.theta == "0.999"


def test_orders_are_compared_on_the_same_seed():
    study = EXPERIMENTS["lenet-orders"].study
    curves = [
        curve("r = 0, shuffled", 0, [3.0, 1.0]),
        curve("r = 0, shuffled", 1, [3.0, 4.0]),
        curve("r = 0, with replacement", 0, [3.0, 2.0]),
        curve("r = 0, with replacement", 1, [3.0, 2.0]),
        curve("r = 0, with replacement", 2, [3.0, 9.0]),  # no partner
    ]
    ((_, rows),) = orders_apart(study, 2, curves).values()
    assert rows == [["r = 0", "+25.0 (-50.0 to +100.0)", "+25.0 (-50.0 to +100.0)", "+0.00 (+0.00 to +0.00)"]]
