"""Theorem RR: its numbers from the definitions, its laws on every order, and the problem that defeats constants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from generic_adam import Setting, methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Method, as_algorithm
from generic_adam.reference import generic_adam
from generic_adam.schedules import parse
from generic_adam.theorems import decide
from generic_adam.theorems.bounds import bound_algorithm
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.shuffled import (
    counterexample,
    epoch_drift,
    floor,
    longest_epoch,
    shuffled_bound,
)
from generic_adam.theorems.theorem import SEEN_ONCE, WITH_REPLACEMENT, Verdict
from tests.theorems.problems import problem_of


def torch_adam(lr, beta, theta, steps, eps=1e-8):
    t = np.arange(1, steps + 1.0)
    correction = np.sqrt(-np.expm1(t * math.log(theta)))
    return {"alpha": lr * correction / (1 - beta**t), "beta": beta, "theta": theta, "eps": eps * correction}


def bound_of(sequences, batches, *, smoothness=1.0, gap=1.0, bound=1.0, count=1, dropped=0.0, **known):
    problem = problem_of(smoothness, bound * math.sqrt(count), count, gap, gradient_sup=bound, **known)
    return shuffled_bound(sequences, problem, batches, dropped=dropped)


ALPHA = [0.1, 0.1, 0.05, 0.05]
FALLING = 1e-3 / np.sqrt(np.arange(1, 1001.0))
STEPS = np.arange(1, 1001.0)


class TestNumbers:
    """The values that an independent evaluation at forty digits printed."""

    @pytest.mark.parametrize(
        ("start", "value", "drift", "noise"),
        [
            ({"initial_v": 0.01}, 9.69775974679, 0.339160641067, 0.746573187448),
            ({"eps": 0.1}, 10.0274943581, 0.364341464098, 0.792309633057),
        ],
    )
    def test_tiny(self, start, value, drift, noise):
        found = bound_of(Sequences.of(ALPHA, 0.5, 0.9, **start), 2)
        assert (found.value, found.drift, found.noise) == pytest.approx((value, drift, noise), rel=1e-11)
        assert found.weight == pytest.approx(0.215073778169, rel=1e-11)
        assert found.moved == pytest.approx(0.0695605140255, rel=1e-11)

    @pytest.mark.parametrize(
        ("sequences", "batches", "value"),
        [
            (
                Sequences.of(FALLING, 0.9, 1 - 1 / np.maximum(STEPS, 2), q=1 / np.maximum(STEPS, 2), initial_v=1e-8),
                10,
                20.5010012012,
            ),
            (Sequences.of(FALLING, 0.9, 1 - 1 / STEPS, q=1 / STEPS, eps=1e-8), 10, 22.9766970726),
            (Sequences.of(**torch_adam(1e-3, 0.9, 0.999, 1000)), 10, 25.6688664789),
            (Sequences.of(**torch_adam(1e-3, 0.9, 0.999, 1000)), 100, 105.644922191),
        ],
        ids=["AdaEMA", "theta_1 = 0", "torch, 10", "torch, 100"],
    )
    def test_a_thousand_steps(self, sequences, batches, value):
        found = bound_of(sequences, batches, bound=10**-0.5, count=10)
        assert found.value == pytest.approx(value, rel=1e-10)

    @pytest.mark.parametrize(
        ("batches", "noise", "drift"),
        [(1, 0.0428062, 12.5383), (10, 0.107121, 27.783), (100, 0.272939, 221.436), (1000, 1.1143, 2802.45)],
    )
    def test_three_numbers_of_torch_s_default(self, batches, noise, drift):
        sequences = Sequences.of(**torch_adam(1.0, 0.9, 0.999, 100_000))
        found = bound_of(sequences, batches, bound=1e-3, gap=0.0)
        assert found.noise / found.weight / 1e-3 == pytest.approx(noise, rel=1e-5)
        assert found.drift / found.weight == pytest.approx(drift, rel=1e-5)

    @pytest.mark.parametrize(
        ("pair", "batches", "value"),
        [
            ((0.9, 0.95), 1, 0.275882),
            ((0.9, 0.95), 10, 0.786261),
            ((0.9, 0.999), 100, 0.209791),
            ((0.9, 0.999), 1000, 0.89437),
            ((0, 0.999), 1, 0),
            ((0, 0.999), 100, 0.17621),
            ((0.9, 0.9999), 390, 0.115702),
        ],
    )
    def test_floor(self, pair, batches, value):
        assert floor(*pair, batches) == pytest.approx(value, rel=3e-6)

    @pytest.mark.parametrize(
        ("pair", "most"), [((0.9, 0.999), 1147), ((0.9, 0.9999), 11909), ((0, 0.999), 1210), ((0.9, 0.95), 15)]
    )
    def test_the_longest_epoch(self, pair, most):
        assert longest_epoch(*pair) == most
        assert floor(*pair, most) < 1 <= floor(*pair, most + 1)

    def test_the_bound_of_constants_comes_down_to_the_floor(self):
        long = Sequences.of(1e-9, 0.9, 0.99, eps=1e-3, steps=200_000)
        found = bound_of(long, 20, smoothness=1e-9)
        assert floor(0.9, 0.99, 20) < found.noise / found.weight < 1.02 * floor(0.9, 0.99, 20)


def plainly(alpha, beta, theta, eps, v0, batches, nu, number=mpmath.mpf):
    """(noise, drift, weight) for L = F = G = X = 1 by double sums from the definitions, no recursion and no blocks."""
    alpha, beta, theta, eps, nu = ([number(one) for one in values] for values in (alpha, beta, theta, eps, nu))
    steps, root, log = len(alpha), mpmath.sqrt, mpmath.log
    q, rho = [1 - one for one in theta], [b / root(th) if th else number(0) for b, th in zip(beta, theta, strict=True)]

    def product(values, start, stop):
        return mpmath.fprod(values[start:stop])

    W = [1 / product([one or number(1) for one in theta], 0, t + 1) for t in range(steps)]
    R = [sum(product(rho, i + 1, t + 1) * (1 - beta[i]) for i in range(t + 1)) for t in range(steps)]
    M = [sum(product(rho, i + 1, t + 1) ** 2 * (1 - beta[i]) ** 2 / q[i] for i in range(t + 1)) for t in range(steps)]
    Q = [sum(alpha[t] * product(rho, i + 1, t + 1) for t in range(i, steps)) for i in range(steps)]
    pi = [(1 - beta[i]) * Q[i] for i in range(steps)]
    S = [
        log((root(v0 + W[t] - 1 + (theta[0] == 0)) + root(W[t]) * eps[t]) / (root(v0) + root(W[0]) * eps[0]))
        for t in range(steps)
    ]
    gamma, extra, K, N, mu, weight = [None] * steps, [None] * steps, [None] * steps, [], [], number(0)
    decayed, longer = number(0), [1 + (one > 0) for one in nu]
    for a in range(0, steps, batches):
        epoch = range(a, a + batches)
        b = a + batches - 1
        z = {i: W[b] / W[i] / q[i] for i in epoch}
        p = {i: pi[i] * root(W[i] / W[b]) for i in epoch}
        mean = sum(p[i] * z[i] for i in epoch) / sum(z.values())
        weight += batches * mean
        N.append(root(sum((p[i] - mean) ** 2 * z[i] for i in epoch)))
        mu.append(root(sum(q[i] * W[i] / W[b] for i in epoch)))
        J = sum(z.values()) / batches**2
        remaining = sum((b - t) * alpha[t] * longer[t] for t in epoch)
        for t in epoch:
            own = alpha[t] * (Q[t] - alpha[t] / 2)
            if nu[t] > 0:
                own = 3 * alpha[t] * (Q[t] - alpha[t]) / 2 + alpha[t] ** 2
                inherited = (Q[t] - alpha[t]) / 2 + sum(pi[i] for i in epoch if i > t) / 2 + mean * (b - t) / 2
                decayed += nu[t] ** 2 * (1 + inherited / alpha[t])
            gamma[t] = own + alpha[t] / 2 * (sum(pi[i] for i in epoch if i > t) + mean * (b - t))
            extra[t] = pi[t] / q[t] * sum(alpha[i] * longer[i] for i in epoch if i < t) / 2 + mean * J * remaining / 2
            K[t] = root(sum(pi[i] ** 2 / q[i] for i in epoch if i < t))
    H = [sum(product(rho, i + 1, t + 1) * R[t] * gamma[t] for t in range(i, steps)) for i in range(steps)]
    A = [(1 - beta[i]) / q[i] * H[i] + extra[i] for i in range(steps)]
    change = [S[t] - (S[t - 1] if t else 0) for t in range(steps)]
    drift = sum(2 * max(A[t:]) * change[t] for t in range(steps)) + decayed
    noises = []
    for inside in itertools.product((False, True), repeat=len(N)):
        charged = [one / m if yes else 0 for one, m, yes in zip(N, mu, inside, strict=True)]
        turning = [Q[t] * rho[t] * root(M[t - 1] if t else 0) for t in range(steps)]
        B = [turning[t] + K[t] + charged[t // batches] for t in range(steps)]
        still = sum(n * m / 2 if yes else n for n, m, yes in zip(N, mu, inside, strict=True))
        noises.append(sum(max(B[t:]) * change[t] for t in range(steps)) + still)
    return min(noises), drift, weight


def random_sequences(rng, steps):
    """A random choice of sequences that the theorem allows, steep ones among them."""
    alpha = 10 ** rng.uniform(-3, 0) * np.exp(rng.normal(size=steps) * rng.choice([0, 0.3, 2]))
    fading = np.exp(-np.abs(rng.normal(size=steps)) * rng.choice([0, 1]))
    beta = np.minimum(rng.choice([0, 0.5, 0.9, 0.99]) * fading, 0.999)
    theta = 1 - 10 ** (rng.uniform(-4, -0.3) + rng.normal(size=steps) * rng.choice([0, 0.1])).clip(max=0.0)
    theta = theta.clip(1e-3, 1 - 1e-6)
    eps = 10 ** rng.uniform(-6, 0) * np.ones(steps)
    return alpha, beta, theta, eps


@pytest.mark.parametrize("seed", range(40))
def test_the_sums_of_the_definitions_at_forty_digits(seed):
    rng = np.random.default_rng(seed)
    batches, epochs = [(1, 5), (2, 3), (3, 3), (5, 2), (9, 1)][seed % 5]
    alpha, beta, theta, eps = random_sequences(rng, batches * epochs)
    v0 = [0.0, 0.3][seed % 2]
    if seed % 8 == 0:
        theta[0] = 0.0
    nu = alpha * rng.random(len(alpha)) * (rng.random(len(alpha)) < 0.6) * (seed % 3 == 0)
    with mpmath.workdps(40):
        noise, drift, weight = plainly(alpha, beta, theta, eps, v0, batches, nu)
    given = Sequences.of(alpha, beta, theta, eps=eps, initial_v=v0, decay=nu, steps=len(alpha))
    found = bound_of(given, batches, weights_bound=1.0)
    assert found.decay == pytest.approx(nu.sum(), rel=1e-12)
    assert found.weight == pytest.approx(float(weight), rel=1e-12)
    assert float(drift) * (1 - 1e-13) <= found.drift <= float(drift) * (1 + 1e-9)
    # Every set of epochs is a bound; the library tries some of them.
    assert float(noise) * (1 - 1e-13) - 1e-30 <= found.noise <= float(noise) * 1.5 + 1e-12


class Losses:
    """n losses in d dimensions, each smooth with constant L, in a basis that is not that of the coordinates."""

    def __init__(self, rng, batches, dimension):
        self.turn = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
        self.bend = rng.normal(size=(batches, dimension)) * rng.choice([0.1, 1, 10], size=(batches, 1))
        self.center = rng.normal(size=(batches, dimension)) * 2
        self.smoothness = float(np.abs(self.bend).max())

    def value(self, i, x):
        y = self.turn @ x - self.center[i]
        return float((self.bend[i] * np.sqrt(1 + y * y)).sum())

    def gradient(self, i, x):
        y = self.turn @ x - self.center[i]
        return self.turn.T @ (self.bend[i] * y / np.sqrt(1 + y * y))

    def mean(self, x):
        return np.mean([self.gradient(i, x) for i in range(len(self.bend))], axis=0)

    def loss(self, x):
        return float(np.mean([self.value(i, x) for i in range(len(self.bend))]))


def run(losses, order, alpha, beta, theta, eps, nu, v0, x):
    """What the theorem speaks of along one order, and the constants that this run has."""
    batches = len(losses.bend)
    m, v, first, largest = np.zeros_like(x), np.full_like(x, v0), x, np.zeros_like(x)
    starts, means, divisors, used, reached = [], [], [], [], np.abs(x).max()
    for t in range(len(alpha)):
        if t % batches == 0:
            starts.append(losses.mean(x))
            used = []
            left = list(range(batches))
        all_of_them = np.array([losses.gradient(i, x) for i in range(batches)])
        largest = np.maximum(largest, np.abs(all_of_them).max(axis=0))
        chosen = order(t, left, all_of_them, v)
        left.remove(chosen)
        g = all_of_them[chosen]
        used.append(g)
        m, v = beta[t] * m + (1 - beta[t]) * g, theta[t] * v + (1 - theta[t]) * g * g
        D = np.sqrt(v) + eps[t]
        x = (1 - nu[t]) * x - alpha[t] * m / D
        reached = max(reached, np.abs(x).max())
        if len(used) == batches:
            means.append(np.mean(used, axis=0))
            divisors.append(D)
    return starts, means, divisors, largest, losses.loss(first) - losses.loss(x), float(reached)


def weights_of(alpha, beta, theta, batches):
    """The weights of the epochs, from their definition."""
    steps, rho = len(alpha), beta / np.sqrt(theta)
    Q = [sum(alpha[t] * np.prod(rho[i + 1 : t + 1]) for t in range(i, steps)) for i in range(steps)]
    found = []
    for a in range(0, steps, batches):
        epoch = np.arange(a, a + batches)
        tail = np.array([np.prod(1 / theta[i + 1 : a + batches]) for i in epoch])
        z, p = tail / (1 - theta[epoch]), (1 - beta[epoch]) * np.array(Q)[epoch] / np.sqrt(tail)
        found.append(batches * (p * z).sum() / z.sum())
    return np.array(found) / sum(found)


def ratios(rng, losses, sequences, order, x):
    """Measured over bound in X_w, l1 and l2, with the run's own constants: the hardest case of the theorem."""
    alpha, beta, theta, eps, v0 = sequences
    batches = len(losses.bend)
    nu = np.minimum(alpha * 10 ** rng.uniform(-3, 0, len(alpha)) * (rng.random() < 0.5), 1.0)
    starts, means, divisors, largest, gap, reached = run(losses, order, alpha, beta, theta, eps, nu, v0, x)
    known = {"gradient_sup": largest.clip(min=1e-12).tolist(), "weights_bound": reached}
    given = Sequences.of(alpha, beta, theta, eps=eps, initial_v=v0, decay=nu, steps=len(alpha))
    bound = shuffled_bound(given, problem_of(losses.smoothness, 1.0, len(x), 1.0, **known), batches)
    # A gap below 0 is this run's own: the loss rose.
    value = (gap + bound.noise + bound.drift + bound.decay) / bound.weight
    weight = weights_of(alpha, beta, theta, batches)
    size = sum(w * float((g * g / D).sum()) for w, g, D in zip(weight, means, divisors, strict=True))
    l1 = sum(w * np.abs(g).sum() for w, g in zip(weight, starts, strict=True))
    l2 = sum(w * float(g @ g) for w, g in zip(weight, starts, strict=True))
    assert size <= value * (1 + 1e-9) + 1e-13
    return (
        size / value,
        l1 / (math.sqrt(bound.s1 * value) + bound.moved),
        l2 / (math.sqrt(bound.largest * value) + bound.moved_norm) ** 2,
    )


def greedy(sign):
    """The batch that pulls hardest against the gradient, or with it, as Adam scales it."""

    def order(_, left, gradients, v):
        pull = (gradients.mean(axis=0) * gradients / np.sqrt(v + 1e-12 + gradients**2)).sum(axis=1)
        return min(left, key=lambda i: sign * pull[i])

    return order


def fixed(mixed):
    return lambda _, left, *__: next(i for i in mixed if i in left)


def test_every_order_of_every_epoch():
    """All (3!)^2 orders of two epochs, a few problems."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        losses, sequences = Losses(rng, 3, 2), (*random_sequences(rng, 6), 0.0)
        start = rng.normal(size=2)
        for orders in itertools.product(itertools.permutations(range(3)), repeat=2):
            chosen = [i for one in orders for i in one]
            found = ratios(rng, losses, sequences, lambda t, *_, given=chosen: given[t], start)
            assert max(found) <= 1 + 1e-9


def test_orders_that_look():
    largest = np.zeros(3)
    for seed in range(150):
        rng = np.random.default_rng(1000 + seed)
        batches, dimension = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        losses = Losses(rng, batches, dimension)
        sequences = (*random_sequences(rng, batches * int(rng.integers(1, 8))), float(rng.choice([0, 1e-4, 1])))
        orders = (greedy(1), greedy(-1), fixed(rng.permutation(batches).tolist()))
        found = ratios(rng, losses, sequences, orders[seed % 3], rng.normal(size=dimension) * 3)
        largest = np.maximum(largest, found)
    assert (largest <= 1 + 1e-9).all()
    assert largest[0] > 0.2, "the laws are tested far from where they could fail"


def test_one_batch_is_the_full_batch_and_has_no_noise_without_momentum():
    found = bound_of(Sequences.of(0.1, 0.0, 0.99, eps=0.1, steps=50), 1)
    assert found.noise == 0
    assert found.moved == 0


def test_an_epoch_that_leaves_data_out_costs_more():
    sequences = Sequences.of(**torch_adam(1e-3, 0.9, 0.999, 1000))
    exact, short = (bound_of(sequences, 10, dropped=share) for share in (0.0, 0.01))
    assert short.noise > exact.noise
    assert short.l1 > exact.l1 + 0.02 * 0.99


def test_steps_beyond_the_last_whole_epoch_do_not_count():
    long, short = (bound_of(Sequences.of(0.1, 0.5, 0.9, eps=0.1, steps=n), 5) for n in (14, 10))
    assert long == short


@pytest.mark.parametrize(
    ("sequences", "batches", "told"),
    [
        (Sequences.of(0.1, 0.5, 0.9, eps=0.1, steps=9), 10, "less than one epoch"),
        (Sequences.of(0.1, 0.5, 0.9, eps=[0.1, 0.01], steps=2), 1, r"e_t >= sqrt.* fails at t = 2"),
        (Sequences.of([0.1, -1], 0.5, 0.9, eps=0.1), 1, "alpha_t >= 0, which fails at t = 2"),
        (Sequences.of(0.1, 0.5, 0.9, steps=9), 3, "may divide by 0"),
        (Sequences.of(0.1, 0.5, 0.5, eps=0.1, steps=4000), 4000, "too long"),
        (Sequences.of(0.1, 0.5, 0.2, eps=0.1, steps=8000), 8, "beyond doubles"),
        (Sequences.of(0.1, 0.5, 0.9, eps=0.1, decay=0.1, steps=4), 2, "bound on the weights"),
        (Sequences.of(0.0, 0.5, 0.9, eps=0.1, steps=4), 2, "every learning rate"),
    ],
)
def test_what_it_does_not_cover_is_told(sequences, batches, told):
    with pytest.raises(TheoremError, match=told):
        bound_of(sequences, batches)


def method(alpha, theta, beta="0.9"):
    return Method(alpha=alpha, beta=beta, theta=theta)


class TestForEver:
    """RR-infinity: certified on the power family, open where its proof is."""

    def found(self, x, **known):
        return certify_algorithm(x, setting=Setting(batches_per_epoch=100, **known))

    @pytest.mark.parametrize(
        ("alpha", "theta", "rate"),
        [
            ("0.1/sqrt(t)", "1 - 1/(t + 1)", "T^(-1/2) log T"),
            ("0.1/t^0.25", "1 - 1/(t + 1)^0.9", "T^(-1/4)"),
            ("0.1/t^0.1", "1 - 1/(t + 1)^0.5", "T^(-1/10)"),
            ("0.1/t", "1 - 1/(t + 1)", "(log T)^(-1)"),
            ("0.1/t^0.5", "1 - 1/(t + 1)^1.2", "T^(-3/10)"),
            ("0.001*t if t < 100 else 0.1/sqrt(t - 50)", "1 - 1/(t + 1)", "T^(-1/2) log T"),
        ],
    )
    def test_the_power_family(self, alpha, theta, rate):
        one = self.found(method(alpha, theta))["RR"]
        assert one.verdict is Verdict.CERTIFIED
        assert str(one.rate) == rate

    @pytest.mark.parametrize(
        ("alpha", "theta", "beta", "told"),
        [
            ("0.1/sqrt(t)", "0.999", "0.9", "needs it to approach 1"),
            ("0.1/t^2", "1 - 1/(t + 1)", "0.9", "sum of alpha_t is finite"),
        ],
    )
    def test_what_is_not_met(self, alpha, theta, beta, told):
        one = self.found(method(alpha, theta, beta))["RR"]
        assert one.verdict is Verdict.NOT_CERTIFIED
        assert told in one.first_failing.reason

    @pytest.mark.parametrize(
        ("alpha", "theta", "beta", "told"),
        [
            ("0.1*(1 + 0.5*cos(t))/sqrt(t)", "1 - 1/(t + 1)", "0.9", "(V), is open"),
            ("0.1/(t*log(t + 1))", "1 - 0.1/(t*log(t + 1))^2", "0", "no proof here"),
            ("0.1/sqrt(t)", "1 - 1/(t + 1)", "0.9 - 0.1/t", "beta_t is not constant"),
        ],
    )
    def test_what_is_open(self, alpha, theta, beta, told):
        one = self.found(method(alpha, theta, beta))["RR"]
        assert one.verdict is Verdict.UNDECIDED
        assert told in one.first_failing.reason

    def test_how_the_data_are_drawn_decides_who_is_asked(self):
        x = method("0.1/sqrt(t)", "1 - 1/(t + 1)")
        assert self.found(x, sampling="shuffled").theorem == "RR"
        beside = self.found(x)
        assert beside.theorem != "RR"
        assert beside["RR"].verdict is Verdict.CERTIFIED
        for how in ("replacement", "streaming"):
            assert self.found(x, sampling=how)["RR"].outside[0].kind == "drawn"
        alone = certify_algorithm(x, setting=Setting(sampling="shuffled"))
        assert alone.verdict is Verdict.UNDECIDED
        assert alone["RR"].outside[0].about == "batches_per_epoch"

    @pytest.mark.parametrize(
        ("facts", "told", "theorem"),
        [
            ({"sampling": "replacement"}, "", "W"),
            ({"sampling": "streaming", "batches_per_epoch": 10}, "", "W"),
            ({"sampling": "shuffled", "batches_per_epoch": 1000}, SEEN_ONCE, "W"),
            ({"sampling": "shuffled", "batches_per_epoch": 999}, "every epoch uses each batch once", "RR"),
            ({"batches_per_epoch": 999}, WITH_REPLACEMENT, "W"),
            ({"batches_per_epoch": 1000}, "", "W"),
            ({"sampling": "shuffled"}, "", None),
        ],
    )
    def test_which_case_a_run_is(self, facts, told, theorem):
        """One pass, several, with replacement, streaming: of the run and of its bound."""
        run, covered = certify_algorithm(methods.adam(), 1000, setting=Setting(**facts)).horizon, theorem == "W"
        assert (told in run.needs) if told else not run.needs
        assert (None if run.outside else run.theorem) == theorem
        four = {"smoothness": 1, "gradient_bound": 1, "dimension": 1, "gap": 1, "gradient_sup": 1}
        x = method("0.1/sqrt(t)", "1 - 1/(t + 1)")
        found = bound_algorithm(x, Setting(**facts, **four), 1000, theorem="W" if covered else None)
        assert (found.theorem == "W") is covered
        assert {SEEN_ONCE, WITH_REPLACEMENT}.intersection(found.needs) == ({told} if told and covered else set())

    def test_what_it_takes_for_granted_is_told(self):
        needs = self.found(method("0.1/sqrt(t)", "1 - 1/(t + 1)"), sampling="shuffled")["RR"].needs
        assert "every epoch uses each batch once" in needs
        assert "an epoch has 100 batches" in needs

    def test_the_answer_for_a_run_is_the_bound(self):
        """With a problem of seven weights it is the bound on the l1 norm; the numbers are the same without."""
        steps, L, gap = 20_000, 2e-4, 3e-3
        four = {"smoothness": L, "gradient_bound": (1e-3,) * 7, "dimension": 7, "gap": gap}
        known = Setting(**four, batches_per_epoch=50, sampling="shuffled")
        alone = Setting(batches_per_epoch=50, sampling="shuffled")
        x = methods.adam()
        problem = problem_of(L, [1e-3] * 7, 7, gap, gradient_sup=1e-3)
        bound = shuffled_bound(Sequences.of_algorithm(as_algorithm(x), steps), problem, 50)
        run = certify_algorithm(x, steps, setting=known).horizon
        assert math.sqrt(run.relative) * 7e-3 == pytest.approx(bound.l1, rel=1e-9)
        assert run.theorem == "RR"
        assert "an epoch has 50 batches" in run.needs
        assert "gradients at the starts of epochs" in run.text
        reference_one = certify_algorithm(x, steps, setting=alone).horizon
        assert (reference_one.noise, reference_one.gap) == (run.noise, run.gap)
        most = run.largest_smoothness
        edge = replace(run, problem_curvature=most * run.dimension / run.gradient_sum)
        assert edge.relative == pytest.approx(1, rel=1e-6)
        edge = replace(run, problem_gap=run.largest_gap / run.gradient_sum)
        assert edge.relative == pytest.approx(1, rel=1e-6)

    def test_an_epoch_that_is_too_long_has_no_useful_guarantee(self):
        run = certify_algorithm(methods.adam(), 100_000, setting=Setting(batches_per_epoch=5000, sampling="shuffled"))
        assert not run.horizon.useful
        assert run.horizon.largest_smoothness == 0
        assert run.horizon.floor > 9

    def test_groups_have_no_bound_together(self):
        whole = methods.adamw(weight_decay=0)
        whole = replace(whole, others=(replace(whole, method=replace(whole.method, alpha=whole.method.alpha * 2)),))
        run = certify_algorithm(whole, 1000, setting=Setting(batches_per_epoch=10, sampling="shuffled"))
        assert run.horizon.outside

    def test_the_bound_says_what_it_takes(self):
        known = Setting(
            smoothness=1,
            gradient_bound=1,
            gradient_sup=1,
            dimension=1,
            gap=1,
            batches_per_epoch=10,
            sampling="shuffled",
        )
        found = bound_algorithm(methods.adam(), known, 50_000)
        assert found.theorem == "RR"
        assert found.informative
        assert {"every epoch uses each batch once", "an epoch has 10 batches"} <= set(found.needs)
        assert "no entry of a gradient exceeds 1" in found.needs


@pytest.mark.parametrize(
    ("alpha", "holds"),
    [
        ("0.3", True),
        ("0.3/sqrt(t)", True),
        ("0.1*log(t + 1)/sqrt(t)", True),
        ("0.1/(1 + 0.01*t)", True),
        ("0.1*0.99^t", False),
        ("0.1*t/(t + 1)", False),
        ("0.1/sqrt(t)*(1 + 0.5*periodic(t/10, 10))", False),
    ],
)
def test_a_rate_that_falls_evenly(alpha, holds):
    """(V) by its form; where it holds, t (alpha_t - alpha_(t+1)) <= C alpha_t is looked at, far out."""
    alpha = parse(alpha)
    found = decide.regular(alpha)
    assert found.holds is holds
    assert found.status is not decide.Status.FAILS
    if holds:
        for t in (100, 10_000, 10**6):
            assert 0 <= t * (alpha(t) - alpha(t + 1)) <= 2 * alpha(t)


class TestCounterexample:
    @pytest.mark.parametrize(
        ("batches", "theta", "most"),
        [(100, 0.999, 1.02518792), (390, 0.999, 1.10398278), (5000, 0.999, 4.47619724), (3, 0.9, 1.04295321)],
    )
    def test_how_large_the_slope_may_be(self, batches, theta, most):
        found = counterexample(batches, theta)
        assert 2 * found.large / (batches - 1) - 1 == pytest.approx(most, rel=1e-8)

    def test_twice_n_needs_a_long_epoch(self):
        for theta, batches in ((0.99, 252), (0.999, 2514), (0.9999, 25130)):
            assert epoch_drift(2 * batches, batches, theta) > 0 > epoch_drift(2 * batches - 2, batches - 1, theta)

    @pytest.mark.parametrize("batches", [3, 4, 10, 100, 1000])
    @pytest.mark.parametrize("theta", ["1e-9", "0.5", "0.9", "0.999", "0.9999999"])
    def test_it_grows_at_forty_digits(self, batches, theta):
        """From the periodic v, written out: the drift of the float's C is positive, and so is f'."""
        found = counterexample(batches, float(theta))
        with mpmath.workdps(40):
            kept, C = mpmath.mpf(float(theta)), mpmath.mpf(found.large)
            v = (kept * (1 - kept ** (batches - 1)) + (1 - kept) * C**2) / (1 - kept**batches)
            drift = -C / mpmath.sqrt(v)
            for _ in range(batches - 1):
                v = kept * v + 1 - kept
                drift += 1 / mpmath.sqrt(v)
            assert drift > 0
            assert float(drift) == pytest.approx(found.drift, rel=1e-4)
        assert found.slope > 0

    @pytest.mark.parametrize(("batches", "theta"), [(3, 0.9), (3, 0.999), (20, 0.99), (50, 0.95)])
    @pytest.mark.parametrize("rate", ["0.01", "1 / sqrt(t)"])
    def test_it_diverges(self, batches, theta, rate):
        found = counterexample(batches, theta)
        epochs = 400 + int(10 / (1 - theta)) // batches
        path = generic_adam(
            methods.rmsprop(lr=parse(rate), theta=theta), found.gradient, 30.0, batches * epochs, epsilon=1.0
        ).points
        late = path[-1 - batches * 200 :: batches]
        assert (np.diff(late) > 0).all()
        assert path.min() > 1, "outside of [-1, 1] all the way: the gradient of f never falls"
        if rate == "0.01":
            assert np.diff(late)[-1] == pytest.approx(0.01 * found.drift, rel=1e-3)

    def test_what_it_asks(self):
        with pytest.raises(TheoremError, match="n >= 3"):
            counterexample(2, 0.9)


class TestDecay:
    """AdamW on shuffled epochs: decay is paid for by the bound on the weights, and fades in the long run."""

    KNOWN = {"batches_per_epoch": 100, "sampling": "shuffled"}  # noqa: RUF012  (never changed)

    def test_a_run_has_a_guarantee_while_its_weights_stay_bounded(self):
        x, bare = methods.adamw(weight_decay=0.01), methods.adamw(weight_decay=0)
        run = certify_algorithm(x, 100_000, setting=Setting(weights_bound=1, **self.KNOWN)).horizon
        plain = certify_algorithm(bare, 100_000, setting=Setting(**self.KNOWN)).horizon
        assert (run.theorem, run.useful) == ("RR", True)
        assert run.decay == pytest.approx(0.01, rel=0.05)  # lambda X
        assert run.noise == pytest.approx(plain.noise, rel=1e-12)
        assert run.drift > plain.drift
        assert run.moved > plain.moved
        assert "every weight stays within 1" in run.needs
        unbounded = certify_algorithm(x, 100_000, setting=Setting(**self.KNOWN)).horizon
        assert (unbounded.decay, unbounded.useful) == (None, False)

    @pytest.mark.parametrize(("decay", "verdict"), [("0.01/t", "certified"), ("0.01/sqrt(t)", "not certified")])
    def test_in_the_long_run_the_mean_decay_has_to_vanish(self, decay, verdict):
        x = replace(as_algorithm(method("0.1/sqrt(t)", "1 - 1/(t + 1)")), decay=parse(decay))
        found = certify_algorithm(x, setting=Setting(weights_bound=1, **self.KNOWN))["RR"]
        assert found.verdict == verdict
        open_ = certify_algorithm(x, setting=Setting(**self.KNOWN))["RR"]
        assert open_.verdict is not Verdict.CERTIFIED

    def test_a_decay_without_a_step_has_no_bound(self):
        given = Sequences.of([0.1, 0.0, 0.1, 0.1], 0.5, 0.9, eps=0.1, decay=0.01)
        assert math.isinf(bound_of(given, 2, weights_bound=1.0).value)
