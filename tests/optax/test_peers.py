"""Padam, AMSGrad and AdaShift against their formulas in float64 NumPy."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from generic_adam.methods import Algorithm, Method
from generic_adam.optax.contrib import adashift, padam

STEPS = 400
GRADIENTS = np.random.default_rng(1).standard_normal((STEPS, 2, 3)) * np.geomspace(1e-3, 10, 6).reshape(2, 3)


def path(solver: optax.GradientTransformation) -> np.ndarray:
    """Where x_1 = 0 has gone after each step."""

    def step(carry: tuple, gradient: jax.Array) -> tuple[tuple, jax.Array]:
        x, state = carry
        updates, state = solver.update(gradient, state, x)
        return (x + updates, state), x + updates

    x = jnp.zeros((2, 3))
    return np.asarray(jax.jit(lambda c: jax.lax.scan(step, c, jnp.asarray(GRADIENTS)))((x, solver.init(x)))[1])


def padam_on_paper(power: float) -> Iterator[np.ndarray]:
    x = m = vhat = np.zeros((2, 3))
    v = np.full((2, 3), 1e-8)
    for t, g in enumerate(GRADIENTS, start=1):
        v = (1 - 1 / (t + 1)) * v + g**2 / (t + 1)
        m = 0.9 * m + 0.1 * g
        vhat = np.maximum(vhat, v)
        x = x - 0.1 / np.sqrt(t) * m / vhat**power
        yield x


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("power", [0.5, 0.125, 0.3])
def test_padam_is_its_formula(power: float) -> None:
    ours = path(padam("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)", partial=power, eps=0.0))
    np.testing.assert_allclose(ours, list(padam_on_paper(power)), rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("x64")
def test_padam_runs_an_algorithm_as_it_says_itself() -> None:
    method = Method("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)")
    algorithm = Algorithm(method, initial_v=1e-4, eps=0.5, running_maximum=True, power=0.25)
    ours = path(padam(algorithm))
    np.testing.assert_array_equal(ours, path(padam(method, initial_v=1e-4, eps=0.5, partial=0.25)))
    assert np.abs(ours - path(padam(method))).max() > 1e-2
    np.testing.assert_array_equal(path(padam(algorithm, partial=0.125)), path(padam(method, initial_v=1e-4, eps=0.5)))


def adashift_on_paper(n: int, beta: float, theta: float, by_max: bool) -> Iterator[np.ndarray]:
    x, v = np.zeros((2, 3)), np.zeros((2, 3))
    for t in range(1, STEPS + 1):
        if t > n:
            square = GRADIENTS[t - n - 1] ** 2
            v = theta * v + (1 - theta) * (np.full((2, 3), square.max()) if by_max else square)
            powers = beta ** np.arange(n)
            m = sum(p * GRADIENTS[t - 1 - i] for i, p in enumerate(powers)) / powers.sum()
            x = x - 0.1 / np.sqrt(t) * m / np.sqrt(v / (1 - theta ** (t - n)))
        yield x


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("n", "by_max"), [(1, True), (10, True), (3, False)])
def test_adashift_is_its_formula(n: int, by_max: bool) -> None:
    ours = path(adashift("0.1/sqrt(t)", 0.9, 0.99, keep=n, reduction="max" if by_max else "none", eps=0.0))
    np.testing.assert_allclose(ours, list(adashift_on_paper(n, 0.9, 0.99, by_max)), rtol=1e-11, atol=1e-14)


def test_adashift_only_collects_at_first() -> None:
    ours = path(adashift(0.1, keep=4))
    assert not ours[:4].any()
    assert ours[4].all()


def test_adashift_stays_where_its_second_moment_is_still_zero() -> None:
    solver = adashift(0.1, keep=2)
    x = jnp.zeros(3)
    state = solver.init(x)
    for t in range(1, 8):
        updates, state = solver.update(jnp.full(3, 0.0 if t <= 2 else 1.0), state, x)
        x = x + updates
        assert jnp.all(x == 0) if t <= 4 else jnp.all(jnp.abs(x) < 1)
