"""The lanes against the reference, laws of the regret, and bits that depend on nothing but the plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generic_adam import reference
from generic_adam.errors import RunError
from generic_adam.methods import Algorithm, Method, sgd
from generic_adam.methods.algorithm import Nesterov
from generic_adam.schedules import as_schedule
from generic_adam_laboratory.counterexample import (
    AdaShift,
    Counterexample,
    LaneRecords,
    Plan,
    gradients_of,
    simulate,
)
from generic_adam_laboratory.counterexample.simulation import Simulation, record_times

# Roots and quotients are correctly rounded wherever they are computed, so these schedules have one value at
# each t.
EXACT = {
    "Adam": Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.99),
    "AdaEMA": Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/t"),
    "RMSProp": Method(alpha="0.5/sqrt(t)", beta=0, theta="1 - 0.9/t"),
    "AdamNC": Method(alpha="0.25/sqrt(t)", beta="0.9/t", theta="1 - 1/max(t, 2)"),
}
BASE = EXACT["Adam"]
PEERS = {
    "AMSGrad": Algorithm(BASE, running_maximum=True),
    "Padam": Algorithm(BASE, running_maximum=True, power=0.125),
    "AdaShift": AdaShift(as_schedule("0.5/sqrt(t)"), kept=3),
    "NAdam": Algorithm(BASE, nesterov=Nesterov(as_schedule(0.9), as_schedule("0.1 + 0.5/t"))),
    "SGD": sgd(lr="0.005/sqrt(t)"),
}


def same_bits(a: LaneRecords, b: LaneRecords) -> bool:
    return a.x.tobytes() == b.x.tobytes() and a.average_regret.tobytes() == b.average_regret.tobytes()


def clip(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -1.0, 1.0)


@pytest.mark.parametrize("form", ["stochastic", "deterministic"])
@pytest.mark.parametrize("label", EXACT)
def test_lanes_hold_the_bits_of_the_reference(label: str, form: str) -> None:
    problem = Counterexample(form=form, start=0.3)
    steps, seed, replicates = 700, 5, 6
    records = simulate(Plan({label: EXACT[label]}, steps, replicates, problem, seed), block=64)
    gradients = np.stack([gradients_of(problem, steps, seed, i) for i in range(replicates)], axis=1)
    path = reference.generic_adam(
        EXACT[label], lambda x, t: gradients[t - 1], np.full(replicates, 0.3), steps, 1e-8, clip
    )
    expected = path.points[records.times - 1]
    assert expected.std() > 0.05
    np.testing.assert_array_equal(records.x[0], expected)


@pytest.mark.parametrize("r", [0.25, 0.5, 0.75])
def test_lanes_follow_the_reference_for_fractional_powers(r: float) -> None:
    method = Method(alpha="0.5/t^0.6", beta=0.9, theta=f"1 - (0.01 + 0.99*{r})/t^{r}")
    problem = Counterexample()
    records = simulate(Plan({"m": method}, 2000, 1, problem))
    gradients = gradients_of(problem, 2000, 0, 0)
    path = reference.generic_adam(method, lambda x, t: gradients[t - 1], 1.0, 2000, 1e-8, clip)
    np.testing.assert_allclose(records.x[0, :, 0], path.points[records.times - 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("theta", ["1 - 0.2575/t^0.25", "0.99", "1 - (1 - 0.5/t^0.5)", "theta_from_weights(t)"])
def test_shared_schedules_have_the_bits_of_their_values(theta: str) -> None:
    method = Method(alpha="0.5/t^0.3", beta="1 - 0.5/t^0.1", theta=theta)
    twin = Method(alpha="1 - 1/(t + 1)", beta="0.5/t^0.1", theta="1 - 1/(t + 2)")
    simulation = Simulation(Plan({"m": method, "twin": twin}, 5000))
    evaluated = simulation.evaluate(3, 4000)
    assert len(simulation.schedules) == len(set(simulation.schedules))
    for schedule, values in zip(simulation.schedules, evaluated, strict=True):
        assert values.tobytes() == schedule.values(3, 4000).tobytes(), schedule


def peer_by_hand(label: str, gradients: np.ndarray) -> list[float]:
    """Section by section as published: plain floats, one lane, no blocks."""
    x, m, v, v_max, points = 1.0, 0.0, 1e-8, 0.0, []
    for t, g in enumerate(gradients.tolist(), start=1):
        points.append(x)
        alpha = 0.5 / t**0.5
        if label == "AdaShift":
            n, beta, theta = 3, 0.9, 0.99
            if t <= n:
                v = 0.0
                continue
            m = sum(beta**i * gradients[t - 1 - i] for i in range(n)) / sum(beta**i for i in range(n))
            v = theta * v + (1 - theta) * gradients[t - 1 - n] ** 2
            x -= alpha * m / (v / (1 - theta ** (t - n))) ** 0.5
        elif label == "SGD":
            x -= 0.01 * alpha * g
        else:
            v = 0.99 * v + 0.01 * g * g
            m = 0.9 * m + 0.1 * g
            v_max = max(v_max, v)
            if label == "NAdam":
                x -= alpha * (0.9 * m + (0.1 + 0.5 / t) * g) / v**0.5
            else:
                x -= alpha * m / v_max ** (0.125 if label == "Padam" else 0.5)
        x = min(max(x, -1.0), 1.0)
    return points


@pytest.mark.parametrize("label", PEERS)
@pytest.mark.parametrize("block", [1, 2, 7, 400])
def test_peers_follow_their_formulas(label: str, block: int) -> None:
    problem = Counterexample()
    records = simulate(Plan({label: PEERS[label]}, 400, 1, problem, seed=2), block=block)
    points = np.array(peer_by_hand(label, gradients_of(problem, 400, 2, 0)))
    assert points.min() < 0.9
    np.testing.assert_allclose(records.x[0, :, 0], points[records.times - 1], rtol=0, atol=1e-12)


def test_padam_with_a_power_near_one_half_is_near_amsgrad() -> None:
    near = Algorithm(BASE, running_maximum=True, power=0.4999999999)
    records = simulate(Plan({"a": PEERS["AMSGrad"], "p": near}, 3000, 4))
    np.testing.assert_allclose(records.x[0], records.x[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "algorithm",
    [
        Algorithm(BASE, eps=1e-8),
        Algorithm(BASE, l2=0.1),
        Algorithm(BASE, power=0.25),
        Algorithm(BASE, delayed=True),
    ],
)
def test_what_the_lanes_cannot_run_is_one_line(algorithm: Algorithm) -> None:
    with pytest.raises(RunError, match="lanes"):
        Plan({"m": algorithm}, 10).settings()


def test_the_initial_v_is_the_algorithms() -> None:
    problem = Counterexample(start=0.0)
    gradient = gradients_of(problem, 1, 0, 0)[0]
    still = Method(alpha=0.5, beta=0, theta=0.5)
    records = simulate(Plan({"m": Algorithm(still, initial_v=300.0)}, 2, 1, problem))
    expected = -0.5 * gradient / np.sqrt(0.5 * 300.0 + 0.5 * gradient**2)
    assert records.final_x("m")[0] == pytest.approx(expected, rel=1e-15)


@given(
    steps=st.integers(1, 300),
    replicates=st.integers(1, 70),
    threads=st.integers(1, 3),
    block=st.integers(1, 400),
)
@settings(max_examples=15, deadline=None)
def test_bits_depend_on_neither_threads_nor_blocks_nor_lanes(
    steps: int, replicates: int, threads: int, block: int
) -> None:
    methods = {"AdaEMA": EXACT["AdaEMA"], **PEERS}
    whole = simulate(Plan(methods, steps, replicates, seed=9), threads=threads, block=block)
    one = simulate(Plan(methods, steps, range(replicates - 1, replicates), seed=9))
    assert whole.x[:, :, -1].tobytes() == one.x[:, :, 0].tobytes()
    assert whole.average_regret[:, :, -1].tobytes() == one.average_regret[:, :, 0].tobytes()


def test_all_methods_of_a_replicate_meet_the_same_gradients() -> None:
    # Two labels of one method are two lanes of the same stream.
    records = simulate(Plan({"one": BASE, "two": BASE}, 2000, 3))
    assert records.x[0].tobytes() == records.x[1].tobytes()
    assert not np.array_equal(records.x[0, :, 0], records.x[0, :, 1])


@pytest.mark.parametrize("start", [1.0, -0.25])
def test_regret_is_its_definition(start: float) -> None:
    problem, steps = Counterexample(start=start), 600
    records = simulate(Plan({"m": BASE}, steps, 1, problem, seed=4))
    gradients = gradients_of(problem, steps, 4, 0)
    path = reference.generic_adam(BASE, lambda x, t: gradients[t - 1], start, steps, 1e-8, clip)
    for k, t in enumerate(records.times):
        losses = gradients[:t] * path.points[:t]
        best = min(x * gradients[:t].sum() for x in np.linspace(-1, 1, 3))
        assert records.average_regret[0, k, 0] == pytest.approx((losses.sum() - best) / t, abs=1e-9)


def test_the_best_fixed_point_has_no_regret() -> None:
    # A vanishing learning rate leaves x where it starts: at -1 there is no regret once rare slopes have come.
    still = Method(alpha=1e-300, beta=0, theta=0.5)
    records = simulate(Plan({"m": still}, 101 * 50, 1, Counterexample(form="deterministic", start=-1.0)))
    assert records.final_regret("m")[0] == 0.0
    # At +1 it loses 2 |sum g| = 2 * 10 a period of 101 steps.
    records = simulate(Plan({"m": still}, 101 * 50, 1, Counterexample(form="deterministic")))
    assert records.final_regret("m")[0] == pytest.approx(20 / 101, rel=1e-15)


def test_the_printed_problem_cannot_be_meant() -> None:
    # Both slopes point the same way: x only falls, whatever the method, and ends at -1.
    records = simulate(Plan(EXACT | PEERS, 20_000, 20, Counterexample(as_printed=True)))
    assert (np.diff(records.x, axis=1) <= 0).all()
    assert (records.x[:, -1] == -1).all()
    assert (gradients_of(Counterexample(as_printed=True), 1000, 0, 0) > 0).all()


def test_deterministic_form_of_reddi() -> None:
    gradients = gradients_of(Counterexample(form="deterministic"), 404, 0, 0)
    assert np.flatnonzero(gradients == 1010).tolist() == [0, 101, 202, 303]
    assert set(gradients.tolist()) == {1010.0, -10.0}


def test_record_times_are_whole_distinct_and_end_at_the_last_step() -> None:
    times = record_times(10**7)
    assert times[0] == 1
    assert times[-1] == 10**7
    assert 380 <= times.size <= 420
    assert (np.diff(times) > 0).all()
    assert record_times(1).tolist() == [1]
    assert record_times(2).tolist() == [1, 2]


def test_arrival_is_the_time_from_which_x_stays_below() -> None:
    x = np.array([[[1.0, -0.95, 1.0], [-0.95, -0.95, 0.0], [0.0, -0.95, 0.0], [-0.95, -0.95, 0.0]]])
    records = LaneRecords(np.array([1, 10, 100, 1000]), ("m",), range(3), x, x)
    assert records.arrival("m", -0.9).tolist() == [1000.0, 1.0, np.inf]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"steps": -3}, "steps is -3"),
        ({"steps": 10**30}, "from 1 to 1e\\+12"),
        ({"steps": 1.5}, "whole number"),
        ({"replicates": 0}, "at least one"),
        ({"replicates": -2}, "at least one"),
        ({"replicates": range(0, 4, 2)}, "numbered from 0 on"),
        ({"methods": {}}, "no method"),
    ],
)
def test_a_bad_plan_is_one_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(RunError, match=message) as caught:
        Plan(**({"methods": EXACT, "steps": 10} | arguments))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"form": "other"},
        {"rare_slope": 0.0},
        {"common_slope": float("inf")},
        {"probability": 1.5},
        {"probability": float("nan")},
        {"period": 1},
        {"low": 1.0},
        {"start": 2.0},
        {"high": float("inf")},
    ],
)
def test_a_bad_problem_is_one_line(arguments: dict[str, object]) -> None:
    with pytest.raises(RunError, match="expected") as caught:
        Counterexample(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [{"beta": 1.0}, {"theta": 1.0}, {"theta": 0.0}, {"kept": 0}])
def test_a_bad_adashift_is_one_line(bad: dict[str, float]) -> None:
    with pytest.raises(RunError, match="AdaShift"):
        AdaShift(as_schedule("1/t"), **bad)  # type: ignore[arg-type]


def test_more_lanes_than_memory_is_one_line() -> None:
    with pytest.raises(RunError, match="GiB of memory") as caught:
        simulate(Plan(EXACT, 10**6, 10**9))
    assert "\n" not in str(caught.value)


def test_an_x_that_is_no_number_is_an_error() -> None:
    broken = Method(alpha=lambda t: 1.0 if t < 1000 else float("nan"), beta=0, theta=0.5)
    with pytest.raises(RunError, match="number"):
        simulate(Plan({"m": broken}, 2000, 1))


def test_bad_threads_and_seeds_are_one_line() -> None:
    with pytest.raises(RunError, match="threads is 0"):
        simulate(Plan(EXACT, 10), threads=0)
    with pytest.raises(RunError, match="seed is -1"):
        simulate(Plan(EXACT, 10, seed=-1))
