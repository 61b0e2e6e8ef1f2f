"""One jitted update in JAX as people run it, against optax.adam: float32, parameters and state donated.

Three sets of arrays: ResNet-18's 62 (11.2 million parameters) in the layout that Flax keeps, 62 equal ones
of the same size together, and LeNet's ten small ones. The candidates are timed in turns. The best wall time
says how long a step takes where nothing else runs; the median of the processor's time says the same on a
busy machine.

    python benchmarks/optax_step.py
"""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from machine import publish

from generic_adam.methods import Method
from generic_adam.optax import generic_adam

ROUNDS = {"ResNet-18": 30, "62 equal": 30, "LeNet": 300}
CANDIDATES = {
    "optax.adam": optax.adam(1e-3),
    "generic_adam, constant, corrected": generic_adam(1e-3, 0.9, 0.999, eps=1e-8, bias_correction=True),
    "generic_adam, AdaEMA": generic_adam("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)"),
    "generic_adam, PaLM": generic_adam("0.01 if t < 10000 else 1/sqrt(t)", 0.9, "1 - t^-0.8"),
    "generic_adam, weights t^(1/2)": generic_adam(Method.from_weights("1e-3/sqrt(t)", 0.9, "t^0.5")),
}


def resnet18_shapes(classes: int = 100) -> list[tuple[int, ...]]:
    """The 62 parameters of ResNet-18 for 32 x 32 images: 20 convolutions with their norms, and the head."""
    shapes: list[tuple[int, ...]] = [(3, 3, 3, 64), (64,), (64,)]
    channels = 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            kernels = [(3, 3, channels, width), (3, 3, width, width)]
            if channels != width:
                kernels.append((1, 1, channels, width))
            for kernel in kernels:
                shapes += [kernel, (width,), (width,)]
            channels = width
    return [*shapes, (512, classes), (classes,)]


LENET = [(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (400, 120), (120,), (120, 84), (84,), (84, 10), (10,)]
ARRAYS = {"ResNet-18": resnet18_shapes(), "62 equal": [(400, 450)] * 62, "LeNet": LENET}


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


def measure(shapes: list[tuple[int, ...]], rounds: int) -> dict[str, tuple[float, float]]:
    """Best wall time and median processor time of one update, by candidate."""
    generator = np.random.default_rng(0)
    gradients = [jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in shapes]
    steps = {name: stepper(one, gradients) for name, one in CANDIDATES.items()}
    for step in steps.values():
        step()  # compilation and the first touch of memory are not what is measured
        step()
    wall = {name: [] for name in steps}
    processor = {name: [] for name in steps}
    for _ in range(rounds):
        # In an order that changes: what ran before has left the caches warm or cold.
        for name in generator.permutation(list(steps)).tolist():
            step = steps[name]
            begin, used = time.perf_counter(), time.process_time()
            step()
            processor[name].append(time.process_time() - used)
            wall[name].append(time.perf_counter() - begin)
    return {name: (min(wall[name]), statistics.median(processor[name])) for name in steps}


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    rows = []
    for label, shapes in ARRAYS.items():
        measured = measure(shapes, ROUNDS[label])
        wall, processor = measured["optax.adam"]
        for name, (seconds, busy) in measured.items():
            rows.append(
                (
                    f"{label}: {name}",
                    f"{seconds * 1e3:.2f} ms",
                    f"{seconds / wall:.2f}",
                    f"{busy * 1e3:.2f} ms",
                    f"{busy / processor:.2f}",
                )
            )
    publish(
        "optax_step",
        (
            "arrays and transformation",
            "one update",
            "against optax.adam",
            "processor",
            "against optax.adam's",
        ),
        rows,
        command="python benchmarks/optax_step.py",
        seconds=time.perf_counter() - begin,
        settings={
            "parameters": {name: sum(map(np.prod, shapes)).item() for name, shapes in ARRAYS.items()},
            "rounds": ROUNDS,
            "jax": jax.__version__,
            "optax": optax.__version__,
        },
    )


if __name__ == "__main__":
    main()
