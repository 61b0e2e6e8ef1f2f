"""The certificate: what every theorem says about an algorithm, for ever and after its number of steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from generic_adam.errors import ScheduleError, TheoremError, told_as
from generic_adam.methods import Algorithm, Method, as_algorithm
from generic_adam.schedules import Schedule, as_schedule
from generic_adam.schedules.enclosure import collected
from generic_adam.schedules.sums import whole_steps
from generic_adam.schedules.work import Budget
from generic_adam.setting import Setting
from generic_adam.theorems import THEOREMS, theorem_named
from generic_adam.theorems.clipping import without_idle_clipping
from generic_adam.theorems.decide import Rate, Status
from generic_adam.theorems.horizon import HorizonAnswer, read_horizon
from generic_adam.theorems.theorem import (
    DELAYED,
    MAXIMUM,
    NOT_COVERED,
    NOTHING,
    UNDIVIDED,
    About,
    Finding,
    Theorem,
    Verdict,
    plain,
    plain_fields,
)

# From the verdict that decides for all parts to the one that needs every part to agree.
_WORST_FIRST = (Verdict.NOT_CERTIFIED, Verdict.UNDECIDED, Verdict.CERTIFIED)
_FOR_EVER = (About.GRADIENT, About.REGRET)
_JOINTLY = "parameter groups with sequences of different shape: each is covered alone, not all together"


@dataclass(frozen=True)
class Certificate:
    """What is known of an algorithm.

    Attributes:
        algorithm: what was asked about; where its parameter groups differ, the part with the worst verdict.
        findings: what each theorem says about it for ever.
        horizon: what is guaranteed after its number of steps, where one is known.
        parts: one certificate for each set of parameter groups that differ; empty where there is one.
        setting: what is known of the problem and the run.
    """

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
        speaking = [one for one in self.findings if one.covers and one.about in _FOR_EVER]
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
        if self._apart:
            return Verdict.UNDECIDED
        if self.parts:
            return min((part.verdict for part in self.parts), key=_WORST_FIRST.index)
        return Verdict.UNDECIDED if self.deciding is None else self.deciding.verdict

    @property
    def _apart(self) -> bool:
        """Whether every part is certified alone, and nothing covers them together."""
        alone = bool(self.parts) and all(part.verdict is Verdict.CERTIFIED for part in self.parts)
        return alone and not _proportional(self.parts)

    @property
    def theorem(self) -> str | None:
        """The name of the theorem that decides; None where none covers the algorithm."""
        return None if self.deciding is None else self.deciding.theorem

    @property
    def rate(self) -> Rate | None:
        """The rate for ever; None if not certified."""
        return self.deciding.rate if self.deciding is not None and self.verdict is Verdict.CERTIFIED else None

    @property
    def needs(self) -> tuple[str, ...]:
        """What the deciding theorem takes for granted beyond the common assumptions."""
        deciding = (part.deciding for part in self.parts or (self,))
        return tuple(dict.fromkeys(need for one in deciding if one is not None for need in one.needs))

    @property
    def asked(self) -> str | None:
        """The name of the theorem that was asked alone; None where all were."""
        return self.findings[0].theorem if len(self.findings) == 1 else None

    @property
    def reason(self) -> str:
        """Why the verdict is what it is, in one sentence."""
        if self._apart:
            return _JOINTLY
        # A theorem that is asked alone speaks for itself, also where it says nothing for ever.
        found = self.findings[0] if self.asked else self.deciding
        if found is None:
            return f"no theorem covers it: {'; '.join(_in_the_way(self.findings))}"
        failing = found.first_failing
        return found.conclusion if failing is None else failing.reason

    @property
    def terms(self) -> str:
        """What belongs to the word "certified", on its line: what it takes for granted, and the rate."""
        if self.verdict is not Verdict.CERTIFIED:
            return ""
        provided = f", provided {', and '.join(self.needs)}," if self.needs else ""
        return provided.rstrip(",") if self.rate is None else f"{provided} at rate {self.rate}"

    @property
    def why(self) -> str:
        """What follows the verdict in a sentence: its terms, the reason, and the theorem that it rests on."""
        found, reason = self.deciding, self.reason.rstrip(".")
        if found is None:
            return f", {reason}"
        reason = reason[:1].lower() + reason[1:] if reason[1:2].islower() else reason
        meant = ", which is not to say that it fails" if self.verdict is Verdict.NOT_CERTIFIED else self.terms
        return f"{meant}: {reason} ({found.title})"

    @property
    def plainly(self) -> Certificate:
        """The certificate without what symmetric noise adds to it; itself, where that adds nothing."""
        if self.setting.noise is None or self.asked is not None:
            return self
        asked = [tuple(one for one in part.findings if one.theorem != "Y") for part in (self, *self.parts)]
        parts = (replace(part, findings=found) for part, found in zip(self.parts, asked[1:], strict=True))
        found = replace(self, findings=asked[0], parts=tuple(parts))
        return self if found.verdict is self.verdict and found.rate == self.rate else found

    @property
    def beside(self) -> str:
        """The answer for ever that symmetric noise gives, beside the one without it; "" where it is the same."""
        return "" if self.plainly is self else f"with that noise: {self.verdict}{self.why}"

    def __str__(self) -> str:
        """The answer in a few lines: for the run, where its length is known, for ever, and how it was read."""
        run = [] if self.horizon is None else self.horizon.lines()
        known = self.plainly
        answers = [f"for ever: {known.verdict}{known.why}", *filter(None, [self.beside])]
        lines = [*run, *answers, *(f"note: {one}" for one in self.algorithm.notes)]
        return "\n  ".join([self.algorithm.label or "Generic Adam", *lines])

    def __getitem__(self, name: str) -> Finding:
        """What one theorem says, by its name."""
        found = {one.theorem.lower(): one for one in self.findings}
        if name.lower() not in found:
            asked = ", ".join(one.theorem for one in self.findings)
            raise TheoremError(f"no theorem {name!r} was asked; asked were {asked}")
        return found[name.lower()]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def explain(self) -> str:
        """The whole argument: every theorem, its hypotheses, and why the others do not cover it."""
        blocks = [str(self)] if self.parts else []
        for part in self.parts or (self,):
            sequences = (f"  {name}_t = {getattr(part.method, name)}" for name in ("alpha", "beta", "theta"))
            blocks.append("\n".join([str(part), *sequences, *part.argument()]))
        return "\n".join(["\n\n".join(blocks), *self.not_covered()])

    def argument(self) -> list[str]:
        """What lies behind the answer for one set of parameter groups, a line each: the step, every hypothesis."""
        departures = [f"  {one}" for one in self.algorithm.departures]
        lines = ["the step:", *departures] if departures else []
        for finding in filter(lambda one: one.covers, self.findings):
            rate = "" if finding.rate is None else f", rate {finding.rate}"
            lines.append(f"{finding.title}: {_word(finding)}{rate}")
            lines += [f"  {one.number} {one.status}: {one.reason}" for one in finding.conditions]
            lines += [f"  takes for granted: {need}" for need in finding.needs]
            lines += [f"  {remark}" for remark in finding.remarks]
        return lines

    def not_covered(self) -> list[str]:
        """What keeps theorems from covering the algorithm or a part of it, a line each, and what none covers."""
        in_the_way: dict[str, dict[str, None]] = {}
        for finding in (finding for part in self.parts or (self,) for finding in part.findings):
            for phrase in finding.outside:
                in_the_way.setdefault(phrase, {})[finding.title] = None
        lines = [f"  {', '.join(titles)}: {phrase}" for phrase, titles in in_the_way.items()]
        return [*["not covered, and why:"][: len(lines)], *lines, NOT_COVERED]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only; `Certificate.from_dict` reads it back."""
        said = ("verdict", "theorem", "rate", "reason", "needs", "algorithm", "findings", "horizon")
        return {
            **plain_fields(self, *said),
            **({"parts": plain(self.parts)} if self.parts else {}),
            "asked": self.asked,
            "setting": self.setting.to_dict(),
            "method": plain_fields(self.method, "alpha", "beta", "theta"),
            "conditions": [] if self.deciding is None else plain(self.deciding.conditions),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """The certificate of the algorithm that `to_dict` wrote, decided anew."""
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
    with Budget(budget):
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
        if len(found) == 1:
            return found[0]
        # Of parts that are all certified the slowest speaks for all, and of two alike the one that asks for more.
        worst = max(
            found, key=lambda one: (-_WORST_FIRST.index(one.verdict), one.rate is None, one.rate, len(one.needs))
        )
        return replace(worst, horizon=_joint_horizon(found), parts=tuple(found))


def reading(x: Algorithm, steps: int, setting: Setting, theorem: Theorem | None = None) -> HorizonAnswer:
    """What is guaranteed after a number of steps; where clipping never acts, provided that it does not."""
    effective, idle = without_idle_clipping(x, setting)
    found = read_horizon(effective, steps, setting, theorem)
    return found.also_provided(idle[0]) if idle else found


def _word(finding: Finding) -> str:
    """A verdict; of a theorem that certifies nothing for ever, what it says where its hypotheses hold."""
    if finding.about in _FOR_EVER:
        return str(finding.verdict)
    failing = finding.first_failing
    return (
        str(finding.about) if failing is None else "does not apply" if failing.status is Status.FAILS else "undecided"
    )


def _in_the_way(findings: Sequence[Finding]) -> list[str]:
    """The fewest phrases that keep a theorem about gradients, and about such divisors, from covering the algorithm."""
    about = [one.outside for one in findings if one.about is About.GRADIENT]
    if not about:
        return ["no theorem about gradients was asked"]
    return list(min(about, key=lambda said: (len(said), not {MAXIMUM, UNDIVIDED, DELAYED}.isdisjoint(said))))


def _joint_horizon(parts: Sequence[Certificate]) -> HorizonAnswer | None:
    r"""What is guaranteed for all parts together, from the answers for each alone.

    Proportional rates, :math:`\alpha^{(k)}_t = \kappa_k\alpha_t` (W.4): the bound is on
    :math:`\sum_k \kappa_k (\nabla_k f)^2/\hat D_k`, so that the noise of a group counts :math:`(\sum_k
    G_k/\kappa_k)\,\kappa_k G_k` and its decay :math:`(\sum_k G_k/\kappa_k)\,G_k\nu_k^2/\kappa_k` in
    :math:`G_1^2`, whatever share of :math:`G_1` each group has.
    """
    answers = [part.horizon for part in parts if part.horizon is not None]
    if len(answers) < len(parts):
        return None
    worst = max(answers, key=lambda one: (bool(one.outside), math.inf if one.noise is None else one.noise))
    if not _proportional(parts):
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
    """The number that one sequence of the shape of another is of it."""
    return collected(one / other)(1)


def _largest_product(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest (sum p_k a_k)(sum p_k b_k) over all shares p: it is taken with two of them, or with one."""
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
    """Whether the ratio of two sequences is a positive constant by its form; a frozen group's 0 has no ratio."""
    try:
        return collected(one / other).is_constant and collected(other / one).is_constant
    except ScheduleError:
        return False
