"""Every theorem that the certificate asks, in the order in which it asks."""

from __future__ import annotations

from difflib import get_close_matches

from generic_adam.errors import TheoremError
from generic_adam.theorems.amsgrad import RunningMaximum
from generic_adam.theorems.clipping import Clipped, FullBatch
from generic_adam.theorems.decay import Decay
from generic_adam.theorems.delayed import Delayed
from generic_adam.theorems.epsilon import Epsilon
from generic_adam.theorems.literature import (
    REPORTED,
    Defossez,
    MukkamalaHein,
    Reddi2018,
    Reddi2018Regret,
    RobbinsMonro,
)
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


def theorem_named(name: str) -> Theorem:
    """The theorem or the cited statement of that name, capitals or not.

    Raises:
        TheoremError: there is none; the message offers the closest name.
    """
    known = {one.name.lower(): one for one in (*THEOREMS, *REPORTED)}
    if name.lower() in known:
        return known[name.lower()]
    close = get_close_matches(name.lower(), known, n=1)
    hint = (
        f"did you mean {close[0]!r}?"
        if close
        else f"expected one of {', '.join(one.name for one in THEOREMS)}"
    )
    raise TheoremError(f"no theorem is called {name!r}; {hint}")


__all__ = ["REPORTED", "THEOREMS", "theorem_named"]
