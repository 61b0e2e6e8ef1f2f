"""The certified algorithms nearest to a given one: what to change, from which step on, and its price."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import overload

import numpy as np

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.schedules import (
    BiasCorrection,
    Schedule,
    ScheduleError,
    as_schedule,
    bias_correction,
    sqrt,
    substitute,
)
from generic_adam.schedules.sums import late_value, partial_sum, whole_steps
from generic_adam.schedules.tree import contains
from generic_adam.schedules.work import Account, Budget, Kind, Spent, Undecided, note
from generic_adam.setting import Fact, Setting, Source
from generic_adam.theorems.certificate import Certificate, certify_algorithm, reading
from generic_adam.theorems.decide import Rate, Status
from generic_adam.theorems.horizon import HorizonAnswer, least_theta, noise_floor
from generic_adam.theorems.repairs import OF_THETA, STAGES, Candidate, applied, needs_theta, with_factors
from generic_adam.theorems.theorem import Verdict, plain, plain_fields
from generic_adam.theorems.zou2019 import examine_method

_MOST_ADVICE = 3
# A run that is named keeps three quarters of its steps as they are, unless said otherwise.
_KEPT_SHARE = Fraction(3, 4)


@dataclass(frozen=True)
class Price:
    """What a change costs a run of T steps.

    Attributes:
        steps: T.
        rates: (share of the run, new learning rate over the old one there), at 10, 50 and 100 %; nan where not known.
        kept: the summed step size over the old one; nan where no sum can be had.
    """

    steps: int
    rates: tuple[tuple[float, float], ...]
    kept: float


@dataclass(frozen=True)
class Advice:
    """One algorithm near the given one that is guaranteed more.

    Attributes:
        algorithm: what to use instead.
        changes: what changes, in words.
        first_step: up to the step before, every sequence is the same.
        last_step: the last t at which one differs; None where they differ for ever.
        certificate: what certifies it.
        horizon: the number of steps for which it is meant; None for ever.
        price: what it costs the run that was named; None where none was.
        before: what is guaranteed for that run as it is.
        after: what is guaranteed for it with the change.
    """

    algorithm: Algorithm
    changes: str
    first_step: int
    last_step: int | None
    certificate: Certificate
    horizon: int | None = None
    price: Price | None = None
    before: HorizonAnswer | None = None
    after: HorizonAnswer | None = None

    @property
    def method(self) -> Method:
        """The three sequences to use instead."""
        return self.algorithm.method

    @property
    def rate(self) -> Rate | None:
        """The rate of the changed algorithm; None for one that is meant for a number of steps alone."""
        return self.certificate.rate

    @property
    def differs(self) -> str:
        """Where it differs from the given algorithm, in words."""
        if self.last_step is None:
            return "from the first step" if self.first_step == 1 else f"from t = {self.first_step:,} on"
        if self.first_step == self.last_step:
            return f"at t = {self.first_step:,} only"
        return f"for t = {self.first_step:,} to {self.last_step:,} only"

    def __str__(self) -> str:
        """What to change, where it differs, what that guarantees, and its price where a run was named."""
        known = self.certificate
        lines = [f"{self.changes} ({self.differs})", f"  for ever: {known.verdict}{known.terms}"]
        if self.after is not None:
            lines.append(f"  {self.after.statement}")
        if self.price is not None:
            kept = "an unknown share" if math.isnan(self.price.kept) else f"{self.price.kept:.0%}"
            lines.append(f"  price: {kept} of the summed step size is left")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Plain types only."""
        told = ("changes", "differs", "first_step", "last_step", "horizon", "rate", "before", "after", "algorithm")
        return {
            **plain_fields(self, *told),
            **plain_fields(self.certificate, "verdict", "theorem", "needs"),
            "price": None if self.price is None else plain(vars(self.price)),
            "method": plain_fields(self.method, "alpha", "beta", "theta"),
        }


@dataclass(frozen=True)
class Advices(Sequence[Advice]):
    """What was found to help, nearest first.

    Attributes:
        items: the proposals.
        spent: what kept the search from its end; empty where it came to it.
    """

    items: tuple[Advice, ...] = ()
    spent: tuple[str, ...] = ()

    @property
    def best(self) -> Advice | None:
        """The first of them, where there is one."""
        return self.items[0] if self.items else None

    @property
    def complete(self) -> bool:
        """Whether the search came to its end, so that what is not here was not found to help."""
        return not self.spent

    def to_dict(self) -> dict[str, object]:
        """Plain types only."""
        return {"advice": [one.to_dict() for one in self.items], "complete": self.complete, "spent": list(self.spent)}

    @overload
    def __getitem__(self, index: int) -> Advice: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Advice, ...]: ...
    def __getitem__(self, index: int | slice) -> Advice | tuple[Advice, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


def advise_algorithm(
    subject: Method | Algorithm,
    horizon: int | None = None,
    keep: int | None = None,
    budget: float | None = None,
    setting: Setting | None = None,
) -> Advices:
    """Find algorithms near the given one that are certified for ever, or better bounded on its run.

    Nearest is: differs on the fewest steps, else from the latest step on, else changes the fewest sequences,
    else has the fastest rate. Every one that is called certified is so by `certify_algorithm`.

    Args:
        subject: what to change; a Method alone means the paper's algorithm.
        horizon: a number of steps T: adds the price on T steps, and constants meant for T steps alone.
        keep: K, up to which step it stays as it is, but for what has to be mended at its first steps (theta_1 = 0, an
            eps); None takes three quarters of the run, or 1/(1 - theta).
        budget: a factor on the changes that are tried, and on the work that each question may take; None takes that of
            an enclosing `Budget`, or 1.
        setting: what is known of the problem and the run; beyond it weights that stay within 1, and clipping that
            never acts, are assumed, which the answers name.

    Returns:
        The advice; empty if it is certified already (and no horizon is given), or if nothing was found to help.

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
    setting = _beyond(granted, x)
    with Budget(budget) as work:
        chosen = _certified(Candidate(x, keep=kept, asked=keep is not None), granted)
        if x.preconditioned:  # plain SGD has no theta to change
            chosen += _louder(x, steps, setting)
            if steps is not None:
                chosen += _tuned(x, steps, setting)
        if steps is None:
            return Advices(tuple(chosen), tuple(work.spent))
        prices = [price(x, one.algorithm, steps) for one in chosen]
        before, *after = (reading(one, steps, setting) for one in (x, *(one.algorithm for one in chosen)))
        priced = (
            replace(one, price=cost, before=before, after=run)
            for one, cost, run in zip(chosen, prices, after, strict=True)
        )
        return Advices(tuple(one for one in priced if one.horizon is None or _gains(one)), tuple(work.spent))


def _certified(given: Candidate, granted: Setting) -> list[Advice]:
    """What is certified for ever, nearest first, none that is another one and more; nothing where it is so as it is."""
    x = given.algorithm
    if _for_ever(x, granted).verdict is Verdict.CERTIFIED:
        return []
    every: list[_Mended] = []
    found: list[_Mended] = []
    try:
        with Account() as tried:
            every.extend(_mended(_covered(given), 0, _beyond(granted, x), tried))
    except Spent as spent:
        note(str(spent))
    for candidate, advice in sorted(every, key=_distance):
        changes = {*candidate.changes}
        if not any(changes.issuperset(one.changes) or one.algorithm == advice.algorithm for one, _ in found):
            found.append((candidate, advice))
    return [advice for _, advice in found[:_MOST_ADVICE]]


def _for_ever(x: Algorithm, setting: Setting) -> Certificate:
    """The certificate without what it says about a run."""
    return certify_algorithm(replace(x, horizon=None), setting=setting)


def _covered(given: Candidate) -> Candidate:
    """The algorithm without what no theorem covers, whatever its sequences are; that is the first change."""
    x = given.algorithm
    updates_clipped = x.clipping is not None and x.clipping.kind == "update"
    said = (
        *(["second moments kept whole, not factored"] if x.factored else []),
        *(["the squared mean gradient left in v_t"] if x.centered else []),
        *(["updates not clipped"] if updates_clipped else []),
        *(f"not any more: {phrase} (the learning rate may have to be chosen anew)" for phrase in x.outside),
    )
    if not said:
        return given
    bare = replace(x, factored=False, centered=False, outside=())
    bare = replace(bare, clipping=None) if updates_clipped else bare
    return replace(given, algorithm=bare, changes=said, first_step=1, last_step=None)


def _beyond(granted: Setting, x: Algorithm) -> Setting:
    """What advice takes for granted, and says so: weights that stay bounded, and clipping that never acts."""
    clips = [x.clipping.threshold] if x.clipping is not None and x.clipping.kind != "update" else []
    acts = bool(clips) and (granted.gradient_norm is None or granted.gradient_norm > clips[0])
    idle = {"gradient_norm": Fact(clips[0], Source.ASSUMED)} if acts else {}
    return replace(granted, **idle).with_assumed(weights_bound=1.0)


def _gains(one: Advice) -> bool:
    """Whether what is meant for the run alone makes one of the numbers smaller, and with decay their first."""
    before, after = one.before, one.after
    if before is None or after is None or after.relative is None or after.outside:
        return False
    if before.relative is None:
        return True
    pairs = [(after.relative, before.relative), (after.gap, before.gap), (after.drift, before.drift)]
    smaller = [new is not None and old is not None and new < old for new, old in pairs]
    return smaller[0] if after.decay else any(smaller)


def price(before: Algorithm, after: Algorithm, steps: int) -> Price:
    """The learning rate against the old one along the run, and the share of the summed step size."""
    old, new = before.method.alpha, after.method.alpha

    def over(part: float, whole: float) -> float:
        return part / whole if whole > 0 else math.inf if part > 0 else 1.0

    def ratio(of: Callable[[Schedule], float]) -> float:
        try:
            return over(of(new), of(old))
        except (ScheduleError, Undecided):  # a form that tells nothing, on a run too long to walk
            return math.nan

    places = ((share, max(1, round(share * steps))) for share in (0.1, 0.5, 1.0))
    rates = tuple((share, ratio(lambda u, at=at: u(at))) for share, at in places)
    return Price(steps, rates, ratio(lambda u: partial_sum(u, steps)))


_Mended = tuple[Candidate, Advice]


def _mended(candidate: Candidate, stage: int, setting: Setting, tried: Account) -> Iterator[_Mended]:
    """Certified candidates; what is certified is changed no further."""
    tried.add(Kind.TRIED, 1, 0)
    x, changes = candidate.algorithm, candidate.changes
    certificate = _for_ever(x, setting)
    if certificate.verdict is Verdict.CERTIFIED:
        if changes:
            said = "; ".join(changes)
            yield candidate, Advice(x, said, candidate.first_step, candidate.last_step, certificate)
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


def _louder(x: Algorithm, steps: int | None, setting: Setting) -> Iterator[Advice]:
    """A constant theta just large enough for the theory to speak, where its noise floor is 1 or more."""
    floor, beta = noise_floor(x), x.method.beta
    if floor is None or floor < 1 or not beta.is_constant:
        return
    # Three digits are what people write. With eps the floor lies above that of beta and theta alone, and a run's own
    # numbers lie above the floor.
    for theta in (thousandths / 1000 for thousandths in range(math.ceil(least_theta(beta(1)) * 1000), 1000)):
        louder = with_factors(x, theta=as_schedule(theta))
        left = noise_floor(louder)
        if left is None or left >= 1:
            continue
        relative = left if steps is None else reading(louder, steps, setting).relative
        if relative is not None and relative < 1:
            changes = f"theta from {x.method.theta} to {theta:g}, and the theory speaks: noise floor {left:.3g}"
            yield Advice(louder, changes, 1, None, _for_ever(louder, setting), steps)
            return


def _tuned(x: Algorithm, steps: int, setting: Setting) -> Iterator[Advice]:
    r"""Constants for T steps: theta = 1 - 1/T and alpha = chi/sqrt T, with chi the largest chi_t up to T.

    For constants that is the chi they had, so that the two are the same method at T = 1/(1 - theta). The
    bound at T is then O(1/sqrt T). There are none where theta = 1 - 1/T is not above beta^2, as (R2) asks.
    """
    method = x.method
    beta, theta = method.beta.constant_value, 1 - Fraction(1, steps)
    if beta is None or theta <= beta**2:
        return
    largest = _largest(method.alpha / sqrt(1 - method.theta), steps)
    if not 0 < largest < math.inf:
        return
    scale = float(f"{largest / math.sqrt(steps):.12g}")
    eps = substitute(x.eps, {bias_correction(method.theta): as_schedule(1)})
    tuned = replace(x, method=Method(scale, method.beta, as_schedule(theta)), eps=eps)
    if tuned != x:
        changes = f"constants for {steps:,} steps: alpha = {scale:.6g}, theta = 1 - 1/{steps}"
        if contains(method.alpha, BiasCorrection):
            changes += ", no bias correction"
        yield Advice(tuned, changes, 1, None, _for_ever(tuned, setting), steps)


def _largest(schedule: Schedule, steps: int) -> float:
    """The largest u_t with t <= steps of some on a logarithmic scale; infinite where one has no value as a float."""
    try:
        return max(late_value(schedule, int(step)) for step in np.geomspace(1, steps, 200))
    except (ScheduleError, Undecided):
        return math.inf
