"""Published theorems: where they apply, their constants written out, and what they never say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, adagrad, adam, certified_adam, rmsprop_mukkamala_hein
from generic_adam.schedules import Growth, bias_correction, sqrt
from generic_adam.setting import Setting
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam.theorems.decide import Status
from generic_adam.theorems.literature import (
    Defossez,
    MukkamalaHein,
    Reddi2018,
    Reddi2018Regret,
    RobbinsMonro,
)
from generic_adam.theorems.theorem import About, Verdict
from tests.theorems import reference
from tests.theorems.problems import bound_of, problem_of

CONVEX = Setting(convex=True)


def robbins_monro(method):
    return RobbinsMonro().examine(Algorithm(method, preconditioned=False))


def mukkamala_hein(method):
    return MukkamalaHein().examine(Algorithm(method, initial_v=0, eps="1e-8/sqrt(t)"), CONVEX)


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


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (rmsprop_mukkamala_hein(), ["holds", "holds", "holds"]),
        (Method("0.1/sqrt(t)", 0, "1 - 1/t"), ["holds", "holds", "holds"]),
        (Method("0.1/sqrt(t)", 0, "1 - 0.5/t"), ["holds", "holds", "holds"]),
        (Method("0.1/sqrt(t)", 0, "1 - 1/max(t, 2)"), ["holds", "holds", "holds"]),
        (Method("0.1/sqrt(t)", 0, "1 - 1/(t+1)"), ["holds", "holds", "holds"]),
        (Method("0.1/sqrt(t)", 0, "1 - 1.5/max(t, 2)"), ["holds", "holds", "fails"]),
        (Method("0.1/sqrt(t)", 0, "1 - 0.5/t^0.5"), ["holds", "holds", "fails"]),
        (Method("0.1/sqrt(t)", 0.9, "1 - 0.5/t"), ["fails", "holds", "holds"]),
        (Method("0.1/t", 0, "1 - 0.5/t"), ["holds", "fails", "holds"]),
        (adam(), ["fails", "fails", "fails"]),
    ],
)
def test_mukkamala_hein(method, expected):
    assert statuses(mukkamala_hein(method)) == [*expected, "holds"]
    bare = MukkamalaHein().examine(Algorithm(method), CONVEX)
    assert statuses(bare)[3] == "fails"  # their delta/sqrt(t) is missing
    assert not MukkamalaHein().examine(Algorithm(method)).covers


def test_mukkamala_hein_names_the_step():
    third = mukkamala_hein(Method("0.1/sqrt(t)", 0, "1 - 1.5/max(t, 2)")).conditions[2]
    assert third.witness == 2


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


@pytest.mark.parametrize(
    ("beta", "theta", "maximum", "statuses_", "rate"),
    [
        ("0.9*0.99^t", "0.999", True, ["holds"] * 4, "T^(-1/2) (log T)^(1/2)"),
        ("0.9/t", "0.999", True, ["holds"] * 4, "T^(-1/2) (log T)^(1/2)"),
        ("0.9/t^0.25", "0.999", True, ["holds", "holds", "fails", "holds"], None),
        ("0.9", "0.999", True, ["holds", "holds", "fails", "holds"], None),
        ("0.9*0.99^t", "0.8", True, ["holds"] * 4, "T^(-1/2) (log T)^(1/2)"),
        ("0.9*0.99^t", "0.5", True, ["holds", "holds", "holds", "fails"], None),
        ("0.9*0.99^t", "1 - 1/t", False, ["holds"] * 6, "T^(-1/2)"),
        ("0", "1 - 1/t", False, ["holds"] * 6, "T^(-1/2)"),
        ("0.9/t^0.75", "1 - 1/t", False, ["holds"] * 6, "T^(-1/4)"),
        ("0.9*0.99^t", "0.999", False, ["holds", "holds", "holds", "holds", "fails", "holds"], None),
    ],
)
def test_theorems_4_and_5_of_reddi_ask_for_momentum_that_fades(beta, theta, maximum, statuses_, rate):
    x = Algorithm(Method("0.5/sqrt(t)", beta, theta), initial_v=0, eps=0, running_maximum=maximum)
    found = certify_algorithm(x, theorem="reddi2018_regret", setting=CONVEX)
    assert statuses(found.findings[0]) == statuses_
    assert (None if found.rate is None else str(found.rate)) == rate
    assert not Reddi2018Regret().examine(x).covers  # convexity is not asserted


def test_corollaries_1_and_2_of_reddi_with_their_missing_factor():
    """theorems.md: D = 2, alpha = 0.5, beta = 0.9, lambda = 0.99, T = 10^4, d = 3, G = 1."""
    given = {"alpha": 0.5, "beta": 0.9, "fading": 0.99, "diameter": 2}
    assert reference.corollary_regret(3.0, 10**4, theta=0.999, **given) == pytest.approx(36849500.5141, rel=1e-9)
    assert reference.corollary_regret(3.0, 10**4, **given) == pytest.approx(21912000, rel=1e-12)


PROBLEM = problem_of(smoothness=2, gradient_bound=3, dimension=5, gap=4, epsilon=1e-4)


def defossez(method, horizon=None):
    return Defossez().examine(Algorithm(method, initial_v=0, eps=1e-5, eps_under_root=True, horizon=horizon))


def corrected(lr, beta, theta):
    method = Method(lr, beta, theta)
    return Method(lr * sqrt(bias_correction(method.theta)), beta, theta)


def theirs(alpha, beta, theta, problem, steps):
    """Their bound on their algorithm; eps^2 = (1 - theta) epsilon under the root."""
    eps = math.sqrt((1 - theta) * problem.epsilon)
    x = Algorithm(corrected(alpha, beta, theta), initial_v=0, eps=eps, eps_under_root=True)
    return Defossez().bound(x, replace(problem, gradient_sup=problem.gradient_bound), steps)


def test_defossez_wants_their_step_size_and_a_horizon():
    method = corrected(0.001, 0.9, 0.999)
    assert statuses(defossez(method, 10_000)) == ["holds"] * 5
    for horizon in (None, 9, 10_000):
        assert [one.number for one in defossez(method, horizon).conditions] == [1, 2, 3, 4, 5]
    assert defossez(method, 10_000).verdict is Verdict.CERTIFIED
    assert defossez(method).verdict is Verdict.UNDECIDED
    assert defossez(method, 9).conditions[4].status is Status.FAILS  # N must exceed 9
    assert defossez(method, 10).conditions[4].status is Status.HOLDS
    assert defossez(adam(), 10_000).conditions[3].status is Status.FAILS
    assert defossez(Method(0.001, 0.9, 0.8), 100).conditions[2].status is Status.FAILS
    assert defossez(certified_adam(), 10_000).verdict is Verdict.NOT_CERTIFIED


def test_defossez_by_name_is_their_bound_on_their_algorithm():
    """eps^2 = (1 - theta) epsilon under the root: epsilon = 1e-4 of PROBLEM is eps = 1e-3 here."""
    x = Algorithm(corrected(0.01, 0.9, 0.99), initial_v=0, eps=1e-3, eps_under_root=True)
    problem = replace(PROBLEM, gradient_sup=3)
    found = bound_of(x, problem, 1000, theorem="defossez2020")
    assert found.expectation == pytest.approx(theirs(0.01, 0.9, 0.99, PROBLEM, 1000).expectation, rel=1e-9)
    assert found.needs == ("no entry of a gradient exceeds 3",)
    assert "defossez2020" in dict(bound_of(x, problem, 1000).others)
    for other, told in (
        (replace(x, eps_under_root=False), "under the root"),
        (replace(x, initial_v=1e-8), "v_0 = 0"),
        (replace(x, method=Method(0.01, 0.9, 0.99)), "correction"),
    ):
        assert told in str(dict(bound_of(other, problem, 1000, theorem="defossez2020").missing)["defossez2020"])
    assert not bound_of(x, problem, 9, theorem="defossez2020").is_valid
    assert not bound_of(x, PROBLEM, 1000, theorem="defossez2020").is_valid


def test_defossez_knows_their_step_size_by_its_form_for_any_number_of_steps():
    found = defossez(corrected(0.001, 0.9, 0.999), 10**12)
    assert found.verdict is Verdict.CERTIFIED
    assert found.conditions[3].reason.endswith("for every t.")


def test_defossez_constants_written_out():
    alpha, beta, theta, steps = 0.01, 0.9, 0.99, 1000
    R, L, d = 3 + 0.01, 2, 5
    E = (
        alpha * d * R * L * 0.1 / ((1 - 0.9 / 0.99) * 0.01)
        + 12 * d * R * R * 0.1**0.5 / ((1 - 0.9 / 0.99) ** 1.5 * 0.01**0.5)
        + 2 * alpha**2 * d * L**2 * 0.9 / ((1 - 0.9 / 0.99) * 0.01**1.5)
    )
    effective = 1000 - 9
    expected = 2 * R * 4 / (alpha * effective) + E * (
        math.log(1 + R**2 / (0.01 * 1e-4)) / effective - 1000 / effective * math.log(0.99)
    )
    result = theirs(alpha, beta, theta, PROBLEM, steps)
    assert result.constants["E"] == pytest.approx(E, rel=1e-12)
    assert result.expectation == pytest.approx(expected, rel=1e-12)
    assert result.constants["effective_steps"] == pytest.approx(effective)


def test_defossez_tuned_constants_give_log_over_root():
    """alpha = 1/sqrt N, theta = 1 - 1/N: the bound times sqrt(N)/log N settles."""
    scaled = [
        theirs(1 / math.sqrt(N), 0.5, 1 - 1 / N, PROBLEM, N).expectation * math.sqrt(N) / math.log(N)
        for N in (10**6, 10**8, 10**10)
    ]
    assert scaled[2] == pytest.approx(scaled[1], rel=0.1)
    assert scaled[1] == pytest.approx(scaled[0], rel=0.2)


@pytest.mark.parametrize("arguments", [(0.1, 0.99, 0.9, 100), (0.1, 0.99, 0.999, 50)])
def test_defossez_refuses_what_the_theorem_excludes(arguments):
    alpha, beta, theta, steps = arguments
    with pytest.raises(TheoremError, match=r"beta_t < theta_t|N must exceed"):
        theirs(alpha, beta, theta, PROBLEM, steps)


def test_defossez_bounds_a_run_of_their_adam():
    """Their Adam on the sum of x^2/(1+x^2), signs as noise: E|grad F(x_tau)|^2 stays below the bound."""
    seeds, d, N, alpha, beta, theta, epsilon = 200, 3, 400, 0.05, 0.5, 0.99, 1e-4
    generator = np.random.default_rng(5)
    x = np.full((seeds, d), 1.5)
    m, v = np.zeros_like(x), np.zeros_like(x)
    squared = np.empty((N, seeds))
    for n in range(1, N + 1):
        slope = 2 * x / (1 + x**2) ** 2
        squared[n - 1] = (slope**2).sum(axis=1)
        g = slope + generator.choice([-0.5, 0.5], size=x.shape)
        m = beta * m + g
        v = theta * v + g * g
        x -= alpha * (1 - beta) * math.sqrt((1 - theta**n) / (1 - theta)) * m / np.sqrt(epsilon + v)
    chances = 1 - beta ** (N - np.arange(N))
    measured = float((squared.mean(axis=1) * chances).sum() / chances.sum())
    problem = problem_of(2, 0.6495 + 0.5, d, d * 1.5**2 / (1 + 1.5**2), epsilon)
    assert measured <= theirs(alpha, beta, theta, problem, N).expectation
