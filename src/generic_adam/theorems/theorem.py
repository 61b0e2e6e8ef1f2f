"""The vocabulary of theorems: what one covers, what it asks of the sequences, what it concludes.

A theorem is a declaration: a subclass of `Theorem` says which algorithms it covers, which hypotheses the
sequences have to meet for ever, and at which rate the gradient then vanishes; the base class does the rest.
The certificate asks all of them and knows none by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from generic_adam.theorems.verdicts import Condition, Rate, Status, Verdict, plain_fields, rate_of, verdict_of

NOTHING = as_schedule(0)
NOT_COVERED = (
    "No theorem here covers batches drawn without replacement (shuffled epochs), batch norm in training (its "
    "gradients are biased), the kinks of ReLU, or a schedule that looks at the loss (ReduceLROnPlateau)."
)
EXACT = "every gradient is exact (a full batch)"
CONVEX = "it is about convex losses on a bounded domain, with projection"
CONVEX_LOSSES = "the losses are convex, on a bounded domain with projection"
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
        return min(
            (one for one in self.conditions if one.status is not Status.HOLDS),
            key=lambda one: one.status is Status.UNDECIDED,
            default=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types only."""
        said = ("theorem", "title", "about", "covers", "verdict", "rate", "outside", "needs", "conclusion")
        return plain_fields(self, *said, "conditions")


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


Hypothesis = Callable[[Algorithm], Decision]
Asked = Mapping[str, Callable[[Algorithm], bool]]


class Theorem:
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
        takes: what has to be assumed of the run, by its name in `Assumptions`, and what is said where it is not.
        hypotheses: what it asks of the sequences for ever; a theorem that needs more has its own `decide`.
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
    takes: ClassVar[Mapping[str, str]] = {}
    hypotheses: ClassVar[tuple[Hypothesis, ...]] = ()

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """Why the theorem does not cover the algorithm; empty where it does."""
        missing = (phrase for name, phrase in self.takes.items() if not getattr(assume, name))
        return (*beyond(x, self.allows), *missing)

    def rate(self, x: Algorithm) -> Rate | None:
        """The order of the bound in T where every hypothesis holds; None where that is not said."""
        del x

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """The hypotheses for every t, for an algorithm that is covered; `finding` makes the answer."""
        del assume
        return self.finding([one(x) for one in self.hypotheses], self.rate(x))

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
        answers: Sequence[Condition | Decision],
        rate: Rate | None = None,
        *,
        needs: Sequence[str] = (),
        conclusion: str = "",
    ) -> Finding:
        """A finding of this theorem, its hypotheses numbered; its rate only where every one holds."""
        conditions = tuple(as_condition(number, one) for number, one in enumerate(answers, start=1))
        certified = verdict_of(conditions) is Verdict.CERTIFIED
        return Finding(
            self.name,
            self.title,
            self.about,
            conditions=conditions,
            rate=rate if certified else None,
            needs=tuple(needs),
            conclusion=conclusion or self.statement,
        )


def departures(x: Algorithm) -> list[tuple[str, str]]:
    """Every attribute in which the algorithm differs from the paper's, and why that matters to a theorem."""
    found: dict[str, str | bool] = {
        "initial_v": x.initial_v == 0 and "v_0 = 0, where v_t may be 0",
        "eps": x.eps != NOTHING and f"eps_t = {x.eps} is added in the denominator",
        "decay": x.decay != NOTHING and "decoupled weight decay moves x_t apart from the gradient",
        "running_maximum": x.running_maximum and "v_t is replaced by its running maximum",
        "power": x.power.denominator != 2 and f"v_t is raised to the power {x.power}",
        "nesterov": x.nesterov is not None and "Nesterov momentum",
        "heavy_ball": x.heavy_ball is not None and "heavy-ball momentum after the division",
        "clipping": x.clipping is not None and "clipped gradients are biased",
        "preconditioned": not x.preconditioned and "nothing divides the step",
        "delayed": x.delayed and "the divisor is made of earlier gradients",
        "factored": x.factored and "second moments of matrices are factored into rows and columns",
        "centered": x.centered and "the squared mean gradient is taken off v_t",
    }
    named = [(attribute, phrase) for attribute, phrase in found.items() if isinstance(phrase, str)]
    return [*named, *(("outside", phrase) for phrase in x.outside)]


def beyond(x: Algorithm, allowed: frozenset[str]) -> tuple[str, ...]:
    """The phrases of the departures that a theorem does not allow."""
    return tuple(phrase for attribute, phrase in departures(x) if attribute not in allowed)


class Reported(Theorem):
    """A published statement whose constants or text are not at hand: asked by name alone, it never certifies.

    Attributes:
        asks: what its hypotheses ask for that can be seen, and whether the algorithm may have it.
    """

    confidence: ClassVar = Confidence.REPORTED
    allows: ClassVar = frozenset({"initial_v", "eps"})
    asks: ClassVar[Asked]

    def outside(self, x: Algorithm, assume: Assumptions) -> tuple[str, ...]:
        """As allowed, and what of its hypotheses can be decided."""
        missing = (f"it asks for {phrase}" for phrase, may in self.asks.items() if not may(x))
        return (*super().outside(x, assume), *missing)

    def decide(self, x: Algorithm, assume: Assumptions) -> Finding:
        """Nothing more can be decided: the one condition left says why."""
        del x, assume
        return self.finding([Decision(Status.UNDECIDED, f"{self.statement}.")])


def as_condition(number: int, answer: Decision | Condition) -> Condition:
    """An answer as a numbered condition; the witness is a step or a text."""
    witness = answer.witness.t if isinstance(answer.witness, StepWitness) else answer.witness
    plain = witness if witness is None or isinstance(witness, int) else str(witness)
    return Condition(number, answer.status, answer.reason, plain)


def vanishing_steps(alpha: Schedule) -> tuple[list[Condition], Rate | None]:
    """alpha_t >= 0, alpha_t -> 0 with an infinite sum; the rate is max(1, sum alpha_t^2) / sum alpha_t."""
    growth = two_sided(alpha)
    if growth is None:
        return [Condition(1, Status.UNDECIDED, "The order of alpha_t is not known.")], None
    falls = Decision(Status.FAILS, "alpha_t does not tend to 0.", decide.GrowthWitness("alpha_t", growth))
    if growth.trend < 0:
        falls = Decision(Status.HOLDS, f"alpha_t is of order {growth} and tends to 0.")
    diverges = decide.sum_diverges(alpha, "alpha")
    squares, total = (growth * growth).partial_sums(), growth.partial_sums()
    divisor = None if total is None or not diverges.holds else total.inverse()
    rate = None
    if squares is not None and divisor is not None and falls.holds:
        rate = rate_of(CONSTANT.largest(squares) * divisor)
    never_negative = decide.not_negative(alpha, name="alpha_t")
    return [as_condition(1, falls), as_condition(2, diverges), as_condition(3, never_negative)], rate
