"""Published theorems: where they apply, their constants written out, and what they never say."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from generic_adam.methods import Algorithm, Method, adagrad, adam, certified_adam
from generic_adam.schedules import Growth
from generic_adam.theorems.decide import Status
from generic_adam.theorems.literature import Reddi2018, RobbinsMonro
from generic_adam.theorems.theorem import About, Verdict
from tests.theorems import reference


def robbins_monro(method):
    return RobbinsMonro().examine(Algorithm(method, preconditioned=False))


def reddi(method):
    return Reddi2018().examine(Algorithm(method))


def statuses(criterion):
    return [str(condition.status) for condition in criterion.conditions]


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        ("1/t", ["holds", "holds"]),
        ("1/t^0.75", ["holds", "holds"]),
        ("1/sqrt(t)", ["holds", "fails"]),
        ("1/(sqrt(t)*log(t+1))", ["holds", "holds"]),  # the squares are 1/(t log^2 t): finite
        ("1/(sqrt(t)*log(t+1)^0.5)", ["holds", "fails"]),  # the squares are 1/(t log t): infinite
        ("1/t^1.5", ["fails", "holds"]),
        ("0.001", ["holds", "fails"]),
        ("0.99^t", ["fails", "holds"]),
        ("1/(t*log(t+1))", ["holds", "holds"]),
        ("1/(t*log(t+1)^2)", ["fails", "holds"]),
        ("(2 + sin(t))/t", ["holds", "holds"]),
    ],
)
def test_robbins_monro_on_the_growth_scale(alpha, expected):
    assert statuses(robbins_monro(Method(alpha, 0, 0.9))) == [*expected, "holds"]  # alpha_t >= 0


def test_robbins_monro_is_undecided_for_a_callable():
    assert robbins_monro(Method(lambda t: 1 / t, 0, 0.9)).verdict is Verdict.UNDECIDED


def test_the_borderline_series_diverges():
    """1/(t log t log log t) has partial sums log log log T, off the scale but infinite."""
    border = Growth.of(1, power=Fraction(-1), log=Fraction(-1), loglog=Fraction(-1))
    below = Growth.of(1, power=Fraction(-1), log=Fraction(-1), loglog=Fraction(-11, 10))
    assert border.sum_diverges
    assert not below.sum_diverges


def test_reddi_warns_and_never_predicts():
    criterion = reddi(adam())
    assert criterion.about is About.WARNING
    assert criterion.verdict is Verdict.NOT_CERTIFIED
    assert "built for these constants" in criterion.conclusion
    text = json.dumps(criterion.to_dict()).lower()
    for word in ("diverge", "yours", "fails on"):
        assert word not in text


@pytest.mark.parametrize(
    "method", [certified_adam(), adagrad(), Method(0.001, 0.9, 0.8), Method(0.001, lambda t: 0.9, 0.999)]
)
def test_reddi_says_nothing_elsewhere(method):
    assert reddi(method).verdict is Verdict.UNDECIDED


def test_reddi_s_border_is_the_root_of_theta():
    assert reddi(Method(0.001, 0.8999, 0.81)).conditions[2].status is Status.HOLDS
    assert reddi(Method(0.001, 0.9, 0.81)).conditions[2].status is Status.FAILS


def test_corollaries_1_and_2_of_reddi_with_their_missing_factor():
    """theorems.md: D = 2, alpha = 0.5, beta = 0.9, lambda = 0.99, T = 10^4, d = 3, G = 1."""
    given = {"alpha": 0.5, "beta": 0.9, "fading": 0.99, "diameter": 2}
    assert reference.corollary_regret(3.0, 10**4, theta=0.999, **given) == pytest.approx(36849500.5141, rel=1e-9)
    assert reference.corollary_regret(3.0, 10**4, **given) == pytest.approx(21912000, rel=1e-12)
