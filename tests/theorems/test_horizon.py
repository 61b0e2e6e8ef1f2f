"""The three numbers from an Algorithm: the values of the theorems' page, silence said, nothing claimed uncovered."""

import pytest

from generic_adam import methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.theorems.horizon import read_horizon
from generic_adam.theorems.theorem import Assumptions


# Optima of c_noise as the theorems' page lists them.
@pytest.mark.parametrize(
    ("algorithm", "steps", "noise", "letter"),
    [
        (methods.adamw(weight_decay=0), 100_000, 0.336225, "E"),
        (Algorithm(methods.t5(), initial_v=0, eps=1e-15), 524_288, 0.134497, "E"),
        (Algorithm(methods.palm(), initial_v=0, eps=1e-15), 255_000, 0.417836, "E"),
        (Algorithm(methods.rmsprop(theta=0.99), initial_v=0, eps=1e-8), 100_000, 0.41122, "E"),
    ],
)
def test_the_numbers_of_the_page(algorithm, steps, noise, letter):
    reading = read_horizon(algorithm, steps)
    assert reading.noise == pytest.approx(noise, rel=2e-5)
    assert reading.theorem == letter
    assert reading.informative
    assert "informative" in reading.statement


def test_a_floor_above_one_is_silent():
    reading = read_horizon(methods.adamw(theta=0.95, weight_decay=0), 10_000)
    assert reading.floor == pytest.approx(1.85716221988, rel=1e-9)
    assert not reading.informative
    assert "silent" in reading.statement


def test_beta_squared_above_theta_has_numbers_and_is_silent():
    reading = read_horizon(Method(1e-3, 0.99, 0.95) and Algorithm(Method(1e-3, 0.99, 0.95)), 1000)
    assert not reading.informative


def test_decay_is_told_apart_and_needs_a_bound_on_the_weights():
    reading = read_horizon(methods.adamw(), 10_000)
    assert reading.decay is None
    assert not reading.informative
    small, large = (read_horizon(methods.adamw(), 10_000, Assumptions(weights_bound=X)) for X in (0.5, 50.0))
    assert 0 < small.decay < large.decay
    assert not large.informative


def test_what_is_not_covered_is_named_and_claims_nothing():
    reading = read_horizon(Algorithm(methods.adam(), clipping=Clipping(1.0)), 1000)
    assert reading.outside == ("clipped gradients are biased",)
    assert not reading.informative
    assert reading.noise is not None
    assert "no theorem covers it" in reading.statement


def test_no_step_no_bound():
    reading = read_horizon(Algorithm(Method("0 if t < 100 else 1/t", 0.9, 0.999)), 50)
    assert reading.noise is None
    assert "is 0" in reading.statement


@pytest.mark.parametrize("steps", [0, -5, 2.5, True, float("nan")])
def test_bad_horizons(steps):
    with pytest.raises(TheoremError, match="horizon: expected a whole number of steps"):
        read_horizon(methods.adamw(), steps)
