"""Text, tables and colour on a terminal, and plain lines where there is none."""

import json
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from generic_adam.answers.words import Line

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from rich.progress import Progress, ProgressColumn


# Green, red and yellow for the three answers; bold as well, because not everyone sees the difference in hue.
_GOOD, _BAD, _OPEN = "bold green", "bold red", "bold yellow"
_STYLES = {
    **dict.fromkeys(("guaranteed", "certified", "better"), _GOOD),
    **dict.fromkeys(("no guarantee", "not certified", "no bound", "worse", "fails", "contradicted"), _BAD),
    **dict.fromkeys(("no useful guarantee", "unknown", "does not apply", "undecided", "unclear"), _OPEN),
    **dict.fromkeys(("holds", "supported"), "green"),
}
_UNLIMITED = 10_000
_PROSE = 16  # a column of sentences that is narrower than this is not read


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that colours and wraps on a terminal only.

    Text is taken as it is: a path with ``[bold]`` or ``:smile:`` in it is neither markup nor a picture.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _UNLIMITED
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def make_progress(*columns: "str | ProgressColumn", transient: bool = True) -> "Progress":
    """Return bars on standard error, which a terminal alone shows."""
    from rich.progress import Progress, TextColumn

    # Elsewhere a console that says nothing: bars that are merely disabled leave an empty line with rich before 15.
    console = make_console(stderr=True) if sys.stderr.isatty() else Console(quiet=True)
    # A text is the format of a column; it holds names and paths, which are no markup.
    made = [TextColumn(one, markup=False) if isinstance(one, str) else one for one in columns]
    return Progress(*made, console=console, transient=transient)


def answer(word: object) -> Text:
    """Return a verdict, a status or a claim in its colour; any other word as it is."""
    return Text(str(word), style=_STYLES.get(str(word).lower(), ""))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
) -> None:
    """Print a table on standard output; where a column would be narrower than its words, each row is stacked.

    Args:
        headings: the names of the columns.
        rows: their cells: text (taken literally, never as markup) or the result of :func:`answer`.
        title: a line above the table.
        right: the headings of the columns that align to the right (numbers).
    """
    console = make_console()
    cells = [[cell if isinstance(cell, Text) else Text(str(cell)) for cell in row] for row in rows]
    if title is not None:
        say(bold(title))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    room = console.width - 3 * (len(headings) - 1) - 2  # what the box takes between columns and outside
    for index, name in enumerate(headings):
        texts = [name, *(row[index].plain for row in cells)]
        full, word = max(map(len, texts)), max(len(word) for text in texts for word in [*text.split(), ""])
        least = max(word, min(full, _PROSE)) if index else full  # the first column names the row: never wrapped
        table.add_column(Text(name), justify="right" if name in right else "left", min_width=least, max_width=full)
        room -= least
    if room < 0:
        for row in cells:
            filled = [Text.assemble(f"  {name}: ", one) for name, one in zip(headings[1:], row[1:], strict=True) if one]
            say(bold(row[0]), *filled)
        return
    for row in cells:
        table.add_row(*row)
    console.print(table)


def say(*sentences: str | Text) -> None:
    """Print sentences, each on a line of its own; on a terminal further rows hang two letters in."""
    console = make_console()
    for one in sentences:
        text = Text.assemble(one)
        indent = len(text.plain) - len(text.plain.lstrip()) + 2
        if len(text.plain) > console.width and not text.spans:
            wide = max(20, console.width)
            text = Text(textwrap.fill(text.plain, wide, subsequent_indent=" " * indent, break_on_hyphens=False))
        console.print(text)


def show(told: Iterable[Line]) -> None:
    """Print the lines of an answer; on a terminal each is wrapped below its label, and the verdict has its colour."""
    console = make_console()
    width = console.width if sys.stdout.isatty() else None
    for line in told:
        for number, row in enumerate(line.rows(width)):
            text = Text(row)
            if not number and line.verdict:
                text.stylize(_STYLES.get(line.verdict.lower(), _OPEN), 0, len(line.verdict))
            elif not number and line.label:
                text.stylize("bold", 0, len(line.label) + 2)
            console.print(text)


def bold(text: str | Text) -> Text:
    """Return text that stands out: the name of what is answered."""
    return Text.assemble(text, style="bold")


def shortened(expression: object, longest: int = 60) -> str:
    """Return a formula that fits a line: words in the middle of a long one are left out."""
    text = str(expression)
    if len(text) <= longest:
        return text
    end = text[-(longest // 3) :].partition(" ")[2]  # whole words alone
    start = text[: longest - len(end) - 3]
    return f"{start.rpartition(' ')[0] or start} … {end}".rstrip()


def write_plot(path: "Path", draw: Callable[[], "Figure"]) -> None:
    """Draw a figure and write it, in the format that the file's name says; a bad name is told before."""
    from generic_adam.answers.figures import check_figure_path, write_figure

    check_figure_path(path)
    with make_console(stderr=True).status("drawing"):
        write_figure(draw(), path)
    print(f"wrote {path}", file=sys.stderr)


def print_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """Print plain data as JSON on standard output; a NaN or an infinity is an error, for JSON has none."""
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))
