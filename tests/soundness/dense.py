"""Every step of a beginning and around every join, in balls: what the oracle's coarse grid may pass over.

The trees are the oracle's own, and so is this evaluation; nothing of the decision is used. A violation is a ball
of definite sign, or a step that surely has no value; whatever a ball leaves open proves nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from flint import arb, ctx, fmpq

from tests.soundness.enclosed import Node
from tests.soundness.oracle import read, thresholds

BITS = 400
EARLY = 500
AROUND = 30
Evaluator = Callable[[int], arb]
_NAN = arb.nan()


class NoValueError(ArithmeticError):
    """Surely no number: a root or a logarithm of what is negative, a division by exactly 0."""


def _quotient(a: arb, b: arb) -> arb:
    if b == 0:
        raise NoValueError
    return a / b


def _constant(node: Node) -> Evaluator:
    number = arb(fmpq(node[1].numerator, node[1].denominator))
    return lambda _t: number


def _power(node: Node) -> Evaluator:
    base, exponent = evaluator(node[1]), evaluator(node[2])
    whole = int(node[2][1]) if node[2][0] == "number" and node[2][1].denominator == 1 else None

    def power(t: int) -> arb:
        b = base(t)
        if whole is not None:
            return b**whole if whole >= 0 else _quotient(arb(1), b**-whole)
        e = exponent(t)
        if (b == 0 and e < 0) or (b < 0 and node[2][0] == "number"):
            raise NoValueError
        return arb(0) if b == 0 and e > 0 else b**e

    return power


def _running(part: Evaluator, start: arb, step: Callable[[arb, arb], arb]) -> Evaluator:
    known = [start]

    def total(t: int) -> arb:
        while len(known) <= t <= EARLY + 1:
            known.append(step(known[-1], part(len(known))))
        return known[t] if t < len(known) else _NAN

    return total


def _weights(node: Node) -> Evaluator:
    weight = evaluator(node[1])
    initial = arb(fmpq(node[2].numerator, node[2].denominator))
    total = _running(weight, initial, lambda a, b: a + b)
    return lambda t: _quotient(total(t - 1), total(t))


def _correction(node: Node) -> Evaluator:
    product = _running(evaluator(node[1]), arb(1), lambda a, b: a * b)
    return lambda t: 1 - product(t)


def _function(node: Node) -> Evaluator:
    name, inner = node[1], evaluator(node[2])
    if name == "abs":
        return lambda t: abs(inner(t))

    def function(t: int) -> arb:
        x = inner(t)
        if (name == "sqrt" and x < 0) or (name == "log" and x <= 0) or (name == "log1p" and x <= -1):
            raise NoValueError
        return getattr(x, name)()

    return function


def _join(node: Node) -> Evaluator:
    threshold, before, after = node[1], evaluator(node[2]), evaluator(node[3])
    return lambda t: before(t) if t < threshold else after(t)


def _periodic(node: Node) -> Evaluator:
    body, period = evaluator(node[1]), node[2]
    return lambda t: body((t - 1) % period + 1)


def _of_two(operation: Callable[[arb, arb], arb]) -> Callable[[Node], Evaluator]:
    def build(node: Node) -> Evaluator:
        left, right = evaluator(node[1]), evaluator(node[2])
        return lambda t: operation(left(t), right(t))

    return build


_BUILT: dict[str, Callable[[Node], Evaluator]] = {
    "number": _constant,
    "t": lambda _node: arb,
    "+": _of_two(lambda a, b: a + b),
    "-": _of_two(lambda a, b: a - b),
    "*": _of_two(lambda a, b: a * b),
    "/": _of_two(_quotient),
    "^": _power,
    "max": _of_two(lambda a, b: a.max(b)),
    "min": _of_two(lambda a, b: a.min(b)),
    "join": _join,
    "periodic": _periodic,
    "function": _function,
    "weights": _weights,
    "correction": _correction,
}


def evaluator(node: Node) -> Evaluator:
    """t -> u_t as a ball of the present precision."""
    return _BUILT[node[0]](node)


class Values:
    """The values of one sequence where they are looked at; `missing` are the steps that surely have none."""

    def __init__(self, text: str) -> None:
        self.node = read(text)
        self.at: dict[int, arb] = {}
        self.missing: set[int] = set()
        self._of = evaluator(self.node)

    def __getitem__(self, t: int) -> arb:
        if t not in self.at:
            try:
                self.at[t] = self._of(t)
            except NoValueError:
                self.at[t] = _NAN
                self.missing.add(t)
        return self.at[t]


@functools.lru_cache(maxsize=64)
def values(text: str) -> Values:
    """The values of a text, kept."""
    return Values(text)


def steps(*sequences: Values) -> list[int]:
    """Every step of the beginning, and those around joins and the zeros of t - K, in order."""
    found = set(range(1, EARLY + 1))
    for one in sequences:
        for cut in thresholds(one.node):
            found |= set(range(cut - AROUND, cut + AROUND))
    return sorted(t for t in found if t >= 1)


Finding = tuple[str, str]


def wrong(
    alpha: str,
    beta: str,
    theta: str,
    statuses: tuple[str, ...],
    witnesses: tuple[int | None, ...],
    constant: float | None,
) -> list[Finding]:
    """Return the faults of an answer: each with its kind and its place."""
    before, ctx.prec = ctx.prec, BITS
    try:
        sequences = values(alpha), values(beta), values(theta)
        found = [*_wrong_holds(*sequences, statuses), *_wrong_witness(sequences[2], statuses, witnesses)]
        if statuses[2] == "holds" and constant is not None:
            found += _low_constant(sequences[0], sequences[2], constant)
        return found
    finally:
        ctx.prec = before


def _wrong_holds(alpha: Values, beta: Values, theta: Values, statuses: tuple[str, ...]) -> Iterator[Finding]:
    if statuses[0] == "holds":
        for t in steps(beta):
            if beta[t] < 0 or beta[t] >= 1 or t in beta.missing:
                yield "wrong holds", f"beta leaves [0, 1) at t = {t}"
    if statuses[1] == "holds":
        for t in steps(theta):
            falls = t > 1 and theta[t] < theta[t - 1]
            if theta[t] <= 0 or theta[t] >= 1 or falls or t in theta.missing:
                yield "wrong holds", f"theta leaves (0, 1) or falls at t = {t}"
    if statuses[2] == "holds":
        for t in steps(alpha, theta):
            if alpha[t] <= 0 or theta[t] >= 1 or t in alpha.missing | theta.missing:
                yield "wrong holds", f"chi is not positive at t = {t}"


def _low_constant(alpha: Values, theta: Values, constant: float) -> Iterator[Finding]:
    """C0 against the largest chi_t / chi_i with i <= t that is seen."""
    least, rise = None, arb(1)
    for t in steps(alpha, theta):
        chi = alpha[t] / (1 - theta[t]).sqrt()
        if not chi > 0:
            continue
        if least is not None and chi / least > rise:
            rise = (chi / least).lower()
        least = chi.upper() if least is None or chi.upper() < least else least
    if arb(constant) * (1 + arb(2) ** -50) < rise:
        yield "C0 too low", f"{constant!r} is below {rise.str(20, radius=False)}"


def _wrong_witness(theta: Values, statuses: tuple[str, ...], witnesses: tuple[int | None, ...]) -> Iterator[Finding]:
    """A step that is said to refute (R2): theta is inside (0, 1) there, and above the step before."""
    t = witnesses[1]
    if statuses[1] == "fails" and t is not None and 0 < theta[t] < 1 and (t == 1 or theta[t] > theta[t - 1]):
        yield "wrong witness", f"theta does not fall at t = {t}"
