"""The truth about a method, found without generic_adam: texts read, evaluated and expanded by mpmath alone.

Values have 50 digits or more and a bound on their error, at a beginning, around every join and far out; what
happens for ever is read off an asymptotic expansion. A refutation rests on values at one t; "holds" is the
expansion together with all the values that were looked at; anything else is unknown.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

from mpmath import mp, mpf

from tests.soundness import expansion
from tests.soundness.enclosed import (
    LONGEST_SUM,
    OUT_OF_REACH,
    TIME,
    Enclosed,
    Node,
    UndefinedError,
    complement,
    digits_left,
    exact,
    is_definite,
    settled,
    value,
)
from tests.soundness.expansion import CONSTANT, Key, Series, UnknownError, order_of, times

HOLDS, FAILS, UNKNOWN = "holds", "fails", "unknown"

_BEGINNING = 10
# Up to this t a number that vanishes to 1,050 digits is taken for 0.
_EARLY = 64
# From here on what rises is taken to rise for ever.
_LATE = 10**9
_WELL_BELOW_ONE = mpf("0.99")


# ---- reading -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2048)
def read(text: str) -> Node:
    """The tree of a text."""
    return _read(ast.parse(text.strip().replace("^", "**"), mode="eval").body, text.strip().replace("^", "**"))


def _read(node: ast.expr, source: str) -> Node:
    match node:
        case ast.Constant():
            return Node(("number", Fraction(source[node.col_offset : node.end_col_offset].replace("_", ""))))
        case ast.Name(id="t"):
            return TIME
        case ast.Name(id="pi"):
            # The language's pi is the decimal that a float of it prints.
            return Node(("number", Fraction("3.141592653589793")))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _folded("-", Node(("number", Fraction(0))), _read(operand, source))
        case ast.UnaryOp(operand=operand):
            return _read(operand, source)
        case ast.BinOp(left=left, op=operation, right=right):
            symbol = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}[type(operation)]
            return _folded(symbol, _read(left, source), _read(right, source))
        case ast.IfExp(test=ast.Compare(ops=[compared], comparators=[limit]), body=body, orelse=other):
            threshold = _read(limit, source)[1]
            before, after = _read(body, source), _read(other, source)
            if isinstance(compared, ast.Gt | ast.GtE):
                before, after = after, before
            inclusive = isinstance(compared, ast.LtE | ast.Gt)
            return Node(("join", floor(threshold) + 1 if inclusive else ceil(threshold), before, after))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _call(name, [_read(argument, source) for argument in arguments])
    raise ValueError(f"not part of the language: {ast.dump(node)}")


def _folded(symbol: str, left: Node, right: Node) -> Node:
    if left[0] == right[0] == "number":
        a, b = left[1], right[1]
        if symbol in "+-*":
            return Node(("number", {"+": a + b, "-": a - b, "*": a * b}[symbol]))
        if symbol == "/" and b:
            return Node(("number", a / b))
        if symbol == "^" and b.denominator == 1 and abs(b) < 200 and (a or b > 0):
            return Node(("number", a ** int(b)))
    return Node((symbol, left, right))


def _call(name: str, arguments: list[Node]) -> Node:
    if name in {"max", "min"}:
        result = arguments[0]
        for other in arguments[1:]:
            result = Node((name, result, other))
        return result
    if name == "clip":
        return Node(("min", Node(("max", arguments[0], arguments[1])), arguments[2]))
    if name == "theta_from_weights":
        return Node(("weights", arguments[0], arguments[1][1] if len(arguments) > 1 else Fraction(1)))
    if name == "periodic":
        return Node(("periodic", arguments[0], int(arguments[1][1])))
    if name == "bias_correction":
        return Node(("correction", arguments[0]))
    if name == "bounded":
        return arguments[0]
    return Node(("function", name, arguments[0]))


def thresholds(node: Node) -> set[int]:
    """Steps at which joins change over or a period begins again."""
    found: set[int] = set()
    for part in node.parts():
        if part[0] == "join":
            found.add(part[1])
        elif part[0] == "periodic":
            found |= {part[2] + 1, 2 * part[2] + 1}
    return found


# ---- for ever ------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2048)
def expand(node: Node) -> Series:
    """The expansion for large t; raises UnknownError where this oracle has none."""
    return _EXPANSIONS[node[0]](*node[1:])


def _complement_of(series: Series) -> Series:
    return expansion.add(expansion.constant(Fraction(1)), expansion.negate(series))


def _expanded_smaller(left: Node, right: Node) -> Series:
    return expansion.negate(expansion.largest(expansion.negate(expand(left)), expansion.negate(expand(right))))


def _expanded_power(base: Node, exponent: Node) -> Series:
    if exponent.is_constant:
        if exponent[0] == "number":
            return expansion.power(expand(base), exponent[1])
        with mp.workdps(expansion.DIGITS):
            return expansion.power(expand(base), value(exponent, 1)[0])
    return expansion.exponential(expansion.multiply(expand(exponent), expansion.logarithm(expand(base))))


def _expanded_period(body: Node, period: int) -> Series:
    if period > 400:
        raise UnknownError("a long period")
    with mp.workdps(60):
        values = [value(body, t)[0] for t in range(1, period + 1)]
    return expansion.swinging(min(values), max(values))


def _expanded_function(name: str, inner: Series) -> Series:
    one = expansion.constant(Fraction(1))
    match name:
        case "sqrt":
            return expansion.power(inner, Fraction(1, 2))
        case "log":
            return expansion.logarithm(inner)
        case "exp":
            return expansion.exponential(inner)
        case "abs":
            return expansion.absolute(inner)
        case "sin" | "cos":
            return expansion.sine(inner, 0 if name == "sin" else 1)
        case "expm1":
            return expansion.add(expansion.exponential(inner), expansion.negate(one))
        case _:
            return expansion.logarithm(expansion.add(one, inner))


def _expanded_share(weights: Node) -> Series:
    series = expand(weights)
    sums = expansion.partial_sums(series)
    rate = series.lead()[0][0]
    if rate > 0 and sums.lead()[1][0] != sums.lead()[1][1]:
        raise UnknownError("geometric weights that swing")
    return expansion.divide(series, sums)


def _expanded_correction(factor: Node) -> Series:
    if factor.is_constant:
        return _complement_of(_expanded_power(factor, TIME))
    sums = expansion.partial_sums(_complement_of(expand(factor)))
    if order_of(sums.lead()[0]) > 0:
        below = times(CONSTANT, expansion.LOGLOG, Fraction(-1, 1000))
        return Series(((CONSTANT, (Fraction(1), Fraction(1))),), below)
    raise UnknownError("the limit of a convergent product")


_EXPANSIONS: dict[str, Callable[..., Series]] = {
    "number": expansion.constant,
    "t": lambda: expansion.single(expansion.TIME),
    "+": lambda left, right: expansion.add(expand(left), expand(right)),
    "-": lambda left, right: expansion.add(expand(left), expansion.negate(expand(right))),
    "*": lambda left, right: expansion.multiply(expand(left), expand(right)),
    "/": lambda left, right: expansion.divide(expand(left), expand(right)),
    "^": _expanded_power,
    "max": lambda left, right: expansion.largest(expand(left), expand(right)),
    "min": _expanded_smaller,
    "join": lambda _threshold, _before, after: expand(after),
    "periodic": _expanded_period,
    "function": lambda name, argument: _expanded_function(name, expand(argument)),
    "weights": lambda weights, _initial: _complement_of(_expanded_share(weights)),
    "correction": _expanded_correction,
}


# ---- one sequence --------------------------------------------------------------------------------------


class Sequence:
    """One sequence as the oracle sees it: its values where they were asked for, and its expansion."""

    def __init__(self, text: str) -> None:
        self.node = read(text)
        self._near: dict[tuple[bool, int], Enclosed | None] = {}
        self._signs: dict[tuple[bool, int], tuple[int | None, mpf]] = {}

    @functools.cached_property
    def series(self) -> Series | None:
        """The expansion, where there is one."""
        return _or_none(lambda: expand(self.node))

    @functools.cached_property
    def missing(self) -> Series | None:
        """The expansion of 1 - u_t; where u is written as 1 - x, that of x, of which no digit cancels."""
        if self.node[0] == "-" and self.node[1] == read("1"):
            return _or_none(lambda: expand(self.node[2]))
        series = self.series
        return None if series is None else _or_none(lambda: _complement_of(series))

    @functools.cached_property
    def runs(self) -> bool:
        """True if a running sum or product is inside, so that far values cannot be had."""
        return any(
            part[0] == "weights" or (part[0] == "correction" and not part[1].is_constant) for part in self.node.parts()
        )

    @functools.cached_property
    def hides_a_join(self) -> bool:
        """True if a join is later than running sums are followed: nobody has seen what happens there."""
        return self.runs and max(thresholds(self.node), default=0) > LONGEST_SUM

    @functools.cached_property
    def turns(self) -> set[int]:
        """Steps around which the sequence changes its form."""
        found: set[int] = set(_crossings(self.node))
        for part in self.node.parts():
            # Where t - K is 0 something may have no value.
            if part[0] == "-" and TIME in part[1:] and any(side[0] == "number" for side in part[1:]):
                zero = floor(next(side[1] for side in part[1:] if side[0] == "number"))
                found |= {zero, zero + 1}
        for threshold in thresholds(self.node):
            found |= {threshold + shift for shift in (-3, -2, -1, 0, 1, 2)} | {2 * threshold}
        return found

    @functools.cached_property
    def times(self) -> list[int]:
        """The t at which this sequence is looked at."""
        return [1] if self.node.is_constant else looked_at(self)

    def near(self, t: int, missing: bool = False) -> Enclosed | None:
        """u_t (or 1 - u_t) and its error in 50 digits; None where they are not enough to say anything.

        Raises:
            UndefinedError: there is no value.
        """
        if (missing, t) not in self._near:
            with mp.workdps(50):
                try:
                    found = (complement if missing else value)(self.node, t)
                except OUT_OF_REACH:
                    found = None
            self._near[missing, t] = found
        return self._near[missing, t]

    def sign(self, t: int, missing: bool = False) -> tuple[int | None, mpf]:
        """The sign and the value of u_t (or 1 - u_t).

        Raises:
            UndefinedError: there is no value.
        """
        t = 1 if self.node.is_constant else t
        if (missing, t) not in self._signs:
            self._signs[missing, t] = self._computed(t, missing)
        return self._signs[missing, t]

    def _computed(self, t: int, missing: bool) -> tuple[int | None, mpf]:
        known = self.near(t, missing)
        if known is not None and is_definite(known):
            return (1 if known[0] > 0 else -1), known[0]
        rational = exact(self.node, t) if t <= 10**20 else None
        if rational is not None:
            rational = 1 - rational if missing else rational
            return (rational > 0) - (rational < 0), mpf(rational.numerator) / rational.denominator
        of = complement if missing else value
        return settled(lambda: of(self.node, t), (200, 1200), zero=t <= _EARLY)

    def accurate(self, t: int, missing: bool = False) -> mpf:
        """u_t (or 1 - u_t) to twenty digits, where they can be had."""
        t = 1 if self.node.is_constant else t
        known = self.near(t, missing)
        if known is not None and digits_left(known) > 70:
            return known[0]
        of = complement if missing else value
        for digits in (200, 1200):
            with mp.workdps(digits):
                try:
                    found = of(self.node, t)
                except OUT_OF_REACH:
                    continue
            if digits_left(found) > 70:
                return found[0]
        return self.sign(t, missing)[1]

    def inside(self, t: int) -> tuple[int | None, int | None]:
        """The signs of u_t and 1 - u_t; one value says both where it is well inside (0, 1)."""
        rest = self.near(t, missing=True)
        if rest is not None and is_definite(rest) and rest[1] < -9 and 0 < rest[0] < _WELL_BELOW_ONE:
            return 1, 1
        return self.sign(t)[0], self.sign(t, missing=True)[0]

    def leaves(self, t: int, below_one: bool) -> bool:
        """Return True if u_t < 0 or, if asked, u_t >= 1, or there is no value at all."""
        try:
            if not below_one:
                return self.sign(t)[0] == -1
            above, below = self.inside(t)
        except UndefinedError:
            return True
        return above == -1 or below in {0, -1}

    def falls(self, t: int, since: int | None = None) -> bool:
        """Return True if u_t < u_{t-1} (or u at an earlier t)."""
        before = t - 1 if since is None else since
        if t < 2 or before < 1:
            return False
        try:
            for missing in (True, False):  # near 1 its complement tells more, near 0 the number itself
                late, early = self.near(t, missing=missing), self.near(before, missing=missing)
                if late is not None and early is not None:
                    with mp.workdps(50):
                        difference = _difference(late, early) if missing else _difference(early, late)
                    if is_definite(difference):
                        return difference[0] > 0
            of = functools.partial(complement, self.node)
            sign, _ = settled(lambda: _difference(of(t), of(before)), (200, 1200))
        except UndefinedError:
            return False
        return sign == 1


@functools.lru_cache(maxsize=2048)
def sequence(text: str) -> Sequence:
    """The sequence of a text, with what was found out about it before."""
    return Sequence(text)


def looked_at(*sequences: Sequence) -> list[int]:
    """The t at which sequences are looked at together."""
    found = set(range(1, _BEGINNING + 1)) | _GRID
    for one in sequences:
        found |= one.turns
    latest = LONGEST_SUM - 2 if any(one.runs for one in sequences) else 10**60
    return sorted(t for t in found if 1 <= t <= latest)


def _or_none(compute: Callable[[], Series]) -> Series | None:
    try:
        return compute()
    except UnknownError:
        return None


# ---- truth ---------------------------------------------------------------------------------------------


@dataclass
class Truth:
    """The answers of the oracle.

    Attributes:
        conditions: "holds", "fails" or "unknown" for each of the four.
        constant_at_least: a lower bound on C0: the largest chi_t / chi_i with i <= t that was seen.
        ratio: the order of condition 4's ratio.
    """

    conditions: list[str]
    constant_at_least: mpf | None = None
    ratio: Key | None = None


class Subject:
    """One method as the oracle sees it."""

    def __init__(self, alpha: str, beta: str, theta: str) -> None:
        self.sequences = self.alpha, self.beta, self.theta = sequence(alpha), sequence(beta), sequence(theta)

    @functools.cached_property
    def times(self) -> list[int]:
        """The t at which chi_t is looked at."""
        return looked_at(self.alpha, self.theta)

    def truth(self) -> Truth:
        """Everything at once."""
        third, least = self.step_size()
        fourth, order = self.ratio()
        found = [self.momentum(), self.second_moment(), third]
        if any(one.hides_a_join for one in self.sequences):
            found = [UNKNOWN if one == HOLDS else one for one in found]
        return Truth([*found, fourth], least, order)

    def truth_up_to(self, steps: int) -> Truth:
        """The first three conditions on 1..T, from every value there is."""
        every = range(1, steps + 1)
        alpha, beta, theta = self.alpha, self.beta, self.theta
        first = FAILS if any(beta.leaves(t, True) for t in every) else HOLDS
        second = third = HOLDS
        for t in every:
            try:
                above, below = theta.inside(t)
                step = alpha.sign(t)[0]
            except UndefinedError:
                return Truth([first, UNKNOWN, UNKNOWN])
            if above in {0, -1} or below in {0, -1} or theta.falls(t):
                second = FAILS
            if step in {0, -1} or below in {0, -1}:
                third = FAILS
            if None in {above, below, step}:
                return Truth([first, UNKNOWN, UNKNOWN])
        return Truth([first, second, third], self._largest_ratio(every) if third == HOLDS else None)

    def valid(self) -> str:
        """Return True if alpha_t >= 0, 0 <= beta_t < 1 and 0 <= theta_t < 1 for every t."""
        asked = ((self.alpha, False), (self.beta, True), (self.theta, True))
        if any(one.leaves(t, upper) for one, upper in asked for t in one.times):
            return FAILS
        if self.alpha.node.is_constant and self.alpha.sign(1)[0] == 0:
            return FAILS
        for one, upper in asked:
            if one.series is None or one.missing is None:
                return UNKNOWN
            if not one.series.is_zero and not one.series.sign():
                return UNKNOWN
            if (one.series.sign() or 0) < 0 or (upper and (one.missing.sign() or 0) < 0):
                return FAILS
            if upper and not one.missing.sign():
                return UNKNOWN
        return HOLDS

    def momentum(self) -> str:
        """Condition 1."""
        beta = self.beta
        if any(beta.leaves(t, True) for t in beta.times):
            return FAILS
        missing, series = beta.missing, beta.series
        if missing is None or series is None:
            return UNKNOWN
        if missing.sign() == -1 or series.sign() == -1:
            return FAILS
        if missing.is_zero:  # to so many digits, and positive at every t that was looked at
            return HOLDS if beta.node.is_constant else UNKNOWN
        if missing.sign() is None or (series.sign() is None and not series.is_zero):
            return UNKNOWN
        return FAILS if order_of(missing.terms[0][0]) < 0 else HOLDS

    def second_moment(self) -> str:
        """Condition 2."""
        unclear, theta = False, self.theta
        for t in theta.times:
            try:
                above, below = theta.inside(t)
            except UndefinedError:
                return FAILS
            if above in {0, -1} or below in {0, -1} or theta.falls(t):
                return FAILS
            unclear |= above is None or below is None
        tail = HOLDS if theta.node.is_constant else _tail(theta.missing)
        return UNKNOWN if unclear and tail == HOLDS else tail

    def step_size(self) -> tuple[str, mpf | None]:
        """Condition 3, and the largest chi_t / chi_i with i <= t that was seen."""
        unclear = False
        for t in self.times:
            try:
                signs = self.alpha.sign(t)[0], self.theta.sign(t, missing=True)[0]
            except UndefinedError:
                return FAILS, None
            if 0 in signs or -1 in signs:
                return FAILS, None
            unclear |= None in signs
        largest = None if unclear else self._largest_ratio(self.times)
        alpha, missing = self.alpha.series, self.theta.missing
        if alpha is not None and alpha.is_zero:
            return FAILS, largest
        if alpha is None or missing is None or alpha.sign() != 1 or missing.sign() != 1:
            negative = alpha is not None and alpha.sign() == -1
            return FAILS if negative else UNKNOWN, largest
        if order_of(times(alpha.terms[0][0], missing.terms[0][0], Fraction(-1, 2))) > 0:
            return FAILS, largest
        return UNKNOWN if unclear else HOLDS, largest

    def _largest_ratio(self, every: Iterable[int]) -> mpf:
        with mp.workdps(50):
            found = [self.chi_squared(t) for t in every]
            least, best = found[0], mpf(1)
            for squared in found[1:]:
                best, least = max(best, squared / least), min(least, squared)
            return mp.sqrt(best)

    def chi_squared(self, t: int) -> mpf:
        """chi_t^2, at a t where both sequences have their signs."""
        return self.alpha.accurate(t) ** 2 / self.theta.accurate(t, missing=True)

    def refined_ratio(self) -> mpf:
        """A better lower bound on C0: around the pair of the largest ratio, between the t looked at."""
        grid = self.times
        with mp.workdps(50):
            values = [self.chi_squared(t) for t in grid]
            least, best = 0, (mpf(1), 0, 0)
            for here in range(1, len(grid)):
                if values[here] > best[0] * values[least]:
                    best = values[here] / values[least], here, least
                least = here if values[here] < values[least] else least
            ratio, high, low = best
            if high - low >= 2:  # else what is found on the left could lie right of the other
                ratio = self._climbed(grid, high, 1) / self._climbed(grid, low, -1)
            return mp.sqrt(max(ratio, best[0]))

    def _climbed(self, grid: list[int], index: int, direction: int) -> mpf:
        """The extreme chi^2 next to a point of the grid, by a ternary search on both sides of it."""
        best = self.chi_squared(grid[index])
        for low, high in ((max(index - 1, 0), index), (index, min(index + 1, len(grid) - 1))):
            start, stop = grid[low], grid[high]
            while stop - start > 2:
                third = (stop - start) // 3
                a, b = start + third, stop - third
                if direction * (self.chi_squared(a) - self.chi_squared(b)) < 0:
                    start = a
                else:
                    stop = b
                candidates = (best, self.chi_squared(a), self.chi_squared(b))
                best = max(candidates) if direction > 0 else min(candidates)
        return best

    def ratio(self) -> tuple[str, Key | None]:
        """Condition 4, and the order of its ratio."""
        alpha, missing = self.alpha.series, self.theta.missing
        if alpha is not None and alpha.is_zero:
            return FAILS, None
        if alpha is None or missing is None or alpha.sign() != 1 or missing.sign() != 1:
            return UNKNOWN, None
        key = alpha.terms[0][0]
        try:
            sums = _sums(times(key, missing.terms[0][0], Fraction(1, 2)))
        except UnknownError:
            return UNKNOWN, None
        order = times(times(sums, key, Fraction(-1)), expansion.TIME, Fraction(-1))
        return (HOLDS if order_of(order) < 0 else FAILS), order

    def weighted(self, *, eps: bool = False, heavy_ball: bool = False) -> tuple[str, Key | None]:
        """Theorem W for ever (SC' and SC''), and its rate.

        0 <= beta_t <= beta < 1, 0 < theta_t < 1, theta_t -> 1, alpha_t >= 0, its sum infinite. Where chi does not
        grow, the rate is max(1, sum alpha sqrt(1 - theta)) / sum alpha; where it grows,
        chi_T^2 max(1, sum (1 - theta)) / sum alpha, which has to tend to 0. Beside an eps theta_1 may be 0, and a heavy
        ball has no beta.
        """
        momentum, theta = HOLDS if heavy_ball else self.momentum(), self.theta
        if momentum == FAILS or any(self.alpha.leaves(t, False) for t in self.alpha.times):
            return FAILS, None
        unclear = momentum == UNKNOWN
        for t in theta.times:
            try:
                signs = theta.inside(t)
            except UndefinedError:
                return FAILS, None
            if -1 in signs or (0 in signs and not (eps and t == 1 and signs[1] == 1)):
                return FAILS, None
            unclear |= None in signs
        alpha, missing = self.alpha.series, theta.missing
        if alpha is None or missing is None or unclear:
            return UNKNOWN, None
        if alpha.is_zero or missing.is_zero or alpha.sign() == -1 or missing.sign() == -1:
            return FAILS, None
        if alpha.sign() is None or missing.sign() is None:
            return UNKNOWN, None
        step, rest = alpha.terms[0][0], missing.terms[0][0]
        if order_of(rest) >= 0:
            return FAILS, None
        chi = times(step, rest, Fraction(-1, 2))
        try:
            total = _sums(step)
            if order_of(total) <= 0:
                return FAILS, None
            if order_of(chi) <= 0:
                noise = _sums(times(step, rest, Fraction(1, 2)))
                order = times(_larger(CONSTANT, noise), total, Fraction(-1))
            else:
                order = times(times(_larger(CONSTANT, _sums(rest)), chi, Fraction(2)), total, Fraction(-1))
        except UnknownError:
            return UNKNOWN, None
        return (HOLDS if order_of(order) < 0 else FAILS), order

    def vanishing(self) -> tuple[str, Key | None]:
        """alpha_t >= 0 tends to 0 and its sum is infinite, beta_t <= beta < 1; max(1, sum alpha^2) / sum alpha."""
        momentum, alpha = self.momentum(), self.alpha.series
        if momentum == FAILS or any(self.alpha.leaves(t, False) for t in self.alpha.times):
            return FAILS, None
        if alpha is not None and (alpha.is_zero or alpha.sign() == -1):
            return FAILS, None
        if alpha is None or alpha.sign() is None or momentum == UNKNOWN:
            return UNKNOWN, None
        step = alpha.terms[0][0]
        try:
            total, squares = _sums(step), _sums(times(step, step))
        except UnknownError:
            return UNKNOWN, None
        fails = order_of(step) >= 0 or order_of(total) <= 0
        return FAILS if fails else HOLDS, times(_larger(CONSTANT, squares), total, Fraction(-1))

    def symmetric(self, *, heavy_ball: bool = False) -> tuple[str, Key | None]:
        """Theorem Y for ever: the steps vanish and their sum does not, theta stays above 0, and the drift vanishes.

        The drift is max(1, sum alpha^2) / sum alpha where chi does not grow, else chi_T^2 max(1, sum (1 - theta)) /
        sum alpha. A momentum that is not 0 has to vanish, beside a theta that stays below 1.
        """
        status, _ = self.vanishing()
        theta, alpha, missing, beta = self.theta, self.alpha.series, self.theta.missing, self.beta.series
        if status != HOLDS or alpha is None:
            return status, None
        for t in theta.times:
            try:
                signs = theta.inside(t)
            except UndefinedError:
                return FAILS, None
            if -1 in signs or (0 in signs and not (t == 1 and signs[1] == 1)):
                return FAILS, None
            if None in signs:
                return UNKNOWN, None
        if missing is None or missing.sign() != 1 or theta.series is None or theta.series.sign() != 1 or beta is None:
            return UNKNOWN, None
        step, rest = alpha.terms[0][0], missing.terms[0][0]
        if order_of(theta.series.terms[0][0]) < 0:
            return FAILS, None
        if not heavy_ball and not beta.is_zero and (order_of(beta.terms[0][0]) >= 0 or order_of(rest) < 0):
            return FAILS, None
        try:
            chi, total = times(step, rest, Fraction(-1, 2)), _sums(step)
            drift = _larger(CONSTANT, _sums(times(step, step) if order_of(chi) <= 0 else rest))
        except UnknownError:
            return UNKNOWN, None
        drift = drift if order_of(chi) <= 0 else times(drift, chi, Fraction(2))
        order = times(drift, total, Fraction(-1))
        return (HOLDS if order_of(order) < 0 else FAILS), order

    def shuffled(self) -> tuple[str, Key | None]:
        """Theorem RR for ever: W's for ever, beta constant, alpha and 1 - theta that fall, and alpha/(t (1 - theta)).

        That theta and alpha fall late is looked at where they have values; a rise there refutes it.
        """
        status, order = self.weighted(eps=True)
        alpha, missing = self.alpha.series, self.theta.missing
        if status != HOLDS or order is None or alpha is None or missing is None:
            return status, None
        if not self.beta.node.is_constant or alpha.terms[0][0][0] != 0:
            return UNKNOWN, None  # constant late, perhaps; geometric, and then there is no infinite sum
        for one, of_rest in ((self.alpha, False), (self.theta, True)):
            start = max([_LATE, *thresholds(one.node)])
            for t in (time for time in one.times if time >= start and not one.runs):
                step = one.near(t, missing=of_rest), one.near(2 * t, missing=of_rest)
                if None not in step and step[1][0] - step[0][0] > mpf(2) ** max(step[0][1], step[1][1]):
                    return FAILS, None
        even = times(times(alpha.terms[0][0], missing.terms[0][0], Fraction(-1)), expansion.TIME, Fraction(-1))
        if order_of(even) > 0:
            return UNKNOWN, None
        try:
            uneven = _larger(CONSTANT, _sums(times(alpha.terms[0][0], expansion.TIME, Fraction(-1))))
            return HOLDS, _larger(order, times(uneven, _sums(alpha.terms[0][0]), Fraction(-1)))
        except UnknownError:
            return UNKNOWN, None

    def decayed(self, decay: str) -> str:
        """The alpha-weighted mean of (nu_t / alpha_t)^2 tends to 0: what is left of it leaves no floor."""
        nu, alpha = sequence(decay).series, self.alpha.series
        if nu is None or alpha is None or alpha.sign() != 1 or nu.sign() != 1:
            return UNKNOWN
        step = alpha.terms[0][0]
        try:
            paid = _sums(times(times(nu.terms[0][0], nu.terms[0][0]), step, Fraction(-1)))
            return HOLDS if order_of(times(_larger(CONSTANT, paid), _sums(step), Fraction(-1))) < 0 else FAILS
        except UnknownError:
            return UNKNOWN


def not_negative(text: str, first: int) -> str:
    """Return True if u_t >= 0 for every t from a step on."""
    one = sequence(text)
    try:
        signs = {one.sign(t)[0] for t in one.times if t >= first or one.node.is_constant}
    except UndefinedError:
        return UNKNOWN
    series = one.series
    if -1 in signs or (series is not None and series.sign() == -1):
        return FAILS
    known = series is not None and (series.is_zero or series.sign() == 1)
    return HOLDS if known and None not in signs and not one.hides_a_join else UNKNOWN


def together(*answers: str) -> str:
    """Return the truth about several at once."""
    return next((one for one in (FAILS, UNKNOWN) if one in answers), HOLDS)


def _sums(key: Key) -> Key:
    """The order of the partial sums of a positive sequence of this order."""
    return expansion.partial_sums(expansion.single(key)).lead()[0]


def _larger(one: Key, other: Key) -> Key:
    return one if expansion.compare(one, other) >= 0 else other


def _tail(missing: Series | None) -> str:
    """Return True if 1 - theta_t stays in (0, 1) and does not rise, from some t on."""
    if missing is None:
        return UNKNOWN
    if missing.is_zero or missing.sign() == -1:
        return FAILS
    if missing.sign() is None:
        return UNKNOWN
    key, coefficient = missing.terms[0]
    if order_of(key) > 0:
        return FAILS
    if missing.oscillates:
        return UNKNOWN
    if order_of(key) < 0:
        return HOLDS
    if coefficient[0] > 1:
        return FAILS
    following = missing.tail()
    if following.is_zero:
        return HOLDS
    return UNKNOWN if following.sign() is None else HOLDS if following.sign() == 1 else FAILS


def _difference(late: Enclosed, early: Enclosed) -> Enclosed:
    """The difference of two values, with its error."""
    found = late[0] - early[0]
    rounding = mp.mag(max(abs(late[0]), abs(early[0]))) - mp.prec if late[0] or early[0] else -math.inf
    return found, max(late[1], early[1], rounding) + 2


_GRID = {int(1.55**k) for k in range(5, 33)} | {10**k for k in (7, 9, 12, 17, 24, 40)} | {2**53}
_SEARCHED = sorted({1, 2, 3} | _GRID)


def _crossings(node: Node) -> Iterator[int]:
    """Steps next to where the two sides of a max or min change places, between points of a grid."""
    for part in node.parts():
        if part[0] not in {"max", "min"}:
            continue

        def above(t: int, part: Node = part) -> bool | None:
            try:
                return value(part[1], t)[0] > value(part[2], t)[0]
            except (UndefinedError, UnknownError, OverflowError, ValueError):
                return None

        with mp.workdps(50):
            states = [(t, above(t)) for t in _SEARCHED]
            for (start, first), (stop, second) in pairwise(states):
                if first is None or second is None or first == second:
                    continue
                low, high = start, stop
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if above(middle) == first else (low, middle)
                yield from (low - 1, low, high, high + 1)
