"""One jitted update of ResNet-18's 62 arrays (11.2 million parameters) in JAX, against optax.adam.

Parameters and state are donated, as in a training loop, so that nothing is copied. The candidates are timed
in turn, and the ratio of the best times is what counts.

    python benchmarks/optax_step.py
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from machine import best_seconds, publish

from generic_adam.methods import Method
from generic_adam.optax import generic_adam

ROUNDS = 60
CANDIDATES = {
    "optax.adam": optax.adam(1e-3),
    "generic_adam, constant, corrected": generic_adam(1e-3, 0.9, 0.999, eps=1e-8, bias_correction=True),
    "generic_adam, AdaEMA": generic_adam("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)"),
    "generic_adam, PaLM": generic_adam("0.01 if t < 10000 else 1/sqrt(t)", 0.9, "1 - t^-0.8"),
    "generic_adam, weights t^(1/2)": generic_adam(Method.from_weights("1e-3/sqrt(t)", 0.9, "t^0.5")),
}


def resnet18_shapes(classes: int = 100) -> list[tuple[int, ...]]:
    """The 62 parameters of ResNet-18 for 32 x 32 images: 20 convolutions with their norms, and the head."""
    shapes: list[tuple[int, ...]] = [(64, 3, 3, 3), (64,), (64,)]
    channels = 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            kernels = [(width, channels, 3, 3), (width, width, 3, 3)]
            if channels != width:
                kernels.append((width, channels, 1, 1))
            for kernel in kernels:
                shapes += [kernel, (width,), (width,)]
            channels = width
    return [*shapes, (classes, 512), (classes,)]


def stepper(solver: optax.GradientTransformation, gradients: list[jax.Array]) -> Callable[[], None]:
    """A function that makes one update and waits for it."""

    def update(params: list[jax.Array], state: optax.OptState, gradients: list[jax.Array]) -> tuple:
        updates, state = solver.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    jitted = jax.jit(update, donate_argnums=(0, 1))
    params = [jnp.zeros_like(g) for g in gradients]
    held = [(params, jax.jit(solver.init)(params))]

    def step() -> None:
        held[0] = jax.block_until_ready(jitted(*held[0], gradients))

    return step


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    generator = np.random.default_rng(0)
    gradients = [jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in resnet18_shapes()]
    best = best_seconds({name: stepper(one, gradients) for name, one in CANDIDATES.items()}, rounds=ROUNDS)
    peer = best["optax.adam"]
    publish(
        "optax_step",
        ("transformation", "one update", "against optax.adam"),
        [(name, f"{seconds * 1e3:.1f} ms", f"{seconds / peer:.2f}") for name, seconds in best.items()],
        command="python benchmarks/optax_step.py",
        seconds=time.perf_counter() - begin,
        settings={
            "arrays": len(gradients),
            "parameters": sum(g.size for g in gradients),
            "rounds": ROUNDS,
            "jax": jax.__version__,
            "optax": optax.__version__,
        },
    )


if __name__ == "__main__":
    main()
