"""One jitted update in JAX as people run it, against optax.adam: float32, parameters and state donated.

Four sets of arrays: ResNet-18's 62 (11.2 million parameters) in the layout that Flax keeps, a GPT of six
layers, 62 equal arrays, and LeNet's ten small ones. The candidates are timed in turns, in one process, and the
best of many is kept. Wall time depends on who else is on the machine; processor time less so, and is
what the last column compares. "Each array once" is no optimizer: it reads the gradients and changes the
parameters and both moments in place, seven words a parameter, which is the memory that any Adam has to touch;
the three loops that XLA makes of an Adam touch ten.

    python benchmarks/optax_step.py
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from machine import publish

from generic_adam.methods import Method
from generic_adam.optax import generic_adam

CANDIDATES: dict[str, Any] = {
    "optax.adam": optax.adam(1e-3),
    "optax.flatten(optax.adam)": optax.flatten(optax.adam(1e-3)),
    "generic_adam(1e-3)": generic_adam(1e-3),
    "generic_adam, AdaEMA": generic_adam(Method("1e-3/sqrt(t)", 0.9, "1 - 1/max(t, 2)")),
    "generic_adam, PaLM": generic_adam("0.01 if t < 10000 else 1/sqrt(t)", 0.9, "1 - t^-0.8"),
    "generic_adam, weights t^(1/2)": generic_adam(Method.from_weights("1e-3/sqrt(t)", 0.9, "t^0.5")),
    "each array once": None,
}
Shapes = list[tuple[int, ...]]


def resnet18_shapes(classes: int = 100) -> Shapes:
    """The 62 parameters of ResNet-18 for 32 x 32 images: 20 convolutions with their norms, and the head."""
    shapes: Shapes = [(3, 3, 3, 64), (64,), (64,)]
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


def gpt_shapes(width: int = 384, layers: int = 6, tokens: int = 65, context: int = 256) -> Shapes:
    """A GPT over characters: embeddings, and for each layer attention, a wide layer and two norms."""
    attention = [(width, 3 * width), (3 * width,), (width, width), (width,)]
    wide = [(width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    return [
        (tokens, width),
        (context, width),
        *layers * (attention + wide + 4 * [(width,)]),
        (width,),
        (width,),
    ]


LENET = [(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (400, 120), (120,), (120, 84), (84,), (84, 10), (10,)]
ARRAYS = {
    "ResNet-18": (resnet18_shapes(), 40),
    "GPT": (gpt_shapes(), 40),
    "62 equal": ([(400, 450)] * 62, 40),
    "LeNet": (LENET, 400),
}


def touch_once(params: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
    """Every array that an Adam reads is read, and every one that it writes is written, once."""
    moved = jax.tree.map(lambda p, g: 0.999 * p + 0 * g, params, gradients)
    return moved, jax.tree.map(lambda s: s * 0.5, state)


def stepper(solver: Any, gradients: list[jax.Array]) -> tuple[Callable[[], None], int]:
    """A function that makes one update and waits for it, and the number of loops it was compiled to."""

    def update(params: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
        updates, state = solver.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    params = [jnp.zeros_like(g) for g in gradients]
    state = (params, params) if solver is None else solver.init(params)
    held = jax.tree.map(jnp.copy, (params, state))  # donated memory must not be shared
    jitted = jax.jit(touch_once if solver is None else update, donate_argnums=(0, 1))
    compiled = jitted.lower(*held, gradients).compile()

    def step() -> None:
        nonlocal held
        held = jax.block_until_ready(compiled(*held, gradients))

    return step, compiled.as_text().count(" fusion(")


def measure(shapes: Shapes, rounds: int) -> dict[str, tuple[float, float, int]]:
    """Best wall time and processor time of one update, and its loops, by candidate."""
    generator = np.random.default_rng(0)
    gradients = [jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in shapes]
    steps = {name: stepper(one, gradients) for name, one in CANDIDATES.items()}
    best = {name: np.full(2, np.inf) for name in steps}
    for turn in range(rounds + 2):  # compilation and the first touch of memory are not what is measured
        # In an order that changes: what ran before has left the caches warm or cold.
        for name in generator.permutation(list(steps)).tolist():
            begin = np.array([time.perf_counter(), time.process_time()])
            steps[name][0]()
            taken = np.array([time.perf_counter(), time.process_time()]) - begin
            if turn >= 2:
                best[name] = np.minimum(best[name], taken)
    return {name: (*best[name].tolist(), loops) for name, (_, loops) in steps.items()}


def main() -> None:
    """Measure, print and keep the table."""
    begin = time.perf_counter()
    rows = []
    for label, (shapes, rounds) in ARRAYS.items():
        measured = measure(shapes, rounds)
        base_wall, base_processor, _ = measured["optax.adam"]
        for name, (wall, processor, loops) in measured.items():
            times = (f"{wall * 1e3:.2f} ms", f"{wall / base_wall:.2f}", f"{processor * 1e3:.2f} ms")
            rows.append((f"{label}: {name}", loops, *times, f"{processor / base_processor:.2f}"))
    publish(
        "optax_step",
        ("arrays and transformation", "loops", "one update", "of optax.adam", "processor", "of optax.adam's"),
        rows,
        command="python benchmarks/optax_step.py",
        seconds=time.perf_counter() - begin,
        settings={
            "parameters": {name: sum(map(np.prod, shapes)).item() for name, (shapes, _) in ARRAYS.items()},
            "rounds": {name: rounds for name, (_, rounds) in ARRAYS.items()},
            "jax": jax.__version__,
            "optax": optax.__version__,
        },
    )


if __name__ == "__main__":
    main()
