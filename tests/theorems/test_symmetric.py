"""Theorem Y: its lemma in closed form, its check values, forty digits, exact expectations, what it refuses."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam.errors import TheoremError
from generic_adam.methods import Method
from generic_adam.methods.algorithm import Algorithm, Clipping, HeavyBall
from generic_adam.setting import Setting
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.clipping import clipped_parts, symmetric_factor
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.symmetric import GIVEN_THE_OTHERS, Symmetric
from generic_adam.theorems.theorem import Reason
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems import reference
from tests.theorems.problems import problem_of

TINY_ALPHA = np.array([0.1, 0.1, 0.05])
TINY = problem_of(smoothness=1, gradient_bound=[1.0], dimension=1, gap=1, weights_bound=1)
TEN = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, weights_bound=1)
T = np.arange(1.0, 1001.0)
ROOT = np.sqrt(-np.expm1(T * math.log(0.999)))
TORCH = (1e-3 * ROOT / -np.expm1(T * math.log(0.9)), 0.9, 0.999)
NADAM = 0.9 * (1 - 0.5 * 0.96 ** (0.004 * np.arange(1.0, 1002.0)))
PRODUCT = np.cumprod(NADAM)
AHEAD = {
    "momentum_weight": NADAM[1:] / (1 - PRODUCT[1:]),
    "gradient_weight": (1 - NADAM[:-1]) / (1 - PRODUCT[:-1]),
}
BALL = HeavyBall(Fraction(9, 10))
HALF, INSIDE = HeavyBall(Fraction(1, 2)), HeavyBall(Fraction(1, 2), True)


def sharp(sequences, problem=TINY):
    """The same with any noise."""
    return weighted_bound(sequences, problem)


def symmetric_bound(sequences, problem, **options):
    return weighted_bound(sequences, problem, symmetric=True, **options)


@pytest.mark.parametrize(
    ("sequences", "problem", "any_noise", "symmetric"),
    [
        (Sequences.of(TINY_ALPHA, 0.5, 0.9, initial_v=0.01), TINY, 9.73618754893, 7.48801377909),
        (Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1, under_root=True), TINY, 9.625023647333, 7.440672287131),
        (Sequences.of(TINY_ALPHA, 0.5, np.array([0, 0.9, 0.9]), eps=0.1), TINY, 9.463172341114, 6.948981117568),
        (Sequences.of(TINY_ALPHA, 0, 0.9, eps=0.1, heavy_ball=HALF), TINY, 7.160141170345, 4.48487359977),
        (Sequences.of(TINY_ALPHA, 0, 0.9, eps=0.1, heavy_ball=INSIDE), TINY, 7.108565602555, 4.472028446780),
        (Sequences.of(*TORCH, eps=1e-8 * ROOT), TEN, 34.65792075514, 24.43892143684),
        (Sequences.of(*TORCH, eps=1e-7), TEN, 25.62173810651, 18.20567073813),
        (Sequences.of(2e-3 * ROOT, *TORCH[1:], eps=1e-8 * ROOT, **AHEAD), TEN, 25.2169247948, 14.98107084415),
        (Sequences.of(0.01, 0, 0.99, eps=1e-8, steps=1000), TEN, 2.873088693388, 0.3228950937019),
        (Sequences.of(0.01, 0, 0.99, eps=1e-8, steps=1000, heavy_ball=BALL), TEN, 45.13490862056, 42.5667765475),
    ],
)
def test_check_values(sequences, problem, any_noise, symmetric):
    assert sharp(sequences, problem).value == pytest.approx(any_noise, rel=1e-11)
    assert symmetric_bound(sequences, problem).value == pytest.approx(symmetric, rel=1e-11)


def test_eps_that_is_large_against_the_gradients_is_paid_step_by_step():
    """Without it E's tiny case is 10.42906822102 (7.739524489457), and AdamW's decay costs more as well."""
    x = Sequences.of(TINY_ALPHA, 0.5, 0.9, eps=0.1)
    values = [10.42906822102, 7.739524489457]
    for found, listed, is_symmetric in zip((sharp(x), symmetric_bound(x, TINY)), values, (False, True), strict=True):
        plain = by_hand(TINY_ALPHA, [0.5] * 3, [0.9] * 3, TINY, e=[0.1] * 3, symmetric=is_symmetric)
        apart = (1 + plain["choices"][0]) / plain["Pi"]
        assert apart == pytest.approx(listed, rel=1e-11)
        assert found.value == pytest.approx(plain["value"], rel=1e-11)
        assert found.value < apart
    # G = 0.003 beside e = 1: 0.19 of G where the growth of eps counts in full, a thousandth with its share.
    long = Sequences.of(1e-3, 0.9, 0.999, eps=1.0, steps=3000)
    small = problem_of(smoothness=1e-9, gradient_bound=[0.003], dimension=1, gap=0)
    assert sharp(long, small).value / 0.003 < 1.1e-3


def by_hand(alpha, beta, theta, problem, *, number=float, **form):
    tools = {"sqrt": math.sqrt, "log": math.log} if number is float else {"sqrt": mpmath.sqrt, "log": mpmath.log}
    parts = [(part.count, number(part.gradient), number(part.second_moment)) for part in problem.parts]
    rows = [[number(one) for one in row] for row in (alpha, beta, theta)]
    form = {name: [number(one) for one in row] if isinstance(row, list) else row for name, row in form.items()}
    return reference.sharp(*rows, number(problem.smoothness), number(problem.gap), parts, **form, **tools)


def draw(seed, steps):
    """Random sequences: rates with zeros, any beta, theta to 1 - 1e-5, eps in step or growing by leaps, Nesterov."""
    rng = np.random.default_rng(seed)
    alpha = rng.random(steps) * 10.0 ** rng.integers(-3, 1) * (rng.random(steps) < 0.8)
    alpha[rng.integers(steps)] = 0.3
    beta = rng.random(steps) * rng.choice([0.0, 0.6, 0.99])
    theta = 1 - 10.0 ** rng.uniform(-5, -0.05, steps)
    form = {"v_0": float(rng.choice([0.0, 1e-6, 1.0])), "root": bool(rng.random() < 0.4)}
    if form["v_0"] == 0 or rng.random() < 0.6:
        e = [float(10.0 ** rng.integers(-6, 2))]
        for t in range(1, steps):
            e.append(e[-1] * math.sqrt(theta[t]) * (1 + rng.choice([1e-9, 0.1, 2.0])))
        form["e"] = e
        theta[0] *= rng.random() < 0.7
    if rng.random() < 0.3:
        form |= {"a": rng.random(steps).tolist(), "b": rng.random(steps).tolist()}
    elif rng.random() < 0.3:
        form |= {"nu": (0.1 * alpha * (rng.random(steps) < 0.7)).tolist(), "box": 1.5}
    return alpha, beta, theta, form


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans(), st.booleans())
@settings(max_examples=150)
def test_the_sweep_is_the_plain_reference_at_forty_digits(seed, steps, is_symmetric, apart):
    alpha, beta, theta, form = draw(seed, steps)
    sizes = [0.5, 0.5, 3.0] if apart else 2.0
    problem = problem_of(smoothness=0.7, gradient_bound=sizes, dimension=3, gap=0.4, weights_bound=1.5)
    names = {"v_0": "initial_v", "root": "under_root", "e": "eps", "a": "momentum_weight", "b": "gradient_weight"}
    names["nu"] = "decay"
    given_form = {
        names[name]: np.array(one) if isinstance(one, list) else one for name, one in form.items() if name in names
    }
    x = Sequences.of(alpha, beta, theta, **given_form, steps=steps)
    found = symmetric_bound(x, problem) if is_symmetric else sharp(x, problem)
    with mpmath.workdps(40):
        exact = by_hand(
            alpha.tolist(), beta.tolist(), theta.tolist(), problem, number=mpmath.mpf, symmetric=is_symmetric, **form
        )
        assert found.value == pytest.approx(float(exact["value"]), rel=1e-10)
        assert found.s1 == pytest.approx(float(exact["s1"]), rel=1e-10)
    assert found.weight == pytest.approx(float(exact["Pi"]), rel=1e-11)


class TestLemmaY1:
    """E[g phi(g^2)] of a mixture of uniforms about mu in closed form: r dr/(r + e)/q with r^2 = a + q g^2."""

    @staticmethod
    def mean(mu, sizes, chances, a, q, e):
        def primitive(g):
            r = mpmath.sqrt(a + q * g**2)
            return (r - e * mpmath.log(r + e)) / q

        found = mpmath.mpf(0)
        for size, chance in zip(sizes, chances, strict=True):
            if size == 0:
                found += chance * mu / (mpmath.sqrt(a + q * mu**2) + e)
            else:
                found += chance * (primitive(mu + size) - primitive(mu - size)) / (2 * size)
        return found

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=200)
    def test_the_step_goes_with_the_mean(self, seed):
        rng = np.random.default_rng(seed)
        with mpmath.workdps(60):
            sizes = [mpmath.mpf(float(x)) for x in 10.0 ** rng.uniform(-3, 3, 4) * (rng.random(4) < 0.8)]
            chances = [mpmath.mpf(float(x)) for x in rng.dirichlet([0.4] * 4)]
            chances = [one / sum(chances) for one in chances]
            mu, q = mpmath.mpf(float(10.0 ** rng.uniform(-3, 3))), mpmath.mpf(float(10.0 ** rng.uniform(-5, 0)))
            a = mpmath.mpf(float(10.0 ** rng.uniform(-8, 4) * (rng.random() < 0.8)))
            e = mpmath.mpf(float(10.0 ** rng.uniform(-6, 2))) if a == 0 or rng.random() < 0.5 else mpmath.mpf(0)
            variance = sum(c * r**2 for c, r in zip(chances, sizes, strict=True)) / 3
            left = self.mean(mu, sizes, chances, a, q, e)
            right = mu / (mpmath.sqrt(a + q * (mu**2 + 3 * variance)) + e)
            assert left >= right * (1 - mpmath.mpf(10) ** -40)
            assert self.mean(-mu, sizes, chances, a, q, e) == -left

    def test_it_is_sharp(self):
        """One uniform law, v far above the noise: the two sides meet."""
        with mpmath.workdps(60):
            left = self.mean(mpmath.mpf(1), [mpmath.mpf(1)], [mpmath.mpf(1)], mpmath.mpf(10) ** 8, mpmath.mpf(1), 0)
            assert left * mpmath.sqrt(mpmath.mpf(10) ** 8 + 2) == pytest.approx(1, abs=1e-14)

    def test_a_law_with_two_peaks_is_no_such_law(self):
        """g = mu +- R with R > mu, nothing in v: the step does not move at all."""
        mu, size = 0.1, 1.0
        assert sum(math.copysign(1, mu + sign * size) for sign in (-1, 1)) == 0

    def test_a_skewed_law_turns_the_step_against_the_mean(self):
        """1010 with probability 0.01, else -10 (mean 0.2), from a stationary v at theta = 0.9: the wrong sign."""
        rng, theta = np.random.default_rng(0), 0.9
        v = np.zeros(20_000)
        for _ in range(200):
            v = theta * v + 0.1 * np.where(rng.random(len(v)) < 0.01, 1010.0, -10.0) ** 2
        step = sum(p * g / np.sqrt(theta * v + 0.1 * g * g) for p, g in ((0.01, 1010.0), (0.99, -10.0)))
        assert step.mean() < -0.5 < 0.2


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def exact(alpha, beta, theta, v_0, eps, half_width, start, slope):
    """X_w's summands over every path of uniform noise, Gauss and Legendre on each side of g = 0."""
    x, m, v = np.array([start]), np.zeros(1), np.full(1, v_0)
    chance, terms, largest = np.ones(1), [], 0.0
    for t in range(len(alpha)):
        mu = slope(x)
        hat = np.sqrt(theta[t] * v + (1 - theta[t]) * (mu**2 + half_width**2)) + eps[t]
        terms.append(float(chance @ (mu**2 / hat)))
        largest = max(largest, float(np.sqrt(mu**2 + half_width**2 / 3).max()))
        cut = np.clip(-mu, -half_width, half_width)
        noise, weight = [], []
        for low, high in ((-half_width, cut), (cut, half_width)):
            middle, reach = (low + high) / 2 + 0 * mu, (high - low) / 2 + 0 * mu
            noise.append(middle[:, None] + reach[:, None] * NODES)
            weight.append(reach[:, None] * WEIGHTS / (2 * half_width))
        g = (mu[:, None] + np.concatenate(noise, axis=1)).reshape(-1)
        chance = (chance[:, None] * np.concatenate(weight, axis=1)).reshape(-1)
        x, m, v = (np.repeat(one, 2 * len(NODES)) for one in (x, m, v))
        m, v = beta[t] * m + (1 - beta[t]) * g, theta[t] * v + (1 - theta[t]) * g**2
        x = x - alpha[t] * m / (np.sqrt(v) + eps[t])
    return np.array(terms), largest


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
@settings(max_examples=80)
def test_measured_is_at_most_the_bound(seed, steps):
    rng = np.random.default_rng(seed)
    alpha, beta = 10.0 ** rng.uniform(-3, 0, steps), rng.random(steps) * rng.choice([0.0, 0.9])
    theta = 1 - 10.0 ** rng.uniform(-3, -0.1, steps)
    eps = np.full(steps, rng.choice([0.0, 0.1, 3.0]))
    v_0 = float(10.0 ** rng.uniform(-2, 1))
    half_width, start = 10.0 ** rng.uniform(-2, 1), rng.uniform(-3, 3)
    terms, largest = exact(alpha, beta, theta, v_0, eps, half_width, start, lambda x: 2 * x / (1 + x**2) ** 2)
    problem = problem_of(2, [largest], 1, start**2 / (1 + start**2))
    bound = symmetric_bound(Sequences.of(alpha, beta, theta, eps=eps, initial_v=v_0), problem)
    Q = reference.backward(alpha.tolist(), (beta / np.sqrt(theta)).tolist())
    pi = (1 - beta) * Q
    assert bound.weight == pytest.approx(pi.sum())
    assert pi @ terms / pi.sum() <= bound.value * (1 + 1e-7)


def test_without_momentum_the_noise_is_gone():
    x = Sequences.of(1e-4, 0, 0.99, eps=1e-8, steps=1000)
    assert symmetric_bound(x, TEN).noise == 0 < sharp(x, TEN).noise


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_its_divisor_is_larger_and_its_bound_smaller(beta):
    x = Sequences.of(1e-3, beta, 0.95, eps=1e-8, steps=500)
    for problem in (TEN, TINY):
        found, without = symmetric_bound(x, problem), sharp(x, problem)
        assert found.value < without.value
        assert 1.04 < found.s1 / without.s1 < 1.06
        assert 1.04 < found.s2 / without.s2 < 1.06


def test_groups_with_proportional_rates():
    """Two groups at one rate are one; a group at twice the rate is not the same."""
    problem = problem_of(smoothness=1, gradient_bound=[0.5] * 3, dimension=3, gap=1)
    x = Sequences.of(1e-2, 0.9, 0.99, eps=1e-8, steps=50)
    assert symmetric_bound(x, problem, scales=[(1, 1.0), (2, 1.0)]).value == pytest.approx(
        symmetric_bound(x, problem).value, rel=1e-13
    )
    assert symmetric_bound(x, problem, scales=[(1, 1.0), (2, 2.0)]).value > symmetric_bound(x, problem).value


def test_what_it_does_not_cover():
    certain = problem_of(1, [1.0], 1, 1, gradient_sup=1)
    with pytest.raises(TheoremError, match="no running maximum"):
        symmetric_bound(Sequences.of(0.1, 0.9, 0.99, eps=0.1, steps=3, running_maximum=True), certain)
    with pytest.raises(TheoremError, match=r"power is 0\.25"):
        symmetric_bound(Sequences.of(0.1, 0.9, 0.99, eps=0.1, steps=3, power=0.25), TINY)


def test_eps_that_falls_behind_is_refused():
    e = np.array([1.0, 0.5, 0.4])
    with pytest.raises(TheoremError, match="fails at t = 2"):
        symmetric_bound(Sequences.of(0.1, 0.5, 0.9, eps=e), TINY)


def test_a_theta_that_torch_s_correction_was_refused_for():
    """theta = 0.3: e_2/e_1 = 1.14 > 2 sqrt(0.3), which Theorem E asked for before."""
    t = np.arange(1.0, 101)
    x = Sequences.of(1e-3, 0.5, 0.3, eps=1e-8 * np.sqrt(1 - 0.3**t))
    assert math.isfinite(symmetric_bound(x, TEN).value)


class TestForEver:
    """Without momentum, or with one that vanishes, a constant theta is enough; the other answer comes first."""

    KNOWN = Setting(noise="symmetric")

    @staticmethod
    def rmsprop(alpha="0.1/sqrt(t)", theta=0.99, beta=0, **form):
        return Algorithm(Method(alpha, beta, theta), **{"initial_v": 0, "eps": 1e-8, **form})

    @pytest.mark.parametrize(
        ("x", "rate"),
        [
            (rmsprop(), "T^(-1/2) log T"),
            (rmsprop(alpha="0.1/t^0.3"), "T^(-3/10)"),
            (rmsprop(theta="0.9 + 0.05/t"), "T^(-1/2) log T"),
            (rmsprop(heavy_ball=HeavyBall(Fraction(9, 10))), "T^(-1/2) log T"),
            (rmsprop(beta="0.9/log(t + 2)"), "T^(-1/2) log T"),
            (rmsprop(initial_v=1, eps=0), "T^(-1/2) log T"),
        ],
    )
    def test_what_it_certifies(self, x, rate):
        found = certify_algorithm(x, setting=self.KNOWN)
        assert (found.verdict, found.theorem, str(found.rate)) == ("certified", "Y", rate)
        assert "the noise of each weight's gradient is symmetric and has one peak" in found.needs
        without = certify_algorithm(x)
        assert without.verdict != "certified"
        assert found.plainly.verdict == without.verdict
        lines = str(found).splitlines()
        assert lines[0].startswith(without.long_run.upper())
        assert "guaranteed" in next(line for line in lines if "symmetric" in line.lower())

    @pytest.mark.parametrize(
        "x",
        [
            rmsprop(alpha=1e-3),  # the steps do not vanish
            rmsprop(alpha="1/t^2"),  # their sum is finite
            rmsprop(beta=0.9),  # a floor is left
            rmsprop(beta="1 - 1/(t+1)"),
            rmsprop(decay="0.01/sqrt(t)"),
            rmsprop(theta=0),
        ],
    )
    def test_what_it_does_not(self, x):
        assert certify_algorithm(x, setting=self.KNOWN)["Y"].verdict != "certified"

    def test_without_the_fact_it_is_never_asked(self):
        found = certify_algorithm(self.rmsprop())
        assert found["Y"].outside == (Reason("missing", "noise"),)
        assert found.plainly is found

    def test_where_the_answers_are_the_same_one_is_told(self):
        certified = Algorithm(Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)"))
        found = certify_algorithm(certified, setting=self.KNOWN)
        assert found.verdict == "certified"
        assert found.plainly is found

    def test_the_bound_falls_at_its_rate(self):
        """alpha = 0.1 t^-0.3 at theta = 0.99: the drift from 2e4 to 2e5 steps, in powers of T."""
        problem = problem_of(1e4, [1.0], 1, 1)
        values = []
        for steps in (20_000, 200_000):
            t = np.arange(1.0, steps + 1)
            values.append(symmetric_bound(Sequences.of(0.1 * t**-0.3, 0, 0.99, initial_v=1.0), problem).value)
        assert math.log10(values[1] / values[0]) == pytest.approx(-0.3, abs=0.03)


class TestClipping:
    """Gradients that are clipped, however often: a factor, and no noise of its own."""

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=150)
    def test_values_that_are_clipped_go_with_the_mean(self, seed):
        """E[clip(g)/D] of a mixture of uniforms in closed form: beyond c the step has one size."""
        rng = np.random.default_rng(seed)
        with mpmath.workdps(50):
            a, q, e, c, mu = (mpmath.mpf(float(x)) for x in 10.0 ** rng.uniform((-6, -4, -4, -2, -2), (3, 0, 1, 1, 2)))
            sizes = [mpmath.mpf(float(x)) for x in 10.0 ** rng.uniform(-2, 3, 3)]
            chances = [mpmath.mpf(float(x)) for x in rng.dirichlet([0.5] * 3)]
            chances = [one / sum(chances) for one in chances]

            def primitive(g):
                """Of the step, an odd function: 0 at 0, a line beyond c."""
                inside = min(abs(g), c)
                r, low = mpmath.sqrt(a + q * inside**2), mpmath.sqrt(a)
                grown = (r - low - e * mpmath.log((r + e) / (low + e))) / q
                return grown + (abs(g) - inside) * c / (mpmath.sqrt(a + q * c**2) + e)

            means = [(primitive(mu + size) - primitive(mu - size)) / (2 * size) for size in sizes]
            left = sum(chance * mean for chance, mean in zip(chances, means, strict=True))
            moved = mu**2 + sum(chance * size**2 for chance, size in zip(chances, sizes, strict=True))
            factor = mpmath.sqrt(1 + moved / c**2)
            assert left * factor * (mpmath.sqrt(a + q * moved / factor**2) + e) >= mu * (1 - mpmath.mpf(10) ** -35)

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=150)
    def test_a_norm_that_is_clipped_goes_with_the_mean(self, seed):
        """The others' gradients take any values, and the width of this weight's noise depends on them."""
        rng = np.random.default_rng(seed)
        nodes, weights = np.polynomial.legendre.leggauss(40)
        a, q, e, c, mu = 10.0 ** rng.uniform((-3, -3, -3, -1, -1), (1, 0, 1, 1, 1))
        others, sizes, chances = 10.0 ** rng.uniform(-2, 2, 4), 10.0 ** rng.uniform(-1, 2, 4), rng.dirichlet([0.5] * 4)
        left = 0.0
        for other, size, chance in zip(others, sizes, chances, strict=True):
            inside = math.sqrt(max(c * c - other * other, 0.0))
            near = math.sqrt(a / q)
            cuts = np.unique(
                np.clip([-size, *(s * x - mu for s in (-1, 1) for x in (0, near, inside)), size], -size, size)
            )
            for low, high in itertools.pairwise(cuts.tolist()):
                g = mu + (low + high) / 2 + (high - low) / 2 * nodes
                shorter = g * np.minimum(1, c / np.hypot(g, other))
                step = shorter / (np.sqrt(a + q * shorter**2) + e)
                left += chance * (high - low) / (4 * size) * float(weights @ step)
        own = chances @ sizes**2 / 3
        factor = math.sqrt(1 + (mu**2 + 3 * own + chances @ others**2) / c**2)
        moved = mu**2 + 3 * own
        assert left * factor * (math.sqrt(a + q * moved / factor**2) + e) >= mu * (1 - 1e-6)

    def test_two_peaks_are_not_enough(self):
        """mu = 1, noise +-2, c = 1: the clipped gradient is 0 in the mean."""
        assert np.clip([1 - 2, 1 + 2], -1, 1).mean() == 0

    def test_skewed_noise_turns_the_clipped_gradient_round(self):
        g, chances = np.array([-1.0, 10.9]), np.array([0.9, 0.1])
        assert chances @ g > 0 > chances @ np.clip(g, -1, 1)

    def test_the_check_value_of_the_factor(self):
        """F = tau = 1, c = 1/2, d = 1: lambda^2 = 1 + (2 + 2)/c^2."""
        problem = problem_of(1, [math.sqrt(2)], 1, 1, variance=[1.0])
        for kind in ("value", "norm"):
            assert symmetric_factor(problem, Clipping(0.5, kind=kind)) == pytest.approx(1 / math.sqrt(17))
        many = problem_of(1, 3.0, 9, 1)
        assert symmetric_factor(many, Clipping(3.0)) == pytest.approx(0.5)

    @pytest.mark.parametrize("kind", ["value", "norm"])
    def test_where_it_never_acts_the_bound_is_the_other(self, kind):
        x = Algorithm(Method(1e-3, 0.9, 0.99), initial_v=0, eps=1e-8, clipping=Clipping(1e6, kind=kind))
        plain = Symmetric().bound(replace(x, clipping=None), TEN, 200)
        assert Symmetric().bound(x, TEN, 200).expectation == pytest.approx(plain.expectation, rel=1e-9)

    def test_the_norm_of_two_weights(self):
        """Every path of two steps on quadratics, one weight's noise uniform, the other's gradient exact."""
        rng = np.random.default_rng(3)
        nodes, weights = np.polynomial.legendre.leggauss(30)
        for _ in range(40):
            beta, theta, c, alpha = 0.9 * rng.random(), 1 - 10.0 ** rng.uniform(-3, -0.3), rng.uniform(0.2, 2), 0.3
            width, v_0, mix = rng.uniform(0.1, 4), 10.0 ** rng.uniform(-3, 0), rng.uniform(-0.9, 0.9)
            curvature = np.array([[1.0, mix], [mix, 1.0]])  # f = x'Cx/2, L = 1 + |mix|
            where, m = rng.normal(size=(1, 2)), np.zeros((1, 2))
            start = float(where[0] @ curvature @ where[0]) / 2
            v, chance, terms, bounds = np.full((1, 2), v_0), np.ones(1), [], np.zeros(2)
            for _ in range(2):
                mu = where @ curvature
                spread = np.array([width**2, 0.0])
                moved = mu**2 + spread
                # lambda_k^2 = 1 + (E|g|^2 + 2 s_k^2)/c^2
                factor = 1 + ((mu**2).sum(1, keepdims=True) + np.array([width**2, width**2 / 3])) / c**2
                hat = np.sqrt(theta * v + (1 - theta) * moved / factor)
                terms.append(float(chance @ (mu**2 / hat).sum(1)))
                bounds = np.maximum(bounds, np.sqrt(mu**2 + spread / 3).max(0))
                paths = []
                inside = np.sqrt(np.maximum(c * c - mu[:, 1] ** 2, 0))
                cuts = [np.full(len(mu), -width), *(np.clip(x - mu[:, 0], -width, width) for x in (-inside, 0, inside))]
                for low, high in itertools.pairwise([*cuts, np.full(len(mu), width)]):
                    for node, weight in zip(nodes, weights, strict=True):
                        g = mu.copy()
                        g[:, 0] += (low + high) / 2 + (high - low) / 2 * node
                        paths.append((chance * (high - low) / (4 * width) * weight, g))
                chance, g = (np.concatenate([one[k] for one in paths]) for k in (0, 1))
                g = g * np.minimum(1, c / np.linalg.norm(g, axis=1, keepdims=True))
                count = len(paths)
                where, m, v = (np.tile(one, (count, 1)) for one in (where, m, v))
                m, v = beta * m + (1 - beta) * g, theta * v + (1 - theta) * g**2
                where = where - alpha * m / np.sqrt(v)
            problem = problem_of(1 + abs(mix), bounds.tolist(), 2, start, variance=[width**2 / 3, 0.0])
            x = Sequences.of(alpha, beta, theta, initial_v=v_0, steps=2)
            clipped = clipped_parts(problem, c), symmetric_factor(problem, Clipping(c))
            bound = weighted_bound(x, problem, symmetric=True, clipped=clipped)
            pi = (1 - beta) * np.array(reference.backward([alpha] * 2, [beta / math.sqrt(theta)] * 2))
            assert pi @ terms / pi.sum() <= bound.value * (1 + 1e-6)

    CLIPPED = Algorithm(Method("0.1/sqrt(t)", 0, 0.99), initial_v=0, eps=1e-8, clipping=Clipping(1.0))

    def test_the_certificate_asks_it_where_the_noise_is_symmetric(self):
        found = certify_algorithm(self.CLIPPED, setting=Setting(noise="symmetric"))
        assert (found.verdict, found.theorem, found.plainly.verdict) == ("certified", "Y", "not certified")
        assert GIVEN_THE_OTHERS in found.needs
        by_value = certify_algorithm(
            replace(self.CLIPPED, clipping=Clipping(1.0, kind="value")), setting=Setting(noise="symmetric")
        )
        assert by_value.verdict == "certified"
        assert GIVEN_THE_OTHERS not in by_value.needs
        assert certify_algorithm(self.CLIPPED).verdict != "certified"

    @pytest.mark.parametrize(
        "x", [replace(CLIPPED, clipping=Clipping(1.0, kind="update")), replace(CLIPPED, l2=0.1)], ids=["update", "l2"]
    )
    def test_what_it_does_not_cover(self, x):
        assert certify_algorithm(x, setting=Setting(noise="symmetric", weights_bound=1))["Y"].outside

    def test_the_run_takes_a_bound_on_the_gradients(self):
        def beside(**facts):
            return certify_algorithm(
                self.CLIPPED, 10_000, setting=Setting(noise="symmetric", **facts)
            ).horizon.symmetric

        assert beside().outside
        known, small = beside(gradient_bound=1.0), beside(gradient_bound=0.01)
        assert not known.outside
        assert known.gap == pytest.approx(2 * small.gap, rel=1e-3)  # sqrt(1 + 3)
        assert GIVEN_THE_OTHERS in known.needs


class TestSmoothSamples:
    """Theorem L: the bound of its page on every path, and what it certifies for ever."""

    @staticmethod
    def by_hand(alpha, beta, gap, L, G, e):
        """Return the page's bound for one weight whose examples are as smooth as f."""
        steps, N, R, total, Q, Pi = len(alpha), 0.0, 0.0, 0.0, 0.0, 0.0
        for t in range(steps):
            N = beta[t] * (N + alpha[t - 1] * R) if t else 0.0
            R = beta[t] * R + 1 - beta[t]
            total += alpha[t] * N
        for t in reversed(range(steps)):
            Q = alpha[t] + (beta[t + 1] * Q if t + 1 < steps else 0.0)
            Pi += (1 - beta[t]) * Q
        lost = G / e * (L * G / e + G**2 * L / e**2) * total + L / 2 * (G / e) ** 2 * float(np.square(alpha).sum())
        return (gap + lost) / Pi, Pi

    def test_the_check_value(self):
        value, weight = self.by_hand(TINY_ALPHA, [0.5] * 3, 1.0, 1.0, 1.0, 0.1)
        assert weight == pytest.approx(0.16875)
        assert value == pytest.approx(45.1851851852, rel=1e-11)

    @given(st.integers(0, 2**32 - 1), st.integers(1, 3))
    @settings(max_examples=80)
    def test_measured_is_at_most_the_bound(self, seed, steps):
        """Every path of g = f' + noise, uniform and independent: the examples are as smooth as f."""
        rng = np.random.default_rng(seed)
        alpha, beta = 10.0 ** rng.uniform(-3, 0, steps), rng.random(steps) * rng.choice([0.0, 0.9, 0.99])
        theta, e = rng.uniform(0, 1, steps), 10.0 ** rng.uniform(-1, 1)
        width, start = 10.0 ** rng.uniform(-1, 1), rng.uniform(-3, 3)
        half = np.polynomial.legendre.leggauss(12)
        x, v, m, chance, history, measured, largest = np.array([start]), 0.0, 0.0, np.ones(1), [], 0.0, 0.0
        v = m = np.zeros(1)
        for t in range(steps):
            mu = 2 * x / (1 + x**2) ** 2
            largest = max(largest, float(np.sqrt(mu**2 + width**2 / 3).max()))
            history.append((mu, v, mu**2 + width**2 / 3, mu**2 + width**2))
            for i, (slope, before, second, moved) in enumerate(history):
                kept = [math.prod(theta[j + 1 : t + 1]) for j in range(t + 1)]
                later = sum(kept[j] * (1 - theta[j]) for j in range(i + 1, t + 1))
                hat = kept[i] * theta[i] * before + later * second + kept[i] * (1 - theta[i]) * moved
                share = alpha[t] * (1 - beta[i]) * math.prod(beta[i + 1 : t + 1])
                measured += share * float(chance @ (slope**2 / (np.sqrt(hat) + e)))
            g = np.concatenate([mu + width * node for node in half[0]])
            chance = np.concatenate([chance * weight / 2 for weight in half[1]])
            history = [tuple(np.tile(one, 12) for one in entry) for entry in history]
            x, v, m = (np.tile(one, 12) for one in (x, v, m))
            m, v = beta[t] * m + (1 - beta[t]) * g, theta[t] * v + (1 - theta[t]) * g**2
            x = x - alpha[t] * m / (np.sqrt(v) + e)
        value, weight = self.by_hand(alpha, beta, start**2 / (1 + start**2), 2.0, largest, e)
        assert measured / weight <= value * (1 + 1e-6)

    KNOWN = Setting(noise="symmetric", smooth_samples=True)
    ADAM = Algorithm(Method("0.1/sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-8)

    def test_adam_with_constants_converges_for_ever(self):
        found = certify_algorithm(self.ADAM, setting=self.KNOWN)
        assert (found.verdict, found.theorem, str(found.rate)) == ("certified", "L", "T^(-1/2) log T")
        assert "the gradient of every example's loss is Lipschitz" in found.needs
        assert found.plainly.verdict == "not certified"

    @pytest.mark.parametrize(
        "x",
        [
            replace(ADAM, method=Method(1e-3, 0.9, 0.999)),  # the steps do not vanish
            replace(ADAM, method=Method("0.1/sqrt(t)", "1 - 1/(t+1)", 0.999)),
            replace(ADAM, eps=0, initial_v=1),
            replace(ADAM, eps="1e-8/t"),
            replace(ADAM, decay="0.01/t"),
        ],
    )
    def test_what_it_does_not(self, x):
        assert certify_algorithm(x, setting=self.KNOWN)["L"].verdict != "certified"

    @pytest.mark.parametrize("facts", [{"noise": "symmetric"}, {"smooth_samples": True}])
    def test_it_asks_for_both_facts(self, facts):
        assert certify_algorithm(self.ADAM, setting=Setting(**facts))["L"].outside
