"""What is read off Optax's closures takes the steps that Optax takes."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import generic_adam as ga
from generic_adam.adapters import read
from generic_adam.errors import OptimizerError
from generic_adam.optax import generic_adam, scale_by_generic_adam
from tests.adapters import steps

STEPS = 60
START = np.array([0.5, -1.0, 2.0])


def gradient(x, t):
    return 0.3 * x + np.sin(np.array([1.0, 2.0, 3.0]) * t) + 0.05


SOLVERS = {
    "adam": optax.adam(0.05, eps=1e-3),
    "adam, eps under the root": optax.adam(0.05, eps=0.0, eps_root=1e-3),
    "adamw": optax.adamw(0.05, weight_decay=0.3),
    "adamw, cosine": optax.adamw(optax.cosine_decay_schedule(0.05, 50), weight_decay=0.1),
    "nadam": optax.nadam(0.05),
    "rmsprop": optax.rmsprop(0.01, decay=0.8, eps=1e-2),
    "rmsprop, outside": optax.rmsprop(0.01, eps_in_sqrt=False, initial_scale=0.3),
    "rmsprop, momentum": optax.rmsprop(0.01, momentum=0.7),
    "adagrad": optax.adagrad(0.1),
    "sgd": optax.sgd(0.1),
    "sgd, momentum": optax.sgd(optax.linear_schedule(0.1, 0.0, 100), momentum=0.9),
    "clipped by norm": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05)),
    "clipped by value": optax.chain(optax.clip(0.5), optax.adam(0.05)),
    "decay inside": optax.chain(optax.add_decayed_weights(0.2), optax.adam(0.05)),
    "generic_adam": generic_adam("0.1/sqrt(t)", 0.9, "1 - 1/(t+1)", eps=1e-3),
    "generic_adam, corrected": generic_adam(0.05, 0.9, "1 - 1/(t+1)", initial_v=0.0, bias_correction=True),
    "scale_by_generic_adam": optax.chain(
        scale_by_generic_adam(0.9, 0.99),
        optax.add_decayed_weights(0.1),
        optax.scale_by_learning_rate(optax.exponential_decay(0.1, 10, 0.9)),
    ),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_the_algorithm_read_takes_the_same_steps(name):
    solver = SOLVERS[name]
    algorithm = read(solver)
    assert algorithm.outside == ()
    with jax.enable_x64(True):
        x = jnp.asarray(START)
        state, points = solver.init(x), []
        update = jax.jit(solver.update)
        for t in range(1, STEPS + 1):
            updates, state = update(jnp.asarray(gradient(np.asarray(x), t)), state, x)
            x = optax.apply_updates(x, updates)
            points.append(np.asarray(x))
    ours = steps.path(algorithm, gradient, START, STEPS)
    # Optax keeps the powers of its bias correction in float32.
    np.testing.assert_allclose(points, ours, rtol=3e-4, atol=3e-5)


def test_certify_takes_a_transformation():
    assert ga.certify(optax.adam(1e-3)).verdict == "not certified"
    assert "scale_by_adam" in ga.certify(optax.adam(1e-3)).algorithm.source


def test_a_mask_on_the_decay_is_a_note():
    algorithm = read(optax.adamw(1e-3, mask=lambda params: params))
    assert algorithm.notes == ("weight decay leaves masked parameters alone",)
    assert algorithm.decay(1) == pytest.approx(1e-7)


@pytest.mark.parametrize(
    "solver",
    [optax.lion(1e-3), optax.lamb(1e-3), optax.masked(optax.adam(1e-3), True), optax.adafactor(1e-3)],
    ids=["lion", "lamb", "masked", "adafactor"],
)
def test_an_unknown_link_is_named_in_one_line(solver):
    with pytest.raises(OptimizerError, match=r"ga\.Algorithm") as caught:
        read(solver)
    assert "\n" not in str(caught.value)


def test_amsgrad_of_optax_takes_the_maximum_of_corrected_moments():
    assert "corrected" in read(optax.amsgrad(1e-3)).outside[0]
