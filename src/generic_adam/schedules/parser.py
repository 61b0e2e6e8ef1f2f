"""Text to schedule: a small arithmetic language, read by Python's grammar and a whitelist, never run."""

from __future__ import annotations

import ast
import difflib
import math
import warnings
from collections.abc import Callable
from fractions import Fraction

from generic_adam.schedules import build, simplify
from generic_adam.schedules.base import Schedule
from generic_adam.schedules.errors import ScheduleError
from generic_adam.schedules.functions import FUNCTIONS
from generic_adam.schedules.nodes import Constant, Time

LONGEST_TEXT = 10_000
LONGEST_NUMBER = 1_000
DEEPEST_NESTING = 60

_BINARY: dict[type[ast.operator], Callable[[Schedule, Schedule], Schedule]] = {
    ast.Add: simplify.add,
    ast.Sub: simplify.subtract,
    ast.Mult: simplify.multiply,
    ast.Div: simplify.divide,
    ast.Pow: simplify.power,
}
# name -> (fewest arguments, most arguments)
_ARITIES: dict[str, tuple[int, int]] = {
    **dict.fromkeys(FUNCTIONS, (1, 1)),
    "min": (2, 64),
    "max": (2, 64),
    "clip": (3, 3),
    "theta_from_weights": (1, 2),
    "bias_correction": (1, 1),
    "periodic": (2, 2),
}
_EXPECTED = f"numbers, t, pi, + - * / ^ ( ), {', '.join(_ARITIES)}, and 'a if t < K else b'"


def parse(text: str) -> Schedule:
    """The schedule that a text describes.

    Numbers, `t`, `pi`, `+ - * / ^ **`, parentheses, `sqrt log exp abs sin cos expm1 log1p min max clip`,
    `theta_from_weights(w)`, `bias_correction(theta)`, `periodic(u, n)` and `a if t < K else b`.

    Args:
        text: for instance "0.001 if t < 2500 else 0.01/sqrt(t)".

    Returns:
        The schedule; `str` of it parses back to an equal one.

    Raises:
        ScheduleError: one line with the column and what was expected.

    Examples:
        >>> parse("1 - 1/max(t, 2)")(10)
        0.9
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ScheduleError(f"expected a text, got {type(text).__name__}")
    if len(text) > LONGEST_TEXT:
        raise ScheduleError(
            f"the text has {len(text):,} characters; a schedule takes at most {LONGEST_TEXT:,}"
        )
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        # '^' is the power of mathematics; Python's grammar writes it '**', one column wider.
        self.source = ""
        self.columns: list[int] = []
        for column, character in enumerate(text, start=1):
            # '#' would begin a comment of Python's: what follows it would be ignored.
            if ord(character) > 126 or (ord(character) < 32 and character != "\t") or character == "#":
                raise self.error(column, f"unexpected character {character!r}")
            written = "**" if character == "^" else character
            self.source += written
            self.columns += [column] * len(written)

    def read(self) -> Schedule:
        stripped = self.source.lstrip()
        self.columns = self.columns[len(self.source) - len(stripped) :]
        self.source = stripped
        if not stripped:
            raise ScheduleError(f"an empty text is no schedule; expected {_EXPECTED}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.source, mode="eval").body
        except SyntaxError as error:
            message = "this number is too long" if "digits" in str(error) else "cannot be read from here"
            # Python gives no offset where the text just ends too early: then the end is the place.
            offset = error.offset - 1 if error.offset else len(self.source) - 1
            raise self.error(self.column(offset), message) from None
        except (RecursionError, MemoryError, ValueError):
            raise self.error(1, "is nested too deeply") from None
        self.check_depth(tree)
        try:
            return self.visit(tree)
        except RecursionError:
            raise self.error(1, "is nested too deeply") from None

    def column(self, offset: int) -> int:
        return self.columns[min(max(offset, 0), len(self.columns) - 1)]

    def error(self, column: int, message: str, expected: str = _EXPECTED) -> ScheduleError:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return ScheduleError(f"column {column} of {shown!r}: {message}; expected {expected}")

    def at(self, node: ast.AST, message: str, expected: str = _EXPECTED) -> ScheduleError:
        return self.error(self.column(getattr(node, "col_offset", 0)), message, expected)

    def check_depth(self, tree: ast.expr) -> None:
        pending: list[tuple[ast.AST, int]] = [(tree, 1)]
        while pending:
            node, depth = pending.pop()
            if depth > DEEPEST_NESTING:
                raise self.at(node, f"is nested more than {DEEPEST_NESTING} deep", "a simpler expression")
            pending += [(child, depth + 1) for child in ast.iter_child_nodes(node)]

    def visit(self, node: ast.expr) -> Schedule:
        try:
            return self.build(node)
        except ScheduleError as error:
            if str(error).startswith("column "):
                raise
            raise self.at(node, str(error), "a finite value") from None
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            raise self.at(node, str(error), "a finite value") from None

    def build(self, node: ast.expr) -> Schedule:
        match node:
            case ast.Constant():
                return self.number(node)
            case ast.Name(id="t"):
                return Time()
            case ast.Name(id="pi"):
                return Constant(build.exact(math.pi))
            case ast.Name(id=name):
                raise self.at(node, f"unknown name {name!r}{_closest(name, ['t', 'pi', *_ARITIES])}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return simplify.negate(self.visit(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.visit(operand)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
                return _BINARY[type(operation)](self.visit(left), self.visit(right))
            case ast.IfExp():
                return self.join(node)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.at(node, f"{type(node).__name__} is not part of the language")

    def number(self, node: ast.Constant) -> Schedule:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.at(node, f"{value!r} is not a number")
        # One line of ASCII: columns are offsets. ast.get_source_segment would read the whole text again.
        literal = self.source[node.col_offset : node.end_col_offset].replace("_", "")
        if len(literal) > LONGEST_NUMBER:
            raise self.at(node, "this number is too long", f"at most {LONGEST_NUMBER:,} characters")
        if isinstance(value, int):
            return Constant(Fraction(value))
        if not math.isfinite(value):
            raise self.at(node, f"the number {literal} is too large", "a number below 1.8e308")
        if not value and any(digit in "123456789" for digit in literal.lower().partition("e")[0]):
            raise self.at(node, f"the number {literal} is too small", "0 or a number above 5e-324")
        # Of a zero the exponent says nothing, and of 0e9999999 the exact reading would compute 10^9999999.
        return Constant(Fraction(literal) if value else Fraction(0))

    def call(self, node: ast.Call) -> Schedule:
        if not isinstance(node.func, ast.Name) or node.func.id not in _ARITIES:
            name = node.func.id if isinstance(node.func, ast.Name) else "this"
            raise self.at(node, f"unknown function {name!r}{_closest(name, list(_ARITIES))}")
        name = node.func.id
        fewest, most = _ARITIES[name]
        if node.keywords or not fewest <= len(node.args) <= most:
            count = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self.at(
                node,
                f"{name} takes {count} argument{'s' if count != '1' else ''}",
                f"{name}(...) with {count}",
            )
        arguments = [self.visit(argument) for argument in node.args]
        match name:
            case "min":
                return build.minimum(*arguments)
            case "max":
                return build.maximum(*arguments)
            case "clip":
                return build.clip(*arguments)
            case "bias_correction":
                return build.bias_correction(arguments[0])
            case "theta_from_weights":
                return self.weighted(node, arguments)
            case "periodic":
                return self.repeated(node, *arguments)
            case _:
                return build.function(name, arguments[0])

    def weighted(self, node: ast.Call, arguments: list[Schedule]) -> Schedule:
        initial = arguments[1] if len(arguments) > 1 else Constant(Fraction(1))
        if not isinstance(initial, Constant):
            raise self.at(node, "the second argument W_0 must be a number", "theta_from_weights(w, number)")
        return build.theta_from_weights(arguments[0], initial.value)

    def repeated(self, node: ast.Call, body: Schedule, period: Schedule) -> Schedule:
        if not isinstance(period, Constant) or period.value.denominator != 1:
            raise self.at(node, "the second argument must be a whole number", "periodic(u, number)")
        return build.periodic(body, int(period.value))

    def join(self, node: ast.IfExp) -> Schedule:
        match node.test:
            case ast.Compare(
                left=ast.Name(id="t"),
                ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as operation],
                comparators=[right],
            ):
                limit = self.visit(right)
            case _:
                raise self.at(node.test, "the condition cannot be read", "t < K with a number K")
        if not isinstance(limit, Constant):
            raise self.at(right, "the threshold is not a number", "t < K with a number K")
        before, after = self.visit(node.body), self.visit(node.orelse)
        if isinstance(operation, ast.Gt | ast.GtE):
            before, after = after, before
        inclusive = isinstance(operation, ast.LtE | ast.Gt)
        threshold = math.floor(limit.value) + 1 if inclusive else math.ceil(limit.value)
        return simplify.join(threshold, before, after)


def _closest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
