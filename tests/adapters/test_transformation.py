"""What is read off Optax's closures takes the steps that Optax takes."""

import functools
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
from generic_adam.schedules import has_callable
from tests import steps
from tests.steps import START, gradient

STEPS = 60


SOLVERS = {
    "adam": optax.adam(0.05, eps=1e-3),
    "adam, eps under the root": optax.adam(0.05, eps=0.0, eps_root=1e-3),
    "adamw": optax.adamw(0.05, weight_decay=0.3),
    "adamw, cosine": optax.adamw(optax.cosine_decay_schedule(0.05, 50), weight_decay=0.1),
    "adam, hyperparameters injected": optax.inject_hyperparams(optax.adam)(learning_rate=0.05, b1=0.8),
    "adamw, a schedule injected": optax.inject_hyperparams(optax.adamw)(
        learning_rate=optax.cosine_decay_schedule(0.05, 50), weight_decay=0.1
    ),
    "a chain with names": optax.named_chain(("a", optax.scale_by_adam()), ("b", optax.scale(-0.05))),
    "nadam": optax.nadam(0.05),
    "rmsprop": optax.rmsprop(0.01, decay=0.8, eps=1e-2),
    "rmsprop, outside": optax.rmsprop(0.01, eps_in_sqrt=False, initial_scale=0.3),
    "rmsprop, momentum": optax.rmsprop(0.01, momentum=0.7),
    "adagrad": optax.adagrad(0.1),
    "sgd": optax.sgd(0.1),
    "sgd, momentum": optax.sgd(optax.linear_schedule(0.1, 0.0, 100), momentum=0.9),
    "clipped by norm": optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05)),
    "clipped by value": optax.chain(optax.clip(0.5), optax.adam(0.05)),
    "decay inside, after clipping": optax.chain(
        optax.clip(0.5), optax.add_decayed_weights(0.2), optax.add_decayed_weights(0.1), optax.adam(0.05)
    ),
    "decay after momentum": optax.chain(
        optax.trace(0.9), optax.add_decayed_weights(0.1), optax.scale(2.0), optax.scale(-0.01)
    ),
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


SCHEDULES = {
    "constant": optax.constant_schedule(0.1),
    "linear": optax.linear_schedule(0.1, 0.01, 100),
    "polynomial": optax.polynomial_schedule(0.1, 0.0, 2, 100, transition_begin=7),
    "no length": optax.polynomial_schedule(0.1, 0.0, 2, 0),
    "cosine": optax.cosine_decay_schedule(0.1, 150, 0.1),
    "exponential": optax.exponential_decay(0.1, 10, 0.9, transition_begin=5),
    "stairs": optax.exponential_decay(0.1, 10, 0.9, 5, staircase=True, end_value=1e-2),
    "growing": optax.exponential_decay(0.1, 10, 1.1, end_value=0.4),
    "piecewise": optax.piecewise_constant_schedule(0.1, {10: 0.5, 30: 0.1}),
    "warm-up and cosine": optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, 100, 1e-3),
    "warm-up and exponential": optax.warmup_exponential_decay_schedule(0.0, 0.1, 10, 100, 0.9),
    "warm-up": optax.warmup_constant_schedule(0.0, 0.1, 10),
    "restarts": optax.sgdr_schedule(
        [{"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 3, "decay_steps": 40, "end_value": 0.01}] * 2
    ),
}
CALLED = {
    "cosine, another exponent": optax.cosine_decay_schedule(0.1, 100, exponent=1.5),
    "one cycle": optax.cosine_onecycle_schedule(100, 0.1),
    "a function of one's own": lambda count: 0.1 / (1 + count),
    "of one number alone": lambda count: 0.1 if count < 50 else 0.01,
}


@pytest.mark.parametrize("name", [*SCHEDULES, *CALLED])
def test_schedules_are_what_optax_computes(name):
    function = (SCHEDULES | CALLED)[name]
    rate = read(optax.sgd(function)).method.alpha
    assert has_callable(rate) is (name in CALLED)
    real = [float(function(count)) for count in range(200)]
    np.testing.assert_allclose(rate.values(1, 201), real, rtol=1e-5, atol=1e-8)
    assert rate(5) == pytest.approx(real[4], rel=1e-5, abs=1e-8)


def test_a_schedule_that_only_looks_like_one_of_optax_is_called():
    def cosine_decay_schedule(init_value, decay_steps, alpha, exponent):
        return lambda count: init_value * (alpha + 1 / (decay_steps + exponent + count))

    function = cosine_decay_schedule(0.1, 100, 0.0, 1.0)
    assert read(optax.sgd(function)).method.alpha(3) == pytest.approx(0.1 / 103)


def test_a_long_horizon_is_answered():
    # How soon: benchmarks/soon.py. A call of JAX for each step would take minutes.
    found = ga.certify(optax.adam(optax.cosine_onecycle_schedule(100_000, 1e-3)), horizon=100_000)
    assert found.horizon.steps == 100_000
    assert found.horizon.noise is not None


def test_certify_takes_a_transformation():
    assert ga.certify(optax.adam(1e-3)).verdict == "not certified"
    assert "scale_by_adam" in ga.certify(optax.adam(1e-3)).algorithm.source


def test_a_mask_on_the_decay_is_a_note():
    algorithm = read(optax.adamw(1e-3, mask=lambda params: params))
    assert algorithm.notes == ("weight decay leaves masked parameters alone",)
    assert algorithm.decay(1) == pytest.approx(1e-7)


def scale_by_adam(b1, b2, eps, eps_root):
    """Not Optax's, though it closes over the same names."""
    given = optax.scale_by_adam(b1, b2, eps, eps_root)

    def update(updates, state, params=None):
        return jax.tree.map(lambda g: g * (b1 + b2 + eps + eps_root), updates), state

    return optax.GradientTransformation(given.init, update)


REFUSED = {
    "lion": optax.lion(1e-3),
    "lamb": optax.lamb(1e-3),
    "masked": optax.masked(optax.adam(1e-3), True),
    "adafactor": optax.adafactor(1e-3),
    "finite": optax.apply_if_finite(optax.adam(1e-3), 3),
    "scheduled b1": optax.inject_hyperparams(optax.adam)(learning_rate=1e-3, b1=optax.linear_schedule(0.8, 0.9, 10)),
    "scheduled decay": optax.adamw(1e-3, weight_decay=optax.constant_schedule(0.1)),
    "a partial function": optax.GradientTransformation(lambda _: None, functools.partial(max, 1)),
    "not Optax's": optax.chain(scale_by_adam(0.9, 0.999, 1e-8, 0.0), optax.scale(-0.1)),
    # The same links in another order are another algorithm, which no field says.
    "momentum, then Adam": optax.chain(optax.trace(0.9), optax.adam(0.1)),
    "Adam, then momentum": optax.chain(optax.scale_by_adam(), optax.trace(0.9), optax.scale(-0.1)),
    "momentum twice": optax.chain(optax.trace(0.9), optax.trace(0.9), optax.scale(-0.1)),
    "a rate on both sides of momentum": optax.chain(optax.scale(-0.1), optax.trace(0.9), optax.scale(0.5)),
    "decay, then momentum": optax.chain(
        optax.scale_by_rms(), optax.add_decayed_weights(0.1), optax.trace(0.9), optax.scale(-0.1)
    ),
    "decay, then clipping": optax.chain(optax.add_decayed_weights(0.1), optax.clip(1.0), optax.sgd(0.1)),
    "clipped twice": optax.chain(optax.clip(1.0), optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
    "clipped at the end": optax.chain(optax.adam(0.1), optax.clip(1.0)),
    "divided twice": optax.chain(optax.scale_by_rms(), optax.adam(0.1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_link_that_is_unknown_or_elsewhere_is_named_in_one_line(name):
    with pytest.raises(OptimizerError, match=r"ga\.Algorithm") as caught:
        read(REFUSED[name])
    assert "\n" not in str(caught.value)


def test_a_chain_without_a_learning_rate_climbs_and_is_refused():
    for solver in (optax.scale_by_adam(), scale_by_generic_adam()):
        with pytest.raises(OptimizerError, match="no learning rate"):
            read(solver)
    with pytest.raises(OptimizerError, match="alpha: expected a finite number >= 0"):
        read(optax.chain(optax.scale_by_adam(), optax.scale(0.1)))


def test_half_precision_is_a_note():
    assert "bfloat16" in read(optax.adam(1e-3, mu_dtype=jnp.bfloat16)).notes[0]


def test_amsgrad_of_optax_takes_the_maximum_of_corrected_moments():
    assert "corrected" in read(optax.amsgrad(1e-3)).outside[0]
