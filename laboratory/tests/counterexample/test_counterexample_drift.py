"""The drift at frozen theta: its limit, its zero, and what is read off the divisor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import as_schedule
from generic_adam_laboratory.counterexample import AdaShift, Counterexample, gradients_of
from generic_adam_laboratory.counterexample.drift import (
    DriftCurve,
    Estimate,
    Turns,
    _zero_of_fit,
    divisor_table,
    limit_drift,
    measure_drift,
)

PROBLEM = Counterexample()


def exact_drift_without_momentum(theta: float, problem: Counterexample, draws: int = 200_000) -> float:
    """E g/sqrt(theta v + (1 - theta) g^2), v summed up from its definition: g is independent of v."""
    generator = np.random.default_rng(0)
    length = math.ceil(20 / (1 - theta))
    weights = (1 - theta) * theta ** np.arange(length)
    (rare, common), p = problem.slopes, problem.probability
    counts = [np.flatnonzero(generator.random(length) < p) for _ in range(draws // 100)]
    v = np.array([common**2 + (rare**2 - common**2) * weights[at].sum() for at in counts])
    terms = p * rare / np.sqrt(theta * v + (1 - theta) * rare**2)
    terms += (1 - p) * common / np.sqrt(theta * v + (1 - theta) * common**2)
    return float(terms.mean())


def test_the_limit_is_that_of_a_constant_v() -> None:
    assert limit_drift(PROBLEM) == pytest.approx(0.2 / math.sqrt(10300), rel=1e-12)


def test_the_drift_without_momentum_is_an_integral_over_v(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generic_adam_laboratory.counterexample.drift.BETA", 0)
    problem = Counterexample(rare_slope=10.0, common_slope=-1.0, probability=0.2)
    found = measure_drift(0.05, problem, steps=50_000, lanes=64)
    expected = exact_drift_without_momentum(0.95, problem)
    assert abs(found.value - expected) < 5 * found.error + 3e-3
    assert found.error < 2e-3


def test_the_control_variate_is_unbiased_and_helps() -> None:
    found = measure_drift(1e-3, PROBLEM, steps=200_000, lanes=64)
    assert abs(found.value - -0.00298) < 6 * found.error  # 256 lanes of 10^6 steps: -0.002980(8)
    assert found.error < 0.3 / math.sqrt(64 * 200_000)  # a mean of independent directions has about 1


def test_bisection_brackets_the_zero() -> None:
    curve = DriftCurve(PROBLEM)
    # The measurement replaced by a law with a known zero.
    curve.rows = []
    law = lambda rest: 0.002 - 5 * rest  # noqa: E731
    while not curve.is_finished:
        low, high = curve._bracket
        rest = (1e-4, 1e-2)[len(curve.rows)] if len(curve.rows) < 2 else math.sqrt(low * high)
        curve.rows.append((rest, law(rest), 1e-6))
    assert curve.zero.value == pytest.approx(4e-4, rel=1e-6)
    assert curve.zero.error == pytest.approx(1e-6 / 5, rel=1e-3)
    at = curve.turning_step(0.505, 0.5)
    assert at.value == pytest.approx((0.505 / 4e-4) ** 2, rel=1e-5)
    assert at.error == pytest.approx(at.value * 2 * 2e-7 / 4e-4, rel=1e-2)
    again = DriftCurve(PROBLEM)
    again.restore(curve.arrays())
    assert again.rows == curve.rows
    assert again.is_finished


@pytest.mark.slow
def test_a_short_schedule_turns_where_its_theta_passes_theta_star() -> None:
    near = (1 / 4e-4) ** 1
    turns = Turns(PROBLEM, [(Method(1, 0.9, "1 - 1/max(t, 2)"), near)], lane_steps=10**8)
    turns.advance()
    (seen,) = turns.found
    assert turns.is_finished
    # theta_t = 1 - 1/t remembers its whole past, a frozen theta only 1/(1 - theta) steps: 5 % later.
    assert 0.9 * near < seen.value < 1.25 * near
    assert seen.error < 0.05 * near


def test_the_divisor_table_is_its_definition() -> None:
    steps = 5000
    adam = Method("0.5/sqrt(t)", 0.9, 0.99)
    methods = {
        "Adam": adam,
        "AMSGrad": Algorithm(adam, running_maximum=True),
        "AdaShift": AdaShift(as_schedule("0.5/sqrt(t)"), kept=5),
    }
    table = divisor_table(methods, PROBLEM, steps=steps, lanes=1)
    squares = gradients_of(PROBLEM, steps, 0, 0) ** 2
    alpha = 0.5 / np.sqrt(np.arange(1, steps + 1))
    for label, lag in (("Adam", 0), ("AMSGrad", 0), ("AdaShift", 5)):
        v, values = (1e-8 if lag == 0 else 0.0), []
        for k in range(lag, steps):
            v = 0.99 * v + 0.01 * squares[k - lag]
            values.append(v)
        used = np.maximum.accumulate(values) if label == "AMSGrad" else np.array(values)
        late = slice(steps // 10 - lag, None)
        gamma = np.diff(np.sqrt(used) / alpha[lag:])[steps // 10 - lag - 1 :]
        share, correlation = table[label]
        assert share == pytest.approx((gamma < 0).mean(), abs=1e-12)
        if label != "AMSGrad":  # whose maximum no longer changes
            assert correlation == pytest.approx(np.corrcoef(used[late], squares[lag:][late])[0, 1], abs=1e-9)
    assert table["Adam"][1] > 0.05
    assert table["AMSGrad"][1] == 0.0
    assert abs(table["AdaShift"][1]) < 0.05


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.99960034, 1.2e-6), "0.999600 ± 0.000001"),
        (Estimate(23251.7, 94.0), "23,250 ± 90"),
        (Estimate(math.nan, math.nan), "nan"),
    ],
)
def test_an_estimate_shows_the_digits_its_error_leaves(estimate: Estimate, text: str) -> None:
    assert str(estimate) == text


@pytest.mark.parametrize("sign", [1, -1])
def test_the_turn_is_where_the_drift_becomes_positive(sign: int) -> None:
    """Two zeros, at log t = 1 and 3: the first is taken where the parabola opens downwards and the second else."""
    log_t = np.linspace(0, 4, 9)
    found = _zero_of_fit(log_t, [Estimate(sign * (log_t - 1) * (log_t - 3), 1e-3) for log_t in log_t])
    assert found.value == pytest.approx(math.exp(3 if sign > 0 else 1))
    assert math.isnan(_zero_of_fit(log_t, [Estimate(5 - one, 1e-3) for one in log_t / 10]).value)
