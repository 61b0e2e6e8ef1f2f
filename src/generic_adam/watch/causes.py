"""The causes that a diagnosis can name: each a rule on the records of a run, the evidence, and the change to make.

A rule returns the records in which the cause shows. The thresholds are from the tuning half of a benchmark of failing
and healthy runs (docs/benchmark) and are judged on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generic_adam.watch.records import Record

Mask = NDArray[np.bool_]


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
        evidence: the columns that say so; the first decides how strongly.
        threshold: what the first is compared with.
        tensor: the column with the tensor, or "".
        since: the column with the step, or "" for the first step of the record.
        change: what to do, with the record's columns at {name}.
        keys: the changes of the configuration: a field and what it is multiplied with, or set to.
    """

    name: str
    title: str
    holds: Callable[[Table], Mask]
    evidence: tuple[str, ...]
    threshold: float
    change: str
    tensor: str = ""
    since: str = ""


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


def _wrong_optimizer(t: Table) -> Mask:
    return _over(t.wrong, 1e-2) | _over(t.excess, 1.01)


def _beta1_beta2(t: Table) -> Mask:
    return (t.beta**2 >= t.theta) & (t.beta > 0)


def _lost_updates(t: Table) -> Mask:
    return _over(t.lost, 0.5)


def _weight_decay(t: Table) -> Mask:
    return _over(t.decay, 0.5) & _over(t.decay_rate, 0.0) | _over(t.decay_rate, 0.02)


def _eps_too_large(t: Table) -> Mask:
    return _over(t.eps_share, 0.5)


def _eps_too_small(t: Table) -> Mask:
    return _over(t.tiny, 0.01)


def _clipping(t: Table) -> Mask:
    with np.errstate(all="ignore"):
        removed = 1 - _summed(t.mass_after, t.lengths, 200) / _summed(t.mass_before, t.lengths, 200)
    return _over(removed, 0.8)


def _skewed_noise(t: Table) -> Mask:
    return _over(t.skew, 0.5) & _over(t.skew_scale, 0.01)


def _free_fall(t: Table) -> Mask:
    falling = _held(_over(t.falling, 0.9), t.lengths, 0.2 / np.maximum(1 - t.theta, 1e-9))
    return falling & (_over(t.edge, 0.5) | _over(t.probed, 0.5))


def _stale_second_moment(t: Table) -> Mask:
    return _over(t.stale, 4.0) & _over(t.stale_update, 1.0)


def _lr_too_large(t: Table) -> Mask:
    return _over(t.reach, 0.4)


def _lr_too_small(t: Table) -> Mask:
    losses = t.loss
    with np.errstate(all="ignore"):
        first = losses[~np.isnan(losses)][:1]
        high = losses > 0.8 * first[0] if len(first) and first[0] > 0 else np.ones(len(losses), bool)
        slow = ~np.isnan(t.path) & (t.path < 3e-3) & _over(t.straight, 0.3) & high
        idle = _held(t.lr < 1e-3 * np.maximum.accumulate(t.lr), t.lengths, 0.2 * t.step)
    return slow | idle & high


def _not_the_optimizer(t: Table) -> Mask:
    """A loss above the mean before it by six times the range that losses had in the four records before."""
    spread, before = t.loss_high - t.loss_low, np.roll(t.loss, 1)
    usual = np.array([np.max(spread[max(0, k - 4) : k], initial=0.0) for k in range(len(spread))])
    with np.errstate(all="ignore"):
        jump = _over((t.loss_high - before) / usual, 6.0) & (usual > 0) & (np.arange(len(spread)) > 3)
    return jump | (t.loss_bad > 0)


CAUSES: Mapping[str, Cause] = {
    one.name: one
    for one in (
        Cause(
            "wrong_optimizer",
            "The steps are not those of the stated optimizer",
            _wrong_optimizer,
            ("wrong", "excess"),
            1e-2,
            "compare the optimizer with `generic-adam verify`; after a resume, check that the state was saved whole",
            tensor="wrong_tensor",
        ),
        Cause(
            "beta1_beta2",
            "beta1^2 is not below beta2, so that a step has no upper limit",
            _beta1_beta2,
            ("beta", "theta"),
            0.0,
            "raise beta2 above beta1^2, for example to 0.95 for beta1 = 0.9",
        ),
        Cause(
            "lost_updates",
            "Weights do not change although their updates are not 0: the precision is too low",
            _lost_updates,
            ("lost",),
            0.5,
            "keep the weights in float32 (a master copy), or round stochastically",
            tensor="lost_tensor",
        ),
        Cause(
            "weight_decay",
            "Weight decay outweighs the steps",
            _weight_decay,
            ("decay", "decay_rate"),
            0.5,
            "lower weight_decay by a factor of ten; lr times weight_decay is what each step takes off",
            tensor="decay_tensor",
        ),
        Cause(
            "eps_too_large",
            "eps outweighs the root of the second moment: Adam has become momentum with a small learning rate",
            _eps_too_large,
            ("eps_share",),
            0.5,
            "lower eps to a tenth of the typical gradient entry or less, for example 1e-8 to 1e-15",
            tensor="eps_tensor",
        ),
        Cause(
            "eps_too_small",
            "Weights with almost no gradient take whole steps",
            _eps_too_small,
            ("tiny",),
            0.01,
            "raise eps above the rounding error of the gradients, for example to 1e-8",
            tensor="tiny_tensor",
        ),
        Cause(
            "clipping",
            "Clipping takes away most of the gradient",
            _clipping,
            ("mass_before", "mass_after"),
            0.8,
            "raise the clipping threshold towards the typical norm before clipping",
        ),
        Cause(
            "skewed_noise",
            "Adam's scaling takes away most of the gradient, for rare large gradients are divided by their own size",
            _skewed_noise,
            ("skew", "skew_scale"),
            0.5,
            "raise beta2, so that it averages over many of the rare gradients, or use a larger batch",
        ),
        Cause(
            "free_fall",
            "The second moment falls freely, so that the steps grow towards the edge of stability",
            _free_fall,
            ("edge", "falling", "probed"),
            0.5,
            "let beta2 approach 1 and lr fall: `generic-adam advise`; a smaller lr only delays it",
        ),
        Cause(
            "stale_second_moment",
            "Gradients have outgrown the second moment, which remembers smaller ones",
            _stale_second_moment,
            ("stale", "stale_update"),
            4.0,
            "lower beta2 (0.95 forgets in 20 steps), or clip the update",
            tensor="stale_tensor",
            since="stale_step",
        ),
        Cause(
            "lr_too_large",
            "Steps are about as large as the weights themselves",
            _lr_too_large,
            ("reach",),
            0.4,
            "lower lr by a factor of ten, or warm up",
            tensor="reach_tensor",
            since="reach_step",
        ),
        Cause(
            "lr_too_small",
            "The weights hardly move while the loss is still high",
            _lr_too_small,
            ("path", "straight", "lr"),
            3e-3,
            "raise lr by a factor of ten, or let its schedule fall later",
        ),
        Cause(
            "not_the_optimizer",
            "The loss jumps while the optimizer is as it should be",
            _not_the_optimizer,
            ("loss_high", "loss"),
            3.0,
            "look at the data of these steps, at the model, and at the loss",
        ),
    )
}
"""The causes by name, in the order in which they are asked: first what is impossible for the stated optimizer,
then what decides by itself, then what moves, and last what is left."""


def values_at(record: Record, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of a record by name, those that have a value."""
    found = {name: getattr(record, name) for name in names}
    return {name: value for name, value in found.items() if not (isinstance(value, float) and math.isnan(value))}
