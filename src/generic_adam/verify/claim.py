"""A claim about an optimizer (a mapping of few keys, a name, an Algorithm or its own class), and the Rule of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np

from generic_adam.adapters import read
from generic_adam.adapters.updates import name_of
from generic_adam.errors import GenericAdamError, OptimizerError, meant, shown
from generic_adam.methods import Algorithm, Method
from generic_adam.methods.method import read_schedule
from generic_adam.schedules import parse
from generic_adam.verify.replay import ROUNDOFF, Floats, Rule, Trace

_NAMES = {one.lower(): one for one in ("Adam", "AdamW", "AMSGrad", "NAdam", "NAdamW", "RMSprop", "Adagrad", "SGD")}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An optimizer as its owner believes it to be.

    Attributes:
        algorithm: Adam, AdamW, AMSGrad, NAdam, NAdamW, RMSprop, Adagrad or SGD.
        lr: a number, a text in t, or a function of the step from 1.
        betas: beta1 and beta2, each as lr.
        eps: what is added to the root of the second moment.
        weight_decay: lambda.
        amsgrad: whether the second moment is its running maximum.
        amsgrad_max: the maximum is taken of the "uncorrected" or the "corrected" second moment.
        bias_correction: whether both moments are corrected.
        alpha: RMSprop's beta2.
        momentum: of SGD, and of RMSprop after the division; as lr.
        centered: whether RMSprop takes off the squared mean gradient.
        nesterov: whether momentum looks ahead.
        momentum_decay: NAdam's.
        rate_in_momentum: whether RMSprop's buffer has the rate inside.
        decoupled: whether the decay is beside the step; by the algorithm's name where None.
        eps_place: "outside" sqrt(v/c) + eps, "hat" (sqrt(v) + eps, then corrected), "root" sqrt(v + eps), "root
            squared" sqrt(v + eps^2) or "at least" max(sqrt(v), eps).
        initial_v: v_0.
        maximize: whether it ascends.
        accumulate: the micro-batches of a step, whose gradients are averaged.
        clip_norm: the largest norm of the whole gradient.
        clip_update: the largest root mean square of a parameter's update before the rate.
        scaler: whether a loss scaler skips steps with infinite gradients.
        missing: what a parameter without a gradient does: "stand still", "zero" for a gradient of zero, "zero once
            begun", "decay only" or "moments only".
        state_dtype: the format of the moments; the weights' own where None, float32 for half-precision weights.
        count: whose steps are counted: of each "parameter" (where None), of the "group", its "first" or "last"
            parameter, the "optimizer"; "shared" and "groups" are one count that each parameter or group moves in turn.
        per: other values for single parameters, by name.
        horizon: the number of steps to look at.
    """

    algorithm: str = "Adam"
    lr: Any = 1e-3
    betas: Any = (0.9, 0.999)
    eps: Any = 1e-8
    weight_decay: Any = 0.0
    amsgrad: bool = False
    amsgrad_max: str = "uncorrected"
    bias_correction: bool = True
    alpha: Any = 0.99
    momentum: Any = 0.0
    centered: bool = False
    nesterov: bool = False
    momentum_decay: float = 4e-3
    rate_in_momentum: bool = False
    decoupled: bool | None = None
    eps_place: str | None = None
    initial_v: float = 0.0
    maximize: bool = False
    accumulate: int = 1
    clip_norm: float | None = None
    clip_update: float | None = None
    scaler: bool = False
    missing: str = "stand still"
    state_dtype: str | None = None
    count: str | None = None
    per: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    horizon: int = 40
    sequences: Algorithm | None = None

    @property
    def family(self) -> str:
        """The recursion that it runs."""
        return {"adamw": "adam", "amsgrad": "adam", "nadamw": "nadam"}.get(name := self.algorithm.lower(), name)

    @property
    def title(self) -> str:
        """The algorithm and the settings that are not its defaults."""
        if self.sequences is not None:
            return repr(self.sequences)
        told = [(name, getattr(self, name)) for name in _KEYS if name not in {"algorithm", "horizon"}]
        given = [f"{name}={'by step' if callable(value) else value}" for name, value in told
                 if value != getattr(Claim, name, value) or name == "lr"]  # fmt: skip
        return f"{_NAMES[self.algorithm.lower()]}({', '.join(given)})"

    def rule(self, trace: Trace) -> Rule:
        """Return the claim as numbers for each step and parameter of a trace."""
        if self.sequences is not None:
            return _rule_of_algorithm(self.sequences, trace)
        for name, options in self.per.items():
            if name not in trace.names:
                raise OptimizerError(f"claim, per: no parameter {shown(name)}; {meant(str(name), trace.names)}")
            if unlike := set(options) - {*_SEQUENCES, "betas"}:
                expected = ", ".join((*_SEQUENCES, "betas"))
                raise OptimizerError(f"claim, per {name!r}: {min(unlike)} is one for all; expected {expected}")
        each = [replace(self, per={}, **_known(self.per.get(name, {}))) for name in trace.names]
        taken = np.maximum(np.cumsum(~trace.overflow), 1)  # a skipped step is none of the schedule's

        def table(read: Callable[[Claim], Any], name: str) -> Floats:
            columns = [[_at(read(one), int(t), name) for t in taken] for one in each]
            return np.array(columns, dtype=float).reshape(len(each), len(taken)).T

        decoupled = self.algorithm.lower().endswith("w") if self.decoupled is None else self.decoupled
        same = ("initial_v", "missing", "nesterov", "centered", "rate_in_momentum", "momentum_decay",
                "clip_norm", "clip_update", "state_dtype")  # fmt: skip
        return Rule(
            self.family,
            table(lambda one: one.lr, "lr"),
            table(lambda one: one.betas[0], "beta1"),
            table(lambda one: one.alpha if self.family == "rmsprop" else one.betas[1], "beta2"),
            table(lambda one: one.eps, "eps"),
            table(lambda one: one.weight_decay, "weight_decay"),
            table(lambda one: one.momentum, "momentum"),
            correction="both" if self.bias_correction else "none",
            eps_place=self.eps_place or "outside",
            decay_form="decoupled" if decoupled else "coupled",
            maximum=self.amsgrad_max if self.amsgrad or self.algorithm.lower() == "amsgrad" else "none",
            count={"global": "optimizer"}.get(self.count or "", self.count or "parameter"),
            first_moment="none" if self.family in {"rmsprop", "adagrad"} else "average",
            second_moment="sum" if self.family == "adagrad" else "average",
            sign=-1.0 if self.maximize else 1.0,
            **{name: getattr(self, name) for name in same},
        )


_SEQUENCES = ("lr", "eps", "weight_decay", "alpha", "momentum")
_KEYS = tuple(one.name for one in fields(Claim) if one.name != "sequences")
_CHOICES = {
    "amsgrad_max": ("uncorrected", "corrected"),
    "eps_place": (None, "outside", "hat", "root", "root squared", "at least"),
    "missing": ("stand still", "zero", "zero once begun", "decay only", "moments only"),
    "state_dtype": (None, *ROUNDOFF),
    "count": (None, "parameter", "group", "optimizer", "global", "shared", "groups", "first", "last"),
}


def read_claim(given: Any) -> Claim:
    """Read a claim from an Algorithm, a Method, a name or a mapping of the keys of `Claim`."""
    if isinstance(given, Claim):
        return given
    if isinstance(given, Algorithm | Method):
        return Claim(sequences=given if isinstance(given, Algorithm) else Algorithm(given))
    settings = {"algorithm": given} if isinstance(given, str) else given
    if not isinstance(settings, Mapping):
        raise OptimizerError(f"claim is {shown(given)}; expected a name, a mapping or an Algorithm")
    claim = Claim(**_known(settings))
    for name, options in claim.per.items():
        _known(options, f"claim, per {name!r}")
    return claim


def _known(settings: Mapping[str, Any], where: str = "claim") -> dict[str, Any]:
    if settings.get("state_dtype") is not None:  # torch.bfloat16 is as good as its name
        settings = {**settings, "state_dtype": str(settings["state_dtype"]).removeprefix("torch.")}
    for name, value in settings.items():
        if name not in _KEYS:
            raise OptimizerError(f"{where}: no key {shown(name)}; {meant(str(name), _KEYS)}")
        if name == "algorithm" and str(value).lower() not in _NAMES:
            raise OptimizerError(f"{where}: algorithm {shown(value)}; {meant(str(value), _NAMES.values())}")
        if name in _CHOICES and value not in _CHOICES[name]:
            expected = ", ".join(repr(one) for one in _CHOICES[name] if one is not None)
            raise OptimizerError(f"{where}: {name} is {shown(value)}; expected one of {expected}")
        if name in {"horizon", "accumulate"} and not (isinstance(value, int) and 1 <= value <= 10_000):
            raise OptimizerError(f"{where}: {name} is {shown(value)}; expected a whole number from 1 to 10,000")
        if name == "betas" and not (isinstance(value, tuple | list) and len(value) == 2):
            raise OptimizerError(f"{where}: betas is {shown(value)}; expected two numbers")
    return {
        name: read_schedule(f"{where}: {name}", value) if isinstance(value, str) and name in _SEQUENCES else value
        for name, value in settings.items()
    }


def _at(value: Any, step: int, name: str) -> float:
    """Return the number that is claimed for a step."""
    try:
        value = parse(value) if isinstance(value, str) else value
        found: Any = value(step) if callable(value) else value
        number = float(found)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise OptimizerError(f"claim: {name} at step {step}: {error}; expected a number") from error
    if not math.isfinite(number):
        raise OptimizerError(f"claim: {name} at step {step} is {number}; expected a finite number")
    return number


def _rule_of_algorithm(whole: Algorithm, trace: Trace) -> Rule:
    """Return an Algorithm's sequences, by group; the switches are those of its first part."""
    if whole.outside or whole.scaled or whole.factored or whole.power != Fraction(1, 2):
        switches = {"steps scaled by the parameters": whole.scaled, "factored second moments": whole.factored}
        reasons = (*whole.outside, *(name for name, is_so in switches.items() if is_so))
        reason = next(iter(reasons), "a power of v other than 1/2")
        raise OptimizerError(f"{whole.label or 'the algorithm'} cannot be carried out here: {reason}")
    of_group = {group: part for part in whole.parts for group in part.groups}
    parts = [of_group.get(int(group), whole.parts[0]) if len(whole.parts) > 1 else whole for group in trace.group]
    steps = np.maximum(np.cumsum(~trace.overflow), 1)

    def table(read: Callable[[Algorithm], Any]) -> Floats:
        made = {id(part): np.array([float(read(part)(int(t))) for t in steps]) for part in parts}
        return np.stack([made[id(part)] for part in parts], axis=1)

    first, l2 = parts[0], np.array([float(part.l2) for part in parts])
    kind, limit = (first.clipping.kind, first.clipping.threshold) if first.clipping else ("", None)
    ahead = [table(attrgetter(f"nesterov.{name}_weight")) for name in ("momentum", "gradient") if first.nesterov]
    decay = np.broadcast_to(l2, (trace.steps, len(parts))) if l2.any() else table(lambda part: part.decay)
    return Rule(
        "adam" if first.preconditioned else "sgd",
        table(lambda part: part.method.alpha),
        table(lambda part: part.method.beta),
        table(lambda part: part.method.theta),
        table(lambda part: part.eps),
        decay,
        np.full_like(decay, float(first.heavy_ball.factor) if first.heavy_ball else 0.0),
        correction="none",
        eps_place="root squared" if first.eps_under_root else "outside",
        decay_form="coupled" if l2.any() else "absolute",
        maximum="uncorrected" if first.running_maximum else "none",
        initial_v=first.initial_v,
        look_ahead=(ahead[0], ahead[1]) if ahead else None,
        rate_in_momentum=bool(first.heavy_ball and first.heavy_ball.rate_inside),
        centered=first.centered,
        second_moment="delayed" if first.delayed else "average",
        clip_norm=None if kind == "update" else limit,
        clip_how="value" if kind == "value" else "norm",
        clip_update=limit if kind == "update" else None,
    )


# Without a claim: the rule that a class and its own parameter groups stand for, and the rules that it may be.

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
    """Return the state's own format: without a claim it is as said."""
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
