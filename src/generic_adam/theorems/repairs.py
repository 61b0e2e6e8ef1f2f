"""Changes to one sequence of a method, each of which mends one way to miss the sufficient condition.

None of them is trusted: `advise` certifies every method built from them and drops those that are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from generic_adam.errors import MethodError, ScheduleError
from generic_adam.methods import Algorithm, Method
from generic_adam.parts import Part
from generic_adam.schedules import (
    Schedule,
    as_schedule,
    bias_correction,
    join,
    maximum,
    minimum,
    sqrt,
    substitute,
    t,
    tree,
)
from generic_adam.schedules.prove import Inequality, every
from generic_adam.schedules.sums import late_value
from generic_adam.schedules.work import Undecided
from generic_adam.setting import Setting
from generic_adam.theorems.epsilon import eps_in_step
from generic_adam.theorems.theorem import NOTHING

_NEVER = 10**18
_COMPARED = 1 << 16
_RATE_FLOOR = 0.01
# Where neither K nor theta's memory says from when on something fades.
_FADES_FROM = 1000
_ADDED_EPS = 1e-8


@dataclass(frozen=True)
class Change(Part):
    """One thing to change, in the names that a training script has.

    Attributes:
        name: "lr", "beta1", "beta2", "eps", "lr x weight decay", or a part of the step.
        how: the phrase that says what becomes of it.
    """

    name: str
    how: str


@dataclass(frozen=True)
class Candidate:
    """A changed algorithm, not yet certified.

    Attributes:
        algorithm: the algorithm after the change.
        changes: the changes, one for each sequence.
        first_step: up to the step before, it is the original.
        last_step: the last t at which it differs from the original, where the change ends; None if it may not.
        keep: K, up to which step it should stay as it is; None where nothing was asked.
    """

    algorithm: Algorithm
    changes: tuple[Change, ...] = ()
    first_step: int = _NEVER
    last_step: int | None = 0
    keep: int | None = None

    @property
    def method(self) -> Method:
        """Return the three sequences."""
        return self.algorithm.method

    def changed(
        self, name: str, how: str, first_step: int, last_step: int | None = None, **sequences: Schedule
    ) -> Candidate:
        """Return the candidate with some sequences replaced from a step on: alpha, theta, eps or decay."""
        before = self.algorithm
        x = with_theta(before, sequences.pop("theta")) if "theta" in sequences else before
        if (x.method.alpha, x.eps) != (before.method.alpha, before.eps):
            last_step = None  # a bias correction remembers every factor
        method = replace(x.method, alpha=sequences.pop("alpha", x.method.alpha))
        both_end = last_step is not None and self.last_step is not None
        return replace(
            self,
            algorithm=replace(x, method=method, **sequences),
            changes=(*self.changes, Change(name, how)),
            first_step=min(first_step, self.first_step),
            last_step=max(last_step or 0, self.last_step or 0) if both_end else None,
        )

    def fades_from(self) -> Fraction:
        """Return the step after which a sequence may fall: K, but not before theta's memory is full."""
        memory = _memory(self.method.theta) if self.algorithm.preconditioned else None
        known = [one for one in (self.keep, memory) if one is not None]
        return Fraction(max(known, default=_FADES_FROM))


def with_theta(x: Algorithm, theta: Schedule) -> Algorithm:
    """Return the algorithm with another theta, also in the corrections of its bias."""
    old = x.method
    before, after = tree.BiasCorrection(old.theta), bias_correction(theta)
    # Where beta and theta are one sequence, the root tells v's correction from m's.
    corrections: dict[Schedule, Schedule] = {before: after}
    if old.beta == old.theta:
        corrections = {sqrt(before): sqrt(after)}
    method = Method(substitute(old.alpha, corrections), old.beta, theta)
    return replace(x, method=method, eps=substitute(x.eps, {before: after}))


def first_below(one: Schedule, other: Schedule) -> int:
    """Return the first t with u_t < w_t, the step after those that were compared, or 1 where that is open."""
    found = every(one - other, Inequality.NOT_NEGATIVE, _COMPARED)
    return 1 if found.holds is None else found.t or _COMPARED + 1


Repair = Callable[[Candidate], Iterator[Candidate]]


def steady_eps(candidate: Candidate) -> Iterator[Candidate]:
    """Hold eps_t at eps_1, where it does not keep step with theta_t; add 1e-8, where v_0 = 0 and nothing is added."""
    x, found = candidate.algorithm, eps_in_step(candidate.algorithm, Setting())
    if x.preconditioned and x.eps == NOTHING and x.initial_v == 0:
        yield candidate.changed("eps", f"add {_ADDED_EPS:g} to the root", 1, eps=as_schedule(_ADDED_EPS))
    elif found is not None and not found.holds and not x.eps.is_constant:
        first = float(f"{x.eps(1):.9g}")
        yield candidate.changed("eps", f"{first:g} throughout", 1, eps=as_schedule(first))


def held_beginning(candidate: Candidate) -> Iterator[Candidate]:
    """Hold theta_1 at theta_2: mends theta_1 = 0 (condition 2)."""
    theta = candidate.method.theta
    if not theta.is_constant and theta(1) == 0:
        held = join(float(theta(2)), 2, theta)
        yield candidate.changed("beta2", f"{theta(2):.6g}, its value at step 2, at step 1 too", 1, 1, theta=held)


def rising_theta(candidate: Candidate) -> Iterator[Candidate]:
    """Let theta_t rise to 1 once t passes K: theta_t = max(theta, 1 - c/t) mends a limit below 1 (condition 4).

    c = K (1 - theta) leaves a constant theta as it is up to t = K; K = 1/(1 - theta) makes it 1 - 1/t.
    """
    theta = candidate.method.theta
    complement = (1 - theta).growth
    if complement is None or complement.trend < 0:
        return
    memory = _memory(theta)
    scale = Fraction(1)
    if memory is not None and candidate.keep is not None and candidate.keep > memory:
        scale = candidate.keep / memory
    share = as_schedule(scale) / t
    rising = maximum(theta, 1 - share)
    first = first_below(share, 1 - theta) if memory is None else math.floor(scale * memory) + 1
    how = f"{in_steps(1 - share)} after step {first - 1:,}" if memory is not None else f"at least {in_steps(1 - share)}"
    yield candidate.changed("beta2", how, first, theta=rising)


def _fading(hold: Fraction, power: float) -> tuple[Schedule, str]:
    """Return min(1, (K/t)^power), as a schedule and in words."""
    share, words = as_schedule(hold) / t, f"{_number(hold)}/step"
    shape = sqrt(share) if power == 0.5 else share**power
    said = f"sqrt({words})" if power == 0.5 else words if power == 1 else f"({words})^{power}"
    return minimum(1, shape), f"multiply by {said} after step {math.floor(hold):,}"


def root_decay(candidate: Candidate) -> Iterator[Candidate]:
    r"""Let alpha_t decay as sqrt(K/t) from t = K on: the repair of a learning rate that does not fall.

    With theta_t = max(theta, 1 - c/t), c = K (1 - theta), the product alpha_t / sqrt(1 - theta_t) is then
    constant from t = K on.
    """
    yield from _falling(candidate, 0.5)


def falling_rate(candidate: Candidate) -> Iterator[Candidate]:
    """Let alpha_t alone fall from t = K on, where theta_t is not in the way.

    AMSGrad's maximum (Theorem M) and a delayed divisor (O) ask for alpha_t -> 0 at any theta; plain SGD has no theta,
    and its squared steps need a finite sum (Robbins and Monro).
    """
    if not needs_theta(candidate.algorithm):
        yield from _falling(candidate, 0.5 if candidate.algorithm.preconditioned else 0.75)


def _falling(candidate: Candidate, power: float) -> Iterator[Candidate]:
    hold = candidate.fades_from()
    factor, words = _fading(hold, power)
    alpha = candidate.method.alpha * factor
    yield candidate.changed("lr", words, math.floor(hold) + 1, alpha=alpha)


def fading_decay(candidate: Candidate) -> Iterator[Candidate]:
    """Let decoupled decay fade as sqrt(K/t) from t = K on: constant decay has its own limit (Proposition 9.2)."""
    decay, hold = candidate.algorithm.decay, candidate.fades_from()
    # Decay is lr_t lambda: one root for lambda alone, and one more where alpha_t was given its own.
    for power in (0.5, 1) if decay != NOTHING else ():
        factor, words = _fading(hold, power)
        yield candidate.changed("lr x weight decay", words, math.floor(hold) + 1, decay=decay * factor)


def raised_rate(candidate: Candidate) -> Iterator[Candidate]:
    """Let alpha_t stay above c/sqrt(t): mends a sum of rates that stays finite, as of a schedule that ends at 0.

    Up to K nothing changes, and then c/sqrt(t) begins at a hundredth of the largest rate.
    """
    alpha, keep = candidate.method.alpha, candidate.keep
    growth = alpha.growth
    if growth is not None and growth.rho.sign_of_log == 0 and growth.power > -1 and not growth.is_zero:
        return
    largest = alpha(1) if keep is None else largest_of(alpha, keep)
    scale = as_schedule(float(f"{largest * math.sqrt(keep or 1) * _RATE_FLOOR:.9g}"))
    if 0 < largest < math.inf:
        floor = scale / sqrt(t)
        new, first = maximum(alpha, floor), first_below(alpha, floor)
        if keep is not None and first <= keep:
            new, first = join(alpha, keep + 1, new), keep + 1
        yield candidate.changed("lr", f"at least {in_steps(floor)} from step {first:,} on", first, alpha=new)


def largest_of(schedule: Schedule, steps: int) -> float:
    """Return the largest u_t with t <= steps, of some on two scales; of those that are known."""
    largest = -math.inf
    for step in some_steps(steps):
        with suppress(ScheduleError, Undecided):  # a step too far to walk to tells nothing
            largest = max(largest, late_value(schedule, step))
    return largest


def some_steps(steps: int) -> set[int]:
    """Return steps up to T, some near the beginning and some evenly."""
    return {int(step) for scale in (np.geomspace, np.linspace) for step in scale(1, steps, 50)}


STAGES: tuple[tuple[tuple[int, Repair], ...], ...] = (
    ((5, steady_eps),),
    ((2, held_beginning),),
    ((4, rising_theta),),
    ((3, root_decay), (4, raised_rate), (5, falling_rate)),
    ((5, fading_decay),),
)
"""The repairs with the condition each is for, in the order in which they are tried: eps, theta, alpha, decay
(5 stands for what the paper has not: eps, decay, other divisors)."""


OF_THETA: frozenset[Repair] = frozenset({rising_theta, root_decay})
"""Those that are about theta_t -> 1, or about alpha_t beside it."""


def needs_theta(x: Algorithm) -> bool:
    """Return whether theta_t has to tend to 1: the divisor has the present gradient in it, and not by a maximum."""
    return x.preconditioned and not (x.running_maximum or x.delayed)


def applied(repair: Repair, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidates of a repair; one that makes no method (a value out of range) is no candidate."""
    try:
        for changed in repair(candidate):
            changed.method.checked()
            yield changed
    except (MethodError, ScheduleError, Undecided, ZeroDivisionError, OverflowError):
        return


def _memory(theta: Schedule) -> Fraction | None:
    """Return 1/(1 - theta) for the constant that theta_t is, or was before it was made to rise."""
    constant = theta.left if isinstance(theta, tree.Maximum) else theta
    if not isinstance(constant, tree.Constant) or not 0 < constant.value < 1:
        return None
    return 1 / (1 - constant.value)


def in_steps(schedule: Schedule) -> str:
    """Return a formula with the word `step` for t."""
    return re.sub(r"\bt\b", "step", str(schedule))


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):g}"
