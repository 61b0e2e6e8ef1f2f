"""The best learning rate is the best on a grid around it, and the steps needed are those where the answer turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

import generic_adam as ga
from generic_adam import methods
from generic_adam.methods import Method
from generic_adam.methods.recipes import recipe
from generic_adam.setting import Setting
from generic_adam.theorems.advice import best_rate, steps_needed
from generic_adam.theorems.certificate import reading, usual

CASES = {
    "AdamW": methods.adamw(),
    "AdamW at lr 1": methods.adamw(lr=1.0, weight_decay=0),
    "fine-tuning": methods.adamw(lr=2e-5),
    "NAdam": methods.nadam(),
    "RMSprop": methods.rmsprop_torch(),
    "Transformer": recipe("transformer").algorithm,
}
SETTINGS = [Setting(), Setting(smoothness=30.0, gradient_bound=0.1, dimension=100, gap=2.0)]


@pytest.mark.parametrize("setting", SETTINGS, ids=["reference", "known"])
@pytest.mark.parametrize("name", CASES)
def test_no_rate_near_the_best_has_a_smaller_bound(name, setting):
    x, steps = CASES[name], 5_000
    found = best_rate(x, steps, setting)
    for factor in (0.3, 0.8, 1.25, 3.0):
        k = found.factor * factor
        scaled = replace(x, method=Method(x.method.alpha * k, x.method.beta, x.method.theta), decay=x.decay * k)
        assert reading(scaled, steps, usual(x, setting)).relative >= found.after.relative * (1 - 1e-9)
    assert found.after.relative <= found.before.relative
    assert found.after.best_rate == pytest.approx(1, rel=1e-6)  # nothing is left to gain


@pytest.mark.parametrize("name", ["AdamW", "fine-tuning", "RMSprop"])
def test_the_guarantee_is_useful_from_those_steps_on_and_not_well_before(name):
    x = CASES[name]
    steps, known = steps_needed(x), usual(x, Setting())
    assert reading(x, steps, known).useful
    assert not reading(x, int(steps * 0.97), known).useful


def test_a_run_that_ends_is_stretched():
    rate = methods.shapes.training_rate(2e-5, warmup=120, decay="cosine", steps=1200)
    short = replace(methods.adamw(lr=rate), horizon=1200)
    steps = steps_needed(short)
    rate = methods.shapes.training_rate(2e-5, warmup=steps // 10, decay="cosine", steps=steps)
    for factor, useful in ((1.2, True), (0.8, False)):
        rate = methods.shapes.training_rate(
            2e-5, warmup=int(steps * factor) // 10, decay="cosine", steps=int(steps * factor)
        )
        assert reading(methods.adamw(lr=rate), int(steps * factor), usual(short, Setting())).useful is useful


def test_no_number_of_steps_helps_against_noise():
    assert steps_needed(methods.adamw(theta=0.85)) is None


def test_what_has_no_bound_has_no_best_rate():
    assert best_rate(methods.sgd(), 1000) is None
    assert best_rate(methods.adopt(), 1000) is None


def test_the_front_door_reads_names():
    assert ga.best_rate("adamw", 10_000).factor == best_rate(ga.certification.read("adamw"), 10_000).factor
    assert ga.steps_needed("adamw") == steps_needed(ga.certification.read("adamw"))
