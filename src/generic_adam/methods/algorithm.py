"""The subject of certificates: a Method and how its step is carried out, as data that theorems look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from fractions import Fraction
from functools import partial
from types import NoneType
from typing import Any, Literal

from generic_adam.errors import MethodError, told_as
from generic_adam.methods.method import Method, Read, ScheduleLike, exact_number, read_schedule
from generic_adam.schedules import Multiply, Schedule, as_schedule
from generic_adam.schedules.sums import SumError, whole_steps

PAPERS_INITIAL_V = 1e-8
"""v_0 where a Method alone is handed over: the paper's epsilon, which it never gives a value."""

_ZERO = as_schedule(0)
_HALF = Fraction(1, 2)


def _one_of(*kinds: type[Any]) -> Callable[[str, Any], Any]:
    """Return the reader of a field that holds an instance of one of these classes."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise MethodError(f"{name}: expected a {kinds[0].__name__}, got {type(value).__name__}")
        return value

    return read


def _not_negative(name: str, value: ScheduleLike) -> Schedule:
    schedule = read_schedule(name, value)
    if isinstance(schedule, Multiply) and _ZERO in schedule.children:
        return _ZERO  # lambda = 0 times a rate: whether the rate has values is asked of alpha
    first = schedule(1)
    if not first >= 0:
        raise MethodError(f"{name}: expected a number >= 0 at every t, got {first:g} at t = 1")
    return schedule


def _steps(name: str, value: int | None) -> int | None:
    try:
        return None if value is None else whole_steps(value, name)
    except SumError as error:
        raise MethodError(str(error)) from None


def _several(kind: type[Any]) -> Callable[[str, Sequence[Any]], tuple[Any, ...]]:
    """Return the reader of a field that holds any number of instances of a class."""

    def read(name: str, value: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(_one_of(kind)(name, one) for one in _one_of(list, tuple)(name, value))

    return read


def _parts(name: str, value: Sequence[Algorithm]) -> tuple[Algorithm, ...]:
    return _several(Algorithm)(name, value)  # where the fields are declared, the class has no name yet


@dataclass(frozen=True)
class Nesterov:
    r"""Momentum that looks ahead: x_{t+1} = x_t - alpha_t (a_t m_t + b_t g_t) / D_t (NAdam).

    Attributes:
        momentum_weight: a_t >= 0.
        gradient_weight: b_t >= 0.
    """

    momentum_weight: Read[ScheduleLike, Schedule] = Read(read_schedule)
    gradient_weight: Read[ScheduleLike, Schedule] = Read(read_schedule)


@dataclass(frozen=True)
class HeavyBall:
    r"""Momentum after the division: b_t = mu b_{t-1} + g_t / D_t, x_{t+1} = x_t - alpha_t b_t (RMSprop).

    Attributes:
        factor: mu, 0 <= mu < 1.
        rate_inside: whether the learning rate is inside the buffer, b_t = mu b_{t-1} + alpha_t g_t / D_t.
    """

    factor: Read[float | Fraction, Fraction] = Read(exact_number)
    rate_inside: bool = False


_CLIPPED = {
    "norm": "gradients are clipped to norm",
    "value": "gradients are clipped to values of",
    "update": "updates are clipped to a root mean square of",
}


@dataclass(frozen=True)
class Clipping:
    """Gradients (or updates) that are scaled down where they are large.

    Attributes:
        threshold: the largest size that is left alone.
        kind: what is measured: the norm of the whole gradient, each value, or the update's root mean square.
    """

    threshold: Read[float, float] = Read(lambda _name, size: float(exact_number("clipping", size, above=0)))
    kind: Literal["norm", "value", "update"] = "norm"

    def __post_init__(self) -> None:
        if self.kind not in _CLIPPED:
            raise MethodError(f"clipping: expected a kind of {', '.join(_CLIPPED)}, got {self.kind!r}")


@dataclass(frozen=True, repr=False)
class Algorithm:
    r"""One optimizer as it runs: three sequences, and what its step does beside them.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2 \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t \\
        x_{t+1} &= (1 - \nu_t) x_t - \alpha_t m_t / D_t, \qquad D_t = \sqrt{v_t} + e_t

    The defaults are the paper's Generic Adam. torch's Adam has v_0 = 0, e_t = eps sqrt(1 - theta^t) and the
    bias correction as a part of alpha_t.

    Numbers and texts are taken where a schedule is meant.

    Attributes:
        method: alpha_t as it multiplies the step (bias correction included), beta_t and theta_t.
        initial_v: v_0 >= 0.
        eps: e_t, what is added to the root of v_t; the constant 0 where nothing is.
        eps_under_root: D_t = sqrt(v_t + e_t^2) in place of sqrt(v_t) + e_t.
        l2: lambda of a decay inside the gradient, g_t + lambda x_t.
        decay: nu_t of a decoupled decay, as it multiplies x_t (torch's AdamW: lr_t lambda).
        running_maximum: v_t is replaced by its running maximum in D_t (AMSGrad).
        power: p of D_t = v_t^p + e_t; 1/2 but for Padam.
        nesterov: look-ahead momentum, or None.
        heavy_ball: momentum after the division, or None; m_t = g_t then.
        clipping: what is scaled down, or None.
        preconditioned: False for D_t = 1: plain stochastic gradient descent.
        delayed: D_t is made of gradients before g_t and divides g_t before the momentum (ADOPT, AdaShift).
        factored: the second moments of matrices are kept as rows and columns (Adafactor); the square of an eps under
            the root is then what is added to every squared gradient.
        centered: v_t has the squared mean gradient taken off (RMSprop).
        scaled: the step of each tensor is multiplied by the root mean square of its parameters (Adafactor).
        maximize: the step climbs: x_t and g_t are those of -f, which is what the theorems then speak of.
        outside: what it does that no attribute here can say, one phrase each; no theorem covers it.
        notes: how it was read, one phrase each.
        label: what people call it.
        source: where it was read.
        horizon: the number of steps of the run, where that is known.
        groups: the parameter groups that it holds for.
        others: the other algorithms of the same optimizer, for parameter groups with other sequences.

    Raises:
        MethodError: a value is of the wrong kind or outside its range.

    Examples:
        >>> adam = Algorithm(Method(1e-3, 0.9, 0.999), initial_v=0, eps=1e-8)
        >>> adam.departures
        ('v_0 = 0', 'eps_t = 1e-08 is added to sqrt(v_t)')
    """

    method: Read[Method, Method] = Read(_one_of(Method))
    _: KW_ONLY
    initial_v: Read[float, float] = Read(lambda name, v: float(exact_number(name, v, at_least=0)), PAPERS_INITIAL_V)
    eps: Read[ScheduleLike, Schedule] = Read(_not_negative, 0)
    eps_under_root: Read[bool, bool] = Read(_one_of(bool), False)
    l2: Read[float | Fraction, Fraction] = Read(partial(exact_number, at_least=0), 0)
    decay: Read[ScheduleLike, Schedule] = Read(_not_negative, 0)
    running_maximum: Read[bool, bool] = Read(_one_of(bool), False)
    power: Read[float | Fraction, Fraction] = Read(partial(exact_number, above=0, at_most=0.5), 0.5)
    nesterov: Read[Nesterov | None, Nesterov | None] = Read(_one_of(Nesterov, NoneType), None)
    heavy_ball: Read[HeavyBall | None, HeavyBall | None] = Read(_one_of(HeavyBall, NoneType), None)
    clipping: Read[Clipping | None, Clipping | None] = Read(_one_of(Clipping, NoneType), None)
    preconditioned: Read[bool, bool] = Read(_one_of(bool), True)
    delayed: Read[bool, bool] = Read(_one_of(bool), False)
    factored: Read[bool, bool] = Read(_one_of(bool), False)
    centered: Read[bool, bool] = Read(_one_of(bool), False)
    scaled: Read[bool, bool] = Read(_one_of(bool), False)
    maximize: Read[bool, bool] = Read(_one_of(bool), False)
    outside: Read[Sequence[str], tuple[str, ...]] = Read(_several(str), ())
    notes: Read[Sequence[str], tuple[str, ...]] = Read(_several(str), ())
    label: Read[str, str] = Read(_one_of(str), "")
    source: Read[str, str] = Read(_one_of(str), "")
    horizon: Read[int | None, int | None] = Read(_steps, None)
    groups: Read[Sequence[int], tuple[int, ...]] = Read(_several(int), (0,))
    others: Read[Sequence[Algorithm], tuple[Algorithm, ...]] = Read(_parts, ())

    @property
    def parts(self) -> tuple[Algorithm, ...]:
        """This algorithm and the others of the same optimizer, in the order of their first group."""
        return tuple(sorted((replace(self, others=()), *self.others), key=lambda part: part.groups))

    @property
    def departures(self) -> tuple[str, ...]:
        """The departures of the step from the paper's Generic Adam, one phrase each, in the order of the fields."""
        root = "sqrt(v_t)" if self.power == _HALF else f"v_t^({self.power})"
        place = "is squared and added to v_t under the root" if self.eps_under_root else f"is added to {root}"
        said = (
            self.initial_v == 0 and "v_0 = 0",
            self.eps != _ZERO and f"eps_t = {self.eps} {place}",
            self.l2 and f"weight decay of {float(self.l2):g} inside the gradient",
            self.decay != _ZERO and f"decoupled weight decay, x_t shrinks by {self.decay}",
            self.running_maximum and "v_t is replaced by its running maximum",
            self.power != _HALF and f"v_t is raised to the power {self.power} in place of 1/2",
            self.nesterov and "Nesterov momentum",
            self.heavy_ball and f"heavy-ball momentum of {float(self.heavy_ball.factor):g} after the division",
            self.clipping and f"{_CLIPPED[self.clipping.kind]} {self.clipping.threshold:g}",
            not self.preconditioned and "the step is not divided by anything (stochastic gradient descent)",
            self.delayed and "the divisor is made of earlier gradients only",
            self.factored and "second moments of matrices are factored into rows and columns",
            self.centered and "the squared mean gradient is taken off v_t",
            self.scaled and "the step is multiplied by the root mean square of its tensor's parameters",
        )
        return (*(phrase for phrase in said if isinstance(phrase, str)), *self.outside)

    def beyond(self, *runs: str) -> str | None:
        """Return the first thing this does that the paper's algorithm with these fields of it does not, or None."""
        if self.maximize and "maximize" not in runs:
            return "it climbs (maximize=True)"
        run = Algorithm(self.method, **{name: getattr(self, name) for name in runs})
        missed = (phrase for phrase in self.departures if phrase not in run.departures)
        return next(missed, "its groups have sequences of their own" if self.others else None)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, and only what differs from the paper's algorithm; `from_dict` reads it back."""
        plain = Algorithm(self.method)
        settings = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        differ = {name: _plain(value) for name, value in settings.items() if value != getattr(plain, name)}
        return {name: str(getattr(self.method, name)) for name in ("alpha", "beta", "theta")} | differ

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Algorithm:
        """Return the algorithm that `to_dict` wrote; one made of callables has no text to come back from."""
        with told_as(MethodError, "no algorithm that `to_dict` wrote:"):
            settings = {name: _FROM_PLAIN.get(name, lambda value: value)(value) for name, value in data.items()}
            method = Method(*(settings.pop(name) for name in ("alpha", "beta", "theta")))
            known = {field.name for field in fields(cls)}
            for name in settings.keys() - known:
                raise MethodError(f"an algorithm has no {name!r}; it has {', '.join(sorted(known))}")
            return cls(method.checked(), **settings)

    def __repr__(self) -> str:
        beside = f" with {'; '.join(self.departures)}" if self.departures else ""
        return f"Algorithm({self.label or 'Generic Adam'}: {self.method!r}{beside})"


def as_algorithm(subject: Method | Algorithm) -> Algorithm:
    """Return the algorithm itself, or the paper's for a Method alone (v_0 = 1e-8, nothing added)."""
    return subject if isinstance(subject, Algorithm) else Algorithm(subject)


def merged(parts: Sequence[Algorithm]) -> Algorithm:
    """One algorithm for all parameter groups: parts that differ in their groups alone become one part.

    Decay and no-decay groups, the commonest set-up, share their sequences: the decay of the largest is what
    a theorem has to survive, so the two are one part with the larger decay.
    """
    found: list[Algorithm] = []
    for part in parts:
        for index, earlier in enumerate(found):
            joint = _joined(earlier, part)
            if joint is not None:
                found[index] = joint
                break
        else:
            found.append(part)
    return replace(found[0], others=tuple(found[1:]))


def _joined(one: Algorithm, other: Algorithm) -> Algorithm | None:
    """One algorithm for the groups of both, or None where more than decay of nothing tells them apart."""
    first, second = replace(one, groups=(), notes=()), replace(other, groups=(), notes=())
    notes = tuple(dict.fromkeys((*one.notes, *other.notes)))
    groups = tuple(sorted({*one.groups, *other.groups}))
    if first == second:
        return replace(one, groups=groups, notes=notes)
    for decayed, bare, where in ((first, second, other.groups), (second, first, one.groups)):
        if bare.decay == _ZERO and replace(bare, decay=decayed.decay) == decayed:
            names = f"group {where[0]} has" if len(where) == 1 else f"groups {', '.join(map(str, where))} have"
            note = f"{names} no decay"
            return replace(decayed, groups=groups, notes=(*notes, note))
    return None


def _plain(value: object) -> object:
    match value:
        case Schedule() | Fraction():
            return str(value)
        case Nesterov() | HeavyBall() | Clipping():
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case tuple():
            return [one.to_dict() if isinstance(one, Algorithm) else one for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _fraction(value: Any) -> Fraction:
    # A file may be anybody's: the digits of 1e99999999 would fill the memory.
    if isinstance(value, str) and not re.fullmatch(r"[+-]?\d+(\.\d+|/\d+)?", value):
        raise MethodError(f"expected a fraction such as 1/8, got {value[:20]!r}")
    return Fraction(value)


_FROM_PLAIN: dict[str, Callable[[Any], Any]] = {
    "l2": _fraction,
    "power": _fraction,
    "nesterov": lambda data: Nesterov(**data),
    "heavy_ball": lambda data: HeavyBall(_fraction(data["factor"]), data["rate_inside"]),
    "clipping": lambda data: Clipping(**data),
    "others": lambda parts: [Algorithm.from_dict(part) for part in parts],
}
