"""From the records of a run to findings: which cause, since which step, in which tensor, and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from generic_adam.methods import Algorithm, catalogue
from generic_adam.parts import Part
from generic_adam.schedules import parse
from generic_adam.setting import Fact, Setting, Source
from generic_adam.theorems.measured import Budget
from generic_adam.watch.causes import CAUSES, Cause, Table, raised
from generic_adam.watch.records import Record


@dataclass(frozen=True)
class Finding(Part):
    """One cause that was found.

    Attributes:
        cause: its name in the fixed vocabulary.
        since: the step that it was first seen at.
        tensor: the tensor that it was seen in most; "" where it is no matter of one tensor.
        evidence: the measured numbers by name.
        change: what to do about it.
        settings: the options to set, as texts: an option's own name stands for its present value, t for the step.
        algorithm: the changed algorithm, where one can be given.
        title: what happened.
        until: the last step that it was seen at.
    """

    cause: str
    since: int
    tensor: str
    evidence: Mapping[str, Any]
    change: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    algorithm: Algorithm | None = None
    title: str = ""
    until: int = 0

    @property
    def page(self) -> str:
        """The page about the cause, in the documents."""
        return f"docs/causes/{self.cause}.md"

    @property
    def text(self) -> str:
        """The finding in one line."""
        where = f" in {self.tensor}" if self.tensor else ""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in self.evidence.items())
        return f"{self.title}{where} (since step {self.since:,}; {numbers}). Change: {self.change} ({self.page})."


@dataclass(frozen=True)
class Diagnosis(Part):
    """The causes from which a run suffers.

    Attributes:
        findings: the causes that were found, the one that explains most first.
        steps: the first and the last step that were looked at; (0, 0) where there was none.
        budget: what the size of the gradient along the run is made of, where probes have measured it.
    """

    findings: tuple[Finding, ...]
    steps: tuple[int, int] = (0, 0)
    budget: Budget | None = None

    @property
    def healthy(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    @property
    def text(self) -> str:
        """The findings, a line each."""
        first, last = self.steps
        if not last:
            return "NOTHING SEEN: no step was made while watching."
        lines = [f"{one.cause}: {one.text}" for one in self.findings]
        if self.healthy:
            lines = [f"HEALTHY: nothing was found in steps {first:,} to {last:,}."]
        return "\n".join([*lines, *([self.budget.text] if self.budget else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the findings in the types that JSON has."""
        findings = [
            {name: value for name, value in vars(one).items() if name != "algorithm"}
            | {"algorithm": one.algorithm and one.algorithm.to_dict()}
            for one in self.findings
        ]
        budget = self.budget and self.budget.to_dict()
        return {"healthy": self.healthy, "steps": list(self.steps), "findings": findings, "budget": budget}


def diagnose(records: Sequence[Record], options: Mapping[str, float] | None = None) -> Diagnosis:
    """Return what the records of a run show.

    Args:
        records: those of the run.
        options: those of torch's Adam or AdamW (lr, beta1, beta2, eps, weight_decay), for the changed algorithms.
    """
    if not records:
        return Diagnosis(())
    table = Table(records)
    found = [one for cause in CAUSES.values() if (one := _finding(cause, table)) is not None]
    found = _with_raise(found, table)
    found = [replace(one, algorithm=_changed(one.settings, options)) for one in found]
    last = [one for one in found if one.cause == "not_the_optimizer"]
    # What is left explains only what nothing else does.
    others = [one for one in found if one not in last]
    doubted = [one for one in others if last and _is_doubtful(CAUSES[one.cause], table)]
    sure = [one for one in others if one not in doubted]
    return Diagnosis(tuple([*sure, *doubted] if sure else [*last, *doubted]), (records[0].first, records[-1].step))


def _with_raise(found: Sequence[Finding], table: Table) -> list[Finding]:
    """Put a learning rate that was raised at once before what it brought about, and say from what to what."""
    places = np.flatnonzero(raised(table))
    if not len(places):
        return [*found]
    place = places[0]
    step, before, after = table.records[place].first, float(np.max(table.lr[:place])), float(table.lr[place])

    def told(one: Finding) -> Finding:
        if one.cause != "lr_too_large" or one.since < step:
            return one
        return replace(
            one,
            since=step,
            tensor="",
            evidence={"lr": after, "lr_before": before},
            title="The learning rate was raised at once, and the loss rose with it",
            change=f"keep lr at {before:.3g}, or raise it over many steps",
            settings={"lr": f"lr * {before / after:.3g}"},
        )

    return sorted(map(told, found), key=lambda one: (one.since >= step, one.cause != "lr_too_large"))


def _is_doubtful(cause: Cause, table: Table) -> bool:
    """Return True if a cause shows only where something else than the optimizer is likelier."""
    return not (cause.holds(table) & ~cause.doubtful(table)).any()


def _finding(cause: Cause, table: Table) -> Finding | None:
    where = np.flatnonzero(cause.holds(table))
    if not len(where):
        return None
    first, last = table.records[where[0]], table.records[where[-1]]
    since, tensor, names = cause.at(first)
    evidence = {name: value for name in names if not np.isnan(value := getattr(first, name))}
    return Finding(
        cause.name,
        since,
        tensor,
        evidence,
        cause.change,
        cause.settings(first, float(np.nanmax(table.lr[: where[0] + 1], initial=0.0))),
        title=cause.title,
        until=last.step,
    )


def _changed(settings: Mapping[str, str], options: Mapping[str, float] | None) -> Algorithm | None:
    """Return AdamW with the options that are set; None where it is not known, or no option of it is set."""
    if not settings or not options or set(settings) - set(options):
        return None
    texts = {name: settings.get(name, name).replace(name, repr(value)) for name, value in options.items()}
    eps, decay = (parse(texts[name])(1) for name in ("eps", "weight_decay"))
    return catalogue.adamw(lr=texts["lr"], beta=options["beta1"], theta=texts["beta2"], eps=eps, weight_decay=decay)


def setting(records: Sequence[Record]) -> Setting:
    """Return what the records of a run measured, as facts with the steps that they are from.

    The largest gradient and weight are those seen; the size of the gradient is that of the records where it is
    largest, with its standard error. The loss is taken to stay above 0 where none below was seen.
    """
    if not records:
        return Setting()
    steps = (records[0].first, records[-1].step)
    table, found = Table(records), {}
    for name, largest in {"weights_bound": table.weights, "gradient_norm": table.norm_high}.items():
        if not np.isnan(largest).any() and np.isfinite(largest).all():
            found[name] = Fact(float(largest.max()), Source.MEASURED, steps)
    if np.isfinite(table.gradient).all() and table.gradient.max() > 0:
        most = records[int(np.argmax(table.gradient))]
        found["gradient_bound"] = Fact(
            most.gradient, Source.MEASURED, (most.first, most.step), error=most.gradient_error
        )
    first = records[0]
    if first.first == 1 and table.loss_low.min() >= 0:
        found["gap"] = Fact(first.loss, Source.MEASURED, (1, first.step), error=first.loss_error)
    return Setting(**found, dimension=first.dimension or None)
