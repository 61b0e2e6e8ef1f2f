"""What the subcommands print: tables that align, JSON, and colour only on a terminal."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from generic_adam.methods import Method

# Green, red and yellow for the three answers; bold as well, because not everyone sees the difference in hue.
_STYLES = {
    "certified": "bold green",
    "holds": "green",
    "supported": "green",
    "not certified": "bold red",
    "fails": "bold red",
    "contradicted": "bold red",
    "undecided": "bold yellow",
    "unclear": "bold yellow",
}
_UNLIMITED = 10_000
_PROSE = 18  # a column of sentences that is narrower than this is not read


def make_console(*, stderr: bool = False) -> "Console":
    """A console that colours only on a terminal and elsewhere wraps no line to fit an imagined width.

    Text is taken as it is: a path with ``[bold]`` or ``:smile:`` in it is neither markup nor a picture.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def answer(word: str) -> "Text":
    """A verdict, status or claim in its colour; any other word as it is."""
    from rich.text import Text

    return Text(str(word), style=_STYLES.get(str(word), ""))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table on standard output; where a column would be narrower than its words, each row is stacked.

    Args:
        headings: the names of the columns.
        rows: their cells: text (taken literally, never as markup) or the result of :func:`answer`.
        title: a line above the table.
        right: the headings of the columns that align to the right (numbers).
        spare: the headings of the columns that a narrow terminal goes without, the first of them first.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = make_console()
    cells = [[cell if isinstance(cell, Text) else Text(str(cell)) for cell in row] for row in rows]
    if title is not None:
        say(console, title, style="bold")
    shown, left_out = list(range(len(headings))), list[str]()
    while (widths := _widths([headings, *cells], shown, console.width)) is None and len(left_out) < len(
        spare
    ):
        left_out.append(spare[len(left_out)])
        shown.remove(headings.index(left_out[-1]))
    if widths is None:
        for row in cells:
            say(console, row[0], style="bold")
            filled = [(name, cell) for name, cell in zip(headings[1:], row[1:], strict=True) if cell.plain]
            say_pieces(console, [Text.assemble(f"{name}: ", cell) for name, cell in filled])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, width in zip(shown, widths, strict=True):
        justify = "right" if headings[index] in right else "left"
        table.add_column(Text(headings[index]), justify=justify, width=width)
    for row in cells:
        table.add_row(*(row[index] for index in shown))
    console.print(table)
    if left_out:
        say(console, f"A wider terminal shows {', '.join(left_out)} too; --json has everything.")


def _widths(rows: Sequence[Sequence[object]], shown: Sequence[int], room: int) -> list[int] | None:
    """How wide each shown column is; None where sentences would be narrower than _PROSE, or a word be broken.

    The first column names the row: it is never wrapped, so that it can be found and copied.
    """
    columns = [[str(row[index]) for row in rows] for index in shown]
    natural = [max(map(len, column)) for column in columns]
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    widths = [min(full, max(word, _PROSE)) for full, word in zip(natural, words, strict=True)]
    widths[0] = natural[0]
    left = room - sum(widths) - 3 * (len(widths) - 1) - 2  # what the box takes between columns and outside
    if left < 0:
        return None
    wanting = sorted(range(len(widths)), key=lambda index: natural[index] - widths[index])
    for count, index in zip(range(len(wanting), 0, -1), wanting, strict=True):
        more = min(natural[index] - widths[index], left // count)
        widths[index] += more
        left -= more
    return widths


def say(console: "Console", *parts: "str | Text", style: str = "") -> None:
    """Print one sentence; its further lines hang under its first word."""
    from rich.text import Text

    text = Text.assemble(*parts, style=style)
    indent = len(text.plain) - len(text.plain.lstrip())
    if len(text.plain) <= console.width:
        console.print(text)
        return
    first = text[indent:].wrap(console, max(20, console.width - indent))[0].plain.rstrip()
    body = text[indent + len(first) :]
    rest = body[len(body.plain) - len(body.plain.lstrip()) :]
    console.print(Text.assemble(" " * indent, text[indent : indent + len(first)]))
    for line in rest.wrap(console, max(20, console.width - indent - 2)):
        line.rstrip()
        console.print(Text.assemble(" " * (indent + 2), line))


def say_pieces(console: "Console", pieces: "Iterable[str | Text]", indent: int = 2) -> None:
    """Print short pieces side by side, as many as fit a line; none is broken that fits one."""
    from rich.text import Text

    line = Text()
    for piece in pieces:
        joined = Text.assemble(line, "   ", piece) if line.plain else Text.assemble(piece)
        if line.plain and indent + len(joined.plain) > console.width:
            say(console, " " * indent, line)
            joined = Text.assemble(piece)
        line = joined
    say(console, " " * indent, line)


def say_sequences(console: "Console", method: "Method", indent: int = 2, *, full: bool = False) -> None:
    """Print the three sequences, long ones shortened to a line unless asked for in full."""
    room = max(20, min(console.width, 100) - indent - 6)
    named = (("α_t", method.alpha), ("β_t", method.beta), ("θ_t", method.theta))
    say_pieces(
        console, [f"{name} = {text if full else shortened(text, room)}" for name, text in named], indent
    )


def shortened(expression: object, longest: int = 60) -> str:
    """A formula that fits a line: words in the middle of a long one are left out."""
    text = str(expression)
    if len(text) <= longest:
        return text
    end = text[-(longest // 3) :].partition(" ")[2]  # whole words alone
    start = text[: longest - len(end) - 3]
    return f"{start.rpartition(' ')[0] or start} … {end}".rstrip()


def print_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """Print plain data as JSON on standard output; a NaN or an infinity is an error, for JSON has none."""
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))
