"""Partial sums against closed forms, term-by-term sums, and the promised times (of the processor)."""

from __future__ import annotations

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import generic_adam as ga
from generic_adam.methods import Method
from generic_adam.schedules import Schedule, as_schedule, bias_correction, parse, sums
from generic_adam.theorems import decide

FAR = 10**15

SMOOTH = [
    "1/sqrt(t)",
    "t^-1.5",
    "1/(t * log(t+1))",
    "1/(sqrt(t) * log(t+1))",
    "log(t+2)^2 / t^0.3",
    "1/(t+1) / log(log(t+10))",
    "0.001 * min(1, sqrt(1000000/t))",
    "0.001 if t < 2500 else 0.01/sqrt(t)",
    "0.5 if t < 100000 else 0.5/sqrt(t - 99999)",
    "1/sqrt(max(t, 500000))",
    "max(1/t^0.5, 100/t)",
    "0.9999^t",
    "0.99999^t / sqrt(t)",
    "1 - 0.99999^t",
    "bias_correction(0.999) / sqrt(t)",
    "1.0001^t",
    "t^3",
]


@pytest.mark.parametrize("text", SMOOTH)
def test_integral_form_agrees_with_adding_term_by_term(text):
    schedule = parse(text)
    steps = 1_800_000
    exact = math.fsum(schedule.values(1, steps + 1).tolist())
    assert sums.smooth_sum(schedule, steps) == pytest.approx(exact, rel=1e-11)


@given(
    power=st.floats(-2, 2),
    log=st.integers(-2, 2),
    shift=st.integers(0, 50),
    steps=st.integers(100_001, 400_000),
)
@settings(max_examples=40)
def test_random_members_of_the_growth_scale(power, log, shift, steps):
    schedule = parse(f"(t + {shift})^{power} * log(t + 2)^{log}")
    assert sums.partial_sum(schedule, steps) == pytest.approx(sums.direct_sum(schedule, 1, steps), rel=1e-9)


@st.composite
def kinked_schedules(draw, depth=2):
    """Powers and logarithms joined, capped and floored at random places."""
    if depth == 0:
        power, scale = draw(st.floats(-1.5, 0.5)), draw(st.floats(0.01, 100))
        return f"{scale} * (t + {draw(st.integers(0, 9))})^{power} * log(t + 2)^{draw(st.integers(-1, 1))}"
    first, second = draw(kinked_schedules(depth - 1)), draw(kinked_schedules(depth - 1))
    kind = draw(st.sampled_from(["min", "max", "join", "sum"]))
    if kind == "join":
        return f"(({first}) if t < {draw(st.integers(2, 400_000))} else ({second}))"
    return f"({first} + {second})" if kind == "sum" else f"{kind}({first}, {second})"


@given(kinked_schedules(), st.integers(100_001, 500_000))
@settings(max_examples=60)
def test_random_kinks_are_summed_right(text, steps):
    schedule = parse(text)
    assert sums.partial_sum(schedule, steps) == pytest.approx(sums.direct_sum(schedule, 1, steps), rel=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "1/(1 + (t - 1000000)^2)",
        "max(0.001/sqrt(t), 1/(1 + (t - 1000000)^2))",
        "1e-9/t + 1/(1 + (t - 1e6)^4)",
    ],
)
def test_a_narrow_bump_is_not_overlooked(text):
    """Samples spread over decades would miss a bump of a few steps; what is not proved smooth is added."""
    schedule = parse(text)
    exact = math.fsum(schedule.values(1, 2_000_001).tolist())
    for steps in (2_000_000, 10**7):
        assert sums.partial_sum(schedule, steps) == pytest.approx(
            exact + sums.direct_sum(schedule, 2_000_001, steps), rel=1e-9
        )


def test_a_bump_is_summed_far_beyond_it():
    with mpmath.workdps(30):
        ends = [mpmath.digamma(mpmath.mpc(end, -1)) for end in (1 - 10**6, FAR - 10**6 + 1)]
        exact = (ends[1] - ends[0]).imag
    assert sums.partial_sum(parse("1/(1 + (t - 1000000)^2)"), FAR) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.5, 2.0])
def test_power_sums_to_1e15_have_their_closed_form(exponent):
    with mpmath.workdps(40):
        exact = mpmath.zeta(exponent) - mpmath.zeta(exponent, FAR + 1)
    assert sums.partial_sum(parse(f"t^-{exponent}"), FAR) == pytest.approx(float(exact), rel=1e-13)


def test_harmonic_and_factorial_sums_to_1e15():
    with mpmath.workdps(40):
        harmonic, factorial = mpmath.harmonic(FAR), mpmath.loggamma(mpmath.mpf(FAR) + 1)
    assert sums.partial_sum(parse("1/t"), FAR) == pytest.approx(float(harmonic), rel=1e-13)
    assert sums.partial_sum(parse("log(t)"), FAR) == pytest.approx(float(factorial), rel=1e-13)


def test_geometric_sum_has_its_closed_form():
    assert sums.partial_sum(parse("0.9999^t"), FAR) == pytest.approx(0.9999 / 0.0001, rel=1e-12)


def test_ratio_of_the_power_family():
    method = Method(alpha="0.1/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
    # alpha sqrt(1 - theta) = 0.1/t but for t = 1, where it is 0.1/sqrt 2.
    exact = (float(mpmath.harmonic(FAR)) - 1 + 1 / math.sqrt(2)) / math.sqrt(FAR)
    assert decide.ratio(method, FAR) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", ga.methods.names())
def test_every_ratio_of_the_catalogue_is_there_up_to_1e15_but_for_running_sums(name):
    entry = ga.methods.build(name)
    method = entry if isinstance(entry, ga.Method) else entry.method
    if "theta_from_weights" in str(method.theta):
        with pytest.raises(sums.SumError, match="term by term"):
            decide.ratio(method, 10**13)
    else:
        assert 0 < decide.ratio(method, 10**15) < math.inf


def test_ratios_out_of_reach_are_errors():
    oscillating = Method(alpha="(1 + 0.5*sin(t))/sqrt(t)", beta=0.9, theta="1 - 1/(t+1)")
    assert decide.ratio(oscillating, 1000) > 0
    ends_at_zero = Method(alpha="max(0, 1 - t/1000)", beta=0.9, theta="1 - 1/(t+1)")
    assert decide.ratio(ends_at_zero, 900) > 0
    for method, steps in ((oscillating, FAR), (ends_at_zero, 1000)):
        with pytest.raises(sums.SumError):
            decide.ratio(method, steps)


def test_a_sum_that_overflows_is_infinite():
    assert sums.partial_sum(parse("1.0001^t"), FAR) == math.inf
    assert sums.partial_sum(parse("10^t"), 1000) == math.inf


def test_sums_of_the_least_floats_keep_their_digits():
    assert sums.partial_sum(parse("min(1/sqrt(t), 5e-324)"), 10**6) == pytest.approx(10**6 * 5e-324, rel=1e-5, abs=0)


@pytest.mark.parametrize("text", ["1 + 0.5*sin(t)", "1 + 0.5*cos(t/7)"])
def test_oscillating_tails_are_added_term_by_term(text):
    schedule = parse(text)
    assert sums.partial_sum(schedule, 300_000) == pytest.approx(
        math.fsum(schedule.values(1, 300_001).tolist()), rel=1e-13
    )
    with pytest.raises(sums.SumError, match="term by term"):
        sums.partial_sum(schedule, FAR)


def test_an_undefined_term_is_named():
    with pytest.raises(sums.SumError, match="t = 6"):
        sums.partial_sum(parse("sqrt(5 - t)"), 1000)
    with pytest.raises(sums.SumError, match="is not a number at t"):
        sums.partial_sum(parse("sqrt(1 - t/3000001)"), 10_000_000)


@pytest.mark.parametrize("steps", [0, -3, 10**30, 1.5, math.nan, math.inf, "many", None, True])
def test_bad_horizons_are_refused_in_one_line(steps):
    with pytest.raises(sums.SumError, match="whole number of steps from 1 to 10\\^15") as caught:
        sums.partial_sum(parse("1/t"), steps)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "0.1/sqrt(t)",
        "0.001 * min(1, sqrt(1000/t))",
        "1/(sqrt(t) * log(t+1))",
        "bias_correction(0.999)/sqrt(t)",
    ],
)
def test_a_ratio_at_1e15_walks_no_further_than_one_at_1e9(text, monkeypatch):
    walked = []
    values = Schedule.values
    monkeypatch.setattr(
        Schedule, "values", lambda self, first, last: walked.append(last - first) or values(self, first, last)
    )

    def steps(last):
        walked.clear()
        decide.ratio(Method(alpha=text, beta=0.9, theta="1 - 1/max(t, 2)"), last)
        return sum(walked)

    assert 0 < steps(FAR) <= 1.5 * steps(10**9)


def test_a_vectorised_callable_is_summed_to_1e7_in_little_memory():
    method = Method(alpha=lambda t: 0.1 / np.sqrt(t), beta=0.9, theta=lambda t: 1 - 1 / (t + 1))
    value = decide.ratio(method, 10**7)
    tracemalloc.start()
    decide.ratio(method, 10**6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    exact = Method(alpha="0.1/sqrt(t)", beta=0.9, theta="1 - 1/(t+1)")
    assert value == pytest.approx(decide.ratio(exact, 10**7), rel=1e-9)
    assert peak < 20e6  # blocks: ten times the steps take no more


def test_constants_and_recursions_sum_exactly():
    assert sums.partial_sum(as_schedule(0.5), FAR) == 0.5 * FAR
    varying = bias_correction("1 - 1/(t+1)")  # 1 - 1/(t+1): the product telescopes
    assert sums.partial_sum(varying, 200_000) == pytest.approx(
        200_000 - (float(mpmath.harmonic(200_001)) - 1), rel=1e-12
    )


@pytest.mark.parametrize("text", ["1 + 1/(1 + exp(100*(t - 100000.3)))", "1 + 1/(1 + exp(3*(t - 100000.3)))"])
def test_a_step_inside_a_smooth_piece_is_added_directly(text):
    schedule = parse(text)
    assert sums.partial_sum(schedule, 150_000) == pytest.approx(sums.direct_sum(schedule, 1, 150_000), rel=1e-12)


def test_a_slow_geometric_sum_keeps_its_digits():
    with mpmath.workdps(40):
        rho = 1 - mpmath.mpf(10) ** -9
        expected = float(rho * (1 - rho ** (10**9)) / (1 - rho))
    assert sums.partial_sum(parse("0.999999999^t"), 10**9) == pytest.approx(expected, rel=1e-13)
