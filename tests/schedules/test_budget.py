import time

import pytest

from generic_adam.errors import ScheduleError
from generic_adam.schedules import parse
from generic_adam.schedules.balls import nearest, value
from generic_adam.schedules.budget import SECONDS, Budget, Undecided, check_time


def _work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_only_an_enclosing_budget_limits():
    check_time(1)
    with Budget(0.0):
        _work(1e-3)
        with pytest.raises(Undecided, match=r"^the budget of 0 s was used up at t = 1,234 \(the option `budget`"):
            check_time(1234)
    check_time(1)


@pytest.mark.parametrize("text", ["theta_from_weights(log(t + 1))", "bias_correction(1 - 1/(t + 1))"])
def test_a_running_sum_in_balls_keeps_to_it(text):
    schedule = parse(text)
    with Budget(0.0), pytest.raises(Undecided, match="was used up at t = "):
        value(schedule, 2000)
    assert nearest(value(schedule, 2000)) == pytest.approx(schedule(2000))


def test_an_inner_budget_never_ends_after_the_outer_one():
    with Budget(1.0) as outer:
        assert Budget(5.0).end == outer.end
        with Budget(0.5) as inner:
            assert inner.end < outer.end
            assert Budget(0.7).seconds == 0.5
        assert Budget(0.7).seconds == 0.7


def test_a_share_is_of_the_seconds_that_were_given_and_says_so():
    with Budget(0.004) as whole, Budget(share=0.5) as half:
        assert half.seconds == whole.seconds
        assert half.end < whole.end
        _work(0.003)
        with pytest.raises(Undecided, match=r"^its share of the budget of 0.004 s was used up at t = 7 "):
            half.check(7)
    assert Budget().seconds == SECONDS


@pytest.mark.parametrize("seconds", [float("nan"), -1, "2", True, 1j])
def test_a_budget_is_a_number_of_seconds(seconds):
    with pytest.raises(ScheduleError, match="expected a number of seconds, 0 or more"):
        Budget(seconds)


def test_too_many_questions_end_it_whatever_the_time():
    budget = Budget(1000)
    for t in range(1, 5001):
        budget.ask(t)
    with pytest.raises(Undecided, match="5,000 steps were asked about up to t = 5,001"):
        budget.ask(5001)
