r"""A number that the gradient stays below after T steps: the smallest that any theorem gives.

Every theorem that covers the algorithm is asked, its hypotheses on the steps 1..T included; all of them speak
of :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` at an iterate drawn by the theorem's weights, so their
numbers compare. Beside it stands what holds without any theorem: :math:`G^2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.parts import Part
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Budget
from generic_adam.setting import MissingError, Setting, Source
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.clipping import without_idle_clipping
from generic_adam.theorems.constants import ALWAYS, Constants
from generic_adam.theorems.epsilon import coupled
from generic_adam.theorems.sequences import LONGEST
from generic_adam.theorems.theorem import BOUNDED_GRADIENTS, NOTHING, Offer, Reason, Theorem, drawn_as

_LONGEST_SEARCHED = 1_000_000
_ALMOST_SURE = "(A4s)"
"""The assumption that `gradient_sup` is about."""


@dataclass(frozen=True)
class Bound(Part):
    r"""The guarantee on a problem after T steps.

    Attributes:
        theorem: the name of the theorem with the smallest bound, of those that say something if some do; None where no
            theorem has one.
        steps: T.
        delta: in (0, 1).
        expectation: what :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` is at most.
        trivial: what it is at most with no theorem at all, :math:`G^2`.
        l1: what :math:`\mathbb{E}\|\nabla f(x_\tau)\|_1` is at most; None where the theorem does not say.
        trivial_l1: what that is at most with no theorem.
        constants: the numbers that the bound is made of, by name.
        others: (theorem, its bound) of the others that cover it.
        missing: (theorem, why it gives no bound) of the rest.
        l2: lambda of a decay inside the gradient: f is then the loss plus lambda/2 |x|^2.
        needs: the facts that it rests on beyond L, G, d and the gap, and of those the measured ones, one phrase each.
        setting: what is known of the problem and the run.
    """

    also = ("value", "probability", "informative")

    theorem: str | None
    steps: int
    delta: float
    expectation: float
    trivial: float
    l1: float | None
    trivial_l1: float
    constants: dict[str, float]
    others: tuple[tuple[str, float], ...] = ()
    missing: tuple[tuple[str, Reason], ...] = ()
    l2: float = 0.0
    needs: tuple[str, ...] = ()
    setting: Setting = field(default_factory=lambda: Setting(), repr=False)  # noqa: PLW0108 - the class has no type as a factory

    @property
    def value(self) -> float:
        r"""The number that :math:`\|\nabla f(x_\tau)\|^2` stays below with probability `probability`."""
        return self.expectation / self.delta

    @property
    def probability(self) -> float:
        r""":math:`1 - \delta^{2/3}`."""
        return 1 - self.delta ** (2 / 3)

    @property
    def is_valid(self) -> bool:
        """True if some theorem gives a bound."""
        return self.theorem is not None

    @property
    def informative(self) -> bool:
        """True if the bound is below the trivial one."""
        return Offer(self.expectation, self.l1, {}).beats(self.trivial, self.trivial_l1)


def bound_algorithm(
    subject: Method | Algorithm,
    setting: Setting,
    steps: int,
    delta: float = 0.1,
    theorem: str | None = None,
    budget: float | None = None,
) -> Bound:
    """Return the smallest bound after a number of steps.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        setting: what is known of the problem: smoothness, a bound on the gradient, dimension and gap at least.
        steps: T.
        delta: in (0, 1): the bound on the squared norm holds with probability 1 - delta^(2/3).
        theorem: the name of one theorem; None takes the smallest bound.
        budget: a factor on the work that each question may take; None takes that of an enclosing `Budget`, or 1.

    Raises:
        TheoremError: an argument is out of range, no theorem of that name gives bounds, parameter groups
            differ, the setting lacks one of the four, or decay inside the gradient has no bound on the weights.
    """
    if not 0 < delta < 1:
        raise TheoremError(f"delta is {delta!r}, expected a number between 0 and 1")
    last = whole_steps(steps)
    if last > LONGEST:
        raise TheoremError(f"the recursions are run up to {LONGEST:,} steps, got {last:,}")
    x = as_algorithm(subject)
    if x.others:
        raise TheoremError("parameter groups with different sequences: expected one group, each has its own bound")
    known = setting.completed().for_run(last)
    x, idle = without_idle_clipping(x, known)
    problem = coupled(Constants.of(known), float(x.l2))
    found: list[tuple[Theorem, Offer]] = []
    missing: list[tuple[str, Reason]] = []
    with Budget(budget):
        x.method.checked()
        for one in THEOREMS if theorem is None else (theorem_named(theorem),):
            if outside := one.outside(x, known):
                missing.append((one.name, outside[0]))
                continue
            try:
                found.append((one, one.bound(x, problem, last)))
            except MissingError as error:
                missing.append((one.name, Reason("missing", error.fact)))
            except GenericAdamError as error:
                missing.append((one.name, Reason("error", str(error))))
    # One that says something, be it in the l1 norm alone, comes before one that does not.
    trivial = problem.trivial_l2, problem.trivial_l1
    found.sort(key=lambda pair: (not pair[1].beats(*trivial), pair[1].expectation))
    best, offer = found[0] if found else (None, Offer(math.inf, None, {}))
    return Bound(
        theorem=None if best is None else best.name,
        steps=last,
        delta=delta,
        expectation=offer.expectation,
        trivial=trivial[0],
        l1=offer.l1,
        trivial_l1=trivial[1],
        constants=offer.constants,
        others=tuple((one.name, other.expectation) for one, other in found[1:]),
        missing=tuple(missing),
        l2=float(x.l2),
        needs=() if best is None else tuple(dict.fromkeys((*idle, *_provided(best, x, known, last)))),
        setting=known,
    )


def _provided(theorem: Theorem, x: Algorithm, known: Setting, steps: int) -> Iterator[str]:
    """Yield the facts that a theorem's bound rests on beyond L, G, d and the gap, and of those the measured ones."""
    decays = ("weights_bound",) if x.decay != NOTHING or x.l2 else ()
    certain = ("gradient_sup",) if _ALMOST_SURE in theorem.assumptions else ()
    # That every gradient is bounded is said with its bound.
    yield from (one for one in theorem.granted(x) if one != BOUNDED_GRADIENTS)
    yield from known.said(*(one for one in (*theorem.takes, *theorem.uses) if one not in ALWAYS), *decays, *certain)
    yield from () if theorem.shuffled else drawn_as(known, steps)
    yield from (fact.text for fact in known.needed(*ALWAYS) if fact.source is Source.MEASURED)


def informative_from(
    subject: Method | Algorithm, setting: Setting, theorem: str | None = None, budget: float | None = None
) -> int | None:
    """Return a number of steps after which the bound, or a theorem's own, says something; None if 10^6 is not enough.

    It is the least, to two digits, where the bound stays below the trivial one.
    """
    with Budget(budget):
        return least_steps(lambda steps: bound_algorithm(subject, setting, steps, theorem=theorem).informative)


def least_steps(is_so: Callable[[int], bool]) -> int | None:
    """Return about the least number of steps for which it is so, to two digits; None if 10^6 is not enough."""
    low, high = 1, 10
    while not is_so(high):
        low, high = high, high * 10
        if high > _LONGEST_SEARCHED:
            return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if is_so(middle) else (middle, high)
    return high
