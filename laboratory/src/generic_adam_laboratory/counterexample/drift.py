r"""The turning point of the counterexample: the mean direction of a step as a function of theta.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from generic_adam.methods import Algorithm, Method
from generic_adam_laboratory.counterexample import kernels
from generic_adam_laboratory.counterexample.problem import Counterexample, Form, gradients_of
from generic_adam_laboratory.counterexample.simulation import AdaShift, Plan, Simulation, Subject, algorithm_of
from generic_adam_laboratory.runs.run import Work, carry_out

Floats = NDArray[np.float64]

BETA = 0.9
LANES, STEPS = 256, 2 * 10**6
"""Steps of one measurement at a frozen theta."""
TURN_LANE_STEPS = 6 * 10**8
"""Steps of one measurement along a run."""
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
        """Write the value to the digit that its error leaves, thousands apart."""
        if not (math.isfinite(self.value) and self.error > 0):
            return f"{self.value:.4g}"
        digits = -math.floor(math.log10(self.error))
        places = max(0, digits)
        return f"{round(self.value, digits):,.{places}f} ± {round(self.error, digits):,.{places}f}"


NOWHERE = Estimate(math.nan, math.nan)


def moments(problem: Counterexample) -> tuple[float, float]:
    """Return the mean of a gradient and of its square, in the stochastic form."""
    (rare, common), p = problem.slopes, problem.probability
    return p * rare + (1 - p) * common, p * rare**2 + (1 - p) * common**2


def limit_drift(problem: Counterexample) -> float:
    r"""Return $\delta(0) = \mathbb{E} g/\sqrt{\mathbb{E} g^2}$, the drift's limit as theta tends to 1."""
    mean, square = moments(problem)
    return mean / math.sqrt(square)


def _unprojected(problem: Counterexample, method: Method, steps: int, lanes: int, seed: int) -> Simulation:
    """Return lanes that have added up -m_t/sqrt(v_t), from v_0 = E g^2 and x = 0."""
    free = replace(problem, form=Form.STOCHASTIC, low=-_FREE, high=_FREE, start=0.0)
    adding = Algorithm(Method(1, method.beta, method.theta), initial_v=moments(problem)[1])
    simulation = Simulation(Plan({"sum": adding}, steps, lanes, free, seed))
    carry_out(simulation)
    return simulation


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
    r"""Measure $\delta$ at a frozen theta = 1 - rest; the first 10/rest steps, while v settles, are left out.

    The seed is the same for every theta, so that measurements differ in theta alone.
    """
    simulation = _unprojected(problem, Method(1, BETA, f"1 - {rest!r}"), steps, lanes, seed)
    settled = int(np.searchsorted(simulation.times, min(10 / rest, steps / 2)))
    return _mean_direction(simulation, settled, -1)


class _Rows(Work):
    """A work that finds one row of numbers after another, each of which counts for some steps."""

    def __init__(self, expected: int, each: int = 1) -> None:
        self.steps, self._each = each * expected, each
        self.rows: list[tuple[float, ...]] = []

    @property
    def next_t(self) -> int:
        return 1 + self._each * len(self.rows)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"rows": np.array(self.rows)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.rows = [tuple(row) for row in arrays["rows"].tolist()]


class DriftCurve(_Rows):
    """Bisection for the zero of the drift; rows of (1 - theta, drift, its error) in the order of measurement."""

    def __init__(self, problem: Counterexample, *, steps: int = STEPS) -> None:
        # Both ends and the halvings.
        super().__init__(2 + math.ceil(math.log2(math.log(BRACKET[1] / BRACKET[0]) / _PRECISION)), steps)
        self.problem = problem

    @property
    def _bracket(self) -> tuple[float, float]:
        """The largest 1 - theta with positive drift, and the smallest with negative."""
        low = [rest for rest, drift, _ in self.rows if drift > 0]
        high = [rest for rest, drift, _ in self.rows if drift <= 0]
        return max(low, default=BRACKET[0]), min(high, default=BRACKET[1])

    def advance(self) -> None:
        """Measure at the ends first, then in the middle (geometrically) of the bracket."""
        rest = BRACKET[len(self.rows)] if len(self.rows) < 2 else math.sqrt(math.prod(self._bracket))
        drift = measure_drift(rest, self.problem, steps=self._each)
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
        return np.interp(rest, *np.transpose(table))

    def turning_step(self, numerator: float, r: float) -> Estimate:
        """Return t* = (c/(1 - theta*))^(1/r), where theta_t = 1 - c/t^r reaches theta*."""
        zero = self.zero
        at = (numerator / zero.value) ** (1 / r)
        return Estimate(at, at * zero.error / zero.value / r)


class Turns(_Rows):
    """The turns of methods, measured along the run: the zeros of the mean direction as a function of t.

    `near` has the methods, each with about where it turns.
    """

    def __init__(
        self, problem: Counterexample, near: Sequence[tuple[Method, float]], *, lane_steps: int = TURN_LANE_STEPS
    ) -> None:
        super().__init__(len(near))
        self.problem, self.near, self._lane_steps = problem, near, lane_steps

    @property
    def found(self) -> list[Estimate]:
        """The turn of each, in the order of the methods."""
        return [Estimate(value, error) for value, error in self.rows]

    def advance(self) -> None:
        """Measure the next schedule."""
        method, near = self.near[len(self.rows)]
        last = math.ceil(_TURN_REACH * near)
        lanes = max(64, self._lane_steps // last)
        simulation = _unprojected(self.problem, method, last, lanes, seed=1)
        times = simulation.times
        edges = np.geomspace(near / _TURN_REACH, last, _TURN_BINS + 1)
        bins = list(pairwise(np.unique(np.minimum(np.searchsorted(times, edges), times.size - 1)).tolist()))
        middles = np.array([math.log(times[a] * times[b]) / 2 for a, b in bins])
        at = _zero_of_fit(middles, [_mean_direction(simulation, a, b) for a, b in bins])
        self.rows.append((at.value, at.error))


def _zero_of_fit(log_t: Floats, drifts: Sequence[Estimate]) -> Estimate:
    """Return e to where a parabola through the drifts becomes positive, with its error; nan if it does not."""
    weights = 1 / np.array([one.error for one in drifts])
    centre = float(log_t.mean())
    fit, covariance = np.polyfit(log_t - centre, [one.value for one in drifts], 2, w=weights, cov="unscaled")
    inside = [
        float(root.real)
        for root in np.roots(fit)
        if abs(root.imag) < 1e-9 and log_t[0] <= root.real + centre <= log_t[-1] and 2 * fit[0] * root.real + fit[1] > 0
    ]
    if not inside:
        return NOWHERE
    root = inside[0]
    powers = np.array([root**2, root, 1.0])
    error = math.sqrt(float(powers @ covariance @ powers)) / (2 * fit[0] * root + fit[1])
    at = math.exp(root + centre)
    return Estimate(at, at * error)


def divisor_table(
    methods: Mapping[str, Subject], problem: Counterexample, *, steps: int, lanes: int = 8, seed: int = 0
) -> dict[str, tuple[float, float]]:
    r"""Return, for each method, the share of $\Gamma_t < 0$ and the correlation of v_t and g_t^2.

    $\Gamma_t = \sqrt{v_t}/\alpha_t - \sqrt{v_{t-1}}/\alpha_{t-1}$ is what condition (C1) asks to be positive,
    and the correlation is what (C3) asks to be absent; both over the last nine tenths of the steps, the mean
    over lanes. v_t is what stands below the root: AMSGrad's running maximum, AdaShift's v of n steps ago. A
    method that divides by nothing, or a run of a few steps, has nan.
    """
    streams = [gradients_of(problem, steps, seed, lane) for lane in range(lanes)]

    def measured(subject: Subject) -> tuple[float, float]:
        x, lag = algorithm_of(subject), subject.kept if isinstance(subject, AdaShift) else 0
        late = max(steps // 10, lag + 1)
        if not x.preconditioned or steps < late + 2:
            return math.nan, math.nan
        alpha, theta, rest = (one.values(1, steps + 1) for one in (x.method.alpha, x.method.theta, 1 - x.method.theta))
        found = []
        for g in streams:
            v = kernels.second_moments(g, theta, rest, x.initial_v, lag)
            v = np.maximum.accumulate(v) if x.running_maximum else v
            gamma = np.diff(np.sqrt(v) / alpha[lag:])[late - lag - 1 :]
            pair = np.stack((v, g[lag:] ** 2))[:, late - lag :]
            is_still = np.ptp(pair, axis=1).min() == 0  # a maximum that no longer changes
            found.append(((gamma < 0).mean(), 0.0 if is_still else np.asarray(np.corrcoef(pair))[0, 1]))
        share, correlation = np.mean(found, axis=0)
        return float(share), float(correlation)

    return {label: measured(subject) for label, subject in methods.items()}
