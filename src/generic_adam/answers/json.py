"""From parts to the types that JSON has, by the fields of the parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any

from generic_adam.parts import Part

if TYPE_CHECKING:
    from generic_adam.answers.suspicion import Suspicion
    from generic_adam.theorems.certificate import Certificate

SCHEMA = 1
"""The version of the form; it rises where a name goes or changes its meaning, not where one is added."""


def plain(value: Any, *, whole: bool = False) -> Any:
    """Return a value in plain types: infinity and nan as None, a part by its fields, what has `to_dict` by it.

    Args:
        value: a part, or what one holds.
        whole: include what the short form leaves out.
    """
    if isinstance(value, Part):
        left_out = () if whole else value.rest
        named = [one.name for one in fields(value)] + [*value.also]  # type: ignore[arg-type]
        return {name: plain(getattr(value, name), whole=whole) for name in named if name not in left_out}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return str(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): plain(one, whole=whole) for name, one in value.items()}
    if isinstance(value, AbstractSet):
        return [plain(one, whole=whole) for one in sorted(value)]
    return [plain(one, whole=whole) for one in value] if hasattr(value, "__iter__") else str(value)


def document(part: Part, *, whole: bool = False) -> dict[str, Any]:
    """Return an answer as the command prints it: with the version of its form, short unless the whole is asked for."""
    return {"schema": SCHEMA, **plain(part, whole=whole)}


def summary(part: Certificate, seen: Suspicion | None = None) -> dict[str, Any]:
    """Return a certificate in short, as `check --json` prints it; docs/check.schema.json describes it.

    Args:
        part: the certificate.
        seen: the kind of training that the source looks like.
    """
    run, x = part.horizon, part.algorithm
    names = {"size": "gradients_at_most", "largest_gap": "largest_loss_gap", "largest_smoothness": "largest_curvature"}
    told = {} if run is None else {names.get(one, one): plain(getattr(run, one)) for one in _OF_THE_RUN} | run.parts
    failing = part.failing
    return {
        "schema": SCHEMA,
        "answer": str(part.answer),
        "informative": part.answer == "guaranteed",
        "optimizer": x.label or "Generic Adam",
        "run": plain(told) if told and part.answer != "does not apply" else None,
        "long_run": {
            "answer": str(part.long_run),
            "theorem": part.theorem,
            "rate": plain(part.rate),
            "cause": None if failing is None else failing.asks or f"condition {failing.number}",
            "outside": [one.kind for one in part.outside],
        },
        "looks_like": None if seen is None or part.setting.loss else seen.kind.removeprefix("a ").lower(),
        "assumed": ({} if part.setting.loss else {"loss": "fixed"})
        | {fact.name: plain(fact.value) for fact in part.setting.facts.values() if fact.source == "assumed"},
        "setting": {fact.name: plain(fact.value) for fact in part.setting.facts.values() if fact.source != "assumed"},
        "lr": str(x.method.alpha),
        "beta1": str(x.method.beta),
        "beta2": str(x.method.theta),
        "eps": str(x.eps),
        "weight_decay": str(x.decay),
        "clipping": None if x.clipping is None else x.clipping.threshold,
        "parts": len(part.parts) or 1,
    }


_OF_THE_RUN = (
    *("steps", "theorem", "useful", "size", "dominant", "floor", "largest_gap", "largest_smoothness", "best_rate"),
    *("steps_needed",),
)
