"""The pass over the steps: what it refuses, and that blocks do not show."""

from __future__ import annotations

import numpy as np
import pytest

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.theorems import sequences as sequences_module
from generic_adam.theorems import sweep
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import weighted_bound
from tests.theorems.problems import bound_of, problem_of

PROBLEM = problem_of(smoothness=1, gradient_bound=1, dimension=10, gap=1, weights_bound=1)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("alpha", [0.1, -0.1, 0.1], "alpha_t >= 0, got -0.1 at t = 2"),
        ("beta", [0.5, 0.5, 1.5], "0 <= beta_t < 1, got 1.5 at t = 3"),
        ("theta", [0.9, 0.0, 0.9], "0 < theta_t < 1, got 0 at t = 2"),
        ("theta", [0.9, 0.9, 1.5], "0 < theta_t < 1, got 1.5 at t = 3"),
        ("theta", [-0.1, 0.9, 0.9], "0 < theta_t < 1, got -0.1 at t = 1"),
        ("eps", [0.1, 0.1, -0.1], "eps_t >= 0, got -0.1 at t = 3"),
        ("momentum_weight", [1, -1, 1], "a_t >= 0, got -1 at t = 2"),
        ("gradient_weight", [0, 1, -1], "b_t >= 0, got -1 at t = 3"),
        ("decay", [-0.1, 0, 0], "nu_t >= 0, got -0.1 at t = 1"),
        ("alpha", -0.1, "alpha_t >= 0, got -0.1 at t = 1"),
    ],
)
def test_what_is_no_hypothesis_is_refused_with_its_step(name, values, told):
    given = {"alpha": 0.1, "beta": 0.5, "theta": 0.9, "eps": 0.1} | {name: np.array(values)}
    with pytest.raises(TheoremError, match=told):
        weighted_bound(Sequences.of(**given, steps=3), PROBLEM)


@pytest.mark.parametrize("form", [{}, {"under_root": True}])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_theta_1_of_zero_wipes_v_0_out(beta, form):
    """v_1 = g_1^2 whatever v_0 is: the steps are the same, and so is the bound on X_w."""
    theta = np.concatenate([[0.0], np.full(49, 0.9)])
    certain = problem_of(1, 1, 1, 1, gradient_sup=1)
    values = [
        weighted_bound(Sequences.of(0.1, beta, theta, eps=1e-6, initial_v=v_0, **form), certain).value
        for v_0 in (0, 1e-8, 1e6)
    ]
    assert values == pytest.approx(values[:1] * 3, rel=1e-12)


def test_eps_that_falls_behind_by_a_trillionth_is_refused():
    e = 0.1 * np.sqrt(0.9) ** np.arange(20) * (1 - 1e-12) ** np.arange(20)
    with pytest.raises(TheoremError, match="fails at t = 2"):
        weighted_bound(Sequences.of(0.1, 0.5, 0.9, eps=e), PROBLEM)
    assert weighted_bound(Sequences.of(0.1, 0.5, 0.9, eps=0.1 * np.sqrt(0.9) ** np.arange(20)), PROBLEM).value


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_a_theta_of_zero_has_no_bound_by_w_or_e(beta, eps):
    """v_t = g_t^2 alone: W_t is infinite, and with it the logarithm."""
    found = bound_of(Algorithm(Method(0.1, beta, 0), eps=eps), PROBLEM, 100)
    assert {name for name, _ in (*found.others, (found.theorem, 0.0))} <= {None}
    zero_later = Algorithm(Method(0.1, beta, "0.9 if t < 50 else 0"), eps=eps)
    assert not bound_of(zero_later, PROBLEM, 100).is_valid


def test_theta_1_may_be_zero_where_something_is_added():
    theta = np.array([0.0, 0.5, 0.6])
    assert weighted_bound(Sequences.of(0.1, 0.5, theta, eps=0.1), PROBLEM).value < np.inf
    with pytest.raises(TheoremError, match="theta_1 = 0"):
        weighted_bound(Sequences.of(0.1, 0.5, theta, initial_v=0.1), PROBLEM)
    assert weighted_bound(Sequences.of(0.1, 0.0, 0.0, eps=0.1, steps=1), PROBLEM).value < np.inf


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_blocks_do_not_show(monkeypatch, block):
    t = np.arange(1.0, 501)
    sequences = Sequences.of(0.1 / np.sqrt(t), 0.9 - 0.1 / t, 1 - 1 / (t + 1), eps=1e-3)
    whole = weighted_bound(sequences, PROBLEM).value
    monkeypatch.setattr(sequences_module, "BLOCK", block)
    assert weighted_bound(sequences, PROBLEM).value == pytest.approx(whole, rel=1e-12)


def test_hundreds_of_different_bounds_take_no_more_memory_than_a_few():
    many = problem_of(1, np.geomspace(0.01, 10, 300), 300, 1)
    passes = sweep.Sweep(Sequences.of(0.1 / np.sqrt(np.arange(1.0, 101)), 0.9, 0.99, eps=0.1))
    passes.cost(many.parts, 1.0, passes.lemma_n)
    assert all(len(piece.increments) < 10 for piece in passes.pieces())


def test_a_run_that_is_too_long_to_be_kept_is_the_same(monkeypatch):
    t = np.arange(1.0, 2001)
    sequences = Sequences.of(0.1 / np.sqrt(t), 0.9, 1 - 0.5 / np.sqrt(t), eps=1e-3)
    best = weighted_bound(sequences, PROBLEM)
    monkeypatch.setattr(sweep, "KEPT", 100)
    monkeypatch.setattr(sequences_module, "BLOCK", 100)
    assert weighted_bound(sequences, PROBLEM).value == pytest.approx(best.value, rel=1e-12)


@pytest.mark.parametrize("eps", ["1e-170", "1e170", "1e300"])
@pytest.mark.parametrize("under", [True, False])
def test_an_eps_whose_square_is_no_double_has_no_bound(eps, under):
    x = Algorithm(Method(0.1, 0.9, 0.99), initial_v=0, eps=eps, eps_under_root=under)
    assert "a square that a double holds" in dict(bound_of(x, PROBLEM, 10).missing)["E"].about


def test_a_nesterov_step_of_the_gradient_alone_is_a_step_without_momentum():
    """a_t = 0: no weight is Q's."""
    given = {"eps": 0.1, "steps": 20, "momentum_weight": 0.0, "gradient_weight": 1.0}
    found = weighted_bound(Sequences.of(0.1, 0.9, 0.99, **given), PROBLEM)
    plain = weighted_bound(Sequences.of(0.1, 0.0, 0.99, eps=0.1, steps=20), PROBLEM)
    assert found.value == pytest.approx(plain.value, rel=1e-12)
