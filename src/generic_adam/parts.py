"""The base of all answers: parts with names, which become words and JSON in one place, `generic_adam.answers`."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Part:
    """A frozen dataclass that is an answer or a part of one.

    The words are made when they are asked for: `answers` knows the parts, and the parts lie below it.
    """

    @property
    def text(self) -> str:
        """The answer in words."""
        words = _answers("words")
        return _plainly(self) if words is None else words.text(self)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return the parts in the types that JSON has."""
        json = _answers("json")
        return _fields(self) if json is None else json.plain(self)


def _answers(name: str) -> Any:
    home = "generic_adam.answers"
    there = find_spec(home) is not None and find_spec(f"{home}.{name}") is not None
    return import_module(f"{home}.{name}") if there else None


def _fields(part: Any) -> dict[str, Any]:
    return {one.name: getattr(part, one.name) for one in fields(part)}


def _plainly(part: Any) -> str:
    return "; ".join(f"{name}: {value}" for name, value in _fields(part).items())
