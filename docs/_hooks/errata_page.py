"""Runs every check of `errata` and writes a section about each."""

from __future__ import annotations

import inspect
import io
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout

from errata import ERRATA, Erratum
from mkdocs.exceptions import PluginError


def sections() -> str:
    """All errata; a check that no longer shows its erratum stops the build."""
    return "\n\n".join(_section(number, erratum) for number, erratum in enumerate(ERRATA, start=1))


def output_of(erratum: Erratum) -> str:
    """What the check prints."""
    output = io.StringIO()
    try:
        with redirect_stdout(output):
            erratum.check()
    except AssertionError as error:
        raise PluginError(f"the check of the erratum {erratum.where!r} fails: {output.getvalue()}") from error
    return output.getvalue().rstrip()


def _section(number: int, erratum: Erratum) -> str:
    source = textwrap.dedent(inspect.getsource(erratum.check)).rstrip()
    block = ["```text", *output_of(erratum).splitlines(), "```"]
    code = ["```python", *source.splitlines(), "```"]
    return "\n".join(
        [
            f"### {number}. {erratum.where}",
            "",
            f"| printed | right |\n|---|---|\n| {erratum.printed} | {erratum.right} |",
            "",
            "The check says:",
            "",
            *block,
            "",
            '??? quote "How it is computed"',
            "",
            *(f"    {line}" for line in code),
        ]
    )


GENERATORS: dict[str, Callable[[], str]] = {"errata": sections}
