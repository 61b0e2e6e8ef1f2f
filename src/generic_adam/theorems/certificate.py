"""The certificate: what every theorem says about an algorithm, in the long run and after its number of steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from generic_adam.errors import ScheduleError, TheoremError, told_as
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.parts import Part
from generic_adam.schedules import Schedule, as_schedule, has_callable
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Budget
from generic_adam.setting import Setting
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.clipping import without_idle_clipping
from generic_adam.theorems.decide import Rate
from generic_adam.theorems.horizon import HorizonAnswer, read_horizon
from generic_adam.theorems.theorem import (
    NOTHING,
    About,
    Answer,
    Condition,
    Finding,
    Reason,
    Theorem,
    Verdict,
)

# From the verdict that decides for all parts to the one that needs every part to agree.
_WORST_FIRST = (Verdict.NOT_CERTIFIED, Verdict.UNDECIDED, Verdict.CERTIFIED)
_LONG_RUN = {
    Verdict.CERTIFIED: Answer.GUARANTEED,
    Verdict.NOT_CERTIFIED: Answer.NONE,
    Verdict.UNDECIDED: Answer.UNKNOWN,
}
FOR_EVER = (About.GRADIENT, About.REGRET)
"""The subjects of theorems that say something about the long run."""
_JOINTLY = Reason("groups")
# The last answers by their questions: who asks again (a loop, `advise` after `check`) need not wait again.
_ANSWERED: dict[tuple[Any, ...], Certificate] = {}
_KEPT_ANSWERS = 8
# The fact about gradients that tells whether clipping of a kind acts.
_ABOUT_CLIPPING = {"norm": "gradient_norm", "value": "gradient_sup"}
# Divisors that theorems of their own are about.
_OTHER_DIVISORS = {"running_maximum", "preconditioned", "delayed"}


@dataclass(frozen=True)
class Certificate(Part):
    """The answers of all theorems about an algorithm.

    Attributes:
        algorithm: what was asked about; where its parameter groups differ, the part with the worst verdict.
        findings: what each theorem says about it in the long run.
        horizon: what is guaranteed after its number of steps, where one is known.
        parts: one certificate for each set of parameter groups that differ; empty where there is one.
        setting: what is known of the problem and the run.
    """

    also = ("answer", "long_run", "verdict", "theorem", "rate", "needs", "outside", "asked")

    algorithm: Algorithm
    findings: tuple[Finding, ...]
    horizon: HorizonAnswer | None = None
    parts: tuple[Certificate, ...] = ()
    setting: Setting = field(default_factory=lambda: Setting())  # noqa: PLW0108 - the class has no type as a factory

    @property
    def method(self) -> Method:
        """The three sequences."""
        return self.algorithm.method

    @property
    def deciding(self) -> Finding | None:
        """The finding that the verdict rests on: the fastest that certifies, else one that covers."""
        speaking = [one for one in self.findings if one.covers and one.about in FOR_EVER]
        for verdict in (Verdict.CERTIFIED, Verdict.UNDECIDED, Verdict.NOT_CERTIFIED):
            found = [one for one in speaking if one.verdict is verdict]
            if found and verdict is Verdict.CERTIFIED:
                return min(found, key=lambda one: (one.rate is None, one.rate))
            if found:  # the one that asks least: any before the paper's, whose conditions are the strictest
                return min(found, key=lambda one: one.theorem == "zou2019")
        return None

    @property
    def verdict(self) -> Verdict:
        """Certified by some theorem; not certified where every one that covers it fails; else undecided."""
        if self.apart:
            return Verdict.UNDECIDED
        if self.parts:
            return min((part.verdict for part in self.parts), key=_WORST_FIRST.index)
        return Verdict.UNDECIDED if self.deciding is None else self.deciding.verdict

    @property
    def long_run(self) -> Answer:
        """The answer as the number of steps goes to infinity."""
        if any(one.kind == "moving_loss" for one in self.outside):
            return Answer.NOT_APPLICABLE
        return _LONG_RUN[self.verdict]

    @property
    def answer(self) -> Answer:
        """The best answer for the number of steps, where it is known, else for the long run."""
        run = self.horizon
        answers = [self.long_run] if run is None else [run.answer, *([run.symmetric.answer] if run.symmetric else [])]
        return min(answers, key=list(Answer).index)

    @property
    def apart(self) -> bool:
        """True if every part is certified alone, and nothing covers them together."""
        alone = bool(self.parts) and all(part.verdict is Verdict.CERTIFIED for part in self.parts)
        return alone and not _proportional(self.parts)

    @property
    def theorem(self) -> str | None:
        """The name of the theorem that decides; None where none covers the algorithm."""
        return None if self.deciding is None else self.deciding.theorem

    @property
    def rate(self) -> Rate | None:
        """The rate in the long run; None without a guarantee."""
        return self.deciding.rate if self.deciding is not None and self.verdict is Verdict.CERTIFIED else None

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts that the deciding theorem takes for granted beyond the common assumptions."""
        deciding = (part.deciding for part in self.parts or (self,))
        return tuple(dict.fromkeys(need for one in deciding if one is not None for need in one.needs))

    @property
    def asked(self) -> str | None:
        """The name of the theorem that was asked alone; None where all were."""
        return self.findings[0].theorem if len(self.findings) == 1 else None

    @property
    def outside(self) -> tuple[Reason, ...]:
        """The reasons that keep every theorem from covering it; empty where one covers it."""
        if self.apart:
            return (_JOINTLY,)
        if self.deciding is not None:
            return ()
        return self.findings[0].outside if self.asked else _in_the_way(self.findings)

    @property
    def failing(self) -> Condition | None:
        """The hypothesis that the deciding theorem lacks: the first that fails, else the first that is open."""
        found = self.findings[0] if self.asked else self.deciding
        return None if found is None or self.apart else found.first_failing

    @property
    def plainly(self) -> Certificate:
        """The certificate without what symmetric noise adds to it; itself, where that adds nothing."""
        if self.setting.noise is None or self.asked is not None:
            return self
        without = replace(self.setting, noise=None).completed()
        lacks = Reason("missing", "noise")
        given = {one.name for one in THEOREMS if lacks in one.outside(self.algorithm, without)}
        asked = [tuple(one for one in part.findings if one.theorem not in given) for part in (self, *self.parts)]
        parts = (replace(part, findings=found) for part, found in zip(self.parts, asked[1:], strict=True))
        found = replace(self, findings=asked[0], parts=tuple(parts))
        return self if found.verdict is self.verdict and found.rate == self.rate else found

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of one theorem, by its name."""
        found = {one.theorem.lower(): one for one in self.findings}
        if name.lower() not in found:
            asked = ", ".join(one.theorem for one in self.findings)
            raise TheoremError(f"no theorem {name!r} was asked; asked were {asked}")
        return found[name.lower()]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Return the certificate of the algorithm that `to_dict` wrote, decided anew."""
        with told_as(TheoremError, "no certificate that `to_dict` wrote:"):
            horizon = data.get("horizon")
            steps = None if horizon is None else int(horizon["steps"])
            first, *others = [Algorithm.from_dict(part["algorithm"]) for part in data.get("parts") or [data]]
            whole = replace(first, others=tuple(others))
            setting = Setting.from_dict(data.get("setting", data.get("assume", {})))
            asked = data.get("asked")
        return certify_algorithm(whole, steps, asked, setting)


def certify_algorithm(
    subject: Method | Algorithm,
    horizon: int | None = None,
    theorem: str | None = None,
    setting: Setting | None = None,
    budget: float | None = None,
) -> Certificate:
    """Ask every theorem (or one) about an algorithm.

    Args:
        subject: an Algorithm; a Method alone means the paper's algorithm.
        horizon: a number of steps T; None takes the algorithm's own, where it has one.
        theorem: the name of the one theorem to ask; None asks all.
        setting: what is known of the problem and the run.
        budget: a factor on the work that each question may take, after which it is undecided; None takes that of an
            enclosing `Budget`, or 1.

    Raises:
        TheoremError: no theorem of that name, or a horizon that is no number of steps.
    """
    whole = as_algorithm(subject)
    alone = None if theorem is None else theorem_named(theorem)
    asked = THEOREMS if alone is None else (alone,)
    given = setting or Setting()
    known = given.completed()
    found: list[Certificate] = []
    runs = [part.horizon if horizon is None else whole_steps(horizon) for part in whole.parts]
    with Budget(budget) as work:
        question = whole, tuple(runs), theorem, given, work.factor
        if question in _ANSWERED:
            return _ANSWERED[question]
        for part, steps in zip(whole.parts, runs, strict=True):
            part.method.checked()
            effective, idle = without_idle_clipping(replace(part, horizon=steps), known)
            findings = tuple(one.examine(effective, known) for one in asked)
            if idle:
                findings = tuple(replace(one, needs=(*one.needs, *idle)) for one in findings)
            found.append(Certificate(part, findings, setting=given))
        for index, (one, steps) in enumerate(zip(found, runs, strict=True)):
            if steps is not None:
                found[index] = replace(one, horizon=reading(one.algorithm, steps, known, alone))
        # Of parts that are all certified the slowest speaks for all, and of two alike the one that asks for more.
        worst = max(
            found, key=lambda one: (-_WORST_FIRST.index(one.verdict), one.rate is None, one.rate, len(one.needs))
        )
        whole_answer = replace(worst, horizon=_joint_horizon(found), parts=tuple(found)) if len(found) > 1 else worst
        # A callable may answer otherwise another time, and what was left open for want of work is told each time.
        if not work.spent and not any(map(_has_callable, whole.parts)):
            while len(_ANSWERED) >= _KEPT_ANSWERS:
                _ANSWERED.pop(next(iter(_ANSWERED)), None)
            _ANSWERED[question] = whole_answer
        return whole_answer


def _has_callable(x: Algorithm) -> bool:
    ahead = () if x.nesterov is None else (x.nesterov.momentum_weight, x.nesterov.gradient_weight)
    return any(map(has_callable, (x.method.alpha, x.method.beta, x.method.theta, x.eps, x.decay, *ahead)))


FINE_TUNING = 20_000
"""Steps up to which a run of Trainer's is taken for fine-tuning."""


def usual(x: Algorithm, setting: Setting) -> Setting:
    """Return the setting with what most runs meet assumed where nothing is known: idle clipping, weights within 1."""
    known, assumed = setting.completed(), dict[str, float]()
    may_act = known.noise == "symmetric" and known.gradient_bound is not None  # clipping is covered then
    for part in x.parts:
        clip, fact = part.clipping, None if part.clipping is None else _ABOUT_CLIPPING.get(part.clipping.kind)
        if clip is not None and fact is not None and not (may_act or known.knows(fact)):
            assumed[fact] = min(clip.threshold, assumed.get(fact, math.inf))
        if clip is not None and clip.kind == "update" and known.noise == "symmetric":
            assumed["update_rms"] = 2 * clip.threshold  # clipping acts, and halves an update at most
        if part.decay != NOTHING or part.scaled:
            assumed["weights_bound"] = 1.0
    return setting.with_assumed(**assumed)


def of_origin(x: Algorithm, setting: Setting, origin: Literal["recipe", "trainer"] | None) -> Setting:
    """Return the setting with the kind of training that the origin of an optimizer tells, unless more is known.

    A recipe is supervised; a run of Trainer's as well, or fine-tuning where it is short.
    """
    if origin is None:
        return setting
    is_short = origin == "trainer" and x.horizon is not None and x.horizon <= FINE_TUNING
    return setting.with_assumed(loss="finetune" if is_short else "supervised")


def reading(x: Algorithm, steps: int, setting: Setting, theorem: Theorem | None = None) -> HorizonAnswer:
    """Return the guarantee after a number of steps; where clipping never acts, provided that it does not."""
    effective, idle = without_idle_clipping(x, setting)
    found = read_horizon(effective, steps, setting, theorem)
    return found.also_needing(*idle)


def _in_the_way(findings: Sequence[Finding]) -> tuple[Reason, ...]:
    """Return the fewest that keep a theorem about gradients, and about such divisors, from covering the algorithm."""
    about = [one.outside for one in findings if one.about is About.GRADIENT]
    return min(
        about,
        key=lambda said: (len(said), any(one.kind in _OTHER_DIVISORS for one in said)),
        default=(),
    )


def _joint_horizon(parts: Sequence[Certificate]) -> HorizonAnswer | None:
    r"""Return the guarantee for all parts together, from the answers for each alone.

    Proportional rates, :math:`\alpha^{(k)}_t = \kappa_k\alpha_t` (W.4): the bound is on
    :math:`\sum_k \kappa_k (\nabla_k f)^2/\hat D_k`, so that the noise of a group counts :math:`(\sum_k
    G_k/\kappa_k)\,\kappa_k G_k` and its decay :math:`(\sum_k G_k/\kappa_k)\,G_k\nu_k^2/\kappa_k` in
    :math:`G_1^2`, whatever share of :math:`G_1` each group has.
    """
    answers = [part.horizon for part in parts if part.horizon is not None]
    if len(answers) < len(parts):
        return None
    worst = max(answers, key=lambda one: (bool(one.outside), math.inf if one.noise is None else one.noise))
    if not _proportional(parts) or worst.theorem in {"RR", "P"}:
        return replace(worst, outside=tuple(dict.fromkeys((*worst.outside, _JOINTLY))))
    rates, decays = ([part.method.alpha for part in parts], [part.algorithm.decay for part in parts])
    # Of the slowest group the gap is the largest, and its drift lacks kappa twice: the others are measured by it.
    slowest = min(range(len(parts)), key=lambda k: _ratio(rates[k], rates[0]))
    kappas = [_ratio(rate, rates[slowest]) for rate in rates]
    first = next((decay for decay in decays if decay != NOTHING), as_schedule(1))
    decayed = [_ratio(decay, first) for decay in decays]
    # nu_t/alpha_t of the group where it is largest, in the slowest group.
    strongest = max(range(len(parts)), key=lambda k: (decayed[k] / kappas[k], k == slowest))
    own, known = parts[slowest].algorithm, answers[slowest]
    decay = own.decay if strongest == slowest else decays[strongest] / kappas[strongest]
    measured = replace(own, decay=decay, l2=max(part.algorithm.l2 for part in parts))
    if measured != own:
        known = reading(measured, known.steps, parts[slowest].setting.completed())
    if worst.noise is None or known.noise is None or known.drift is None:
        return worst
    inverse, largest = [1 / kappa for kappa in kappas], decayed[strongest] / kappas[strongest] or 1.0
    relative = [(decay / largest) ** 2 / kappa for decay, kappa in zip(decayed, kappas, strict=True)]
    spread, decayed_by = _largest_product(inverse, kappas), _largest_product(inverse, relative)

    def joint(one: HorizonAnswer) -> HorizonAnswer:
        noise, drift = one.noise and one.noise * spread, one.drift and one.drift * max(kappas) ** 2
        beside = one.symmetric and joint(one.symmetric)
        return replace(
            one, noise=noise, drift=drift, decay=one.decay and one.decay * decayed_by, floor=None, symmetric=beside
        )

    return joint(known)


def _ratio(one: Schedule, other: Schedule) -> float:
    """Return the number that one sequence of the shape of another is of it."""
    return collected(one / other)(1)


def _largest_product(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest (sum p_k a_k)(sum p_k b_k) over all shares p: it is taken with two of them, or with one."""
    largest = max(a * b for a, b in zip(one, other, strict=True))
    for (a, b), (c, d) in itertools.combinations(zip(one, other, strict=True), 2):
        bend = (a - c) * (b - d)
        if bend < 0 and abs(share := (a * d + b * c - 2 * c * d) / (-2 * bend)) <= 1 and share > 0:
            largest = max(largest, (c + share * (a - c)) * (d + share * (b - d)))
    return largest


def _proportional(parts: Sequence[Certificate]) -> bool:
    """W.4: groups that share all but the scale of their learning rates, and their decay, are covered together."""
    first = parts[0]
    decays = [part.algorithm.decay for part in parts if part.algorithm.decay != NOTHING]
    apart: dict[str, Any] = {"method": first.method, "groups": (), "notes": (), "decay": 0, "l2": 0}
    return all(
        part.method.beta == first.method.beta
        and part.method.theta == first.method.theta
        and _same_shape(part.method.alpha, first.method.alpha)
        and replace(part.algorithm, **apart) == replace(first.algorithm, **apart)
        for part in parts[1:]
    ) and all(_same_shape(decay, decays[0]) for decay in decays[1:])


def _same_shape(one: Schedule, other: Schedule) -> bool:
    """Return whether the ratio of two sequences is a positive constant by its form; a frozen group's 0 has no ratio."""
    try:
        return collected(one / other).is_constant and collected(other / one).is_constant
    except ScheduleError:
        return False
