"""Measured effects of changes to a run: data, cited from results/, and never a proof.

Each row compares the last validation losses of two lines of one study, seed by seed, so that a seed's own luck drops
out. A test reads the records again and compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from generic_adam.parts import Part


@dataclass(frozen=True)
class Measured(Part):
    """The effect of a change on the validation loss of one network, in percent: below 0 is better.

    Attributes:
        source: the study, a folder of results/.
        network: the network that was trained.
        steps: the number of steps of each run.
        seeds: the number of pairs of runs.
        line: the label of the changed runs there.
        against: the label of the runs without the change.
        effect: the median over the seeds.
        low: the least.
        high: the largest.
    """

    source: str
    network: str
    steps: int
    seeds: int
    line: str
    against: str
    effect: float
    low: float
    high: float


@dataclass(frozen=True)
class Worth(Part):
    """The evidence that a change is worth its cost.

    Attributes:
        measured: its measured effects; empty where it was not measured here.
        reported: the warnings of others, one phrase each.
    """

    measured: tuple[Measured, ...] = ()
    reported: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """True if it was measured on any network."""
        return bool(self.measured)


def worth_of(beta2: float, *, to: float | None = None, kept: float | None = None) -> Worth:
    """Return what is known of a change of a run with a constant beta2.

    Args:
        beta2: its value before the change.
        to: the constant value after it.
        kept: the share of the run after which lr falls as 1/sqrt(step) while beta2 rises to 1.
    """
    if to is not None:
        warned = beta2 <= 0.95 and to >= 0.999
        return Worth(_RAISED.get((beta2, to), ()), (_SPIKES,) if warned else ())
    # Runs that kept nothing tell nothing of those that keep a part, nor those that kept a half of a smaller part.
    some = 0.0 if kept is None else kept
    shares = [share for share in (0.75, 0.5) if some >= share] or [0.0] * (kept is not None and some < _NOTHING_KEPT)
    return Worth(next((_KEPT[beta2, share] for share in shares if (beta2, share) in _KEPT), ()))


_NOTHING_KEPT = 0.05
_SPIKES = "a 17B language model had loss spikes at 0.999 and fewer at 0.95 (AI-Hypercomputer/maxtext#17)"
_SMALL = ("gpt-changes", "a small GPT", 2_000, 3)
_GPT = ("gpt-cost", "a GPT twice as wide", 2_000, 3)
_NARROW = ("resnet18-changes", "a ResNet-18 of width 4", 1_564, 3)
_CHANGED = ("lenet-changes", "LeNet", 18_760, 3)
_RESNET = ("resnet18-cost", "ResNet-18", 3_910, 3)
_LENET = ("lenet-cost", "LeNet", 18_760, 3)
_COSINE, _CONSTANT = "AdamW cosine, 0.95", "AdamW constant, 0.999"
_RAISED: dict[tuple[float, float], tuple[Measured, ...]] = {
    (0.95, 0.98): (
        Measured(*_SMALL, "AdamW cosine, 0.98", _COSINE, -0.34, -1.57, 0.49),
        Measured(*_NARROW, "AdamW cosine, 0.98", _COSINE, -0.03, -0.08, 0.65),
        Measured(*_CHANGED, "AdamW cosine, 0.98", _COSINE, -9.51, -14.24, 5.66),
    ),
    (0.95, 0.999): (
        Measured(*_SMALL, "AdamW cosine, 0.999", _COSINE, -3.52, -5.42, -3.12),
        Measured(*_GPT, "AdamW cosine, 0.999", _COSINE, -2.34, -2.40, -2.12),
        Measured(*_RESNET, "AdamW cosine, 0.999", _COSINE, -1.51, -2.64, -1.31),
        Measured(*_LENET, "AdamW cosine, 0.999", _COSINE, -31.07, -32.38, -13.42),
    ),
}
_KEPT: dict[tuple[float, float], tuple[Measured, ...]] = {
    (0.95, 0.75): (
        Measured(*_SMALL, "advice, three quarters kept", _COSINE, 0.03, 0.03, 0.06),
        Measured(*_NARROW, "advice, three quarters kept", _COSINE, 0.41, -0.02, 0.96),
        Measured(*_CHANGED, "advice, three quarters kept", _COSINE, -5.86, -11.09, 2.64),
    ),
    (0.95, 0.5): (
        Measured(*_GPT, "advice, 0.95, keep 1000", _COSINE, 0.55, 0.53, 0.58),
        Measured(*_RESNET, "advice, 0.95, keep 1955", _COSINE, -0.26, -2.05, 1.63),
        Measured(*_LENET, "advice, 0.95, keep 9380", _COSINE, -10.28, -13.33, -6.99),
    ),
    (0.95, 0.0): (
        Measured(*_GPT, "advice, 0.95", _COSINE, 20.09, 19.69, 20.83),
        Measured(*_RESNET, "advice, 0.95", _COSINE, 31.77, 29.76, 32.97),
        Measured(*_LENET, "advice, 0.95", _COSINE, -6.69, -6.90, 6.69),
    ),
    (0.999, 0.0): (
        Measured(*_GPT, "certified Adam", _CONSTANT, -0.71, -1.28, -0.52),
        Measured(*_RESNET, "certified Adam", _CONSTANT, -1.06, -2.68, 0.66),
        Measured(*_LENET, "certified Adam", _CONSTANT, -20.53, -23.78, -14.33),
    ),
}
MEASURED: tuple[Measured, ...] = tuple(row for rows in (*_RAISED.values(), *_KEPT.values()) for row in rows)
"""All rows."""
