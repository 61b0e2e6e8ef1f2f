"""Run a plan to its end, and compile what it needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from generic_adam.experiments.counterexample.algorithms import (
    AdaShift,
    Algorithm,
    AMSGrad,
    GenericAdam,
    Padam,
)
from generic_adam.experiments.counterexample.lane_records import LaneRecords
from generic_adam.experiments.counterexample.plan import Plan
from generic_adam.experiments.counterexample.problem import Counterexample, Form
from generic_adam.experiments.counterexample.simulation import Simulation
from generic_adam.experiments.run import Run
from generic_adam.methods import Method
from generic_adam.schedules import as_schedule


def simulate(
    plan: Plan,
    *,
    threads: int = 1,
    block: int | None = None,
    progress: Callable[[int], None] | None = None,
    run: Run | None = None,
) -> LaneRecords:
    """Simulate a plan.

    Args:
      plan: methods, problem, steps, replicates, seed.
      threads: how many threads share the lanes.
      block: steps a block; None chooses. Neither `threads` nor `block` changes a bit of the result.
      progress: called after each block with the number of steps made so far.
      run: a directory whose checkpoint it goes on from, and where it leaves one; by default none.

    Returns:
      x_t and R(t)/t of every lane at about 400 t.

    Raises:
      RunError: the plan or the checkpoint cannot be used, or x leaves the real numbers.
      PausedRun: a signal came in a run with a directory; the checkpoint has been written.
    """
    with closing(Simulation(plan, threads, block)) as simulation:
        if run is not None:
            run.carry_through(simulation, progress)
        while not simulation.is_finished:
            simulation.advance()
            if progress is not None:
                progress(simulation.next_t - 1)
        return simulation.records()


def compile_kernels() -> float:
    """Compile every kernel, or load it from the cache of an earlier run; return the seconds it took."""
    start = time.perf_counter()
    method = Method(alpha="1/sqrt(t)", beta=0.9, theta=0.99)
    every: dict[str, Method | Algorithm] = {
        "Generic Adam": GenericAdam(method),
        "AMSGrad": AMSGrad(method),
        "Padam": Padam(method),
        "AdaShift": AdaShift(as_schedule("1/sqrt(t)")),
    }
    for form in Form:
        simulate(Plan(every, steps=1, problem=Counterexample(form=form)))
    return time.perf_counter() - start
