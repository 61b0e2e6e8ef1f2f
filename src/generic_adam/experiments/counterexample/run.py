"""Run a plan to its end: progress, checkpoints, and a Ctrl-C that loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType

from generic_adam.experiments.counterexample import checkpoint
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
from generic_adam.methods import Method
from generic_adam.schedules import as_schedule

CHECKPOINT_SECONDS = 10.0
"""How much work a killed process may lose."""


class InterruptedRun(KeyboardInterrupt):
    """Ctrl-C was pressed; the run stopped between two blocks.

    Attributes:
      next_t: the step that would have come next.
      checkpoint: where the run can be resumed from, if anywhere.
    """

    def __init__(self, next_t: int, checkpoint_path: str | os.PathLike[str] | None) -> None:
        super().__init__(f"interrupted before t = {next_t}")
        self.next_t = next_t
        self.checkpoint = checkpoint_path


def simulate(
    plan: Plan,
    *,
    threads: int = 1,
    block: int | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint_path: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> LaneRecords:
    """Simulate a plan.

    Args:
      plan: methods, problem, steps, replicates, seed.
      threads: how many threads share the lanes.
      block: steps a block; None chooses. Neither `threads` nor `block` changes a bit of the result.
      progress: called after each block with the number of steps made so far.
      checkpoint_path: file to save the run to, about every ten seconds and on Ctrl-C; deleted at the end.
      resume: begin from that file.

    Returns:
      x_t and R(t)/t of every lane at about 400 t.

    Raises:
      ExperimentError: the plan or the checkpoint cannot be used, or x leaves the real numbers.
      InterruptedRun: Ctrl-C; the checkpoint, if one was asked for, has been written.
    """
    with closing(Simulation(plan, threads, block)) as simulation, _held_back_interrupt() as interrupted:
        if resume and checkpoint_path is not None:
            checkpoint.restore(checkpoint_path, simulation)
        saved = time.monotonic()
        while not simulation.is_finished:
            simulation.advance()
            if progress is not None:
                progress(simulation.next_t - 1)
            is_due = time.monotonic() - saved >= CHECKPOINT_SECONDS
            if (
                checkpoint_path is not None
                and not simulation.is_finished
                and (is_due or interrupted.is_set())
            ):
                checkpoint.save(checkpoint_path, simulation)
                saved = time.monotonic()
            if interrupted.is_set() and not simulation.is_finished:
                raise InterruptedRun(simulation.next_t, checkpoint_path)
        if checkpoint_path is not None:
            checkpoint.remove(checkpoint_path)
        return simulation.records()


@contextmanager
def _held_back_interrupt() -> Iterator[threading.Event]:
    """Note a first Ctrl-C instead of raising in the middle of a block; a second one acts as usual.

    Signals reach the main thread alone: elsewhere (in a worker of a cluster) there is nothing to hold back.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    usual = signal.getsignal(signal.SIGINT)

    def note(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        pressed.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)


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
