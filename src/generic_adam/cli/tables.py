"""What the subcommands print: tables that align, JSON, and colour only on a terminal."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
) -> None:
    """Print a table on standard output.

    Args:
        headings: the names of the columns.
        rows: their cells: text (taken literally, never as markup) or the result of :func:`answer`.
        title: a line above the table.
        right: the headings of the columns that align to the right (numbers).
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
    )
    for index, heading in enumerate(headings):
        # The first column names the row: it is never broken, so that it can be found and copied.
        table.add_column(
            Text(heading),
            justify="right" if heading in right else "left",
            overflow="fold",
            no_wrap=index == 0,
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    make_console().print(table)


def say(console: "Console", *parts: "str | Text", style: str = "") -> None:
    """Print one sentence; on a terminal its further lines hang under its first word."""
    from rich.padding import Padding
    from rich.text import Text

    text = Text.assemble(*parts, style=style)
    plain = text.plain
    indent = len(plain) - len(plain.lstrip())
    if not console.is_terminal or len(plain) <= console.width:
        console.print(text)
        return
    lines = text[indent:].wrap(console, max(20, console.width - indent - 2))
    for number, line in enumerate(lines):
        console.print(Padding(line, (0, 0, 0, indent if number == 0 else indent + 2)))


def shortened(expression: object, longest: int = 60) -> str:
    """A formula that fits a line: the middle of a long one is left out."""
    text = str(expression)
    if len(text) <= longest:
        return text
    return f"{text[: longest - 20]} … {text[-16:]}"


def print_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """Print plain data as JSON on standard output; a NaN or an infinity is an error, for JSON has none."""
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))
