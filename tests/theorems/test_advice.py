"""Advice: every method it names is certified, differs where it says, and is what the theory proposes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.methods import Method, MethodError
from generic_adam.schedules import as_schedule
from generic_adam.theorems.advice import advise, first_difference
from generic_adam.theorems.bound import bound
from generic_adam.theorems.certificate import certify
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sums import SumError
from generic_adam.theorems.verdicts import Verdict

NOT_CERTIFIED = {
    "adam": methods.adam(),
    "adam without correction": methods.adam(bias_correction=False),
    "adam, lr/sqrt t": methods.adam(lr="0.001/sqrt(t)", bias_correction=False),
    "rmsprop": methods.rmsprop(),
    "adaema": methods.adaema(),
    "adamnc": methods.adamnc(),
    "palm": methods.palm(),
    "t5": methods.t5(),
    "r > 2s": Method("0.1/t^0.4", 0.9, "1 - 0.5/t"),
    "r > 2s with K": methods.power_family(r=1.5, s=0.5),
    "polynomial weights, r = 2": methods.polynomial_weights(r=2),
    "polynomial weights, r = 1.5": methods.polynomial_weights(r=1.5),
    "nosadam-hh, r = 1": methods.nosadam_hh(r=1),
    "geometric alpha": Method("0.1*0.99^t", 0.9, "1 - 1/(t+1)"),
    "s = 1": Method("0.1/t", 0.9, "1 - 1/(t+1)"),
    "linear to zero": Method("0.001*max(0, 1 - t/10000)", 0.9, 0.999),
    "beta to 1": Method("0.1/sqrt(t)", "1 - 1/(t+1)", "1 - 1/(t+1)"),
    "constant alpha, theta to 1": Method(0.001, 0.9, "1 - 1/max(t,2)"),
    "a step of theta to mend": Method(
        "0.1/sqrt(t)", 0.9, "0.5 if t < 2 else 0.7 if t < 4 else 0.65 if t < 7 else 1 - 1/t"
    ),
    "a join at the beginning": Method("0.1/sqrt(t)", 0.9, "1 - 1/t if t < 2 else 1 - 1/(t+5)"),
}


@pytest.mark.parametrize("label", NOT_CERTIFIED)
def test_every_advice_is_certified_and_differs_where_it_says(label):
    method = NOT_CERTIFIED[label]
    assert certify(method).verdict is Verdict.NOT_CERTIFIED
    found = advise(method)
    assert found
    for advice in found:
        again = certify(advice.method)
        assert again.verdict is Verdict.CERTIFIED
        assert advice.rate == again.rate is not None
        first, last = advice.first_step, advice.last_step
        end = max(first + 200, (last or 0) + 200)
        apart = np.zeros(end, dtype=bool)
        for name in ("alpha", "beta", "theta"):
            old, new = (getattr(one, name).values(1, end + 1) for one in (method, advice.method))
            apart |= np.abs(old - new) > 1e-12 * np.maximum(np.abs(old), np.abs(new))
        assert not apart[: first - 1].any()
        assert apart[first - 1]
        if last is not None:
            assert apart[last - 1]
            assert not apart[last:].any()
        json.dumps(advice.to_dict(), allow_nan=False)


def test_the_repair_of_adam_is_the_one_of_the_theory():
    (advice,) = advise(methods.adam(bias_correction=False))
    repaired = methods.certified_adam(bias_correction=False)
    assert first_difference(advice.method, repaired) is None
    assert advice.first_step == 1001  # step for step the same until t = 1/(1 - theta)
    assert str(advice.rate) == "T^(-1/2) log T"
    assert pytest.approx(1) == advice.certificate.C0


def test_theta_one_of_zero_is_held_or_shifted():
    held, shifted = advise(methods.adaema())
    assert held.method.theta(1) == 0.5
    assert (held.first_step, held.last_step) == (1, 1)
    assert str(shifted.method.theta) == "1 - 1 / (t + 1)"


def test_a_theta_that_is_joined_is_held_at_the_value_that_is_named():
    (held,) = advise(NOT_CERTIFIED["a join at the beginning"])
    assert held.changes == "theta_t held at theta_2 = 0.857143 for t < 2"
    assert held.method.theta(1) == pytest.approx(1 - 1 / 7)
    assert (held.first_step, held.last_step) == (1, 1)
    (held,) = advise(NOT_CERTIFIED["a step of theta to mend"])
    assert held.changes == "theta_t held at theta_5 = 0.65 for t < 5"
    assert (held.first_step, held.last_step) == (1, 3)  # theta_4 is 0.65 already


def test_r_above_2s_becomes_the_largest_certified_r():
    found = advise(Method("0.1/t^0.4", 0.9, "1 - 0.5/t"))
    advice = next(one for one in found if one.changes.startswith("r = 0.8 in place of 1"))
    assert advice.method.theta == as_schedule("1 - 0.5/t^0.8")
    assert str(advice.rate) == "T^(-2/5)"
    # A larger exponent is not certified, so this is the largest.
    larger = Method("0.1/t^0.4", 0.9, "1 - 0.5/t^0.81")
    assert certify(larger).verdict is Verdict.NOT_CERTIFIED


def test_polynomial_weights_start_later():
    found = advise(methods.polynomial_weights(r=2))
    later = next(one for one in found if "weights start" in one.changes)
    # theta'_t = theta_{t+1} of the original, w_t = t^2 with W_0 = 1.
    original = methods.polynomial_weights(r=2).theta.values(2, 102)
    assert later.method.theta.values(1, 101) == pytest.approx(original, rel=1e-13)


def test_constants_tuned_to_a_horizon():
    steps = 100_000
    tuned = advise(methods.adam(bias_correction=False), horizon=steps)[-1]
    assert tuned.horizon == steps
    assert tuned.rate is None
    assert tuned.method.theta(1) == pytest.approx(1 - 1 / steps)
    # chi = alpha/sqrt(1 - theta) stays what it was.
    assert tuned.method.alpha(1) == pytest.approx(0.001 * (1000 / steps) ** 0.5)
    reading = tuned.certificate.horizon
    assert reading is not None
    assert reading.bound_applies


@pytest.mark.parametrize(("steps", "there"), [(1, False), (2, False), (5, False), (6, True)])
def test_constants_are_tuned_only_where_theta_is_above_the_square_of_beta(steps, there):
    tuned = [one for one in advise(methods.adam(), horizon=steps) if one.horizon is not None]
    assert bool(tuned) is there  # 1 - 1/5 < 0.81 < 1 - 1/6
    for one in tuned:
        assert bound(one.method, Problem(1, 1, 10, 1), steps).is_valid


def test_tuned_constants_look_at_the_whole_warm_up():
    warm = methods.adam(lr="1e-4*min(1, t/10000)", bias_correction=False)
    tuned = advise(warm, horizon=10**5)[-1]
    # chi_T = 1e-4/sqrt(0.001) is the largest, so that alpha = 1e-4 sqrt(1000/T).
    assert tuned.method.alpha(1) == pytest.approx(1e-5, rel=1e-9)


def test_the_tuned_bound_falls_as_one_over_root_T():
    problem = Problem(1, 1, 10, 1)
    values = []
    for steps in (10**4, 10**6):
        tuned = advise(methods.adam(bias_correction=False), horizon=steps)[-1]
        values.append(bound(tuned.method, problem, steps).expectation)
    assert values[1] / values[0] == pytest.approx(0.1, rel=0.05)


def test_the_bias_correction_does_not_move_the_tuned_constants():
    plain, corrected = (
        advise(methods.adam(bias_correction=which), horizon=10**5)[-1].method.alpha(1)
        for which in (False, True)
    )
    assert corrected == pytest.approx(plain, rel=1e-3)


def test_a_late_difference_is_found_to_the_step():
    slow = methods.adam(theta=1 - 1e-7, bias_correction=False)
    assert advise(slow)[0].first_step == 10**7 + 1


@pytest.mark.parametrize("name", ["certified_adam", "adagrad", "power_family", "nosadam_hh"])
def test_a_certified_method_needs_no_advice(name):
    assert advise(methods.build(name)) == ()


def test_callables_cannot_be_mended_by_form():
    assert advise(Method(lambda t: 0.1, 0.9, 0.999)) == ()


def test_first_difference_of_equal_methods():
    assert first_difference(methods.adam(), methods.adam()) is None


@pytest.mark.parametrize("horizon", [0, 10**30, 1.5])
def test_bad_horizons(horizon):
    with pytest.raises(SumError):
        advise(methods.adam(), horizon=horizon)


def test_what_is_no_method_is_refused_in_one_line():
    with pytest.raises(MethodError, match=r"^expected a Method, got str; of an optimizer, certify.*runs$"):
        advise("adam")
