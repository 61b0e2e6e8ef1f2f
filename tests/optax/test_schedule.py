"""Schedules as functions of Optax's count, against `values`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam import methods
from generic_adam.optax import as_optax_schedule
from generic_adam.optax.schedule import TRACED
from generic_adam.schedules import Schedule, ScheduleError, as_schedule, parse
from generic_adam.schedules.tree import Bounded

STEPS = 100_000
TEXTS = [
    "0.5 / sqrt(t)",
    "1 - 1/max(t, 2)",
    "0.001 if t < 2500 else 0.01/sqrt(t)",
    "t/100 if t < 100 else (1 if t < 5000 else exp(-t/10000))",
    "0.9 * 0.9999^t",
    "1 - 0.999^t",
    "1/(sqrt(t) * log(t + 1))",
    "abs(sin(t/100)) + cos(t)^2",
    "min(t^-0.5, t * 40000^-1.5)",
    "log(1 + 1/t) / (t - 0.5)^2 - t^3",
    "2 - exp(-sqrt(t)) * -log(t + 1)",
    "periodic(0.1/sqrt(t), 1000)",
    "periodic(bias_correction(1 - 1/(t+1)), 1000)",
    "bias_correction(0.999)",
    "bias_correction(0)",
    "bias_correction(0.9 * 0.99^t)",
    "bias_correction(1 - 1/t)",
    "bias_correction(1 - 0.3/(t+1)^0.5)",
    "bias_correction(1 - 1/(t+1)^2)",
    "bias_correction(theta_from_weights(t))",
    "theta_from_weights(1)",
    "theta_from_weights(t^0.5, 7)",
    "theta_from_weights(1/t)",
    "theta_from_weights(3 * 1.01^t)",
    "theta_from_weights(0.9^t)",
    "theta_from_weights(t * 1.001^t)",
    "theta_from_weights(1 if t < 1000 else t)",
    "theta_from_weights(2 + sin(t))",
]
CATALOGUE = {
    f"{name} {sequence}": getattr(methods.as_algorithm(methods.build(name)).method, sequence)
    for name in methods.names()
    for sequence in ("alpha", "beta", "theta")
}
COMPLEMENTS = {
    f"1 - {name}": 1 - schedule
    for name, schedule in [*CATALOGUE.items(), *((text, parse(text)) for text in TEXTS if "theta" in text)]
    if "alpha" not in name and "bias" not in name
}


def errors(schedules: dict[str, Schedule], floor: float) -> dict[str, float]:
    """The largest relative error over t = 1, ..., STEPS; what is below the floor counts as the floor."""
    functions = {name: as_optax_schedule(schedule) for name, schedule in schedules.items()}
    # One compilation for all of them: it is what takes the time.
    ours = jax.jit(lambda count: {name: function(count) for name, function in functions.items()})(jnp.arange(STEPS))
    worst = {}
    for name, schedule in schedules.items():
        exact = schedule.values(1, STEPS + 1)
        worst[name] = float(np.max(np.abs(np.asarray(ours[name]) - exact) / np.maximum(np.abs(exact), floor)))
    return worst


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("schedules", [{text: parse(text) for text in TEXTS}, CATALOGUE, COMPLEMENTS], ids=len)
def test_equals_values_in_double_precision(schedules: dict[str, Schedule]) -> None:
    assert {name: error for name, error in errors(schedules, 1e-290).items() if not error < 1e-12} == {}


def test_keeps_six_digits_in_single_precision() -> None:
    """Complements too, which is what float32 loses first; geometric ones lose a digit with t."""
    smooth = {name: s for name, s in (CATALOGUE | COMPLEMENTS).items() if "^t" not in str(s)}
    assert {name: error for name, error in errors(smooth, 1e-30).items() if not error < 1e-6} == {}
    texts = [
        "bias_correction(0.999)",
        "1 - 0.999^t",
        "0.9 * 0.9999^t",
        "0.1 * sqrt(1 - 0.999^t) / (1 - 0.9^t)",
    ]
    assert {
        name: error for name, error in errors({x: parse(x) for x in texts}, 1e-30).items() if not error < 2e-6
    } == {}


def test_every_node_of_the_tree_has_a_rule() -> None:
    assert TRACED.missing == set()


@pytest.mark.parametrize("text", ["1 - theta_from_weights(t^0.5)", "bias_correction(1 - 1/(t+1)^2)"])
def test_past_the_table_a_running_sum_is_nan_rather_than_a_guess(text: str) -> None:
    schedule = jax.jit(as_optax_schedule(text))
    assert float(schedule(131_071)) == pytest.approx(parse(text)(131_072), rel=1e-6)
    assert np.isnan(schedule(jnp.asarray([131_072, 250_000, 2**31 - 2]))).all()


def test_count_zero_is_the_first_step() -> None:
    schedule = as_optax_schedule("0.001 if t < 3 else t")
    assert [float(schedule(count)) for count in range(4)] == pytest.approx([0.001, 0.001, 3, 4])
    rescale = optax.scale_by_schedule(as_optax_schedule("t"))
    state, factors = rescale.init(jnp.ones(())), []
    for _ in range(3):
        factor, state = rescale.update(jnp.ones(()), state)
        factors.append(float(factor))
    assert factors == [1.0, 2.0, 3.0]


def test_thresholds_and_periods_are_exact_where_float32_cannot_count() -> None:
    joined = as_optax_schedule("0 if t < 16777219 else 1")
    assert [float(joined(t - 1)) for t in (16777217, 16777218, 16777219)] == [0, 0, 1]
    cycle = as_optax_schedule("periodic(t, 3)")
    assert [float(cycle(t - 1)) for t in (2**30, 2**30 + 1, 2**30 + 2)] == [
        (t - 1) % 3 + 1 for t in range(2**30, 2**30 + 3)
    ]
    assert float(as_optax_schedule("2 if t < 3000000000 else 1")(jnp.int32(2**31 - 1))) == 2


def test_the_last_count_does_not_wrap() -> None:
    assert float(as_optax_schedule("1/t")(jnp.int32(2**31 - 1))) == pytest.approx(2.0**-31)


def test_numbers_text_arrays_and_bounds_are_taken() -> None:
    assert float(as_optax_schedule(0.25)(7)) == 0.25
    assert as_optax_schedule("2").__call__(jnp.arange(3)).tolist() == [2, 2, 2]
    assert float(jax.jit(as_optax_schedule(1 - Bounded(parse("1/t"), 0.0, 1.0)))(1)) == 0.5
    assert float(jax.jit(as_optax_schedule(2 * parse("periodic(t, 5)")))(7)) == 6
    assert jax.vmap(as_optax_schedule("t^2"))(jnp.arange(3)).tolist() == [1, 4, 9]
    assert as_optax_schedule("1/t") == as_optax_schedule(parse("1/t"))
    assert as_optax_schedule(as_optax_schedule("1/t")) == as_optax_schedule("1/t")


def test_a_callable_is_traced_or_refused_in_one_line() -> None:
    traced = as_optax_schedule(lambda t: jnp.where(t < 3, 1.0, 1 / t))
    assert jax.jit(traced)(jnp.arange(4)).tolist() == pytest.approx([1, 1, 1 / 3, 1 / 4])

    def stepwise(t: int) -> float:
        return 1.0 if t < 3 else 0.5

    assert [float(as_optax_schedule(stepwise)(count)) for count in range(3)] == [1.0, 1.0, 0.5]
    with pytest.raises(ScheduleError, match="cannot be traced by JAX") as refusal:
        jax.jit(as_optax_schedule(as_schedule(stepwise) * 2))(0)
    assert "stepwise" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ScheduleError, match="expected one number for each t"):
        jax.jit(as_optax_schedule(lambda t: jnp.ones(3) * t))(0)
