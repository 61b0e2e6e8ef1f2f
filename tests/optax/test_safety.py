"""Finite gradients never make nan or inf; what is not finite stays visible."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam.errors import OptimizerError
from generic_adam.methods import Algorithm, MethodError, adaema
from generic_adam.optax import generic_adam, scale_by_generic_adam
from generic_adam.schedules import ScheduleError

SOLVERS = {
    "adaema": generic_adam("0.1/sqrt(t)", 0.9, "1 - 1/t"),
    "corrected": generic_adam(0.1, 0.9, 0.999, initial_v=0.0, bias_correction=True),
    "theta 0.9": generic_adam(0.1, 0.9, 0.9),
    "without eps": generic_adam(0.1, 0.9, "1 - 1/t", initial_v=0.0, eps=0.0),
}


def trajectory(solver: optax.GradientTransformation, gradients: jax.Array) -> tuple[jax.Array, Any]:
    """The updates on a list of gradients, and the last state."""

    def step(state: Any, gradient: jax.Array) -> tuple[Any, jax.Array]:
        updates, state = solver.update(gradient, state)
        return state, updates

    state, updates = jax.jit(lambda s: jax.lax.scan(step, s, gradients))(solver.init(gradients[0]))
    return updates, state


def all_finite(tree: Any) -> bool:
    return all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", SOLVERS)
def test_extreme_but_finite_gradients(name: str, dtype: Any) -> None:
    largest = float(jnp.finfo(dtype).max)
    small = [1e-25, 1e-19, 1e-7] if dtype != jnp.float16 else [6e-8, 1e-4, 1e-3]
    always = [0.0, 1.0, *small, min(1e19, largest), largest, -largest]
    changing = [
        [0.0, 1.0],
        [1.0, 0.0],
        [0.0, largest],
        [largest, 0.0],
        [small[0], largest],
        [largest, small[0]],
    ]
    steady = jnp.tile(jnp.array(always, dtype), (12, 1))
    turning = jnp.array([[pair[t % 2] for pair in changing] for t in range(12)], dtype)
    updates, state = trajectory(SOLVERS[name], jnp.concatenate([steady, turning], axis=1))
    assert updates.dtype == dtype
    assert all_finite((updates, state))
    assert not np.asarray(updates[:, 0], np.float32).any()  # a coordinate that never has a gradient does not move


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e19, 1e30])
def test_the_update_does_not_depend_on_the_scale(scale: float) -> None:
    """theta_1 = 0 gives m_1 / sqrt(v_1) = 1 - beta whatever g is, also where g^2 would overflow."""
    for corrected in (True, False):
        solver = scale_by_generic_adam(0.9, "1 - 1/t", eps=1e-16, bias_correction=corrected)
        updates, _ = trajectory(solver, jnp.full((1, 1), scale, jnp.float32))
        assert float(updates[0, 0]) == pytest.approx(1.0 if corrected else 0.1, rel=1e-5)


def test_a_direction_too_large_for_float16_stays_finite() -> None:
    """m / sqrt(v) grows like (0.99 / sqrt(1/2))^t once the gradient is gone: beyond 65,504 after 40 steps."""
    gradients = jnp.zeros((60, 1), jnp.float16).at[0].set(1.0)
    updates, _ = trajectory(scale_by_generic_adam(0.99, 0.5, initial_v=0.0), gradients)
    assert float(updates[-1, 0]) == 65_504


def test_a_million_steps_without_gradient_after_one_with() -> None:
    """With theta = 0.9 v decays below the smallest number; m / eps, slower with beta = 0.99, stays finite."""
    for beta in (0.5, 0.99):
        solver = generic_adam(1e-3, beta, 0.9)
        _, state = solver.update(jnp.array([0.0, 1e19]), solver.init(jnp.zeros(2)))

        def step(carry: tuple, _: None, solver: Any = solver) -> tuple[tuple, None]:
            state, largest = carry
            updates, state = solver.update(jnp.zeros(2), state)
            return (state, jnp.maximum(largest, jnp.abs(updates))), None

        start = (state, jnp.zeros(2))
        (state, largest), _ = jax.jit(lambda c, step=step: jax.lax.scan(step, c, length=1_000_000))(start)
        assert all_finite((state, largest))
        assert float(largest[0]) == 0


def test_what_is_not_finite_is_passed_on() -> None:
    for bad in (np.nan, np.inf):
        updates, _ = trajectory(SOLVERS["theta 0.9"], jnp.array([[bad, 1.0], [1.0, 1.0]]))
        assert not np.isfinite(updates[0, 0])
        assert not np.isfinite(updates[1, 0])
        assert np.isfinite(updates[:, 1]).all()


def test_half_precision_parameters_keep_moments_in_float32() -> None:
    params = {"a": jnp.ones(2, jnp.bfloat16), "b": jnp.ones(2, jnp.float16), "c": jnp.ones(2)}
    solver = generic_adam(1e-3, 0.9, 0.999)
    updates, state = solver.update(params, solver.init(params))
    assert {leaf.dtype for leaf in jax.tree.leaves((state.mu, state.nu))} == {jnp.dtype(jnp.float32)}
    assert jax.tree.map(lambda u: u.dtype, updates) == jax.tree.map(lambda p: p.dtype, params)
    _, state = generic_adam(1e-3, 0.9, 0.999, mu_dtype=jnp.bfloat16).update(
        params, generic_adam(1e-3, 0.9, 0.999, mu_dtype=jnp.bfloat16).init(params)
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(state.mu)} == {jnp.dtype(jnp.bfloat16)}


@pytest.mark.usefixtures("x64")
def test_float32_parameters_stay_so_in_double_precision() -> None:
    params = jnp.ones(2, jnp.float32)
    solver = generic_adam("1/t", 0.9, "theta_from_weights(t)", bias_correction=True)
    updates, state = jax.jit(solver.update)(params, solver.init(params))
    assert {updates.dtype, state.mu.dtype, state.nu.dtype} == {jnp.dtype(jnp.float32)}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: generic_adam(adaema(), 0.9), OptimizerError, "a method brings its own beta and theta"),
        (
            lambda: generic_adam(Algorithm(adaema(), running_maximum=True)),
            OptimizerError,
            "does not run this algorithm: v_t is replaced by its running maximum",
        ),
        (lambda: generic_adam(0.1, 1.0, 0.9), MethodError, "beta: expected 0 <= beta_t < 1"),
        (lambda: generic_adam(-0.1, 0.9, 0.9), MethodError, "alpha: expected"),
        (lambda: generic_adam("1/(t", 0.9, 0.9), OptimizerError, "alpha: "),
        (lambda: generic_adam(0.1, 0.9, 0.9, eps=-1.0), OptimizerError, "eps is -1.0; expected"),
        (
            lambda: generic_adam(0.1, 0.9, 0.9, initial_v=np.inf),
            OptimizerError,
            "initial_v is inf; expected",
        ),
        (
            lambda: generic_adam(jnp.ones(3), 0.9, 0.9),
            OptimizerError,
            "alpha: expected one number, got an array",
        ),
        (lambda: scale_by_generic_adam(0.9, 2.0), MethodError, "theta: expected 0 <= theta_t < 1"),
        (lambda: generic_adam(0.1, initial_v="0"), OptimizerError, "initial_v is '0'; expected a finite"),
        (lambda: generic_adam(np.array(-0.1)), MethodError, "alpha: expected a finite number > 0"),
        (
            lambda: generic_adam(0.1, mu_dtype=jnp.int32).init(jnp.ones(2)),
            OptimizerError,
            "mu_dtype is int32; expected one that holds an average of float32",
        ),
        (
            lambda: generic_adam(0.1, mu_dtype=jnp.bfloat16).init(jnp.ones(2) + 1j),
            OptimizerError,
            "mu_dtype is bfloat16; expected one that holds an average of complex64",
        ),
        (
            lambda: generic_adam(0.1, 0.9, 0.9).init({"n": jnp.arange(3)}),
            OptimizerError,
            "['n'] is of dtype int32",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        make()
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_misspelt_keyword_is_an_error() -> None:
    with pytest.raises(TypeError, match="inital_v"):
        generic_adam(0.1, 0.9, 0.9, inital_v=1.0)  # pyright: ignore[reportCallIssue]


def test_a_callable_that_cannot_be_traced_is_named_under_jit() -> None:
    solver = generic_adam(lambda t: 0.1 if t < 3 else 0.01, 0.9, 0.9)
    x = jnp.ones(())
    assert float(solver.update(x, solver.init(x))[0]) < 0
    with pytest.raises(ScheduleError, match="cannot be traced by JAX"):
        jax.jit(solver.update)(x, solver.init(x))
