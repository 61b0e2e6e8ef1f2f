# ruff: noqa: E501 - a table is read by its columns
"""The ways in which implementations have been seen to differ from what they are called, cheapest first.

Each is data: a category, what is said of it, and the rule that it makes of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
import numpy.typing as npt

from generic_adam.verify.replay import Floats, Rule, Trace


@dataclass(frozen=True)
class Departure:
    """One change of a rule.

    Attributes:
        category: what kind of difference it is, as `Difference.category`.
        said: the difference in words: what the step does, and what was claimed.
        rule: the rule that results.
        told: whether the parameter groups say so themselves.
        of: the parameters whose rule is changed, where not all are.
        number: the field and its number, where another number of it may do better.
    """

    category: str
    said: str
    rule: Rule
    told: bool = False
    of: frozenset[int] | None = None
    number: tuple[str, float] | None = None


_CHOICES: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("step counter", "every step uses the count of a first step", {"count": "frozen"}),
    ("step counter", "the count moves with every step of the group, also where a parameter has no gradient", {"count": "group"}),
    ("step counter", "all parameters of a group use the count of its last parameter", {"count": "last"}),
    ("step counter", "all parameters of a group use the count of its first parameter", {"count": "first"}),
    ("step counter", "one count for the whole optimizer, also where a parameter has no gradient", {"count": "optimizer"}),
    ("step counter", "each parameter has a count of its own", {"count": "parameter"}),
    ("step counter", "one count that every parameter moves in turn", {"count": "shared"}),
    ("step counter", "one count that every group moves in turn", {"count": "groups"}),
    ("step counter", "the count moves with every micro-batch", {"count": "micro-batches"}),
    ("step counter", "every step is counted twice", {"count": "twice"}),
    ("step counter", "the count is kept in bfloat16 and stays at 256", {"count": "bfloat16"}),
    ("step counter", "steps that the loss scaler skips are counted", {"skipped_count": True}),
    ("bias correction", "neither moment is corrected for its start at 0", {"correction": "none"}),
    ("bias correction", "only the first moment is corrected for its start at 0", {"correction": "first"}),
    ("bias correction", "only the second moment is corrected for its start at 0", {"correction": "second"}),
    ("bias correction", "both moments are corrected for their start at 0, which was not claimed", {"correction": "both"}),
    ("bias correction", "the corrections of the two moments are swapped", {"correction": "swapped"}),
    ("bias correction", "the correction of the second moment is not rooted", {"correction": "not rooted"}),
    ("bias correction", "the correction takes the power of the present beta, not the product of all betas", {"correction": "power"}),
    ("bias correction", "the corrections of the first step are used at every step", {"correction": "once"}),
    ("bias correction", "the moments are multiplied by the corrections, not divided", {"correction": "multiplied"}),
    ("epsilon", "eps is added to sqrt(v) before the bias correction", {"eps_place": "hat"}),
    ("epsilon", "eps is added to sqrt(v) after the bias correction", {"eps_place": "outside"}),
    ("epsilon", "eps is added under the root", {"eps_place": "root"}),
    ("epsilon", "eps squared is added under the root", {"eps_place": "root squared"}),
    ("epsilon", "eps is the least divisor, and not added", {"eps_place": "at least"}),
    ("weight decay", "the weight decay is added to the gradient, not taken from the weights", {"decay_form": "coupled"}),
    ("weight decay", "the weight decay is taken from the weights beside the step, not added to the gradient", {"decay_form": "decoupled"}),
    ("weight decay", "the weight decay is not multiplied by the learning rate", {"decay_form": "absolute"}),
    ("weight decay", "the weights are decayed after the step, not before", {"decay_form": "after"}),
    ("weight decay", "the weight decay is multiplied by the first learning rate, not the present one", {"decay_form": "first rate"}),
    ("weight decay", "the weight decay is multiplied by the bias-corrected learning rate", {"decay_form": "corrected"}),
    ("weight decay", "the weight decay is added to the gradient in the first moment alone", {"decay_form": "in momentum"}),
    ("weight decay", "the weights grow by the weight decay, which is not multiplied by the learning rate", {"decay_form": "growing"}),
    ("weight decay", "no weight decay is applied", {"decay_form": "none"}),
    ("weight decay", "the weight decay is applied twice: in the gradient and to the weights", {"decay_form": "both"}),
    ("weight decay", "the weight decay has the wrong sign: it lets weights grow", {"decay_form": "ascending"}),
    ("second moment", "the maximum of the second moment is not taken", {"maximum": "none"}),
    ("second moment", "the second moment is its running maximum (amsgrad)", {"maximum": "uncorrected"}),
    ("second moment", "the running maximum is taken of the corrected second moment", {"maximum": "corrected"}),
    ("second moment", "the running maximum is kept in place of the second moment", {"maximum": "kept"}),
    ("second moment", "squares are added up without decay", {"second_moment": "sum"}),
    ("second moment", "squares are added without the factor 1 - beta2", {"second_moment": "plain"}),
    ("second moment", "the step is divided by the second moment from before this gradient", {"second_moment": "delayed"}),
    ("second moment", "the second moment averages |g|, not its square", {"second_moment": "absolute"}),
    ("second moment", "the step is divided by an average of |g|", {"second_moment": "absolute, no root"}),
    ("second moment", "the second moment averages squares of the momentum, not of the gradient", {"second_moment": "of momentum"}),
    ("second moment", "one second moment for each tensor: the mean square of its gradient", {"second_moment": "of the tensor"}),
    ("second moment", "the step is divided by the second moment itself, not by its root", {"second_moment": "no root"}),
    ("second moment", "the second moment is an average that forgets", {"second_moment": "average"}),
    ("second moment", "the squared mean gradient is taken off the second moment", {"centered": True}),
    ("second moment", "the squared mean gradient is not taken off the second moment", {"centered": False}),
    ("second moment", "the second moment starts at the first square, not at 0", {"second_moment": "first"}),
    ("momentum", "there is no momentum: the step is along the gradient", {"first_moment": "none"}),
    ("momentum", "gradients are added to the momentum without the factor 1 - beta1", {"first_moment": "heavy"}),
    ("momentum", "the momentum looks ahead (Nesterov)", {"nesterov": True}),
    ("momentum", "the momentum looks ahead (Nesterov), with one correction", {"nesterov": True, "looks": "same"}),
    ("momentum", "the momentum does not look ahead (no Nesterov)", {"nesterov": False}),
    ("momentum", "the momentum schedule is not NAdam's: it is constant", {"momentum_decay": 0.0}),
    ("momentum", "the learning rate is inside the momentum buffer", {"rate_in_momentum": True}),
    ("momentum", "the learning rate is outside the momentum buffer", {"rate_in_momentum": False}),
    ("momentum", "the step is that of Adam, without NAdam's look-ahead", {"family": "adam"}),
    ("momentum", "the step is that of NAdam", {"family": "nadam"}),
    ("missing gradients", "a parameter without a gradient moves as if its gradient were 0", {"missing": "zero"}),
    ("missing gradients", "a parameter that once had a gradient moves as if missing ones were 0", {"missing": "zero once begun"}),
    ("missing gradients", "a parameter without a gradient is decayed all the same", {"missing": "decay only"}),
    ("missing gradients", "a parameter that once had a gradient is decayed also without", {"missing": "decay once begun"}),
    ("missing gradients", "the moments of a parameter without a gradient decay", {"missing": "moments only"}),
    ("missing gradients", "a parameter without a gradient stands still", {"missing": "stand still"}),
    ("missing gradients", "a weight whose gradient is exactly 0 stands still, and its moments with it", {"missing": "zeros wait"}),
    ("missing gradients", "a missing gradient is replaced by the one before: gradients are not cleared", {"missing": "stale"}),
    ("gradient scale", "gradients of micro-batches are added up, not averaged", {"accumulate": "sum"}),
    ("gradient scale", "only the last micro-batch is used", {"accumulate": "last"}),
    ("gradient scale", "only the first micro-batch is used", {"accumulate": "first"}),
    ("gradient scale", "gradients are never cleared: each step adds to those before", {"accumulate": "never cleared"}),
    ("clipping", "gradients are not clipped", {"clip_norm": None}),
    ("clipping", "each parameter is clipped by its own norm, not all by the norm of the whole", {"clip_how": "each parameter"}),
    ("clipping", "each group is clipped by its own norm, not all by the norm of the whole", {"clip_how": "each group"}),
    ("clipping", "gradients are clipped by their largest value, not by their norm", {"clip_how": "largest"}),
    ("clipping", "each value is clipped, not the norm", {"clip_how": "value"}),
    ("clipping", "clipping is upside down: small gradients are scaled up", {"clip_how": "upside down"}),
    ("clipping", "clipping is upside down: large gradients are scaled up", {"clip_how": "inverse"}),
    ("clipping", "gradients are always scaled to the norm, also those below it", {"clip_how": "always"}),
    ("clipping", "each micro-batch is clipped, not their average", {"clip_how": "each micro-batch"}),
    ("clipping", "gradients are clipped after each micro-batch, as they add up", {"clip_how": "as they come"}),
    ("clipping", "updates are not clipped", {"clip_update": None}),
    ("clipping", "clipping of updates is upside down: small ones are scaled up", {"clip_update_how": "upside down"}),
    ("clipping", "clipping of updates is upside down: large ones are scaled up", {"clip_update_how": "inverse"}),
    ("sign", "it steps along the gradient, not against it", {"sign": -1.0}),
)  # fmt: skip

_RESUMES: tuple[tuple[str, frozenset[str]], ...] = (
    ("the moments and the step count are lost", frozenset({"m", "v", "count"})),
    ("both moments are lost, the step count goes on", frozenset({"m", "v"})),
    ("the step count is lost, the moments are kept", frozenset({"count"})),
    ("the first moment is lost", frozenset({"m"})),
    ("the second moment is lost", frozenset({"v"})),
    ("the second moment and the step count are lost", frozenset({"v", "count"})),
    ("the first moment and the step count are lost", frozenset({"m", "count"})),
)

_BETAS = (0.0, 0.5, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.997, 0.999, 0.9995, 0.9999)
_EPS = (0.0, 1e-16, 1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
_DECAYS = (0.0, 1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
_POWERS = tuple(2.0**k for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16) for k in (n, -n))
_SEQUENCES: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "lr": ("lr", "learning rate", ()),
    "beta1": ("beta1", "betas", _BETAS),
    "beta2": ("beta2", "betas", _BETAS),
    "eps": ("eps", "epsilon", _EPS),
    "decay": ("weight decay", "weight decay", _DECAYS),
    "momentum": ("momentum", "momentum", (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)),
}
"""The label of each sequence, its category, and the numbers that people type there."""
_USED = {
    "sgd": ("lr", "decay", "momentum"),
    "rmsprop": ("lr", "beta2", "eps", "decay", "momentum"),
    "adagrad": ("lr", "eps", "decay"),
}
"""The sequences of an algorithm, where it has not those of Adam."""
_NUMBERS = {
    "offset": ("step counter", "the step count starts at {}, not at 1"),
    "initial_v": ("second moment", "the second moment starts at {}"),
    "scale": ("gradient scale", "gradients are multiplied by {}"),
    "clip_norm": ("clipping", "gradients are clipped to norm {}"),
    "clip_update": ("clipping", "updates are clipped at {}"),
}
"""The category of each other number, and what is said of it."""


def _of(rule: Rule) -> Iterator[tuple[str, str, str, tuple[float, ...]]]:
    for name in _USED.get(rule.family, ("lr", "beta1", "beta2", "eps", "decay")):
        yield name, *_SEQUENCES[name]


def number(rule: Rule, name: str, value: float) -> Departure:
    """Return the rule with another number, in words."""
    own = getattr(rule, name)
    if name in _NUMBERS:
        category, said = _NUMBERS[name]
        instead = f", not {own:g}" if own is not None and name.startswith("clip") else ""
        said = said.format(f"{value + (name == 'offset'):.4g}") + instead
        return Departure(category, said, rule.but(**{name: value}), number=(name, value))
    label, category, _ = _SEQUENCES[name]
    changed = rule.but(**{name: np.full_like(own, value)})
    return Departure(category, f"{label} is {value:.5g}, not {claimed(own)}", changed, number=(name, value))


def together(rule: Rule, changes: Sequence[Departure]) -> Rule:
    """Return the rule with what each of several departures from it changes."""
    made = rule
    for change in changes:
        made = moved(made, rule, change.rule)
    return made


def moved(rule: Rule, before: Rule, after: Rule) -> Rule:
    """Return a rule with what differs between two others."""
    differ = {one.name: getattr(after, one.name) for one in fields(Rule)}
    return rule.but(**{name: value for name, value in differ.items() if not _same(value, getattr(before, name))})


def _same(one: object, other: object) -> bool:
    return one is other or (not isinstance(one, np.ndarray) and not isinstance(one, tuple) and one == other)


def choices(rule: Rule) -> Iterator[Departure]:
    """Yield the named changes that change something."""
    for category, said, changes in _CHOICES:
        if any(getattr(rule, name) != value for name, value in changes.items()) and _concerns(rule, changes):
            # The rule's sign is the claim's: stepping the wrong way is the other one.
            changed = {"sign": -rule.sign} if category == "sign" else changes
            if changes.get("family") == "nadam":
                changed = {**changes, "first_moment": "average"}
            yield Departure(category, said, rule.but(**changed))
    if rule.sign < 0:
        yield Departure("sign", "it descends, where ascent was claimed", rule.but(sign=1.0))


def _concerns(rule: Rule, changes: dict[str, object]) -> bool:
    """Return whether the rule has that part at all."""
    has = {
        "correction": rule.family in {"adam", "nadam"},
        "clip_how": rule.clip_norm is not None,
        "clip_update_how": rule.clip_update is not None,
        "decay_form": bool(rule.decay.any()),
        "first_moment": rule.first_moment != "none",
    }
    return has.get("decay_form" if changes.get("missing") == "decay only" else next(iter(changes)), True)


def families(rule: Rule) -> Iterator[Departure]:
    """Yield other algorithms with the same settings."""
    average = {"first_moment": "average", "second_moment": "average"}
    for name, category, changes in (
        ("Adam", "momentum", {"family": "adam", **average}),
        ("RMSprop", "momentum", {"family": "rmsprop", "first_moment": "none", "second_moment": "average"}),
        ("Adagrad", "second moment", {"family": "adagrad", "first_moment": "none", "second_moment": "sum"}),
        ("SGD", "second moment", {"family": "sgd", **average}),
    ):
        if changes["family"] != rule.family:
            yield Departure(category, f"the step is that of {name}", rule.but(**changes))


def numbers(rule: Rule, trace: Trace) -> Iterator[Departure]:
    """Yield the rule with another beta, eps, decay, scale or threshold: what people type first."""
    for name, _, _, values in _of(rule):
        own = getattr(rule, name)
        yield from (number(rule, name, one) for one in values if not np.allclose(own, one, rtol=1e-9, atol=0))
    yield Departure("betas", "beta1 and beta2 are swapped", rule.but(beta1=rule.beta2, beta2=rule.beta1))
    if rule.family == "sgd" and rule.momentum.any() and not rule.dampening:
        said = "gradients enter the momentum with the factor 1 - momentum (dampening)"
        yield Departure("momentum", said, rule.but(dampening=float(rule.momentum.flat[0])))
    micro, norm, update = float(len(trace.gradients)), rule.clip_norm, rule.clip_update
    factors = dict.fromkeys((micro, 1 / micro, *_POWERS))
    limits = (0.1, 0.25, 0.5, 1.0, 5.0, 10.0) if norm is None else [norm * one for one in (*factors, 10.0, 0.1)]
    tried = {
        "offset": (1.0, -1.0, 2.0, 9.0, 99.0) if rule.family in {"adam", "nadam"} else (),
        "initial_v": (0.0, 1.0, 0.1, 1e-3, 1e-6) if rule.family != "sgd" else (),
        "scale": factors,
        "clip_norm": limits,
        "clip_update": [update * one for one in (0.1, 0.5, 2.0, 10.0)] if update is not None else (),
    }
    for name, values in tried.items():
        yield from (number(rule, name, one) for one in values if one != getattr(rule, name))


def groups_say(rule: Rule, trace: Trace) -> Iterator[Departure]:
    """Yield the rule with what the parameter groups say, one setting at a time."""
    for name, label, kind, _ in _of(rule):
        source = {"decay": "weight_decay", "beta2": "alpha" if rule.family == "rmsprop" else "beta2"}.get(name, name)
        said, own = trace.settings.get(source), getattr(rule, name)
        if said is None or np.isnan(said).all():
            continue
        said = np.where(np.isnan(said), own, said)
        other = ~np.isclose(said, own, rtol=1e-6, atol=0)
        if not other.any():
            continue
        category, (since, at) = kind, np.argwhere(other)[0]
        text = f"the groups say {label} = {said[since, at]:.6g} at step {since + 1}, not {own[since, at]:.6g}"
        if name == "lr":
            at = (own > 0).argmax(axis=0), np.arange(own.shape[1])
            with np.errstate(all="ignore"):
                factor = said[at] / own[at]
                one_factor = np.allclose(said, own * factor, rtol=1e-6, atol=0)
            # The same part of a warm-up, of which the rate that it rises to tells: it is another warm-up.
            top = trace.settings.get("initial_lr", np.full_like(own, np.nan))[0]
            if not one_factor or (np.ptp(own) > 0 and np.allclose(top, own.max(), rtol=1e-6)):
                category, named = "schedule", _clock_said(said, own)
                text = text if named is None else f"{named} ({text})"
        concerned = frozenset(np.flatnonzero(other.any(axis=0)).tolist())
        yield Departure(category, text, rule.but(**{name: said}), told=True, of=concerned)
    for name, label, category, _ in _of(rule):
        own = getattr(rule, name)
        for place, at in (("first", 0), ("last", -1)) if not (own == own[:, :1]).all() else ():
            said = f"the {label} of the {place} group is used for all"
            yield Departure(category, said, rule.but(**{name: np.repeat(own[:, [at]], own.shape[1], axis=1)}))


def clocks(rates: Floats, skipped: npt.NDArray[np.bool_] | None = None) -> Iterator[tuple[str, Floats]]:
    """Yield the same rates at other times, in words."""
    last, t = len(rates) - 1, np.arange(len(rates))
    yield "the schedule is one step behind", rates[np.maximum(t - 1, 0)]
    yield "the schedule is one step ahead", rates[np.minimum(t + 1, last)]
    if skipped is not None and skipped.any():
        yield (
            "the schedule goes on where steps are skipped",
            np.interp(t, np.maximum(np.cumsum(~skipped) - 1, 0), rates),
        )
    for times in (2, 3, 4, 5, 6, 7, 8, 10, 16, 32):
        for ahead in (0, times - 1, times):  # a count from 0, or from 1, or moved before the step
            at = times * t + ahead  # past what was claimed nothing is known: a fast clock is judged where it is
            yield f"the schedule runs {times} times too fast", np.where(at <= last, rates[np.minimum(at, last)], np.nan)
        yield f"the schedule moves once in {times} steps", rates[t // times]
    yield "the schedule does not move", np.full_like(rates, rates[0])


def _clock_said(said: Floats, own: Floats) -> str | None:
    for text, rates in clocks(own[:, 0]):
        known = ~np.isnan(rates)
        if np.allclose(said[known, 0], rates[known], rtol=1e-5, atol=0):
            return text
    return None


def claimed(values: Floats) -> str:
    """Return the claimed number, or its range."""
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def resumes(rule: Rule, trace: Trace, left: npt.NDArray[np.int64]) -> Iterator[Departure]:
    """Yield what a load may lose or exchange."""
    for said, lost in _RESUMES:
        yield Departure("resume", f"after the load {said}", rule.but(resume=lost))
    for one, other in combinations(left[:12], 2):
        if trace.numel[one] == trace.numel[other]:
            said = f"after the load {trace.names[one]} and {trace.names[other]} have each other's state"
            yield Departure("resume", said, rule.but(exchanged=(int(one), int(other))))
