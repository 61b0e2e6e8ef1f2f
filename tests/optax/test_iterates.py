"""The iterates of the transformation against the algorithm as on paper."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam import methods, reference
from generic_adam.methods import Algorithm, Method
from generic_adam.methods.catalogue import corrected_eps
from generic_adam.optax import as_optax_schedule, generic_adam, scale_by_generic_adam
from generic_adam.schedules import bias_correction, parse, sqrt

STEPS = 10_000
NOISE = np.random.default_rng(0).standard_normal((STEPS, 3)) * [1.0, 1e-3, 30.0]
CENTRE = np.array([1.0, -2.0, 0.5])
START = np.array([0.1, 3.0, -1.0])


def gradient(x: np.ndarray, t: int) -> np.ndarray:
    return x - CENTRE + NOISE[t - 1]


def points(solver: optax.GradientTransformation, steps: int = STEPS) -> np.ndarray:
    """x_1, ..., x_{steps + 1}."""

    def step(carry: tuple, noise: jax.Array) -> tuple[tuple, jax.Array]:
        x, state = carry
        updates, state = solver.update(x - CENTRE + noise, state, x)
        x = optax.apply_updates(x, updates)
        return (x, state), x

    x = jnp.asarray(START)
    _, path = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.asarray(NOISE[:steps])))((x, solver.init(x)))
    return np.concatenate([START[None], np.asarray(path)])


def distance(path: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, against how far each coordinate has gone."""
    return float(np.max(np.abs(path - expected) / np.max(np.abs(expected - START), axis=0)))


def on_paper(method: Method, steps: int = STEPS, epsilon: float = 1e-8) -> np.ndarray:
    return reference.generic_adam(method, gradient, START, steps, epsilon).points


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", [one for one in methods.names() if isinstance(methods.build(one), Method)])
def test_every_catalogue_method_follows_the_reference(name: str) -> None:
    method = methods.build(name)
    assert distance(points(generic_adam(method, eps=0)), on_paper(method)) < 1e-12


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "theta",
    [
        "theta_from_weights(t^1.5, 3)",
        "theta_from_weights(t * 1.01^t)",
        "theta_from_weights(2 + sin(t))",
        "theta_from_weights(1 if t < 700 else t)",
        "theta_from_weights(bias_correction(0.99 - 0.5/t))",
        "0.9 if t < 777 else 1 - 1/t",
        "periodic(theta_from_weights(t), 100)",
    ],
)
def test_schedules_with_memory_follow_the_reference(theta: str) -> None:
    method = Method("0.1/sqrt(t)", "0.9 * 0.999^t", theta)
    assert distance(points(generic_adam(method, eps=0), 3000), on_paper(method, 3000)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_bias_correction_uses_the_exact_products() -> None:
    beta, theta = parse("0.9 - 0.5/t"), parse("1 - 1/(t+1)^0.7")
    corrected = Method(0.01 * sqrt(bias_correction(theta)) / bias_correction(beta), beta, theta)
    solver = generic_adam(0.01, beta, theta, eps=0, initial_v=1e-8)
    assert distance(points(solver, 3000), on_paper(corrected, 3000)) < 1e-12
    assert distance(points(generic_adam(corrected, eps=0), 3000), on_paper(corrected, 3000)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_weighted_adaema_is_the_same_algorithm() -> None:
    method = Method.from_weights("1/sqrt(t)", 0.9, "t^0.5")
    expected = reference.weighted_adaema("1/sqrt(t)", 0.9, "t^0.5", gradient, START, 2000).points
    assert distance(points(generic_adam(method, eps=0), 2000), expected) < 1e-12


@pytest.mark.usefixtures("x64")
def test_the_trap_of_a_scheduled_theta_in_corrected_adam() -> None:
    """theta_t = 1 - 1/t, g = 1, beta = 0, lr = 0.01: -10 after 1,000 steps; with theta_t^t it is -7.96."""

    def last(solver: optax.GradientTransformation) -> float:
        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            x, state = carry
            updates, state = solver.update(jnp.ones(()), state, x)
            return (optax.apply_updates(x, updates), state), None

        x = jnp.zeros(())
        return float(jax.jit(lambda c: jax.lax.scan(step, c, length=1000))((x, solver.init(x)))[0][0])

    theta = "1 - 1/t"
    ours = generic_adam(0.01, 0.0, theta, eps=0.0)
    assert last(ours) == pytest.approx(-10, abs=1e-12)
    peer = optax.inject_hyperparams(optax.adam)(0.01, b1=0.0, b2=as_optax_schedule(theta), eps=0.0)
    assert last(peer) == pytest.approx(-7.960, abs=1e-3)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        (generic_adam(1e-2), optax.adam(1e-2)),
        (generic_adam(1e-2, 0.8, 0.95, eps=1e-3), optax.adam(1e-2, 0.8, 0.95, eps=1e-3)),
        (
            generic_adam(optax.cosine_decay_schedule(0.1, 900)),
            optax.adam(optax.cosine_decay_schedule(0.1, 900)),
        ),
        (optax.chain(scale_by_generic_adam(), optax.scale(-0.01)), optax.adam(1e-2)),
    ],
    ids=["plain", "other numbers", "scheduled", "chained"],
)
def test_a_learning_rate_alone_is_optax_adam(
    ours: optax.GradientTransformation, peer: optax.GradientTransformation
) -> None:
    """From the first step on, where the two would differ most without the correction."""
    path, expected = points(ours, 1000), points(peer, 1000)
    np.testing.assert_allclose(path[:10], expected[:10], rtol=0, atol=1e-14)
    assert distance(path, expected) < 1e-12


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "settings",
    [{"lr": 1e-2}, {"lr": "0.1/sqrt(t)", "beta": 0.5, "theta": "1 - 1/(t+1)^0.7"}],
    ids=["plain", "scheduled"],
)
def test_the_torch_optimizer_goes_the_same_way(settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    optimizer_class = pytest.importorskip("generic_adam.torch").GenericAdam
    x = torch.nn.Parameter(torch.tensor(START))
    optimizer, path = optimizer_class([x], **settings), [START]
    for t in range(1, 501):
        x.grad = torch.tensor(gradient(x.detach().numpy(), t))
        optimizer.step()
        path.append(x.detach().numpy().copy())
    rest = {name: value for name, value in settings.items() if name != "lr"}
    assert distance(points(generic_adam(settings["lr"], **rest), 500), np.array(path)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_a_method_is_the_papers_algorithm_and_an_algorithm_is_itself() -> None:
    method = Method("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)")
    expected = points(generic_adam(method), 300)
    assert distance(expected, on_paper(method, 300)) < 1e-12
    spelled_out = generic_adam("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)", initial_v=1e-8, eps=1e-16, bias_correction=False)
    assert distance(points(spelled_out, 300), expected) < 1e-14
    as_optax = Algorithm(methods.adam(lr=1e-2), initial_v=0, eps=corrected_eps(1e-8, 0.999))
    assert distance(points(generic_adam(as_optax), 300), points(optax.adam(1e-2), 300)) < 1e-12


@pytest.mark.usefixtures("x64")
def test_a_chain_with_a_learning_rate_is_the_same() -> None:
    method = Method("0.5/sqrt(t)", 0.9, "1 - 1/max(t, 2)")
    chained = optax.chain(
        scale_by_generic_adam(method.beta, method.theta, initial_v=1e-8, eps=1e-16, bias_correction=False),
        optax.scale_by_learning_rate(as_optax_schedule(method.alpha)),
    )
    assert distance(points(chained, 500), points(generic_adam(method), 500)) < 1e-14


@pytest.mark.usefixtures("x64")
def test_callables_that_jax_can_trace_are_used_as_they_are() -> None:
    method = Method(lambda t: 0.1 / t**0.5, lambda t: 0.9, lambda t: 1 - 1 / (t + 1))
    same = Method("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)")
    assert distance(points(generic_adam(method, eps=0), 500), on_paper(same, 500)) < 1e-12


def test_float32_forgets_at_the_rate_that_is_asked_for() -> None:
    """theta = 1 - 1.03e-5 is 1 - 1.031e-5 in float32: after 48,000 steps v would be 0.06 percent off."""
    solver = scale_by_generic_adam(0.0, "1 - 1.03e-5", initial_v=1.0)

    def step(state: tuple, _: None) -> tuple[tuple, None]:
        return solver.update(jnp.zeros(()), state)[1], None

    v = float(jax.jit(lambda s: jax.lax.scan(step, s, length=48_000)[0])(solver.init(jnp.zeros(()))).nu)
    assert v == pytest.approx((1 - 1.03e-5) ** 48_000, rel=2e-5)


def test_float32_running_sums_lose_nothing_past_two_to_the_24() -> None:
    """W_t = W_{t-1} + w_t with w_t close to 1: plain float32 sums stop at 2^24."""
    solver = scale_by_generic_adam(0.0, "theta_from_weights(1 + 1/t, 16777216)", bias_correction=False)
    state = solver.init(jnp.zeros(()))

    def step(state: tuple, _: None) -> tuple[tuple, None]:
        return solver.update(jnp.ones(()), state)[1], None

    (total,) = jax.jit(lambda s: jax.lax.scan(step, s, length=2001)[0])(state).sums
    exact = 2**24 + 2001 + sum(1 / t for t in range(1, 2002))
    assert float(total.high) + float(total.low) == pytest.approx(exact, abs=1e-3)
