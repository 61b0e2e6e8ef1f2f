"""Method: three schedules, frozen, compared by what they are."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from generic_adam.methods import Method, MethodError, as_algorithm, entries
from generic_adam.schedules import Schedule, parse


def test_each_sequence_may_be_a_number_text_schedule_or_callable():
    method = Method(alpha=lambda t: 0.5 / t, beta=0.9, theta=parse("1 - 1/max(t, 2)"))
    assert all(isinstance(one, Schedule) for one in (method.alpha, method.beta, method.theta))
    assert method.at(4) == (0.125, 0.9, 0.75)
    assert Method("0.5/sqrt(t)", "0.9", 0.99).at(4) == (0.25, 0.9, 0.99)


def test_at_is_the_three_schedules_at_t():
    for entry in entries():
        method = as_algorithm(entry.build()).method
        for t in (1, 2, 3, 999, 10_001, 123_456):
            assert method.at(t) == (method.alpha(t), method.beta(t), method.theta(t))
            assert all(type(value) is float for value in method.at(t))


def test_methods_with_equal_sequences_are_equal_and_hash_alike():
    first = Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
    again = Method(alpha=parse("0.5 / sqrt(t)"), beta="0.9", theta="1-1/max(t,2)")
    assert first == again
    assert len({first, again}) == 1
    assert first != Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 3)")


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_pickle_and_deepcopy_keep_the_method(entry):
    method = as_algorithm(entry.build()).method
    method.at(7)  # fills the caches, which must not travel
    for twin in (pickle.loads(pickle.dumps(method)), copy.deepcopy(method)):
        assert twin == method
        assert twin.at(1000) == method.at(1000)


def test_a_method_cannot_be_changed():
    method = Method(1, 0, 0.5)
    with pytest.raises(FrozenInstanceError):
        method.alpha = parse("2")  # type: ignore[misc]


def test_repr_reads_like_the_paper():
    method = Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
    assert repr(method) == "Method(alpha_t = 0.5 / sqrt(t), beta_t = 0.9, theta_t = 1 - 1 / max(t, 2))"


def test_from_weights_is_the_quotient_of_successive_sums():
    method = Method.from_weights(alpha="1/sqrt(t)", beta=0.9, weights="t^0.5", initial=2.0)
    sums = 2 + np.cumsum(np.sqrt(np.arange(1, 101)))
    expected = np.concatenate(([2.0], sums[:-1])) / sums
    np.testing.assert_allclose(method.theta.values(1, 101), expected, rtol=1e-14)


def test_from_weights_refuses_a_start_that_is_not_positive():
    with pytest.raises(MethodError, match="W_0 must be positive"):
        Method.from_weights(1, 0, "t", initial=0)


def test_geometric_weights_as_a_schedule_are_constant_theta():
    # w_t = (1 - theta) theta^-t through the schedule algebra, past the t where raw weights overflow
    method = Method.from_weights(1, 0, "0.001 * 0.999^(-t)")
    for t in (1, 1000, 10**6):
        assert method.theta(t) == pytest.approx(0.999, rel=1e-12)
