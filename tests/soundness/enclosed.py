"""Values of a tree with a bound on their error, in the digits of mpmath's present precision.

A value is (v, e) with abs(v - u_t) <= 2^e, e a whole number or -infinity: one pass says how many digits are
left after all cancellation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from mpmath import libmp, mp, mpf

from tests.soundness.expansion import UnknownError

Enclosed = tuple[mpf, float]

LONGEST_SUM = 260
_EXACT = -math.inf
OUT_OF_REACH = (UnknownError, OverflowError, libmp.NoConvergence, MemoryError)


class UndefinedError(Exception):
    """The sequence has no value at this t."""


class Node(tuple):  # noqa: SLOT001  (it keeps what was found out about it)
    """A node of the oracle's own tree: its kind, then its parts. What is asked often is kept."""

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return tuple.__hash__(self)

    @functools.cached_property
    def is_constant(self) -> bool:
        """True if t does not occur."""
        return not any(part[0] in {"t", "join", "weights", "correction", "periodic"} for part in self.parts())

    @functools.cached_property
    def literals(self) -> dict[int, Enclosed]:
        """A number in the precisions in which it was needed."""
        return {}

    def parts(self) -> Iterator[Node]:
        """The node and everything below it."""
        yield self
        for part in self[1:]:
            if isinstance(part, Node):
                yield from part.parts()


ONE = Node(("number", Fraction(1)))
TIME = Node(("t",))


def _mag(v: mpf) -> float:
    """m with 2^(m-1) <= abs(v) < 2^m."""
    _, mantissa, exponent, bits = v._mpf_
    return exponent + bits if mantissa else _EXACT


def _rounded(v: mpf, e: float) -> Enclosed:
    return v, max(e, _mag(v) - mp.prec) + 1


def _literal(value: Fraction) -> Enclosed:
    v = mpf(value.numerator) / value.denominator
    short = value.denominator & (value.denominator - 1) == 0 and value.numerator.bit_length() < mp.prec
    return v, _EXACT if short else _mag(v) - mp.prec + 1


def _number(node: Node, _t: int) -> Enclosed:
    known = node.literals
    if mp.prec not in known:
        known[mp.prec] = _literal(node[1])
    return known[mp.prec]


def _add(x: Enclosed, y: Enclosed) -> Enclosed:
    return _rounded(x[0] + y[0], max(x[1], y[1]) + 1)


def _subtract(x: Enclosed, y: Enclosed) -> Enclosed:
    return _rounded(x[0] - y[0], max(x[1], y[1]) + 1)


def _multiply(x: Enclosed, y: Enclosed) -> Enclosed:
    e = max(x[1] + max(_mag(y[0]), y[1]), y[1] + max(_mag(x[0]), x[1])) + 1
    return _rounded(x[0] * y[0], e)


def _divide(x: Enclosed, y: Enclosed) -> Enclosed:
    v, e = y
    if v == 0 and e == _EXACT:
        raise UndefinedError("division by zero")
    if not _mag(v) - 2 > e:
        raise UnknownError("a divisor that may be 0")
    quotient = x[0] / v
    size = _mag(v) - 1
    return _rounded(quotient, max(x[1] - size, e + _mag(quotient) - size) + 2)


def _exp(x: Enclosed) -> Enclosed:
    v, e = x
    if abs(v) > 1e45 or e > -2:
        raise UnknownError("an exponential out of reach")
    result = mp.exp(v)
    return _rounded(result, e + _mag(result) + 1)


def _expm1(x: Enclosed) -> Enclosed:
    v, e = x
    if abs(v) > 1e45 or e > -2:
        raise UnknownError("an exponential out of reach")
    return _rounded(mp.expm1(v), e + (int(mp.ceil(v * 1.5)) if v > 0 else 0) + 2)


def _log(x: Enclosed) -> Enclosed:
    v, e = x
    if v <= 0 and not e >= _mag(v):
        raise UndefinedError("the logarithm of a number that is not positive")
    if v <= 0 or not _mag(v) - 2 > e:
        raise UnknownError("the logarithm of a number that may be 0")
    return _rounded(mp.log(v), e - _mag(v) + 3)


def _log1p(x: Enclosed) -> Enclosed:
    v, e = x
    if v == -1 and e == _EXACT:
        raise UndefinedError("log1p(-1)")
    near = mp.mag(1 + v) if v != -1 else _EXACT
    if v < -1 and near > e + 2:
        raise UndefinedError("log1p below -1")
    if v <= -1 or not near - 2 > e:
        raise UnknownError("log1p close to -1")
    return _rounded(mp.log1p(v), e - near + 3)


def _sqrt(x: Enclosed) -> Enclosed:
    v, e = x
    if v < 0 and _mag(v) - 1 > e:
        raise UndefinedError("the root of a negative number")
    if v <= 0 or _mag(v) - 2 <= e:
        if v == 0 and e == _EXACT:
            return x
        raise UnknownError("the root of a number that may be negative")
    root = mp.sqrt(v)
    return _rounded(root, e - _mag(root) + 2)


def _wave(function: Callable[[mpf], mpf]) -> Callable[[Enclosed], Enclosed]:
    def apply(x: Enclosed) -> Enclosed:
        if _mag(x[0]) > 300:
            raise UnknownError("an angle out of reach")
        return _rounded(function(x[0]), x[1])

    return apply


_FUNCTIONS: dict[str, Callable[[Enclosed], Enclosed]] = {
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "sqrt": _sqrt,
    "sin": _wave(mp.sin),
    "cos": _wave(mp.cos),
    "abs": lambda x: (abs(x[0]), x[1]),
}


def _power(x: Enclosed, y: Enclosed) -> Enclosed:
    (v, e), (p, f) = x, y
    if f == _EXACT and p == mp.floor(p):
        return _whole_power(x, int(p))
    if v == 0 and e == _EXACT:
        if p > 0:
            return x
        raise UndefinedError("0 to a negative power")
    if v < 0 and _mag(v) - 1 > e:
        raise UndefinedError("a power of a negative number")
    return _exp(_multiply(y, _log(x))) if p != 0.5 or f != _EXACT else _sqrt(x)


def _whole_power(x: Enclosed, exponent: int) -> Enclosed:
    v, e = x
    if exponent == 0:
        return mpf(1), _EXACT
    if exponent < 0:
        return _divide((mpf(1), _EXACT), _whole_power(x, -exponent))
    if v == 0 and e == _EXACT:
        return x
    if not _mag(v) - 2 > e:
        raise UnknownError("a power of a number that may be 0")
    if exponent * (abs(_mag(v)) + 1) > 1e45:
        raise UnknownError("a power out of reach")
    relative = max(e - _mag(v) + 1, -mp.prec) + exponent.bit_length() + 2
    if relative > -2:
        raise UnknownError("a power that keeps no digits")
    result = mp.power(v, exponent)
    return _rounded(result, _mag(result) + relative)


def value(node: Node, t: int) -> Enclosed:
    """u_t with its error."""
    return _VALUES[node[0]](node, t)


def complement(node: Node, t: int) -> Enclosed:
    """1 - u_t, from the form where that saves digits: 1 - (1 - 0.5^t) is 0.5^t however large t is."""
    kind = node[0]
    if kind == "-" and node[1] == ONE:
        return value(node[2], t)
    if kind == "max":
        return _smaller(complement(node[1], t), complement(node[2], t))
    if kind == "min":
        return _larger(complement(node[1], t), complement(node[2], t))
    if kind == "join":
        return complement(node[2] if t < node[1] else node[3], t)
    if kind == "periodic":
        return complement(node[1], (t - 1) % node[2] + 1)
    if kind == "weights":
        return _share(node[1], node[2], t)
    if kind == "correction":
        return _product(node[1], t)
    if kind == "function" and node[1] == "exp":
        v, e = _expm1(value(node[2], t))
        return -v, e
    return _subtract((mpf(1), _EXACT), value(node, t))


def _larger(x: Enclosed, y: Enclosed) -> Enclosed:
    low, high = (x, y) if x[0] <= y[0] else (y, x)
    # The smaller one's error counts only where it may be the larger one after all.
    error = max(x[1], y[1]) + 1
    return high if _mag(high[0] - low[0]) - 1 > error else (high[0], error)


def _smaller(x: Enclosed, y: Enclosed) -> Enclosed:
    value, error = _larger((-x[0], x[1]), (-y[0], y[1]))
    return -value, error


_running: dict[tuple, list[Enclosed]] = {}


def _accumulated(node: Node, t: int, start: Enclosed, combine: Callable[[Enclosed, Enclosed], Enclosed]) -> Enclosed:
    if t > LONGEST_SUM:
        raise UnknownError("a sum out of reach")
    if len(_running) > 400:
        _running.clear()
    known = _running.setdefault((node, start, combine, mp.prec), [start])
    while len(known) <= t:
        known.append(combine(known[-1], value(node, len(known))))
    return known[t]


def _share(weights: Node, initial: Fraction, t: int) -> Enclosed:
    weight, start = value(weights, t), _literal(initial)
    if weight[0] <= 0 and _mag(weight[0]) - 1 > weight[1]:
        raise UndefinedError("a weight that is not positive")
    if weights.is_constant:
        total = _add(start, _multiply((mpf(t), _EXACT), weight))
    else:
        total = _accumulated(weights, t, start, _add)
    return _divide(weight, total)


def _product(factor: Node, t: int) -> Enclosed:
    if factor.is_constant:
        return _whole_power(value(factor, 1), t)
    return _accumulated(factor, t, (mpf(1), _EXACT), _multiply)


def _binary(operation: Callable[[Enclosed, Enclosed], Enclosed]) -> Callable[[Node, int], Enclosed]:
    return lambda node, t: operation(value(node[1], t), value(node[2], t))


_VALUES: dict[str, Callable[[Node, int], Enclosed]] = {
    "number": _number,
    "t": lambda _, t: (mpf(t), _EXACT),
    "+": _binary(_add),
    "-": _binary(_subtract),
    "*": _binary(_multiply),
    "/": _binary(_divide),
    "^": _binary(_power),
    "max": _binary(_larger),
    "min": _binary(_smaller),
    "join": lambda node, t: value(node[2] if t < node[1] else node[3], t),
    "periodic": lambda node, t: value(node[1], (t - 1) % node[2] + 1),
    "function": lambda node, t: _FUNCTIONS[node[1]](value(node[2], t)),
    "weights": lambda node, t: _subtract((mpf(1), _EXACT), _share(node[1], node[2], t)),
    "correction": lambda node, t: _subtract((mpf(1), _EXACT), _product(node[1], t)),
}


def exact(node: Node, t: int) -> Fraction | None:
    """u_t as a fraction, where only rational operations lead to it and it stays small."""
    match node:
        case ("number", number):
            return number
        case ("t",):
            return Fraction(t)
        case ("+" | "-" | "*" | "/" | "max" | "min" as kind, left, right):
            a, b = exact(left, t), exact(right, t)
            if a is None or b is None or (kind == "/" and b == 0):
                return None
            return {
                "+": lambda: a + b,
                "-": lambda: a - b,
                "*": lambda: a * b,
                "/": lambda: a / b,
                "max": lambda: max(a, b),
                "min": lambda: min(a, b),
            }[kind]()
        case ("^", left, right):
            a, b = exact(left, t), exact(right, t)
            if a == 1 and b is not None:
                return a
            if a is None or b is None or b.denominator != 1 or abs(b) > 2000 or (a == 0 and b <= 0):
                return None
            return a ** int(b)
        case ("join", threshold, before, after):
            return exact(before if t < threshold else after, t)
        case ("periodic", body, period):
            return exact(body, (t - 1) % period + 1)
        case ("function", "abs", argument):
            inner = exact(argument, t)
            return None if inner is None else abs(inner)
    return None


_VANISHES = -3500


def digits_left(x: Enclosed) -> float:
    """How many binary digits of the value its error leaves."""
    return _mag(x[0]) - x[1] if x[0] else 0


def is_definite(x: Enclosed) -> bool:
    """Return True if the error leaves no doubt about the sign."""
    return _mag(x[0]) - 1 > x[1]


def settled(
    compute: Callable[[], Enclosed], digits: tuple[int, ...] = (50, 200, 1200), zero: bool = False
) -> tuple[int | None, mpf]:
    """(sign, value) with as many digits as the sign takes; the sign is None where it stays open.

    Args:
        compute: the number, in the present precision.
        digits: the precisions to try.
        zero: whether a number that vanishes to 1,050 digits is 0; far out it may be 0.5^t.
    """
    v = mpf(0)
    for precision in digits:
        with mp.workdps(precision):
            try:
                v, e = compute()
            except OUT_OF_REACH:
                continue
            if is_definite((v, e)):
                return (1 if v > 0 else -1), v
            if (v == 0 and e == _EXACT) or (zero and e < _VANISHES):
                return 0, v
    return None, v
