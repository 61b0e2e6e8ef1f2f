"""Theorem K.0m: the identity on every path, unbiased parts, what may be claimed, one line for bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.errors import TheoremError
from generic_adam.theorems.measured import Estimate, Observation, budget, drawn, size_at_most, weights

BETA, THETA, EPS = 0.8, 0.9, 0.05


def value(x):
    """A loss in two dimensions that no constant smoothness is needed for."""
    return float(np.log(np.cosh(x[0] - x[1])) + 0.1 * x[0] ** 4 + 0.3 * x[1] ** 2)


def slope(x):
    bend = math.tanh(x[0] - x[1])
    return np.array([bend + 0.4 * x[0] ** 3, -bend + 0.6 * x[1]])


def outcomes(x, v):
    """The two values of the stochastic gradient, skewed and dependent on the state; their mean is the gradient."""
    spread = np.array([0.5, 0.2]) + 0.3 * np.abs(x) + 0.2 * np.sqrt(v)
    return ((0.25, slope(x) + 3 * spread), (0.75, slope(x) - spread))


class State:
    """Adam at a step, with everything that the past fixes."""

    def __init__(self, x, m, v, u, gamma):
        self.x, self.m, self.v, self.u, self.gamma = x, m, v, u, gamma
        self.scale = np.sqrt(THETA * v + (1 - THETA) * np.maximum(v, 0.01)) + EPS

    def direction(self, g):
        return -(BETA * self.m + (1 - BETA) * g) / (np.sqrt(THETA * self.v + (1 - THETA) * g * g) + EPS)

    def misdirection(self, g):
        """eps-hat(g): unbiased for the bias of the direction."""
        return g / self.scale + (self.direction(g) - self.gamma * self.u) / (1 - BETA)

    def after(self, g, alpha, gamma):
        u = self.direction(g)
        v = THETA * self.v + (1 - THETA) * g * g
        return State(self.x + alpha * u, BETA * self.m + (1 - BETA) * g, v, u, gamma)


def paths(alpha, gamma, first):
    """Yield, for every path of noise, its probability, states, and gradients."""
    for choice in itertools.product((0, 1), repeat=len(alpha)):
        state, chance, states, gradients = first, 1.0, [first], []
        for t, index in enumerate(choice):
            p, g = outcomes(state.x, state.v)[index]
            chance *= p
            state = state.after(g, alpha[t], gamma[t + 1] if t + 1 < len(gamma) else 0.0)
            states.append(state)
            gradients.append(g)
        yield chance, states, gradients


def start_of(gamma):
    return State(np.array([1.5, -0.7]), np.array([0.3, -0.1]), np.array([0.2, 0.5]), np.array([-0.4, 0.6]), gamma)


def exact_observations(alpha, states):
    """The path's own values in place of estimates, and the martingale's increments."""
    found, increments = [], []
    for t, (now, after) in enumerate(itertools.pairwise(states)):
        G, Gs = slope(now.x), outcomes(now.x, now.v)
        mean = sum(p * now.direction(g) for p, g in Gs)
        eps = G / now.scale + (mean - now.gamma * now.u) / (1 - BETA)
        found.append(
            Observation(
                index=t,
                size=float((G * G / now.scale).sum()),
                scale=float(now.scale.sum()),
                remainder=value(after.x) - value(now.x) - alpha[t] * float(G @ after.u),
                turn=float((slope(after.x) - G) @ after.u),
                slope=float(G @ after.u),
                bias=float(G @ eps),
                bias_square=float((now.scale * eps * eps).sum()),
            )
        )
        increments.append(float(G @ (after.u - mean)))
    return found, np.array(increments)


ALPHA, GAMMA = np.array([0.3, 0.1, 0.0, 0.4, 0.2]), np.array([0.7, 0.5, 0.9, 0.8, 0.0])


def test_the_identity_on_every_path():
    weighing = weights(ALPHA, BETA, GAMMA)
    noise = 0.0
    for chance, states, _ in paths(ALPHA, GAMMA, start_of(GAMMA[0])):
        seen, increments = exact_observations(ALPHA, states)
        inherited = float(slope(states[0].x) @ states[0].u)
        found = budget(weighing, seen, value(states[0].x), value(states[-1].x), start=inherited)
        martingale = float((weighing.reach * increments).sum()) / weighing.total
        assert found.residual.value == pytest.approx(martingale, abs=1e-12)
        assert found.curvature.value == pytest.approx(found.remainder.value + found.turn.value, abs=1e-12)
        noise += chance * martingale
        size, F = found.size.value, found.bias_square.value
        assert abs(found.bias.value) <= math.sqrt(size * F) * (1 + 1e-12)
        assert size <= size_at_most(size - found.bias.value, F) * (1 + 1e-12)
        l1 = sum(
            w * np.abs(slope(one.x)).sum() for w, one in zip(weighing.weight / weighing.total, states[:-1], strict=True)
        )
        assert l1 <= math.sqrt(found.scale.value * size) * (1 + 1e-12)
    assert noise == pytest.approx(0, abs=1e-12)


def test_two_batches_are_unbiased_for_size_bias_and_its_square():
    """Exact expectations over both batches, at states that a path reaches."""
    for _, states, _ in paths(ALPHA, GAMMA, start_of(GAMMA[0])):
        for now in states[:-1]:
            G, law = slope(now.x), outcomes(now.x, now.v)
            eps = sum(p * now.misdirection(g) for p, g in law)
            pairs = [(p * r, g, h) for (p, g), (r, h) in itertools.product(law, law)]
            assert sum(p * g @ (h / now.scale) for p, g, h in pairs) == pytest.approx(G @ (G / now.scale), abs=1e-12)
            half = sum(p * (h @ now.misdirection(g) + g @ now.misdirection(h)) / 2 for p, g, h in pairs)
            assert half == pytest.approx(G @ eps, abs=1e-12)
            square = sum(p * (now.scale * now.misdirection(g)) @ now.misdirection(h) for p, g, h in pairs)
            assert square == pytest.approx(now.scale @ (eps * eps), abs=1e-12)
            one_batch = sum(p * now.scale @ now.misdirection(g) ** 2 for p, g in law)
            assert one_batch >= square - 1e-12


class TestWeights:
    def test_by_hand(self):
        found = weights([0.1, 0.1, 0.05], 0.5)
        assert found.reach == pytest.approx([0.1625, 0.125, 0.05])
        assert found.inherited == pytest.approx([0.08125, 0.0625, 0.025])
        assert found.total == pytest.approx(0.16875)

    def test_gamma_that_is_given(self):
        found = weights([1.0, 2.0], 0.9, [0.0, 0.5])
        assert found.reach == pytest.approx([2.0, 2.0])
        assert found.weight == pytest.approx([0.2, 0.2])

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (([0.1, -0.1], 0.5), r"alpha_t >= 0, got -0.1 at step 2 of 2"),
            (([0.1, math.nan], 0.5), r"alpha_t >= 0, got nan at step 2"),
            (([0.1, 0.1], 1.0), "0 <= beta_t < 1, got 1 at step 1"),
            (([0.1, 0.1], 0.5, [0.5, -1]), "gamma_t >= 0, got -1 at step 2"),
            (([0.0, 0.0], 0.5), "every learning rate is 0"),
        ],
    )
    def test_bad_input_is_one_line(self, given, told):
        with pytest.raises(TheoremError, match=told) as error:
            weights(*given)
        assert "\n" not in str(error.value)


def observed(index, **other):
    return Observation(
        **({"index": index, "size": 1.0, "scale": 2.0, "remainder": 0.1, "turn": 0.1, "slope": -1.0} | other)
    )


class TestAnswers:
    WEIGHING = weights([0.1] * 4, 0.5)

    def test_a_step_that_carries_the_variance_is_flagged(self):
        even = budget(self.WEIGHING, [observed(t) for t in range(4)], 1.0, 0.5)
        heavy = budget(self.WEIGHING, [observed(t, size=100.0 if t == 1 else 1.0) for t in range(4)], 1.0, 0.5)
        assert heavy.size.largest_share > 0.99
        assert not heavy.reliable
        assert even.size.largest_share < heavy.size.largest_share

    def test_scale_is_exact_where_every_step_is_measured(self):
        every = budget(self.WEIGHING, [observed(t) for t in range(4)], 1.0, 0.5)
        assert every.scale.standard_error == 0
        assert every.scale.value == pytest.approx(2.0)
        half = budget(self.WEIGHING, [observed(t, probability=0.5) for t in (0, 2)], 1.0, 0.5)
        assert half.scale.standard_error > 0
        assert half.mean_l1 > math.sqrt(half.size.value * half.scale.value)

    def test_without_the_bias_it_does_not_say_that_it_closes(self):
        found = budget(self.WEIGHING, [observed(t) for t in range(4)], 1.0, 0.5)
        assert found.closes is None
        assert "bias" not in found.shares

    def test_the_next_batch_at_the_old_point_widens_by_the_root_of_two(self):
        seen = [observed(t) for t in range(4)]
        errors = [budget(self.WEIGHING, seen, 1, 0.5, next_batch=so).size.standard_error for so in (True, False)]
        assert errors[0] == pytest.approx(math.sqrt(2) * errors[1])

    def test_shares_add_up_to_one_and_are_empty_without_a_sum(self):
        seen = [observed(t, bias=0.01, bias_square=0.01) for t in range(4)]
        assert math.fsum(budget(self.WEIGHING, seen, 40.0, 0.5).shares.values()) == pytest.approx(1)
        assert budget(self.WEIGHING, seen, 0.5, 40.0).shares == {}

    def test_an_upper_limit(self):
        assert Estimate(1.0, 0.1).upper == pytest.approx(1.16449)

    @pytest.mark.parametrize(
        ("seen", "told"),
        [
            ([], "no step was measured"),
            ([observed(4)], "different steps from 0 to 3"),
            ([observed(1), observed(1)], "different steps"),
            ([observed(1, size=math.inf)], "size is no finite number at step 2"),
            ([observed(1, probability=0.0)], r"probabilities in \(0, 1\]"),
        ],
    )
    def test_bad_input_is_one_line(self, seen, told):
        with pytest.raises(TheoremError, match=told):
            budget(self.WEIGHING, seen, 1.0, 0.5)

    def test_bad_bounds_and_rates(self):
        with pytest.raises(TheoremError, match="F >= 0"):
            size_at_most(1.0, -1.0)
        with pytest.raises(TheoremError, match="rate in"):
            drawn(10, 0.0, 0)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 10), st.floats(0, 10), st.floats(-1, 1))
def test_the_bound_by_the_bias_is_what_the_identity_leaves(a, F, share):
    """X = C + a with |C| <= sqrt(X F): the largest X solves x = a + sqrt(x F), and every other is below."""
    largest = size_at_most(a, F)
    assert largest == pytest.approx(a + math.sqrt(largest * F), rel=1e-9, abs=1e-12)
    other = size_at_most(a, F * share * share)
    assert other <= largest * (1 + 1e-12)


def test_steps_are_drawn_by_coins_that_a_longer_run_shares():
    few, many = drawn(100, 0.3, 7), drawn(1000, 0.3, 7)
    assert (many[:100] == few).all()
    assert 200 < many.sum() < 400


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_two_standard_errors_cover_the_path_in_a_thousand_runs(rate):
    """A thousand runs of Adam on a quadratic with skewed noise, the second batch being the next one.

    Two standard errors err on the large side: they cover at least 95 % of the runs, up to the count's own error.
    """
    runs, steps, lr, size = 1000, 150, 0.02, 4
    rng = np.random.default_rng(3)
    curve = np.array([1.0, 3.0, 0.3, 2.0])
    law = lambda: rng.gamma(2.0, 1.0, (runs, size)) - 2.0  # noqa: E731
    chosen = drawn(steps, rate, 5)
    times = np.arange(1.0, steps + 1)
    correction = np.sqrt(1 - 0.99**times)
    alpha = lr * correction / (1 - 0.9**times)
    gamma = np.concatenate([[0.0], 0.9 * correction[:-1] / correction[1:]])
    weighing = weights(alpha, 0.9, gamma)
    x, m, v, u = np.full((runs, size), 1.0), np.zeros((runs, size)), np.zeros((runs, size)), np.zeros((runs, size))
    xi, truth, seen = law(), np.zeros((2, runs)), [[] for _ in range(runs)]
    first = 0.5 * (x * x) @ curve
    for t in range(steps):
        after = law()
        G, g, h = curve * x, curve * x + xi, curve * x + after
        vhat = v / (1 - 0.99**t) if t else np.ones((runs, size))
        scale = np.sqrt(0.99 * v + 0.01 * np.maximum(vhat, 0.01)) + 1e-8

        def direction(g, m=m, v=v):
            return -(0.9 * m + 0.1 * g) / (np.sqrt(0.99 * v + 0.01 * g * g) + 1e-8)

        new = direction(g)
        both = [one / scale + (direction(one) - gamma[t] * u) / 0.1 for one in (g, h)]
        truth[0] += weighing.weight[t] / weighing.total * (G * G / scale).sum(axis=1)
        truth[1] += weighing.reach[t] / weighing.total * (G * new).sum(axis=1)
        if chosen[t]:
            moved = alpha[t] * new
            remainder = 0.5 * (moved * moved) @ curve
            columns = {
                "size": (g * h / scale).sum(axis=1),
                "scale": scale.sum(axis=1),
                "remainder": remainder,
                "turn": (curve * moved * new).sum(axis=1),
                "slope": (h * new).sum(axis=1),
                "bias": (h * both[0] + g * both[1]).sum(axis=1) / 2,
                "bias_square": (scale * both[0] * both[1]).sum(axis=1),
            }
            for run in range(runs):
                told = {name: float(values[run]) for name, values in columns.items()}
                seen[run].append(Observation(t, probability=rate, **told))
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        x, u, xi = x + alpha[t] * new, new, after
    last = 0.5 * (x * x) @ curve
    found = [budget(weighing, seen[run], first[run], last[run]) for run in range(runs)]
    covered = np.mean(
        [abs(one.size.value - truth[0, run]) <= 2 * one.size.standard_error for run, one in enumerate(found)]
    )
    above = np.mean([one.size.upper >= truth[0, run] for run, one in enumerate(found)])
    closed = np.mean([one.closes for one in found])
    assert covered > 0.95 - 0.02
    assert above > 0.95 - 0.02
    assert closed > 0.95 - 0.02
