"""Numbers that follow from the settings: closed forms against sums and recursions, and where they are told."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic_adam.answers.settings import half_life, remarks, worst_step
from generic_adam.methods import Algorithm, Method, catalogue


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
        (adamw(theta=0.8), "no limit"),
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
