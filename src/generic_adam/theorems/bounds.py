r"""A number that the gradient stays below after T steps: the smallest that any theorem gives.

Every theorem that covers the algorithm is asked, its hypotheses on the steps 1..T included; all of them speak
of :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` at an iterate drawn by the theorem's weights, so their
numbers compare. Beside it stands what holds without any theorem: :math:`G^2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Method
from generic_adam.schedules.balls import rounded_up
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Budget
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.clipping import never_active
from generic_adam.theorems.decay import coupled
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sequences import LONGEST
from generic_adam.theorems.theorem import NOTHING, Assumptions, Offer, Theorem, plain, plain_fields

_LONGEST_SEARCHED = 1_000_000
# How theorems name the assumption that `Problem.gradient_sup` is about.
_ALMOST_SURE = {"(A4s)", "|g_t| <= G always"}


@dataclass(frozen=True)
class Bound:
    r"""What is guaranteed on a problem after T steps.

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
        needs: which of the problem's further constants it rests on, `box` and `gradient_sup`, one phrase each.
    """

    theorem: str | None
    steps: int
    delta: float
    expectation: float
    trivial: float
    l1: float | None
    trivial_l1: float
    constants: dict[str, float]
    others: tuple[tuple[str, float], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    l2: float = 0.0
    needs: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        r"""What :math:`\|\nabla f(x_\tau)\|^2` is at most with probability `probability`."""
        return self.expectation / self.delta

    @property
    def probability(self) -> float:
        r""":math:`1 - \delta^{2/3}`."""
        return 1 - self.delta ** (2 / 3)

    @property
    def is_valid(self) -> bool:
        """Whether some theorem gives a bound."""
        return self.theorem is not None

    @property
    def informative(self) -> bool:
        """Whether the bound is below what holds without a theorem; else the theorem is silent."""
        return Offer(self.expectation, self.l1, {}).beats(self.trivial, self.trivial_l1)

    @property
    def statement(self) -> str:
        """One sentence: the bound beside the trivial one, or why there is none."""
        if self.theorem is None:
            return "no bound: " + "; ".join(f"{name}: {why}" for name, why in self.missing)
        if math.isinf(self.expectation):
            return f"the bound of {self.theorem} exceeds the largest double"
        word = "informative" if self.expectation < self.trivial else "silent: the trivial bound is smaller"
        provided = f"provided {' and '.join(self.needs)}, " if self.needs else ""
        said = (
            f"after {self.steps:,} steps, {provided}(E |grad f(x_tau)|^(4/3))^(3/2) <= "
            f"{rounded_up(self.expectation, 6)} by theorem {self.theorem}; "
            f"without a theorem <= {rounded_up(self.trivial, 6)} ({word})"
            + (f"; f is the loss + {self.l2 / 2:g} |x|^2" if self.l2 else "")
        )
        if self.l1 is None:
            return said
        word = "informative" if self.l1 < self.trivial_l1 else "silent"
        l1, trivial = rounded_up(self.l1, 6), rounded_up(self.trivial_l1, 6)
        return f"{said}; E |grad f(x_tau)|_1 <= {l1}, without a theorem <= {trivial} ({word})"

    def __str__(self) -> str:
        return self.statement

    def to_dict(self) -> dict[str, Any]:
        """Plain types; a number that is infinite is None."""
        also = plain_fields(self, "value", "probability", "informative", "statement")
        return plain(vars(self) | {"others": dict(self.others), "missing": dict(self.missing)}) | also


def bound_algorithm(
    subject: Method | Algorithm,
    problem: Problem,
    steps: int,
    delta: float = 0.1,
    theorem: str | None = None,
    budget: float | None = None,
) -> Bound:
    """The smallest bound after a number of steps.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm with v_0 = problem.epsilon.
        problem: the constants of (A1) to (A4).
        steps: T.
        delta: in (0, 1): the bound on the squared norm holds with probability 1 - delta^(2/3).
        theorem: the name of one theorem; None takes the smallest bound.
        budget: a factor on the work that each question may take; None takes that of an enclosing `Budget`, or 1.

    Raises:
        TheoremError: an argument is out of range, no theorem of that name gives bounds, parameter groups
            differ, or decay inside the gradient has no `box` for the weights.
    """
    if not 0 < delta < 1:
        raise TheoremError(f"delta is {delta!r}, expected a number between 0 and 1")
    last = whole_steps(steps)
    if last > LONGEST:
        raise TheoremError(f"the recursions are run up to {LONGEST:,} steps, got {last:,}")
    x = subject if isinstance(subject, Algorithm) else Algorithm(subject, initial_v=problem.epsilon)
    if x.others:
        raise TheoremError("parameter groups with different sequences: expected one group, each has its own bound")
    clip = x.clipping if x.clipping is not None and x.clipping.kind != "update" else None
    idle = clip is not None and never_active(problem, clip.threshold, by_value=clip.kind == "value")
    x = replace(x, clipping=None) if idle else x  # C1: it changes nothing
    named = problem
    problem = coupled(problem, float(x.l2))
    assume = Assumptions(
        gradient_norm=problem.sup_norm if problem.sup_parts else None,
        full_batch=not any(part.noise for part in problem.parts),
        smoothness=problem.smoothness,
    )
    found: list[tuple[Theorem, Offer]] = []
    missing: list[tuple[str, str]] = []
    with Budget(budget):
        for one in THEOREMS if theorem is None else (theorem_named(theorem),):
            if outside := one.outside(x, assume):
                missing.append((one.name, outside[0]))
                continue
            try:
                found.append((one, one.bound(x, problem, last)))
            except GenericAdamError as error:
                missing.append((one.name, str(error)))
    # One that says something, be it in the l1 norm alone, comes before one that does not.
    trivial = problem.trivial_l2, problem.trivial_l1
    found.sort(key=lambda pair: (not pair[1].beats(*trivial), pair[1].expectation))
    best, offer = found[0] if found else (None, Offer(math.inf, None, {}))
    needs: list[str] = []
    if best is not None and (x.decay != NOTHING or x.l2):
        needs.append(f"|x_t|_inf <= {named.box:g} (box)")
    if best is not None and (idle or _ALMOST_SURE.intersection(best.assumptions)):
        needs.append(f"|g_(t,k)| <= {_shown(named.gradient_sup)} at every step (gradient_sup)")
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
        needs=tuple(needs),
    )


def _shown(bound: float | Sequence[float] | None) -> str:
    return f"{bound:g}" if isinstance(bound, float) else "G_k"


def informative_from(
    subject: Method | Algorithm, problem: Problem, theorem: str | None = None, budget: float | None = None
) -> int | None:
    """A number of steps after which the bound, or a theorem's own, says something; None if 10^6 is not enough.

    It is the least, to two digits, where the bound does not fall silent again.
    """
    low, high = 1, 10
    with Budget(budget):
        while not bound_algorithm(subject, problem, high, theorem=theorem).informative:
            low, high = high, high * 10
            if high > _LONGEST_SEARCHED:
                return None
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            informative = bound_algorithm(subject, problem, middle, theorem=theorem).informative
            low, high = (low, middle) if informative else (middle, high)
    return high
