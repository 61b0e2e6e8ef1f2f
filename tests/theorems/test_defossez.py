"""Defossez et al.'s Theorem 4: its hypotheses, its constants written out, and a run below its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generic_adam.methods import Algorithm, Method, adam, certified_adam
from generic_adam.schedules import bias_correction, sqrt
from generic_adam.theorems.defossez import Defossez, defossez_bound
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.verdicts import Status, Verdict

PROBLEM = Problem(smoothness=2, gradient_bound=3, dimension=5, gap=4, epsilon=1e-4)


def statuses(finding):
    return [str(condition.status) for condition in finding.conditions]


def defossez(method, horizon=None):
    return Defossez().examine(Algorithm(method, horizon=horizon))


def corrected(lr, beta, theta):
    method = Method(lr, beta, theta)
    return Method(lr * sqrt(bias_correction(method.theta)), beta, theta)


def test_defossez_wants_their_step_size_and_a_horizon():
    theirs = corrected(0.001, 0.9, 0.999)
    assert statuses(defossez(theirs, 10_000)) == ["holds"] * 5
    for horizon in (None, 9, 10_000):
        assert [one.number for one in defossez(theirs, horizon).conditions] == [1, 2, 3, 4, 5]
    assert defossez(theirs, 10_000).verdict is Verdict.CERTIFIED
    assert defossez(theirs).verdict is Verdict.UNDECIDED
    assert defossez(theirs, 9).conditions[4].status is Status.FAILS  # N must exceed 9
    assert defossez(theirs, 10).conditions[4].status is Status.HOLDS
    assert defossez(adam(), 10_000).conditions[3].status is Status.FAILS
    assert defossez(Method(0.001, 0.9, 0.8), 100).conditions[2].status is Status.FAILS
    assert defossez(certified_adam(), 10_000).verdict is Verdict.NOT_CERTIFIED


def test_defossez_knows_their_step_size_by_its_form_for_any_number_of_steps():
    theirs = defossez(corrected(0.001, 0.9, 0.999), 10**12)
    assert theirs.verdict is Verdict.CERTIFIED
    assert theirs.conditions[3].reason.endswith("for every t.")


def test_defossez_constants_written_out():
    alpha, beta, theta, steps = 0.01, 0.9, 0.99, 1000
    R, L, d = 3 + 0.01, 2, 5
    E = (
        alpha * d * R * L * 0.1 / ((1 - 0.9 / 0.99) * 0.01)
        + 12 * d * R * R * 0.1**0.5 / ((1 - 0.9 / 0.99) ** 1.5 * 0.01**0.5)
        + 2 * alpha**2 * d * L**2 * 0.9 / ((1 - 0.9 / 0.99) * 0.01**1.5)
    )
    effective = 1000 - 9
    expected = 2 * R * 4 / (alpha * effective) + E * (
        math.log(1 + R**2 / (0.01 * 1e-4)) / effective - 1000 / effective * math.log(0.99)
    )
    result = defossez_bound(alpha, beta, theta, PROBLEM, steps)
    assert pytest.approx(E, rel=1e-12) == result.E
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.effective_steps == pytest.approx(effective)


def test_defossez_tuned_constants_give_log_over_root():
    """alpha = 1/sqrt N, theta = 1 - 1/N: the bound times sqrt(N)/log N settles."""
    scaled = [
        defossez_bound(1 / math.sqrt(N), 0.5, 1 - 1 / N, PROBLEM, N).value * math.sqrt(N) / math.log(N)
        for N in (10**6, 10**8, 10**10)
    ]
    assert scaled[2] == pytest.approx(scaled[1], rel=0.1)
    assert scaled[1] == pytest.approx(scaled[0], rel=0.2)


@pytest.mark.parametrize("arguments", [(0.1, 0.99, 0.9, 100), (0, 0.5, 0.9, 100), (0.1, 0.99, 0.999, 50)])
def test_defossez_refuses_what_the_theorem_excludes(arguments):
    alpha, beta, theta, steps = arguments
    with pytest.raises(ValueError, match="expected"):
        defossez_bound(alpha, beta, theta, PROBLEM, steps)


def test_defossez_bounds_a_run_of_their_adam():
    """Their Adam on the sum of x^2/(1+x^2), signs as noise: E|grad F(x_tau)|^2 stays below the bound."""
    seeds, d, N, alpha, beta, theta, epsilon = 200, 3, 400, 0.05, 0.5, 0.99, 1e-4
    generator = np.random.default_rng(5)
    x = np.full((seeds, d), 1.5)
    m, v = np.zeros_like(x), np.zeros_like(x)
    squared = np.empty((N, seeds))
    for n in range(1, N + 1):
        slope = 2 * x / (1 + x**2) ** 2
        squared[n - 1] = (slope**2).sum(axis=1)
        g = slope + generator.choice([-0.5, 0.5], size=x.shape)
        m = beta * m + g
        v = theta * v + g * g
        x -= alpha * (1 - beta) * math.sqrt((1 - theta**n) / (1 - theta)) * m / np.sqrt(epsilon + v)
    chances = 1 - beta ** (N - np.arange(N))
    measured = float((squared.mean(axis=1) * chances).sum() / chances.sum())
    problem = Problem(2, 0.6495 + 0.5, d, d * 1.5**2 / (1 + 1.5**2), epsilon)
    assert measured <= defossez_bound(alpha, beta, theta, problem, N).value
