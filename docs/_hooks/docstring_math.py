"""Shows the formulas of docstrings: `.. math::` blocks and `:math:` roles become what KaTeX reads."""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)\.\. math::[ \t]*(?P<inline>[^\n]*)\n"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*\n|[ \t]*\n)*)",
    re.MULTILINE,
)
_ROLE = re.compile(r":math:`([^`]*)`")
_REFERENCE = re.compile(r":(?:py:)?(?:func|class|meth|mod|attr|data|obj):`~?([^`]*)`")


def as_markdown(text: str) -> str:
    """A docstring with its formulas between dollars and its references as code."""
    text = _BLOCK.sub(_block, text + "\n")
    text = _ROLE.sub(lambda role: f"${' '.join(role[1].split())}$", text)
    return _REFERENCE.sub(r"`\1`", text).rstrip("\n")


def _block(match: re.Match[str]) -> str:
    lines = [line.strip() for line in (match["inline"], *match["body"].splitlines()) if line.strip()]
    formula = " ".join(lines)
    if "&" in formula or "\\\\" in formula:
        formula = rf"\begin{{aligned}} {formula} \end{{aligned}}"
    indent = match["indent"]
    return f"\n{indent}$$\n{indent}{formula}\n{indent}$$\n\n"


class DocstringMath(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(inspect.cleandoc(obj.docstring.value))
