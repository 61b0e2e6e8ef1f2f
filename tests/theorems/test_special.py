"""Theorems G and S: check values, hypotheses that fail, certificates, runs below their bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, adamw
from generic_adam.setting import Setting
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.decide import Status
from generic_adam.theorems.special import Averaged, Averaging
from generic_adam.theorems.theorem import Reason, Verdict
from tests.theorems.problems import bound_of, known, problem_of

close = pytest.approx


def slope(x):
    return 2 * x / (1 + x * x) ** 2


class TestAveraging:
    PROBLEM = problem_of(2, 1, 1, 1, variance=1)

    def test_check_value(self):
        averaged = Averaged(0.003, 0.9, 1 / 1.1, 10)
        assert averaged.largest_rate(2) == close(0.00392837100659, rel=1e-9)
        assert averaged.bound(self.PROBLEM, 10**6) == close(1.10083233333, rel=1e-9)

    def test_torchs_eps_asks_for_tiny_steps(self):
        with pytest.raises(TheoremError, match=r"alpha = 0.001 <= 3.9\d+e-10"):
            Averaged(1e-3, 0.9, 1 / 1.1, 1e8).bound(self.PROBLEM, 10**6)

    @pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
    def test_measured(self, beta):
        eps, noise, steps = 0.5, 0.5, 2000
        upper, lower = 1 / eps, 1 / (3 * math.sqrt(3) / 8 + noise + eps)
        alpha = Averaged(0, beta, lower, upper).largest_rate(2)
        rng = np.random.default_rng(0)
        x, m, v, total = np.full((100, 1), 2.0), 0.0, 0.0, 0.0
        for _ in range(steps):
            exact = slope(x)
            total += (exact**2).sum(axis=1).mean()
            g = exact + rng.choice([-noise, noise], size=x.shape)
            m, v = beta * m + (1 - beta) * g, 0.5 * v + 0.5 * g * g
            x = x - alpha * m / (np.sqrt(v) + eps)
        problem = problem_of(2, 2, 1, 0.8, variance=noise**2)
        averaged = Averaged(alpha, beta, lower, upper)
        assert 0 < total / steps <= averaged.bound(problem, steps, first_gradient=float(slope(2.0) ** 2))

    def test_measured_with_the_largest_rate(self):
        """theorems.md: 0.0286 <= 1.69, with eps = 0.1, theta = 0.999, d = 5, noise +-1/2 and T = 20,000."""
        eps, noise, beta, steps = 0.1, 0.5, 0.9, 20_000
        lower = 1 / (3 * math.sqrt(3) / 8 + noise + eps)
        alpha = Averaged(0, beta, lower, 1 / eps).largest_rate(2)
        rng = np.random.default_rng(0)
        x, m, v, total = np.full((40, 5), 2.0), 0.0, 0.0, 0.0
        for _ in range(steps):
            exact = slope(x)
            total += (exact**2).sum(axis=1).mean()
            g = exact + noise * rng.choice([-1.0, 1.0], size=x.shape)
            m, v = beta * m + (1 - beta) * g, 0.999 * v + 0.001 * g * g
            x = x - alpha * m / (np.sqrt(v) + eps)
        problem = problem_of(2, 3, 5, 4, variance=5 * noise**2)
        bound = Averaged(alpha, beta, lower, 1 / eps).bound(problem, steps, first_gradient=5 * slope(2.0) ** 2)
        assert (total / steps, bound) == (close(0.0286, rel=0.02), close(1.69, abs=5e-3))

    def test_an_eps_beyond_all_rates_is_no_division_by_zero(self):
        x, assume = Algorithm(Method(1e-3, 0.9, 0.999), eps=1e300), Setting(smoothness=1e-140, gradient_norm=1)
        assert Averaging().examine(x, assume).verdict is Verdict.NOT_CERTIFIED  # for its noise alone


class TestSign:
    def test_noise_leaves_a_floor(self):
        """2 |sigma|_1 = 4, however long the run is."""
        problem = problem_of(1, 3, 10, 1, variance=[0.04] * 10)
        found = bound_of(Algorithm(Method("1e-3", 0, 0)), problem, 10**6, theorem="S")
        assert found.l1 == close(4, rel=2e-3)

    def test_measured(self):
        steps, rate, noise = 500, 0.01, 0.3
        rng = np.random.default_rng(0)
        x, total = np.full((200, 1), 2.0), 0.0
        for _ in range(steps):
            exact = slope(x)
            total += np.abs(exact).mean()
            x = x - rate * np.sign(exact + rng.choice([-noise, noise], size=x.shape))
        problem = problem_of(2, 1, 1, 0.8, variance=noise**2)
        found = bound_of(Algorithm(Method(rate, 0, 0)), problem, steps, theorem="S")
        assert 0 < total / steps <= found.l1


CONSTANTS = Setting(gradient_norm=1.0, smoothness=2.0)
EXACT = replace(CONSTANTS, full_batch=True)


def averaged(alpha=0.003, eps=0.1, beta=0.9, theta=0.5):
    return Algorithm(Method(alpha, beta, theta), initial_v=0, eps=eps)


class TestCertificates:
    """G and S asked by certify and bound: what they need is named, and nothing is said without it."""

    def test_what_is_not_asserted_is_asked_for(self):
        found = certify_algorithm(averaged())
        assert found["G"].outside == (Reason("missing", "smoothness"), Reason("missing", "gradient_norm"))
        assert [one.kind for one in found["S"].outside] == ["eps", "excluded"]

    def test_exact_gradients_and_small_steps_are_certified_for_any_theta(self):
        found = certify_algorithm(averaged(), setting=EXACT)
        assert (found.theorem, str(found.verdict), str(found.rate)) == ("G", "certified", "T^(-1)")
        assert found.needs == (
            "the gradient is 2-Lipschitz",
            "no gradient is longer than 1",
            "every gradient is exact (a full batch)",
        )
        assert str(certify_algorithm(averaged(), setting=CONSTANTS)["G"].verdict) == "not certified"

    def test_torchs_adam(self):
        """c_u = 1/((1 - beta) eps): its eps asks for steps below 4e-11."""
        first = certify_algorithm(adamw(weight_decay=0), setting=EXACT)["G"].conditions[0]
        assert first.status is Status.FAILS
        limit = Averaged(0, 0.9, 0, 1 / (0.1 * 1e-8)).largest_rate(2)
        assert f"{limit:.4g}" in first.reason
        assert certify_algorithm(adamw(weight_decay=0, lr=3e-4, eps=0.1), setting=EXACT).theorem == "G"

    def test_signs(self):
        signs = Algorithm(Method("0.1/sqrt(t)", 0, 0))
        found = certify_algorithm(signs, setting=EXACT)
        assert (found.theorem, str(found.rate)) == ("S", "T^(-1/2) log T")
        assert "2 |sigma|_1" in certify_algorithm(signs)["S"].conditions[3].reason

    def test_bounds_are_the_functions(self):
        problem = problem_of(2, 1, 1, 1, gradient_sup=1, variance=1)
        found = bound_of(averaged(), problem, 10**6, theorem="G")
        assert found.expectation == close(1.10083233333, rel=1e-9)
        steps = 10**4
        one_by_one = problem_of(1, 3, 10, 1, variance=[(0.2 / math.sqrt(steps)) ** 2] * 10)
        rate = 1 / math.sqrt(10 * steps)
        found = bound_of(Algorithm(Method(rate, 0, 0)), one_by_one, steps, theorem="S")
        assert found.l1 == close(0.0874341649025, rel=1e-9)
        assert found.expectation == close(math.sqrt(3) * found.l1**1.5)

    def test_a_step_that_is_too_large_has_no_bound(self):
        found = bound_algorithm(averaged(1.0), known(2, 1, 1, 1, gradient_sup=1), 100, theorem="G")
        assert not found.is_valid
        assert "alpha = 1 <=" in found.missing[0][1].about

    def test_a_falling_rate_of_signs_is_the_weighted_sum(self):
        """The proof adds up with alpha_t: gap/sum alpha + 2 |sigma|_1 + |L|_1 sum alpha^2/(2 sum alpha)."""
        problem = problem_of(2, 1, 1, 0.8, variance=0.09)
        found = bound_of(Algorithm(Method("0.05/sqrt(t)", 0, 0)), problem, 500)
        assert found.theorem == "S"
        alpha = 0.05 / np.sqrt(np.arange(1.0, 501))
        assert found.l1 == close((0.8 + (alpha**2).sum()) / alpha.sum() + 0.6, rel=1e-9)
        rng = np.random.default_rng(0)
        x, total = np.full((400, 1), 2.0), 0.0
        for rate in alpha:
            exact = slope(x)
            total += rate * np.abs(exact).mean()
            x = x - rate * np.sign(exact + rng.choice([-0.3, 0.3], size=x.shape))
        assert 0 < total / alpha.sum() <= found.l1
