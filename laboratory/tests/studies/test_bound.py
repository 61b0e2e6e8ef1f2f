"""The measured problem: its constants, its runs against the reference, and what is read off them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generic_adam import reference
from generic_adam.errors import RunError
from generic_adam.theorems.zou2019 import bound
from generic_adam_laboratory.counterexample.problem import initial_words
from generic_adam_laboratory.runs.run import open_run
from generic_adam_laboratory.studies.bound import (
    FAR,
    MEMBERS,
    BoundedWell,
    Comparison,
    Measurement,
    Measuring,
    Member,
    claims,
    compare,
    reading_steps,
    run_measurements,
    slope,
)

WELL = BoundedWell(dimension=3)


def gradient_of(x: np.ndarray) -> np.ndarray:
    return 2 * x / (1 + x * x) ** 2


def test_the_constants_are_those_of_the_function() -> None:
    x = np.linspace(-5, 5, 200_001)
    gradient = gradient_of(x)
    second = np.gradient(gradient, x)
    assert np.abs(second).max() == pytest.approx(2.0, rel=1e-6)
    assert np.abs(gradient).max() == pytest.approx(3 * math.sqrt(3) / 8, rel=1e-9)
    problem = WELL.problem
    assert WELL.largest_square == pytest.approx(3 * np.abs(gradient).max() ** 2)
    assert problem.smoothness == 2.0
    assert problem.total_gradient_bound**2 == pytest.approx(3 * (27 / 64 + 0.25))
    assert problem.gap == pytest.approx(3 * 0.5)


def signs(seed: int, seeds: int, steps: int, dimension: int) -> np.ndarray:
    """The noise by the published generator, in Python's whole numbers: upper bits, one a coordinate."""
    mask = 2**64 - 1
    found = np.empty((steps, seeds, dimension))
    words = initial_words(seed, range(seeds))
    for i in range(seeds):
        a, b = (int(word) for word in words[:, i])
        for t in range(steps):
            bits = (a + b) & mask
            b ^= a
            a = (((a << 24) | (a >> 40)) & mask) ^ b ^ ((b << 16) & mask)
            b = ((b << 37) | (b >> 27)) & mask
            found[t, i] = [2 * ((bits >> (63 - j)) & 1) - 1 for j in range(dimension)]
    return found


@pytest.mark.parametrize("member", [Member("p", 0.5, 0.9), Member("p", 1, 0.0), Member("p", 1, 0.9, eps=1e-3)])
def test_a_run_is_the_reference_run(member: Member) -> None:
    steps, seeds = 60, 2
    measuring = Measuring(member, WELL, steps, seeds, seed=4)
    while not measuring.is_finished:
        measuring.advance()
    noise = WELL.noise * signs(4, seeds, steps, 3)
    if member.eps:
        points = [np.ones((seeds, 3))]
        m, v, method = np.zeros((seeds, 3)), np.zeros((seeds, 3)), member.algorithm.method
        for t in range(1, steps):
            alpha, beta, theta = method.at(t)
            g = gradient_of(points[-1]) + noise[t - 1]
            v = theta * v + (1 - theta) * g * g
            m = beta * m + (1 - beta) * g
            points.append(points[-1] - alpha * m / (np.sqrt(v) + member.eps))
        path = np.array(points)
    else:
        method, start = member.algorithm.method, np.ones((seeds, 3))
        gradient = lambda x, t: gradient_of(x) + noise[t - 1]  # noqa: E731
        path = reference.generic_adam(method, gradient, start, steps, 1e-8).points[:steps]
    sizes = (gradient_of(path) ** 2).sum(axis=2) ** (2 / 3)
    found = measuring.measurement()
    expected = np.array([sizes[:last].mean() for last in found.steps])
    np.testing.assert_allclose(found.uniform, expected**1.5, rtol=1e-9)
    # Theorem W's weights by their definition: Q_i sums alpha_t times beta/sqrt(theta) after i, t >= i.
    values = np.array([member.algorithm.method.at(t) for t in range(1, steps + 1)])
    alpha, beta, theta = values.T
    ratio = beta / np.sqrt(theta)
    weights = [sum(alpha[t] * np.prod(ratio[i + 1 : t + 1]) for t in range(i, steps)) for i in range(steps)]
    weighted = np.average(sizes.mean(axis=1), weights=weights)
    assert found.weighted[-1] == pytest.approx(weighted**1.5, rel=1e-9)


def test_a_paused_measurement_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    members = MEMBERS[:2]
    whole = run_measurements(WELL, 500, 3, members=members)
    with open_run(tmp_path, {"seed": 0}) as run:

        def stop(done: int, total: int) -> None:
            assert total == 1000
            if done == 500:  # after the first method
                run.signals.number = 2

        with pytest.raises(KeyboardInterrupt):
            run_measurements(WELL, 500, 3, members=members, progress=stop, run=run)
    with open_run(tmp_path, {"seed": 0}) as run:
        again = run_measurements(WELL, 500, 3, members=members, run=run)
    assert run.resumed_from is not None
    for one, other in zip(whole, again, strict=True):
        assert one.measured.weighted.tobytes() == other.measured.weighted.tobytes()


def made_up(values: np.ndarray, sharper: np.ndarray, member: Member = MEMBERS[2]) -> Comparison:
    steps = np.array([10, 100, 1000, 10_000])
    measured = Measurement(steps, values, values)
    far = np.array([2.0 * T**-0.5 for T in FAR])
    return Comparison(member, measured, 100 * sharper, "W", sharper, 5.0, far, WELL.largest_square)


def test_slopes_are_those_of_power_laws() -> None:
    steps = np.array([10.0, 100, 1000, 10_000])
    measured, bounded = made_up(steps**-0.7, 5 * steps**-0.25).slopes
    assert measured == pytest.approx(-0.7)
    assert bounded == pytest.approx(-0.25)
    assert slope(np.array([10, 1000]), np.array([1.0, 100.0])) == pytest.approx(1.0)


def test_a_constant_theta_is_judged_by_the_slope_beyond_every_measurement() -> None:
    steps = np.array([10.0, 100, 1000, 10_000])
    level = replace(made_up(steps**-0.7, 5 * steps**-0.25, MEMBERS[0]), far_paper=np.array([3.0, 2.99]))
    assert claims([level])[3].verdict == "supported"
    assert claims([replace(level, far_paper=np.array([3.0, 0.3]))])[3].verdict == "unclear"


def test_claims_follow_the_numbers() -> None:
    steps = np.array([10.0, 100, 1000, 10_000])
    good = made_up(steps**-0.7, 5 * steps**-0.25)
    assert [claim.verdict for claim in claims([good])] == ["supported"] * 3 + ["unclear", "supported"]
    above = made_up(np.full(4, 7.0), 5 * steps**-0.25)
    assert claims([above])[0].verdict == "contradicted"
    assert claims([above])[2].verdict == "unclear"
    small = made_up(steps**-0.7, 1e-6 * steps**-0.25)
    assert claims([small])[1].verdict == "unclear"  # a bound that gradients can exceed


def test_the_paper_s_side_is_theorem_1() -> None:
    member = Member("p", 1, 0.9)
    found = run_measurements(WELL, 100, 2, members=[member])[0]
    expected = [bound(member.algorithm.method, WELL.problem, int(T)).expectation for T in found.measured.steps]
    assert found.paper == pytest.approx(expected)
    assert found.holds
    assert found.trivial >= found.measured.uniform.max()
    assert np.isnan(compare(Member("p", 1, 0.9, eps=1e-4), WELL, found.measured).paper).all()


@pytest.mark.parametrize(("steps", "seeds"), [(5, 2), (10**9, 2), (100, 0), (100, 10**7)])
def test_bad_numbers_are_one_line(steps: int, seeds: int) -> None:
    with pytest.raises(RunError, match="got"):
        run_measurements(WELL, steps, seeds)


def test_readings_are_whole_and_end_at_the_last_step() -> None:
    steps = reading_steps(12_345)
    assert steps[0] == 10
    assert steps[-1] == 12_345
    assert (np.diff(steps) > 0).all()


def test_fewer_than_two_decades_have_no_exponent(tmp_path: Path) -> None:
    found = run_measurements(WELL, 10, 2)
    assert all(math.isnan(one) for one in found[0].slopes)
    assert claims(found)[2].verdict == "unclear"
    steps = np.array([10.0, 100, 1000, 10_000])
    rising = made_up(steps**0.2, 5 * steps**0.5)
    assert claims([rising])[2].verdict == "unclear", "what rises slower than its bound does not fall"
