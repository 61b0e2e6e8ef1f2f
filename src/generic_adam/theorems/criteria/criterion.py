"""What a further theorem says about a method, in the same words as the certificate."""

from __future__ import annotations

from dataclasses import dataclass

from generic_adam.theorems.verdicts import Condition, Verdict, verdict_of


@dataclass(frozen=True)
class Criterion:
    """The hypotheses of one theorem, checked against a method.

    Args:
      name: what the theorem is called.
      citation: where it was published.
      about: which algorithm and which problems it speaks of.
      conditions: its hypotheses on the sequences, each with its answer.
      conclusion: what follows, or why nothing does.
      warning: whether the theorem is a negative one: its hypotheses then speak against the method.
    """

    name: str
    citation: str
    about: str
    conditions: tuple[Condition, ...]
    conclusion: str
    warning: bool = False

    @property
    def verdict(self) -> Verdict:
        """Certified by this theorem, not certified by it, or undecided.

        A warning never certifies: where its hypotheses hold the method is not certified, elsewhere it says
        nothing.
        """
        verdict = verdict_of(self.conditions)
        if not self.warning:
            return verdict
        return Verdict.NOT_CERTIFIED if verdict is Verdict.CERTIFIED else Verdict.UNDECIDED

    def to_dict(self) -> dict[str, object]:
        """Return plain types."""
        return {
            "name": self.name,
            "citation": self.citation,
            "about": self.about,
            "verdict": str(self.verdict),
            "warning": self.warning,
            "conclusion": self.conclusion,
            "conditions": [
                {
                    "number": one.number,
                    "status": str(one.status),
                    "reason": one.reason,
                    "witness": one.witness,
                }
                for one in self.conditions
            ],
        }
