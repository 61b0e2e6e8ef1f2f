"""The theorems, one file each (or for a few that are kin), and the list of all of them.

`zou2019` is the paper's Theorem 1. `weighted` (W), `epsilon` (E, N, H, D), `symmetric` (Y, L), `scaled` (P),
`amsgrad` (M, O), `clipping` (C, B), `shuffled` (RR) and `regret` (R) are proved on this project's
pages; `literature` holds what others published. Each is a declaration in the words of `theorem`. `decide` answers
questions about sequences; `sequences` and `sweep` run the recursions of the bounds, and `tight` says how
much less a bound could be; `certificate`, `bounds`, `horizon` and `advice` ask all theorems.

`THEOREMS` is made when it is first asked for: a module of this package imports no other theorem than it builds on.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from generic_adam.errors import TheoremError, meant

if TYPE_CHECKING:
    from generic_adam.theorems.theorem import Theorem

    THEOREMS: tuple[Theorem, ...]

# In the order in which they are asked: of two that say the same, the first speaks.
_LISTED = (
    "zou2019.Zou2019",
    "weighted.Weighted",
    "epsilon.Epsilon",
    "epsilon.Decay",
    "symmetric.Symmetric",
    "symmetric.SmoothSamples",
    "scaled.Scaled",
    "amsgrad.RunningMaximum",
    "amsgrad.Delayed",
    "clipping.Clipped",
    "clipping.FullBatch",
    "shuffled.Shuffled",
    "literature.RobbinsMonro",
    "regret.Regret",
    "literature.Reddi2018",
)
_CITED = (
    *("mukkamala_hein2017", "reddi2018_regret", "defossez2020", "zhang2022"),
    *("shi2021", "li2023", "wang2023", "xie_li2024"),
)


@cache
def _all() -> tuple[Theorem, ...]:
    homes = (one.split(".") for one in _LISTED)
    return tuple(getattr(import_module(f"{__name__}.{module}"), kind)() for module, kind in homes)


def __getattr__(name: str) -> object:
    """Return `THEOREMS`, every theorem that the certificate asks, in the order in which it asks."""
    if name == "THEOREMS":
        return _all()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def theorem_named(name: str) -> Theorem:
    """Return the theorem of that name, capitals or not.

    Raises:
        TheoremError: there is none; the message offers the closest name.
    """
    known = {one.name.lower(): one for one in _all()}
    if name.lower() in _CITED:
        raise TheoremError(f"{name} is cited and never used to certify; docs/theorems/published.md says what it states")
    if name.lower() not in known:
        raise TheoremError(f"no theorem is called {name!r}; {meant(name, (one.name for one in known.values()))}")
    return known[name.lower()]


__all__ = ["THEOREMS", "theorem_named"]
