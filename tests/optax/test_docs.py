"""The page on JAX: its Python runs as it stands and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "optax.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_says() -> None:
    names: dict[str, object] = {}
    printed, told = io.StringIO(), ""
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(PAGE), "exec"), names)
        else:
            told += text
    assert told.count("\n") == 4
    assert printed.getvalue() == told
