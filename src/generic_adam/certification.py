"""The certificate of what a training script has at hand: one for each set of parameter groups that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

from generic_adam.adapters.read import read
from generic_adam.methods import Algorithm, Method
from generic_adam.theorems.certificate import Certificate
from generic_adam.theorems.certificate import certify as certify_method
from generic_adam.theorems.problem import Problem
from generic_adam.theorems.verdicts import Verdict

# From the verdict that decides for all to the one that needs every part to agree.
_WORST_FIRST = (Verdict.NOT_CERTIFIED, Verdict.UNDECIDED, Verdict.CERTIFIED)


@dataclass(frozen=True)
class ReadCertificate:
    """A certificate with the reading it is about.

    Attributes:
        reading: the algorithm as it was read.
        certificate: what is known of the method alone.
    """

    reading: Algorithm
    certificate: Certificate

    @property
    def verdict(self) -> Verdict:
        """The certificate's; at best undecided where the optimizer does what the theorem does not cover."""
        if self.reading.departures and self.certificate.verdict is Verdict.CERTIFIED:
            return Verdict.UNDECIDED
        return self.certificate.verdict

    def explain(self) -> str:
        """Where the method was read, the certificate, and what the theorem does not cover."""
        groups = ", ".join(map(str, self.reading.groups))
        plural = "s" if len(self.reading.groups) > 1 else ""
        heading = f"{self.reading.source or self.reading.label}, parameter group{plural} {groups}"
        lines = [heading, self.certificate.explain()]
        lines += [f"  not covered: {sentence}." for sentence in self.reading.departures]
        lines += [f"  note: {sentence}." for sentence in self.reading.notes]
        if self.verdict is not self.certificate.verdict:
            lines.append(
                f"verdict on the optimizer: {self.verdict}, as it does what the theorem does not cover"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The certificate's dictionary, with the verdict on the optimizer and what belongs to the reading."""
        return self.certificate.to_dict() | {
            "verdict": str(self.verdict),
            "source": self.reading.source or self.reading.label,
            "groups": list(self.reading.groups),
            "not_covered": list(self.reading.departures),
            "notes": list(self.reading.notes),
        }


@dataclass(frozen=True)
class OptimizerCertificate:
    """The certificates of an optimizer, one for each set of parameter groups that differ.

    Attributes:
        parts: in the order of their first parameter group.
    """

    parts: tuple[ReadCertificate, ...]

    @property
    def verdict(self) -> Verdict:
        """Certified where every part is; not certified where one is not; else undecided."""
        return self.worst.verdict

    @property
    def worst(self) -> ReadCertificate:
        """The first part with the verdict of the whole."""
        return min(self.parts, key=lambda part: _WORST_FIRST.index(part.verdict))

    def __iter__(self) -> Iterator[ReadCertificate]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> ReadCertificate:
        return self.parts[index]

    def explain(self) -> str:
        """Every part in words."""
        return "\n\n".join(part.explain() for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of the worst part, to be read like any certificate's, and all of them in "parts"."""
        return self.worst.to_dict() | {"parts": [part.to_dict() for part in self.parts]}


def certify_optimizer(
    subject: Any,
    scheduler: Any = None,
    horizon: int | None = None,
    problem: Problem | None = None,
    *,
    steps_per_scheduler_step: int | None = None,
) -> OptimizerCertificate:
    """Decide the sufficient condition for what an optimizer and its scheduler do.

    Args:
        subject: a torch optimizer, or anything else that `adapters.read` reads.
        scheduler: the learning-rate scheduler of a torch optimizer.
        horizon: a number of steps: adds the finite-horizon reading. None takes the one that the source names,
            as OneCycleLR and Trainer's arguments do.
        problem: with a horizon, adds the bound of Theorem 1.
        steps_per_scheduler_step: the optimizer steps for each step of the scheduler; None means 1.

    Returns:
        The certificates.

    Raises:
        OptimizerError: the subject cannot be read.
    """
    algorithm = read(subject, scheduler, steps_per_scheduler_step=steps_per_scheduler_step, steps=horizon)
    return OptimizerCertificate(
        tuple(
            ReadCertificate(
                reading,
                certify_method(reading.method, reading.horizon if horizon is None else horizon, problem),
            )
            for reading in algorithm.parts
        )
    )


@overload
def certify(subject: Method, horizon: int | None = None, problem: Problem | None = None) -> Certificate: ...
@overload
def certify(
    subject: Any,
    scheduler: Any = None,
    horizon: int | None = None,
    problem: Problem | None = None,
    *,
    steps_per_scheduler_step: int | None = None,
) -> OptimizerCertificate: ...
def certify(subject: Any, *arguments: Any, **keywords: Any) -> Certificate | OptimizerCertificate:
    """Decide the sufficient condition for a method, or for what a live optimizer and its scheduler do.

    Args:
        subject: a Method; or a torch optimizer (with its scheduler next), a pair (optimizer, scheduler), a
            Lightning configuration, or transformers.TrainingArguments.
        *arguments: for a Method those of `generic_adam.theorems.certificate.certify`: horizon, problem;
            otherwise those of `certify_optimizer`: scheduler, horizon, problem.
        **keywords: the same by name, all checked by those functions.

    Returns:
        A Certificate for a Method; an OptimizerCertificate, one part for each differing parameter group,
        otherwise.

    Examples:
        >>> import generic_adam as ga
        >>> print(ga.certify(ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")).verdict)
        certified
    """
    decide = certify_method if isinstance(subject, Method) else certify_optimizer
    return decide(subject, *arguments, **keywords)
