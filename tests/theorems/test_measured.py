"""Theorem K.0m: the identity on every path, unbiased parts, what may be claimed, one line for bad input."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.theorems.measured import Estimate, Observation, budget, drawn, weights

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
    """The path's own values in place of estimates."""
    found = []
    for t, (now, after) in enumerate(itertools.pairwise(states)):
        G = slope(now.x)
        along = float(G @ after.u)
        found.append(
            Observation(
                index=t,
                size=float((G * G / now.scale).sum()),
                scale=float(now.scale.sum()),
                slope=along,
                other_slope=along,
                inherited=float(G @ now.u),
                turn=float((slope(after.x) - G) @ after.u),
                change=value(after.x) - value(now.x),
            )
        )
    return found


def bias_and_noise(states, weighing):
    """Both of K.0m by their definitions, from the law of the gradient."""
    bias = noise = 0.0
    for t, (now, after) in enumerate(itertools.pairwise(states)):
        G = slope(now.x)
        mean = sum(p * now.direction(g) for p, g in outcomes(now.x, now.v))
        eps = G / now.scale + (mean - weighing.gamma[t] * now.u) / (1 - BETA)
        bias += weighing.weight[t] / weighing.total * float(G @ eps)
        noise += weighing.reach[t] / weighing.total * float(G @ (after.u - mean))
    return bias, noise


ALPHA, GAMMA = np.array([0.3, 0.1, 0.0, 0.4, 0.2]), np.array([0.7, 0.5, 0.9, 0.8, 0.0])


def test_the_identity_on_every_path():
    weighing = weights(ALPHA, BETA, GAMMA)
    martingale = 0.0
    for chance, states, _ in paths(ALPHA, GAMMA, start_of(GAMMA[0])):
        found = budget(weighing, exact_observations(ALPHA, states), value(states[0].x) - value(states[-1].x))
        bias, noise = bias_and_noise(states, weighing)
        parts = found.bias.value + found.loss_drop.value + found.curvature.value
        assert found.size.value == pytest.approx(parts, abs=1e-12)
        assert found.bias.value == pytest.approx(bias + noise, abs=1e-12)
        assert found.curvature.value == pytest.approx(found.bend.value + found.turn.value, abs=1e-12)
        assert found.residual.value == pytest.approx(0, abs=1e-12)
        martingale += chance * noise
        shares = weighing.weight / weighing.total
        l1 = sum(w * np.abs(slope(one.x)).sum() for w, one in zip(shares, states[:-1], strict=True))
        assert l1 <= math.sqrt(found.scale.value * found.size.value) * (1 + 1e-12)
    assert martingale == pytest.approx(0, abs=1e-12)


def test_a_batch_that_is_seen_once_leaves_curvature_and_drop_together():
    weighing = weights(ALPHA, BETA, GAMMA)
    for _, states, _ in itertools.islice(paths(ALPHA, GAMMA, start_of(GAMMA[0])), 4):
        seen, fell = exact_observations(ALPHA, states), value(states[0].x) - value(states[-1].x)
        whole, part = (budget(weighing, one, fell) for one in (seen, [replace(one, change=None) for one in seen]))
        assert part.curvature.value == pytest.approx(whole.curvature.value, abs=1e-12)
        assert part.closes is None
        assert whole.closes


class TestWeights:
    def test_by_hand(self):
        found = weights([0.1, 0.1, 0.05], 0.5)
        assert found.reach == pytest.approx([0.1625, 0.125, 0.05])
        assert found.gamma == pytest.approx([0, 0.5, 0.5])
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
    numbers = {"size": 1.0, "scale": 2.0, "slope": -1.0, "other_slope": -1.0, "inherited": 0.0, "turn": 0.1}
    return Observation(**({"index": index, "change": -0.1} | numbers | other))


class TestAnswers:
    WEIGHING = weights([0.1] * 40, 0.5)
    EVEN = staticmethod(lambda **other: [observed(t, **other) for t in range(40)])

    def test_a_step_that_carries_the_variance_is_flagged(self):
        rng = np.random.default_rng(0)
        even = budget(self.WEIGHING, [observed(t, size=x) for t, x in enumerate(rng.normal(1, 0.1, 40))], 0.5)
        heavy = budget(self.WEIGHING, [observed(t, size=100.0 if t == 7 else 1.0) for t in range(40)], 0.5)
        assert even.size.reliable
        assert heavy.size.largest_share == pytest.approx(0.5, abs=0.01)  # one step, two pairs
        assert not heavy.reliable

    def test_scale_is_exact_where_every_step_is_measured(self):
        every = budget(self.WEIGHING, self.EVEN(), 0.5)
        assert every.scale.standard_error == 0
        assert every.scale.value == pytest.approx(2.0)
        half = budget(self.WEIGHING, [observed(t, stands_for=2) for t in range(0, 40, 2)], 0.5)
        assert half.scale.standard_error > 0
        assert half.mean_l1 > math.sqrt(half.size.value * half.scale.value)

    def test_shares_add_up_to_one_and_are_empty_without_a_sum(self):
        assert math.fsum(budget(self.WEIGHING, self.EVEN(), 40.0).shares.values()) == pytest.approx(1)
        assert budget(self.WEIGHING, self.EVEN(), -40.0).shares == {}

    def test_a_loss_that_fell_elsewhere_does_not_close(self):
        assert budget(self.WEIGHING, self.EVEN(), Estimate(4.0, 0.1)).closes
        assert budget(self.WEIGHING, self.EVEN(), Estimate(5.0, 0.1)).closes is False

    def test_an_upper_limit(self):
        assert Estimate(1.0, 0.1).upper == pytest.approx(1.2)

    @pytest.mark.parametrize(
        ("seen", "told"),
        [
            ([], "no step was measured"),
            ([observed(40)], "increasing steps from 0 to 39"),
            ([observed(1), observed(1)], "increasing steps"),
            ([observed(1, size=math.inf)], "size is no finite number at step 2"),
            ([observed(1, stands_for=0)], "stand for at least one"),
        ],
    )
    def test_bad_input_is_one_line(self, seen, told):
        with pytest.raises(TheoremError, match=told):
            budget(self.WEIGHING, seen, 0.5)


def test_lots_are_drawn_from_blocks_that_cover_the_steps():
    drawings = list(itertools.islice(drawn(0.05, 7), 400))
    start = 0
    for chosen, length in drawings:
        assert start <= chosen < start + length
        assert length <= max(1, start // 16)
        start += length
    assert {length for _, length in drawings[-100:]} == {20}
    assert len({chosen % 20 for chosen, _ in drawings[-100:]}) == 20
    assert drawings == list(itertools.islice(drawn(0.05, 7), 400))
    with pytest.raises(TheoremError, match="rate in"):
        next(drawn(0.0, 0))


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_two_standard_errors_cover_the_path_in_a_thousand_runs(rate):
    """A thousand runs of Adam on a quadratic with skewed noise, each with lots and batches of its own.

    Two standard errors err on the large side: they cover at least 95 % of the runs, up to the count's own error.
    """
    runs, steps, lr, size = 1000, 203, 0.02, 4
    rng = np.random.default_rng(3)
    curve = np.array([1.0, 3.0, 0.3, 2.0])
    law = lambda: rng.gamma(2.0, 1.0, (runs, size)) - 2.0  # noqa: E731
    lots = np.zeros((runs, steps), dtype=int)
    for run in range(runs):
        for chosen, length in itertools.takewhile(lambda one: one[0] < steps, drawn(rate, run)):
            lots[run, chosen] = length
    times = np.arange(1.0, steps + 1)
    correction = np.sqrt(1 - 0.99**times)
    alpha = lr * correction / (1 - 0.9**times)
    gamma = np.concatenate([[0.0], 0.9 * correction[:-1] / correction[1:]])
    weighing = weights(alpha, 0.9, gamma)
    shares, reach = weighing.weight / weighing.total, weighing.reach / weighing.total
    x, m, v, u = np.full((runs, size), 1.0), np.zeros((runs, size)), np.zeros((runs, size)), np.zeros((runs, size))
    truth, seen = np.zeros((3, runs)), [[] for _ in range(runs)]
    first = 0.5 * (x * x) @ curve
    for t in range(steps):
        G = curve * x
        g, h, k = (G + law() for _ in range(3))
        vhat = v / (1 - 0.99**t) if t else np.ones((runs, size))
        scale = np.sqrt(0.99 * v + 0.01 * np.maximum(vhat, 0.01)) + 1e-8
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        new = -m / (np.sqrt(v) + 1e-8)
        moved = alpha[t] * new
        truth[0] += shares[t] * (G * G / scale).sum(axis=1)
        truth[1] += shares[t] * (G * G / scale).sum(axis=1) + reach[t] * (G * (new - gamma[t] * u)).sum(axis=1)
        later = reach[t + 1] * gamma[t + 1] if t + 1 < steps else 0.0
        truth[2] += 0.5 * (moved * moved) @ curve / weighing.total + later * (curve * moved * new).sum(axis=1)
        columns = {
            "size": (h * k / scale).sum(axis=1),
            "scale": scale.sum(axis=1),
            "slope": (h * new).sum(axis=1),
            "other_slope": (k * new).sum(axis=1),
            "inherited": ((h + k) / 2 * u).sum(axis=1),
            "turn": (curve * moved * new).sum(axis=1),
            "change": 0.5 * (moved * moved) @ curve + (h * moved).sum(axis=1),
        }
        for run in np.flatnonzero(lots[:, t]):
            told = {name: float(values[run]) for name, values in columns.items()}
            seen[run].append(Observation(t, stands_for=int(lots[run, t]), **told))
        x, u = x + moved, new
    fell = first - 0.5 * (x * x) @ curve
    found = [budget(weighing, seen[run], fell[run]) for run in range(runs)]
    for index, name in enumerate(("size", "bias", "curvature")):
        estimates = [getattr(one, name) for one in found]
        errors = np.array([one.value for one in estimates]) - truth[index]
        sizes = np.array([one.standard_error for one in estimates])
        assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(runs), f"{name} is biased"
        assert np.mean(np.abs(errors) <= 2 * sizes) > 0.95 - 0.02, name
        assert np.mean([one.upper for one in estimates] >= truth[index]) > 0.95 - 0.02, name
    assert np.mean([one.closes for one in found]) > 0.95 - 0.02
    # What something else moves is noticed in most of them.
    noticed = [not budget(weighing, seen[run], fell[run] + 1.5).closes for run in range(runs)]
    assert np.mean(noticed) > 0.5
