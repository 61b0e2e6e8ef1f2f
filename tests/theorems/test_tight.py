"""Proposition T: the problem whose floor no theorem is below, against simulation and against the bounds."""

import math

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Method
from generic_adam.reference import generic_adam
from generic_adam.theorems.horizon import constant_floor
from generic_adam.theorems.tight import stall

CONSTANTS = [(0.0, 0.99), (0.0, 0.999), (0.9, 0.95), (0.9, 0.98), (0.9, 0.99), (0.9, 0.999)]
LISTED = [0.00884, 0.00155, 0.0275, 0.0145, 0.00881, 0.00155]


@pytest.mark.parametrize(("constants", "listed"), [*zip(CONSTANTS, LISTED, strict=True)], ids=str)
def test_it_is_below_the_floor_of_the_theorem_and_as_the_page_has_it(constants, listed):
    found = stall(*constants)
    assert listed <= found.size <= 1.02 * listed
    assert found.size < constant_floor(*constants).noise


@pytest.mark.parametrize("constants", CONSTANTS[:4], ids=str)
def test_more_nodes_change_nothing(constants):
    assert stall(*constants, nodes=240).size == pytest.approx(stall(*constants).size, rel=1e-4)


@pytest.mark.parametrize("constants", [(0.9, 0.95), (0.0, 0.99), (0.9, 0.98)], ids=str)
def test_the_stationary_law_by_simulation(constants):
    """The mean step is 0 and X_w/G_1 what is computed, within four standard errors of 40,000 independent runs."""
    (beta, theta), found = constants, stall(*constants)
    rng, runs = np.random.default_rng(0), 40_000
    v, m = np.full(runs, found.second_moment), np.zeros(runs)
    for _ in range(math.ceil(12 / (1 - theta))):
        g = np.where(rng.random(runs) < found.spike, 1.0, -found.small)
        m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g**2
    step = m / np.sqrt(v)
    assert abs(step.mean()) < 4 * step.std() / math.sqrt(runs)
    second = found.second_moment
    size = found.slope**2 / np.sqrt(second) / np.sqrt(theta * v + (1 - theta) * second)
    assert abs(size.mean() - found.size) < 4 * size.std() / math.sqrt(runs)


def test_adam_stands_still_on_the_slope():
    """20,000 steps of Adam (0.9, 0.95) go nowhere in the mean; plain descent would be at the minimum."""
    found, steps, lr = stall(0.9, 0.95), 20_000, 20_000**-0.75
    rng = np.random.default_rng(1)
    path = generic_adam(Method(lr, 0.9, 0.95), found.gradient(rng), np.zeros(400), steps, epsilon=found.second_moment)
    moved = path.points[-1]
    # Without the noise a step would be lr long, and a sixth of them would reach the minimum at -2.
    assert abs(moved.mean()) < 4 * moved.std() / 20 + 20 * lr < 0.25
    assert np.abs(moved).max() < 1
    assert found.slope / math.sqrt(found.second_moment) == pytest.approx(0.1156, abs=1e-4)


def test_the_gradient_is_unbiased_and_within_its_moment():
    found, rng = stall(0.9, 0.95), np.random.default_rng(2)
    for x, slope in ((0.0, found.slope), (-2.0, 0.0), (-5.0, -found.slope)):
        g = found.gradient(rng)(np.full(200_000, x), 1)
        assert abs(g.mean() - slope) < 4 * g.std() / math.sqrt(len(g))
        assert (g**2).mean() <= found.second_moment * 1.05


@pytest.mark.parametrize("bad", [(1.0, 0.9), (0.9, 0.8), (0.9, 1.0)])
def test_what_is_out_of_range(bad):
    with pytest.raises(TheoremError, match="beta"):
        stall(*bad)
