"""Random problems against the bounds of W, E, N, H, D, M_E, Y and P: exact expectations, noise that answers the past.

One weight, at most five steps; after every path the noise has another law (three values down to a chance of 1e-7, or
a uniform law for Theorem Y), so that it depends on the past as it likes. The expectation is the sum over all paths.
Beside measured/bound stands the same without the slack of the gap: what is measured less what the loss really fell,
over what noise and drift are allowed. Neither may exceed 1. The second command simulates longer runs, a hundred each.

    python -m benchmarks.random_problems 10000
    python -m benchmarks.random_problems 50 simulated
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from generic_adam.methods import Clipping, HeavyBall
from generic_adam.theorems.clipping import clipped_parts, symmetric_factor
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.horizon import three_numbers
from generic_adam.theorems.scaled import averaged_bound
from generic_adam.theorems.sequences import Sequences
from generic_adam.theorems.weighted import WeightedBound, weighted_bound

Array = NDArray[np.float64]
KINDS = ("W", "E", "root", "E, theta_1 = 0", "N", "H", "D", "M_E", "Y", "Y, H", "Y, clipped")
KINDS += ("P", "P, clipped updates")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# f, f' and L; all bounded below by 0.
_FUNCTIONS: tuple[tuple[Callable[[Array], Array], Callable[[Array], Array], float], ...] = (
    (lambda x: x**2 / (1 + x**2), lambda x: 2 * x / (1 + x**2) ** 2, 2.0),
    (lambda x: 1 - np.cos(x), np.sin, 1.0),
    (lambda x: np.logaddexp(x, -x) - math.log(2), np.tanh, 1.0),
    (lambda x: x**2 / 2, lambda x: x, 1.0),
)


@dataclass(frozen=True)
class Drawn:
    """A random problem: its sequences, their form, a function and a start.

    Attributes:
        x: the sequences.
        function: f, f' and L.
        start: x_1.
        weights: how Nesterov's step weighs momentum and gradient.
        threshold: where gradients are clipped.
        floor: the least scale of the steps, which is else the size of the weight; None where they are not scaled.
        update: where updates are clipped.
    """

    x: Sequences
    function: tuple[Callable[[Array], Array], Callable[[Array], Array], float]
    start: float
    weights: tuple[float, float] = (1.0, 0.0)
    threshold: float = math.inf
    floor: float | None = None
    update: float = math.inf

    def scale(self, at: Array) -> Array:
        """Return what multiplies the steps there."""
        return np.ones(len(at)) if self.floor is None else np.maximum(np.abs(at), self.floor)


@dataclass(frozen=True)
class Outcome:
    """A problem's two ratios.

    Attributes:
        ratio: measured over bound.
        strict: the same without the slack of the gap; nan where the theorem has no such form.
    """

    ratio: float
    strict: float


def draw(kind: str, rng: np.random.Generator, *, simulated: bool = False) -> Drawn:
    """Return a random problem for a theorem; one that is simulated has hundreds of steps, and constants."""
    steps = int(rng.integers(1, 3 if "clipped" in kind else 4 if kind.startswith("Y") else 6))
    steps = int(rng.integers(20, 400)) if simulated else steps
    alpha = rng.random(steps) * 10.0 ** rng.integers(-3, 2) * (rng.random(steps) < 0.85)
    alpha[rng.integers(steps)] = 10.0 ** rng.uniform(-2, 0.5)
    beta = rng.random(steps) * rng.choice([0.0, 0.6, 0.95])
    theta = 1 - 10.0 ** rng.uniform(-4, -0.05, steps)
    if simulated:
        alpha, beta, theta = alpha * rng.choice([0.1, 1.0]), np.full(steps, beta[0]), np.full(steps, theta[0])
    eps, initial_v = np.zeros(steps), 10.0 ** rng.uniform(-4, 3)
    if kind != "W":
        eps[0] = 10.0 ** rng.uniform(-4, 2)
        for t in range(1, steps):
            grown = eps[t - 1] if kind == "M_E" else eps[t - 1] * math.sqrt(theta[t])
            leap = rng.choice([1e-12, 0.1, 3.0])
            eps[t] = grown * (1 + (leap if t < 5 else 1e-12))
        initial_v *= rng.random() < 0.3
    form: dict[str, object] = {"under_root": kind in ("root", "P, clipped updates"), "running_maximum": kind == "M_E"}
    weights = (1.0, 0.0)
    if kind == "E, theta_1 = 0":
        theta[0] = 0.0
    if kind == "N":
        weights = (float(rng.random()), float(rng.random()))
        form |= {"momentum_weight": weights[0], "gradient_weight": weights[1]}
    if kind in ("H", "Y, H"):
        form["heavy_ball"] = HeavyBall(Fraction(float(rng.uniform(0, 0.95))), bool(rng.random() < 0.5))
        beta = np.zeros(steps)
    if kind == "P, clipped updates":
        beta, eps = np.zeros(steps), np.full(steps, eps[0])
    if kind == "D" or (kind == "P" and rng.random() < 0.5):
        form["decay"] = 10.0 ** rng.uniform(-3, -0.5) * alpha
    function = _FUNCTIONS[rng.integers(len(_FUNCTIONS))]
    x = Sequences.of(alpha, beta, theta, eps=eps, initial_v=initial_v, steps=steps, **form)  # type: ignore[arg-type]
    threshold = float(10.0 ** rng.uniform(-2, 1)) if kind == "Y, clipped" else math.inf
    start, floor = float(rng.uniform(-3, 3)), float(10.0 ** rng.uniform(-3, 0)) if kind.startswith("P") else None
    update = float(10.0 ** rng.uniform(-1, 1)) if kind == "P, clipped updates" else math.inf
    return Drawn(x, function, start, weights, threshold, floor, update)


def _spikes(mu: Array, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield the chances and the gradients of three outcomes at every node; each node has a law of its own."""
    count = len(mu)
    chances = rng.dirichlet([0.3] * 3, count) + 1e-7
    chances /= chances.sum(1, keepdims=True)
    noise = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-2, 2, (count, 1)) * (rng.random((count, 1)) < 0.9)
    noise -= (chances * noise).sum(1, keepdims=True)
    for k in range(3):
        yield chances[:, k], mu + noise[:, k]


def _uniform(mu: Array, width: Array, threshold: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the nodes of a uniform law about mu, Gauss and Legendre between g = 0 and where clipping sets in."""
    inner = (-threshold, 0.0, threshold) if np.isfinite(threshold).any() else (0.0,)
    cuts = [-width, *(np.clip(at - mu, -width, width) for at in inner), width]
    for low, high in itertools.pairwise(cuts):
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            yield (high - low) / (4 * width) * weight, mu + (low + high) / 2 + (high - low) / 2 * node


def _branched(outcomes: Sequence[tuple[Array, Array]], chance: Array) -> tuple[Array, Array, Array, int]:
    """Return the mean squares, the chances and the gradients of every outcome of every path, and how many there are."""
    square = sum((p * g**2 for p, g in outcomes), np.zeros(len(chance)))
    chances, gradients = (np.concatenate([one[k] for one in outcomes]) for k in (0, 1))
    return square, np.tile(chance, len(outcomes)) * chances, gradients, len(outcomes)


def _sampled(
    mu: Array, width: Array, chance: Array, rng: np.random.Generator, size: float, *, symmetric: bool
) -> tuple[Array, Array, Array, int]:
    """Return the same of one outcome, drawn for each run; `size` makes the noise smaller."""
    if symmetric:
        return mu**2 + width**2 / 3, chance, mu + width * rng.uniform(-1, 1, len(mu)), 1
    chances, gradients = (np.array(one) for one in zip(*_spikes(mu, rng), strict=True))
    gradients = mu + size * (gradients - mu)
    drawn = (chances.cumsum(0) < rng.random(len(mu))).sum(0).clip(max=len(chances) - 1)
    return (chances * gradients**2).sum(0), chance, gradients[drawn, np.arange(len(mu))], 1


def run(drawn: Drawn, rng: np.random.Generator, *, symmetric: bool, runs: int = 0) -> Outcome:
    """Follow every path, or so many runs, and return what was measured over what the theorem allows."""
    x, (value, slope, smoothness) = drawn.x, drawn.function
    block, steps = x.block(1, x.steps + 1), x.steps
    names = ("alpha", "beta", "theta", "eps", "decay")
    alpha, beta, theta, eps, nu = (np.broadcast_to(getattr(block, name), steps) for name in names)
    (a, b), ball, paths = drawn.weights, x.heavy_ball, max(runs, 1)
    size = 10.0 ** rng.uniform(-4, -1) if runs else 1.0
    where, chance = np.full(paths, drawn.start), np.full(paths, 1 / paths)
    (m, v), (buffer, largest) = ((np.zeros(paths), np.full(paths, x.initial_v)) for _ in range(2))
    terms, moment, certain, reached, spread = [], 0.0, 0.0, abs(drawn.start), 0.0
    sizes = [0.0, drawn.update if drawn.update < math.inf else 0.0]  # the largest scale and update

    def divide(second: Array, t: int) -> Array:
        return np.sqrt(second + eps[t] ** 2) if x.under_root else np.sqrt(second) + eps[t]

    for t in range(steps):
        mu = slope(where)
        sizes[0] = max(sizes[0], float(drawn.scale(where).max()))
        width = size * 10.0 ** rng.uniform(-2, 1, len(mu))
        before = chance
        if runs:
            square, chance, g, count = _sampled(mu, width, before, rng, size, symmetric=symmetric)
        else:
            outcomes = list(_uniform(mu, width, _kink(drawn, v, theta[t], eps[t])) if symmetric else _spikes(mu, rng))
            square, chance, g, count = _branched(outcomes, before)
        moment = max(moment, float(square.max()))
        moved = mu**2 + width**2  # mu^2 + 3 s^2
        spread = max(spread, float(width.max()) ** 2 / 3)
        hat = theta[t] * v + (1 - theta[t]) * (moved / (1 + moved / drawn.threshold**2) if symmetric else square)
        hat = np.maximum(hat, largest) if x.running_maximum else hat
        terms.append(float(before @ (drawn.scale(where) * mu**2 / divide(hat, t))))
        where, m, v, buffer, largest = (np.tile(one, count) for one in (where, m, v, buffer, largest))
        certain = max(certain, float(np.abs(g).max()))
        g = np.clip(g, -drawn.threshold, drawn.threshold)
        m, v = beta[t] * m + (1 - beta[t]) * g, theta[t] * v + (1 - theta[t]) * g**2
        largest = np.maximum(largest, v)
        divisor = divide(largest if x.running_maximum else v, t)
        update = (a * m + b * g) / divisor
        sizes[1] = max(sizes[1], float(np.abs(update).max()))
        step = alpha[t] * np.clip(update, -drawn.update, drawn.update)
        if ball is not None:
            inside, outside = (alpha[t], 1.0) if ball.rate_inside else (1.0, alpha[t])
            buffer = float(ball.factor) * buffer + inside * g / divisor
            step = outside * buffer
        where = (1 - nu[t]) * where - drawn.scale(where) * step
        reached = max(reached, float(np.abs(where).max()))
    problem = Constants(
        smoothness,
        [max(math.sqrt(moment), 1e-9)],
        1,
        float(value(np.array([drawn.start]))[0]),
        variance=spread if drawn.threshold < math.inf else None,
        weights_bound=reached,
        gradient_sup=max(certain, 1e-9),
    )
    bound = _bound(drawn, problem, sizes, symmetric=symmetric)
    pi = _weights(drawn, alpha, beta, theta)
    measured, strict = float(pi @ np.array(terms)), math.nan
    if not x.decays and drawn.update == math.inf:
        fallen = problem.gap - float(chance @ value(where))
        strict = (bound.divisor / bound.weight * measured - fallen) / (bound.noise + bound.drift)
    agree = drawn.update < math.inf or math.isclose(bound.weight, pi.sum(), rel_tol=1e-9)
    return Outcome(measured / pi.sum() / bound.value, strict) if agree else Outcome(math.inf, math.inf)


def _kink(drawn: Drawn, v: Array, theta: float, eps: float) -> Array:
    """Return the size of a gradient at which clipping sets in, of gradients or of updates."""
    limit, q = drawn.update**2, 1 - theta
    if limit == math.inf:
        return np.full(len(v), drawn.threshold)
    return np.sqrt(limit * (theta * v + eps**2) / (1 - limit * q)) if limit * q < 1 else np.full(len(v), math.inf)


def _scaled(drawn: Drawn, problem: Constants, scale: float, update: float) -> WeightedBound:
    """Return the bound of Theorem P, from its numbers in the unit of scale times gradient."""
    x, G = drawn.x, problem.total_gradient_bound
    unit, curvature, told = scale * G, problem.smoothness * scale**2, {"s1": math.nan, "s2": math.nan}
    if drawn.update < math.inf:
        found = averaged_bound(x, G, update, drawn.update)
        weight = 1 / found.gap  # the factor of P2 included
        return WeightedBound("P", x.steps, problem.gap, 0.0, found.drift * curvature * weight, weight, weight, **told)
    known = three_numbers(x, G, 1.0, scaled=True)
    weight = 1 / known.gap
    noise, drift = known.noise * unit * weight, known.drift * (curvature + known.turning * unit) * weight
    decay = known.decay * unit * weight
    return WeightedBound("P", x.steps, problem.gap, noise, drift, weight, weight, decay=decay, **told)


def _bound(drawn: Drawn, problem: Constants, sizes: Sequence[float], *, symmetric: bool) -> WeightedBound:
    if drawn.floor is not None:
        return _scaled(drawn, problem, *sizes)
    if drawn.threshold == math.inf:
        return weighted_bound(drawn.x, problem, symmetric=symmetric)
    factor = symmetric_factor(problem, Clipping(drawn.threshold, kind="value"))
    clipped = clipped_parts(problem, drawn.threshold), factor
    return weighted_bound(drawn.x, problem, symmetric=True, clipped=clipped)


def _weights(drawn: Drawn, alpha: Array, beta: Array, theta: Array) -> Array:
    """Return the weights pi_t of the theorem, by the definition."""
    x, (a, b) = drawn.x, drawn.weights
    keep = np.where(theta > 0, beta / np.sqrt(np.where(theta > 0, theta, 1)), 0.0)
    own, gain, outer = a * alpha, 1 - beta, np.ones(len(alpha))
    if x.running_maximum:
        keep = beta
    if x.heavy_ball is not None:
        keep, gain = np.full(len(alpha), float(x.heavy_ball.factor)), np.ones(len(alpha))
        own, outer = (np.ones(len(alpha)), alpha) if x.heavy_ball.rate_inside else (alpha, np.ones(len(alpha)))
    found, Q = np.empty(len(alpha)), 0.0
    for i in reversed(range(len(alpha))):
        Q = own[i] + (keep[i + 1] * Q if i + 1 < len(alpha) else 0.0)
        found[i] = gain[i] * outer[i] * Q + alpha[i] * b
    return found


def largest(kind: str, count: int, seed: int = 0, *, runs: int = 0) -> Outcome:
    """Return the largest ratios of a number of random problems of a kind, of all paths or of so many runs."""
    ratio, strict = -math.inf, math.nan
    for index in range(count):
        rng = np.random.default_rng([seed, KINDS.index(kind), index])
        drawn = draw(kind, rng, simulated=bool(runs))
        found = run(drawn, rng, symmetric=kind.startswith("Y") or "clipped" in kind, runs=runs)
        ratio, strict = max(ratio, found.ratio), np.fmax(strict, found.strict)
    return Outcome(ratio, float(strict))


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    runs = 100 if sys.argv[2:] == ["simulated"] else 0
    print("| theorem | problems | measured / bound | without the slack of the gap |\n|---|---|---|---|")
    for kind in KINDS:
        found = largest(kind, count, runs=runs)
        strict = "–" if not math.isfinite(found.strict) else f"{found.strict:.6f}"
        print(f"| {kind} | {count:,} | {found.ratio:.4f} | {strict} |", flush=True)
        # What the loss fell is a mean over the runs, with an error of its own.
        if not max(found.ratio, 0.0 if math.isnan(found.strict) or runs else found.strict) <= 1 + 1e-9:
            raise SystemExit(f"{kind}: a bound was exceeded")


if __name__ == "__main__":
    main()
