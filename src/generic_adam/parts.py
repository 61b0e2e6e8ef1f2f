"""The base of all answers: parts with names, which become words and JSON in one place, `generic_adam.answers`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


class Part:
    """A frozen dataclass that is an answer or a part of one.

    The words are made when they are asked for: `answers` knows the parts, and the parts lie below it. This import and
    that of `torch.Watch` are the two against the arrows.

    Attributes:
        also: the properties that belong to its plain types, by name.
        rest: the fields and properties that its short JSON leaves out.
    """

    also: ClassVar[tuple[str, ...]] = ()
    rest: ClassVar[tuple[str, ...]] = ()

    @property
    def text(self) -> str:
        """The answer in words."""
        return import_module("generic_adam.answers.words").text(self)

    def explain(self) -> str:
        """Return the answer with the whole argument behind it."""
        return import_module("generic_adam.answers.words").explained(self)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return all parts in the types that JSON has."""
        return import_module("generic_adam.answers.json").plain(self, whole=True)
