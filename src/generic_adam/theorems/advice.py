"""The changes of an algorithm that are worth knowing: for the run first, then for the long run, each with its cost.

For a run of T steps a change is offered where it gives a useful guarantee, or a clearly better one. For the long run
it is offered where a theorem then certifies the algorithm as steps go to infinity. Never offered is a change that
leaves the bound of the run useless, or that multiplies a learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.parts import Part
from generic_adam.schedules import Schedule, ScheduleError, as_schedule
from generic_adam.schedules.sums import late_value, partial_sum, whole_steps
from generic_adam.schedules.work import Account, Budget, Spent, Undecided, Work, note
from generic_adam.setting import Setting
from generic_adam.theorems.bounds import least_steps
from generic_adam.theorems.certificate import Certificate, certify_algorithm, reading, usual
from generic_adam.theorems.decide import Rate, Status
from generic_adam.theorems.horizon import HorizonAnswer
from generic_adam.theorems.repairs import (
    OF_THETA,
    STAGES,
    Candidate,
    Change,
    applied,
    largest_of,
    needs_theta,
    some_steps,
    with_theta,
)
from generic_adam.theorems.theorem import NOTHING, Answer, Verdict
from generic_adam.theorems.worth import Worth, worth_of
from generic_adam.theorems.zou2019 import examine_method

_MOST_ADVICE = 3
# A run that is named keeps three quarters of its steps as they are, unless said otherwise.
_KEPT_SHARE = Fraction(3, 4)
BETA2 = (0.999, 0.995, 0.99, 0.98, 0.95)
"""The values of beta2 that people use, the steadiest first."""
# A bound that falls by less is no reason to change a run.
_CLEARLY = 0.9
# A rate is multiplied where it is above this factor of the old one, and not lost beside the largest.
_SAME, _LOST = 1.05, 0.011


class Purpose(StrEnum):
    """The reason why a change is offered."""

    USEFUL = "a useful guarantee for the run"
    BETTER = "a better guarantee for the run"
    LONG_RUN = "a guarantee as steps go to infinity"


@dataclass(frozen=True)
class Cost(Part):
    """The cost of a change for a run of T steps.

    Attributes:
        steps: T.
        rates: (share of the run, learning rate there before, after), at 10, 50 and 100 %; nan where not known.
        kept: the total learning rate over the run, over that before; nan where no sum can be had.
        memory: the gradients that v_t averages at the end of the run, before and after.
    """

    steps: int
    rates: tuple[tuple[float, float, float], ...]
    kept: float
    memory: tuple[float, float]


@dataclass(frozen=True)
class Advice(Part):
    """One algorithm near the given one that is guaranteed more.

    Attributes:
        purpose: the reason why it is offered.
        algorithm: the algorithm to use instead.
        changes: the things to change, in the names that a training script has.
        certificate: what theorems say of it in the long run.
        first_step: up to the step before, every sequence is the same.
        last_step: the last t at which one differs; None where they differ from then on.
        worth: the measured effects of the change.
        cost: its cost for the run that was named; None where none was.
        before: the guarantee for that run as it is.
        after: the guarantee for it with the change.
    """

    rest: ClassVar[tuple[str, ...]] = ("certificate", "before")
    also: ClassVar[tuple[str, ...]] = ("verdict", "theorem", "rate", "needs", "text")

    purpose: Purpose
    algorithm: Algorithm
    changes: tuple[Change, ...]
    certificate: Certificate
    first_step: int = 1
    last_step: int | None = None
    worth: Worth = field(default_factory=Worth)
    cost: Cost | None = None
    before: HorizonAnswer | None = None
    after: HorizonAnswer | None = None

    @property
    def method(self) -> Method:
        """The three sequences to use instead."""
        return self.algorithm.method

    @property
    def verdict(self) -> Verdict:
        """The verdict on the changed algorithm in the long run."""
        return self.certificate.verdict

    @property
    def theorem(self) -> str | None:
        """The theorem that this verdict rests on."""
        return self.certificate.theorem

    @property
    def rate(self) -> Rate | None:
        """The rate of the changed algorithm in the long run, where it is certified."""
        return self.certificate.rate

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts that this verdict takes for granted, one phrase each."""
        return self.certificate.needs


@dataclass(frozen=True)
class Advices(Part):
    """All changes that were found to help, the most useful first; empty where there is nothing to change.

    Attributes:
        advice: the changes.
        steps: the number of steps of the run; None where none was named, and the long run alone is meant.
        before: the guarantee for the run as it is.
        long_run: the answer for the algorithm as it is, as steps go to infinity.
        assumed: the facts that the guarantees of the run take for granted, one phrase each.
        spent: the reasons why the search stopped early; empty where it came to its end.
    """

    rest: ClassVar[tuple[str, ...]] = ("before",)
    also: ClassVar[tuple[str, ...]] = ("complete",)

    advice: tuple[Advice, ...] = ()
    steps: int | None = None
    before: HorizonAnswer | None = None
    long_run: Answer = Answer.UNKNOWN
    assumed: tuple[str, ...] = ()
    spent: tuple[str, ...] = ()

    @property
    def best(self) -> Advice | None:
        """The most useful change; None where there is nothing to change."""
        return self.advice[0] if self.advice else None

    @property
    def complete(self) -> bool:
        """True if the search came to its end, so that nothing else was found to help."""
        return not self.spent

    def __iter__(self) -> Iterator[Advice]:
        return iter(self.advice)

    def __len__(self) -> int:
        return len(self.advice)

    def __getitem__(self, index: int) -> Advice:
        try:
            return self.advice[index]
        except IndexError:
            said = f"there are {len(self)} changes" if self else "there is nothing to change (`.best` is None)"
            raise TheoremError(f"advice {index}: {said}") from None


def advise_algorithm(
    subject: Method | Algorithm,
    horizon: int | None = None,
    keep: int | None = None,
    budget: float | None = None,
    setting: Setting | None = None,
) -> Advices:
    """Find changes that give the run a better guarantee, or that certify the algorithm in the long run.

    Args:
        subject: the algorithm to change; a Method alone means the paper's algorithm.
        horizon: the number of steps T of the run; without one only the long run is looked at.
        keep: K, up to which step a change for the long run leaves it as it is, but for what has to be mended at the
            first steps (theta_1 = 0, an eps); None takes three quarters of the run, or 1/(1 - theta).
        budget: a factor on the changes that are tried, and on the work that each question may take; None takes that of
            an enclosing `Budget`, or 1.
        setting: what is known of the problem and the run; beyond it weights that stay within 1, and clipping that
            never acts, are assumed, which the answers name.

    Returns:
        The advice; empty if nothing was found to help.

    Raises:
        SumError: the horizon or K is no whole number of steps.
        TheoremError: parameter groups differ.
    """
    x = as_algorithm(subject)
    if x.others:
        told = "expected one of the parts that `adapters.read` gives, each has its own advice"
        raise TheoremError(f"parameter groups with different sequences: {told}")
    named = horizon if horizon is not None else x.horizon
    steps = None if named is None else whole_steps(named)
    kept = None if keep is None else whole_steps(keep, "keep")
    if kept is None and steps is not None:
        kept = max(1, int(steps * _KEPT_SHARE))
    granted = setting or Setting()
    taken = usual(x, granted)
    facts = {"weights_bound": x.decay != NOTHING, "gradient_norm": x.clipping is not None}
    assumed = taken.said(*(name for name, is_taken in facts.items() if is_taken))
    with Budget(budget) as work:
        before = None if steps is None else reading(x, steps, taken)
        change = None if before is None else change_for_run(x, before, granted)
        long_run = _long_run(x, granted).long_run
        later = [] if long_run is Answer.GUARANTEED else _certified(Candidate(x, keep=kept), granted)
        offered = [one for each in later if (one := _offered(each, x, before, granted, kept)) is not None]
        found = (*([change] if change is not None else []), *offered[:_MOST_ADVICE])
        return Advices(found, steps, before, long_run, tuple(assumed), tuple(work.spent))


def change_for_run(x: Algorithm, before: HorizonAnswer, setting: Setting) -> Advice | None:
    """Find the beta2 of those that people use that helps a run most: nothing else changes, the learning rate neither.

    Where the run has no useful guarantee that is the smallest beta2 with one, else the one with the least bound, if
    that is clearly below the bound as it is.

    Args:
        x: the algorithm.
        before: the guarantee for its run.
        setting: what is known of the problem and the run.
    """
    theta, beta = x.method.theta.constant_value, x.method.beta
    if theta is None or not (x.preconditioned and beta.is_constant) or before.relative is None:
        return None
    best, granted = None, usual(x, setting)
    for beta2 in (one for one in (BETA2 if before.useful else BETA2[::-1]) if one > theta):
        changed = with_theta(x, as_schedule(beta2))
        after = reading(changed, before.steps, granted)
        if best is not None and (after.relative or math.inf) >= (best[1].relative or math.inf):
            break  # the bound falls with beta2, and rises where its memory is too long for the run
        if after.useful and (not before.useful or (after.relative or math.inf) < _CLEARLY * before.relative):
            best = changed, after
            if not before.useful:
                break
    if best is None:
        return None
    changed, after = best
    to = changed.method.theta(1)
    return Advice(
        Purpose.BETTER if before.useful else Purpose.USEFUL,
        changed,
        (Change("beta2", f"{float(theta):g} -> {to:g}"),),
        _long_run(changed, granted),
        worth=worth_of(float(theta), to=to),
        cost=cost_of(x, changed, before.steps),
        before=before,
        after=after,
    )


def _offered(
    one: Advice, x: Algorithm, before: HorizonAnswer | None, setting: Setting, kept: int | None
) -> Advice | None:
    """Return a change for the long run with its cost; None where it would harm the run."""
    if _multiplies(x.method.alpha, one.method.alpha, max(kept or 1, before.steps if before else 1)):
        return None
    theta = x.method.theta.constant_value
    share = 0.0 if kept is None else None if before is None else (one.first_step - 1) / before.steps
    one = replace(one, worth=Worth() if theta is None else worth_of(float(theta), kept=share))
    if before is None:
        return one
    after = reading(one.algorithm, before.steps, usual(x, setting))
    if not after.useful and (after.relative is not None or before.useful):
        return None
    return replace(one, cost=cost_of(x, one.algorithm, before.steps), before=before, after=after)


def _multiplies(old: Schedule, new: Schedule, steps: int) -> bool:
    """Return whether a rate is raised at some step of the run by more than what is lost beside the largest."""
    lost = _LOST * largest_of(old, steps)
    for step in some_steps(steps):
        with suppress(ScheduleError, Undecided):  # a step too far to walk to tells nothing
            if late_value(new, step) > max(_SAME * late_value(old, step), lost):
                return True
    return False


def cost_of(before: Algorithm, after: Algorithm, steps: int) -> Cost:
    """Return the learning rate before and after along the run, the share of its sum that is left, and v_t's memory."""

    def known(of: Callable[[Algorithm], float], x: Algorithm) -> float:
        try:
            return of(x)
        except (ScheduleError, Undecided, ZeroDivisionError):  # a form that tells nothing, on a run too long to walk
            return math.nan

    def both(of: Callable[[Algorithm], float]) -> tuple[float, float]:
        return known(of, before), known(of, after)

    places = ((share, max(1, round(share * steps))) for share in (0.1, 0.5, 1.0))
    rates = tuple((share, *both(lambda x, at=at: x.method.alpha(at))) for share, at in places)
    old, new = both(lambda x: partial_sum(x.method.alpha, steps))
    kept = new / old if old > 0 else math.nan
    return Cost(steps, rates, kept, both(lambda x: 1 / (1 - x.method.theta)(steps)))


def _certified(given: Candidate, granted: Setting) -> list[Advice]:
    """Return certified changes, nearest first, without those that are another one and more.

    Nearest is: differs on the fewest steps, else from the latest step on, else changes the fewest sequences, else has
    the fastest rate.
    """
    every: list[_Mended] = []
    found: list[_Mended] = []
    try:
        with Account() as tried:
            every.extend(_mended(_covered(given), 0, usual(given.algorithm, granted), tried))
    except Spent as spent:
        note(str(spent))
    for candidate, advice in sorted(every, key=_distance):
        changes = {*candidate.changes}
        if not any(changes.issuperset(one.changes) or one.algorithm == advice.algorithm for one, _ in found):
            found.append((candidate, advice))
    return [advice for _, advice in found]


def _long_run(x: Algorithm, setting: Setting) -> Certificate:
    """Return the certificate without what it says about a run."""
    return certify_algorithm(replace(x, horizon=None), setting=setting)


def _covered(given: Candidate) -> Candidate:
    """Take away what no theorem covers, whatever the sequences are; that is the first change."""
    x = given.algorithm
    updates_clipped = x.clipping is not None and x.clipping.kind == "update"
    said = (
        *([Change("second moments", "whole, not factored")] if x.factored else []),
        *([Change("second moments", "without taking off the squared mean gradient")] if x.centered else []),
        *([Change("clipping of updates", "none")] if updates_clipped else []),
        *(Change("step", f"not any more: {one} (the lr may have to be chosen anew)") for one in x.outside),
    )
    if not said:
        return given
    bare = replace(x, factored=False, centered=False, outside=())
    bare = replace(bare, clipping=None) if updates_clipped else bare
    return replace(given, algorithm=bare, changes=said, first_step=1, last_step=None)


_Mended = tuple[Candidate, Advice]


def _mended(candidate: Candidate, stage: int, setting: Setting, tried: Account) -> Iterator[_Mended]:
    """Yield certified candidates; what is certified is changed no further."""
    tried.add(Work.TRIED, 1, 0)
    x = candidate.algorithm
    certificate = _long_run(x, setting)
    if certificate.verdict is Verdict.CERTIFIED:
        if candidate.changes:
            steps = candidate.first_step, candidate.last_step
            yield candidate, Advice(Purpose.LONG_RUN, x, candidate.changes, certificate, *steps)
        return
    open_conditions = {5}
    if x.preconditioned:  # the paper's conditions are about what divides the step
        paper = examine_method(x.method).conditions
        open_conditions |= {one.number for one in paper if one.status is not Status.HOLDS}
    # Of the repairs only that of eps can bring an algorithm under a theorem.
    for later in range(stage, len(STAGES) if certificate.deciding is not None else 1):
        for repair in (repair for number, repair in STAGES[later] if number in open_conditions):
            if repair in OF_THETA and not needs_theta(x):
                continue
            for changed in applied(repair, candidate):
                found = list(_mended(changed, later + 1, setting, tried))
                yield from found
                if found:
                    break  # a longer hold or a later start would only be further away


def _distance(mended: _Mended) -> tuple[object, ...]:
    candidate, advice = mended
    length = math.inf if advice.last_step is None else advice.last_step
    return length, -advice.first_step, len(candidate.changes), advice.rate is None, advice.rate


@dataclass(frozen=True)
class BestRate(Part):
    """The learning rate that makes the bound of a run least.

    Attributes:
        factor: the factor on every learning rate of the run.
        algorithm: the algorithm with that rate, its decay in proportion.
        before: the guarantee as it is.
        after: the guarantee with that rate, computed anew.
    """

    factor: float
    algorithm: Algorithm
    before: HorizonAnswer
    after: HorizonAnswer


def best_rate(subject: Method | Algorithm, steps: int, setting: Setting | None = None) -> BestRate | None:
    """Return the learning rate with the least bound after T steps; None where no bound has a start and a curvature.

    The gap and the curvature are the setting's, else 1 in units of the gradients.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        steps: T.
        setting: what is known of the problem and the run; weights within 1 and idle clipping are assumed beyond it.

    Examples:
        >>> from generic_adam import methods
        >>> found = best_rate(methods.adamw(lr=1.0, weight_decay=0), 100_000)
        >>> f"{found.factor:.2g}: {found.before.relative:.2g} -> {found.after.relative:.2g}"
        '0.00089: 13 -> 0.089'
    """
    x = as_algorithm(subject)
    known = usual(x, setting or Setting())
    before = reading(x, steps, known)
    factor = before.best_rate
    if factor is None:
        return None
    rate = Method(x.method.alpha * factor, x.method.beta, x.method.theta)
    scaled = replace(x, method=rate, decay=x.decay * factor)
    return BestRate(factor, scaled, before, reading(scaled, steps, known))


def steps_needed(subject: Method | Algorithm, setting: Setting | None = None) -> int | None:
    """Return the number of steps from which on the guarantee is useful; None where no number of them is enough.

    Of a schedule that goes on it is the least, to two digits, up to a million. Of one that ends with its run it is
    the length to which that run would have to be stretched, by the closed form of its parts.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        setting: what is known of the problem and the run; weights within 1 and idle clipping are assumed beyond it.

    Examples:
        >>> from generic_adam import methods
        >>> steps_needed(methods.adamw(weight_decay=0))
        3091
    """
    x = as_algorithm(subject)
    known = usual(x, setting or Setting())
    if x.horizon is not None:
        return reading(x, x.horizon, known).steps_needed
    return least_steps(lambda steps: reading(x, steps, known).useful)
