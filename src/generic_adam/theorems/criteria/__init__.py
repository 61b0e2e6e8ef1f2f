"""Other theorems about the same sequences, each as a criterion with the certificate's three answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generic_adam.theorems.criteria.criterion import Criterion
from generic_adam.theorems.criteria.defossez import DefossezBound, defossez, defossez_bound
from generic_adam.theorems.criteria.mukkamala_hein import mukkamala_hein
from generic_adam.theorems.criteria.reddi import reddi
from generic_adam.theorems.criteria.robbins_monro import robbins_monro

if TYPE_CHECKING:
    from generic_adam.methods import Method

__all__ = [
    "Criterion",
    "DefossezBound",
    "all_criteria",
    "defossez",
    "defossez_bound",
    "mukkamala_hein",
    "reddi",
    "robbins_monro",
]


def all_criteria(method: Method, horizon: int | None = None) -> tuple[Criterion, ...]:
    """Return what every further theorem says about a method; the horizon is for those that need one."""
    return reddi(method), defossez(method, horizon), mukkamala_hein(method), robbins_monro(method)
