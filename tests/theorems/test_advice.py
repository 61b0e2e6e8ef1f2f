"""Advice: every method it names is certified, differs where it says, and is what the theory proposes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.errors import GenericAdamError
from generic_adam.methods import Algorithm, HeavyBall, Method, as_algorithm
from generic_adam.methods.recipes import named, recipe, recipe_names
from generic_adam.methods.shapes import training_rate
from generic_adam.setting import Setting
from generic_adam.theorems import advice as advice_module
from generic_adam.theorems.advice import Purpose
from generic_adam.theorems.advice import advise_algorithm as advise
from generic_adam.theorems.certificate import certify_algorithm as certify
from generic_adam.theorems.certificate import reading, usual
from generic_adam.theorems.theorem import Verdict
from generic_adam.theorems.worth import Worth

NOT_CERTIFIED = {
    "adam": methods.adam(),
    "adam without correction": methods.adam(bias_correction=False),
    "adam, lr/sqrt t": methods.adam(lr="0.001/sqrt(t)", bias_correction=False),
    "rmsprop": methods.rmsprop(),
    "adaema": methods.adaema(),
    "adamnc": methods.adamnc(),
    "palm": recipe("palm").algorithm.method,
    "t5": recipe("t5").algorithm.method,
    "r = 1 + s": methods.power_family(r=1.5, s=0.5),
    "nosadam-hh, r = 1.5": methods.nosadam_hh(r=1.5),
    "geometric alpha": Method("0.1*0.99^t", 0.9, "1 - 1/(t+1)"),
    "linear to zero": Method("0.001*max(0, 1 - t/10000)", 0.9, 0.999),
    "constant alpha, theta to 1": Method(0.001, 0.9, "1 - 1/max(t,2)"),
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
        if last is not None:
            assert apart[last - 1]
            assert not apart[last:].any()
        json.dumps(advice.to_dict(), allow_nan=False)


def test_the_repair_of_adam_is_the_one_of_the_theory():
    (advice,) = advise(methods.adam(bias_correction=False))
    assert advice.method == methods.certified_adam(bias_correction=False)
    assert advice.first_step == 1001  # step for step the same until t = 1/(1 - theta)
    assert str(advice.rate) == "T^(-1/2) log T"


def test_keep_chooses_how_long_it_stays_as_it_is():
    (advice,) = advise(methods.adamw(weight_decay=0), keep=50_000)
    assert advice.first_step == 50_001
    assert advice.certificate.verdict is Verdict.CERTIFIED
    theta, alpha = advice.method.theta, advice.method.alpha
    assert theta(50_000) == 0.999
    assert theta(100_000) == pytest.approx(1 - 50 / 100_000)
    assert alpha(200_000) == pytest.approx(1e-3 / 2, rel=1e-6)


def test_theta_one_of_zero_is_held():
    (held,) = advise(methods.adaema())
    assert held.method.theta(1) == 0.5
    assert (held.first_step, held.last_step) == (1, 1)


def test_a_late_difference_is_found_to_the_step():
    slow = methods.adam(theta=1 - 1e-7, bias_correction=False)
    assert advise(slow)[0].first_step == 10**7 + 1


@pytest.mark.parametrize("name", ["certified_adam", "adagrad", "power_family", "nosadam_hh"])
def test_a_certified_method_needs_no_advice(name):
    assert not advise(methods.build(name))


def test_callables_cannot_be_mended_by_form():
    assert not advise(Method(lambda t: 0.1, 0.9, 0.999))


@pytest.mark.parametrize("horizon", [0, 1.5, -3, 10**18, 10**30, 10**400])
def test_bad_horizons(horizon):
    with pytest.raises(GenericAdamError, match="horizon: expected a whole number of steps"):
        advise(methods.adam(), horizon=horizon)
    with pytest.raises(GenericAdamError, match="keep: expected a whole number of steps"):
        advise(methods.adam(), keep=horizon)


@pytest.mark.parametrize(
    ("x", "factor", "theorem"),
    [
        (methods.amsgrad(), 0.5, "M"),
        (methods.amsgrad(theta="1 - 1/max(t, 2)", eps=1e-3), 0.5, "M"),
        (methods.amsgrad(theta="1 - 1/t"), 0.5, "M"),
        (methods.adopt(theta=0.999), 0.5, "O"),
        (methods.sgd(), 0.75, "robbins_monro"),
    ],
)
@pytest.mark.parametrize("keep", [None, 5000])
def test_where_theta_is_not_in_the_way_the_rate_alone_falls(x, factor, theorem, keep):
    (found,) = advise(x, keep=keep)
    held = keep or 1000
    assert (found.first_step, found.certificate.verdict, found.certificate.theorem) == (
        held + 1,
        "certified",
        theorem,
    )
    assert (found.method.beta, found.method.theta) == (x.method.beta, x.method.theta)
    for late in (held, 4 * held, 10**7):
        expected = min(1.0, (held / late) ** factor) * x.method.alpha(late)
        assert found.method.alpha(late) == pytest.approx(expected, rel=1e-12)


def test_groups_with_sequences_of_their_own_are_advised_one_by_one():
    first, second = (replace(methods.adamw(theta=theta), groups=(group,)) for group, theta in enumerate((0.999, 0.95)))
    with pytest.raises(GenericAdamError, match="parameter groups with different sequences"):
        advise(replace(first, others=(second,)))
    assert [advise(part)[0].method for part in replace(first, others=(second,)).parts] == [
        advise(one)[0].method for one in (first, second)
    ]


@pytest.mark.parametrize(
    "x",
    [
        replace(methods.nadam(), decay=1e-5),
        replace(methods.amsgrad(), decay=1e-5),
        replace(methods.rmsprop_torch(), heavy_ball=HeavyBall(0.9), decay=1e-5),
        methods.sgd(momentum=0.9),
    ],
    ids=lambda x: x.label,
)
def test_what_no_change_of_a_sequence_brings_under_a_theorem_is_not_searched(x, monkeypatch):
    asked = []
    monkeypatch.setattr(
        advice_module, "certify_algorithm", lambda *given, **named: asked.append(given) or certify(*given, **named)
    )
    assert not advise(x)
    assert len(asked) == 2  # as it is, and under what advice takes for granted


@pytest.mark.parametrize(
    "method",
    [
        Method("0.1*0.99^t", 0.9, "1 - 1/(t+1)"),
        Method(0.001, 0.9, "1 - 1/max(t,2)"),
        Method("0.001*min(1, t/700)", 0.9, "1 - 1/max(t,2)"),
        methods.power_family(r=1.5, s=0.5),
        methods.nosadam_hh(r=1.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("keep", [5, 2000, 100_000])
def test_what_is_kept_stays_as_it_is(method, keep):
    found = advise(method, keep=keep)
    assert found
    for one in found:
        assert one.certificate.verdict is Verdict.CERTIFIED
        assert one.first_step > keep
        for name in ("alpha", "beta", "theta"):
            assert (getattr(one.method, name).values(1, keep + 1) == getattr(method, name).values(1, keep + 1)).all()


def names(one):
    return [change.name for change in one.changes]


def test_a_run_that_is_named_has_its_cost_beside_it():
    (first,) = advise(methods.adamw(weight_decay=0), horizon=20_000)
    assert first.purpose is Purpose.LONG_RUN
    assert first.cost.steps == 20_000
    old, new = (one.values(1, 20_001) for one in (methods.adam().alpha, first.method.alpha))
    assert first.cost.kept == pytest.approx(new.sum() / old.sum(), rel=1e-12)
    assert 0.95 < first.cost.kept < 1
    assert first.cost.rates[-1] == (1.0, pytest.approx(old[-1]), pytest.approx(new[-1]))
    assert first.cost.memory == pytest.approx((1000, 1000 * 20_000 / 15_000))
    assert first.before.noise > 0
    assert first.after.noise == pytest.approx(first.before.noise, rel=0.05)


def test_a_schedule_that_ends_at_nothing_ends_at_little():
    ending = methods.adamw(lr="1e-3*(1 - t/10000) if t < 10000 else 0", weight_decay=0)
    (first,) = advise(ending, horizon=10_000)
    assert first.certificate.verdict is Verdict.CERTIFIED
    assert first.first_step == 7_501
    old, new = (one.method.alpha.values(1, 10_001) for one in (ending, first))
    np.testing.assert_allclose(new[:9_800], old[:9_800], rtol=1e-3)  # the corrections differ a little
    assert 0 < new[-1] <= 0.01 * old.max()
    assert first.method.alpha(40_000) == pytest.approx(new[-1] / 2, rel=1e-3)


def test_decay_is_made_to_fade_where_it_stands_in_the_way():
    found = advise(methods.adamw(), keep=10_000)
    assert found
    assert all("lr x weight decay" in names(one) for one in found)
    assert found[0].certificate.needs == ("every weight stays within 1 (assumed)",)


@pytest.mark.parametrize("name", ["bert", "nanogpt", "llama"])
def test_a_clipped_recipe_that_ends_keeps_its_run_and_is_certified_under_what_is_said(name):
    found = advise(recipe(name).algorithm)
    assert found.before.useful
    last = found[-1]
    assert last.certificate.verdict is Verdict.CERTIFIED
    assert last.certificate.needs[-1] == "no gradient is longer than 1 (assumed)"
    assert found.assumed[-1] == "no gradient is longer than 1 (assumed)"
    assert last.algorithm.clipping == recipe(name).algorithm.clipping
    assert last.cost.kept > 0.98
    assert all(old == new for _, old, new in last.cost.rates[:2])


def test_what_no_theorem_covers_is_named_as_the_change():
    x = recipe("t5").algorithm
    (only,) = advise(x)
    assert only.certificate.verdict is Verdict.CERTIFIED
    assert names(only) == ["second moments", "clipping of updates"]
    assert only.method == x.method
    assert only.first_step == 1
    assert only.after.useful
    assert not only.before.useful
    assert not advise(recipe("palm").algorithm)  # which Theorem P covers as it is


def test_a_beta2_without_a_useful_guarantee_is_raised_to_the_least_that_has_one():
    found = advise(methods.adamw(theta=0.85, weight_decay=0), horizon=100_000)
    assert found.best.purpose is Purpose.USEFUL
    assert found.best.method.theta(1) == 0.95
    assert not found.before.useful
    assert found.best.after.useful


def test_a_useful_guarantee_is_not_raised_by_a_little():
    for theta, to in ((0.95, 0.999), (0.99, 0.999), (0.999, None)):
        found = advise(methods.adamw(theta=theta), horizon=100_000)
        better = [one for one in found if one.purpose is Purpose.BETTER]
        assert found.before.useful
        assert [one.method.theta(1) for one in better] == [to] * (to is not None)
        for one in better:
            assert one.after.relative < 0.9 * one.before.relative
            assert names(one) == ["beta2"]  # the learning rate is the same but for its bias correction
            assert one.cost.kept == pytest.approx(1, abs=0.01)


def test_beta2_is_raised_as_far_as_its_memory_fits_the_run():
    to = [advise(methods.adamw(theta=0.95), horizon=steps)[0].method.theta(1) for steps in (2000, 10_000, 100_000)]
    assert to == sorted(to)
    assert to[0] < 0.999 == to[-1]


@pytest.mark.parametrize("lr", [1e-7, 2e-5])
@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_fine_tuning_is_left_alone(lr, shape):
    rate = training_rate(lr, warmup=120, decay=shape, steps=1200)
    found = advise(methods.adamw(lr=rate), horizon=1200)
    assert found.best is None
    assert not found
    assert found.complete
    assert not found.before.useful
    assert "NOTHING TO CHANGE" in str(found)


def test_an_empty_search_says_so():
    found = advise(methods.certified_adam())
    with pytest.raises(GenericAdamError, match="nothing to change"):
        found[0]
    assert list(found) == []
    with pytest.raises(GenericAdamError, match="1 changes"):
        advise(methods.adam())[1]


@pytest.mark.parametrize("name", [*recipe_names(), *methods.names()])
def test_no_change_leaves_a_run_without_use_or_multiplies_its_rate(name):
    x, steps = as_algorithm(named(name)), 5_000
    found = advise(x, horizon=steps)
    for one in found:
        assert one.after.useful or (one.after.relative is None and not found.before.useful)
        old, new = (y.method.alpha.values(1, steps + 1) for y in (x, one.algorithm))
        assert (new <= np.maximum(1.05 * old, 0.011 * old.max()) * (1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["vit", "bert", "adamw", "amsgrad"])
def test_json_has_plain_types(name):
    found = advise(as_algorithm(named(name)), horizon=20_000)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["complete"] is True


def test_r_of_1_plus_s_is_mended_by_its_rate():
    found = advise(methods.power_family(r=1.5, s=0.5))
    assert [names(one) for one in found] == [["lr"]]


@pytest.mark.parametrize("eps", ["0", "1e-8/t", "1e-8*exp(-t)"])
def test_eps_is_mended_too(eps):
    found = advise(Algorithm(methods.adam(), initial_v=0, eps=eps))
    assert found
    assert all("eps" in names(one) and one.certificate.theorem == "E" for one in found)
    assert {str(one.algorithm.eps) for one in found} <= {"1e-08", "3.67879441e-09"}


def test_the_bound_with_a_change_is_that_of_the_changed_algorithm():
    x = recipe("nanogpt").algorithm
    for one in advise(x):
        again = reading(one.algorithm, 600_000, usual(x, Setting()))
        assert again.relative == one.after.relative


def test_what_was_measured_stands_beside_the_change():
    best = advise(recipe("nanogpt").algorithm).best
    assert [change.how for change in best.changes] == ["0.95 -> 0.999"]
    assert best.worth.known
    assert best.worth.reported
    assert advise(methods.adamw(theta=0.97), horizon=10**5).best.worth == Worth()
