"""The theorems, one file each (or for a few that are kin), and the list of all of them.

`zou2019` is the paper's Theorem 1. `weighted` (W), `epsilon` (E, N, H), `decay` (D), `amsgrad` (M, O), `clipping`
(C, B), `special` (G, Z, S) and `regret` (R) are proved on this project's pages; `literature` holds what others
published. Each is a declaration in the words of `theorem`. `decide` answers questions about sequences, `sequences`
and `sweep` run the recursions of the bounds; `certificate`, `bounds`, `horizon` and `advice` ask all theorems.
"""

from __future__ import annotations

from generic_adam.errors import TheoremError, meant
from generic_adam.theorems.amsgrad import Delayed, RunningMaximum
from generic_adam.theorems.clipping import Clipped, FullBatch
from generic_adam.theorems.decay import Decay
from generic_adam.theorems.epsilon import Epsilon
from generic_adam.theorems.literature import REPORTED, Defossez, MukkamalaHein, Reddi2018, Reddi2018Regret, RobbinsMonro
from generic_adam.theorems.regret import Regret
from generic_adam.theorems.special import Averaging, BigBatch, Sign
from generic_adam.theorems.theorem import Theorem
from generic_adam.theorems.weighted import Weighted
from generic_adam.theorems.zou2019 import Zou2019

THEOREMS: tuple[Theorem, ...] = (
    Zou2019(),
    Weighted(),
    Epsilon(),
    Decay(),
    RunningMaximum(),
    Delayed(),
    Clipped(),
    FullBatch(),
    Averaging(),
    BigBatch(),
    Sign(),
    RobbinsMonro(),
    Regret(),
    MukkamalaHein(),
    Reddi2018(),
    Reddi2018Regret(),
    Defossez(),
)
"""Every theorem that the certificate asks, in the order in which it asks."""


def theorem_named(name: str) -> Theorem:
    """The theorem or the cited statement of that name, capitals or not.

    Raises:
        TheoremError: there is none; the message offers the closest name.
    """
    known = {one.name.lower(): one for one in (*THEOREMS, *REPORTED)}
    if name.lower() not in known:
        raise TheoremError(f"no theorem is called {name!r}; {meant(name, (one.name for one in known.values()))}")
    return known[name.lower()]


__all__ = ["REPORTED", "THEOREMS", "theorem_named"]
