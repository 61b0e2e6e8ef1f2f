"""The traps of the sufficient condition: cases a careless checker gets wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.errors import ScheduleError
from generic_adam.methods import Method
from generic_adam.theorems.decide import Status, ratio
from generic_adam.theorems.theorem import Verdict
from generic_adam.theorems.zou2019 import examine_method, hypotheses

HOLDS, FAILS, UNDECIDED = Status.HOLDS, Status.FAILS, Status.UNDECIDED

CERTIFIED = {
    # name: (alpha, beta, theta, rate, C0)
    "AdaEMA with K = 2": ("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)", "T^(-1/2) log T", 1),
    "AdaGrad": ("1/sqrt(t+1)", 0, "1 - 1/(t+1)", "T^(-1/2) log T", 1),
    "AdamNC with K = 2": ("1/sqrt(t)", "0.9 * 0.99^t", "1 - 1/max(t, 2)", "T^(-1/2) log T", 1),
    "weights t": ("1/sqrt(t)", 0.9, "theta_from_weights(t)", "T^(-1/2) log T", None),
    "weights sqrt t": ("1/sqrt(t)", 0.9, "theta_from_weights(sqrt(t))", "T^(-1/2) log T", None),
    "NosAdam-HH, r = 1/2": ("1/sqrt(t)", 0.9, "theta_from_weights(t^-0.5)", "T^(-1/2) log T", None),
    "weights t^2, started later": (
        "1/sqrt(t)",
        0.9,
        "theta_from_weights((t + 3)^2, 14)",
        "T^(-1/2) log T",
        None,
    ),
    "a log in alpha": ("1/(sqrt(t) * log(t+1))", 0.9, "1 - 1/(t+1)", "T^(-1/2) log T log log T", 1),
    "r = 1/4": ("0.001/sqrt(t)", 0.9, "1 - (0.001 + 0.999*0.25)/t^0.25", "T^(-1/8)", 1),
    "r/2 + s = 1": ("1/t^0.75", 0.9, "1 - 0.5/sqrt(t)", "T^(-1/4) log T", 1),
    "r/2 + s > 1": ("1/t^0.75", 0.9, "1 - 0.5/t", "T^(-1/4)", 1),
    "exponents in thirds": ("1/t^(1/3)", 0.9, "1 - 0.5/t^(2/3)", "T^(-1/3)", 1),
    "K-repair of Adam": (
        "0.001 * min(1, sqrt(1000/t))",
        0.9,
        "max(0.999, 1 - 1/t)",
        "T^(-1/2) log T",
        1,
    ),
    "warm-up": (
        "t/1000 if t < 1000 else sqrt(1000/t)",
        0.9,
        "1 - 1/max(t, 2)",
        "T^(-1/2) log T",
        math.sqrt(1000) / (0.001 * math.sqrt(2)),
    ),
    "a swinging factor": ("(1 + 0.5*sin(t))/sqrt(t)", 0.9, "1 - 1/max(t, 2)", "T^(-1/2) log T", 3),
    "PaLM's theta from t = 2": (
        "0.01 if t < 10000 else 1/sqrt(t)",
        0.9,
        "1 - max(t, 2)^-0.8",
        "T^(-2/5)",
        None,
    ),
    "exponential form": ("1/sqrt(t)", 0.9, "exp(-1/t)", "T^(-1/2) log T", 1),
    "differences": ("0.5/sqrt(t)", 0.9, "1 - (sqrt(t+1) - sqrt(t))/2", "T^(-1/4)", 1),
    "logarithms that cancel": ("1/sqrt(t)", 0.9, "1 - (log(t+1) - log(t))/2", "T^(-1/2) log T", None),
    "two powers": ("2/t^0.5 - 1/t", 0.9, "1 - 0.9/(t+1)", "T^(-1/2) log T", None),
    "a sine": ("sqrt(sin(1/t))", 0.9, "1 - sin(1/t)", "T^(-1/2) log T", None),
    "t^(1/t)": ("t^(1/t)/sqrt(t)", 0.9, "1 - 1/(t+1)", "T^(-1/2) log T", None),
}


@pytest.mark.parametrize(("alpha", "beta", "theta", "rate", "constant"), CERTIFIED.values(), ids=CERTIFIED)
def test_certified_with_the_exact_rate(alpha, beta, theta, rate, constant):
    certificate = examine_method(Method(alpha, beta, theta))
    assert certificate.verdict == "certified"
    assert str(certificate.rate) == rate
    assert [c.number for c in certificate.conditions] == [1, 2, 3, 4]
    assert all(c.status == "holds" and c.witness is None for c in certificate.conditions)
    if constant is not None:
        assert pytest.approx(constant, rel=1e-9) == certificate.C0


NOT_CERTIFIED = {
    # name: (alpha, beta, theta, failing condition, witness)
    "theta_1 = 0": ("1/sqrt(t)", 0.9, "1 - 1/t", 2, 1),
    "weights t^1.5": ("1/sqrt(t)", 0.9, "theta_from_weights(t^1.5)", 2, 2),
    "weights t^2": ("1/sqrt(t)", 0.9, "theta_from_weights(t^2)", 2, 2),
    "NosAdam-HH, r = 1": ("1/sqrt(t)", 0.9, "theta_from_weights(1/t)", 3, "chi_t ~ (log t)^(1/2)"),
    "NosAdam-HH, r = 3/2": ("1/sqrt(t)", 0.9, "theta_from_weights(t^-1.5)", 3, "chi_t ~ t^(1/4)"),
    "geometric alpha": ("0.99^t", 0.9, "1 - 1/(t+1)", 4, "ratio ~ 1.0101^T T^(-1)"),
    "s = 1": ("1/t", 0.9, "1 - 1/(t+1)", 4, "ratio ~ 1"),
    "r > 2s": ("1/t^0.25", 0.9, "1 - 1/(t+1)", 3, "chi_t ~ t^(1/4)"),
    "beta_t -> 1": ("1/sqrt(t)", "1 - 1/(t+1)", "1 - 1/(t+1)", 1, "1 - beta_t ~ t^(-1)"),
    "Adam": (0.001, 0.9, 0.999, 4, "ratio -> 0.03162"),
    "Adam, alpha ~ 1/sqrt t": ("0.001/sqrt(t)", 0.9, 0.99, 4, "ratio -> 0.2"),
    "RMSProp": (0.01, 0, 0.9, 4, "ratio -> 0.3162"),
    "horizon-tuned constants": (0.001, 0.9, 0.9999, 4, "ratio -> 0.01"),
    "PaLM": ("0.01 if t < 10000 else 1/sqrt(t)", 0.9, "1 - t^-0.8", 2, 1),
    "a late fall": ("1/sqrt(t)", 0.9, "0.99 if t < 500000 else 0.98", 2, 500_000),
    "a late rise of chi to infinity": (
        "1/sqrt(t) if t < 10^9 else 1",
        0.9,
        "1 - 1/(t+1)",
        3,
        "chi_t ~ t^(1/2)",
    ),
    "alpha that ends": ("1/sqrt(t) if t < 1000 else 0", 0.9, "1 - 1/(t+1)", 3, 1000),
    "theta = 0": (0.1, 0, 0, 2, 1),
    "an opaque theta that falls": ("1/sqrt(t)", 0.9, lambda t: 0.9 + 0.05 / t, 2, 2),
    "an opaque theta that falls late": ("1/sqrt(t)", 0.9, lambda t: 0.9 if t < 5000 else 0.8, 2, 5000),
    "an opaque beta of 1": ("1/sqrt(t)", lambda t: min(t / 400, 1), "1 - 1/(t+1)", 1, 400),
}


@pytest.mark.parametrize(("alpha", "beta", "theta", "number", "witness"), NOT_CERTIFIED.values(), ids=NOT_CERTIFIED)
def test_not_certified_with_a_witness(alpha, beta, theta, number, witness):
    certificate = examine_method(Method(alpha, beta, theta))
    assert certificate.verdict == "not certified"
    assert certificate.rate is None
    failing = certificate.first_failing
    assert failing is not None
    assert (failing.number, failing.status, failing.witness) == (number, "fails", witness)
    assert "diverge" not in failing.reason


@pytest.mark.parametrize(
    ("alpha", "beta", "theta", "statuses"),
    [
        (lambda t: 0.5 / math.sqrt(t), 0.9, "1 - 1/max(t, 2)", [HOLDS, HOLDS, UNDECIDED, UNDECIDED]),
        ("0.5/sqrt(t)", 0.9, lambda t: 1 - 1 / max(t, 2), [HOLDS, UNDECIDED, UNDECIDED, UNDECIDED]),
        ("0.5/sqrt(t)", lambda t: 0.9, "1 - 1/max(t, 2)", [UNDECIDED, HOLDS, HOLDS, HOLDS]),
        ("1/(t*log(t+1)*log(log(t+9))) * sqrt(t)", 0.9, "1 - 1/(t+1)", [HOLDS, HOLDS, HOLDS, UNDECIDED]),
    ],
)
def test_undecided_where_only_evidence_can_be_had(alpha, beta, theta, statuses):
    certificate = examine_method(Method(alpha, beta, theta))
    assert certificate.verdict is Verdict.UNDECIDED
    assert [c.status for c in certificate.conditions] == statuses
    assert certificate.rate is None


def test_evidence_is_called_no_proof():
    reasons = [c.reason for c in examine_method(Method(lambda t: 0.5 / t, 0.9, 0.99)).conditions]
    assert "proves nothing" in reasons[2]
    assert "proves nothing" in reasons[3]


def test_the_constant_of_warm_up_is_the_rise_of_chi():
    method = Method("min(t/50, 1)/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
    chi = method.alpha.values(1, 5000) / np.sqrt((1 - method.theta).values(1, 5000))
    brute_force = np.max(chi / np.minimum.accumulate(chi))
    assert pytest.approx(brute_force, rel=1e-12) == examine_method(method).C0


@pytest.mark.parametrize("theta", ["theta_from_weights(t)", "theta_from_weights(t^0.3)", "theta_from_weights(t^-0.4)"])
def test_the_constant_for_weights_bounds_what_is_seen(theta):
    method = Method("1/sqrt(t)", 0.9, theta)
    chi = method.alpha.values(1, 200_000) / np.sqrt((1 - method.theta).values(1, 200_000))
    seen = np.max(chi / np.minimum.accumulate(chi))
    certificate = examine_method(method)
    assert certificate.C0 is not None
    assert seen <= certificate.C0 <= 1.2 * seen


def test_bias_corrected_adam_has_the_constant_of_its_first_steps():
    method = Method("0.001 * sqrt(bias_correction(0.999)) / bias_correction(0.9)", 0.9, 0.999)
    alpha = method.alpha.values(1, 50_000)
    certificate = examine_method(method)
    assert pytest.approx(np.max(alpha / np.minimum.accumulate(alpha)), rel=1e-6) == certificate.C0
    assert certificate.verdict == "not certified"


def test_the_rate_has_exact_exponents():
    rate = examine_method(Method("1/(sqrt(t) * log(t+1))", 0.9, "1 - 1/(t+1)")).rate
    assert rate is not None
    assert (rate.power, rate.log, rate.loglog) == (Fraction(-1, 2), 1, 1)


def test_the_dictionary_has_the_published_keys():
    data = examine_method(Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")).to_dict()
    assert data["verdict"] == "certified"
    assert data["rate"] == data["ratio_order"] == "T^(-1/2) log T"
    assert set(data["conditions"][0]) == {"number", "status", "reason", "witness", "asks"}


class TestHorizon:
    def test_a_cosine_is_read_on_its_own_steps(self):
        method = Method("0.001 * (1 + cos(pi*(t-1)/1000))/2", 0.9, 0.999)
        found = hypotheses(method, 1000)
        assert all(one.holds for one in found)
        assert found[2].constant == pytest.approx(1)
        alpha = method.alpha.values(1, 1001)
        for steps in (10, 100, 1000):
            expected = np.sum(alpha[:steps]) * math.sqrt(0.001) / (steps * alpha[steps - 1])
            assert ratio(method, steps) == pytest.approx(expected, rel=1e-9)

    def test_the_verdict_stays_about_every_step(self):
        method = Method("1/sqrt(t) if t < 1001 else 0", 0.9, "1 - 1/max(t, 2)")
        assert examine_method(method).verdict == "not certified"
        assert all(one.holds for one in hypotheses(method, 1000))

    def test_a_violation_after_the_horizon_does_not_count(self):
        method = Method("1/sqrt(t)", 0.9, "0.99 if t < 5000 else 0.98")
        before, after = (hypotheses(method, steps)[1] for steps in (4999, 5000))
        assert before.holds
        assert str(after.witness) == "t = 5000"

    @pytest.mark.parametrize("alpha", ["1/t^0.25", "1/sqrt(t)", "min(t/50, 1)/sqrt(t)", "(1 + 0.5*sin(t))/sqrt(t)"])
    def test_the_constant_on_a_horizon_is_brute_force(self, alpha):
        method = Method(alpha, 0.9, "1 - 1/(t+1)")
        chi = method.alpha.values(1, 20_001) / np.sqrt((1 - method.theta).values(1, 20_001))
        brute_force = np.max(chi / np.minimum.accumulate(chi))
        found = hypotheses(method, 20_000)[2].constant
        assert brute_force * (1 - 1e-12) <= found <= 1.01 * brute_force

    def test_ten_million_steps_of_a_callable_agree_with_the_same_expression(self):
        steps = 10**7
        opaque, known = (Method(alpha, 0.9, "1 - 1/max(t, 2)") for alpha in (lambda t: 0.5 / np.sqrt(t), "0.5/sqrt(t)"))
        found = hypotheses(opaque, steps)
        assert all(one.holds for one in found)
        assert found[2].constant == pytest.approx(hypotheses(known, steps)[2].constant, rel=1e-12)
        for end in (steps // 100, steps):
            assert ratio(opaque, end) == pytest.approx(ratio(known, end), rel=1e-9)

    def test_horizons_up_to_a_million_billion(self):
        method = Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
        assert all(one.holds for one in hypotheses(method, 10**15))
        # sum 1/t over sqrt(T): the harmonic number, with the first term 1/sqrt 2.
        harmonic = math.log(10**15) + 0.5772156649015329 - 1 + math.sqrt(0.5)
        assert ratio(method, 10**15) == pytest.approx(harmonic / math.sqrt(10**15), rel=1e-9)

    @pytest.mark.parametrize("horizon", [0, -5, 2.5, 10**30, True, math.nan])
    def test_bad_horizons(self, horizon):
        with pytest.raises(ScheduleError, match="whole number"):
            ratio(Method(0.001, 0.9, 0.999), horizon)


@pytest.mark.parametrize(
    ("alpha", "theta"),
    [
        ("1/sqrt(max(t, 10000))", "1 - max(t, 2)^-0.8"),
        ("512^-0.5 * min(t^-0.5, t * 4000^-1.5)", "0.98"),
        ("min(1, 3000/t) / t^0.25", "1 - 1/sqrt(max(t, 9000))"),
    ],
)
def test_the_constant_is_found_behind_a_late_kink(alpha, theta):
    method = Method(alpha, 0.9, theta)
    chi = method.alpha.values(1, 100_000) / np.sqrt((1 - method.theta).values(1, 100_000))
    assert pytest.approx(np.max(chi / np.minimum.accumulate(chi)), rel=1e-9) == examine_method(method).C0


def test_a_learning_rate_that_ends_fails_condition_4():
    fourth = examine_method(Method("1/t if t < 1000 else 0", 0.9, 0.98)).conditions[3]
    assert (fourth.status, fourth.witness) == ("fails", "alpha_t = 0 from some step on")


def _statuses(conditions):
    return [condition.status for condition in conditions]


def test_a_slow_fall_of_theta_adds_up():
    # Each step falls by less than rounding, a million steps by 5e-11.
    theta = "1 - 0.1*(1 + 5e-16*t) if t < 1000000 else 0.95"
    assert examine_method(Method("0.1/sqrt(t)", 0.9, theta)).conditions[1].status is not Status.HOLDS


def test_momentum_that_rounds_to_one_is_still_below_one_on_a_horizon():
    method = Method("0.1/sqrt(t)", "1 - 0.9^t", "1 - 1/(t+1)")
    assert examine_method(method).conditions[0].status is Status.FAILS
    assert hypotheses(method, 1_000)[0].holds


def test_theta_too_small_for_its_complement_is_positive():
    condition = examine_method(Method("0.1/sqrt(t)", 0.9, "max(1e-17, 1 - 1/t)")).conditions[1]
    assert condition.status is Status.HOLDS


def test_a_square_root_of_a_square_is_no_factor():
    # sqrt((2.5 - t)^2) is abs(2.5 - t): chi rises from t = 2 on.
    found = hypotheses(Method("sqrt((2.5 - t)^2)/t^1.5", 0.9, "1 - 1/(t+1)"), 1_000)[2].constant
    t = np.arange(1.0, 1_001)
    chi = np.abs(2.5 - t) / t**1.5 * np.sqrt(t + 1)
    assert math.isclose(found, np.max(chi / np.minimum.accumulate(chi)), rel_tol=1e-12)


def test_cancellation_far_out_refutes_nothing():
    # sqrt(t^2 + 1) - t is about 1/(2 t): positive, and 0 in floats from t = 10^8 on.
    condition = examine_method(Method("sqrt(t^2 + 1) - t", 0.9, "1 - 1/(t+1)")).conditions[2]
    assert condition.status is Status.HOLDS


def test_rounding_in_an_exponent_that_moves_refutes_nothing():
    # t^(100/t) (1/t)^(100/t) is 1.
    theta = "1 - 0.1*t^(100/t)*(1/t)^(100/t)"
    assert examine_method(Method("0.1/sqrt(t)", 0.9, theta)).conditions[1].status is Status.UNDECIDED


@pytest.mark.parametrize("alpha", ["1.00000000000000000001^t", "1.0000000000000003^t/1.0000000000000001^t"])
def test_growth_slower_than_floats_can_see_is_growth(alpha):
    assert examine_method(Method(alpha, 0.9, 0.99)).conditions[2].status is Status.FAILS


def test_a_number_too_small_for_a_float_is_not_zero():
    assert examine_method(Method("2^(-5000 + 1/t)", 0.9, "1 - 1/(t+1)")).conditions[3].status is Status.HOLDS
