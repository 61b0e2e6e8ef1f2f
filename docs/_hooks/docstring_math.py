"""Prepare what the API pages show: formulas of docstrings as KaTeX reads them, the members of an enumeration,
defaults as numbers, and of a field that reads what it is given, `Read[Given, Kept] = Read(reader, default)`, what it
takes.
"""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from typing import Any

import griffe

_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)\.\. math::[ \t]*(?P<inline>[^\n]*)\n"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*\n|[ \t]*\n)*)",
    re.MULTILINE,
)
_ROLE = re.compile(r":math:`([^`]*)`")
_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
_REFERENCE = re.compile(r":(?:py:)?(?:func|class|meth|mod|attr|data|obj):`~?([^`]*)`")


def as_markdown(text: str) -> str:
    """Return a docstring with its formulas between dollars, its references as code and its pages as links."""
    text = _BLOCK.sub(_block, text + "\n")
    text = _ROLE.sub(lambda role: f"${' '.join(role[1].split())}$", text)
    text = _REFERENCE.sub(r"`\1`", text).rstrip("\n")
    return _PAGE.sub(r"[\1](../\1.md)", text)


def _block(match: re.Match[str]) -> str:
    lines = [line.strip() for line in (match["inline"], *match["body"].splitlines()) if line.strip()]
    formula = " ".join(lines)
    if "&" in formula or "\\\\" in formula:
        formula = rf"\begin{{aligned}} {formula} \end{{aligned}}"
    indent = match["indent"]
    return f"\n{indent}$$\n{indent}{formula}\n{indent}$$\n\n"


class DocstringMath(griffe.Extension):
    """Rewrites every docstring, and what a field, a constant and a default are shown as, before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(inspect.cleandoc(obj.docstring.value))

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:  # noqa: ARG002
        """List the members of an enumeration, which have no docstrings, with what they stand for."""
        if cls.docstring is not None and any(str(base) == "StrEnum" for base in cls.bases):
            members = (f"- `{one.name}`: {str(one.value)[1:-1]}" for one in cls.attributes.values())
            cls.docstring.value = "\n".join((inspect.cleandoc(cls.docstring.value), "", *members))

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:  # noqa: ARG002
        """Show a field that is read as what is given for it, and of a constant that holds others what it is."""
        match attr.annotation, attr.value:
            case (
                griffe.ExprSubscript(left=griffe.ExprName(name="Read"), slice=griffe.ExprTuple(elements=kinds)),
                griffe.ExprCall(arguments=[_reader, *default]),
            ):
                attr.annotation, attr.value = kinds[0], default[0] if default else None
            case griffe.Expr(), griffe.ExprTuple() | griffe.ExprDict() if attr.parent and attr.parent.is_module:
                attr.value = None

    def on_attribute(self, *, attr: griffe.Attribute, loader: griffe.GriffeLoader, **kwargs: Any) -> None:  # noqa: ARG002
        """Show a field's default as a number."""
        attr.value = _shown(attr.value, loader)

    def on_function(self, *, func: griffe.Function, loader: griffe.GriffeLoader, **kwargs: Any) -> None:  # noqa: ARG002
        """Show an argument's default as a number; what takes any arguments has none."""
        for parameter in func.parameters:
            takes_any = parameter.kind in (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword)
            parameter.default = None if takes_any else _shown(parameter.default, loader)


def _shown(default: str | griffe.Expr | None, loader: griffe.GriffeLoader) -> str | griffe.Expr | None:
    """Return a default that is the name of a number, as the number."""
    if isinstance(default, griffe.ExprName) and default.name.isupper():
        with suppress(KeyError):
            number = loader.modules_collection[default.canonical_path].value
            return number if isinstance(number, str | griffe.ExprBinOp) else default
    return default
