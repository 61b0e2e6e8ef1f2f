"""Making schedules: from numbers, callables and other schedules, and from text, which every node has.

What `str` writes, `parse` reads back as an equal schedule. The language is small: Python's grammar and a
whitelist read it, and nothing of it is ever run.
"""

from __future__ import annotations

import ast
import difflib
import math
import threading
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial, reduce
from numbers import Integral

from generic_adam.errors import ScheduleError
from generic_adam.schedules import tree
from generic_adam.schedules.tree import FUNCTIONS, Schedule, exact, normal_form, operand, text_of

LONGEST_TEXT = 10_000
LONGEST_NUMBER = 4_000
DEEPEST_NESTING = 60

t = tree.Time()
"""The time itself, t = 1, 2, 3, ...: expressions are built from it, as in `0.5 / sqrt(t)`."""


def as_schedule(value: object) -> Schedule:
    """Return a schedule from a number, a text (see `parse`), a schedule (as it is) or a callable of t (opaque)."""
    return parse(value) if isinstance(value, str) else operand(value)


def function(name: str, argument: object) -> Schedule:
    """One of the named functions (sqrt, log, exp, abs, sin, cos, expm1, log1p) of a schedule."""
    return normal_form[tree.Function](name, as_schedule(argument))


def sqrt(argument: object) -> Schedule:
    """Return the square root of a schedule."""
    return function("sqrt", argument)


def log(argument: object) -> Schedule:
    """Return the natural logarithm of a schedule."""
    return function("log", argument)


def exp(argument: object) -> Schedule:
    """Return the exponential of a schedule."""
    return function("exp", argument)


def maximum(first: object, *others: object) -> Schedule:
    """Return the largest of several schedules at each t."""
    return reduce(normal_form[tree.Maximum], map(as_schedule, (first, *others)))


def minimum(first: object, *others: object) -> Schedule:
    """Return the smallest of several schedules at each t."""
    return reduce(normal_form[tree.Minimum], map(as_schedule, (first, *others)))


def clip(argument: object, low: object, high: object) -> Schedule:
    """min(max(argument, low), high)."""
    return minimum(maximum(argument, low), high)


def join(before: object, threshold: int, after: object) -> Schedule:
    """`before` for t < threshold, `after` from then on."""
    return normal_form[tree.Join](_whole(threshold, "a threshold"), as_schedule(before), as_schedule(after))


def periodic(body: object, period: int) -> Schedule:
    """Return the first `period` values again and again: u_t = body_s with s = 1 + (t - 1) mod period."""
    return normal_form[tree.Periodic](as_schedule(body), _whole(period, "a period"))


def _whole(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ScheduleError(f"{what} must be a whole number, got {value}")
    return int(value)


def bounded(argument: object, low: float, high: float) -> Schedule:
    """Return a schedule of which it is known that low <= u_t <= high for every t."""
    return normal_form[tree.Bounded](as_schedule(argument), float(low), float(high))


def theta_from_weights(weights: object, initial: float | Fraction = 1) -> Schedule:
    """theta_t = W_{t-1} / W_t with W_t = W_{t-1} + w_t and W_0 = initial (Weighted AdaEMA, Algorithm 2)."""
    return normal_form[tree.WeightedTheta](as_schedule(weights), exact(initial))


def bias_correction(factor: object) -> Schedule:
    """1 - prod_{i<=t} factor_i: Kingma and Ba's correction with the exact product."""
    return normal_form[tree.BiasCorrection](as_schedule(factor))


# Python 3.11 counts the depth of all threads' syntax trees in one place, and warning filters are global.
_PARSING = threading.Lock()
_BINARY: dict[type[ast.operator], type[Schedule]] = {
    ast.Add: tree.Add,
    ast.Sub: tree.Subtract,
    ast.Mult: tree.Multiply,
    ast.Div: tree.Divide,
    ast.Pow: tree.Power,
}
# name -> what it builds, fewest and most arguments
_CALLS: dict[str, tuple[Callable[..., Schedule], int, int]] = {
    **{name: (partial(function, name), 1, 1) for name in FUNCTIONS},
    "min": (minimum, 2, 64),
    "max": (maximum, 2, 64),
    "clip": (clip, 3, 3),
    "theta_from_weights": (theta_from_weights, 1, 2),
    "bias_correction": (bias_correction, 1, 1),
    "periodic": (periodic, 2, 2),
    "bounded": (bounded, 3, 3),
}
# Where every argument but the first is a number: what it is called.
_NUMBERS = {"theta_from_weights": "W_0", "periodic": "the period", "bounded": "a bound"}
_EXPECTED = f"numbers, t, pi, + - * / ^ ( ), {', '.join(_CALLS)}, and 'a if t < K else b'"
# How tightly a text binds: a join, a sum, a product, a sign, a power, an atom.
_JOIN, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)
# node -> (symbol, its own binding, what its left and its right operand need)
_SYMBOLS: dict[type[Schedule], tuple[str, int, int, int]] = {
    tree.Add: (" + ", _SUM, _SUM, _PRODUCT),
    tree.Subtract: (" - ", _SUM, _SUM, _PRODUCT),
    tree.Multiply: (" * ", _PRODUCT, _PRODUCT, _SIGN),
    tree.Divide: (" / ", _PRODUCT, _PRODUCT, _SIGN),
    tree.Power: ("^", _POWER, _ATOM, _POWER),
}
# nodes that are written as a call of their fields
_CALLED: dict[type[Schedule], str] = {
    tree.Maximum: "max",
    tree.Minimum: "min",
    tree.Periodic: "periodic",
    tree.Bounded: "bounded",
    tree.WeightedTheta: "theta_from_weights",
    tree.BiasCorrection: "bias_correction",
}
_TINY = Fraction(1, 10**300)


def _bracketed(node: Schedule, binding: int) -> str:
    """Return the text of a part, in parentheses where it binds less tightly than its place asks for."""
    text, own = text_of[type(node)](node)
    return text if own >= binding else f"({text})"


def _number(value: Fraction) -> tuple[str, int]:
    """Return a number as text: the decimal that it is, else a quotient; each literal within the range of floats."""
    text = repr(float(value)).removesuffix(".0")
    if Fraction(text) == value:
        return text, _SIGN if value < 0 else _ATOM
    if abs(value) < _TINY:  # too small for a literal
        rest, binding = _number(value / _TINY)
        return f"1e-300 * {rest if binding >= _SIGN else f'({rest})'}", _PRODUCT
    top, bottom = value.numerator, value.denominator
    if max(abs(top), bottom) < 10**300:
        return f"{top}/{bottom}", _PRODUCT
    # Both sides over the same power of ten, so that neither leaves the range of floats.
    shift = len(str(bottom)) - 1
    return f"{_shifted(top, shift)}/{_shifted(bottom, shift)}", _PRODUCT


def _shifted(integer: int, places: int) -> str:
    """Return the decimal integer / 10^places."""
    digits = str(abs(integer)).rjust(places + 1, "0")
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return ("-" if integer < 0 else "") + whole + (f".{decimals}" if decimals else "")


def _operation(node: tree.Binary) -> tuple[str, int]:
    symbol, own, left, right = _SYMBOLS[type(node)]
    return f"{_bracketed(node.left, left)}{symbol}{_bracketed(node.right, right)}", own


def _called(node: Schedule) -> tuple[str, int]:
    name = node.name if isinstance(node, tree.Function) else _CALLED[type(node)]
    parts = node.field_values[1:] if isinstance(node, tree.Function) else node.field_values
    if isinstance(node, tree.OfWeights) and node.initial == 1:
        parts = parts[:1]
    texts = (_number(part)[0] if isinstance(part, Fraction) else str(part) for part in parts)
    return f"{name}({', '.join(texts)})", _ATOM


def _joined(node: tree.Join) -> tuple[str, int]:
    return f"{_bracketed(node.before, _SUM)} if t < {node.threshold} else {node.after}", _JOIN


def _opaque(node: tree.Opaque) -> tuple[str, int]:
    name = node.name or getattr(node.function, "__qualname__", type(node.function).__name__)
    return f"<callable {name}>", _ATOM


text_of.update(
    {
        **dict.fromkeys(_SYMBOLS, _operation),
        **dict.fromkeys((*_CALLED, tree.Function), _called),
        tree.Constant: lambda node: _number(node.value),
        tree.Time: lambda _node: ("t", _ATOM),
        tree.Negate: lambda node: (f"-{_bracketed(node.operand, _POWER)}", _SIGN),
        tree.Join: _joined,
        tree.WeightShare: lambda node: (f"1 - {node.complement}", _SUM),
        tree.Opaque: _opaque,
    }
)


def parse(text: str) -> Schedule:
    """Return the schedule that a text describes.

    Numbers, `t`, `pi`, `+ - * / ^ **`, parentheses, `sqrt log exp abs sin cos expm1 log1p min max clip`,
    `theta_from_weights(w)`, `bias_correction(theta)`, `periodic(u, n)`, `bounded(u, low, high)` and
    `a if t < K else b`.

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
        raise ScheduleError(f"the text has {len(text):,} characters; a schedule takes at most {LONGEST_TEXT:,}")
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
            with _PARSING, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parsed = ast.parse(self.source, mode="eval").body
        except SyntaxError as error:
            message = "this number is too long" if "digits" in str(error) else "cannot be read from here"
            # Python gives no offset where the text just ends too early: then the end is the place.
            offset = error.offset - 1 if error.offset else len(self.source) - 1
            raise self.error(self.column(offset), message) from None
        except (RecursionError, MemoryError, ValueError):
            raise self.error(1, "is nested too deeply") from None
        self.check_depth(parsed)
        try:
            return self.visit(parsed)
        except RecursionError:
            raise self.error(1, "is nested too deeply") from None

    def column(self, offset: int) -> int:
        return self.columns[min(max(offset, 0), len(self.columns) - 1)]

    def error(self, column: int, message: str, expected: str = _EXPECTED) -> ScheduleError:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        found = ScheduleError(f"column {column} of {shown!r}: {message}; expected {expected}")
        found.column = column
        return found

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
            if error.column is not None:
                raise
            raise self.at(node, str(error), "a finite value") from None
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            raise self.at(node, str(error), "a finite value") from None

    def build(self, node: ast.expr) -> Schedule:
        match node:
            case ast.Constant():
                return self.number(node)
            case ast.Name(id="t"):
                return tree.Time()
            case ast.Name(id="pi"):
                return tree.Constant(exact(math.pi))
            case ast.Name(id=name):
                raise self.at(node, f"unknown name {name!r}{_closest(name, ['t', 'pi', *_CALLS])}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.visit(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.visit(operand)
            case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _BINARY:
                return normal_form[_BINARY[type(operation)]](self.visit(left), self.visit(right))
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
            return tree.Constant(Fraction(value))
        if not math.isfinite(value):
            raise self.at(node, f"the number {literal} is too large", "a number below 1.8e308")
        if not value and any(digit in "123456789" for digit in literal.lower().partition("e")[0]):
            raise self.at(node, f"the number {literal} is too small", "0 or a number above 5e-324")
        # Of a zero the exponent says nothing, and of 0e9999999 the exact reading would compute 10^9999999.
        return tree.Constant(Fraction(literal) if value else Fraction(0))

    def call(self, node: ast.Call) -> Schedule:
        if not isinstance(node.func, ast.Name) or node.func.id not in _CALLS:
            name = node.func.id if isinstance(node.func, ast.Name) else "this"
            raise self.at(node, f"unknown function {name!r}{_closest(name, list(_CALLS))}")
        name = node.func.id
        build, fewest, most = _CALLS[name]
        if node.keywords or not fewest <= len(node.args) <= most:
            count = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise self.at(
                node,
                f"{name} takes {count} argument{'s' if count != '1' else ''}",
                f"{name}(...) with {count}",
            )
        first, *others = map(self.visit, node.args)
        return build(first, *(self.literal(node, name, part) if name in _NUMBERS else part for part in others))

    def literal(self, node: ast.Call, name: str, argument: Schedule) -> Fraction | int:
        if not isinstance(argument, tree.Constant):
            raise self.at(node, f"{_NUMBERS[name]} must be a number", f"{name}(u, number)")
        value = argument.value
        return value if value.denominator > 1 else value.numerator

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
        if not isinstance(limit, tree.Constant):
            raise self.at(right, "the threshold is not a number", "t < K with a number K")
        before, after = self.visit(node.body), self.visit(node.orelse)
        if isinstance(operation, ast.Gt | ast.GtE):
            before, after = after, before
        inclusive = isinstance(operation, ast.LtE | ast.Gt)
        threshold = math.floor(limit.value) + 1 if inclusive else math.ceil(limit.value)
        return normal_form[tree.Join](threshold, before, after)


def _closest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
