"""What is certified: a Method and how its step is carried out, as data that theorems look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

from generic_adam.errors import MethodError
from generic_adam.methods.method import Method, ScheduleLike, exact_number, read_schedule
from generic_adam.schedules import Schedule, as_schedule

PAPERS_INITIAL_V = 1e-8
"""v_0 where a Method alone is handed over: the paper's epsilon, which it never gives a value."""

_ZERO = as_schedule(0)
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Nesterov:
    r"""Momentum that looks ahead: x_{t+1} = x_t - alpha_t (a_t m_t + b_t g_t) / D_t (NAdam).

    Attributes:
        momentum_weight: a_t >= 0.
        gradient_weight: b_t >= 0.
    """

    momentum_weight: Schedule
    gradient_weight: Schedule


@dataclass(frozen=True)
class HeavyBall:
    r"""Momentum after the division: b_t = mu b_{t-1} + g_t / D_t, x_{t+1} = x_t - alpha_t b_t (RMSprop).

    Attributes:
        factor: mu, 0 <= mu < 1.
        rate_inside: whether the learning rate is inside the buffer, b_t = mu b_{t-1} + alpha_t g_t / D_t.
    """

    factor: Fraction
    rate_inside: bool = False


@dataclass(frozen=True)
class Clipping:
    """Gradients (or updates) that are scaled down where they are large.

    Attributes:
        threshold: the largest size that is left alone.
        kind: what is measured: the norm of the whole gradient, each value, or the update's root mean square.
    """

    threshold: float
    kind: Literal["norm", "value", "update"] = "norm"

    def __post_init__(self) -> None:
        exact_number("clipping", self.threshold, above=0)


@dataclass(frozen=True, init=False, repr=False)
class Algorithm:
    r"""One optimizer as it runs: three sequences, and what its step does beside them.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2, \qquad m_t = \beta_t m_{t-1} + (1 - \beta_t) g_t \\
        D_t &= \sqrt{v_t} + e_t, \qquad x_{t+1} = (1 - \nu_t) x_t - \alpha_t m_t / D_t

    The defaults are the paper's Generic Adam. torch's Adam has v_0 = 0, e_t = eps sqrt(1 - theta^t) and the
    bias correction as a part of alpha_t.

    Args:
        method: alpha_t as it multiplies the step (bias correction included), beta_t and theta_t.
        **settings: any attribute below by name; numbers and texts are taken where a schedule is meant.

    Attributes:
        method: the three sequences.
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
        factored: the second moments of matrices are kept as rows and columns (Adafactor).
        centered: v_t has the squared mean gradient taken off (RMSprop).
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

    method: Method
    initial_v: float
    eps: Schedule
    eps_under_root: bool
    l2: Fraction
    decay: Schedule
    running_maximum: bool
    power: Fraction
    nesterov: Nesterov | None
    heavy_ball: HeavyBall | None
    clipping: Clipping | None
    preconditioned: bool
    delayed: bool
    factored: bool
    centered: bool
    outside: tuple[str, ...]
    notes: tuple[str, ...]
    label: str
    source: str
    horizon: int | None
    groups: tuple[int, ...]
    others: tuple[Algorithm, ...]

    def __init__(
        self,
        method: Method,
        *,
        initial_v: float = PAPERS_INITIAL_V,
        eps: ScheduleLike = 0,
        eps_under_root: bool = False,
        l2: float | Fraction = 0,
        decay: ScheduleLike = 0,
        running_maximum: bool = False,
        power: float | Fraction = _HALF,
        nesterov: Nesterov | None = None,
        heavy_ball: HeavyBall | None = None,
        clipping: Clipping | None = None,
        preconditioned: bool = True,
        delayed: bool = False,
        factored: bool = False,
        centered: bool = False,
        outside: Sequence[str] = (),
        notes: Sequence[str] = (),
        label: str = "",
        source: str = "",
        horizon: int | None = None,
        groups: Sequence[int] = (0,),
        others: Sequence[Algorithm] = (),
    ) -> None:
        if not isinstance(method, Method):  # pyright: ignore[reportUnnecessaryIsInstance] - people pass optimizers
            raise MethodError(f"method: expected a Method, got {type(method).__name__}")
        if horizon is not None and (isinstance(horizon, bool) or horizon != int(horizon) or horizon < 1):
            raise MethodError(f"horizon: expected a whole number of steps >= 1, got {horizon!r}")
        values: dict[str, object] = {
            "method": method,
            "initial_v": float(exact_number("initial_v", initial_v, at_least=0)),
            "eps": _not_negative("eps", eps),
            "eps_under_root": eps_under_root,
            "l2": exact_number("l2", l2, at_least=0),
            "decay": _not_negative("decay", decay),
            "running_maximum": running_maximum,
            "power": exact_number("power", power, above=0, at_most=0.5),
            "nesterov": nesterov,
            "heavy_ball": heavy_ball,
            "clipping": clipping,
            "preconditioned": preconditioned,
            "delayed": delayed,
            "factored": factored,
            "centered": centered,
            "outside": tuple(outside),
            "notes": tuple(notes),
            "label": label,
            "source": source,
            "horizon": None if horizon is None else int(horizon),
            "groups": tuple(groups),
            "others": tuple(others),
        }
        for name, value in values.items():  # the class is frozen: past its own __setattr__
            object.__setattr__(self, name, value)

    @property
    def parts(self) -> tuple[Algorithm, ...]:
        """This algorithm and the others of the same optimizer, in the order of their first group."""
        return tuple(sorted((replace(self, others=()), *self.others), key=lambda part: part.groups))

    @property
    def departures(self) -> tuple[str, ...]:
        """What the step does that the paper's Generic Adam does not, one phrase each."""
        return tuple(_departures(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, and only what differs from the paper's algorithm; `from_dict` reads it back."""
        plain = Algorithm(self.method)
        result: dict[str, Any] = {
            name: str(getattr(self.method, name)) for name in ("alpha", "beta", "theta")
        }
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value != getattr(plain, field.name):
                result[field.name] = _plain(value)
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Algorithm:
        """The algorithm that `to_dict` wrote; one made of callables has no text to come back from."""
        settings = dict(data)
        method = Method(*(settings.pop(name) for name in ("alpha", "beta", "theta")))
        nested = {"nesterov": _nesterov_from, "heavy_ball": _heavy_ball_from, "clipping": _clipping_from}
        for name, read in nested.items():
            if name in settings:
                settings[name] = read(settings[name])
        for name in ("l2", "power"):
            if name in settings:
                settings[name] = Fraction(settings[name])
        settings["others"] = [cls.from_dict(other) for other in settings.get("others", ())]
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise MethodError(f"an algorithm has no {unknown[0]!r}; it has {', '.join(sorted(known))}")
        return cls(method, **settings)

    def __repr__(self) -> str:
        beside = f" with {'; '.join(self.departures)}" if self.departures else ""
        return f"Algorithm({self.label or 'Generic Adam'}: {self.method!r}{beside})"


def as_algorithm(subject: Method | Algorithm) -> Algorithm:
    """The algorithm itself, or the paper's for a Method alone (v_0 = 1e-8, nothing added)."""
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
            note = f"groups {', '.join(map(str, where))} have no decay"
            return replace(decayed, groups=groups, notes=(*notes, note))
    return None


def _departures(x: Algorithm) -> list[str]:
    """The phrases of `departures`, in the order of the fields."""
    said: list[str] = []
    if x.initial_v == 0:
        said.append("v_0 = 0")
    if x.eps != _ZERO:
        place = "its square is added to v_t under the root" if x.eps_under_root else "is added to sqrt(v_t)"
        said.append(f"eps_t = {x.eps} {place}")
    if x.l2:
        said.append(f"weight decay of {float(x.l2):g} inside the gradient")
    if x.decay != _ZERO:
        said.append(f"decoupled weight decay, x_t shrinks by {x.decay}")
    if x.running_maximum:
        said.append("v_t is replaced by its running maximum")
    if x.power != _HALF:
        said.append(f"v_t is raised to the power {x.power} in place of 1/2")
    if x.nesterov is not None:
        said.append("Nesterov momentum")
    if x.heavy_ball is not None:
        said.append(f"heavy-ball momentum of {float(x.heavy_ball.factor):g} after the division")
    if x.clipping is not None:
        what = {"norm": "gradients are clipped to norm", "value": "gradients are clipped to values of"}
        size = what.get(x.clipping.kind, "updates are clipped to a root mean square of")
        said.append(f"{size} {x.clipping.threshold:g}")
    for flag, phrase in (
        (not x.preconditioned, "the step is not divided by anything (stochastic gradient descent)"),
        (x.delayed, "the divisor is made of earlier gradients only"),
        (x.factored, "second moments of matrices are factored into rows and columns"),
        (x.centered, "the squared mean gradient is taken off v_t"),
    ):
        if flag:
            said.append(phrase)
    return [*said, *x.outside]


def _not_negative(name: str, value: ScheduleLike) -> Schedule:
    schedule = read_schedule(name, value)
    first = schedule(1)
    if not first >= 0:
        raise MethodError(f"{name}: expected a number >= 0 at every t, got {first:g} at t = 1")
    return schedule


def _plain(value: object) -> object:
    match value:
        case Schedule() | Fraction():
            return str(value)
        case Nesterov(a, b):
            return {"momentum_weight": str(a), "gradient_weight": str(b)}
        case HeavyBall(factor, inside):
            return {"factor": str(factor), "rate_inside": inside}
        case Clipping(threshold, kind):
            return {"threshold": threshold, "kind": kind}
        case tuple():
            return [one.to_dict() if isinstance(one, Algorithm) else one for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _nesterov_from(data: Mapping[str, str]) -> Nesterov:
    return Nesterov(as_schedule(data["momentum_weight"]), as_schedule(data["gradient_weight"]))


def _heavy_ball_from(data: Mapping[str, Any]) -> HeavyBall:
    return HeavyBall(Fraction(data["factor"]), bool(data["rate_inside"]))


def _clipping_from(data: Mapping[str, Any]) -> Clipping:
    return Clipping(float(data["threshold"]), data["kind"])
