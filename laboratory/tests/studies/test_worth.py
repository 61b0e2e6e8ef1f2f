"""One change at a time: each line of the studies differs from the first in what its label says, and in nothing else."""

import numpy as np
import pytest

from generic_adam.schedules import parse
from generic_adam_laboratory.studies.study import Options
from generic_adam_laboratory.studies.worth import EXPERIMENTS, SIZES

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


def test_every_batch_size_sees_as_many_windows_and_scales_its_rate():
    peaks = {}
    for size in SIZES:
        experiment = EXPERIMENTS[f"gpt-batch-{size}"]
        assert experiment.study.epochs * experiment.study.batch_size == 128
        found = experiment.lines(experiment.study, Options(), STEPS)
        assert len({line.optimizer.theta for line in found}) == len(found) == 7
        peaks[size] = values(found[0].optimizer.alpha).max()
    assert peaks[128] / peaks[8] == pytest.approx(4)
