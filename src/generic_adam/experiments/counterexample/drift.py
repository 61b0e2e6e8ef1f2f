r"""Where the counterexample turns: the mean direction of a step as a function of theta.

The slopes do not depend on x, so neither do m_t and v_t: where the lanes go is decided by the mean of
$m_t/\sqrt{v_t}$ alone. With theta frozen it is a function $\delta(1-\theta)$ of theta, negative (towards +1,
the wrong end) for small theta and positive as $\theta \to 1$, where v becomes constant:
$\delta(0) = \mathbb{E} g/\sqrt{\mathbb{E} g^2}$. Its zero theta* tells when a schedule
$\theta_t = 1 - c/t^r$ turns round: at $t^* = (c/(1-\theta^*))^{1/r}$.

The mean is measured on lanes without projection and with alpha = 1, which add up $m_t/\sqrt{v_t}$; the mean
of the gradients that they met, whose expectation is known, serves as a control variate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from generic_adam.experiments.counterexample import kernels
from generic_adam.experiments.counterexample.problem import Counterexample, gradients_of
from generic_adam.experiments.counterexample.rules import AdaShift, Subject
from generic_adam.experiments.counterexample.simulation import Plan, Simulation
from generic_adam.methods import Algorithm, Method, as_algorithm, power_family

Floats = NDArray[np.float64]

BETA = 0.9
LANES, STEPS = 256, 2 * 10**6
"""Of one measurement at a frozen theta."""
TURN_LANE_STEPS = 6 * 10**8
"""Of one measurement along a run."""
BRACKET = (1e-4, 1e-2)
"""1 - theta between which theta* is sought."""
_PRECISION = 1e-3  # bisection ends when 1 - theta* is known to this, relative; the noise is about as large
_TURN_BINS, _TURN_REACH = 8, 3.0  # bins of t from t*/3 to 3 t*
_FREE = 1e15  # as good as no projection


@dataclass(frozen=True)
class Estimate:
    """A measured number and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """The value to the digit that its error leaves, thousands apart."""
        if not (math.isfinite(self.value) and self.error > 0):
            return f"{self.value:.4g}"
        digits = -math.floor(math.log10(self.error))
        places = max(0, digits)
        return f"{round(self.value, digits):,.{places}f} ± {round(self.error, digits):,.{places}f}"


def moments(problem: Counterexample) -> tuple[float, float]:
    """Return the mean of a gradient and of its square, in the stochastic form."""
    (rare, common), p = problem.slopes, problem.probability
    return p * rare + (1 - p) * common, p * rare**2 + (1 - p) * common**2


def limit_drift(problem: Counterexample) -> float:
    r"""Return $\delta(0) = \mathbb{E} g/\sqrt{\mathbb{E} g^2}$, the drift's limit as theta tends to 1."""
    mean, square = moments(problem)
    return mean / math.sqrt(square)


def _unprojected(problem: Counterexample, method: Method, steps: int, lanes: int, seed: int) -> Simulation:
    """Return lanes that add up -m_t/sqrt(v_t), from v_0 = E g^2 and x = 0."""
    free = Counterexample(
        rare_slope=problem.rare_slope, common_slope=problem.common_slope, probability=problem.probability,
        as_printed=problem.as_printed, low=-_FREE, high=_FREE, start=0.0,
    )  # fmt: skip
    adding = Algorithm(Method(1, method.beta, method.theta), initial_v=moments(problem)[1])
    return Simulation(Plan({"sum": adding}, steps, lanes, free, seed))


def _mean_direction(simulation: Simulation, first: int, last: int) -> Estimate:
    """Return the mean of m_t/sqrt(v_t) between two recorded steps, over lanes, the luck of g taken off."""
    steps = int(simulation.times[last] - simulation.times[first])
    direction = -(simulation.x[0, last] - simulation.x[0, first]) / steps
    rare, common = simulation.plan.problem.slopes
    gradient = common + (rare - common) * (simulation.counts[last] - simulation.counts[first]) / steps
    luck = gradient - moments(simulation.plan.problem)[0]
    spread = float(luck @ luck)
    if spread > 0:
        direction = direction - (direction - direction.mean()) @ luck / spread * luck
    return Estimate(float(direction.mean()), float(direction.std(ddof=1) / math.sqrt(direction.size)))


def measure_drift(
    rest: float, problem: Counterexample, *, steps: int = STEPS, lanes: int = LANES, seed: int = 0
) -> Estimate:
    r"""Measure $\delta$ at a frozen theta.

    Args:
      rest: 1 - theta.
      problem: the slopes and how often the rare one comes.
      steps: of each lane; the first 10/rest, while v settles, are left out.
      lanes: independent streams of gradients.
      seed: of the gradients; the same for every theta, so that measurements differ in theta alone.
    """
    simulation = _unprojected(problem, Method(1, BETA, f"1 - {rest!r}"), steps, lanes, seed)
    while not simulation.is_finished:
        simulation.advance()
    settled = int(np.searchsorted(simulation.times, min(10 / rest, steps / 2)))
    return _mean_direction(simulation, settled, -1)


class _Rows:
    """A work that finds one row of numbers after another.

    Args:
      expected: how many rows there will be.
      each: the steps that one counts for.
    """

    def __init__(self, expected: int, each: int = 1) -> None:
        self._expected, self._each = expected, each
        self.rows: list[tuple[float, ...]] = []

    @property
    def steps(self) -> int:
        """The steps of all rows."""
        return self._each * self._expected

    @property
    def next_t(self) -> int:
        """One more than the steps made."""
        return 1 + self._each * len(self.rows)

    @property
    def is_finished(self) -> bool:
        """Whether all rows are there."""
        return len(self.rows) >= self._expected

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the rows."""
        return {"rows": np.array(self.rows)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take the rows back."""
        self.rows = [tuple(row) for row in arrays["rows"].tolist()]


class DriftCurve(_Rows):
    """Bisection for the zero of the drift, as a work that can be paused.

    Args:
      problem: the slopes and how often the rare one comes.
      steps: of each measurement.
      lanes: of each measurement.
      seed: of the gradients.

    Attributes:
      rows: (1 - theta, drift, its error), in the order in which they were measured.
    """

    def __init__(
        self, problem: Counterexample, *, steps: int = STEPS, lanes: int = LANES, seed: int = 0
    ) -> None:
        # Both ends and the halvings.
        super().__init__(2 + math.ceil(math.log2(math.log(BRACKET[1] / BRACKET[0]) / _PRECISION)), steps)
        self.problem, self._lanes, self._seed = problem, lanes, seed

    @property
    def _bracket(self) -> tuple[float, float]:
        """The largest 1 - theta with positive drift, and the smallest with negative."""
        low = [rest for rest, drift, _ in self.rows if drift > 0]
        high = [rest for rest, drift, _ in self.rows if drift <= 0]
        return max(low, default=BRACKET[0]), min(high, default=BRACKET[1])

    def advance(self) -> None:
        """Measure at the ends first, then in the middle (geometrically) of the bracket."""
        low, high = self._bracket
        rest = BRACKET[len(self.rows)] if len(self.rows) < 2 else math.sqrt(low * high)
        drift = measure_drift(rest, self.problem, steps=self._each, lanes=self._lanes, seed=self._seed)
        self.rows.append((rest, drift.value, drift.error))

    @property
    def zero(self) -> Estimate:
        """1 - theta*: interpolated in the last bracket, with the noise of the drift over its slope."""
        low, high = self._bracket
        by_rest = {rest: (drift, error) for rest, drift, error in self.rows}
        (up, _), (down, error) = by_rest[low], by_rest[high]
        at = low + (high - low) * up / (up - down)
        # The slope over a few per cent, not between the last two points, which differ by less than noise.
        near = sorted(self.rows, key=lambda point: abs(math.log(point[0] / at)))[:6]
        slope = np.polyfit([point[0] for point in near], [point[1] for point in near], 1)[0]
        return Estimate(at, error / abs(slope))

    def drift(self, rest: Floats) -> Floats:
        r"""Return $\delta$ between the measured points and the limit at 0, by linear interpolation."""
        table = sorted([(0.0, limit_drift(self.problem)), *((q, drift) for q, drift, _ in self.rows)])
        return np.interp(rest, [q for q, _ in table], [drift for _, drift in table])

    def turning_step(self, numerator: float, r: float) -> Estimate:
        """Return t* = (c/(1 - theta*))^(1/r), where theta_t = 1 - c/t^r reaches theta*."""
        zero = self.zero
        at = (numerator / zero.value) ** (1 / r)
        return Estimate(at, at * zero.error / zero.value / r)


@dataclass(frozen=True)
class Turn:
    """A schedule whose turn is measured: theta_t = 1 - numerator/t^r."""

    r: Fraction
    numerator: Fraction

    @property
    def method(self) -> Method:
        """The schedule in the power family; only theta matters here."""
        r, c = float(self.r), float(self.numerator)
        return power_family(lr=1, beta=BETA, s=0.5, r=r, c=c, K=2 if r == 1 else 1)


class Turns(_Rows):
    """Where schedules turn, measured along the run: the zero of the mean direction as a function of t.

    Args:
      problem: the slopes and how often the rare one comes.
      turns: the schedules.
      near: says about where one of them turns; asked when its time has come.
      lane_steps: of each.
      seed: of the gradients.
    """

    def __init__(
        self,
        problem: Counterexample,
        turns: Sequence[Turn],
        near: Callable[[Turn], float],
        *,
        lane_steps: int = TURN_LANE_STEPS,
        seed: int = 1,
    ) -> None:
        super().__init__(len(turns))
        self.problem, self.turns, self.near = problem, turns, near
        self._lane_steps, self._seed = lane_steps, seed

    @property
    def found(self) -> list[Estimate]:
        """Where each turned, in the order of `turns`."""
        return [Estimate(value, error) for value, error in self.rows]

    def advance(self) -> None:
        """Measure the next schedule."""
        turn = self.turns[len(self.rows)]
        at = self._turn(turn.method, self.near(turn))
        self.rows.append((at.value, at.error))

    def _turn(self, method: Method, near: float) -> Estimate:
        last = math.ceil(_TURN_REACH * near)
        lanes = max(64, self._lane_steps // last)
        simulation = _unprojected(self.problem, method, last, lanes, self._seed)
        while not simulation.is_finished:
            simulation.advance()
        edges = np.geomspace(near / _TURN_REACH, last, _TURN_BINS + 1)
        rows = np.unique(np.minimum(np.searchsorted(simulation.times, edges), simulation.times.size - 1))
        middles = [math.log(simulation.times[a] * simulation.times[b]) / 2 for a, b in pairwise(rows)]
        drifts = [_mean_direction(simulation, int(a), int(b)) for a, b in pairwise(rows)]
        return _zero_of_fit(np.array(middles), drifts)


def _zero_of_fit(log_t: Floats, drifts: Sequence[Estimate]) -> Estimate:
    """Return e to the zero of a parabola through the drifts, with its error; nan if there is none."""
    weights = 1 / np.array([one.error for one in drifts])
    centre = float(log_t.mean())
    fit, covariance = np.polyfit(log_t - centre, [one.value for one in drifts], 2, w=weights, cov="unscaled")
    inside = [
        float(root.real)
        for root in np.roots(fit)
        if abs(root.imag) < 1e-9 and log_t[0] <= root.real + centre <= log_t[-1]
    ]
    if not inside:
        return Estimate(math.nan, math.nan)
    root = inside[0]
    powers = np.array([root**2, root, 1.0])
    slope = 2 * fit[0] * root + fit[1]
    error = math.sqrt(float(powers @ covariance @ powers)) / abs(slope)
    at = math.exp(root + centre)
    return Estimate(at, at * error)


def divisor_table(
    methods: Mapping[str, Subject], problem: Counterexample, *, steps: int, lanes: int = 8, seed: int = 0
) -> dict[str, tuple[float, float]]:
    r"""Return, for each method, the share of $\Gamma_t < 0$ and the correlation of v_t and g_t^2.

    $\Gamma_t = \sqrt{v_t}/\alpha_t - \sqrt{v_{t-1}}/\alpha_{t-1}$ is what condition (C1) asks to be positive,
    and the correlation is what (C3) asks to be absent; both over the last nine tenths of the steps, the mean
    over lanes. v_t is what stands below the root: AMSGrad's running maximum, AdaShift's v of n steps ago.
    """
    streams = [gradients_of(problem, steps, seed, lane) for lane in range(lanes)]
    table: dict[str, tuple[float, float]] = {}
    for label, subject in methods.items():
        lag = subject.kept if isinstance(subject, AdaShift) else 0
        algorithm = as_algorithm(subject.algorithm if isinstance(subject, AdaShift) else subject)
        if not algorithm.preconditioned:  # it divides by nothing
            table[label] = (math.nan, math.nan)
            continue
        method = algorithm.method
        sequences = (one.values(1, steps + 1) for one in (method.alpha, method.theta, 1 - method.theta))
        alpha, theta, rest = sequences
        found = [
            kernels.divisor_statistics(
                stream, alpha, theta, rest, algorithm.initial_v, algorithm.running_maximum, lag, steps // 10
            )
            for stream in streams
        ]
        share, correlation = np.mean(found, axis=0)
        table[label] = (float(share), float(correlation))
    return table
