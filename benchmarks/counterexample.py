"""The counterexample's lanes against a C loop, torch.optim.Adam, NumPy and JAX, on one core, in one run.

All candidates run Adam with the paper's alpha_t = 0.5/sqrt(t), beta = 0.9, theta = 0.99 on the same
gradients, and are first shown to end at the same x. "simulate" is a block of the real thing: schedules,
gradients, recursion, regret, records. The C loop draws its gradients too; torch, NumPy and JAX are given
theirs and keep no regret, so their times flatter them. A timing takes about a millisecond and the best of
many counts, so that other work on the machine is left out.

Targets: at most 3 ns a lane-step with 32 lanes and more; the compiled loops at most 1.3 times the C loop.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from machine import best_seconds, publish

from generic_adam.methods import Method
from generic_adam_laboratory.counterexample import Counterexample, Plan, compile_kernels, simulate
from generic_adam_laboratory.counterexample.kernels import advance
from generic_adam_laboratory.counterexample.problem import GradientStream
from generic_adam_laboratory.counterexample.simulation import Rule, Simulation
from generic_adam_laboratory.counterexample.study import figure_methods

LANES = (32, 100)
STEPS = 5_000
SHORT = 20  # for the loops that need tens of microseconds a step
ROUNDS = 60
LONG_AGO = 10**9  # a plan that no timing reaches the end of
ADAM = Method("0.5/sqrt(t)", 0.9, 0.99)
NO_RECORDS = np.empty(0, dtype=np.int64)
OURS = "our compiled loops"


class Candidate(NamedTuple):
    """A candidate of the comparison.

    Attributes:
        end: returns x after `steps` steps from the start.
        unit: what is timed: as many steps, from wherever the lanes are.
        steps: how many.
    """

    end: Callable[[], np.ndarray]
    unit: Callable[[], object]
    steps: int


def values(steps: int) -> tuple[np.ndarray, ...]:
    """Evaluate the method's schedules at t = 1, ..., steps."""
    return tuple(schedule.values(1, steps + 1) for schedule in Rule.of(ADAM).schedules)


def compiled_loops(lanes: int) -> Candidate:
    """Our kernels alone, on schedules that are already evaluated: what the C loop does, in Numba."""
    rule, coefficients, nothing = Rule.of(ADAM), values(STEPS), np.empty((0, lanes))
    no_weights = np.empty(0)

    def fresh() -> tuple[GradientStream, np.ndarray]:
        return GradientStream(Counterexample(), 0, range(lanes)), rule.initial_state(lanes, 1.0)

    def block(stream: GradientStream, state: np.ndarray) -> np.ndarray:
        gradients, _ = stream.draw(1, STEPS, NO_RECORDS)
        advance(
            coefficients, gradients, state, -1.0, 1.0, NO_RECORDS, nothing, nothing, rule.keep, rule.power,
            no_weights,
        )  # fmt: skip
        return state[0]

    running = fresh()
    return Candidate(lambda: block(*fresh()), lambda: block(*running), STEPS)


def simulation(methods: Mapping[str, Method], lanes: int) -> Candidate:
    """Run a block of a simulation on one thread, schedules and records included."""
    running = Simulation(Plan(methods, LONG_AGO, lanes))
    block = running.block
    # The last x that is recorded is x_T, the one after T - 1 steps.
    short = Plan(methods, block + 1, lanes)
    return Candidate(lambda: simulate(short).x[0, -1], running.advance, block)


def c_loops(lanes: int, library: ctypes.CDLL) -> Candidate:
    """Run the same block in C."""
    coefficients, problem = values(STEPS), Counterexample()

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def fresh() -> tuple[np.ndarray, np.ndarray]:
        state = np.zeros((5, lanes))
        state[0], state[4] = 1.0, 1e-8
        return GradientStream(problem, 0, range(lanes)).words, state

    gradients = np.empty((STEPS, lanes))

    def advance(words: np.ndarray, state: np.ndarray) -> np.ndarray:
        size = (ctypes.c_int64(STEPS), ctypes.c_int64(lanes))
        slopes = (ctypes.c_double(problem.rare_slope), ctypes.c_double(problem.common_slope))
        threshold = ctypes.c_uint64(problem.threshold)
        library.draw(*size, pointer(words[0]), pointer(words[1]), threshold, *slopes, pointer(gradients))
        library.generic_adam(*size, *map(pointer, coefficients[:5]), pointer(gradients), *map(pointer, state))
        return state[0]

    running = fresh()
    return Candidate(lambda: advance(*fresh()), lambda: advance(*running), STEPS)


def compile_c(folder: Path) -> ctypes.CDLL | None:
    """Compile the C loop, if there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = Path(__file__).with_suffix(".c"), folder / "counterexample.so"
    options = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def numpy_loop(gradients: np.ndarray) -> Candidate:
    """One NumPy expression a line, all lanes in one array."""
    steps, lanes = gradients.shape
    alpha, beta, beta_rest, theta, theta_rest = (row.tolist() for row in values(steps)[:5])

    def call() -> np.ndarray:
        x, m, v = np.ones(lanes), np.zeros(lanes), np.full(lanes, 1e-8)
        for t in range(steps):
            g = gradients[t]
            v = theta[t] * v + theta_rest[t] * (g * g)
            m = beta[t] * m + beta_rest[t] * g
            x = np.clip(x - alpha[t] * (m / np.sqrt(v)), -1.0, 1.0)
        return x

    return Candidate(call, call, steps)


def torch_loop(gradients: np.ndarray) -> Candidate:
    """torch.optim.Adam on one tensor that holds all lanes; the learning rate undoes its bias correction."""
    import torch

    torch.set_num_threads(1)
    steps, lanes = gradients.shape
    rows = [torch.from_numpy(row.copy()) for row in gradients]
    rates = [0.5 / t**0.5 * (1 - 0.9**t) / (1 - 0.99**t) ** 0.5 for t in range(1, steps + 1)]

    def call() -> np.ndarray:
        x = torch.ones(lanes, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([x], lr=1.0, betas=(0.9, 0.99), eps=0.0)
        for rate, g in zip(rates, rows, strict=True):
            optimizer.param_groups[0]["lr"] = rate
            x.grad = g
            optimizer.step()
            with torch.no_grad():
                x.clamp_(-1.0, 1.0)
        return x.detach().numpy()

    return Candidate(call, call, steps)


def jax_scan(gradients: np.ndarray) -> Candidate:
    """One lane as a jax.lax.scan over t, all lanes by vmap, jitted, float64."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    coefficients = tuple(map(jnp.asarray, values(gradients.shape[0])[:5]))

    def lane(stream: jax.Array) -> jax.Array:
        def step(state: tuple[jax.Array, ...], inputs: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], None]:
            x, m, v = state
            g, alpha, beta, beta_rest, theta, theta_rest = inputs
            v = theta * v + theta_rest * (g * g)
            m = beta * m + beta_rest * g
            return (jnp.clip(x - alpha * (m / jnp.sqrt(v)), -1.0, 1.0), m, v), None

        start = (jnp.float64(1.0), jnp.float64(0.0), jnp.float64(1e-8))
        return jax.lax.scan(step, start, (stream, *coefficients))[0][0]

    run = jax.jit(jax.vmap(lane, in_axes=1))
    streams = jnp.asarray(gradients)

    def call() -> np.ndarray:
        return np.asarray(run(streams))

    return Candidate(call, call, gradients.shape[0])


def candidates(lanes: int, library: ctypes.CDLL | None) -> dict[str, Candidate]:
    """Everything that is compared, for one number of lanes; ours first."""
    gradients, _ = GradientStream(Counterexample(), 0, range(lanes)).draw(1, STEPS, NO_RECORDS)
    every = {OURS: compiled_loops(lanes), "simulate, 1 method": simulation({"Adam": ADAM}, lanes)}
    every["simulate, the figure's 10 methods"] = simulation(figure_methods(), lanes)
    if library is not None:
        every["C loop"] = c_loops(lanes, library)
    every["jax.lax.scan + vmap"] = jax_scan(gradients)
    every["NumPy loop"] = numpy_loop(gradients[:SHORT])
    every["torch.optim.Adam loop"] = torch_loop(gradients[:SHORT])
    return every


def check_agreement(every: dict[str, Candidate], lanes: int) -> None:
    """Refuse to time what does not compute the same thing: C and NumPy to the bit, the others to rounding."""
    for name, candidate in every.items():
        expected = simulate(Plan({"Adam": ADAM}, candidate.steps + 1, lanes)).final_x("Adam")
        tolerance = 1e-6 if name.startswith(("jax", "torch")) else 0.0
        np.testing.assert_allclose(candidate.end(), expected, rtol=0, atol=tolerance, err_msg=name)


def main() -> None:
    """Time, check, publish."""
    begun = time.perf_counter()
    compiling = compile_kernels()
    times: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        for lanes in LANES:
            every = candidates(lanes, library)
            check_agreement(every, lanes)
            seconds = best_seconds(
                {name: one.unit for name, one in every.items()}, rounds=ROUNDS, clock=time.process_time
            )
            for name, candidate in every.items():
                methods = len(figure_methods()) if "figure" in name else 1
                lane_steps = candidate.steps * lanes * methods
                times.setdefault(name, {})[lanes] = 1e9 * seconds[name] / lane_steps
    rows = [
        (name, *(cell for n in LANES for cell in (f"{taken[n]:.2f}", f"{taken[n] / times[OURS][n]:.2f}")))
        for name, taken in times.items()
    ]
    publish(
        "counterexample",
        (
            "on one core",
            *(heading for n in LANES for heading in (f"ns a lane-step, {n} lanes", f"ratio, {n} lanes")),
        ),
        rows,
        command="python benchmarks/counterexample.py",
        seconds=time.perf_counter() - begun,
        settings={"steps": STEPS, "rounds": ROUNDS, "compile_seconds": round(compiling, 2)},
    )


if __name__ == "__main__":
    main()
