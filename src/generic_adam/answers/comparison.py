"""Two configurations side by side: what differs, and whether the second is guaranteed more or less."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from generic_adam.answers.json import SCHEMA, plain, summary
from generic_adam.answers.words import Line, words_of
from generic_adam.certification import certify
from generic_adam.errors import GenericAdamError, TheoremError
from generic_adam.parts import Part
from generic_adam.schedules import parse
from generic_adam.schedules.work import Undecided
from generic_adam.setting import Setting
from generic_adam.theorems.repairs import largest_of
from generic_adam.theorems.theorem import Answer

_SAME = 1e-3  # a share of the bound that is no change
_LARGEST = 1 << 20
_VERDICTS = {1: "better", 0: "the same", -1: "worse"}
_PLAIN = ("optimizer", "beta1", "beta2", "clipping")
_BY_STEP = {"lr": "lr", "weight_decay": "decay a step", "eps": "eps"}


@dataclass(frozen=True)
class Difference(Part):
    """One thing in which two configurations differ.

    Attributes:
        name: "lr", "beta2", "steps", or the name of a fact.
        before: its value in the first, None for none.
        after: its value in the second.
    """

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Comparison(Part):
    """Two answers and what became of the guarantee from the first to the second.

    Attributes:
        before: the first answer in short, as `check --json` prints it.
        after: the second.
    """

    also: ClassVar[tuple[str, ...]] = ("verdict", "differences")
    rest: ClassVar[tuple[str, ...]] = ("before", "after")

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def sign(self) -> int:
        """1 for a stronger guarantee, -1 for a weaker one of the run or in the long run, else 0."""
        order = [str(one) for one in Answer]
        pairs: list[tuple[float, float]] = [(order.index(old), order.index(new)) for old, new in self.answers.values()]
        old, new = self.sizes
        if pairs[0][0] == pairs[0][1] and old is not None and new is not None and abs(new - old) > _SAME * old:
            pairs.append((old, new))
        signs = [(new < old) - (new > old) for old, new in pairs]
        return -1 if -1 in signs else max(signs)

    @property
    def verdict(self) -> str:
        """One of "better", "the same" and "worse"."""
        return _VERDICTS[self.sign]

    @property
    def better(self) -> bool:
        """True if the second is guaranteed more, and nothing less."""
        return self.sign > 0

    @property
    def worse(self) -> bool:
        """True if the second is guaranteed less, for the run or in the long run."""
        return self.sign < 0

    @property
    def line(self) -> Line:
        """The verdict and what it rests on, in one line beside an answer."""
        told = [f"{name}: {_step(*pair, self.sizes if name == 'run' else ())}" for name, pair in self.answers.items()]
        names = ", ".join(one.name for one in self.differences)
        changed = f"changed: {names}" if names else "nothing changed"
        verdict = f"{self.verdict.upper()} {'than' if self.sign else 'as'} the earlier answer"
        return Line("; ".join([verdict, *told, changed]), "Against")

    @property
    def answers(self) -> dict[str, tuple[str, str]]:
        """The answers for the run and in the long run, before and after."""
        run, later = ([one["answer"], one["long_run"]["answer"]] for one in (self.before, self.after))
        return dict(zip(("run", "long run"), zip(run, later, strict=True), strict=True))

    @property
    def sizes(self) -> tuple[float | None, float | None]:
        """The shares of their size that gradients average below."""
        old, new = ((one.get("run") or {}).get("gradients_at_most") for one in (self.before, self.after))
        return old, new

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The differences between the configurations and what is known of them."""
        before, after = _told(self.before), _told(self.after)
        pairs = {name: (before.get(name), after.get(name)) for name in before | after}
        return tuple(Difference(name, old, new) for name, (old, new) in pairs.items() if old != new)


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a saved answer says of its configuration and its problem, by the names of differences."""
    steps = (one.get("run") or {}).get("steps")
    known = one.get("assumed", {}) | one.get("setting", {})
    return {
        "steps": steps,
        **{name: _along(one.get(key), steps) for key, name in _BY_STEP.items()},
        **{name: one.get(name) for name in _PLAIN},
        **{name.replace("_", " "): value for name, value in known.items()},
    }


def _along(text: Any, steps: int | None) -> str | None:
    """Return a sequence in words: its largest and its last value in the run, else the formula."""
    if not isinstance(text, str):
        return None
    with suppress(GenericAdamError, Undecided):
        u = parse(text)
        if steps is not None and math.isfinite(largest := largest_of(u, steps)):
            last = f"{u(steps):.3g}"
            return last if f"{largest:.3g}" == last else f"{largest:.3g} at most, {last} at the end"
    return text


def compare(
    before: Any, after: Any, horizon: int | None = None, setting: Setting | None = None, *, budget: float = 1.0
) -> Comparison:
    """Compare the guarantees of two configurations.

    Args:
        before: what `read` takes (a name, an optimizer, a pair of optimizer and scheduler, an Algorithm), or a saved
            answer of `check --json`: its path, or the dictionary.
        after: likewise.
        horizon: the number of steps of both; None takes those that the sources name.
        setting: what is known of the problem and the run.
        budget: a factor on the work that each question may take.

    Examples:
        >>> found = compare("adam", "generic_adam", horizon=10_000)
        >>> found.verdict, [one.name for one in found.differences]
        ('better', ['eps', 'optimizer'])
    """

    def answer(subject: Any) -> Mapping[str, Any]:
        if isinstance(subject, Path | Mapping):
            return saved(subject)
        return summary(certify(subject, horizon=horizon, setting=setting, budget=budget))

    return Comparison(answer(before), answer(after))


def saved(source: Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer that `check --json` printed.

    Raises:
        TheoremError: it is no such answer.
    """
    data: Any = source
    told = f"expected an answer that `generic-adam check --json` printed (schema {SCHEMA})"
    if isinstance(source, Path):
        told = f"{source}: {told}"
        try:
            with source.open("rb") as stream:
                data = json.loads(stream.read(_LARGEST))
        except OSError as error:
            raise TheoremError(f"{source}: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise TheoremError(told) from error
    try:
        run, words = data["run"], {str(one) for one in Answer}
        size = None if run is None else run["gradients_at_most"]
        fine = {data["answer"], data["long_run"]["answer"]} <= words and data["schema"] == SCHEMA
        fine = fine and (size is None or (isinstance(size, float | int) and size >= 0))
    except (KeyError, TypeError) as error:
        raise TheoremError(told) from error
    if not fine:
        raise TheoremError(told)
    return data


@words_of.register
def _(part: Difference) -> str:
    return f"{_said(part.before)} -> {_said(part.after)}"


@words_of.register
def _(part: Comparison) -> Iterator[Line]:
    yield Line(
        f"{part.verdict.upper()}: the guarantee of the second beside that of the first.", verdict=part.verdict.upper()
    )
    for name, pair in part.answers.items():
        runs = name == "run" and (part.before.get("run") or part.after.get("run"))
        if runs or name != "run":
            yield Line(_step(*pair, part.sizes if runs else ()), name.capitalize())
    yield from [Line(str(one), one.name) for one in part.differences] or [Line("The two configurations are one.")]


def _step(old: str, new: str, sizes: tuple[float | None, ...]) -> str:
    word = old if old == new else f"{old} -> {new}"
    if None in sizes or not sizes:
        return word
    return f"{word}: gradients average below {' -> '.join(f'{100 * (one or 0):.3g} %' for one in sizes)}"


def _said(value: Any) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(plain(value))
