"""Which modules of the theorems are on which API page; one that is new is on the page of theorems by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

THEOREMS = Path(__file__).parents[2] / "src" / "generic_adam" / "theorems"
CERTIFICATES = ("certificate", "theorem", "decide", "horizon", "advice", "problem", "bounds")
LEMMAS = ("lemmas", "paths")


def _blocks(names: Iterable[str]) -> str:
    return "\n\n".join(f"::: generic_adam.theorems.{name}" for name in names)


def _rest() -> str:
    taken = {*CERTIFICATES, *LEMMAS, "__init__"}
    return _blocks(sorted(path.stem for path in THEOREMS.glob("*.py") if path.stem not in taken))


GENERATORS: dict[str, Callable[[], str]] = {
    "api-certificates": lambda: _blocks(CERTIFICATES),
    "api-theorems": _rest,
    "api-lemmas": lambda: _blocks(LEMMAS),
}
