r"""The quantities that theorems bound, measured on a problem whose constants are known.

The problem is smooth, not convex, and stochastic:

.. math:: f(x) = \sum_{k\le d} \frac{x_k^2}{1 + x_k^2}, \qquad g_t = \nabla f(x_t) + \sigma \xi_t,

with :math:`\xi_t` independent signs. Its second derivative lies in [-1/2, 2], so L = 2; a coordinate of its
gradient is at most :math:`3\sqrt3/8`, so :math:`\mathbb{E}_t\|g_t\|^2 \le G^2 = d (27/64 + \sigma^2)`; and
f* = 0. Many seeds run side by side. The paper's Theorem 1 bounds
:math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` for :math:`\tau` uniform on 1..T, Theorems W and E for
:math:`\tau` with weights :math:`\pi_t`, about :math:`\alpha_t`, and Theorem 2 says
:math:`\|\nabla f(x_\tau)\|^2 \le B/\delta` with probability at least :math:`1 - \delta^{2/3}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import generic_adam as ga
from generic_adam.answers.figures import GREY, along_path, drawing, save_figure
from generic_adam.errors import RunError
from generic_adam.methods import Algorithm, power_family
from generic_adam.schedules.balls import rounded_up
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.sequences import Sequences, backward
from generic_adam.theorems.weighted import weighted_bound
from generic_adam.theorems.zou2019 import bound
from generic_adam_laboratory.counterexample.kernels import compiled, next_word
from generic_adam_laboratory.counterexample.problem import initial_words
from generic_adam_laboratory.runs.records import Claim, Occasion, write_results
from generic_adam_laboratory.runs.run import Progress, Run, Stages, Work, carry_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_STEPS, MOST_SEEDS = 10**7, 10**5
"""The per-step means of a longer run, or the lanes of more seeds, would not fit in memory."""
FAR = (10**10, 10**12)
"""T beyond every measured one, between which the slope of the paper's bound is the rate, or 0."""
DELTAS = (0.5, 0.1, 0.01)
"""For which Theorem 2 is checked."""
EPS = 1e-4
"""eps of Theorem E's runs: the root of the v_0 that it stands for."""

_BLOCK = 2**12
_MOST_COORDINATES = 53  # signs come from the upper bits of one 64-bit draw


@dataclass(frozen=True)
class BoundedWell:
    """The sum of x^2/(1+x^2) in d coordinates with signs of size sigma as noise, x_1 = start, v_0 = epsilon."""

    dimension: int = 10
    noise: float = 0.5
    start: float = 1.0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        """Check what the generator can serve."""
        if not 1 <= self.dimension <= _MOST_COORDINATES:
            raise RunError(f"dimension is {self.dimension}, expected from 1 to {_MOST_COORDINATES}")

    @property
    def problem(self) -> Constants:
        """The constants as theorems want them; every coordinate has the same bound."""
        coordinate = math.sqrt(27 / 64 + self.noise**2)
        gap = self.dimension * self.start**2 / (1 + self.start**2)
        return Constants(2.0, math.sqrt(self.dimension) * coordinate, self.dimension, gap, self.epsilon)

    @property
    def largest_square(self) -> float:
        """The largest squared norm that the gradient has anywhere."""
        return self.dimension * 27 / 64


@dataclass(frozen=True)
class Member:
    """A method that is measured; with eps > 0 it starts at v_0 = 0 (Theorem E), else it is the paper's (Theorem W)."""

    panel: str
    r: float
    beta: float
    eps: float = 0.0

    @property
    def label(self) -> str:
        """Its name in its panel."""
        return f"r = {self.r:g}"

    @property
    def algorithm(self) -> Algorithm:
        """alpha_t = 0.1/sqrt(t), theta_t on the path from constant (r = 0) to AdaEMA (r = 1)."""
        c = round(0.01 + 0.99 * self.r, 6)
        method = power_family(lr=0.1, beta=self.beta, s=0.5, r=self.r, c=c, K=2)
        return Algorithm(method, initial_v=0, eps=self.eps) if self.eps else Algorithm(method)


MEMBERS = tuple(
    Member(panel, r, beta, eps)
    for panel, beta, eps in (("β = 0", 0.0, 0.0), ("β = 0.9", 0.9, 0.0), ("β = 0.9, eps = 1e-4", 0.9, EPS))
    for r in (0, 0.5, 1)
)


@dataclass(frozen=True, eq=False)
class Measurement:
    r"""The measurements of one method at numbers of steps T: one value for each.

    `uniform` is :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` with tau uniform, `weighted` the same with Theorem
    W's weights.
    """

    steps: Whole
    uniform: Array
    weighted: Array


def reading_steps(steps: int) -> Whole:
    """Whole numbers of steps up to T, eight a decade, from 10 on."""
    if not 10 <= steps <= MOST_STEPS:
        raise RunError(f"a measurement takes from 10 to {MOST_STEPS:.0e} steps, got {steps}")
    count = max(2, round(8 * math.log10(steps / 10)) + 1)
    return np.unique(np.rint(np.geomspace(10, steps, count)).astype(np.int64))


@compiled
def _advance(
    words: NDArray[np.uint64], x: Array, m: Array, v: Array, alphas: Array, beta: float, thetas: Array,
    rests: Array, eps: float, noise: float, means: Array,
) -> None:  # fmt: skip
    """Carry all seeds through a block; average |grad f|^(4/3) over the seeds at each step."""
    seeds, dimension = x.shape
    for k in range(alphas.size):
        alpha, theta, rest = alphas[k], thetas[k], rests[k]
        for i in range(seeds):
            # One bit a sign, from the upper end.
            bits, words[0, i], words[1, i] = next_word(words[0, i], words[1, i])
            square = 0.0
            for j in range(dimension):
                scale = 1 + x[i, j] * x[i, j]
                slope = 2 * x[i, j] / (scale * scale)
                square += slope * slope
                sign = 2.0 * np.float64((bits >> np.uint64(63 - j)) & np.uint64(1)) - 1.0
                g = slope + noise * sign
                v[i, j] = theta * v[i, j] + rest * (g * g)
                m[i, j] = beta * m[i, j] + (1 - beta) * g
                x[i, j] -= alpha * m[i, j] / (math.sqrt(v[i, j]) + eps)
            means[k] += square ** (2.0 / 3.0) / seeds


class Measuring(Work):
    """One method's measurement with a number of seeds, as a work; every method meets the same noise."""

    def __init__(self, member: Member, well: BoundedWell, steps: int, seeds: int, seed: int) -> None:
        if not 1 <= seeds <= MOST_SEEDS:
            raise RunError(f"the number of seeds must be from 1 to {MOST_SEEDS:,}, got {seeds}")
        self.member, self.well, self.steps = member, well, steps
        self.readings = reading_steps(steps)
        shape, method = (seeds, well.dimension), member.algorithm.method
        self.state = {
            "words": initial_words(seed, range(seeds)),
            "x": np.full(shape, well.start),
            "m": np.zeros(shape),
            "v": np.full(shape, 0.0 if member.eps else well.epsilon),
            "means": np.zeros(steps),
        }
        self._sequences = (method.alpha, method.theta, 1 - method.theta)

    def advance(self) -> None:
        """Go as far as a block goes."""
        start, state = self.next_t, self.state
        stop = min(start + _BLOCK, self.steps + 1)
        alpha, theta, rest = (one.values(start, stop) for one in self._sequences)
        _advance(
            state["words"], state["x"], state["m"], state["v"], alpha, self.member.beta, theta, rest,
            self.member.eps, self.well.noise, state["means"][start - 1 : stop - 1],
        )  # fmt: skip
        self.next_t = stop

    def measurement(self) -> Measurement:
        """Return what was found at each reading."""
        means = self.state["means"]
        uniform = np.cumsum(means)[self.readings - 1] / self.readings
        weighted = np.array([_weighted_mean(means[:last], self.member) for last in self.readings])
        return Measurement(self.readings, uniform**1.5, weighted**1.5)


def _weighted_mean(means: Array, member: Member) -> float:
    r"""Return the mean with Theorem W's weights, :math:`\pi_t = (1-\beta) Q_t`, Q as `theorems` has it."""
    method, steps = member.algorithm.method, len(means)
    theta = method.theta.values(1, steps + 1)
    weights = backward(method.alpha.values(1, steps + 1), member.beta / np.sqrt(theta))
    return float(weights @ means / weights.sum())


@dataclass(frozen=True, eq=False)
class Comparison:
    """One method, measured and bounded.

    `paper` is Theorem 1's bound at the same T (nan where it does not apply: eps > 0), `far_paper` at `FAR`;
    `sharper` is that of `theorem`, "W" or "E", on the weighted measurement; `trivial` needs no theorem, and
    `largest_square` is what the squared gradient cannot exceed.
    """

    member: Member
    measured: Measurement
    paper: Array
    theorem: str
    sharper: Array
    trivial: float
    far_paper: Array
    largest_square: float

    @property
    def holds(self) -> bool:
        """True where the measured value is below both bounds at every T."""
        below_paper = np.isnan(self.paper) | (self.measured.uniform <= self.paper)
        return bool(below_paper.all() and (self.measured.weighted <= self.sharper).all())

    @property
    def slopes(self) -> tuple[float, float]:
        """The exponents of T over the last two decades, measured and of the sharper bound."""
        return slope(self.measured.steps, self.measured.weighted), slope(self.measured.steps, self.sharper)


def slope(steps: Whole, values: Array) -> float:
    """Fit the exponent of T over the last two decades, by least squares on the logarithms; nan if there are fewer."""
    late = steps >= steps[-1] / 100
    if steps[0] > steps[-1] / 100:
        return math.nan
    return float(np.polyfit(np.log(steps[late]), np.log(values[late]), 1)[0])


def compare(member: Member, well: BoundedWell, measured: Measurement) -> Comparison:
    """Put the bounds beside what was measured."""
    problem, algorithm = well.problem, member.algorithm

    def paper(steps: Sequence[int] | Whole) -> Array:
        if member.eps:
            return np.full(len(steps), np.nan)
        return np.array([bound(algorithm.method, problem, int(one)).expectation for one in steps])

    found = [weighted_bound(Sequences.of_algorithm(algorithm, int(T)), problem) for T in measured.steps]
    theorem, sharper = "E" if member.eps else "W", np.array([one.l2 for one in found])
    return Comparison(
        member, measured, paper(measured.steps), theorem, sharper, problem.trivial_l2, paper(FAR), well.largest_square
    )


def run_measurements(
    well: BoundedWell, steps: int, seeds: int, seed: int = 0, *, members: Sequence[Member] = MEMBERS,
    progress: Progress | None = None, run: Run | None = None,
) -> list[Comparison]:  # fmt: skip
    """Measure every method from the same start with the same noise, or what is left of it in a run, and compare."""
    works = [Measuring(member, well, steps, seeds, seed) for member in members]
    carry_out(Stages(*works), run, progress)
    return [compare(one.member, well, one.measurement()) for one in works]


def claims(comparisons: Sequence[Comparison]) -> list[Claim]:
    """Judge the theorems and the rates of the corollary by the runs."""
    papers = [one for one in comparisons if not one.member.eps]
    by_panel = "; ".join(f"{panel}: {_factors(found)}" for panel, found in _panels(comparisons).items())
    falling = [one for one in papers if ga.certify(one.member.algorithm.method).rate is not None]
    slopes = "; ".join(
        f"{one.member.panel}, {one.member.label}: {one.slopes[0]:.2f} against {one.slopes[1]:.2f}" for one in falling
    )
    constant = [one for one in papers if one.member.r == 0]
    far = [math.log(one.far_paper[1] / one.far_paper[0]) / math.log(FAR[1] / FAR[0]) for one in constant]
    flat = bool(far) and max(map(abs, far)) < 0.01
    informative = [one for one in comparisons if one.sharper[-1] < one.trivial]
    # Where B/delta is above the largest square the probability is 1; below it this experiment says nothing.
    levels = [(delta, min(float(one.paper[-1]) / delta for one in papers)) for delta in DELTAS]
    sure = all(level >= papers[0].largest_square for _, level in levels)
    told = [f"delta = {delta:g}: {level:.2g} (promised for {promised(delta):.1%})" for delta, level in levels]
    return [
        Claim(
            "Theorem 1 bounds (E|grad f(x_tau)|^(4/3))^(3/2) at every T, and W and E do.",
            "Theorem 1; Theorems W and E",
            "supported" if all(one.holds for one in comparisons) else "contradicted",
            f"{sum(len(one.sharper) for one in comparisons)} readings of {len(comparisons)} methods; "
            f"bound/measured at the last T: {by_panel}",
        ),
        Claim(
            "|grad f(x_tau)|^2 <= B/delta with probability at least 1 - delta^(2/3).",
            "Theorem 2",
            "supported" if sure else "unclear",
            f"the squared gradient is nowhere above {papers[0].largest_square:.3g}; the smallest B/delta of "
            f"{len(papers)} methods at the last T: {', '.join(told)}",
        ),
        Claim(
            "The measured side falls at least as fast as the bound of a certified method.",
            "Corollary on the power family",
            "supported" if falling and all(map(_falls_as_fast, falling)) else "unclear",
            f"exponents of T over the last two decades, measured against Theorem W: {slopes}",
        ),
        Claim(
            "With constant theta the bound does not tend to 0.",
            "Corollary on constant theta",
            "supported" if flat else "unclear",
            "exponent of T in the paper's bound from 10^10 to 10^12: "
            + "; ".join(f"{one.member.panel}: {slope:.3f}" for one, slope in zip(constant, far, strict=True)),
        ),
        Claim(
            "A bound says more than what holds with no theorem at all.",
            "beyond the paper",
            "supported" if informative else "unclear",
            f"at the last T {len(informative)} of {len(comparisons)} methods have W or E below the trivial "
            f"bound, and {sum(bool(one.paper[-1] < one.trivial) for one in papers)} of {len(papers)} the "
            "paper's",
        ),
    ]


def _falls_as_fast(one: Comparison) -> bool:
    """Return whether the measured exponent is at most the bound's, up to 0.05 of noise."""
    measured, bounded = one.slopes
    return measured <= min(bounded, 0) + 0.05


def promised(delta: float) -> float:
    """Theorem 2's probability, 1 - delta^(2/3)."""
    return 1 - delta ** (2 / 3)


def _panels(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for one in comparisons:
        found.setdefault(one.member.panel, []).append(one)
    return found


def _factors(members: Sequence[Comparison]) -> str:
    sharper = [one.sharper[-1] / one.measured.weighted[-1] for one in members]
    text = f"{members[0].theorem} {min(sharper):.2g} to {max(sharper):.2g}"
    if not members[0].member.eps:
        paper = [one.paper[-1] / one.measured.uniform[-1] for one in members]
        text += f", the paper's {min(paper):.2g} to {max(paper):.2g}"
    return text


# Tables and figure ----------------------------------------------------------------------------------------


def rows(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Return a line a method, at the last T."""
    return [
        (
            one.member.panel, one.member.label, f"{one.measured.weighted[-1]:.3g}",
            f"{rounded_up(one.sharper[-1], 3)} ({one.theorem})",
            "none" if np.isnan(one.paper[-1]) else rounded_up(one.paper[-1], 3), rounded_up(one.trivial, 3),
            *(f"{slope:z.2f}" for slope in one.slopes), str(ga.certify(one.member.algorithm).rate or "none"),
        )
        for one in comparisons
    ]  # fmt: skip


def write_measurements(folder: Path, comparisons: Sequence[Comparison], occasion: Occasion) -> None:
    """Write figure, records, tables, claims and manifest."""
    plot_bound(comparisons, folder / "bound")
    at_last = ("measured", "W or E", "the paper's", "trivial", "slope measured", "slope W or E", "rate")
    columns = ("measured_uniform", "measured_weighted", "paper", "sharper", "theorem", "trivial")
    tables = {
        "records.csv": (("panel", "method", "T", *columns), _records(comparisons)),
        "outcomes.md": (("panel", "method", *at_last), rows(comparisons)),
    }
    write_results(folder, occasion, tables, claims(comparisons))


def _records(comparisons: Sequence[Comparison]) -> Iterator[Sequence[object]]:
    """Every point of the figure."""
    for one in comparisons:
        columns = (one.measured.uniform, one.measured.weighted, one.paper, one.sharper)
        for steps, *values in zip(one.measured.steps, *columns, strict=True):
            told = ["" if np.isnan(value) else f"{value:.9g}" for value in values]
            yield (one.member.panel, one.member.label, int(steps), *told, one.theorem, f"{one.trivial:.9g}")


def plot_bound(comparisons: Sequence[Comparison], stem: Path) -> tuple[Path, Path]:
    """Draw measured, bounded and trivial, one panel for each beta and eps."""
    panels = _panels(comparisons)
    height = 1 + len(panels) // 2
    with drawing(7.6, 3.3 * height) as figure:
        from matplotlib.lines import Line2D

        axes = figure.subplots(height, 2, squeeze=False, sharey=True).ravel()
        for axis, (panel, members) in zip(axes, panels.items(), strict=False):
            axis.set_title(panel)
            _draw_panel(axis, members)
        for axis in axes[len(panels) :]:
            axis.axis("off")  # the last has room for the legend
        for axis in axes[::2]:
            axis.set_ylabel(r"$(\mathbb{E}\,\|\nabla f(x_\tau)\|^{4/3})^{3/2}$")
        kinds: tuple[tuple[str, float, Any, str], ...] = (
            (GREY, 2.0, "-", "measured"), (GREY, 1.6, "--", "Theorem W (with eps: E)"),
            (GREY, 1.6, ":", "the paper's Theorem 1"), ("black", 1.0, "-", "with no theorem"),
            *((along_path(r), 2.4, "-", f"r = {r:g}") for r in sorted({one.member.r for one in comparisons})),
        )  # fmt: skip
        handles = [
            Line2D([], [], color=colour, linewidth=width, linestyle=dashes, label=label)
            for colour, width, dashes, label in kinds
        ]
        axes[-1].legend(handles=handles, loc="center")
        return save_figure(figure, stem)


def _draw_panel(axis: Axes, comparisons: Sequence[Comparison]) -> None:
    # Wide lines first: where two methods measure the same, both colours stay visible.
    for one, width in zip(comparisons, np.linspace(3.4, 1.4, len(comparisons)), strict=True):
        colour, steps = along_path(one.member.r), one.measured.steps
        axis.plot(steps, one.measured.weighted, color=colour, linewidth=width)
        axis.plot(steps, one.sharper, color=colour, linestyle="--", linewidth=1.6)
        axis.plot(steps, one.paper, color=colour, linestyle=":", linewidth=1.6)
    axis.axhline(comparisons[0].trivial, color="black", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("steps T")
