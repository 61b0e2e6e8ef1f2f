"""Many lanes at once: methods by replicates, block of t after block of t, over the cores of this machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.experiments.counterexample import kernels
from generic_adam.experiments.counterexample.problem import Counterexample, Form, GradientStream
from generic_adam.experiments.counterexample.rules import AdaShift, Block, Rule, Subject, rule_of
from generic_adam.experiments.run import Run, Work
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules import Constant, Schedule, Subtract, as_schedule

Floats = NDArray[np.float64]

MAX_STEPS = 10**12
"""At two nanoseconds a lane-step one lane would need half an hour; nobody means more."""
MAX_REPLICATES = 2**32
"""As many streams as a spawn key of 32 bits can tell apart; memory ends earlier."""

_GEOMETRIC_POINTS = 480  # recorded; about 400 are distinct whole numbers for T = 10^7
_BLOCK_STEPS = 2**15
_GRADIENT_NUMBERS = 2**19  # 4 MiB of gradients at a time
_SCHEDULE_NUMBERS = 2**21  # 16 MiB of schedules at a time
_CHUNK_LANES = 32  # below this the start of each inner loop begins to show


@dataclass(frozen=True)
class Plan:
    """What is simulated; two plans that are equal end in the same bits.

    Args:
      methods: label to `Method`, `Algorithm` (Generic Adam, AMSGrad, Padam) or `AdaShift`.
      problem: the counterexample.
      steps: T.
      replicates: a number (from 0 on) or a range: each is an independent stream of gradients.
      seed: the run's seed.
    """

    methods: Mapping[str, Subject]
    steps: int
    replicates: int | range = 1
    problem: Counterexample = field(default_factory=Counterexample)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers before anything is allocated."""
        if not self.methods:
            raise RunError("there is no method to simulate, expected at least one")
        if not (isinstance(self.steps, int) and 1 <= self.steps <= MAX_STEPS):
            raise RunError(f"steps is {self.steps}, expected a whole number from 1 to {MAX_STEPS:.0e}")
        if isinstance(self.replicates, int):
            if not 1 <= self.replicates <= MAX_REPLICATES:
                raise RunError(
                    f"the number of replicates (seeds) is {self.replicates}, expected at least one and at "
                    f"most {MAX_REPLICATES:,}"
                )
            object.__setattr__(self, "replicates", range(self.replicates))
        lanes = self.replicate_range
        if len(lanes) < 1 or lanes.start < 0 or lanes.step != 1:
            raise RunError(f"replicates is {self.replicates}, expected at least one, numbered from 0 on")

    @property
    def replicate_range(self) -> range:
        """The replicates as a range."""
        return self.replicates if isinstance(self.replicates, range) else range(self.replicates)

    @property
    def rules(self) -> list[Rule]:
        """How each method's lanes take a step, in order."""
        return [rule_of(subject) for subject in self.methods.values()]

    @property
    def lane_steps(self) -> int:
        """How many single steps of single lanes the plan asks for."""
        return self.steps * len(self.methods) * len(self.replicate_range)

    def settings(self) -> dict[str, Any]:
        """Return the plan as plain types, for a manifest or a checkpoint."""
        lanes = self.replicate_range
        return {
            "methods": {label: rule.describe() for label, rule in zip(self.methods, self.rules, strict=True)},
            "problem": self.problem.settings(),
            "steps": self.steps,
            "replicates": [lanes.start, lanes.stop],
            "seed": self.seed,
        }


def record_times(steps: int, points: int = _GEOMETRIC_POINTS) -> NDArray[np.int64]:
    """Return whole t from 1 to `steps`, evenly spaced on a logarithmic scale, without repetition."""
    spaced = np.rint(np.geomspace(1, steps, max(points, 2)))
    return np.unique(np.concatenate((spaced[:-1], [steps])).astype(np.int64))


@dataclass(frozen=True)
class LaneRecords:
    """The recorded lanes of a simulation.

    Attributes:
      times: the recorded t.
      labels: the methods, in order.
      replicates: the replicates, in order.
      x: x_t, method by time by replicate.
      average_regret: R(t)/t, method by time by replicate.
    """

    times: NDArray[np.int64]
    labels: tuple[str, ...]
    replicates: range
    x: Floats
    average_regret: Floats

    def index(self, label: str) -> int:
        """Return the place of a method."""
        return self.labels.index(label)

    def final_x(self, label: str) -> Floats:
        """Return x_T of every replicate."""
        return self.x[self.index(label), -1]

    def final_regret(self, label: str) -> Floats:
        """Return R(T)/T of every replicate."""
        return self.average_regret[self.index(label), -1]

    def arrival(self, label: str, level: float) -> Floats:
        """Return the first recorded t from which on x stays at or below `level`, by replicate; inf: never."""
        above = self.x[self.index(label)] > level
        last_above = above.shape[0] - 1 - np.argmax(above[::-1], axis=0)
        first = np.where(above.any(axis=0), last_above + 1, 0)
        return np.append(self.times.astype(np.float64), np.inf)[first]

    @staticmethod
    def join(parts: Sequence[LaneRecords]) -> LaneRecords:
        """Put records of neighbouring replicates together, whatever the order in which they came."""
        parts = sorted(parts, key=lambda part: part.replicates.start)
        replicates = parts[0].replicates
        for part in parts[1:]:
            if part.replicates.start != replicates.stop or part.labels != parts[0].labels:
                raise RunError(
                    f"records of replicates {replicates} and {part.replicates} do not belong together"
                )
            replicates = range(replicates.start, part.replicates.stop)
        return LaneRecords(
            times=parts[0].times,
            labels=parts[0].labels,
            replicates=replicates,
            x=np.concatenate([part.x for part in parts], axis=2),
            average_regret=np.concatenate([part.average_regret for part in parts], axis=2),
        )


class Chunk:
    """Neighbouring replicates of all methods, in contiguous arrays of their own."""

    def __init__(self, plan: Plan, replicates: range) -> None:
        self.replicates = replicates
        self.stream = GradientStream(plan.problem, plan.seed, replicates)
        self.states = [rule.initial_state(len(replicates), plan.problem.start) for rule in plan.rules]


class Simulation:
    """A simulation in progress: `advance` carries it over one block, `records` reads what was recorded.

    Args:
      plan: what to simulate.
      threads: how many threads share the lanes; the result does not depend on it.
      block: how many steps a block has (None: what fits the caches); the result does not depend on it.

    Attributes:
      next_t: the step that comes next.
      chunks: the lanes.
    """

    def __init__(self, plan: Plan, threads: int = 1, block: int | None = None) -> None:
        if threads < 1:
            raise RunError(f"threads is {threads}, expected at least 1")
        self.plan = plan
        self.rules = plan.rules
        self._list_schedules()
        self.times = record_times(plan.steps)
        self.next_t = 1
        lanes = plan.replicate_range
        shape = (len(self.rules), self.times.size, len(lanes))
        _check_memory(plan, self.times.size)
        self.x = np.full(shape, np.nan)
        self.loss = np.full(shape, np.nan)
        self.counts = np.zeros(shape[1:], dtype=np.int64)
        self.chunks = [Chunk(plan, part) for part in split(lanes, min(threads, len(lanes) // _CHUNK_LANES))]
        self.threads = threads
        self.block = block or _block_steps(len(lanes), len(self.schedules))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def _list_schedules(self) -> None:
        """Number the distinct schedules, so that no block has to compare expressions again."""
        wanted = [rule.schedules for rule in self.rules]
        places = {
            schedule: place for place, schedule in enumerate(dict.fromkeys(chain.from_iterable(wanted)))
        }
        self.schedules = list(places)
        self._rows_of = [[places[schedule] for schedule in schedules] for schedules in wanted]
        parts = {place: _one_minus_what(schedule) for schedule, place in places.items()}
        self._part_of = {place: places[part] for place, part in parts.items() if part in places}
        self._order = sorted(
            range(len(places)), key=self._part_of.__contains__
        )  # what others are made from first

    @property
    def steps(self) -> int:
        """T."""
        return self.plan.steps

    @property
    def is_finished(self) -> bool:
        """Whether all steps have been made."""
        return self.next_t > self.plan.steps

    def advance(self) -> None:
        """Carry every lane over the next block."""
        start, stop = self.next_t, min(self.next_t + self.block, self.plan.steps + 1)
        first, last = np.searchsorted(self.times, (start, stop))
        rows, record_at = slice(first, last), self.times[first:last] - start
        values = self._evaluate(start, stop)
        drawn = [self._call(chunk.stream.draw, start, stop - start, record_at) for chunk in self.chunks]
        running: list[Future[None]] = []
        for chunk, draw in zip(self.chunks, drawn, strict=True):
            gradients, self.counts[rows, self._columns(chunk)] = draw.result()
            for place, rows_of_method in enumerate(self._rows_of):
                own = [values[row] for row in rows_of_method]
                running.append(self._call(self._step, place, chunk, start, own, gradients, rows, record_at))
        for future in running:
            future.result()
        self._check_finite(stop)
        self.next_t = stop

    def _evaluate(self, start: int, stop: int) -> list[Future[Floats]]:
        """Evaluate each distinct schedule once, whatever the number of methods and lanes that share it.

        theta is nearly always written as 1 - c/t^r, and its complement is needed too: one power and one
        subtraction give both, with the bits that `values` would give.
        """
        found: dict[int, Future[Floats]] = {}
        for place in self._order:
            part = self._part_of.get(place)
            if part in found:
                found[place] = self._call(_complement, found[part])
            else:
                found[place] = self._call(self.schedules[place].values, start, stop)
        return [found[place] for place in range(len(self.schedules))]

    def _step(
        self,
        place: int,
        chunk: Chunk,
        start: int,
        values: list[Future[Floats]],
        gradients: Floats,
        rows: slice,
        record_at: NDArray[np.int64],
    ) -> None:
        """Carry one method's lanes of one chunk over a block."""
        shape = (record_at.size, len(chunk.replicates))
        block = Block(
            start=start,
            values=tuple(value.result() for value in values),
            gradients=gradients,
            interval=(self.plan.problem.low, self.plan.problem.high),
            record_at=record_at,
            x=np.empty(shape),
            loss=np.empty(shape),
        )
        self.rules[place].advance(block, chunk.states[place])
        columns = self._columns(chunk)
        self.x[place, rows, columns] = block.x
        self.loss[place, rows, columns] = block.loss

    def _columns(self, chunk: Chunk) -> slice:
        first = self.plan.replicate_range.start
        return slice(chunk.replicates.start - first, chunk.replicates.stop - first)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a function in the pool, or here and now if there is none."""
        if self._pool is not None:
            return self._pool.submit(function, *arguments)
        done: Future[Any] = Future()
        done.set_result(function(*arguments))
        return done

    def _check_finite(self, stop: int) -> None:
        """A schedule that leaves the real numbers is an error, not a curve that silently ends."""
        for place, label in enumerate(self.plan.methods):
            if not all(np.isfinite(chunk.states[place][kernels.X]).all() for chunk in self.chunks):
                raise RunError(
                    f"{label}: x is no longer a number before t = {stop}; expected finite schedules"
                )

    def records(self) -> LaneRecords:
        """Return what has been recorded; t not yet reached are nan."""
        times = self.times[:, np.newaxis]
        gradient_sum = self.plan.problem.gradient_sum(times, self.counts)
        regret = self.plan.problem.regret(self.loss, gradient_sum)
        return LaneRecords(
            times=self.times,
            labels=tuple(self.plan.methods),
            replicates=self.plan.replicate_range,
            x=self.x,
            average_regret=regret / times,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return generators, lanes and records, by replicate: a run may change its threads."""
        arrays: dict[str, NDArray[Any]] = {
            "next_t": np.array(self.next_t),
            "words": np.concatenate([chunk.stream.words for chunk in self.chunks], axis=1),
            "rare_counts": np.concatenate([chunk.stream.counts for chunk in self.chunks]),
            "x": self.x,
            "loss": self.loss,
            "counts": self.counts,
        }
        for place in range(len(self.rules)):
            arrays[f"state_{place}"] = np.concatenate([chunk.states[place] for chunk in self.chunks], axis=1)
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Bring a fresh simulation of the same plan to where `arrays` was called.

        Raises:
          RunError: they are of another shape, so of another plan.
        """
        try:
            self.x[:], self.loss[:], self.counts[:] = arrays["x"], arrays["loss"], arrays["counts"]
            for chunk in self.chunks:
                columns = self._columns(chunk)
                chunk.stream.words[:] = arrays["words"][:, columns]
                chunk.stream.counts[:] = arrays["rare_counts"][columns]
                for place, state in enumerate(chunk.states):
                    state[:] = arrays[f"state_{place}"][:, columns]
            self.next_t = int(arrays["next_t"])
        except (KeyError, ValueError, TypeError) as error:
            raise RunError(f"the checkpoint belongs to another run ({error})") from error

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _one_minus_what(schedule: Schedule) -> Schedule | None:
    """Return u if the schedule is written 1 - u."""
    match schedule:
        case Subtract(Constant(value=1), part):
            return part
        case _:
            return None


def _complement(part: Future[Floats]) -> Floats:
    return 1.0 - part.result()


def split(replicates: range, parts: int) -> Iterator[range]:
    """Cut a range into at most `parts` neighbouring ones, of sizes that are multiples of four."""
    parts = max(1, parts)
    size = math.ceil(len(replicates) / parts)
    size += -size % 4  # a vector holds four lanes
    for start in range(replicates.start, replicates.stop, size):
        yield range(start, min(start + size, replicates.stop))


def _block_steps(lanes: int, schedules: int) -> int:
    """Choose a block: long enough to hide its overhead, short enough for what it needs to fit."""
    return max(16, min(_BLOCK_STEPS, _GRADIENT_NUMBERS // lanes, _SCHEDULE_NUMBERS // schedules))


def _check_memory(plan: Plan, recorded: int) -> None:
    """Refuse a plan that cannot fit, before the machine begins to swap."""
    lanes = len(plan.replicate_range)
    numbers = sum(rule.rows + 3 * recorded for rule in plan.rules) * lanes + 4 * _SCHEDULE_NUMBERS
    needed, free = 8 * numbers, _free_memory()
    if free is not None and needed > free:
        raise RunError(
            f"{len(plan.methods)} methods with {lanes} replicates need {needed / 2**30:.1f} GiB of memory, "
            f"but {free / 2**30:.1f} GiB are free; expected fewer replicates or methods"
        )


def _free_memory() -> int | None:
    """Return how many bytes can be had without swapping, or None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


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
        carry_out(simulation, run, progress)
        return simulation.records()


def carry_out(work: Work, run: Run | None = None, progress: Callable[[int], None] | None = None) -> None:
    """Do all of a work, or what a run's directory has not of it yet; tell the steps made after each block."""
    if run is not None:
        run.carry_through(work, progress)
    while not work.is_finished:
        work.advance()
        if progress is not None:
            progress(work.next_t - 1)


def of_all(progress: Callable[[int, int], None] | None, work: Work) -> Callable[[int], None] | None:
    """Return what tells, of a work, the steps made and all of its steps."""
    return None if progress is None else lambda done: progress(done, work.steps)


def compile_kernels() -> float:
    """Compile every kernel, or load it from the cache of an earlier run; return the seconds it took."""
    start = time.perf_counter()
    method = Method(alpha="1/sqrt(t)", beta=0.9, theta=0.99)
    every: dict[str, Subject] = {
        "Generic Adam": method,
        "AMSGrad": Algorithm(method, running_maximum=True),
        "Padam": Algorithm(method, running_maximum=True, power=0.125),
        "AdaShift": AdaShift(as_schedule("1/sqrt(t)")),
    }
    for form in Form:
        simulate(Plan(every, steps=1, problem=Counterexample(form=form)))
    return time.perf_counter() - start
