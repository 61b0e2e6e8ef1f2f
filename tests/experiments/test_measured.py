"""The measured side of Theorem 1: the problem's constants, the loop against the reference, the theorem."""

from __future__ import annotations

import numpy as np
import pytest

from generic_adam.errors import RunError
from generic_adam.experiments.measured import BoundedWell, measure, reading_steps
from generic_adam.methods import Method, certified_adam, power_family, rmsprop
from generic_adam.reference import generic_adam
from generic_adam.theorems.bound import bound
from generic_adam.theorems.problem import Problem

WELL = BoundedWell(dimension=4, noise=0.5, start=1.0)


def test_the_constants_of_the_problem_are_right():
    x = np.linspace(-20, 20, 400_001)
    slope = WELL.gradient(x)
    value = x**2 / (1 + x**2)
    # The gradient is the derivative, L and the gradient's bound are attained and not exceeded, f* = 0.
    assert np.allclose(np.gradient(value, x)[1:-1], slope[1:-1], atol=1e-6)
    second = np.gradient(slope, x)
    assert np.abs(second).max() == pytest.approx(WELL.smoothness, rel=1e-6)
    most = WELL.dimension * (np.abs(slope).max() ** 2 + WELL.noise**2)
    assert most == pytest.approx(WELL.gradient_bound**2, rel=1e-6)
    assert pytest.approx(4 * 0.5) == WELL.gap


def test_the_loop_is_algorithm_1():
    method = Method("0.1/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
    steps, seeds = 60, 3
    generator = np.random.default_rng(7)

    def gradient(x, _t):
        signs = generator.integers(0, 2, size=x.shape, dtype=np.int8)
        return WELL.gradient(x) + WELL.noise * (2.0 * signs - 1.0)

    points = generic_adam(method, gradient, np.ones((seeds, 4)), steps, WELL.epsilon).points[:-1]
    norms = np.sqrt((WELL.gradient(points) ** 2).sum(axis=2)) ** (4 / 3)
    measurement = measure({"m": method}, WELL, steps, seeds, seed=7)["m"]
    for steps_read, value in zip(measurement.steps, measurement.value, strict=True):
        assert value == pytest.approx(norms[:steps_read].mean() ** 1.5, rel=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        power_family(lr=0.1, beta=0.9),
        power_family(lr=0.5, beta=0, r=0.5, c=0.5),
        certified_adam(lr=0.01, beta=0.5, theta=0.99),
        rmsprop(lr=0.01, theta=0.9),
        Method("0.1*t/50 if t < 50 else 0.1*sqrt(50/t)", 0.5, "1 - 1/max(t, 50)"),
    ],
)
def test_theorem_1_holds_at_every_reading(method):
    measurement = measure({"m": method}, WELL, 3000, seeds=40)["m"]
    problem = Problem(WELL.smoothness, WELL.gradient_bound, WELL.dimension, WELL.gap, WELL.epsilon)
    for steps, value in zip(measurement.steps, measurement.value, strict=True):
        assert value <= bound(method, problem, int(steps)).expectation


def test_theorem_2_holds_for_most_draws_of_tau():
    """|grad f(x_tau)|^2 <= B/delta with probability at least 1 - delta^(2/3), tau drawn for every seed."""
    method, steps, delta = power_family(lr=0.1, beta=0), 400, 0.5
    generator = np.random.default_rng(3)

    def gradient(x, _t):
        return WELL.gradient(x) + WELL.noise * generator.choice([-1.0, 1.0], size=x.shape)

    points = generic_adam(method, gradient, np.ones((300, 4)), steps, WELL.epsilon).points[:-1]
    squared = (WELL.gradient(points) ** 2).sum(axis=2)
    drawn = squared[generator.integers(0, steps, size=300), np.arange(300)]
    problem = Problem(WELL.smoothness, WELL.gradient_bound, WELL.dimension, WELL.gap, WELL.epsilon)
    result = bound(method, problem, steps, delta)
    assert np.mean(drawn <= result.value) >= result.probability


def test_the_same_seed_gives_the_same_numbers():
    method = power_family(lr=0.1)
    first, second = (measure({"m": method}, WELL, 200, 5, seed=1)["m"].value for _ in range(2))
    other = measure({"m": method}, WELL, 200, 5, seed=2)["m"].value
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_readings_are_whole_and_end_at_T():
    steps = reading_steps(100_000)
    assert steps[0] == 10
    assert steps[-1] == 100_000
    assert np.all(np.diff(steps) > 0)


@pytest.mark.parametrize(("steps", "seeds"), [(5, 3), (100, 0)])
def test_runs_that_make_no_sense(steps, seeds):
    with pytest.raises(RunError):
        measure({"m": power_family()}, WELL, steps, seeds)


@pytest.mark.parametrize(
    ("steps", "seeds", "seed"), [(5, 1, 0), (10**30, 1, 0), (20, 0, 0), (20, 10**12, 0), (20, 1, -1)]
)
def test_numbers_that_make_no_sense_are_one_line(steps, seeds, seed):
    with pytest.raises(RunError, match="got"):
        measure({"m": rmsprop()}, WELL, steps, seeds, seed)
