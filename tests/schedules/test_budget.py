import time

import pytest

from generic_adam.schedules.budget import Budget, Undecided, check_time


def _work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_only_an_enclosing_budget_limits():
    check_time(1)
    with Budget(0.0):
        _work(1e-3)
        with pytest.raises(Undecided, match=r"^the budget of 0 s was used up at t = 1,234$"):
            check_time(1234)
    check_time(1)


def test_an_inner_budget_never_ends_after_the_outer_one():
    with Budget(1.0) as outer:
        assert Budget(5.0).end == outer.end
        with Budget(0.5) as inner:
            assert inner.end < outer.end
            assert Budget(0.7).seconds == 0.5
        assert Budget(0.7).seconds == 0.7


def test_too_many_questions_end_it_whatever_the_time():
    budget = Budget(1000)
    for t in range(1, 5001):
        budget.ask(t)
    with pytest.raises(Undecided, match="5,000 steps were asked about up to t = 5,001"):
        budget.ask(5001)
