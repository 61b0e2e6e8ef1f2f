"""The vocabulary of theorems: what one covers, what it asks of the sequences, what it concludes.

A theorem is a declaration: a subclass of `Theorem` says which algorithms it covers, which hypotheses the
sequences have to meet for ever, and at which rate the gradient then vanishes. The certificate asks all of
them and knows none by name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from generic_adam.errors import TheoremError
from generic_adam.methods import Algorithm
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules.growth import CONSTANT
from generic_adam.theorems import decide
from generic_adam.theorems.decide import Decision, StepWitness, two_sided
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.verdicts import (
    Condition,
    Rate,
    Status,
    Verdict,
    condition_to_dict,
    rate_of,
    verdict_of,
)

NOTHING = as_schedule(0)
EXACT = "every gradient is exact (a full batch)"
COUPLED_DECAY = "decay is a part of the loss, f + (lambda/2) |x|^2, and the weights stay bounded"


class Confidence(StrEnum):
    """How a statement is known; what is only reported never certifies."""

    PROVED = "proved here"
    PUBLISHED = "published, the text was read"
    FORMALISED = "read in a formal proof"
    REPORTED = "reported, the text was not at hand"


class About(StrEnum):
    """What a theorem speaks of."""

    GRADIENT = "the gradient at a drawn iterate tends to 0"
    REGRET = "average regret tends to 0 on convex problems"
    BOUND = "a bound after a number of steps, nothing for ever"
    WARNING = "some problem defeats the method"


@dataclass(frozen=True)
class Assumptions:
    """What is taken for granted about the run beyond (A1) to (A4).

    Attributes:
        weights_bound: X with |x_t|_inf <= X at every step.
        gradient_norm: a number that no stochastic gradient's norm exceeds.
        full_batch: every gradient is exact.
        convex: convex losses on a bounded domain, with projection: the setting of regret.
        smoothness: L, with which the gradient is Lipschitz; a few theorems ask for steps that are small beside it.
    """

    weights_bound: float | None = None
    gradient_norm: float | None = None
    full_batch: bool = False
    convex: bool = False
    smoothness: float | None = None

    def __post_init__(self) -> None:
        for name in ("weights_bound", "gradient_norm", "smoothness"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise TheoremError(f"{name}: expected a finite number >= 0, got {value!r}")


@dataclass(frozen=True)
class Finding:
    """What one theorem says about one algorithm, for ever.

    Attributes:
        theorem: its name.
        title: what people call it.
        about: what it speaks of.
        outside: why it does not cover the algorithm, one phrase each; empty where it does.
        conditions: its hypotheses on the sequences, each with its answer.
        rate: the order of its bound in T, where all of them hold.
        needs: what it takes for granted beyond the common assumptions, one phrase each.
        conclusion: what follows, in one sentence.
    """

    theorem: str
    title: str
    about: About
    outside: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    rate: Rate | None = None
    needs: tuple[str, ...] = ()
    conclusion: str = ""

    @property
    def covers(self) -> bool:
        """Whether the theorem speaks of this algorithm at all."""
        return not self.outside

    @property
    def verdict(self) -> Verdict:
        """Certified, not certified or undecided by this theorem; undecided where it does not cover.

        A warning never certifies: where its hypotheses hold it speaks against the method, elsewhere it is
        silent.
        """
        if not self.covers:
            return Verdict.UNDECIDED
        verdict = verdict_of(self.conditions)
        if self.about is not About.WARNING:
            return verdict
        return Verdict.NOT_CERTIFIED if verdict is Verdict.CERTIFIED else Verdict.UNDECIDED

    @property
    def first_failing(self) -> Condition | None:
        """The first hypothesis that fails, else the first that is undecided, else None."""
        for status in (Status.FAILS, Status.UNDECIDED):
            for condition in self.conditions:
                if condition.status is status:
                    return condition
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain types only."""
        return {
            "theorem": self.theorem,
            "title": self.title,
            "about": str(self.about),
            "covers": self.covers,
            "verdict": str(self.verdict),
            "rate": None if self.rate is None else str(self.rate),
            "outside": list(self.outside),
            "needs": list(self.needs),
            "conclusion": self.conclusion,
            "conditions": [condition_to_dict(condition) for condition in self.conditions],
        }


@dataclass(frozen=True)
class Offer:
    r"""A theorem's bound after T steps, in the measure that all of them share.

    Attributes:
        expectation: what :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` is at most.
        l1: what :math:`\mathbb{E}\|\nabla f(x_\tau)\|_1` is at most; None where the theorem does not say.
        constants: the numbers that it is made of, by name.
    """

    expectation: float
    l1: float | None
    constants: dict[str, float]


class Theorem(ABC):
    """A theorem as a declaration; its one instance is asked about algorithms.

    Attributes:
        name: what `theorem=` and the command line know it by.
        title: what people call it.
        about: what it speaks of.
        statement: what it says, in one sentence.
        covered: which algorithms, in words.
        assumptions: what it asks of the problem.
        source: where it is from and where its proof is.
        confidence: how it is known.
        allows: the attributes of an `Algorithm` that may differ from the paper's algorithm.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[About] = About.GRADIENT
    statement: ClassVar[str]
    covered: ClassVar[str]
    assumptions: ClassVar[tuple[str, ...]] = ("(A1)", "(A2)", "(A3)", "(A4)")
    source: ClassVar[str]
    confidence: ClassVar[Confidence] = Confidence.PROVED
    allows: ClassVar[frozenset[str]] = frozenset()

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """Why the theorem does not cover the algorithm; empty where it does."""
        del assume
        return beyond(x, self.allows)

    @abstractmethod
    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """The hypotheses for every t, for an algorithm that is covered; `finding` makes the answer."""

    def examine(self, x: Algorithm, assume: Assumptions | None = None) -> Finding:
        """What the theorem says about the algorithm for ever, or why it says nothing."""
        assumed = assume or Assumptions()
        outside = self.outside(x, assumed)
        if outside:
            conclusion = f"{self.title} does not cover it: {outside[0]}"
            return replace(self.finding(()), outside=outside, conclusion=conclusion)
        found = self.decide(x, assumed)
        return replace(found, needs=(*found.needs, COUPLED_DECAY)) if x.l2 else found

    def bound(self, x: Algorithm, problem: Problem, steps: int) -> Offer:
        """The theorem's bound after T steps, for an algorithm that it covers.

        Raises:
            TheoremError: it gives none, or a hypothesis on the steps 1..T is missing.
        """
        del x, problem, steps
        raise TheoremError("it gives no bound for a number of steps")

    def finding(
        self,
        conditions: Sequence[Condition],
        rate: Rate | None = None,
        *,
        needs: Sequence[str] = (),
        conclusion: str = "",
    ) -> Finding:
        """A finding of this theorem; its rate only where every condition holds."""
        certified = verdict_of(tuple(conditions)) is Verdict.CERTIFIED
        return Finding(
            self.name,
            self.title,
            self.about,
            conditions=tuple(conditions),
            rate=rate if certified else None,
            needs=tuple(needs),
            conclusion=conclusion or self.statement,
        )


@dataclass(frozen=True)
class Departure:
    """One attribute in which an algorithm differs from the paper's.

    Attributes:
        attribute: its name in `Algorithm`.
        phrase: what that means, in words.
    """

    attribute: str
    phrase: str


def departures(x: Algorithm) -> tuple[Departure, ...]:
    """Every attribute in which the algorithm differs from the paper's, with why that matters to a theorem."""
    found = [
        ("initial_v", x.initial_v == 0, "v_0 = 0, where v_t may be 0"),
        ("eps", x.eps != NOTHING, f"eps_t = {x.eps} is added in the denominator"),
        ("decay", x.decay != NOTHING, "decoupled weight decay moves x_t apart from the gradient"),
        ("running_maximum", x.running_maximum, "v_t is replaced by its running maximum"),
        ("power", x.power.denominator != 2, f"v_t is raised to the power {x.power}"),
        ("nesterov", x.nesterov is not None, "Nesterov momentum"),
        ("heavy_ball", x.heavy_ball is not None, "heavy-ball momentum after the division"),
        ("clipping", x.clipping is not None, "clipped gradients are biased"),
        ("preconditioned", not x.preconditioned, "nothing divides the step"),
        ("delayed", x.delayed, "the divisor is made of earlier gradients"),
        ("factored", x.factored, "second moments of matrices are factored into rows and columns"),
        ("centered", x.centered, "the squared mean gradient is taken off v_t"),
    ]
    named = [Departure(attribute, phrase) for attribute, differs, phrase in found if differs]
    return (*named, *(Departure("outside", phrase) for phrase in x.outside))


def beyond(x: Algorithm, allowed: frozenset[str]) -> tuple[str, ...]:
    """The phrases of the departures that a theorem does not allow."""
    return tuple(one.phrase for one in departures(x) if one.attribute not in allowed)


class Reported(Theorem):
    """A published statement whose constants or text are not at hand: asked by name alone, it never certifies."""

    confidence: ClassVar = Confidence.REPORTED

    @abstractmethod
    def lacking(self, x: Algorithm, assume: Assumptions) -> dict[str, bool]:
        """What its hypotheses ask for, and whether the algorithm lacks it."""

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and what of its hypotheses can be decided."""
        lacking = (phrase for phrase, lacks in self.lacking(x, assume).items() if lacks)
        return (*super().outside(x, assume), *(f"it asks for {phrase}" for phrase in lacking))

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Nothing more can be decided: the one condition left says why."""
        del x, assume
        return self.finding([Condition(1, Status.UNDECIDED, f"{self.statement}.")])


def as_condition(number: int, decision: Decision) -> Condition:
    """A decision as a numbered condition; the witness is a step or a text."""
    witness = decision.witness
    plain = witness.t if isinstance(witness, StepWitness) else None if witness is None else str(witness)
    return Condition(number, decision.status, decision.reason, plain)


def vanishing_steps(alpha: Schedule) -> tuple[list[Condition], Rate | None]:
    """alpha_t -> 0 with an infinite sum; the rate is max(1, sum alpha_t^2) / sum alpha_t."""
    growth = two_sided(alpha)
    if growth is None:
        unknown = Decision(Status.UNDECIDED, "The order of alpha_t is not known.")
        return [as_condition(1, unknown)], None
    falls = (
        Decision(Status.HOLDS, f"alpha_t is of order {growth} and tends to 0.")
        if growth.trend < 0
        else Decision(Status.FAILS, "alpha_t does not tend to 0.", decide.GrowthWitness("alpha_t", growth))
    )
    diverges = decide.sum_diverges(alpha, "alpha")
    squares, total = (growth * growth).partial_sums(), growth.partial_sums()
    divisor = None if total is None or not growth.sum_diverges else total.inverse()
    rate = None
    if squares is not None and divisor is not None and falls.holds and diverges.holds:
        rate = rate_of(CONSTANT.largest(squares) * divisor)
    return [as_condition(1, falls), as_condition(2, diverges)], rate
