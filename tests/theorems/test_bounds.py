"""The smallest bound of all theorems, beside the trivial one."""

from dataclasses import replace
from fractions import Fraction

import pytest

from generic_adam import methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.theorems.amsgrad import amsgrad_bound, amsgrad_epsilon_bound
from generic_adam.theorems.bounds import bound_algorithm, informative_from
from generic_adam.theorems.decay import decay_bound
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import Sequences

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
    with pytest.raises(TheoremError, match="no theorem is called 'Q'"):
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


class TestOtherTheorems:
    """D, M, O and C through the same door, each equal to its own function."""

    KNOWN = replace(PROBLEM, box=1.0, gradient_sup=1.0)

    def test_adamw_needs_a_box(self):
        algorithm = methods.adamw(weight_decay=0.01)
        without = bound_algorithm(algorithm, PROBLEM, 1000)
        assert not without.is_valid
        assert "`box`" in dict(without.missing)["D"]
        found = bound_algorithm(algorithm, self.KNOWN, 1000)
        assert found.theorem == "D"
        own = decay_bound(Sequences.of_algorithm(algorithm, 1000), self.KNOWN)
        assert found.expectation == pytest.approx(own.l2, rel=1e-12)

    def test_amsgrad_takes_the_smaller_of_two(self):
        algorithm = Algorithm(Method("1e-3/sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-8, running_maximum=True)
        found = bound_algorithm(algorithm, self.KNOWN, 1000)
        assert found.theorem == "M"
        sequences = Sequences.of_algorithm(algorithm, 1000)
        both = [amsgrad_bound(sequences, self.KNOWN).l2, amsgrad_epsilon_bound(sequences, self.KNOWN).l2]
        assert found.expectation == pytest.approx(min(both), rel=1e-12)
        assert "gradient_sup" in dict(bound_algorithm(algorithm, PROBLEM, 1000).missing)["M"]
        padam = replace(algorithm, power=Fraction(1, 8))
        assert bound_algorithm(padam, self.KNOWN, 1000).theorem == "M"

    def test_adopt(self):
        algorithm = Algorithm(Method("1e-3/sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-2, delayed=True)
        found = bound_algorithm(algorithm, PROBLEM, 1000)
        assert (found.theorem, found.constants["X_w"]) == ("O", pytest.approx(24.1935203466, rel=1e-9))

    def test_clipping_that_never_happens_changes_nothing(self):
        small = replace(PROBLEM, gradient_sup=0.1)  # a norm of at most 0.1 sqrt(10) = 0.316
        clipped = Algorithm(METHOD, clipping=Clipping(0.5))
        plain = bound_algorithm(Algorithm(METHOD), small, 1000)
        assert bound_algorithm(clipped, small, 1000) == plain
        assert not bound_algorithm(Algorithm(METHOD, clipping=Clipping(0.3)), small, 1000).is_valid

    def test_full_batches(self):
        exact = replace(PROBLEM, variance=0.0)
        found = bound_algorithm(Algorithm(Method(1e-3, 0, 0.999), clipping=Clipping(0.5)), exact, 1000)
        assert found.theorem == "C"
        assert found.constants["noise"] == 0
        whole = bound_algorithm(Algorithm(Method(1e-3, 0, 0.999)), exact, 1000)
        assert whole.theorem in {"C", "W"}
        assert whole.constants["X_w"] < found.constants["X_w"]

    def test_a_biased_gradient_has_its_price(self):
        algorithm = Algorithm(Method(1e-3, 0.9, 0.999), initial_v=0, eps=0.1, clipping=Clipping(1.0))
        found = bound_algorithm(algorithm, PROBLEM, 1000)
        assert found.theorem == "C"
        assert (
            found.expectation > bound_algorithm(replace(algorithm, clipping=None), PROBLEM, 1000).expectation
        )
