"""Many lanes at once: methods by replicates, block of t after block of t, over the cores of this machine.

What a lane can run: Generic Adam, AMSGrad, Padam, NAdam and SGD as an `Algorithm` says them, and AdaShift. The
values of a sequence are computed once a block and shared by all lanes and all methods that need them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.errors import RunError
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.schedules import Schedule, Subtract, as_schedule, sqrt
from generic_adam_laboratory.backends import dask_pool
from generic_adam_laboratory.counterexample import kernels
from generic_adam_laboratory.counterexample.problem import Counterexample, Form, GradientStream
from generic_adam_laboratory.runs.run import Progress, Run, Work, carry_out

Floats = NDArray[np.float64]

MAX_STEPS = 10**12
"""At two nanoseconds a lane-step one lane would need half an hour; nobody means more."""
MAX_REPLICATES = 2**32
"""As many streams as a spawn key of 32 bits can tell apart; memory ends earlier."""

_GEOMETRIC_POINTS = 480  # recorded; about 400 are distinct whole numbers for T = 10^7
_BLOCK_STEPS = 2**15
_GRADIENT_NUMBERS = 2**19  # 4 MiB of gradients at a time
_SCHEDULE_NUMBERS = 2**21  # 16 MiB of schedules at a time
_NEARLY_ZERO = 1e-300  # AdaShift's v_0: steps of length 0 divide by it, and a single gradient drowns it


@dataclass(frozen=True)
class AdaShift:
    """AdaShift (Zhou et al. 2019): v is built from the gradient n steps ago, independent of the present one.

    The first moment averages the n kept gradients with weights beta^i; beta and theta are constant.
    """

    alpha: Schedule
    beta: float = 0.9
    theta: float = 0.99
    kept: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_schedule(self.alpha))
        for what, value, is_good, wanted in (
            ("beta is", self.beta, 0 <= self.beta < 1, "0 <= beta < 1"),
            ("theta is", self.theta, 0 < self.theta < 1, "0 < theta < 1"),
            ("number of kept gradients is", self.kept, self.kept >= 1, "at least 1"),
        ):
            if not is_good:
                raise RunError(f"AdaShift's {what} {value}, expected {wanted}")

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm as far as its attributes can say it."""
        window = f"momentum is a weighted mean of the last {self.kept} gradients"
        method = Method(self.alpha, self.beta, self.theta)
        return Algorithm(method, initial_v=0, delayed=True, outside=[window], label="AdaShift")

    @property
    def rate(self) -> Schedule:
        """alpha_t with the correction of v, sqrt(1 - theta^(t-n)); the first n steps only collect gradients."""
        corrected = sqrt(1 - as_schedule(f"{self.theta!r}^max(t - {self.kept}, 1)"))
        return as_schedule(f"0 if t < {self.kept + 1} else 1") * self.alpha * corrected


Subject = Method | Algorithm | AdaShift
"""The methods that a plan names; a Method alone means the paper's algorithm."""


def algorithm_of(subject: Subject) -> Algorithm:
    """Return what a certificate is asked about."""
    return subject.algorithm if isinstance(subject, AdaShift) else as_algorithm(subject)


@dataclass(frozen=True)
class Rule:
    """How the lanes of a subject take a step, as the kernel wants it.

    Attributes:
      description: the subject as plain types.
      schedules: alpha, beta, 1 - beta, theta, 1 - theta, a, b.
      keep: how much of the largest v so far counts.
      power: of what divides.
      weights: of the gradients that are kept, if v lags by as many.
    """

    description: dict[str, Any]
    schedules: tuple[Schedule, ...]
    initial_v: float
    keep: float = 0.0
    power: float = 0.5
    weights: tuple[float, ...] = ()

    @classmethod
    def of(cls, subject: Subject) -> Rule:
        """Return the rule of a subject; RunError if it does what the kernel does not."""
        if isinstance(subject, AdaShift):
            plain = {name: getattr(subject, name) for name in ("beta", "theta", "kept")}
            weights = subject.beta ** np.arange(subject.kept)
            return cls(
                {"algorithm": "AdaShift", "alpha": str(subject.alpha), **plain},
                _sequences(subject.rate, as_schedule(subject.beta), as_schedule(subject.theta)),
                _NEARLY_ZERO,
                weights=tuple((weights / weights.sum()).tolist()),
            )
        x = as_algorithm(subject)
        has_power, ahead = x.power != Fraction(1, 2), x.nesterov
        names = {
            "NAdam": ahead is not None,
            "SGD": not x.preconditioned,
            "Padam": has_power,
            "AMSGrad": x.running_maximum and not has_power,
        }
        chosen = [name for name, is_one in names.items() if is_one] or ["Generic Adam"]
        known = Algorithm(
            x.method, initial_v=x.initial_v, running_maximum=x.running_maximum, power=x.power,
            nesterov=ahead, preconditioned=x.preconditioned,
        )  # fmt: skip
        if known.departures != x.departures or len(chosen) > 1 or (has_power and not x.running_maximum):
            raise RunError(
                f"lanes run Generic Adam, AMSGrad, Padam, NAdam, SGD and AdaShift, not an algorithm in which "
                f"{'; '.join(x.departures)}"
            )
        theta, initial_v = (x.method.theta, x.initial_v) if x.preconditioned else (as_schedule(1), 1.0)
        weights = () if ahead is None else (ahead.momentum_weight, ahead.gradient_weight)
        return cls(
            {"algorithm": chosen[0], **x.to_dict()},
            _sequences(x.method.alpha, x.method.beta, theta, *weights),
            initial_v,
            float(x.running_maximum),
            float(x.power),
        )

    def initial_state(self, lanes: int, start: float) -> Floats:
        """Return the state at t = 1: x_1 = start, m_0 = 0, v_0, and no gradients."""
        state = np.zeros((kernels.ROWS + len(self.weights), lanes))
        state[kernels.X], state[kernels.V] = start, self.initial_v
        return state


def _sequences(alpha: Schedule, beta: Schedule, theta: Schedule, *weights: Schedule) -> tuple[Schedule, ...]:
    """Compute the inputs of `kernels.advance` at each step, the complements without cancellation."""
    return (alpha, beta, 1 - beta, theta, 1 - theta, *(weights or (as_schedule(1), as_schedule(0))))


@dataclass(frozen=True)
class Plan:
    """A simulation: methods by label up to T = steps; two plans that are equal end in the same bits.

    Replicates, a number (from 0 on) or a range, are independent streams of gradients.
    """

    methods: Mapping[str, Subject]
    steps: int
    replicates: int | range = 1
    problem: Counterexample = field(default_factory=Counterexample)
    seed: int = 0

    def __post_init__(self) -> None:
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
    def lane_steps(self) -> int:
        """How many single steps of single lanes the plan asks for."""
        return self.steps * len(self.methods) * len(self.replicate_range)

    def settings(self) -> dict[str, Any]:
        """Return the plan as plain types, for a manifest or a checkpoint."""
        lanes = self.replicate_range
        return {
            "methods": {label: Rule.of(subject).description for label, subject in self.methods.items()},
            "problem": self.problem.settings(),
            "steps": self.steps,
            "replicates": [lanes.start, lanes.stop],
            "seed": self.seed,
        }


def record_times(steps: int) -> NDArray[np.int64]:
    """Return whole t from 1 to `steps`, evenly spaced on a logarithmic scale, without repetition."""
    spaced = np.rint(np.geomspace(1, steps, _GEOMETRIC_POINTS))
    return np.unique(np.concatenate((spaced[:-1], [steps])).astype(np.int64))


@dataclass(frozen=True)
class LaneRecords:
    """The recorded lanes of a simulation: x_t and R(t)/t, method by time by replicate."""

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


class Simulation(Work):
    """A simulation in progress: `advance` carries it over one block, `records` reads what was recorded."""

    def __init__(self, plan: Plan, threads: int = 1, block: int | None = None) -> None:
        if threads < 1:
            raise RunError(f"threads is {threads}, expected at least 1")
        self.plan, self.steps = plan, plan.steps
        self.rules = [Rule.of(subject) for subject in plan.methods.values()]
        self.times = record_times(plan.steps)
        # The distinct sequences of all methods, numbered, so that no block has to compare expressions again.
        self.schedules = list(dict.fromkeys(chain.from_iterable(rule.schedules for rule in self.rules)))
        places = {schedule: place for place, schedule in enumerate(self.schedules)}
        self._rows_of = [[places[schedule] for schedule in rule.schedules] for rule in self.rules]
        self._rest_of = {
            place: places[one.right]
            for place, one in enumerate(self.schedules)
            if isinstance(one, Subtract) and one.left == as_schedule(1) and one.right in places
        }
        lanes = len(plan.replicate_range)
        shape = (len(self.rules), self.times.size, lanes)
        _check_memory(plan, self.rules, self.times.size)
        self.x = np.full(shape, np.nan)
        self.loss = np.full(shape, np.nan)
        self.counts = np.zeros(shape[1:], dtype=np.int64)
        self.stream = GradientStream(plan.problem, plan.seed, plan.replicate_range)
        self.states = [rule.initial_state(lanes, plan.problem.start) for rule in self.rules]
        # It knows of neither threads nor blocks, which a run may change.
        self.state = {
            "words": self.stream.words, "rare_counts": self.stream.counts, "x": self.x, "loss": self.loss,
            "counts": self.counts, **{f"state_{place}": state for place, state in enumerate(self.states)},
        }  # fmt: skip
        fitting = min(_BLOCK_STEPS, _GRADIENT_NUMBERS // lanes, _SCHEDULE_NUMBERS // len(self.schedules))
        self.block = block or max(16, fitting)
        self._threads = threads

    def advance(self) -> None:
        """Carry every lane over the next block."""
        start, stop = self.next_t, min(self.next_t + self.block, self.steps + 1)
        first, last = np.searchsorted(self.times, (start, stop))
        record_at = self.times[first:last] - start
        evaluated = self.evaluate(start, stop)
        gradients, self.counts[first:last] = self.stream.draw(start, stop - start, record_at)

        def step(place: int) -> None:
            rule, state = self.rules[place], self.states[place]
            history = state[kernels.ROWS :]
            window = np.concatenate((history, gradients)) if len(history) else gradients
            kernels.advance(
                tuple(evaluated[row] for row in self._rows_of[place]), window, state, self.plan.problem.low,
                self.plan.problem.high, record_at, self.x[place, first:last], self.loss[place, first:last],
                rule.keep, rule.power, np.array(rule.weights),
            )  # fmt: skip
            history[:] = window[len(window) - len(history) :]

        self._map(step, range(len(self.rules)))
        for label, state in zip(self.plan.methods, self.states, strict=True):
            if not np.isfinite(state[kernels.X]).all():  # an error, not a curve that silently ends
                raise RunError(f"{label}: x is no longer a number before t = {stop}; expected finite schedules")
        self.next_t = stop

    def _map(self, function: Callable[[int], Any], places: Sequence[int]) -> list[Any]:
        if self._threads == 1:
            return [function(place) for place in places]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(function, places))

    def evaluate(self, start: int, stop: int) -> list[Floats]:
        """Return the values of each distinct schedule, whatever the number of methods and lanes that share it.

        theta is nearly always written as 1 - c/t^r, and its complement is needed too: one power and one
        subtraction give both, with the bits that `values` would give.
        """
        own = [place for place in range(len(self.schedules)) if place not in self._rest_of]
        found = dict(zip(own, self._map(lambda p: self.schedules[p].values(start, stop), own), strict=True))

        def values(place: int) -> Floats:
            if place not in found:
                found[place] = 1.0 - values(self._rest_of[place])
            return found[place]

        return [values(place) for place in range(len(self.schedules))]

    def records(self) -> LaneRecords:
        """Return what has been recorded; t not yet reached are nan."""
        times, problem = self.times[:, np.newaxis], self.plan.problem
        regret = problem.regret(self.loss, problem.gradient_sum(times, self.counts)) / times
        return LaneRecords(self.times, tuple(self.plan.methods), self.plan.replicate_range, self.x, regret)


class Elsewhere(Work):
    """A plan that a Dask cluster simulates, whose workers need this package; chunks of replicates are its tasks.

    A chunk's result depends on the plan and its replicates alone, so a worker may die and be replaced: the bits are
    those of one machine. Nothing is kept before its end.
    """

    def __init__(self, plan: Plan, scheduler: str, tell: Callable[[str], None] = lambda _: None) -> None:
        self.plan, self.steps, self._scheduler, self._tell = plan, plan.steps, scheduler, tell
        self.times = record_times(plan.steps)
        shape = (len(plan.methods), self.times.size, len(plan.replicate_range))
        self.state = {"x": np.full(shape, np.nan), "average_regret": np.full(shape, np.nan)}

    def advance(self) -> None:
        """Have it simulated: two chunks for each thread, so that a lost worker costs a part of its share."""
        lanes = self.plan.replicate_range
        with dask_pool(self._scheduler, self._tell) as pool:
            size = -(-len(lanes) // (2 * pool.width))
            size += -size % 4  # a vector holds four lanes
            parts = [lanes[at : at + size] for at in range(0, len(lanes), size)]
            tasks = [pool.submit(simulate, replace(self.plan, replicates=part)) for part in parts]
            for done in pool.completed(tasks):
                found: LaneRecords = done.result()
                place = slice(found.replicates.start - lanes.start, found.replicates.stop - lanes.start)
                for name, values in self.state.items():
                    values[:, :, place] = getattr(found, name)
        self.next_t = self.steps + 1

    def records(self) -> LaneRecords:
        """Return what came back."""
        return LaneRecords(self.times, tuple(self.plan.methods), self.plan.replicate_range, **self.state)


Simulating = Callable[["Plan"], "Simulation | Elsewhere"]
"""The place where a plan is simulated: here, or on a cluster."""


def _check_memory(plan: Plan, rules: Sequence[Rule], recorded: int) -> None:
    """Refuse a plan that cannot fit, before the machine begins to swap; not every system tells."""
    lanes = len(plan.replicate_range)
    rows = sum(kernels.ROWS + len(rule.weights) + 3 * recorded for rule in rules)
    needed = 8 * (rows * lanes + 4 * _SCHEDULE_NUMBERS)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("MemAvailable:") and needed > (free := int(line.split()[1]) * 1024):
            raise RunError(
                f"{len(rules)} methods with {lanes} replicates need {needed / 2**30:.1f} GiB of memory, "
                f"but {free / 2**30:.1f} GiB are free; expected fewer replicates or methods"
            )


def simulate(
    plan: Plan, *, threads: int = 1, block: int | None = None, progress: Progress | None = None, run: Run | None = None
) -> LaneRecords:
    """Simulate a plan: x_t and R(t)/t of every lane at about 400 t.

    Neither the number of threads, which share the methods, nor the steps of a block changes a bit of the result.

    Raises:
      RunError: the plan or the checkpoint cannot be used, or x leaves the real numbers.
      Paused: a signal came in a run with a directory; the checkpoint has been written.
    """
    simulation = Simulation(plan, threads, block)
    carry_out(simulation, run, progress)
    return simulation.records()


def compile_kernels() -> float:
    """Compile every kernel, or load it from the cache of an earlier run; return the seconds it took."""
    start = time.perf_counter()
    method = Method(alpha="1/sqrt(t)", beta=0.9, theta=0.99)
    for form in Form:
        simulate(Plan({"Generic Adam": method}, steps=1, problem=Counterexample(form=form)))
    return time.perf_counter() - start
