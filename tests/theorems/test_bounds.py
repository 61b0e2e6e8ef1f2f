"""The smallest bound of all theorems, beside the trivial one."""

import pytest

from generic_adam import methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.theorems.bounds import bound_algorithm, informative_from
from generic_adam.theorems.problem import Problem

PROBLEM = Problem(smoothness=1, gradient_bound=1, dimension=10, gap=1, epsilon=1e-8)
METHOD = Method("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)")


def test_theorem_w_is_six_powers_of_ten_below_the_paper():
    found = bound_algorithm(METHOD, PROBLEM, 1000)
    assert found.theorem == "W"
    assert found.constants["X_w"] <= 63.9218639441
    assert dict(found.others)["zou2019"] > 1e8
    assert not found.informative
    assert "silent" in found.statement
    assert found.trivial == 1.0


def test_one_theorem_alone():
    found = bound_algorithm(METHOD, PROBLEM, 1000, theorem="zou2019")
    assert found.expectation <= 278617829.311 * (1 + 1e-9)
    with pytest.raises(TheoremError, match="no theorem 'Q' gives bounds here"):
        bound_algorithm(METHOD, PROBLEM, 1000, theorem="Q")


def test_torch_adam_is_informative_on_a_long_run():
    even = Problem(1, [10**-0.5] * 10, 10, 1)
    found = bound_algorithm(methods.adamw(weight_decay=0), even, 100_000)
    assert found.theorem == "E"
    assert found.l1 / found.trivial_l1 <= 0.6541
    assert found.informative
    since = informative_from(methods.adamw(weight_decay=0), even)
    assert since is not None
    assert since < 100_000
    assert bound_algorithm(methods.adamw(weight_decay=0), even, since).informative


def test_a_bound_is_only_given_where_a_theorem_covers():
    clipped = Algorithm(METHOD, clipping=Clipping(1.0))
    found = bound_algorithm(clipped, PROBLEM, 1000)
    assert not found.is_valid
    assert "clipped" in found.statement
    with pytest.raises(TheoremError, match="delta"):
        bound_algorithm(METHOD, PROBLEM, 1000, delta=2)
