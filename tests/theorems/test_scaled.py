"""Theorem P: exact expectations on trees, its lemma for factored second moments, and the recipes that it covers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import generic_adam as ga
from generic_adam import Setting
from generic_adam.errors import TheoremError
from generic_adam.methods import Clipping
from generic_adam.methods.recipes import recipe
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.horizon import three_numbers
from generic_adam.theorems.scaled import UNIT, averaged_bound
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.symmetric import GIVEN_THE_OTHERS
from generic_adam.theorems.theorem import Answer

TENSORS = ([0, 1], [2])  # two tensors, of two weights and of one


def scales(x: np.ndarray, floor: float) -> np.ndarray:
    """max(RMS, eps_2) of the tensor of each weight."""
    found = np.empty_like(x)
    for tensor in TENSORS:
        found[..., tensor] = np.maximum(np.sqrt((x[..., tensor] ** 2).mean(-1, keepdims=True)), floor)
    return found


def on_a_tree(seed: int) -> float:
    """Measured over bound of P1: every path of at most four steps, three weights, noise that answers the past."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(1, 5))
    alpha = rng.random(steps) * 10.0 ** rng.uniform(-1, 1.5)
    beta = rng.random(steps) * rng.choice([0.0, 0.5, 0.9])
    theta = 1 - 10.0 ** rng.uniform(-3, -0.1, steps)
    eps = 10.0 ** rng.uniform(-2, 1.5) * np.cumprod(1 + rng.random(steps) * 0.1)
    nu = alpha * 10.0 ** rng.uniform(-2, -0.5) * (rng.random() < 0.5)
    floor = 10.0 ** rng.uniform(-2, -0.5)
    x = rng.uniform(-2, 2, (1, 3)) * rng.choice([0.1, 1.0], 3)
    start, m, v, chance = x[0].copy(), np.zeros((1, 3)), np.zeros((1, 3)), np.ones(1)
    terms, G, b = [], 0.0, np.zeros(3)
    for t in range(steps):
        slope = 2 * x / (1 + (x**2).sum(-1, keepdims=True))  # f = log(1 + |x|^2), L = 2
        up = rng.uniform(0.02, 0.98, len(x))[:, None]
        size = rng.normal(size=x.shape) * 10.0 ** rng.uniform(-4, 0, (len(x), 1))
        gradients = [slope + size / up, slope - size / (1 - up)]
        square = up * gradients[0] ** 2 + (1 - up) * gradients[1] ** 2
        G, s = max(G, math.sqrt(square.max())), scales(x, floor)
        b = np.maximum(b, s.max(0))
        hat = np.sqrt(theta[t] * v + (1 - theta[t]) * square) + eps[t]
        terms.append(chance @ (s * slope**2 / hat).sum(-1))
        chance = np.concatenate([chance * up[:, 0], chance * (1 - up[:, 0])])
        g = np.concatenate(gradients)
        x, m, v = (np.concatenate([one, one]) for one in (x, m, v))
        m, v = beta[t] * m + (1 - beta[t]) * g, theta[t] * v + (1 - theta[t]) * g**2
        x = (1 - nu[t]) * x - alpha[t] * scales(x, floor) * m / (np.sqrt(v) + eps[t])
    b = np.maximum(b, scales(x, floor).max(0))
    b[TENSORS[0]] = b[TENSORS[0]].max()
    found = three_numbers(Sequences.of(alpha, beta, theta, eps=eps, decay=nu), G, 1.0, scaled=True)
    unit, gap = float(b.sum()) * G, math.log1p(float((start**2).sum()))
    bound = (found.noise + found.decay + found.drift * found.turning) * unit
    bound += found.gap * gap + found.drift * 2 * float((b**2).sum())
    Q, pi = 0.0, np.empty(steps)
    for i in reversed(range(steps)):
        Q = alpha[i] + (beta[i + 1] / math.sqrt(theta[i + 1]) * Q if i + 1 < steps else 0.0)
        pi[i] = (1 - beta[i]) * Q
    return float(pi @ np.array(terms) / pi.sum()) / bound


def test_no_tree_exceeds_the_bound():
    ratios = [on_a_tree(seed) for seed in range(400)]
    assert 0.2 < max(ratios) <= 1 + 1e-9


class TestFactored:
    """One weight of a matrix as a function of y, its own squared gradient; r, c, s are its row's, column's, and all."""

    @staticmethod
    def divisor(y, r, c, s):
        return (r + y) * (c + y) / (s + y)

    def test_the_inverse_root_is_convex_and_falls(self):
        rng = np.random.default_rng(2)
        for _ in range(200):
            r, c = 10.0 ** rng.uniform(-6, 2, 2)
            s = max(r, c) * (1 + 10.0 ** rng.uniform(-6, 6))
            y = np.linspace(0, 10.0 ** rng.uniform(-6, 3), 2001)
            values = self.divisor(y, r, c, s) ** -0.5
            assert (np.diff(values) <= 0).all()
            assert (np.diff(values, 2) >= -1e-13 * values[0]).all()

    def test_an_unbiased_step_keeps_its_direction_however_updates_are_clipped(self):
        rng = np.random.default_rng(3)
        for _ in range(80):
            others = rng.normal(size=(3, 4)) * 10.0 ** rng.uniform(-2, 2, (3, 4))
            old, q = rng.random((3, 4)) * 10.0 ** rng.uniform(-3, 3, (3, 4)), 10.0 ** rng.uniform(-3, 0)
            mu, width = rng.random(), 10.0 ** rng.uniform(-2, 2)
            # A midpoint rule on each side of 0: the noise is uniform about mu.
            g = mu + width * (2 * np.arange(2001) + 1 - 2001) / 2001
            gradients = np.repeat(others[None], len(g), axis=0)
            gradients[:, 0, 0] = g
            V = (1 - q) * old + q * gradients**2 + 1e-30
            rows, columns = V.sum(2), V.sum(1)
            update = gradients / np.sqrt(rows[:, :, None] * columns[:, None] / V.sum((1, 2))[:, None, None])
            rms = np.sqrt((update**2).mean((1, 2)))
            threshold = 10.0 ** rng.uniform(-1, 0.5)
            clipped = update[:, 0, 0] / np.maximum(1, rms / threshold)
            y = q * (mu**2 + width**2)  # mu^2 + 3 s^2
            without = (V.sum(2)[0, 0], V.sum(1)[0, 0], V.sum((1, 2))[0])
            r, c, s = (one - q * g[0] ** 2 for one in without)
            least = mu / math.sqrt(self.divisor(y, r, c, s)) / max(1.0, rms.max() / threshold)
            assert clipped.mean() >= least * (1 - 2e-3)

    def test_the_mean_divisors_add_up_to_no_more_than_the_page_says(self):
        rng = np.random.default_rng(4)
        for _ in range(200):
            V, own = rng.random((3, 4)) * 10.0 ** rng.uniform(-4, 4, (3, 4)), rng.random((3, 4)) ** 4
            new = 10.0 ** rng.uniform(-4, 4, (3, 4))
            rows, columns, total = V.sum(1)[:, None], V.sum(0)[None], V.sum()
            y = own * V
            replaced = self.divisor(new, rows - y, columns - y, total - y)
            assert replaced.sum() <= (total + new.sum()) * (1 + 1e-12)


def test_the_numbers_of_clipped_updates_are_sums():
    alpha, theta = np.array([0.1, 0.2, 0.05]), np.array([0.0, 0.5, 0.8])
    found = averaged_bound(Sequences.of(alpha, 0.0, theta, eps=1e-15, under_root=True), 1e-3, 3.0, 1.5)
    assert found.gap == pytest.approx(2 / 0.35)
    assert found.drift == pytest.approx(2 * 1.5**2 * (alpha**2).sum() / 0.7)
    assert found.norm == pytest.approx((alpha * np.sqrt(1 + 3 * (1 - theta))).sum() / 0.35)
    free = averaged_bound(Sequences.of(alpha, 0.0, theta, eps=1e-15, under_root=True), 1e-3, 3.0)
    assert (free.gap, free.drift) == pytest.approx((1 / 0.35, 9 * (alpha**2).sum() / 0.7))
    with pytest.raises(TheoremError, match="learning rate"):
        averaged_bound(Sequences.of(np.zeros(3), 0.0, theta, eps=1e-15), 1e-3, 3.0)


def test_palm_is_guaranteed_while_its_weights_stay_bounded():
    x = recipe("palm").algorithm
    assert certify_algorithm(x).horizon.answer is Answer.NONE
    found = certify_algorithm(x, setting=Setting(weights_bound=1, gradient_norm=1))
    run = found.horizon
    assert (run.theorem, run.answer, run.turning) == ("P", Answer.GUARANTEED, 1.0)
    assert (run.noise, run.gap, run.drift, run.decay) == pytest.approx(
        (0.0749684610312, 0.00109686094438, 0.262938449892, 0.00464918815856), rel=1e-9
    )
    assert run.size == pytest.approx(0.778839785, rel=1e-8)
    assert UNIT in run.needs
    assert (found.long_run, found.theorem) == (Answer.GUARANTEED, "P")
    # The noise is that of the sequences alone.
    alone = certify_algorithm(replace(x, scaled=False, decay=0), setting=Setting(gradient_norm=1)).horizon
    assert alone.noise == pytest.approx(run.noise, rel=1e-12)
    symmetric = Setting(weights_bound=1, gradient_norm=1, noise="symmetric")
    assert certify_algorithm(x, setting=symmetric).horizon.symmetric.noise < run.noise


def test_t5_is_guaranteed_where_the_noise_is_symmetric():
    x = recipe("t5").algorithm
    facts = {"weights_bound": 1, "noise": "symmetric", "update_rms": 2}
    run = certify_algorithm(x, setting=Setting(**facts)).horizon
    assert (run.theorem, run.answer, run.noise) == ("P", Answer.GUARANTEED, 0.0)
    assert (run.gap, run.drift) == pytest.approx((0.00148351402928, 0.00367867494047), rel=1e-9)
    assert {UNIT, GIVEN_THE_OTHERS} <= {*run.needs}
    for name in facts:
        less = certify_algorithm(x, setting=Setting(**{one: value for one, value in facts.items() if one != name}))
        assert less.horizon.answer is Answer.NONE
        assert [one.about for one in less["P"].outside] == [name]


@pytest.mark.parametrize(
    "other",
    [
        {"clipping": Clipping(1.0)},
        {"eps": 1e-8, "eps_under_root": False},
        {"eps": "1e-15/t"},
        {"l2": 0.1},
        {"decay": "0.1/t"},
    ],
)
def test_what_p_says_nothing_of(other):
    x = replace(recipe("t5").algorithm, **other)
    setting = Setting(weights_bound=1, noise="symmetric", update_rms=2)
    assert certify_algorithm(x, setting=setting)["P"].outside
    assert certify_algorithm(ga.methods.adamw(), setting=setting)["P"].outside


def test_decay_that_stays_leaves_no_certificate_in_the_long_run():
    x = replace(recipe("palm").algorithm, clipping=None)
    setting = Setting(weights_bound=1)
    assert certify_algorithm(x, setting=setting)["P"].verdict == "certified"
    assert certify_algorithm(replace(x, decay="0.1/sqrt(t)"), setting=setting)["P"].verdict == "not certified"


def test_simulated_matrices_stay_below_the_bound():
    """Factored second moments, clipped and scaled updates, on noise that is uniform and independent."""
    rng = np.random.default_rng(7)
    for _ in range(25):
        steps, shape, runs = int(rng.integers(5, 60)), (2, 3), 100
        alpha, theta = 10.0 ** rng.uniform(-2, 0, steps), 1 - np.arange(1, steps + 1.0) ** -0.8
        start, floor, cut = rng.normal(size=shape), 1e-3, 10.0 ** rng.uniform(-0.5, 0.5)
        width = 10.0 ** rng.uniform(-1, 1, shape)
        x = np.repeat(start[None], runs, axis=0)
        rows, columns = np.zeros((runs, 2)), np.zeros((runs, 3))
        total, G, b, largest = 0.0, 0.0, floor, cut
        for t in range(steps):
            slope = 2 * x / (1 + (x**2).sum((1, 2), keepdims=True))
            s = np.maximum(np.sqrt((x**2).mean((1, 2), keepdims=True)), floor)
            g = slope + width * rng.uniform(-1, 1, x.shape)
            G = max(G, math.sqrt((slope**2 + width**2 / 3).mean((1, 2)).max()))
            b = max(b, float(s.max()))
            total += alpha[t] * float((s * np.abs(slope)).sum((1, 2)).mean())
            rows = theta[t] * rows + (1 - theta[t]) * (g**2 + 1e-30).mean(2)
            columns = theta[t] * columns + (1 - theta[t]) * (g**2 + 1e-30).mean(1)
            update = g / np.sqrt(rows[:, :, None] * columns[:, None] / rows.mean(1)[:, None, None])
            rms = np.sqrt((update**2).mean((1, 2), keepdims=True))
            largest = max(largest, float(rms.max()))
            x = x - alpha[t] * s * update / np.maximum(1, rms / cut)
        found = averaged_bound(Sequences.of(alpha, 0.0, theta, eps=1e-15, under_root=True), G, largest, cut)
        unit, gap = 6 * b * G, math.log1p(float((start**2).sum()))
        bound = math.sqrt(found.norm * unit * (found.gap * gap + found.drift * 2 * 6 * b**2))
        assert total / alpha.sum() <= bound


def test_what_symmetric_noise_brings_is_told_apart():
    facts = {"weights_bound": 1, "noise": "symmetric", "update_rms": 2}
    t5 = certify_algorithm(recipe("t5").algorithm, setting=Setting(**facts))
    assert (t5.long_run, t5.plainly.long_run) == (Answer.GUARANTEED, Answer.UNKNOWN)
    palm = certify_algorithm(recipe("palm").algorithm, setting=Setting(gradient_norm=1, **facts))
    assert palm.plainly.long_run is Answer.GUARANTEED


def test_groups_with_rates_of_their_own_have_no_numbers_together():
    x = replace(recipe("palm").algorithm, clipping=None)
    other = replace(x, method=replace(x.method, alpha=x.method.alpha * 2), groups=(1,))
    run = certify_algorithm(replace(x, others=(other,)), 10_000, setting=Setting(weights_bound=1)).horizon
    assert run.outside
