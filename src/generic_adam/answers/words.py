"""From parts to words: the one place where sentences are written.

A part has its words in the module of its package, which registers one function for each type:

    @words_of.register
    def _(part: Verification) -> Iterator[Line]: ...

A function gives lines, for an answer, or a phrase, for a part that stands inside of one. An answer has at most ten
lines, each short enough for one or two rows of 80 columns; what matters only sometimes is left to the argument.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import singledispatch
from importlib import import_module

from generic_adam.parts import Part

_ADVICE = dict.fromkeys(("theorems.advice", "theorems.repairs", "theorems.worth"), "advice")
_MODULES = {"theorems": "certificates", **_ADVICE}
"""The module of this package that has the words of a module's or a package's parts."""
_LABEL = 12
_ROOMY = 70  # columns from which on further rows hang below the text


@dataclass(frozen=True)
class Line:
    """One line of an answer.

    Attributes:
        text: the words.
        label: the subject of the words; it stands before them, in a column.
        verdict: the beginning of `text` that has a colour, such as "GUARANTEED"; "" for none.
    """

    text: str
    label: str = ""
    verdict: str = ""

    def __str__(self) -> str:
        return f"  {self.label:<{_LABEL}} {self.text}" if self.label else self.text

    def rows(self, width: int | None) -> list[str]:
        """Return the rows at a width; further ones hang below the text, where that leaves room for words."""
        if width is None or len(str(self)) <= width:
            return [str(self)]
        hanging = " " * (_LABEL + 3 if self.label and width >= _ROOMY else 4)
        return textwrap.wrap(str(self), max(20, width), subsequent_indent=hanging, break_on_hyphens=False) or [""]


@singledispatch
def words_of(part: Part) -> str | Iterable[Line]:
    """Return the words of a part that has none of its own: its fields by name."""
    return "; ".join(f"{one.name}: {getattr(part, one.name)}" for one in fields(part))  # type: ignore[arg-type]


@singledispatch
def argument_of(part: Part) -> list[str]:
    """Return the argument behind an answer, line by line; nothing where a part has no more to say."""
    del part
    return []


def _registered(part: Part) -> Part:
    """Return the part, after the module with the words of its package has been imported."""
    _, _, inside = type(part).__module__.partition("generic_adam.")
    module = _MODULES.get(inside) or _MODULES.get(inside.partition(".")[0])
    if module is not None:
        import_module(f"generic_adam.answers.{module}")
    return part


def lines(part: Part) -> list[Line]:
    """Return an answer line by line."""
    found = words_of(_registered(part))
    return [Line(found)] if isinstance(found, str) else list(found)


def argument(part: Part) -> list[str]:
    """Return the lines of the whole argument behind an answer."""
    return argument_of(_registered(part))


def text(part: Part) -> str:
    """Return an answer, or the phrase that stands for a part of one."""
    return "\n".join(map(str, lines(part)))


def explained(part: Part) -> str:
    """Return an answer with the whole argument behind it."""
    return "\n".join([text(part), *argument(part)])
