"""Lines of an answer, and which of them are shown where there is room for ten."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

LONGEST = 10
"""The lines that an answer takes at most, unless the whole argument is asked for."""
_LABEL = 16


@dataclass(frozen=True)
class Line:
    """One line of an answer.

    Attributes:
        text: the words.
        label: what they are about; it stands before them, in a column.
        weight: how much they matter: where there is no room, the lightest line is shortened first, then left out, the
            last of equal ones; ALWAYS stays.
        short: the words that stand for `text` where there is little room; None for none.
        verdict: the beginning of `text` that has a colour, such as "GUARANTEED"; "" for none.
    """

    text: str
    label: str = ""
    weight: int = 5
    short: str | None = None
    verdict: str = ""

    def __str__(self) -> str:
        return f"  {self.label:<{_LABEL}} {self.text}" if self.label else self.text


ALWAYS = 10
_ROOMY = 70  # columns from which on further rows hang below the text


def rows(line: Line, width: int | None) -> list[str]:
    """Return the rows of a line; its further rows hang below its text, where that leaves room for words."""
    if width is None or len(str(line)) <= width:
        return [str(line)]
    hanging = " " * (_LABEL + 3 if line.label and width >= _ROOMY else 4)
    return textwrap.wrap(str(line), max(20, width), subsequent_indent=hanging, break_on_hyphens=False) or [""]


def fitted(lines: Iterable[Line], width: int | None = None, most: int = LONGEST) -> list[Line]:
    """Return the lines that fit a number of rows: the lightest is shortened until all do, else left out.

    Examples:
        >>> told = [Line("GUARANTEED", weight=ALWAYS), Line("0.41 of 1", "Noise part"), Line("none", "Change", 3)]
        >>> [str(one) for one in fitted(told, most=2)]
        ['GUARANTEED', '  Noise part       0.41 of 1']
    """
    left = list(lines)
    while sum(len(rows(one, width)) for one in left) > most:
        long = _lightest(left, lambda line: line.short is not None)
        if long is not None:
            left[long] = replace(left[long], text=str(left[long].short), short=None)
            continue
        least = _lightest(left, lambda line: line.weight < ALWAYS)
        if least is None:
            break
        del left[least]
    return left


def _lightest(lines: Sequence[Line], asked: Callable[[Line], bool]) -> int | None:
    found = [(one.weight, -index) for index, one in enumerate(lines) if asked(one)]
    return -min(found)[1] if found else None
