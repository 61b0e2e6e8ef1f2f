"""The decider: each hypothesis for every t and up to a horizon, with typed witnesses."""

import math
from fractions import Fraction

import pytest

from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Opaque, parse
from generic_adam.schedules.tree import Bounded
from generic_adam.schedules.work import Budget
from generic_adam.theorems import decide
from generic_adam.theorems.decide import GrowthWitness, LimitWitness, Status, StepWitness
from generic_adam.theorems.epsilon import Epsilon
from generic_adam.theorems.weighted import Weighted

SQUARES = Bounded(Opaque(lambda t: float(math.isqrt(int(t)) ** 2 == t)), 0.0, 1.0)
WEIGHTED = {
    # theorems.md, section 4: name -> (alpha, beta, theta, status, rate)
    "AdaEMA": ("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)", "holds", "T^(-1/2) log T"),
    "s = 1": ("1/t", 0.9, "1 - 1/(t+1)", "holds", "(log T)^(-1)"),
    "r > 2s": ("t^(-1/4)", 0.9, "1 - 1/(t+1)", "holds", "T^(-1/4) log T"),
    "NosAdam-HH r = 1": ("1/sqrt(t)", 0.9, "theta_from_weights(1/t)", "holds", "T^(-1/2) log T log log T"),
    "NosAdam-HH r = 1.25": ("1/sqrt(t)", 0.9, "theta_from_weights(t^-1.25)", "holds", "T^(-1/4)"),
    "NosAdam-HH r = 1.5": ("1/sqrt(t)", 0.9, "theta_from_weights(t^-1.5)", "fails", None),
    "weights t^2": ("1/sqrt(t)", 0.9, "theta_from_weights(t^2)", "holds", "T^(-1/2) log T"),
    "constant alpha": ("0.001", 0.9, "1 - 1/(t+1)", "fails", None),
    "geometric alpha": ("0.99^t", 0.9, "1 - 1/(t+1)", "fails", None),
    "constant theta": ("0.001/sqrt(t)", 0.9, "0.999", "fails", None),
    "beta_t -> 1": ("1/sqrt(t)", "1 - 1/(t+1)", "1 - 1/(t+1)", "fails", None),
    "restarts to 0": ("periodic(t - 1, 5)/sqrt(t)", 0.9, "1 - 1/(t+1)", "holds", "T^(-1/2) log T"),
    "a callable": (lambda t: 1 / t, 0.9, "1 - 1/(t+1)", "undecided", None),
    "theta_1 = 0": ("1/sqrt(t)", 0.9, "1 - 1/t", "fails", None),
    # t^(-1/2) at perfect squares and 0 elsewhere: the sum diverges, and W's bound tends to no 0.
    "perfect squares": (SQUARES * parse("1/sqrt(t)"), 0.9, "1 - 1/(t+1)", "undecided", None),
}


@pytest.mark.parametrize(("alpha", "beta", "theta", "status", "rate"), WEIGHTED.values(), ids=WEIGHTED)
def test_w_infinity_decides_its_table(alpha, beta, theta, status, rate):
    found = Weighted().examine(Algorithm(Method(alpha, beta, theta)))
    assert found.verdict == {"holds": "certified", "fails": "not certified"}.get(status, status)
    assert (found.rate and str(found.rate)) == rate
    if status == "fails":
        assert found.first_failing.witness is not None


def test_theta_1_may_be_zero_where_an_epsilon_is_in_the_denominator():
    method = Method("1/sqrt(t)", 0.9, "1 - 1/t")
    assert decide.in_unit_interval(method.theta).witness == StepWitness(1, 0.0)
    assert decide.in_unit_interval(method.theta, from_zero=True).holds
    found = Weighted().examine(Algorithm(method))
    assert [str(one.status) for one in found.conditions] == ["holds", "fails", "holds", "holds", "holds"]  # no order
    assert found.first_failing.witness == 1
    assert Epsilon().examine(Algorithm(method, eps=1e-8)).verdict == "certified"


def test_w_infinity_on_the_power_family():
    for i in range(10):
        for j in range(10):
            r, s = Fraction(i, 4), Fraction(j, 8)
            held = Weighted().examine(Algorithm(Method(f"0.5/t^({s})", 0.9, f"1 - 0.5/t^({r})"))).verdict
            assert (held == "certified") == ((0 < s < 1 and 0 < r < 1 + s) or (s == 1 and 0 < r <= 2))


def test_witnesses_are_typed():
    assert decide.positive(parse("3 - t")).witness == StepWitness(3, 0.0)
    assert decide.positive(parse("3 - t"), horizon=2).holds
    falls = decide.non_decreasing(parse("0.99 if t < 500 else 0.98"))
    assert falls.witness == StepWitness(500, 0.98)
    grows = decide.step_sizes(Method("t^0.25", 0.9, 0.75))
    assert isinstance(grows.witness, GrowthWitness)
    assert str(grows.witness) == "chi_t ~ t^(1/4)"
    floor = decide.paper_ratio(Method(0.001, 0.9, 0.999))
    assert isinstance(floor.witness, LimitWitness)
    assert floor.witness.limit == pytest.approx(0.001**0.5)


def test_the_constant_and_the_rate_come_with_the_decision():
    found = decide.step_sizes(Method("min(t, 7)/t", 0.9, 0.75))
    assert found.constant == pytest.approx(1, abs=1e-12)
    assert "C0 = 1" in decide.step_sizes(Method("min(t, 7)/t", 0.9, 0.75), 100).reason
    rate = decide.paper_ratio(Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")).rate
    assert rate is not None
    assert (rate.power, rate.log) == (Fraction(-1, 2), 1)


def test_a_rise_that_the_budget_cut_off_says_so():
    method = Method("0.001 * periodic(0.2 + t/9, 7)", 0.9, 0.999)
    with Budget(0):
        cut = decide.step_sizes(method, 10**7)
        opened = decide.step_sizes(Method(lambda t: 1 + t % 3, 0.9, 0.999))
    assert cut.status is opened.status is Status.UNDECIDED
    assert cut.reason.startswith("C0 of chi_t up to t = 10000000 (R3) is not known: the budget of 0 steps")
    assert "the budget of 0 steps" in opened.reason
    assert "inf" not in opened.reason


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("1/t", "holds"),
        ("1/(t*log(t+1)*log(log(t+9)))", "holds"),
        ("1/(t*log(t+1)^2)", "fails"),
        ("0.99^t", "fails"),
        ("sin(t)", "undecided"),
    ],
)
def test_divergence_of_sums(text, status):
    assert decide.sum_diverges(parse(text)).status == status


def test_unit_intervals():
    assert decide.in_unit_interval(parse("1 - 1/(t+1)")).holds
    assert decide.in_unit_interval(parse("1 - 1/t")).witness == StepWitness(1, 0.0)
    assert decide.in_unit_interval(parse("t/4")).witness == StepWitness(4, 1.0)
    assert decide.limit_is_one(parse("1 - 1/t")).holds
    assert decide.bounded_below_one(parse("0.9 + 0.05*sin(t)")).holds


def test_an_upper_bound_alone_is_no_order():
    """u_t <= 1 of a callable does not refute that it tends to 0, and u_t/t has no order that a sum could take."""
    some = Bounded(Opaque(lambda t: float(t % 7 == 0) / t), 0.0, 1.0)
    for one in (some, some * parse("1/t")):
        assert decide.vanishes(one.growth, "u_t", "t").status is Status.UNDECIDED
    assert decide.vanishes(parse("1 + 1/t").growth, "u_t", "t").status is Status.FAILS
