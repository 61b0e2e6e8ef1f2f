r"""Exact forms of numbers: when sqrt(8) sqrt(2) is 4 and sqrt(2)/2 is sqrt(0.5), whatever their digits say.

A number is written as a sum of products :math:`\sum_k c_k \prod_j a_j^{p_{jk}}`, with fractions :math:`c_k, p_{jk}`,
over atoms :math:`a_j`: primes, :math:`e^x`, and every part that no rule knows, so that equal forms are equal numbers. A
form does not tell that a number exists (0 log(-1) has the form 0): whoever asks knows that it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, reduce
from typing import Any

from flint import fmpz

from generic_adam.schedules import tree
from generic_adam.schedules.tree import Schedule, Table, remembered

Product = frozenset[tuple[Any, Fraction]]
Form = dict[Product, Fraction]
Order = Callable[[Schedule, Schedule], int | None]
Parts = Callable[..., Form]

_UNIT, _ONE = Product(), Fraction(1)
# What would be longer is left as it is: the terms of a form, the bits of its numbers, of a number to be factored.
_MOST_TERMS, _LONGEST, _LONGEST_FACTORED = 32, 2048, 64


def exact_form(node: Schedule, t: int = 1, order: Order = lambda _left, _right: None) -> Form:
    """Return the exact form of u_t; `order` may tell 1 or -1 where one part is above or below the other at t."""

    @cache  # an atom asks again for the parts of which no rule made a form
    def form(part: Schedule, at: int = t) -> Form:
        return _constant_form(part) if part.is_constant else exact_form(part, at, order)

    if isinstance(node, tree.Maximum | tree.Minimum) and (ahead := order(node.left, node.right)):
        return form(node.left if (ahead > 0) == isinstance(node, tree.Maximum) else node.right)
    found = form_of[type(node)](node, form, t)
    if found is not None:
        return found
    name = node.name if isinstance(node, tree.Function) else ""
    return _atom((type(node), name, *(frozenset(form(child).items()) for child in node.children)))


_constant_form = remembered(exact_form)


def fraction_of(form: Form) -> Fraction | None:
    """The fraction that a form is, if it is one."""
    return form.get(_UNIT, Fraction(0)) if form.keys() <= {_UNIT} else None


def _number(value: Fraction) -> Form:
    return {_UNIT: value} if value else {}


def _atom(atom: Any, exponent: Fraction = _ONE) -> Form:
    return {Product({(atom, exponent)} if exponent else ()): _ONE}


def _plus(a: Form, b: Form, factor: int | Fraction = 1) -> Form:
    total = {part: a.get(part, Fraction(0)) + factor * b.get(part, Fraction(0)) for part in {*a, *b}}
    return {part: c for part, c in total.items() if c}


def _product(factor: Fraction, *parts: Product) -> Form:
    """Return a product as a form: exponents added; whole powers of numbers go into the factor."""
    exponents: dict[Any, Fraction] = {}
    for atom, exponent in (item for part in parts for item in part):
        exponents[atom] = exponents.get(atom, Fraction(0)) + exponent
    for atom, exponent in exponents.items():
        if isinstance(atom, int):
            factor, exponents[atom] = factor * Fraction(atom) ** math.floor(exponent), exponent % 1
    return {Product(item for item in exponents.items() if item[1]): factor}


def _times(a: Form, b: Form) -> Form | None:
    if len(a) * len(b) > _MOST_TERMS:
        return None
    product = reduce(_plus, (_product(c * d, p, q) for p, c in a.items() for q, d in b.items()), Form())
    longest = max((max(map(int.bit_length, c.as_integer_ratio())) for c in product.values()), default=0)
    return product if longest <= _LONGEST else None


def _power(base: Form, exponent: Fraction) -> Form | None:
    if exponent.denominator == 1 and 0 < exponent <= 8:
        result: Form | None = base
        for _ in range(int(exponent) - 1):
            result = None if result is None else _times(result, base)
        return result
    if len(base) != 1:
        return None
    ((part, factor),) = base.items()
    sides = factor.numerator, factor.denominator
    if max(side.bit_length() for side in sides) * abs(exponent) > _LONGEST:
        return None
    kinds: set[Any] = {atom[0] if isinstance(atom, tuple) else type(atom) for atom, _ in part}
    raised = Product((atom, power * exponent) for atom, power in part)
    if exponent.denominator == 1:  # what may be 0 has no inverse
        return _product(factor ** int(exponent), raised) if kinds <= {int, "e"} else None
    # A root of a product is the product of the roots where every atom is positive: a number, a power of e.
    if factor < 0 or not kinds <= {int, "e"}:
        return None
    roots = [Product({(prime, power * exponent)}) for prime, power in _primes(factor)]
    return _product(_ONE, raised, *roots)


def _primes(factor: Fraction) -> list[tuple[int, int]]:
    """Numbers above 1 and powers whose product is the factor: primes, where it is short enough."""
    found: list[tuple[int, int]] = []
    for side, sign in ((factor.numerator, 1), (factor.denominator, -1)):
        primes = fmpz(side).factor() if side.bit_length() <= _LONGEST_FACTORED else [(side, 1)]
        found += [(int(prime), int(power) * sign) for prime, power in primes]
    return found


def _exponential(x: Form) -> Form:
    """Return e^x: the power x of one atom where x is a fraction, else an atom of its own."""
    value = fraction_of(x)
    return _atom(("e",), value) if value is not None else _atom(("e", frozenset(x.items())))


def _logarithm(x: Form) -> Form | None:
    """Return log x where x is one power of e."""
    total = Form()
    for part, factor in x.items():
        for atom, power in part:
            match atom:
                case ("e", *y) if len(x) == 1 == factor:
                    total = _plus(total, dict(y[0]) if y else _number(_ONE), power)
                case _:
                    return None
    return total if len(x) == 1 and x.keys() != {_UNIT} else None


def _applied(name: str, x: Form) -> Form | None:
    """Return a named function of a number, or None where no rule is known."""
    value = fraction_of(x)
    match name:
        case "sqrt":
            return _power(x, Fraction(1, 2)) if x else x
        case "exp":
            return _exponential(x)
        case "log":
            return _logarithm(x)
        case "expm1":
            return _plus(_exponential(x), _number(_ONE), -1)
        case "abs" if value is not None:
            return _number(abs(value))
        case _:
            return None


def _divided(node: tree.Divide, form: Parts, _t: int) -> Form | None:
    inverse = _power(form(node.right), -_ONE)
    return None if inverse is None else _times(form(node.left), inverse)


def _raised(node: tree.Power, form: Parts, _t: int) -> Form | None:
    exponent = fraction_of(form(node.right))
    return None if exponent is None else _power(form(node.left), exponent)


form_of: Table[Callable[[Any, Parts, int], Form | None]] = Table("exact forms")
"""Node, the forms of its parts, t -> the form of u_t, or None where it is an atom."""
form_of.update(
    {
        tree.Constant: lambda node, _form, _t: _number(node.value),
        tree.Time: lambda _node, _form, t: _number(Fraction(t)),
        tree.Add: lambda node, form, _t: _plus(form(node.left), form(node.right)),
        tree.Subtract: lambda node, form, _t: _plus(form(node.left), form(node.right), -1),
        tree.Multiply: lambda node, form, _t: _times(form(node.left), form(node.right)),
        tree.Divide: _divided,
        tree.Power: _raised,
        tree.Negate: lambda node, form, _t: _plus({}, form(node.operand), -1),
        tree.Function: lambda node, form, _t: _applied(node.name, form(node.argument)),
        **dict.fromkeys((tree.Maximum, tree.Minimum), lambda _node, _form, _t: None),
        tree.Join: lambda node, form, t: form(node.before if t < node.threshold else node.after),
        tree.Periodic: lambda node, form, t: form(node.body, (t - 1) % node.period + 1),
        tree.Bounded: lambda node, form, _t: form(node.operand),
        **dict.fromkeys(
            (tree.WeightShare, tree.WeightedTheta, tree.BiasCorrection, tree.Opaque),
            lambda node, _form, t: _atom((node, t)),
        ),
    }
)
