"""The home of every fact about a problem and a run: its value, where the value is from, and how it is said.

A theorem names the facts that it takes. What a certificate rests on, the options of the command and the JSON are
derived from the fields of `Setting`, so that a new fact is declared here and nowhere else.
"""

from __future__ import annotations

import json
import math
import operator
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from generic_adam.errors import TheoremError, meant, shown, told_as
from generic_adam.files import atomic_write

# Squares of numbers in this range, and shares of them, are doubles: a G^2 of 0 would leave the noise out.
_RANGE, _LARGEST_WHOLE = (1e-140, 1e140), 10**18

_Given = TypeVar("_Given")
_Kept = TypeVar("_Kept")


class SettingError(TheoremError):
    """A fact that is missing or impossible."""


class MissingError(SettingError):
    """A fact that a theorem takes and that is not known.

    Attributes:
        fact: its name.
    """

    def __init__(self, fact: str) -> None:
        super().__init__(kinds()[fact].missing)
        self.fact = fact


class Source(StrEnum):
    """The origin of a fact's value."""

    GIVEN = "given"
    ASSUMED = "assumed"
    MEASURED = "measured"
    DERIVED = "derived"


@dataclass(frozen=True)
class Fact:
    """One fact with its provenance.

    Attributes:
        value: the number, word or truth; None for a number that is assumed to exist and is not known.
        source: where the value is from.
        steps: the first and the last step of the run that a measured value is from.
        error: the standard error of an estimate; None for a measured value that is the largest seen.
        of: the facts that a derived value is derived from.
        name: the field of `Setting` that it is the value of, set there.

    Examples:
        >>> Fact(0.8, Source.MEASURED, steps=(1, 390), name="weights_bound").text
        'every weight stays within 0.8 (the largest seen in steps 1 to 390)'
    """

    value: Any
    source: Source = Source.GIVEN
    steps: tuple[int, int] | None = None
    error: float | None = None
    of: tuple[str, ...] = ()
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        with told_as(SettingError, "a fact:"):
            object.__setattr__(self, "source", Source(self.source))
            object.__setattr__(self, "of", tuple(self.of))
            if self.steps is not None:
                first, last = map(operator.index, self.steps)
                if not 1 <= first <= last:
                    raise SettingError(f"a fact: expected steps 1 <= first <= last, got {first} to {last}")
                object.__setattr__(self, "steps", (first, last))
            if self.error is not None:
                object.__setattr__(self, "error", number("a fact's standard error", self.error, may_be_zero=True))
        if (self.source is Source.MEASURED) != (self.steps is not None):
            raise SettingError("a fact: expected `steps`, the first and the last, of a measured value and of no other")
        if self.error is not None and self.source is not Source.MEASURED:
            raise SettingError("a fact: expected a standard error of a measured value only")

    @property
    def told(self) -> str:
        """The provenance in words; empty for a value that was given."""
        match self.source:
            case Source.GIVEN:
                return ""
            case Source.ASSUMED:
                return "assumed"
            case Source.DERIVED:
                return f"from {', '.join(self.of)}"
            case Source.MEASURED:
                first, last = self.steps or (0, 0)
                if self.error is None:
                    return f"the largest seen in steps {first:,} to {last:,}"
                return f"measured over steps {first:,} to {last:,}, standard error {self.error:.2g}"

    @property
    def text(self) -> str:
        """The fact in words, with its provenance."""
        kind = kinds()[self.name]
        phrase = (kind.unknown or kind.phrase) if self.value is None else kind.phrase.format(_in_words(self.value))
        return f"{phrase} ({self.told})" if self.told and self.value is not None else phrase

    def to_dict(self) -> Any:
        """Return a given value itself, any other as a dictionary."""
        value = list(cast("tuple[float, ...]", self.value)) if isinstance(self.value, tuple) else self.value
        if self.source is Source.GIVEN:
            return value
        rest = {"steps": self.steps and list(self.steps), "error": self.error, "of": list(self.of)}
        return {"value": value, "source": str(self.source)} | {name: one for name, one in rest.items() if one}


def _in_words(value: Any) -> str:
    if isinstance(value, tuple):
        return "a number of its own for each weight"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, eq=False)
class Kind(Generic[_Given, _Kept]):
    """The declaration of one field of `Setting`: how its value is read and how it is said.

    Args:
        read: the name and the given value -> the value that is kept; it raises where that cannot be.
        phrase: the fact in words, with the value at {}.
        unknown: the fact in words where only the existence of a number is assumed; "" for the phrase.
        missing: why a theorem that takes the fact does not apply without it.
        option: the option of the command and its metavar; empty for none.
        help: the text of that option.
        of_text: the type of its value on the command line; bool is a flag.
        default: the value where nothing is known.
    """

    read: Callable[[str, Any], Any]
    phrase: str
    _: KW_ONLY
    unknown: str = ""
    missing: str = ""
    option: str = ""
    help: str = ""
    of_text: type = float
    default: Any = None
    name: str = field(default="", init=False)

    def __set_name__(self, _owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __get__(self, instance: object | None, _owner: type) -> _Kept:
        return self.default if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: object, value: _Given | Fact) -> None:
        fact = value if isinstance(value, Fact) else None
        given: Any = value if fact is None else fact.value
        kept = self.default if given is None else self.read(self.name, given)
        # `Setting.__post_init__` takes the provenance off again.
        instance.__dict__[self.name] = kept if fact is None else replace(fact, value=kept, name=self.name)


def number(name: str, value: Any, *, may_be_zero: bool) -> float:
    """Return a number that is positive, or not negative, and within 1e-140 and 1e140.

    Raises:
        SettingError: it is no such number; the message names it.
    """
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    least, most = _RANGE
    if may_be_zero and 0 < found < least:
        return least  # every bound rises with it
    if not (least <= found <= most or (found == 0 and may_be_zero)):
        expected = "a number that is not negative" if may_be_zero else "a positive number"
        beyond = f", from {least:g} to {most:g}" if 0 < found < math.inf else ""
        raise SettingError(f"{name} is {shown(value)}, expected {expected}{beyond}")
    return found


def _one_or_each(name: str, value: Any, *, may_be_zero: bool) -> float | tuple[float, ...]:
    # An array or a tensor of no dimension has a length by its type, and is one number.
    if not hasattr(value, "__len__") or isinstance(value, str) or not getattr(value, "ndim", 1):
        return number(name, value, may_be_zero=may_be_zero)
    return tuple(number(f"{name}[{k}]", one, may_be_zero=may_be_zero) for k, one in enumerate(value))


def _whole(name: str, value: float) -> int:
    try:
        # A whole float such as 25.6e6 is how people write the size of a network.
        found = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = 0
    if isinstance(value, bool) or not 1 <= found <= _LARGEST_WHOLE:
        raise SettingError(f"{name} is {shown(value)}, expected a whole number from 1 to {_LARGEST_WHOLE:g}")
    return found


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{name} is {shown(value)}, expected True or False")
    return value


def _one_of(*words: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in words:
            raise SettingError(f"{name} is {shown(value)}, expected {' or '.join(map(repr, words))}")
        return value

    return read


_positive, _from_zero = partial(number, may_be_zero=False), partial(number, may_be_zero=True)
_positive_each, _from_zero_each = (partial(_one_or_each, may_be_zero=zero) for zero in (False, True))
_Number = Kind[float | None, float | None]
_Each = Kind[float | Sequence[float] | None, float | tuple[float, ...] | None]


@dataclass(frozen=True, kw_only=True, repr=False)
class Setting:
    r"""The known facts about the problem and the run.

    Each argument is a plain value, which counts as given, or a `Fact` with its provenance. An attribute is the plain
    value, and ``facts[name]`` the fact; what is not known is None (of a truth: False) and not among the facts.

    Attributes:
        smoothness: :math:`L \ge 0`, the Lipschitz constant of the gradient.
        gradient_bound: :math:`G > 0` with :math:`\mathbb{E}_t\|g_t\|^2 \le G^2` whatever the past; or one number for
            each weight, :math:`\mathbb{E}_t g_{t,k}^2 \le G_k^2`, which gives bounds up to :math:`\sqrt d` smaller.
        gradient_norm: a number that the norm of no stochastic gradient exceeds.
        gradient_sup: :math:`|g_{t,k}| \le G_k` at every step, one number for all weights or one for each.
        variance: a bound on :math:`\mathbb{E}_t\|g_t - \nabla f(x_t)\|^2`, or one for each weight.
        full_batch: every gradient is exact.
        dimension: :math:`d`, the number of weights.
        gap: :math:`f(x_1) - f^* \ge 0`.
        weights_bound: :math:`X` with :math:`|x_t|_\infty \le X` at every step.
        noise: "symmetric" where the noise of each weight's gradient is symmetric and has one peak.
        update_rms: a number that the root mean square of no tensor's update exceeds before it is clipped (Adafactor).
        smooth_samples: the gradient of every example's loss is Lipschitz, not only that of their mean.
        batches_per_epoch: the number of optimizer steps in one pass over the data.
        batch: the number of examples in one optimizer step; it turns steps into samples.
        sampling: how the data are drawn: "shuffled" anew or in any order in each of several epochs, with "replacement",
            or "streaming", each example once.
        convex: convex losses on a bounded domain, with projection.
        loss: the kind of training; the loss of "rl" and "gan" changes during the run, which no theorem covers.
        facts: the facts by name; what is passed here is the provenance of values that are equal, for
            `dataclasses.replace`.

    Examples:
        >>> known = Setting(smoothness=1, weights_bound=Fact(0.8, Source.MEASURED, steps=(1, 390)))
        >>> known.weights_bound, str(known.facts["weights_bound"].source), known.gap
        (0.8, 'measured', None)
        >>> known.said("weights_bound", "gap", "smoothness")
        ('every weight stays within 0.8 (the largest seen in steps 1 to 390)', 'the gradient is 1-Lipschitz')
    """

    smoothness: _Number = Kind(
        _from_zero,
        "the gradient is {}-Lipschitz",
        missing="it asks for the smoothness L of the loss",
        option="--smoothness L",
        help="How fast the gradient can change, its Lipschitz constant (1 in bound, unless given).",
    )
    gradient_bound: _Each = Kind(
        _positive_each,
        "the root mean square of the gradient's norm is at most {}",
        missing="it asks for a bound on the gradient's second moment",
        option="--gradient-bound G",
        help="Largest root mean square of the gradient's norm (in bound --gradient-norm, or 1).",
    )
    gradient_norm: _Number = Kind(
        _from_zero,
        "no gradient is longer than {}",
        unknown="no gradient is longer than some number",
        missing="it asks for a bound on every stochastic gradient",
        option="--gradient-norm G",
        help="Assume that no gradient's norm exceeds G.",
    )
    gradient_sup: _Each = Kind(
        _positive_each,
        "no entry of a gradient exceeds {}",
        unknown="every stochastic gradient is bounded",
        missing="it asks for a bound |g_k| <= G_k that always holds (`gradient_sup`)",
    )
    variance: _Each = Kind(
        _from_zero_each,
        "the variance of the gradients is at most {}",
        option="--variance V",
        help="Largest variance of the gradients.",
    )
    full_batch: Kind[bool, bool] = Kind(
        _flag,
        "every gradient is exact (a full batch)",
        missing="it is about exact gradients (a full batch)",
        option="--full-batch",
        help="Assume that every gradient is exact.",
        of_text=bool,
        default=False,
    )
    dimension: Kind[float | None, int | None] = Kind(
        _whole,
        "there are {} weights",
        missing="it asks for the number of weights",
        option="--dimension D",
        help="The number of weights (1 in bound, unless given).",
    )
    gap: _Number = Kind(
        _from_zero,
        "the loss starts {} above its infimum at most",
        missing="it asks for the gap f(x_1) - f*",
        option="--gap GAP",
        help="Initial loss minus the best loss (1 in bound, unless given).",
    )
    weights_bound: _Number = Kind(
        _from_zero,
        "every weight stays within {}",
        unknown="the weights stay bounded",
        missing="it asks for a bound on the weights",
        option="--weights-bound X",
        help="Assume that all weights stay within X.",
    )
    noise: Kind[Literal["symmetric"] | None, Literal["symmetric"] | None] = Kind(
        _one_of("symmetric"),
        "the noise of each weight's gradient is {} and has one peak",
        missing="it asks for symmetric noise",
        option="--noise KIND",
        help="symmetric: assume that the noise of each weight's gradient is symmetric, with one peak.",
        of_text=str,
    )
    update_rms: _Number = Kind(
        _from_zero,
        "the root mean square of a tensor's update stays within {} before it is clipped",
        missing="it asks for a bound on the updates before they are clipped",
        option="--update-rms R",
        help="Largest root mean square of a tensor's update before it is clipped (Adafactor).",
    )
    smooth_samples: Kind[bool, bool] = Kind(
        _flag,
        "the gradient of every example's loss is Lipschitz",
        missing="it asks for examples whose losses are smooth one by one",
        option="--smooth-samples",
        help="The gradient of every example's loss is Lipschitz.",
        of_text=bool,
        default=False,
    )
    batches_per_epoch: Kind[float | None, int | None] = Kind(
        _whole,
        "an epoch has {} batches",
        missing="it asks for the number of batches in an epoch",
        option="--batches-per-epoch N",
        help="The number of steps in one pass over the data.",
    )
    batch: Kind[float | None, int | None] = Kind(_whole, "a step has {} examples")
    sampling: Kind[str | None, str | None] = Kind(
        _one_of("shuffled", "replacement", "streaming"),
        "the data are drawn by {}",
        missing="it asks how the data are drawn",
        option="--sampling HOW",
        help="shuffled (in epochs), replacement, or streaming (each example once).",
        of_text=str,
    )
    convex: Kind[bool, bool] = Kind(
        _flag,
        "the losses are convex, on a bounded domain with projection",
        missing="it is about convex losses on a bounded domain, with projection",
        option="--convex",
        help="Convex losses on a bounded domain: ask for regret too.",
        of_text=bool,
        default=False,
    )
    loss: Kind[str | None, str | None] = Kind(
        _one_of("fixed", "supervised", "finetune", "rl", "gan"),
        "the kind of training is {}",
        option="--setting KIND",
        help="Kind of training: supervised, finetune, rl or gan (to the last two the theory does not apply).",
        of_text=str,
    )
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact], hash=False)

    def __post_init__(self) -> None:
        earlier, found = dict(self.facts), dict[str, Fact]()
        for name, kind in kinds().items():
            stored = self.__dict__[name]
            value = self.__dict__[name] = stored.value if isinstance(stored, Fact) else stored
            if value == kind.default:
                continue
            known = earlier.get(name)
            if isinstance(stored, Fact):
                found[name] = stored
            elif known is not None and known.value == value:
                found[name] = replace(known, name=name)
            else:  # a changed value is no longer the measured one
                found[name] = Fact(value, name=name)
        object.__setattr__(self, "facts", found)
        for name, fact in found.items():
            many = len(fact.value) if isinstance(fact.value, tuple) else None
            if many is not None and many != self.dimension is not None:
                expected = f"expected one for each of {self.dimension} coordinates"
                raise SettingError(f"{name} has {many} numbers, {expected}")

    def __repr__(self) -> str:
        told = (f"{name}={fact.value if fact.source is Source.GIVEN else fact!r}" for name, fact in self.facts.items())
        return f"Setting({', '.join(told)})"

    def knows(self, name: str) -> bool:
        """Return whether the fact is known (of a truth: whether it holds)."""
        return name in self.facts

    def needed(self, *names: str) -> tuple[Fact, ...]:
        """Return the known facts of these names, for a derived one the facts that it is from."""
        found: dict[str, Fact] = {}
        for fact in (self.facts[name] for name in names if name in self.facts):
            origins = [one for one in fact.of if one in self.facts] if fact.source is Source.DERIVED else []
            found |= {one: self.facts[one] for one in origins} or {fact.name: fact}
        return tuple(found.values())

    def said(self, *names: str) -> tuple[str, ...]:
        """Return the known facts of these names in words, with their provenance."""
        return tuple(fact.text for fact in self.needed(*names))

    def with_assumed(self, **values: Any) -> Setting:
        """Return the setting with these values assumed where nothing is known."""
        new = {name: Fact(value, Source.ASSUMED) for name, value in values.items() if not self.knows(name)}
        return replace(self, **new) if new else self

    def completed(self, **otherwise: Any) -> Setting:
        """Return the setting with the facts that follow from others, and with these assumed where nothing is known.

        A fact is derived from facts that are not derived themselves: from a norm follow bounds on the entries, and
        from those no larger norm again.
        """
        norm, sup, count = self.gradient_norm, self.gradient_sup, self.dimension
        found: dict[str, tuple[Any, tuple[str, ...]]] = {}
        if self.full_batch:
            found["variance"] = 0.0, ("full_batch",)
        elif self.variance == 0 or (isinstance(self.variance, tuple) and not any(self.variance)):
            found["full_batch"] = True, ("variance",)
        if norm:
            found |= dict.fromkeys(("gradient_sup", "gradient_bound"), (norm, ("gradient_norm",)))
        elif sup is not None and (isinstance(sup, tuple) or count is not None):
            each = isinstance(sup, tuple)
            of = ("gradient_sup",) if each else ("gradient_sup", "dimension")
            # Up by more than the rounding of the root and of the sum.
            whole = (1 + 1e-15) * (math.hypot(*sup) if isinstance(sup, tuple) else math.sqrt(count or 1) * sup)
            found |= {"gradient_norm": (whole, of), "gradient_bound": (sup if each else whole, of)}
        derived = {
            name: Fact(value, Source.DERIVED, of=of)
            for name, (value, of) in found.items()
            if not self.knows(name) and all(self.facts[one].source is not Source.DERIVED for one in of)
        }
        return (replace(self, **derived) if derived else self).with_assumed(**otherwise)

    def for_run(self, steps: int) -> Setting:
        """Return what is known of a run of so many steps: in one epoch, shuffled or not, each example is seen once."""
        batches = self.batches_per_epoch
        if self.sampling != "shuffled" or batches is None or steps > batches:
            return self
        return replace(self, sampling=Fact("streaming", Source.DERIVED, of=("batches_per_epoch",)))

    def to_dict(self) -> dict[str, Any]:
        """Return the known facts in plain types: a given value itself, any other with its provenance."""
        return {name: fact.to_dict() for name, fact in self.facts.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Setting:
        """Return the setting that `to_dict` wrote.

        Raises:
            SettingError: a fact is unknown or impossible.
        """
        found: dict[str, Any] = {}
        with told_as(SettingError, "no setting that `to_dict` wrote:"):
            for name, value in data.items():
                if name not in kinds():
                    raise SettingError(f"a setting has no fact {shown(name)}; {meant(str(name), kinds())}")
                found[name] = Fact(**value) if isinstance(value, Mapping) else value
            return cls(**found)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Setting:
        """Read the facts of a JSON file that `save` wrote, or of the entry "setting" in such a file.

        Raises:
            SettingError: the file cannot be read, or holds no setting.
        """
        with told_as(SettingError, f"{os.fspath(path)}:"):
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(data, dict):
                raise SettingError(f"{os.fspath(path)}: expected an object with facts, got {shown(data)}")
            return cls.from_dict(cast("dict[str, Any]", data).get("setting", data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the facts as JSON; a file of that name is replaced whole.

        Raises:
            OutputError: the file cannot be written.
        """
        with told_as(SettingError, f"{os.fspath(path)}:"), atomic_write(path) as file:
            file.write(json.dumps(self.to_dict(), indent=2) + "\n")


def Assumptions(**values: Any) -> Setting:
    """Return a `Setting`, of which this is an earlier name."""
    warnings.warn("`Assumptions` is now `Setting`, with the same names", DeprecationWarning, stacklevel=2)
    return Setting(**values)


def Problem(*four: Any, epsilon: float | None = None, box: float | None = None, **values: Any) -> Setting:
    """Return a `Setting`, of which this is an earlier name: L, G, d, the gap and v_0 in this order.

    Raises:
        SettingError: epsilon is given, which is no fact about the problem.
    """
    told = "`Problem` is now `Setting`, with names only; `box` is `weights_bound`, and `epsilon` is v_0 of an Algorithm"
    warnings.warn(told, DeprecationWarning, stacklevel=2)
    given = dict(zip(("smoothness", "gradient_bound", "dimension", "gap", "epsilon"), four, strict=False))
    if given.pop("epsilon", epsilon) not in {None, 1e-8}:
        raise SettingError("Problem has no epsilon any more, expected it as Algorithm(method, initial_v=epsilon)")
    return Setting(**given, weights_bound=box, **values)


def kinds() -> dict[str, Kind[Any, Any]]:
    """Return the declarations of the facts by name."""
    return _KINDS


_KINDS: dict[str, Kind[Any, Any]] = {
    one.name: vars(Setting)[one.name] for one in fields(Setting) if isinstance(vars(Setting).get(one.name), Kind)
}
