r"""Measured floors: what Adam's scaling costs on real networks, beside what is proved that it can cost at most.

Theorem E bounds the part of the gradient that a constant beta2 leaves by a floor, for every problem; on the problem of
Proposition T a part of it really stays. What it is on one run can be measured (Theorem K.0). With
:math:`D(g) = \sqrt{\theta v_{t-1} + (1-\theta) g^2} + e_t`, a :math:`\hat D` that knows nothing of the batch, and
:math:`u_{t-1} = -m_{t-1}/D_{t-1}`,

.. math:: \hat\varepsilon(g) = \frac g{\hat D} - \frac g{D(g)} +
    \Big(\frac{\beta D_{t-1}}{D(g)} - \gamma_t\Big) \frac{u_{t-1}}{1-\beta}

has the bias of Adam's direction as its mean. Two independent batches g and h at one point give

.. math:: F: \sum_k \hat D_k\,\hat\varepsilon_k(g)\,\hat\varepsilon_k(h), \qquad
    C: \sum_k \tfrac12\big(h_k\hat\varepsilon_k(g) + g_k\hat\varepsilon_k(h)\big), \qquad
    X: \sum_k \frac{g_k h_k}{\hat D_k},

each unbiased. F over :math:`S = \sum_k\hat D_k` is the floor in the unit in which 1 says nothing; C over X is the share
of the descent that the scaling takes. Adam with a constant rate and constant betas, batches drawn with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from generic_adam.answers.figures import BLUE, GREY, ORANGE, VERMILION, drawing, save_figure
from generic_adam.errors import RunError
from generic_adam.theorems.horizon import constant_floor
from generic_adam.theorems.measured import drawn
from generic_adam.theorems.measured import weights as shares
from generic_adam.theorems.tight import stall
from generic_adam_laboratory.data.datasets import Dataset, Text, load
from generic_adam_laboratory.extras import for_training
from generic_adam_laboratory.runs.records import Occasion, write_results
from generic_adam_laboratory.runs.run import Progress, Run, Work, carry_out

if TYPE_CHECKING:
    import torch

LR, BETA1, BETA2, EPS = 1e-3, 0.9, (0.95, 0.99, 0.999), 1e-8
RATE: Final = 0.1
"""The share of the steps that is measured."""
START: Final = 0.25
"""The share of the run that is left out at its beginning, which is another matter."""
LEAST: Final = 0.1
"""In D-hat a second moment below LEAST^2 of the mean counts as that."""

COLUMNS: Final = (
    "network", "batch", "beta2", "seed", "measured", "scale", "floor", "floor_error", "one_batch", "size",
    "size_error", "share", "share_error",
)  # fmt: skip
_MEASURED: Final = COLUMNS[4:]


@dataclass(frozen=True)
class Case:
    """One training: a network on a data set, with Adam's second beta."""

    network: str
    width: int
    dataset: str
    batch: int
    steps: int
    beta2: float
    seed: int

    @property
    def title(self) -> str:
        """Network and batch, for a table."""
        name = {"lenet": "LeNet", "resnet18": f"ResNet-18, width {self.width}", "gpt": f"GPT, width {self.width}"}
        return f"{name[self.network]}, batch {self.batch}"


def cases(seeds: int, *, quick: bool = False) -> list[Case]:
    """Lay out three networks with two batch sizes each, three beta2 and the seeds; one small network if quick."""
    if seeds < 1:
        raise RunError(f"seeds is {seeds}, expected at least 1")
    trained = [
        ("lenet", 1, "mnist", 64, 1_000),
        ("lenet", 1, "mnist", 128, 1_000),
        ("resnet18", 8, "cifar100", 32, 300),
        ("resnet18", 8, "cifar100", 64, 300),
        ("gpt", 64, "stdlib", 8, 1_000),
        ("gpt", 64, "stdlib", 16, 1_000),
    ]
    if quick:
        trained = [("lenet", 1, "digits", 32, 160)]
    return [Case(*one, beta2, seed) for seed in range(seeds) for one in trained for beta2 in BETA2]


class Floors(Work):
    """Train each case and measure its floor; a block is one training."""

    def __init__(self, made: Sequence[Case], data: Path | None) -> None:
        self.cases, self._data = list(made), data
        self.steps = len(self.cases)
        self.state = {"found": np.full((self.steps, len(_MEASURED)), np.nan)}

    def advance(self) -> None:
        """Do the next training."""
        case = self.cases[self.next_t - 1]
        self.state["found"][self.next_t - 1] = measure(case, load(case.dataset, self._data))
        self.next_t += 1


def measure(case: Case, dataset: Dataset | Text) -> list[float]:
    """Train one case; return `_MEASURED`: sums over the measured steps, each weighted as in Theorem K.0."""
    with for_training():
        import torch
        from torch.nn import functional as F  # noqa: N812 - the name everyone knows

    from generic_adam_laboratory import networks
    from generic_adam_laboratory.training import samples

    train, _ = samples(dataset, case.batch, "cpu")
    network = networks.build(
        case.network, channels=dataset.channels, classes=dataset.classes, width=case.width, seed=case.seed
    )
    lots = torch.Generator().manual_seed(case.seed)
    everything = train.order(lots)
    weights = list(network.parameters())
    optimizer = torch.optim.Adam(weights, lr=LR, betas=(BETA1, case.beta2), eps=EPS)

    def gradients() -> list[torch.Tensor]:
        inputs, labels = train.batch(everything[torch.randint(len(everything), (case.batch,), generator=lots)])
        return list(torch.autograd.grad(F.cross_entropy(network(inputs), labels), weights))

    t = np.arange(1, case.steps + 1)
    mass = 1 - case.beta2**t  # of the second moment; torch divides by its root
    alpha = LR * np.sqrt(mass) / (1 - BETA1**t)
    gamma = BETA1 * np.sqrt(np.concatenate([[0.0], mass[:-1]]) / mass)
    first = int(START * case.steps)
    weighing = shares(alpha[first:], BETA1, gamma[first:])
    chosen = dict(takewhile(lambda one: one[0] < case.steps - first, drawn(RATE, case.seed)))
    rows = []
    for step in range(case.steps):
        if (stands_for := chosen.get(step - first)) is not None:
            buffers = [(one, one.clone()) for one in network.buffers()]
            state = [(optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"]) for p in weights]
            seen = bias_seen(gradients(), gradients(), state, case.beta2, mass[step - 1], mass[step], gamma[step])
            rows.append((stands_for * weighing.weight[step - first] / weighing.total, seen))
            for one, was in buffers:  # batch norm's running means
                one.copy_(was)
        for weight, gradient in zip(weights, gradients(), strict=True):
            weight.grad = gradient
        optimizer.step()
    share = np.array([one for one, _ in rows])[:, None]
    terms = share * np.array([seen for _, seen in rows])
    scale, floor, one_batch, size, taken = terms.sum(axis=0)
    # Of this run: given its path, the batches of different steps are independent. Raw squares: on the large side.
    _, floor_error, _, size_error, taken_error = np.sqrt((terms**2).sum(axis=0))
    error = math.hypot(taken_error, taken / size * size_error) / size
    return [
        len(rows), scale, floor / scale, floor_error / scale, one_batch / scale, size / scale, size_error / scale,
        taken / size, error,
    ]  # fmt: skip


def bias_seen(
    g: Sequence[torch.Tensor],
    h: Sequence[torch.Tensor],
    state: Sequence[tuple[torch.Tensor, torch.Tensor]],
    theta: float,
    mass: float,
    new_mass: float,
    gamma: float,
) -> list[float]:
    """Return S, F, F from one batch, X and C of a point, from two batches' gradients and Adam's state before the step.

    Args:
        g: a gradient for each tensor.
        h: another, from an independent batch.
        state: m and v of each tensor.
        theta: beta2.
        mass: what the weights of v add up to before the step.
        new_mass: and after it.
        gamma: the share of the direction that is inherited.
    """
    import torch

    before, after, q = EPS * math.sqrt(mass), EPS * math.sqrt(new_mass), 1 - theta
    mean = sum(float(v.sum()) for _, v in state) / sum(v.numel() for _, v in state) / mass
    sums = torch.zeros(5, dtype=torch.float64)
    for tensors in zip(g, h, *zip(*state, strict=True), strict=True):
        a, b, m, v = (tensor.double() for tensor in tensors)
        hat = torch.sqrt(theta * v + q * torch.clamp(v / mass, min=LEAST**2 * mean)) + after
        last = torch.sqrt(v) + before
        inherited = -m / last / (1 - BETA1)

        def misled(x: torch.Tensor, v=v, hat=hat, last=last, inherited=inherited) -> torch.Tensor:
            made = torch.sqrt(theta * v + q * x * x) + after
            return x / hat - x / made + (BETA1 * last / made - gamma) * inherited

        e, f = misled(a), misled(b)
        squares = (hat * (e * e + f * f)).sum() / 2
        sums += torch.stack([hat.sum(), (hat * e * f).sum(), squares, (a * b / hat).sum(), ((b * e + a * f) / 2).sum()])
    return sums.tolist()


def run_floors(
    seeds: int, data: Path | None, *, quick: bool = False, run: Run | None = None, progress: Progress | None = None
) -> Floors:
    """Measure every case."""
    work = Floors(cases(seeds, quick=quick), data)
    carry_out(work, run, progress)
    return work


def by_kind(work: Floors) -> dict[tuple[str, float], np.ndarray]:
    """Return the rows of the seeds for each network, batch and beta2."""
    kinds = [(case.title, case.beta2) for case in work.cases]
    return {kind: work.state["found"][[one == kind for one in kinds]] for kind in dict.fromkeys(kinds)}


def _mean(rows: np.ndarray, name: str) -> tuple[float, float]:
    """Return the mean over seeds, with the standard error that the runs state."""
    errors = rows[:, _MEASURED.index(f"{name}_error")]
    return float(rows[:, _MEASURED.index(name)].mean()), float(np.sqrt((errors**2).sum())) / len(rows)


HEADINGS: Final = (
    "run", "beta2", "measured floor", "upper, one batch", "share of the descent", "a problem where it stays",
    "proved, every problem",
)  # fmt: skip


def outcomes(work: Floors) -> list[list[str]]:
    """Return a row for each network, batch and beta2: the floor as measured, and as it is proved."""
    rows = []
    for (title, beta2), found in by_kind(work).items():
        (floor, floor_error), (share, share_error) = _mean(found, "floor"), _mean(found, "share")
        rows.append(
            [
                title, f"{beta2:g}", f"{floor:.1e} ± {floor_error:.0e}",
                f"{found[:, _MEASURED.index('one_batch')].mean():.1e}",
                f"{100 * share:.1f} ± {100 * share_error:.1f} %",
                f"{stall(BETA1, beta2).size:.3f}", f"{constant_floor(BETA1, beta2).noise:.3f}",
            ]
        )  # fmt: skip
    return rows


_LOWEST: Final = 1e-6  # of the figure


def draw_floors(work: Floors, stem: Path) -> tuple[Path, Path]:
    """Draw the measured floors of each network beside the proved ones."""
    found = by_kind(work)
    titles = list(dict.fromkeys(title for title, _ in found))
    with drawing(7.2, 3.6) as figure:
        axes = figure.subplots()
        betas = list(dict.fromkeys(beta2 for _, beta2 in found))
        places = np.arange(len(betas))
        for place, beta2 in zip(places, betas, strict=True):
            for value, colour, label in (
                (constant_floor(BETA1, beta2).noise, VERMILION, "proved: at most, on every problem"),
                (stall(BETA1, beta2).size, ORANGE, "a problem on which so much really stays"),
            ):
                axes.plot([place - 0.4, place + 0.4], [value, value], color=colour, label=None if place else label)
        for number, title in enumerate(titles):
            offset = (number - (len(titles) - 1) / 2) * 0.7 / max(1, len(titles))
            values, errors = np.array([_mean(found[title, beta2], "floor") for beta2 in betas]).T
            lows, tops = np.maximum(values - 2 * errors, _LOWEST), np.maximum(values, _LOWEST) + 2 * errors
            axes.vlines(places + offset, lows, tops, color=GREY, linewidth=1)
            marks = "osD^vP"[number % 6]
            axes.plot(places + offset, np.maximum(values, _LOWEST), marks, color=BLUE, markersize=5, label=title)
        axes.set(yscale="log", ylim=(_LOWEST, 1), ylabel="share of the size that gradients have anyway")
        axes.set_xticks(places, [f"beta2 = {beta2:g}" for beta2 in betas])
        figure.suptitle("What a constant beta2 leaves: measured on runs, and proved", x=0.01, ha="left", weight="bold")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small")
        return save_figure(figure, stem)


def write_floors(folder: Path, work: Floors, occasion: Occasion) -> None:
    """Write figure, records, the table and the manifest."""
    draw_floors(work, folder / "floors")
    records: list[Sequence[Any]] = [
        (case.title, case.batch, case.beta2, case.seed, *map(float, row))
        for case, row in zip(work.cases, work.state["found"], strict=True)
    ]
    tables: dict[str, Any] = {"outcomes.md": (list(HEADINGS), outcomes(work)), "records.csv": (COLUMNS, records)}
    write_results(folder, occasion, tables, [])
