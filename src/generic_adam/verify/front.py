"""verify: one question in three forms, and its answer in parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generic_adam.parts import Part


@dataclass(frozen=True)
class Difference(Part):
    """One way in which what runs is not what is claimed.

    Attributes:
        category: bias correction, step counter, epsilon, weight decay, betas, second moment, momentum, learning rate,
            schedule, state precision, lost updates, resume, gradient scale, clipping, missing gradients, not updated
            or sign.
        since: the first step that differs, from 1.
        where: the parameters that differ.
        size: how far that step is off, as a share of the claimed step.
        explained: whether the change named explains every step of these parameters.
        said: the change in words.
    """

    category: str
    since: int
    where: tuple[str, ...]
    size: float
    explained: bool
    said: str

    @property
    def text(self) -> str:
        """The difference in one line."""
        named = ", ".join(self.where[:3]) + (f" and {len(self.where) - 3} more" if len(self.where) > 3 else "")
        size = f", off by {self.size:.2g} of the claimed step" if 0 < self.size < float("inf") else ""
        beside = "" if self.explained else " (unexplained)"
        return f"{self.category}{beside}: {self.said}; since step {self.since}{size}, in {named}"


@dataclass(frozen=True)
class Verification(Part):
    """The result of comparing an optimizer with a claim.

    Attributes:
        agrees: True, False, or None where it cannot be told.
        subject: the class that was driven.
        claimed: what it was compared with.
        differences: what differs.
        looked_at: what was compared, one phrase each.
        not_looked_at: what was not, one phrase each.
        identified: without a claim, the known algorithms that it agrees with, or the nearest and what is other.
    """

    agrees: bool | None
    subject: str
    claimed: str
    differences: tuple[Difference, ...] = ()
    looked_at: tuple[str, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    identified: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer, what differs, what was looked at and what was not."""
        known = "those" if self.identified else "not known to be those"
        first = {
            True: f"AGREES: the steps of {self.subject} are those of {self.claimed}.",
            False: f"DIFFERS: the steps of {self.subject} are not those of {self.claimed}.",
            None: f"CANNOT TELL: the steps of {self.subject} are {known} of {self.claimed}.",
        }[self.agrees]
        lines = [first, *(f"  {one.text}" for one in self.differences)]
        for title, phrases in (("Looked at", self.looked_at), ("Not looked at", self.not_looked_at)):
            if phrases:
                lines.append(f"  {title:<15} {'; '.join(phrases)}")
        return "\n".join(lines)


def verify(
    subject: Any, scheduler: Any = None, claim: Any = None, *, checkpoint: str | Path | None = None
) -> Verification:
    """Compare what an optimizer does, step by step, with what it is believed to be.

    A copy is driven; the objects that are handed over are not changed.

    Args:
        subject: a torch optimizer, or a function without arguments that makes one, or that makes an object with
            `named` ([(name, parameter)]), `optimizer`, `scheduler`, `every` (optimizer steps for each scheduler step),
            and the author's own `step` (of a list of micro-losses), `resume` (saves, loads and returns a new object)
            or `apply` (of {name: gradient}, for Optax).
        scheduler: the learning-rate scheduler, with an optimizer.
        claim: an Algorithm, a name, or a mapping of the keys of `generic_adam.verify.claim.Claim`; None compares with
            what the class and its own parameter groups say.
        checkpoint: a file of torch.save with the optimizer's state: what loading it would change is told too.

    Raises:
        GenericAdamError: the subject cannot be driven or the claim cannot be read.
    """
    from generic_adam.verify import compare

    return compare.compared(subject, scheduler, claim, None if checkpoint is None else Path(checkpoint))


__all__ = ["Difference", "Verification", "verify"]
