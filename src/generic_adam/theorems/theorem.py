"""The vocabulary of theorems: what one covers, what it asks of the sequences, what it concludes.

A theorem is a declaration: a subclass of `Theorem` says which algorithms it covers, which hypotheses the
sequences have to meet in the long run, and at which rate the gradient then vanishes; the base class does the rest.
The certificate asks all of them and knows none by name.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from generic_adam.errors import ScheduleError, TheoremError
from generic_adam.methods import Algorithm
from generic_adam.parts import Part
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules.balls import sign
from generic_adam.schedules.work import Undecided
from generic_adam.setting import Setting, Source
from generic_adam.theorems import decide
from generic_adam.theorems.constants import Constants
from generic_adam.theorems.decide import Decision, Rate, Status, StepWitness, rate_of, two_sided

NOTHING = as_schedule(0)
NOT_COVERED = (
    "No theorem here covers batch norm in training (its gradients are biased), the kinks of ReLU, or a schedule that "
    "looks at the loss (ReduceLROnPlateau). Shuffled epochs are Theorem RR's, which asks for the batches of an epoch."
)
SEEN_ONCE = "each example is seen once, the loss being that of new ones"
WITH_REPLACEMENT = "batches are drawn with replacement, not in shuffled epochs"
MOVING_LOSSES = frozenset({"rl", "gan"})
"""Kinds of training whose loss changes during the run."""
BOUNDED_GRADIENTS = "every stochastic gradient is bounded, |g_t| <= G (A4s)"
COUPLED_DECAY = "decay is a part of the loss, f + (lambda/2) |x|^2, and the weights stay bounded"


class Verdict(StrEnum):
    """The answer about a method: the sufficient condition is met, not met, or could not be decided."""

    CERTIFIED = "certified"
    NOT_CERTIFIED = "not certified"
    UNDECIDED = "undecided"


class Confidence(StrEnum):
    """How a statement is known."""

    PROVED = "proved here"
    PUBLISHED = "published, the text was read"
    FORMALISED = "read in a formal proof"


class About(StrEnum):
    """The subject of a theorem."""

    GRADIENT = "the gradient at a drawn iterate tends to 0"
    REGRET = "average regret tends to 0 on convex problems"
    WARNING = "some problem defeats the method"


class Answer(StrEnum):
    """The answer about a run, or about the long run, from the best to the least."""

    GUARANTEED = "guaranteed"
    NOT_USEFUL = "no useful guarantee"
    NONE = "no guarantee"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Reason(Part):
    """Why a theorem does not cover an algorithm, or why a number is not known.

    Attributes:
        kind: the attribute of the algorithm that is in the way; or "missing", a fact; "excluded", by the theorem
            itself; "moving_loss"; "shuffled" and "drawn", how the data are; "groups", of different shape; "spent", the
            work; "numbers", of which the theorem has none; "problem", which has to be known; "error".
        about: what it is about: a name, a number, or a phrase that a theorem or a reader of optimizers declares.
    """

    kind: str
    about: str = ""


@dataclass(frozen=True)
class Condition:
    """One hypothesis of a theorem with its answer.

    Attributes:
        number: which one.
        status: holds, fails or undecided.
        reason: one sentence that cites the statement it rests on.
        asks: the name of the hypothesis.
        witness: where it fails, a step t (an int) or a growth (a text); else None.
        order: the order of what was asked to tend to 0, whether it does or not; None off the polynomial scale.
        rise: C0 of (R3), or the sequence that it is to be found of.
    """

    number: int
    status: Status
    reason: str
    witness: int | str | None = None
    asks: str = ""
    order: Rate | None = field(default=None, compare=False, repr=False)
    rise: float | Schedule | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, number: int, answer: Decision) -> Condition:
        """Return an answer of the decider with its number; the witness is a step or a text."""
        witness = answer.witness.t if isinstance(answer.witness, StepWitness) else answer.witness
        told = witness if witness is None or isinstance(witness, int) else str(witness)
        return cls(number, answer.status, answer.reason, told, answer.asks, rate_of(answer.order), answer.rise)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        told = {"number": self.number, "status": str(self.status), "reason": self.reason}
        return {**told, "witness": self.witness, "asks": self.asks}


def verdict_of(conditions: Sequence[Condition]) -> Verdict:
    """Certified when all hold; not certified when one fails; else undecided."""
    statuses = {condition.status for condition in conditions}
    if Status.FAILS in statuses:
        return Verdict.NOT_CERTIFIED
    return Verdict.UNDECIDED if Status.UNDECIDED in statuses else Verdict.CERTIFIED


@dataclass(frozen=True)
class Finding(Part):
    """The answer of one theorem about one algorithm, in the long run.

    Attributes:
        theorem: its name.
        title: what people call it.
        about: what it is about.
        outside: why it does not cover the algorithm; empty where it does.
        conditions: its hypotheses on the sequences, each with its answer.
        rate: the order of its bound in T, where all of them hold.
        needs: what it takes for granted beyond the common assumptions, one phrase each.
        conclusion: what follows, in one sentence; "" where it does not cover the algorithm.
    """

    also = ("covers", "verdict")

    theorem: str
    title: str
    about: About
    outside: tuple[Reason, ...] = ()
    conditions: tuple[Condition, ...] = ()
    rate: Rate | None = None
    needs: tuple[str, ...] = ()
    conclusion: str = ""

    @property
    def covers(self) -> bool:
        """True if the theorem covers this algorithm at all."""
        return not self.outside

    @property
    def verdict(self) -> Verdict:
        """Certified, not certified or undecided by this theorem; undecided where it does not cover.

        A warning never certifies: where its hypotheses hold it is against the method, elsewhere it says nothing.
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

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further phrases for whoever asks for the whole argument."""
        return ()


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

    def beats(self, trivial: float, trivial_l1: float) -> bool:
        """Return whether one of the two is below the trivial bound."""
        return self.expectation < trivial or (self.l1 is not None and self.l1 < trivial_l1)


Hypothesis = Callable[[Algorithm, Setting], Decision | None]
"""A question about an algorithm and what is known of its run; None where there is nothing to ask."""

Excluded = Mapping[str, Callable[[Algorithm], bool]]


class Theorem:
    """A theorem as a declaration; its one instance is asked about algorithms.

    Attributes:
        name: what `theorem=` and the command line know it by.
        title: what people call it; "Theorem" and the name where nothing else is said.
        about: what it is about.
        statement: what it says, in one sentence.
        covered: which algorithms, in words.
        assumptions: what it asks of the problem.
        source: where it is from and where its proof is.
        confidence: how it is known.
        allows: the attributes of an `Algorithm` that may differ from the paper's algorithm.
        excludes: what else it does not cover: what is said, and of which algorithms.
        takes: the facts of a `Setting` that have to be known, by name.
        uses: the facts that it uses where they are known.
        shuffled: batches that are drawn without replacement in each epoch are covered.
        needs: what it always takes for granted beyond the common assumptions.
        hypotheses: what it asks of the sequences in the long run.
        rate: the order of its bound in T; the slowest of this one and of those that its hypotheses have.
        kind: what its findings are.
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
    excludes: ClassVar[Excluded] = {}
    takes: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ()
    shuffled: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    hypotheses: ClassVar[tuple[Hypothesis, ...]] = ()
    rate: ClassVar[Rate | None] = None
    kind: ClassVar[type[Finding]] = Finding

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls) and "title" not in vars(cls):
            cls.title = f"Theorem {cls.name}"

    def outside(self, x: Algorithm, setting: Setting) -> tuple[Reason, ...]:
        """Return why the theorem does not cover the algorithm; empty where it does."""
        excluded = (Reason("excluded", phrase) for phrase, is_so in self.excludes.items() if is_so(x))
        missing = (Reason("missing", name) for name in self.takes if not getattr(setting, name))
        return (*beyond(x, self.allows), *excluded, *missing, *elsewhere(setting, shuffled=self.shuffled))

    def decide(self, x: Algorithm, setting: Setting) -> list[Decision]:
        """Decide the hypotheses for every t, of an algorithm that is covered."""
        return [found for one in self.hypotheses if (found := _asked(one, x, setting)) is not None]

    def examine(self, x: Algorithm, setting: Setting | None = None) -> Finding:
        """Ask the theorem about the algorithm in the long run."""
        known = setting or Setting()
        outside = self.outside(x, known)
        if outside:
            return self.kind(self.name, self.title, self.about, outside)
        conditions = tuple(map(Condition.of, itertools.count(1), self.decide(x, known)))
        rates = [one for one in (self.rate, *(condition.order for condition in conditions)) if one is not None]
        rate = max(rates, default=None) if verdict_of(conditions) is Verdict.CERTIFIED else None
        needs = (*self.granted(x), *known.said(*self.takes, *self.uses), *((COUPLED_DECAY,) if x.l2 else ()))
        said = (self.name, self.title, self.about, (), conditions, rate, needs, self.statement)
        return self.kind(*said)

    def granted(self, x: Algorithm) -> tuple[str, ...]:
        """Return what it takes for granted beyond the common assumptions and the setting's facts."""
        del x
        return self.needs

    def bound(self, x: Algorithm, problem: Constants, steps: int) -> Offer:
        """Return the theorem's bound after T steps, for an algorithm that it covers.

        Raises:
            TheoremError: it gives none, or a hypothesis on the steps 1..T is missing.
        """
        del x, problem, steps
        raise TheoremError("it gives no bound for a number of steps")

    def bounds_by(self, x: Algorithm, setting: Setting) -> str:
        """Return the statement that `bound` evaluates for an algorithm that is covered; "" where there is none."""
        del x, setting
        return "" if type(self).bound is Theorem.bound else self.title


def departures(x: Algorithm) -> list[Reason]:
    """Return every attribute in which the algorithm differs from the paper's."""
    differs = {
        "initial_v": x.initial_v == 0,
        "eps": x.eps != NOTHING,
        "decay": x.decay != NOTHING,
        "running_maximum": x.running_maximum,
        "power": x.power.denominator != 2,
        "nesterov": x.nesterov is not None,
        "heavy_ball": x.heavy_ball is not None,
        "clipping": x.clipping is not None,
        "preconditioned": not x.preconditioned,
        "delayed": x.delayed,
        "factored": x.factored,
        "centered": x.centered,
        "scaled": x.scaled,
    }
    return [*(Reason(name) for name, is_so in differs.items() if is_so), *(Reason("outside", one) for one in x.outside)]


def beyond(x: Algorithm, allowed: frozenset[str]) -> tuple[Reason, ...]:
    """Return the departures that a theorem does not allow."""
    return tuple(one for one in departures(x) if one.kind not in allowed)


def elsewhere(setting: Setting, *, shuffled: bool = False) -> tuple[Reason, ...]:
    """Return why theorems are not about such a run, whatever the algorithm is; empty where they are.

    Args:
        setting: what is known of the problem and the run.
        shuffled: the theorem covers batches that are drawn without replacement.
    """
    moves = setting.loss in MOVING_LOSSES
    drawn = setting.sampling == "shuffled" and not (shuffled or setting.full_batch)
    return (*([Reason("moving_loss", str(setting.loss))] * moves), *([Reason("shuffled")] * drawn))


def drawn_as(setting: Setting, steps: int) -> tuple[str, ...]:
    """Return what a theorem about unbiased gradients takes for granted of how a run's data are drawn."""
    fact, batches = setting.facts.get("sampling"), setting.batches_per_epoch
    if fact is not None:
        return (SEEN_ONCE,) if fact.source is Source.DERIVED else ()
    return () if batches is None or steps <= batches or setting.full_batch else (WITH_REPLACEMENT,)


STARTS_FROM_NOTHING: Excluded = {"v_0 = 0 and nothing added": lambda x: x.initial_v == 0 and sign(x.eps, 1) != 1}
"""An exclusion of every theorem with a divisor: the first step may divide by 0."""


def where(is_so: Callable[[Algorithm], bool], *asked: Hypothesis) -> tuple[Hypothesis, ...]:
    """Return hypotheses that are asked of some algorithms alone."""

    def of_one(hypothesis: Hypothesis) -> Hypothesis:
        @functools.wraps(hypothesis)
        def of_some(x: Algorithm, setting: Setting) -> Decision | None:
            return hypothesis(x, setting) if is_so(x) else None

        return of_some

    return tuple(map(of_one, asked))


def _asked(hypothesis: Hypothesis, x: Algorithm, setting: Setting) -> Decision | None:
    """Return what it answers; a form that turns out to have no value leaves it open, and the others answered."""
    try:
        found = hypothesis(x, setting)
    except (ScheduleError, Undecided) as error:
        found = Decision(Status.UNDECIDED, f"This is open: {error}.")
    return found and replace(found, asks=getattr(hypothesis, "__name__", "").strip("_"))


def steps_vanish(x: Algorithm, _: Setting) -> Decision:
    """alpha_t -> 0; how fast is no part of the rate."""
    return replace(decide.vanishes(two_sided(x.method.alpha), "alpha_t", "t"), order=None)


def infinite_sum(x: Algorithm, _: Setting) -> Decision:
    """sum alpha_t = infinity; the rate of steps that vanish is max(1, sum alpha_t^2) / sum alpha_t."""
    found, growth = decide.sum_diverges(x.method.alpha, "alpha"), two_sided(x.method.alpha)
    return replace(found, order=decide.over_sums(growth and growth * growth, growth)) if found.holds else found


def not_negative(x: Algorithm, _: Setting) -> Decision:
    """alpha_t >= 0."""
    return decide.not_negative(x.method.alpha, name="alpha_t")


VANISHING_STEPS: tuple[Hypothesis, ...] = (steps_vanish, infinite_sum, not_negative)


def momentum_below_one(x: Algorithm, _: Setting) -> Decision:
    """0 <= beta_t <= beta < 1."""
    return decide.bounded_below_one(x.method.beta)


def theta_in_range(x: Algorithm, _: Setting) -> Decision:
    """0 < theta_t < 1, or theta_1 = 0 where an eps keeps the denominator positive."""
    return decide.in_unit_interval(x.method.theta, name="theta_t", from_zero=x.eps != NOTHING)


def _theta_stays(x: Algorithm, setting: Setting) -> Decision:
    """0 < theta <= theta_t < 1: the logarithm S_t then grows by O(1 - theta_t) a step."""
    inside, growth = theta_in_range(x, setting), x.method.theta.growth
    if not inside.holds or (growth is not None and growth.trend == 0):
        return inside
    return Decision(Status.UNDECIDED, "Whether theta_t stays above a positive number is open.")


def _drift_vanishes(x: Algorithm, _: Setting) -> Decision:
    return decide.weighted(x.method, noisy=False)


WITHOUT_NOISE: tuple[Hypothesis, ...] = (*VANISHING_STEPS, _theta_stays, _drift_vanishes)
"""The hypotheses under which a drift without noise vanishes: with constant theta the first three are enough."""
