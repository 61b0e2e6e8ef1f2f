"""The methods of the cost studies: Adam as people use it, and what takes its place."""

from dataclasses import replace

import numpy as np
import pytest

from generic_adam.schedules import parse
from generic_adam.theorems.horizon import three_numbers
from generic_adam.theorems.sequences import Sequences
from generic_adam_laboratory.studies.cost import EXPERIMENTS
from generic_adam_laboratory.studies.study import Options


def lines(name, steps):
    experiment = EXPERIMENTS[name]
    return {line.label: line.optimizer for line in experiment.lines(experiment.study, Options(), steps)}


def test_all_three_networks_meet_the_same_competitors():
    gpt, lenet, resnet = (lines(name, 2000) for name in ("gpt-cost", "lenet-cost", "resnet18-cost"))
    assert {label: replace(one, decay=0.01) for label, one in gpt.items()} == lenet == resnet
    assert {one.decay for one in lenet.values()} == {0.01}


def test_gpt_warms_up_and_falls_to_a_tenth_and_keeps_what_is_said():
    found = lines("gpt-cost", 2000)
    shape, kept = (
        parse(found["AdamW cosine, 0.95"].alpha),
        parse(found["certified Adam, 0.95, K = 1000"].alpha),
    )
    assert [shape(t) for t in (1, 50, 100, 2000)] == pytest.approx([1e-5, 5e-4, 1e-3, 1e-4])
    assert [kept(t) / shape(t) for t in (1, 1000, 2000)] == pytest.approx([1, 1, 0.5**0.5])
    at_once = found["advice, 0.95"]
    assert [parse(at_once.alpha)(t) / shape(t) for t in (1, 20, 2000)] == pytest.approx([1, 1, 0.1])
    assert [parse(at_once.theta)(t) for t in (1, 20, 2000)] == pytest.approx([0.95, 0.95, 0.9995])
    advised = found["advice, 0.95, keep 1000"]
    assert parse(advised.alpha).values(1, 2001) == pytest.approx(kept.values(1, 2001))
    assert [parse(advised.theta)(t) for t in (1, 1000, 2000)] == pytest.approx([0.95, 0.95, 0.975])
    assert parse(found["theta rising"].alpha).values(1, 2001) == pytest.approx(shape.values(1, 2001))
    assert parse(found["theta rising"].theta).values(1, 2001)[[0, 19, 1999]] == pytest.approx([0.95, 0.95, 0.9995])
    assert {one.decay for one in found.values()} == {0.1}


def test_the_three_numbers_are_those_of_the_sequences_that_run():
    """Written out here: Adam's correction in alpha_t, eps on the corrected root, v_0 = 0."""
    experiment = EXPERIMENTS["gpt-cost"]
    chosen = experiment.lines(experiment.study, Options(), 300)[:1]
    ((name, (headings, rows)),) = experiment.notes(replace(experiment.study, lines=tuple(chosen)), 300, ()).items()
    t = np.arange(1, 301)
    correction = np.sqrt(1 - 0.999**t)
    sequences = Sequences.of(0.001 * correction / (1 - 0.9**t), 0.9, 0.999, eps=1e-8 * correction)
    expected = three_numbers(sequences)
    assert (name, headings) == ("guarantees.md", ["method", "noise", "gap", "drift", "in the long run, without decay"])
    ((label, *numbers, verdict),) = rows
    assert (label, verdict) == ("AdamW constant, 0.999", "not certified")
    assert all(  # three digits, never below the number: they are parts of a bound
        value <= float(told) < 1.01 * value
        for told, value in zip(numbers, (expected.noise, expected.gap, expected.drift), strict=True)
    )
