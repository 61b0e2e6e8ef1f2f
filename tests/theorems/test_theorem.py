"""The vocabulary: a finding's verdict, what an algorithm departs in, and steps that vanish."""

import itertools
import json
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.methods.algorithm import HeavyBall, Nesterov
from generic_adam.schedules import Growth, as_schedule
from generic_adam.setting import Setting
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.decide import Decision, Rate, Status, rate_of
from generic_adam.theorems.theorem import (
    COUPLED_DECAY,
    VANISHING_STEPS,
    About,
    Condition,
    Finding,
    Theorem,
    Verdict,
    beyond,
    departures,
    infinite_sum,
    verdict_of,
)
from generic_adam.theorems.weighted import Weighted
from tests.theorems.problems import problem_of

PAPER = Algorithm(Method("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)"))
CHANGES = {
    "initial_v": {"initial_v": 0, "eps": 1e-8},
    "eps": {"eps": 1e-8},
    "decay": {"decay": 0.01},
    "running_maximum": {"running_maximum": True},
    "power": {"power": Fraction(1, 4)},
    "nesterov": {"nesterov": Nesterov(as_schedule(0.5), as_schedule(0.5))},
    "heavy_ball": {"heavy_ball": HeavyBall(Fraction(9, 10))},
    "clipping": {"clipping": Clipping(1.0)},
    "preconditioned": {"preconditioned": False},
    "delayed": {"delayed": True},
    "factored": {"factored": True},
    "centered": {"centered": True},
    "scaled": {"scaled": True},
    "outside": {"outside": ("a hook",)},
}


@pytest.mark.parametrize("attribute", CHANGES)
def test_every_departure_is_seen_and_keeps_the_paper_s_theorem_away(attribute):
    changed = replace(PAPER, **CHANGES[attribute])
    assert attribute in {one.kind for one in departures(changed)}
    found = Weighted().examine(changed)
    assert not found.covers
    assert found.verdict is Verdict.UNDECIDED
    left = beyond(changed, frozenset(CHANGES) - {"outside"})
    assert tuple(one.about for one in left) == CHANGES[attribute].get("outside", ())


def test_the_papers_algorithm_departs_in_nothing():
    assert departures(PAPER) == []
    assert Weighted().examine(PAPER).verdict is Verdict.CERTIFIED
    for theorem in THEOREMS:
        assert theorem.allows <= {field.name for field in fields(Algorithm)}


def test_a_warning_never_certifies():
    for status in Status:
        found = Finding("x", "X", About.WARNING, conditions=(Condition(1, status, ""),))
        assert found.verdict is not Verdict.CERTIFIED


def test_a_rate_needs_every_condition():
    class Toy(Theorem):
        name, title, statement, covered, source = "toy", "Toy", "it tends to 0", "all", "here"
        statuses = (Status.HOLDS,)

        def decide(self, x, assume):
            order = infinite_sum(x, assume).order
            return [Decision(status, "?", order=order) for status in self.statuses]

    held = Toy().examine(PAPER)
    assert (str(held.rate), held.conclusion, held.first_failing) == ("T^(-1/2) log T", "it tends to 0", None)
    Toy.statuses = (Status.HOLDS, Status.UNDECIDED)
    open_one = Toy().examine(PAPER)
    assert (open_one.rate, open_one.first_failing) == (None, open_one.conditions[1])
    assert json.dumps(held.to_dict())
    with pytest.raises(TheoremError, match="gives no bound for a number of steps"):
        Toy().bound(PAPER, problem_of(1, 1, 1, 1), 10)


def test_decay_inside_the_gradient_is_taken_for_granted_as_a_part_of_the_loss():
    found = Weighted().examine(replace(PAPER, l2=0.1))
    assert found.needs == (COUPLED_DECAY,)


@pytest.mark.parametrize(
    ("alpha", "statuses", "rate"),
    [
        ("1/sqrt(t)", ["holds", "holds", "holds"], "T^(-1/2) log T"),
        ("1/t", ["holds", "holds", "holds"], "(log T)^(-1)"),
        ("1/t^0.25", ["holds", "holds", "holds"], "T^(-1/4)"),
        ("1/t^0.75", ["holds", "holds", "holds"], "T^(-1/4)"),
        ("1/t^2", ["holds", "fails", "holds"], None),
        ("0.1", ["fails", "holds", "holds"], None),
        ("0.99^t", ["holds", "fails", "holds"], None),
    ],
)
def test_the_rate_of_vanishing_steps_is_that_of_their_sums(alpha, statuses, rate):
    """max(1, sum alpha_t^2) / sum alpha_t, by hand."""
    x = Algorithm(Method(alpha, 0.9, 0.999))
    assert [str(one(x, Setting()).status) for one in VANISHING_STEPS] == statuses
    if "fails" not in statuses:
        assert str(infinite_sum(x, Setting()).rate) == rate


@pytest.mark.parametrize("name", ["M", "O", "B", "robbins_monro"])
def test_a_rate_that_is_negative_late_is_not_certified(name):
    """((t - 100000.5)^2 - 1)/t^p is below 0 at t = 100,000 and 100,001 alone."""
    alpha = f"((t - 100000.5)^2 - 1)/t^{2.75 if name == 'robbins_monro' else 2.5}"
    forms = {
        "M": {"eps": 0.1, "running_maximum": True},
        "O": {"eps": 0.1, "delayed": True},
        "robbins_monro": {"preconditioned": False},
    }
    x = Algorithm(Method(alpha, 0, 0 if name == "robbins_monro" else 0.999), **forms.get(name, {}))
    found = theorem_named(name).examine(x, Setting(full_batch=True))
    assert found.covers
    assert found.verdict is not Verdict.CERTIFIED


def test_a_form_without_a_value_leaves_its_hypothesis_open_and_the_others_answered():
    # The minimum is 0, which shows where it is settled: alpha_t/alpha_(t-1) is then 0/0.
    nothing = Algorithm(Method("min(0.999999^t, 1 - log(exp(1)))", 0.9, "1 - 1/(t + 10)"))
    found = theorem_named("R").examine(nothing, Setting(convex=True))
    assert found.verdict is Verdict.NOT_CERTIFIED
    assert Status.UNDECIDED in {one.status for one in found.conditions}


def test_of_a_callable_nothing_is_known():
    x = Algorithm(Method(lambda t: 1 / t, 0.9, 0.999))
    assert [one(x, Setting()).status for one in VANISHING_STEPS[:2]] == [Status.UNDECIDED] * 2
    assert infinite_sum(x, Setting()).rate is None


BAD_ASSUMPTIONS = {
    "weights_bound": -1,
    "gradient_norm": float("nan"),
    "smoothness": "x",
    "full_batch": "no",
    "convex": 0,
}


@pytest.mark.parametrize(("name", "value"), BAD_ASSUMPTIONS.items())
def test_assumptions_are_numbers_that_are_not_negative_or_flags(name, value):
    expected = "True or False" if name in {"full_batch", "convex"} else "a number that is not negative"
    with pytest.raises(TheoremError, match=rf"^{name} is .*, expected {expected}$"):
        Setting(**{name: value})


@pytest.mark.parametrize("statuses", list(itertools.product(Status, repeat=3)))
def test_one_failure_decides_and_one_open_question_keeps_it_open(statuses):
    """Kleene's conjunction: false wins over unknown, unknown over true."""
    order = [Status.FAILS, Status.UNDECIDED, Status.HOLDS]
    meant = {
        Status.FAILS: Verdict.NOT_CERTIFIED,
        Status.UNDECIDED: Verdict.UNDECIDED,
        Status.HOLDS: Verdict.CERTIFIED,
    }
    conditions = tuple(Condition(number, status, "") for number, status in enumerate(statuses, start=1))
    assert verdict_of(conditions) is meant[min(statuses, key=order.index)]


@pytest.mark.parametrize(
    ("powers", "text"),
    [
        ((Fraction(-1, 2), 1, 0), "T^(-1/2) log T"),
        ((0, -1, 0), "(log T)^(-1)"),
        ((Fraction(-1, 2), 1, 1), "T^(-1/2) log T log log T"),
        ((-1, 0, 0), "T^(-1)"),
    ],
)
def test_a_rate_reads_as_mathematics_does(powers, text):
    power, log, loglog = map(Fraction, powers)
    assert str(Rate(power, log, loglog)) == text
    assert rate_of(Growth.of(3, power=power, log=log, loglog=loglog)) == Rate(power, log, loglog)


@pytest.mark.parametrize("witness", [None, 7, "alpha_t of order 1"])
def test_a_condition_is_plain_data(witness):
    condition = Condition(2, Status.FAILS, "It falls.", witness)
    plain = json.loads(json.dumps(condition.to_dict()))
    assert Condition(**plain | {"status": Status(plain["status"])}) == condition
