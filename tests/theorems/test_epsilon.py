"""Theorem H's check values and laws; E, N and H for ever, and what they ask of eps and of Nesterov's weights."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.methods import Method
from generic_adam.methods.algorithm import Algorithm, HeavyBall, Nesterov
from generic_adam.schedules import as_schedule
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import bound_of, problem_of

TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1)
TEN = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1)
TEN_BY_COORDINATE = problem_of(smoothness=1, gradient_bound=[10**-0.5] * 10, dimension=10, gap=1)
T = np.arange(1.0, 1001.0)
close = pytest.approx


def ball(alpha, theta, eps, factor, *, rate_inside=False, steps=None):
    momentum = HeavyBall(Fraction(factor), rate_inside)
    return Sequences.of(alpha, 0.0, theta, eps=eps, steps=steps, heavy_ball=momentum)


class TestHeavyBall:
    def test_tiny_heavy_ball(self):
        bound = weighted_bound(ball(TINY_ALPHA, 0.9, 0.1, 0.5), TINY)
        assert bound.value == close(7.160141170345, rel=1e-11)

    @pytest.mark.parametrize(
        ("momentum", "drift", "weight", "value"),
        [(0.0, 2.22895093702, 10, 2.873088693388), (0.9, 4217.36755586, 99.1, 45.13490862056)],
    )
    def test_torch_rmsprop(self, momentum, drift, weight, value):
        bound = weighted_bound(ball(0.01, 0.99, 1e-8, momentum, steps=1000), TEN)
        assert (bound.drift, bound.weight, bound.value) == close((drift, weight, value), rel=1e-9)

    def test_a_falling_eps_is_not_forgotten(self):
        """The example of the page: with e_1 in the logarithm the bound would be 6.3e-5, and X_w is 0.649."""
        problem = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1 - math.cos(0.01))
        alpha, eps = np.array([1e-3, 1.0, 1.0]), np.array([1e3, 1e-6, 1e-6])
        bound = weighted_bound(ball(alpha, 0.5, eps, 0.0), problem)
        assert bound.value > 0.649

    def test_heavy_ball_without_momentum_is_e_without_momentum(self):
        given = (0.01 / np.sqrt(T), 0.99, 1e-8, 0.0)
        plain = Sequences.of(given[0], 0.0, 0.99, eps=1e-8)
        e, h = weighted_bound(plain, TEN), weighted_bound(ball(*given), TEN)
        assert (e.value, e.l1, e.l2) == close((h.value, h.l1, h.l2), rel=1e-12)
        inside = weighted_bound(ball(*given, rate_inside=True), TEN)
        assert inside.value == close(h.value, rel=1e-12)


@pytest.mark.parametrize(
    "form", [{"nesterov": Nesterov("0.9", "0.1")}, *({"heavy_ball": HeavyBall(0.9, on)} for on in (False, True))]
)
def test_momentum_of_another_kind_beside_v_0_alone(form):
    """e = 0 and v_0 > 0: N and H hold as they stand, for ever, at a horizon and on a problem alike."""
    x = Algorithm(Method("0.1/sqrt(t)", 0 if "heavy_ball" in form else 0.9, "1 - 1/(t+1)"), **form)
    found, bound = certify_algorithm(x, horizon=1000), bound_of(x, TINY, 1000)
    assert (str(found.verdict), found.theorem, bound.theorem) == ("certified", "E", "E")
    assert found.horizon.theorem == ("N" if "nesterov" in form else "H")
    assert bound.expectation <= bound_of(replace(x, eps=1e-30), TINY, 1000).expectation
    nothing = certify_algorithm(replace(x, initial_v=0))
    assert str(nothing.verdict) == "undecided"
    assert not bound_of(replace(x, initial_v=0), TINY, 1000).is_valid


class TestForEver:
    """N and H keep W-infinity's rates; what their proof asks for is asked."""

    @staticmethod
    def slope(x, problem=TEN_BY_COORDINATE):
        """Of the bound between 2e4 and 2e5 steps, in powers of T."""
        short, long = (bound_of(x, problem, steps).constants["X_w"] for steps in (20_000, 200_000))
        return math.log10(long / short)

    @pytest.mark.parametrize(
        ("alpha", "theta", "power"),
        [
            ("0.1/t^0.3", "1 - 0.5/t^0.4", -0.2),  # chi does not grow: sum alpha sqrt q / sum alpha
            ("0.1/t^0.25", "1 - 0.5/t^0.8", -0.25),  # chi grows: chi_T^2 max(1, sum q)/sum alpha
        ],
    )
    def test_the_bounds_fall_at_the_certified_rate(self, alpha, theta, power):
        plain = Algorithm(Method(alpha, 0.9, theta), initial_v=0, eps=1e-6)
        ahead = replace(plain, nesterov=Nesterov(as_schedule("0.9 - 0.1/t"), as_schedule("0.1 + 0.5/t")))
        ball = Algorithm(Method(alpha, 0, theta), initial_v=0, eps=1e-6, heavy_ball=HeavyBall(Fraction(9, 10)))
        for x in (plain, ahead, ball, replace(ball, heavy_ball=HeavyBall(Fraction(9, 10), True))):
            found = certify_algorithm(x)
            assert found.rate is not None
            assert float(found.rate.power) == pytest.approx(power)
            # No slower than the rate; gap and drift, which fall faster, are still seen beside the noise.
            assert self.slope(x) <= power + 0.03

    def test_the_share_of_a_corrected_eps_is_of_the_order_of_q(self):
        t = np.arange(1.0, 5001)
        theta = 1 - 0.7 * t**-0.6
        products = np.cumprod(theta)
        eps = np.sqrt(1 - products)
        share = 1 - np.sqrt(theta[1:]) * eps[:-1] / eps[1:]
        assert (share <= (1 - theta[1:]) / (1 - theta[0]) * (1 + 1e-12)).all()
        assert (share >= 0).all()

    @pytest.mark.parametrize(("a", "b", "told"), [("-0.1", "1", "a_t"), ("1/t", "1/t", "open"), ("t", "1", "open")])
    def test_weights_that_are_negative_vanish_or_grow_are_not_certified(self, a, b, told):
        weights = Nesterov(as_schedule(a), as_schedule(b))
        x = Algorithm(Method("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)"), initial_v=0, eps=1e-6, nesterov=weights)
        found = certify_algorithm(x)
        assert str(found.verdict) != "certified"
        assert told in found.failing.reason
