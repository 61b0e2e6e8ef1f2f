import numpy as np
import pytest

from generic_adam.errors import ScheduleError, StoppedError
from generic_adam.guard import guard
from generic_adam.schedules import parse
from generic_adam.schedules.balls import Precision, nearest, value
from generic_adam.schedules.prove import Inequality, every
from generic_adam.schedules.work import Account, Budget, Spent, Work, allow, budget_factor, charge, note, poll, reach

RUNNING = ["theta_from_weights(log(t + 1))", "bias_correction(1 - 1/(t + 1))"]


def test_only_what_is_counted_for_a_question_is_limited():
    charge(Work.WALKED, 10**15)
    with Budget(0.5), Account():
        charge(Work.ASKED, 1000, 7)
        with pytest.raises(Spent, match=r"^the budget of 1,000 values .* used up at t = 1,234 \(the option `budget`"):
            charge(Work.ASKED, 1, 1234)


def test_a_question_inside_another_has_an_account_of_its_own():
    with Account():
        charge(Work.ASKED, 2000)
        with Account():
            charge(Work.ASKED, 2000)
        with pytest.raises(Spent):
            charge(Work.ASKED, 1)


@pytest.mark.parametrize("text", RUNNING)
def test_what_is_kept_counts_like_what_is_walked(text):
    schedule = parse(text)
    for _warm in range(2):
        with Precision(512), Budget(1e-2), Account(), pytest.raises(Spent, match="factors multiplied"):
            value(schedule, 3000)
        assert nearest(value(schedule, 3000)) == pytest.approx(schedule(3000))
    with Account() as account:
        reach(Work.MULTIPLIED, "one", 1 << 18)
        reach(Work.MULTIPLIED, "one", 1 << 17)
        with pytest.raises(Spent):
            account.reach(Work.MULTIPLIED, "other", 1)


@pytest.mark.parametrize("text", RUNNING)
@pytest.mark.parametrize("t", [4097, 40_000, 131_072])
def test_a_running_quantity_late_in_its_run_is_enclosed_as_the_product_in_balls_has_it(text, t):
    quick, slow = value(parse(text), t), None
    with Precision(256):
        slow = value(parse(text), t)
    assert quick.contains(slow)
    assert quick.rel_accuracy_bits() > 20


def test_a_question_left_open_is_told_to_all_enclosing_budgets_cold_and_warm():
    rough = parse("(2 + sin(t^2))/t^2 - (2 + sin(t^2))/(t^2 + 1)")
    answers = []
    for _ in range(2):
        with Budget() as outer, Budget(1e-6) as inner:
            answers.append(every(rough, Inequality.FALLING, 10**6))
        assert inner.spent == outer.spent == [answers[-1].note]
    assert answers[0] == answers[1]
    assert answers[0].spent
    with Budget() as fine:
        note("this")
        note("this")
    assert fine.spent == ["this"]


def test_an_answer_of_a_large_budget_is_none_of_a_small_one():
    rough = parse("1 + 0.1*sin(t^2)/t + 10/t")
    with Budget(0):
        before = every(rough, Inequality.POSITIVE, 1000)
    every(rough, Inequality.POSITIVE, 1000)
    with Budget(0):
        assert every(rough, Inequality.POSITIVE, 1000) == before


@pytest.mark.parametrize("factor", [float("nan"), -1, "2", True, 1j, float("inf")])
def test_a_budget_is_a_factor(factor):
    with pytest.raises(ScheduleError, match="expected a factor"):
        Budget(factor)


def test_the_factor_of_an_enclosing_budget_is_kept_unless_another_is_said():
    assert budget_factor() == 1
    with Budget(3), Budget():
        assert budget_factor() == 3
        with Budget(0.5):
            assert budget_factor() == 0.5
    with Budget(1e308):
        allow(Work.SWEPT, 10**15)


def test_the_guard_stops_what_goes_on_and_nothing_takes_it_for_an_answer(monkeypatch: pytest.MonkeyPatch):
    rough = parse("(2 + sin(t^2))/t^2 - (2 + sin(t^2))/(t^2 + 1)")
    monkeypatch.setattr("generic_adam.guard.SECONDS", -1.0)
    with pytest.raises(StoppedError, match="processor"), guard():
        every(rough, Inequality.FALLING, 1000)
    assert not [key for key in rough.known_facts if isinstance(key, tuple) and key[0] is Inequality.FALLING]
    poll()
    assert np.isfinite(rough(3))
