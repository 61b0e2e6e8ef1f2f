"""Answers that reading found wrong: each was confident, and is now right or open."""

from fractions import Fraction

import pytest

from generic_adam import Algorithm, Method, Setting
from generic_adam.methods import HeavyBall
from generic_adam.schedules import bias_correction, parse, sqrt, t
from generic_adam.schedules.prove import Inequality, every
from generic_adam.theorems.certificate import Certificate, certify_algorithm
from generic_adam.theorems.theorem import Verdict
from generic_adam.theorems.zou2019 import bound

ROOT, THETA = "1/sqrt(t)", "1 - 1/(t + 1)"


def _method(alpha: str) -> Algorithm:
    return Algorithm(Method(alpha, 0.9, THETA))


@pytest.mark.parametrize(
    ("x", "assume"),
    [
        # alpha_t = 0 for every t: two periods that are never on together
        (lambda: _method("periodic(t-1, 2) * periodic(2-t, 2) / sqrt(t)"), {}),
        # infinite from t = 999 to 1199
        (lambda: _method("(1 - log1p(-1/max(1, 1000-t)))/sqrt(t) if t < 1200 else 1/sqrt(t)"), {}),
        # momentum that never lets a new gradient in
        (lambda: Algorithm(Method("1/t^0.75", "1 - 1/(t+1)^5", 0.999), preconditioned=False), {}),
        # heavy-ball momentum that explodes
        (
            lambda: Algorithm(Method(ROOT, 0, THETA), initial_v=0, eps=1e-8, heavy_ball=HeavyBall(Fraction(3, 2))),
            {},
        ),
        # nothing added: sqrt(2 + sqrt(3)) is (sqrt(6) + sqrt(2))/2
        (
            lambda: Algorithm(
                Method(ROOT, 0.9, 0.999),
                initial_v=0,
                eps="abs(sqrt(2+sqrt(3)) - (sqrt(6)+sqrt(2))/2)",
                running_maximum=True,
            ),
            {},
        ),
        # a decay that is no number at t = 1000
        (lambda: Algorithm(Method(ROOT, 0.9, THETA), decay="0.01/(t-1000)^2"), {"weights_bound": 1.0}),
        # 0/0 at t = 300, and 1/0 on the way to a number
        *(
            (lambda rate=rate: Algorithm(Method(rate, 0, "1 - 1/t"), initial_v=0, eps=ROOT), {"convex": True})
            for rate in (
                "(t-300)/(t-300)/sqrt(t)",
                "1/(1/(t-300)^2)/(t-300)^2/sqrt(t)",
                "abs(t-300)/abs(t-300)/sqrt(t)",
                "periodic(t-300, 999)/periodic(t-300, 999)/sqrt(t)",
            )
        ),
        # another algorithm than the theorem's: eps under the root
        (
            lambda: Algorithm(Method(ROOT, 0, "1 - 1/t"), initial_v=0, eps=ROOT, eps_under_root=True),
            {"convex": True},
        ),
    ],
)
def test_is_not_certified(x, assume) -> None:
    found = certify_algorithm(x(), setting=Setting(**assume))
    assert found.verdict is not Verdict.CERTIFIED or found.theorem != "robbins_monro"
    if not assume.get("convex"):
        assert found.verdict is not Verdict.CERTIFIED


def test_a_negative_rate_behind_an_exponential_that_underflows_is_refused() -> None:
    with pytest.raises(Exception, match="alpha"):
        _method("(1e-305 - exp(max(t, 1e18+50) - 1e18 - 748))*1e305 if t < 100 else 1/sqrt(t)").method.checked()


def test_an_eps_below_every_float_is_positive() -> None:
    x = Algorithm(Method(ROOT, 0.9, THETA), initial_v=0, eps="exp(-1000)")
    assert certify_algorithm(x).verdict is Verdict.CERTIFIED


def test_a_certificate_read_back_asks_the_theorem_that_was_asked() -> None:
    assumed = Setting(weights_bound=2.0)
    alone = certify_algorithm(_method("1/t"), theorem="zou2019", setting=assumed)
    data = alone.to_dict()
    again = Certificate.from_dict(data)
    assert (again.verdict, again.asked, again.setting) == (alone.verdict, "zou2019", assumed)
    assert again.verdict is Verdict.NOT_CERTIFIED
    assert again.to_dict() == data
    # what was written before it carried that asks them all
    assert Certificate.from_dict({key: one for key, one in data.items() if key != "asked"}).asked is None


def test_a_sum_that_is_walked_in_blocks_of_one_step_is_left_open() -> None:
    x = Algorithm(Method(ROOT, 0.9, "theta_from_weights(1e200^t*t^sin(1), 1e-300)"))
    found = certify_algorithm(x, budget=0.1)
    assert found.verdict is Verdict.UNDECIDED
    assert "blocks of a running sum" in str(found.findings)


def test_what_is_no_number_has_no_power_zero() -> None:
    assert every(parse("abs(1/(t-300))^(t-300)"), Inequality.POSITIVE, 1000).holds is None


@pytest.mark.parametrize(
    ("theta", "beta"),
    [
        ("0.95 if t < 10 else 1 - 1/t", 0.9),  # falls at t = 10
        ("0.1 if t < 2 else 0.3 if t < 3 else 1 - 1/t", 0.5),
        ("0.9999 if t < 20 else 1 - 2/t", 0.9),  # e_20 > 2 sqrt(0.9) e_19, which earlier proofs of Theorem E minded
        ("0.25 if t < 2 else 0.3 if t < 3 else 1 - 1/t", 0.5),
    ],
)
def test_a_corrected_eps_always_keeps_step(theta, beta) -> None:
    method = Method(ROOT, beta, theta)
    correction = bias_correction(method.theta)
    b = correction.values(1, 200)
    assert (b[1:] >= method.theta.values(2, 200) * b[:-1]).all()
    found = certify_algorithm(Algorithm(method, initial_v=0, eps=1e-8 * sqrt(correction)))["E"]
    assert str(found.conditions[0].status) == "holds"
    assert str(found.verdict) == "certified"
    falling = certify_algorithm(Algorithm(method, initial_v=0, eps=1e-8 * sqrt(correction) / t))["E"]
    assert str(falling.conditions[0].status) != "holds"  # an eps that falls faster is not taken for it


# 1 in two forms that no precision tells apart
ONE = "(sqrt(6) + sqrt(2))/(2*sqrt(2 + sqrt(3)))"


@pytest.mark.parametrize(
    ("x", "theorem"),
    [
        (lambda: Algorithm(Method(ROOT, 0.7, f"0.49*{ONE}"), running_maximum=True), "R"),
        (lambda: Algorithm(Method(ROOT, 0, f"1 - {ONE}/max(t, 2)"), initial_v=0, eps=ROOT), "R"),
    ],
)
def test_what_is_open_does_not_fail(x, theorem) -> None:
    found = certify_algorithm(x(), theorem=theorem, setting=Setting(convex=True))
    statuses = {str(one.status) for one in found[theorem].conditions}
    assert "fails" not in statuses
    assert "undecided" in statuses


def test_a_moving_theta_within_rounding_of_squared_beta_is_open() -> None:
    method = Method(ROOT, 0.7, "0.49 - 0.1/t")
    found = bound(method, Setting(smoothness=1, gradient_bound=1, dimension=10, gap=1), 1000)
    assert [str(one.status) for one in found.missing] == ["undecided"]


def test_a_fall_below_every_digit_of_theta_is_named() -> None:
    found = certify_algorithm(Algorithm(Method(ROOT, 0.9, "1/(1 + 1e-200*log(t+5))")))["zou2019"]
    assert "falls by 1.542e-201 from 1 at t = 2" in found.conditions[1].reason  # 1e-200 log(7/6), to first order
