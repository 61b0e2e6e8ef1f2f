r"""A number that the gradient stays below after T steps: the smallest that any theorem gives.

Every theorem that covers the algorithm is asked, its hypotheses on the steps 1..T included; all of them speak
of :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` at an iterate drawn by the theorem's weights, so their
numbers compare. Beside it stands what holds without any theorem: :math:`G^2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.methods import Algorithm, Clipping, Method
from generic_adam.schedules import as_schedule
from generic_adam.theorems.amsgrad import amsgrad_bound, amsgrad_epsilon_bound
from generic_adam.theorems.bound import Bound as PaperBound
from generic_adam.theorems.bound import bound as paper_bound
from generic_adam.theorems.clipping import biased_bound, full_batch_bound, never_active
from generic_adam.theorems.decay import decay_bound
from generic_adam.theorems.delayed import delayed_bound
from generic_adam.theorems.epsilon import epsilon_bound, heavy_ball_bound
from generic_adam.theorems.horizon import whole_steps
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.sweep import LONGEST, Sequences
from generic_adam.theorems.theorem import beyond
from generic_adam.theorems.weighted import WeightedBound

_NOTHING = as_schedule(0)
_LONGEST_SEARCHED = 1_000_000


@dataclass(frozen=True)
class Bound:
    r"""What is guaranteed on a problem after T steps.

    Attributes:
        theorem: the name of the theorem with the smallest bound; None where no theorem has one.
        steps: T.
        delta: in (0, 1).
        expectation: what :math:`(\mathbb{E}\|\nabla f(x_\tau)\|^{4/3})^{3/2}` is at most.
        trivial: what it is at most with no theorem at all, :math:`G^2`.
        l1: what :math:`\mathbb{E}\|\nabla f(x_\tau)\|_1` is at most; None where the theorem does not say.
        trivial_l1: what that is at most with no theorem.
        constants: the numbers that the bound is made of, by name.
        others: (theorem, its bound) of the others that cover it.
        missing: (theorem, why it gives no bound) of the rest.
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
        return self.expectation < self.trivial or (self.l1 is not None and self.l1 < self.trivial_l1)

    @property
    def statement(self) -> str:
        """One sentence: the bound beside the trivial one, or why there is none."""
        if self.theorem is None:
            return "no bound: " + "; ".join(f"{name}: {why}" for name, why in self.missing)
        if math.isinf(self.expectation):
            return f"the bound of {self.theorem} exceeds the largest double"
        word = "informative" if self.informative else "silent: the trivial bound is smaller"
        return (
            f"after {self.steps:,} steps, (E |grad f(x_tau)|^(4/3))^(3/2) <= {self.expectation:.6g} "
            f"by theorem {self.theorem}; without a theorem <= {self.trivial:.6g} ({word})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types; a number that is infinite is None."""
        return {
            "theorem": self.theorem,
            "steps": self.steps,
            "delta": self.delta,
            "probability": self.probability,
            "value": _finite(self.value),
            "expectation": _finite(self.expectation),
            "trivial": self.trivial,
            "l1": _finite(self.l1),
            "trivial_l1": self.trivial_l1,
            "informative": self.informative,
            "constants": {name: _finite(number) for name, number in self.constants.items()},
            "others": {name: _finite(number) for name, number in self.others},
            "missing": dict(self.missing),
            "statement": self.statement,
        }


@dataclass(frozen=True)
class _Offer:
    """One theorem's bound, in the common measure."""

    expectation: float
    l1: float | None
    constants: dict[str, float]


def bound_algorithm(
    subject: Method | Algorithm, problem: Problem, steps: int, delta: float = 0.1, theorem: str | None = None
) -> Bound:
    """The smallest bound after a number of steps.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm with v_0 = problem.epsilon.
        problem: the constants of (A1) to (A4).
        steps: T.
        delta: in (0, 1): the bound on the squared norm holds with probability 1 - delta^(2/3).
        theorem: the name of one theorem; None takes the smallest bound.

    Raises:
        TheoremError: an argument is out of range, or no theorem of that name gives bounds.
    """
    if not 0 < delta < 1:
        raise TheoremError(f"delta is {delta!r}, expected a number between 0 and 1")
    last = whole_steps(steps)
    x = subject if isinstance(subject, Algorithm) else Algorithm(subject, initial_v=problem.epsilon)
    if x.clipping is not None and _never_clips(x.clipping, problem):
        x = replace(x, clipping=None)  # C1
    asked = _OFFERS if theorem is None else {theorem: _offer_named(theorem)}
    found: dict[str, _Offer] = {}
    missing: list[tuple[str, str]] = []
    for name, offer in asked.items():
        try:
            found[name] = offer(x, problem, last)
        except GenericAdamError as error:
            missing.append((name, str(error)))
    ranked = sorted(found.items(), key=lambda item: item[1].expectation)
    best = ranked[0] if ranked else (None, _Offer(math.inf, None, {}))
    return Bound(
        theorem=best[0],
        steps=last,
        delta=delta,
        expectation=best[1].expectation,
        trivial=problem.total_gradient_bound**2,
        l1=best[1].l1,
        trivial_l1=problem.gradient_sum_bound,
        constants=best[1].constants,
        others=tuple((name, offer.expectation) for name, offer in ranked[1:]),
        missing=tuple(missing),
    )


def informative_from(subject: Method | Algorithm, problem: Problem) -> int | None:
    """A number of steps from which the bound says something, to two digits; None if 10^6 is not enough."""
    steps = 10
    while steps <= _LONGEST_SEARCHED:
        if bound_algorithm(subject, problem, steps).informative:
            low, high = max(1, steps // 10), steps
            while high - low > max(1, high // 100):
                middle = (low + high) // 2
                low, high = (
                    (low, middle) if bound_algorithm(subject, problem, middle).informative else (middle, high)
                )
            return high
        steps *= 10
    return None


def _never_clips(clipping: Clipping, problem: Problem) -> bool:
    by_value = clipping.kind == "value"
    return clipping.kind != "update" and never_active(problem, clipping.threshold, by_value=by_value)


def _paper(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    _refuse(beyond(x, frozenset()))
    found: PaperBound = paper_bound(x.method, replace(problem, epsilon=x.initial_v), steps)
    if found.missing:
        raise TheoremError("; ".join(map(str, found.missing)))
    known = {} if found.constants is None else found.constants.to_dict()
    return _Offer(found.expectation, None, {**known, "sum": found.total, "alpha_last": found.alpha_last})


def _weighted(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    _refuse(beyond(x, frozenset()))
    return _from_weights(epsilon_bound(_short(x, steps), problem))


def _epsilon(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    _refuse(beyond(x, frozenset({"initial_v", "eps", "nesterov", "heavy_ball"})))
    if x.eps == _NOTHING:
        raise TheoremError("nothing is added to sqrt(v_t): Theorem W is the one to ask")
    sequences = _short(x, steps)
    if x.heavy_ball is not None:
        ball = x.heavy_ball
        return _from_weights(
            heavy_ball_bound(
                sequences,
                problem,
                float(ball.factor),
                rate_inside=ball.rate_inside,
                under_root=x.eps_under_root,
            )
        )
    return _from_weights(epsilon_bound(sequences, problem, under_root=x.eps_under_root))


def _decay(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    _refuse(beyond(x, frozenset({"initial_v", "eps", "decay"})))
    if x.decay == _NOTHING:
        raise TheoremError("there is no decoupled decay")
    return _from_weights(decay_bound(_short(x, steps), problem, under_root=x.eps_under_root))


def _running_maximum(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    """The smaller of M and M_E; the second has no Padam."""
    _refuse(beyond(x, frozenset({"initial_v", "eps", "running_maximum", "power"})))
    if not x.running_maximum or x.eps_under_root:
        raise TheoremError("v_t is not replaced by its running maximum, or eps is under the root")
    sequences = _short(x, steps)
    found = [amsgrad_bound(sequences, problem, power=float(x.power))]
    if x.power == Fraction(1, 2):
        with suppress(TheoremError):  # M_E asks more of eps
            found.append(amsgrad_epsilon_bound(sequences, problem))
    return _from_weights(min(found, key=lambda one: one.l2))


def _delayed(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    _refuse(beyond(x, frozenset({"initial_v", "eps", "delayed"})))
    if not x.delayed:
        raise TheoremError("the divisor contains the newest gradient")
    return _from_weights(delayed_bound(_short(x, steps), problem))


def _clipped(x: Algorithm, problem: Problem, steps: int) -> _Offer:
    """B, C2 and C3: full batches, clipped or not, and clipped gradients with their bias."""
    _refuse(beyond(x, frozenset({"initial_v", "eps", "clipping"})))
    clipping = x.clipping
    if clipping is not None and clipping.kind != "norm":
        raise TheoremError("only a clipped norm of the whole gradient is covered")
    sequences = _short(replace(x, clipping=None), steps)
    threshold = math.inf if clipping is None else clipping.threshold
    if not any(part.noise for part in problem.parts):
        return _from_weights(
            full_batch_bound(sequences, problem, threshold=threshold, under_root=x.eps_under_root)
        )
    if clipping is None:
        raise TheoremError("the gradients have noise and are not clipped: Theorem E is the one to ask")
    if x.eps_under_root or x.eps == _NOTHING:
        raise TheoremError(
            "clipped gradients are biased, which costs 1/eps: expected eps > 0 beside the root"
        )
    return _from_weights(biased_bound(sequences, problem, threshold))


def _short(x: Algorithm, steps: int) -> Sequences:
    if steps > LONGEST:
        raise TheoremError(f"the recursions are run up to {LONGEST:,} steps")
    return Sequences.of_algorithm(x, steps)


def _from_weights(found: WeightedBound) -> _Offer:
    if not math.isfinite(found.value) and found.divisor <= 0:
        raise TheoremError("every learning rate up to the horizon is 0")
    names = (
        "gap",
        "noise",
        "drift",
        "decay",
        "jump",
        "weight",
        "divisor",
        "s",
        "zeta",
        "phi",
        "s1",
        "s2",
        "value",
    )
    numbers = {name: float(getattr(found, name)) for name in names}
    return _Offer(
        found.l2, found.l1, {("X_w" if name == "value" else name): number for name, number in numbers.items()}
    )


def _refuse(outside: tuple[str, ...]) -> None:
    if outside:
        raise TheoremError(outside[0])


_OFFERS: dict[str, Callable[[Algorithm, Problem, int], _Offer]] = {
    "zou2019": _paper,
    "W": _weighted,
    "E": _epsilon,
    "D": _decay,
    "M": _running_maximum,
    "O": _delayed,
    "C": _clipped,
}


def _offer_named(name: str) -> Callable[[Algorithm, Problem, int], _Offer]:
    known = {one.lower(): offer for one, offer in _OFFERS.items()}
    if name.lower() not in known:
        raise TheoremError(f"no theorem {name!r} gives bounds here; expected one of {', '.join(_OFFERS)}")
    return known[name.lower()]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
