"""What the subcommands print: sentences, tables that align, bars, JSON, and colour only on a terminal."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from generic_adam.answers.layout import Line, fitted, rows

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from rich.progress import Progress, ProgressColumn


# Green, red and yellow for the three answers; bold as well, because not everyone sees the difference in hue.
_STYLES = {
    "GUARANTEED": "bold green",
    "guaranteed": "bold green",
    "NO GUARANTEE": "bold red",
    "no guarantee": "bold red",
    "no useful guarantee": "bold yellow",
    "unknown": "bold yellow",
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


def make_console(*, stderr: bool = False, elsewhere: int = _UNLIMITED) -> Console:
    """Return a console that colours only on a terminal.

    Text is taken as it is: a path with ``[bold]`` or ``:smile:`` in it is neither markup nor a picture.

    Args:
        stderr: for standard error.
        elsewhere: its width where it is no terminal; there no line is wrapped to fit an imagined width.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else elsewhere
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def make_progress(*columns: "str | ProgressColumn", transient: bool = True) -> "Progress":
    """Bars on standard error, on a terminal only."""
    from rich.progress import Progress, TextColumn

    # Elsewhere a console that says nothing: bars that are merely disabled leave an empty line with rich before 15.
    console = make_console(stderr=True) if sys.stderr.isatty() else Console(quiet=True)
    # A text is the format of a column; it holds names and paths, which are no markup.
    made = [TextColumn(one, markup=False) if isinstance(one, str) else one for one in columns]
    return Progress(*made, console=console, transient=transient)


def answer(word: object) -> Text:
    """A verdict, status or claim in its colour; any other word as it is."""
    return Text(str(word), style=_STYLES.get(str(word), ""))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
    spare: Sequence[str] = (),
    elsewhere: int = _UNLIMITED,
) -> None:
    """Print a table on standard output; where a column would be narrower than its words, each row is stacked.

    Args:
        headings: the names of the columns.
        rows: their cells: text (taken literally, never as markup) or the result of :func:`answer`.
        title: a line above the table.
        right: the headings of the columns that align to the right (numbers).
        spare: the headings of the columns that a narrow terminal goes without, the first of them first.
        elsewhere: the width of the table where it is not printed on a terminal.
    """
    console = make_console(elsewhere=elsewhere)
    cells = [[cell if isinstance(cell, Text) else Text(str(cell)) for cell in row] for row in rows]
    if title is not None:
        say(bold(title))
    for left_out in range(len(spare) + 1):
        shown = [index for index, name in enumerate(headings) if name not in spare[:left_out]]
        widths = _widths([headings, *cells], shown, console.width)
        if widths is not None:
            break
    else:
        for row in cells:
            filled = [(name, cell) for name, cell in zip(headings[1:], row[1:], strict=True) if cell.plain]
            say(bold(row[0]), *side_by_side(Text.assemble(f"{name}: ", cell) for name, cell in filled))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, width in zip(shown, widths, strict=True):
        justify = "right" if headings[index] in right else "left"
        table.add_column(Text(headings[index]), justify=justify, width=width)
    for row in cells:
        table.add_row(*(row[index] for index in shown))
    console.print(table)
    if left_out:
        say(f"A wider terminal shows {', '.join(spare[:left_out])} too; --json has everything.")


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


def hung(sentence: str | Text, console: Console) -> list[Text]:
    """The lines of a sentence on a console; its further lines hang two letters in, or behind its number."""
    text = Text.assemble(sentence)
    indent = len(text.plain) - len(text.plain.lstrip())
    if len(text.plain) <= console.width:
        return [text]
    number = re.match(r"\d+\. ", text.plain[indent:])
    hanging = indent + (number.end() if number else 2)
    first = text[indent:].wrap(console, max(20, console.width - indent))[0].plain.rstrip()
    body = text[indent + len(first) :]
    rest = body[len(body.plain) - len(body.plain.lstrip()) :].wrap(console, max(20, console.width - hanging))
    for line in rest:
        line.rstrip()
    return [text[: indent + len(first)], *(Text.assemble(" " * hanging, line) for line in rest)]


def say(*sentences: str | Text, elsewhere: int = _UNLIMITED) -> None:
    """Print sentences, each on a line of its own; `elsewhere` is the width where there is no terminal."""
    console = make_console(elsewhere=elsewhere)
    for line in (line for sentence in sentences for line in hung(sentence, console)):
        console.print(line)


def show(told: Iterable[Line], *, whole: bool = False) -> None:
    """Print the lines of an answer; on a terminal each is wrapped below its label, and the verdict has its colour.

    Args:
        told: the lines.
        whole: print all of them, however many rows they take.
    """
    console = make_console()
    width = console.width if sys.stdout.isatty() else None
    for line in told if whole else fitted(told, width):
        for number, row in enumerate(rows(line, width)):
            text = Text(row)
            if not number and line.verdict:
                text.stylize(_STYLES.get(line.verdict, "bold yellow"), 0, len(line.verdict))
            elif not number:
                text.stylize("bold", 0, len(line.label) + 2)
            console.print(text)


def bold(text: str | Text) -> Text:
    """What stands out: the name of what is answered."""
    return Text.assemble(text, style="bold")


def side_by_side(pieces: Iterable[str | Text], indent: int = 2) -> list[Text]:
    """Lines of short pieces, as many as fit each; none is broken that fits one."""
    width, lines = make_console().width, list[Text]()
    for piece in pieces:
        if lines and len(lines[-1]) + 3 + len(piece) <= width:
            lines[-1] = Text.assemble(lines[-1], "   ", piece)
        else:
            lines.append(Text.assemble(" " * indent, piece))
    return lines


def shortened(expression: object, longest: int = 60) -> str:
    """A formula that fits a line: words in the middle of a long one are left out."""
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
