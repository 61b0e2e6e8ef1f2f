"""The gallery: what the certificate says about each published recipe, at its own horizon and for ever."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from generic_adam.methods.recipes import RECIPES, Recipe
from generic_adam.theorems.advice import Advice, advise
from generic_adam.theorems.certificate import Certificate, certify
from generic_adam.theorems.sums import ratio
from generic_adam.theorems.verdicts import Condition


@dataclass(frozen=True)
class Exhibit:
    """One recipe with what is known about it.

    Attributes:
        recipe: the published values.
        certificate: the verdict for every t, with the reading at the recipe's own horizon.
        ratio: sum alpha_t sqrt(1 - theta_t) / (T alpha_T) at T = the horizon: condition 4's, and the bound's
            second term.
        nearest: the nearest certified change, or None where none was found.
    """

    recipe: Recipe
    certificate: Certificate
    ratio: float
    nearest: Advice | None

    @property
    def first_failing(self) -> Condition | None:
        """The first condition that fails, else the first undecided one."""
        return self.certificate.first_failing

    def to_dict(self) -> dict[str, Any]:
        """Plain types only: the certificate's dictionary, and the recipe's."""
        failing = self.first_failing
        return {
            "name": self.recipe.name,
            "title": self.recipe.title,
            "steps": self.recipe.horizon,
            "evidence": str(self.recipe.evidence),
            "source": self.recipe.source,
            "not_covered": list(self.recipe.outside),
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "ratio_order": None
            if self.certificate.ratio_order is None
            else str(self.certificate.ratio_order),
            "first_failing": None if failing is None else failing.number,
            "nearest_change": None if self.nearest is None else self.nearest.to_dict(),
            "certificate": self.certificate.to_dict(),
        }


def exhibit(recipe: Recipe) -> Exhibit:
    """What is known about one recipe."""
    advice = advise(recipe.method)
    return Exhibit(
        recipe,
        certify(recipe.method, horizon=recipe.horizon),
        ratio(recipe.method, recipe.horizon),
        advice[0] if advice else None,
    )


def gallery() -> tuple[Exhibit, ...]:
    """All recipes, in order."""
    return tuple(exhibit(recipe) for recipe in RECIPES)
