import math

import numpy as np
import pytest

from generic_adam.schedules import Opaque, ScheduleError, as_schedule


def test_a_vectorised_callable_is_called_once_a_block():
    calls = []

    def alpha(t):
        calls.append(np.ndim(t))
        return 0.5 / np.sqrt(t)

    values = as_schedule(alpha).values(1, 5001)
    np.testing.assert_allclose(values, 0.5 / np.sqrt(np.arange(1, 5001)), rtol=1e-15)
    assert calls.count(1) == 1
    assert len(calls) < 10


@pytest.mark.parametrize(
    "function",
    [
        lambda t: 0.1 if t < 50 else 0.01,
        lambda t: max(t, 2) / 1000,
        lambda t: math.exp(-t),
        lambda t: 0.9,
        lambda t: float(np.sum(t)),  # takes arrays, but is not a function of each entry
        lambda t: t[0] if np.ndim(t) else t,
    ],
)
def test_a_scalar_callable_gives_the_same_numbers_one_by_one(function):
    schedule = as_schedule(function)
    np.testing.assert_array_equal(schedule.values(1, 101), [function(t) for t in range(1, 101)])


def _raises(t):
    if t >= 7:
        raise KeyError("no entry")
    return 0.1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_raises, "raised at t = 7: KeyError"),
        (lambda t: np.zeros(3), "returned an array at t = 1"),
        (lambda t: "fast", "returned 'fast' at t = 1"),
        (lambda t: None, "returned None at t = 1"),
    ],
)
def test_a_bad_callable_is_named_with_the_step(function, message):
    with pytest.raises(ScheduleError) as caught:
        as_schedule(function).values(1, 20)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_known_of_its_tail():
    schedule = as_schedule(lambda t: 1 / t)
    assert isinstance(schedule, Opaque)
    assert schedule.growth is None
    assert (schedule * 2).growth is None
