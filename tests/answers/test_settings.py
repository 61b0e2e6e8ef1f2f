"""Numbers that follow from the settings: closed forms against sums and recursions, and where they are told."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.answers.settings import half_life, notes, remarks, worst_step
from generic_adam.methods import Algorithm, Method, catalogue
from generic_adam.methods.recipes import named, recipe_names
from generic_adam.theorems.certificate import certify_algorithm


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.999), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_no_gradients_cause_a_larger_step_and_some_cause_it(beta1, beta2, steps, seed):
    powers = np.arange(steps)[::-1]
    first, second = (1 - beta1) * beta1**powers, (1 - beta2) * beta2**powers
    first, second = first / (1 - beta1**steps), second / (1 - beta2**steps)
    most = worst_step(beta1, beta2, steps)
    for g in (np.random.default_rng(seed).standard_normal(steps), first / second):
        assert abs(first @ g) / math.sqrt(second @ g**2) <= most * (1 + 1e-9)
    worst = first / second
    assert first @ worst / math.sqrt(second @ worst**2) == pytest.approx(most)


@pytest.mark.parametrize("beta2", [0.9, 0.95, 0.99, 0.999])
def test_the_limit_is_that_of_many_steps(beta2):
    assert worst_step(0.9, beta2) == pytest.approx(worst_step(0.9, beta2, 10**6))


def test_half_of_a_gradient_is_left_after_its_half_life():
    assert 0.999 ** half_life(0.999) == pytest.approx(0.5)
    assert half_life(1.0) == math.inf


def adamw(lr=3e-4, theta=0.999, weight_decay=0, steps=None):
    return replace(catalogue.adamw(lr=lr, theta=theta, weight_decay=weight_decay), horizon=steps)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (adamw(steps=1000), "(1 - beta2) x steps = 1"),
        (adamw(theta=0.8), "no multiple of lr limits"),
        (adamw(lr="3e-4 * min(1, t/100)", steps=100_000), "2/(1 - beta2)"),
        (adamw(lr=1e-5, weight_decay=0.01, steps=100_000), "1 % over the run"),
        (adamw(weight_decay=0.1, steps=100_000), "lost in bfloat16"),
        (adamw(), "is 0 in float16"),
    ],
    ids=str,
)
def test_what_settings_tell_is_told(x, words):
    assert any(words in one for one in remarks(x))


def test_sgd_has_nothing_to_divide_by():
    sgd = Algorithm(Method(alpha=0.1, beta=0.9, theta=0), preconditioned=False)
    assert not any("beta2" in one for one in remarks(sgd))


NOTED = [
    (adamw(theta=0.81), "beta1^2 >= beta2"),
    (adamw(steps=999), "count to its end"),
    (adamw(lr="3e-4 * min(1, t/1000)", steps=100_000), "2/(1 - beta2)"),
    (adamw(lr=2e-5, weight_decay=0.01, steps=12_000), "0.24 % of a weight"),
]


@pytest.mark.parametrize(("x", "words"), NOTED, ids=[words for _, words in NOTED])
def test_settings_that_matter_end_the_plain_answer(x, words):
    (note,) = notes(x)
    assert words in note
    assert note in remarks(x)
    said = str(certify_algorithm(x)).splitlines()[-3:]
    assert words in " ".join(" ".join(said).split())


@pytest.mark.parametrize(
    "x",
    [
        adamw(theta=0.8101),
        adamw(steps=1000),
        adamw(lr="3e-4 * min(1, t/2000)", steps=100_000),
        adamw(lr=2e-5, weight_decay=0.01, steps=60_000),
        adamw(weight_decay=0.1, steps=100_000),  # lost in bfloat16, but nothing says that the weights are
        replace(catalogue.amsgrad(theta=0.5), horizon=None),  # its maximum limits the step
    ],
    ids=str,
)
def test_settings_just_inside_are_not_told(x):
    assert notes(x) == []


@pytest.mark.parametrize("name", recipe_names())
def test_published_recipes_have_no_note(name):
    assert notes(named(name)) == []


def test_two_notes_at_most_worst_first_with_their_groups():
    bad = adamw(lr="1e-7 * min(1, t/5)", theta=0.8, weight_decay=0.01, steps=500)
    slow = replace(adamw(steps=500), groups=(1, 2))
    first, second = notes(replace(bad, others=[slow]))
    assert first.startswith("group 0: beta1^2 >= beta2")
    assert second.startswith("groups 1, 2: beta2 = 0.999")


def test_a_half_life_is_in_samples_where_the_batch_is_known():
    assert "forgets half in 693 steps (22,170 samples)" in remarks(adamw(), 32)[0]
