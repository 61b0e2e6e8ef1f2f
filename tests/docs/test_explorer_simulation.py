"""The explorer's simulation, step for step, against Algorithm 1 in NumPy with the same gradients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

import generic_adam as ga
from generic_adam.reference import generic_adam

STEPS = 20000
RUN = """
const run = Simulation.simulate(arguments[0]);
const plain = (value) => (value.length ? Array.from(value) : value);
return Object.fromEntries(Object.entries(run).map(([key, value]) => [key, plain(value)]));
"""


@pytest.fixture(scope="module")
def explorer(site: Path, browser: Chrome) -> Chrome:
    browser.get((site / "explorer" / "index.html").as_uri())
    return browser


def gradients(seed: int, steps: int) -> np.ndarray:
    """Return the page's gradients g_1, ..., g_T: 1010 where a 32-bit mix of (seed, t) is below one in a hundred."""
    t = np.arange(1, steps + 1, dtype=np.uint32)
    bits = t * np.uint32(0x9E3779B9) + np.uint32(seed * 0x85EBCA6B % 2**32)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x735A2D97)
    return np.where((bits ^ (bits >> np.uint32(15))) / 2**32 < 0.01, 1010.0, -10.0)


def test_the_generator_is_the_same_and_fair(explorer: Chrome) -> None:
    for seed in (1, 7, 999999):
        drawn = explorer.execute_script(
            "return Array.from({ length: 5000 }, (_, i) => Simulation.gradient(arguments[0], i + 1))", seed
        )
        np.testing.assert_array_equal(drawn, gradients(seed, 5000))
    for seed in (1, 2, 3):
        share = np.mean(gradients(seed, 1_000_000) > 0)
        assert abs(share - 0.01) < 5 * np.sqrt(0.01 * 0.99 / 1_000_000)


@pytest.mark.parametrize(
    "choice",
    [
        {"r": 1, "s": 0.5, "c": 1, "K": 2, "eta": 0.5, "beta": 0.9, "seed": 1},
        {"r": 0, "s": 0.5, "c": 0.01, "K": 1, "eta": 0.5, "beta": 0.9, "seed": 2},
        {"r": 0.8, "s": 0.4, "c": 0.802, "K": 1, "eta": 0.5, "beta": 0, "seed": 3},
        {"r": 1.5, "s": 0.9, "c": 1, "K": 30, "eta": 2, "beta": 0.99, "seed": 4},
    ],
    ids=lambda choice: f"r={choice['r']} s={choice['s']}",
)
def test_a_run_follows_algorithm_one(explorer: Chrome, choice: dict[str, float]) -> None:
    run = explorer.execute_script(RUN, {**choice, "epsilon": 1e-8, "steps": STEPS, "records": 60})
    g = gradients(int(choice["seed"]), STEPS)
    method = ga.Method(
        alpha=f"{choice['eta']}/t^{choice['s']}",
        beta=choice["beta"],
        theta=f"1 - {choice['c']}/max(t, {choice['K']})^{choice['r']}",
    )
    trajectory = generic_adam(
        method, lambda _, t: [g[t - 1]], [1.0], STEPS, 1e-8, projection=lambda x: np.clip(x, -1, 1)
    )
    x = trajectory.points[:, 0]
    regret = (np.cumsum(g * x[:-1]) + np.abs(np.cumsum(g))) / np.arange(1, STEPS + 1)
    at = np.array(run["times"]) - 1
    assert at[0] == 0
    assert at[-1] == STEPS - 1
    np.testing.assert_allclose(run["position"], x[at], rtol=0, atol=1e-10)
    np.testing.assert_allclose(run["regret"], regret[at], rtol=1e-9, atol=1e-7)
    assert run["final"] == pytest.approx(x[-1], abs=1e-10)
    assert np.ptp(x) > 0.1  # the run went somewhere, so that the comparison says something


def test_a_million_steps_take_well_under_a_second(explorer: Chrome) -> None:
    times = explorer.execute_script(
        """
        const choice = { r: 0.8, s: 0.6, c: 1, K: 2, eta: 0.5, beta: 0.9, epsilon: 1e-8, seed: 1 };
        return Array.from({ length: 5 }, () => {
          const start = performance.now();
          Simulation.simulate({ ...choice, steps: 1000000, records: 420 });
          return performance.now() - start;
        });
        """
    )
    assert min(times) < 700, times  # the least of five: the machine may be busy with other tests
