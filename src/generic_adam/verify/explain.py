"""Which single change of the claim, or which pair, brings every step of every coordinate inside its bound.

The order is that of cost: parameters that never move, what the groups say, what is lost at a load, one change, another
number, another rate at each step read as a clock, two changes. What none of them explains is said to be unexplained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from generic_adam.verify import departures
from generic_adam.verify.departures import Departure
from generic_adam.verify.front import Difference
from generic_adam.verify.replay import (
    EIGHT_BITS,
    HALF,
    ROUNDOFF,
    SEQUENCES,
    Floats,
    Replay,
    Rule,
    Trace,
    active,
    acts,
    replay,
)

_PAIRED = 8  # single changes that help most are tried two at a time
_GOLDEN = (3 - math.sqrt(5)) / 2
_FITTED = 3  # kinds of numbers that are fitted
_WORK = 16_000  # steps of some 200 coordinates that a search replays at most; then what is left is unexplained


def explain(rule: Rule, trace: Trace) -> tuple[Difference, ...]:
    """Return the differences between a rule and a trace; none where every step is within its bound."""
    with np.errstate(all="ignore"):
        return _explained(rule, trace)


def _explained(rule: Rule, trace: Trace) -> tuple[Difference, ...]:
    first = replay(rule, trace)
    differs = first.differs
    found = [*_other_weights(trace, first)]
    if not differs.any():
        return (*found, *_narrow(rule, trace), *_lost(rule, trace, first), *_copies(rule, trace, first))
    left = np.unique(trace.owner[differs.any(axis=0)])
    stops = {int(p): at for p in left if (at := _stops(trace, first, p)) is not None}
    for at in sorted(set(stops.values())):
        still = [p for p in stops if stops[p] == at]
        said = "it never moves" if at == 0 else f"it does not move from step {at + 1} on"
        said = "it is in no parameter group" if (trace.group[still] < 0).all() else said
        found.append(_found(Departure("not updated", said, rule), trace, first, still))
    left = np.array([p for p in left if p not in stops], dtype=np.int64)
    if not len(left):
        return tuple(_merged(found))
    search = _Search(rule, trace, first, left)
    for parameters, changes in search.explained(left):
        if changes is None:
            found.append(_found(search.nearest(parameters), trace, first, parameters, explained=False))
        else:
            found += [_found(one, trace, first, parameters) for one in changes]
    return tuple(_merged(found))


def _other_weights(trace: Trace, run: Replay) -> Iterator[Difference]:
    """Weights that a load did not bring back."""
    if trace.resumed is None or trace.loaded is None:
        return
    moved = trace.loaded != trace.weights[trace.resumed]
    if moved.any():
        names = tuple(trace.names[p] for p in np.unique(trace.owner[moved]))
        step = np.abs(run.lr * run.slope)[trace.resumed, moved]
        size = float(np.median(np.abs(trace.loaded - trace.weights[trace.resumed])[moved] / np.maximum(step, 1e-300)))
        said = "the weights after the load are not those saved"
        yield Difference("resume", trace.resumed + 1, names, size, True, said)


def _narrow(rule: Rule, trace: Trace) -> Iterator[Difference]:
    """State that is seen to be narrower than claimed, where no step has shown it."""
    wide = rule.state_dtype or "float32"
    kinds = [_kinds(trace, p) for p in range(len(trace.names))]
    units = [{ROUNDOFF[one] for one in seen} for seen in kinds]
    narrow = [p for p, each in enumerate(units) if len(each) == 1 and min(each) > ROUNDOFF[wide]]
    if narrow:
        said = f"the moments are kept in {min(kinds[narrow[0]])}, not {wide}"
        yield Difference("state precision", 1, tuple(trace.names[p] for p in narrow), 0.0, True, said)


def _lost(rule: Rule, trace: Trace, run: Replay) -> Iterator[Difference]:
    """Half-precision weights that stand still although the steps add up to several times what they can resolve."""
    unit = np.array([ROUNDOFF[one] for one in trace.dtypes])[trace.owner]
    steps = run.predicted - trace.weights[:-1]
    resolved = unit * np.abs(trace.weights[:-1])  # at least half of the distance to the next number: steps below vanish
    small = (np.abs(steps) < 0.5 * resolved).all(axis=0) & (unit > 1e-5)
    due = small & (np.abs(steps.sum(axis=0)) > 3 * resolved.max(axis=0))
    still = due & (trace.weights == trace.weights[0]).all(axis=0)
    asked, stood = (np.bincount(trace.owner[one], minlength=len(trace.names)) for one in (due, still))
    lost = np.flatnonzero((asked >= 2) & (stood >= 0.6 * asked))
    if lost.size and rule.state_dtype not in HALF:
        said = f"steps below half the resolution of {trace.dtypes[lost[0]]} weights are lost, and do not add up"
        yield Difference("lost updates", 1, tuple(trace.names[p] for p in lost), 1.0, True, said)


def _copies(rule: Rule, trace: Trace, run: Replay) -> Iterator[Difference]:
    """Float32 copies of half-precision weights that a load makes anew from the rounded weights."""
    if trace.resumed is None or rule.state_dtype in HALF:
        return
    unit = np.array([ROUNDOFF[one] if one in HALF else 0.0 for one in trace.dtypes])[trace.owner]
    moves, slack = run.predicted - trace.weights[:-1], np.abs(run.lr) * run.slope_error
    kept, whole, anew = trace.weights[0], np.zeros_like(trace.weights[:-1]), np.zeros_like(trace.weights[:-1])
    made, error = kept, np.zeros_like(kept)
    for t in range(trace.steps):
        made = trace.weights[t] if t == trace.resumed else made
        kept, made, error = kept + moves[t], made + moves[t], error + slack[t]
        room = 1.01 * unit * np.maximum(np.abs(trace.weights[t + 1]), np.abs(kept)) + error
        whole[t], anew[t] = (np.abs(trace.weights[t + 1] - one) - room for one in (kept, made))
    off = (whole > 0) & (unit > 0)
    if off[: trace.resumed].any() or not off[trace.resumed :].any() or ((anew > 0) & (unit > 0)).any():
        return
    names = tuple(trace.names[p] for p in np.unique(trace.owner[off.any(axis=0)]))
    since = int(np.flatnonzero(off.any(axis=1))[0])
    size = float(np.median((whole[since] / np.abs(moves[since]))[off[since]]))
    said = "after the load the copies of the weights in float32 are made anew from the rounded weights"
    yield Difference("resume", since + 1, names, size, True, said)


def _stops(trace: Trace, run: Replay, parameter: int) -> int | None:
    """Return the step from which on a parameter stands still while others move, where it was right before."""
    own = trace.owner == parameter
    moves = np.not_equal(trace.weights[1:], trace.weights[:-1])
    at = int(np.flatnonzero(moves[:, own].any(axis=1)).max(initial=-1)) + 1
    differs = np.asarray(run.differs[:, own].any(axis=1))
    if at == 0:
        return 0 if differs.any() and float(np.abs(trace.gradients[..., own]).max()) > 1e-3 else None
    others = moves[at:, ~own].any(axis=1)
    stops = not differs[:at].any() and differs[at:].sum() >= min(3, trace.steps - at) > 0 and others.mean() > 0.5
    return at if stops and trace.present[:at, parameter].any() else None


def _found(
    change: Departure, trace: Trace, run: Replay, parameters: Iterable[int], *, explained: bool = True
) -> Difference:
    concerned = [p for p in parameters if change.of is None or p in change.of] or list(parameters)
    differs = run.differs & np.isin(trace.owner, concerned)
    differs = differs if differs.any() else run.differs & np.isin(trace.owner, list(parameters))
    since = int(np.flatnonzero(differs.any(axis=1))[0])
    there = differs[since]
    with np.errstate(all="ignore"):
        step = np.abs(run.predicted - trace.weights[:-1])[since, there]
        off = np.abs(run.seen - run.predicted)[since, there]
        size = float(np.nanmedian(np.where(step > 1e-30, off / step, 1.0)))
    places = np.unique(trace.owner[differs.any(axis=0)])
    if change.category == "state precision" and change.rule.state_dtype:  # seen in the state of others too
        same = [p for p in range(len(trace.names)) if _kinds(trace, p) == {change.rule.state_dtype}]
        places = np.union1d(places, np.array(same, dtype=np.int64))
    names = tuple(trace.names[p] for p in places)
    loaded = trace.resumed is not None and 0 <= since - trace.resumed <= 1  # a schedule's first value may be the same
    category, said = change.category, change.said
    if loaded and category != "resume":
        category, said = "resume", f"after the load {said}"
    return Difference(category, since + 1, names, size, explained, said)


def _merged(found: list[Difference]) -> Iterator[Difference]:
    """Make the same difference of several parameters one."""
    kinds: dict[tuple[str, str, bool], list[Difference]] = {}
    for one in found:
        kinds.setdefault((one.category, one.said, one.explained), []).append(one)
    for same in kinds.values():
        names = tuple(dict.fromkeys(name for one in same for name in one.where))
        worst = max(same, key=lambda one: one.size)
        yield replace(worst, where=names, since=min(one.since for one in same))


@dataclass(frozen=True, eq=False)
class _Scored:
    """A change with what it leaves of each parameter.

    Attributes:
        change: the change.
        left: the steps of a coordinate that still differ under it, or may then be anything.
        off: by which shares of themselves all steps together are off.
    """

    change: Departure
    left: npt.NDArray[np.int64]
    off: Floats


class _Search:
    """The changes of one rule, each replayed once for all parameters."""

    def __init__(self, rule: Rule, trace: Trace, first: Replay, left: npt.NDArray[np.int64]) -> None:
        self.rule, self.trace, self.first = rule, trace, first
        self.differed = self._count(first.differs)
        self.worked = 0.0
        # Changes are weighed on the steps until all have differed for a while, and what passes there on all steps.
        since = [int(np.flatnonzero(first.differs[:, trace.owner == p].any(axis=1))[0]) for p in left]
        self.window = trace.until(min(max(since) + 10, trace.steps))
        self.scored: list[_Scored] = []
        self.whole: dict[int, npt.NDArray[np.int64]] = {}
        for change in _singles(rule, trace, first, left):
            run = self._replayed(change.rule, self.window)
            self.scored.append(_Scored(change, self._left(change, run), self._off(run)))
            if self._explains(self.scored[-1], left) or self.worked > 2 * _WORK:
                break  # cheapest first: it explains all

    def explained(self, left: npt.NDArray[np.int64]) -> Iterator[tuple[list[int], list[Departure] | None]]:
        """Yield parameters with the changes that explain them: all at once, by single changes, by pairs; the rest."""
        single = self._one(left)
        together = [single] if single is not None else self._fitted(left) or self._pair(left)
        if together is not None:
            yield [int(p) for p in left], together
            return
        unexplained = []
        for group in np.unique(self.trace.group[left]):
            of = left[self.trace.group[left] == group]
            single = self._one(of)
            for some in [of] if single is not None else of[:, None]:
                alone = single or self._one(some)
                if alone is not None:
                    yield [int(p) for p in some], [alone]
                else:
                    unexplained += [int(p) for p in some]
        if unexplained:
            some = np.array(unexplained)
            fitted = self._fitted(some)
            pair = self._pair(some) if fitted is None and len(some) < len(left) else None
            yield unexplained, fitted or pair or self._unseen_formats(some)

    def _fitted(self, some: npt.NDArray[np.int64]) -> list[Departure] | None:
        """Fit a number between those that were tried: the best of each kind, moved to where it leaves least."""
        best: dict[str, float] = {}
        for one in sorted(self.scored, key=lambda one: float(one.off[some].sum())):
            if one.change.number is not None and one.change.number[1] > 0:
                best.setdefault(*one.change.number)
        # Under Adam gradients of another scale are another eps: the first is a loop's fault, the second an optimizer's.
        wrong, right = ("eps", "scale") if self.trace.calls else ("scale", "eps")
        names = [right if name == wrong and right in best else name for name in list(best)[:_FITTED]]
        for name in dict.fromkeys(names):
            value = best[name]
            beta = name.startswith("beta")  # told apart by 1 - beta
            center = math.log(1 - value if beta else value)

            def at(u: float, beta: bool = beta) -> float:
                return 1 - math.exp(u) if beta else math.exp(u)

            def off(u: float, name: str = name, at: Callable[[float], float] = at) -> float:
                rule = departures.number(self.rule, name, at(u)).rule
                return float(self._off(self._replayed(rule, self.window))[some].sum())

            nearest = min(range(-6, 7), key=lambda k: off(center + 0.4 * k))
            low, high = center + 0.4 * (nearest - 1), center + 0.4 * (nearest + 1)
            left, right = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
            of_left, of_right = off(left), off(right)
            for _ in range(42):
                if min(of_left, of_right) == 0:
                    break
                if of_left <= of_right:
                    high, right, of_right = right, left, of_left
                    left = low + _GOLDEN * (high - low)
                    of_left = off(left)
                else:
                    low, left, of_left = left, right, of_right
                    right = high - _GOLDEN * (high - low)
                    of_right = off(right)
            fit = at(left if of_left <= of_right else right)
            typed = dict.fromkeys(float(f"{fit:.{digits}g}") for digits in (1, 2, 3, 4, 17))  # few digits first
            for one in typed if min(of_left, of_right) == 0 else ():
                change = departures.number(self.rule, name, one)
                if not self._left(change)[some].any():
                    return [change]
        return None

    def _unseen_formats(self, some: npt.NDArray[np.int64]) -> list[Departure] | None:
        """Moments in half precision, where the state cannot be looked at: the loosest explanation, so the last."""
        hidden = not any(self.trace.state_dtypes[p] for p in some) if self.trace.state_dtypes else True
        kinds = [(dtype, narrow) for dtype in ("float16", "bfloat16") for narrow in ("m", "v", "mv")]
        for dtype, narrow in kinds if hidden and self.rule.state_dtype is None else ():
            of = {"m": "the first moment is", "v": "the second moment is"}.get(narrow, "the moments are")
            said = f"{of} kept in {dtype}"
            change = Departure("state precision", said, self.rule.but(state_dtype=dtype, narrow=narrow))
            if not self._left(change)[some].any():
                return [change]
        return None

    def nearest(self, parameters: list[int]) -> Departure:
        """Return the single change that leaves least; where none helps much, which part of the step is off."""
        said = "no change of the claim that is known here, and no two of them, explain it"
        calls = self.trace.calls
        if calls > 1:
            taken = f"{said}; the optimizer takes {calls} steps in each of yours"
            micro = calls == len(self.trace.gradients)
            return Departure("gradient scale" if micro else "step counter", taken, self.rule)
        seen = set().union(*(self.trace.state_dtypes[p] for p in parameters if self.trace.state_dtypes))
        if EIGHT_BITS in seen:
            return Departure("state precision", f"{said}; the moments are kept in eight bits", self.rule)
        best = min(self.scored, key=lambda one: float(one.off[parameters].sum()))
        first = self._replayed(self.rule, self.window)
        if best.off[parameters].sum() < 0.9 * self._off(first)[parameters].sum():
            return replace(best.change, said=f"{said}; nearest: {best.change.said}")
        own = self.first.differs & np.isin(self.trace.owner, parameters)
        since = int(np.flatnonzero(own.any(axis=1))[0])
        if self.rule.clip_norm is not None and acts(self.rule, self.trace)[since]:
            return Departure("clipping", f"{said}; the claimed clipping acts at that step", self.rule)
        seen, due = ((one - self.trace.weights[:-1])[own] for one in (self.first.seen, self.first.predicted))
        way = "second moment" if np.mean(seen * due >= 0) > 0.9 else "momentum"
        signs = "the claimed sign, not the size" if way == "second moment" else "other signs"
        return Departure(way, f"{said}; the steps have {signs}", self.rule)

    def _one(self, some: npt.NDArray[np.int64]) -> Departure | None:
        for one in self.scored:
            if self._explains(one, some):
                return one.change
        return _clock(self.rule, self.trace, self.first, np.isin(self.trace.owner, some))

    def _pair(self, some: npt.NDArray[np.int64]) -> list[Departure] | None:
        """All that the groups say, or one change that helps, and one more."""
        own = np.isin(self.trace.owner, some)
        total = int(self._count(self.first.differs[: self.window.steps])[some].sum())
        helps = [one for one in self.scored if one.left[some].sum() < total]
        helps.sort(key=lambda one: int(one.left[some].sum()))
        told = [one.change for one in self.scored if one.change.told]
        seeds = [told] if len(told) > 1 else []
        seeds += [[one] for one in dict.fromkeys([*told, *(one.change for one in helps[:_PAIRED])])]
        # A pair that fails on the first steps that differ fails: most are thrown out on a short trace.
        since = int(np.flatnonzero((self.first.differs & own).any(axis=1))[0])
        short = self.trace.until(min(since + 4, self.trace.steps))
        for seed in seeds:
            rule = departures.together(self.rule, seed)
            if len(seed) > 1 and not self._left(replace(seed[0], rule=rule))[some].any():
                return self._needed(seed, some)
            for other in _singles(rule, self.trace, self.first, some):
                if self.worked > _WORK:
                    return None
                seems = not (self._replayed(other.rule, short).differs & own).any()
                if seems and not self._left(other)[some].any():
                    return [*self._needed(seed, some, other), other]
            clock = _clock(rule, self.trace, replay(rule, self.trace), own)
            if clock is not None:
                return [*seed, clock]
        return None

    def _needed(
        self, seed: list[Departure], some: npt.NDArray[np.int64], last: Departure | None = None
    ) -> list[Departure]:
        """Without the changes that explain nothing beside the others."""
        whole = departures.together(self.rule, seed)
        for one in seed if len(seed) > 1 else ():
            rest = [other for other in seed if other is not one]
            rule = departures.together(self.rule, rest)
            rule = rule if last is None else departures.moved(rule, whole, last.rule)
            if not self._left(replace(one, rule=rule))[some].any():
                kept = None if last is None else replace(last, rule=rule)
                return self._needed(rest, some, kept)
        return seed

    def _count(self, where: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.bincount(self.trace.owner, where.sum(axis=0), len(self.trace.names)).astype(np.int64)

    def _off(self, run: Replay) -> Floats:
        share = np.abs(run.seen - run.predicted) / np.abs(run.seen - self.trace.weights[: len(run.seen)])
        share = np.where(run.differs, np.nan_to_num(np.minimum(share, 1), nan=1), 0)
        return np.bincount(self.trace.owner, share.sum(axis=0), len(self.trace.names)).astype(np.float64)

    def _replayed(self, rule: Rule, trace: Trace) -> Replay:
        self.worked += trace.steps * (200 + len(trace.owner)) / 400
        return replay(rule if trace is self.trace else _until(rule, trace), trace)

    def _explains(self, one: _Scored, some: npt.NDArray[np.int64]) -> bool:
        if one.left[some].any():
            return False
        if id(one) not in self.whole:
            self.whole[id(one)] = self._left(one.change)
        return not self.whole[id(one)][some].any()

    def _left(self, change: Departure, run: Replay | None = None) -> npt.NDArray[np.int64]:
        run = self._replayed(change.rule, self.trace) if run is None else run
        bad, steps = self._count(run.differs), len(run.seen)
        if change.category != "state precision":  # an explanation is sharper than the difference is large
            seen, due = self.first.seen[:steps], self.first.predicted[:steps]
            loose = ~(run.bound <= np.abs(seen - due)) & np.isfinite(run.seen)
            vague = self._count(loose & self.first.differs[:steps])
            bad = bad + np.where(vague > self.differed / 20, vague, 0)
        return bad


def _until(rule: Rule, trace: Trace) -> Rule:
    ahead = rule.look_ahead and tuple(each[: trace.steps] for each in rule.look_ahead)
    return rule.but(**{name: getattr(rule, name)[: trace.steps] for name in SEQUENCES}, look_ahead=ahead)


def _singles(rule: Rule, trace: Trace, first: Replay, left: npt.NDArray[np.int64]) -> Iterator[Departure]:
    """Yield the changes of a rule, cheapest first."""
    seen = {one for p in left for one in _kinds(trace, int(p))}
    for narrow in sorted(seen & HALF - {rule.state_dtype}):
        yield Departure("state precision", f"the moments are kept in {narrow}", rule.but(state_dtype=narrow))
    yield from departures.groups_say(rule, trace)
    if trace.resumed is not None and not first.differs[: trace.resumed].any():
        yield from departures.resumes(rule, trace, left)
    yield from departures.choices(rule)
    yield from departures.families(rule)
    yield from departures.numbers(rule, trace)


def _kinds(trace: Trace, parameter: int) -> frozenset[str]:
    seen = trace.state_dtypes[parameter] if trace.state_dtypes else frozenset[str]()
    return frozenset(one for one in seen if one in ROUNDOFF)


# The rate of each step, read as a clock.


def _rates(run: Replay, own: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the least and greatest rate that explain each step of these coordinates."""
    with np.errstate(all="ignore"):
        low = (run.fixed - run.seen - run.write) / run.slope
        high = (run.fixed - run.seen + run.write) / run.slope
        low, high = np.minimum(low, high), np.maximum(low, high)
        loose = run.slope_error / np.abs(run.slope)
        widen = np.maximum(np.abs(low), np.abs(high)) * loose / np.maximum(1 - loose, 1e-9)
        useful = own & (np.abs(run.slope) > 0) & np.isfinite(loose) & (loose < 0.5)
        low, high = np.where(useful, low - widen, -np.inf), np.where(useful, high + widen, np.inf)
    return low.max(axis=1, initial=-np.inf), high.min(axis=1, initial=np.inf)


def _clock(rule: Rule, trace: Trace, run: Replay, own: npt.NDArray[np.bool_]) -> Departure | None:
    """Another rate at each step that explains everything: a factor, a shift or another pace of the claimed one."""
    apart = rule.decay_form == "decoupled" and bool(rule.decay.any())
    ways = [rule, rule.but(decay_form="absolute", decay=rule.lr * rule.decay)] if apart else [rule]
    found = (_clock_of(one, trace, run if one is rule else replay(one, trace), own) for one in ways)
    return next((one for one in found if one is not None), None)


def _clock_of(rule: Rule, trace: Trace, run: Replay, own: npt.NDArray[np.bool_]) -> Departure | None:
    least, most = _rates(run, own & active(rule, trace)[:, trace.owner])
    known = np.isfinite(least) & np.isfinite(most)
    if (least > most).any() or not np.isfinite(least).any():
        return None
    columns = np.unique(trace.owner[own])
    claimed = rule.lr[:, columns[0]]
    if not np.allclose(rule.lr[:, columns], claimed[:, None], rtol=1e-9, atol=0):
        return None

    def fits(values: Floats) -> bool:
        slack = 1e-6 * np.abs(values)
        return bool((np.isnan(values) | ((values + slack >= least) & (values - slack <= most))).all())

    lr = claimed.copy()
    lr[known] = (least[known] + most[known]) / 2
    made = rule.but(lr=np.repeat(lr[:, None], rule.lr.shape[1], axis=1))
    moved = ((np.diff(trace.weights, axis=0) != 0) & own).sum()
    if (replay(made, trace).differs & own).any() or moved < 3 * known.sum():
        return None  # with fewer coordinates that move, rates of their own would explain any steps
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
