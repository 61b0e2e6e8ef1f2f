"""Theorem R: check values, the Gamma condition with its witness, and both directions of it on gradients."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam import methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.setting import Setting
from generic_adam.theorems import regret
from generic_adam.theorems.decide import Rate, Status
from generic_adam.theorems.regret import Regret, gamma
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.theorem import Verdict
from tests.schedules.test_tree import ONE_OF_EACH
from tests.theorems import reference
from tests.theorems.evaluated import regret_bound
from tests.theorems.problems import problem_of

THREE = problem_of(smoothness=1, gradient_bound=[1.0] * 3, dimension=3, gap=1, gradient_sup=1)
T = np.arange(1.0, 10_001)
ADAM_NC = {"alpha": 0.5 / np.sqrt(T), "beta": 0.9, "theta": 1 - 1 / T, "q": 1 / T}


def test_check_values():
    ams = regret_bound(Sequences.of(0.5 / np.sqrt(T), 0.9, 0.999, running_maximum=True), THREE, 2.0)
    assert ams == pytest.approx(32569.5544854, rel=1e-9)
    assert regret_bound(Sequences.of(**ADAM_NC), THREE, 2.0) == pytest.approx(14850, rel=1e-9)


def largest_weight(alpha, theta):
    """zeta by its definition: of a gradient at step j alone, the largest alpha_t/sqrt(v_t)."""
    worst = 0.0
    for j in range(len(alpha)):
        v = 0.0
        for t in range(len(alpha)):
            v = theta[t] * v + (1 - theta[t]) * (t == j)
            if t >= j:
                worst = max(worst, alpha[t] / math.sqrt(v))
    return worst


@given(st.integers(2, 15), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_zeta_is_the_largest_chi_under_gamma(steps, seed):
    rng = np.random.default_rng(seed)
    theta = rng.random(steps) * 0.9 + 0.05
    alpha = np.concatenate([[1.0], np.cumprod(np.sqrt(theta[1:]) * (1 - rng.random(steps - 1) * 0.3))])
    zeta = largest_weight(alpha, theta)
    assert (alpha / np.sqrt(1 - theta)).max() == pytest.approx(zeta, rel=1e-9)
    one = problem_of(1, [1.0], 1, 1, gradient_sup=1)
    start = 4 / (2 * 0.5 * alpha[-1])
    assert regret_bound(Sequences.of(alpha, 0.5, theta), one, 2.0) == pytest.approx(
        start + 3 * zeta * math.sqrt(steps), rel=1e-9
    )


def test_what_is_added_to_the_root_is_in_the_last_divisor():
    alpha, problem = 0.5 / np.sqrt(T[:100]), problem_of(1, [1.0] * 3, 3, 1, gradient_sup=1)
    plain, added = (
        regret_bound(Sequences.of(alpha, 0.9, 0.999, eps=eps, initial_v=4.0, running_maximum=True), problem, 2.0)
        for eps in (0.0, 0.5)
    )
    small = regret_bound(Sequences.of(alpha, 0.9, 0.999, running_maximum=True), problem, 2.0)
    start = 3 * 4 / (0.2 * alpha[-1])  # D^2/(2 (1 - beta) alpha_T) for each of three coordinates
    assert (plain - small, added - small) == (pytest.approx(start), pytest.approx(1.5 * start))


def test_what_fails_is_said():
    with pytest.raises(TheoremError, match="never rise"):
        regret_bound(Sequences.of(np.array([0.1, 0.2]), 0.9, 0.999, running_maximum=True), THREE, 2.0)
    with pytest.raises(TheoremError, match=r"beta\^2 < theta"):
        regret_bound(Sequences.of(0.1, 0.99, 0.9, steps=2, running_maximum=True), THREE, 2.0)
    with pytest.raises(TheoremError, match="constant beta"):
        regret_bound(Sequences.of(0.1, np.array([0.9, 0.8]), 0.999, running_maximum=True), THREE, 2.0)
    with pytest.raises(TheoremError, match="constant eps"):
        regret_bound(Sequences.of(0.1, 0.9, 0.999, eps=np.array([0.1, 0.2]), running_maximum=True), THREE, 2.0)
    with pytest.raises(TheoremError, match="gradient_sup"):
        regret_bound(Sequences.of(0.1, 0.9, 0.999, steps=2, running_maximum=True), problem_of(1, 1, 3, 1), 2.0)
    with pytest.raises(TheoremError, match=r"expected \(a\)"):
        regret_bound(Sequences.of(0.5 / np.sqrt(T), 0.9, 0.999), THREE, 2.0)


class TestGamma:
    @pytest.mark.parametrize(
        ("alpha", "theta"),
        [
            ("0.5/sqrt(t)", "1 - 1/t"),
            ("0.5/sqrt(t)", "1 - 1/max(t, 2)"),
            ("0.5/sqrt(t)", "1 - 0.5/t"),
            ("0.5 * t^-0.5", "1 - t^-1.5"),
            ("0.5/sqrt(t)", "theta_from_weights(t^-0.5)"),
            ("0.5/sqrt(t)", "theta_from_weights(1/t)"),
        ],
    )
    def test_holds_for_ever(self, alpha, theta):
        assert gamma(Method(alpha, 0.9, theta)).status is Status.HOLDS

    @pytest.mark.parametrize(
        ("alpha", "theta", "step"),
        [
            ("0.5/sqrt(t)", "1 - 2/max(t, 3)", 2),
            ("1/sqrt(t)", "0.999", 1001),
            ("1/sqrt(t)", "0.99", 101),
            ("1/sqrt(t)", "0.9999", 10_001),
            ("1e-3", "0.999", 2),
            ("0.5/sqrt(t)", "theta_from_weights(t, 0.5)", 2),
            ("0.5/sqrt(t)", "theta_from_weights(t)", 3),  # W_0 = 1 makes t = 2 an equality
            ("1/t", "0.99", 200),
        ],
    )
    def test_fails_first_at(self, alpha, theta, step):
        decision = gamma(Method(alpha, 0.9, theta))
        assert decision.status is Status.FAILS
        assert decision.witness.t == step

    def test_equality_to_the_last_digit_is_decided_in_fractions(self):
        # (t-1)/t <= 0.999 is an equality at t = 1000, where floats see a failure.
        t = 1000
        assert (1 / math.sqrt(t)) ** 2 > 0.999 * (1 / math.sqrt(t - 1)) ** 2 * (1 - 1e-15)
        assert gamma(Method("1/sqrt(t)", 0.9, "0.999"), horizon=1000).status is Status.HOLDS
        assert gamma(Method("1/sqrt(t)", 0.9, "0.999"), horizon=1001).witness.t == 1001

    @pytest.mark.parametrize(
        ("alpha", "theta", "step"),
        [
            ("0.5/sqrt(t) if t < 100 else 0.4/sqrt(t)", "1 - 1/max(t, 2)", None),  # ties on both sides
            ("0.5/sqrt(t) if t < 2 else 0.4/sqrt(t)", "1 - 1/max(t, 2)", None),
            ("0.4/sqrt(t) if t < 100 else 0.5/sqrt(t)", "1 - 1/max(t, 2)", 100),
            ("0.4/sqrt(t) if t < 2 else 0.5/sqrt(t)", "1 - 1/max(t, 2)", 2),
            ("0.5/sqrt(t) if t < 100 else 0.04", "1 - 1/max(t, 2)", 101),
            ("1/t if t < 50 else 1/t^2 if t < 90 else 1/t^3", "1 - 1/max(t, 2)", None),
            ("1/t if t < 50 else 1/t^2 if t < 90 else 2e-4", "1 - 1/max(t, 2)", 90),
            ("1/t if t < 5 else 0", "0.9", None),  # 0 <= 0
            ("0.5^t * periodic(t, 2)", "0.9", 2),  # (2/1)^2/4 = 1 > 0.9
            ("0.3^t * periodic(t, 2)", "0.9", None),
            ("0.3^t * periodic(1 if t < 2 else 2, 3)", "0.9", None),
            ("0.5^t * periodic(1 if t < 3 else 2, 3)", "0.9", 3),  # 4/4 = 1 > 0.9
        ],
    )
    def test_joins_and_periods_are_decided_piece_by_piece(self, alpha, theta, step):
        found = gamma(Method(alpha, 0.9, theta))
        assert (found.holds, found.witness and found.witness.t) == (step is None, step)
        if step is not None:
            assert gamma(Method(alpha, 0.9, theta), step).witness == found.witness
            assert gamma(Method(alpha, 0.9, theta), step - 1).holds

    @pytest.mark.parametrize(
        ("method", "step"),
        [
            (methods.adam(), 13),
            (methods.adam(lr="1e-3/sqrt(t)"), 58),
            (methods.adam(lr="1/t"), 1594),
            (methods.certified_adam(), 13),
            (Method("bias_correction(0.9)", 0.9, 0.999), 2),
            (Method("bias_correction(1 - 0.5/t)/sqrt(t)", 0.9, "1 - 0.5/t"), 2),
            (methods.adam(lr="0.001 * 0.9^t"), None),
            (methods.adam(lr="1/sqrt(t)", theta="1 - 1/t"), None),
            (Method("0.5/sqrt(t)/bias_correction(0.9)", 0.9, "1 - 1/(t + 1)"), None),
            (methods.adam(lr="1/sqrt(t)", theta="1 - 1/(t + 1)"), None),  # without momentum an equality at every t
            (methods.adam(lr="1/sqrt(t)", beta=0, theta="1 - 1/(t + 9)"), None),
            (methods.adam(lr="1/sqrt(t)", theta="1 - 0.5/t"), None),
            (methods.adam(lr="1/t^0.75", theta="max(0.9, 1 - 0.5/t)"), None),
            (methods.adam(lr="1/t", theta="max(0.999, 1 - 1/t)"), None),
            (methods.adam(lr="1/sqrt(t)", theta="max(0.999, 1 - 1/t)"), 58),
            (methods.adam(lr="1/sqrt(t)", theta="theta_from_weights(t^-0.5)"), None),
            (methods.adam(lr="0.99^t", theta="1 - 0.5/t^2"), None),
            (methods.adam(lr="1/sqrt(t) if t < 9 else 0.5/t", theta="1 - 0.5/t"), None),
            (methods.adam(lr="1/sqrt(t) if t < 9 else 9/t", theta="1 - 0.5/t"), 9),
            (Method("sqrt(1 - (1 - 0.5/t)^t)/sqrt(t)", 0.9, "1 - 0.5/t"), None),  # the correction by powers falls
        ],
    )
    def test_bias_corrections_are_decided(self, method, step):
        found = gamma(method)
        assert (found.holds, found.witness and found.witness.t) == (step is None, step)
        t = np.arange(2, 2000)
        alpha, theta = (one.values(1, 2000) for one in (method.alpha, method.theta))
        fails = alpha[1:] ** 2 > theta[1:] * alpha[:-1] ** 2 * (1 + 1e-12)
        assert (int(t[fails.argmax()]) if fails.any() else None) == step

    def test_what_fails_late_without_the_correction_fails_with_it(self):
        method = methods.adam(lr="1/sqrt(t)", theta="1 - 0.1/t^0.8")
        found = gamma(method)
        assert found.status is Status.FAILS
        near = slice(found.witness.t - 2, found.witness.t)
        alpha, theta = (one.values(1, found.witness.t + 1)[near] for one in (method.alpha, method.theta))
        assert alpha[1] ** 2 > theta[1] * alpha[0] ** 2

    @given(
        st.sampled_from(
            ["1/sqrt(t)", "1/t", "1/t^0.75", "1/t^0.25", "1/sqrt(t + 3)", "1/max(t, 10)", "0.99^t", "1/(t + 1)"]
        ),
        st.sampled_from(["1 - {c}/(t + {k})", "1 - {c}/(t + {k})^{r}", "max(0.9, 1 - {c}/(t + {k}))"]),
        st.integers(1, 9),
        st.integers(1, 4),
        st.sampled_from([0.6, 1.5, 2]),
        st.sampled_from(["", "*sqrt(bias_correction({}))", "/bias_correction(0.9)", "*sqrt(1 - ({})^t)/(1 - 0.9^t)"]),
    )
    @settings(max_examples=40, deadline=None)
    def test_no_answer_is_refuted_by_the_first_steps(self, rate, form, tenths, k, r, correction):
        theta = form.format(c=tenths / 10, k=k, r=r)
        method = Method(rate + correction.format(theta), 0.9, theta)
        found = gamma(method)
        alpha, theta = (one.values(1, 1001) for one in (method.alpha, method.theta))
        excess = alpha[1:] ** 2 / (theta[1:] * alpha[:-1] ** 2) - 1
        if found.holds:
            assert excess.max() < 1e-12
        elif found.witness is not None and found.witness.t <= 1000:
            assert excess[found.witness.t - 2] > -1e-12
            assert (excess[: found.witness.t - 2] < 1e-12).all()

    def test_a_callable_is_walked(self):
        falls = Method(lambda t: 0.5 / t**0.5, 0.9, 0.999)
        assert gamma(falls).witness.t == 1001
        assert gamma(falls, 1000).holds
        assert gamma(Method(lambda t: 0.5 / t, 0.9, 0.999)).witness.t == 2000  # (1 - 1/2000)^2 = 0.99900025

    def test_what_cannot_be_told_is_undecided(self):
        assert gamma(Method(lambda t: 0.5 / 2**t, 0.9, 0.999)).status is Status.UNDECIDED
        # 1 - theta_t^t tends to 1 - 1/e, which is no fraction, and rises: it holds, and nothing here proves it.
        powers = Method("sqrt(1 - (1 - 1/(t + 1))^t)/sqrt(t)", 0.9, "1 - 1/(t + 1)")
        assert gamma(powers).status is Status.UNDECIDED
        assert "65,5" in gamma(powers).reason
        # What is open in a beginning does not hide a failure after it.
        late = Method("1/sqrt(t)*theta_from_weights(t) if t < 90 else 1e-3", 0.9, "1 - 1/(t + 1)")
        assert gamma(late, 89).status is Status.UNDECIDED
        assert gamma(late).witness.t == 91
        assert gamma(Method("0.5/sqrt(t)", 0.9, "1 - 1/(t + 1e-14)")).status is Status.HOLDS
        assert gamma(Method("0.5/sqrt(t)", 0.9, "1 - 1/(max(t, 2) - 1e-14)")).witness.t == 2
        assert gamma(Method("0.99^t", 0.9, "0.999")).status is Status.HOLDS

    @given(st.integers(2, 12), st.integers(0, 2**32 - 1))
    @settings(max_examples=100)
    def test_necessary_and_sufficient(self, steps, seed):
        """sqrt(v_t)/alpha_t falls for no gradients exactly when (a) holds; the worst case is g_t = 0."""
        rng = np.random.default_rng(seed)
        alpha, theta = np.exp(-rng.random(steps).cumsum() * rng.random()), rng.random(steps) * 0.9 + 0.05
        holds = alpha[1:] ** 2 <= theta[1:] * alpha[:-1] ** 2
        for t in range(1, steps):
            v = rng.random() + 0.1
            worst = np.sqrt(theta[t] * v) / alpha[t] - math.sqrt(v) / alpha[t - 1]
            assert (worst >= -1e-12) == holds[t - 1] or abs(worst) < 1e-9
            if holds[t - 1]:
                g = rng.standard_normal() * 10.0 ** rng.integers(-2, 3)
                after = math.sqrt(theta[t] * v + (1 - theta[t]) * g * g) / alpha[t]
                assert after >= math.sqrt(v) / alpha[t - 1] * (1 - 1e-12)


@given(st.integers(1, 30), st.floats(0, 0.95), st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_the_regret_of_runs_is_below_the_bound(steps, beta, seed):
    """Linear costs on [-1, 1]^2, AdamNC's and AMSGrad's divisors, the projection coordinatewise."""
    rng = np.random.default_rng(seed)
    costs = rng.standard_normal((steps, 2)) * 10.0 ** rng.integers(-1, 2)
    t = np.arange(1.0, steps + 1)
    alpha = 0.5 / np.sqrt(t)
    for running_maximum in (False, True):
        theta = np.full(steps, 0.9) if running_maximum else 1 - 1 / t
        x, m, v = np.zeros(2), np.zeros(2), np.zeros(2)
        largest, regret, spent, divisor = v, 0.0, 0.0, v
        for i in range(steps):
            regret += costs[i] @ x
            m = beta * m + (1 - beta) * costs[i]
            v = theta[i] * v + (1 - theta[i]) * costs[i] ** 2
            largest = np.maximum(largest, v)
            divisor = np.sqrt(largest if running_maximum else v) / alpha[i]
            spent += (m**2 / divisor).sum()
            x = np.clip(x - m / divisor, -1, 1)
        best = -np.abs(costs.sum(axis=0)).sum()
        bound = reference.constant_beta_bound(diameter=2, beta=beta, last_divisors=divisor.sum(), momentum_sum=spent)
        assert regret - best <= bound * (1 + 1e-9)


class TestForEver:
    CONVEX = Setting(convex=True)

    def examined(self, alpha, beta, theta, **settings):
        return Regret().examine(Algorithm(Method(alpha, beta, theta), **settings), self.CONVEX)

    @pytest.mark.parametrize(
        ("alpha", "theta", "verdict"),
        [
            ("0.5/sqrt(t)", "1 - 1/t", Verdict.CERTIFIED),
            ("0.5/sqrt(t)", "1 - 0.5/t", Verdict.CERTIFIED),
            ("0.5/sqrt(t)", "theta_from_weights(t^-0.5)", Verdict.CERTIFIED),
            ("0.5/sqrt(t)", "theta_from_weights(1/t)", Verdict.NOT_CERTIFIED),
            ("0.5/sqrt(t)", "1 - 2/max(t, 3)", Verdict.NOT_CERTIFIED),
            ("1/sqrt(t)", "0.999", Verdict.NOT_CERTIFIED),
            ("0.5/t^0.75", "1 - 1/t", Verdict.CERTIFIED),
            ("0.5/t", "1 - 1/t", Verdict.NOT_CERTIFIED),  # T alpha_T stays bounded
            ("0.5/sqrt(t)", "1 - 1/t if t < 9 else 1 - (1 + sin(t))/t", Verdict.NOT_CERTIFIED),
        ],
    )
    def test_adam_nc_and_its_relatives(self, alpha, theta, verdict):
        assert self.examined(alpha, 0.9, theta).verdict is verdict

    def test_amsgrad(self):
        found = self.examined("1e-3/sqrt(t)", 0.9, 0.999, running_maximum=True)
        assert found.verdict is Verdict.CERTIFIED
        assert found.rate.power == Fraction(-1, 2)
        assert self.examined("1e-3/t^0.25", 0.9, 0.999, running_maximum=True).rate.power == Fraction(-1, 4)
        for alpha, beta, theta in (("1e-3", 0.9, 0.999), ("1e-3/t", 0.9, 0.999), ("1e-3/sqrt(t)", 0.99, 0.9)):
            found = self.examined(alpha, beta, theta, running_maximum=True)
            assert found.verdict is Verdict.NOT_CERTIFIED

    def test_bias_corrections(self):
        nc = methods.adam(lr="0.5/sqrt(t)", theta="1 - 0.5/t")
        found = Regret().examine(Algorithm(nc, initial_v=0, eps=1e-8), self.CONVEX)
        assert (found.verdict, found.rate.power) == (Verdict.CERTIFIED, Fraction(-1, 2))

    def test_torchs_amsgrad(self):
        method = methods.adam(lr="1e-3/sqrt(t)")
        torchs = Algorithm(method, initial_v=0, eps="1e-8*sqrt(bias_correction(0.999))", running_maximum=True)
        found = Regret().examine(torchs, self.CONVEX)
        assert (found.verdict, found.rate.power) == (Verdict.CERTIFIED, Fraction(-1, 2))
        slow = methods.adam(lr="1e-3/t^0.25")  # the correction rises faster than t^-0.25 falls, from t = 24 on
        found = Regret().examine(Algorithm(slow, initial_v=0, eps=1e-8, running_maximum=True), self.CONVEX)
        assert (found.verdict, found.first_failing.witness) == (Verdict.NOT_CERTIFIED, 24)

    def test_eps_has_to_keep_up(self):
        found = self.examined("0.5/sqrt(t)", 0.9, "1 - 1/t", eps="1/t")
        assert (found.verdict, found.first_failing.witness) == (Verdict.NOT_CERTIFIED, 2)
        assert self.examined("0.5/sqrt(t)", 0.9, "1 - 1/t", eps=1e-8, eps_under_root=True).verdict is Verdict.CERTIFIED
        assert self.examined("0.5/sqrt(t)", 0.9, "1 - 1/t", eps="t^0.1").verdict is Verdict.UNDECIDED

    def test_it_asks_for_convexity(self):
        found = Regret().examine(Algorithm(Method("0.5/sqrt(t)", 0.9, "1 - 1/t")))
        assert not found.covers
        assert found.outside[0].about == "convex"
        found = Regret().examine(Algorithm(Method("0.5/sqrt(t)", 0.9, "1 - 1/t")), self.CONVEX)
        assert any("every stochastic gradient is bounded" in need for need in found.needs)

    @pytest.mark.parametrize(
        "theta", ["1 - 1/t", "1 - 0.5/t", "1 - 1/max(t, 2)", "1 - 1/(t + 3)", "1 - (1.5 + sin(t))/(4*t)"]
    )
    def test_mukkamala_and_hein_are_a_case(self, theta):
        x = Algorithm(Method("0.5/sqrt(t)", 0, theta), initial_v=0, eps="0.1/sqrt(t)")
        ours = Regret().examine(x, self.CONVEX)
        assert (ours.verdict, ours.rate) == (Verdict.CERTIFIED, Rate(Fraction(-1, 2)))


@pytest.mark.parametrize("maximum", [True, False])
@pytest.mark.parametrize("beta", [0.5, 0.9, 0.999999])
@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_the_bound_on_regret_is_rounded_up(maximum, beta, steps):
    """At forty digits, from the definitions, it is no larger."""
    theta = 1 - 1e-13 if maximum else 1 - 1 / np.arange(1.0, steps + 1)
    q = {} if maximum else {"q": 1 / np.arange(1.0, steps + 1)}
    alpha = 0.1 / np.sqrt(np.arange(1.0, steps + 1))
    x = Sequences.of(alpha, beta, theta, **q, steps=steps, running_maximum=maximum)
    found = regret_bound(x, THREE, 2.0)
    with mpmath.workdps(40):
        b, last = mpmath.mpf(beta), mpmath.mpf(float(alpha[-1]))
        if maximum:
            rate = 2 * mpmath.sqrt((1 - mpmath.mpf(theta)) * (1 - b**2 / mpmath.mpf(theta)))
            slope = (1 + b) / rate * mpmath.fsum(map(float, alpha))
        else:
            zeta = max(mpmath.mpf(float(one)) * mpmath.sqrt(t) for t, one in enumerate(alpha, 1))
            slope = (1 + b) / (1 - b) * zeta * mpmath.sqrt(steps)
        exact = 3 * (4 / (2 * (1 - b) * last) + slope)
        assert exact <= found <= exact * (1 + mpmath.mpf("1e-4"))


@pytest.mark.parametrize("node", [one for one in ONE_OF_EACH.values() if one.shiftable], ids=str)
def test_a_shiftable_node_has_an_expression_of_the_step_before(node):
    earlier = regret._one_step_earlier(node)
    assert [earlier(step) for step in (2, 5, 8, 9)] == pytest.approx([node(step - 1) for step in (2, 5, 8, 9)])
