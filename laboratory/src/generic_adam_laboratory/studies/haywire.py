r"""Adam goes haywire after it had converged: the failure that people know, its cause, and what prevents it.

Least squares with more inputs than points, full batch, so that the loss can reach zero. It does, to rounding: at
step 300 it is below 1e-8 and falls on. Some thousand steps later it is back at 1e-2. Between the two nothing
happens that a loss curve shows. The gradients are tiny by then, :math:`g^2 \ll v`, and so v falls as fast as it
can, like :math:`\theta^t` (theta is beta2). The step that a gradient causes is lr over the root of v: it grows like
:math:`\theta^{-t/2}`, without end, until lr times the curvature along the scaled step passes

.. math:: \frac{2 + 2 \beta}{1 - \beta} = 38 \quad (\beta = 0.9),

where gradient descent with this momentum leaves a quadratic bowl. A learning rate that falls like a power only
delays it: v falls geometrically. With :math:`\theta_t = 1 - 1/t` v falls no faster than 1/t, which a rate that falls
like :math:`1/\sqrt t` balances exactly: the paper's sufficient condition, as physics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generic_adam.answers.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, drawing, save_figure
from generic_adam.errors import RunError
from generic_adam.methods import Algorithm, catalogue
from generic_adam.theorems.certificate import certify_algorithm
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.runs.records import Claim, Occasion, write_results
from generic_adam_laboratory.runs.run import Progress, Run, Stages, Work, carry_out

Array = NDArray[np.float64]

POINTS, INPUTS = 64, 1000
BETA: Final = 0.9
EDGE: Final = (2 + 2 * BETA) / (1 - BETA)
"""lr times the curvature along the scaled step, beyond which momentum BETA leaves a quadratic bowl."""
ARRIVED: Final = 1e-8
"""A loss below this has converged; above it again, it has left."""
SETTLED: Final = 500
"""From this step on a loss that leaves is no transient, and from here the countdown is made."""
EVERY: Final = 20
"""Steps between two measurements of the curvature."""
LR: Final = 1e-3

_BLOCK = 1000


@dataclass(frozen=True)
class Change:
    """Adam with lr 1e-3, or one change of it; alpha and theta as text, `STEPS` for the length of the run."""

    label: str
    alpha: str = "0.001"
    theta: str = "0.999"
    eps: float = 1e-8

    def algorithm(self, steps: int) -> Algorithm:
        """Return it as data, with torch's bias correction and eps."""
        alpha, theta = (text.replace("STEPS", str(steps)) for text in (self.alpha, self.theta))
        return catalogue.adamw(lr=alpha, beta=BETA, theta=theta, eps=self.eps, weight_decay=0)


FALLING: Final = "0.001 * min(1, sqrt(1000/t))"
RISING: Final = "max(0.999, 1 - 1/t)"
ADAM = Change("Adam")
FALLS, RISES = Change("lr falls only", FALLING), Change("beta2 rises only", theta=RISING)
REPAIRED = Change("both: lr falls, beta2 rises", FALLING, RISING)
CURED_BY_EPS = Change("eps = 0.1", eps=0.1)
CHANGES: Final = (
    ADAM,
    Change("eps = 1e-3", eps=1e-3),
    Change("eps = 1e-2", eps=1e-2),
    CURED_BY_EPS,
    Change("cosine to a tenth", "0.00055 + 0.00045 * cos(pi * t / STEPS)"),
    FALLS,
    RISES,
    REPAIRED,
    Change("beta2 = 0.95", theta="0.95"),
)


class Training(Work):
    """Train one change on the problem of one seed, in float32, from w = 0.

    The loss is the sum of the squared residuals, measured before each step; `product` is lr times the largest
    curvature along the scaled step, every `EVERY` steps.
    """

    def __init__(self, change: Change, seed: int, steps: int) -> None:
        self.change, self.seed, self.steps = change, seed, steps
        draw = np.random.default_rng(seed)
        self._x = draw.standard_normal((POINTS, INPUTS)).astype(np.float32)
        self._y = draw.standard_normal(POINTS).astype(np.float32)
        self._algorithm = change.algorithm(steps)
        self.state = {name: np.zeros(INPUTS, np.float32) for name in ("w", "m", "v")} | {
            "loss": np.full(steps, np.nan),
            "product": np.full(steps // EVERY, np.nan),
        }

    @property
    def marks(self) -> NDArray[np.int64]:
        """The steps at which the curvature is measured."""
        return EVERY * np.arange(1, self.steps // EVERY + 1)

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of the loss's second derivative."""
        return _curvature(self._x, np.ones(INPUTS, np.float32))

    def advance(self) -> None:
        """Do a thousand steps."""
        start, stop = self.next_t, min(self.next_t + _BLOCK, self.steps + 1)
        method, x, y = self._algorithm.method, self._x, self._y
        alphas, thetas, epses = (
            one.values(start, stop).astype(np.float32) for one in (method.alpha, method.theta, self._algorithm.eps)
        )
        w, m, v = (self.state[name] for name in ("w", "m", "v"))
        # Not @: the threads of a BLAS wait for one another, and on so little work that is all they do.
        times = np.einsum
        beta, one = np.float32(BETA), np.float32(1)
        for t, alpha, theta, eps in zip(range(start, stop), alphas, thetas, epses, strict=True):
            residual = times("ij,j->i", x, w) - y
            self.state["loss"][t - 1] = float(residual @ residual)
            g = times("ij,i->j", x, residual) * np.float32(2)
            m *= beta
            m += (one - beta) * g
            v *= theta
            v += (one - theta) * g * g
            scale = np.sqrt(v) + eps
            if t % EVERY == 0:
                # The first moment's correction belongs to m, which has forgotten its start by the first mark.
                self.state["product"][t // EVERY - 1] = float(alpha) * _curvature(x, scale)
            w -= alpha * m / scale
        self.next_t = stop


def _curvature(x: NDArray[np.float32], scale: NDArray[np.float32]) -> float:
    """Return the largest eigenvalue of P^(-1/2) H P^(-1/2), P = diag(scale), from the 64 x 64 matrix that shares it."""
    inverse = 1 / scale.astype(np.float64)
    return 2 * float(np.linalg.eigvalsh((x * inverse) @ x.T.astype(np.float64))[-1])


def left_at(loss: Array) -> int | None:
    """Return the first step after `SETTLED` at which a loss that had arrived is above `ARRIVED` again."""
    arrived = np.flatnonzero(loss < ARRIVED)
    if not arrived.size:
        return None
    begin = max(int(arrived[0]), SETTLED)
    out = np.flatnonzero(loss[begin:] > ARRIVED)
    return begin + 1 + int(out[0]) if out.size else None


def foretold(product: float, steps: int) -> Array:
    r"""Foretell lr times curvature of Adam from its value at step `SETTLED` to the step at which it passes `EDGE`.

    While v falls freely it is :math:`v_{500} \theta^{t-500}`, and its bias correction is known: for the product c,
    :math:`c_t = c_{500} \sqrt{(1 - \theta^t)/(1 - \theta^{500})}\, \theta^{-(t-500)/2}`.
    """
    t, theta = np.arange(SETTLED, steps + 1), float(ADAM.theta)
    line = product * np.sqrt((1 - theta**t) / (1 - theta**SETTLED)) * theta ** (-(t - SETTLED) / 2)
    return line[: np.count_nonzero(line < EDGE) + 1]


def countdown(product: float, steps: int) -> int | None:
    """Foretell the step at which lr times curvature passes `EDGE`; None if it does not before the last."""
    line = foretold(product, steps)
    return SETTLED + line.size - 1 if line[-1] >= EDGE else None


# In torch, where a network is no longer linear and a batch no longer whole -----------------------------------


@dataclass(frozen=True)
class Elsewhere:
    """A setting of torch in which failure and cure are tried again: inputs, hidden units (0: linear), batch."""

    label: str
    inputs: int
    hidden: int
    batch: int


ELSEWHERE: Final = (
    Elsewhere("tanh network, full batch", 100, 32, POINTS),
    Elsewhere("tanh network, batches of 32", 100, 32, 32),
    Elsewhere("linear, batches of 16", INPUTS, 0, 16),
)


class Carried(Work):
    """Train torch's Adam and the repaired method in each setting for each seed; a block is one whole training."""

    def __init__(self, seeds: int, length: int) -> None:
        self.runs = [
            (where, change, seed) for where in ELSEWHERE for change in (ADAM, REPAIRED) for seed in range(seeds)
        ]
        self.steps = len(self.runs)
        self.state = {"loss": np.full((self.steps, length), np.nan)}

    def advance(self) -> None:
        """Do the next training."""
        self.state["loss"][self.next_t - 1] = _trained(*self.runs[self.next_t - 1], self.state["loss"].shape[1])
        self.next_t += 1


def _trained(where: Elsewhere, change: Change, seed: int, steps: int) -> Array:
    """Return the loss on all points before each step of one training in torch."""
    with for_training():
        import torch

    from generic_adam.torch import GenericAdam

    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(POINTS, where.inputs, generator=draw)
    y = torch.randn(POINTS, generator=draw)
    sizes = [(where.inputs, where.hidden or 1)] + ([(where.hidden, 1)] if where.hidden else [])
    # The linear problem starts from 0, as in NumPy; a network has to be asymmetric.
    weights = [
        (torch.randn(size, generator=draw) / size[0] ** 0.5 if where.hidden else torch.zeros(size)).requires_grad_()
        for size in sizes
    ]
    if change is ADAM:
        optimizer: Any = torch.optim.Adam(weights, lr=1e-3, betas=(BETA, 0.999), eps=1e-8)
    else:
        optimizer = GenericAdam.from_method(weights, change.algorithm(steps))
    losses = np.empty(steps)

    def residual(rows: torch.Tensor) -> torch.Tensor:
        out = x[rows] @ weights[0]
        return ((torch.tanh(out) @ weights[1]) if where.hidden else out).squeeze(1) - y[rows]

    everything = torch.arange(POINTS)
    for step in range(steps):
        with torch.no_grad():
            losses[step] = residual(everything).square().sum()
        rows = everything if where.batch == POINTS else torch.randperm(POINTS, generator=draw)[: where.batch]
        optimizer.zero_grad()
        residual(rows).square().sum().backward()
        optimizer.step()
    return losses


# The experiment -----------------------------------------------------------------------------------------------


def run_haywire(
    steps: int, seeds: int, carried: int, *, run: Run | None = None, progress: Progress | None = None
) -> tuple[list[Training], Carried]:
    """Train every change on every seed's problem, then the settings of torch for `carried` steps each."""
    if seeds < 1:
        raise RunError(f"seeds is {seeds}, expected at least 1")
    if min(steps, carried) < 2 * SETTLED:
        raise RunError(f"{min(steps, carried)} steps, expected at least {2 * SETTLED}: before, nothing has settled")
    trainings = [Training(change, seed, steps) for seed in range(seeds) for change in CHANGES]
    elsewhere = Carried(min(seeds, 3), carried)
    carry_out(Stages(*trainings, elsewhere), run, progress)
    return trainings, elsewhere


def by_change(trainings: Sequence[Training]) -> dict[Change, list[Training]]:
    """Return the trainings of each change that was made, seeds in their order."""
    made = dict.fromkeys(one.change for one in trainings)
    return {change: [one for one in trainings if one.change == change] for change in made}


def _steps_told(found: Sequence[int | None]) -> str:
    """Return the median of the steps and their range, or on how many seeds it never happened."""
    there = [one for one in found if one is not None]
    if not there:
        return "never"
    told = f"{median(there):,.0f}" + (f" ({min(there):,} to {max(there):,})" if len(there) > 1 else "")
    return told if len(there) == len(found) else f"{told}; never on {len(found) - len(there)} of {len(found)}"


def _left(loss: Array) -> str | int | None:
    return left_at(loss) if (loss < ARRIVED).any() else "not there"


def outcomes(trainings: Sequence[Training]) -> list[tuple[str, ...]]:
    """Return a row a change: when its loss leaves, how bad it becomes, how near the edge it comes, its certificate."""
    rows = []
    for change, runs in by_change(trainings).items():
        left = [_left(one.state["loss"]) for one in runs]
        never_there = left.count("not there")
        steps = [one for one in left if not isinstance(one, str)]
        told = _steps_told(steps) if not never_there else "never that low"
        worst = max(float(one.state["loss"][SETTLED:].max()) for one in runs)
        most = max(float(one.state["product"][SETTLED // EVERY :].max()) for one in runs)
        verdict = certify_algorithm(change.algorithm(runs[0].steps)).verdict
        rows.append((change.label, told, f"{worst:.1e}", f"{most:.1f}", str(verdict)))
    return rows


def least_eps(training: Training) -> float:
    """Return the eps above which lr times curvature stays below `EDGE` even where v is 0: lr times that of the loss."""
    return LR * training.curvature / EDGE


def countdowns(trainings: Sequence[Training]) -> list[tuple[int, float, int | None, int | None]]:
    """Return for each seed of Adam the product at `SETTLED`, the step foretold, and the step at which the loss left."""
    rows = []
    for one in by_change(trainings)[ADAM]:
        product = float(one.state["product"][SETTLED // EVERY - 1])
        rows.append((one.seed, product, countdown(product, one.steps), left_at(one.state["loss"])))
    return rows


def carried_over(elsewhere: Carried) -> list[tuple[str, ...]]:
    """Return a row for each setting and method of torch."""
    rows = []
    for where in ELSEWHERE:
        for change in (ADAM, REPAIRED):
            losses = [
                loss
                for (at, method, _), loss in zip(elsewhere.runs, elsewhere.state["loss"], strict=True)
                if (at, method) == (where, change)
            ]
            left = [_left(loss) for loss in losses]
            there = [one for one in left if not isinstance(one, str)]
            told = _steps_told(there) if there else "never that low"
            worst = max(float(loss[SETTLED:].max()) for loss in losses)
            rows.append((where.label, change.label, told, f"{worst:.1e}", f"{median(loss[-1] for loss in losses):.1e}"))
    return rows


def claims(trainings: Sequence[Training], elsewhere: Carried) -> list[Claim]:
    """Return the sentences of the story, each with what was seen over all seeds."""
    runs, source = by_change(trainings), "the first story of the documentation"
    steps = trainings[0].steps
    left = {change: [left_at(one.state["loss"]) for one in them] for change, them in runs.items()}
    misses = [
        (abs(when - left) / left, left) for _, _, when, left in countdowns(trainings) if when is not None and left
    ]
    delays = [one for one in CHANGES[1:7] if one != CURED_BY_EPS]
    leaves = [left[change].count(None) == 0 for change in delays]

    def judged(holds: bool) -> str:
        return "supported" if holds else "contradicted"

    return [
        Claim(
            "Adam converges, and its loss leaves again.", source,
            judged(None not in left[ADAM]), f"in {steps:,} steps it left at {_steps_told(left[ADAM])}",
        ),
        Claim(
            "A falling lr alone, a rising beta2 alone, a cosine and a small eps only delay it.", source,
            judged(all(leaves)), "; ".join(f"{change.label}: {_steps_told(left[change])}" for change in delays),
        ),
        Claim(
            "With both parts of the condition it does not happen.", source,
            judged(left[REPAIRED].count(None) == len(left[REPAIRED])),
            f"in {steps:,} steps: {_steps_told(left[REPAIRED])}; worst loss after step {SETTLED} "
            f"{max(float(one.state['loss'][SETTLED:].max()) for one in runs[REPAIRED]):.1e}",
        ),
        Claim(
            f"The product at step {SETTLED} foretells the step of the failure to 2 %.", source,
            judged(len(misses) == len(left[ADAM]) and max(misses)[0] <= 0.02),
            f"off by {max(misses)[0]:.1%} at most over {len(misses)} seeds" if misses else "it did not happen",
        ),
        Claim(
            "The cure carries over to every setting that was tried in torch.", source,
            judged(all(row[2] == "never" for row in carried_over(elsewhere) if row[1] == REPAIRED.label)),
            "; ".join(f"{row[0]}: {row[2]}" for row in carried_over(elsewhere) if row[1] == REPAIRED.label),
        ),
    ]  # fmt: skip


def write_haywire(folder: Path, found: tuple[Sequence[Training], Carried], occasion: Occasion) -> None:
    """Write figure, records, tables, claims and manifest."""
    trainings, elsewhere = found
    draw_haywire(trainings, folder / "haywire")
    left = f"loss leaves {ARRIVED:g} at step"
    told = [
        (
            str(seed),
            f"{product:.2f}",
            _whole(when),
            _whole(at),
            f"{(when - at) / at:+.1%}" if when and at else "–",
            f"{least_eps(trainings[seed * len(CHANGES)]):.3f}",
        )
        for seed, product, when, at in countdowns(trainings)
    ]
    tables: Mapping[str, Any] = {
        "outcomes.md": (
            ["change", left, f"worst loss after step {SETTLED}", "lr x curvature, most", "long run"],
            outcomes(trainings),
        ),
        "countdown.md": (
            ["seed", f"lr x curvature at {SETTLED}", "foretold", "left", "off by", "eps that cures"],
            told,
        ),
        "elsewhere.md": (["setting", "method", left, f"worst after {SETTLED}", "last loss"], carried_over(elsewhere)),
        "records.csv": (
            ("method", "seed", "step", "loss", "lr_curvature"),
            (
                (one.change.label, one.seed, int(t), float(one.state["loss"][t - 1]), float(product))
                for one in trainings
                for t, product in list(zip(one.marks, one.state["product"], strict=True))[::5]
            ),
        ),
    }
    write_results(folder, occasion, tables, claims(trainings, elsewhere))


def _whole(step: int | None) -> str:
    return "never" if step is None else f"{step:,}"


def draw_haywire(trainings: Sequence[Training], stem: Path) -> tuple[Path, Path]:
    """Draw seed 0: the loss, and lr times curvature against the edge, with the countdown from step `SETTLED`."""
    runs = {change: them[0] for change, them in by_change(trainings).items()}
    steps = trainings[0].steps
    styles = {
        ADAM: (VERMILION, "Adam, lr 1e-3, betas 0.9 and 0.999"),
        FALLS: (ORANGE, "lr falls only"),
        RISES: (GREEN, "beta2 rises only"),
        REPAIRED: (BLUE, "both: the paper's condition"),
    }
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    with drawing(7.6, 6.2) as figure:
        losses, products = figure.subplots(2, 1, sharex=True)
        for change, (colour, label) in styles.items():
            one = runs[change]
            marks, thin = one.marks, max(1, one.marks.size // 1500)
            # The worst loss since the mark before: a spike between two marks is seen.
            worst = one.state["loss"][: marks[-1]].reshape(-1, EVERY).max(axis=1)
            losses.semilogy(marks[::thin], worst[::thin], color=colour, label=label, linewidth=1.1)
            products.semilogy(marks[::thin], one.state["product"][::thin], color=colour, linewidth=1.1)
        adam = runs[ADAM]
        product = float(adam.state["product"][SETTLED // EVERY - 1])
        when = countdown(product, steps)
        if when is not None:
            line = foretold(product, steps)
            products.semilogy(
                np.arange(SETTLED, when + 1),
                line,
                color="black",
                linestyle=(0, (2, 2)),
                label=f"foretold at step {SETTLED}",
            )
            for panel in (losses, products):
                panel.axvline(when, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
        products.axhline(EDGE, color=GREY, linewidth=1, label=f"the edge, {EDGE:.0f}")
        losses.set(title="Loss", ylim=(1e-14, 1e3))
        products.yaxis.set_major_locator(FixedLocator([2, 5, 10, 20, 38]))
        products.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
        products.yaxis.set_minor_formatter(NullFormatter())
        products.set(title="lr × curvature along the scaled step", xlabel="step", xscale="log", xlim=(100, steps))
        products.legend(loc="lower right")
        figure.suptitle(
            f"Adam leaves a minimum it had reached: {POINTS} points, {INPUTS} inputs, full batch",
            x=0.01, ha="left", fontweight="bold",
        )  # fmt: skip
        losses.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), ncols=2)
        return save_figure(figure, stem)
