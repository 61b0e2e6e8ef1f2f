"""Each repair changes what it says, from the step it says; nothing is trusted here that `advise` does not certify."""

from fractions import Fraction

import numpy as np
import pytest

from generic_adam import methods
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import parse
from generic_adam.theorems import repairs
from generic_adam.theorems.repairs import Candidate, applied, first_below, with_theta

N = 5000


def _candidate(alpha="1e-3", beta="0.9", theta="0.999", keep=None, **more):
    return Candidate(Algorithm(Method(alpha, beta, theta), **more), keep=keep)


CASES = {
    "steady_eps": _candidate(initial_v=0, eps="1e-8/t"),
    "held_beginning": _candidate(theta="1 - 1/t", initial_v=0, eps=1e-8),
    "rising_theta": _candidate(),
    "root_decay": _candidate(),
    "raised_rate": _candidate(alpha="1e-3*0.99^t"),
    "falling_rate": Candidate(methods.amsgrad()),
    "fading_decay": Candidate(methods.adamw()),
}


def _differing(before, after):
    """The steps up to N at which one of the five sequences moved by more than rounding."""
    apart = np.zeros(N, dtype=bool)
    for name in ("alpha", "beta", "theta"):
        pair = [getattr(x.method, name).values(1, N + 1) for x in (before, after)]
        apart |= ~np.isclose(*pair, rtol=1e-9, atol=0)
    for name in ("eps", "decay"):
        pair = [getattr(x, name).values(1, N + 1) for x in (before, after)]
        apart |= ~np.isclose(*pair, rtol=1e-9, atol=0)
    return np.flatnonzero(apart) + 1


@pytest.mark.parametrize("name", CASES)
def test_a_repair_changes_nothing_before_the_step_it_names(name):
    candidate = CASES[name]
    found = list(applied(getattr(repairs, name), candidate))
    assert found
    for one in found:
        moved = _differing(candidate.algorithm, one.algorithm)
        assert one.changes
        assert moved.size
        # Shifted times and slower thetas may agree with the original where rounding hides the change.
        assert moved[0] >= min(one.first_step, N)
        assert one.last_step is None or moved[-1] <= one.last_step


def test_the_list_of_repairs_is_tested_whole():
    assert {repair.__name__ for stage in repairs.STAGES for _, repair in stage} == set(CASES)


@pytest.mark.parametrize(
    ("name", "sequence", "formula"),
    [
        ("rising_theta", "theta", lambda t: np.maximum(0.999, 1 - 1 / t)),
        ("root_decay", "alpha", lambda t: 1e-3 * np.minimum(1, np.sqrt(1000 / t))),
        ("raised_rate", "alpha", lambda t: np.maximum(1e-3 * 0.99**t, 1e-3 * 0.99 / 100 / np.sqrt(t))),
    ],
)
def test_what_it_becomes_is_its_formula(name, sequence, formula):
    first = next(applied(getattr(repairs, name), CASES[name]))
    times = np.arange(1.0, N + 1)
    np.testing.assert_allclose(getattr(first.method, sequence).values(1, N + 1), formula(times), rtol=1e-7)


def test_the_bias_corrections_follow_theta():
    before = methods.adamw()
    after = with_theta(before, parse("max(0.999, 1 - 1/t)"))
    t = np.arange(1.0, N + 1)
    product = np.cumprod(np.maximum(0.999, 1 - 1 / t))
    np.testing.assert_allclose(after.eps.values(1, N + 1), 1e-8 * np.sqrt(1 - product), rtol=1e-9)
    np.testing.assert_allclose(
        after.method.alpha.values(1, N + 1), 1e-3 * np.sqrt(1 - product) / (1 - 0.9**t), rtol=1e-9
    )


def test_the_correction_of_m_stays_its_own_where_beta_and_theta_are_one():
    before = methods.adamw(beta=0.95, theta=0.95)
    after = with_theta(before, parse("max(0.95, 1 - 1/t)"))
    t = np.arange(1.0, N + 1)
    product = np.cumprod(np.maximum(0.95, 1 - 1 / t))
    np.testing.assert_allclose(
        after.method.alpha.values(1, N + 1), 1e-3 * np.sqrt(1 - product) / (1 - 0.95**t), rtol=1e-9
    )
    np.testing.assert_allclose(after.eps.values(1, N + 1), 1e-8 * np.sqrt(1 - product), rtol=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "first"),
    [
        ("1/max(t, 3)", "1/t", 1),
        ("1/t", "1e-3", 1001),
        ("1/t", "1/t", (1 << 16) + 1),
        ("0.5", "0.5 + 1e-20 if t > 7 else 0.5", 8),  # no float tells the two apart
    ],
)
def test_the_first_step_below_is_found_in_numbers(one, other, first):
    assert first_below(parse(one), parse(other)) == first


def test_a_bias_correction_remembers_a_beginning_for_ever():
    x = Algorithm(methods.adam(lr="0.5/sqrt(t)", theta="1 - 1/t"))
    held = next(applied(repairs.held_beginning, Candidate(x)))
    assert held.last_step is None
    assert _differing(x, held.algorithm)[-1] > 100


def test_a_repair_that_makes_no_method_is_no_candidate():
    def broken(candidate):
        yield candidate.changed("beta2", "2", 1, theta=parse("2"))

    assert list(applied(broken, _candidate())) == []


def test_changes_add_up():
    first = _candidate().changed("lr", "1e-4", 10, 20, alpha=parse("1e-4"))
    both = first.changed("beta2", "0.99", 5, 7, theta=parse("0.99"))
    assert ([one.name for one in both.changes], both.first_step, both.last_step) == (["lr", "beta2"], 5, 20)
    assert first.changed("lr", "for ever", 30).last_step is None
    assert both.method == Method(Fraction(1, 10_000), 0.9, 0.99)
