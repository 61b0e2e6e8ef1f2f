"""The oracle itself, against closed forms and theory: who judges has to be right first."""

from fractions import Fraction

import pytest
from mpmath import mp, mpf

from tests.soundness import dense, fuzz
from tests.soundness.enclosed import exact, settled, value
from tests.soundness.expansion import number
from tests.soundness.oracle import FAILS, HOLDS, UNKNOWN, Subject, expand, not_negative, read

ADAGRAD = "1 - 1/(t+1)"


def _subject(alpha="1/sqrt(t)", beta="0.9", theta=ADAGRAD):
    return Subject(alpha, beta, theta)


@pytest.mark.parametrize(
    ("text", "exponents", "coefficient"),
    [
        ("sqrt(t^2+1) - t", (0, -1, 0, 0), "0.5"),
        ("(t+1)^0.5 - t^0.5", (0, "-1/2", 0, 0), "0.5"),
        ("1 - cos(1/(t+1e9))", (0, -2, 0, 0), "0.5"),
        ("log(t+1) - log(t)", (0, -1, 0, 0), "1"),
        ("(1+1/t)^t", (0, 0, 0, 0), "2.718281828459045235360287"),
        ("t^(1/t)", (0, 0, 0, 0), "1"),
        ("t^(1/t) - 1", (0, -1, 1, 0), "1"),
        ("exp(log(t)/2)", (0, "1/2", 0, 0), "1"),
        ("1/t^0.5 - 0.5/t^0.7", (0, "-1/2", 0, 0), "1"),
        ("sin(3)^2 + cos(3)^2 - 1 + 1/t", (0, -1, 0, 0), "1"),
        ("max(t^-0.5, 1e-200*1e-200)", (0, 0, 0, 0), "1e-400"),
        ("log(log(t^2))", (0, 0, 0, 1), "1"),
        ("t^sqrt(2) * t^-sqrt(2) + 1/t", (0, 0, 0, 0), "1"),
        ("1 - theta_from_weights(t^2)", (0, -1, 0, 0), "3"),
        ("1 - theta_from_weights(1/t)", (0, -1, -1, 0), "1"),
        ("1 - theta_from_weights(2^t)", (0, 0, 0, 0), "0.5"),
        ("expm1(1/t) - sin(1/t)", (0, -2, 0, 0), "0.5"),
    ],
)
def test_leading_terms_are_those_of_mathematics(text, exponents, coefficient):
    key, (low, high) = expand(read(text)).lead()
    assert key == tuple(Fraction(exponent) for exponent in exponents)
    assert abs(number(low) / mpf(coefficient) - 1) < 1e-15
    assert abs(number(high) / mpf(coefficient) - 1) < 1e-15


@pytest.mark.parametrize(
    "text",
    [
        "sqrt((t+7)^2+1) - t",
        "log(t+3)^0.5 * log(log(t+9)) / t^0.25",
        "(1-(t/(t+1))^0.3) * exp(-1/t)",
        "0.999^t * t^2 / log(t+1)",
        "exp(2*log(t) - 0.5*log(log(t)))",
        "(t^2+3*t+1)^(1/3) - t^(2/3)",
    ],
)
def test_leading_terms_agree_with_values_far_out(text):
    (rate, p, q, w), (coefficient, _) = expand(read(text)).lead()
    t = 10**3000
    with mp.workdps(12000):
        found = value(read(text), t)[0] if rate == 0 else None
        if found is None:
            t = 10**7
            found = value(read(text), t)[0]
        log = mp.log(t)
        exponents = [mpf(x.numerator) / x.denominator for x in (rate, p, q, w)]
        scale = mp.exp(exponents[0] * t + exponents[1] * log) * log ** exponents[2] * mp.log(log) ** exponents[3]
        assert abs(found / (scale * coefficient) - 1) < 1e-2


def test_theory_in_the_cases_that_a_careless_checker_gets_wrong():
    assert _subject(theta="1 - 1/t").second_moment() == FAILS
    assert _subject(theta="1 - 1/max(t, 2)").truth().conditions == [HOLDS] * 4
    assert _subject(theta="theta_from_weights(t)").second_moment() != FAILS
    assert _subject(theta="theta_from_weights(t^1.1)").second_moment() == FAILS
    assert _subject(theta="theta_from_weights(t^-1)").step_size()[0] == FAILS
    assert _subject("0.99^t").ratio()[0] == FAILS
    assert _subject("1/t").ratio()[0] == FAILS
    assert _subject(beta="1 - 1/(t+1)").momentum() == FAILS
    assert _subject("1/(sqrt(t)*log(t+1))").ratio() == (HOLDS, (0, Fraction(-1, 2), 1, 1))
    assert _subject("1/sqrt(t)", theta="0.999").ratio()[0] == FAILS
    assert _subject("1/sqrt(t) * min(1, t/1000)").step_size()[0] == HOLDS


def test_the_power_family_has_its_region_and_its_rates():
    for i in range(9):
        for j in range(9):
            r, s = Fraction(i, 4), Fraction(j, 8)
            truth = _subject(f"0.5/t^({s})", theta=f"1 - 0.9/t^({r})").truth()
            assert (truth.conditions == [HOLDS] * 4) == (0 < r <= 2 * s < 2)
            if truth.conditions == [HOLDS] * 4:
                p = -r / 2 if r / 2 + s < 1 else s - 1
                assert truth.ratio == (0, p, int(r / 2 + s == 1), 0)


def test_what_the_kin_of_theorem_w_ask_beside_it():
    assert _subject(theta="1 - 1/t").weighted()[0] == FAILS
    assert _subject(theta="1 - 1/t").weighted(eps=True)[0] == HOLDS
    assert _subject(theta="0.5*(1 - 1/t) if t < 3 else 1 - 1/t").weighted(eps=True)[0] == HOLDS
    assert _subject(theta="0 if t < 3 else 1 - 1/t").weighted(eps=True)[0] == FAILS
    assert _subject(beta="1 - 1/t").weighted(heavy_ball=True)[0] == HOLDS
    assert _subject("1/sqrt(t)").vanishing() == (HOLDS, (0, Fraction(-1, 2), 1, 0))
    assert _subject("t^-0.75").vanishing() == (HOLDS, (0, Fraction(-1, 4), 0, 0))
    assert [_subject(alpha).vanishing()[0] for alpha in ("1", "1/t^2", "0.5^t")] == [FAILS] * 3
    # The mean of (nu/alpha)^2: a constant lambda leaves a floor, lambda_t = 1/log t does not.
    assert _subject().decayed("0.1/sqrt(t)") == FAILS
    assert _subject().decayed("0.1/sqrt(t)/log(t+9)") == HOLDS
    assert [not_negative("1 - 4/t", first) for first in (3, 4)] == [FAILS, HOLDS]


def test_a_warm_up_costs_its_factor():
    least = _subject("1/sqrt(t) * min(1, t/1000)", theta="0.999").truth().constant_at_least
    assert least == pytest.approx(1000**0.5, rel=1e-12)


def test_an_error_bound_holds_whatever_cancels():
    node = read("sqrt((t+1e9)^2+1) - (t+1e9) + (sin(t)^2+cos(t)^2-1)")
    for t in (1, 50, 10**12):
        with mp.workdps(50):
            rough, error = value(node, t)
        with mp.workdps(300):
            assert abs(value(node, t)[0] - rough) <= mpf(2) ** error


def test_signs_take_as_many_digits_as_they_need():
    node = read("1e-200*1e-200 + sin(3)^2 + cos(3)^2 - 1")
    assert settled(lambda: value(node, 1))[0] == 1
    assert settled(lambda: value(read("sqrt(3)^2 - 3"), 1), zero=True)[0] == 0
    assert settled(lambda: value(read("sqrt(3)^2 - 3"), 1))[0] is None
    assert exact(read("1 - 3/(3*t)"), 1) == 0


def test_what_the_oracle_cannot_know_it_does_not_say():
    assert _subject("exp(-sqrt(t))").truth().conditions[2:] == [UNKNOWN, UNKNOWN]
    assert _subject(theta="1 - (2+sin(t^2))/(t+5)/1e9").second_moment() in {UNKNOWN, FAILS}


def test_a_join_that_a_running_sum_does_not_reach_is_not_judged():
    subject = _subject(theta="1-1/3*(1-theta_from_weights(log(t+1))) if t < 70000 else max(0.999, 1-1/t)")
    assert subject.truth().conditions[1] == UNKNOWN
    assert fuzz.witnessed(subject, 2, 70000) is None
    assert not_negative("bias_correction(0.5 if t < 2500 else exp(-1e5/t))-1/4", 2) == UNKNOWN


def test_what_cancels_in_an_expansion_is_not_zero():
    assert _subject(beta="1-exp(-1000)").truth().conditions[0] == HOLDS
    assert _subject(beta="1-max(sin(1/t), exp(-1000))").truth().conditions[0] == HOLDS
    assert _subject(theta="exp(-1e37-(t+2)^-1.2)").second_moment() in {HOLDS, UNKNOWN}


@pytest.mark.parametrize(
    ("texts", "constant", "kind"),
    [
        (("1/sqrt(t)", "0.5", "0.9-1e-9*max(0, 300-t)*max(0, t-290)"), None, "wrong holds"),
        (("1/sqrt(t)", "0.5+max(0, t-400)/20", "0.9"), None, "wrong holds"),
        (("1/sqrt(t)+max(0, 1-abs(t-333))", "0.5", "0.9"), 2.0, "C0 too low"),
        (("1/t", "0.5", "0.9 if t < 1e17+1 else 0.8"), None, "wrong holds"),
        # no value at t = 1, and none from t = 5 on
        (("max(1-(1-1/t)^(-0.5), 0.5)/sqrt(t)", "0.5", "0.9"), None, "wrong holds"),
        (("1/t", "0.5", "theta_from_weights(1/(t-5)*(t-5))"), None, "wrong holds"),
    ],
)
def test_every_step_of_a_beginning_is_looked_at(texts, constant, kind):
    found = dense.wrong(*texts, ("holds",) * 4, (None,) * 4, constant)
    assert {one for one, _ in found} == {kind}


def test_what_is_true_has_nothing_against_it():
    texts = ("t^-0.5*bias_correction(0.9)", "0.9", "theta_from_weights(t^0.5)")
    assert not dense.wrong(*texts, ("holds",) * 4, (None,) * 4, 8.0)
    assert dense.wrong(*texts, ("holds", "fails", "holds", "holds"), (None, 7, None, None), 8.0)
