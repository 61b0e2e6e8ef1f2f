"""What Optax asks of every transformation, asked of each of ours: one common suite, as in optax.contrib."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam.optax import as_optax_schedule, generic_adam, scale_by_generic_adam

MAKERS: dict[str, Any] = {
    "generic_adam": lambda rate=0.1: generic_adam(rate, 0.9, "1 - 1/(t+1)", bias_correction=False),
    "generic_adam corrected": lambda rate=0.1: generic_adam(rate, theta=0.99),
    "generic_adam from weights": lambda rate=0.1: generic_adam(rate, 0.9, "theta_from_weights(t^0.5)"),
    "scale_by_generic_adam": lambda rate=0.1: optax.chain(
        scale_by_generic_adam(0.9, 0.99), optax.scale_by_learning_rate(rate)
    ),
}
every_solver = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
DTYPES = (jnp.float32, jnp.bfloat16, jnp.float16)
PARAMS = {"matrix": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "list": [jnp.array([0.1, -0.3]), jnp.array(2.0)]}


def gradient_of(params: Any) -> Any:
    return jax.tree.map(lambda p: 2 * (p - 1), params)


def run(solver: optax.GradientTransformation, params: Any, steps: int) -> tuple[Any, Any]:
    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        params, state = carry
        updates, state = solver.update(gradient_of(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    return jax.jit(lambda carry: jax.lax.scan(step, carry, length=steps)[0])((params, solver.init(params)))


@every_solver
def test_a_parabola_is_descended(make: Any) -> None:
    params, _ = run(make("0.3/sqrt(t)" if make is not MAKERS["scale_by_generic_adam"] else 0.02), PARAMS, 600)
    assert max(float(jnp.abs(leaf - 1).max()) for leaf in jax.tree.leaves(params)) < 0.1


@every_solver
def test_shapes_dtypes_and_structure_are_kept(make: Any) -> None:
    params = [optax.tree.cast(PARAMS, dtype) for dtype in DTYPES]
    solver = make()
    state = solver.init(params)
    updates, after = jax.jit(solver.update)(params, state, params)
    assert jax.tree.structure(updates) == jax.tree.structure(params)
    assert jax.tree.map(lambda u: (u.shape, u.dtype), updates) == jax.tree.map(lambda p: (p.shape, p.dtype), params)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert jax.tree.map(lambda s: (s.shape, s.dtype), after) == jax.tree.map(lambda s: (s.shape, s.dtype), state)


@every_solver
def test_extra_arguments_pass_by(make: Any) -> None:
    solver = make()
    assert isinstance(solver, optax.GradientTransformationExtraArgs)
    state = solver.init(PARAMS)
    plain = solver.update(PARAMS, state, PARAMS)
    extra = solver.update(PARAMS, state, PARAMS, value=jnp.array(1.0), loss_fn=None)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), plain, extra))


@every_solver
def test_no_gradient_is_no_update_and_leaves_the_moments(make: Any) -> None:
    solver = make()
    params = {"a": jnp.ones(2), "b": jnp.ones(3), "frozen": None}
    state = solver.init(params)
    _, state = solver.update({"a": jnp.ones(2), "b": jnp.ones(3), "frozen": None}, state, params)
    updates, after = jax.jit(solver.update)({"a": jnp.ones(2), "b": None, "frozen": None}, state, params)
    assert updates["b"] is None
    assert updates["frozen"] is None
    assert jax.tree.structure(after) == jax.tree.structure(state)
    before_nu, after_nu = (optax.tree.get(one, "nu") for one in (state, after))
    np.testing.assert_array_equal(before_nu["b"], after_nu["b"])
    updates.pop("b")
    assert optax.apply_updates({"a": params["a"], "frozen": None}, updates)["frozen"] is None


@every_solver
@pytest.mark.parametrize("number", [2.0, 2])
def test_python_numbers_are_gradients_and_parameters(make: Any, number: float) -> None:
    solver = make()
    updates, _ = solver.update({"x": number}, solver.init({"x": 1.0}), {"x": 1.0})
    expected, _ = solver.update({"x": jnp.array(2.0)}, solver.init({"x": jnp.array(1.0)}))
    assert float(updates["x"]) == float(expected["x"])


def shapes_of(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)


@every_solver
def test_one_compilation_serves_every_step_with_donated_buffers(make: Any) -> None:
    """The state keeps its shapes, dtypes and weak types from `init` on, and no two of its leaves share memory."""
    solver, traced = make(), []

    def step(params: Any, state: Any) -> tuple[Any, Any]:
        traced.append(None)
        updates, state = solver.update(gradient_of(params), state, params)
        return optax.apply_updates(params, updates), state

    params = jax.tree.map(lambda p: jnp.array(p, jnp.float32), PARAMS)
    state = solver.init(params)
    assert shapes_of(jax.eval_shape(solver.init, params)) == shapes_of(state)
    jitted = jax.jit(step, donate_argnums=(0, 1))
    for _ in range(3):
        params, state = jitted(params, state)
    assert len(traced) == 1


@every_solver
def test_what_careful_people_switch_on(make: Any) -> None:
    """Strict promotion of dtypes, no promotion of ranks, an error at any nan, a check for leaked tracers."""
    solver, params = make(), [PARAMS["matrix"].astype(dtype) for dtype in DTYPES]
    strict, equal_ranks = jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise")
    with strict, equal_ranks, jax.debug_nans(True), jax.check_tracer_leaks():
        state, update = solver.init(params), jax.jit(solver.update)
        for gradient in (jax.tree.map(jnp.zeros_like, params), params):
            _, state = update(gradient, state, params)


@every_solver
def test_moments_are_found_as_parameters_are(make: Any) -> None:
    """`optax.tree.map_params` tells m and v from the rest: how people shard or cast an optimizer's state."""
    solver = make()
    ones = optax.tree.map_params(solver, jnp.ones_like, solver.init(PARAMS))
    assert int(jax.tree.leaves(optax.tree.get(ones, "count", filtering=lambda path, _: len(path) < 3))[0]) == 0
    assert all(bool((leaf == 1).all()) for leaf in jax.tree.leaves(optax.tree.get(ones, "nu")))


# Wrappers that change nothing here: what comes out is what the transformation alone would do.
NEUTRAL: dict[str, Any] = {
    "flatten": optax.flatten,
    "apply_if_finite": lambda solver: optax.apply_if_finite(solver, 3),
    "named_chain": lambda solver: optax.named_chain(("inner", solver)),
    "zero_nans": lambda solver: optax.chain(optax.zero_nans(), solver),
    "conditionally_transform": lambda solver: optax.conditionally_transform(solver, lambda _: True),
    "partition": lambda solver: optax.partition({"all": solver}, "all"),
    "split_real_and_imaginary": optax.contrib.split_real_and_imaginary,
    "with_extra_args_support": optax.with_extra_args_support,
}


@pytest.mark.parametrize("wrapper", NEUTRAL.values(), ids=list(NEUTRAL))
@pytest.mark.parametrize("name", ["generic_adam from weights"])
def test_neutral_wrappers_leave_the_steps_alone(name: str, wrapper: Any) -> None:
    expected, _ = run(MAKERS[name](), PARAMS, 5)
    wrapped, _ = run(wrapper(MAKERS[name]()), PARAMS, 5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), wrapped, expected)


DESCENDING: dict[str, Any] = {
    "schedule_free": lambda solver: optax.contrib.schedule_free(solver, 0.1),
    "mechanize": lambda solver: optax.contrib.mechanize(solver, s_init=1.0),
    "MultiSteps": lambda solver: optax.MultiSteps(solver, 2).gradient_transformation(),
    "ema": lambda solver: optax.chain(solver, optax.ema(0.5)),
    "adaptive_grad_clip": lambda solver: optax.chain(optax.adaptive_grad_clip(1.0), solver),
}


@pytest.mark.parametrize("wrapper", DESCENDING.values(), ids=list(DESCENDING))
def test_other_wrappers_descend_with_it(wrapper: Any) -> None:
    def distance(params: Any) -> float:
        return sum(float(jnp.sum((leaf - 1) ** 2)) for leaf in jax.tree.leaves(params))

    params, _ = run(wrapper(generic_adam(0.1)), PARAMS, 40)
    assert distance(params) < distance(PARAMS) / 2


def test_lookahead_follows_and_then_pulls_back() -> None:
    solver = optax.lookahead(generic_adam(0.1), sync_period=3, slow_step_size=0.5)
    params = optax.LookaheadParams.init_synced(PARAMS)
    state = solver.init(params)
    for _ in range(3):
        updates, state = jax.jit(solver.update)(gradient_of(params.fast), state, params)
        params = optax.apply_updates(params, updates)
    third, _ = run(generic_adam(0.1), PARAMS, 3)
    halfway = jax.tree.map(lambda start, end: (start + end) / 2, PARAMS, third)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), params.fast, halfway)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), params.fast, params.slow)


def test_a_plateau_scales_its_updates() -> None:
    """With g = 1 each step is -learning rate, as for gradient descent."""

    def sizes(solver: optax.GradientTransformation) -> list[float]:
        plateau = optax.chain(solver, optax.contrib.reduce_on_plateau(factor=0.5, patience=2))
        x, found = jnp.array(1.0), []
        state = plateau.init(x)
        for _ in range(6):
            update, state = plateau.update(x, state, x, value=x)
            found.append(float(update))
        return found

    ours = sizes(generic_adam(0.1))
    assert ours == pytest.approx(sizes(optax.sgd(0.1)), rel=1e-5)
    assert ours[-1] > ours[0]


@pytest.mark.parametrize("rate", [np.float32(0.1), np.array(0.1), jnp.array(0.1), "0.1", np.int64(1)])
def test_every_kind_of_number_is_a_learning_rate(rate: Any) -> None:
    expected, _ = run(optax.adam(float(rate)), PARAMS, 3)
    params, _ = run(generic_adam(rate), PARAMS, 3)
    # Optax has the powers of its correction in float32, 1e-5 off at first.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4 * float(rate)), params, expected)


def test_an_injected_rate_is_read_and_set_by_its_name() -> None:
    solver = optax.inject_hyperparams(generic_adam)(0.1)
    state = solver.init(PARAMS)
    assert dict(state.hyperparams) == {"learning_rate": jnp.float32(0.1)}
    state = optax.tree.set(state, learning_rate=jnp.array(0.2))
    updates, state = jax.jit(solver.update)(PARAMS, state, PARAMS)
    jax.tree.map(lambda u, p: np.testing.assert_allclose(u, -0.2 * jnp.sign(p), rtol=1e-5), updates, PARAMS)
    assert float(optax.tree.get(state, "learning_rate")) == pytest.approx(0.2)


@every_solver
def test_vmap_runs_each_problem_alone(make: Any) -> None:
    solver = make()
    starts = jnp.array([[1.0, -2.0], [0.5, 3.0], [4.0, 0.0]])

    def moved(x: jax.Array) -> jax.Array:
        return run(solver, x, 6)[0]

    np.testing.assert_allclose(jax.vmap(moved)(starts), [moved(x) for x in starts], rtol=1e-5)


@pytest.mark.parametrize(
    ("factory", "settings"),
    [
        (generic_adam, {"beta": 0.9, "theta": 0.99}),
    ],
)
@pytest.mark.parametrize("rate", [0.1, as_optax_schedule("0.1/sqrt(t)"), optax.linear_schedule(0.1, 0.0, 20)])
def test_injected_hyperparameters_under_jit(factory: Any, settings: dict[str, Any], rate: Any) -> None:
    injected = optax.inject_hyperparams(factory)(rate, **settings)
    (params, state), (expected, _) = run(injected, PARAMS, 8), run(factory(rate, **settings), PARAMS, 8)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), params, expected)
    shown = state.hyperparams["learning_rate"] if callable(rate) else optax.tree.get(state, "learning_rate")
    assert float(shown) == pytest.approx(float(rate(7)) if callable(rate) else rate)


@pytest.mark.parametrize(
    "schedule",
    [
        optax.warmup_cosine_decay_schedule(0.0, 0.1, 3, 10),
        optax.piecewise_constant_schedule(0.1, {2: 0.5, 5: 0.1}),
        optax.exponential_decay(0.1, 4, 0.5, staircase=True),
        optax.join_schedules([optax.constant_schedule(0.1), optax.cosine_decay_schedule(0.1, 5)], [3]),
    ],
    ids=["warm-up", "steps", "staircase", "joined"],
)
def test_a_schedule_of_optax_is_taken_with_its_own_count(schedule: Any) -> None:
    """Whether it is called at once, traced, or chained as Optax does."""
    chained = optax.chain(scale_by_generic_adam(0.9, 0.99), optax.scale_by_learning_rate(schedule))
    ours = generic_adam(schedule, 0.9, 0.99)
    state, other = ours.init(PARAMS), chained.init(PARAMS)
    for _ in range(8):
        one, state = ours.update(PARAMS, state)
        two, other = chained.update(PARAMS, other, PARAMS)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), one, two)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
        run(ours, PARAMS, 9)[0],
        run(chained, PARAMS, 9)[0],
    )
    assert float(as_optax_schedule(schedule)(4)) == pytest.approx(float(schedule(4)))
