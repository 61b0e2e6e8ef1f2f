"""What the API pages show: formulas of docstrings as KaTeX reads them, and of a field that reads what it is given,
`Read[Given, Kept] = Read(reader, default)`, what it takes and its default.
"""

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
    """Rewrites every docstring, and every field that is read, before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(inspect.cleandoc(obj.docstring.value))

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:  # noqa: ARG002
        """Show a field that is read as what is given for it."""
        match attr.annotation, attr.value:
            case (
                griffe.ExprSubscript(left=griffe.ExprName(name="Read"), slice=griffe.ExprTuple(elements=kinds)),
                griffe.ExprCall(arguments=[_reader, *default]),
            ):
                attr.annotation, attr.value = kinds[0], default[0] if default else None
