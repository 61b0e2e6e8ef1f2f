"""Theorems B and C: full batches and clipped gradients, check values and runs below their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.setting import Setting
from generic_adam.theorems.clipping import biased_bound, clipped_parts, full_batch_bound, without_idle_clipping
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import problem_of

close = pytest.approx
TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1)


def slope(x):
    return 2 * x / (1 + x * x) ** 2


class TestFullBatchAndClipping:
    WELL = problem_of(smoothness=2, gradient_bound=3 * math.sqrt(3) / 8, dimension=1, gap=0.8)

    def run(self, alpha, beta, theta, eps, threshold=math.inf):
        """X_w of a full-batch run: the weights of Theorem C2, the divisor D_t itself."""
        x, m, v, slopes, divisors = 2.0, 0.0, 0.0, [], []
        for rate in alpha:
            exact = slope(x)
            g = exact * min(1.0, threshold / abs(exact))
            m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g * g
            slopes.append(exact)
            divisors.append(math.sqrt(v) + eps)
            x -= rate * m / divisors[-1]
        Q, weights = 0.0, np.empty(len(alpha))
        for i in reversed(range(len(alpha))):
            Q = alpha[i] + beta / math.sqrt(theta) * Q
            weights[i] = (1 - beta) * Q
        return float((weights * np.square(slopes) / divisors).sum() / weights.sum())

    def test_theorem_b_has_no_noise_and_is_nearly_attained(self):
        alpha = np.full(500, 0.003)
        bound = full_batch_bound(Sequences.of(alpha, 0.0, 0.999, eps=1e-3), self.WELL)
        assert (bound.theorem, bound.noise, bound.s) == ("B", 0.0, 0.0)
        measured = self.run(alpha, 0.0, 0.999, 1e-3)
        assert 0.1 * bound.value <= measured <= bound.value
        q = 1 - 0.999
        growth = np.diff(
            [0, *np.log1p(0.999 * self.WELL.gradient_bound**2 / 1e-6 * (0.999 ** -np.arange(1.0, 501) - 1))]
        )
        by_hand = (0.8 + 2 / 2 * (0.003**2 / q * growth).sum()) / alpha.sum()
        assert bound.value == close(by_hand, rel=1e-9)

    @pytest.mark.parametrize("threshold", [0.1, 0.5, math.inf])
    @pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
    def test_a_clipped_full_batch(self, beta, threshold):
        alpha = 0.05 / np.sqrt(np.arange(1.0, 301))
        bound = full_batch_bound(Sequences.of(alpha, beta, 0.99, eps=1e-2), self.WELL, threshold=threshold)
        assert 0 < self.run(alpha, beta, 0.99, 1e-2, threshold) <= bound.value

    def test_the_factor_divides_theorem_b(self):
        sequences = Sequences.of(np.full(100, 0.003), 0.0, 0.999, initial_v=1e-8)
        whole = full_batch_bound(sequences, self.WELL)
        half = full_batch_bound(sequences, self.WELL, threshold=self.WELL.total_gradient_bound / 2)
        assert half.theorem == "C2"
        # kappa = 1/2 halves the divisor; the clipped second moment makes the logarithm smaller.
        assert whole.value < half.value < 2 * whole.value
        assert half.divisor == close(whole.divisor / 2)

    def test_a_coordinate_that_stood_still_varies_once_it_is_clipped_with_another(self):
        g, chances = np.array([[0.0, 1.0], [20.0, 1.0]]), np.array([0.5, 0.5])
        clipped = g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1)
        deviation = np.sqrt(chances @ (clipped - chances @ clipped) ** 2)
        problem = problem_of(1, [np.sqrt(200), 1.0], 2, 1, variance=[100.0, 0.0])
        noise = [part.noise for part in clipped_parts(problem, 1.0)]
        assert deviation[1] > 0.4
        assert all(deviation <= np.sort(noise))

    @pytest.mark.parametrize("each", [True, False])
    def test_the_variances_of_all_coordinates_move_the_one_that_stood_still(self, each):
        """1, and a thousand times 0 or 0.1 together: each of these varies by 0.05, the clipped 1 by 0.35."""
        still, others = 1.0, np.full(1000, 0.1)
        clipped = still / np.hypot(still, np.linalg.norm(others))
        bounds = [still, *others] if each else math.hypot(still, np.linalg.norm(others))
        problem = problem_of(1, bounds, 1001, 1, variance=[0.0, *(others**2 / 4)])
        assert (still - clipped) / 2 <= max(part.noise for part in clipped_parts(problem, 1.0))

    def test_clipping_that_never_acts_is_left_out_and_says_why(self):
        def acts(threshold, kind="norm", **facts):
            x = Algorithm(Method(0.1, 0.9, 0.999), clipping=Clipping(threshold, kind=kind))
            found, said = without_idle_clipping(x, Setting(**facts))
            assert bool(said) is (found.clipping is None)
            return found.clipping is not None

        entries = {"gradient_sup": 0.25, "dimension": 4}
        assert not acts(0.51, **entries)
        assert acts(0.49, **entries)
        assert not acts(0.25, "value", **entries)
        assert acts(0.24, "value", **entries)
        assert not acts(0.25, gradient_norm=0.25)
        assert acts(100.0)
        assert acts(0.51, "update", **entries)

    def test_a_threshold_of_zero_is_refused(self):
        with pytest.raises(TheoremError, match="threshold"):
            clipped_parts(problem_of(1, 1, 4, 1), 0.0)

    def test_a_bias_costs_its_share(self):
        t = np.arange(1.0, 301)
        sequences = Sequences.of(0.05 / np.sqrt(t), 0.5, 0.99, eps=0.1)
        plain = weighted_bound(sequences, self.WELL)
        values = [biased_bound(sequences, self.WELL, c).value for c in (0.1, 1.0, 10.0, 1e6)]
        assert values == sorted(values, reverse=True)
        # Without a bias what is left is the price of Young's inequality in place of Lemma N.
        assert plain.value < values[-1] < 2.5 * plain.value
        # Scale-free: with kappa the price does not depend on eps.
        small = Sequences.of(0.05 / np.sqrt(t), 0.0, 0.99, eps=1e-12)
        assert biased_bound(small, self.WELL, 1.0).value > 1e3
        assert biased_bound(small, self.WELL, 1.0, least_factor=0.95).value < 100

    def test_the_relative_floor_of_a_known_factor(self):
        """theta = 0.999, kappa = 0.95 costs 0.0876 at best: s = 0, phi = 1/2."""
        kappa, q = 0.95, 0.001
        price = (1 / kappa - 1) ** 2 / (4 * math.sqrt(q))
        assert price / (0.5 * 0.5) == close(0.0876, abs=5e-5)
        bound = biased_bound(Sequences.of(1e-3, 0.0, 0.999, eps=1e-8, steps=1000), TINY, 1.0, least_factor=kappa)
        assert bound.decay * bound.phi / bound.weight == close(price, rel=1e-9)

    def test_measured_with_bias(self):
        steps, eps, threshold = 400, 0.1, 0.4
        t = np.arange(1.0, steps + 1)
        alpha = 0.05 / np.sqrt(t)
        rng = np.random.default_rng(0)
        x, v, total = np.full((400, 1), 2.0), 0.0, 0.0
        for i in range(steps):
            exact = slope(x)
            # v-hat has the second moment of the clipped gradient: two outcomes, both known.
            outcomes = np.clip([exact - 0.5, exact + 0.5], -threshold, threshold)
            hat = 0.99 * v + 0.01 * (outcomes**2).mean(axis=0)
            total += alpha[i] * (exact**2 / (np.sqrt(hat) + eps)).mean()
            g = np.where(rng.random(x.shape) < 0.5, *outcomes)
            v = 0.99 * v + 0.01 * g * g
            x = x - alpha[i] * g / (np.sqrt(v) + eps)
        problem = problem_of(smoothness=2, gradient_bound=math.sqrt(27 / 64 + 0.25), dimension=1, gap=0.8)
        bound = biased_bound(Sequences.of(alpha, 0.0, 0.99, eps=eps), problem, threshold)
        assert 0 < total / alpha.sum() <= bound.value
