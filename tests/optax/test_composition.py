"""The transformation under JAX's and Optax's own transformations."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam import reference
from generic_adam.methods import Method
from generic_adam.optax import as_optax_schedule, generic_adam, scale_by_generic_adam
from generic_adam.optax.schedule import RunningSchedules
from generic_adam.schedules import parse

METHOD = Method("0.1/sqrt(t)", 0.9, "theta_from_weights(t^0.5)")
PARAMS = {"weight": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "bias": jnp.array([0.1, -0.3])}


def loss(params: Any) -> jax.Array:
    return jnp.sum((params["weight"] @ jnp.array([1.0, 2.0]) + params["bias"]) ** 2)


def run(solver: optax.GradientTransformation, steps: int, params: Any = PARAMS, state: Any = None) -> tuple[Any, Any]:
    state = solver.init(params) if state is None else state

    @jax.jit
    def step(params: Any, state: Any) -> tuple[Any, Any]:
        updates, state = solver.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(steps):
        params, state = step(params, state)
    return params, state


def assert_same(first: Any, second: Any, tolerance: float = 1e-6) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), first, second)


def test_jit_scan_and_plain_calls_agree() -> None:
    solver = generic_adam(METHOD, bias_correction=True)
    plain, state = PARAMS, solver.init(PARAMS)
    for _ in range(3):
        updates, state = solver.update(jax.grad(loss)(plain), state, plain)
        plain = optax.apply_updates(plain, updates)
    jitted, _ = run(solver, 3)

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        params, state = carry
        updates, state = solver.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    (scanned, _), _ = jax.lax.scan(step, (PARAMS, solver.init(PARAMS)), length=3)
    assert_same(plain, jitted)
    assert_same(plain, scanned)


def test_vmap_sweeps_over_learning_rates() -> None:
    def last(rate: jax.Array) -> jax.Array:
        solver = generic_adam(rate, 0.9, "1 - 1/(t+1)")
        x = jnp.array([1.0, -3.0])
        return x + solver.update(x, solver.init(x))[0]

    rates = jnp.array([0.1, 0.2, 0.4])
    moved = jax.jit(jax.vmap(last))(rates) - jnp.array([1.0, -3.0])
    # Corrected, m_1 = g and v_1 = g^2: every coordinate moves by its learning rate.
    np.testing.assert_allclose(moved, -np.outer(rates, [1.0, -1.0]), rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_grad_through_updates_is_the_derivative() -> None:
    """d x_3 / d(start, learning rate) through two updates, against central differences."""

    def last(x: jax.Array, rate: jax.Array) -> jax.Array:
        solver = generic_adam(rate, 0.9, "1 - 1/(t+1)")
        state = solver.init(x)
        for _ in range(2):
            updates, state = solver.update(jnp.sin(x), state, x)
            x = x + updates
        return jnp.sum(x**2)

    x, rate, h = jnp.array([1.0, -0.4]), jnp.array(0.1), 1e-6
    by_start, by_rate = jax.jit(jax.grad(last, argnums=(0, 1)))(x, rate)
    last = jax.jit(last)
    assert float(by_rate) == pytest.approx(float((last(x, rate + h) - last(x, rate - h)) / (2 * h)), rel=1e-7)
    for i, unit in enumerate(jnp.eye(2) * h):
        assert float(by_start[i]) == pytest.approx(
            float((last(x + unit, rate) - last(x - unit, rate)) / (2 * h)), rel=1e-7
        )


@pytest.mark.parametrize("make", [generic_adam])
def test_grad_is_finite_where_v_is_zero(make: Any) -> None:
    solver = make(0.1, 0.9, "1 - 1/t", initial_v=0.0)

    def moved(gradient: jax.Array) -> jax.Array:
        return jnp.sum(solver.update(gradient, solver.init(gradient))[0])

    assert np.isfinite(jax.grad(moved)(jnp.array([0.0, 1.0]))).all()


def test_chain_with_clipping_and_weight_decay() -> None:
    solver = optax.chain(
        optax.clip_by_global_norm(1.0),
        scale_by_generic_adam(0.9, "1 - 1/max(t, 2)"),
        optax.add_decayed_weights(0.1),
        optax.scale_by_learning_rate(0.01),
    )
    gradient = jax.tree.map(lambda p: 100 * jnp.ones_like(p), PARAMS)
    updates, _ = solver.update(gradient, solver.init(PARAMS), PARAMS)
    # Corrected, m_1 / sqrt(v_1) = 1 whatever the clipping has left of g.
    assert_same(updates, jax.tree.map(lambda p: -0.01 * (1 + 0.1 * p), PARAMS))


def test_masked_leaves_pass_through() -> None:
    solver = optax.masked(generic_adam(METHOD), {"weight": True, "bias": False})
    state = solver.init(PARAMS)
    updates, state = jax.jit(solver.update)(PARAMS, state)
    assert_same(updates["bias"], PARAMS["bias"])
    alone = generic_adam(METHOD)
    assert_same(updates["weight"], alone.update(PARAMS["weight"], alone.init(PARAMS["weight"]))[0])
    assert len(jax.tree.leaves(optax.tree.get(state, "mu"))) == 1


def test_multi_transform_gives_each_label_its_method() -> None:
    parts = {"a": generic_adam(METHOD), "b": generic_adam(1.0, 0.0, "1 - 1/(t+1)^0.5")}
    both, _ = run(optax.multi_transform(parts, {"weight": "a", "bias": "b"}), 1)
    assert_same(both["weight"], run(parts["a"], 1)[0]["weight"])
    assert_same(both["bias"], run(parts["b"], 1)[0]["bias"])


def test_inject_hyperparams_takes_numbers_text_and_schedules() -> None:
    expected, _ = run(generic_adam("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)", bias_correction=True), 4)
    as_functions = optax.inject_hyperparams(generic_adam)(
        as_optax_schedule("0.1/sqrt(t)"),
        beta=0.9,
        theta=as_optax_schedule("1 - 1/(t+1)"),
        bias_correction=True,
    )
    params, state = run(as_functions, 4)
    assert_same(params, expected)
    assert float(state.hyperparams["theta"]) == pytest.approx(1 - 1 / 5)
    as_text = optax.inject_hyperparams(generic_adam)("0.1/sqrt(t)", beta=0.9, theta="1 - 1/(t+1)", bias_correction=True)
    assert_same(run(as_text, 4)[0], expected)


def test_accumulation_and_finiteness_wrappers() -> None:
    for dtype in (jnp.float32, jnp.bfloat16):
        params = optax.tree.cast(PARAMS, dtype)
        every_other = optax.MultiSteps(generic_adam(METHOD), every_k_schedule=2)
        once, _ = run(generic_adam(METHOD), 1, params)
        assert_same(run(every_other, 2, params)[0], once, 1e-2 if dtype == jnp.bfloat16 else 1e-6)
    guarded = optax.apply_if_finite(generic_adam(METHOD), max_consecutive_errors=3)
    bad = jax.tree.map(lambda p: p * jnp.nan, PARAMS)
    updates, _ = guarded.update(bad, guarded.init(PARAMS), PARAMS)
    assert_same(updates, jax.tree.map(jnp.zeros_like, PARAMS), 0)


@pytest.mark.parametrize("theta", ["theta_from_weights(t^0.5)", "1 - 1/(t+1)"])
def test_an_orbax_checkpoint_resumes_bit_for_bit(tmp_path: Path, theta: str) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    solver = generic_adam("0.1/sqrt(t)", 0.9, theta, bias_correction=True)
    params, state = run(solver, 3)
    with orbax.StandardCheckpointer() as saver:
        saver.save(tmp_path / "run", {"params": params, "state": state})
    with orbax.StandardCheckpointer() as loader:
        loaded = loader.restore(tmp_path / "run", {"params": PARAMS, "state": solver.init(PARAMS)})
    assert_same(loaded, {"params": params, "state": state}, 0)
    assert_same(run(solver, 2, **loaded), run(solver, 2, params, state), 0)


def test_the_state_is_found_by_name_and_counts_from_zero() -> None:
    solver = optax.chain(optax.identity(), generic_adam(METHOD))
    state = solver.init(PARAMS)
    assert int(optax.tree.get(state, "count")) == 0
    assert_same(optax.tree.get(state, "nu"), jax.tree.map(lambda p: jnp.full_like(p, 1e-8), PARAMS), 0)
    _, state = run(solver, 3)
    assert int(optax.tree.get(state, "count")) == 3


def test_a_converted_schedule_is_not_converted_twice() -> None:
    """Given in place of alpha it counts from 0 already; as a function of t it would be one step ahead."""
    converted = generic_adam(as_optax_schedule("0.1/t"), 0.0, as_optax_schedule("1 - 1/(t+1)"))
    assert_same(run(converted, 3)[0], run(generic_adam("0.1/t", 0.0, "1 - 1/(t+1)"), 3)[0], 0)


def test_complex_parameters_follow_the_modulus() -> None:
    """v averages abs(g)^2, so that turning g by a phase turns the update by the same phase."""
    solver = generic_adam(0.1, 0.9, "1 - 1/(t+1)")
    update = jax.jit(solver.update)
    g, phase = jnp.array([1.0 + 2.0j, -3.0 + 0.0j]), jnp.exp(0.7j)
    updates, state = update(g, solver.init(g))
    assert state.nu.dtype == jnp.float32
    np.testing.assert_allclose(update(g * phase, solver.init(g))[0], updates * phase, rtol=1e-6)
    real = update(jnp.array([-3.0]), solver.init(jnp.array([0.0])))[0]
    np.testing.assert_allclose(updates[1], real[0], rtol=1e-6)


@pytest.mark.parametrize("solver", [generic_adam(0.1)])
def test_a_real_gradient_of_complex_parameters_keeps_the_imaginary_part_of_m(solver: Any) -> None:
    x = jnp.zeros(1, jnp.complex64)
    _, state = solver.update(jnp.array([1 + 1j]), solver.init(x))
    expected, _ = solver.update(jnp.array([2 + 0j]), state)
    np.testing.assert_array_equal(solver.update(jnp.array([2.0]), state)[0], expected)
    assert expected.dtype == jnp.complex64


@pytest.mark.parametrize("weights", ["t * 1.001^t", "t * 1.00001^t", "t^0.5 * 0.9999^t"])
def test_a_running_sum_in_units_of_its_power_keeps_float32(weights: str) -> None:
    """A factor of 1.001 is rounded at each of its steps: multiplied in, it is off by 4e-5, and 1.00001 by 8e-4."""
    theta, steps = parse(f"theta_from_weights({weights})"), 100_000
    running = RunningSchedules(1, 0.9, theta, 0.0)

    def step(state: Any, _: None) -> tuple[Any, Any]:
        numbers, sums = running.numbers_at(*state)
        return (state[0] + 1, sums), numbers["one_minus_theta"]

    _, shares = jax.lax.scan(step, (jnp.int32(0), running.start()), length=steps)
    np.testing.assert_allclose(shares, (1 - theta).values(1, steps + 1), rtol=6e-7)


def test_a_tree_follows_the_reference_in_single_precision() -> None:
    params, _ = run(generic_adam(METHOD, eps=0), 50)

    def gradient(x: np.ndarray, _t: int) -> np.ndarray:
        residual = x[:4].reshape(2, 2) @ [1.0, 2.0] + x[4:]
        return np.concatenate([np.outer(2 * residual, [1.0, 2.0]).ravel(), 2 * residual])

    start = np.concatenate([np.asarray(PARAMS["weight"]).ravel(), np.asarray(PARAMS["bias"])])
    last = reference.generic_adam(METHOD, gradient, start, 50).points[-1]
    np.testing.assert_allclose(np.concatenate([params["weight"].ravel(), params["bias"]]), last, atol=2e-5)
