"""The smallest bound of all theorems, beside the trivial one."""

from dataclasses import replace
from fractions import Fraction

import pytest

from generic_adam import methods
from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.theorems import bounds
from generic_adam.theorems.amsgrad import amsgrad_bound
from generic_adam.theorems.bounds import bound_algorithm, informative_from
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.theorem import Offer, Theorem
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import known

PROBLEM = known(smoothness=1, gradient_bound=1, dimension=10, gap=1)
METHOD = Method("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)")


def test_theorem_w_is_six_powers_of_ten_below_the_paper():
    found = bound_algorithm(METHOD, PROBLEM, 1000)
    assert found.theorem == "W"
    assert found.constants["X_w"] <= 63.9218639441
    assert dict(found.others)["zou2019"] > 1e8
    assert not found.informative
    assert found.needs == ()
    assert found.trivial == 1.0


def test_one_theorem_alone():
    found = bound_algorithm(METHOD, PROBLEM, 1000, theorem="zou2019")
    assert found.expectation <= 278617829.311 * (1 + 1e-9)
    assert found.value == pytest.approx(found.expectation / 0.1)
    assert found.probability == pytest.approx(1 - 0.1 ** (2 / 3))
    with pytest.raises(TheoremError, match="'Q'"):
        bound_algorithm(METHOD, PROBLEM, 1000, theorem="Q")


def test_torch_adam_is_informative_on_a_long_run():
    even = known(1, [10**-0.5] * 10, 10, 1)
    found = bound_algorithm(methods.adamw(weight_decay=0), even, 100_000)
    assert found.theorem == "E"
    assert found.l1 / found.trivial_l1 <= 0.6541
    assert found.informative
    since = informative_from(methods.adamw(weight_decay=0), even)
    assert since is not None
    assert since < 100_000
    assert bound_algorithm(methods.adamw(weight_decay=0), even, since).informative


def test_a_theorem_that_says_something_comes_before_one_that_does_not(monkeypatch):
    class Smaller(Theorem):
        name = "smaller"

        def bound(self, x, problem, steps):
            return Offer(1.01 * problem.trivial_l2, None, {})

    monkeypatch.setattr(Smaller, "outside", lambda *_: ())
    monkeypatch.setattr(bounds, "THEOREMS", (Smaller(), *bounds.THEOREMS))
    found = bound_algorithm(methods.adamw(weight_decay=0), known(1, [10**-0.5] * 10, 10, 1), 100_000)
    assert found.theorem == "E"
    assert found.informative
    assert found.trivial < dict(found.others)["smaller"]


def test_a_bound_is_only_given_where_a_theorem_covers():
    clipped = Algorithm(METHOD, clipping=Clipping(1.0))
    found = bound_algorithm(clipped, PROBLEM, 1000)
    assert not found.is_valid
    assert dict(found.missing)["W"].kind == "clipping"
    for delta in (0, 1, -0.1, 2, float("nan")):
        with pytest.raises(TheoremError, match="delta"):
            bound_algorithm(METHOD, PROBLEM, 1000, delta=delta)


class TestDecayInsideTheGradient:
    """Adam on f + (lambda/2)|x|^2: the bound is that of the sum, or there is none."""

    def test_it_is_the_bound_of_the_sum(self):
        plain, decayed = (
            methods.adamw(weight_decay=0),
            replace(methods.adamw(weight_decay=0), l2=Fraction(1, 10)),
        )
        found = bound_algorithm(decayed, replace(PROBLEM, weights_bound=2.0), 1000)
        # L + lambda, G + lambda X sqrt(d), gap + lambda d X^2/2.
        by_hand = known(1.1, 1 + 0.2 * 10**0.5, 10, 1 + 0.1 * 10 * 4 / 2)
        assert found.expectation == pytest.approx(bound_algorithm(plain, by_hand, 1000).expectation)
        assert found.trivial == pytest.approx((1 + 0.2 * 10**0.5) ** 2)
        assert found.l2 == 0.1
        assert found.needs == ("every weight stays within 2",)

    def test_without_a_box_it_is_refused(self):
        with pytest.raises(TheoremError, match="weights_bound"):
            bound_algorithm(Algorithm(METHOD, l2=0.1), PROBLEM, 1000)

    def test_added_after_clipping_it_is_not_covered(self):
        x = Algorithm(METHOD, initial_v=0, eps=1e-8, l2=0.1, clipping=Clipping(0.5))
        found = bound_algorithm(x, replace(PROBLEM, weights_bound=1.0), 1000)
        assert not found.is_valid
        assert dict(found.missing)["C"].kind == "excluded"


def test_groups_that_differ_have_no_bound_together():
    x = replace(methods.adamw(weight_decay=0), others=(replace(methods.adamw(theta=0.99), groups=(1,)),))
    with pytest.raises(TheoremError, match="groups"):
        bound_algorithm(x, PROBLEM, 1000)


def test_theta_that_rounds_to_one_has_no_bound_and_no_warning():
    found = bound_algorithm(Method("0.1/t^0.5", 0.9, "1 - 0.5^t"), PROBLEM, 10_000, theorem="W")
    assert found.expectation == float("inf")
    assert not found.informative


class TestOtherTheorems:
    """D, M, O and C through the same door, each equal to its own function."""

    KNOWN = replace(PROBLEM, weights_bound=1.0, gradient_sup=1.0)

    def test_adamw_needs_a_box(self):
        algorithm = methods.adamw(weight_decay=0.01)
        without = bound_algorithm(algorithm, PROBLEM, 1000)
        assert not without.is_valid
        assert "`weights_bound`" in str(dict(without.missing)["D"])
        found = bound_algorithm(algorithm, self.KNOWN, 1000)
        assert found.theorem == "D"
        assert found.needs == ("every weight stays within 1",)
        own = weighted_bound(Sequences.of_algorithm(algorithm, 1000), Constants.of(self.KNOWN))
        assert found.expectation == pytest.approx(own.l2 * (1 + own.rounding), rel=1e-12)

    def test_amsgrad_takes_the_smaller_of_two(self):
        algorithm = Algorithm(Method("1e-3/sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-8, running_maximum=True)
        found = bound_algorithm(algorithm, self.KNOWN, 1000)
        assert found.theorem == "M"
        assert found.needs == ("no entry of a gradient exceeds 1",)
        sequences = Sequences.of_algorithm(algorithm, 1000)
        numbers = Constants.of(self.KNOWN)
        both = [amsgrad_bound(sequences, numbers).l2, weighted_bound(sequences, numbers).l2]
        assert found.expectation == pytest.approx(min(both), rel=1e-11)  # rounded up
        assert dict(bound_algorithm(algorithm, PROBLEM, 1000).missing)["M"].about == "gradient_sup"
        padam = replace(algorithm, power=Fraction(1, 8))
        assert bound_algorithm(padam, self.KNOWN, 1000).theorem == "M"

    def test_adopt(self):
        algorithm = Algorithm(Method("1e-3/sqrt(t)", 0.9, 0.999), initial_v=0, eps=1e-2, delayed=True)
        found = bound_algorithm(algorithm, PROBLEM, 1000)
        assert (found.theorem, found.constants["X_w"]) == ("O", pytest.approx(24.1935203466, rel=1e-9))
        # An Algorithm's divisor is sqrt(v) + eps, which is at most G + eps.
        assert found.constants["s2"] == pytest.approx(1.01)

    def test_a_bound_on_every_gradient_is_trivial_too(self):
        certain = replace(PROBLEM, gradient_sup=0.01)
        found = bound_algorithm(METHOD, certain, 1000)
        assert (found.trivial, found.trivial_l1) == (pytest.approx(1e-3), pytest.approx(0.1))

    def test_clipping_that_never_happens_changes_nothing(self):
        small = replace(PROBLEM, gradient_sup=0.1)  # a norm of at most 0.1 sqrt(10) = 0.316
        clipped = Algorithm(METHOD, clipping=Clipping(0.5))
        plain = bound_algorithm(Algorithm(METHOD), small, 1000)
        found = bound_algorithm(clipped, small, 1000)
        assert "no entry of a gradient exceeds 0.1" in found.needs
        assert replace(found, needs=()) == plain
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
        assert found.expectation > bound_algorithm(replace(algorithm, clipping=None), PROBLEM, 1000).expectation


def test_a_bound_has_a_budget():
    slow, problem = Method(lambda t: 1e-3 / t**0.5, 0.9, 0.999), known(1, 1, 10, 1)
    found = bound_algorithm(slow, problem, 10**7, theorem="W", budget=0.1)
    assert not found.is_valid
    assert "the budget of 1,677,721 steps" in str(dict(found.missing)["W"])
    assert informative_from(slow, problem, budget=0) is None
