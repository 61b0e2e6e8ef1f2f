"""Lines of an answer, and which of them are shown where there is room for ten."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

LONGEST = 10
"""The lines that an answer takes at most, unless the whole argument is asked for."""
_LABEL = 15


@dataclass(frozen=True)
class Line:
    """One line of an answer.

    Attributes:
        text: the words.
        label: what they are about; it stands before them, in a column.
        weight: how much they matter: where there is no room, the lightest line is shortened or left out first, the
            last of equal ones; ALWAYS stays.
        short: the words that stand for `text` where there is little room; None for none.
        verdict: the word of `text` that has a colour, such as "guaranteed"; "" for none.
    """

    text: str
    label: str = ""
    weight: int = 5
    short: str | None = None
    verdict: str = ""

    def __str__(self) -> str:
        return f"  {self.label:<{_LABEL}} {self.text}" if self.label else self.text


ALWAYS = 10


def height(line: Line, width: int | None) -> int:
    """Return how many rows a line takes; its further rows hang below its text."""
    if width is None:
        return 1
    hanging = " " * (_LABEL + 3 if line.label else 2)
    return len(textwrap.wrap(str(line), max(20, width), subsequent_indent=hanging)) or 1


def fitted(lines: Iterable[Line], width: int | None = None, most: int = LONGEST) -> list[Line]:
    """Return the lines that fit a number of rows: the lightest is shortened, or left out, until all do.

    Examples:
        >>> told = [Line("GUARANTEED", weight=ALWAYS), Line("0.41 of 1", "Noise part"), Line("none", "Change", 3)]
        >>> [str(one) for one in fitted(told, most=2)]
        ['GUARANTEED', '  Noise part      0.41 of 1']
    """
    left = list(lines)
    while sum(height(one, width) for one in left) > most:
        least = _lightest(left)
        if least is None:
            break
        line = left[least]
        if line.short is None:
            del left[least]
        else:
            left[least] = replace(line, text=line.short, short=None)
    return left


def _lightest(lines: Sequence[Line]) -> int | None:
    lighter = [(one.weight, -index) for index, one in enumerate(lines) if one.weight < ALWAYS]
    return -min(lighter)[1] if lighter else None
