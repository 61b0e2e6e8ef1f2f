"""Without a claim: the rule that a class and its own parameter groups stand for, and the rules that it may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from generic_adam.adapters import read
from generic_adam.adapters.updates import name_of
from generic_adam.errors import GenericAdamError
from generic_adam.methods import Algorithm
from generic_adam.verify.claim import read_claim
from generic_adam.verify.replay import Floats, Rule, Trace

KNOWN = ("AdamW", "Adam", "NAdam", "NAdamW", "RMSprop", "Adagrad", "SGD")


def of_class(optimizer: Any) -> str | Algorithm | None:
    """Return what an optimizer's class is read as: a name, whose settings its groups say, or all sequences."""
    optimizer = getattr(optimizer, "optimizer", None) or optimizer
    for base in type(optimizer).__mro__:
        package, _, name = name_of(base).rpartition(".")
        if package == "torch" and name in KNOWN and name != "NAdamW":
            return name
    try:
        return read(optimizer)
    except GenericAdamError:
        return None


def candidates(trace: Trace) -> Iterator[tuple[str, Rule]]:
    """Yield the known algorithms with the settings of the groups, commonest first."""
    for name in KNOWN:
        rule = with_settings(name, trace)
        yield name, rule
        if rule.family == "adam":
            yield f"{name} without bias correction", rule.but(correction="none")
            yield f"{name} with eps before the correction", rule.but(eps_place="hat")
            yield f"{name} with amsgrad", rule.but(maximum="uncorrected")


def with_settings(name: str, trace: Trace) -> Rule:
    """Return the rule of an algorithm with what the parameter groups say at each step."""
    base = read_claim(name).rule(trace)
    said = trace.settings

    def of(*names: str, default: Floats) -> Floats:
        for one in names:
            if one in said:
                return np.where(np.isnan(said[one]), default, said[one])
        return default

    def flag(key: str, default: bool) -> bool:
        values = said.get(key)
        return default if values is None or np.isnan(values).all() else bool(np.nanmax(values))

    def most(name: str, default: float = 0.0) -> float:
        return float(np.nanmax(of(name, default=np.full_like(base.lr, default)), initial=0.0))

    return base.but(
        lr=of("lr", default=base.lr),
        beta1=of("beta1", default=base.beta1),
        beta2=of(*(("alpha",) if base.family == "rmsprop" else ()), "beta2", default=base.beta2),
        eps=of("eps", default=base.eps),
        decay=of("weight_decay", default=base.decay),
        decay_form="decoupled" if flag("decoupled_weight_decay", False) else base.decay_form,
        maximum="uncorrected" if flag("amsgrad", False) else "none",
        correction="both" if flag("bias_correction", True) else "none",
        sign=-1.0 if flag("maximize", False) else 1.0,
        momentum=of("momentum", default=base.momentum),
        dampening=most("dampening"),
        nesterov=flag("nesterov", False) or base.nesterov,
        centered=flag("centered", False),
        initial_v=most("initial_accumulator_value"),
        momentum_decay=most("momentum_decay", 4e-3),
        rate_decay=most("lr_decay"),
        state_dtype=_narrowest(trace),
    )


def _narrowest(trace: Trace) -> str | None:
    """The state's own format: without a claim it is as said."""
    seen = set().union(*trace.state_dtypes) if trace.state_dtypes else set()
    return next((one for one in ("bfloat16", "float16") if one in seen), None)


def said_by_groups(trace: Trace) -> str:
    """Return the settings of the groups before the first step, in words."""
    told = []
    for name in ("lr", "beta1", "beta2", "alpha", "momentum", "eps", "weight_decay"):
        values = trace.settings.get(name)
        seen = [] if values is None else sorted({float(one) for one in values[0] if not np.isnan(one)})
        if seen and (name != "momentum" or any(seen)):
            told.append(f"{name.replace('_', ' ')} {' or '.join(f'{one:g}' for one in seen)}")
    return ", ".join(told)
