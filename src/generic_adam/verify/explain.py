"""Which single change of the claim, or which pair, brings every step of every coordinate inside its bound.

The order is that of cost: parameters that never move, what the groups say, what is lost at a load, one change, another
number, another rate at each step read as a clock, two changes. What none of them explains is said to be unexplained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from generic_adam.verify import departures
from generic_adam.verify.departures import Departure
from generic_adam.verify.replay import ROUNDOFF, Floats, Replay, Rule, Trace, active, replay

_ALONE = 6  # parameters that are looked at one by one
_PAIRED = 6  # single changes that help most are tried two at a time


@dataclass(frozen=True)
class Found:
    """A difference: what kind, in words, from which step on, of which parameters, and how large."""

    category: str
    said: str
    since: int
    where: tuple[str, ...]
    size: float
    explained: bool


def explain(rule: Rule, trace: Trace) -> tuple[Found, ...]:
    """Return the differences between a rule and a trace; none where every step is within its bound."""
    first = replay(rule, trace)
    differs = first.differs
    found = [*_other_weights(trace, first)]
    if not differs.any():
        return (*found, *_narrow(rule, trace), *_lost(rule, trace, first))
    left = np.unique(trace.owner[differs.any(axis=0)])
    still = [p for p in left if _never_moves(trace, first, p)]
    if still:
        outside = trace.group[still] < 0
        said = "it is in no parameter group" if outside.all() else "it never moves"
        found.append(_found(Departure("not updated", said, rule), trace, first, still))
        left = np.array([p for p in left if p not in still])
    for parameters, changes in _together(rule, trace, left, first):
        found += _of(rule, trace, first, parameters, changes)
    return tuple(_merged(found))


def _other_weights(trace: Trace, run: Replay) -> Iterator[Found]:
    """Weights that a load did not bring back."""
    if trace.resumed is None or trace.loaded is None:
        return
    moved = trace.loaded != trace.weights[trace.resumed]
    if moved.any():
        names = tuple(trace.names[p] for p in np.unique(trace.owner[moved]))
        step = np.abs(run.lr * run.slope)[trace.resumed, moved]
        size = float(np.median(np.abs(trace.loaded - trace.weights[trace.resumed])[moved] / np.maximum(step, 1e-300)))
        yield Found("resume", "the weights after the load are not those saved", trace.resumed + 1, names, size, True)


def _narrow(rule: Rule, trace: Trace) -> Iterator[Found]:
    """State that is seen to be narrower than claimed, where no step has shown it."""
    wide = rule.state_dtype or "float32"
    kinds = [_kinds(trace, p) for p in range(len(trace.names))]
    narrow = [
        p
        for p, seen in enumerate(kinds)
        if seen and max(ROUNDOFF[one] for one in seen) == min(ROUNDOFF[one] for one in seen) > ROUNDOFF[wide]
    ]
    if narrow:
        said = f"the moments are kept in {min(kinds[narrow[0]])}, not {wide}"
        yield Found("state precision", said, 1, tuple(trace.names[p] for p in narrow), 0.0, True)


def _lost(rule: Rule, trace: Trace, run: Replay) -> Iterator[Found]:
    """Half-precision weights that stand still although the steps add up to several times what they can resolve."""
    unit = np.array([ROUNDOFF[one] for one in trace.dtypes])[trace.owner]
    steps = run.predicted - trace.weights[:-1]
    resolved = unit * np.abs(trace.weights[:-1])  # at least half of the distance to the next number: steps below vanish
    small = (np.abs(steps) < 0.5 * resolved).all(axis=0) & (unit > 1e-5)
    due = small & (np.abs(steps.sum(axis=0)) > 3 * resolved.max(axis=0))
    still = due & (trace.weights == trace.weights[0]).all(axis=0)
    if rule.state_dtype in {"float16", "bfloat16"} or due.sum() < 3 or still.sum() < 0.6 * due.sum():
        return
    names = tuple(trace.names[p] for p in np.unique(trace.owner[still]))
    said = (
        f"steps below half the resolution of {trace.dtypes[trace.owner[still][0]]} weights are lost, and do not add up"
    )
    yield Found("lost updates", said, 1, names, 1.0, True)


def _never_moves(trace: Trace, run: Replay, parameter: int) -> bool:
    own = trace.owner == parameter
    return bool((trace.weights[:, own] == trace.weights[0, own]).all() and run.differs[:, own].any())


def _found(change: Departure, trace: Trace, run: Replay, parameters: Iterable[int], *, explained: bool = True) -> Found:
    own = np.isin(trace.owner, list(parameters))
    differs = run.differs & own
    since = int(np.flatnonzero(differs.any(axis=1))[0])
    there = differs[since]
    step = np.abs(run.predicted - trace.weights[:-1])[since, there]
    off = np.abs(run.seen - run.predicted)[since, there]
    with np.errstate(all="ignore"):
        size = float(np.nanmedian(off / np.maximum(step, 1e-300)))
    names = tuple(trace.names[p] for p in np.unique(trace.owner[differs.any(axis=0)]))
    return Found(change.category, change.said, since + 1, names, size, explained)


def _together(
    rule: Rule, trace: Trace, left: npt.NDArray[np.int64], first: Replay
) -> Iterator[tuple[list[int], list[Departure] | None]]:
    """Parameters with the changes that explain them: all at once, else group by group, else one by one."""
    if not left.size:
        return
    together = [int(p) for p in left]
    changes = _search(rule, trace, first, together)
    if changes is not None or len(together) == 1:
        yield together, changes
        return
    groups = [[p for p in together if trace.group[p] == group] for group in np.unique(trace.group[left])]
    for of in groups if len(groups) > 1 else [[p] for p in together[:_ALONE]]:
        yield of, _search(rule, trace, first, of, pairs=False)


def _of(rule: Rule, trace: Trace, first: Replay, parameters: list[int], changes: list[Departure] | None) -> list[Found]:
    if changes is not None:
        return [_found(one, trace, first, parameters) for one in changes]
    own = np.isin(trace.owner, parameters)
    nearest = min(_singles(rule, trace, first, own), key=lambda one: _bad(one.rule, trace, own))
    said = f"no single change of the claim, and no pair of them, explains it; nearest: {nearest.said}"
    return [_found(replace(nearest, said=said), trace, first, parameters, explained=False)]


def _merged(found: list[Found]) -> Iterator[Found]:
    """The same difference of several parameters is one."""
    kinds: dict[tuple[str, str, bool], list[Found]] = {}
    for one in found:
        kinds.setdefault((one.category, one.said, one.explained), []).append(one)
    for same in kinds.values():
        names = tuple(dict.fromkeys(name for one in same for name in one.where))
        worst = max(same, key=lambda one: one.size)
        yield replace(worst, where=names, since=min(one.since for one in same))


def _bad(rule: Rule, trace: Trace, own: npt.NDArray[np.bool_]) -> int:
    return int((replay(rule, trace).differs & own).sum())


@dataclass(frozen=True)
class _Judge:
    """Tells whether a change explains every difference of some parameters, more sharply than it is large."""

    trace: Trace
    first: Replay
    own: npt.NDArray[np.bool_]

    def left(self, change: Departure) -> int:
        """How many steps of a coordinate differ still, or are now allowed to be anything."""
        run = replay(change.rule, self.trace)
        differed = self.first.differs & self.own
        bad = int((run.differs & self.own).sum())
        if change.category != "state precision":
            with np.errstate(invalid="ignore"):
                vague = (
                    ~(run.bound <= np.abs(self.first.seen - self.first.predicted)) & differed & np.isfinite(run.seen)
                )
            bad += int(vague.sum()) if vague.sum() > differed.sum() / 20 else 0
        return bad


def _search(
    rule: Rule, trace: Trace, first: Replay, parameters: list[int], *, pairs: bool = True
) -> list[Departure] | None:
    """The cheapest changes that explain everything of these parameters, or None."""
    own = np.isin(trace.owner, parameters)
    judge = _Judge(trace, first, own)
    scored: list[tuple[int, Departure]] = []
    for change in _singles(rule, trace, first, own):
        bad = judge.left(change)
        if bad == 0:
            return [change]
        scored.append((bad, change))
    clock = _clock(rule, trace, first, own)
    if clock is not None:
        return [clock]
    total = int((first.differs & own).sum())
    best = sorted((one for one in scored if one[0] < total), key=lambda one: one[0])[:_PAIRED] if pairs else []
    said = [(total, one) for one in departures.groups_say(rule, trace)] if pairs else []
    # A pair that fails on the first steps that differ fails: most are thrown out on a short trace.
    since = int(np.flatnonzero((first.differs & own).any(axis=1))[0])
    short = trace.until(min(since + 4, trace.steps))
    for _, one in [*said, *best]:
        for other in _singles(one.rule, trace, first, own):
            if _bad(_until(other.rule, short), short, own) == 0 and judge.left(other) == 0:
                return [one, other]
        clock = _clock(one.rule, trace, replay(one.rule, trace), own)
        if clock is not None:
            return [one, clock]
    return None


def _until(rule: Rule, trace: Trace) -> Rule:
    names = ("lr", "beta1", "beta2", "eps", "decay")
    ahead = rule.look_ahead and tuple(each[: trace.steps] for each in rule.look_ahead)
    return rule.but(**{name: getattr(rule, name)[: trace.steps] for name in names}, look_ahead=ahead)


def _singles(rule: Rule, trace: Trace, first: Replay, own: npt.NDArray[np.bool_]) -> Iterator[Departure]:
    told = list(departures.groups_say(rule, trace))
    yield from told
    if trace.resumed is not None and not first.differs[: trace.resumed, own].any():
        for said, lost in departures.RESUMES:
            yield Departure("resume", f"after the load {said}", rule.but(resume=lost))
    yield from departures.choices(rule)
    yield from departures.families(rule)
    yield from departures.numbers(rule, trace)
    narrow = [
        one for p in np.unique(trace.owner[own]) for one in _kinds(trace, int(p)) if one in {"float16", "bfloat16"}
    ]
    if narrow and rule.state_dtype != narrow[0]:
        said = f"the moments are kept in {narrow[0]}"
        yield Departure("state precision", said, rule.but(state_dtype=narrow[0]))


def _kinds(trace: Trace, parameter: int) -> frozenset[str]:
    seen = trace.state_dtypes[parameter] if trace.state_dtypes else frozenset[str]()
    return frozenset(one for one in seen if one in ROUNDOFF)


# The rate of each step, read as a clock.


def rates(
    run: Replay, own: npt.NDArray[np.bool_], taking: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats] | None:
    """Return the least and greatest rate that explain each step, and its middle; None where none does."""
    with np.errstate(all="ignore"):
        low = (run.fixed - run.seen - run.write) / run.slope
        high = (run.fixed - run.seen + run.write) / run.slope
        low, high = np.minimum(low, high), np.maximum(low, high)
        loose = run.slope_error / np.abs(run.slope)
        widen = np.maximum(np.abs(low), np.abs(high)) * loose / np.maximum(1 - loose, 1e-9)
        useful = own & taking & (np.abs(run.slope) > 0) & np.isfinite(loose) & (loose < 0.5)
        low, high = np.where(useful, low - widen, -np.inf), np.where(useful, high + widen, np.inf)
    least, most = low.max(axis=1, initial=-np.inf), high.min(axis=1, initial=np.inf)
    if (least > most).any() or not np.isfinite(least).any():
        return None
    known = np.isfinite(least) & np.isfinite(most)
    middle = np.full_like(least, np.nan)
    middle[known] = (least[known] + most[known]) / 2
    return least, most, middle


def _clock(rule: Rule, trace: Trace, run: Replay, own: npt.NDArray[np.bool_]) -> Departure | None:
    """Another rate at each step that explains everything: a factor, a shift or another pace of the claimed one."""
    apart = rule.decay_form == "decoupled" and bool(rule.decay.any())
    ways = [rule, rule.but(decay_form="absolute", decay=rule.lr * rule.decay)] if apart else [rule]
    found = (_clock_of(one, trace, run if one is rule else replay(one, trace), own) for one in ways)
    return next((one for one in found if one is not None), None)


def _clock_of(rule: Rule, trace: Trace, run: Replay, own: npt.NDArray[np.bool_]) -> Departure | None:
    taking = active(rule, trace)[:, trace.owner]
    found = rates(run, own, taking)
    if found is None:
        return None
    least, most, middle = found
    columns = np.unique(trace.owner[own])
    claimed = rule.lr[:, columns[0]]
    if not np.allclose(rule.lr[:, columns], claimed[:, None], rtol=1e-9, atol=0):
        return None

    def fits(values: Floats) -> bool:
        slack = 1e-6 * np.abs(values)
        return bool((np.isnan(values) | ((values + slack >= least) & (values - slack <= most))).all())

    lr = np.where(np.isnan(middle), claimed, middle)
    made = rule.but(lr=np.repeat(lr[:, None], rule.lr.shape[1], axis=1))
    if _bad(made, trace, own) or not known_enough(middle, trace, own):
        return None
    with np.errstate(all="ignore"):
        ratio_low, ratio_high = np.nanmax(least / claimed), np.nanmin(most / claimed)
    moving = np.ptp(claimed) > 0
    if ratio_low <= ratio_high and (claimed > 0).all():
        factor = (ratio_low + ratio_high) / 2
        return Departure("learning rate", f"the learning rate is {factor:.4g} times the claimed one", made)
    if moving:
        for said, values in departures.clocks(claimed, trace.overflow):
            if fits(values):
                return Departure("schedule", said, made)
    changes = ~((claimed * (1 + 1e-6) >= least) & (claimed * (1 - 1e-6) <= most))
    since = int(np.flatnonzero(changes)[0])
    said = f"the learning rate is {lr[since]:.4g} at step {since + 1}, where {claimed[since]:.4g} was claimed"
    if trace.resumed is not None and since >= trace.resumed:
        return Departure("resume", f"after the load {said}", made)
    return Departure("schedule" if moving or changes.sum() < len(claimed) else "learning rate", said, made)


def known_enough(middle: Floats, trace: Trace, own: npt.NDArray[np.bool_]) -> bool:
    """Return whether rates are read off more coordinates than there are rates: else any step would be explained."""
    moved = int(((np.diff(trace.weights, axis=0) != 0) & own).sum())
    return moved >= 3 * int((~np.isnan(middle)).sum())
