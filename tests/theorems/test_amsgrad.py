"""Theorems M, M_E and O: check values, limits between them, and runs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.theorems.amsgrad import RunningMaximum, amsgrad_bound, delayed_bound
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.sweep import Coordinates, Sweep
from generic_adam.theorems.theorem import Verdict
from generic_adam.theorems.weighted import concluded, weighted_bound
from tests.theorems import reference
from tests.theorems.problems import problem_of

close = pytest.approx
TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = problem_of(smoothness=1, gradient_bound=1, dimension=1, gap=1, gradient_sup=1)


def torch_amsgrad(steps=1000):
    t = np.arange(1.0, steps + 1)
    root = np.sqrt(1 - 0.999**t)
    return Sequences.of(1e-3 / np.sqrt(t) * root / (1 - 0.9**t), 0.9, 0.999, eps=1e-8 * root, running_maximum=True)


TEN = problem_of(smoothness=1, gradient_bound=[1.0] * 10, dimension=10, gap=1, gradient_sup=1)


def test_eps_under_the_root_makes_the_first_divisor_smaller():
    """D_0 = sqrt(v_0 + e^2), below sqrt(v_0) + e: the jump G^2 max Q / D_0 is larger."""
    certain = problem_of(1, 1, 1, 1, gradient_sup=1)
    jumps = [
        amsgrad_bound(Sequences.of(0.1, 0.5, 0.9, eps=0.3, initial_v=0.16, steps=50, under_root=under), certain)
        for under in (False, True)
    ]
    assert jumps[0].jump / jumps[1].jump == pytest.approx(0.5 / 0.7, rel=1e-12)
    with pytest.raises(TheoremError, match="powers below"):
        weighted_bound(Sequences.of(0.1, 0.5, 0.9, eps=0.3, steps=50, running_maximum=True, power=0.25), certain)
    padam = Algorithm(Method("0.1/sqrt(t)", 0.9, 0.99), eps=0.1, running_maximum=True, power=0.25)
    assert RunningMaximum().examine(padam).covers
    assert not RunningMaximum().examine(replace(padam, eps_under_root=True)).covers


def test_tiny():
    bound = amsgrad_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1), TINY)
    assert (bound.jump, bound.drift, bound.weight) == close((1.625, 0.128411209981, 0.16875), rel=1e-9)
    assert (bound.value, bound.l2) == close((16.316510874, 17.9481619614), rel=1e-9)


def test_torch_amsgrad():
    bound = amsgrad_bound(torch_amsgrad(), TEN)
    assert (bound.jump, bound.value) == close((30063856.513, 1067437122.73), rel=1e-9)
    without = weighted_bound(torch_amsgrad(), TEN)
    assert without.theorem == "M_E"
    # Before: 421.9 at s = 0.5, zeta = 0.05, with a momentum that was paid by S, and twice.
    assert without.value == close(177.5258, rel=1e-5)


def test_the_momentum_of_m_e_is_paid_once():
    """D_t/D_(t-1) telescopes, and no gradient carries it beyond its bound: a run's length does not matter to it."""
    costs = []
    for steps in (1_000, 100_000):
        sweep = Sweep(Sequences.of(1e-3, 0.9, 0.999, eps=1e-8, steps=steps, running_maximum=True))
        part = Coordinates(1, 1.0, 1.0, 1.0, certain=1.0)
        cost, _ = sweep.cost((part,), 1.0, lambda _: {})
        most = max(float(piece.second.max()) for piece in sweep.pieces())
        assert cost.momentum == close(most * math.log((1 + 1e-8) / 1e-8), rel=1e-9)
        costs.append(cost.momentum)
    assert costs[1] == close(costs[0], rel=1e-3)


@pytest.mark.parametrize("under_root", [False, True])
def test_the_growth_of_a_running_maximum_is_its_logarithm(under_root):
    eps = np.array([0.1, 0.1, 0.4, 5.0])
    sweep = Sweep(Sequences.of(0.1, 0.5, 0.9, eps=eps, initial_v=0.04, running_maximum=True, under_root=under_root))
    part = Coordinates(1, 1.0, 1.0, 1.0, certain=3.0)
    (piece,) = sweep.pieces()
    sizes = [math.hypot(3.0, e) if under_root else 3.0 + e for e in eps]
    first = math.hypot(0.2, 0.1) if under_root else 0.2 + 0.1
    expected = [2 * math.log(size / first) for size in sizes]
    assert np.cumsum(sweep.divisor_increments(piece, part)) == close(expected, rel=1e-12)


def test_padam_at_one_half_is_amsgrad():
    values = [
        amsgrad_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1, power=p), TINY).value for p in (0.5, 0.5 - 1e-9)
    ]
    assert values[0] == close(values[1], rel=1e-6)


def test_what_is_missing_is_said():
    sequences = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1)
    with pytest.raises(TheoremError, match="gradient_sup"):
        amsgrad_bound(sequences, problem_of(1, 1, 1, 1))
    with pytest.raises(TheoremError, match="never falls"):
        amsgrad_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=np.array([0.1, 0.2, 0.1])), TINY)
    with pytest.raises(TheoremError, match="constant"):
        amsgrad_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=np.array([0.1, 0.2, 0.3]), power=0.25), TINY)
    with pytest.raises(TheoremError, match="one of them positive"):
        amsgrad_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9), TINY)
    with pytest.raises(TheoremError, match="fails at t = 2"):
        weighted_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=np.array([0.1, 0.09, 0.3]), running_maximum=True), TINY)


def test_padam_asks_for_a_constant_eps():
    corrected = Algorithm(
        Method("1/sqrt(t)", 0.9, 0.999), eps="0.1*sqrt(1 - 0.999^t)", running_maximum=True, initial_v=0
    )
    assert RunningMaximum().examine(corrected).verdict is Verdict.CERTIFIED
    padam = replace(corrected, power=Fraction(1, 4))
    assert RunningMaximum().examine(padam).verdict is Verdict.UNDECIDED
    assert RunningMaximum().examine(replace(padam, eps=0.1)).verdict is Verdict.CERTIFIED


def test_without_momentum_the_running_maximum_costs_what_a_share_of_the_descent_does():
    """With beta = 0 nothing is inherited: M_E is E, with Young's inequality in place of Lemma N."""
    plain, largest = (Sequences.of(TINY_ALPHA, 0.0, 0.9, eps=0.1, running_maximum=on) for on in (False, True))
    sweep = Sweep(plain)
    shared = concluded("E", sweep, TINY, TINY.parts, by_share=True)
    assert weighted_bound(largest, TINY).value == close(shared.value)


class TestMeasured:
    """|grad f|^2 of runs, averaged by the weights, against the bounds: sum of x^2/(1+x^2), noise +-0.5."""

    STEPS, RUNS = 400, 200
    # |grad| <= 3 sqrt(3)/8, plus the noise.
    PROBLEM = problem_of(
        smoothness=2,
        gradient_bound=[math.sqrt(27 / 64 + 1 / 4)] * 3,
        dimension=3,
        gap=3 * 4 / 5,
        gradient_sup=3 * math.sqrt(3) / 8 + 0.5,
    )

    def measured(self, alpha, beta, theta, divisor, weights):
        rng = np.random.default_rng(7)
        x, m, v = np.full((self.RUNS, 3), 2.0), 0.0, np.zeros((self.RUNS, 3))
        largest = v
        total = 0.0
        for t in range(self.STEPS):
            slope = 2 * x / (1 + x * x) ** 2
            total += weights[t] * (slope**2).sum(axis=1).mean()
            g = slope + rng.choice([-0.5, 0.5], size=x.shape)
            m, v = beta * m + (1 - beta) * g, theta[t] * v + (1 - theta[t]) * g * g
            largest = np.maximum(largest, v)
            x = x - alpha[t] * m / divisor(largest, v)
        return total / weights.sum()

    def weights(self, alpha, beta):
        total, result = 0.0, np.empty(len(alpha))
        for i in reversed(range(len(alpha))):
            total = alpha[i] + beta * total
            result[i] = (1 - beta) * total
        return result

    @pytest.mark.parametrize(("beta", "theta", "lr"), [(0.9, 0.99, 0.1), (0.0, 0.9, 0.3), (0.5, 0.5, 0.05)])
    def test_amsgrad(self, beta, theta, lr):
        alpha = lr / np.sqrt(np.arange(1.0, self.STEPS + 1))
        sequences = Sequences.of(alpha, beta, theta, eps=0.1, running_maximum=True)
        found = self.measured(
            alpha, beta, np.full(self.STEPS, theta), lambda v, _: np.sqrt(v) + 0.1, self.weights(alpha, beta)
        )
        assert 0 < found <= amsgrad_bound(sequences, self.PROBLEM).l2
        assert found <= weighted_bound(sequences, self.PROBLEM).l2

    def test_padam(self):
        alpha = 0.1 / np.sqrt(np.arange(1.0, self.STEPS + 1))
        sequences = Sequences.of(alpha, 0.5, 0.9, eps=0.1, power=1 / 8)
        found = self.measured(
            alpha, 0.5, np.full(self.STEPS, 0.9), lambda v, _: v ** (1 / 8) + 0.1, self.weights(alpha, 0.5)
        )
        assert 0 < found <= amsgrad_bound(sequences, self.PROBLEM).l2

    def test_a_divisor_that_never_falls(self):
        """M with alpha inside: D_t/alpha_t never falls, the steps are 1 and the weights do not contain alpha_t."""
        t, beta, eps = np.arange(1.0, self.STEPS + 1), np.full(self.STEPS, 0.5), 0.05
        alpha, theta = 0.1 / np.sqrt(t), 1 - 1 / np.maximum(t, 2)
        ones = self.weights(np.ones(self.STEPS), 0.5)
        found = self.measured(alpha, 0.5, theta, lambda _, v: np.sqrt(v) + eps, ones)
        L, G = self.PROBLEM.smoothness, self.PROBLEM.sup_parts[0].gradient
        Q, R = np.array(reference.backward(np.ones(self.STEPS), beta)), np.array(reference.forward(1 - beta, beta))
        H = np.array(reference.backward(R * L * (Q - 0.5), beta))
        A = reference.majorant((1 - beta) * alpha**2 * H / (1 - theta))
        logarithm = reference.growth(theta, theta[0] * G**2 / eps**2, math.log)
        psi = self.PROBLEM.gap + 3 * (Q.max() * G**2 * alpha[0] / eps + np.dot(A, logarithm))
        assert 0 < found <= (G + eps) / alpha[-1] * psi / ones.sum()


class TestDelayed:
    def test_check_values(self):
        bound = delayed_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1), TINY)
        assert (bound.drift, bound.value) == close((0.798828125, 10.6597222222), rel=1e-9)
        t = np.arange(1.0, 1001)
        ten = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1)
        values = [
            delayed_bound(Sequences.of(1e-3 / np.sqrt(t), 0.9, 0.999, eps=eps), ten).value for eps in (1e-6, 1e-2)
        ]
        assert values == close([688621180.322, 24.1935203466], rel=1e-9)
        with pytest.raises(TheoremError, match="one of them positive"):
            delayed_bound(Sequences.of(TINY_ALPHA, 0.5, 0.9), TINY)

    def test_measured_adopt(self):
        steps, eps, beta, theta = 400, 0.1, 0.9, 0.5
        t = np.arange(1.0, steps + 1)
        alpha = 0.05 / np.sqrt(t)
        rng = np.random.default_rng(0)
        x = np.full((200, 1), 2.0)
        v = (2 * x / (1 + x * x) ** 2 + rng.choice([-0.5, 0.5], size=x.shape)) ** 2
        m, total = 0.0, 0.0
        Q, weights = 0.0, np.empty(steps)
        for i in reversed(range(steps)):
            Q = alpha[i] + beta * Q
            weights[i] = (1 - beta) * Q
        for i in range(steps):
            exact, divisor = 2 * x / (1 + x * x) ** 2, np.maximum(np.sqrt(v), eps)
            total += weights[i] * (exact**2 / divisor).mean()
            g = exact + rng.choice([-0.5, 0.5], size=x.shape)
            m = beta * m + (1 - beta) * g / divisor
            v = theta * v + (1 - theta) * g * g
            x = x - alpha[i] * m
        problem = problem_of(smoothness=2, gradient_bound=math.sqrt(27 / 64 + 0.25), dimension=1, gap=0.8)
        assert 0 < total / weights.sum() <= delayed_bound(Sequences.of(alpha, beta, theta, eps=eps), problem).value


def amsgrad(alpha, theta):
    return Algorithm(Method(alpha, 0.9, theta), initial_v=0, eps=1, running_maximum=True)


@pytest.mark.parametrize(
    ("alpha", "theta", "rate"),
    [
        ("0.1/sqrt(t)", "1 - 1/(t+1)", "T^(-1/2) log T"),
        ("0.1/sqrt(t)", "1 - 1/t", "T^(-1/2) log T"),  # theta_1 = 0 is nothing beside an eps
        ("0.1/sqrt(t)", "0.9 - 0.1/t", "T^(-1/2) log T"),
        ("0.1/t", "1 - 1/(t+1)", "(log T)^(-1)"),
        ("0.1/t^0.25", "1 - 1/(t+1)", "T^(-1/4) log T"),  # chi_t grows
        ("0.1/t^0.5", "1 - 1/(t+1)^1.2", "T^(-3/10)"),
    ],
)
def test_a_theta_that_moves_is_certified_at_the_rate_of_the_bound(alpha, theta, rate):
    found = RunningMaximum().examine(amsgrad(alpha, theta))
    assert (found.verdict, str(found.rate)) == (Verdict.CERTIFIED, rate)
    sizes = [amsgrad_bound(Sequences.of_algorithm(amsgrad(alpha, theta), steps), TINY) for steps in (10**4, 10**6)]
    falls = math.log(sizes[1].drift * sizes[0].weight / (sizes[0].drift * sizes[1].weight))
    expected = float(found.rate.power) * math.log(100) + float(found.rate.log) * math.log(6 / 4)
    assert falls == close(expected, abs=0.2)


@pytest.mark.parametrize(
    ("alpha", "theta", "verdict"),
    [
        (0.1, "1 - 1/(t+1)", Verdict.NOT_CERTIFIED),
        ("0.1/t^0.1", "1 - 1/(t+1)^1.5", Verdict.NOT_CERTIFIED),  # chi_T^2 grows faster than the sum of alpha_t
        ("0.1/sqrt(t)", "0.5/t", Verdict.UNDECIDED),  # theta_t -> 0: the logarithm grows without bound a step
    ],
)
def test_a_theta_that_moves_too_far_is_not(alpha, theta, verdict):
    assert RunningMaximum().examine(amsgrad(alpha, theta)).verdict is verdict
