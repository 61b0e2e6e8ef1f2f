"""From the records of a run to findings: which cause, since which step, in which tensor, and what to change.

A cause is a rule on the records, which returns those in which it shows. The thresholds are from the tuning half of a
benchmark of failing and healthy runs (results/diagnose) and are judged on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.methods import Algorithm, catalogue
from generic_adam.parts import Part
from generic_adam.schedules import parse
from generic_adam.setting import Fact, Setting, Source
from generic_adam.theorems.measured import Budget
from generic_adam.watch.records import Record

Mask = NDArray[np.bool_]

WRONG = 1e-3
"""The share of a step by which it is another one; rounding is taken off before."""


class Table:
    """The records of a run as columns."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        found = np.array([getattr(record, name) for record in self.records], dtype=np.float64)
        self.__dict__[name] = found
        return found

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The number of steps of each record."""
        return self.step - self.first + 1


@dataclass(frozen=True)
class Cause:
    """A cause and how it is recognised.

    Attributes:
        name: its name in the fixed vocabulary.
        title: what happened, as the beginning of a sentence.
        holds: the records in which it shows.
        evidence: the columns that say so.
        doubtful: the records in which something else than the optimizer is the likelier explanation.
        tensor: the column with the tensor, or "".
        since: the column with the step, or "" for the first step of the record.
        place: the record in which it shows -> step, tensor and columns, where these differ from record to record.
        change: what to do, in words.
        settings: the record in which it shows and the largest lr before -> the options to set, each as a text in
            which its own name stands for the present value and t for the step; none where no option cures it.
    """

    name: str
    title: str
    holds: Callable[[Table], Mask]
    evidence: tuple[str, ...]
    change: str
    settings: Callable[[Record, float], Mapping[str, str]] = lambda _record, _peak: {}
    doubtful: Callable[[Table], Mask] = lambda table: np.zeros(len(table.records), bool)
    tensor: str = ""
    since: str = ""
    place: Callable[[Record], tuple[int, str, tuple[str, ...]]] | None = None

    def at(self, record: Record) -> tuple[int, str, tuple[str, ...]]:
        """Return the step and the tensor at which it shows in a record, and the columns that say so."""
        if self.place is not None:
            return self.place(record)
        step, tensor = (getattr(record, name) if name else None for name in (self.since, self.tensor))
        return step or record.first, tensor or "", self.evidence


_IMPOSSIBLE: Mapping[str, float] = {"wrong": WRONG, "excess": 1.01, "tampered": 1e-2, "late": 0.0}
"""The columns that are above these in no run of the stated optimizer."""


def _first_impossible(record: Record) -> tuple[int, str, tuple[str, ...]]:
    seen = [name for name, least in _IMPOSSIBLE.items() if abs(getattr(record, name)) > least]
    if not seen:
        return record.first, "", ("typical",)
    step, tensor = min(
        (getattr(record, f"{one}_step", record.first), getattr(record, f"{one}_tensor", "")) for one in seen
    )
    return step, tensor, (*seen, *(["wrong_ratio"] if "wrong" in seen else []))


def _shrunk(t: Table) -> Mask:
    """Return where updates are at once a thousand times smaller than before, and gradients as large as before.

    The second moment was loaded in other units: gradients of the same size cannot have made it a million times larger.
    """
    found = np.zeros(len(t.records), bool)
    for k in range(1, len(found)):
        ratio = t.gradient[k] / t.gradient[k - 1] if t.gradient[k - 1] > 0 else math.nan
        found[k] = 0.3 < ratio < 3 and 0 < t.typical[k] < 1e-3 * t.typical[k - 1]
    return found


def _over(values: NDArray[np.float64], threshold: float) -> Mask:
    return np.nan_to_num(values, nan=-math.inf) > threshold


def _held(mask: Mask, lengths: NDArray[np.float64], least: NDArray[np.float64] | float) -> Mask:
    """Return where a mask has been true for at least so many steps without a break."""
    run, found = 0.0, np.zeros_like(mask)
    needed = np.broadcast_to(least, mask.shape)
    for k, true in enumerate(mask):
        run = run + lengths[k] if true else 0.0
        found[k] = true and run >= needed[k]
    return found


def _summed(values: NDArray[np.float64], lengths: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return running sums over the records of the last so many steps; nan before there are as many."""
    whole, reach = (np.concatenate([[0.0], np.cumsum(np.nan_to_num(one))]) for one in (values, lengths))
    start = np.maximum(np.searchsorted(reach, reach[1:] - steps + 0.5, side="right") - 1, 0)
    return np.where(reach[1:] >= steps, whole[1:] - whole[start], math.nan)


def _times(name: str, factor: float, least: float, most: float) -> dict[str, str]:
    """Return an option times a factor, which is kept in a range and has one digit."""
    kept = min(max(factor, least), most) if not math.isnan(factor) else least
    return {name: f"{name} * {kept:.0e}"}


def _before(values: NDArray[np.float64], of: Callable[[Any], Any]) -> NDArray[np.float64]:
    """Return a statistic of the eight records before each; nan where there are not four."""
    found = [of(values[max(0, k - 8) : k]) if k > 3 else math.nan for k in range(len(values))]
    return np.array(found, dtype=np.float64)


def _lowest_later(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest mean of four records from each on."""
    means = [np.mean(values[k : k + 4]) for k in range(max(1, len(values) - 3))]
    filled = np.append(np.nan_to_num(means, nan=math.inf), np.full(len(values) - len(means), math.inf))
    return np.minimum.accumulate(filled[::-1])[::-1]


def _high(t: Table, share: float, losses: NDArray[np.float64] | None = None) -> Mask:
    """Return where the loss is still above a share of its first; everywhere, where there is none or it is negative."""
    known = t.loss[np.isfinite(t.loss)]
    if not len(known) or known.min() < 0:
        return np.ones(len(t.loss), bool)
    return ~((t.loss if losses is None else losses) < share * known[0])


def _learnt(t: Table) -> bool:
    """Return True if the loss has come down by much more than it varies: what might be in the way is not."""
    known = t.loss[np.isfinite(t.loss)]
    if len(known) < 8:
        return False
    drop = np.mean(known[:2]) - np.mean(known[-4:])
    return bool(drop > 2 * np.nanmedian(t.loss_high - t.loss_low))


def _weight_decay(t: Table) -> Mask:
    """Find decays that outweigh the steps; where nothing is left to be learnt, any decay does.

    A usual decay times a rate that is too large is the rate's fault.
    """
    outweighs = _over(t.decay, 0.8) & _high(t, 0.05) | _over(t.decay, 0.5) & _high(t, 0.3)
    found = outweighs & _over(t.decay_rate, 0.0) | _over(t.pull, 0.7) & _high(t, 0.5) | _over(t.decay_rate, 0.02)
    return found & ~(_lr_too_large(t).any() & (t.decay_rate < 0.5 * t.lr))


def _lost_updates(t: Table) -> Mask:
    """Find weights that stand still while there is something to be learnt, and the rate has not been let down.

    Steps below 1e-5 of the weights are lost in any precision: then they are too small.
    """
    kept = (t.lr > 0.3 * np.maximum.accumulate(t.lr)) & _over(t.reach, 1e-5)
    return (_over(t.lost, 0.6) & _high(t, 0.4) | _over(t.lost, 0.7) & _high(t, 0.1)) & kept


def _eps_too_small(t: Table) -> Mask:
    """Find weights without a gradient that take whole steps; after steps that were too long, all gradients may be 0."""
    wandering = _over(_summed(t.tiny * t.lengths, t.lengths, 200) / 200, 0.065) | _held(
        _over(t.tiny, 0.1), t.lengths, 100
    )
    return wandering & ~np.logical_or.accumulate(_lr_too_large(t))


def _eps_too_large(t: Table) -> Mask:
    with np.errstate(all="ignore"):  # without the clipping v would be so much larger
        larger = np.nan_to_num(t.mass_before / t.mass_after, nan=1.0, posinf=1e300)
        return _over(t.eps_share / (t.eps_share + (1 - t.eps_share) * larger), 0.5) & _high(t, 0.05)


def _clipping(t: Table) -> Mask:
    """Find what takes most of the gradient away; every step clipped alike is none for Adam, as long as eps is small."""
    with np.errstate(all="ignore"):
        removed = 1 - _summed(t.mass_after, t.lengths, 200) / _summed(t.mass_before, t.lengths, 200)
    # Where no norm is far above the mean, every step keeps its share; rare large ones would lose theirs. A limit at a
    # fiftieth of the usual norm is no choice but a mistake of units.
    even = (t.norm_high < 5 * t.norm) & ~_over(removed, 0.98) | ~_high(t, 0.5)
    alike = (t.clipped > 0.95 * t.lengths) & ~_over(t.eps_share, 0.1) & even
    return _over(removed, 0.8) & ~alike


def _skewed_noise(t: Table) -> Mask:
    """Find what scales a part of the gradient away: rare large ones, which come again and again."""
    most = np.maximum.accumulate(np.nan_to_num(t.gradient))
    again = np.array([np.mean(t.gradient[: k + 1] > 0.2 * most[k]) for k in range(len(most))])
    # A decay in the gradient is no part of it, and would be counted as taken away.
    pulled = np.maximum.accumulate(np.nan_to_num(t.pull)) > 0.1
    return _over(t.skew, 0.4) & _over(t.skew_scale, 0.01) & (again > 0.15) & ~pulled & (not _learnt(t))


def _free_fall(t: Table) -> Mask:
    """Find a fall that has come near the edge, or that has ended: the loss leaves what it had settled at.

    Of runs whose losses go on falling nothing is said: they go beyond the edge and come back, again and again.
    """
    falling = _held(_over(t.falling, 0.9), t.lengths, 0.2 / np.maximum(1 - t.theta, 1e-9))
    left = _over(t.loss_high / _before(t.loss_high, np.max), 1e3) & np.logical_or.accumulate(falling)
    gained = np.zeros(len(falling), bool)
    for k in range(len(falling) - 8):
        lowest, later = np.min(t.loss[: k + 1]), np.mean(t.loss[k + 1 :])
        gained[k] = 0 < later < 2 * lowest
    # Steps whose alpha falls with v do not grow: Adagrad's.
    falling &= t.alpha > 0.3 * np.fmax.accumulate(t.alpha)
    return falling & (_over(t.edge, 0.5) | _over(t.probed, 0.5)) & ~gained | left


def _passing(t: Table) -> Mask:
    """Find a jump of the loss after which gradients are soon as small as before: rather a few mini-batches."""
    after = [np.min(t.gradient[k + 1 : k + 5], initial=math.inf) for k in range(len(t.gradient))]
    found, held = _jump(t) & (np.array(after) < 3 * _before(t.gradient, np.median)), _stale(t)
    for k in range(1, len(found)):  # what follows at once is the same event
        found[k] |= found[k - 1] and held[k]
    return found


def _stale(t: Table) -> Mask:
    """Find gradients that have outgrown the second moment, where the loss has suffered.

    Targets that are moved every so often, as in reinforcement learning, make gradients grow too: no harm is done where
    the loss stays in twice the range that it had, or is soon as low as before.
    """
    found = _over(t.stale, 4.0) & _over(t.stale_update, 1.0)
    for k in np.flatnonzero(found):
        early, late = slice(max(0, k - 8), k), slice(k + 1, k + 9)
        if k < 4 or np.isnan(t.loss[max(0, k - 8) : k + 3]).any():
            continue
        least = np.min(t.loss_low[early])
        rose = np.max(t.loss_high[k : k + 3]) - least > 2 * (np.max(t.loss_high[early]) - least)
        found[k] = rose or not np.min(t.loss[late], initial=math.inf) <= np.mean(t.loss[early])
    return found


def _jump(t: Table) -> Mask:
    """Return where the loss is above the mean before by six times the range that it had in the records before.

    One step alone is no event: there are losses that are rarely large and leave no trace, as in reinforcement learning.
    """
    before = np.roll(t.loss, 1)
    with np.errstate(all="ignore"):
        above = np.maximum(t.loss - before, 0.0) * t.lengths
        after = np.nan_to_num(np.maximum(np.roll(t.loss, -1) - before, 0.0) * np.roll(t.lengths, -1))
        after[-1] = 0.0
        steps = (above + after) / (t.loss_high - before)
        height = (t.loss_high - before) / _before(t.loss_high - t.loss_low, np.max)
        most = np.concatenate([[math.inf], np.maximum.accumulate(np.nan_to_num(t.loss_high))[:-1]])
        great = _over(height, 12.0) | _over(height, 6.0) & (t.loss_high > 1.5 * most)
        return great & _over(steps, 2.0) & ~_goes_on_rising(t.loss)


def _goes_on_rising(losses: NDArray[np.float64]) -> Mask:
    """Return where losses are later twice as large as soon after: where rewards are found, losses grow for long."""
    found = np.zeros(len(losses), bool)
    for k in range(len(losses) - 8):
        later = np.convolve(losses[k + 4 :], np.full(4, 0.25), "valid")
        found[k] = np.max(later) > 2 * np.max(losses[k : k + 4]) > 0
    return found


def _burst(t: Table) -> Mask:
    """Return where steps that had grown freely went beyond the edge of stability: the loss jumps, and comes back."""
    return _over(np.roll(t.falling, 1), 0.9) & _over(t.edge, 0.7)


def raised(t: Table) -> Mask:
    """Return the records in which lr is ten times what it ever was, and with which the loss is soon three times more.

    No warm-up rises tenfold from one record to the next but at its very beginning, where the loss falls.
    """
    before = np.concatenate([[math.inf], np.maximum.accumulate(np.nan_to_num(t.lr))[:-1]])
    found = (before > 0) & (t.lr >= 10 * before)
    for k in np.flatnonzero(found):
        worst = np.max(t.loss_high[k : k + 3], initial=-math.inf, where=~np.isnan(t.loss_high[k : k + 3]))
        found[k] = worst > 3 * abs(t.loss[k - 1]) or t.loss_bad[k : k + 3].any()
    return found


def _lr_too_large(t: Table) -> Mask:
    """Find steps as large as the weights, after which the loss does not come down to half: the first ones may be long.

    Half as large are too large where the loss never comes down at all.
    """
    found, never = _over(t.reach, 0.4), _over(t.reach, 0.2) & _high(t, 0.8).all()
    for k in np.flatnonzero(found):
        later, low, bad = t.loss[k + 1 : k + 9], t.loss_low[k], t.loss_bad[k : k + 9].any()
        fell = low > 0 and any(one < low / 2 for one in (*later, np.mean(t.loss[-4:])))
        found[k] = (len(later) > 1 or bad) and not fell
    return found | never & ((t.loss[0] > 0) & (len(found) > 8)) | raised(t)


def _lr_too_small(t: Table) -> Mask:
    """Find short straight ways after which the loss does not come down by a quarter, then or later."""
    lowest = _lowest_later(t.loss)
    high = _high(t, 0.8) & _high(t, 0.75, lowest)
    if np.nanmin(t.loss, initial=0.0) < 0:  # with no floor known: most of the way down is still ahead
        high &= ~(t.loss[0] - t.loss > 3 * np.maximum(t.loss - lowest, 0.0))
    with np.errstate(all="ignore"):
        # The end of a schedule is short by intent: what is slow there was not slow before.
        ending = t.lr < 0.1 * np.maximum.accumulate(t.lr)
        kept = ~ending | _held(ending, t.lengths, 0.3 * t.step)
        # Noise alone, averaged with beta, goes so straight in fifty steps: there a longer step would help little.
        by_chance = np.sqrt((1 + t.beta) / (50 * (1 - t.beta)))
        straight = t.straight > np.clip(1.13 * by_chance, 0.3, 0.95)
        slow = (t.path < 3e-3) & (straight | (t.path < 1e-6)) & high & kept
        idle = _held(t.lr < 1e-3 * np.maximum.accumulate(t.lr), t.lengths, 0.3 * t.step) & _high(t, 0.2)
    # After a jump of the loss steps are short, for the second moment remembers it: that is no matter of lr.
    return (slow | idle) & ~_dead(t) & ~np.logical_or.accumulate(_jump(t) | _stale(t))


def _dead(t: Table) -> Mask:
    return _over(t.dead, 0.2) & _high(t, 0.5)


CAUSES: Mapping[str, Cause] = {
    one.name: one
    for one in (
        Cause(
            "wrong_optimizer",
            "The steps are not those of the stated optimizer",
            lambda t: (
                np.any([_over(abs(getattr(t, name)), least) for name, least in _IMPOSSIBLE.items()], axis=0)
                | _shrunk(t)
            ),
            ("wrong", "wrong_ratio", "excess", "tampered", "late", "typical"),
            "compare the optimizer with `generic-adam verify`; after a resume, check that the state was saved whole",
            place=_first_impossible,
        ),
        Cause(
            "beta1_beta2",
            "beta1^2 is not below beta2, so that a step has no upper limit",
            lambda t: _held((t.beta**2 >= t.theta) & (t.beta > 0), t.lengths, min(50.0, t.lengths.sum())),
            ("beta", "theta"),
            "raise beta2 above beta1^2, for example to 0.95 for beta1 = 0.9",
            settings=lambda r, _: {"beta2": f"{(1 + r.beta) / 2:g}"},
        ),
        Cause(
            "lost_updates",
            "Weights do not change although their updates are not 0: the precision is too low",
            _lost_updates,
            ("lost",),
            "keep the weights in float32 (a master copy), or round stochastically",
            tensor="lost_tensor",
            settings=lambda _r, _: {"dtype": "float32"},
        ),
        Cause(
            "weight_decay",
            "Weight decay outweighs the steps",
            _weight_decay,
            ("decay", "decay_rate"),
            "lower weight_decay by a factor of ten; lr times weight_decay is what each step takes off",
            tensor="decay_tensor",
            settings=lambda r, _: _times(
                "weight_decay", 0.05 / max(r.decay, 50 * r.decay_rate, r.pull, 0.05), 1e-4, 0.1
            ),
        ),
        Cause(
            "eps_too_large",
            "eps outweighs the root of the second moment: Adam has become momentum with a small learning rate",
            _eps_too_large,
            ("eps_share",),
            "lower eps to a tenth of the typical gradient entry or less, for example 1e-8 to 1e-15",
            tensor="eps_tensor",
            settings=lambda r, _: _times("eps", 0.01 * (1 - r.eps_share), 1e-10, 1e-2),
        ),
        Cause(
            "eps_too_small",
            "Weights with almost no gradient take whole steps",
            _eps_too_small,
            ("tiny",),
            "raise eps above the rounding error of the gradients, for example to 1e-8",
            tensor="tiny_tensor",
            settings=lambda _r, _: {"eps": "1e-8"},
        ),
        Cause(
            "clipping",
            "Clipping takes away most of the gradient",
            _clipping,
            ("mass_before", "mass_after"),
            "raise the clipping threshold towards the typical norm before clipping",
            settings=lambda r, _: {"max_norm": f"{r.norm_high:.2g}"},
        ),
        Cause(
            "skewed_noise",
            "Adam's scaling takes away most of the gradient, for rare large gradients are divided by their own size",
            _skewed_noise,
            ("skew", "skew_scale"),
            "raise beta2, so that it averages over many of the rare gradients, or use a larger batch",
            settings=lambda r, _: {"beta2": "0.9999" if r.theta > 0.99 else "0.999"},
        ),
        Cause(
            "free_fall",
            "The second moment falls freely, so that the steps grow towards the edge of stability",
            _free_fall,
            ("edge", "falling", "probed"),
            "let beta2 approach 1 and lr fall: `generic-adam advise`; a smaller lr only delays it",
            settings=lambda r, _: {"lr": f"lr * min(1, sqrt({r.first}/t))", "beta2": "max(beta2, 1 - 1/t)"},
        ),
        Cause(
            "stale_second_moment",
            "Gradients have outgrown the second moment, which remembers smaller ones",
            _stale,
            ("stale", "stale_update"),
            "lower beta2 (0.95 forgets in 20 steps), or clip the update",
            tensor="stale_tensor",
            since="stale_step",
            settings=lambda r, _: {"beta2": "0.95"} if r.theta > 0.95 else {"lr": "lr * 0.3"},
            doubtful=_passing,
        ),
        Cause(
            "lr_too_large",
            "Steps are about as large as the weights themselves",
            _lr_too_large,
            ("reach",),
            "lower lr by a factor of ten, or warm up",
            tensor="reach_tensor",
            since="reach_step",
            settings=lambda r, _: _times("lr", 0.01 / max(r.reach, 0.01), 1e-3, 0.1),
        ),
        Cause(
            "lr_too_small",
            "The weights hardly move while the loss is still high",
            _lr_too_small,
            ("path", "straight", "lr"),
            "raise lr by a factor of ten, or let its schedule fall later",
            settings=lambda r, peak: _times("lr", max(peak / max(r.lr, 1e-30), 0.2 / max(r.path, 1e-30)), 10, 1e4),
        ),
        Cause(
            "not_the_optimizer",
            "The loss jumps while the optimizer is as it should be",
            lambda t: _jump(t) & ~_burst(t) | (t.loss_bad > 0) | _dead(t),
            ("loss_high", "loss"),
            "look at the data of these steps, at the model, and at the loss",
        ),
    )
}
"""The causes by name, in the order in which they are asked: first what is impossible for the stated optimizer,
then what decides by itself, then what moves, and last what is left."""


@dataclass(frozen=True)
class Finding(Part):
    """One cause that was found.

    Attributes:
        cause: its name in the fixed vocabulary.
        since: the step that it was first seen at.
        tensor: the tensor that it was seen in most; "" where it is no matter of one tensor.
        evidence: the measured numbers by name.
        change: what to do about it.
        settings: the options to set, as texts: an option's own name stands for its present value, t for the step.
        algorithm: the changed algorithm, where one can be given.
        title: what happened.
        until: the last step that it was seen at.
    """

    cause: str
    since: int
    tensor: str
    evidence: Mapping[str, Any]
    change: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    algorithm: Algorithm | None = None
    title: str = ""
    until: int = 0

    @property
    def page(self) -> str:
        """The page about the cause, in the documents."""
        return f"docs/causes/{self.cause}.md"

    @property
    def text(self) -> str:
        """The finding in one line."""
        where = f" in {self.tensor}" if self.tensor else ""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in self.evidence.items())
        return f"{self.title}{where} (since step {self.since:,}; {numbers}). Change: {self.change} ({self.page})."


@dataclass(frozen=True)
class Diagnosis(Part):
    """The causes from which a run suffers.

    Attributes:
        findings: the causes that were found, the one that explains most first.
        steps: the first and the last step that were looked at; (0, 0) where there was none.
        budget: what the size of the gradient along the run is made of, where probes have measured it.
    """

    findings: tuple[Finding, ...]
    steps: tuple[int, int] = (0, 0)
    budget: Budget | None = None

    @property
    def healthy(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    @property
    def text(self) -> str:
        """The findings, a line each."""
        first, last = self.steps
        if not last:
            return "NOTHING SEEN: no step was made while watching."
        lines = [f"{one.cause}: {one.text}" for one in self.findings]
        if self.healthy:
            lines = [f"HEALTHY: nothing was found in steps {first:,} to {last:,}."]
        return "\n".join([*lines, *([self.budget.text] if self.budget else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in the types that JSON has."""
        findings = [
            {name: value for name, value in vars(one).items() if name != "algorithm"}
            | {"algorithm": one.algorithm and one.algorithm.to_dict()}
            for one in self.findings
        ]
        budget = self.budget and self.budget.to_dict()
        return {"healthy": self.healthy, "steps": list(self.steps), "findings": findings, "budget": budget}


def diagnose(records: Sequence[Record], options: Mapping[str, float] | None = None) -> Diagnosis:
    """Return what the records of a run show.

    Args:
        records: those of the run.
        options: those of torch's Adam or AdamW (lr, beta1, beta2, eps, weight_decay), for the changed algorithms.
    """
    if not records:
        return Diagnosis(())
    table = Table(records)
    found = [one for cause in CAUSES.values() if (one := _finding(cause, table)) is not None]
    found = _with_raise(found, table)
    found = [replace(one, algorithm=_changed(one.settings, options)) for one in found]
    last = [one for one in found if one.cause == "not_the_optimizer"]
    # What is left explains only what nothing else does.
    others = [one for one in found if one not in last]
    doubted = [one for one in others if last and _is_doubtful(CAUSES[one.cause], table)]
    sure = [one for one in others if one not in doubted]
    return Diagnosis(tuple([*sure, *doubted] if sure else [*last, *doubted]), (records[0].first, records[-1].step))


def _with_raise(found: Sequence[Finding], table: Table) -> list[Finding]:
    """Put a learning rate that was raised at once before what it brought about, and say from what to what."""
    places = np.flatnonzero(raised(table))
    if not len(places):
        return [*found]
    place = places[0]
    step, before, after = table.records[place].first, float(np.max(table.lr[:place])), float(table.lr[place])

    def told(one: Finding) -> Finding:
        if one.cause != "lr_too_large" or one.since < step:
            return one
        return replace(
            one,
            since=step,
            tensor="",
            evidence={"lr": after, "lr_before": before},
            title="The learning rate was raised at once, and the loss rose with it",
            change=f"keep lr at {before:.3g}, or raise it over many steps",
            settings={"lr": f"lr * {before / after:.3g}"},
        )

    return sorted(map(told, found), key=lambda one: (one.since >= step, one.cause != "lr_too_large"))


def _is_doubtful(cause: Cause, table: Table) -> bool:
    """Return True if a cause shows only where something else than the optimizer is likelier."""
    return not (cause.holds(table) & ~cause.doubtful(table)).any()


def _finding(cause: Cause, table: Table) -> Finding | None:
    where = np.flatnonzero(cause.holds(table))
    if not len(where):
        return None
    first, last = table.records[where[0]], table.records[where[-1]]
    since, tensor, names = cause.at(first)
    evidence = {name: value for name in names if not np.isnan(value := getattr(first, name))}
    return Finding(
        cause.name,
        since,
        tensor,
        evidence,
        cause.change,
        cause.settings(first, float(np.nanmax(table.lr[: where[0] + 1], initial=0.0))),
        title=cause.title,
        until=last.step,
    )


def _changed(settings: Mapping[str, str], options: Mapping[str, float] | None) -> Algorithm | None:
    """Return AdamW with the options that are set; None where it is not known, or no option of it is set."""
    if not settings or not options or set(settings) - set(options):
        return None
    texts = {name: settings.get(name, name).replace(name, repr(value)) for name, value in options.items()}
    eps, decay = (parse(texts[name])(1) for name in ("eps", "weight_decay"))
    return catalogue.adamw(lr=texts["lr"], beta=options["beta1"], theta=texts["beta2"], eps=eps, weight_decay=decay)


def setting(records: Sequence[Record]) -> Setting:
    """Return what the records of a run measured, as facts with the steps that they are from.

    The largest gradient and weight are those seen; the size of the gradient is that of the records where it is
    largest, with its standard error. The loss is taken to stay above 0 where none below was seen.
    """
    if not records:
        return Setting()
    steps = (records[0].first, records[-1].step)
    table, found = Table(records), {}
    for name, largest in {"weights_bound": table.weights, "gradient_norm": table.norm_high}.items():
        if not np.isnan(largest).any() and np.isfinite(largest).all():
            found[name] = Fact(float(largest.max()), Source.MEASURED, steps)
    if np.isfinite(table.gradient).all() and table.gradient.max() > 0:
        most = records[int(np.argmax(table.gradient))]
        found["gradient_bound"] = Fact(
            most.gradient, Source.MEASURED, (most.first, most.step), error=most.gradient_error
        )
    first = records[0]
    if first.first == 1 and table.loss_low.min() >= 0:
        found["gap"] = Fact(first.loss, Source.MEASURED, (1, first.step), error=first.loss_error)
    return Setting(**found, dimension=first.dimension or None)
